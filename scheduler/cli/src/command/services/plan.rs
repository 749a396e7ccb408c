//! A plan as people see it before they say yes: what comes is green, what goes is red, what changes
//! is yellow, and how many lines say each. Read is only how a line begins, which is the same for
//! Terraform, OpenTofu, Pulumi, Helm and `diff -u`; nothing is decided by it.

use crate::table::Tone;

/// What a line of a plan does, by how it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlanLine {
    Adds,
    Removes,
    Changes,
    Tells,
}

impl PlanLine {
    fn of(line: &str) -> Self {
        let line = line.trim_start();
        // The names of files above a diff, and rulers.
        if ["---", "+++", "===", "~~~"].iter().any(|other| line.starts_with(other)) {
            return Self::Tells;
        }
        let sign = line.split(' ').next().unwrap_or_default();
        match sign {
            "-/+" | "+/-" | "+-" | "~" => Self::Changes,
            // A list of Markdown or YAML begins so too; it tells of what is there then.
            "+" => Self::Adds,
            "-" => Self::Removes,
            _ if sign.len() > 1 && sign.starts_with('+') => Self::Adds,
            _ if sign.len() > 1 && sign.starts_with('-') => Self::Removes,
            _ if sign.len() > 1 && sign.starts_with('~') => Self::Changes,
            _ => Self::Tells,
        }
    }

    const fn tone(self) -> Tone {
        match self {
            Self::Adds => Tone::Good,
            Self::Removes => Tone::Bad,
            Self::Changes => Tone::Wait,
            Self::Tells => Tone::Plain,
        }
    }
}

/// The plan, each line in its colour.
pub(super) fn coloured(plan: &str, colour: bool) -> String {
    if !colour {
        return plan.to_owned();
    }
    let painted = plan.split('\n').map(|line| {
        let style = PlanLine::of(line).tone().style();
        format!("{style}{line}{style:#}")
    });
    painted.collect::<Vec<_>>().join("\n")
}

/// How many lines add, change and remove; `None` where none does.
pub(super) fn counted(plan: &str) -> Option<String> {
    let number =
        |wanted: PlanLine| plan.lines().filter(|line| PlanLine::of(line) == wanted).count();
    let said: Vec<_> = [
        (number(PlanLine::Adds), "+"),
        (number(PlanLine::Changes), "~"),
        (number(PlanLine::Removes), "-"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, sign)| format!("{number} with {sign}"))
    .collect();
    let lines = plan.lines().count();
    (!said.is_empty())
        .then(|| format!("{lines} line{}: {}", if lines == 1 { "" } else { "s" }, said.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "\
Terraform will perform the following actions:

  # bucket.logs will be created
  + resource \"bucket\" \"logs\" {
      + name = \"logs\"
    }
  ~ size = 1 -> 2
-/+ disk
  - old

Plan: 2 to add, 1 to change, 1 to destroy.";

    #[test]
    fn lines_are_counted_by_what_they_do() {
        assert_eq!(counted(PLAN).as_deref(), Some("11 lines: 2 with +, 2 with ~, 1 with -"));
        assert_eq!(
            counted("--- a\n+++ b\n+x\n-y\n z").as_deref(),
            Some("5 lines: 1 with +, 1 with -")
        );
        assert_eq!(counted("nothing to say\n"), None);
    }

    #[test]
    fn colour_is_all_that_is_added() {
        let painted = coloured(PLAN, true);
        assert_eq!(schema::shown::seen(&painted), PLAN);
        assert!(
            painted.contains("\u{1b}[32m  + resource") && painted.contains("\u{1b}[31m  - old")
        );
        assert_eq!(coloured(PLAN, false), PLAN);
    }
}
