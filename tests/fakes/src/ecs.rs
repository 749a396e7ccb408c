//! As much of Amazon ECS as a service needs, on a port of its own: it keeps what is registered and
//! created, moves roll-outs on with each look at them, and does wrong what it is told to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::http::{Framing, Reply};
use crate::listen;
use crate::turnstile::{Moment, Turnstile};

mod retire;
mod wire;

use wire::{Asked, arn, assumed, ecs_json, identity, missing, tags, xml};

/// The only cluster, unless a test names another.
pub const CLUSTER: &str = "prod";

/// How a roll-out ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Completes,
    Fails,
    RollsBack,
}

/// What goes wrong with the next call of an operation.
#[derive(Debug, Clone)]
pub enum Wrong {
    /// It is refused with this code and this message.
    Code(&'static str, &'static str),
    /// It is done, and nobody hears of it.
    LosesAnswer,
    /// It is done, and the answer does not come.
    Hangs,
    /// A gateway before it fails.
    Status(u16),
    /// It waits at the server's turnstile.
    Waits(Moment),
}

/// A call: the action as a policy names it, whose it was, what was asked.
#[derive(Debug, Clone)]
pub struct Call {
    pub action: String,
    pub key: String,
    pub body: Value,
}

/// What there is.
#[derive(Debug)]
pub struct World {
    /// In the order in which they were registered: definition, tags.
    pub revisions: Vec<(Value, BTreeMap<String, String>)>,
    pub services: BTreeMap<String, Value>,
    pub calls: Vec<Call>,
    /// What goes wrong, once each, by operation.
    pub wrong: Vec<(&'static str, Wrong)>,
    /// How roll-outs end that begin now.
    pub end: End,
    cluster: String,
    /// That of the cluster.
    pub status: &'static str,
    tokens: BTreeMap<String, String>,
    ends: BTreeMap<String, End>,
    /// How many looks a roll-out takes.
    looks: BTreeMap<String, u32>,
    clock: f64,
    deployments: u32,
}

/// A server, for as long as the test runs.
pub struct EcsServer {
    pub url: String,
    pub turnstile: Turnstile,
    world: Arc<Mutex<World>>,
}

/// What an operation answers, or code and message of its error.
pub type Answer = Result<Value, (&'static str, String)>;

impl EcsServer {
    /// On the loopback address.
    pub fn start() -> Self {
        Self::listening("127.0.0.1:0")
    }

    /// On the loopback address, with a cluster of this name.
    pub fn in_cluster(name: &str) -> Self {
        let server = Self::start();
        server.world().cluster = name.to_owned();
        server
    }

    /// At this address, `HOST:PORT`.
    pub fn listening(address: &str) -> Self {
        let world = Arc::new(Mutex::new(World {
            revisions: Vec::new(),
            services: BTreeMap::new(),
            calls: Vec::new(),
            wrong: Vec::new(),
            end: End::Completes,
            cluster: CLUSTER.to_owned(),
            status: "ACTIVE",
            tokens: BTreeMap::new(),
            ends: BTreeMap::new(),
            looks: BTreeMap::new(),
            clock: 1_764_300_000.0,
            deployments: 0,
        }));
        let (shared, turnstile) = (Arc::clone(&world), Turnstile::default());
        let gate = turnstile.clone();
        let address = listen(address, move |request| {
            let asked = Asked::of(request);
            let wrong = shared.lock().unwrap().called(&asked);
            let waits = |moment| matches!(wrong, Some(Wrong::Waits(at)) if at == moment);
            if waits(Moment::Before) {
                gate.pass();
            }
            let reply = shared.lock().unwrap().answer(&asked, wrong.as_ref());
            if waits(Moment::After) {
                gate.pass();
            }
            reply
        });
        Self { url: format!("http://{address}"), turnstile, world }
    }

    /// What is there now, for as long as the guard lives.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// The actions of the calls since this was last asked.
    pub fn actions(&self) -> Vec<String> {
        self.world().calls.drain(..).map(|call| call.action).collect()
    }
}

impl World {
    /// Takes a call down; what is to go wrong with it.
    fn called(&mut self, asked: &Asked) -> Option<Wrong> {
        let Asked { operation, is_ecs, key, body } = asked;
        let service = if *is_ecs { "ecs" } else { "sts" };
        let action = format!("{service}:{operation}");
        self.calls.push(Call { action, key: key.clone(), body: body.clone() });
        self.clock += 1.0;
        let at = self.wrong.iter().position(|(of, _)| of == operation)?;
        Some(self.wrong.remove(at).1)
    }

    fn answer(&mut self, asked: &Asked, wrong: Option<&Wrong>) -> Option<Reply> {
        let Asked { operation, is_ecs, key, body } = asked;
        let is_ecs = *is_ecs;
        let answer = match wrong {
            Some(Wrong::Code(code, message)) => Err((*code, (*message).to_owned())),
            Some(Wrong::Status(status)) => return Some(Reply::empty(*status)),
            _ if operation == "GetCallerIdentity" => return Some(xml(200, identity(key))),
            _ if !is_ecs => return Some(xml(200, assumed(operation))),
            _ => self.act(operation, body),
        };
        match wrong {
            Some(Wrong::LosesAnswer) => return None,
            Some(Wrong::Hangs) => return Some(Reply::empty(200).framed(Framing::Never)),
            _ => {}
        }
        Some(match answer {
            Ok(answer) => ecs_json(200, &answer),
            Err((code, message)) if is_ecs => {
                ecs_json(400, &json!({"__type": code, "message": message}))
            }
            Err((code, message)) => {
                let error =
                    format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
                xml(403, format!("<ErrorResponse>{error}</ErrorResponse>"))
            }
        })
    }

    fn act(&mut self, operation: &str, body: &Value) -> Answer {
        let cluster = body["cluster"].as_str().unwrap_or(&self.cluster);
        if cluster != self.cluster {
            return Err(("ClusterNotFoundException", "Cluster not found.".to_owned()));
        }
        match operation {
            "DescribeClusters" => Ok(self.describe_cluster(body)),
            "RegisterTaskDefinition" => Ok(self.register(body)),
            "DescribeTaskDefinition" => {
                let at = self.revision(body["taskDefinition"].as_str().unwrap())?;
                let (definition, tags) = &self.revisions[at];
                let tags: Vec<Value> =
                    tags.iter().map(|(key, value)| json!({"key": key, "value": value})).collect();
                Ok(json!({"taskDefinition": definition, "tags": tags}))
            }
            "ListTaskDefinitions" => Ok(self.active(&body["familyPrefix"])),
            "TagResource" => {
                let at = self.revision(body["resourceArn"].as_str().unwrap())?;
                self.revisions[at].1.extend(tags(body));
                Ok(json!({}))
            }
            "DescribeServices" => {
                let (mut services, mut failures) = (Vec::new(), Vec::new());
                for name in body["services"].as_array().unwrap().iter().flat_map(Value::as_str) {
                    self.look(name);
                    match self.services.get(name) {
                        Some(service) => services.push(service.clone()),
                        None => failures.push(missing("service", name)),
                    }
                }
                Ok(json!({"services": services, "failures": failures}))
            }
            "CreateService" => self.usable(body).and_then(|_| self.create(body)),
            "UpdateService" => self.usable(body).and_then(|_| self.update(body)),
            _ => Err(("UnknownOperationException", operation.to_owned())),
        }
    }

    fn describe_cluster(&self, body: &Value) -> Value {
        let name = body["clusters"][0].as_str().unwrap();
        if name != self.cluster {
            return json!({"clusters": [], "failures": [missing("cluster", name)]});
        }
        let cluster = json!({
            "clusterArn": arn("cluster", name), "clusterName": name, "status": self.status,
            "activeServicesCount": self.services.len(), "runningTasksCount": 0,
        });
        json!({"clusters": [cluster], "failures": []})
    }

    /// Registers a task definition, as anybody may.
    pub fn register(&mut self, body: &Value) -> Value {
        let of_family = self.revisions.iter().filter(|(at, _)| at["family"] == body["family"]);
        let number = of_family.count() + 1;
        let mut definition = body.clone();
        definition.as_object_mut().unwrap().shift_remove("tags");
        let name = format!("{}:{number}", body["family"].as_str().unwrap());
        definition["taskDefinitionArn"] = arn("task-definition", &name).into();
        definition["status"] = "ACTIVE".into();
        definition["revision"] = number.into();
        for container in definition["containerDefinitions"].as_array_mut().unwrap() {
            // What ECS fills in.
            container["cpu"] = 0.into();
            container["mountPoints"] = json!([]);
        }
        self.revisions.push((definition.clone(), tags(body)));
        json!({"taskDefinition": definition})
    }

    /// Which one an ARN, or `FAMILY:NUMBER`, names.
    fn revision(&self, named: &str) -> Result<usize, (&'static str, String)> {
        let short = |named: &str| named.rsplit('/').next().unwrap_or_default().to_owned();
        self.revisions
            .iter()
            .position(|(at, _)| short(at["taskDefinitionArn"].as_str().unwrap()) == short(named))
            .ok_or_else(|| ("ClientException", "Unable to describe task definition.".to_owned()))
    }

    /// Makes a service, as anybody may.
    ///
    /// # Errors
    ///
    /// With code and message of what ECS does not do.
    pub fn create(&mut self, body: &Value) -> Answer {
        let name = body["serviceName"].as_str().unwrap();
        let token = body["clientToken"].as_str().unwrap_or_default().to_owned();
        match self.services.get(name).map(|service| service["status"].as_str().unwrap()) {
            Some("ACTIVE") if self.tokens.get(name) == Some(&token) => {
                return Ok(json!({"service": self.services[name]}));
            }
            Some("ACTIVE") => {
                let why = "Creation of service was not idempotent.";
                return Err(("InvalidParameterException", why.to_owned()));
            }
            _ => {}
        }
        let Some(desired) = body["desiredCount"].as_i64() else {
            return Err(("InvalidParameterException", "Desired count can not be empty".to_owned()));
        };
        let mut service = body.clone();
        service["status"] = "ACTIVE".into();
        service["serviceArn"] = arn("service", &format!("{}/{name}", self.cluster)).into();
        service["clusterArn"] = arn("cluster", &self.cluster).into();
        service["createdAt"] = self.clock.into();
        service["runningCount"] = 0.into();
        service["pendingCount"] = desired.into();
        service["deployments"] = json!([]);
        service["events"] = json!([]);
        self.tokens.insert(name.to_owned(), token);
        let end = self.end;
        self.begin(&mut service, end, "in progress.");
        self.services.insert(name.to_owned(), service.clone());
        Ok(json!({"service": service}))
    }

    /// Changes a service, as anybody may.
    ///
    /// # Errors
    ///
    /// With code and message of what ECS does not do.
    pub fn update(&mut self, body: &Value) -> Answer {
        let name = body["service"].as_str().unwrap();
        let Some(mut service) = self.services.get(name).cloned() else {
            return Err(("ServiceNotFoundException", "Service not found.".to_owned()));
        };
        if service["status"] != "ACTIVE" {
            return Err(("ServiceNotActiveException", "Service was not ACTIVE.".to_owned()));
        }
        let is_new = body.get("taskDefinition").is_some_and(|at| *at != service["taskDefinition"]);
        for (field, value) in body.as_object().unwrap() {
            if !["service", "cluster", "forceNewDeployment"].contains(&field.as_str()) {
                service[field] = value.clone();
            }
        }
        if is_new || body["forceNewDeployment"] == true {
            let end = self.end;
            self.begin(&mut service, end, "in progress.");
        }
        let desired = service["desiredCount"].clone();
        service["deployments"][0]["desiredCount"] = desired;
        self.services.insert(name.to_owned(), service.clone());
        Ok(json!({"service": service}))
    }

    /// Deletes a service, as anybody may: it is remembered as one that is no more.
    pub fn delete(&mut self, name: &str) {
        let service = self.services.get_mut(name).unwrap();
        service["status"] = "INACTIVE".into();
        service["deployments"] = json!([]);
    }

    /// Begins a deployment of what the service has now.
    fn begin(&mut self, service: &mut Value, end: End, reason: &str) {
        self.deployments += 1;
        let id = format!("ecs-svc/{}", self.deployments);
        let deployments = service["deployments"].as_array_mut().unwrap();
        for deployment in &mut *deployments {
            deployment["status"] = "ACTIVE".into();
        }
        let deployment = json!({
            "id": id, "status": "PRIMARY", "taskDefinition": service["taskDefinition"],
            "desiredCount": service["desiredCount"], "pendingCount": service["desiredCount"],
            "runningCount": 0, "failedTasks": 0, "createdAt": self.clock,
            "rolloutState": "IN_PROGRESS", "rolloutStateReason": format!("ECS deployment {reason}"),
        });
        service["deployments"].as_array_mut().unwrap().insert(0, deployment);
        self.ends.insert(id, end);
    }

    /// A look moves a roll-out on; with the second one it ends.
    pub fn look(&mut self, name: &str) {
        let Some(mut service) = self.services.get(name).cloned() else { return };
        if service["status"] == "INACTIVE" {
            return;
        }
        let primary = &mut service["deployments"][0];
        let id = primary["id"].as_str().unwrap_or_default().to_owned();
        let looks = self.looks.entry(id.clone()).or_default();
        *looks += 1;
        if primary["rolloutState"] != "IN_PROGRESS" || *looks < 2 {
            return;
        }
        let end = self.ends[&id];
        if end == End::Completes {
            primary["rolloutState"] = "COMPLETED".into();
            primary["rolloutStateReason"] = format!("ECS deployment {id} completed.").into();
            primary["runningCount"] = primary["desiredCount"].clone();
            primary["pendingCount"] = 0.into();
            service["runningCount"] = primary["desiredCount"].clone();
            service["pendingCount"] = 0.into();
            service["deployments"].as_array_mut().unwrap().truncate(1);
            self.event(&mut service, &format!("(service {name}) has reached a steady state."));
        } else {
            primary["rolloutState"] = "FAILED".into();
            primary["failedTasks"] = 3.into();
            let why = "tasks failed to start.";
            primary["rolloutStateReason"] = format!("ECS deployment circuit breaker: {why}").into();
            let event = format!("(service {name}) (deployment {id}) deployment failed: {why}");
            self.event(&mut service, &event);
        }
        if end == End::RollsBack && service["deployments"].as_array().unwrap().len() > 1 {
            let before = service["deployments"][1].clone();
            service["taskDefinition"] = before["taskDefinition"].clone();
            let to = before["id"].as_str().unwrap();
            let reason = format!("circuit breaker: rolling back to {to}");
            self.begin(&mut service, End::Completes, &reason);
        }
        self.services.insert(name.to_owned(), service);
    }

    fn event(&self, service: &mut Value, message: &str) {
        let event = json!({"id": message, "createdAt": self.clock, "message": message});
        service["events"].as_array_mut().unwrap().insert(0, event);
    }
}
