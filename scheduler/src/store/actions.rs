//! Actions other than starts that were committed and are not known to be performed.

use engine::action::Action;
use schema::id::InstanceId;
use schema::time::Timestamp;
use sqlx::QueryBuilder;

use super::row::{get, instant, json, named, number, pieces, to_json, word};
use super::{Connection, Db, Result, Row, Store, Unreadable};

/// An action to perform, perhaps again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingAction {
    /// Its number.
    pub id: i64,
    /// The instance that asked for it.
    pub instance: InstanceId,
    /// What to do.
    pub action: Action,
    /// When it was decided.
    pub created_at: Timestamp,
}

impl Store {
    /// What was pending when the last run stopped, oldest first.
    /// Those that cannot be read are told apart.
    pub async fn pending_actions(&self) -> Result<(Vec<PendingAction>, Vec<Unreadable>)> {
        let rows =
            sqlx::query("SELECT * FROM pending_actions ORDER BY id").fetch_all(&self.read).await?;
        Unreadable::apart(&rows, read, |row, why| Unreadable {
            instance: word(row, "instance_id").ok(),
            job: None,
            action: get(row, "id").ok(),
            why,
        })
    }
}

fn read(row: &Row) -> Result<PendingAction> {
    let columns = || {
        Ok(PendingAction {
            id: number(row, "id")?,
            instance: word(row, "instance_id")?,
            action: json(row, "action")?,
            created_at: instant(row, "created_at")?,
        })
    };
    named("pending_actions", &["id"], row, columns())
}

pub(super) async fn insert(connection: &mut Connection, actions: &[PendingAction]) -> Result<()> {
    for piece in pieces(actions) {
        QueryBuilder::<Db>::new(
            "INSERT INTO pending_actions (id, instance_id, action, created_at) ",
        )
        .push_values(piece, |mut row, action| {
            row.push_bind(action.id)
                .push_bind(action.instance.to_string())
                .push_bind(to_json(&action.action))
                .push_bind(action.created_at.as_millis());
        })
        .build()
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

pub(super) async fn delete(connection: &mut Connection, ids: &[i64]) -> Result<()> {
    for piece in pieces(ids) {
        let mut query = QueryBuilder::<Db>::new("DELETE FROM pending_actions WHERE id IN (");
        let mut list = query.separated(", ");
        for id in piece {
            list.push_bind(*id);
        }
        query.push(")");
        query.build().execute(&mut *connection).await?;
    }
    Ok(())
}
