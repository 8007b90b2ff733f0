//! Loading PTX texts: their kernels, and the variables that need a place in device memory.

use crate::layout::parameter_slots;
use crate::linkage::{Linkage, address_of};
use crate::program::Program;
use crate::program::parts::ParameterSlot;
use crate::ptx::ast::{self, InitialValue, Initializer, SymbolReference};
use crate::ptx::error::RawError;
use crate::ptx::source::Span;
use crate::ptx::types::{ScalarType, StateSpace};
use crate::ptx::{PtxErrorKind, PtxErrors};

/// The kind of a variable on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableKind {
    /// `.global`.
    Global,
    /// `.const`: read through the constant cache.
    Constant,
    /// `.global` with `.attribute(.managed)`.
    Managed,
    /// `.texref`.
    Texture,
    /// `.samplerref`.
    Sampler,
    /// `.surfref`.
    Surface,
}

impl VariableKind {
    fn of(variable: &ast::Variable) -> VariableKind {
        match (variable.scalar_type, variable.space) {
            (ScalarType::Texref, _) => VariableKind::Texture,
            (ScalarType::Samplerref, _) => VariableKind::Sampler,
            (ScalarType::Surfref, _) => VariableKind::Surface,
            (_, StateSpace::Constant) => VariableKind::Constant,
            _ if variable.is_managed => VariableKind::Managed,
            _ => VariableKind::Global,
        }
    }
}

/// A variable of a module that lives in device memory: `.global` or `.const`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleVariable {
    /// Its name.
    pub name: Box<str>,
    /// Its kind on the host.
    pub kind: VariableKind,
    /// Size, bytes.
    pub bytes: u64,
    /// Alignment, bytes.
    pub alignment: u64,
}

/// The architecture that a text is for, the highest of its `.target` directives; 0 where it names none.
fn architecture(text: &ast::Module) -> u32 {
    let number = |target: &str| {
        let digits = target.strip_prefix("sm_").or_else(|| target.strip_prefix("compute_"))?;
        digits.trim_end_matches(|letter: char| !letter.is_ascii_digit()).parse().ok()
    };
    text.targets.iter().filter_map(|target| number(target)).max().unwrap_or(0)
}

/// Whether a text is NVIDIA's library of dynamic parallelism (`libcudadevrt`), by the version that it defines.
fn is_device_runtime(text: &ast::Module) -> bool {
    text.globals.iter().any(|global| &*global.name == "__CNPRT_VERSION_NUMBER__")
}

/// PTX texts that were read and linked. Their variables get addresses before their kernels are decoded.
#[derive(Clone, Debug)]
pub struct PtxModule {
    pub(crate) linkage: Linkage,
    pub(crate) variables: Vec<ModuleVariable>,
}

impl PtxModule {
    /// Reads a PTX text.
    ///
    /// # Errors
    ///
    /// Every mistake in it.
    pub fn parse(file_name: &str, text: &str) -> Result<Self, PtxErrors> {
        Self::from_tree(crate::ptx::parse(file_name, text)?)
    }

    /// Takes a parsed text: lists its variables.
    ///
    /// # Errors
    ///
    /// See [`PtxModule::link`].
    pub fn from_tree(tree: ast::Module) -> Result<Self, PtxErrors> {
        Self::link(vec![tree])
    }

    /// Links parsed texts: a name that one declares `.extern`, another may define. A symbol that none defines is an error of the kernels
    /// that can reach it, which [`PtxModule::program`] tells.
    ///
    /// # Errors
    ///
    /// Symbols that several texts define, and variables of unknown size.
    pub fn link(trees: Vec<ast::Module>) -> Result<Self, PtxErrors> {
        let linkage = Linkage::new(trees)?;
        let variables = linkage
            .device_variables()
            .map(|(_, global)| ModuleVariable {
                name: global.name.clone(),
                kind: VariableKind::of(global),
                bytes: global.bytes().unwrap_or(0),
                alignment: u64::from(global.alignment.max(1)),
            })
            .collect();
        Ok(PtxModule { linkage, variables })
    }

    /// The variables that need a place in device memory, in the order of the texts.
    pub fn variables(&self) -> &[ModuleVariable] {
        &self.variables
    }

    /// The bytes of a variable, with `addresses[i]` the device address of `variables()[i]`. `None` where all are zero, or where
    /// there is no such variable.
    pub fn initial_value(&self, variable: usize, addresses: &[u64]) -> Option<Vec<u8>> {
        let (module, global) = self.linkage.device_variable_at(variable)?;
        let initializer: &Initializer = global.initializer.as_ref()?;
        let width = global.scalar_type.bytes() as usize;
        let mut image = vec![0; usize::try_from(global.bytes()?).ok()?];
        for &(element, value) in &initializer.values {
            let bits = match value {
                InitialValue::Integer(bits) | InitialValue::Float64(bits) => bits,
                InitialValue::Float32(bits) => u64::from(bits),
                InitialValue::Address { symbol, offset, byte, .. } => {
                    let address = self.address(module, symbol, addresses).unwrap_or(0).wrapping_add(offset as u64);
                    byte.map_or(address, |byte| (address >> (8 * u32::from(byte & 7))) & 0xff)
                }
            };
            let place = usize::try_from(element).ok()?.checked_mul(width)?;
            let bytes = bits.to_le_bytes();
            image.get_mut(place..place + width.min(8))?.copy_from_slice(&bytes[..width.min(8)]);
        }
        Some(image)
    }

    /// The address of the symbol in an initial value.
    fn address(&self, module: u32, symbol: SymbolReference, addresses: &[u64]) -> Option<u64> {
        match symbol {
            SymbolReference::Global(global) => {
                let number = self.linkage.device_variable(module, global)?;
                addresses.get(number).copied()
            }
            SymbolReference::Function(function) => self.linkage.function_address(module, function),
            _ => None,
        }
    }

    /// The architecture that the texts are for, the highest of all `.target` directives: 75. 0 where they name none.
    pub fn architecture(&self) -> u32 {
        self.linkage.modules().iter().map(architecture).max().unwrap_or(0)
    }

    /// Checks that a GPU of this compute capability can be given the texts: none is for a later generation. Those for a later member
    /// of its generation are let pass, since nvcc 13 compiles for none before sm_75; so is the library of dynamic parallelism, whose
    /// PTX is for the latest generation alone and asks nothing of it.
    ///
    /// # Errors
    ///
    /// The first `.target` of a later generation.
    pub fn check_target(&self, compute_capability: (u32, u32)) -> Result<(), PtxErrors> {
        let (major, minor) = compute_capability;
        let mut modules = (0..).zip(self.linkage.modules());
        let is_later = |text: &ast::Module| architecture(text) / 10 > major && !is_device_runtime(text);
        let Some((module, text)) = modules.find(|(_, text)| is_later(text)) else { return Ok(()) };
        let message = format!("PTX for sm_{} on a GPU of compute capability {major}.{minor}", architecture(text));
        Err(self.linkage.errors(vec![(module, RawError::new(PtxErrorKind::Limit, text.target_span, message))]))
    }

    /// The architecture that the text of a kernel is for; 0 where it names none, or there is no such kernel.
    pub fn architecture_of(&self, kernel: &str) -> u32 {
        let number = self.linkage.kernel(kernel);
        let text = number.and_then(|number| self.linkage.modules().get(self.linkage.function(number).0 as usize));
        text.map_or(0, architecture)
    }

    /// Whether a function may allocate from the device heap: `malloc` is declared and not defined.
    pub fn allocates(&self) -> bool {
        let functions = || self.linkage.modules().iter().flat_map(|module| &module.functions);
        let allocators = || functions().filter(|function| &*function.name == "malloc");
        allocators().count() > 0 && allocators().all(|function| function.body.is_none())
    }

    /// Whether its kernels may launch kernels.
    pub fn launches(&self) -> bool {
        self.linkage.launches()
    }

    /// The kernels that a kernel can launch: the addresses that stand for them, and their names.
    pub fn launched_by(&self, kernel: &str) -> Vec<(u64, &str)> {
        let launched = self.linkage.kernel(kernel).map_or_else(Vec::new, |number| self.linkage.launched_by(number));
        let named = |number: u32| (address_of(number), &*self.linkage.function(number).1.name);
        launched.into_iter().map(named).collect()
    }

    /// Names of the kernels, in the order of the texts.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.linkage.kernels().map(|number| &*self.linkage.function(number).1.name)
    }

    /// The parameters of each kernel, in the order of [`PtxModule::kernels`]. They are known before it is decoded.
    pub fn kernel_parameters(&self) -> impl Iterator<Item = Vec<ParameterSlot>> {
        self.linkage.kernels().map(|number| parameter_slots(self.linkage.function(number).1).0)
    }

    /// Decodes one kernel and the functions that it can reach. `addresses[i]` is the device address of `variables()[i]`.
    ///
    /// # Errors
    ///
    /// There is no such kernel, or one of these functions has an instruction that the simulator does not execute, or names a symbol that no
    /// module defines.
    pub fn program(&self, kernel: &str, addresses: &[u64]) -> Result<Program, PtxErrors> {
        let Some(number) = self.linkage.kernel(kernel) else {
            let message = format!("there is no kernel {kernel}");
            return Err(self
                .linkage
                .errors(vec![(0, RawError::new(PtxErrorKind::UnknownSymbol, Span::default(), message))]));
        };
        Program::decode(&self.linkage, number, addresses, true)
    }
}
