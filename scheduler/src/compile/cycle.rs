//! Finds a circle among channels that wait for each other. Called by `channels`.

use std::collections::{BTreeMap, BTreeSet};

/// The first circle that there is, in the order in which each waits for the next, its first member
/// repeated at the end. Nodes that are only pointed at count as waiting for nothing. No recursion:
/// a chain may be as long as a config file.
pub(super) fn find<N: Ord + Clone>(waits_for: &BTreeMap<N, Vec<N>>) -> Option<Vec<N>> {
    let mut done: BTreeSet<&N> = BTreeSet::new();
    for start in waits_for.keys() {
        // The path from `start`, each with the number of its edges already followed.
        let mut path: Vec<(&N, usize)> = vec![(start, 0)];
        let mut on_path: BTreeSet<&N> = [start].into();
        while let Some((node, followed)) = path.last_mut() {
            let next = waits_for.get(*node).and_then(|nodes| nodes.get(*followed));
            *followed += 1;
            match next {
                Some(next) if on_path.contains(next) => {
                    let mut circle: Vec<N> = path
                        .iter()
                        .map(|(node, _)| *node)
                        .skip_while(|node| *node != next)
                        .cloned()
                        .collect();
                    circle.push(next.clone());
                    return Some(circle);
                }
                Some(next) if !done.contains(next) => {
                    path.push((next, 0));
                    on_path.insert(next);
                }
                Some(_) => {}
                None => {
                    on_path.remove(*node);
                    done.insert(*node);
                    path.pop();
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Edges as `a>b b>c`.
    fn check(edges: &str, expected: Option<&str>) {
        let mut waits_for: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (from, to) in edges.split_whitespace().map(|edge| edge.split_once('>').unwrap()) {
            waits_for.entry(from.to_owned()).or_default().push(to.to_owned());
        }
        assert_eq!(find(&waits_for).map(|circle| circle.join(" ")).as_deref(), expected, "{edges}");
    }

    #[test]
    fn a_circle_is_named_in_order() {
        check("", None);
        check("a>b b>c a>c", None);
        check("a>a", Some("a a"));
        check("a>b b>a", Some("a b a"));
        check("a>b b>c c>d d>b", Some("b c d b"));
        check("x>y a>b a>c c>a", Some("a c a"));
    }

    #[test]
    fn a_long_chain_does_not_overflow() {
        let waits_for: BTreeMap<u32, Vec<u32>> = (0..200_000).map(|n| (n, vec![n + 1])).collect();
        assert_eq!(find(&waits_for), None);
    }
}
