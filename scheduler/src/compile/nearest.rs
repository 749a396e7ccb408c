//! Names ordered by how near they are to one that does not exist, for error messages.

/// The candidates, nearest first; equally near ones by name. Each once.
pub(super) fn sorted<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut near: Vec<_> = candidates.into_iter().map(|candidate| (strsim::osa_distance(name, candidate), candidate)).collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().map(|(_, candidate)| candidate).collect()
}
