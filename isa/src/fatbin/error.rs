//! What is wrong with an image.

/// What is wrong with a container.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fatbin, offset {offset:#x}: {what}")]
pub struct FatbinError {
    /// Where, from the beginning of the image.
    pub offset: u64,
    /// What is there, and what was expected.
    pub what: String,
}

/// Why an image gives no code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// A container that breaks its format: `cudaErrorInvalidKernelImage`.
    #[error(transparent)]
    Malformed(#[from] FatbinError),
    /// Neither a container, nor a cubin, nor text: `cudaErrorInvalidKernelImage`.
    #[error("an image of {bytes} bytes that begins with {first:02x?}, expected a fatbin container, PTX or a cubin")]
    Unknown {
        /// Its length.
        bytes: usize,
        /// Its first bytes.
        first: Vec<u8>,
    },
    /// No code that the GPU can run.
    #[error("cudaErrorNoKernelImageForDevice: no PTX in the image, which has {found}")]
    NoCode {
        /// What it has instead.
        found: String,
    },
    /// No machine code that the GPU can run.
    #[error("cudaErrorNoKernelImageForDevice: no machine code for sm_{architecture} in the image, which has {found}")]
    NoMachineCode {
        /// The GPU's architecture: 70.
        architecture: u32,
        /// What it has instead.
        found: String,
    },
}
