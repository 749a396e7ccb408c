//! Flags and environment -> one checked struct. Read by `main`, made by hand by `dev` and tests,
//! used by `daemon`.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::builder::BoolishValueParser;

use crate::handles::HandleNeeds;
use crate::http::{CONNECTIONS, TlsFiles, advertised};
use crate::paths;
use crate::retention::Policy;

pub use address::listen_address;
pub use error::SettingsError;

mod address;
mod error;
pub mod printed;

/// Fetches and getInfos that run at a time over all runtimes. They mostly wait for the network: a
/// few per core keep a small machine busy without drowning it.
pub const DEFAULT_MAX_FETCHES: u32 = 32;

/// Applies that run at a time over all runtimes. Heavier than fetches, and rarer.
pub const DEFAULT_MAX_APPLIES: u32 = 16;

/// What `pvn-scheduler serve` can be told, each also as `PVN_…` in the environment: a flag without
/// a value as 1 or 0, `true` or `false`, and the like.
#[derive(Debug, Clone, clap::Args)]
pub struct Settings {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, env = "PVN_LISTEN", default_value = "127.0.0.1:7780")]
    #[arg(value_name = "ADDRESS", value_parser = listen_address)]
    pub listen: SocketAddr,

    /// Address under which jobs elsewhere reach this daemon [default: the listening one]
    #[arg(long, env = "PVN_ADVERTISE_URL", value_name = "URL")]
    pub advertise_url: Option<String>,

    /// Authorities, PEM, that alone vouch for that address to jobs on clusters [default: those
    /// that everybody trusts]
    #[arg(long, env = "PVN_ADVERTISE_CA_FILE", value_name = "FILE")]
    pub advertise_ca_file: Option<PathBuf>,

    /// Listen beyond this machine without TLS: tokens and secrets then cross the network readable
    #[arg(long, env = "PVN_ALLOW_PLAIN_HTTP", value_parser = BoolishValueParser::new())]
    pub allow_plain_http: bool,

    /// Certificate chain, PEM
    #[arg(long, env = "PVN_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// Private key of the certificate, PEM
    #[arg(long, env = "PVN_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,

    /// Answer `/metrics` without a token
    #[arg(long, env = "PVN_OPEN_METRICS", value_parser = BoolishValueParser::new())]
    pub open_metrics: bool,

    /// Look only: fetch and getInfo run, nothing is ever applied, and what would be done is shown
    #[arg(long, env = "PVN_OBSERVER", value_parser = BoolishValueParser::new())]
    pub observer: bool,

    /// Where everything is kept
    #[arg(long, env = "PVN_DATA_DIR", default_value = "./pvn-data", value_name = "DIR")]
    pub data_dir: PathBuf,

    /// Database, as `sqlite:FILE` [default: `pvn.db` in the data directory]
    #[arg(long, env = "PVN_DATABASE_URL", value_name = "URL")]
    pub database_url: Option<String>,

    /// File with the key that seals secrets [default: `secret.key` in the data directory, made at
    /// the first start]
    #[arg(long, env = "PVN_SECRET_KEY_FILE", value_name = "FILE")]
    pub secret_key_file: Option<PathBuf>,

    /// Fetches and getInfos that run at a time
    #[arg(long, env = "PVN_MAX_FETCHES", default_value_t = DEFAULT_MAX_FETCHES)]
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_fetches: u32,

    /// Fetches and getInfos that run at a time in one runtime [default: a fair share, at most
    /// three quarters of all]
    #[arg(long, env = "PVN_MAX_FETCHES_PER_RUNTIME")]
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_fetches_per_runtime: Option<u32>,

    /// Applies that run at a time
    #[arg(long, env = "PVN_MAX_APPLIES", default_value_t = DEFAULT_MAX_APPLIES)]
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_applies: u32,

    /// Applies that run at a time in one runtime, whatever its `maxConcurrency` says [default: a
    /// fair share, at most three quarters of all]
    #[arg(long, env = "PVN_MAX_APPLIES_PER_RUNTIME")]
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_applies_per_runtime: Option<u32>,

    /// Connections at a time, half of them open pages at most [default: 3072, or as many as the
    /// hard limit of open files leaves]
    #[arg(long, env = "PVN_MAX_CONNECTIONS")]
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(16..))]
    pub max_connections: Option<u32>,

    /// What is kept for how long
    #[command(flatten)]
    pub retain: Policy,

    /// Where the built-in runtime `local` starts from [default: where it did before, at first the
    /// present directory]
    #[arg(long, env = "PVN_LOCAL_ROOT", value_name = "DIR")]
    pub local_root: Option<PathBuf>,

    /// Whether somebody named that directory; `absolute` says it.
    #[arg(skip)]
    pub local_root_given: bool,

    /// The wrapper binary [default: `pvn-wrapper` beside this program, else on PATH]
    #[arg(long, env = "PVN_WRAPPER", value_name = "FILE")]
    pub wrapper: Option<PathBuf>,

    /// Every runtime runs on this machine, whatever its proxy runtime says; set by `dev`, not by a
    /// flag
    #[arg(skip)]
    pub all_local: bool,

    /// No apply starts before [`crate::driver::Handle::let_applies_start`]; set by `dev`, not by a
    /// flag
    #[arg(skip)]
    pub holds_applies: bool,
}

impl Settings {
    /// The defaults, with everything in this directory and a free port on the loopback address. For
    /// `dev` and tests.
    pub fn in_directory(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            advertise_url: None,
            advertise_ca_file: None,
            allow_plain_http: false,
            tls_cert: None,
            tls_key: None,
            open_metrics: false,
            observer: false,
            data_dir: data_dir.into(),
            database_url: None,
            secret_key_file: None,
            max_fetches: DEFAULT_MAX_FETCHES,
            max_fetches_per_runtime: None,
            max_applies: DEFAULT_MAX_APPLIES,
            max_applies_per_runtime: None,
            max_connections: None,
            retain: Policy::default(),
            local_root: None,
            local_root_given: false,
            wrapper: None,
            all_local: false,
            holds_applies: false,
        }
    }

    /// The same with every path absolute, relative ones to the present directory. What a path ends
    /// up in (a link, another process' arguments, a job's environment) is read from other
    /// directories than this one. Those of the data directory and the database are the places
    /// that they lead to now: later starts, which may name them otherwise, are to know them again.
    ///
    /// # Errors
    /// When there is no present directory, or a path is empty; the path is in the error.
    pub fn absolute(mut self) -> io::Result<Self> {
        let set = |path: &mut PathBuf, to: fn(&Path) -> io::Result<PathBuf>| -> io::Result<()> {
            *path = to(path).map_err(|error| {
                io::Error::new(error.kind(), format!("{:?}: {error}", path.display()))
            })?;
            Ok(())
        };
        let whole = |path: &mut PathBuf| set(path, paths::settled);
        if self.database_url.is_some() {
            // What is no file is refused by `check`, in other words than these.
            if let Ok(mut file) = self.database_file() {
                set(&mut file, paths::resolved)?;
                self.database_url = Some(format!("sqlite:{}", file.display()));
            }
        }
        self.local_root_given |= self.local_root.is_some();
        let Self {
            data_dir,
            advertise_ca_file,
            tls_cert,
            tls_key,
            secret_key_file,
            local_root,
            wrapper,
            ..
        } = &mut self;
        set(data_dir, paths::resolved)?;
        // Said here and not where it is used, so that nobody has to know what an absent one means.
        whole(local_root.get_or_insert_with(|| PathBuf::from(".")))?;
        [advertise_ca_file, tls_cert, tls_key, secret_key_file, wrapper]
            .into_iter()
            .flatten()
            .try_for_each(whole)?;
        Ok(self)
    }

    /// How many files it needs to have open: those of connections, and the others.
    pub fn handles(&self) -> HandleNeeds {
        let wanted = self.max_connections.and_then(|given| usize::try_from(given).ok());
        let jobs = self.max_fetches.saturating_add(self.max_applies);
        HandleNeeds { connections: wanted.unwrap_or(CONNECTIONS), jobs }
    }

    /// Refuses what cannot be served, before anything is touched.
    ///
    /// # Errors
    /// [`SettingsError`] with what to do instead.
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.tls()?.is_none() && !self.listen.ip().is_loopback() && !self.allow_plain_http {
            return Err(SettingsError::Plain(self.listen));
        }
        if let Some(url) = &self.advertise_url {
            advertised::check(url)
                .map_err(|why| SettingsError::Wrong(format!("--advertise-url {why}")))?;
        }
        self.database_file().map(drop)
    }

    /// What TLS is spoken with; `None` = it is not.
    ///
    /// # Errors
    /// [`SettingsError`] when only one of the two files is given.
    pub fn tls(&self) -> Result<Option<TlsFiles>, SettingsError> {
        match (&self.tls_cert, &self.tls_key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => {
                Ok(Some(TlsFiles { certificate: certificate.clone(), key: key.clone() }))
            }
            (Some(_), None) => Err(SettingsError::Wrong(
                "--tls-cert without --tls-key: give the key of that certificate too".to_owned(),
            )),
            (None, Some(_)) => Err(SettingsError::Wrong(
                "--tls-key without --tls-cert: give the certificate of that key too".to_owned(),
            )),
        }
    }

    /// The file of the database.
    ///
    /// # Errors
    /// [`SettingsError`] when the URL names another kind of database.
    pub fn database_file(&self) -> Result<PathBuf, SettingsError> {
        let Some(url) = &self.database_url else { return Ok(self.data_dir.join("pvn.db")) };
        match url.strip_prefix("sqlite:") {
            Some(path) => {
                let path = path.strip_prefix("//").unwrap_or(path);
                if path.is_empty() || path.contains(":memory:") {
                    return Err(SettingsError::Wrong(format!(
                        "--database-url `{url}` must name a file, as in sqlite:/var/lib/pvn/pvn.db"
                    )));
                }
                Ok(path.into())
            }
            None if url.starts_with("postgres:") || url.starts_with("postgresql:") => {
                Err(SettingsError::NotYet(
                    "--database-url with PostgreSQL; leave it out to use SQLite in the data \
                     directory"
                        .to_owned(),
                ))
            }
            None => {
                let scheme = url.split(':').next().unwrap_or_default();
                Err(SettingsError::Wrong(format!(
                    "--database-url starts with `{scheme}:`, which is no database that pvn knows; \
                     write sqlite:FILE"
                )))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl FnOnce(&mut Settings), expected: Result<(), &str>) {
        let mut settings = Settings::in_directory("/data");
        change(&mut settings);
        match (settings.check(), expected) {
            (Ok(()), Ok(())) => {}
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (found, _) => panic!("{found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn listening_beyond_loopback_needs_a_word() {
        check(|_| {}, Ok(()));
        check(|s| s.listen = ([0, 0, 0, 0], 7780).into(), Err("--allow-plain-http"));
        check(
            |s| {
                s.listen = ([0, 0, 0, 0], 7780).into();
                s.allow_plain_http = true;
            },
            Ok(()),
        );
    }

    #[test]
    fn what_is_not_built_yet_says_so() {
        check(|s| s.tls_cert = Some("cert.pem".into()), Err("--tls-cert without --tls-key"));
        check(|s| s.tls_key = Some("key.pem".into()), Err("--tls-key without --tls-cert"));
        check(
            |s| {
                s.listen = ([0, 0, 0, 0], 7780).into();
                (s.tls_cert, s.tls_key) = (Some("cert.pem".into()), Some("key.pem".into()));
            },
            Ok(()),
        );
        check(
            |s| s.database_url = Some("postgres://u:secret@db/pvn".into()),
            Err("not supported yet: --database-url"),
        );
    }

    #[test]
    fn the_advertised_address_is_one_that_anybody_may_read() {
        let check = |url: &str, expected| {
            check(|settings| settings.advertise_url = Some(url.to_owned()), expected)
        };
        check("https://pvn.example.com:7780/below/", Ok(()));
        check("http://[::1]:7780", Ok(()));
        check("pvn.example.com", Err("is not a URL that starts with http:// or https://"));
        check("https://", Err("is not a URL"));
        check(
            "https://ann:hunter2@pvn.example.com",
            Err("--advertise-url holds a user or a password"),
        );
        check("https://pvn.example.com/?token=x", Err("after which no path can follow"));
        check("https://pvn.example.com/#x", Err("after which no path can follow"));
    }

    #[test]
    fn a_database_url_names_a_file() {
        check(|s| s.database_url = Some("sqlite:///tmp/x.db".into()), Ok(()));
        check(|s| s.database_url = Some("sqlite::memory:".into()), Err("must name a file"));
        check(|s| s.database_url = Some("mysql://root:hunter2@db".into()), Err("`mysql:`"));
        let settings = Settings {
            database_url: Some("sqlite:rel/x.db".into()),
            ..Settings::in_directory("d")
        };
        assert_eq!(settings.database_file().unwrap(), PathBuf::from("rel/x.db"));
    }

    #[test]
    fn every_path_is_absolute_once_it_is_in() {
        let some = |name: &str| Some(PathBuf::from(name));
        let relative = Settings {
            database_url: Some("sqlite:db".into()),
            advertise_ca_file: some("ca"),
            tls_cert: some("cert"),
            tls_key: some("key"),
            secret_key_file: some("secret"),
            wrapper: some("./wrapper"),
            ..Settings::in_directory("./pvn-data")
        };
        let here = std::env::current_dir().unwrap();
        let found = relative.absolute().unwrap();
        assert_eq!(
            (found.data_dir.clone(), found.local_root.clone()),
            (here.join("pvn-data"), Some(here.clone()))
        );
        assert_eq!(found.database_file().unwrap(), here.join("db"));
        let others = [
            &found.advertise_ca_file,
            &found.tls_cert,
            &found.tls_key,
            &found.secret_key_file,
            &found.wrapper,
        ];
        let names = others
            .map(|path| path.as_deref().unwrap().strip_prefix(&here).unwrap().to_str().unwrap());
        assert_eq!(names, ["ca", "cert", "key", "secret", "wrapper"]);
        let nowhere = Settings { wrapper: some(""), ..Settings::in_directory("/data") };
        assert!(nowhere.absolute().is_err());
    }
}
