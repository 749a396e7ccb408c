//! `pvnctl configs validate`.

use clap::Args;
use serde_json::json;

use super::Paths;
use crate::console::Console;
use crate::failure::Failure;
use crate::files;

/// What can be typed.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Which files.
    #[command(flatten)]
    paths: Paths,
}

/// Checks the files.
pub(super) fn perform(arguments: &Arguments, console: &mut Console) -> Result<(), Failure> {
    let found = files::validate(&arguments.paths.paths).map_err(Failure::Config)?;
    let warnings = files::warnings(&found);
    console.warn(&warnings)?;
    let names: Vec<_> = found.files.iter().map(|file| &file.path).collect();
    console.print(&json!({"files": names, "valid": true, "warnings": warnings}), |_| {
        format!(
            "{} in order\n",
            if names.len() == 1 {
                "1 file is".to_owned()
            } else {
                format!("{} files are", names.len())
            }
        )
    })
}
