//! The page of a config document: any two of its versions side by side.

use axum::http::StatusCode;

use super::Service;

/// The service's document with this default of its parameter.
fn with_default(value: &str) -> String {
    format!(
        "service:\n  name: web\n  application: app\n  parameters:\n  - name: size\n    string:\n\
         {:6}defaultValue: {value}\n",
        ""
    )
}

#[tokio::test]
async fn any_two_versions_of_a_document_are_compared() {
    let service = Service::start().await;
    for words in ["first", "second", "third"] {
        service.rig.apply(&with_default(words)).await.unwrap();
    }
    let cookie = service.sign_in("viewer").await;
    let page = "/configs/document?kind=service&application=app&name=web";
    let versions = service.open(page, &cookie).await.html();
    assert!(versions.contains("Changed since version 3"), "the newest and the one before");
    let lines = ["-      defaultValue: second", "+      defaultValue: third"];
    assert!(lines.iter().all(|line| versions.contains(line)), "{versions}");
    let shows = async |more: &str, heading: &str, lines: [&str; 2]| {
        let html = service.open(&format!("{page}&{more}"), &cookie).await.html();
        assert!(html.contains(heading), "{more}: {html}");
        assert!(lines.iter().all(|line| html.contains(line)), "{more}: {html}");
    };
    let lines = ["-      defaultValue: first", "+      defaultValue: third"];
    shows("with=2&version=4", "From version 2 to 4", lines).await;
    let lines = ["-      defaultValue: third", "+      defaultValue: first"];
    shows("with=4&version=2", "From version 4 to 2", lines).await;
    let lines = ["-      defaultValue: first", "+      defaultValue: second"];
    shows("with=&version=3", "Changed since version 2", lines).await;
    shows("with=3&version=3", "From version 3 to 3", ["Both say the same.", ""]).await;
    for (more, status) in [
        ("with=99", StatusCode::NOT_FOUND),
        ("version=99", StatusCode::NOT_FOUND),
        ("with=x", StatusCode::BAD_REQUEST),
    ] {
        let answer = service.open(&format!("{page}&{more}"), &cookie).await;
        assert_eq!(answer.status, status, "{more}");
    }
}
