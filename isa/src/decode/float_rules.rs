//! The modifiers that floating-point arithmetic takes, by type: forms that PTX does not have are refused by name.

use super::Decoded;
use crate::ptx::PtxErrorKind;
use crate::ptx::ast::Instruction;
use crate::ptx::error::RawError;
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::types::ScalarType as T;

/// The words of one instruction and type.
struct Rule {
    /// At most one of these.
    choice: &'static [M],
    /// One of them is needed.
    needs_choice: bool,
    /// Any of these.
    words: &'static [M],
}

const ROUNDING: &[M] = &[M::Rn, M::Rz, M::Rm, M::Rp];
const NEAREST: &[M] = &[M::Rn];
const APPROXIMATE: &[M] = &[M::Approx];
const APPROXIMATE_OR_ROUNDING: &[M] = &[M::Approx, M::Rn, M::Rz, M::Rm, M::Rp];
const DIVISION: &[M] = &[M::Approx, M::Full, M::Rn, M::Rz, M::Rm, M::Rp];
const CLASS: &[M] = &[M::Finite, M::Infinite, M::Number, M::NotANumber, M::Normal, M::Subnormal];

/// The rule of an instruction; `None` where PTX does not have it for the type.
fn rule(opcode: O, data_type: T, mixed: Option<T>) -> Option<Rule> {
    let optional = |choice, words| Some(Rule { choice, needs_choice: false, words });
    let needed = |choice, words| Some(Rule { choice, needs_choice: true, words });
    let half = matches!(data_type, T::F16 | T::F16x2);
    let brain = matches!(data_type, T::Bf16 | T::Bf16x2);
    if let Some(from) = mixed {
        return match opcode {
            _ if data_type != T::F32 || !matches!(from, T::F16 | T::Bf16) => None,
            O::Add | O::Sub => optional(ROUNDING, &[M::Sat]),
            O::Fma => needed(ROUNDING, &[M::Sat]),
            _ => None,
        };
    }
    match (opcode, data_type) {
        (O::Add | O::Sub | O::Mul, T::F32) => optional(ROUNDING, &[M::Ftz, M::Sat]),
        (O::Add | O::Sub | O::Mul, T::F32x2) => optional(ROUNDING, &[M::Ftz]),
        (O::Add | O::Sub | O::Mul, T::F64) => optional(ROUNDING, &[]),
        (O::Add | O::Sub | O::Mul, _) if half => optional(NEAREST, &[M::Ftz, M::Sat]),
        (O::Add | O::Sub | O::Mul, _) if brain => optional(NEAREST, &[]),
        (O::Fma, T::F32) => needed(ROUNDING, &[M::Ftz, M::Sat]),
        (O::Fma, T::F32x2) => needed(ROUNDING, &[M::Ftz]),
        (O::Fma, T::F64) => needed(ROUNDING, &[]),
        (O::Fma, _) if half => needed(NEAREST, &[M::Ftz, M::Sat, M::Relu]),
        (O::Fma, _) if brain => needed(NEAREST, &[M::Relu]),
        // Early PTX has `mad` without rounding, to be taken as .rn.
        (O::Mad, T::F32) => optional(ROUNDING, &[M::Ftz, M::Sat]),
        (O::Mad, T::F64) => optional(ROUNDING, &[]),
        (O::Div, T::F32) => needed(DIVISION, &[M::Ftz]),
        (O::Div, T::F64) => needed(ROUNDING, &[]),
        (O::Rcp, T::F32 | T::F64) | (O::Sqrt, T::F32) => needed(APPROXIMATE_OR_ROUNDING, &[M::Ftz]),
        (O::Sqrt, T::F64) => needed(ROUNDING, &[]),
        (O::Rsqrt, T::F32 | T::F64) | (O::Sin | O::Cos | O::Lg2 | O::Ex2, T::F32) => needed(APPROXIMATE, &[M::Ftz]),
        (O::Ex2, _) if half => needed(APPROXIMATE, &[]),
        (O::Ex2, _) if brain => needed(APPROXIMATE, &[M::Ftz]),
        (O::Tanh, T::F32) => needed(APPROXIMATE, &[]),
        (O::Tanh, _) if half || brain => needed(APPROXIMATE, &[]),
        (O::Abs | O::Neg, T::F32) => optional(&[], &[M::Ftz]),
        (O::Abs | O::Neg, T::F64) => optional(&[], &[]),
        (O::Abs | O::Neg, _) if half => optional(&[], &[M::Ftz]),
        (O::Abs | O::Neg, _) if brain => optional(&[], &[]),
        (O::Min | O::Max, T::F32) => optional(&[], &[M::Ftz, M::NaN, M::XorSign, M::AbsoluteValue]),
        (O::Min | O::Max, T::F64) => optional(&[], &[]),
        (O::Min | O::Max, _) if half => optional(&[], &[M::Ftz, M::NaN, M::XorSign, M::AbsoluteValue]),
        (O::Min | O::Max, _) if brain => optional(&[], &[M::NaN, M::XorSign, M::AbsoluteValue]),
        (O::Testp, T::F32 | T::F64) => needed(CLASS, &[]),
        (O::Copysign, T::F32 | T::F64) => optional(&[], &[]),
        _ => None,
    }
}

/// Whether PTX has the instruction for its types; an error that names the word where it has it, but not so.
pub(super) fn check(instruction: &Instruction, data_type: T, is_old: bool) -> Decoded<bool> {
    let opcode = instruction.opcode;
    let Some(rule) = rule(opcode, data_type, instruction.types.get(1).copied()) else { return Ok(false) };
    let refused = |what: String| {
        let name = instruction.types.iter().fold(opcode.to_string(), |name, data_type| format!("{name}.{data_type}"));
        Err(RawError::new(PtxErrorKind::UnknownModifier, instruction.span, format!("`{name}` {what}")))
    };
    let mut chosen = 0;
    for modifier in &instruction.modifiers {
        if rule.choice.contains(modifier) {
            chosen += 1;
        } else if !rule.words.contains(modifier) {
            return refused(format!("does not take `.{modifier}`"));
        }
    }
    if chosen > 1 || (chosen == 0 && rule.needs_choice && !is_old) {
        let words: Vec<String> = rule.choice.iter().map(|word| format!(".{word}")).collect();
        return refused(format!("needs one of {}", words.join(", ")));
    }
    let has = |modifier| instruction.has(modifier);
    let three = instruction.operands.len() == 4;
    match opcode {
        O::Min | O::Max if three && data_type != T::F32 => refused("takes two sources".to_string()),
        O::Min | O::Max if three && has(M::XorSign) => refused("of three sources does not take `.xorsign`".to_string()),
        O::Min | O::Max if !three && has(M::XorSign) != has(M::AbsoluteValue) => {
            refused("takes `.xorsign` and `.abs` together".to_string())
        }
        O::Fma if has(M::Sat) && has(M::Relu) => refused("takes one of `.sat` and `.relu`".to_string()),
        O::Rcp if data_type == T::F64 && has(M::Approx) != has(M::Ftz) => {
            refused("takes `.approx` and `.ftz` together".to_string())
        }
        O::Ex2 if matches!(data_type, T::Bf16 | T::Bf16x2) && !has(M::Ftz) => refused("needs `.ftz`".to_string()),
        _ => Ok(true),
    }
}
