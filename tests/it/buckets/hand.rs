//! The commands of an example run by hand, one after another, as pvn runs them: so a test knows
//! what each of them did, and nothing runs in between.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A copy of an example, and the directory of its channel on this machine.
pub(super) struct Hand {
    home: tempfile::TempDir,
    variables: Vec<(String, OsString)>,
}

impl Hand {
    pub(super) fn of(name: &str, variables: &[(&str, &OsStr)]) -> Self {
        let home = tempfile::tempdir().expect("a directory can be made");
        tests::copy::example(name, &home.path().join("example"));
        std::fs::create_dir(home.path().join("own")).expect("a directory can be made");
        let kept = variables.iter().map(|(name, value)| ((*name).to_owned(), value.into()));
        Self { home, variables: kept.collect() }
    }

    /// A file of the site.
    pub(super) fn site(&self, name: &str) -> PathBuf {
        self.home.path().join("example/site").join(name)
    }

    /// Writes a file of the site.
    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.site(name), content).expect("a file can be written");
    }

    /// Its exit code and all that it said. What it found is what the next apply is handed.
    pub(super) fn fetch(&self) -> (Option<i32>, String) {
        let fetched = self.run("./fetch.sh");
        if fetched.0 == Some(2) {
            let own = self.home.path().join("own");
            std::fs::copy(own.join("explanation.txt"), own.join("shown.txt"))
                .expect("it has left what it found");
        }
        fetched
    }

    /// Its exit code and all that it said.
    pub(super) fn apply(&self) -> (Option<i32>, String) {
        self.run("./apply.sh")
    }

    /// Fetch finds work, apply does it, and then there is none.
    pub(super) fn converges(&self) {
        let (code, said) = self.fetch();
        assert_eq!(code, Some(2), "there is work: {said}");
        let (code, said) = self.apply();
        assert_eq!(code, Some(0), "apply does it: {said}");
        let (code, said) = self.fetch();
        assert_eq!(code, Some(0), "it is done: {said}");
    }

    fn run(&self, program: &str) -> (Option<i32>, String) {
        let mut command = Command::new(program);
        command.current_dir(self.home.path().join("example")).stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env("PVN_INSTANCE_DIR", self.home.path().join("own"));
        command.env("PVN_RELEASE_CHANNEL", "public").env("SITE", "site");
        let output = command.env("BUCKET", super::BUCKET).output().expect("it can be started");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }
}
