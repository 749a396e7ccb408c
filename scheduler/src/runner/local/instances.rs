//! The private directory of each service instance, which its jobs find in `PVN_INSTANCE_DIR`: it
//! lasts from job to job, so that what one channel keeps there is never another's. Made before a
//! job, removed when the instance is deleted for good. And which apply of it was started last, for
//! a database may be an older copy and know nothing of that one. Blocks.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use schema::id::{InstanceId, JobId};

use crate::clock;
use crate::removal::remove_all;
use crate::runner::Instance;

/// What the name of a directory begins with that has no instance any more: no instance's id does.
const TRASH: &str = "gone-";

/// Where the last applies are noted, below the spool directory: a file for each instance, which
/// holds the id of the job. It is named by the instance's names, because a copy of before there was
/// its channel gives the instance another id; a pvn of before named it by the id.
const APPLIES: &str = "applies";

/// The directories of all instances.
#[derive(Debug)]
pub(super) struct Instances {
    root: PathBuf,
    applies: PathBuf,
}

impl Instances {
    /// Those below `root`; their applies are noted in `spool`. Both are made if missing.
    pub(super) fn open(root: &Path, spool: &Path) -> io::Result<Self> {
        let applies = spool.join(APPLIES);
        for directory in [root, &applies] {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        Ok(Self { root: std::path::absolute(root)?, applies })
    }

    /// Makes the directory of an instance, unless it is there. For our user alone.
    pub(super) fn make(&self, instance: InstanceId) -> io::Result<PathBuf> {
        let path = self.root.join(instance.to_string());
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        Ok(path)
    }

    /// Which applies of an instance were started last here, as far as that is known: by either of
    /// its notes.
    pub(super) fn last_applies(&self, instance: &Instance) -> io::Result<Vec<JobId>> {
        let notes = self.notes(instance).into_iter().map(|note| noted(&note));
        notes.filter_map(Result::transpose).collect()
    }

    /// Notes that an apply of an instance is about to be started. Not synced: after a crash of the
    /// machine nothing runs.
    pub(super) fn note_apply(&self, instance: &Instance, job: JobId) -> io::Result<()> {
        let [note, old] = self.notes(instance);
        let mut file =
            File::options().write(true).create(true).truncate(true).mode(0o600).open(note)?;
        file.write_all(job.to_string().as_bytes())?;
        absent_or(std::fs::remove_file(old))
    }

    /// Removes the notes of an instance, but for one of an apply that `is_there` says has a spool
    /// directory.
    pub(super) fn forget_applies(
        &self,
        instance: &Instance,
        is_there: impl Fn(JobId) -> bool,
    ) -> io::Result<()> {
        self.notes(instance).iter().try_for_each(|note| forget_apply(note, &is_there))
    }

    fn notes(&self, instance: &Instance) -> [PathBuf; 2] {
        [self.applies.join(&instance.name), self.applies.join(instance.id.to_string())]
    }

    /// Removes the directory of an instance. One that is not there is removed already. What is
    /// there when this is called goes, and nothing that is made later: it may take minutes.
    pub(super) fn remove(&self, instance: InstanceId) -> io::Result<()> {
        self.set_aside(instance)?.map_or(Ok(()), |trash| remove_all(&trash))
    }

    /// Takes the directory of an instance out of the way, to be removed later. `None` = it is not
    /// there.
    pub(super) fn set_aside(&self, instance: InstanceId) -> io::Result<Option<PathBuf>> {
        // Under a name that no other removal has, and before anything is waited for: an instance
        // that comes back meanwhile begins with an empty one, and keeps it.
        let trash =
            self.root.join(format!("{TRASH}{instance}-{}", u128::from_le_bytes(clock::random())));
        let directory = self.root.join(instance.to_string());
        match std::fs::rename(&directory, &trash) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Err(io::Error::new(
                error.kind(),
                format!("{} is a mount point: unmount it", directory.display()),
            )),
            Err(error) => {
                Err(io::Error::new(error.kind(), format!("{}: {error}", directory.display())))
            }
            Ok(()) => Ok(Some(trash)),
        }
    }

    /// Removes the directories of all instances but these, what an earlier removal left, and the
    /// notes of all applies but those that `is_there` says have a spool directory.
    pub(super) fn retain(
        &self,
        kept: &HashSet<InstanceId>,
        is_there: impl Fn(JobId) -> bool,
    ) -> io::Result<()> {
        for note in std::fs::read_dir(&self.applies)? {
            forget_apply(&note?.path(), &is_there)?;
        }
        // One that cannot be removed keeps no other.
        let mut removed = Ok(());
        for entry in std::fs::read_dir(&self.root)? {
            let entry = entry?;
            let name = entry.file_name();
            removed =
                removed.and(match name.to_str().and_then(|name| name.parse::<InstanceId>().ok()) {
                    Some(instance) if !kept.contains(&instance) => self.remove(instance),
                    None if name.as_encoded_bytes().starts_with(TRASH.as_bytes()) => {
                        remove_all(&entry.path())
                    }
                    // What has another name is not ours.
                    _ => Ok(()),
                });
        }
        removed
    }
}

/// The apply that a note names.
fn noted(note: &Path) -> io::Result<Option<JobId>> {
    match std::fs::read_to_string(note) {
        // One that is cut was written when the machine crashed, and nothing runs of before that.
        Ok(text) => Ok(text.parse().ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn forget_apply(note: &Path, is_there: impl Fn(JobId) -> bool) -> io::Result<()> {
    if noted(note)?.is_some_and(is_there) { Ok(()) } else { absent_or(std::fs::remove_file(note)) }
}

fn absent_or(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_instance_keeps_its_directory_until_it_is_deleted_and_nobody_else_can_look_into_it() {
        let root = tempfile::tempdir().unwrap();
        let instances =
            Instances::open(&root.path().join("instances"), &root.path().join("spool")).unwrap();
        let [one, other] = [b"one", b"two"].map(|name| InstanceId::derive(&[name]));
        let path = instances.make(one).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(path.join("state"), "x").unwrap();
        assert_eq!(instances.make(one).unwrap(), path);
        let others = instances.make(other).unwrap();
        let [first, second] = [b"1", b"2"].map(|name| JobId::derive(&[name]));
        let named = |id, name: &str| Instance { id, name: name.to_owned() };
        let (one, other) = (named(one, "app.web.one"), named(other, "app.web.two"));
        // As a pvn of before noted it.
        let old = root.path().join("spool/applies").join(one.id.to_string());
        std::fs::write(&old, first.to_string()).unwrap();
        assert_eq!(instances.last_applies(&one).unwrap(), [first]);
        instances.note_apply(&one, first).unwrap();
        instances.note_apply(&one, second).unwrap();
        instances.note_apply(&other, first).unwrap();
        assert!(!old.exists());
        // An older copy of the database may give it another id.
        let again = Instance { id: InstanceId::derive(&[b"three"]), ..one.clone() };
        assert_eq!(instances.last_applies(&again).unwrap(), [second]);
        std::fs::create_dir(root.path().join("instances/gone-crashed")).unwrap();
        instances.retain(&[one.id].into(), |job| job == second).unwrap();
        assert!(path.join("state").exists() && !others.exists());
        assert_eq!(
            (instances.last_applies(&one).unwrap(), instances.last_applies(&other).unwrap()),
            (vec![second], vec![])
        );
        instances.forget_applies(&again, |_| true).unwrap();
        assert_eq!(instances.last_applies(&one).unwrap(), [second]);
        instances.forget_applies(&again, |_| false).unwrap();
        assert_eq!(instances.last_applies(&one).unwrap(), []);
        let one = one.id;
        instances.remove(one).unwrap();
        instances.remove(one).unwrap();
        assert_eq!(std::fs::read_dir(root.path().join("instances")).unwrap().count(), 0);
    }

    #[test]
    fn a_removal_takes_what_is_there_when_it_is_asked_for_however_long_an_earlier_one_takes() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().join("instances");
        let instances = Instances::open(&root, &root.join("spool")).unwrap();
        let one = InstanceId::derive(&[b"one"]);
        instances.make(one).unwrap();
        // What cannot be removed stands for what takes long.
        std::fs::write(root.join(format!("{TRASH}{one}")), "").unwrap();
        instances.remove(one).unwrap();
        assert!(!root.join(one.to_string()).exists());
    }
}
