//! The last test program of `cargo test --workspace`: tells how many tests were skipped in this run, and for want of what. Cargo
//! runs the packages by name, and the test programs of one by theirs.

use std::collections::BTreeSet;
use std::io::Write;

use tests::skip;

fn main() {
    // Whoever only wants the names of tests gets none.
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let list = skip::list();
    let text = std::fs::read_to_string(&list).unwrap_or_default();
    let lines: BTreeSet<&str> = text.lines().collect();
    let count = if lines.len() == 1 { "1 test was".to_owned() } else { format!("{} tests were", lines.len()) };
    let told: String = lines.iter().map(|line| format!("{line}\n")).collect();
    // When nobody reads it there is nobody to tell.
    let _ = write!(std::io::stdout(), "\n{told}{count} skipped for want of something\n\n");
    if std::env::var_os("PVN_SKIPPED_LIST").is_none() {
        // One that is not there says the same.
        let _ = std::fs::remove_file(list);
    }
}
