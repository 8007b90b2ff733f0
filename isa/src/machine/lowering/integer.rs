//! Integer arithmetic, logic, moves and selections, those of the uniform datapath among them.

use super::operands::{Operands, predicate_destination, predicate_source, sign_at};
use super::{Lowered, Pending};
use crate::interpreter::bodies::*;
use crate::interpreter::compare::{
    Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqualOrUnordered as NotEqual, Select, SetPredicate,
};
use crate::interpreter::convert::PackIntegers;
use crate::interpreter::integer::*;
use crate::interpreter::machine::arithmetic::*;
use crate::interpreter::machine::compare::{ByPredicate, CompareIntegers, EXTENDED, combination, outcome};
use crate::interpreter::machine::logic::*;
use crate::operation::LaneFunction;
use crate::operation::operand::{SINK_PREDICATE, SINK_ROW, Source, TRUE_PREDICATE};
use crate::sass::{self, Opcode, Place, UNIFORM_FLAG, Word};

/// The three sources of an instruction with their signs, where its form puts them.
struct Sources {
    sources: [Source; 3],
    signs: u8,
}

/// The datapath that an instruction belongs to: which registers and predicates its fields name.
#[derive(Clone, Copy)]
struct Path {
    is_uniform: bool,
}

impl Path {
    fn of(sass: &sass::Instruction) -> Path {
        Path { is_uniform: sass.encoding().has_uniform_guard() }
    }

    fn register(self, operands: &Operands, word: Word, low: u8) -> Source {
        if self.is_uniform {
            operands.uniform(word.bits(low, 6) as u8)
        } else {
            operands.register(word.bits(low, 8) as u8)
        }
    }

    /// The operand in bits 32 to 63.
    fn exchanged(self, operands: &mut Operands, word: Word) -> Lowered<Source> {
        match (self.is_uniform, word.code() >> 9) {
            (true, 2 | 4) => Ok(operands.number(word.bits(32, 32) as u32)),
            (true, _) if word.bit(UNIFORM_FLAG) || word.code() >> 9 == 1 => {
                Ok(operands.uniform(word.bits(32, 6) as u8))
            }
            (true, _) => Ok(operands.number(word.bits(32, 32) as u32)),
            (false, _) => {
                let place = Place::exchanged(word).ok_or("a form without this operand")?;
                operands.at(word, place)
            }
        }
    }

    /// Is there an immediate in bits 32 to 63?
    fn has_immediate(self, word: Word) -> bool {
        match self.is_uniform {
            true => !(word.code() >> 9 == 1 || (word.code() >> 9 == 6 && word.bit(UNIFORM_FLAG))),
            false => Place::exchanged(word) == Some(Place::Immediate),
        }
    }

    fn destination(self, operands: &Operands, word: Word) -> u16 {
        if self.is_uniform {
            operands.uniform_row(word.bits(16, 6) as u8)
        } else {
            operands.row(word.bits(16, 8) as u8)
        }
    }

    /// All three sources: A, B, C. `wide_c` is of a C that is a pair.
    fn sources(self, operands: &mut Operands, word: Word, wide_c: bool) -> Lowered<Sources> {
        let a = self.register(operands, word, 24);
        let at_c = self.register(operands, word, 64);
        let is_turned = matches!(word.code() >> 9, 2 | 3 | 7);
        let other = if wide_c && is_turned && !self.is_uniform {
            wide_addend(operands, word)?
        } else if wide_c && is_turned {
            operands.wide_number(i64::from(word.bits(32, 32) as i32) as u64)
        } else {
            self.exchanged(operands, word)?
        };
        let (b, c) = if is_turned { (at_c, other) } else { (other, at_c) };
        let exchanged = if self.has_immediate(word) { Place::Immediate } else { Place::Register(32) };
        let (place_b, place_c) =
            if is_turned { (Place::Register(64), exchanged) } else { (exchanged, Place::Register(64)) };
        let signs = sign_at(word, Place::Register(24), 0, false)
            | sign_at(word, place_b, 1, false)
            | sign_at(word, place_c, 2, false);
        Ok(Sources { sources: [a, b, c], signs })
    }
}

/// The addend of a wide product in bits 32 to 63: a number of 32 bits that is extended with its sign, or a pair.
fn wide_addend(operands: &mut Operands, word: Word) -> Lowered<Source> {
    match Place::exchanged(word).ok_or("a form without this operand")? {
        Place::Immediate => Ok(operands.wide_number(i64::from(word.bits(32, 32) as i32) as u64)),
        place => operands.wide_at(word, place),
    }
}

const ONLY_B: u8 = 3 << 2;
const ONLY_C: u8 = 3 << 4;

/// The code of `LEA.HI R0, R1, R2, 0x3, 0x4`.
const LEA_WITH_UPPER_IMMEDIATE: u16 = 0x411;

impl Pending {
    pub(super) fn integer(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        use Opcode as O;
        let word = sass.word();
        let path = Path::of(sass);
        self.instruction.destinations[0] = path.destination(operands, word);
        match sass.opcode() {
            O::Imad | O::Uimad if sass.name().contains(".WIDE") => self.product(word, path, operands, product::WIDE),
            O::Imad | O::Uimad => self.product(word, path, operands, product::LOW),
            O::ImadWide => self.product(word, path, operands, product::WIDE),
            O::ImadHigh => self.product(word, path, operands, product::HIGH),
            O::Iadd3 | O::Uiadd3 => self.sum(word, path, operands),
            O::Lea | O::Ulea => self.shift_add(word, path, operands),
            O::Isetp | O::Uisetp => self.integer_comparison(word, path, operands),
            O::Lop3 | O::Ulop3 => self.logic(word, path, operands),
            O::Shf | O::Ushf => self.funnel(word, path, operands),
            O::Mov | O::Umov => {
                self.instruction.sources[0] = path.exchanged(operands, word)?;
                if sass.opcode() == O::Mov && word.bits(72, 4) != 15 {
                    return Err("a move of some of the lanes".to_owned());
                }
                self.run(functions::<Map<Move<u32>>>(), 0)
            }
            O::Sel | O::Usel => {
                self.two(word, path, operands)?;
                self.condition(word, path);
                self.run(functions::<Select<u32>>(), 0)
            }
            O::Imnmx => {
                self.two(word, path, operands)?;
                self.condition(word, path);
                let is_signed = word.bit(73);
                self.run(
                    match is_signed {
                        true => functions::<ByPredicate<Minimum<i32>, Maximum<i32>>>(),
                        false => functions::<ByPredicate<Minimum<u32>, Maximum<u32>>>(),
                    },
                    0,
                )
            }
            O::Prmt | O::Uprmt => {
                let Sources { sources: [a, b, c], .. } = path.sources(operands, word, false)?;
                // The second source chooses among the bytes of the first and the third.
                self.instruction.sources[..3].copy_from_slice(&[a, c, b]);
                self.run(functions::<Map<Permute>>(), word.bits(72, 3) as u32)
            }
            O::Bmsk | O::Ubmsk => {
                self.two(word, path, operands)?;
                let wraps = word.bit(75);
                self.run(if wraps { functions::<Map<MaskWrap>>() } else { functions::<Map<MaskClamp>>() }, 0)
            }
            O::Sgxt | O::Usgxt => {
                self.two(word, path, operands)?;
                let clamps = u32::from(!word.bit(75));
                let is_signed = word.bit(73);
                self.run(if is_signed { functions::<Map<ExtendS32>>() } else { functions::<Map<ExtendU32>>() }, clamps)
            }
            O::Idp => {
                let Sources { sources, .. } = path.sources(operands, word, false)?;
                self.instruction.sources[..3].copy_from_slice(&sources);
                let types = word.bits(73, 2) as u32;
                match word.bits(75, 3) {
                    0 => self.run(functions::<Map<DotProduct4>>(), types),
                    2 => self.run(functions::<Map<DotProduct2>>(), types),
                    _ => self.run(functions::<Map<DotProduct2>>(), types | 4),
                }
            }
            O::Vabsdiff => {
                let Sources { sources, .. } = path.sources(operands, word, false)?;
                self.instruction.sources[..3].copy_from_slice(&sources);
                self.instruction.predicate_destinations[0] = SINK_PREDICATE;
                let is_signed = word.bit(73);
                self.run(
                    match is_signed {
                        true => functions::<Map<SumOfAbsoluteDifference<i32>>>(),
                        false => functions::<Map<SumOfAbsoluteDifference<u32>>>(),
                    },
                    0,
                )
            }
            O::Vabsdiff4 => {
                let Sources { sources, .. } = path.sources(operands, word, false)?;
                self.instruction.sources[..3].copy_from_slice(&sources);
                let flags = u32::from(word.bit(73)) | u32::from(word.bit(75)) << 1;
                self.run(functions::<AbsoluteDifferences>(), flags)
            }
            O::I2ip => {
                if word.bit(72) {
                    return Err("the upper half of what a packing conversion adds to".to_owned());
                }
                let Sources { sources, .. } = path.sources(operands, word, false)?;
                self.instruction.sources[..3].copy_from_slice(&sources);
                // .U8, .S8, .U16, .S16
                let bits = if word.bit(77) { 16 } else { 8 };
                self.run(functions::<Map<PackIntegers>>(), bits | u32::from(word.bit(76)) << 8)
            }
            O::Iabs | O::Popc | O::Flo | O::Brev | O::Upopc | O::Uflo | O::Ubrev => {
                self.one(sass.opcode(), word, path, operands)
            }
            other => Err(format!("{} is not executed", other.name())),
        }
    }

    /// A lane function and its immediate.
    pub(super) fn run(&mut self, functions: [LaneFunction; 2], immediate: u32) -> Lowered<()> {
        self.instruction.functions = functions;
        self.instruction.immediate = immediate;
        Ok(())
    }

    fn two(&mut self, word: Word, path: Path, operands: &mut Operands) -> Lowered<()> {
        self.instruction.sources[0] = path.register(operands, word, 24);
        self.instruction.sources[1] = path.exchanged(operands, word)?;
        Ok(())
    }

    /// The predicate at bit 87 is the first that is read.
    fn condition(&mut self, word: Word, path: Path) {
        let (slot, flip) = predicate_source(word, 87, path.is_uniform);
        (self.instruction.predicate_sources[0], self.instruction.predicate_flips[0]) = (slot, flip);
    }

    /// The predicates at bits 81 and 84 are written.
    fn results(&mut self, word: Word, path: Path) {
        self.instruction.predicate_destinations = [81, 84].map(|low| predicate_destination(word, low, path.is_uniform));
    }

    /// The predicates that a sum with carries adds.
    fn carries(&mut self, word: Word, path: Path, second: bool) -> u32 {
        if !word.bit(74) {
            return 0;
        }
        self.condition(word, path);
        if second {
            let (slot, flip) = predicate_source(word, 77, path.is_uniform);
            (self.instruction.predicate_sources[1], self.instruction.predicate_flips[1]) = (slot, flip);
        } else {
            (self.instruction.predicate_sources[1], self.instruction.predicate_flips[1]) = (TRUE_PREDICATE, u32::MAX);
        }
        sum::EXTENDED
    }

    /// `IMAD`: most often a move, a sum or a shift, which are quicker than a product.
    fn product(&mut self, word: Word, path: Path, operands: &mut Operands, part: u8) -> Lowered<()> {
        let Sources { sources, signs } = path.sources(operands, word, part != product::LOW)?;
        self.instruction.sources[..3].copy_from_slice(&sources);
        self.instruction.signs = signs & ONLY_C;
        if part != product::LOW {
            self.instruction.predicate_destinations[0] = predicate_destination(word, 81, path.is_uniform);
        }
        let is_signed = word.bit(73);
        let extended = self.carries(word, path, false);
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

    fn sum(&mut self, word: Word, path: Path, operands: &mut Operands) -> Lowered<()> {
        let Sources { sources, signs } = path.sources(operands, word, false)?;
        self.instruction.sources[..3].copy_from_slice(&sources);
        self.instruction.signs = signs;
        self.results(word, path);
        let extended = self.carries(word, path, true);
        if extended != 0 || self.instruction.predicate_destinations != [SINK_PREDICATE; 2] {
            return self.run(functions::<Add3Carry>(), extended);
        }
        let zero = operands.number(0);
        if signs == 0 && sources[2] == zero {
            return self.run(functions::<Map<Add<u32>>>(), 0);
        }
        self.run(functions::<Add3>(), 0)
    }

    fn shift_add(&mut self, word: Word, path: Path, operands: &mut Operands) -> Lowered<()> {
        let Sources { sources, signs } = path.sources(operands, word, false)?;
        self.instruction.sources[..3].copy_from_slice(&sources);
        // With the upper half as an immediate, the bit of the second source's sign is one of the shift.
        let without_sign = if word.code() == LEA_WITH_UPPER_IMMEDIATE { ONLY_B | ONLY_C } else { ONLY_C };
        self.instruction.signs = signs & !without_sign;
        self.instruction.predicate_destinations[0] = predicate_destination(word, 81, path.is_uniform);
        let mut flags = self.carries(word, path, false) | (word.bits(75, 5) as u32) << sum::SHIFT;
        if word.bit(80) {
            flags |= sum::HIGH;
        }
        if word.bit(73) {
            flags |= sum::SIGN_EXTENDED;
        }
        self.run(functions::<ShiftAdd>(), flags)
    }

    fn integer_comparison(&mut self, word: Word, path: Path, operands: &mut Operands) -> Lowered<()> {
        self.two(word, path, operands)?;
        self.instruction.destinations[0] = SINK_ROW;
        self.results(word, path);
        self.condition(word, path);
        let (is_signed, is_extended, code) = (word.bit(73), word.bit(72), word.bits(76, 3) as u32);
        let how = combination(word.bits(74, 2));
        if is_extended || matches!(code, 0 | 7) {
            let mut immediate = how | code << outcome::SHIFT;
            if is_extended {
                let (slot, flip) = predicate_source(word, 68, path.is_uniform);
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
    fn logic(&mut self, word: Word, path: Path, operands: &mut Operands) -> Lowered<()> {
        let Sources { sources, .. } = path.sources(operands, word, false)?;
        self.instruction.sources[..3].copy_from_slice(&sources);
        let table = word.bits(72, 8) as u32;
        let result = predicate_destination(word, 81, path.is_uniform);
        if result != SINK_PREDICATE {
            self.instruction.predicate_destinations[0] = result;
            self.condition(word, path);
            return self.run(functions::<Logic3Predicate>(), table | u32::from(word.bit(80)) << 8);
        }
        let is_zero = sources[2] == operands.number(0);
        // The four combinations with a third value of zero: bits 0, 2, 4 and 6.
        match (is_zero, table & 0b0101_0101) {
            (true, 0x40) => self.run(functions::<Map<And<u32>>>(), 0),
            (true, 0x54) => self.run(functions::<Map<Or<u32>>>(), 0),
            (true, 0x14) => self.run(functions::<Map<Xor<u32>>>(), 0),
            _ => self.run(functions::<Map<Logic3>>(), table),
        }
    }

    /// `SHF`: shifts of one word are quicker than those of two.
    fn funnel(&mut self, word: Word, path: Path, operands: &mut Operands) -> Lowered<()> {
        let Sources { sources: [a, b, c], .. } = path.sources(operands, word, false)?;
        self.instruction.sources[..3].copy_from_slice(&[a, b, c]);
        let (kind, is_right, wraps, is_high) = (word.bits(73, 2) as u32, word.bit(76), word.bit(75), word.bit(80));
        let is_short = kind & 2 != 0;
        if is_short && !wraps {
            match (is_right, is_high, kind) {
                // The count is limited to 32 bits' width, which shifts everything out.
                (false, false, _) => return self.run(functions::<Map<ShiftLeft<u32>>>(), 0),
                (true, true, _) => {
                    self.instruction.sources[0] = c;
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

    /// Operations on one value, in bits 32 to 63. Some of them invert it.
    fn one(&mut self, opcode: Opcode, word: Word, path: Path, operands: &mut Operands) -> Lowered<()> {
        use Opcode as O;
        self.instruction.sources[0] = path.exchanged(operands, word)?;
        let inverts =
            matches!(opcode, O::Popc | O::Flo | O::Upopc | O::Uflo) && word.bit(63) && !path.has_immediate(word);
        match opcode {
            O::Iabs => self.run(functions::<Map<Absolute<i32>>>(), 0),
            O::Brev | O::Ubrev => self.run(functions::<Map<Reverse32>>(), 0),
            O::Popc | O::Upopc if inverts => self.run(functions::<Map<Inverted<PopulationCount32>>>(), 0),
            O::Popc | O::Upopc => self.run(functions::<Map<PopulationCount32>>(), 0),
            _ => {
                if predicate_destination(word, 81, path.is_uniform) != SINK_PREDICATE {
                    return Err("a predicate that says whether a bit was found".to_owned());
                }
                let shift_amount = u32::from(word.bit(74));
                let functions = match (word.bit(73), inverts) {
                    (true, false) => functions::<Map<FindS32>>(),
                    (true, true) => functions::<Map<InvertedSigned<FindS32>>>(),
                    (false, false) => functions::<Map<FindU32>>(),
                    (false, true) => functions::<Map<Inverted<FindU32>>>(),
                };
                self.run(functions, shift_amount)
            }
        }
    }
}
