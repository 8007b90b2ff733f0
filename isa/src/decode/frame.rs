//! A function's frame: where its variables are, and those of its calls.

use super::{Decoded, Decoder, Slot};
use crate::interpreter::bodies::functions;
use crate::interpreter::call::FrameAddress;
use crate::layout::{FramePlace, Signature};
use crate::liveness::Width;
use crate::program::timing::{CountClass, LatencyClass, Pipe};
use crate::ptx::PtxErrorKind;
use crate::ptx::ast::{AddressBase, Instruction, LocalVariableId, OperandKind, Statement, SymbolReference};
use crate::ptx::error::RawError;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::source::Span;
use crate::ptx::types::StateSpace;
use std::collections::BTreeMap;

/// How a function uses a parameter variable of its calls. A stretch of its text ends at each call, label and branch.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    declared: u32,
    /// First and last stretch with an access by name.
    first: Option<u32>,
    last: u32,
    /// Whether anything but a load or store names it.
    escapes: bool,
    /// Of its only call: the stretch that it ends, the place among the results or arguments, whether it is a result.
    call: Option<(u32, usize, bool)>,
    calls: u32,
}

/// A variable of the function's body.
pub(super) fn is_local_parameter(symbol: SymbolReference) -> Option<LocalVariableId> {
    if let SymbolReference::Local(variable) = symbol { Some(variable) } else { None }
}

impl Decoder<'_> {
    /// Gives the selected function's variables their places in its frame. Variables of calls are where the callee looks for
    /// them, if nothing comes between.
    pub(super) fn lay_out_frame(&mut self, statements: &[Statement]) -> Decoded<()> {
        let function = self.function;
        let too_large = |span: Span| {
            let message = format!("the variables of {} do not fit a thread's stack", function.name);
            RawError::new(PtxErrorKind::Limit, span, message)
        };
        self.frame.variables = vec![None; function.variables.len()];
        if self.is_kernel() {
            self.frame.bytes = self.layout.local_bytes;
        } else {
            let signature = Signature::new(&function.returns, &function.parameters, self.linkage.largest_argument);
            self.frame.signature = signature.ok_or_else(|| too_large(function.span))?;
            self.frame.bytes = self.frame.signature.bytes;
            self.frame.alignment = self.frame.alignment.max(self.frame.signature.alignment);
        }
        if function.variables.is_empty() {
            return Ok(());
        }
        let (uses, calls) = self.parameter_uses(statements);
        for (index, variable) in function.variables.iter().enumerate() {
            let is_local = variable.space == StateSpace::Local && !self.is_kernel();
            if is_local || variable.space == StateSpace::Parameter {
                let place = self.outgoing_place(&calls, &uses[index], variable.bytes());
                self.frame.variables[index] = match place.filter(|_| !is_local) {
                    Some(offset) => Some(FramePlace { offset, is_outgoing: true }),
                    None => {
                        let offset = self.frame.take(variable.bytes(), variable.alignment);
                        Some(FramePlace { offset: offset.ok_or_else(|| too_large(variable.span))?, is_outgoing: false })
                    }
                };
            }
        }
        Ok(())
    }

    /// How each variable is used, and the calls by the stretch that they end.
    fn parameter_uses<'b>(&self, statements: &'b [Statement]) -> (Vec<Use>, BTreeMap<u32, &'b Instruction>) {
        let mut uses = vec![Use::default(); self.function.variables.len()];
        let mut calls = BTreeMap::new();
        let mut stretch = 0;
        for statement in statements {
            match statement {
                Statement::Label(_) => stretch += 1,
                Statement::Variable(variable) => uses[variable.index()].declared = stretch,
                Statement::Instruction(instruction) => {
                    for operand in &instruction.operands {
                        match &operand.kind {
                            OperandKind::Symbol { symbol, .. } => {
                                if let Some(variable) = is_local_parameter(*symbol) {
                                    uses[variable.index()].escapes = true;
                                }
                            }
                            OperandKind::Address(address) => {
                                if let AddressBase::Symbol(symbol) = address.base
                                    && let Some(variable) = is_local_parameter(symbol)
                                {
                                    let entry = &mut uses[variable.index()];
                                    entry.first.get_or_insert(stretch);
                                    entry.last = stretch;
                                    entry.escapes |= !matches!(instruction.opcode, O::Ld | O::St);
                                }
                            }
                            _ => {}
                        }
                    }
                    if let Some(call) = &instruction.call {
                        calls.insert(stretch, instruction);
                        for (list, is_result) in [(&call.returns, true), (&call.arguments, false)] {
                            for (place, operand) in list.iter().enumerate() {
                                if let OperandKind::Symbol { symbol, offset: 0 } = operand.kind
                                    && let Some(variable) = is_local_parameter(symbol)
                                {
                                    let entry = &mut uses[variable.index()];
                                    entry.call = Some((stretch, place, is_result));
                                    entry.calls += 1;
                                }
                            }
                        }
                        stretch += 1;
                    }
                    if matches!(instruction.opcode, O::Bra | O::Brx) {
                        stretch += 1;
                    }
                }
                _ => {}
            }
        }
        (uses, calls)
    }

    /// The offset past the frame's end of a variable that one call alone uses, without another call between.
    fn outgoing_place(&self, calls: &BTreeMap<u32, &Instruction>, used: &Use, bytes: Option<u64>) -> Option<u32> {
        let (call, place, is_result) = used.call.filter(|_| used.calls == 1 && !used.escapes)?;
        let needed = if is_result { call + 1 } else { call };
        if used.first.is_some_and(|first| first != needed || used.last != needed)
            || (!is_result && used.declared != call)
        {
            return None;
        }
        let instruction = calls.get(&call)?;
        let callee = self.callee(instruction, instruction.call.as_ref()?).ok()??;
        let list = if is_result { callee.returns } else { callee.parameters };
        let formal = list.get(place)?;
        let signature = self.signature(&callee)?;
        let offsets = if is_result { &signature.returns } else { &signature.parameters };
        let fits = formal.bytes().is_none() || formal.bytes() == bytes;
        offsets.get(place).copied().filter(|_| fits)
    }

    /// Where a symbol is in the function's frame; `None` for symbols that are in the same place in all frames.
    pub(super) fn frame_place(&self, symbol: SymbolReference) -> Option<(Slot, i64)> {
        let own = |offset: &u32| (Slot::Frame, i64::from(*offset));
        match symbol {
            SymbolReference::Local(variable) => {
                let place = self.frame.variables.get(variable.index()).copied().flatten()?;
                Some((if place.is_outgoing { Slot::FrameEnd } else { Slot::Frame }, i64::from(place.offset)))
            }
            SymbolReference::Parameter(index) => self.frame.signature.parameters.get(index as usize).map(own),
            SymbolReference::Return(index) => self.frame.signature.returns.get(index as usize).map(own),
            _ => None,
        }
    }

    /// Whether a load or store of parameter space is one of a variable in a frame, rather than of the kernel's parameters.
    pub(super) fn is_frame_parameter(&self, instruction: &Instruction) -> bool {
        let of_call = match instruction.state_space() {
            Some(StateSpace::Parameter) => false,
            Some(StateSpace::FunctionParameter) => true,
            _ => return false,
        };
        let place = usize::from(instruction.opcode != O::St);
        let Some(OperandKind::Address(address)) = instruction.operands.get(place).map(|operand| &operand.kind) else {
            return false;
        };
        match address.base {
            AddressBase::Symbol(symbol) => self.frame_place(symbol).is_some(),
            // The address of a function's parameter is one of local space.
            _ => of_call || !self.is_kernel() || instruction.opcode == O::St,
        }
    }

    /// Puts the address of a variable in the frame into a register.
    pub(super) fn frame_address(&mut self, span: Span, symbol: SymbolReference, offset: i64, to: u32) {
        let Some((base, place)) = self.frame_place(symbol) else { return };
        let wide = self.widths[to as usize] == Width::Two;
        self.start(span, (Pipe::Int, LatencyClass::Integer, CountClass::Integer, 1));
        let last = self.last();
        last.instruction.functions = functions::<FrameAddress>();
        last.instruction.offset = place.wrapping_add(offset);
        last.instruction.memory.wide[0] = wide;
        last.sources[0] = base;
        last.destinations[0] = Slot::Register(to);
    }
}
