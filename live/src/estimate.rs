//! The real time that is left of a run, as far as it can be known.

use super::state::Estimate;
use std::time::Duration;

/// The time that is left when `done` CTAs of `planned` have ended in this real time. `is_program`: a program that computes by itself
/// decides which kernels are launched.
pub fn estimate(done: u64, planned: Option<u64>, took: Duration, is_program: bool) -> Estimate {
    let unknown = |basis: &str| Estimate { basis: basis.to_owned(), ..Estimate::default() };
    let Some(planned) = planned.filter(|planned| *planned > 0) else {
        return unknown(if is_program {
            "unknown: the program decides what it launches"
        } else {
            "unknown: the workload decides what it launches as it goes"
        });
    };
    let fraction = Some((done as f64 / planned as f64).min(1.0));
    if done == 0 {
        return Estimate { fraction, ..unknown("unknown: no CTA has ended yet") };
    }
    let Some(left) = planned.checked_sub(done).filter(|left| *left > 0) else {
        let basis = "unknown: all CTAs have ended; copies and the check of the result are left";
        return Estimate { fraction, ..unknown(basis) };
    };
    let seconds = took.as_secs_f64() * left as f64 / done as f64;
    let basis =
        format!("from CTAs of all launches: {done} of {planned} have ended, and the others are taken to last as long");
    Estimate { seconds_left: Some(seconds), fraction, basis }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_says_what_it_is_based_on() {
        let of = |done, planned, is_program| estimate(done, planned, Duration::from_secs(8), is_program);
        // Four took 8 s, so the other six take 12 s.
        let known = of(4, Some(10), false);
        assert_eq!((known.seconds_left, known.fraction), (Some(12.0), Some(0.4)));
        assert!(known.basis.starts_with("from CTAs of all launches: 4 of 10 have ended"), "{}", known.basis);
        for (estimate, fraction, basis) in [
            (of(4, None, true), None, "unknown: the program decides"),
            (of(4, None, false), None, "unknown: the workload decides"),
            (of(0, Some(10), false), Some(0.0), "unknown: no CTA has ended"),
            (of(10, Some(10), false), Some(1.0), "unknown: all CTAs have ended"),
        ] {
            assert_eq!((estimate.seconds_left, estimate.fraction), (None, fraction), "{basis}");
            assert!(estimate.basis.starts_with(basis), "{}", estimate.basis);
        }
    }
}
