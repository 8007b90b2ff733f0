//! Whether operands have the types that an instruction takes (PTX ISA, type information for instructions and operands).
//!
//! Registers must have the instruction's width. Within that width, untyped bits agree with every type, integers with integers whatever
//! their sign, floats with floats. Loads, stores and conversions have rules of their own and are not checked here.

use super::{Decoded, Decoder};
use crate::ptx::ast::{Instruction, Operand, OperandKind, RegisterId};
use crate::ptx::types::ScalarType as T;

/// Whether a register of one type can be an operand of another.
fn agree(register: T, operand: T) -> bool {
    register != T::Pred
        && register.bits() == operand.bits()
        && (register.is_untyped_bits() || operand.is_untyped_bits() || register.is_float() == operand.is_float())
}

impl Decoder<'_> {
    /// The declared type of a register; none of those that decoding adds.
    pub(super) fn register_type(&self, register: RegisterId) -> Option<T> {
        self.function.register_types.get(register.index()).copied()
    }

    /// Whether a register is a predicate.
    pub(super) fn is_predicate(&self, register: RegisterId) -> bool {
        self.register_type(register) == Some(T::Pred)
    }

    /// Checks the destination, operand 0, and the sources from operand 1 on.
    pub(super) fn check_operand_types(&self, instruction: &Instruction, to: T, from: &[T]) -> Decoded<()> {
        self.check_operand_type(instruction, self.operand(instruction, 0)?, to)?;
        self.check_source_types(instruction, from)
    }

    /// Checks the sources from operand 1 on.
    pub(super) fn check_source_types(&self, instruction: &Instruction, from: &[T]) -> Decoded<()> {
        for (index, expected) in from.iter().enumerate() {
            self.check_operand_type(instruction, self.operand(instruction, index + 1)?, *expected)?;
        }
        Ok(())
    }

    /// Checks one operand: registers, and literals of the wrong kind.
    pub(super) fn check_operand_type(&self, instruction: &Instruction, operand: &Operand, expected: T) -> Decoded<()> {
        match operand.kind {
            OperandKind::Register(register) => match self.register_type(register) {
                Some(found) if !agree(found, expected) => {
                    let opcode = instruction.opcode;
                    let message =
                        format!("`{opcode}` takes a value of type .{expected} here, the register is .{found}");
                    Err(self.bad(operand, &message))
                }
                _ => Ok(()),
            },
            OperandKind::Float32(_) | OperandKind::Float64(_)
                if expected.is_signed_integer() || expected.is_unsigned_integer() =>
            {
                let opcode = instruction.opcode;
                let message =
                    format!("`{opcode}` takes a value of type .{expected} here, not a floating-point literal");
                Err(self.bad(operand, &message))
            }
            _ => Ok(()),
        }
    }

    /// Checks a part of a packed value: registers of 8 bits are rare, those of 16 do.
    pub(super) fn check_part_type(&self, instruction: &Instruction, operand: &Operand, part: T) -> Decoded<()> {
        if let (OperandKind::Register(register), T::B8) = (&operand.kind, part)
            && self.register_type(*register).is_some_and(|found| found.bits() == 16)
        {
            return Ok(());
        }
        self.check_operand_type(instruction, operand, part)
    }
}
