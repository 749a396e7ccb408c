//! The real programs together. One subject a file.

mod house;
mod restart;
mod terraform;
