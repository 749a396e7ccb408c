//! That lists of jobs are answered by an index.

use sqlx::Row as _;

use super::*;
use crate::secrets::Sealer;

/// How SQLite means to answer.
async fn plan(store: &Store, statement: impl FnOnce(&mut QueryBuilder<Db>)) -> String {
    let mut query = QueryBuilder::<Db>::new("EXPLAIN QUERY PLAN ");
    statement(&mut query);
    let rows = query.build().fetch_all(&store.lists).await.unwrap();
    rows.iter().map(|row| format!("{}\n", row.get::<String, _>("detail"))).collect()
}

#[tokio::test]
async fn every_list_of_jobs_is_read_from_an_index_in_its_order() {
    let directory = tempfile::tempdir().unwrap();
    let store =
        Store::open(&directory.path().join("pvn.db"), Sealer::with_key([7; 32])).await.unwrap();
    let (application, service, channel) = (
        ApplicationId::from_bytes([1; 16]),
        ServiceId::from_bytes([2; 16]),
        ChannelId::from_bytes([3; 16]),
    );
    let scopes = [
        (None, None, None),
        (Some(application), None, None),
        (Some(application), None, Some(channel)),
        (Some(application), Some(service), None),
        (Some(application), Some(service), Some(channel)),
    ];
    for (application, service, channel) in scopes {
        for kind in [None, Some(JobKind::Fetch)] {
            for status in [None, Some(JobStatus::Failed)] {
                let filter = JobFilter { application, service, channel, kind, status };
                for before in [None, Some(7)] {
                    let plan = plan(&store, |query| push_page(query, &filter, before, 101)).await;
                    for line in plan.lines().filter(|line| {
                        line.starts_with("SEARCH jobs") || line.starts_with("SCAN jobs")
                    }) {
                        let whole =
                            filter.application.is_none() && kind.is_none() && status.is_none();
                        let in_order = line.starts_with("SEARCH jobs USING")
                            || (whole && line.contains("USING COVERING INDEX"));
                        assert!(in_order && line.contains("INDEX"), "{filter:?}: {plan}");
                    }
                    // Pages are sorted together; a part that was sorted would be read to its end.
                    let sorted = plan.lines().zip(plan.lines().skip(1)).any(|(read, then)| {
                        (read.starts_with("SEARCH jobs") || read.starts_with("SCAN jobs"))
                            && then.contains("TEMP B-TREE")
                    });
                    assert!(!sorted, "{filter:?}: {plan}");
                    assert!(
                        !plan.contains("SCAN j\n")
                            && !plan.contains("SCAN s")
                            && !plan.contains("SCAN a"),
                        "{filter:?}: {plan}"
                    );
                }
                let plan = plan(&store, |query| push_count(query, &filter)).await;
                assert!(plan.contains("USING"), "{filter:?}: {plan}");
            }
        }
    }
}
