//! What became of TLS, in words for people, with what to do: a scheduler is there, and its
//! certificate does not do. Called by `client`.

use std::error::Error;
use std::io;

use rustls::CertificateError;

/// What is wrong, and what to do about it.
pub(super) struct CertificateProblem {
    pub(super) why: String,
    pub(super) next: String,
}

/// Tells of a certificate that was refused; `None` when the error is another one.
pub(super) fn told(error: &(dyn Error + 'static)) -> Option<CertificateProblem> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(rustls::Error::InvalidCertificate(refused)) = of_rustls(error) {
            return Some(of_certificate(refused));
        }
        next = error.source();
    }
    None
}

/// What rustls said, in however many errors of the system it is wrapped: those name as their source
/// not what they wrap, but its source.
fn of_rustls<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let wrapped = || of_rustls(error.downcast_ref::<io::Error>()?.get_ref()?);
    error.downcast_ref().or_else(wrapped)
}

fn of_certificate(refused: &CertificateError) -> CertificateProblem {
    let (why, next) = match refused {
        // The second is that of one whose authority has only the name of one that is trusted.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => (
            "its certificate is signed by nobody who is trusted here".to_owned(),
            "give the PEM file of the authority that signed it (of a self-signed one, itself) \
             with --ca-file FILE or PVN_CA_FILE; where you gave one, it is another authority's",
        ),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names: Vec<String> =
                presented.iter().map(|name| format!("`{}`", bare(name))).collect();
            let names =
                if names.is_empty() { "no name at all".to_owned() } else { names.join(", ") };
            (
                format!("its certificate is for {names} and not for `{}`", expected.to_str()),
                "say --server or PVN_SERVER with a name that it is for, or give the scheduler a \
                 certificate that has this one in subjectAltName",
            )
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => (
            "its certificate has expired".to_owned(),
            "renew it, or set the clock of this machine right",
        ),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => (
            "its certificate is not valid yet".to_owned(),
            "set the clock of this machine right, or wait",
        ),
        // Source: the names of `webpki::Error`, which rustls hands on as it is.
        CertificateError::Other(other) if format!("{:?}", other.0) == "CaUsedAsEndEntity" => (
            "its certificate is an authority's, which is no server's".to_owned(),
            "give the scheduler one that is not: with `openssl req -x509`, add `-addext \
             basicConstraints=critical,CA:FALSE`",
        ),
        other => (
            format!("its certificate is not accepted: {other}"),
            "the scheduler is there; give it a certificate that does, with --tls-cert and \
             --tls-key",
        ),
    };
    CertificateProblem { why, next: next.to_owned() }
}

/// The name in `DnsName("localhost")` and `IpAddress(127.0.0.1)`, as webpki writes them.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_without_what_is_around_them() {
        for (name, expected) in [
            ("DnsName(\"localhost\")", "localhost"),
            ("IpAddress(127.0.0.1)", "127.0.0.1"),
            ("x", "x"),
        ] {
            assert_eq!(bare(name), expected);
        }
    }

    #[test]
    fn a_certificate_is_found_however_deep_its_error_lies() {
        let refused = rustls::Error::InvalidCertificate(CertificateError::Expired);
        assert!(told(&refused).unwrap().why.contains("has expired"));
        let deep = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, refused));
        assert!(told(&deep).unwrap().why.contains("has expired"));
        assert!(told(&io::Error::other("connection refused")).is_none());
    }
}
