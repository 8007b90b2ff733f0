//! Code of a module as it is loaded: PTX texts or cubins.

use super::images::{NamedCubin, NamedText};
use balar_isa::fatbin;
use std::path::Path;
use std::sync::Arc;

/// Code of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleSource {
    /// PTX texts, which are linked with each other.
    Ptx(Vec<NamedText>),
    /// Machine code.
    Machine {
        /// Cubins. Those that are relocatable are linked with each other.
        cubins: Vec<NamedCubin>,
        /// Where they come from, where the program has brought PTX.
        origin: Option<PtxOrigin>,
    },
}

/// Where machine code comes from that a program has brought as PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxOrigin {
    /// Its assembler: "ptxas 12.9".
    pub assembler: Arc<str>,
    /// The architecture that the PTX is for.
    pub target: u32,
}

impl ModuleSource {
    /// Cubins that a program has brought.
    pub fn machine(cubins: Vec<NamedCubin>) -> ModuleSource {
        ModuleSource::Machine { cubins, origin: None }
    }

    /// For machine code that was assembled, the architecture of its PTX.
    pub(crate) fn target(&self) -> Option<u32> {
        match self {
            ModuleSource::Machine { origin, .. } => origin.as_ref().map(|origin| origin.target),
            ModuleSource::Ptx(_) => None,
        }
    }

    /// The names of its parts, for messages.
    pub fn names(&self) -> String {
        let names: Vec<&str> = match self {
            ModuleSource::Ptx(texts) => texts.iter().map(|(name, _)| name.as_str()).collect(),
            ModuleSource::Machine { cubins, .. } => cubins.iter().map(|(name, _)| name.as_str()).collect(),
        };
        names.join(", ")
    }
}

/// Whether a file is a cubin, by its name: whatever is in one that is called otherwise is taken for PTX.
pub fn is_cubin(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "cubin")
}

/// Whether a GPU of a compute capability runs a cubin.
pub fn runs_on(cubin: &[u8], compute_capability: (u32, u32)) -> bool {
    fatbin::cubins(cubin, compute_capability).is_ok_and(|found| !found.is_empty())
}
