//! Worlds that are not ours: whoever reads our output slowly or not at all, whoever answers in the
//! scheduler's place, jobs that share a directory, and places where next to nothing is there.

mod answers;
mod bare;
mod locks;
mod readers;
mod shared;
