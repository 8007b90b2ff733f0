//! Loading a PTX text: its kernels, and the variables that need a place in device memory.

use crate::decode::parameter_slots;
use crate::execution::SHARED_WINDOW;
use crate::program::{ParameterSlot, Program};
use crate::ptx::ast::{self, AddressBase, InitialValue, Initializer, Operand, OperandKind, SymbolReference};
use crate::ptx::error::RawError;
use crate::ptx::types::StateSpace;
use crate::ptx::{PtxErrorKind, PtxErrors};
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
    /// Reads a PTX text.
    pub fn parse(file_name: &str, text: &str) -> Result<Self, PtxErrors> {
        Self::from_tree(crate::ptx::parse(file_name, text)?)
    }

    /// Takes a parsed text: lists its variables.
    pub fn from_tree(tree: ast::Module) -> Result<Self, PtxErrors> {
        let mut variables = Vec::new();
        let mut errors = Vec::new();
        for global in tree.globals.iter().filter(|global| in_device_memory(global)) {
            let Some(bytes) = global.bytes() else {
                let message = format!("the size of {} is not known", global.name);
                errors.push(RawError::new(PtxErrorKind::UnknownSymbol, global.span, message));
                continue;
            };
            variables.push(ModuleVariable {
                name: global.name.clone(),
                is_constant: global.space == StateSpace::Constant,
                bytes,
                alignment: u64::from(global.alignment.max(1)),
            });
        }
        if !errors.is_empty() {
            return Err(PtxErrors::new(&tree.source, errors, false));
        }
        Ok(PtxModule { tree, variables })
    }

    /// What needs a place in device memory, in the order of the text.
    pub fn variables(&self) -> &[ModuleVariable] {
        &self.variables
    }

    /// The bytes of a variable, with `addresses[i]` the device address of `variables()[i]`. `None` where all are zero, or where
    /// there is no such variable.
    pub fn initial_value(&self, variable: usize, addresses: &[u64]) -> Option<Vec<u8>> {
        let global = self.tree.globals.iter().filter(|global| in_device_memory(global)).nth(variable)?;
        let initializer: &Initializer = global.initializer.as_ref()?;
        let width = global.scalar_type.bytes() as usize;
        let mut image = vec![0; usize::try_from(global.bytes()?).ok()?];
        for &(element, value) in &initializer.values {
            let bits = match value {
                InitialValue::Integer(bits) | InitialValue::Float64(bits) => bits,
                InitialValue::Float32(bits) => u64::from(bits),
                InitialValue::Address { symbol, offset, byte, .. } => {
                    let address =
                        device_address(&self.tree, symbol, addresses).unwrap_or(0).wrapping_add(offset as u64);
                    byte.map_or(address, |byte| (address >> (8 * u32::from(byte & 7))) & 0xff)
                }
            };
            let place = usize::try_from(element).ok()?.checked_mul(width)?;
            let bytes = bits.to_le_bytes();
            image.get_mut(place..place + width.min(8))?.copy_from_slice(&bytes[..width.min(8)]);
        }
        Some(image)
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

fn in_device_memory(variable: &ast::Variable) -> bool {
    matches!(variable.space, StateSpace::Global | StateSpace::Constant)
}

/// The device address of a module's variable.
fn device_address(module: &ast::Module, symbol: SymbolReference, addresses: &[u64]) -> Option<u64> {
    let SymbolReference::Global(global) = symbol else { return None };
    if !in_device_memory(module.globals.get(global.index())?) {
        return None;
    }
    let place = module.globals[..global.index()].iter().filter(|earlier| in_device_memory(earlier)).count();
    addresses.get(place).copied()
}

/// Where the symbols that a kernel names are.
pub(crate) struct Layout {
    pub parameters: Vec<ParameterSlot>,
    pub parameter_bytes: u32,
    pub shared_bytes: u32,
    pub local_bytes: u32,
    globals: Vec<Option<u64>>,
    locals: Vec<Option<u64>>,
}

impl Layout {
    /// Places the shared and local variables of a kernel: its own, then those of the module that it names; dynamic shared memory
    /// comes last.
    pub fn new(module: &ast::Module, function: &ast::Function, addresses: &[u64]) -> Result<Self, RawError> {
        let (parameters, parameter_bytes) = parameter_slots(function);
        let mut named = vec![false; module.globals.len()];
        if let Some(body) = &function.body {
            for statement in &body.statements {
                if let ast::Statement::Instruction(instruction) = statement {
                    instruction.operands.iter().for_each(|operand| note_symbols(operand, &mut named));
                }
            }
        }
        let mut layout = Layout {
            parameters,
            parameter_bytes,
            shared_bytes: 0,
            local_bytes: 0,
            globals: vec![None; module.globals.len()],
            locals: Vec::with_capacity(function.variables.len()),
        };
        let mut dynamic = Vec::new();
        for variable in &function.variables {
            let place = layout.place(variable)?;
            layout.locals.push(place);
        }
        for (index, global) in module.globals.iter().enumerate().filter(|(index, _)| named[*index]) {
            if in_device_memory(global) {
                let symbol = SymbolReference::Global(ast::GlobalId(index as u32));
                layout.globals[index] = device_address(module, symbol, addresses);
            } else if global.bytes().is_none() {
                dynamic.push(index);
            } else {
                layout.globals[index] = layout.place(global)?;
            }
        }
        let alignment = dynamic.iter().map(|index| module.globals[*index].alignment).max().unwrap_or(1).max(1);
        if !dynamic.is_empty() {
            layout.shared_bytes = layout.shared_bytes.next_multiple_of(alignment);
        }
        for index in dynamic {
            layout.globals[index] = Some(u64::from(layout.shared_bytes));
        }
        Ok(layout)
    }

    fn place(&mut self, variable: &ast::Variable) -> Result<Option<u64>, RawError> {
        let total = match variable.space {
            StateSpace::Shared | StateSpace::SharedCta => &mut self.shared_bytes,
            StateSpace::Local => &mut self.local_bytes,
            _ => return Ok(None),
        };
        let too_large = || {
            let message = format!("{} does not fit the memory space that it is in", variable.name);
            RawError::new(PtxErrorKind::Limit, variable.span, message)
        };
        let bytes = variable.bytes().and_then(|bytes| u32::try_from(bytes).ok()).ok_or_else(too_large)?;
        let offset = total.checked_next_multiple_of(variable.alignment.max(1)).ok_or_else(too_large)?;
        *total = offset.checked_add(bytes).filter(|end| u64::from(*end) < SHARED_WINDOW).ok_or_else(too_large)?;
        Ok(Some(u64::from(offset)))
    }

    /// A symbol's address in its space.
    pub fn address(&self, symbol: SymbolReference) -> Option<u64> {
        match symbol {
            SymbolReference::Global(global) => self.globals.get(global.index()).copied().flatten(),
            SymbolReference::Local(local) => self.locals.get(local.index()).copied().flatten(),
            SymbolReference::Parameter(index) => self.parameters.get(index as usize).map(|slot| u64::from(slot.offset)),
            SymbolReference::Return(_) | SymbolReference::Function(_) => None,
        }
    }
}

fn note_symbols(operand: &Operand, named: &mut [bool]) {
    let symbol = match &operand.kind {
        OperandKind::Symbol { symbol, .. } => *symbol,
        OperandKind::Address(address) => match address.base {
            AddressBase::Symbol(symbol) => symbol,
            _ => return,
        },
        OperandKind::Vector(parts) | OperandKind::AddressList(parts) => {
            parts.iter().for_each(|part| note_symbols(part, named));
            return;
        }
        _ => return,
    };
    if let SymbolReference::Global(global) = symbol
        && let Some(place) = named.get_mut(global.index())
    {
        *place = true;
    }
}
