//! The tools that the wrapper drives, by the tools' own programs.

mod aws_ecs;
mod google_cloud_run;
mod pulumi;
mod terraform;
