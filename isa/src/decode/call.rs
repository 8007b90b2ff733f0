//! Calls: frames, arguments and results, and calls of the device runtime.
//!
//! Arguments are variables in the frame that the callee will have. The callee finds them at the same offsets for every caller. The GPU's
//! own convention passes them in registers: accesses to them take no issue slot.

use super::frame::is_local_parameter;
use super::timing::{Cost, cost};
use super::{Decoded, Decoder, Slot};
use crate::control_flow::Flow;
use crate::execution::{MOST_ARGUMENTS, Passed, Space};
use crate::interpreter::bodies::{Map, functions};
use crate::interpreter::integer::Resize;
use crate::layout::Signature;
use crate::linkage::{Target, absent_function};
use crate::liveness::Width;
use crate::operation::{Kind, MemoryForm};
use crate::program::timing::{CountClass, LatencyClass, Pipe};
use crate::ptx::PtxErrorKind;
use crate::ptx::ast::{
    CallOperands, Instruction, LocalVariableId, Operand, OperandKind, Parameter, RegisterId, Statement, SymbolReference,
};
use crate::ptx::error::RawError;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::source::Span;
use crate::ptx::types::ScalarType as T;

/// The cost of passing an argument.
pub(super) const FRAME_COST: Cost = (Pipe::Free, LatencyClass::Zero, CountClass::Memory, 1);

/// The results and arguments of a call.
pub(super) struct Callee<'a> {
    pub returns: &'a [Parameter],
    pub parameters: &'a [Parameter],
    /// The functions that it may be: places in the list.
    places: Vec<usize>,
    /// The register with the function's address.
    through: Option<RegisterId>,
}

impl<'a> Decoder<'a> {
    pub(super) fn signature(&self, callee: &Callee) -> Option<Signature> {
        Signature::new(callee.returns, callee.parameters, self.linkage.largest_argument)
    }

    /// A load or store of one value at an offset in a frame.
    fn frame_access(&mut self, span: Span, kind: Kind, (base, offset): (Slot, i64), bytes: u32, value: Slot) {
        let wide = match value {
            Slot::Register(register) => self.widths[register as usize] == Width::Two,
            _ => bytes == 8,
        };
        self.start(span, FRAME_COST);
        let last = self.last();
        last.instruction.kind = kind;
        last.instruction.offset = offset;
        last.instruction.memory = MemoryForm {
            space: Some(Space::Local),
            element_bytes: bytes as u8,
            wide: [wide; 4],
            short_address: true,
            ..MemoryForm::NONE
        };
        last.sources[0] = base;
        if kind == Kind::Store {
            last.sources[1] = value;
        } else {
            last.destinations[0] = value;
        }
    }

    /// Copies bytes from one place of a frame to another, in pieces as large as their alignment allows.
    fn copy_bytes(&mut self, span: Span, from: (Slot, i64), to: (Slot, i64), bytes: u32) {
        let mut done = 0;
        while done < bytes {
            let [source, destination] = [from, to].map(|(base, offset)| (base, offset + i64::from(done)));
            let aligned = (source.1 | destination.1 | 8).trailing_zeros();
            let mut piece = 1u32 << aligned;
            while piece > bytes - done {
                piece /= 2;
            }
            let register = self.new_register(if piece == 8 { Width::Two } else { Width::One });
            self.frame_access(span, Kind::Load, source, piece, Slot::Register(register));
            self.frame_access(span, Kind::Store, destination, piece, Slot::Register(register));
            done += piece;
        }
    }

    /// Parameters of the older form are registers: they get their values.
    pub(super) fn take_parameters(&mut self) {
        if self.is_kernel() {
            return;
        }
        for (index, parameter) in self.function.parameters.iter().enumerate() {
            if let Some(register) = parameter.register {
                let place = (Slot::Frame, i64::from(self.frame.signature.parameters[index]));
                self.register_access(parameter, Kind::Load, place, register);
            }
        }
    }

    fn register_access(&mut self, parameter: &Parameter, kind: Kind, place: (Slot, i64), register: RegisterId) {
        if self.widths[register.index()] == Width::Predicate {
            return;
        }
        self.frame_access(parameter.span, kind, place, parameter.scalar_type.bytes(), Slot::Register(register.0));
    }

    /// `ret`, or the end of the text: the kernel's threads end, a function's return.
    pub(super) fn leave(&mut self, span: Span, cost: Cost) {
        let mut kind = Kind::Exit;
        if !self.is_kernel() {
            for (index, result) in self.function.returns.iter().enumerate() {
                if let Some(register) = result.register {
                    let place = (Slot::Frame, i64::from(self.frame.signature.returns[index]));
                    self.register_access(result, Kind::Store, place, register);
                }
            }
            if let Some(register) = self.taken_before {
                self.start(span, FRAME_COST);
                self.last().instruction.kind = Kind::StackRestore;
                self.last().sources[0] = Slot::Register(register);
            }
            kind = Kind::Return;
        }
        self.start(span, cost);
        self.last().instruction.kind = kind;
        self.last().flow = Flow::Exit { conditional: false };
    }

    /// Remembers how much memory `alloca` had taken before the function was called.
    pub(super) fn keep_stack(&mut self, span: Span) {
        if self.is_kernel() {
            return;
        }
        let register = self.new_register(Width::One);
        self.start(span, FRAME_COST);
        self.last().instruction.kind = Kind::StackSave;
        self.last().destinations[0] = Slot::Register(register);
        self.taken_before = Some(register);
    }

    /// `alloca`, `stacksave` and `stackrestore`; false where the form is not supported.
    pub(super) fn stack(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let scalar_type = instruction.types.first().copied().unwrap_or(T::B64);
        let wide = scalar_type.bits() == 64;
        let is_allocation = instruction.opcode == O::Alloca;
        let source = match instruction.opcode {
            O::Stacksave => Slot::None,
            O::Alloca => self.source(self.operand(instruction, 1)?, scalar_type)?,
            _ => self.source(self.operand(instruction, 0)?, scalar_type)?,
        };
        // 8 bytes where the instruction does not say.
        let mut alignment = 8;
        if let (true, Some(operand)) = (is_allocation, instruction.operands.get(2)) {
            let OperandKind::Integer(bytes) = operand.kind else {
                return Err(self.bad(operand, "the alignment is a number"));
            };
            alignment = u32::try_from(bytes).unwrap_or(u32::MAX);
            if !alignment.is_power_of_two() || alignment > crate::program::LARGEST_ALIGNMENT {
                return Err(self.bad(operand, "the alignment is a power of two up to 1024"));
            }
        }
        let has_result = instruction.opcode != O::Stackrestore;
        let destination = if has_result { self.destination(self.operand(instruction, 0)?)? } else { Slot::None };
        if has_result && destination != Slot::None && self.is_wide(destination) != wide {
            return Err(self.bad(self.operand(instruction, 0)?, "the register is not of the instruction's type"));
        }
        self.uses_alloca = true;
        self.start(instruction.span, (Pipe::Int, LatencyClass::Integer, CountClass::Other, 1));
        let last = self.last();
        last.instruction.kind = match instruction.opcode {
            O::Alloca => Kind::StackAllocate,
            O::Stacksave => Kind::StackSave,
            _ => Kind::StackRestore,
        };
        last.instruction.immediate = alignment;
        last.instruction.memory.wide[0] = wide;
        last.sources[0] = source;
        last.destinations[0] = destination;
        Ok(true)
    }

    /// The functions that a call reaches; `None` for a function of the device runtime.
    pub(super) fn callee(&self, instruction: &Instruction, call: &CallOperands) -> Decoded<Option<Callee<'a>>> {
        let place_of = |number: &u32| self.functions.iter().position(|other| other == number);
        let register = match call.target.kind {
            OperandKind::Register(register) => register,
            OperandKind::Symbol { symbol: SymbolReference::Function(function), .. } => {
                return match self.linkage.target(self.module_number, function) {
                    Target::Function(number) => {
                        // The declaration that the caller sees tells how it passes arguments.
                        let declaration = &self.module.functions[function.index()];
                        Ok(Some(Callee {
                            returns: &declaration.returns,
                            parameters: &declaration.parameters,
                            places: place_of(&number).into_iter().collect(),
                            through: None,
                        }))
                    }
                    Target::System(_) => Ok(None),
                    Target::Undefined => {
                        let name = &self.module.functions[function.index()].name;
                        Err(absent_function(name, call.target.span))
                    }
                };
            }
            _ => return Err(self.bad(&call.target, "a function, or a register with its address, is expected here")),
        };
        match call.prototype.and_then(|label| self.label_tables.get(&label)) {
            Some(Statement::CallPrototype { prototype, .. }) => {
                let shape = Some((&prototype.returns[..], &prototype.parameters[..]));
                let candidates = self.linkage.candidates(None, shape);
                return Ok(Some(Callee {
                    returns: &prototype.returns,
                    parameters: &prototype.parameters,
                    places: candidates.iter().filter_map(place_of).collect(),
                    through: Some(register),
                }));
            }
            Some(Statement::CallTargets { targets, .. }) => {
                let mut places = Vec::new();
                for target in targets {
                    if let Target::Function(number) = self.linkage.target(self.module_number, *target) {
                        places.extend(place_of(&number));
                    }
                }
                if let Some(first) = targets.first().and_then(|first| self.module.functions.get(first.index())) {
                    return Ok(Some(Callee {
                        returns: &first.returns,
                        parameters: &first.parameters,
                        places,
                        through: Some(register),
                    }));
                }
            }
            _ => {}
        }
        let message = "a call through a register needs the label of a `.callprototype` or `.calltargets`";
        Err(RawError::new(PtxErrorKind::BadOperand, instruction.span, message))
    }

    /// `call`; false where the form is not supported.
    pub(super) fn call(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let Some(operands) = &instruction.call else { return Ok(false) };
        let Some(callee) = self.callee(instruction, operands)? else {
            return self.system_call(instruction, operands);
        };
        for (actual, formal, what) in [
            (operands.returns.len(), callee.returns.len(), "results"),
            (operands.arguments.len(), callee.parameters.len(), "arguments"),
        ] {
            if actual != formal {
                let message = format!("the call has {actual} {what}, the function {formal}");
                return Err(RawError::new(PtxErrorKind::OperandCount, instruction.span, message));
            }
        }
        let Some(signature) = self.signature(&callee) else { return Ok(false) };
        self.frame.outgoing = self.frame.outgoing.max(signature.bytes);
        for (index, operand) in operands.arguments.iter().enumerate() {
            let to = (Slot::FrameEnd, i64::from(signature.parameters[index]));
            self.pass(operand, &callee.parameters[index], to)?;
        }
        let address = match callee.through {
            Some(register) if self.widths[register.index()] == Width::Predicate => {
                return Err(self.bad(&operands.target, "a predicate is no address"));
            }
            Some(register) => Slot::Register(register.0),
            None => Slot::None,
        };
        let short = callee.through.is_some_and(|register| self.widths[register.index()] == Width::One);
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        last.instruction.kind = if address == Slot::None { Kind::Call } else { Kind::CallThrough };
        last.instruction.memory.short_address = short;
        last.sources[0] = address;
        last.callees = callee.places;
        for (index, operand) in operands.returns.iter().enumerate() {
            let from = (Slot::FrameEnd, i64::from(signature.returns[index]));
            self.receive(operand, &callee.returns[index], from)?;
        }
        Ok(true)
    }

    /// Puts an argument where the callee looks for it.
    fn pass(&mut self, operand: &Operand, formal: &Parameter, to: (Slot, i64)) -> Decoded<()> {
        if let OperandKind::Symbol { symbol, offset: 0 } = operand.kind
            && let Some(variable) = is_local_parameter(symbol)
        {
            let from = self.frame_place(symbol);
            let Some(from) = from else { return Err(self.bad(operand, "a parameter variable is expected here")) };
            let bytes = self.argument_bytes(operand, variable, formal)?;
            if from != to {
                self.copy_bytes(operand.span, from, to, bytes);
            }
            return Ok(());
        }
        let scalar_type = formal.scalar_type;
        if formal.bytes() != Some(u64::from(scalar_type.bytes())) || scalar_type.bytes() > 8 {
            return Err(self.bad(operand, "a parameter variable is expected here"));
        }
        let from = match operand.kind {
            OperandKind::Register(register) if self.widths[register.index()] == Width::Two => T::B64,
            _ => scalar_type,
        };
        let value = self.source(operand, from)?;
        self.frame_access(operand.span, Kind::Store, to, scalar_type.bytes(), value);
        Ok(())
    }

    /// Takes a result from where the callee left it.
    fn receive(&mut self, operand: &Operand, formal: &Parameter, from: (Slot, i64)) -> Decoded<()> {
        match operand.kind {
            OperandKind::Sink => Ok(()),
            OperandKind::Symbol { symbol, offset: 0 } => {
                let variable = is_local_parameter(symbol);
                let (Some(variable), Some(to)) = (variable, self.frame_place(symbol)) else {
                    return Err(self.bad(operand, "a parameter variable is expected here"));
                };
                let bytes = self.argument_bytes(operand, variable, formal)?;
                if from != to {
                    self.copy_bytes(operand.span, from, to, bytes);
                }
                Ok(())
            }
            OperandKind::Register(register) => {
                let bytes = formal.scalar_type.bytes();
                let is_scalar = formal.bytes() == Some(u64::from(bytes)) && bytes <= 8;
                let wide = self.widths[register.index()] == Width::Two;
                if !is_scalar || (bytes == 8 && !wide) || self.widths[register.index()] == Width::Predicate {
                    return Err(self.bad(operand, "this register does not fit the function's result"));
                }
                self.frame_access(operand.span, Kind::Load, from, bytes, Slot::Register(register.0));
                self.last().instruction.memory.signed = formal.scalar_type.is_signed_integer();
                Ok(())
            }
            _ => Err(self.bad(operand, "a register or a parameter variable is expected here")),
        }
    }

    /// Bytes to pass: those of the variable, which must be those of the parameter where these are known.
    fn argument_bytes(&self, operand: &Operand, variable: LocalVariableId, formal: &Parameter) -> Decoded<u32> {
        let bytes = self.function.variables[variable.index()].bytes();
        if formal.bytes().is_some() && formal.bytes() != bytes {
            let message = format!(
                "the variable has {} bytes, the function's parameter {}",
                bytes.unwrap_or(0),
                formal.bytes().unwrap_or(0)
            );
            return Err(RawError::new(PtxErrorKind::BadOperand, operand.span, message));
        }
        u32::try_from(bytes.unwrap_or(0)).map_err(|_| self.bad(operand, "this variable is too large"))
    }

    /// A call of the device runtime.
    fn system_call(&mut self, instruction: &Instruction, call: &CallOperands) -> Decoded<bool> {
        let OperandKind::Symbol { symbol: SymbolReference::Function(function), .. } = call.target.kind else {
            return Ok(false);
        };
        let Target::System(system) = self.linkage.target(self.module_number, function) else { return Ok(false) };
        let parameters = system.parameters();
        if call.arguments.len() != parameters.len() || call.returns.len() > 1 {
            let name = &self.module.functions[function.index()].name;
            let message = format!(
                "{name} of the device runtime takes {} arguments; the call has {}",
                parameters.len(),
                call.arguments.len()
            );
            return Err(RawError::new(PtxErrorKind::OperandCount, instruction.span, message));
        }
        let mut passed = Vec::with_capacity(MOST_ARGUMENTS);
        for (operand, parameter) in call.arguments.iter().zip(parameters) {
            match parameter {
                Passed::Word | Passed::Wide => passed.push(self.system_argument(operand)?),
                Passed::Extent => passed.extend(self.extent_argument(operand)?),
            }
        }
        let mut sources = [Slot::None; 5];
        let further = passed.split_off(passed.len().min(sources.len()));
        sources[..passed.len()].copy_from_slice(&passed);
        let wide = system.result() == Some(Passed::Wide);
        let width = if wide { Width::Two } else { Width::One };
        let has_result = !call.returns.is_empty() && call.returns[0].kind != OperandKind::Sink;
        let result = has_result.then(|| self.new_register(width));
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        last.instruction.kind = Kind::System(system);
        last.instruction.memory.is_reduction = !has_result;
        last.instruction.memory.wide[0] = wide;
        last.instruction.memory.element_bytes = if wide { 8 } else { 4 };
        last.sources = sources;
        last.list.sources = further;
        last.destinations[0] = result.map_or(Slot::None, Slot::Register);
        let (Some(operand), Some(result)) = (call.returns.first(), result) else { return Ok(true) };
        match operand.kind {
            OperandKind::Symbol { symbol, offset: 0 } => {
                let place = self.frame_place(symbol);
                let variable = is_local_parameter(symbol);
                let (Some(place), Some(variable)) = (place, variable) else {
                    return Err(self.bad(operand, "a parameter variable is expected here"));
                };
                let room = self.function.variables[variable.index()].bytes().unwrap_or(0);
                let bytes = if wide && room >= 8 { 8 } else { 4 };
                if room < 4 {
                    return Err(self.bad(operand, "this variable is too small for the result"));
                }
                self.frame_access(operand.span, Kind::Store, place, bytes, Slot::Register(result));
            }
            OperandKind::Register(register) => {
                let lanes = match (wide, self.widths[register.index()]) {
                    (false, Width::One) => functions::<Map<Resize<u32, u32>>>(),
                    (false, Width::Two) => functions::<Map<Resize<i32, i64>>>(),
                    (true, Width::One) => functions::<Map<Resize<u64, u32>>>(),
                    (true, Width::Two) => functions::<Map<Resize<u64, u64>>>(),
                    _ => return Err(self.bad(operand, "this register does not fit the function's result")),
                };
                self.helper(operand.span, lanes, result, register.0);
            }
            _ => return Err(self.bad(operand, "a register or a parameter variable is expected here")),
        }
        Ok(true)
    }

    /// An argument of the device runtime as 64 bits.
    fn system_argument(&mut self, operand: &Operand) -> Decoded<Slot> {
        let OperandKind::Symbol { symbol: symbol @ SymbolReference::Local(variable), offset: 0 } = operand.kind else {
            return self.source(operand, T::U64);
        };
        let bytes = self.function.variables[variable.index()].bytes();
        let (Some(place), Some(bytes @ (1 | 2 | 4 | 8))) = (self.frame_place(symbol), bytes) else {
            return Err(self.bad(operand, "this variable is no argument of the device runtime"));
        };
        let register = self.new_register(Width::Two);
        self.frame_access(operand.span, Kind::Load, place, bytes as u32, Slot::Register(register));
        Ok(Slot::Register(register))
    }

    /// An argument of three words by value.
    fn extent_argument(&mut self, operand: &Operand) -> Decoded<[Slot; 3]> {
        let wrong = "this is no extent that the device runtime takes: three words";
        let OperandKind::Symbol { symbol: symbol @ SymbolReference::Local(variable), offset: 0 } = operand.kind else {
            return Err(self.bad(operand, wrong));
        };
        let bytes = self.function.variables[variable.index()].bytes();
        let Some((base, offset)) = self.frame_place(symbol).filter(|_| bytes == Some(12)) else {
            return Err(self.bad(operand, wrong));
        };
        Ok([0, 4, 8].map(|word| {
            let register = self.new_register(Width::Two);
            self.frame_access(operand.span, Kind::Load, (base, offset + word), 4, Slot::Register(register));
            Slot::Register(register)
        }))
    }

    /// Why a symbol has no address.
    pub(super) fn unknown_address(&self, operand: &Operand, symbol: SymbolReference) -> RawError {
        match symbol {
            SymbolReference::Function(function) => {
                absent_function(&self.module.functions[function.index()].name, operand.span)
            }
            SymbolReference::Global(global)
                if self.module.globals[global.index()].linkage == crate::ptx::ast::Linkage::External =>
            {
                let message = format!("no module defines the variable `{}`", self.module.globals[global.index()].name);
                RawError::new(PtxErrorKind::UnknownSymbol, operand.span, message)
            }
            _ => self.bad(operand, "the address of this symbol is not supported by the simulator"),
        }
    }
}
