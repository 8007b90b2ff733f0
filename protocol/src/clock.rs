//! Exact clocks: when their ticks fall in simulated time.

use crate::quantity::Frequency;
use crate::time::{PICOSECONDS_PER_SECOND, SimTime};
use serde::{Deserialize, Serialize};

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
