//! Unified memory beside hardware and beside the simulator of the study.
//!
//! The hardware is a GTX 1080 Ti (nvprof summaries in the history of UVMSmart's repository, `benchmarks/Results/Smart_Runtime/NoOversub/Real`), the
//! simulator UVMSmart (bafab5d): its logs and spreadsheets. The programs are this project's own with the same arrays, kernels and
//! launches; their inputs are other random numbers.

mod common;
pub mod evictions;
pub mod hardware;
pub mod prefetchers;
pub mod shootdowns;
mod study;

pub use study::STUDY;

use super::runs::Point;
use crate::experiment::{ExperimentError, run_overridden};
use balar_actors::engine::RunOptions;
use balar_actors::simulation::RunResult;
use balar_actors::unified_memory::allocation::AllocationTrees;

/// A program of the hardware table.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name in the studies.
    pub name: &'static str,
    /// The workload that stands for it.
    pub workload: &'static str,
    /// Its settings, beside managed memory.
    pub parameters: &'static [(&'static str, &'static str)],
    /// Time of all kernels on a GTX 1080 Ti, us.
    pub hardware_us: f64,
    /// UVMSmart's kernel time and 45 us for each fault, us.
    pub uvmsmart_us: f64,
    /// GPU page fault groups on the hardware.
    pub groups: u64,
    /// KiB that came to the GPU on the hardware.
    pub to_device_kib: u64,
    /// Transfers to the GPU on the hardware.
    pub transfers: u64,
}

/// The twelve programs, at 100 % of the memory.
pub const PROGRAMS: &[Program] = &[
    program("2DCONV", "convolution", &[], (2051.0, 1838.6), 21, (4096, 50)),
    program("backprop", "backprop", &[("inputs", "131056")], (8720.8, 7321.1), 64, (27264, 393)),
    program(
        "pathfinder",
        "pathfinder",
        &[("columns", "50000"), ("rows", "200"), ("steps", "10")],
        (10544.0, 9015.0),
        107,
        (39124, 475),
    ),
    program(
        "StreamTriad",
        "stream",
        &[("elements", "524288"), ("operation", "triad"), ("launches", "1")],
        (3387.8, 2978.3),
        24,
        (12288, 179),
    ),
    program("FDTD-2D", "fdtd", &[], (5711.0, 4883.6), 35, (16956, 199)),
    program(
        "hotspot",
        "hotspot",
        &[("size", "1024"), ("iterations", "8"), ("steps", "2"), ("precision", "mixed")],
        (4226.4, 3398.1),
        24,
        (8192, 61),
    ),
    program(
        "srad_v2",
        "srad",
        &[("size", "1024"), ("steps", "4"), ("sample", "128")],
        (3108.8, 4312.8),
        12,
        (5632, 55),
    ),
    program("bfs", "bfs", &[("nodes", "261444"), ("seed", "2")], (3217.8, 3845.3), 16, (10224, 306)),
    program("nw", "nw", &[("length", "1024")], (2916.2, 2720.3), 24, (8216, 52)),
    program("sssp", "sssp", &[("block", "16")], (7972.7, 8844.1), 40, (20480, 551)),
    program("ATAX", "atax", &[], (2261.3, 2742.5), 4, (5692, 210)),
    program("ra", "random_access", &[], (4418.6, 5216.0), 17, (8192, 382)),
];

const fn program(
    name: &'static str,
    workload: &'static str,
    parameters: &'static [(&'static str, &'static str)],
    (hardware_us, uvmsmart_us): (f64, f64),
    groups: u64,
    (to_device_kib, transfers): (u64, u64),
) -> Program {
    Program { name, workload, parameters, hardware_us, uvmsmart_us, groups, to_device_kib, transfers }
}

/// The figures of a run with managed memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Time of all kernels, us.
    pub kernel_us: f64,
    /// Cycles of all kernels.
    pub cycles: u64,
    /// Batches of faults.
    pub batches: u64,
    /// Far faults.
    pub faults: u64,
    /// KiB that came to the GPU.
    pub to_device_kib: u64,
    /// Transfers to the GPU.
    pub transfers: u64,
    /// Time of transfers to the GPU, us.
    pub to_device_us: f64,
    /// KiB that went to the host.
    pub to_host_kib: u64,
    /// Look-ups of the SMs' TLBs that hit, percent.
    pub tlb_hits_percent: f64,
    /// Pages that came back after they had been evicted.
    pub thrashed: u64,
    /// Managed memory, each allocation rounded up as the driver rounds it, KiB.
    pub footprint_kib: u64,
}

impl Figures {
    /// The figures of a run.
    pub fn of(result: &RunResult) -> Figures {
        let sum = |location: &str, what: &str| result.sum(location, what).unwrap_or(0);
        let kernels = &result.statistics.kernels;
        let picoseconds: u64 = kernels.iter().map(|kernel| kernel.end_ps - kernel.start_ps).sum();
        let (lookups, misses) = (sum("gpu.sm", "tlb_lookups"), sum("gpu.sm", "tlb_misses"));
        Figures {
            kernel_us: picoseconds as f64 / 1e6,
            cycles: kernels.iter().map(|kernel| kernel.cycles).sum(),
            batches: sum("unified_memory", "batches"),
            faults: sum("unified_memory", "far_faults"),
            to_device_kib: sum("migration_link.to_device", "bytes") >> 10,
            transfers: sum("migration_link.to_device", "transfers"),
            to_device_us: sum("migration_link.to_device", "busy_time") as f64 / 1e6,
            to_host_kib: sum("migration_link.to_host", "bytes") >> 10,
            tlb_hits_percent: 100.0 * (lookups - misses) as f64 / lookups.max(1) as f64,
            thrashed: sum("unified_memory", "pages_thrashed"),
            footprint_kib: footprint_kib(result),
        }
    }
}

/// Managed memory, each allocation rounded up as the driver rounds it, KiB.
fn footprint_kib(result: &RunResult) -> u64 {
    let rows = result.statistics.rows.iter();
    let sizes = rows.filter(|row| row.what == "bytes" && row.location.starts_with("unified_memory.allocation"));
    // An allocation of nothing is no allocation.
    sizes.filter_map(|row| AllocationTrees::new(row.value).ok()).map(|trees| trees.bytes() >> 10).sum()
}

impl Program {
    /// The program with managed memory on a node, with overrides of the node's parameters.
    pub fn point(&self, topology: &'static str, overrides: &[(&'static str, String)]) -> Point {
        let parameters = self.parameters.iter().copied().chain([("memory", "managed")]);
        Point { topology, workload: self.workload, parameters: parameters.collect(), overrides: overrides.to_vec() }
    }
}

/// The program of the hardware table with this name.
pub(crate) fn program_named(name: &str) -> &'static Program {
    PROGRAMS
        .iter()
        .find(|program| program.name == name)
        .expect("every program of the study is one of the hardware table")
}

/// Runs a program with managed memory on a node, with overrides of the node's parameters.
///
/// # Errors
///
/// As [`run`](crate::run).
pub fn run_program(
    options: RunOptions,
    topology: &str,
    program: &Program,
    overrides: &[(&str, &str)],
) -> Result<Figures, ExperimentError> {
    let parameters: Vec<_> = program.parameters.iter().copied().chain([("memory", "managed")]).collect();
    run_overridden(options, topology, program.workload, &parameters, overrides, &[]).map(|result| Figures::of(&result))
}
