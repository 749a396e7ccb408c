//! Ids by their first digits, as people read and type them.

use std::str::FromStr;

use schema::id::{JobId, ReleaseId};
use sqlx::QueryBuilder;

use super::{Db, Result, Store};

/// Most ids that begin alike and are told: enough for a person to choose from.
pub const ALIKE_LIMIT: i64 = 5;

impl Store {
    /// The jobs whose ids begin so, `job-` and at least one digit; at most [`ALIKE_LIMIT`] and one
    /// more, which says that there are more.
    pub async fn jobs_beginning(&self, prefix: &str) -> Result<Vec<JobId>> {
        self.beginning("jobs", prefix).await
    }

    /// The releases whose ids begin so, in the same way.
    pub async fn releases_beginning(&self, prefix: &str) -> Result<Vec<ReleaseId>> {
        self.beginning("releases", prefix).await
    }

    /// `table` is one of ours. An id that cannot be read is none that somebody means.
    async fn beginning<T: FromStr>(&self, table: &'static str, prefix: &str) -> Result<Vec<T>> {
        let mut query = QueryBuilder::<Db>::new("SELECT id FROM ");
        // `g` comes after every digit, so the index of ids finds them at once.
        query.push(table).push(" WHERE id >= ").push_bind(prefix.to_owned());
        query.push(" AND id < ").push_bind(format!("{prefix}g"));
        query.push(" ORDER BY id LIMIT ").push_bind(ALIKE_LIMIT + 1);
        let ids: Vec<String> = query.build_query_scalar().fetch_all(&self.lists).await?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }
}
