//! Which service instances of a runtime are looked at: the first of each image and place whose
//! fetch is a tool's. Pure. Called by `checks`.

use super::ServedInstance;
use crate::compile::{Commands, RunTarget};

/// Most jobs of one check, half of all dry runs: whoever has more images asks for one of them.
const JOBS_LIMIT: usize = 4;

/// Most names that one line has.
const NAMES_SHOWN: usize = 5;

/// Instances for which one speaks.
#[derive(Debug)]
pub(super) struct InstanceGroup {
    /// The one that is looked at.
    pub(super) first: ServedInstance,
    image: Option<String>,
    place: RunTarget,
    /// How many others have the same image and place.
    others: usize,
}

impl InstanceGroup {
    /// Who is looked at, for people.
    pub(super) fn chosen(&self) -> String {
        let image = self.image.as_ref().map(|image| format!(" with `{image}`")).unwrap_or_default();
        let others = match self.others {
            0 => String::new(),
            count => format!(
                "; it speaks for {count} more with the same image and place, each with a path, \
                 stack or definition of its own: `--service` names one of them"
            ),
        };
        format!("{} is looked at{image}{others}", self.first.names.label())
    }
}

/// The groups that are looked at, and the first of each other one.
pub(super) fn of(
    read: Vec<(ServedInstance, Commands)>,
) -> (Vec<InstanceGroup>, Vec<ServedInstance>) {
    let mut groups: Vec<InstanceGroup> = Vec::new();
    for (instance, commands) in read {
        // Only those have something to try.
        let Some(fetch) = commands.fetch.filter(|fetch| fetch.tool_check().is_some()) else {
            continue;
        };
        let (image, place) = (fetch.image().map(str::to_owned), commands.place);
        match groups.iter_mut().find(|group| group.image == image && group.place == place) {
            Some(group) => group.others += 1,
            None => groups.push(InstanceGroup { first: instance, image, place, others: 0 }),
        }
    }
    let rest = groups.split_off(groups.len().min(JOBS_LIMIT));
    (groups, rest.into_iter().map(|group| group.first).collect())
}

/// Who is not looked at, for people; `unread`: of how many more nothing is known.
pub(super) fn not_tried(others: &[ServedInstance], unread: usize) -> String {
    let shown = others.iter().take(NAMES_SHOWN).map(|instance| instance.names.label());
    let mut shown: Vec<String> = shown.collect();
    let left = others.len().saturating_sub(NAMES_SHOWN) + unread;
    if left > 0 {
        shown.push(format!("{left} more"));
    }
    format!(
        "not looked at, because one check makes {JOBS_LIMIT} jobs at most: {}; `--app`, \
         `--service` and `--channel` name one",
        shown.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use schema::id::{ApplicationId, BlobId, ChannelId, ServiceId};
    use serde_json::json;

    use super::*;
    use crate::compile::Command;
    use crate::names::InstanceNames;

    fn instance(channel: &str, image: Option<&str>, argv: &[&str]) -> (ServedInstance, Commands) {
        let names = InstanceNames {
            application: (ApplicationId::from_bytes([1; 16]), "shop".parse().unwrap()),
            service: (ServiceId::from_bytes([1; 16]), "web".parse().unwrap()),
            channel: (ChannelId::from_bytes([1; 16]), channel.parse().unwrap()),
        };
        let served = ServedInstance { names: Arc::new(names), compiled: BlobId::of(b"") };
        let job = image.map(|image| {
            let main = json!({"name": "fetch", "image": image, "command": argv});
            Box::new(json!({"spec": {"template": {"spec": {"containers": [main]}}}}))
        });
        let fetch = Command { job, ..Command::new("fetch", argv) };
        let commands = Commands {
            place: RunTarget::Local { root: None, clean_env: false },
            fetch: Some(fetch),
            apply: Command::new("apply", &["true"]),
            get_info: None,
        };
        (served, commands)
    }

    const ECS: &[&str] = &["/pvn-wrapper", "aws-ecs", "fetch"];

    #[test]
    fn one_instance_speaks_for_all_of_its_image_and_place() {
        let read = vec![
            instance("a", Some("aws:1"), ECS),
            instance("b", Some("aws:1"), ECS),
            instance("c", Some("aws:2"), ECS),
            instance("d", None, &["./own"]),
        ];
        let (groups, others) = of(read);
        let said: Vec<String> = groups.iter().map(InstanceGroup::chosen).collect();
        assert!(
            said[0].starts_with("shop/web in a is looked at with `aws:1`; it speaks for 1 more")
        );
        assert_eq!(said[1..], ["shop/web in c is looked at with `aws:2`"]);
        assert!(others.is_empty());
    }

    #[test]
    fn who_is_not_looked_at_is_told() {
        let images: Vec<String> = (0..12).map(|number| format!("aws:{number}")).collect();
        let read = images.iter().map(|image| instance(&image.replace(':', ""), Some(image), ECS));
        let (groups, others) = of(read.collect());
        assert_eq!((groups.len(), others.len()), (4, 8));
        let said = not_tried(&others, 2);
        assert!(
            said.contains("shop/web in aws4, ") && said.contains(", 5 more; `--app`"),
            "{said}"
        );
        assert!(!said.contains("shop/web in aws9"), "{said}");
    }
}
