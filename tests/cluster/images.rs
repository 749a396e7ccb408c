//! Images, made here, as nothing can be pulled: a shell with the usual tools (Debian's static
//! busybox) and files of one's own. Written as a tar of an OCI image layout, which `ctr images
//! import` reads.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::layout::Layout;
use super::parts::{self, BUSYBOX};

/// The image of a Pod's own container: it holds the namespaces and does nothing.
pub(super) const PAUSE: &str = "pvn.test/pause:1";

/// A shell with the usual tools.
pub const TOOLS: &str = "pvn.test/tools:1";

/// What a file of an image holds.
#[derive(Debug, Clone)]
enum Content {
    /// What a file of this machine holds.
    Of(PathBuf),
    Is(Vec<u8>),
}

/// An image to be.
#[derive(Debug, Clone)]
pub struct Image {
    name: String,
    files: BTreeMap<String, Content>,
    applets: bool,
    entrypoint: Vec<String>,
}

impl Image {
    /// An image with nothing in it. A name without a registry that exists, so that nobody tries to
    /// pull it.
    pub fn empty(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            files: BTreeMap::new(),
            applets: false,
            entrypoint: Vec::new(),
        }
    }

    /// An image with busybox under all its names.
    pub fn with_tools(name: &str) -> Self {
        Self {
            applets: true,
            files: BTreeMap::from([("bin/busybox".to_owned(), Content::Of(BUSYBOX.into()))]),
            ..Self::empty(name)
        }
    }

    /// With a file of this machine, executable, at a path without a leading slash, unless there is
    /// one at that path already: programs share their libraries.
    #[must_use]
    pub fn file(mut self, path: &str, from: &Path) -> Self {
        self.files.entry(path.to_owned()).or_insert_with(|| Content::Of(from.to_owned()));
        self
    }

    /// With an executable file that holds this, at a path without a leading slash.
    #[must_use]
    pub fn script(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.to_owned(), Content::Is(text.as_bytes().to_owned()));
        self
    }

    /// With a program of this machine and the libraries that it needs, if any.
    ///
    /// # Panics
    /// When nobody can say which.
    #[must_use]
    pub fn program(self, path: &str, from: &Path) -> Self {
        let output = Command::new("ldd").arg(from).output().expect("ldd can be started");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // `libc.so.6 => /lib/…/libc.so.6 (0x…)`, and the loader as `/lib64/ld-….so.2 (0x…)`; of a
        // static program nothing.
        let libraries = text
            .lines()
            .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
        libraries.fold(self.file(path, from), |image, library| {
            image.file(library.trim_start_matches('/'), Path::new(library))
        })
    }

    /// With what it runs when nothing else is said.
    #[must_use]
    pub fn entrypoint(mut self, argv: &[&str]) -> Self {
        self.entrypoint = argv.iter().map(|&argument| argument.to_owned()).collect();
        self
    }

    pub(super) fn pause() -> Self {
        Self::with_tools(PAUSE).entrypoint(&["/bin/busybox", "tail", "-f", "/dev/null"])
    }

    /// Gives it to containerd.
    pub(super) fn import(&self, layout: &Layout) -> Result<(), String> {
        let archive = self
            .archive()
            .map_err(|error| format!("image {} cannot be made: {error}", self.name))?;
        let mut child = Command::new("ctr")
            .arg("--address")
            .arg(layout.containerd_socket())
            .args(["--namespace", "k8s.io", "images", "import", "--snapshotter", "native", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("ctr cannot be started: {error}"))?;
        let mut input = child.stdin.take().expect("it was asked for");
        // A reader that refuses says why on stderr.
        let _refused = io::Write::write_all(&mut input, &archive);
        drop(input);
        let output = child
            .wait_with_output()
            .map_err(|error| format!("ctr cannot be waited for: {error}"))?;
        if output.status.success() {
            Ok(())
        } else {
            Err(format!(
                "image {} is refused: {}",
                self.name,
                String::from_utf8_lossy(&output.stderr)
            ))
        }
    }

    fn archive(&self) -> io::Result<Vec<u8>> {
        let layer = self.layer()?;
        let config = serde_json::to_vec(&json!({
            "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }, "os": "linux",
            "config": {"Entrypoint": self.entrypoint, "Env": ["PATH=/bin:/usr/bin"], "WorkingDir": "/"},
            "rootfs": {"type": "layers", "diff_ids": [digest(&layer)]},
        }))?;
        let manifest = serde_json::to_vec(&json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
            "layers": [descriptor("application/vnd.oci.image.layer.v1.tar", &layer)],
        }))?;
        let mut entry = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
        entry["annotations"] = json!({"io.containerd.image.name": self.name});
        let index = serde_json::to_vec(&json!({"schemaVersion": 2, "manifests": [entry]}))?;
        let mut archive = tar::Builder::new(Vec::new());
        add(&mut archive, "oci-layout", 0o644, br#"{"imageLayoutVersion": "1.0.0"}"#)?;
        add(&mut archive, "index.json", 0o644, &index)?;
        for blob in [&layer, &config, &manifest] {
            add(
                &mut archive,
                &format!("blobs/sha256/{}", digest(blob).trim_start_matches("sha256:")),
                0o644,
                blob,
            )?;
        }
        archive.into_inner()
    }

    fn layer(&self) -> io::Result<Vec<u8>> {
        let mut layer = tar::Builder::new(Vec::new());
        for (path, mode) in [("bin", 0o755), ("etc", 0o755), ("tmp", 0o1777)] {
            let mut header = header(tar::EntryType::Directory, mode, 0);
            layer.append_data(&mut header, path, io::empty())?;
        }
        add(
            &mut layer,
            "etc/passwd",
            0o644,
            b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n",
        )?;
        for (path, content) in &self.files {
            match content {
                Content::Of(file) => {
                    let bytes = std::fs::read(file)?;
                    let mut header = header(tar::EntryType::Regular, 0o755, bytes.len());
                    // What Python has compiled is good for a file of the same time only.
                    header.set_mtime(std::fs::metadata(file)?.mtime().unsigned_abs());
                    layer.append_data(&mut header, path, bytes.as_slice())?;
                }
                Content::Is(bytes) => add(&mut layer, path, 0o755, bytes)?,
            }
        }
        if self.applets {
            for applet in applets()?.lines().filter(|name| !name.is_empty() && *name != "busybox") {
                let mut header = header(tar::EntryType::Symlink, 0o777, 0);
                layer.append_link(&mut header, format!("bin/{applet}"), "busybox")?;
            }
        }
        layer.into_inner()
    }
}

fn applets() -> io::Result<String> {
    let program = parts::program("busybox").unwrap_or_else(|| BUSYBOX.into());
    let output = Command::new(program).arg("--list").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn header(kind: tar::EntryType, mode: u32, bytes: usize) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(bytes as u64);
    header
}

fn add(archive: &mut tar::Builder<Vec<u8>>, path: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
    archive.append_data(&mut header(tar::EntryType::Regular, mode, bytes.len()), path, bytes)
}

fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": digest(bytes), "size": bytes.len()})
}
