//! That what a pass asks of each group is answered by an index of that group.

use super::*;
use crate::secrets::Sealer;

#[tokio::test]
async fn the_newest_end_of_a_group_is_found_without_the_jobs_of_others() {
    let directory = tempfile::tempdir().unwrap();
    let store =
        Store::open(&directory.path().join("pvn.db"), Sealer::with_key([7; 32])).await.unwrap();
    for (query, index) in
        [(NEWEST_FAILED, "jobs_failed"), (NEWEST_SUCCEEDED, "jobs_by_instance_and_kind")]
    {
        let plan = sqlx::query(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {query}")))
            .bind("ins")
            .bind("fetch")
            .bind(LARGEST)
            .fetch_all(&store.read)
            .await
            .unwrap();
        let lines: Vec<String> = plan.iter().map(|row| row.get("detail")).collect();
        let wanted = format!("USING INDEX {index} (instance_id=? AND kind=? AND seq<?)");
        assert!(lines.len() == 1 && lines[0].ends_with(&wanted), "{lines:?}");
    }
}
