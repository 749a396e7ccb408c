//! The tools that the wrapper drives, by the tools' own programs.

mod pulumi;
mod terraform;
