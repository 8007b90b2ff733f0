//! Half precision.

use super::operands::Operands;
use super::{Lowered, Pending};
use crate::interpreter::bodies::{Map, functions};
use crate::interpreter::floating_point::half_arithmetic::{AddHalf, F16, FusedHalf, HalfPair, MultiplyHalf, half_mode};
use crate::interpreter::machine::compare::combination;
use crate::interpreter::machine::half::*;
use crate::sass::{self, Aspect, Opcode};

impl Pending {
    pub(super) fn half(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        use Opcode as O;
        self.instruction.destinations[0] = operands.written(sass.destination(0));
        let count = if sass.opcode() == O::Hfma2 { 3 } else { 2 };
        self.take(sass, operands, count)?;
        let parts = (0..count).filter_map(|number| Some((number, sass.source(number)?.part)));
        let choices =
            parts.fold(0, |choices, (number, part)| choices | (part as u32) << (halves::SHIFT + 2 * number as u32));
        match sass.opcode() {
            O::Hsetp2 | O::Hset2 => self.half_comparison(sass, choices),
            _ => self.half_arithmetic(sass, choices),
        }
    }

    fn half_arithmetic(&mut self, sass: &sass::Instruction, choices: u32) -> Lowered<()> {
        if sass.text(Aspect::Flush) == ".FMZ" {
            return Err("a product that is zero where a factor is (.FMZ)".to_owned());
        }
        let mut flags = choices;
        for (aspect, flag) in [(Aspect::Flush, half_mode::FLUSH), (Aspect::Saturate, half_mode::SATURATE)] {
            if sass.has(aspect) {
                flags |= flag;
            }
        }
        match sass.text(Aspect::ResultType) {
            "" => {}
            ".F32" => flags |= halves::SINGLE_RESULT,
            other => return Err(format!("half-precision arithmetic of the type {other}")),
        }
        let is_plain = flags == 0 && self.instruction.signs == 0;
        self.run(
            match (sass.opcode(), is_plain) {
                (Opcode::Hadd2, true) => functions::<Map<HalfPair<AddHalf, F16, true>>>(),
                (Opcode::Hadd2, false) => functions::<HalfArithmetic<{ operation::ADD }>>(),
                (Opcode::Hmul2, true) => functions::<Map<HalfPair<MultiplyHalf, F16, true>>>(),
                (Opcode::Hmul2, false) => functions::<HalfArithmetic<{ operation::MULTIPLY }>>(),
                (_, true) => functions::<Map<HalfPair<FusedHalf, F16, true>>>(),
                (_, false) => functions::<HalfArithmetic<{ operation::FUSED }>>(),
            },
            flags,
        )
    }

    fn half_comparison(&mut self, sass: &sass::Instruction, choices: u32) -> Lowered<()> {
        let mut flags = choices | combination(sass.value(Aspect::Boolean)) << COMBINATION_SHIFT;
        if sass.has(Aspect::Flush) {
            flags |= half_mode::FLUSH;
        }
        self.instruction.offset = sass.value(Aspect::Comparison) as i64;
        self.condition(sass);
        if sass.opcode() == Opcode::Hset2 {
            if sass.has(Aspect::BooleanFloat) {
                flags |= halves::ONE;
            }
            return self.run(functions::<CompareHalvesToValue>(), flags);
        }
        if sass.has(Aspect::BothHalves) {
            flags |= halves::AND;
        }
        self.results(sass);
        self.run(functions::<CompareHalves>(), flags)
    }
}
