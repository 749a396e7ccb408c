//! Paths as people give them -> paths that lead to the same place for as long as this runs, and for
//! later starts. Called by `settings` for all that it is given, and where a path is kept and
//! compared again.

use std::io;
use std::path::{Component, Path, PathBuf};

/// The path from `/` on, without `..`: the directory that such a path only goes through may be
/// renamed or taken away, as the one of a release that is replaced, and nothing has to do with it.
/// A link after the last `..` stays one: who turns it means the new place.
///
/// # Errors
/// When there is no present directory, or the path is empty.
pub(crate) fn settled(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let parts: Vec<Component<'_>> = path.components().collect();
    let Some(last) = parts.iter().rposition(|part| *part == Component::ParentDir) else {
        return Ok(path);
    };
    let through: PathBuf = parts[..=last].iter().collect();
    // Where it is not there, whoever uses the path says so.
    let through = through.canonicalize().unwrap_or(through);
    Ok(parts[last + 1..].iter().fold(through, |path, part| path.join(part)))
}

/// Where the path leads, through all links, as far as it is there; two that lead to one place are
/// equal.
///
/// # Errors
/// As [`settled`].
pub(crate) fn resolved(path: &Path) -> io::Result<PathBuf> {
    let path = settled(path)?;
    let parts: Vec<Component<'_>> = path.components().collect();
    let found = (1..=parts.len()).rev().find_map(|count| {
        let there: PathBuf = parts[..count].iter().collect();
        Some((there.canonicalize().ok()?, count))
    });
    let (there, count) = found.unwrap_or((PathBuf::from("/"), 1));
    Ok(parts[count..].iter().fold(there, |path, part| path.join(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_the_same_place_without_the_directory_that_it_went_through() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(home.join("release/inner")).unwrap();
        std::fs::create_dir(home.join("data")).unwrap();
        std::os::unix::fs::symlink("data", home.join("link")).unwrap();
        let check = |given: &str, as_settled: &str, as_resolved: &str| {
            let given = home.join(given);
            assert_eq!(settled(&given).unwrap(), home.join(as_settled), "{}", given.display());
            assert_eq!(resolved(&given).unwrap(), home.join(as_resolved), "{}", given.display());
        };
        check("data", "data", "data");
        check("link", "link", "data");
        check("release/../data", "data", "data");
        check("release/inner/../../link/pvn.db", "link/pvn.db", "data/pvn.db");
        check("link/../release", "release", "release");
        check("release/../new/deeper", "new/deeper", "new/deeper");
        // Of what is not there nobody knows where it goes up to.
        check("none/../data", "none/../data", "none/../data");
        let root = Path::new("/");
        assert_eq!(
            (settled(root).unwrap(), resolved(root).unwrap()),
            (root.to_owned(), root.to_owned())
        );
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        assert_eq!(
            (settled(Path::new("..")).unwrap(), resolved(Path::new("x")).unwrap()),
            (here.parent().unwrap().to_owned(), here.join("x"))
        );
        assert!(settled(Path::new("")).is_err() && resolved(Path::new("")).is_err());
    }
}
