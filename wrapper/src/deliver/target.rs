//! Where a job is delivered to, as the environment says. Called by `main` once, before anything is
//! started: it reads variables and nothing else.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::OFlags;
use schema::spool;
use schema::wire::{self, CA_VARIABLE};

/// Where many programs look for the system's bundle of certificates.
const SYSTEM_CA_VARIABLE: &str = "SSL_CERT_FILE";

/// A scheduler and a job of its.
#[derive(Debug, Clone)]
pub(crate) struct DeliveryTarget {
    /// The scheduler's address, without a slash at its end.
    pub(crate) url: String,
    /// The job's id: a plain name, good in a path.
    pub(crate) job: String,
    /// The token and where it comes from.
    pub(crate) tokens: BearerToken,
    /// Who may vouch for the scheduler, unless it is those that are built in.
    pub(crate) ca_file: Option<CaFile>,
}

impl DeliveryTarget {
    /// What the environment names. `Ok(None)`: nobody, which is a dry run. `Err`: not all that is
    /// needed, which is a dry run with this warning.
    pub(crate) fn of_environment(
        environment: &[(OsString, OsString)],
    ) -> Result<Option<Self>, String> {
        let Some(url) = variable(environment, wire::URL_VARIABLE) else { return Ok(None) };
        let job = variable(environment, wire::JOB_VARIABLE).and_then(OsStr::to_str);
        let Some(job) = job.filter(|job| spool::is_output_name(job)) else {
            return Err(format!(
                "nothing is delivered: {} is set and {} names no job",
                wire::URL_VARIABLE,
                wire::JOB_VARIABLE
            ));
        };
        Self::of(url.to_str().unwrap_or_default(), job, environment).map(Some)
    }

    /// This job at this scheduler, with the token that the environment names.
    pub(crate) fn of(
        url: &str,
        job: &str,
        environment: &[(OsString, OsString)],
    ) -> Result<Self, String> {
        let bare = url.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"));
        if bare.is_none_or(|(_, host)| {
            host.is_empty()
                || host.contains(|c: char| c == '@' || c.is_whitespace())
                || !has_sound_port(host)
        }) {
            return Err(format!(
                "nothing is delivered: {} is no address such as `https://pvn.example.com:7780`",
                wire::URL_VARIABLE
            ));
        }
        let tokens = BearerToken::of_environment(environment).ok_or_else(|| {
            let [url, token, file] =
                [wire::URL_VARIABLE, wire::TOKEN_VARIABLE, wire::TOKEN_FILE_VARIABLE];
            format!("nothing is delivered: {url} is set and neither {token} nor {file} is")
        })?;
        let ca_file = CaFile::of_environment(environment);
        Ok(Self { url: url.trim_end_matches('/').to_owned(), job: job.to_owned(), tokens, ca_file })
    }

    /// What every path is below.
    pub(crate) fn base(&self) -> String {
        format!("{}/v1/jobs/{}", self.url, self.job)
    }
}

/// Whether the port of `host:port/path` is one, or left out. The client would take the usual one
/// for a port that is none, and the token would go to whoever listens there.
fn has_sound_port(host: &str) -> bool {
    let authority = host.split(['/', '?', '#']).next().unwrap_or_default();
    let after_name = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(_, port)| port),
        None => Some(authority.find(':').map_or("", |at| &authority[at..])),
    };
    let is_port = |port: &str| {
        port.bytes().all(|digit| digit.is_ascii_digit())
            && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    after_name.is_some_and(|port| port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

/// A bundle of certificates that takes the place of the built-in authorities.
#[derive(Debug, Clone)]
pub(crate) struct CaFile {
    path: PathBuf,
    /// Whether somebody means us: an image may name a bundle that it does not have.
    ours: bool,
}

impl CaFile {
    /// `PVN_CA_FILE`, else `SSL_CERT_FILE`. Read when the first connection is made, not before.
    fn of_environment(environment: &[(OsString, OsString)]) -> Option<Self> {
        let named = |name: &str, ours| {
            variable(environment, name).map(|path| Self { path: path.into(), ours })
        };
        named(CA_VARIABLE, true).or_else(|| named(SYSTEM_CA_VARIABLE, false))
    }

    /// What is in it; `None` for the built-in authorities.
    pub(crate) fn read(&self) -> Result<Option<Vec<u8>>, String> {
        match read_file(&self.path) {
            Ok(pem) => Ok(Some(pem)),
            Err(error) if self.ours => Err(format!(
                "cannot read the certificates in {} ({CA_VARIABLE}): {error}",
                self.path.display()
            )),
            Err(_) => Ok(None),
        }
    }

    /// Why a bundle without certificates does not do; `None` when it is passed over.
    pub(crate) fn empty(&self) -> Option<String> {
        self.ours
            .then(|| format!("there is no certificate in {} ({CA_VARIABLE})", self.path.display()))
    }
}

fn variable<'a>(environment: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    environment
        .iter()
        .find(|(key, value)| key == name && !value.is_empty())
        .map(|(_, value)| value.as_os_str())
}

/// Largest file that is read here, 16 MiB: a system's bundle of certificates has a quarter of one.
const FILE_LIMIT_BYTES: u64 = 16 << 20;

/// A whole file: nothing that may never end, as a FIFO or a device.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(FILE_LIMIT_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_LIMIT_BYTES {
        return Err(io::Error::other(format!("it has more than {FILE_LIMIT_BYTES} bytes")));
    }
    Ok(bytes)
}

/// The job's token, read again when it is refused. Its `Debug` shows nothing of it.
#[derive(Clone)]
pub(crate) struct BearerToken(Arc<TokenSource>);

struct TokenSource {
    file: Option<PathBuf>,
    known: Mutex<Option<String>>,
}

impl BearerToken {
    fn of_environment(environment: &[(OsString, OsString)]) -> Option<Self> {
        let file = variable(environment, wire::TOKEN_FILE_VARIABLE).map(PathBuf::from);
        let given = variable(environment, wire::TOKEN_VARIABLE)
            .and_then(OsStr::to_str)
            .map(|token| token.trim().to_owned());
        if file.is_none() && given.is_none() {
            return None;
        }
        let known = if file.is_some() { None } else { given };
        Some(Self(Arc::new(TokenSource { file, known: Mutex::new(known) })))
    }

    /// The token to send. The error names the file and not what is in it.
    pub(crate) fn current(&self) -> Result<String, String> {
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = &*known {
            return Ok(token.clone());
        }
        let Some(file) = &self.0.file else {
            return Err(format!("{} is empty", wire::TOKEN_VARIABLE));
        };
        let text = read_file(file)
            .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
            .map_err(|error| {
                format!(
                    "cannot read the token from {} ({}): {error}",
                    file.display(),
                    wire::TOKEN_FILE_VARIABLE
                )
            })?;
        let token = text.trim();
        if token.is_empty() || token.contains(|c: char| c.is_control()) {
            return Err(format!(
                "there is no token in {} ({})",
                file.display(),
                wire::TOKEN_FILE_VARIABLE
            ));
        }
        *known = Some(token.to_owned());
        Ok(token.to_owned())
    }

    /// This token was refused: if it comes from a file it is read again.
    pub(crate) fn refused(&self, token: &str) {
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        if self.0.file.is_some() && known.as_deref() == Some(token) {
            *known = None;
        }
    }
}

impl std::fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Option<DeliveryTarget>, String> {
        let variables: Vec<_> = variables
            .iter()
            .map(|(key, value)| (OsString::from(key), OsString::from(value)))
            .collect();
        DeliveryTarget::of_environment(&variables)
    }

    #[test]
    fn without_an_address_nobody_is_asked() {
        assert!(of(&[]).unwrap().is_none());
        assert!(
            of(&[("PVN_TOKEN", "t"), ("PVN_JOB_ID", "job-1"), ("PVN_API_URL", "")])
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn an_address_needs_a_job_and_a_token() {
        for (variables, missing) in [
            (vec![], "PVN_JOB_ID"),
            (vec![("PVN_TOKEN", "t"), ("PVN_JOB_ID", "../x")], "PVN_JOB_ID"),
            (vec![("PVN_JOB_ID", "job-1")], "PVN_TOKEN"),
        ] {
            let all: Vec<_> = variables.into_iter().chain([("PVN_API_URL", "http://x")]).collect();
            let why = of(&all).unwrap_err();
            assert!(why.contains(missing) && why.contains("nothing is delivered"), "{why}");
        }
        let ports = [
            "http://h:99999",
            "http://h:-1/p",
            "http://h:80a",
            "http://h:",
            "http://h:0",
            "http://h:+80",
            "http://[::1",
            "http://[::1]80",
        ];
        for url in ["x", "ftp://x", "http://", "http://a@b", "http://a b"].into_iter().chain(ports)
        {
            assert!(
                of(&[("PVN_API_URL", url), ("PVN_JOB_ID", "job-1"), ("PVN_TOKEN", "t")])
                    .unwrap_err()
                    .contains("PVN_API_URL"),
                "{url}"
            );
        }
        let target = of(&[
            ("PVN_API_URL", "http://[::1]:80/"),
            ("PVN_JOB_ID", "job-1"),
            ("PVN_TOKEN", " t\n"),
        ])
        .unwrap()
        .unwrap();
        assert_eq!(target.base(), "http://[::1]:80/v1/jobs/job-1");
        assert_eq!(target.tokens.current().unwrap(), "t");
        assert!(!format!("{target:?}").contains("\"t\""));
    }

    #[test]
    fn a_bundle_that_we_are_given_must_be_there_and_that_of_an_image_need_not() {
        let ca = |name: &str| {
            let target = of(&[
                ("PVN_API_URL", "https://x"),
                ("PVN_JOB_ID", "j"),
                ("PVN_TOKEN", "t"),
                (name, "/nowhere/ca.pem"),
            ]);
            target.unwrap().unwrap().ca_file.unwrap()
        };
        assert!(ca("PVN_CA_FILE").read().unwrap_err().contains("/nowhere/ca.pem"));
        assert_eq!(ca("SSL_CERT_FILE").read(), Ok(None));
    }

    #[test]
    fn a_refused_token_is_read_again_from_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "old\n").unwrap();
        let path = file.path().to_str().unwrap();
        let target = of(&[
            ("PVN_API_URL", "http://x"),
            ("PVN_JOB_ID", "j"),
            ("PVN_TOKEN", "t"),
            ("PVN_TOKEN_FILE", path),
        ])
        .unwrap()
        .unwrap();
        assert_eq!(target.tokens.current().unwrap(), "old");
        std::fs::write(file.path(), "new").unwrap();
        assert_eq!(target.tokens.current().unwrap(), "old", "not before it is refused");
        target.tokens.refused("older");
        assert_eq!(target.tokens.current().unwrap(), "old");
        target.tokens.refused("old");
        assert_eq!(target.tokens.current().unwrap(), "new");
        std::fs::write(file.path(), "").unwrap();
        target.tokens.refused("new");
        assert!(target.tokens.current().unwrap_err().contains(path));
    }
}
