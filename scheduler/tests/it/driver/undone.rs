//! What `services rollback` without a version refuses to guess.

use schema::api::{PushRequest, RollbackRequest};
use schema::status::Status;

use super::rollbacks::sick;
use super::{Rig, TWO_CHANNELS, caller};

impl Rig {
    async fn guess(&self, channels: Option<&str>) -> Result<schema::api::Pushed, String> {
        let request = RollbackRequest {
            version: None,
            channels: channels.map(|channel| vec![channel.to_owned()]),
        };
        let back = self.handle.rollback("app".into(), "web".into(), request, caller("eve")).await;
        back.map_err(|refused| refused.to_string())
    }

    async fn push_to(&self, channel: &str) {
        let request =
            PushRequest { channels: Some(vec![channel.to_owned()]), ..PushRequest::default() };
        self.handle.push("app".into(), "web".into(), request, caller("eve")).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_that_never_arrived_is_not_undone_by_going_further_back() {
    let rig = Rig::start(sick("web-2", "staging")).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_converged("web-1").await;
    rig.push(&[]).await.unwrap();
    rig.until_status("staging", Status::Failed).await;
    rig.push(&[]).await.unwrap();
    rig.until_converged("web-3").await;
    // A slip.
    let slip = RollbackRequest { version: Some("web-2".into()), channels: None };
    rig.handle.rollback("app".into(), "web".into(), slip, caller("eve")).await.unwrap();
    rig.until_status("staging", Status::Failed).await;
    rig.until_status("production", Status::WaitingPreconditions).await;
    let refused = rig.guess(None).await.unwrap_err();
    for channel in ["production", "staging"] {
        let why = format!(
            "`{channel}` was last converged at web-3, and was asked to go back to web-2 since, \
             where it has not arrived"
        );
        assert!(refused.contains(&why), "{refused}");
    }
    assert!(refused.contains("`pvnctl services rollback web --app app --to VERSION`"), "{refused}");
    let refused = rig.guess(Some("production")).await.unwrap_err();
    assert!(
        refused.contains("web-3") && refused.contains("--to VERSION --channels production`"),
        "{refused}"
    );
    let back = RollbackRequest { version: Some("web-3".into()), channels: None };
    rig.handle.rollback("app".into(), "web".into(), back, caller("eve")).await.unwrap();
    rig.until_converged("web-3").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_channel_that_failed_cannot_go_back_the_others_are_not_taken_back_in_its_place() {
    let rig = Rig::start(sick("web-3", "staging")).await;
    let (head, tail) = TWO_CHANNELS.split_once("    preconditions:").unwrap();
    let free = format!("{head}---\n{}", tail.split_once("---\n").unwrap().1);
    rig.apply(&free).await.unwrap();
    for version in ["web-1", "web-2"] {
        rig.push_to("production").await;
        let there = async || {
            (rig.instance("production").await.converged_version.as_deref() == Some(version))
                .then_some(())
        };
        rig.until("production being there", there).await;
    }
    rig.push(&[]).await.unwrap();
    rig.until_status("staging", Status::Failed).await;
    let there = async || {
        (rig.instance("production").await.converged_version.as_deref() == Some("web-3"))
            .then_some(())
    };
    rig.until("production being there", there).await;
    let refused = rig.guess(None).await.unwrap_err();
    for part in [
        "`staging` is FAILED and was never converged at an earlier version than what it pursues",
        "`production` can go back",
        "`pvnctl services rollback web --app app --channels production`",
    ] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    assert_eq!(rig.guess(Some("production")).await.unwrap().version, "web-2");
}
