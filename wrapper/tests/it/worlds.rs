//! Worlds that are not ours: whoever reads our output slowly or not at all, whoever answers in the scheduler's place.

mod answers;
mod readers;
