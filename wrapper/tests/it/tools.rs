//! The tools that the wrapper drives itself, with the real programs.

mod aws_ecs;
mod aws_ecs_server;
