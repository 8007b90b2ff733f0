//! What a workload is: its name, its parameters, its code as compilers made it, and its host program.

use crate::parameters::{Domain, Parameter, Parameters, WorkloadError};
use crate::script::ScriptedProgram;
use balar_host::HostProgram;

/// A compiler that turns CUDA sources into PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compiler {
    /// NVRTC of CUDA 12, the newest that compiles for sm_60 and sm_70: what runs where nothing else is asked for.
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
    /// One line: what it computes.
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
    /// The PTX for a device: NVRTC's for the greatest compute capability that the device has, and Clang's for a device that is older than
    /// what NVRTC knows.
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

    /// What a compiler made for a device: for the greatest compute capability that the device has, and where it made none
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

/// The PTX of a workload, as each compiler gave it. Named after the workload: the variants that there are, where some
/// cannot be built. Paths are from a file in a room.
macro_rules! code {
    ($name:literal) => {
        $crate::descriptor::code!($name: nvrtc 60, nvrtc 70, nvcc 75, clang 70)
    };
    ($name:literal: $($compiler:ident $capability:literal),+) => {
        &[$($crate::descriptor::code!(@ $name $compiler $capability)),+]
    };
    (@ $name:literal nvrtc $capability:literal) => {
        $crate::descriptor::code!(@ Nvrtc, $capability, concat!($name, ".sm_", $capability, ".ptx"), $name)
    };
    (@ $name:literal nvcc $capability:literal) => {
        $crate::descriptor::code!(@ Nvcc, $capability, concat!($name, ".nvcc.sm_", $capability, ".ptx"), $name)
    };
    (@ $name:literal clang $capability:literal) => {
        $crate::descriptor::code!(@ Clang, $capability, concat!($name, ".clang.sm_", $capability, ".ptx"), $name)
    };
    (@ $compiler:ident, $capability:literal, $file:expr, $name:literal) => {
        $crate::descriptor::Code {
            compiler: $crate::descriptor::Compiler::$compiler,
            capability: $capability,
            file: $file,
            text: include_str!(concat!("../../", $name, "/", $file)),
        }
    };
}
pub(crate) use code;

/// The machine code of a workload: that for sm_70 of ptxas 12.9, from NVRTC's PTX, and those for sm_75,
/// sm_80 and sm_90 of ptxas 13, from nvcc's.
macro_rules! cubins {
    ($name:literal) => {
        &[
            $crate::descriptor::cubins!(@ $name, 70),
            $crate::descriptor::cubins!(@ $name, 75),
            $crate::descriptor::cubins!(@ $name, 80),
            $crate::descriptor::cubins!(@ $name, 90),
        ]
    };
    (@ $name:literal, $capability:literal) => {
        $crate::descriptor::Cubin {
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
    domain: Domain::Integer { value: 1, minimum: 0, maximum: u64::MAX },
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
    Parameter { name, domain: Domain::Integer { value, minimum, maximum }, meaning }
}
