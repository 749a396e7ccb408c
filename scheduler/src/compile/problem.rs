//! What is wrong, and where: collected while documents are compiled, so that all of it is told at
//! once. `configs` turns problems into diagnostics with the lines of the document.

use std::collections::BTreeSet;
use std::fmt;

use schema::id::{ApplicationName, RuntimeName, ServiceName};

use super::template::TemplateError;

/// Names a document among those in force.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum DocumentKey {
    Runtime(RuntimeName),
    Application(ApplicationName),
    /// A service of an application.
    Service(ApplicationName, ServiceName),
}

impl fmt::Display for DocumentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(name) => write!(f, "runtime `{name}`"),
            Self::Application(name) => write!(f, "application `{name}`"),
            Self::Service(application, name) => write!(f, "service `{application}/{name}`"),
        }
    }
}

/// A field of a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DocumentField {
    /// The document; `None` for values that came with a release.
    pub(super) document: Option<DocumentKey>,
    /// Path of the field as it is written, dotted: `service.perReleaseChannel[0].env.KEY`.
    pub(super) path: String,
}

impl DocumentField {
    /// The whole of a document.
    pub(super) fn of(document: DocumentKey) -> Self {
        let path = match document {
            DocumentKey::Runtime(_) => "runtime",
            DocumentKey::Application(_) => "application",
            DocumentKey::Service(..) => "service",
        };
        Self { document: Some(document), path: path.to_owned() }
    }

    /// Something that came with a release.
    pub(super) fn of_release(path: impl Into<String>) -> Self {
        Self { document: None, path: path.into() }
    }

    /// A field of this mapping.
    #[must_use]
    pub(super) fn field(&self, name: &str) -> Self {
        Self { document: self.document.clone(), path: format!("{}.{name}", self.path) }
    }

    /// An item of this list.
    #[must_use]
    pub(super) fn item(&self, index: usize) -> Self {
        Self { document: self.document.clone(), path: format!("{}[{index}]", self.path) }
    }

    /// A problem here.
    pub(super) fn problem(&self, message: impl Into<String>) -> ConfigProblem {
        ConfigProblem {
            place: self.clone(),
            offset: 0,
            needle: None,
            hidden: false,
            message: message.into(),
            help: None,
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfigProblem {
    /// Where.
    pub(super) place: DocumentField,
    /// Bytes from the start of the field's text to what is meant.
    pub(super) offset: usize,
    /// The part of the text that is meant; `None` = all of it.
    pub(super) needle: Option<String>,
    /// Whether the field's text must not be shown: it is a secret.
    pub(super) hidden: bool,
    /// What is wrong and what was expected.
    pub(super) message: String,
    /// What to do, or what was probably meant.
    pub(super) help: Option<String>,
}

impl ConfigProblem {
    /// Of a field whose text must not be shown.
    #[must_use]
    pub(super) fn hide(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// With advice.
    #[must_use]
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Problems found so far.
#[derive(Debug, Default)]
pub(super) struct Problems {
    found: Vec<ConfigProblem>,
    told: BTreeSet<(DocumentField, String)>,
    subject: Option<ProblemSubject>,
}

/// What the problems are found for, named where another document is to blame.
#[derive(Debug)]
struct ProblemSubject {
    document: DocumentKey,
    words: String,
}

impl Problems {
    /// Adds a problem, unless the same one was found at the same place: what is wrong with a
    /// runtime is wrong for each of its services.
    pub(super) fn add(&mut self, mut problem: ConfigProblem) {
        if !self.told.insert((problem.place.clone(), problem.message.clone())) {
            return;
        }
        if let (Some(subject), Some(document)) = (&self.subject, &problem.place.document)
            && subject.document != *document
        {
            problem.message = format!("{} ({})", problem.message, subject.words);
        }
        self.found.push(problem);
    }

    /// Says what the following problems are found for: `words` are added where they lie in another
    /// document.
    pub(super) fn set_subject(&mut self, document: DocumentKey, words: String) {
        self.subject = Some(ProblemSubject { document, words });
    }

    /// The following problems are found for nobody in particular.
    pub(super) fn clear_subject(&mut self) {
        self.subject = None;
    }

    /// Adds what is wrong with the template at a place.
    pub(super) fn add_template(&mut self, place: &DocumentField, errors: Vec<TemplateError>) {
        for error in errors {
            let error = if place.path.ends_with(".rawSecret") { error.in_secret() } else { error };
            self.add(ConfigProblem {
                offset: error.at,
                needle: Some(error.tag),
                help: error.help,
                ..place.problem(error.message)
            });
        }
    }

    /// Adds to all of them what they are problems of, and what to do about that.
    pub(super) fn are_of(&mut self, what: &str, way: &str) {
        for problem in &mut self.found {
            problem.message = format!("{} ({what})", problem.message);
            problem.help = Some(
                problem.help.take().map_or_else(|| way.to_owned(), |help| format!("{help}; {way}")),
            );
        }
    }

    /// How many there are.
    #[must_use]
    pub(super) fn count(&self) -> usize {
        self.found.len()
    }

    /// All of them, in the order in which they were found.
    pub(super) fn into_vec(self) -> Vec<ConfigProblem> {
        self.found
    }
}
