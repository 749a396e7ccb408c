//! What a document of a service may say and no scheduler carries out yet: refused by `configs
//! validate` and by the compiler, in the same words.

use crate::Service;

/// A block of a service that is not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntakenBlock {
    /// In which entry of `perReleaseChannel`; `None` for the service's own.
    pub channel: Option<usize>,
    pub field: &'static str,
}

impl UntakenBlock {
    /// What is said of it.
    pub fn message(&self) -> String {
        format!("not supported yet: `{}` of a service", self.field)
    }

    /// What to do instead.
    pub const fn help(&self) -> &'static str {
        "use `customRuntime` and a `custom` runtime"
    }

    /// Where it stands in its document.
    pub(crate) fn pointer(&self) -> String {
        match self.channel {
            None => format!("/service/{}", self.field),
            Some(at) => format!("/service/perReleaseChannel/{at}/{}", self.field),
        }
    }
}

/// Those of a service, its own first.
pub fn untaken_blocks(service: &Service) -> Vec<UntakenBlock> {
    let field = "kubernetesConfig";
    let own = service.kubernetes_config.as_ref().map(|_| UntakenBlock { channel: None, field });
    let channels = service.per_release_channel.iter().enumerate();
    let of_channels = channels
        .filter(|(_, own)| own.kubernetes_config.is_some())
        .map(|(at, _)| UntakenBlock { channel: Some(at), field });
    own.into_iter().chain(of_channels).collect()
}
