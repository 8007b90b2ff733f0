//! Where the variables that a kernel and its functions name are.

use crate::execution::SHARED_WINDOW;
use crate::linkage::{Linkage, in_device_memory};
use crate::program::parts::ParameterSlot;
use crate::ptx::PtxErrorKind;
use crate::ptx::ast::{self, GlobalId, Parameter, SymbolReference};
use crate::ptx::error::RawError;
use crate::ptx::types::StateSpace;
use std::collections::BTreeMap;

/// Static shared memory of a kernel, bytes (CUDA C++ Programming Guide: a kernel must take more as dynamic memory, on every GPU).
const STATIC_SHARED_BYTES: u32 = 48 << 10;

/// Frames begin at multiples of this, or of a larger alignment that a variable asks for.
pub(crate) const FRAME_ALIGNMENT: u32 = 16;

/// Where the symbols that a kernel and its functions name are: addresses that are the same in all frames.
pub(crate) struct Layout<'a> {
    linkage: &'a Linkage,
    addresses: &'a [u64],
    pub parameters: Vec<ParameterSlot>,
    pub parameter_bytes: u32,
    pub shared_bytes: u32,
    /// Local variables of the kernel and of modules, which lie in the kernel's frame.
    pub local_bytes: u32,
    /// Shared and local variables at module scope, by module and place.
    globals: BTreeMap<(u32, u32), u64>,
    /// Shared variables of the functions, and local ones of the kernel: by place in the list of functions.
    locals: Vec<Vec<Option<u64>>>,
    /// The function whose symbols are asked for.
    module: u32,
    current: usize,
    /// Its number.
    function: u32,
}

impl<'a> Layout<'a> {
    /// Places the shared variables of a kernel and the functions that it reaches, then those of the modules that they name;
    /// dynamic shared memory comes last. The first function is the kernel; its local variables get their places, too.
    pub fn new(linkage: &'a Linkage, functions: &[u32], addresses: &'a [u64]) -> Result<Self, (u32, RawError)> {
        let kernel = linkage.function(functions[0]).1;
        let (parameters, parameter_bytes) = parameter_slots(kernel);
        let mut layout = Layout {
            linkage,
            addresses,
            parameters,
            parameter_bytes,
            shared_bytes: 0,
            local_bytes: 0,
            globals: BTreeMap::new(),
            locals: Vec::with_capacity(functions.len()),
            module: 0,
            current: 0,
            function: functions[0],
        };
        for (index, number) in functions.iter().enumerate() {
            let (module, function) = linkage.function(*number);
            let mut places = Vec::with_capacity(function.variables.len());
            for variable in &function.variables {
                let is_placed = index == 0 || is_shared(variable.space);
                let place = if is_placed { layout.place(variable) } else { Ok(None) };
                places.push(place.map_err(|error| (module, error))?);
            }
            layout.locals.push(places);
        }
        let mut named: Vec<(u32, u32)> = Vec::new();
        for number in functions {
            let (module, _) = linkage.function(*number);
            let homes = linkage.named_globals(*number).iter().filter_map(|global| linkage.home(module, *global));
            named.extend(homes);
        }
        named.sort_unstable();
        named.dedup();
        let mut dynamic = Vec::new();
        for (module, place) in named {
            let global = linkage.variable(module, place);
            if in_device_memory(global) {
                continue;
            } else if global.bytes().is_none() {
                dynamic.push((module, place, global.alignment));
            } else if let Some(address) = layout.place(global).map_err(|error| (module, error))? {
                layout.globals.insert((module, place), address);
            }
        }
        let alignment = dynamic.iter().map(|(_, _, alignment)| *alignment).max().unwrap_or(1).max(1);
        if !dynamic.is_empty() {
            layout.shared_bytes = layout.shared_bytes.next_multiple_of(alignment);
        }
        for (module, place, _) in dynamic {
            layout.globals.insert((module, place), u64::from(layout.shared_bytes));
        }
        layout.select(functions, 0);
        Ok(layout)
    }

    /// The symbols of this function are asked for from now on.
    pub fn select(&mut self, functions: &[u32], index: usize) {
        self.current = index;
        self.function = functions[index];
        self.module = self.linkage.function(functions[index]).0;
    }

    fn place(&mut self, variable: &ast::Variable) -> Result<Option<u64>, RawError> {
        let total = match variable.space {
            StateSpace::Shared | StateSpace::SharedCta => &mut self.shared_bytes,
            StateSpace::Local => &mut self.local_bytes,
            _ => return Ok(None),
        };
        let offset = take(total, variable.bytes(), variable.alignment).ok_or_else(|| {
            let message = format!("{} does not fit the memory space that it is in", variable.name);
            RawError::new(PtxErrorKind::Limit, variable.span, message)
        })?;
        if self.shared_bytes > STATIC_SHARED_BYTES {
            let bytes = self.shared_bytes;
            let message = format!(
                "the kernel's static shared memory is {bytes} bytes with {}, the limit is {STATIC_SHARED_BYTES}",
                variable.name
            );
            return Err(RawError::new(PtxErrorKind::Limit, variable.span, message));
        }
        Ok(Some(u64::from(offset)))
    }

    /// A symbol's address in its space, where it is the same in all frames.
    pub fn address(&self, symbol: SymbolReference) -> Option<u64> {
        match symbol {
            SymbolReference::Global(global) => self.global(global),
            SymbolReference::Local(local) => self.locals[self.current].get(local.index()).copied().flatten(),
            SymbolReference::Parameter(index) if self.current == 0 => {
                self.parameters.get(index as usize).map(|slot| u64::from(slot.offset))
            }
            SymbolReference::Parameter(_) | SymbolReference::Return(_) => None,
            SymbolReference::Function(function) => self.linkage.function_address(self.module, function),
        }
    }

    /// Whether a symbol names a variable in shared memory.
    pub fn is_shared(&self, symbol: SymbolReference) -> bool {
        match symbol {
            SymbolReference::Global(global) => self
                .linkage
                .home(self.module, global)
                .is_some_and(|(module, place)| is_shared(self.linkage.variable(module, place).space)),
            SymbolReference::Local(local) => {
                let variables = &self.linkage.function(self.function).1.variables;
                variables.get(local.index()).is_some_and(|variable| is_shared(variable.space))
            }
            SymbolReference::Parameter(_) | SymbolReference::Return(_) | SymbolReference::Function(_) => false,
        }
    }

    /// The constants of all modules: first addresses and bytes.
    pub fn constants(&self) -> Vec<(u64, u64)> {
        let variables = self.linkage.device_variables().zip(self.addresses);
        let constants = variables.filter(|((_, variable), _)| variable.space == StateSpace::Constant);
        constants.map(|((_, variable), address)| (*address, variable.bytes().unwrap_or(0))).collect()
    }

    fn global(&self, global: GlobalId) -> Option<u64> {
        if let Some(number) = self.linkage.device_variable(self.module, global) {
            return self.addresses.get(number).copied();
        }
        self.globals.get(&self.linkage.home(self.module, global)?).copied()
    }
}

fn is_shared(space: StateSpace) -> bool {
    matches!(space, StateSpace::Shared | StateSpace::SharedCta)
}

/// Takes room of that size and alignment from the end of an area: where it begins.
fn take(total: &mut u32, bytes: Option<u64>, alignment: u32) -> Option<u32> {
    let bytes = u32::try_from(bytes?).ok()?;
    let offset = total.checked_next_multiple_of(alignment.max(1))?;
    *total = offset.checked_add(bytes).filter(|end| u64::from(*end) < SHARED_WINDOW)?;
    Some(offset)
}

/// Where a function's results and arguments are: at the beginning of its frame, in the same places for every function of the
/// same parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signature {
    /// Offsets of the results.
    pub returns: Vec<u32>,
    /// Offsets of the arguments.
    pub parameters: Vec<u32>,
    /// Bytes of all.
    pub bytes: u32,
    /// The largest alignment.
    pub alignment: u32,
}

impl Signature {
    /// Places results and arguments; an argument of unknown size takes `unknown` bytes. `None` where they do not fit.
    pub fn new(returns: &[Parameter], parameters: &[Parameter], unknown: u32) -> Option<Self> {
        let mut signature = Signature { alignment: 1, ..Signature::default() };
        for (list, places) in [(returns, &mut signature.returns), (parameters, &mut signature.parameters)] {
            for parameter in list {
                let bytes = parameter.bytes().unwrap_or(u64::from(unknown));
                places.push(take(&mut signature.bytes, Some(bytes), parameter.alignment)?);
                signature.alignment = signature.alignment.max(parameter.alignment);
            }
        }
        Some(signature)
    }
}

/// Where a variable of a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FramePlace {
    /// Bytes from the frame's beginning, or from its end.
    pub offset: u32,
    /// From its end, where the next function's frame begins.
    pub is_outgoing: bool,
}

/// A function's part of a thread's stack: results and arguments, local variables, parameter variables of its calls, spilled
/// registers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    pub signature: Signature,
    /// The places of the function's variables that live in the frame.
    pub variables: Vec<Option<FramePlace>>,
    pub bytes: u32,
    pub alignment: u32,
    /// Bytes beyond its end that the arguments of its calls take.
    pub outgoing: u32,
}

impl Frame {
    /// Takes room; where it begins.
    pub fn take(&mut self, bytes: Option<u64>, alignment: u32) -> Option<u32> {
        self.alignment = self.alignment.max(alignment);
        take(&mut self.bytes, bytes, alignment)
    }
}

/// The parameter slots of a kernel: each at a multiple of its alignment.
pub(crate) fn parameter_slots(function: &ast::Function) -> (Vec<ParameterSlot>, u32) {
    let mut offset = 0u32;
    let slots = function
        .parameters
        .iter()
        .map(|parameter| {
            let bytes = u32::try_from(parameter.bytes().unwrap_or(0)).unwrap_or(u32::MAX);
            offset = offset.next_multiple_of(parameter.alignment.max(1));
            let slot = ParameterSlot { offset, bytes };
            offset = offset.saturating_add(bytes);
            slot
        })
        .collect();
    (slots, offset)
}
