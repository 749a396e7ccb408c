//! Which directory this is, over restarts, and told from every copy of it. Called by `daemon` for
//! the data directory, whose id owns the database, and for the spool directory, whose id says
//! whether the jobs of the database can be in it.
//!
//! The file `id` holds a random number and, beside it, the place that the directory had on its disk
//! (inode and birth). A directory that was copied or restored has the number and another place, so
//! it gets a number of its own. One that was renamed or moved within its file system stays what it
//! is.

use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use crate::secrets::hex;
use crate::{clock, private};

/// The id of this directory, which is given one when it has none.
///
/// # Errors
/// When the directory cannot be read or written.
pub(crate) fn of(directory: &Path) -> io::Result<String> {
    let metadata = std::fs::metadata(directory)?;
    // Not every file system knows when a directory was made; the inode alone tells a copy nearly as
    // well.
    let birth = metadata
        .created()
        .ok()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok())
        .map_or(0, |at| at.as_nanos());
    let place = format!("{} {birth}", metadata.ino());
    let path = directory.join(private::ID_FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            if let Some((id, found)) = text.trim_end().split_once(' ')
                && found == place
                && !id.is_empty()
            {
                return Ok(id.to_owned());
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let id = hex(&clock::random::<16>());
    private::replace(&path, format!("{id} {place}\n").as_bytes())?;
    Ok(id)
}

/// Whether this directory has that id, as far as can be told without changing it.
pub(crate) fn is_of(directory: &Path, id: &str) -> bool {
    std::fs::read_to_string(directory.join(private::ID_FILE))
        .is_ok_and(|text| text.split_once(' ').is_some_and(|(found, _)| found == id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_keeps_its_id_and_a_copy_gets_its_own() {
        let home = tempfile::tempdir().unwrap();
        let (first, moved, copy) =
            (home.path().join("first"), home.path().join("moved"), home.path().join("copy"));
        std::fs::create_dir(&first).unwrap();
        let id = of(&first).unwrap();
        assert_eq!(of(&first).unwrap(), id);
        std::fs::rename(&first, &moved).unwrap();
        assert_eq!(of(&moved).unwrap(), id, "it only has another name");
        std::fs::create_dir(&copy).unwrap();
        std::fs::copy(moved.join(private::ID_FILE), copy.join(private::ID_FILE)).unwrap();
        assert_ne!(of(&copy).unwrap(), id);
        std::fs::write(moved.join(private::ID_FILE), "cut").unwrap();
        assert_ne!(of(&moved).unwrap(), id, "one that was cut proves nothing");
    }
}
