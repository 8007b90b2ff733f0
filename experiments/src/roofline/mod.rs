//! Rooflines of simulated nodes: the most that they can do, measured as the Roofline Toolkit measures machines, and programs below that.
//!
//! [`measure`] runs the workloads `bandwidth`, `throughput` and `reuse` on a node, a [`Part`] each; [`Ceilings`] come of them, or of the
//! node's parameters ([`textbook`]). [`Work`] says where a program is below them, from the counters of one run.
//!
//! `settings.rs` says what can be measured, `machine.rs` runs microbenchmarks, several at a time; `bandwidth.rs`, `arithmetic.rs` and `reuse.rs` say which; `levels.rs` has the levels that a curve shows,
//! `ceilings.rs` those measured and those by parameters, `placement.rs` where a program is below them, `report.rs` tables and charts, `formats.rs` files of other
//! tools.

mod arithmetic;
mod bandwidth;
mod ceilings;
mod formats;
mod levels;
mod machine;
mod placement;
mod report;
mod reuse;
mod settings;

pub use arithmetic::{ParallelismPoint, ThroughputPoint};
pub use bandwidth::{BandwidthPoint, Kernel};
pub use ceilings::{Ceilings, Precision, textbook};
pub use formats::{data_txt, roofline_json};
pub use levels::{Level, levels};
pub use machine::Running;
pub use placement::{Placed, Work, left_out};
pub use report::{chart, report};
pub use reuse::{Mechanism, ReusePoint};
pub use settings::{MeasureError, Part, Settings};

use balar_actors::topology::Topology;
use machine::Machine;

/// The measurements of a node.
#[derive(Clone, Debug, Default)]
pub struct Measurements {
    /// The node's name.
    pub topology: String,
    /// Bandwidths by kernel and working set.
    pub bandwidth: Vec<BandwidthPoint>,
    /// Throughput by precision and operations on an element.
    pub throughput: Vec<ThroughputPoint>,
    /// Throughput by precision, warps and chains.
    pub parallelism: Vec<ParallelismPoint>,
    /// Effective bandwidth by mechanism, working set and reuse.
    pub reuse: Vec<ReusePoint>,
    /// The ceilings that this shows.
    pub empirical: Ceilings,
    /// Those that the node's parameters allow.
    pub textbook: Ceilings,
}

/// Measures the first GPU of a node.
///
/// # Errors
///
/// Where there is nothing to measure, a microbenchmark fails, or it is interrupted.
pub fn measure(topology: &Topology, settings: &Settings, running: &Running<'_>) -> Result<Measurements, MeasureError> {
    let machine = Machine::new(topology)?;
    let has = |part| settings.parts.contains(&part);
    let mut found = Measurements {
        topology: topology.name.clone(),
        textbook: textbook(topology, &machine.gpu),
        ..Measurements::default()
    };
    if has(Part::Levels) {
        found.bandwidth.extend(bandwidth::reads(&machine, settings, running)?);
    }
    if has(Part::Toolkit) {
        found.bandwidth.extend(bandwidth::toolkit(&machine, settings, running)?);
    }
    if has(Part::Throughput) {
        found.throughput = arithmetic::throughput(&machine, running)?;
    }
    if has(Part::Parallelism) {
        found.parallelism = arithmetic::parallelism(&machine, running)?;
    }
    if has(Part::Reuse) {
        found.reuse = reuse::mechanisms(&machine, settings, running)?;
    }
    found.empirical = ceilings(&found);
    Ok(found)
}

/// The ceilings that measurements show.
fn ceilings(found: &Measurements) -> Ceilings {
    let curve = |kernel: Kernel| -> Vec<(f64, f64)> {
        let of_kernel = found.bandwidth.iter().filter(|point| point.kernel == kernel);
        of_kernel.map(|point| (point.working_set as f64, point.sustained)).collect()
    };
    // The most operations on an element: with few, a launch waits for memory, and one of twice as many passes finds other data in the L2, so
    // that their difference may be too small.
    let arithmetic = Precision::ALL.into_iter().filter_map(|precision| {
        let of_precision = found.throughput.iter().filter(|point| point.precision == precision);
        Some((precision, of_precision.max_by_key(|point| point.flops)?.sustained))
    });
    Ceilings {
        memory: levels(&curve(Kernel::Read)),
        shared: curve(Kernel::Shared).into_iter().map(|point| point.1).reduce(f64::max),
        arithmetic: arithmetic.collect(),
    }
}
