//! What terraform says on standard error -> what of it is of terraform itself, and not of a
//! provisioner, a provider or a program that one of them ran: those quote whatever they like, the
//! errors of another run of terraform too. Pure. Called by `terraform`.
//!
//! Errors that are of no place in the configuration stand first, whatever came first (`Sort` of
//! terraform's `tfdiags`), so what is its own ends with the first that is of somebody else. Behind
//! that nothing can be told apart: with `-no-color` there is no frame, and a quoted error begins
//! its line as one of its own does.

use schema::shown;

/// How the headline of an error begins. Seen with terraform 1.11.4 and tofu 1.12.6.
pub(super) const ERROR: &str = "Error: ";

/// How one begins of what is no error.
const WARNING: &str = "Warning: ";

/// How the headlines of errors end whose text is what a program printed.
const OF_A_PROGRAM: &str = " provisioner error";

/// How a line begins that says whose an error is: the address of a resource or a provider.
const WITH: &str = "  with ";

/// How one begins that says where in the configuration it is, and behind what it says in which
/// block; terraform's own, with the backend, is one of them.
const ON: &str = "  on ";
const WITHIN: &str = ", in ";
const OWN_BLOCK: &str = "terraform";

/// What terraform draws around an error where it may use colours.
const FRAME: [char; 3] = ['│', '╷', '╵'];

/// The errors that are terraform's own, up to the first that is not, without frames and warnings.
/// Empty where there are none.
pub(super) fn own_errors(said: &str) -> String {
    let said = shown::seen(said);
    let lines: Vec<&str> = said.lines().map(unframed).collect();
    let mut own = String::new();
    let mut is_in_error = false;
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with(ERROR) {
            if is_of_others(line, &lines[at + 1..]) {
                break;
            }
            is_in_error = true;
        } else if line.starts_with(WARNING) {
            is_in_error = false;
        }
        if is_in_error {
            own.push_str(line);
            own.push('\n');
        }
    }
    own
}

/// A line without what is drawn in front of it.
fn unframed(line: &str) -> &str {
    match line.strip_prefix(FRAME) {
        Some(rest) => rest.strip_prefix(' ').unwrap_or(rest),
        None => line,
    }
}

/// Whether an error is of a part of the configuration that others carry out.
fn is_of_others(headline: &str, body: &[&str]) -> bool {
    let place = body.iter().find(|line| !line.trim().is_empty());
    let is_elsewhere = |line: &str| {
        let block = line.starts_with(ON).then(|| line.split_once(WITHIN)).flatten();
        block.is_some_and(|(_, block)| !block.starts_with(OWN_BLOCK))
    };
    headline.trim_end().ends_with(OF_A_PROGRAM)
        || place.is_some_and(|line| line.starts_with(WITH) || is_elsewhere(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An inner run of terraform, as a provisioner prints it.
    const INNER: &str = "\nError: Saved plan is stale\n\nThe given plan file can no longer be \
                         applied\n";

    fn check(said: &str, own: &str) {
        assert_eq!(own_errors(said), own, "{said}");
        // With a frame around each, and in colours.
        let framed: Vec<String> = said.lines().map(|line| format!("│ {line}")).collect();
        let framed = framed.join("\n").replace("Error: ", "\u{1b}[31mError: \u{1b}[0m");
        assert_eq!(own_errors(&format!("╷\n{framed}\n╵\n")).trim_end(), own.trim_end(), "{framed}");
    }

    #[test]
    fn what_a_program_printed_is_not_terraforms() {
        let with = "  with terraform_data.b,\n  on main.tf line 2, in resource \"terraform_data\" \
                    \"b\":\n   2:   provisioner \"local-exec\" {\n";
        let run = format!("Error running command 'x': exit status 1. Output: inner\n{INNER}");
        check(&format!("\nError: local-exec provisioner error\n\n{with}\n{run}"), "");
        // Without an address, as before 0.15.
        let on = "  on main.tf line 2, in resource \"a\" \"b\":\n   2: resource \"a\" \"b\" {\n";
        check(&format!("Error: it failed\n\n{on}\n{INNER}"), "");
        check(&format!("Error: remote-exec provisioner error\n\n{run}"), "");
        check(&format!("Error: External Program Failed\n\n{with}\n{INNER}"), "");
        let by_plan = format!("Error: Plan failed\n\n  with provider[\"r/a/b\"],\n{INNER}");
        check(&by_plan, "");
    }

    #[test]
    fn what_is_terraforms_own_is_kept_up_to_the_first_that_is_not() {
        let saved = "Error: Failed to save state\n\nError saving state: full\n\n";
        let persisted = "Error: Failed to persist state to backend\n\nIt is in a file.\n\n";
        let provisioner = format!("Error: local-exec provisioner error\n\n{INNER}");
        check(&format!("{saved}{persisted}{provisioner}"), &format!("{saved}{persisted}"));
        check(&format!("Warning: Old\n\nIt is.\n\n{saved}"), saved);
        let backend = "Error: error configuring S3 Backend\n\n  on main.tf line 2, in \
                       terraform:\n   2:   backend \"s3\" {\n\nno credentials\n";
        check(backend, backend);
        check("panic: it\n\ngoroutine 1\n", "");
        check("", "");
        check("it says Error: Saved plan is stale\n  Error: Saved plan is stale\n", "");
    }
}
