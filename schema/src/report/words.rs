//! The texts of a report that its command or the surroundings worded, and so may hold a secret.
//! Masked by the wrapper before the report leaves it, and by the scheduler before it keeps one: not
//! every report comes from a wrapper of ours.

use serde_json::Value;

use super::{LeakedProcess, OutputError, Report};
use crate::mask::{self, Secrets};

impl Report {
    /// Hides secrets in what the report says in words. The streams are free of them already, or
    /// told of elsewhere, but a document made from them may spell a secret out that stood
    /// escaped there.
    pub fn hide(&mut self, secrets: &Secrets) {
        self.each_word(&mut |text| *text = secrets.hide(text));
    }

    /// Whether it says anything in words.
    pub fn has_words(&self) -> bool {
        let in_structured = self
            .structured
            .as_ref()
            .is_some_and(|found| found.value.is_some() || !found.errors.is_empty());
        let in_files = self.files.iter().any(|file| file.error.is_some());
        self.exec_error.is_some()
            || self.bad_output.is_some()
            || in_files
            || in_structured
            || !self.leaked.is_empty()
    }

    /// Says what `masked` says wherever that may be what masking made of this report's words.
    pub fn mask_like(&mut self, masked: &Self) {
        let mut words = Vec::new();
        masked.clone().each_word(&mut |text| words.push(std::mem::take(text)));
        let mut words = words.into_iter();
        self.each_word(&mut |text| {
            if let Some(word) = words.next().filter(|word| mask::may_hide(word, text)) {
                *text = word;
            }
        });
    }

    fn each_word(&mut self, change: &mut dyn FnMut(&mut String)) {
        let texts = self.exec_error.iter_mut().chain(&mut self.bad_output);
        let texts = texts.chain(self.files.iter_mut().filter_map(|file| file.error.as_mut()));
        let arguments = self.leaked.iter_mut().flat_map(|LeakedProcess { argv, .. }| argv);
        let errors = self.structured.iter_mut().flat_map(|structured| &mut structured.errors);
        let errors = errors.flat_map(|OutputError { pointer, message }| [pointer, message]);
        texts.chain(arguments).chain(errors).for_each(&mut *change);
        if let Some(value) =
            self.structured.as_mut().and_then(|structured| structured.value.as_mut())
        {
            each_text(value, change);
        }
    }
}

/// Changes every text of a document, no deeper than what the reader of JSON let pass.
pub(crate) fn each_text(value: &mut Value, change: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        // Names of fields are those of the schema.
        Value::Object(fields) => fields.values_mut().for_each(|field| each_text(field, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(secret: &str) -> Report {
        let whole = json!({
            "exitCode": 0, "stdoutBytes": 0, "stderrBytes": 0, "version": "1", "startTimestampNs": "0", "durationNs": "0",
            "execError": format!("no {secret}"), "badOutput": format!("{secret}: missing"),
            "leaked": [{"pid": 7, "argv": ["login", secret]}], "files": [{"name": "plan", "error": format!("{secret}: missing")}],
            "structured": {
                "kind": "fetch", "value": {"objects": [{"name": "web", "data": [secret, 3, {"b": secret}]}]},
                "errors": [{"pointer": format!("/{secret}"), "message": format!("`{secret}` is no type")}],
            },
        });
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn no_word_of_a_report_keeps_a_secret() {
        let mut hidden = report("hunter22");
        hidden.hide(&Secrets::of(&[b"hunter22"]).unwrap());
        assert_eq!(hidden, report("***"));
        assert!(hidden.has_words() && !Report::default().has_words());
    }

    #[test]
    fn a_report_is_known_again_by_what_masking_left_of_it() {
        let masked = report("***");
        let like = |secret: &str| {
            let mut same = report(secret);
            same.mask_like(&masked);
            same
        };
        assert_eq!(like("hunter22"), masked);
        let mut other = report("hunter22");
        other.exec_error = Some("another reason".to_owned());
        other.mask_like(&masked);
        assert_eq!(other.exec_error.as_deref(), Some("another reason"));
        assert_ne!(other, masked);
    }
}
