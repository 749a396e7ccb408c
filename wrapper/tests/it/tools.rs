//! The tools that the wrapper drives, by the tools' own programs.

mod aws_ecs;
mod aws_ecs_server;
mod google_cloud_run;
mod google_cloud_run_server;
mod pulumi;
mod terraform;
