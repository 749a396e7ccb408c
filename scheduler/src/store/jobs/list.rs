//! The queries of the list of jobs: each reads no more rows than its page has, whatever it is
//! narrowed to.

use schema::id::InstanceId;
use schema::status::{JobKind, JobStatus};
use sqlx::QueryBuilder;

use super::super::{COUNT_LIMIT, Db};
use super::{JOINED, JobFilter, SHOWN};

/// One condition of a list: what it is of, kind, status. An index has all of these before `seq`, so
/// that reading stops after a page.
struct ListCondition {
    scope: Option<(&'static str, String)>,
    kind: Option<JobKind>,
    status: Option<JobStatus>,
}

/// The conditions that together are the filter's: where an index has kind and status before `seq`,
/// one for each of them.
fn parts(filter: &JobFilter) -> Vec<ListCondition> {
    let scope = match (filter.service, filter.channel, filter.application) {
        (Some(service), Some(channel), _) => {
            Some(("instance_id", InstanceId::of(service, channel).to_string()))
        }
        (Some(service), None, _) => Some(("service_id", service.to_string())),
        (None, Some(channel), _) => Some(("channel_id", channel.to_string())),
        (None, None, Some(application)) => Some(("application_id", application.to_string())),
        (None, None, None) => None,
    };
    // Of one service there are as many as its retention keeps; and without any filter the newest
    // are simply the newest.
    let is_plain = match &scope {
        Some((column, _)) => is_of_service(column),
        None => filter.kind.is_none() && filter.status.is_none(),
    };
    if is_plain {
        return vec![ListCondition { scope, kind: filter.kind, status: filter.status }];
    }
    let kinds = JobKind::ALL
        .iter()
        .copied()
        .filter(|kind| filter.kind.is_none_or(|wanted| wanted == *kind));
    let statuses = || {
        JobStatus::ALL
            .iter()
            .copied()
            .filter(|status| filter.status.is_none_or(|wanted| wanted == *status))
    };
    let both = kinds.flat_map(|kind| statuses().map(move |status| (Some(kind), Some(status))));
    both.map(|(kind, status)| ListCondition { scope: scope.clone(), kind, status }).collect()
}

fn is_of_service(column: &str) -> bool {
    matches!(column, "instance_id" | "service_id")
}

/// The numbers of the jobs that a filter wants, newest first, at most `most` of them.
fn push_numbers(query: &mut QueryBuilder<Db>, filter: &JobFilter, before: Option<i64>, most: i64) {
    query.push("SELECT seq FROM (");
    for (index, part) in parts(filter).into_iter().enumerate() {
        query.push(if index == 0 { "SELECT seq FROM (" } else { " UNION ALL SELECT seq FROM (" });
        push_part(query, "SELECT seq", part, before);
        query.push(" ORDER BY seq DESC LIMIT ").push_bind(most).push(")");
    }
    query.push(") ORDER BY seq DESC LIMIT ").push_bind(most);
}

/// How many jobs a filter wants, [`COUNT_LIMIT`] at most.
pub(super) fn push_count(query: &mut QueryBuilder<Db>, filter: &JobFilter) {
    query.push("SELECT COUNT(*) FROM (");
    for (index, part) in parts(filter).into_iter().enumerate() {
        query.push(if index == 0 { "" } else { " UNION ALL " });
        push_part(query, "SELECT 1", part, None);
    }
    query.push(" LIMIT ").push_bind(COUNT_LIMIT).push(")");
}

fn push_part(query: &mut QueryBuilder<Db>, select: &str, part: ListCondition, before: Option<i64>) {
    query.push(select).push(" FROM jobs WHERE 1 = 1");
    if let Some((column, value)) = &part.scope {
        query.push(" AND ").push(*column).push(" = ").push_bind(value.clone());
    }
    // Of one service the index by kind and status is the wrong one: `+` keeps SQLite from it.
    let plain =
        if part.scope.as_ref().is_some_and(|(column, _)| is_of_service(column)) { "+" } else { "" };
    if let Some(kind) = part.kind {
        query.push(" AND ").push(plain).push("kind = ").push_bind(kind.as_str());
    }
    if let Some(status) = part.status {
        query.push(" AND ").push(plain).push("status = ").push_bind(status.as_str());
    }
    if let Some(before) = before {
        query.push(" AND seq < ").push_bind(before);
    }
}

/// A page of a list, as one statement.
pub(super) fn push_page(
    query: &mut QueryBuilder<Db>,
    filter: &JobFilter,
    before: Option<i64>,
    most: i64,
) {
    query.push(SHOWN).push(JOINED).push(" WHERE j.seq IN (");
    push_numbers(query, filter, before, most);
    query.push(") ORDER BY j.seq DESC");
}
