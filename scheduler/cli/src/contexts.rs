//! Schedulers that somebody has logged in to: address, authorities and token of each, by name. Kept
//! in one file that only its owner reads; what the environment says counts more.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use clap_complete::CompletionCandidate;
use schema::shown::shell_path;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// A scheduler as it is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedContext {
    /// Its address.
    pub server: String,
    /// Authorities that alone are trusted to speak for it, by an absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// What opens the door.
    pub token: String,
}

/// All of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Contexts {
    /// The one that is used where nothing else is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// By name.
    #[serde(default)]
    pub contexts: BTreeMap<String, SavedContext>,
}

/// The file, where there is a home for one. `environment` is `std::env::var_os`.
pub fn path(environment: fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The XDG specification has whoever reads a relative path ignore it.
    let config = set("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    // A relative home would be another one in each directory.
    let home = || set("HOME").filter(|path| path.is_absolute());
    let config = config.or_else(|| Some(home()?.join(".config")))?;
    Some(config.join("pvn").join("contexts.json"))
}

/// The same for whoever wants to write it, or why that cannot be.
fn writable_path(environment: fn(&str) -> Option<OsString>) -> Result<PathBuf, Failure> {
    let nowhere = |why: String| {
        Failure::with_next(
            format!("there is nowhere to keep it: {why}"),
            "set HOME to your home directory, or give the token by PVN_AUTH_TOKEN or --token-file \
             each time",
        )
    };
    let home = environment("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let Some(path) = path(environment) else {
        return Err(nowhere(match home {
            Some(home) => format!("HOME is `{}`, which is no absolute path", home.display()),
            None => "neither XDG_CONFIG_HOME nor HOME is set".to_owned(),
        }));
    };
    // `/nonexistent` is the home of whoever has none, and is not to be made.
    match home.filter(|home| path.starts_with(home) && !home.is_dir()) {
        Some(home) => Err(nowhere(format!("HOME is `{}`, which is not there", home.display()))),
        None => Ok(path),
    }
}

impl Contexts {
    /// Those of this user; none where there is no file.
    ///
    /// # Errors
    /// A file that cannot be read, that others can read, or that is none of ours.
    pub fn load() -> Result<Self, Failure> {
        path(|name| std::env::var_os(name))
            .map_or_else(|| Ok(Self::default()), |path| Self::of(&path))
    }

    fn of(path: &Path) -> Result<Self, Failure> {
        let cannot = |why: String| {
            Failure::with_next(
                format!("cannot read the contexts in {}: {why}", path.display()),
                "mend or remove that file, then `pvnctl login URL` again",
            )
        };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(cannot(error.to_string())),
        };
        let mode = fs::metadata(path).map_err(|error| cannot(error.to_string()))?.permissions();
        if mode.mode() & 0o077 != 0 {
            return Err(Failure::with_next(
                format!("{} holds tokens, and others can read it", path.display()),
                format!("chmod 600 {}", shell_path(path)),
            ));
        }
        serde_json::from_str(&text).map_err(|error| cannot(error.to_string()))
    }

    /// The file that [`Contexts::save`] writes.
    ///
    /// # Errors
    /// There is no home for it.
    pub fn place() -> Result<PathBuf, Failure> {
        writable_path(|name| std::env::var_os(name))
    }

    /// Keeps them, whole or not at all.
    ///
    /// # Errors
    /// There is no home for the file, or it cannot be written.
    pub fn save(&self) -> Result<PathBuf, Failure> {
        let path = Self::place()?;
        self.save_as(&path).map_err(|error| {
            Failure::with_next(
                format!("cannot write {}: {error}", path.display()),
                "see that you may write there; XDG_CONFIG_HOME names another place",
            )
        })?;
        Ok(path)
    }

    fn save_as(&self, path: &Path) -> std::io::Result<()> {
        let directory = path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        // Made with 0600, and in its place when it is whole.
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.as_file().set_permissions(Permissions::from_mode(0o600))?;
        let text = serde_json::to_string_pretty(self).map_err(std::io::Error::other)?;
        file.write_all(format!("{text}\n").as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    }

    /// The one of this name.
    ///
    /// # Errors
    /// There is none; those that there are are named.
    pub fn named(&self, name: &str) -> Result<&SavedContext, Failure> {
        self.contexts.get(name).ok_or_else(|| {
            let known: Vec<_> = self.contexts.keys().map(String::as_str).collect();
            let next = match known.as_slice() {
                [] => "there is none yet: `pvnctl login URL` makes one".to_owned(),
                known => format!("there is {}; `pvnctl login URL` makes another", known.join(", ")),
            };
            Failure::with_next(format!("there is no context `{name}`"), next)
        })
    }

    /// The one that is used where nothing else is said.
    pub fn current(&self) -> Option<(&str, &SavedContext)> {
        let name = self.current.as_deref()?;
        Some((name, self.contexts.get(name)?))
    }

    /// One for this server: its token is for nobody else.
    pub fn for_server(&self, server: &str) -> Option<&SavedContext> {
        let is_same = |one: &&SavedContext| same_server(&one.server, server);
        let current = self.current().map(|(_, one)| one).filter(is_same);
        current.or_else(|| self.contexts.values().find(is_same))
    }
}

/// The contexts that begin so, for the completion of a shell.
pub fn candidates(begun: &OsStr) -> Vec<CompletionCandidate> {
    let begun = begun.to_string_lossy();
    let known = Contexts::load().unwrap_or_default().contexts;
    let known = known.into_iter().filter(|(name, _)| name.starts_with(&*begun));
    known
        .map(|(name, saved)| CompletionCandidate::new(name).help(Some(saved.server.into())))
        .collect()
}

/// Whether two addresses name one server, as they are typed.
fn same_server(one: &str, other: &str) -> bool {
    one.trim_end_matches('/').eq_ignore_ascii_case(other.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(server: &str) -> SavedContext {
        SavedContext { server: server.to_owned(), ca_file: None, token: "t".to_owned() }
    }

    fn contexts() -> Contexts {
        Contexts {
            current: Some("prod".to_owned()),
            contexts: [("prod", "https://pvn.example"), ("dev", "http://127.0.0.1:7780")]
                .map(|(name, server)| (name.to_owned(), saved(server)))
                .into(),
        }
    }

    #[test]
    fn what_is_kept_is_read_back_and_nobody_else_can_read_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("new/pvn/contexts.json");
        assert_eq!(Contexts::of(&path).unwrap(), Contexts::default());
        contexts().save_as(&path).unwrap();
        contexts().save_as(&path).unwrap();
        assert_eq!(Contexts::of(&path).unwrap(), contexts());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let failure = Contexts::of(&path).unwrap_err();
        assert!(failure.to_string().contains("others can read"), "{failure}");
        assert!(failure.next().unwrap().starts_with("chmod 600 "), "{failure}");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "{").unwrap();
        let failure = Contexts::of(&path).unwrap_err().to_string();
        assert!(failure.contains(&path.display().to_string()), "{failure}");
    }

    #[test]
    fn a_token_is_for_the_server_that_it_was_kept_for() {
        let all = contexts();
        let server = |of: &str| all.for_server(of).map(|one| one.server.as_str());
        assert_eq!(server("https://pvn.example/"), Some("https://pvn.example"));
        assert_eq!(server("https://pvn.example.org"), None);
        assert_eq!(server("http://pvn.example"), None);
        assert_eq!(all.current().map(|(name, _)| name), Some("prod"));
        let failure = all.named("other").unwrap_err();
        assert_eq!(failure.next().unwrap(), "there is dev, prod; `pvnctl login URL` makes another");
    }

    #[test]
    fn the_file_lies_where_the_user_keeps_such_things() {
        let of = |found: Option<PathBuf>| found.map(|path| path.display().to_string());
        assert_eq!(
            of(path(|name| (name == "HOME").then(|| "/home/a".into()))).as_deref(),
            Some("/home/a/.config/pvn/contexts.json")
        );
        assert_eq!(of(path(|_| Some("/x".into()))).as_deref(), Some("/x/pvn/contexts.json"));
        assert_eq!(of(path(|name| (name == "XDG_CONFIG_HOME").then(|| "x".into()))), None);
        assert_eq!(of(path(|name| (name == "HOME").then(|| "x".into()))), None);
    }

    #[test]
    fn where_there_is_no_home_nothing_is_kept_elsewhere() {
        let why = |environment| writable_path(environment).unwrap_err().to_string();
        assert_eq!(
            why(|_| None),
            "there is nowhere to keep it: neither XDG_CONFIG_HOME nor HOME is set"
        );
        assert_eq!(
            why(|name| (name == "HOME").then(|| "home/ann".into())),
            "there is nowhere to keep it: HOME is `home/ann`, which is no absolute path"
        );
        assert_eq!(
            why(|name| (name == "HOME").then(|| "/dev/null/home".into())),
            "there is nowhere to keep it: HOME is `/dev/null/home`, which is not there"
        );
        // That one is made.
        assert!(
            writable_path(|name| match name {
                "HOME" => Some("/dev/null/home".into()),
                _ => Some("/etc/pvn-of-somebody".into()),
            })
            .is_ok()
        );
    }
}
