//! What a plan counts, as figures beside it.

use schema::shown::seen;

use super::Markup;

/// What plans count, by the word that follows the number; the class has the colour of its lines.
const COUNTED: [(&str, &str); 4] =
    [("to import", ""), ("to add", "add"), ("to change", "chg"), ("to destroy", "del")];

/// The counts that Terraform and OpenTofu print last of a plan, `Plan: 1 to add, 0 to change, 2 to
/// destroy.`; nothing where no line says so. Nothing is decided by it.
pub(crate) fn plan_counts(text: &str) -> Markup {
    let text = seen(text);
    let told = text.lines().rev().find_map(|line| line.trim().strip_prefix("Plan: "));
    let mut html = String::new();
    for part in told.unwrap_or_default().trim_end_matches('.').split(", ") {
        let Some((number, what)) = part.split_once(' ') else { continue };
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let Some((_, class)) = COUNTED.iter().find(|(word, _)| is_number && *word == what) else {
            continue;
        };
        let class = if number == "0" { "faint" } else { class };
        html.push_str(&format!(r#"<span class="{class}"><b>{number}</b> {what}</span>"#));
    }
    if html.is_empty() { Markup(html) } else { Markup(format!(r#"<p class="figures">{html}</p>"#)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_plan_counts_stands_beside_it() {
        let html =
            plan_counts("  + a\n\u{1b}[1mPlan:\u{1b}[0m 12 to add, 0 to change, 3 to destroy.\n");
        assert_eq!(
            html.as_str(),
            "<p class=\"figures\"><span class=\"add\"><b>12</b> to add</span>\
             <span class=\"faint\"><b>0</b> to change</span>\
             <span class=\"del\"><b>3</b> to destroy</span></p>"
        );
    }

    #[test]
    fn what_is_no_count_is_not_made_one() {
        for text in
            ["", "Plan: <b> to add, 1 to <i>", "Plan: -1 to add", "no plan: 1 to add", "Plan:"]
        {
            assert_eq!(plan_counts(text).as_str(), "", "{text}");
        }
    }
}
