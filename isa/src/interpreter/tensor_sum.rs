//! The sums of tensor cores.
//!
//! Products are exact. A block of products and the accumulator is added at once: each addend is cut off, toward zero, at a fixed
//! number of bits below the largest exponent among them (the sum of the factors' exponents, not normalised; zeros do not count),
//! the integers are summed exactly, and the sum is rounded once: toward zero to `.f32`, to nearest even to `.f16`. The next block
//! takes the rounded result as its accumulator. Subnormals are kept, and a sum of zero is positive.
//!
//! Sources: Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores" (PeerJ Computer Science 2021: V100, T4,
//! A100); Khattak, Mikaitis, "Accurate models of NVIDIA tensor cores" (2025: V100, A100, Ada, H100, bit by bit). GPUs after
//! Hopper are taken to add as it does.

use super::floating_point::number_format::{Exact, Format, Rounded, Rounding, Value};
use crate::matrix::{Element, Generation};

/// How one generation adds products of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Adder {
    /// Products of a block.
    pub block: usize,
    /// Bits kept below the largest exponent.
    pub fraction: i32,
}

impl Adder {
    /// The table of generations and types.
    pub fn new(generation: Generation, element: Element) -> Adder {
        let eighth = matches!(element, Element::E4m3 | Element::E5m2);
        let (block, fraction) = match (generation, element) {
            (Generation::Ada, _) if eighth => (16, 13),
            (Generation::Hopper, _) if eighth => (32, 13),
            (Generation::Volta, _) => (4, 23),
            (Generation::Turing, _) => (4, 24),
            (Generation::Ampere | Generation::Ada, Element::Tf32) => (4, 24),
            (Generation::Ampere | Generation::Ada, _) => (8, 24),
            (Generation::Hopper, Element::Tf32) => (8, 25),
            (Generation::Hopper, _) => (16, 25),
        };
        Adder { block, fraction }
    }
}

/// A factor, taken apart: `significand` times 2 to `exponent` less the bits of its format's fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Factor {
    pub significand: i32,
    pub exponent: i32,
    pub class: Class,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Class {
    #[default]
    Finite,
    /// The significand has the sign.
    Infinite,
    NotANumber,
}

/// The format of an element, and its bits in the format's own width.
pub(crate) fn format_of(element: Element, bits: u64) -> (Format, u64) {
    match element {
        Element::F16 => (Format::F16, bits),
        Element::Bf16 => (Format::BF16, bits),
        // The low 13 bits are not read.
        Element::Tf32 => (Format::TF32, bits >> 13),
        Element::E4m3 => (Format::E4M3, bits),
        Element::E5m2 => (Format::E5M2, bits),
        Element::F64 => (Format::F64, bits),
        _ => (Format::F32, bits),
    }
}

impl Factor {
    /// Takes an element of at most 32 bits apart.
    pub fn new(element: Element, bits: u32) -> Factor {
        let (format, bits) = format_of(element, u64::from(bits));
        match format.value(bits) {
            Value::Finite(Exact { negative, magnitude, exponent }) => {
                let significand = magnitude as i32;
                let exponent = exponent + format.fraction as i32;
                Factor {
                    significand: if negative { -significand } else { significand },
                    exponent,
                    class: Class::Finite,
                }
            }
            Value::Infinite { negative } => {
                Factor { significand: if negative { -1 } else { 1 }, exponent: 0, class: Class::Infinite }
            }
            Value::NotANumber => Factor { significand: 1, exponent: 0, class: Class::NotANumber },
        }
    }
}

/// The bits of not-a-number and infinity of an accumulator: those that the GPUs' other instructions make.
const fn not_a_number(format: Format) -> u32 {
    format.signed(false, (1 << (format.fraction + format.exponent)) - 1) as u32
}

/// An accumulator of `.f32`, or of `.f16` widened to it, as a factor.
fn accumulator(bits: u32) -> Factor {
    Factor::new(Element::F32, bits)
}

/// The accumulator plus the products of a row of A and a column of B: the bits of an `.f32` or `.f16`.
pub(crate) fn multiply_add(
    adder: Adder,
    row: &[Factor],
    column: &[Factor],
    fractions: u32,
    start: u32,
    result: Format,
) -> u32 {
    if let Some(special) = special(row, column, accumulator(start)) {
        return match special {
            Value::Infinite { negative } => result.signed(negative, result.infinity()) as u32,
            _ => not_a_number(result),
        };
    }
    let mut sum = start;
    let mut bits = 0;
    for (row, column) in row.chunks(adder.block).zip(column.chunks(adder.block)) {
        bits = block(adder, row, column, fractions, accumulator(sum), result);
        if bits & result.infinity() as u32 == result.infinity() as u32 {
            // Finite addends may add up to infinity, and no further block changes that: there is no contrary infinity.
            return bits;
        }
        sum = if result == Format::F16 { widened(bits) } else { bits };
    }
    bits
}

/// The bits of a half's value in single precision.
#[inline(always)]
pub(crate) fn widened(half: u32) -> u32 {
    let (sign, magnitude) = ((half & 0x8000) << 16, half & 0x7fff);
    sign | match magnitude {
        // Subnormals are normal numbers there: units of 2^-24.
        ..0x400 => (magnitude as f32 * (1.0 / 16_777_216.0)).to_bits(),
        0x7c00 => 0x7f80_0000,
        0x7c01.. => return not_a_number(Format::F32),
        _ => (magnitude << 13) + ((127 - 15) << 23),
    }
}

/// The result where an operand is not finite.
fn special(row: &[Factor], column: &[Factor], start: Factor) -> Option<Value> {
    let is_finite = |factor: &Factor| factor.class == Class::Finite;
    if row.iter().all(is_finite) && column.iter().all(is_finite) && is_finite(&start) {
        return None;
    }
    let mut infinities = [start.class == Class::Infinite && start.significand > 0, false];
    infinities[1] = start.class == Class::Infinite && start.significand < 0;
    if start.class == Class::NotANumber {
        return Some(Value::NotANumber);
    }
    for (a, b) in row.iter().zip(column) {
        if a.class == Class::NotANumber || b.class == Class::NotANumber {
            return Some(Value::NotANumber);
        }
        if a.class == Class::Infinite || b.class == Class::Infinite {
            if a.significand == 0 || b.significand == 0 {
                return Some(Value::NotANumber);
            }
            infinities[usize::from((a.significand < 0) != (b.significand < 0))] = true;
        }
    }
    match infinities {
        [true, true] => Some(Value::NotANumber),
        [false, false] => None,
        [_, negative] => Some(Value::Infinite { negative }),
    }
}

/// One block. `fractions` are the fraction bits of a product.
fn block(adder: Adder, row: &[Factor], column: &[Factor], fractions: u32, start: Factor, result: Format) -> u32 {
    const NONE: i32 = i32::MIN / 2;
    let mut top = if start.significand == 0 { NONE } else { start.exponent };
    for (a, b) in row.iter().zip(column) {
        if a.significand != 0 && b.significand != 0 {
            top = top.max(a.exponent + b.exponent);
        }
    }
    if top == NONE {
        return 0;
    }
    let cut = |value: i64, exponent: i32, fraction: i32| {
        let shift = top - exponent + fraction - adder.fraction;
        let magnitude = value.unsigned_abs();
        let magnitude = if shift < 0 { magnitude << -shift } else { magnitude.checked_shr(shift as u32).unwrap_or(0) };
        if value < 0 { -(magnitude as i64) } else { magnitude as i64 }
    };
    let mut sum = cut(i64::from(start.significand), start.exponent, 23);
    for (a, b) in row.iter().zip(column) {
        let product = i64::from(a.significand) * i64::from(b.significand);
        if product != 0 {
            sum += cut(product, a.exponent + b.exponent, fractions as i32);
        }
    }
    let exact = Exact { negative: sum < 0, magnitude: sum.unsigned_abs(), exponent: top - adder.fraction };
    let rounding = if result == Format::F16 { Rounding::Nearest } else { Rounding::Zero };
    match result.round(exact, rounding) {
        Rounded::Bits(bits) => bits as u32,
        Rounded::Overflow => result.signed(exact.negative, result.infinity()) as u32,
    }
}

/// Columns whose sums are computed at once.
const COLUMNS: usize = 8;
/// The exponent of zeros: below all others, in sums with another, too.
const ZERO_EXPONENT: i32 = -100_000;

/// Rows of significands and exponents of a matrix.
struct Factors {
    significands: [i32; MOST_ELEMENTS],
    exponents: [i32; MOST_ELEMENTS],
}

/// Most elements of a matrix of floats: `m32n8k16` and `m16n16k16` have 512 and 256.
const MOST_ELEMENTS: usize = 512;

impl Factors {
    /// Takes elements apart; `None` where one is not finite.
    #[inline(always)]
    fn new(format: Format, shift: u32, bits: &[u32]) -> Option<Factors> {
        let mut factors = Factors { significands: [0; MOST_ELEMENTS], exponents: [0; MOST_ELEMENTS] };
        let (fraction, largest) = (format.fraction, (1 << format.exponent) - 1);
        let mut are_finite = true;
        let places = factors.significands.iter_mut().zip(&mut factors.exponents);
        for (bits, (to_significand, to_exponent)) in bits.iter().zip(places) {
            let bits = bits >> shift;
            let exponent = (bits >> fraction) as i32 & largest;
            let magnitude = (bits & ((1 << fraction) - 1)) as i32 | i32::from(exponent != 0) << fraction;
            let negative = (bits >> (fraction + format.exponent)) & 1 != 0;
            are_finite &= exponent != largest;
            *to_significand = if negative { -magnitude } else { magnitude };
            *to_exponent = if magnitude == 0 { ZERO_EXPONENT } else { exponent.max(1) - format.bias() };
        }
        are_finite.then_some(factors)
    }
}

/// The whole product of matrices of 16-bit floats or tf32, as [`multiply_add`] gives it: A by rows, B by rows, C as `.f32` bits and
/// overwritten by D. False, and C in part overwritten, where numbers are not finite or too small or too large for this way, or
/// where blocks are too long.
#[inline(always)]
pub(crate) fn multiply_all(
    adder: Adder,
    element: Element,
    [m, n, k]: [usize; 3],
    a: &[u32],
    b: &[u32],
    sums: &mut [u32],
    result: Format,
) -> bool {
    let (format, shift) = match element {
        Element::F16 => (Format::F16, 0),
        Element::Bf16 => (Format::BF16, 0),
        Element::Tf32 => (Format::TF32, 13),
        _ => return false,
    };
    // Sums of longer blocks do not fit 32 bits.
    if adder.block > 8 {
        return false;
    }
    let (Some(a), Some(b)) = (Factors::new(format, shift, &a[..m * k]), Factors::new(format, shift, &b[..k * n]))
    else {
        return false;
    };
    for row in 0..m {
        for column in (0..n).step_by(COLUMNS) {
            let sums = &mut sums[row * n + column..][..COLUMNS];
            let mut lanes = [0; COLUMNS];
            lanes.copy_from_slice(sums);
            let left = |place: usize| Eight::of(&a, row * k + place);
            let right = |place: usize| Eight::from(&b, place * n + column);
            if !eight_sums(adder, format, k, (left, right), &mut lanes, result) {
                return false;
            }
            sums.copy_from_slice(&lanes);
        }
    }
    true
}

#[inline(always)]
fn eight(values: &[i32; MOST_ELEMENTS], first: usize) -> [i32; COLUMNS] {
    let mut eight = [0; COLUMNS];
    eight.copy_from_slice(&values[first..first + COLUMNS]);
    eight
}

/// Factors beside each other, apart.
struct Eight {
    significands: [i32; COLUMNS],
    exponents: [i32; COLUMNS],
}

impl Eight {
    /// The same factor eight times.
    #[inline(always)]
    fn of(factors: &Factors, place: usize) -> Eight {
        Eight { significands: [factors.significands[place]; COLUMNS], exponents: [factors.exponents[place]; COLUMNS] }
    }

    /// Eight factors that follow each other.
    #[inline(always)]
    fn from(factors: &Factors, first: usize) -> Eight {
        Eight { significands: eight(&factors.significands, first), exponents: eight(&factors.exponents, first) }
    }
}

/// Eight sums of `k` products beside each other, in 32-bit integers; `left` and `right` give the factors by their place in the sum.
#[inline(always)]
fn eight_sums(
    adder: Adder,
    format: Format,
    k: usize,
    (left, right): (impl Fn(usize) -> Eight, impl Fn(usize) -> Eight),
    sums: &mut [u32; COLUMNS],
    result: Format,
) -> bool {
    let mut are_regular = true;
    let (mut significands, mut exponents) = ([0i32; COLUMNS], [0i32; COLUMNS]);
    for lane in 0..COLUMNS {
        let (significand, exponent, is_regular) = single_apart(sums[lane]);
        (significands[lane], exponents[lane]) = (significand, exponent);
        are_regular &= is_regular;
    }
    let (up, start_up) = (adder.fraction - 2 * format.fraction as i32, adder.fraction - 23);
    for block in (0..k).step_by(adder.block) {
        let places = block..(block + adder.block).min(k);
        let mut tops = exponents;
        for place in places.clone() {
            let (left, right) = (left(place), right(place));
            for (lane, top) in tops.iter_mut().enumerate() {
                *top = (*top).max(left.exponents[lane] + right.exponents[lane]);
            }
        }
        let mut totals = [0i32; COLUMNS];
        for lane in 0..COLUMNS {
            let magnitude = (significands[lane].abs() << start_up) >> (tops[lane] - exponents[lane]).min(31);
            totals[lane] = if significands[lane] < 0 { -magnitude } else { magnitude };
        }
        for place in places {
            let (left, right) = (left(place), right(place));
            for lane in 0..COLUMNS {
                let product = left.significands[lane] * right.significands[lane];
                let shift = (tops[lane] - left.exponents[lane] - right.exponents[lane]).min(31) as u32;
                let magnitude = ((product.unsigned_abs() << up) >> shift) as i32;
                let sign = product >> 31;
                totals[lane] += (magnitude ^ sign) - sign;
            }
        }
        // Exact in double precision: its exponent and leading bits are those of the sum. Loops of one step each, without branches,
        // so that they are compiled to vectors.
        let mut bits = [0; COLUMNS];
        for lane in 0..COLUMNS {
            bits[lane] = f64::from(totals[lane].abs()).to_bits();
        }
        let (mut numbers, mut fractions) = ([0i32; COLUMNS], [0i32; COLUMNS]);
        for lane in 0..COLUMNS {
            numbers[lane] = (bits[lane] >> 52) as i32;
            fractions[lane] = (bits[lane] >> 29) as i32;
        }
        let mut irregular = 0;
        for lane in 0..COLUMNS {
            let exponent = numbers[lane] - 1023 + tops[lane] - adder.fraction;
            let (sign, keep) = (totals[lane] >> 31, -i32::from(totals[lane] != 0));
            let magnitude = fractions[lane] & 0x7f_ffff | 0x80_0000;
            significands[lane] = ((magnitude ^ sign) - sign) & keep;
            exponents[lane] = (exponent & keep) | (ZERO_EXPONENT & !keep);
            irregular |= keep & ((exponent + 126) | (127 - exponent));
        }
        are_regular &= irregular >= 0;
        if result == Format::F16 {
            let exponents_of_units = tops.map(|top| top - adder.fraction);
            let Some(halves) = halves(&totals, &exponents_of_units) else { return false };
            for lane in 0..COLUMNS {
                (significands[lane], exponents[lane], _) = single_apart(widened(halves[lane]));
            }
            *sums = halves;
        }
    }
    if result != Format::F16 {
        for lane in 0..COLUMNS {
            let sign = significands[lane] as u32 & 0x8000_0000;
            let fraction = significands[lane].unsigned_abs() & 0x7f_ffff;
            let number = sign | ((exponents[lane] + 127) as u32) << 23 | fraction;
            sums[lane] = if significands[lane] == 0 { 0 } else { number };
        }
    }
    are_regular
}

/// Sums of units of the given powers of two, rounded to halves; `None` where one is too large.
#[inline(always)]
fn halves(totals: &[i32; COLUMNS], exponents: &[i32; COLUMNS]) -> Option<[u32; COLUMNS]> {
    let mut halves = [0; COLUMNS];
    let mut are_normal = true;
    for lane in 0..COLUMNS {
        // To 11 bits in double precision, in which the sums are exact.
        let bits = f64::from(totals[lane].abs()).to_bits();
        let rounded = (bits + ((1 << 41) - 1) + ((bits >> 42) & 1)) >> 42;
        let exponent = (rounded >> 10) as i32 - 1023 + exponents[lane];
        let is_zero = totals[lane] == 0;
        are_normal &= is_zero || (-14..=15).contains(&exponent);
        let sign = totals[lane] as u32 >> 16 & 0x8000;
        let half = sign | (((exponent + 15) as u32) << 10) | (rounded as u32 & 0x3ff);
        halves[lane] = if is_zero { 0 } else { half };
    }
    if are_normal {
        return Some(halves);
    }
    for lane in 0..COLUMNS {
        let (negative, magnitude) = (totals[lane] < 0, u64::from(totals[lane].unsigned_abs()));
        let exact = Exact { negative, magnitude, exponent: exponents[lane] };
        match Format::F16.round(exact, Rounding::Nearest) {
            Rounded::Bits(bits) => halves[lane] = bits as u32,
            Rounded::Overflow => return None,
        }
    }
    Some(halves)
}

/// Significand and exponent of single precision, and whether it is zero or a normal number.
#[inline(always)]
fn single_apart(bits: u32) -> (i32, i32, bool) {
    let exponent = (bits >> 23) as i32 & 0xff;
    let magnitude = (bits & 0x7f_ffff | 0x80_0000) as i32;
    let is_zero = bits << 1 == 0;
    let significand = match () {
        () if is_zero => 0,
        () if bits >> 31 != 0 => -magnitude,
        () => magnitude,
    };
    (significand, if is_zero { ZERO_EXPONENT } else { exponent - 127 }, is_zero || (1..255).contains(&exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways of adding agree on numbers of all magnitudes.
    #[test]
    fn sums_side_by_side_are_sums_one_by_one() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        };
        let mut regular = 0;
        for round in 0..400 {
            let element = [Element::F16, Element::Bf16, Element::Tf32][round % 3];
            let generation = [Generation::Volta, Generation::Turing, Generation::Ampere][round / 3 % 3];
            let adder = Adder::new(generation, element);
            let [m, n, k] = [8, 16, 16];
            // Exponents near each other, so that much is lost and cancelled but seldom all.
            let mut number = |center: u32, fraction: u32, spread: u32| {
                let bits = random();
                let exponent = center + random() % spread;
                let is_zero = random() % 9 == 0;
                if is_zero {
                    bits & 1 << 31
                } else {
                    (bits & 0x8000_0000) | exponent << fraction | bits & ((1 << fraction) - 1)
                }
            };
            let (center, fraction, spread) = if element == Element::F16 { (5, 10, 20) } else { (110, 23, 20) };
            let half = |bits: u32| match element {
                Element::F16 => (bits >> 16 & 0x8000) | bits & 0x7fff,
                Element::Bf16 => bits >> 16,
                _ => bits,
            };
            let a: Vec<u32> = (0..m * k).map(|_| half(number(center, fraction, spread))).collect();
            let b: Vec<u32> = (0..k * n).map(|_| half(number(center, fraction, spread))).collect();
            let c: Vec<u32> = (0..m * n).map(|_| number(115, 23, 24)).collect();
            for result in [Format::F32, Format::F16] {
                let mut sums = c.clone();
                if !multiply_all(adder, element, [m, n, k], &a, &b, &mut sums, result) {
                    continue;
                }
                regular += 1;
                for row in 0..m {
                    for column in 0..n {
                        let factors = |bits: &mut dyn Iterator<Item = u32>| -> Vec<Factor> {
                            bits.map(|bits| Factor::new(element, bits)).collect()
                        };
                        let left = factors(&mut a[row * k..][..k].iter().copied());
                        let right = factors(&mut (0..k).map(|place| b[place * n + column]));
                        let fractions = 2 * format_of(element, 0).0.fraction;
                        let one = multiply_add(adder, &left, &right, fractions, c[row * n + column], result);
                        assert_eq!(sums[row * n + column], one, "{element:?} {generation:?} {result:?}");
                    }
                }
            }
        }
        assert!(regular > 400, "the fast way is taken: {regular}");
    }
}
