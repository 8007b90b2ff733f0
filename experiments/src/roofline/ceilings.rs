//! Ceilings: the most that a machine can do, by measurement or by its data sheet.

use super::levels::Level;
use balar_actors::catalogue::{GpuDescription, PeakRate};
use balar_actors::topology::Topology;

/// A kind of arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// Double precision.
    Double,
    /// Single precision.
    Single,
    /// Half precision, two in an instruction.
    Half,
    /// Products of halves on tensor cores.
    Tensor,
}

impl Precision {
    /// All of them.
    pub const ALL: [Precision; 4] = [Precision::Double, Precision::Single, Precision::Half, Precision::Tensor];

    /// Its name, which the workload `throughput` knows, too.
    pub fn name(self) -> &'static str {
        match self {
            Precision::Double => "fp64",
            Precision::Single => "fp32",
            Precision::Half => "fp16",
            Precision::Tensor => "tensor",
        }
    }

    /// Its name on charts.
    pub fn title(self) -> &'static str {
        match self {
            Precision::Double => "FP64",
            Precision::Single => "FP32",
            Precision::Half => "FP16",
            Precision::Tensor => "tensor",
        }
    }

    fn peak(self) -> PeakRate {
        match self {
            Precision::Double => PeakRate::DoubleOperations,
            Precision::Single => PeakRate::SingleOperations,
            Precision::Half => PeakRate::HalfOperations,
            Precision::Tensor => PeakRate::TensorOperations,
        }
    }
}

/// The most that a machine can do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ceilings {
    /// Levels of memory, the fastest first; the last one is DRAM.
    pub memory: Vec<Level>,
    /// Shared memory, GB/s.
    pub shared: Option<f64>,
    /// Arithmetic, GFLOP/s.
    pub arithmetic: Vec<(Precision, f64)>,
}

impl Ceilings {
    /// The ceiling of a precision, GFLOP/s.
    pub fn of(&self, precision: Precision) -> Option<f64> {
        self.arithmetic.iter().find(|(one, _)| *one == precision).map(|(_, gigaflops)| *gigaflops)
    }

    /// The bandwidth of a level, GB/s.
    pub fn level(&self, name: &str) -> Option<f64> {
        self.memory.iter().find(|level| level.name == name).map(|level| level.gigabytes)
    }

    /// The most that a program of so many operations a byte of a level can reach, GFLOP/s.
    pub fn attainable(&self, precision: Precision, level: &str, intensity: f64) -> Option<f64> {
        Some(self.of(precision)?.min(self.level(level)? * intensity))
    }
}

/// The ceilings by the parameters of a GPU's units: lanes, banks and buses times clocks.
pub fn textbook(topology: &Topology, gpu: &GpuDescription) -> Ceilings {
    let peaks = topology.peaks(gpu);
    let billions = |what: PeakRate| peaks.get(&what).map(|rate| *rate as f64 / 1e9);
    let levels = [("L1", PeakRate::L1Bytes), ("L2", PeakRate::L2Bytes), ("DRAM", PeakRate::DeviceMemoryBytes)];
    let level = |(name, what): (&str, PeakRate)| Some(Level { name: name.to_owned(), gigabytes: billions(what)? });
    Ceilings {
        memory: levels.into_iter().filter_map(level).collect(),
        shared: billions(PeakRate::SharedBytes),
        arithmetic: Precision::ALL.into_iter().filter_map(|one| Some((one, billions(one.peak())?))).collect(),
    }
}
