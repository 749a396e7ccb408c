//! The real programs together. One subject a file.

mod backup;
mod cluster;
mod cluster_check;
mod cluster_deploy;
mod cluster_example;
mod cluster_faults;
mod cluster_jobs;
mod cluster_outages;
mod cluster_rights;
mod cluster_world;
mod convergence;
mod dev;
mod docs;
mod examples;
mod faults;
mod gates;
mod house;
mod owner;
mod plans;
mod private_files;
mod restart;
mod retention;
mod shapes;
mod terraform;
mod tls;
mod wrapper;
