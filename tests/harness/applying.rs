//! Config files that a scheduler is given by `pvnctl configs apply`.

use crate::scheduler::Scheduler;

impl Scheduler {
    /// Writes config files under its home directory and applies them; returns what `configs apply`
    /// printed.
    ///
    /// # Panics
    /// Where they are refused.
    pub fn apply(&self, yaml: &str) -> String {
        self.apply_with(&[], yaml)
    }

    /// The same, and each service of them is released.
    ///
    /// # Panics
    /// Where they are refused.
    pub fn apply_and_push(&self, yaml: &str) -> String {
        self.apply_with(&["--push"], yaml)
    }

    fn apply_with(&self, flags: &[&str], yaml: &str) -> String {
        let path = self.home().join("config.pvn.yaml");
        std::fs::write(&path, yaml).expect("a file can be written");
        let path = path.to_str().expect("the path is UTF-8");
        self.ok(&[&["configs", "apply", "--no-prompt"], flags, &[path]].concat())
    }
}
