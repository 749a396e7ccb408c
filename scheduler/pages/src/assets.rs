//! What pages need beside themselves: the style, the script and the icon. Their names hold the
//! digest of their bytes, so that a browser keeps them for good and an upgrade is another name.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// A file that pages refer to.
#[derive(Debug)]
pub struct Asset {
    /// Its name below `/assets/`, with the digest in it.
    pub name: String,
    /// Its media type.
    pub media_type: &'static str,
    /// Its bytes.
    pub text: &'static str,
}

impl Asset {
    fn of(name: &str, end: &str, media_type: &'static str, text: &'static str) -> Self {
        let digest = Sha256::digest(text.as_bytes());
        let digest: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        Self { name: format!("{name}-{digest}.{end}"), media_type, text }
    }

    /// Where the browser asks for it.
    pub fn path(&self) -> String {
        format!("/assets/{}", self.name)
    }
}

/// How all pages look.
pub static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::of("style", "css", "text/css; charset=utf-8", include_str!("../assets/style.css"))
});

/// What follows changes.
pub static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let text = include_str!("../assets/app.js");
    Asset::of("app", "js", "text/javascript; charset=utf-8", text)
});

/// The mark in the browser's tab.
pub static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::of("icon", "svg", "image/svg+xml", include_str!("../assets/icon.svg")));

/// The asset of this name.
pub fn asset(name: &str) -> Option<&'static Asset> {
    [&*STYLE, &*SCRIPT, &*ICON].into_iter().find(|asset| asset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asset_is_found_by_its_name_with_the_digest_alone() {
        assert_eq!(asset(&STYLE.name).map(|found| found.text), Some(STYLE.text));
        assert!(asset("style.css").is_none() && asset("").is_none());
        assert_eq!(STYLE.name.len(), "style-.css".len() + 16);
    }
}
