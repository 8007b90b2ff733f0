//! Why machine code is not loaded, or a kernel of it cannot run.

use super::LoweringError;
use crate::cubin::{CubinError, LinkError};

/// Why a module of machine code is not loaded, or a kernel of it cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    /// A file that breaks its format.
    #[error(transparent)]
    Cubin(#[from] CubinError),
    /// Code that no simulated GPU has.
    #[error("machine code for sm_{0}, expected {known}", known = super::known_architectures())]
    Architecture(u32),
    /// Relocatable files that do not fit each other.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A section that no GPU has room for.
    #[error("section {section} of {bytes} bytes, expected at most {limit}", limit = super::MAXIMUM_SECTION_BYTES)]
    SectionSize {
        /// Its name.
        section: String,
        /// Bytes that it claims to have.
        bytes: u64,
    },
    /// A relocation that is not known, or at a place where it makes no sense.
    #[error("section {section}, offset {offset:#x}: a relocation {kind}, which cannot be done there")]
    Relocation {
        /// The section that it changes.
        section: String,
        /// Where in it.
        offset: u64,
        /// The field to fill in.
        kind: String,
    },
    /// Two files of a module define a kernel.
    #[error("two cubins of the module have a kernel {0}, expected one")]
    TwoKernels(String),
    /// No such kernel.
    #[error("there is no kernel {0}")]
    NoKernel(String),
    /// A symbol that neither the module nor the device runtime has.
    #[error("{function} refers to {symbol}, which neither its module nor the device runtime defines{feature}", feature = feature_of(symbol))]
    Undefined {
        /// Who refers to it.
        function: String,
        /// The symbol.
        symbol: String,
    },
    /// The code of another kernel, which has no address: a kernel can be launched, not called.
    #[error("{function} refers to the code of the kernel {kernel}, which is not in its program")]
    KernelAddress {
        /// Who refers to it.
        function: String,
        /// The kernel.
        kernel: String,
    },
    /// A kernel asks for something that no GPU can give.
    #[error("kernel {kernel}: {what}")]
    Kernel {
        /// The kernel.
        kernel: String,
        /// The mistake.
        what: String,
    },
    /// Instructions that the simulator does not execute.
    #[error(transparent)]
    Lowering(#[from] LoweringError),
}

/// The end of a message about a function of CUDA that is refused: the reason.
fn feature_of(symbol: &str) -> String {
    crate::system_call::refusal(symbol).map_or_else(String::new, |refusal| format!(": {refusal}"))
}
