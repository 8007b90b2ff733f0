//! The instructions of a function with the registers that they name.

use crate::ptx::ast::{AddressBase, Function, Instruction, Operand, OperandKind, RegisterId, Statement};
use crate::ptx::instruction_table::{OperandSlot, form};
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::types::{ScalarType, StateSpace};
use smallvec::SmallVec;

/// Registers by number.
pub(super) type Registers = SmallVec<[u32; 4]>;

/// An instruction and its registers, guards apart.
pub(super) struct Line<'f> {
    pub instruction: &'f Instruction,
    pub writes: Registers,
    /// Read as values.
    pub reads: Registers,
    /// Read as the bases of addresses.
    pub addresses: Registers,
    /// The destination, where the first operand is a register.
    pub to: Option<u32>,
}

/// The instructions of a function in the order of its text.
pub(super) fn lines(function: &Function) -> Vec<Line<'_>> {
    let statements = function.body.as_ref().map(|body| &body.statements[..]).unwrap_or_default();
    let instructions = statements.iter().filter_map(|statement| match statement {
        Statement::Instruction(instruction) => Some(instruction),
        _ => None,
    });
    instructions.map(Line::new).collect()
}

/// The register that an operand is.
pub(super) fn register_of(operand: &Operand) -> Option<u32> {
    match operand.kind {
        OperandKind::Register(RegisterId(register)) => Some(register),
        _ => None,
    }
}

/// Whether an operand is known when the code is loaded.
pub(super) fn is_literal(operand: &Operand) -> bool {
    matches!(
        operand.kind,
        OperandKind::Integer(_) | OperandKind::Float32(_) | OperandKind::Float64(_) | OperandKind::Symbol { .. }
    )
}

/// Tells each register of an operand, and whether it is the base of an address.
fn each_register(operand: &Operand, note: &mut impl FnMut(u32, bool)) {
    match &operand.kind {
        OperandKind::Register(register)
        | OperandKind::NegatedPredicate(register)
        | OperandKind::NegatedRegister(register)
        | OperandKind::Part { register, .. } => note(register.0, false),
        OperandKind::Pair(first, second) => {
            first.iter().chain(second).for_each(|register| note(register.0, false));
        }
        OperandKind::Vector(parts) | OperandKind::AddressList(parts) => {
            parts.iter().for_each(|part| each_register(part, note));
        }
        OperandKind::ResidentVector(parts, resident) => {
            parts.iter().for_each(|part| each_register(part, note));
            resident.iter().for_each(|register| note(register.0, false));
        }
        OperandKind::Address(address) => {
            if let AddressBase::Register(register) = address.base {
                note(register.0, true);
            }
        }
        _ => {}
    }
}

impl<'f> Line<'f> {
    fn new(instruction: &'f Instruction) -> Self {
        let (mut writes, mut reads, mut addresses) = (Registers::new(), Registers::new(), Registers::new());
        let form = form(instruction.opcode, &instruction.modifiers);
        for (index, operand) in instruction.operands.iter().enumerate() {
            let is_written = match form.and_then(|form| form.slot(index)) {
                Some(OperandSlot::Destination | OperandSlot::DestinationPair | OperandSlot::DestinationResident) => {
                    true
                }
                Some(OperandSlot::Any) => index == 0,
                _ => false,
            };
            each_register(operand, &mut |register, is_address| {
                let list = match (is_address, is_written) {
                    (true, _) => &mut addresses,
                    (false, true) => &mut writes,
                    (false, false) => &mut reads,
                };
                list.push(register);
            });
        }
        if let Some(call) = &instruction.call {
            call.returns.iter().for_each(|operand| each_register(operand, &mut |register, _| writes.push(register)));
            let passed = call.arguments.iter().chain([&call.target]);
            passed.for_each(|operand| each_register(operand, &mut |register, _| reads.push(register)));
        }
        if instruction.opcode == O::Wgmma {
            // Its result is its accumulator, too.
            reads.extend_from_slice(&writes);
        }
        let to = instruction.operands.first().and_then(register_of);
        Line { instruction, writes, reads, addresses, to }
    }

    /// Whether its only effect is to write registers.
    pub fn is_pure(&self) -> bool {
        let acts = matches!(
            self.instruction.opcode,
            O::Atom | O::Call | O::Shfl | O::Bar | O::Barrier | O::Vote | O::Match | O::Mbarrier | O::Alloca
        );
        !self.writes.is_empty() && !acts && !self.instruction.has(M::Volatile)
    }

    /// Bits of the type at a place; 0 where there is none.
    pub fn bits(&self, index: usize) -> u32 {
        self.instruction.types.get(index).map_or(0, |scalar_type: &ScalarType| scalar_type.bits())
    }

    /// Whether there is a type at a place, and it is none of floating point.
    pub fn is_integer(&self, index: usize) -> bool {
        self.instruction.types.get(index).is_some_and(|scalar_type| !scalar_type.is_float())
    }

    /// Whether the second source is a literal.
    pub fn has_literal(&self) -> bool {
        self.instruction.operands.get(2).is_some_and(is_literal)
    }

    /// A sum of 64-bit integers.
    pub fn is_wide_sum(&self) -> bool {
        self.instruction.opcode == O::Add && self.bits(0) == 64 && self.is_integer(0) && !self.instruction.has(M::Cc)
    }

    /// A 64-bit product with a literal, as indices have: a sum takes it in.
    pub fn is_scaling(&self) -> bool {
        self.has_literal()
            && self.is_integer(0)
            && match self.instruction.opcode {
                O::Mul if self.instruction.has(M::Wide) => self.bits(0) == 32,
                O::Mul => self.bits(0) == 64 && self.instruction.has(M::Lo),
                O::Shl => self.bits(0) == 64,
                _ => false,
            }
    }

    /// Whether it reads the parameter block of a kernel.
    pub fn reads_parameter(&self) -> bool {
        self.instruction.opcode == O::Ld && (self.instruction.has(M::Param) || self.instruction.has(M::ParamEntry))
    }

    /// Whether its address is one of 32 bits however it is written.
    pub fn has_short_address(&self) -> bool {
        matches!(self.instruction.opcode, O::Ld | O::St | O::Atom | O::Red)
            && matches!(self.instruction.state_space(), Some(StateSpace::Shared | StateSpace::Local))
    }

    /// Whether the low half of its 64-bit result depends on the low halves of its sources alone.
    pub fn keeps_low_half(&self) -> bool {
        match self.instruction.opcode {
            O::Add | O::Sub => self.is_integer(0) && !self.instruction.has(M::Cc),
            O::And | O::Or | O::Xor | O::Not | O::Shl | O::Mov | O::Cvta | O::Selp => self.is_integer(0),
            O::Mul | O::Mad => self.is_integer(0) && self.instruction.has(M::Lo),
            O::Cvt => self.is_integer(0) && self.is_integer(1),
            _ => false,
        }
    }
}
