//! What is placed below the ceilings: runs, as a whole and by kernel.

use balar_actors::simulation::RunResult;
use balar_experiments::roofline::{Placed, Work};
use balar_protocol::memory::SECTOR_BYTES;
use balar_protocol::statistics::KernelCounters;
use balar_record::kernel_name::short_names;
use balar_record::run_folder::document::RunDocument;
use std::collections::{BTreeMap, BTreeSet};

/// What matters here of the launches of a kernel that were timed.
#[derive(Debug)]
struct Launch {
    kernel: String,
    gpu: String,
    picoseconds: u64,
    /// In the order of [`KernelCounters::DEFINITIONS`].
    counters: Vec<u64>,
}

impl Launch {
    fn counter(&self, name: &str) -> u64 {
        let place = KernelCounters::DEFINITIONS.iter().position(|definition| definition.name == name);
        place.map_or(0, |place| self.counters[place])
    }
}

/// A finished run, as its document tells it; with its kernels where these are wanted.
pub fn of_document(document: &RunDocument, by_kernel: bool) -> Vec<Placed> {
    let launches = document.kernels.iter().filter(|launch| launch.is_timed()).map(|launch| {
        let counters = KernelCounters::DEFINITIONS.iter();
        Launch {
            kernel: launch.name.clone(),
            gpu: launch.gpu.clone(),
            picoseconds: launch.time_ps.unwrap_or(0),
            counters: counters.map(|definition| launch.counter(definition.name).unwrap_or(0)).collect(),
        }
    });
    let rows = document.statistics.iter().map(|row| (&*row.location, &*row.what, row.value));
    placed(&document.workload.name, &launches.collect::<Vec<_>>(), rows, by_kernel)
}

/// A run that was just made.
pub fn of_result(name: &str, result: &RunResult, by_kernel: bool) -> Vec<Placed> {
    let launches = result.statistics.kernels.iter().filter_map(|kernel| {
        Some(Launch {
            kernel: kernel.name.to_string(),
            gpu: kernel.gpu.to_string(),
            picoseconds: kernel.duration_ps()?,
            counters: kernel.counters.values().collect(),
        })
    });
    let rows = result.statistics.rows.iter().map(|row| (&*row.location, row.what, row.value));
    placed(name, &launches.collect::<Vec<_>>(), rows, by_kernel)
}

/// The run as a whole, and its kernels by the time they took.
fn placed<'a>(
    name: &str,
    launches: &[Launch],
    rows: impl Iterator<Item = (&'a str, &'a str, u64)>,
    by_kernel: bool,
) -> Vec<Placed> {
    let gpus: BTreeSet<&str> = launches.iter().map(|launch| launch.gpu.as_str()).collect();
    let is_of_gpu =
        |location: &str| gpus.iter().any(|gpu| location.strip_prefix(gpu).is_some_and(|rest| rest.starts_with('.')));
    let is_channel = |location: &str| location.rsplit('.').next().is_some_and(|last| last.starts_with("channel["));
    let rows: Vec<_> = rows.filter(|(location, ..)| is_of_gpu(location)).collect();
    // L2 slices and channels of device memory count under the same name; the first alone are filled.
    let slices: BTreeSet<&str> = rows.iter().filter(|row| row.1 == "sectors_filled").map(|row| row.0).collect();
    let written = |is_one: &dyn Fn(&str) -> bool| -> u64 {
        rows.iter().filter(|(location, what, _)| *what == "sectors_written" && is_one(location)).map(|row| row.2).sum()
    };
    let to_memory = written(&is_channel);
    // Copies write to the L2, too.
    let stored: u64 = launches.iter().map(|launch| launch.counter("l1_sectors_store")).sum();
    let to_slices = written(&|location| slices.contains(location)).max(stored);
    let written = if to_slices > 0 { (to_memory * SECTOR_BYTES) as f64 / to_slices as f64 } else { 0.0 };
    let work = |launch: &Launch| Work::of(launch.picoseconds, |counter| launch.counter(counter), written);
    let whole = launches.iter().map(work).fold(Work::default(), Work::and);
    let mut all = vec![Placed { name: name.to_owned(), work: whole }];
    if by_kernel {
        let mut kernels: BTreeMap<&str, Work> = BTreeMap::new();
        for launch in launches {
            let known = kernels.entry(&launch.kernel).or_default();
            *known = known.and(work(launch));
        }
        let mut names = short_names(kernels.keys().copied());
        let placed = |(kernel, work)| Placed { name: names.remove(kernel).unwrap_or_default(), work };
        let mut kernels: Vec<_> = kernels.into_iter().map(placed).collect();
        kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.work.picoseconds));
        all.extend(kernels);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(kernel: &str, picoseconds: u64, fused: u64, stored: u64) -> Launch {
        let value = |name: &str| match name {
            "flop_dp_fma" => fused,
            "l1_sectors_store" => stored,
            _ => 0,
        };
        let counters = KernelCounters::DEFINITIONS.iter().map(|definition| value(definition.name)).collect();
        Launch { kernel: kernel.to_owned(), gpu: "gpu".to_owned(), picoseconds, counters }
    }

    #[test]
    fn kernels_share_what_the_run_has_written() {
        let launches = [launch("_Z1av", 100, 8, 30), launch("b", 300, 0, 10), launch("_Z1av", 100, 8, 0)];
        let rows = [
            ("gpu.hbm[0].channel[1]", "sectors_written", 20),
            // Of 80 sectors that came to the L2, kernels stored 40.
            ("gpu.l2[0]", "sectors_written", 80),
            ("gpu.l2[0]", "sectors_filled", 1),
            ("host_memory.channel[0]", "sectors_written", 7),
        ];
        let [whole, b, a] = &placed("run", &launches, rows.into_iter(), true)[..] else { panic!("three") };
        assert_eq!((&*whole.name, &*b.name, &*a.name), ("run", "b", "a"));
        assert_eq!((whole.work.double, whole.work.dram_bytes), (32, 320.0));
        assert_eq!((a.work.double, a.work.picoseconds, a.work.dram_bytes), (32, 200, 240.0));
        assert_eq!(placed("run", &launches, rows.into_iter(), false).len(), 1);
    }
}
