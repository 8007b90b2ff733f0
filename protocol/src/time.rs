//! Simulated time: integer picoseconds and exact clocks.

use crate::quantity::{Frequency, TIME};
use serde::{Deserialize, Serialize};
use std::fmt;
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

/// "500000000 ps"; with `{:#}` in the largest unit that divides it: "500 us".
impl fmt::Display for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() { TIME.write(self.0, f) } else { write!(f, "{} ps", self.0) }
    }
}

/// A clock: tick `k` of a clock at `f` Hz falls at `floor(k * 10^12 / f)` ps, without drift from a rounded period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    hertz: u64,
    /// `picoseconds / ticks` is the period in lowest terms, so that products fit 64 bits for days of simulated time.
    picoseconds: u64,
    ticks: u64,
}

impl Clock {
    /// A clock of frequency `frequency`, which the parsers guarantee to be at least 1 Hz and at most 1 THz.
    pub const fn new(frequency: Frequency) -> Clock {
        let hertz = frequency.hertz();
        let (mut divisor, mut rest) = (PICOSECONDS_PER_SECOND, hertz);
        while rest != 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        Clock { hertz, picoseconds: PICOSECONDS_PER_SECOND / divisor, ticks: hertz / divisor }
    }

    /// Its frequency.
    pub const fn frequency(self) -> Frequency {
        Frequency::from_hertz(self.hertz)
    }

    /// When tick `cycle` falls.
    #[inline]
    pub fn time_of(self, cycle: u64) -> SimTime {
        match cycle.checked_mul(self.picoseconds) {
            Some(product) => SimTime(product / self.ticks),
            None => SimTime((u128::from(cycle) * u128::from(self.picoseconds) / u128::from(self.ticks)) as u64),
        }
    }

    /// The first tick at or after `time`.
    #[inline]
    pub fn cycle_at_or_after(self, time: SimTime) -> u64 {
        // The smallest k with floor(k * 10^12 / f) >= t is ceil(t * f / 10^12).
        match time.0.checked_mul(self.ticks) {
            Some(product) => product.div_ceil(self.picoseconds),
            None => (u128::from(time.0) * u128::from(self.ticks)).div_ceil(u128::from(self.picoseconds)) as u64,
        }
    }

    /// The last tick at or before `time`.
    #[inline]
    pub fn cycle_at_or_before(self, time: SimTime) -> u64 {
        let next = self.cycle_at_or_after(time);
        if self.time_of(next) == time { next } else { next - 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_do_not_drift() {
        let clock = Clock::new(Frequency::from_hertz(1_312_000_000));
        assert_eq!(clock.time_of(0), SimTime(0));
        assert_eq!(clock.time_of(1), SimTime(762));
        // A period rounded to 762 ps would be 195 us late after one second.
        assert_eq!(clock.time_of(1_312_000_000), SimTime(PICOSECONDS_PER_SECOND));
        assert_eq!(clock.time_of(1_312_000_000 * 86_400), SimTime(86_400 * PICOSECONDS_PER_SECOND));
    }

    #[test]
    fn cycle_and_time_are_inverse() {
        for hertz in [1, 3, 850_000_000, 1_312_000_000, 2_660_000_000, 1_000_000_000_000] {
            let clock = Clock::new(Frequency::from_hertz(hertz));
            for cycle in [0, 1, 2, 7, 1000, 123_456_789].into_iter().filter(|cycle| cycle / hertz < 10_000_000) {
                let time = clock.time_of(cycle);
                assert_eq!(clock.cycle_at_or_after(time), cycle, "{hertz} Hz, tick {cycle}");
                assert_eq!(clock.cycle_at_or_before(time), cycle, "{hertz} Hz, tick {cycle}");
                if clock.time_of(cycle + 1).0 > time.0 + 1 {
                    assert_eq!(clock.cycle_at_or_after(SimTime(time.0 + 1)), cycle + 1);
                    assert_eq!(clock.cycle_at_or_before(SimTime(time.0 + 1)), cycle);
                }
            }
        }
    }
}
