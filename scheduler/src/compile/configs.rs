//! All config documents in force, by name, and what they say about themselves. Built by the driver
//! from its store and from a request; never changed in place, so that a refused request leaves
//! nothing behind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use config::{Application, Body, Document, LocalRuntime, Runtime, RuntimeKind, Service};
use schema::api::Diagnostic;
use schema::id::{ApplicationName, ChannelId, ChannelName, RuntimeId, RuntimeName, ServiceName};

use super::channels;
use super::problem::{ConfigProblem, DocumentKey, Problems};

/// Name of the runtime that always exists.
pub const BUILT_IN_RUNTIME: &str = "local";

/// All documents in force. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Configs {
    documents: BTreeMap<DocumentKey, DocumentInForce>,
    runtime_ids: BTreeMap<RuntimeName, RuntimeId>,
    channel_ids: BTreeMap<(ApplicationName, ChannelName), ChannelId>,
}

#[derive(Debug, Clone)]
enum DocumentInForce {
    Read(Arc<Document>),
    BuiltIn(Arc<Body>),
}

impl DocumentInForce {
    fn body(&self) -> &Body {
        match self {
            Self::Read(document) => document.body(),
            Self::BuiltIn(body) => body,
        }
    }
}

impl Default for Configs {
    /// The built-in runtime and nothing else.
    fn default() -> Self {
        let name: RuntimeName = BUILT_IN_RUNTIME.parse().expect("`local` is a legal name");
        let kind = RuntimeKind::Local(LocalRuntime { root: None, env: None });
        let runtime = Runtime { name: name.clone(), labels: Vec::new(), kind };
        let documents = [(
            DocumentKey::Runtime(name),
            DocumentInForce::BuiltIn(Arc::new(Body::Runtime(Box::new(runtime)))),
        )]
        .into();
        Self { documents, runtime_ids: BTreeMap::new(), channel_ids: BTreeMap::new() }
    }
}

/// The key of a document.
pub fn key(body: &Body) -> DocumentKey {
    match body {
        Body::Runtime(runtime) => DocumentKey::Runtime(runtime.name.clone()),
        Body::Application(application) => DocumentKey::Application(application.name.clone()),
        Body::Service(service) => {
            DocumentKey::Service(service.application.clone(), service.name.clone())
        }
    }
}

impl Configs {
    /// Puts a document in force, in the place of an earlier one of its key.
    pub fn put(&mut self, document: impl Into<Arc<Document>>) {
        let document = document.into();
        self.documents.insert(key(document.body()), DocumentInForce::Read(document));
    }

    /// Takes a document out of force.
    pub fn remove(&mut self, key: &DocumentKey) {
        self.documents.remove(key);
    }

    /// A document with its text.
    pub fn document(&self, key: &DocumentKey) -> Option<&Document> {
        match self.documents.get(key)? {
            DocumentInForce::Read(document) => Some(document),
            DocumentInForce::BuiltIn(_) => None,
        }
    }

    /// Every document with its text, in order.
    pub fn documents(&self) -> impl Iterator<Item = &Document> {
        self.documents.values().filter_map(|held| match held {
            DocumentInForce::Read(document) => Some(&**document),
            DocumentInForce::BuiltIn(_) => None,
        })
    }

    /// Says which id a runtime has, for the label `@id`.
    pub fn set_runtime_id(&mut self, name: RuntimeName, id: RuntimeId) {
        self.runtime_ids.insert(name, id);
    }

    /// Says which id a channel has, for the label `@id`.
    pub fn set_channel_id(
        &mut self,
        application: ApplicationName,
        name: ChannelName,
        id: ChannelId,
    ) {
        self.channel_ids.insert((application, name), id);
    }

    /// Every document's key, in order.
    pub fn keys(&self) -> impl Iterator<Item = &DocumentKey> {
        self.documents.keys()
    }

    pub fn runtime(&self, name: &RuntimeName) -> Option<&Runtime> {
        match self.documents.get(&DocumentKey::Runtime(name.clone())).map(DocumentInForce::body) {
            Some(Body::Runtime(runtime)) => Some(runtime),
            _ => None,
        }
    }

    pub fn application(&self, name: &ApplicationName) -> Option<&Application> {
        match self.documents.get(&DocumentKey::Application(name.clone())).map(DocumentInForce::body)
        {
            Some(Body::Application(application)) => Some(application),
            _ => None,
        }
    }

    pub fn service(&self, application: &ApplicationName, name: &ServiceName) -> Option<&Service> {
        match self
            .documents
            .get(&DocumentKey::Service(application.clone(), name.clone()))
            .map(DocumentInForce::body)
        {
            Some(Body::Service(service)) => Some(service),
            _ => None,
        }
    }

    /// All runtimes, by name.
    pub fn runtimes(&self) -> impl Iterator<Item = &Runtime> {
        self.documents.values().filter_map(|held| match held.body() {
            Body::Runtime(runtime) => Some(runtime.as_ref()),
            _ => None,
        })
    }

    /// All applications, by name.
    pub fn applications(&self) -> impl Iterator<Item = &Application> {
        self.documents.values().filter_map(|held| match held.body() {
            Body::Application(application) => Some(application.as_ref()),
            _ => None,
        })
    }

    /// All services, by application and name.
    pub fn services(&self) -> impl Iterator<Item = &Service> {
        self.documents.values().filter_map(|held| match held.body() {
            Body::Service(service) => Some(service.as_ref()),
            _ => None,
        })
    }

    /// The names of all runtimes, in order.
    pub fn runtime_names(&self) -> impl Iterator<Item = &str> {
        self.runtimes().map(|runtime| runtime.name.as_str())
    }

    /// The names of all applications, in order.
    pub fn application_names(&self) -> impl Iterator<Item = &str> {
        self.applications().map(|application| application.name.as_str())
    }

    /// The labels of a runtime, with the automatic ones (`@type`, `@name`, `@id` once it has one).
    pub fn runtime_labels(&self, name: &RuntimeName) -> BTreeMap<String, String> {
        let Some(runtime) = self.runtime(name) else { return BTreeMap::new() };
        let mut labels = channels::labels(&runtime.labels);
        labels.insert("@type".to_owned(), runtime.role().kind.to_owned());
        labels.insert("@name".to_owned(), name.to_string());
        if let Some(id) = self.runtime_ids.get(name) {
            labels.insert("@id".to_owned(), id.to_string());
        }
        labels
    }

    /// Problems as people see them, with the lines of the document. What is wrong with several
    /// commands that are made of one field is told of that field once.
    pub(super) fn diagnostics(&self, problems: Problems) -> Vec<Diagnostic> {
        let mut told = BTreeSet::new();
        let all = problems.into_vec().into_iter().map(|problem| self.diagnostic(problem));
        all.filter(|one| {
            let place = (one.file.clone(), one.line, one.column, one.path.clone());
            told.insert((place, one.message.clone()))
        })
        .collect()
    }

    fn diagnostic(&self, problem: ConfigProblem) -> Diagnostic {
        let ConfigProblem { place, offset, needle, hidden, message, help } = problem;
        let found = place.document.as_ref().and_then(|key| self.document(key));
        match found {
            Some(document) => {
                let diagnostic = match needle {
                    _ if hidden => document.problem_hiding(&place.path, message),
                    Some(needle) => document.problem_in(&place.path, offset, &needle, message),
                    None => document.problem(&place.path, message),
                };
                config::diagnostic::Diagnostic { help, ..diagnostic }.to_api()
            }
            None => Diagnostic {
                file: String::new(),
                line: 0,
                column: 0,
                path: place.path,
                message,
                help,
                snippet: String::new(),
            },
        }
    }

    /// The value, unless there are problems.
    pub(super) fn result<T>(&self, value: T, problems: Problems) -> Result<T, Vec<Diagnostic>> {
        if problems.count() == 0 { Ok(value) } else { Err(self.diagnostics(problems)) }
    }

    pub(super) fn channel_id(
        &self,
        application: &ApplicationName,
        name: &ChannelName,
    ) -> Option<ChannelId> {
        self.channel_ids.get(&(application.clone(), name.clone())).copied()
    }
}
