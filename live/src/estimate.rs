//! What is left of a run, as far as that can be known: from the warp instructions that CTAs have executed.
//!
//! A kernel's CTAs to come are taken to execute as many instructions as those of it that have ended do on average, and all instructions to
//! come to take as long as those so far. CTAs under way count by what they have executed. Where this cannot be believed there is no estimate:
//! a kernel of which no CTA has ended, launches that nobody knows of in advance, CTAs under way that have executed more than those that have
//! ended, a small part of the whole.

use super::state::Estimate;
use balar_actors::engine::LiveBoard;
use balar_actors::gpu::gauges;
use balar_experiments::PLANNED_CTAS;
use balar_record::kernel_name::short_name;
use indicatif::HumanDuration;
use std::collections::BTreeMap;
use std::time::Duration;

/// An estimate from less than this part of all instructions is not given.
const LEAST_PART: f64 = 0.1;

/// The CTAs of a kernel, over all of its launches and GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelWork {
    /// Those of all launches that there will be.
    pub planned: u64,
    /// Those that have been placed on an SM.
    pub begun: u64,
    /// Those that have ended.
    pub ended: u64,
    /// Warp instructions of those that have ended.
    pub instructions: u64,
}

/// What has been done of a run's work, and what is known of the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// CTAs of all launches, where they are known in advance.
    pub planned: Option<u64>,
    /// CTAs that have ended.
    pub ended: u64,
    /// By kernel.
    pub kernels: BTreeMap<String, KernelWork>,
    /// Warp instructions that all CTAs have executed, those under way included.
    pub instructions: u64,
}

impl Work {
    /// As a live board shows it: its schedulers have counts by kernel, its SMs have instructions, and a built-in workload has planned CTAs.
    pub fn of(board: &LiveBoard) -> Work {
        let mut work = Work { planned: board.value(PLANNED_CTAS).filter(|planned| *planned > 0), ..Work::default() };
        let planned_of = format!("{PLANNED_CTAS}.");
        for (name, value) in board.values() {
            if name.ends_with(gauges::CTAS_DONE) {
                work.ended += value;
            } else if name.ends_with(gauges::WARP_INSTRUCTIONS) {
                work.instructions += value;
            } else if let Some(kernel) = name.strip_prefix(gauges::KERNEL_CTAS_BEGUN) {
                work.kernel(kernel).begun += value;
            } else if let Some(kernel) = name.strip_prefix(gauges::KERNEL_CTAS_ENDED) {
                work.kernel(kernel).ended += value;
            } else if let Some(kernel) = name.strip_prefix(gauges::KERNEL_INSTRUCTIONS) {
                work.kernel(kernel).instructions += value;
            } else if let Some(kernel) = name.strip_prefix(&planned_of) {
                work.kernel(kernel).planned += value;
            }
        }
        work
    }

    fn kernel(&mut self, name: &str) -> &mut KernelWork {
        self.kernels.entry(name.to_owned()).or_default()
    }

    /// Warp instructions of the whole run, or why they cannot be known.
    fn all_instructions(&self) -> Result<f64, String> {
        if self.ended > self.kernels.values().map(|kernel| kernel.ended).sum() {
            return Err("launches that run for their values alone say nothing of those that are timed".to_owned());
        }
        let (mut all, mut under_way, mut of_ended) = (0.0, 0.0, 0);
        for (name, kernel) in &self.kernels {
            if kernel.begun > kernel.planned {
                return Err(format!("the launches of {} are not known in advance", short_name(name)));
            }
            if kernel.planned == kernel.ended {
                all += kernel.instructions as f64;
            } else if kernel.ended == 0 {
                return Err(format!("no CTA of {} has ended yet", short_name(name)));
            } else {
                let mean = kernel.instructions as f64 / kernel.ended as f64;
                all += mean * kernel.planned as f64;
                under_way += mean * kernel.begun.saturating_sub(kernel.ended) as f64;
            }
            of_ended += kernel.instructions;
        }
        if self.instructions.saturating_sub(of_ended) as f64 > under_way {
            return Err("CTAs under way have executed more than those that have ended".to_owned());
        }
        Ok(all)
    }
}

/// What is left of `work` if the instructions so far have taken `took` of real time. `is_program`: a program that computes by itself decides
/// what is launched.
pub fn estimate(work: &Work, took: Duration, is_program: bool) -> Estimate {
    let unknown = |why: &str| Estimate { basis: format!("unknown: {why}"), ..Estimate::default() };
    let Some(planned) = work.planned else {
        return unknown(if is_program {
            "the program decides what it launches"
        } else {
            "the workload decides what it launches as it goes"
        });
    };
    let fraction = Some((work.ended as f64 / planned as f64).min(1.0));
    if work.ended == 0 {
        return Estimate { fraction, ..unknown("no CTA has ended yet") };
    }
    if work.ended >= planned {
        return Estimate {
            fraction,
            ..unknown("all CTAs have ended; what is left is copies and the check of the result")
        };
    }
    let all = match work.all_instructions() {
        Ok(all) => all,
        Err(why) => return Estimate { fraction, ..unknown(&why) },
    };
    let done = work.instructions as f64;
    let fraction = Some((done / all).min(1.0));
    if done < LEAST_PART * all {
        return Estimate { fraction, ..unknown("too little has run to tell") };
    }
    // What the last CTAs do beyond the mean is not known.
    if done >= all {
        return Estimate { fraction, ..unknown("the last CTAs execute more than those that have ended") };
    }
    let percent = 100.0 * done / all;
    let basis = format!(
        "from warp instructions: {percent:.0} % of those that all CTAs will execute, if those to come are like the {} of {planned} that \
         have ended",
        work.ended
    );
    Estimate { seconds_left: Some(took.as_secs_f64() * (all - done) / done), fraction, basis }
}

/// A time that is left, in words. While work remains it is never no time.
pub fn in_words(seconds: f64) -> String {
    if seconds < 1.0 {
        return "less than a second left".to_owned();
    }
    let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    format!("about {} left", HumanDuration(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(planned: u64, ended: u64, kernels: &[(&str, [u64; 4])], instructions: u64) -> Work {
        let kernels = kernels.iter().map(|&(name, [planned, begun, ended, instructions])| {
            (name.to_owned(), KernelWork { planned, begun, ended, instructions })
        });
        Work { planned: Some(planned), ended, kernels: kernels.collect(), instructions }
    }

    fn left(work: &Work) -> Option<f64> {
        estimate(work, Duration::from_secs(8), false).seconds_left
    }

    #[test]
    fn an_estimate_says_what_it_is_based_on() {
        // Four CTAs have executed 400 instructions in 8 s, so the other six, 600 instructions, take 12 s.
        let known = estimate(&work(10, 4, &[("a", [10, 4, 4, 400])], 400), Duration::from_secs(8), false);
        assert_eq!((known.seconds_left, known.fraction), (Some(12.0), Some(0.4)));
        assert!(known.basis.starts_with("from warp instructions: 40 % of "), "{}", known.basis);
        assert!(known.basis.contains("like the 4 of 10 that have ended"), "{}", known.basis);
        let nothing_planned = Work::default();
        for (work, is_program, fraction, why) in [
            (nothing_planned.clone(), true, None, "unknown: the program decides"),
            (nothing_planned, false, None, "unknown: the workload decides"),
            (work(10, 0, &[("a", [10, 8, 0, 0])], 700), false, Some(0.0), "unknown: no CTA has ended"),
            (work(10, 10, &[("a", [10, 10, 10, 1000])], 1000), false, Some(1.0), "unknown: all CTAs have ended"),
        ] {
            let found = estimate(&work, Duration::from_secs(8), is_program);
            assert_eq!((found.seconds_left, found.fraction), (None, fraction), "{why}");
            assert!(found.basis.starts_with(why), "{}", found.basis);
        }
    }

    /// One wave: a CTA of ten has ended, and the others are nearly as far.
    #[test]
    fn ctas_under_way_count() {
        // 1000 instructions in all. The nine under way have executed 95 each: 100 + 855 are done in 8 s, 45 are left.
        let nearly = work(10, 1, &[("a", [10, 10, 1, 100])], 955);
        let expected = 8.0 * 45.0 / 955.0;
        assert!(left(&nearly).is_some_and(|seconds| (seconds - expected).abs() < 1e-9), "{:?}", left(&nearly));
        // By CTAs alone it would be 72 s.
    }

    /// Kernels whose CTAs do different things are each taken by their own mean.
    #[test]
    fn kernels_differ() {
        // `a` is done: 4 CTAs, 40 instructions. Of `b` 1 of 4 CTAs has ended, with 1000; one is under way with 500. Of
        // 4040 in all, 40 + 1000 + 500 are done.
        let differ = work(8, 5, &[("a", [4, 4, 4, 40]), ("b", [4, 2, 1, 1000])], 1540);
        let expected = 8.0 * 2500.0 / 1540.0;
        assert!(left(&differ).is_some_and(|seconds| (seconds - expected).abs() < 1e-9), "{:?}", left(&differ));
    }

    #[test]
    fn what_cannot_be_known_is_not_given() {
        for (work, why) in [
            // Nothing is known of `b`, which may be a thousand times as long.
            (work(8, 4, &[("a", [4, 4, 4, 40]), ("b", [4, 0, 0, 0])], 40), "no CTA of b has ended yet"),
            (work(8, 2, &[("a", [8, 4, 2, 20]), ("child", [0, 1, 0, 0])], 25), "the launches of child are not known"),
            // CTAs that end early at the border of a grid say nothing of the others.
            (work(10, 2, &[("a", [10, 10, 2, 20])], 20 + 8 * 50), "CTAs under way have executed more"),
            (work(1000, 2, &[("a", [1000, 80, 2, 200])], 5000), "too little has run"),
            (work(10, 9, &[("a", [10, 0, 0, 0])], 0), "launches that run for their values alone"),
        ] {
            let found = estimate(&work, Duration::from_secs(8), false);
            assert_eq!(found.seconds_left, None, "{why}");
            assert!(found.basis.starts_with(&format!("unknown: {why}")), "{}", found.basis);
        }
    }

    /// 400 CTAs in waves of 80, at an even pace: the first 200 execute 900 instructions each, the others 1100, together 400,000. From a fifth
    /// of the run on an estimate is within 30 % of what is left, or there is none.
    #[test]
    fn it_is_near_from_a_fifth_of_a_run_on() {
        // What the waves have executed together, when they end: the third one has 40 CTAs of each kind.
        let waves = [72_000, 144_000, 224_000, 312_000, 400_000];
        let mut given = Vec::new();
        for percent in [20, 25, 37, 50, 55, 63, 80, 99] {
            let done = 4000 * percent;
            let ended_waves = waves.iter().filter(|end| **end <= done).count();
            let ended = 80 * ended_waves as u64;
            let kernel = [400, (ended + 80).min(400), ended, waves[ended_waves - 1]];
            let Some(found) = left(&work(400, ended, &[("a", kernel)], done)) else { continue };
            let true_left = 8.0 * (100 - percent) as f64 / percent as f64;
            assert!((found / true_left - 1.0).abs() < 0.3, "{percent} %: {found} s in place of {true_left} s");
            given.push(percent);
        }
        // At 55 % the third wave has executed 76,000, more than two waves before it, 72,000 each; at 99 % the last one 84,000, where the
        // mean wave of those before it has 78,000.
        assert_eq!(given, [20, 25, 37, 50, 63, 80]);
    }

    #[test]
    fn no_time_is_never_left() {
        for (seconds, text) in
            [(0.0, "less than a second left"), (0.6, "less than a second left"), (12.0, "about 12 seconds left")]
        {
            assert_eq!(in_words(seconds), text);
        }
    }

    #[test]
    fn a_board_shows_the_work() {
        let board = LiveBoard::default();
        assert_eq!(Work::of(&board), Work::default());
        for (name, value) in [
            (PLANNED_CTAS, 12),
            ("workload.planned_ctas._Z1av", 12),
            ("gpu.scheduler.ctas_done", 3),
            ("gpu2.scheduler.ctas_done", 1),
            ("kernel_ctas_begun._Z1av", 6),
            ("kernel_ctas_ended._Z1av", 4),
            ("kernel_instructions._Z1av", 400),
            ("gpu.sm[0].warp_instructions", 250),
            ("gpu.sm[1].warp_instructions", 300),
        ] {
            board.gauge(name).set(value);
        }
        assert_eq!(Work::of(&board), work(12, 4, &[("_Z1av", [12, 6, 4, 400])], 550));
    }
}
