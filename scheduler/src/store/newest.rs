//! Lists of tables that count their rows by `seq`, newest first.

use schema::api::Page;
use sqlx::QueryBuilder;

use super::row::get;
use super::{COUNT_LIMIT, Db, PageRequest, Result, Row, Store};

impl Store {
    /// A page of a table; `narrow` adds its `WHERE`. Counted up to [`COUNT_LIMIT`].
    pub(super) async fn newest_first<T>(
        &self,
        table: &'static str,
        page: &PageRequest,
        narrow: impl Fn(&mut QueryBuilder<Db>),
        read: impl FnMut(&Row) -> Result<T>,
    ) -> Result<Page<T>> {
        let mut query = QueryBuilder::<Db>::new("SELECT COUNT(*) FROM (SELECT 1 FROM ");
        query.push(table);
        narrow(&mut query);
        query.push(" LIMIT ").push_bind(COUNT_LIMIT).push(")");
        let total: i64 = query.build_query_scalar().fetch_one(&self.lists).await?;
        let mut query = QueryBuilder::<Db>::new("SELECT * FROM ");
        query.push(table);
        narrow(&mut query);
        if let Some(before) = page.number()? {
            query.push(" AND seq < ").push_bind(before);
        }
        query.push(" ORDER BY seq DESC LIMIT ").push_bind(page.rows());
        let rows = query.build().fetch_all(&self.lists).await?;
        page.page(rows, total, |row| Ok(get::<i64>(row, "seq")?.to_string()), read)
    }
}
