//! Releases of many services -> commits of bounded size. Called by `configs apply --push`, so that
//! thousands of releases hold nobody else up: between two commits the loop takes in what others ask
//! and what jobs tell.
//!
//! What always holds: the configs are in the first commit, all of them; a release is whole in one
//! commit; what fits into one commit is one commit.

use super::super::calls::Plan;

/// Changes of rows in one commit of releases. Below a tenth of a second of writing: about 500
/// services in one channel. One release is never divided, so that of a service in very many
/// channels may be more.
const CHANGES_LIMIT: usize = 2048;

/// The commits in order: `first` with as many of the releases as fit, then the others. Each with
/// how many releases are stored once it is.
pub(super) fn pieces(first: Plan, releases: Vec<Plan>) -> Vec<(Plan, usize)> {
    let mut pieces = vec![(first, 0)];
    for (count, release) in (1..).zip(releases) {
        match pieces.last_mut() {
            Some((last, stored)) if last.changes.len() + release.changes.len() <= CHANGES_LIMIT => {
                last.append(release);
                *stored = count;
            }
            _ => pieces.push((release, count)),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Change;

    fn plan(changes: usize) -> Plan {
        Plan {
            changes: (0..changes).map(|number| Change::Meta("test", number.to_string())).collect(),
            ..Plan::default()
        }
    }

    fn check(first: usize, releases: &[usize], expected: &[(usize, usize)]) {
        let found = pieces(plan(first), releases.iter().map(|changes| plan(*changes)).collect());
        let found: Vec<_> =
            found.iter().map(|(plan, stored)| (plan.changes.len(), *stored)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn few_releases_are_one_commit_with_their_configs() {
        check(3, &[], &[(3, 0)]);
        check(10, &[5, 5], &[(20, 2)]);
    }

    #[test]
    fn many_releases_are_several_commits_and_none_is_divided() {
        check(2040, &[4, 4, 4], &[(2048, 2), (4, 3)]);
        check(0, &[4; 1200], &[(2048, 512), (2048, 1024), (704, 1200)]);
    }

    #[test]
    fn what_cannot_be_divided_is_a_commit_of_its_own() {
        check(4000, &[5, 3000, 5], &[(4000, 0), (5, 1), (3000, 2), (5, 3)]);
    }
}
