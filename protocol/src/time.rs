//! Simulated time: integer picoseconds.

use std::ops::{Add, AddAssign, Sub};

/// Picoseconds in a second.
pub const PICOSECONDS_PER_SECOND: u64 = 1_000_000_000_000;

/// A point in simulated time, or a span of it, in picoseconds. The range is 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SimTime(pub u64);

impl SimTime {
    /// The start of simulated time.
    pub const ZERO: SimTime = SimTime(0);
    /// Later than every event: "never".
    pub const MAX: SimTime = SimTime(u64::MAX);

    /// Whole picoseconds.
    pub const fn picoseconds(self) -> u64 {
        self.0
    }

    /// A span of `ns` nanoseconds.
    pub const fn from_nanoseconds(ns: u64) -> SimTime {
        SimTime(ns * 1000)
    }

    /// The span from `earlier` to `self`, zero where `earlier` is later.
    #[inline]
    pub const fn saturating_sub(self, earlier: SimTime) -> SimTime {
        SimTime(self.0.saturating_sub(earlier.0))
    }

    /// The sum, or [`SimTime::MAX`] where it does not fit.
    #[inline]
    pub const fn saturating_add(self, span: SimTime) -> SimTime {
        SimTime(self.0.saturating_add(span.0))
    }
}

impl Add for SimTime {
    type Output = SimTime;
    #[inline]
    fn add(self, span: SimTime) -> SimTime {
        SimTime(self.0 + span.0)
    }
}

impl AddAssign for SimTime {
    #[inline]
    fn add_assign(&mut self, span: SimTime) {
        self.0 += span.0;
    }
}

impl Sub for SimTime {
    type Output = SimTime;
    #[inline]
    fn sub(self, earlier: SimTime) -> SimTime {
        SimTime(self.0 - earlier.0)
    }
}
