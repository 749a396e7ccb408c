//! What is told of one instance, its commands with the names that they need.

use schema::api::{Instance, Service};
use schema::command_target::CommandTarget;

/// The message of an instance, its commands with their names.
pub fn told(service: &Service, instance: &Instance) -> String {
    let (application, service, channel) =
        (service.application.as_str(), service.name.as_str(), instance.channel.as_str());
    CommandTarget { application, service, channel }.text(&instance.message)
}
