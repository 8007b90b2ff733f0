//! Half precision.

use super::float::mode_of_extremum;
use super::operands::Operands;
use super::{Lowered, Pending};
use crate::interpreter::bodies::{Map, functions};
use crate::interpreter::floating_point::half_arithmetic::{
    AddHalf, Brain, F16, FusedBrain, FusedHalf, HalfPair, MultiplyHalf, half_mode,
};
use crate::interpreter::integer::Move;
use crate::interpreter::machine::compare::combination;
use crate::interpreter::machine::half::*;
use crate::sass::{self, Aspect, Opcode};

impl Pending {
    pub(super) fn half(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        use Opcode as O;
        self.instruction.destinations[0] = operands.written(sass.destination(0));
        let is_fused = matches!(sass.opcode(), O::Hfma2 | O::Hfma2Mma);
        let count = if is_fused { 3 } else { 2 };
        self.take(sass, operands, count)?;
        if is_fused && is_constant(sass) {
            (self.instruction.sources[0], self.instruction.signs) = (self.instruction.sources[2], 0);
            return self.run(functions::<Map<Move<u32>>>(), 0);
        }
        let parts = (0..count).filter_map(|number| Some((number, sass.source(number)?.part)));
        let choices =
            parts.fold(0, |choices, (number, part)| choices | (part as u32) << (halves::SHIFT + 2 * number as u32));
        match sass.opcode() {
            O::Hsetp2 | O::Hset2 => self.half_comparison(sass, choices),
            O::Hmnmx2 => self.half_extremum(sass, choices),
            _ => self.half_arithmetic(sass, choices),
        }
    }

    fn half_arithmetic(&mut self, sass: &sass::Instruction, choices: u32) -> Lowered<()> {
        match sass.text(Aspect::Flush) {
            "" | ".FTZ" => {}
            ".FMZ" => return Err("a product that is zero where a factor is (.FMZ)".to_owned()),
            other => return Err(format!("half-precision arithmetic with {other}")),
        }
        let mut flags = choices;
        for (aspect, flag) in [
            (Aspect::Flush, half_mode::FLUSH),
            (Aspect::Saturate, half_mode::SATURATE),
            (Aspect::Relu, half_mode::RELU),
        ] {
            if sass.has(aspect) {
                flags |= flag;
            }
        }
        if sass.predicate_source(0).is_some_and(|predicate| !predicate.is_true()) {
            return Err("a predicate that says whether negative results become zero".to_owned());
        }
        let is_single = sass.text(Aspect::ResultType) == ".F32";
        flags |= if is_single { halves::SINGLE_RESULT } else { 0 };
        let is_plain = flags == 0 && self.instruction.signs == 0;
        let is_brain = is_brain(sass);
        self.run(
            match (sass.opcode(), is_plain, is_brain) {
                (Opcode::Hadd2, true, false) => functions::<Map<HalfPair<AddHalf, F16, true>>>(),
                (Opcode::Hadd2, false, false) => functions::<HalfArithmetic<{ operation::ADD }, F16>>(),
                (Opcode::Hadd2, _, true) => functions::<HalfArithmetic<{ operation::ADD }, Brain>>(),
                (Opcode::Hmul2, true, false) => functions::<Map<HalfPair<MultiplyHalf, F16, true>>>(),
                (Opcode::Hmul2, false, false) => functions::<HalfArithmetic<{ operation::MULTIPLY }, F16>>(),
                (Opcode::Hmul2, _, true) => functions::<HalfArithmetic<{ operation::MULTIPLY }, Brain>>(),
                (_, true, false) => functions::<Map<HalfPair<FusedHalf, F16, true>>>(),
                (_, true, true) => functions::<Map<HalfPair<FusedBrain, Brain, true>>>(),
                (_, false, false) => functions::<HalfArithmetic<{ operation::FUSED }, F16>>(),
                (_, false, true) => functions::<HalfArithmetic<{ operation::FUSED }, Brain>>(),
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
            return match is_brain(sass) {
                true => self.run(functions::<CompareHalvesToValue<Brain>>(), flags),
                false => self.run(functions::<CompareHalvesToValue<F16>>(), flags),
            };
        }
        if sass.has(Aspect::BothHalves) {
            flags |= halves::AND;
        }
        self.results(sass);
        match is_brain(sass) {
            true => self.run(functions::<CompareHalves<Brain>>(), flags),
            false => self.run(functions::<CompareHalves<F16>>(), flags),
        }
    }

    /// `HMNMX2`
    fn half_extremum(&mut self, sass: &sass::Instruction, choices: u32) -> Lowered<()> {
        if sass.text(Aspect::ResultType) == ".F32" {
            return Err("the lesser of two halves as a single".to_owned());
        }
        self.condition(sass);
        self.instruction.offset = i64::from(mode_of_extremum(sass));
        match is_brain(sass) {
            true => self.run(functions::<HalfExtremum<Brain>>(), choices),
            false => self.run(functions::<HalfExtremum<F16>>(), choices),
        }
    }
}

/// Are the values bfloat16 rather than halves?
fn is_brain(sass: &sass::Instruction) -> bool {
    sass.text(Aspect::ResultType) == ".BF16_V2"
}

/// Is it a way to load a number, as compilers for Ampere use it: zero times zero, and the number is added to that?
fn is_constant(sass: &sass::Instruction) -> bool {
    let is_zero = |number| sass.source(number).is_some_and(|source| source.register() == Some(sass::ZERO_REGISTER));
    // A not-a-number would become the one that arithmetic makes, and zero would lose its sign.
    let stays = |half: u32| half & 0x7fff <= 0x7c00 && half != 0x8000;
    let number = sass.source(2).and_then(|source| source.immediate());
    let is_changed = [Aspect::Flush, Aspect::Saturate, Aspect::Relu].into_iter().any(|aspect| sass.has(aspect));
    !is_changed
        && !is_brain(sass)
        && sass.text(Aspect::ResultType) != ".F32"
        && is_zero(0)
        && is_zero(1)
        && number.is_some_and(|bits| stays(bits & 0xffff) && stays(bits >> 16))
}
