//! Data that the host and the GPU use in turn, brought to the GPU in different ways, over the working set and its reuse.

use super::machine::{Benchmark, Machine, Running};
use super::{MeasureError, Settings};

/// How data come to the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mechanism {
    /// Copies from and to pageable memory.
    Pageable,
    /// Copies from and to page-locked memory.
    Pinned,
    /// Kernels access page-locked memory.
    ZeroCopy,
    /// Managed memory, whose pages move.
    Managed,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Mechanism; 4] = [Mechanism::Pageable, Mechanism::Pinned, Mechanism::ZeroCopy, Mechanism::Managed];

    /// Its name in print.
    pub fn title(self) -> &'static str {
        match self {
            Mechanism::Pageable => "pageable copies",
            Mechanism::Pinned => "page-locked copies",
            Mechanism::ZeroCopy => "zero copy",
            Mechanism::Managed => "managed",
        }
    }

    /// The workload's settings.
    fn settings(self) -> (&'static str, &'static str) {
        match self {
            Mechanism::Pageable => ("pageable", "device"),
            Mechanism::Pinned => ("pinned", "device"),
            Mechanism::ZeroCopy => ("zero_copy", "device"),
            Mechanism::Managed => ("pageable", "managed"),
        }
    }
}

/// The bandwidth that iterations of the host and the GPU reach together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReusePoint {
    /// How the data come to the GPU.
    pub mechanism: Mechanism,
    /// Bytes of the data.
    pub working_set: u64,
    /// Iterations of the GPU to one of the host.
    pub reuse: u32,
    /// 16 bytes for each element and iteration, over the time of all, GB/s.
    pub effective: f64,
}

/// Working sets, bytes.
const WORKING_SETS: [u64; 4] = [16 << 10, 256 << 10, 4 << 20, 16 << 20];
/// Iterations of the GPU to one of the host.
const REUSES: [u32; 4] = [1, 10, 100, 1000];
/// Bytes that all iterations of a run access, at most: larger ones are left out.
const BYTES: u64 = 1 << 30;

/// All mechanisms; managed memory where the node moves its pages.
pub(super) fn mechanisms(
    machine: &Machine<'_>,
    settings: &Settings,
    running: &Running<'_>,
) -> Result<Vec<ReusePoint>, MeasureError> {
    let moves_pages =
        machine.topology.wires.iter().any(|wire| [&wire.a, &wire.b].iter().any(|end| end.port == "managed"));
    let wanted = Mechanism::ALL.into_iter().filter(|one| *one != Mechanism::Managed || moves_pages);
    let most = settings.largest.unwrap_or(u64::MAX);
    let planned: Vec<(Mechanism, u64, u32)> = wanted
        .flat_map(|one| WORKING_SETS.into_iter().flat_map(move |set| REUSES.map(|reuse| (one, set, reuse))))
        .filter(|(_, set, reuse)| *set <= most && set * u64::from(*reuse) <= BYTES)
        .collect();
    let benchmarks: Vec<_> = planned.iter().map(|point| benchmark(*point, settings)).collect();
    let measured = machine.run(&benchmarks, running)?;
    let points = planned.into_iter().zip(&measured).map(|((mechanism, working_set, reuse), measured)| ReusePoint {
        mechanism,
        working_set,
        reuse,
        effective: measured.get("effective_bandwidth").unwrap_or(0.0),
    });
    Ok(points.collect())
}

fn benchmark((mechanism, working_set, reuse): (Mechanism, u64, u32), settings: &Settings) -> Benchmark {
    let (mechanism, memory) = mechanism.settings();
    Benchmark::new(
        "reuse",
        &[
            ("mechanism", &mechanism),
            ("memory", &memory),
            ("elements", &(working_set / 8)),
            ("reuse", &reuse),
            ("trials", &1),
            ("blocks", &settings.blocks),
            ("threads", &settings.threads),
        ],
    )
}
