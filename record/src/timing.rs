//! Which launches of a run were timed, and which values are withheld for the others: a time that was not simulated is absent, not zero.

use crate::metrics::Place;
use balar_protocol::DetailChoice;
use balar_protocol::kernel_records::KernelRecords;
use balar_protocol::statistics::StatisticSink;

/// Which launches of a run were timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// All of it.
    Everything,
    /// Some launches.
    Part,
    /// No launch.
    Nothing,
}

impl Timing {
    /// The timing of a run with this choice and these launches.
    pub fn of(choice: &DetailChoice, launches: &KernelRecords) -> Timing {
        if choice.times_everything() {
            Timing::Everything
        } else if choice.times_nothing() || !launches.iter().any(|launch| launch.detail.is_timed()) {
            Timing::Nothing
        } else {
            Timing::Part
        }
    }

    /// Removes the values that were not simulated. Where nothing was timed, only host CPUs and CTA schedulers have counted, and their times
    /// mean nothing. Where only some launches were timed, the times that the program itself took from the host's clock mean nothing either.
    pub fn withhold(self, statistics: &mut StatisticSink) {
        if self == Timing::Everything {
            return;
        }
        if self == Timing::Nothing {
            let mut rows = std::mem::take(&mut statistics.rows);
            for unit in rows.chunk_by_mut(|row, next| row.location == next.location) {
                let counters: Vec<&str> = unit.iter().map(|row| row.what).collect();
                let has = |counter: &str| counters.contains(&counter);
                if Place::Host.is_signed_by(has) || has("kernels_received") {
                    statistics.rows.extend(unit.iter().filter(|row| !is_of_time(row.unit)).cloned());
                }
            }
            statistics.tables.clear();
        }
        if let Some(program) = &mut statistics.outcome {
            program.results.retain(|(_, _, unit)| !is_of_time(unit) || (self == Timing::Part && unit == "cycle"));
        }
    }
}

/// Is a value with this unit of measure a time, or measured over one?
fn is_of_time(unit: &str) -> bool {
    matches!(unit, "cycle" | "ps" | "ns" | "us" | "ms" | "s") || unit.ends_with("/s") || unit.ends_with("/cycle")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::record;
    use balar_protocol::Detail;
    use balar_protocol::statistics::{KernelRecord, StatisticRow};

    #[test]
    fn what_was_timed_follows_from_the_launches() {
        let launches = record().statistics.kernels;
        let functional = |launch: KernelRecord| KernelRecord { detail: Detail::Functional, ..launch };
        let none: KernelRecords = launches.iter().map(functional).collect();
        let some: KernelRecords = launches.iter().take(1).chain(none.iter()).collect();
        let named = DetailChoice::of(vec![balar_protocol::detail::TimedPart::Profiler]);
        assert_eq!(Timing::of(&DetailChoice::default(), &launches), Timing::Everything);
        assert_eq!(
            [&launches, &some, &none].map(|of| Timing::of(&named, of)),
            [Timing::Part, Timing::Part, Timing::Nothing]
        );
        assert_eq!(Timing::of(&DetailChoice::none(), &none), Timing::Nothing);
    }

    #[test]
    fn times_that_were_not_simulated_are_absent() {
        let mut statistics = record().statistics;
        let mut row = |location: &str, what, unit| {
            let (location, value, maximum) = (location.to_owned(), 3, false);
            statistics.rows.push(StatisticRow { location, what, value, unit, maximum });
        };
        for (what, unit) in [("calls", "call"), ("calls_launch", "call"), ("cycles_busy", "cycle")] {
            row("cpu", what, unit);
        }
        for (what, unit) in [("kernels_received", "kernel"), ("cycles_active", "cycle")] {
            row("gpu.scheduler", what, unit);
        }
        let (all, results) = (statistics.rows.len(), statistics.outcome.as_ref().map(|program| program.results.len()));
        Timing::Everything.withhold(&mut statistics);
        Timing::Part.withhold(&mut statistics);
        assert_eq!((statistics.rows.len(), results), (all, Some(1)));
        assert!(statistics.outcome.as_ref().is_some_and(|program| program.results.is_empty()), "GB/s");
        Timing::Nothing.withhold(&mut statistics);
        let left: Vec<&str> = statistics.rows.iter().map(|row| row.what).collect();
        assert_eq!(left, ["calls", "calls_launch", "kernels_received"]);
    }
}
