//! Which cycles of a pipe are taken: an access that comes later can use a cycle that those before it have left free.

use serde::{Deserialize, Serialize};

/// Cycles that are told apart.
const WINDOW: u64 = 64;

/// The cycles of a pipe that takes one wavefront in each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    /// The first cycle that is told apart.
    base: u64,
    /// One bit for each cycle from `base` on: it is taken.
    taken: u64,
    /// All cycles behind the window and before this one are taken.
    end: u64,
}

/// The cycles that an access got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

/// The low bits, up to all of them.
#[inline]
fn low(bits: u64) -> u64 {
    if bits >= WINDOW { u64::MAX } else { (1 << bits) - 1 }
}

impl Slots {
    /// Forgets the cycles before `now`.
    #[inline]
    fn advance(&mut self, now: u64) {
        let passed = now.saturating_sub(self.base);
        if passed == 0 {
            return;
        }
        self.taken = if passed >= WINDOW { 0 } else { self.taken >> passed };
        self.base = now;
        if self.end > now {
            // What was behind the window comes into it.
            self.taken |= low(self.end - now) & !low(WINDOW.saturating_sub(passed));
        }
    }

    /// Takes the first `cycles` free cycles from `from` on; no call comes with an earlier `now`, and `from` is not before it.
    #[inline]
    pub fn take(&mut self, now: u64, from: u64, cycles: u64) -> Taken {
        self.advance(now);
        let mut taken: Option<Taken> = None;
        let mut left = cycles.max(1);
        let before = low(from.saturating_sub(self.base));
        while left > 0 {
            let free = !(self.taken | before);
            if free == 0 {
                break;
            }
            let place = u64::from(free.trailing_zeros());
            self.taken |= 1 << place;
            let cycle = self.base + place;
            taken = Some(Taken { first: taken.map_or(cycle, |taken| taken.first), last: cycle });
            left -= 1;
        }
        if left == 0
            && let Some(taken) = taken
        {
            return taken;
        }
        let behind = self.end.max(self.base + WINDOW).max(from);
        self.end = behind + left;
        Taken { first: taken.map_or(behind, |taken| taken.first), last: self.end - 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(first: u64, last: u64) -> Taken {
        Taken { first, last }
    }

    #[test]
    fn cycles_that_are_left_free_are_used() {
        let mut slots = Slots::default();
        assert_eq!(slots.take(100, 110, 2), cycles(110, 111));
        assert_eq!(slots.take(100, 100, 1), cycles(100, 100));
        assert_eq!(slots.take(101, 108, 4), cycles(108, 113));
        assert_eq!(slots.take(101, 101, 8), cycles(101, 114));
        // Nothing before 115 is free.
        assert_eq!(slots.take(102, 102, 1), cycles(115, 115));
        assert_eq!(slots.take(300, 300, 1), cycles(300, 300));
    }

    #[test]
    fn what_does_not_fit_into_the_window_follows_it() {
        let mut slots = Slots::default();
        assert_eq!(slots.take(0, 0, 100), cycles(0, 99));
        assert_eq!(slots.take(0, 0, 10), cycles(100, 109));
        assert_eq!(slots.take(50, 50, 1), cycles(110, 110));
        assert_eq!(slots.take(111, 111, 1), cycles(111, 111));
        assert_eq!(slots.take(111, 200, 1), cycles(200, 200));
    }
}
