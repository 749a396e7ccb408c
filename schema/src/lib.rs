//! The words that all programs of pvn speak: names and ids, structured output, reports and API
//! bodies; the language of config files is the crate `config`. Pure: no IO, no clock, no
//! randomness. Imported by every other crate; imports none of ours.

pub mod access;
pub mod api;
pub mod cause;
#[cfg(feature = "check")]
pub mod check;
pub mod command_target;
pub mod id;
pub mod log_kind;
pub mod mask;
pub mod notification;
pub mod output;
pub mod report;
pub mod schedule;
pub mod short;
pub mod shown;
pub mod spool;
pub mod status;
pub mod target;
mod text_form;
pub mod time;
pub mod tool_check;
pub mod when;
pub mod wire;
mod words;
