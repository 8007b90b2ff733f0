//! Code that was read and linked, PTX or machine code: its needs and its contents.

use super::error::LoadError;
use super::source::ModuleSource;
use balar_isa::machine::{MachineError, MachineModule, PlacedVariable, Placement};
use balar_isa::module::{PtxModule, VariableKind};
use balar_isa::program::{ParameterSlot, Program};
use balar_isa::ptx::{self, PtxErrors};
use std::sync::Arc;

/// Code that was read. Its placements get addresses before its kernels are decoded.
#[derive(Debug)]
pub(crate) enum CodeModule {
    Ptx(PtxModule),
    Machine(MachineModule),
}

impl CodeModule {
    /// Reads and links code.
    pub fn read(source: &ModuleSource) -> Result<CodeModule, LoadError> {
        match source {
            ModuleSource::Ptx(texts) => {
                let trees: Result<Vec<_>, PtxErrors> =
                    texts.iter().map(|(file, text)| ptx::parse(file, text)).collect();
                let module = trees.and_then(PtxModule::link).map_err(Box::new)?;
                Ok(CodeModule::Ptx(module))
            }
            ModuleSource::Machine { cubins, .. } => {
                let module = MachineModule::read(cubins.iter().map(|(_, bytes)| Arc::clone(bytes)));
                let module = module.map_err(|error| LoadError::Machine { name: source.names(), error })?;
                Ok(CodeModule::Machine(module))
            }
        }
    }

    /// Checks that a GPU can be given the code. Machine code was chosen for it.
    pub fn check_target(&self, compute_capability: (u32, u32)) -> Result<(), LoadError> {
        match self {
            CodeModule::Ptx(module) => {
                module.check_target(compute_capability).map_err(|errors| LoadError::Target(Box::new(errors)))
            }
            CodeModule::Machine(_) => Ok(()),
        }
    }

    /// The parts that need memory: each variable of PTX, whole sections of machine code.
    pub fn placements(&self) -> Vec<Placement> {
        match self {
            CodeModule::Ptx(module) => {
                let variables = module.variables().iter().cloned();
                let place = |it: balar_isa::module::ModuleVariable| Placement {
                    name: it.name,
                    kind: it.kind,
                    bytes: it.bytes,
                    alignment: it.alignment,
                };
                variables.map(place).collect()
            }
            CodeModule::Machine(module) => module.placements().to_vec(),
        }
    }

    /// Whether a placement is not memory but the number of a reference: in machine code its slots have 32 bits.
    pub fn is_number(&self, placement: &Placement) -> bool {
        let is_reference =
            matches!(placement.kind, VariableKind::Texture | VariableKind::Sampler | VariableKind::Surface);
        is_reference && matches!(self, CodeModule::Machine(_))
    }

    /// Its variables, in their placements.
    pub fn variables(&self) -> Vec<PlacedVariable> {
        match self {
            CodeModule::Ptx(module) => {
                let variables = module.variables().iter().enumerate();
                let place = |(placement, it): (usize, &balar_isa::module::ModuleVariable)| PlacedVariable {
                    name: it.name.clone(),
                    kind: it.kind,
                    placement,
                    offset: 0,
                    bytes: it.bytes,
                };
                variables.map(place).collect()
            }
            CodeModule::Machine(module) => module.variables().to_vec(),
        }
    }

    /// The bytes of a placement, where not all are zero; `addresses[i]` is the address or number of `placements()[i]`.
    pub fn initial_value(&self, placement: usize, addresses: &[u64]) -> Option<Vec<u8>> {
        match self {
            CodeModule::Ptx(module) => module.initial_value(placement, addresses),
            CodeModule::Machine(module) => module.initial_value(placement, addresses),
        }
    }

    /// Whether its kernels may allocate from the device heap.
    pub fn allocates(&self) -> bool {
        match self {
            CodeModule::Ptx(module) => module.allocates(),
            CodeModule::Machine(module) => module.allocates(),
        }
    }

    /// Whether its kernels may launch kernels.
    pub fn launches(&self) -> bool {
        match self {
            CodeModule::Ptx(module) => module.launches(),
            CodeModule::Machine(module) => module.launches(),
        }
    }

    /// The kernels that a kernel can launch: the addresses by which it names them, and their names.
    pub fn launched_by(&self, kernel: &str) -> Vec<(u64, Arc<str>)> {
        let launched = match self {
            CodeModule::Ptx(module) => module.launched_by(kernel),
            CodeModule::Machine(module) => module.launched_by(kernel),
        };
        launched.into_iter().map(|(address, name)| (address, name.into())).collect()
    }

    /// Names and parameters of its kernels, in order.
    pub fn kernels(&self) -> Vec<(Arc<str>, Vec<ParameterSlot>)> {
        fn named<'a>(
            names: impl Iterator<Item = &'a str>,
            parameters: impl Iterator<Item = Vec<ParameterSlot>>,
        ) -> Vec<(Arc<str>, Vec<ParameterSlot>)> {
            names.map(Arc::from).zip(parameters).collect()
        }
        match self {
            CodeModule::Ptx(module) => named(module.kernels(), module.kernel_parameters()),
            CodeModule::Machine(module) => named(module.kernels(), module.kernel_parameters()),
        }
    }

    /// The architectures of a kernel's PTX and of the machine code that runs on a GPU: 70.
    pub fn versions(&self, kernel: &str, (major, minor): (u32, u32)) -> (u32, u32) {
        match self {
            CodeModule::Ptx(module) => (module.architecture_of(kernel), major * 10 + minor),
            CodeModule::Machine(module) => {
                let (binary, ptx) = module.architectures_of(kernel);
                (ptx, binary)
            }
        }
    }

    /// The architecture of PTX that is for a later member of the GPU's generation.
    pub fn later_architecture(&self, (major, minor): (u32, u32)) -> Option<u32> {
        match self {
            CodeModule::Ptx(module) => Some(module.architecture()).filter(|&later| later > major * 10 + minor),
            CodeModule::Machine(_) => None,
        }
    }

    /// Decodes a kernel, or says why it cannot be launched.
    pub fn program(&self, kernel: &str, addresses: &[u64]) -> Result<Program, Arc<str>> {
        match self {
            CodeModule::Ptx(module) => module.program(kernel, addresses).map_err(|errors| refusal(&errors)),
            CodeModule::Machine(module) => {
                module.program(kernel, addresses).map_err(|error: MachineError| error.to_string().into())
            }
        }
    }
}

/// Why a kernel cannot be launched, in words.
fn refusal(errors: &PtxErrors) -> Arc<str> {
    let lines = errors.errors.iter().map(|error| format!("{error}, in `{}`", error.line_text.trim()));
    lines.collect::<Vec<_>>().join("\n").into()
}
