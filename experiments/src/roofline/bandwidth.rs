//! Bandwidth over the working set.

use super::machine::{Benchmark, Machine, Measured, Running};
use super::{MeasureError, Settings};

/// A kernel of the workload `bandwidth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kernel {
    /// All SMs read the working set.
    Read,
    /// The toolkit's kernel A: threads update elements, trials within the kernel.
    Inside,
    /// Its kernel B: a launch for each trial.
    Outside,
    /// Its kernel C: as A, in shared memory.
    Shared,
}

impl Kernel {
    /// Its name, which the workload knows.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Read => "read",
            Kernel::Inside => "inside",
            Kernel::Outside => "outside",
            Kernel::Shared => "shared",
        }
    }

    /// Its name in print.
    pub fn title(self) -> &'static str {
        match self {
            Kernel::Read => "reads by all SMs",
            Kernel::Inside => "A: trials inside",
            Kernel::Outside => "B: trials outside",
            Kernel::Shared => "C: shared memory",
        }
    }
}

/// The bandwidth of a kernel with a working set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BandwidthPoint {
    /// The kernel.
    pub kernel: Kernel,
    /// Bytes of the working set.
    pub working_set: u64,
    /// Times that it was read or updated.
    pub trials: u64,
    /// How long that took the host, launch and wait included, us.
    pub microseconds: f64,
    /// Bytes read and written in that time.
    pub bytes: f64,
    /// Bytes over time, GB/s, as the toolkit reports it.
    pub with_launch: f64,
    /// The same without the cost of a launch: the difference of twice as many trials and as many, GB/s.
    pub sustained: f64,
}

/// A chunk that a warp reads, bytes.
const CHUNK: u64 = 1 << 10;
/// Bytes that an SM reads in a launch, at least: working sets that may fit in an L1, and others. The first are gone through several times, so
/// that the first time, which brings them in, weighs little.
const BYTES_OF_SM: (u64, u64) = (1200 << 10, 256 << 10);
/// No L1 is larger.
const LARGEST_L1: u64 = 256 << 10;
/// Working sets beyond so many times the L2 show device memory alone: as many as leave enough sets for a plateau, and more where that costs
/// little.
const BEYOND_L2: (u64, u64) = (4, 16);
/// For a small L2, so many bytes at least; beyond so many, no more than are needed.
const BEYOND_BYTES: (u64, u64) = (32 << 20, 96 << 20);

/// The largest working set: the requested one, or one beyond the L2.
fn largest(machine: &Machine<'_>, settings: &Settings) -> u64 {
    settings.largest.unwrap_or_else(|| {
        let [needed, more] = [BEYOND_L2.0, BEYOND_L2.1].map(|times| times * machine.gpu.l2_bytes);
        more.min(BEYOND_BYTES.1).max(needed).max(BEYOND_BYTES.0).min(machine.gpu.memory_bytes / 4)
    })
}

/// Sizes from `least` on, each `growth` times the one before, in whole units that `unit` gives.
fn sizes(least: u64, most: u64, growth: f64, unit: impl Fn(u64) -> u64) -> Vec<u64> {
    let growth = growth.max(1.01);
    let exact = std::iter::successors(Some(least as f64), |size| Some(size * growth));
    let rounded = exact.take_while(|size| *size <= most as f64 * 1.0001).map(|size| {
        let unit = unit(size as u64);
        (size as u64).next_multiple_of(unit)
    });
    let mut sizes: Vec<u64> = rounded.collect();
    sizes.dedup();
    sizes
}

/// Reads of all SMs: one block of them each, with as many threads as a block can have.
pub(super) fn reads(
    machine: &Machine<'_>,
    settings: &Settings,
    running: &Running<'_>,
) -> Result<Vec<BandwidthPoint>, MeasureError> {
    let sms = u64::from(machine.gpu.sm_count());
    let threads = machine.threads_of_sm().min(1024);
    // All warps together read so much at a time: larger working sets are multiples of it, so that no trial reads a part of them twice.
    let front = sms * u64::from(threads / 32) * CHUNK;
    let sets =
        sizes(CHUNK, largest(machine, settings), settings.growth, |size| if size > front { front } else { CHUNK });
    let planned: Vec<(u64, u64)> = sets
        .into_iter()
        .map(|set| {
            let least = sms * if set <= LARGEST_L1 { BYTES_OF_SM.0 } else { BYTES_OF_SM.1 };
            (set, least.div_ceil(set.next_multiple_of(front)))
        })
        .collect();
    run(machine, running, Kernel::Read, &planned, (sms, u64::from(threads)))
}

/// Bytes of the working set over all trials of a launch of the toolkit's kernels, roughly.
const TOOLKIT_BYTES: u64 = 8 << 20;
/// The most trials of a launch, and the most launches.
const TRIALS: (u64, u64) = (1000, 10);
/// Shared memory of a block.
const SHARED: u64 = 48 << 10;
/// The smallest working set of the toolkit, bytes.
const LEAST: u64 = 128;

/// The toolkit's kernels, in its grid.
pub(super) fn toolkit(
    machine: &Machine<'_>,
    settings: &Settings,
    running: &Running<'_>,
) -> Result<Vec<BandwidthPoint>, MeasureError> {
    let grid = (u64::from(settings.blocks), u64::from(settings.threads));
    let largest = largest(machine, settings);
    let mut points = Vec::new();
    for kernel in [Kernel::Inside, Kernel::Outside, Kernel::Shared] {
        let most = if kernel == Kernel::Shared { largest.min(grid.0 * SHARED) } else { largest };
        let planned: Vec<(u64, u64)> = sizes(LEAST, most, settings.growth, |_| 8)
            .into_iter()
            .map(|set| {
                let most = if kernel == Kernel::Outside { TRIALS.1 } else { TRIALS.0 };
                (set, (TOOLKIT_BYTES / set).clamp(1, most))
            })
            .collect();
        points.extend(run(machine, running, kernel, &planned, grid)?);
    }
    Ok(points)
}

fn run(
    machine: &Machine<'_>,
    running: &Running<'_>,
    kernel: Kernel,
    planned: &[(u64, u64)],
    (blocks, threads): (u64, u64),
) -> Result<Vec<BandwidthPoint>, MeasureError> {
    let benchmark = |&(working_set, trials): &(u64, u64)| {
        let kernel = kernel.name();
        Benchmark::new(
            "bandwidth",
            &[
                ("kernel", &kernel),
                ("working_set", &working_set),
                ("trials", &trials),
                ("blocks", &blocks),
                ("threads", &threads),
            ],
        )
    };
    let benchmarks: Vec<_> = planned.iter().map(benchmark).collect();
    let measured = machine.run(&benchmarks, running)?;
    Ok(planned.iter().zip(&measured).map(|(point, measured)| of(kernel, *point, measured)).collect())
}

fn of(kernel: Kernel, (working_set, trials): (u64, u64), measured: &Measured) -> BandwidthPoint {
    let value = |name| measured.get(name).unwrap_or(0.0);
    let with_launch = value("host_bandwidth");
    BandwidthPoint {
        kernel,
        working_set,
        trials,
        microseconds: value("host_time") / 1e3,
        bytes: value("bytes_per_trial") * trials as f64,
        with_launch,
        // Where twice as many trials take no longer, the time is all a launch's.
        sustained: measured.get("sustained_bandwidth").unwrap_or(with_launch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_grow_in_whole_units_to_the_end() {
        assert_eq!(sizes(1024, 8192, 2.0, |_| 1024), [1024, 2048, 4096, 8192]);
        assert_eq!(sizes(128, 200, 1.2, |_| 8), [128, 160, 184]);
        let coarse = sizes(1024, 20_000, 1.1, |size| if size > 4096 { 4096 } else { 1024 });
        assert!(coarse.windows(2).all(|pair| pair[0] < pair[1]), "{coarse:?}");
        assert!(coarse.iter().all(|size| size % 1024 == 0 && (*size <= 4096 || size % 4096 == 0)));
    }
}
