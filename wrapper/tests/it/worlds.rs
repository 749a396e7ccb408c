//! Worlds that are not ours: whoever reads our output slowly or not at all, whoever answers in the scheduler's place, jobs that
//! share a directory.

mod answers;
mod readers;
mod shared;
