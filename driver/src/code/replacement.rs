//! Code that the user gives a kernel in place of what the program has brought.

use balar_protocol::detail::KernelPattern;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Code for kernels of programs: PTX, a cubin or a fatbin that holds a kernel of the same name, with the same parameters.
#[derive(Clone, Debug)]
pub struct Replacement {
    kernel: KernelPattern,
    pub(super) file: String,
    pub(super) code: Arc<[u8]>,
    is_used: Arc<AtomicBool>,
}

impl Replacement {
    /// The code of a file for these kernels.
    pub fn new(kernel: KernelPattern, file: String, code: Arc<[u8]>) -> Replacement {
        Replacement { kernel, file, code, is_used: Arc::default() }
    }

    /// Has any module had such a kernel?
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Is it for the kernel of this name? Then it is used.
    pub(super) fn is_for(&self, kernel: &str) -> bool {
        let is_for = self.kernel.matches(kernel);
        self.is_used.fetch_or(is_for, Ordering::Relaxed);
        is_for
    }
}
