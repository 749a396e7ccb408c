//! The real programs together. One subject a file.

mod faults;
mod house;
mod restart;
mod terraform;
