//! The texts of the block that a service has for a kind of runtime (`terraform`, `awsEcs`, …), and
//! the documents in it. Called by `texts`.

use super::{NamesInScope, Texts};
use crate::diagnostic::Diagnostic;
use crate::template::Template;
use crate::tool_document::{ToolDocument, ToolDocumentFault};
use crate::{BlockDocument, BlockForm, BlockSource, PerReleaseChannel, Service};

impl Texts<'_> {
    /// Those of the service, and those of each channel.
    pub(super) fn blocks(&mut self, service: &Service, names: &NamesInScope) {
        self.block(service, None, names);
        for index in 0..service.per_release_channel.len() {
            self.block(service, Some(index), names);
        }
    }

    /// What is the service's own, or that of the channel with this index.
    fn block(&mut self, service: &Service, channel: Option<usize>, names: &NamesInScope) {
        let own: Option<&PerReleaseChannel> =
            channel.and_then(|index| service.per_release_channel.get(index));
        let Some(block) = service.block(own) else { return };
        let at = match channel {
            Some(index) => format!("/service/perReleaseChannel/{index}/{}", block.field),
            None => format!("/service/{}", block.field),
        };
        let is_asked = |is_of_channel: bool| is_of_channel == channel.is_some();
        for value in &block.values {
            let texts = match &value.is {
                BlockForm::Text(text) => std::slice::from_ref(text),
                BlockForm::Words(words) => words,
                BlockForm::Document(document) => {
                    if is_asked(document.is_of_channel) {
                        let path = document.path;
                        let at = if path.is_empty() { at.clone() } else { format!("{at}/{path}") };
                        self.tool_document(document, &at, names);
                    }
                    continue;
                }
                BlockForm::Fixed(_) => continue,
            };
            for text in texts.iter().filter(|text| is_asked(text.is_of_channel)) {
                // `extraInitArgs[0]`, as a pointer has it.
                let path = text.path.replace(['.', '['], "/").replace(']', "");
                self.text(text.text, &format!("{at}/{path}"), names);
            }
        }
    }

    /// A document that a tool is given. Which file it is that a template names is known when there
    /// is a release.
    fn tool_document(&mut self, document: &BlockDocument<'_>, at: &str, names: &NamesInScope) {
        let (texts, at) = match document.source {
            BlockSource::Inlined(text) => (vec![(None, text)], format!("{at}/inlined")),
            BlockSource::Local(local) if local.has_template() => return,
            BlockSource::Local(local) => {
                let sub_path = local.sub_path.as_ref().map(Template::as_str);
                let files = self.document.attached(local, sub_path);
                // That a file is not there the reader tells.
                if files.is_empty() {
                    return;
                }
                let files = files.into_iter().map(|(name, text)| (Some(name), text)).collect();
                (files, format!("{at}/local"))
            }
        };
        let (read, faults) = ToolDocument::read(&texts);
        for fault in faults {
            let problem = self.fault(&at, fault);
            self.problems.push(problem);
        }
        if let Some(ToolDocument { file, text, .. }) = read {
            self.job_file(file, text, &at, names);
        }
    }

    fn fault(&self, at: &str, fault: ToolDocumentFault) -> Diagnostic {
        let ToolDocumentFault { file, at: offset, part, message, help } = fault;
        let problem = match (file, part) {
            (Some((file, line)), _) => {
                self.document.problem(at, format!("{message} (`{file}`, line {line})"))
            }
            (None, Some(part)) => self.document.problem_in(at, offset, &part, message),
            (None, None) => self.document.problem(at, message),
        };
        Diagnostic { help, ..problem }
    }
}
