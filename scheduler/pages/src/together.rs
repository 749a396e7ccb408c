//! Which bytes of a command's two streams follow each other, so that both can be shown as one: by
//! the order in which the wrapper read them, as far as somebody wrote it down.

use std::collections::VecDeque;

use schema::spool::{Stream, order_pieces};

/// Goes through both streams as one, from where a reader begins.
#[derive(Debug, Clone, Default)]
pub struct StreamMerge {
    /// Pieces of the order that have not been gone through.
    pieces: VecDeque<(Stream, u64)>,
    /// The end of an order that is being written: the beginning of a record.
    rest: Vec<u8>,
    /// Up to which byte of each stream the order was gone through.
    told: [u64; 2],
    /// Up to which byte of each stream was taken.
    taken: [u64; 2],
}

impl StreamMerge {
    /// For whoever has seen both streams up to these bytes.
    pub fn after(taken: [u64; 2]) -> Self {
        Self { taken, ..Self::default() }
    }

    /// More of the order: the bytes that follow those that were learnt before.
    pub fn learn(&mut self, order: &[u8]) {
        self.rest.extend_from_slice(order);
        let Some(last) = self.rest.iter().rposition(|byte| byte & 0x80 == 0) else { return };
        let rest = self.rest.split_off(last + 1);
        self.pieces.extend(order_pieces(&self.rest));
        self.rest = rest;
    }

    /// What comes next, of so many bytes that are there of each stream beyond what was taken, and
    /// how many bytes of it; it counts as taken. `None`: nothing, or nobody knows yet which. With
    /// `at_once` nothing is waited for: what nobody knows is stdout before stderr.
    pub fn take(&mut self, there: [u64; 2], at_once: bool) -> Option<(Stream, u64)> {
        while let Some((stream, length)) = self.pieces.front().copied() {
            let at = stream as usize;
            let end = self.told[at].saturating_add(length);
            if end <= self.taken[at] || (there[at] == 0 && at_once) {
                self.told[at] = end;
                self.pieces.pop_front();
                continue;
            }
            return (there[at] > 0)
                .then(|| self.taking(stream, there[at].min(end - self.taken[at])));
        }
        match there {
            [0, 0] => None,
            [length, 0] => Some(self.taking(Stream::Stdout, length)),
            [0, length] => Some(self.taking(Stream::Stderr, length)),
            [length, _] => at_once.then(|| self.taking(Stream::Stdout, length)),
        }
    }

    fn taking(&mut self, stream: Stream, length: u64) -> (Stream, u64) {
        self.taken[stream as usize] += length;
        (stream, length)
    }
}

#[cfg(test)]
mod tests {
    use schema::spool::order_record;

    use super::*;

    fn order(pieces: &[(Stream, u64)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        pieces.iter().for_each(|(stream, length)| order_record(*stream, *length, &mut bytes));
        bytes
    }

    use Stream::{Stderr, Stdout};

    /// All that is taken of so many bytes.
    fn taken(merge: &mut StreamMerge, mut there: [u64; 2], at_once: bool) -> Vec<(Stream, u64)> {
        let mut all = Vec::new();
        while let Some((stream, length)) = merge.take(there, at_once) {
            there[stream as usize] -= length;
            all.push((stream, length));
        }
        all
    }

    #[test]
    fn pieces_come_as_they_were_read_however_the_order_arrives() {
        let pieces = [(Stdout, 3), (Stderr, 200), (Stdout, 1), (Stderr, 1)];
        let mut whole = StreamMerge::default();
        whole.learn(&order(&pieces));
        assert_eq!(taken(&mut whole, [4, 201], false), pieces);
        let mut bitwise = StreamMerge::default();
        order(&pieces).iter().for_each(|byte| bitwise.learn(&[*byte]));
        assert_eq!(taken(&mut bitwise, [4, 201], false), pieces);
    }

    #[test]
    fn whoever_has_seen_some_goes_on_from_there() {
        let mut merge = StreamMerge::after([2, 150]);
        merge.learn(&order(&[(Stdout, 3), (Stderr, 200), (Stdout, 9)]));
        assert_eq!(taken(&mut merge, [10, 50], false), [(Stdout, 1), (Stderr, 50), (Stdout, 9)]);
    }

    #[test]
    fn what_nobody_knows_waits_only_where_it_could_be_either() {
        let mut merge = StreamMerge::default();
        assert_eq!(taken(&mut merge, [5, 0], false), [(Stdout, 5)], "there is nothing else");
        assert_eq!(taken(&mut merge, [1, 1], false), []);
        // What was taken before the order said so is not taken again.
        merge.learn(&order(&[(Stdout, 5), (Stderr, 1), (Stdout, 1)]));
        assert_eq!(taken(&mut merge, [1, 1], false), [(Stderr, 1), (Stdout, 1)]);
        assert_eq!(taken(&mut merge, [2, 3], true), [(Stdout, 2), (Stderr, 3)]);
    }

    #[test]
    fn nothing_is_lost_and_nothing_hangs_whatever_an_order_says() {
        let mut merge = StreamMerge::default();
        // Of bytes that nobody has: cut, or another job's.
        merge.learn(&order(&[(Stdout, u64::MAX), (Stderr, 7), (Stdout, u64::MAX)]));
        assert_eq!(taken(&mut merge, [0, 2], false), []);
        assert_eq!(taken(&mut merge, [4, 9], true), [(Stdout, 4), (Stderr, 7), (Stderr, 2)]);
        merge.learn(&[0xff; 64]);
        assert_eq!(taken(&mut merge, [1, 1], true), [(Stdout, 1), (Stderr, 1)]);
    }
}
