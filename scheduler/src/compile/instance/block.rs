//! What a service says in the block for a kind of runtime (`terraform`, …), as values of the
//! runtime's parameters. Called by `instance`.

use std::collections::BTreeMap;

use config::tool_document::too_long;
use config::{BlockForm, BlockSource, BlockText, EffectiveRuntime, Runtime};

use super::super::commands::render_text;
use super::super::job_file;
use super::super::parameters::Bound;
use super::super::problem::{DocumentField, Problems};
use super::super::template::TemplateScope;
use super::ServiceInChannel;

/// What stands before a document in its argument, at most: `--service-definition=`, with some room
/// for what an ejected runtime may call it.
const FLAG_BYTES: usize = 32;

impl ServiceInChannel<'_> {
    /// Adds the values of the block to those of `customRuntime`.
    pub(super) fn bind_block(
        &self,
        bound: &mut BTreeMap<String, Bound>,
        runtime: &Runtime,
        commands: &EffectiveRuntime<'_>,
        scope: &TemplateScope,
        problems: &mut Problems,
    ) {
        let own = self.own();
        let Some(block) = self.service.block(own.as_ref().map(|(own, _)| *own)) else { return };
        let of_channel = own.map(|(_, place)| place);
        let place = |is_of_channel: bool| {
            let place = of_channel.as_ref().filter(|_| is_of_channel);
            place.cloned().unwrap_or_else(|| self.place()).field(block.field)
        };
        if !commands.takes(&block) {
            let place = place(block.is_of_channel);
            return self.tell_not_for(block.field, runtime, commands, &place, problems);
        }
        for value in &block.values {
            let mut render = |text: &BlockText<'_>| {
                let place = place(text.is_of_channel).field(&text.path);
                let rendered = render_text(text.text, scope, &place, problems);
                if rendered.contains('\0') {
                    problems.add(place.problem(config::NO_NUL));
                }
                format!("{}{rendered}", text.prefix)
            };
            let text = match &value.is {
                BlockForm::Fixed(text) => (*text).to_owned(),
                BlockForm::Document(document) => {
                    let place = place(document.is_of_channel);
                    let place = match document.path {
                        "" => place,
                        path => place.field(path),
                    };
                    let text = self.document(document.source, scope, &place, problems);
                    let Some(text) = text else {
                        // That is told; that the value is missing would be said on top of it.
                        bound.insert(value.parameter.to_owned(), Bound::Unknown);
                        continue;
                    };
                    text
                }
                BlockForm::Text(text) => render(text),
                BlockForm::Words(words) => {
                    let words: Vec<String> =
                        words.iter().map(|word| quoted(&render(word))).collect();
                    words.join(" ")
                }
            };
            // Before there is a release nobody knows what comes of the templates.
            let is = if self.release.is_some() { Bound::Text(text) } else { Bound::Unknown };
            bound.insert(value.parameter.to_owned(), is);
        }
    }

    /// A document as the tool gets it; `None` where something is wrong with it.
    fn document(
        &self,
        source: BlockSource<'_>,
        scope: &TemplateScope,
        place: &DocumentField,
        problems: &mut Problems,
    ) -> Option<String> {
        let document = job_file::document(self.configs, source, scope, place, problems)?;
        let text = document.to_string();
        if let Some((message, help)) = too_long(text.len() + FLAG_BYTES) {
            problems.add(place.problem(message).help(help));
            return None;
        }
        Some(text)
    }

    fn tell_not_for(
        &self,
        field: &str,
        runtime: &Runtime,
        commands: &EffectiveRuntime<'_>,
        place: &DocumentField,
        problems: &mut Problems,
    ) {
        let problem = place.problem(format!(
            "`{field}` says nothing to runtime `{}`, which is of kind `{}` (channel `{}`)",
            runtime.name,
            runtime.role().kind,
            self.channel.name
        ));
        problems.add(problem.help(format!(
            "use `{}`, or another runtime in the channel",
            commands.block().unwrap_or("customRuntime")
        )));
    }
}

/// A word as a shell takes it. None can hold a NUL, which is told of its field.
fn quoted(word: &str) -> String {
    shlex::try_quote(word).map(|word| word.into_owned()).unwrap_or_default()
}
