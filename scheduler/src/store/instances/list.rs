//! What a list of services is narrowed to, and its order.

use schema::id::ApplicationId;
use schema::status::Status;
use sqlx::QueryBuilder;

use super::super::row::get;
use super::super::{Db, PageRequest, Result, Row, StoreError};

/// Which services are wanted; `None` means any.
#[derive(Debug, Clone, Default)]
pub struct ServiceFilter {
    /// Of this application.
    pub application: Option<ApplicationId>,
    /// With an instance in this status.
    pub status: Option<Status>,
    /// With this in its name.
    pub name: Option<String>,
    /// Of this name or id.
    pub named: Option<String>,
    /// With an instance in the channel of this name; with `status` too, in that status there.
    pub channel: Option<String>,
    /// How they are ordered.
    pub order: ServiceOrder,
}

/// In which order services are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServiceOrder {
    /// By application and name.
    #[default]
    ByName,
    /// Those of which a channel changed last come first.
    ChangedLastFirst,
}

pub(super) fn narrow(query: &mut QueryBuilder<Db>, filter: &ServiceFilter) {
    query.push(" WHERE s.deleted_at IS NULL");
    if let Some(application) = filter.application {
        query.push(" AND s.application_id = ").push_bind(application.to_string());
    }
    if filter.status.is_some() || filter.channel.is_some() {
        query.push(" AND EXISTS (SELECT 1 FROM instances AS i");
        if filter.channel.is_some() {
            query.push(" JOIN channels AS c ON c.id = i.channel_id AND c.deleted_at IS NULL");
        }
        query.push(" WHERE i.service_id = s.id");
        if let Some(status) = filter.status {
            query.push(" AND i.status = ").push_bind(status.as_str());
        }
        if let Some(channel) = &filter.channel {
            query.push(" AND c.name = ").push_bind(channel.clone());
        }
        query.push(")");
    }
    if let Some(name) = &filter.name {
        // Names hold none of the three characters that mean something in a pattern.
        let literal = name.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        query.push(" AND s.name LIKE ").push_bind(format!("%{literal}%")).push(" ESCAPE '\\'");
    }
    if let Some(named) = &filter.named {
        query.push(" AND (s.name = ").push_bind(named.clone());
        query.push(" OR s.id = ").push_bind(named.clone()).push(")");
    }
}

/// Begins after the page's cursor, in this order.
pub(super) fn ordered(
    query: &mut QueryBuilder<Db>,
    order: ServiceOrder,
    page: &PageRequest,
) -> Result<()> {
    let wrong = |cursor: &String| {
        StoreError::Invalid(format!(
            "cursor `{cursor}` is not one that a page of this list gave out"
        ))
    };
    let after = page.cursor.as_ref();
    let after =
        after.map(|cursor| cursor.split_once('/').ok_or_else(|| wrong(cursor))).transpose()?;
    match (order, after) {
        (ServiceOrder::ByName, Some((application, service))) => {
            query.push(" AND (a.name, s.name) > (").push_bind(application.to_owned());
            query.push(", ").push_bind(service.to_owned()).push(")");
        }
        (ServiceOrder::ChangedLastFirst, Some((changed, id))) => {
            let before: i64 = changed.parse().map_err(|_| wrong(&format!("{changed}/{id}")))?;
            query
                .push(
                    " AND (COALESCE((SELECT MAX(i.since) FROM instances AS i WHERE i.service_id = \
                     s.id), 0), s.id) < (",
                )
                .push_bind(before)
                .push(", ")
                .push_bind(id.to_owned())
                .push(")");
        }
        (_, None) => {}
    }
    query.push(match order {
        ServiceOrder::ByName => " ORDER BY a.name, s.name",
        ServiceOrder::ChangedLastFirst => " ORDER BY changed DESC, s.id DESC",
    });
    Ok(())
}

/// Where a page ends that has this row last.
pub(super) fn cursor_of(row: &Row, order: ServiceOrder) -> Result<String> {
    let first = match order {
        ServiceOrder::ByName => get::<String>(row, "application")?,
        ServiceOrder::ChangedLastFirst => get::<i64>(row, "changed")?.to_string(),
    };
    let second: &str = get(row, if order == ServiceOrder::ByName { "name" } else { "id" })?;
    Ok(format!("{first}/{second}"))
}
