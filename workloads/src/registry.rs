//! The workloads by name.

use crate::parameters::{Parameter, Parameters, Suggestion, WorkloadError};
use crate::script::ScriptedProgram;
use balar_host::HostProgram;

/// A compiler that turns CUDA sources into PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compiler {
    /// NVRTC of CUDA 12, the newest that compiles for sm_60 and sm_70: the default.
    Nvrtc,
    /// nvcc of CUDA 13.
    Nvcc,
    /// Clang.
    Clang,
}

impl Compiler {
    /// All compilers.
    pub const ALL: [Compiler; 3] = [Compiler::Nvrtc, Compiler::Nvcc, Compiler::Clang];

    /// Its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Compiler::Nvrtc => "nvrtc",
            Compiler::Nvcc => "nvcc",
            Compiler::Clang => "clang",
        }
    }
}

/// A workload's PTX as one compiler gave it.
#[derive(Clone, Copy, Debug)]
pub struct Code {
    /// The compiler.
    pub compiler: Compiler,
    /// The compute capability that it was built for: 70 for sm_70.
    pub capability: u32,
    /// The PTX's file name.
    pub file: &'static str,
    /// The PTX.
    pub text: &'static str,
}

/// A workload's machine code.
#[derive(Clone, Copy, Debug)]
pub struct Cubin {
    /// The compute capability that it is for: 70 for sm_70.
    pub capability: u32,
    /// The file name.
    pub file: &'static str,
    /// The file.
    pub bytes: &'static [u8],
}

/// Describes a workload: its name, parameters, code and host program.
#[derive(Debug)]
pub struct Descriptor {
    /// Its name.
    pub name: &'static str,
    /// One line: its computation.
    pub summary: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Its PTX as each compiler gives it; the ones of a compiler in ascending order of compute capability.
    pub code: &'static [Code],
    /// Its machine code, in ascending order of compute capability.
    pub cubins: &'static [Cubin],
    /// Settings that make it small, in the form of [`Descriptor::parse_parameters`]: at most some ten thousand warp
    /// instructions, with partial tiles and blocks where it has them. Tests run it so.
    pub small: &'static str,
    /// Makes its host program. An error where the values do not go together.
    pub(crate) build: fn(&Parameters) -> Result<ScriptedProgram, WorkloadError>,
}

impl Descriptor {
    /// The PTX for a device: NVRTC's for the greatest compute capability that the device has, and Clang's for a device that is too old for
    /// NVRTC.
    pub fn ptx_for(&self, compute_capability: u32) -> Option<&'static str> {
        let runs = |code: &&Code| code.capability <= compute_capability;
        let of = |compiler| self.code.iter().rev().filter(move |code| code.compiler == compiler).find(runs);
        of(Compiler::Nvrtc).or_else(|| of(Compiler::Clang)).map(|code| code.text)
    }

    /// The machine code for a device: for the greatest compute capability of its generation that the device has.
    pub fn cubin_for(&self, compute_capability: u32) -> Option<&'static Cubin> {
        let runs =
            |cubin: &&Cubin| cubin.capability / 10 == compute_capability / 10 && cubin.capability <= compute_capability;
        self.cubins.iter().rev().find(runs)
    }

    /// A compiler's code for a device: the code for the greatest compute capability that the device has, and where the compiler made none
    /// that old, the oldest. (nvcc of CUDA 13 makes nothing older than sm_75; the workloads use nothing that is new there.)
    pub fn code_of(&self, compiler: Compiler, compute_capability: u32) -> Option<&'static Code> {
        let own = || self.code.iter().filter(move |code| code.compiler == compiler);
        own().rev().find(|code| code.capability <= compute_capability).or_else(|| own().next())
    }

    /// All parameters, from keys and values; those not named have their defaults.
    pub fn parameters_from<'text>(
        &self,
        settings: impl IntoIterator<Item = (&'text str, &'text str)>,
    ) -> Result<Parameters, WorkloadError> {
        Parameters::new(self.name, self.parameters, settings)
    }

    /// All parameters, from text such as `size=256,iterations=2`, which may be empty.
    pub fn parse_parameters(&self, text: &str) -> Result<Parameters, WorkloadError> {
        let settings = text.split(',').map(str::trim).filter(|setting| !setting.is_empty());
        let pairs = settings.map(|setting| {
            let (key, value) = setting
                .split_once('=')
                .ok_or_else(|| WorkloadError::NotKeyValue { workload: self.name, text: setting.to_owned() })?;
            Ok((key.trim(), value.trim()))
        });
        self.parameters_from(pairs.collect::<Result<Vec<_>, _>>()?)
    }

    /// The host program with these parameters, which this descriptor made.
    pub fn program(&self, parameters: &Parameters) -> Result<Box<dyn HostProgram>, WorkloadError> {
        Ok(Box::new((self.build)(parameters)?.with_memory(parameters.memory())))
    }
}

static WORKLOADS: &[Descriptor] = &[
    crate::linear_algebra::vectoradd::DESCRIPTOR,
    crate::linear_algebra::lud::DESCRIPTOR,
    crate::primitives::reduction::DESCRIPTOR,
    crate::linear_algebra::gemm::DESCRIPTOR,
    crate::simulations::hotspot::DESCRIPTOR,
    crate::cuda_features::concurrent::DESCRIPTOR,
    crate::memory_benchmarks::pointer_chase::DESCRIPTOR,
    crate::memory_benchmarks::stream::DESCRIPTOR,
    crate::memory_benchmarks::shared_chase::DESCRIPTOR,
    crate::arithmetic_benchmarks::alu_latency::DESCRIPTOR,
    crate::primitives::bitonic::DESCRIPTOR,
    crate::simulations::nbody::DESCRIPTOR,
    crate::simulations::stencil3d::DESCRIPTOR,
    crate::simulations::montecarlo::DESCRIPTOR,
    crate::primitives::fft::DESCRIPTOR,
    crate::linear_algebra::tensor_gemm::DESCRIPTOR,
    crate::cuda_features::grid_sync::DESCRIPTOR,
    crate::cuda_features::virtual_dispatch::DESCRIPTOR,
    crate::cuda_features::device_heap::DESCRIPTOR,
    crate::cuda_features::device_print::DESCRIPTOR,
    crate::simulations::shock::DESCRIPTOR,
    crate::searches::bfs::DESCRIPTOR,
    crate::learning::backprop::DESCRIPTOR,
    crate::searches::nw::DESCRIPTOR,
    crate::searches::pathfinder::DESCRIPTOR,
    crate::images::srad::DESCRIPTOR,
    crate::learning::kmeans::DESCRIPTOR,
    crate::searches::nn::DESCRIPTOR,
    crate::learning::clustering::DESCRIPTOR,
    crate::linear_algebra::gaussian::DESCRIPTOR,
    crate::searches::btree::DESCRIPTOR,
    crate::images::tracking::DESCRIPTOR,
    crate::linear_algebra::spmv::DESCRIPTOR,
    crate::linear_algebra::row_walk::DESCRIPTOR,
    crate::primitives::scan::DESCRIPTOR,
    crate::linear_algebra::transpose::DESCRIPTOR,
    crate::primitives::histogram::DESCRIPTOR,
    crate::images::convolution::DESCRIPTOR,
    crate::linear_algebra::atax::DESCRIPTOR,
    crate::simulations::fdtd::DESCRIPTOR,
    crate::memory_benchmarks::random_access::DESCRIPTOR,
    crate::searches::sssp::DESCRIPTOR,
    crate::memory_benchmarks::page_touch::DESCRIPTOR,
    crate::memory_benchmarks::bandwidth::DESCRIPTOR,
    crate::arithmetic_benchmarks::throughput::DESCRIPTOR,
    crate::memory_benchmarks::reuse::DESCRIPTOR,
];

/// All workloads.
pub fn workloads() -> &'static [Descriptor] {
    WORKLOADS
}

/// Lower case, without underscores: `PointerChase` and `pointer_chase` are the same name.
fn normalised(name: &str) -> String {
    name.chars().filter(|character| *character != '_').flat_map(char::to_lowercase).collect()
}

/// The workload of a name. Case and underscores do not matter, so that a topology can write `VectorAdd`.
pub fn find(name: &str) -> Result<&'static Descriptor, WorkloadError> {
    let wanted = normalised(name);
    WORKLOADS.iter().find(|workload| normalised(workload.name) == wanted).ok_or_else(|| {
        WorkloadError::UnknownWorkload {
            name: name.to_owned(),
            suggestion: Suggestion::new(name, WORKLOADS.iter().map(|workload| workload.name)),
        }
    })
}

/// The PTX of a workload, as each compiler gave it. Named after the workload: the variants that there are, where some
/// cannot be built. Paths are from a file in a room.
macro_rules! code {
    ($name:literal) => {
        $crate::registry::code!($name: nvrtc 60, nvrtc 70, nvcc 75, clang 70)
    };
    ($name:literal: $($compiler:ident $capability:literal),+) => {
        &[$($crate::registry::code!(@ $name $compiler $capability)),+]
    };
    (@ $name:literal nvrtc $capability:literal) => {
        $crate::registry::code!(@ Nvrtc, $capability, concat!($name, ".sm_", $capability, ".ptx"), $name)
    };
    (@ $name:literal nvcc $capability:literal) => {
        $crate::registry::code!(@ Nvcc, $capability, concat!($name, ".nvcc.sm_", $capability, ".ptx"), $name)
    };
    (@ $name:literal clang $capability:literal) => {
        $crate::registry::code!(@ Clang, $capability, concat!($name, ".clang.sm_", $capability, ".ptx"), $name)
    };
    (@ $compiler:ident, $capability:literal, $file:expr, $name:literal) => {
        $crate::registry::Code {
            compiler: $crate::registry::Compiler::$compiler,
            capability: $capability,
            file: $file,
            text: include_str!(concat!("../../", $name, "/", $file)),
        }
    };
}
pub(crate) use code;

/// The machine code of a workload: that for sm_70 of ptxas 12.9, from NVRTC's PTX, and that for sm_75 of ptxas 13, from nvcc's.
macro_rules! cubins {
    ($name:literal) => {
        &[$crate::registry::cubins!(@ $name, 70), $crate::registry::cubins!(@ $name, 75)]
    };
    (@ $name:literal, $capability:literal) => {
        $crate::registry::Cubin {
            capability: $capability,
            file: concat!($name, ".sm_", $capability, ".cubin"),
            bytes: include_bytes!(concat!("../../", $name, "/built/", $name, ".sm_", $capability, ".cubin")),
        }
    };
}
pub(crate) use cubins;

/// The parameter that seeds a workload's inputs.
pub(crate) const SEED: Parameter = Parameter {
    name: "seed",
    domain: crate::parameters::Domain::Integer { value: 1, minimum: 0, maximum: u64::MAX },
    meaning: "seed of the inputs",
};

/// A parameter that is a whole number.
pub(crate) const fn integer(
    name: &'static str,
    value: u64,
    minimum: u64,
    maximum: u64,
    meaning: &'static str,
) -> Parameter {
    Parameter { name, domain: crate::parameters::Domain::Integer { value, minimum, maximum }, meaning }
}
