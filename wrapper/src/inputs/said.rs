//! What an input is said to be: the digest that its reference, the variable of the plan or the
//! scheduler names. All who name one must agree, and what arrives must be that. Called by `inputs`.

use std::path::Path;

use schema::id::BlobId;
use schema::spool::PLAN_REFERENCE;
use schema::wire::{self, PLAN_VARIABLE};

use super::cannot_tell;
use crate::args::DeclaredInput;
use crate::spawn::SpawnRefusal;
use crate::spawn::{Environment, variable};

/// What to do when the variable is wrong.
const UNSET: &str = "leave PVN_FETCH_PLAN_BLOB_ID as the scheduler set it for this job, or unset \
                     it where it is another job's";

/// What to do when other bytes arrived.
const OTHER_BYTES: &str = "something on the way or on the disk changed it: look at proxies, at \
                           the disk and at who writes there, then apply again";

/// The digest of an input, and who named it.
#[derive(Debug, Clone, Default)]
pub(super) struct NamedDigest(Option<(&'static str, BlobId)>);

impl NamedDigest {
    /// What reference and environment say. `job`: the directory of the local job that the input
    /// comes from; where the environment is another job's, so is the variable.
    pub(super) fn of(
        input: &DeclaredInput,
        environment: &Environment,
        job: Option<&Path>,
    ) -> Result<Self, SpawnRefusal> {
        if let Ok(blob) = input.reference.parse() {
            return Ok(Self(Some(("the command line", blob))));
        }
        let is_anothers = || {
            let named = variable(environment, wire::JOB_VARIABLE);
            named.is_some_and(|named| job.and_then(Path::file_name).is_some_and(|job| job != named))
        };
        let Some(plan) = variable(environment, PLAN_VARIABLE)
            .filter(|_| input.reference == PLAN_REFERENCE && !is_anothers())
        else {
            return Ok(Self::default());
        };
        match plan.to_str().and_then(|plan| plan.parse().ok()) {
            Some(blob) => Ok(Self(Some((PLAN_VARIABLE, blob)))),
            None => Err(cannot_tell(
                input,
                &format!("{PLAN_VARIABLE} is `{}`, which is no blob id; {UNSET}", plan.display()),
            )),
        }
    }

    /// Somebody else names it too.
    pub(super) fn and(
        self,
        who: &'static str,
        blob: Option<BlobId>,
        input: &DeclaredInput,
    ) -> Result<Self, SpawnRefusal> {
        match (self.0, blob) {
            (None, Some(blob)) => Ok(Self(Some((who, blob)))),
            (Some((first, named)), Some(blob)) if named != blob => {
                let what_to_do = if first == PLAN_VARIABLE { UNSET } else { OTHER_BYTES };
                Err(cannot_tell(
                    input,
                    &format!("{first} names {named}, {who} {blob}; {what_to_do}"),
                ))
            }
            _ => Ok(self),
        }
    }

    /// Whether anybody named it.
    pub(super) fn is_anything(&self) -> bool {
        self.0.is_some()
    }

    /// Compares what arrived.
    pub(super) fn check(&self, arrived: BlobId, input: &DeclaredInput) -> Result<(), SpawnRefusal> {
        match self.0 {
            Some((who, named)) if named != arrived => Err(cannot_tell(
                input,
                &format!("{who} names {named}, and {arrived} arrived; {OTHER_BYTES}"),
            )),
            _ => Ok(()),
        }
    }
}
