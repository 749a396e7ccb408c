//! The daemon `pvn-scheduler`. `daemon` builds the parts; see ARCHITECTURE.md for who may import
//! whom.

pub mod belongs;
pub mod blobs;
mod blocking;
pub mod clock;
pub mod compile;
pub mod crash;
pub mod daemon;
pub mod delivery;
pub mod dev;
pub mod driver;
pub mod handles;
pub mod http;
mod identity;
pub mod key;
mod local_root;
mod names;
pub mod notifications;
pub mod offline;
mod paths;
pub mod perform;
mod private;
pub mod program;
mod removal;
pub mod retention;
mod room;
pub mod runner;
pub mod secrets;
pub mod settings;
pub mod signals;
mod spools;
pub mod store;
