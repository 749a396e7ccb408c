//! Where the cells of a table go: which columns stay, how wide they are, and what stands below its
//! row. Pure; called by `table` alone.
//!
//! What always holds: a word of people's is whole (an id, a status, an address) unless the table is
//! drawn over again. Where the room ends sentences are wrapped, then stand below their row, and
//! only then columns go, in the order in which their table can do without them.

use unicode_width::UnicodeWidthStr;

/// Spaces between columns.
pub(super) const GAP: usize = 2;

/// Columns by which what stands below a row is set in.
pub(super) const INDENT: usize = 2;

/// The longest text without a space that is never broken: a content address, which people copy.
pub(super) const WHOLE_CHARS: usize = 72;

/// Words that are so short together are kept so: `in 3m20s`.
pub(super) const FEW_CHARS: usize = 10;

/// Least width of a column of sentences.
const SENTENCE_CHARS: usize = 24;

/// From this width on a column of sentences is easily read, however long they are.
const EASY_CHARS: usize = 40;

/// Lines that a sentence may take in a narrower column before it stands better below its row.
const EASY_LINES: usize = 3;

/// Least width to which a word is cut where a table is drawn over again.
const LEAST_CHARS: usize = 4;

/// One column, before it has a place.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    /// Columns that its widest cell takes, its title too.
    pub(super) content: usize,
    /// Columns that its longest word takes which is never broken.
    pub(super) longest_word: usize,
    /// Whether it has nothing that could be wrapped between words.
    pub(super) is_whole: bool,
    /// Its turn to go, the lowest first; `None` for what a row is nothing without.
    pub(super) goes: Option<usize>,
}

/// Where everything goes; columns by their index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// Side by side, each with its width.
    pub(super) beside: Vec<(usize, usize)>,
    /// Below each row.
    pub(super) below: Vec<usize>,
}

/// The layout for a terminal of this width, or for none.
pub(super) fn lay_out(columns: &[Measured], width: Option<usize>, keeps_whole: bool) -> Layout {
    let all = |kept: &[usize]| kept.iter().map(|&at| (at, columns[at].content)).collect::<Vec<_>>();
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    let Some(width) = width else { return Layout { beside: all(&kept), below: Vec::new() } };
    let (mut below, mut gone) = (Vec::new(), Vec::new());
    loop {
        if let Some(beside) = fitting(columns, &kept, width) {
            let beside = with_room_left(columns, &gone, width, beside, &mut kept);
            return Layout { beside, below };
        }
        let sentences = kept.iter().copied().filter(|&at| !columns[at].is_whole);
        // A row begins with what it is about.
        let longest = sentences.filter(|&at| at != kept[0]).max_by_key(|&at| columns[at].content);
        if let Some(at) = longest {
            kept.retain(|&other| other != at);
            below.push(at);
            below.sort_unstable();
            continue;
        }
        let first = kept.iter().copied().filter_map(|at| Some((columns[at].goes?, at))).min();
        match first {
            Some((_, at)) => {
                kept.retain(|&other| other != at);
                gone.push(at);
            }
            None => {
                // What can be wrapped is; the rest is longer than the terminal is wide.
                let narrow = |at: usize| match &columns[at] {
                    column if column.is_whole => column.content,
                    column => column.content.min(SENTENCE_CHARS.max(column.longest_word)),
                };
                let mut beside: Vec<_> = kept.iter().map(|&at| (at, narrow(at))).collect();
                if !keeps_whole {
                    cut(&mut beside, width);
                }
                return Layout { beside, below };
            }
        }
    }
}

/// The columns side by side, and beside them those that had to go before a wider one went: the last
/// of them is the first that comes back.
fn with_room_left(
    columns: &[Measured],
    gone: &[usize],
    width: usize,
    mut beside: Vec<(usize, usize)>,
    kept: &mut Vec<usize>,
) -> Vec<(usize, usize)> {
    for &at in gone.iter().rev() {
        let mut more = kept.clone();
        more.push(at);
        more.sort_unstable();
        if let Some(fits) = fitting(columns, &more, width) {
            (beside, *kept) = (fits, more);
        }
    }
    beside
}

/// The columns side by side, where that does well.
fn fitting(columns: &[Measured], kept: &[usize], width: usize) -> Option<Vec<(usize, usize)>> {
    let gaps = GAP * kept.len().saturating_sub(1);
    let mut beside: Vec<(usize, usize)> = Vec::with_capacity(kept.len());
    let mut room = width.checked_sub(gaps)?;
    let wanted: usize = kept.iter().map(|&at| columns[at].content).sum();
    if wanted <= room {
        return Some(kept.iter().map(|&at| (at, columns[at].content)).collect());
    }
    // The short ones take what they need, the others share what is left.
    let mut sentences = Vec::new();
    for &at in kept {
        if columns[at].is_whole {
            room = room.checked_sub(columns[at].content)?;
            beside.push((at, columns[at].content));
        } else {
            sentences.push(at);
        }
    }
    sentences.sort_by_key(|&at| columns[at].content);
    let mut left = sentences.len();
    for at in sentences {
        let given = columns[at].content.min(room / left);
        let least = columns[at].content.min(SENTENCE_CHARS).max(columns[at].longest_word);
        let is_easy = given >= EASY_CHARS || columns[at].content <= given * EASY_LINES;
        if given < least || !is_easy {
            return None;
        }
        beside.push((at, given));
        (room, left) = (room - given, left - 1);
    }
    beside.sort_unstable();
    (!beside.is_empty()).then_some(beside)
}

/// Takes from the widest columns until all fit.
fn cut(beside: &mut [(usize, usize)], width: usize) {
    let gaps = GAP * beside.len().saturating_sub(1);
    loop {
        let taken: usize = beside.iter().map(|(_, width)| width).sum::<usize>() + gaps;
        let widest = beside.iter_mut().map(|(_, width)| width).max();
        match widest {
            Some(widest) if taken > width && *widest > LEAST_CHARS => *widest -= 1,
            _ => return,
        }
    }
}

/// The text in lines of at most this width, broken between words; a word that is too long stands
/// alone, and is broken where it is no word of people's or nothing is `kept_whole`.
pub(crate) fn wrap(text: &str, width: usize, keeps_whole: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut taken) = (String::new(), 0);
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let needed = word.width();
        if taken > 0 && taken + 1 + needed > width {
            lines.push(std::mem::take(&mut line));
            taken = 0;
        }
        if taken > 0 {
            line.push(' ');
            taken += 1;
        }
        if needed <= width || keeps_whole && needed <= WHOLE_CHARS {
            line.push_str(word);
            taken += needed;
            continue;
        }
        for character in word.chars() {
            let mut bytes = [0; 4];
            let needed = (*character.encode_utf8(&mut bytes)).width();
            if taken > 0 && taken + needed > width {
                lines.push(std::mem::take(&mut line));
                taken = 0;
            }
            line.push(character);
            taken += needed;
        }
    }
    if taken > 0 || lines.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(content: usize, goes: Option<usize>) -> Measured {
        Measured { content, longest_word: content, is_whole: true, goes }
    }

    fn sentence(content: usize) -> Measured {
        Measured { content, longest_word: 8, is_whole: false, goes: None }
    }

    fn check(columns: &[Measured], width: usize, beside: &[(usize, usize)], below: &[usize]) {
        let found = lay_out(columns, Some(width), true);
        assert_eq!((found.beside.as_slice(), found.below.as_slice()), (beside, below), "{width}");
    }

    #[test]
    fn a_sentence_is_wrapped_then_stands_below_and_then_columns_go() {
        let columns = [word(10, None), word(8, Some(1)), word(9, Some(0)), sentence(60)];
        check(&columns, 200, &[(0, 10), (1, 8), (2, 9), (3, 60)], &[]);
        check(&columns, 80, &[(0, 10), (1, 8), (2, 9), (3, 47)], &[]);
        check(&columns, 57, &[(0, 10), (1, 8), (2, 9), (3, 24)], &[]);
        check(&columns, 50, &[(0, 10), (1, 8), (2, 9)], &[3]);
        check(&columns, 30, &[(0, 10), (1, 8)], &[3]);
        check(&columns, 12, &[(0, 10)], &[3]);
        check(&columns, 5, &[(0, 10)], &[3]);
    }

    #[test]
    fn what_had_to_go_comes_back_where_a_wider_one_went_after_it() {
        let columns = [word(12, None), word(5, Some(0)), word(5, Some(1)), word(24, Some(2))];
        check(&columns, 40, &[(0, 12), (3, 24)], &[]);
        check(&columns, 30, &[(0, 12), (1, 5), (2, 5)], &[]);
        check(&columns, 20, &[(0, 12), (2, 5)], &[]);
    }

    #[test]
    fn a_long_sentence_is_not_squeezed_into_a_narrow_column() {
        check(&[word(30, None), sentence(200)], 60, &[(0, 30)], &[1]);
        check(&[word(30, None), sentence(200)], 80, &[(0, 30), (1, 48)], &[]);
        // A word that would not fit beside.
        let link = Measured { longest_word: 40, ..sentence(60) };
        check(&[word(20, None), link], 60, &[(0, 20)], &[1]);
    }

    #[test]
    fn a_table_of_sentences_alone_is_wrapped() {
        check(&[sentence(100)], 40, &[(0, 40)], &[]);
        check(&[sentence(100), sentence(10)], 40, &[(0, 40)], &[1]);
    }

    #[test]
    fn what_is_drawn_over_again_is_cut_to_the_width() {
        let found = lay_out(&[word(36, None), word(71, None)], Some(40), false);
        let taken: usize = found.beside.iter().map(|(_, width)| width).sum();
        assert_eq!(taken + GAP, 40, "{found:?}");
    }

    #[test]
    fn words_stay_whole_where_they_are_peoples() {
        let id = "f".repeat(36);
        assert_eq!(wrap(&format!("see {id} now"), 20, true), ["see", &id, "now"]);
        assert_eq!(wrap(&id, 20, false), ["f".repeat(20), "f".repeat(16)]);
        assert_eq!(wrap(&"x".repeat(90), 80, true), ["x".repeat(80), "x".repeat(10)]);
        assert_eq!(wrap("日本語 日本語", 7, true), ["日本語", "日本語"]);
        assert_eq!(wrap("", 7, true), [""]);
    }
}
