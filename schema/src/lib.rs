//! The words that all programs of pvn speak: names and ids, config documents, structured output, reports and API
//! bodies. Pure: no IO, no clock, no randomness. Imported by every other crate; imports none of ours.

pub mod api;
pub mod check;
pub mod config;
pub mod diagnostic;
pub mod id;
mod json_schema;
pub mod mask;
pub mod output;
pub mod report;
pub mod schedule;
pub mod schemas;
pub mod selector;
pub mod shown;
pub mod spool;
pub mod status;
pub mod template;
pub mod time;
pub mod wire;
pub mod yaml;
