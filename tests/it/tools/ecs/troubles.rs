//! AWS throttles, forgets to answer, and takes credentials for expired.

use fakes::ecs::Wrong;

use super::*;

#[test]
fn trouble_with_ecs_passes_or_is_told_in_its_own_words() {
    let Some(amazon) = Amazon::start("trouble_with_ecs_passes") else { return };
    let web = amazon.web();
    let goes_wrong = |operation, wrong: Wrong, times| {
        let mut world = amazon.server.world();
        world.wrong.extend(std::iter::repeat_n((operation, wrong), times));
    };
    // The CLI itself tries three times.
    let throttled = Wrong::Code("ThrottlingException", "Rate exceeded");
    goes_wrong("DescribeServices", throttled.clone(), 9);
    amazon.scheduler.apply(&documents(""));
    goes_wrong("RegisterTaskDefinition", Wrong::LosesAnswer, 1);
    let version = web.push("1");
    web.says(&["AWS throttles the calls of this account; it passes", "Rate exceeded"]);
    // It has acted, and the next attempt, by itself, finds what was made.
    let channel = web.says(&["its answer was lost", "next attempt after"]);
    assert_eq!(channel["status"], "CONVERGING", "{channel:#}");
    web.arrives(&version);
    assert_eq!(amazon.made(), [1, 1, 0]);
    let codes: Vec<_> = web.applies().iter().map(|job| job["exitCode"].clone()).collect();
    assert_eq!(codes, [json!(0), json!(75)]);

    // In the middle of an apply.
    goes_wrong("UpdateService", Wrong::Code("ExpiredTokenException", "The token is expired"), 1);
    let version = web.push("2");
    let failed = web.becomes("FAILED");
    assert_eq!(failed["reason"], "APPLY_FAILED");
    let why = "the credentials have expired: renew what the job gets, or log in again; \
               `aws ecs update-service`: ExpiredTokenException: The token is expired";
    assert!(failed["message"].to_string().contains(why), "{failed:#}");
    web.decide("retry", &[]);
    web.arrives(&version);
    assert_eq!(amazon.made(), [2, 1, 2], "what was registered serves");

    // While nothing is to be done: as last seen, with the reason, and then it ends.
    goes_wrong("DescribeServices", Wrong::Code("ExpiredTokenException", "too old"), 5);
    let seen = web.says(&["as last seen", "the credentials have expired"]);
    assert_eq!((&seen["status"], &seen["reason"]), (&json!("CONVERGED"), &json!("FETCH_FAILED")));
    web.comes_to("seen again", |channel| channel["reason"].is_null());
    assert_eq!(web.now()["status"], "CONVERGED");
    assert_eq!(web.applies().len(), 4, "and nothing was applied for it");
}
