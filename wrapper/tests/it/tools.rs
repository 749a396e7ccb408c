//! The tools that the wrapper drives, each the real one against a small server that stands for its
//! cloud.

mod google_cloud_run;
mod google_cloud_run_server;
