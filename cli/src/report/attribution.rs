//! What belongs to which kernel: of what instructions have counted, and of what has been sampled while a kernel ran alone.
//!
//! SMs count stalls and active warps for the whole run. Between two samples in which CTAs of one kernel alone ran on a GPU, all of it is
//! that kernel's.

use super::input::RunInput;
use super::watcher::Samples;
use crate::metrics::{Place, placed_units};
use crate::run_folder::instructions::{InstructionProfile, STALL};
use std::collections::BTreeMap;

/// What is known of a kernel beside the counters of its launches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelShare {
    /// Cycles that warps issued or waited, by counter.
    pub stalls: BTreeMap<String, u64>,
    /// Were they counted by instruction, and are they complete?
    pub by_instruction: bool,
    /// Cycles of warps, and of SMs that had some, while it ran alone.
    pub warp_cycles: u64,
    pub sm_cycles: u64,
    /// Time in which it ran alone between two samples, ps.
    pub sampled_ps: u64,
}

/// By run: what is known of each kernel.
pub fn by_kernel(runs: &[RunInput]) -> Vec<BTreeMap<String, KernelShare>> {
    runs.iter().map(of_run).collect()
}

fn of_run(run: &RunInput) -> BTreeMap<String, KernelShare> {
    let mut kernels = BTreeMap::new();
    if let Some(samples) = &run.samples {
        for gpu in 0..run.gpus.len() {
            let spans = run.document().kernels.iter().filter(|launch| launch.gpu == run.gpus[gpu]);
            let spans = spans.filter_map(|launch| Some((launch.span_ps?, launch.name.as_str()))).collect();
            let rows = rows_of(samples, run, gpu);
            add_samples(samples, spans, &rows, &mut kernels);
        }
    }
    if let Some(profile) = &run.instructions {
        add_instructions(profile, &mut kernels);
    }
    kernels
}

/// What a row of samples counts.
#[derive(Clone, Debug)]
enum Counted {
    Stall(&'static str),
    WarpCycles,
    SmCycles,
}

/// The rows of the SMs of a GPU.
fn rows_of(samples: &Samples, run: &RunInput, gpu: usize) -> Vec<(usize, Counted)> {
    let units = placed_units(&samples.layout.rows, &run.node);
    let own = units.into_iter().filter(|unit| unit.place == Some(Place::Sm) && unit.gpu == Some(gpu));
    let counted = own.flat_map(|unit| unit.rows).filter_map(|at| {
        let what = samples.layout.rows[at].what;
        let counted = match what {
            "warp_cycles_active" => Counted::WarpCycles,
            "cycles_active" => Counted::SmCycles,
            stall if stall.starts_with(STALL) => Counted::Stall(stall),
            _ => return None,
        };
        Some((at, counted))
    });
    counted.collect()
}

fn add_samples(
    samples: &Samples,
    mut spans: Vec<((u64, u64), &str)>,
    rows: &[(usize, Counted)],
    kernels: &mut BTreeMap<String, KernelShare>,
) {
    spans.sort_unstable();
    let (mut next, mut running, mut from) = (0, Vec::new(), 0);
    for (index, &until) in samples.times.iter().enumerate() {
        while let Some(&(span, name)) = spans.get(next).filter(|((start, _), _)| *start < until) {
            running.push((span, name));
            next += 1;
        }
        running.retain(|((_, end), _)| *end > from);
        let first: Option<&str> = running.first().map(|(_, name)| *name);
        if let Some(name) = first.filter(|name| running.iter().all(|(_, other)| other == name)) {
            let share = kernels.entry(name.to_owned()).or_default();
            let ran = running.iter().map(|((start, end), _)| ((*start).max(from), (*end).min(until))).collect();
            share.sampled_ps += crate::metrics::covered(ran);
            for (row, counted) in rows {
                let before = index.checked_sub(1).map_or(0, |before| samples.values[before][*row]);
                let grown = samples.values[index][*row].saturating_sub(before);
                match counted {
                    Counted::WarpCycles => share.warp_cycles += grown,
                    Counted::SmCycles => share.sm_cycles += grown,
                    Counted::Stall(name) if grown > 0 => *share.stalls.entry((*name).to_owned()).or_default() += grown,
                    Counted::Stall(_) => {}
                }
            }
        }
        from = until;
    }
}

/// What was counted by instruction is complete, and takes the place of what was sampled.
fn add_instructions(profile: &InstructionProfile, kernels: &mut BTreeMap<String, KernelShare>) {
    let mut counted: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
    for row in &profile.rows {
        let stalls = counted.entry(&row.kernel).or_default();
        let of_stalls = profile.columns.iter().zip(&row.counts).filter(|(name, _)| name.starts_with(STALL));
        for (name, count) in of_stalls.filter(|(_, count)| **count > 0) {
            *stalls.entry(name.clone()).or_default() += count;
        }
    }
    for (name, stalls) in counted {
        let share = kernels.entry(name.to_owned()).or_default();
        (share.stalls, share.by_instruction) = (stalls, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_kernel_alone_does_between_samples_is_its_own() {
        let samples = Samples {
            times: vec![10, 20, 30, 40, 50],
            values: vec![vec![4, 40], vec![9, 90], vec![11, 110], vec![20, 200], vec![20, 200]],
            ..Samples::default()
        };
        let rows = [(0, Counted::Stall("stall_wait")), (1, Counted::WarpCycles)];
        // a runs until 15 and again from 16; b from 25, so that nothing is known of 20 to 30.
        let spans = vec![((25, 38), "b"), ((2, 15), "a"), ((16, 24), "a")];
        let mut kernels = BTreeMap::new();
        add_samples(&samples, spans, &rows, &mut kernels);
        assert_eq!((kernels["a"].stalls["stall_wait"], kernels["a"].warp_cycles, kernels["a"].sampled_ps), (9, 90, 17));
        assert_eq!((kernels["b"].stalls["stall_wait"], kernels["b"].warp_cycles, kernels["b"].sampled_ps), (9, 90, 8));
    }
}
