//! The example of docs/api.md, run as it stands there: a whole job with nothing but curl.

use std::process::Stdio;

use super::{Listening, World};

/// The shell block of the page's section about uploads.
fn example() -> String {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/api.md")).unwrap();
    let section = page.split("## Uploads").nth(1).expect("the page has a section about uploads");
    let block =
        section.split("```sh\n").nth(1).expect("it has an example").split("```").next().unwrap();
    block.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_of_the_documentation_delivers_a_job() {
    if tests::skip::tool("curl").is_none() {
        tests::skip::skipped(
            "the_example_of_the_documentation_delivers_a_job",
            "there is no curl (Debian: curl)",
        );
        return;
    }
    let world = World::start().await;
    let job = world.fetch().await;
    let listening = Listening::start(&world);
    let directory = tempfile::tempdir().unwrap();
    let output = tokio::process::Command::new("sh")
        .args(["-eu", "-c", &example()])
        .current_dir(directory.path())
        .env("PVN_API_URL", &listening.url)
        .env("PVN_JOB_ID", job.job.to_string())
        .env("PVN_TOKEN", &job.token)
        .env("no_proxy", "*")
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{said}");
    assert!(
        said.starts_with(r#"{"cancel":false}{"blobId":"sha256:"#)
            && said.ends_with(r#"{"accepted":true}"#),
        "{said}"
    );
    let ended = world.job(job.job).await;
    assert_eq!((ended.status.to_string().as_str(), ended.exit_code), ("SUCCEEDED", Some(2)));
    let report = ended.report.unwrap();
    assert_eq!(world.blob(report.stdout_blob_id), b"one change is due\n");
    assert_eq!(world.blob(report.stderr_blob_id), b"nothing");
    assert_eq!(world.blob(report.files[0].content_blob_id), b"create web-1\n");
}
