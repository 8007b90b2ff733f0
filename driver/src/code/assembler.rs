//! Machine code that an assembler outside the simulator makes of PTX.

use super::images::NamedText;
use std::fmt::Debug;
use std::sync::Arc;

/// Makes machine code of PTX texts. The driver starts no process and reads no file: the code that makes a driver brings the assembler.
pub trait Assembler: Debug + Send + Sync {
    /// The cubin of one PTX text, for an architecture: 70. The same text gives the same cubin of a form.
    ///
    /// # Errors
    ///
    /// The text is for a later generation of GPUs, or the assembler refuses it or does not run.
    fn assemble(&self, text: &NamedText, architecture: u32, form: CubinForm) -> Result<Assembled, AssemblyError>;

    /// Tells the user that PTX runs where machine code was preferred, and why; the same words once.
    fn warn(&self, words: &str);
}

/// Whether a cubin is a whole module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CubinForm {
    /// It is: it needs no linking.
    Linked,
    /// It is to be linked with others.
    Relocatable,
}

/// The result of an assembler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// The cubin, in the form that was asked for.
    pub cubin: Arc<[u8]>,
    /// The assembler and its version: "ptxas 12.9".
    pub by: Arc<str>,
    /// The architecture that the text is for, which may be a later member of the GPU's generation: programs ask for it.
    pub target: u32,
}

/// Why an assembler has made nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssemblyError {
    /// The text is for a later generation of GPUs.
    #[error("PTX for compute_{target} on a GPU of the generation of sm_{architecture}")]
    Generation {
        /// The architecture in the text: 80.
        target: u32,
        /// The architecture that it was to be assembled for: 70.
        architecture: u32,
    },
    /// The assembler does not run, or does not know the architecture, in words.
    #[error("{0}")]
    Unavailable(Arc<str>),
    /// The assembler's message about the text.
    #[error("{0}")]
    Refused(Arc<str>),
}
