//! What is measured of a node, how, and why it may not be.

use std::io;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Bandwidth of the levels of memory by reads of all SMs: the ceilings of memory.
    Levels,
    /// Arithmetic throughput over the operations on each element: the ceilings of arithmetic.
    Throughput,
    /// The toolkit's bandwidth kernels: trials inside, trials outside, shared memory.
    Toolkit,
    /// Throughput over warps of an SM and independent chains of a thread.
    Parallelism,
    /// Copies, zero copy and managed memory over the working set and its reuse.
    Reuse,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 5] = [Part::Levels, Part::Throughput, Part::Toolkit, Part::Parallelism, Part::Reuse];
}

/// What is measured, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What.
    pub parts: Vec<Part>,
    /// Each working set is so many times the one before.
    pub growth: f64,
    /// The largest working set, bytes; where none is given, sixteen times the L2 up to 96 MiB, but four times the L2 and 32 MiB at least.
    pub largest: Option<u64>,
    /// Blocks of the toolkit's kernels.
    pub blocks: u32,
    /// Threads of a block of them.
    pub threads: u32,
}

impl Default for Settings {
    /// The ceilings, and the toolkit's grid of 224 blocks of 64 threads.
    fn default() -> Settings {
        Settings { parts: vec![Part::Levels, Part::Throughput], growth: 1.2, largest: None, blocks: 224, threads: 64 }
    }
}

/// Why a node could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// It has nothing to measure.
    #[error("topology {0} has no GPU with SMs")]
    NoGpu(String),
    /// A microbenchmark did not run as it should.
    #[error("{benchmark}: {why}")]
    Failed {
        /// The workload, as `--workload` takes it.
        benchmark: String,
        /// What happened.
        why: String,
    },
    /// It was interrupted.
    #[error("interrupted")]
    Interrupted,
    /// There is no thread for the runs.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
