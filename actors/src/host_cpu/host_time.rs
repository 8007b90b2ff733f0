//! Host time between calls.

use balar_protocol::{Frequency, SimTime};
use serde::Deserialize;

/// The cost of a program's own computing between calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum HostTime {
    /// Nothing.
    #[default]
    None,
    /// The same before every call.
    Fixed(SimTime),
    /// The time that was measured on a processor of this clock.
    Measured {
        /// The clock of the processor that the program runs on.
        clock: Frequency,
    },
}

impl HostTime {
    /// The simulated time of work that took `picoseconds`, on a processor of this clock.
    pub fn span(self, picoseconds: u64, simulated: Frequency) -> SimTime {
        match self {
            HostTime::None => SimTime::ZERO,
            HostTime::Fixed(span) => span,
            HostTime::Measured { clock } => {
                let scaled = u128::from(picoseconds) * u128::from(clock.hertz()) / u128::from(simulated.hertz().max(1));
                SimTime(u64::try_from(scaled).unwrap_or(u64::MAX))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_time_is_scaled_by_the_clocks() {
        let time = |text: &str| ron::from_str::<HostTime>(text).expect("a host time");
        let simulated: Frequency = "2 GHz".parse().expect("a clock");
        assert_eq!(time("None").span(7_000_000, simulated), SimTime::ZERO);
        assert_eq!(time(r#"Fixed("1 us")"#).span(7_000_000, simulated), SimTime(1_000_000));
        assert_eq!(time(r#"Measured(clock: "3 GHz")"#).span(7_000_000, simulated), SimTime(10_500_000));
    }
}
