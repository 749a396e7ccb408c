//! What the `aws` CLI sends and how it is answered: JSON for ECS, XML for STS. Called by `ecs`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::http::{Reply, Request};

/// A request, read.
pub(super) struct Asked {
    pub(super) operation: String,
    pub(super) is_ecs: bool,
    pub(super) key: String,
    pub(super) body: Value,
}

impl Asked {
    pub(super) fn of(request: &Request) -> Self {
        let of = |name: &str| request.header(name).unwrap_or_default();
        let key = of("authorization").split(['=', '/']).nth(1).unwrap_or_default().to_owned();
        let target = of("x-amz-target").rsplit('.').next().unwrap_or_default();
        let is_ecs = !target.is_empty();
        let form = String::from_utf8_lossy(&request.body).into_owned();
        let (operation, body) = if is_ecs {
            (target.to_owned(), serde_json::from_slice::<Value>(&request.body).unwrap())
        } else {
            let action = form.split('&').find_map(|field| field.strip_prefix("Action="));
            (action.unwrap_or_default().to_owned(), form.into())
        };
        Self { operation, is_ecs, key, body }
    }
}

pub(super) fn arn(kind: &str, name: &str) -> String {
    format!("arn:aws:ecs:eu-central-1:123456789012:{kind}/{name}")
}

pub(super) fn ecs_json(status: u16, body: &Value) -> Reply {
    let reply = Reply::empty(status).with("Content-Type", "application/x-amz-json-1.1");
    Reply { body: body.to_string().into_bytes(), ..reply }
}

pub(super) fn xml(status: u16, body: String) -> Reply {
    let reply = Reply::empty(status).with("Content-Type", "text/xml");
    Reply { body: body.into_bytes(), ..reply }
}

pub(super) fn tags(body: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let tags = body["tags"].as_array().map_or(&[][..], Vec::as_slice);
    tags.iter().map(|tag| (text(&tag["key"]), text(&tag["value"]))).collect()
}

/// Whose a key is: the user's own, or the role's.
pub(super) fn identity(key: &str) -> String {
    let who = if key == "ASIAROLE" { "assumed-role/pvn/pvn-web-production" } else { "user/pvn" };
    format!(
        "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\
         <GetCallerIdentityResult><Arn>arn:aws:iam::123456789012:{who}</Arn><UserId>u</UserId>\
         <Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>"
    )
}

/// What `AssumeRole` and `AssumeRoleWithWebIdentity` answer.
pub(super) fn assumed(operation: &str) -> String {
    let credentials = "<Credentials><AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>role-secret\
                       </SecretAccessKey><SessionToken>role-token</SessionToken><Expiration>\
                       2099-01-01T00:00:00Z</Expiration></Credentials>";
    format!(
        "<{operation}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{operation}Result>\
         {credentials}</{operation}Result></{operation}Response>"
    )
}

/// That there is nothing of this name.
pub(super) fn missing(kind: &str, name: &str) -> Value {
    json!({"arn": arn(kind, name), "reason": "MISSING"})
}
