//! Names ordered by how near they are to one that does not exist, for error messages.

use schema::check::nearest_first;

/// Most names that a message lists.
const SHOWN: usize = 8;

/// Advice that names what does exist, nearest first: "the channels are `a`, `b`". `what` is a
/// plural.
pub(super) fn help<'a>(
    name: &str,
    what: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> String {
    let near = nearest_first(name, candidates);
    let list: Vec<String> = near.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    match near.len() {
        0 => format!("there are no {what}"),
        count if count <= SHOWN => format!("the {what} are {}", list.join(", ")),
        count => format!("the {what} are {} and {} more", list.join(", "), count - SHOWN),
    }
}
