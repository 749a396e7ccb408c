//! The append-only log that explain, the timeline and the audit read.

use schema::api::LogEntry;
use schema::id::{ApplicationName, ChannelName, ServiceName};
use schema::time::Timestamp;
use sqlx::QueryBuilder;

use super::row::{count, get, instant, json, named, pieces, readable, to_json, word, word_or_null};
use super::{Connection, Db, PageRequest, Result, Row, Store};

/// Which entries are wanted; `None` means any.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    /// Of this application.
    pub application: Option<ApplicationName>,
    /// Of this service.
    pub service: Option<ServiceName>,
    /// Of this channel.
    pub channel: Option<ChannelName>,
    /// Of this kind, or of the kinds that start with it and a dot: `approval`.
    pub kind: Option<String>,
    /// Only what people did: the audit.
    pub audit: bool,
    /// Only later than this number.
    pub after: Option<u64>,
}

fn read(row: &Row) -> Result<LogEntry> {
    named("events", &["seq"], row, read_columns(row))
}

fn read_columns(row: &Row) -> Result<LogEntry> {
    Ok(LogEntry {
        seq: count(row, "seq")?,
        at: instant(row, "at")?,
        kind: word(row, "kind")?,
        actor: get(row, "actor")?,
        origin: get(row, "origin")?,
        application: word_or_null(row, "application")?,
        service: word_or_null(row, "service")?,
        channel: word_or_null(row, "channel")?,
        message: get(row, "message")?,
        data: json(row, "data")?,
    })
}

fn narrow(query: &mut QueryBuilder<Db>, filter: &EventFilter) {
    query.push(" WHERE 1 = 1");
    if let Some(application) = &filter.application {
        query.push(" AND application = ").push_bind(application.to_string());
    }
    if let Some(service) = &filter.service {
        query.push(" AND service = ").push_bind(service.to_string());
    }
    if let Some(channel) = &filter.channel {
        query.push(" AND channel = ").push_bind(channel.to_string());
    }
    if let Some(kind) = &filter.kind {
        // `/` is the character after `.`, so this is every kind that starts with `kind.`.
        query.push(" AND (kind = ").push_bind(kind.clone());
        query
            .push(" OR (kind > ")
            .push_bind(format!("{kind}."))
            .push(" AND kind < ")
            .push_bind(format!("{kind}/"))
            .push("))");
    }
    if filter.audit {
        query.push(" AND actor IS NOT NULL");
    }
    if let Some(after) = filter.after {
        query.push(" AND seq > ").push_bind(after.cast_signed());
    }
}

impl Store {
    /// Entries, newest first; counted up to [`COUNT_LIMIT`](super::COUNT_LIMIT).
    pub async fn events(
        &self,
        filter: &EventFilter,
        page: &PageRequest,
    ) -> Result<schema::api::Page<LogEntry>> {
        self.newest_first("events", page, |query| narrow(query, filter), read).await
    }

    /// Entries later than `seq`, oldest first, at most `limit`: what a stream that was cut off has
    /// missed.
    pub async fn events_after(
        &self,
        seq: u64,
        filter: &EventFilter,
        limit: u32,
    ) -> Result<Vec<LogEntry>> {
        let mut query = QueryBuilder::<Db>::new("SELECT * FROM events");
        narrow(&mut query, &EventFilter { after: Some(seq), ..filter.clone() });
        query.push(" ORDER BY seq LIMIT ").push_bind(i64::from(limit));
        Ok(readable(query.build().fetch_all(&self.lists).await?, read)?.0)
    }
}

pub(super) async fn insert(connection: &mut Connection, entries: &[LogEntry]) -> Result<()> {
    for piece in pieces(entries) {
        QueryBuilder::<Db>::new(
            "INSERT INTO events (seq, at, kind, actor, origin, application, service, channel, \
             message, data) ",
        )
        .push_values(piece, |mut row, entry| {
            row.push_bind(entry.seq.cast_signed())
                .push_bind(Timestamp::as_millis(entry.at))
                .push_bind(entry.kind.clone())
                .push_bind(entry.actor.clone())
                .push_bind(entry.origin.clone())
                .push_bind(entry.application.as_ref().map(ToString::to_string))
                .push_bind(entry.service.as_ref().map(ToString::to_string))
                .push_bind(entry.channel.as_ref().map(ToString::to_string))
                .push_bind(entry.message.clone())
                .push_bind(to_json(&entry.data));
        })
        .build()
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}
