//! The directory in which a tool's files lie that are handed over, and what the tool keeps from one
//! job to the next. Called by `tool`.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use schema::wire::INSTANCE_VARIABLE;

use crate::store::temporary;
use crate::writer::say;

/// A directory of a step, made. One that is nobody's but this run's goes with it.
#[derive(Debug, Clone)]
pub(crate) struct Scratch {
    path: PathBuf,
    is_of_this_run: bool,
}

impl Scratch {
    /// That of a step: below the service instance's own, where it `stays`, or goes with this run;
    /// without an instance one below `TMPDIR`, which goes. Of one that cannot be made it is said
    /// why; what needs it fails by itself.
    pub(crate) fn of(step: &str, stays: bool) -> Self {
        let instance = std::env::var_os(INSTANCE_VARIABLE).filter(|value| !value.is_empty());
        let of_run = format!("{step}-{}", std::process::id());
        let scratch = match instance {
            Some(instance) if stays => {
                Self { path: Path::new(&instance).join(step), is_of_this_run: false }
            }
            Some(instance) => {
                Self { path: Path::new(&instance).join(of_run), is_of_this_run: true }
            }
            None => {
                let under = std::env::var_os("TMPDIR").filter(|value| !value.is_empty());
                let place = temporary(under.as_deref()).unwrap_or_else(|error| {
                    tell(&error);
                    PathBuf::from("/tmp/pvn")
                });
                Self { path: place.join(of_run), is_of_this_run: true }
            }
        };
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&scratch.path);
        if let Err(error) = made {
            tell(&error);
        }
        scratch
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn tell(error: &io::Error) {
    say(&format!(
        "there is no directory for the files of this run: {error}; where the root is read-only, \
         mount a volume and name its path in TMPDIR"
    ));
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.is_of_this_run {
            // What cannot be removed lies in a place for what is temporary.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
