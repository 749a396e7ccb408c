//! Whole examples for the reference of all fields: one for each kind of document and of runtime.
//! Together they fit: services name applications, channels and parameters that are there.

/// Each example, by the type in whose section of `docs/config.md` it stands.
pub(super) const EXAMPLES: &[(&str, &str)] = &[
    ("Runtime", include_str!("examples/runtime.pvn.yaml")),
    ("KubernetesRuntime", include_str!("examples/kubernetes-runtime.pvn.yaml")),
    ("LocalRuntime", include_str!("examples/local-runtime.pvn.yaml")),
    ("FakeRuntime", include_str!("examples/fake-runtime.pvn.yaml")),
    ("IacRunner", include_str!("examples/iac-runner.pvn.yaml")),
    ("AwsEcsRuntime", include_str!("examples/aws-ecs-runtime.pvn.yaml")),
    ("GoogleCloudRunRuntime", include_str!("examples/google-cloud-run-runtime.pvn.yaml")),
    ("Application", include_str!("examples/application.pvn.yaml")),
    ("Service", include_str!("examples/service.pvn.yaml")),
    ("TerraformService", include_str!("examples/terraform-service.pvn.yaml")),
    ("PulumiService", include_str!("examples/pulumi-service.pvn.yaml")),
    ("AwsEcsService", include_str!("examples/aws-ecs-service.pvn.yaml")),
    ("GoogleCloudRunService", include_str!("examples/google-cloud-run-service.pvn.yaml")),
];

#[cfg(test)]
mod tests {
    use schema::api::ConfigFile;
    use serde_json::Value;

    use super::EXAMPLES;
    use crate::json_schema::of;
    use crate::{Document, WrittenDocument, check_references, ineffective, read, unmasked_secrets};

    /// What the reader makes of these examples. Fails with what it says of a broken one.
    #[track_caller]
    fn documents(examples: &[(&str, &str)]) -> Vec<Document> {
        let file = |(name, text): &(&str, &str)| ConfigFile {
            path: format!("{name}.pvn.yaml"),
            text: (*text).to_owned(),
            ..ConfigFile::default()
        };
        read(&examples.iter().map(file).collect::<Vec<_>>()).unwrap_or_else(|problems| {
            panic!("{}", problems.iter().map(|one| one.render(false)).collect::<String>())
        })
    }

    #[test]
    fn every_example_is_whole_by_itself() {
        for example in EXAMPLES {
            assert!(!documents(&[*example]).is_empty(), "{}", example.0);
        }
    }

    #[test]
    fn the_examples_fit_together_and_nobody_warns_of_them() {
        let documents = documents(EXAMPLES);
        let mut problems = check_references(&documents);
        problems.extend(ineffective(&documents));
        problems.extend(unmasked_secrets(&documents));
        let told: String = problems.iter().map(|one| one.render(false)).collect();
        assert!(problems.is_empty(), "{told}");
    }

    #[test]
    fn every_kind_has_an_example() {
        let schema = of::<WrittenDocument>();
        let all: String = EXAMPLES.iter().map(|(_, text)| *text).collect();
        let kinds = |of: &str| -> Vec<String> {
            let group = &schema["definitions"][of]["x-atMostOne"];
            let names = group.as_array().into_iter().flatten().filter_map(Value::as_str);
            names.map(str::to_owned).collect()
        };
        let (runtimes, services) = (kinds("Runtime"), kinds("Service"));
        assert!(runtimes.len() > 7 && services.len() > 5, "{runtimes:?} {services:?}");
        // Which no runtime takes yet: the compiler refuses it.
        let untaken = ["kubernetesConfig"];
        let missing: Vec<_> = runtimes
            .into_iter()
            .chain(services)
            .filter(|kind| !untaken.contains(&kind.as_str()))
            .filter(|kind| !all.lines().any(|line| line.starts_with(&format!("  {kind}:"))))
            .collect();
        assert!(missing.is_empty(), "no example of {missing:?}");
        for (of, _) in EXAMPLES {
            assert!(schema["definitions"].get(of).is_some(), "there is no section `{of}`");
        }
    }
}
