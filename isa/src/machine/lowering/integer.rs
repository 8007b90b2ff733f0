//! Integer arithmetic, logic, moves and selections, those of the uniform datapath among them.

use super::operands::{Operands, predicate_destination, predicate_source, sign_of};
use super::{Lowered, NO_SUCH_OPERAND, Pending};
use crate::interpreter::bodies::*;
use crate::interpreter::compare::{
    Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqualOrUnordered as NotEqual, Select, SetPredicate,
};
use crate::interpreter::convert::PackIntegers;
use crate::interpreter::integer::*;
use crate::interpreter::machine::arithmetic::*;
use crate::interpreter::machine::compare::{ByPredicate, CompareIntegers, EXTENDED, combination, outcome};
use crate::interpreter::machine::extrema::{AddHalves, IntegerExtremum, extremum_form};
use crate::interpreter::machine::logic::*;
use crate::operation::operand::{SINK_PREDICATE, SINK_ROW, TRUE_PREDICATE};
use crate::sass::{self, Aspect, Opcode};

impl Pending {
    pub(super) fn integer(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        use Opcode as O;
        self.instruction.destinations[0] = operands.written(sass.destination(0));
        let is_signed = !sass.has(Aspect::Unsigned);
        match sass.opcode() {
            O::Imad | O::Uimad => self.product(sass, operands, product::LOW),
            O::ImadWide | O::UimadWide => self.product(sass, operands, product::WIDE),
            O::ImadHigh => self.product(sass, operands, product::HIGH),
            O::Iadd3 | O::Uiadd3 => self.sum(sass, operands),
            O::Lea | O::Ulea => self.shift_add(sass, operands),
            O::Isetp | O::Uisetp => self.integer_comparison(sass, operands),
            O::Lop3 | O::Ulop3 => self.logic(sass, operands),
            O::Shf | O::Ushf => self.funnel(sass, operands),
            O::Mov | O::Umov => {
                self.take(sass, operands, 1)?;
                // The lanes' quads that move, a bit for each lane of a quad.
                if sass.source(1).is_some_and(|lanes| lanes.immediate() != Some(15)) {
                    return Err("a move of some of the lanes".to_owned());
                }
                self.run(functions::<Map<Move<u32>>>(), 0)
            }
            O::Sel | O::Usel => {
                self.take(sass, operands, 2)?;
                self.condition(sass);
                self.run(functions::<Select<u32>>(), 0)
            }
            O::Imnmx => {
                self.take(sass, operands, 2)?;
                self.condition(sass);
                self.run(
                    match is_signed {
                        true => functions::<ByPredicate<Minimum<i32>, Maximum<i32>>>(),
                        false => functions::<ByPredicate<Minimum<u32>, Maximum<u32>>>(),
                    },
                    0,
                )
            }
            O::Prmt | O::Uprmt => {
                self.take(sass, operands, 3)?;
                // The second source chooses among the bytes of the first and the third.
                self.instruction.sources.swap(1, 2);
                self.run(functions::<Map<Permute>>(), sass.value(Aspect::Mode) as u32)
            }
            O::Bmsk | O::Ubmsk => {
                self.take(sass, operands, 2)?;
                let wraps = sass.has(Aspect::Wrap);
                self.run(if wraps { functions::<Map<MaskWrap>>() } else { functions::<Map<MaskClamp>>() }, 0)
            }
            O::Sgxt | O::Usgxt => {
                self.take(sass, operands, 2)?;
                let clamps = u32::from(!sass.has(Aspect::Wrap));
                self.run(if is_signed { functions::<Map<ExtendS32>>() } else { functions::<Map<ExtendU32>>() }, clamps)
            }
            O::Viadd => {
                self.take(sass, operands, 2)?;
                let is_negated = self.instruction.signs != 0;
                self.instruction.signs = 0;
                match (sass.has(Aspect::Type), is_negated) {
                    (true, _) => self.run(functions::<AddHalves>(), u32::from(is_negated)),
                    (false, true) => self.run(functions::<Map<Subtract<u32>>>(), 0),
                    (false, false) => self.run(functions::<Map<Add<u32>>>(), 0),
                }
            }
            O::Vimnmx | O::Viaddmnmx | O::Vimnmx3 => self.integer_extremum(sass, operands),
            O::Clmad => {
                self.take_by(Operands::read_wide, sass, operands, 3)?;
                let is_high = sass.text(Aspect::High) == ".HI";
                self.run(functions::<MapPairs<CarrylessMultiplyAdd>>(), u32::from(is_high))
            }
            O::Idp => self.dot_product(sass, operands),
            O::Vabsdiff => {
                self.take(sass, operands, 3)?;
                self.instruction.predicate_destinations[0] = SINK_PREDICATE;
                self.run(
                    match is_signed {
                        true => functions::<Map<SumOfAbsoluteDifference<i32>>>(),
                        false => functions::<Map<SumOfAbsoluteDifference<u32>>>(),
                    },
                    0,
                )
            }
            O::Vabsdiff4 => {
                self.take(sass, operands, 3)?;
                let flags = u32::from(is_signed) | u32::from(sass.has(Aspect::Accumulate)) << 1;
                self.run(functions::<AbsoluteDifferences>(), flags)
            }
            O::I2ip => {
                self.take(sass, operands, 3)?;
                if sass.encoding().has(Aspect::Saturate) && sass.text(Aspect::Saturate) != ".SAT" {
                    return Err("a packing conversion that does not limit its results, or to positive ones".to_owned());
                }
                if sass.source(2).is_some_and(|addend| addend.part != 0) {
                    return Err("the upper half of what a packing conversion adds to".to_owned());
                }
                let to = sass.text(Aspect::Type);
                let bits = if to.ends_with("16") { 16 } else { 8 };
                self.run(functions::<Map<PackIntegers>>(), bits | u32::from(to.starts_with(".S")) << 8)
            }
            O::Iabs | O::Popc | O::Flo | O::Brev | O::Upopc | O::Uflo | O::Ubrev => self.one(sass, operands),
            other => Err(format!("{} is not executed", other.name())),
        }
    }

    /// The predicates that a sum with carries adds.
    fn carries(&mut self, sass: &sass::Instruction) -> u32 {
        if !sass.has(Aspect::Carry) {
            return 0;
        }
        self.condition(sass);
        let (slot, flip) = match sass.predicate_source(1) {
            None => (TRUE_PREDICATE, u32::MAX),
            second => predicate_source(second),
        };
        (self.instruction.predicate_sources[1], self.instruction.predicate_flips[1]) = (slot, flip);
        sum::EXTENDED
    }

    /// `VIMNMX`, `VIADDMNMX` and `VIMNMX3`.
    fn integer_extremum(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        let (count, form) = match sass.opcode() {
            Opcode::Vimnmx => (2, 0),
            Opcode::Viaddmnmx => (3, extremum_form::SUM),
            _ => (3, extremum_form::THREE),
        };
        self.take(sass, operands, count)?;
        self.condition(sass);
        self.results(sass);
        let mut form = form
            | match sass.text(Aspect::Type) {
                ".U32" => 0,
                ".U16x2" => extremum_form::HALVES,
                ".S16x2" => extremum_form::HALVES | extremum_form::SIGNED,
                _ => extremum_form::SIGNED,
            };
        form |= if sass.has(Aspect::Relu) { extremum_form::RELU } else { 0 };
        // ptxas was seen to ask about halves alone.
        let has_results = self.instruction.predicate_destinations != [SINK_PREDICATE; 2];
        if has_results && form & (extremum_form::HALVES | extremum_form::RELU) != extremum_form::HALVES {
            return Err("predicates that say which of two words, or of limited halves, was taken".to_owned());
        }
        form |= if self.instruction.signs != 0 { extremum_form::NEGATED } else { 0 };
        self.instruction.signs = 0;
        self.run(functions::<IntegerExtremum>(), form)
    }

    /// `IDP`: products of four bytes, or of two halves with two bytes, each signed or not.
    fn dot_product(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        self.take(sass, operands, 3)?;
        if self.instruction.signs != 0 {
            return Err("a sum of products that another one is taken from".to_owned());
        }
        let form = sass.text(Aspect::Type);
        let mut types = form.rsplit('.').take(2).map(|name| u32::from(name.starts_with('S')));
        let (second, first) = (types.next().unwrap_or(0), types.next().unwrap_or(0));
        let types = first | second << 1;
        match form {
            _ if form.starts_with(".4A") => self.run(functions::<Map<DotProduct4>>(), types),
            _ if form.starts_with(".2A.LO") => self.run(functions::<Map<DotProduct2>>(), types),
            _ => self.run(functions::<Map<DotProduct2>>(), types | 4),
        }
    }

    /// `IMAD`: most often a move, a sum or a shift, which are quicker than a product.
    fn product(&mut self, sass: &sass::Instruction, operands: &mut Operands, part: u8) -> Lowered<()> {
        self.take(sass, operands, 2)?;
        let addend = sass.source(2).ok_or(NO_SUCH_OPERAND)?;
        let is_wide = part != product::LOW;
        self.instruction.sources[2] = if is_wide { operands.read_extended(addend)? } else { operands.read(addend)? };
        self.instruction.signs |= sign_of(addend, 2);
        if is_wide {
            self.instruction.predicate_destinations[0] = predicate_destination(sass.predicate(0));
        }
        let sources = [0, 1, 2].map(|number| self.instruction.sources[number]);
        let is_signed = !sass.has(Aspect::Unsigned);
        let extended = self.carries(sass);
        let carries_out = self.instruction.predicate_destinations[0] != SINK_PREDICATE;
        if extended != 0 || carries_out || (self.instruction.signs != 0 && part != product::LOW) {
            let functions = match (part, is_signed) {
                (product::LOW, _) => functions::<MultiplyAddCarry<{ product::LOW }, false>>(),
                (product::HIGH, false) => functions::<MultiplyAddCarry<{ product::HIGH }, false>>(),
                (product::HIGH, true) => functions::<MultiplyAddCarry<{ product::HIGH }, true>>(),
                (_, false) => functions::<MultiplyAddCarry<{ product::WIDE }, false>>(),
                (_, true) => functions::<MultiplyAddCarry<{ product::WIDE }, true>>(),
            };
            return self.run(functions, extended);
        }
        let zero = operands.number(0);
        let one = operands.number(1);
        let [a, b, c] = sources;
        match (part, is_signed) {
            (product::WIDE, true) => return self.run(functions::<MapPairs<MultiplyAddWideS32>>(), 0),
            (product::WIDE, false) => return self.run(functions::<MapPairs<MultiplyAddWideU32>>(), 0),
            (product::HIGH, true) => return self.run(functions::<MapPairs<MultiplyAddHigh<true>>>(), 0),
            (product::HIGH, false) => return self.run(functions::<MapPairs<MultiplyAddHigh<false>>>(), 0),
            _ => {}
        }
        if self.instruction.signs != 0 {
            if b == one {
                self.instruction.sources[1] = c;
                return self.run(functions::<Map<Subtract<u32>>>(), 0);
            }
            // One of the few that PTX has no instruction for.
            self.instruction.predicate_destinations[0] = SINK_PREDICATE;
            return self.run(functions::<MultiplyAddCarry<{ product::LOW }, false>>(), 0);
        }
        if a == zero || b == zero {
            self.instruction.sources[0] = c;
            self.run(functions::<Map<Move<u32>>>(), 0)
        } else if b == one {
            self.instruction.sources[1] = c;
            self.run(functions::<Map<Add<u32>>>(), 0)
        } else if c == zero {
            self.run(functions::<Map<Multiply<u32>>>(), 0)
        } else {
            self.run(functions::<Map<MultiplyAdd<u32>>>(), 0)
        }
    }

    fn sum(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        if sass.has(Aspect::Wide) {
            return self.wide_sum(sass, operands);
        }
        self.take(sass, operands, 3)?;
        self.results(sass);
        let extended = self.carries(sass);
        if extended != 0 || self.instruction.predicate_destinations != [SINK_PREDICATE; 2] {
            return self.run(functions::<Add3Carry>(), extended);
        }
        if self.instruction.signs == 0 && self.instruction.sources[2] == operands.number(0) {
            return self.run(functions::<Map<Add<u32>>>(), 0);
        }
        self.run(functions::<Add3>(), 0)
    }

    /// `UIADD3.64`: pairs of registers.
    fn wide_sum(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        self.results(sass);
        if sass.has(Aspect::Carry) || self.instruction.predicate_destinations != [SINK_PREDICATE; 2] {
            return Err("a sum of 64 bits with carries".to_owned());
        }
        self.take_by(Operands::read_extended, sass, operands, 3)?;
        self.run(functions::<AddPairs>(), 0)
    }

    fn shift_add(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        self.take(sass, operands, 3)?;
        let amount = sass.source(3).and_then(|amount| amount.immediate()).ok_or(NO_SUCH_OPERAND)?;
        self.instruction.predicate_destinations[0] = predicate_destination(sass.predicate(0));
        let mut flags = self.carries(sass) | amount << sum::SHIFT;
        for (aspect, flag) in [(Aspect::High, sum::HIGH), (Aspect::ExtendedSign, sum::SIGN_EXTENDED)] {
            if sass.has(aspect) {
                flags |= flag;
            }
        }
        self.run(functions::<ShiftAdd>(), flags)
    }

    fn integer_comparison(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        self.take(sass, operands, 2)?;
        self.instruction.destinations[0] = SINK_ROW;
        self.results(sass);
        self.condition(sass);
        let (is_signed, is_extended) = (!sass.has(Aspect::Unsigned), sass.has(Aspect::Extended));
        let code = sass.value(Aspect::Comparison) as u32;
        let how = combination(sass.value(Aspect::Boolean));
        if is_extended || matches!(code, 0 | 7) {
            let mut immediate = how | code << outcome::SHIFT;
            if is_extended {
                let (slot, flip) = predicate_source(sass.predicate_source(1));
                (self.instruction.predicate_sources[1], self.instruction.predicate_flips[1]) = (slot, flip);
                immediate |= EXTENDED;
            }
            let functions =
                if is_signed { functions::<CompareIntegers<i32>>() } else { functions::<CompareIntegers<u32>>() };
            return self.run(functions, immediate);
        }
        let functions = match (code, is_signed) {
            (1, true) => functions::<SetPredicate<Less<i32>>>(),
            (1, false) => functions::<SetPredicate<Less<u32>>>(),
            (2, _) => functions::<SetPredicate<Equal<u32>>>(),
            (3, true) => functions::<SetPredicate<LessOrEqual<i32>>>(),
            (3, false) => functions::<SetPredicate<LessOrEqual<u32>>>(),
            (4, true) => functions::<SetPredicate<Greater<i32>>>(),
            (4, false) => functions::<SetPredicate<Greater<u32>>>(),
            (5, _) => functions::<SetPredicate<NotEqual<u32>>>(),
            (_, true) => functions::<SetPredicate<GreaterOrEqual<i32>>>(),
            (_, false) => functions::<SetPredicate<GreaterOrEqual<u32>>>(),
        };
        self.run(functions, how)
    }

    /// `LOP3`: functions of two values are quicker than those of three.
    fn logic(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        self.take(sass, operands, 3)?;
        let table = sass.source(3).and_then(|table| table.immediate()).ok_or(NO_SUCH_OPERAND)?;
        let result = predicate_destination(sass.predicate(0));
        if result != SINK_PREDICATE {
            self.instruction.predicate_destinations[0] = result;
            self.condition(sass);
            return self.run(functions::<Logic3Predicate>(), table | u32::from(sass.has(Aspect::PredicateAnd)) << 8);
        }
        let is_zero = self.instruction.sources[2] == operands.number(0);
        // The four combinations with a third value of zero: bits 0, 2, 4 and 6.
        match (is_zero, table & 0b0101_0101) {
            (true, 0x40) => self.run(functions::<Map<And<u32>>>(), 0),
            (true, 0x54) => self.run(functions::<Map<Or<u32>>>(), 0),
            (true, 0x14) => self.run(functions::<Map<Xor<u32>>>(), 0),
            _ => self.run(functions::<Map<Logic3>>(), table),
        }
    }

    /// `SHF`: shifts of one word are quicker than those of two.
    fn funnel(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        self.take(sass, operands, 3)?;
        // .S64, .U64, .S32, .U32
        let kind = sass.value(Aspect::Type) as u32;
        let is_right = sass.text(Aspect::Direction) == ".R";
        let (wraps, is_high) = (sass.has(Aspect::Wrap), sass.has(Aspect::High));
        let is_short = kind & 2 != 0;
        if is_short && !wraps {
            match (is_right, is_high, kind) {
                // The count is limited to 32 bits' width, which shifts everything out.
                (false, false, _) => return self.run(functions::<Map<ShiftLeft<u32>>>(), 0),
                (true, true, _) => {
                    self.instruction.sources[0] = self.instruction.sources[2];
                    return self.run(
                        match kind {
                            3 => functions::<Map<ShiftRight<u32>>>(),
                            _ => functions::<Map<ShiftRight<i32>>>(),
                        },
                        0,
                    );
                }
                _ => {}
            }
        }
        let mut flags = kind;
        for (is_set, flag) in [(is_right, funnel::RIGHT), (wraps, funnel::WRAP), (is_high, funnel::HIGH)] {
            if is_set {
                flags |= flag;
            }
        }
        self.run(functions::<Funnel>(), flags)
    }

    /// Operations on one value. Some of them invert it.
    fn one(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        use Opcode as O;
        let source = sass.source(0).ok_or(NO_SUCH_OPERAND)?;
        self.instruction.sources[0] = operands.read(source)?;
        let inverts = source.is_negated;
        match sass.opcode() {
            O::Iabs => self.run(functions::<Map<Absolute<i32>>>(), 0),
            O::Brev | O::Ubrev => self.run(functions::<Map<Reverse32>>(), 0),
            O::Popc | O::Upopc if inverts => self.run(functions::<Map<Inverted<PopulationCount32>>>(), 0),
            O::Popc | O::Upopc => self.run(functions::<Map<PopulationCount32>>(), 0),
            _ => {
                if predicate_destination(sass.predicate(0)) != SINK_PREDICATE {
                    return Err("a predicate that says whether a bit was found".to_owned());
                }
                let shift_amount = u32::from(sass.has(Aspect::ShiftAmount));
                let functions = match (sass.has(Aspect::Unsigned), inverts) {
                    (false, false) => functions::<Map<FindS32>>(),
                    (false, true) => functions::<Map<InvertedSigned<FindS32>>>(),
                    (true, false) => functions::<Map<FindU32>>(),
                    (true, true) => functions::<Map<Inverted<FindU32>>>(),
                };
                self.run(functions, shift_amount)
            }
        }
    }
}
