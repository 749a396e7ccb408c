//! The pages of the database's file: given back to the disk, written anew, brought in from the log.

use super::{Db, Result, Store};

impl Store {
    /// Gives at most this many free pages of the database back to the disk; how many there were. A
    /// database that an older pvn made keeps them for itself, until [`Store::compact`].
    pub async fn give_back(&self, pages: u32) -> Result<u64> {
        let free: i64 = sqlx::query_scalar("PRAGMA freelist_count").fetch_one(&self.read).await?;
        if free > 0 {
            let mut writer = self.write.acquire().await?;
            // Each row that it returns is a page that was given back, so they have to be read.
            sqlx::query(sqlx::AssertSqlSafe(format!("PRAGMA incremental_vacuum({pages})")))
                .fetch_all(&mut *writer)
                .await?;
        }
        Ok(free.unsigned_abs())
    }

    /// Writes the whole database anew, without what is free in it, and such that free pages are
    /// given back from then on. Needs as much room as the database has, and nobody else in it.
    pub async fn compact(&self) -> Result<()> {
        let mut writer = self.write.acquire().await?;
        for statement in
            ["PRAGMA auto_vacuum = INCREMENTAL", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"]
        {
            sqlx::query(statement).fetch_all(&mut *writer).await?;
        }
        Ok(())
    }

    /// Brings the log into the database and cuts it off.
    pub async fn checkpoint(&self) -> Result<()> {
        let mut writer = self.write.acquire().await?;
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").fetch_all(&mut *writer).await?;
        Ok(())
    }

    /// Whether free pages are given back.
    pub async fn gives_back(&self) -> Result<bool> {
        /// Source: sqlite.org/pragma.html#pragma_auto_vacuum.
        const INCREMENTAL: i64 = 2;
        Ok(sqlx::query_scalar::<Db, i64>("PRAGMA auto_vacuum").fetch_one(&self.read).await?
            == INCREMENTAL)
    }
}
