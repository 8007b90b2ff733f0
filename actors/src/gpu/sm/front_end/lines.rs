//! Tags of a set-associative cache of code or constants: which lines it has, and from when on.

use serde::{Deserialize, Serialize};

/// Lines of a set. No measurement of it is known for any of the caches that are made of this.
const WAYS: usize = 4;

/// From when on a line is there whose arrival is not known yet.
pub const UNDER_WAY: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Line {
    /// Its number: the same line has the same number wherever it is asked for.
    number: u64,
    /// The first cycle in which it is there.
    from: u64,
}

/// A place without a line.
const NONE: Line = Line { number: u64::MAX, from: 0 };

/// A cache of lines. The line that was not used for longest goes first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lines {
    /// Set after set, each with the line that was used last in front.
    lines: Vec<Line>,
    sets: u64,
}

impl Lines {
    /// A cache with a capacity in lines, rounded up to whole sets.
    pub fn new(capacity: u64) -> Lines {
        let sets = capacity.div_ceil(WAYS as u64);
        Lines { lines: vec![NONE; sets as usize * WAYS], sets }
    }

    /// Whether it holds no line at all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sets == 0
    }

    #[inline]
    fn set(&mut self, number: u64) -> &mut [Line] {
        let first = (number % self.sets) as usize * WAYS;
        &mut self.lines[first..first + WAYS]
    }

    /// From when on a line is there, [`UNDER_WAY`] where that is not known; `None` where it is neither there nor under way. It is used now.
    #[inline]
    pub fn find(&mut self, number: u64) -> Option<u64> {
        let set = self.set(number);
        let at = set.iter().position(|line| line.number == number)?;
        set[..=at].rotate_right(1);
        Some(set[0].from)
    }

    /// A line that is not there comes, and another one goes.
    pub fn insert(&mut self, number: u64, from: u64) {
        let set = self.set(number);
        set.rotate_right(1);
        set[0] = Line { number, from };
    }

    /// No line is there or under way any more.
    pub fn clear(&mut self) {
        self.lines.fill(NONE);
    }

    /// A line that was under way will be there, unless it has made room for others since.
    pub fn arrives(&mut self, number: u64, from: u64) {
        let awaited = |line: &&mut Line| line.number == number && line.from == UNDER_WAY;
        if let Some(line) = self.set(number).iter_mut().find(awaited) {
            line.from = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_was_not_used_for_longest_goes_first() {
        let mut lines = Lines::new(8);
        for number in [0, 2, 4, 6] {
            lines.insert(number, 10 + number);
        }
        assert_eq!(lines.find(0), Some(10));
        lines.insert(8, UNDER_WAY);
        lines.insert(1, 5);
        assert_eq!(lines.find(2), None, "the set of even lines was full");
        assert_eq!([0, 4, 6, 8, 1].map(|number| lines.find(number)), [10, 14, 16, UNDER_WAY, 5].map(Some));
        lines.arrives(8, 30);
        lines.arrives(2, 30);
        assert_eq!((lines.find(8), lines.find(2)), (Some(30), None));
    }

    #[test]
    fn a_cache_may_have_no_lines() {
        assert!(Lines::new(0).is_empty());
    }
}
