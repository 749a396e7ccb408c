//! The tools that the wrapper drives itself, one file a tool.

mod pulumi;
