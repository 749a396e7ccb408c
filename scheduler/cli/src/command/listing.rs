//! A list that filters narrow: that nothing passes them is another thing than that nothing is
//! there, and people are told which of both it is. Called by the commands that list.

use schema::api::Page;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::{Client, Listed};
use crate::console::Console;
use crate::failure::Failure;
use crate::output_name::OutputName;
use crate::table::{Table, one_line};

/// As many as the scheduler counts of jobs and of entries of the log.
const COUNTED: u64 = 10_000;

/// A list of the API, and what people call what is in it.
pub(super) struct FilteredList<'a> {
    /// What follows `/v1/`.
    pub(super) resource: &'static str,
    /// Its entries, as in "no jobs".
    pub(super) what: &'static str,
    /// What one does about it where there are none at all; a part of a sentence.
    pub(super) remedy: Option<&'static str>,
    /// The filters, as the API takes them.
    pub(super) query: &'a [(&'static str, String)],
}

impl FilteredList<'_> {
    /// Asks for it, at most `limit` entries.
    ///
    /// # Errors
    /// What the server says.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        limit: Option<usize>,
        client: &Client,
    ) -> Result<Listed<T>, Failure> {
        client.list(&["v1", self.resource], self.query, limit).await
    }

    /// Prints what came; where that is nothing, why.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub(super) async fn print<T: Serialize + OutputName>(
        &self,
        found: &Listed<T>,
        client: &Client,
        console: &mut Console,
        table: impl FnOnce(&[T]) -> Table,
    ) -> Result<(), Failure> {
        let is_told = found.items.is_empty() && !console.format.is_data();
        let none = if is_told { self.none(client).await } else { String::new() };
        console.print_list(found, &none, table)
    }

    /// Why there is nothing.
    pub(super) async fn none(&self, client: &Client) -> String {
        let what = self.what;
        let remedy = self.remedy.map_or_else(String::new, |remedy| format!("; {remedy}"));
        if self.query.is_empty() {
            return format!("no {what}{remedy}");
        }
        let filters: Vec<String> =
            self.query.iter().map(|(name, value)| format!("{name} {}", one_line(value))).collect();
        let narrowed = format!("no {what} with {}", filters.join(", "));
        // That the number cannot be had is no reason to tell nothing.
        let all = client
            .get::<Page<Value>>(&["v1", self.resource], &[("limit", "1".to_owned())])
            .await
            .map(|page| page.total);
        match all {
            Ok(0) => format!("{narrowed}, nor without that{remedy}"),
            Ok(1) => format!("{narrowed}; without that there is 1"),
            Ok(all) if all >= COUNTED => {
                format!("{narrowed}; without that there are {all} at least")
            }
            Ok(all) => format!("{narrowed}; without that there are {all}"),
            Err(_) => narrowed,
        }
    }
}
