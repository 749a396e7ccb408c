//! The published files whose commands call the tools themselves: they converge, too.

use super::*;

/// What of the files is about the insides of images and clusters, and what stands in for it here.
const INSIDES: &[(&str, &str)] = &[
    // Terraform: where the configurations are, and where the plan is put.
    ("cd \"/terraform/$STACK\"", "cd \"$STACK\""),
    ("--in, /scratch/tf.plan=fetch:plan", "--in, tf.plan=fetch:plan"),
    ("-input=false /scratch/tf.plan", "-input=false \"$OLDPWD/tf.plan\""),
    ("ephemeral: {medium: MEMORY}", "ephemeral: {medium: DEFAULT}"),
    (
        "        volumes:
        - name: cloud-credentials
          source:
            secret: {secretName: cloud-credentials}
          mount: {mountPath: /var/run/cloud, readOnly: true}
        - name: scratch
          source:
            ephemeral: {medium: DEFAULT}
          mount: {mountPath: /scratch}
",
        "",
    ),
    // Google Cloud Run: working hours somewhere.
    (
        "      window: {schedule: \"0 0 9 * * Mon-Fri\", duration: 8h, timezone: Europe/Berlin}\n",
        "",
    ),
    // ECS: a secret that was changed twice.
    ("aws-secret-access-key, version: 3", "aws-secret-access-key"),
];

#[test]
fn the_published_services_of_custom_runtimes_converge() {
    let test = "the_published_services_of_custom_runtimes_converge";
    if !["aws", "gcloud", "terraform", "jq"].iter().all(|tool| is_there(tool, test)) {
        return;
    }
    let (ecs, run) = (EcsServer::in_cluster("storefront-production"), CloudRunServer::start());
    made_by_others(&ecs);
    let mut dev = Dev::of("prodvana");
    let directory = dev.directory();
    let files = ["terraform.pvn.yaml", "ecs.pvn.yaml", "cloud-run.pvn.yaml", "kubernetes.pvn.yaml"];
    keep_files(&directory, &files, INSIDES);
    for stack in ["staging", "production"] {
        write(&directory.join("network").join(stack).join("main.tf"), TERRAFORM);
    }
    let home = directory.parent().expect("it is in a directory");
    let key = home.join("key");
    write(&key, "of-the-account");
    let secret = format!("aws-secret-access-key={}", key.to_str().expect("the path is UTF-8"));
    let environment = exported(home, &ecs, &run, &[]);
    dev.start_after(&environment, &["--param", "image=v1", "--secret", &secret]);

    for (application, service, channel) in [
        ("infrastructure-as-code", "network", "staging"),
        ("infrastructure-as-code", "network", "production"),
        ("storefront", "web", "production"),
        ("landing", "page", "production"),
    ] {
        converges(&dev, application, service, channel);
    }
    let world = ecs.world();
    let (definition, tags) = world.revisions.last().expect("one is registered");
    let image = &definition["containerDefinitions"][0]["image"];
    assert_eq!(image, "registry.example.com/storefront/web:v1");
    assert_eq!(tags["pvn:version"], "web-1");
    assert_eq!(world.services["web"]["taskDefinition"], definition["taskDefinitionArn"]);
    let page = &run.state().services["page"];
    let image = &page["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "registry.example.com/landing/page:v1");
    for stack in ["staging", "production"] {
        let state = directory.join("network").join(stack).join("terraform.tfstate");
        assert!(state.is_file(), "{stack} has a state of its own");
    }
}
