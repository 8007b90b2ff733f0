//! Why code is not loaded.

use super::assembler::AssemblyError;
use balar_host::CudaError;
use balar_isa::fatbin::ImageError;
use balar_isa::machine::MachineError;
use balar_isa::ptx::PtxErrors;
use std::sync::Arc;

/// Why a module was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The image.
    #[error("{name}: {error}")]
    Image {
        /// The image's name.
        name: String,
        /// The mistake in it.
        error: ImageError,
    },
    /// The PTX texts.
    #[error(transparent)]
    Ptx(#[from] Box<PtxErrors>),
    /// The machine code.
    #[error("{name}: {error}")]
    Machine {
        /// The files.
        name: String,
        /// The mistake in them.
        error: MachineError,
    },
    /// Machine code is asked for, and nothing makes any of the PTX texts.
    #[error("{name}: {found}; there is no assembler (ptxas) for the PTX")]
    NoAssembler {
        /// The code.
        name: String,
        /// The code that it has instead of machine code.
        found: String,
    },
    /// Machine code is asked for, and the assembler does not make any of the PTX texts.
    #[error("{name}: {error}")]
    Assembly {
        /// The texts.
        name: String,
        /// Why.
        error: AssemblyError,
    },
    /// The PTX texts are for a later generation of GPUs.
    #[error("cudaErrorNoKernelImageForDevice: {0}")]
    Target(Box<PtxErrors>),
    /// Code that the user gives a kernel.
    #[error("--code: {file} cannot take the place of the code of {kernel}: {why}")]
    Replacement {
        /// The kernel.
        kernel: Arc<str>,
        /// The file.
        file: String,
        /// Why not.
        why: String,
    },
    /// The memory has no room for what it needs.
    #[error("{name} needs {bytes} bytes of memory for {what}, more than is free")]
    Memory {
        /// The parts of the module.
        name: String,
        /// The part that did not fit.
        what: String,
        /// Bytes of it.
        bytes: u64,
    },
}

impl LoadError {
    /// Has the image code for other GPUs alone?
    pub fn is_for_other_gpus(&self) -> bool {
        matches!(self, LoadError::Image { error: ImageError::NoCode { .. } | ImageError::NoMachineCode { .. }, .. })
            || matches!(self, LoadError::Machine { error: MachineError::Architecture(_), .. })
    }

    /// The error that CUDA's calls return.
    pub fn cuda_error(&self) -> CudaError {
        match self {
            error if error.is_for_other_gpus() => CudaError::NoKernelImageForDevice,
            LoadError::Image { .. } | LoadError::Machine { .. } | LoadError::Replacement { .. } => {
                CudaError::InvalidKernelImage
            }
            LoadError::Ptx(_) | LoadError::Assembly { error: AssemblyError::Refused(_), .. } => CudaError::InvalidPtx,
            LoadError::Target(_) | LoadError::NoAssembler { .. } | LoadError::Assembly { .. } => {
                CudaError::NoKernelImageForDevice
            }
            LoadError::Memory { .. } => CudaError::MemoryAllocation,
        }
    }
}
