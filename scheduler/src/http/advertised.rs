//! The address that Pods use: it stands in Jobs and in messages, where everybody reads it. Called
//! by `settings`.

use axum::http::Uri;

/// Whether a text is such an address.
///
/// # Errors
/// What is wrong with it, after its name.
pub fn check(text: &str) -> Result<(), String> {
    if text.contains('@') {
        return Err("holds a user or a password, and everybody reads it: take them out; jobs \
                    bring tokens of their own"
            .to_owned());
    }
    let is_http = |url: &Uri| {
        matches!(url.scheme_str(), Some("http" | "https"))
            && url.host().is_some_and(|host| !host.is_empty())
    };
    let Some(url) = text.parse().ok().filter(is_http) else {
        return Err(format!("`{text}` is not a URL that starts with http:// or https://"));
    };
    if url.query().is_some() || text.contains('#') {
        return Err(format!(
            "`{text}` has a `?` or a `#`, after which no path can follow: take that out"
        ));
    }
    Ok(())
}
