//! The steps of Volta's product of matrices.

use crate::interpreter::bodies::Body;
use crate::interpreter::floating_point::number_format::Format;
use crate::interpreter::matrix::{half_of, to_finite};
use crate::interpreter::registers::{Lane, Registers};
use crate::interpreter::tensor_sum::{Adder, Factor, multiply_add, widened};
use crate::lanes::LANES;
use crate::matrix::{Element, Generation};
use crate::operation::Instruction;
use crate::operation::operand::Row;

/// Bits of the immediate of [`MatrixStep`].
pub(crate) mod step {
    /// The step's number, 0 to 3.
    pub const NUMBER: u32 = 3;
    /// A is stored column by column.
    pub const A_BY_COLUMN: u32 = 1 << 2;
    /// B is.
    pub const B_BY_COLUMN: u32 = 1 << 3;
    /// C has halves.
    pub const FROM_HALVES: u32 = 1 << 4;
    /// D has halves.
    pub const TO_HALVES: u32 = 1 << 5;
    /// Infinities become the largest number, not-a-number becomes 0.
    pub const SATURATE: u32 = 1 << 6;
    /// A is negated.
    pub const NEGATE_A: u32 = 1 << 7;
    /// B is.
    pub const NEGATE_B: u32 = 1 << 8;
    /// The sums are those of Turing.
    pub const TURING: u32 = 1 << 9;
}

/// `HMMA.884`: a step of the products of 8x8x4 matrices, of which each group of eight lanes has one of its own: lanes 4 g to 4 g + 3,
/// which have the upper rows and the left columns, and 16 more, which have the lower rows and the right columns. Sources are pairs of
/// registers: A, B and C.
///
/// A step reads all of A and B, and computes the elements that its destination holds:
///
/// ```text
///  D of singles, C of either         D of halves
///      columns 0-3   4-7                 columns 0-3   4-7
///  rows 0, 1     0     2             rows 0-7        0     1
///       2, 3     1     3
///       4, 5     0     2
///       6, 7     1     3
/// ```
///
/// That is the part of the accumulators of `mma.m8n8k4` (PTX ISA, fragments of its C and D) in registers 2 `number` and 2 `number` + 1
/// of D. C of halves has its columns in the same pair for two steps.
pub(crate) struct MatrixStep;

impl Body for MatrixStep {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let flags = instruction.immediate;
        let operands = Operands::read(instruction, registers, constants);
        let sums = if flags & step::TO_HALVES != 0 {
            halves_side_by_side(flags, operands)
        } else {
            singles_side_by_side(flags, operands)
        };
        let sums = sums.unwrap_or_else(|| one_by_one(flags, &Operands::read(instruction, registers, constants)));
        for (destination, values) in instruction.destinations.iter().zip(&sums) {
            u32::write(registers, *destination, values, mask);
        }
    }
}

/// A pair of registers: each lane has four halves, or two singles.
type Pair = [[u32; LANES]; 2];

/// The operands of a step, negated where they are to be.
struct Operands {
    a: Pair,
    b: Pair,
    c: Pair,
}

impl Operands {
    #[inline(always)]
    fn read(instruction: &Instruction, registers: &Registers, constants: &[Row]) -> Operands {
        let mut pairs = [[[0; LANES]; 2]; 3];
        let flags = instruction.immediate;
        let negated = [flags & step::NEGATE_A != 0, flags & step::NEGATE_B != 0, false];
        for (source, pair) in pairs.iter_mut().enumerate() {
            let sign = if negated[source] { 0x8000_8000 } else { 0 };
            for (words, row) in pair.iter_mut().zip(registers.source(constants, instruction.sources[source], 2)) {
                for (word, read) in words.iter_mut().zip(row.0) {
                    *word = read ^ sign;
                }
            }
        }
        let [a, b, c] = pairs;
        Operands { a, b, c }
    }
}

/// Products of a sum.
const PLACES: usize = 4;
/// Lanes whose sums are computed at once: the lower or the upper ones.
const SIDE: usize = LANES / 2;

/// How sums are added. A step's four products are one block.
fn adder(flags: u32) -> Adder {
    let generation = if flags & step::TURING != 0 { Generation::Turing } else { Generation::Volta };
    Adder::new(generation, Element::F16)
}

/// The row and column of D, within the matrices of a lane's group, of the sum `index` of the lane.
fn position(flags: u32, lane: usize, index: usize) -> (usize, usize) {
    let (number, high) = ((flags & step::NUMBER) as usize, lane / 16 * 4);
    // All steps of halves have all rows; others have two of each four, the upper ones first.
    if flags & step::TO_HALVES != 0 {
        (lane % 4 + high, 4 * number + index)
    } else {
        (lane % 2 + number % 2 * 2 + high, number / 2 * 4 + (lane & 2) + index)
    }
}

/// An element of A or B: `line` is the row of A or the column of B, `place` counts along the sum.
fn element(words: &Pair, group: usize, line: usize, place: usize, lies_along: bool) -> u32 {
    let (member, index) = if lies_along { (line % 4, place) } else { (place, line % 4) };
    half_of(&words[index / 2], 4 * group + member + line / 4 * 16, index % 2)
}

/// The step, each sum on its own.
#[inline(never)]
fn one_by_one(flags: u32, Operands { a, b, c }: &Operands) -> Pair {
    let has = |flag: u32| flags & flag != 0;
    let result = if has(step::TO_HALVES) { Format::F16 } else { Format::F32 };
    let mut sums = [[0; LANES]; 2];
    for lane in 0..LANES {
        let group = lane % 16 / 4;
        for index in 0..if has(step::TO_HALVES) { 4 } else { 2 } {
            let (row, column) = position(flags, lane, index);
            let left = |place: usize| element(a, group, row, place, !has(step::A_BY_COLUMN));
            let right = |place: usize| element(b, group, column, place, has(step::B_BY_COLUMN));
            let start = match (has(step::FROM_HALVES), has(step::TO_HALVES)) {
                (true, _) => widened(element(c, group, row, column % 4, true)),
                (false, true) => 0,
                (false, false) => c[index][lane],
            };
            let factors = |bits: &dyn Fn(usize) -> u32| -> [Factor; PLACES] {
                std::array::from_fn(|place| Factor::new(Element::F16, bits(place)))
            };
            let fractions = 2 * Format::F16.fraction;
            let sum = multiply_add(adder(flags), &factors(&left), &factors(&right), fractions, start, result);
            let sum = if has(step::SATURATE) { to_finite(sum, result) } else { sum };
            if has(step::TO_HALVES) {
                sums[index / 2][lane] |= sum << (16 * (index % 2));
            } else {
                sums[index][lane] = sum;
            }
        }
    }
    sums
}

/// The step to singles; `None` where a number is one that only [`one_by_one`] can add.
#[inline(always)]
fn singles_side_by_side(flags: u32, mut operands: Operands) -> Option<Pair> {
    let number = flags & step::NUMBER;
    exchange_unless(flags & step::A_BY_COLUMN == 0, &mut operands.a);
    exchange_unless(flags & step::B_BY_COLUMN != 0, &mut operands.b);
    take_rows(number % 2, &mut operands.a);
    let (lower, upper) = (Factors::new(&operands.a, 0), Factors::new(&operands.a, 1));
    let b = Factors::new(&operands.b, number / 2);
    if flags & step::FROM_HALVES != 0 {
        take_rows(number % 2, &mut operands.c);
        for lane in 0..LANES {
            let word = if lane & 2 == 0 { operands.c[0][lane] } else { operands.c[1][lane] };
            operands.c[0][lane] = widened_if_finite(word & 0xffff);
            operands.c[1][lane] = widened_if_finite(word >> 16);
        }
    }
    let adder = adder(flags);
    let mut sums = [[0; LANES]; 2];
    let mut irregular = lower.irregular | upper.irregular | b.irregular;
    irregular |= add_singles(adder, [&lower, &upper], &b.of_two(0), &operands.c[0], &mut sums[0]);
    irregular |= add_singles(adder, [&lower, &upper], &b.of_two(1), &operands.c[1], &mut sums[1]);
    if flags & step::SATURATE != 0 {
        sums.iter_mut().flatten().for_each(|sum| *sum = to_finite(*sum, Format::F32));
    }
    (irregular >= 0).then_some(sums)
}

/// A register of sums; less than 0 where one is wrong.
#[inline(always)]
fn add_singles(adder: Adder, a: [&Factors; 2], b: &Factors, start: &[u32; LANES], sums: &mut [u32; LANES]) -> i32 {
    let mut irregular = 0;
    for (side, a) in a.into_iter().enumerate() {
        let start = side_of(start, side);
        let mut singles = [0; SIDE];
        for lane in 0..SIDE {
            let (single, wrong) = Sum::new(adder, a, b, start[lane], lane).single();
            singles[lane] = single;
            irregular |= wrong;
        }
        sums[side * SIDE..][..SIDE].copy_from_slice(&singles);
    }
    irregular
}

/// The step to halves; `None` where a number is one that only [`one_by_one`] can add.
#[inline(always)]
fn halves_side_by_side(flags: u32, mut operands: Operands) -> Option<Pair> {
    exchange_unless(flags & step::A_BY_COLUMN == 0, &mut operands.a);
    exchange_unless(flags & step::B_BY_COLUMN != 0, &mut operands.b);
    let (lower, upper) = (Factors::new(&operands.a, 0), Factors::new(&operands.a, 1));
    let b = Factors::new(&operands.b, flags & step::NUMBER);
    if flags & step::FROM_HALVES == 0 {
        operands.c = [[0; LANES]; 2];
    }
    let adder = adder(flags);
    let mut sums = [[0; LANES]; 2];
    let mut irregular = lower.irregular | upper.irregular | b.irregular;
    let b = [b.of_four(0), b.of_four(1), b.of_four(2), b.of_four(3)];
    for (index, b) in b.iter().enumerate() {
        let (word, low) = (index / 2, 16 * (index % 2));
        for (side, a) in [&lower, &upper].into_iter().enumerate() {
            let start = side_of(&operands.c[word], side);
            let mut halves = [0; SIDE];
            for lane in 0..SIDE {
                let start = widened_if_finite((start[lane] >> low) & 0xffff);
                let sum = Sum::new(adder, a, b, start, lane);
                halves[lane] = sum.half();
                irregular |= sum.irregular;
            }
            if flags & step::SATURATE != 0 {
                halves.iter_mut().for_each(|half| *half = to_finite(*half, Format::F16));
            }
            for (sum, half) in sums[word][side * SIDE..].iter_mut().zip(halves) {
                *sum |= half << low;
            }
        }
    }
    (irregular >= 0).then_some(sums)
}

/// The lower lanes' values or the upper ones'.
#[inline(always)]
fn side_of(values: &[u32; LANES], side: usize) -> &[u32; SIDE] {
    let (lower, upper) = values.split_at(SIDE);
    if side == 0 { lower } else { upper }.try_into().expect("half the lanes")
}

/// As [`widened`], for a finite half; another half becomes a single that is not finite.
#[inline(always)]
fn widened_if_finite(half: u32) -> u32 {
    let apart = Apart::new(half);
    apart.value.to_bits() | if apart.is_finite { 0 } else { f32::INFINITY.to_bits() }
}

/// The words of two neighbours among the lanes, the lower one's in the low half.
type Neighbours = u64;

/// Puts the elements of a lane's line of a matrix, those along the sum, into the lane itself: unless they lie along, each four lanes
/// exchange theirs.
#[inline(always)]
fn exchange_unless(lie_along: bool, words: &mut Pair) {
    if lie_along {
        return;
    }
    let lines: [[[Neighbours; 2]; LANES / 4]; 2] = bytemuck::cast(*words);
    let mut exchanged = lines;
    for quad in 0..LANES / 4 {
        for word in 0..2 {
            for half in 0..2 {
                let [ends, low, high] = [0xffff_0000_0000_ffff, 0xffff << 16, 0xffff << 32];
                let four = lines[word][quad][half];
                exchanged[half][quad][word] = four & ends | (four & low) << 16 | (four & high) >> 16;
            }
        }
    }
    *words = bytemuck::cast(exchanged);
}

/// Gives each four lanes the rows of the first two of them, or of the others.
#[inline(always)]
fn take_rows(others: u32, words: &mut Pair) {
    let quads: &mut [[Neighbours; 2]; LANES / 2] = bytemuck::cast_mut(words);
    for quad in quads {
        *quad = [quad[others as usize]; 2];
    }
}

/// The value of one of two neighbours, for both.
#[inline(always)]
fn of_one(neighbours: Neighbours, member: usize) -> Neighbours {
    if member == 0 { neighbours & 0xffff_ffff | neighbours << 32 } else { neighbours >> 32 | neighbours >> 32 << 32 }
}

/// The exponent of zeros: below all others, in sums with another, too.
const ZERO_EXPONENT: i32 = -100_000;

/// A half: its value where it is finite, and the exponent with which its products are added.
struct Apart {
    value: f32,
    exponent: i32,
    is_finite: bool,
}

impl Apart {
    #[inline(always)]
    fn new(half: u32) -> Apart {
        let field = (half >> 10) & 0x1f;
        let magnitude = half & 0x3ff | if field == 0 { 0 } else { 0x400 };
        let number = field.max(1) as i32;
        let unit = f32::from_bits(((number + 127 - 25) as u32) << 23);
        let value = magnitude as i32 as f32 * unit;
        Apart {
            value: f32::from_bits(value.to_bits() | (half & 0x8000) << 16),
            exponent: if magnitude == 0 { ZERO_EXPONENT } else { number - Format::F16.bias() },
            is_finite: field != 0x1f,
        }
    }
}

/// The factors that half of the lanes have, by their place in the sum.
struct Factors {
    values: [[f32; SIDE]; PLACES],
    exponents: [[i32; SIDE]; PLACES],
    /// Less than 0 where one is not finite.
    irregular: i32,
}

impl Factors {
    /// The value of the lower lanes or of the upper ones.
    #[inline(always)]
    fn new(words: &Pair, side: u32) -> Factors {
        let (mut values, mut exponents, mut irregular) = ([[0.0; SIDE]; PLACES], [[0; SIDE]; PLACES], 0);
        for place in 0..PLACES {
            let words = side_of(&words[place / 2], side as usize);
            for lane in 0..SIDE {
                let apart = Apart::new((words[lane] >> (16 * (place % 2))) & 0xffff);
                values[place][lane] = apart.value;
                exponents[place][lane] = apart.exponent;
                irregular |= -i32::from(!apart.is_finite);
            }
        }
        Factors { values, exponents, irregular }
    }

    /// Each four lanes exchange their factors.
    #[inline(always)]
    fn exchanged(&self, exchange: impl Fn([Neighbours; 2]) -> [Neighbours; 2]) -> Factors {
        let mut values: [[Neighbours; 2]; SIDE] = bytemuck::cast(self.values);
        let mut exponents: [[Neighbours; 2]; SIDE] = bytemuck::cast(self.exponents);
        for quad in 0..SIDE {
            values[quad] = exchange(values[quad]);
            exponents[quad] = exchange(exponents[quad]);
        }
        Factors { values: bytemuck::cast(values), exponents: bytemuck::cast(exponents), irregular: self.irregular }
    }

    /// Columns of B: lanes with even columns get the `index`-th of their two.
    #[inline(always)]
    fn of_two(&self, index: usize) -> Factors {
        self.exchanged(|[even, odd]| [of_one(even, index), of_one(odd, index)])
    }

    /// Columns of B: all lanes get the `index`-th of four.
    #[inline(always)]
    fn of_four(&self, index: usize) -> Factors {
        self.exchanged(|quad| [of_one(quad[index / 2], index % 2); 2])
    }
}

/// A sum that is exact: so many units of 2 to an exponent.
struct Sum {
    total: i32,
    unit: i32,
    /// Less than 0 where the sum is wrong: an addend is not finite, or all are too small for a scale in single precision.
    irregular: i32,
}

/// A sum whose largest exponent is less, unless all addends are zeros, is left to [`one_by_one`].
const LEAST_EXPONENT: i32 = -100;

impl Sum {
    /// The sum of a lane's products of halves and the single with which it begins; see `tensor_sum`.
    ///
    /// Products of halves are exact in single precision, and stay exact when multiplied by a power of two. The bits that are cut off are
    /// the bits that a conversion to integers leaves out.
    #[inline(always)]
    fn new(adder: Adder, left: &Factors, right: &Factors, start: u32, lane: usize) -> Sum {
        let magnitude = start & 0x7fff_ffff;
        let exponent = ((magnitude >> 23) as i32).max(1) - 127;
        let finite = f32::from_bits(if exponent > 127 { 0 } else { start });
        let mut top = if magnitude == 0 { ZERO_EXPONENT } else { exponent };
        for place in 0..PLACES {
            top = top.max(left.exponents[place][lane] + right.exponents[place][lane]);
        }
        // Negative between the exponents of zeros and the least.
        let too_small = (top - LEAST_EXPONENT) & (ZERO_EXPONENT / 2 - top);
        let unit = top.max(LEAST_EXPONENT) - adder.fraction;
        let scale = f32::from_bits(((127 - unit) as u32) << 23);
        let mut total = cut_off(finite * scale);
        for place in 0..PLACES {
            total += cut_off(left.values[place][lane] * right.values[place][lane] * scale);
        }
        Sum { total, unit, irregular: too_small | (127 - exponent) }
    }

    /// The magnitude of the total in single precision, toward zero.
    #[inline(always)]
    fn magnitude(&self) -> u32 {
        let nearest = (self.total.abs() as f32).to_bits();
        nearest - u32::from(cut_off(f32::from_bits(nearest)) > self.total.abs())
    }

    /// Rounded toward zero; and a number that is less than 0 where this is wrong.
    #[inline(always)]
    fn single(&self) -> (u32, i32) {
        let magnitude = self.magnitude();
        let exponent = (magnitude >> 23) as i32 + self.unit;
        let keep = -i32::from(self.total != 0);
        let single = magnitude.wrapping_add((self.unit as u32) << 23) | self.total as u32 & 0x8000_0000;
        (single & keep as u32, self.irregular | keep & ((exponent - 1) | (254 - exponent)))
    }

    /// Rounded to the nearest.
    #[inline(always)]
    fn half(&self) -> u32 {
        let magnitude = self.magnitude();
        // Rounded to odd, so that rounding once more is rounding once.
        let odd = magnitude | u32::from(cut_off(f32::from_bits(magnitude)) != self.total.abs());
        let single = odd.wrapping_add((self.unit as u32) << 23);
        let normal = (single.wrapping_add(0xfff + (single >> 13 & 1)) >> 13).wrapping_sub((127 - 15) << 10);
        // A unit in the last place of 0.5 is the smallest half.
        let subnormal = (f32::from_bits(single) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
        let half = if single < (127 - 14) << 23 { subnormal } else { normal.min(0x7c00) };
        let keep = -i32::from(self.total != 0);
        (half | self.total as u32 >> 16 & 0x8000) & keep as u32
    }
}

/// The integer toward zero of a number below 2^31: `as` would check that.
#[inline(always)]
fn cut_off(value: f32) -> i32 {
    // SAFETY: all values are finite and less than 2^30: `Sum::new` scales the largest addend so that its exponent is that of a
    // fraction of at most 24 bits.
    unsafe { value.to_int_unchecked() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpreter::bodies::{functions, has_vector_features};
    use crate::operation::operand::Source;
    use std::sync::Arc;

    /// The type of the elements of fragments.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Numbers {
        /// All bits: infinities and not-a-numbers among them.
        Any,
        /// Exponents of halves near 0, zeros among them.
        Near,
        /// The smallest halves, subnormal ones among them; singles of down to those.
        Small,
        /// The largest finite ones.
        Large,
    }

    struct Random(u64);

    impl Random {
        fn bits(&mut self) -> u32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 32) as u32
        }

        fn half(&mut self, numbers: Numbers) -> u32 {
            let bits = self.bits();
            let exponents = match numbers {
                Numbers::Any => return bits & 0xffff,
                _ if bits >> 16 & 7 == 0 => return bits & 0x8000,
                Numbers::Near => 10..20,
                Numbers::Small => 0..3,
                Numbers::Large => 27..31,
            };
            let exponent = exponents.start + self.bits() % (exponents.end - exponents.start);
            bits & 0x83ff | exponent << 10
        }

        fn single(&mut self, numbers: Numbers) -> u32 {
            let bits = self.bits();
            let exponents = match numbers {
                Numbers::Any => return bits,
                _ if self.bits() & 7 == 0 => return bits & 0x8000_0000,
                Numbers::Near => 112..140,
                Numbers::Small => 0..130,
                Numbers::Large => 130..255,
            };
            let exponent = exponents.start + self.bits() % (exponents.end - exponents.start);
            bits & 0x807f_ffff | exponent << 23
        }

        fn word(&mut self, numbers: Numbers, of_halves: bool) -> u32 {
            if of_halves { self.half(numbers) | self.half(numbers) << 16 } else { self.single(numbers) }
        }

        fn pair(&mut self, numbers: Numbers, of_halves: bool) -> Pair {
            std::array::from_fn(|_| std::array::from_fn(|_| self.word(numbers, of_halves)))
        }
    }

    /// The destination that a version of the step writes.
    fn written(version: usize, flags: u32, operands: &Operands) -> Pair {
        let pairs = [operands.a, operands.b, operands.c];
        let mut rows: Vec<Row> = pairs.iter().flatten().map(|words| Row(*words)).collect();
        rows.extend([Row::ZERO; 2]);
        let mut registers = Registers {
            rows,
            predicates: Vec::new(),
            carry: 0,
            special: Default::default(),
            cluster: Default::default(),
            parameters: Arc::default(),
        };
        let mut instruction = crate::operation::Instruction::nothing();
        for source in 0..3 {
            instruction.sources[usize::from(source)] = Source(2 * source);
        }
        instruction.destinations = [6, 7, 0, 0];
        instruction.immediate = flags;
        // SAFETY: the instruction names registers that there are; the second version is called where the processor has its features.
        unsafe { functions::<MatrixStep>()[version](&instruction, &mut registers, &[], u32::MAX) };
        [registers.rows[6].0, registers.rows[7].0]
    }

    /// Both ways of adding agree, whatever the numbers, and wherever the matrices' elements lie.
    #[test]
    fn sums_side_by_side_are_sums_one_by_one() {
        let mut random = Random(1);
        let mut regular = [0; 4];
        for round in 0..4096 {
            let flags = random.bits() & 0x3ff;
            // Two steps make halves, four make singles.
            let flags = if flags & step::TO_HALVES == 0 { flags } else { flags & !2 };
            let kinds = [Numbers::Any, Numbers::Near, Numbers::Small, Numbers::Large];
            // Each of products with each of the accumulators, so that either may outweigh the other.
            let (products, start) = (kinds[round & 3], kinds[round >> 2 & 3]);
            let read = Operands {
                a: random.pair(products, true),
                b: random.pair(products, true),
                c: random.pair(start, flags & step::FROM_HALVES != 0),
            };
            let negated = |words: &Pair, flag: u32| {
                let sign = if flags & flag != 0 { 0x8000_8000 } else { 0 };
                words.map(|words| words.map(|word| word ^ sign))
            };
            let operands =
                Operands { a: negated(&read.a, step::NEGATE_A), b: negated(&read.b, step::NEGATE_B), c: read.c };
            let expected = one_by_one(flags, &operands);
            let side_by_side = match flags & step::TO_HALVES {
                0 => singles_side_by_side(flags, operands),
                _ => halves_side_by_side(flags, operands),
            };
            let case = format!("flags {flags:#x}, products {products:?}, start {start:?}");
            if let Some(sums) = side_by_side {
                assert_eq!(sums, expected, "{case}");
                regular[round & 3] += 1;
            }
            for version in 0..if has_vector_features() { 2 } else { 1 } {
                assert_eq!(written(version, flags, &read), expected, "{case}, version {version}");
            }
        }
        assert!(regular[1..].iter().all(|count| *count > 700), "the fast way is taken: {regular:?}");
    }

    /// A half's value and exponent, by hand.
    #[test]
    fn halves_are_taken_apart() {
        for (half, value, exponent, is_finite) in [
            (0x0000, 0.0, ZERO_EXPONENT, true),
            (0x8000, -0.0, ZERO_EXPONENT, true),
            (0x3c00, 1.0, 0, true),
            (0xc500, -5.0, 2, true),
            (0x7bff, 65504.0, 15, true),
            // Not normalised.
            (0x0001, 1.0 / 16_777_216.0, -14, true),
            (0x83ff, -1023.0 / 16_777_216.0, -14, true),
            (0x0400, 1.0 / 16_384.0, -14, true),
            (0x7c00, 65536.0, 16, false),
            (0x7e00, 98304.0, 16, false),
        ] {
            let apart = Apart::new(half);
            assert_eq!((apart.value.to_bits(), apart.exponent), (f32::to_bits(value), exponent), "{half:#x}");
            assert_eq!(apart.is_finite, is_finite, "{half:#x}");
        }
    }

    /// In a step of a product with ones, each element of D is the sum of four and C's; with halves, too.
    #[test]
    fn ones_add_up_to_four() {
        let ones = [[0x3c00_3c00; LANES]; 2];
        let singles = Operands { a: ones, b: ones, c: [[0.5f32.to_bits(); LANES]; 2] };
        assert_eq!(written(0, 0, &singles), [[4.5f32.to_bits(); LANES]; 2]);
        // -0.5 and 6, so 3.5 and 10.
        let halves = Operands { a: ones, b: ones, c: [[0x4600_b800; LANES]; 2] };
        assert_eq!(written(0, step::FROM_HALVES | step::TO_HALVES, &halves), [[0x4900_4300; LANES]; 2]);
    }
}
