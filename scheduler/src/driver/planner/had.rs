//! What a channel had before what it pursues now, and what it has, from the releases that went to
//! it. Pure. Called by `back` and `kept`.
//!
//! What was converged lies on a stack. A release that goes back takes off whatever came after the
//! version to which it goes, whether or not it arrives there: somebody has left that, and going
//! back never leads forward to it. One that somebody rejected took nothing back.

use std::collections::BTreeSet;

use schema::id::ReleaseId;

use crate::store::Went;

impl Went {
    /// Whether it took anything back: what somebody rejected did not, unless it had arrived before
    /// that.
    fn took_back(&self) -> bool {
        !self.refused || self.converged
    }
}

/// The release to which the channel goes back from `pursued`. `history`: in the order of their
/// numbers, without those that are not kept any more.
pub(super) fn before(history: &[Went], pursued: ReleaseId) -> Option<&Went> {
    let mut had: Vec<&Went> = Vec::new();
    for went in history {
        if let Some(target) = went.back_to.filter(|_| went.took_back()) {
            // One that is not kept any more is older than all that are.
            let number = history
                .iter()
                .find(|earlier| earlier.id == target)
                .map_or(0, |earlier| earlier.number);
            match had.iter().position(|earlier| earlier.version == went.version) {
                Some(at) => had.truncate(at + 1),
                None => had.retain(|earlier| earlier.number < number),
            }
        }
        if went.converged && had.last().is_none_or(|last| last.version != went.version) {
            had.push(went);
        }
        if went.id == pursued {
            break;
        }
    }
    let now = history.iter().find(|went| went.id == pursued)?;
    had.into_iter().rev().find(|earlier| earlier.version != now.version)
}

/// The rollback that arrived in the channel and is what it pursues, and what that took back there.
pub(super) fn went_back(history: &[Went], pursued: ReleaseId) -> Option<(&Went, &Went)> {
    let now = history
        .iter()
        .find(|went| went.id == pursued)
        .filter(|now| now.back_to.is_some() && now.converged)?;
    let left = history.iter().rfind(|went| {
        went.number < now.number && went.back_to.is_none() && went.version != now.version
    })?;
    Some((now, left))
}

/// What the channel was last converged at, where it was asked to go back since and never arrived,
/// and `before` leads elsewhere: nobody knows whether that rollback was meant, or is what is to be
/// undone.
pub(super) fn passed_over(history: &[Went], pursued: ReleaseId) -> Option<&Went> {
    let now = history
        .iter()
        .find(|went| went.id == pursued)
        .filter(|now| now.back_to.is_some() && !now.converged && now.took_back())?;
    let last = history
        .iter()
        .rfind(|went| went.converged && went.number < now.number)
        .filter(|last| last.version != now.version)?;
    before(history, pursued).is_none_or(|earlier| earlier.version != last.version).then_some(last)
}

/// The release whose values the channel has: of those that began there (`begun`) the last one, but
/// for what somebody took back since, arrived or not; where nothing else began, what it was to go
/// back to last. A rollback that somebody rejected took nothing back.
pub(super) fn has<'a>(history: &'a [Went], begun: &BTreeSet<ReleaseId>) -> Option<&'a Went> {
    let first = |version: &str| {
        history.iter().find(|went| went.version == version).map_or(0, |went| went.number)
    };
    let (mut had, mut goes_to): (Vec<&Went>, _) = (Vec::new(), None);
    for went in history {
        if let Some(target) = went.back_to.filter(|_| went.took_back() || begun.contains(&went.id))
        {
            // One that is not kept any more is older than all that are.
            let number = if history.iter().any(|earlier| earlier.id == target) {
                first(&went.version)
            } else {
                0
            };
            had.retain(|earlier| first(&earlier.version) <= number);
            goes_to = Some(went);
        }
        if begun.contains(&went.id) {
            had.push(went);
        }
    }
    had.pop().or(goes_to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(number: u64) -> ReleaseId {
        ReleaseId::derive(&[&number.to_le_bytes()])
    }

    #[track_caller]
    fn check(story: &str, expected: Option<u64>) {
        let history = told(story);
        let found = before(&history, history.last().unwrap().id).map(|went| went.number);
        assert_eq!(found, expected, "{story}");
    }

    #[track_caller]
    fn check_passed_over(story: &str, expected: Option<u64>) {
        let history = told(story);
        let found = passed_over(&history, history.last().unwrap().id).map(|went| went.number);
        assert_eq!(found, expected, "{story}");
    }

    /// `N` a release that converged, `N!` one that did not, `N?` one that somebody rejected, `N+?`
    /// one that converged and of which somebody rejected something later; `N<M` one that went
    /// back to release M.
    fn told(story: &str) -> Vec<Went> {
        let mut history: Vec<Went> = Vec::new();
        for word in story.split_whitespace() {
            let plain = word.trim_end_matches(['!', '?', '+']);
            let (converged, refused) = (plain == word || word.ends_with("+?"), word.ends_with('?'));
            let (number, to) = plain
                .split_once('<')
                .map_or((plain, None), |(number, to)| (number, Some(to.parse::<u64>().unwrap())));
            let number = number.parse().unwrap();
            let of = to.and_then(|to| {
                history.iter().find(|went| went.id == release(to)).map(|went| went.version.clone())
            });
            let version = of.unwrap_or_else(|| format!("web-{}", to.unwrap_or(number)));
            history.push(Went {
                id: release(number),
                number,
                version,
                converged,
                refused,
                back_to: to.map(release),
            });
        }
        history
    }

    #[test]
    fn what_was_there_before_a_rollback_that_never_arrived_is_named() {
        // To what never converged here, by a slip.
        check_passed_over("1 2! 3 4 5 6<2!", Some(5));
        check_passed_over("1 3 4 6<1!", Some(4));
        check_passed_over("1 2 3<1!", Some(2));
        // It arrived, is none, or leads to what is there.
        check_passed_over("1 2 3<1", None);
        check_passed_over("1 2! 3 4<2", None);
        check_passed_over("1 2 3!", None);
        check_passed_over("1 2 3<1! 4!", None);
        check_passed_over("1 2 3<1 4<2!", None);
        check_passed_over("1 2! 3<1!", None);
        check_passed_over("1! 2<1!", None);
    }

    /// What began is what converged; `expected` is the number of the release whose values the
    /// channel has.
    #[track_caller]
    fn check_has(story: &str, expected: Option<u64>) {
        let history = told(story);
        let begun = history.iter().filter(|went| went.converged).map(|went| went.id).collect();
        assert_eq!(has(&history, &begun).map(|went| went.number), expected, "{story}");
    }

    #[test]
    fn a_channel_has_what_began_there_last_and_was_not_taken_back_since() {
        check_has("", None);
        check_has("1!", None);
        check_has("1 2", Some(2));
        check_has("1 2!", Some(1));
        check_has("1 2 3<1", Some(3));
        // The way back was not gone yet, and 2 is left all the same.
        check_has("1 2 3<1!", Some(1));
        check_has("1 2 3<1! 4!", Some(1));
        check_has("1! 2 3<1!", Some(3));
        check_has("1! 2 3<1! 4!", Some(3));
        check_has("1! 2! 3!", None);
        check_has("1 2 3 4<2! 5<1!", Some(1));
        // Somebody wants to stay.
        check_has("1 2 3<1?", Some(2));
        check_has("1! 2 3<1?", Some(2));
        check_has("1 2 3<1? 4!", Some(2));
        check_has("1 2 3<1? 4 5<2!", Some(2));
        check_has("1 2 3<1? 4<1!", Some(1));
        // Forward by name, which did not arrive.
        check_has("1 2 3<1 4<2!", Some(3));
        check_has("1 2 3<1 4<2! 5<1!", Some(3));
        // What it went back to is not kept any more.
        check_has("2 3<1!", Some(3));
    }

    #[test]
    fn going_back_never_leads_forward_to_what_was_left() {
        check("1", None);
        check("1 2", Some(1));
        check("1 2!", Some(1));
        check("1! 2", None);
        check("1 2 3", Some(2));
        check("1 2 3!", Some(2));
        check("1 2! 3", Some(1));
        check("1 2 3<1", None);
        check("1 2 3<1!", None);
        check("1 2 3<1! 4!", Some(1));
        check("1 2 3<1! 4", Some(1));
        check("1 2 3<1 4", Some(1));
        check("1 2 3 4<2 5!", Some(2));
        check("1 2 3 4<2", Some(1));
        check("1 2 3 4<2 5<1", None);
        // Forward by name, and back from there.
        check("1 2 3<1 4<2", Some(1));
        check("1 2 3<1 4<2 5", Some(4));
        // Refused: it is where it was, also when the next one is.
        check("1 2 3<1?", Some(2));
        check("1 2 3<1? 4!", Some(2));
        check("1 2 3<1? 4?", Some(2));
        check("1 2 3<1? 4 5<1", None);
        check("1 2 3<1+?", None);
        check("1 2 3<1+? 4!", Some(1));
        // To one that never converged here.
        check("1 2! 3 4<2", Some(1));
        check("1 2! 3 4<2!", Some(1));
        // Where what it went back to is not kept any more.
        check("2 3<1", None);
        check("2 3<1 4!", Some(3));
        check("2 3<1! 4!", None);
    }
}
