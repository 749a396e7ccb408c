//! The pages of whoever is not in yet, or was refused.

use askama::Template;

use crate::frame::Frame;
use crate::{Rendered, render};

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInView<'a> {
    frame: &'a Frame,
    refused: Option<&'a str>,
    to: &'a str,
    hours: u64,
}

/// The form in which a token signs in. `to`: the path to go on to; `refused`: why the last try
/// failed; `hours`: how long a session lasts.
///
/// # Errors
/// Never, as long as the template is sound.
pub fn sign_in(frame: &Frame, refused: Option<&str>, to: &str, hours: u64) -> Rendered {
    render(&SignInView { frame, refused, to, hours })
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemView<'a> {
    frame: &'a Frame,
    title: &'a str,
    detail: &'a str,
    problems: &'a [String],
    back: &'a str,
}

/// Why something was refused or is not there, and what to do next. `back`: where the reader was.
///
/// # Errors
/// Never, as long as the template is sound.
pub fn problem(
    frame: &Frame,
    title: &str,
    detail: &str,
    problems: &[String],
    back: &str,
) -> Rendered {
    render(&ProblemView { frame, title, detail, problems, back })
}
