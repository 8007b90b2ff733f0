//! The sums of tensor cores for sixteen columns beside each other, in single precision: what [`multiply_add`](super::tensor_sum::multiply_add)
//! gives, fast where all is regular.
//!
//! Products of two factors of at most 11 bits are exact in single precision. Scaled by a power of two, a product is cut off toward zero at
//! the unit of the sum by its conversion to an integer. Sums of blocks of 16 with 25 bits below the largest exponent just fit 32 bits: the
//! accumulator is added in double precision, which is exact, too. Loops have one step each, without branches, so that they are compiled to
//! vectors.

use super::floating_point::number_format::Format;
use crate::interpreter::tensor_sum::Adder;

/// Columns whose sums are computed at once.
pub(crate) const WIDTH: usize = 16;

/// The exponent of zeros. A sum with any other exponent, or with its own, tells that a factor is zero.
const ZERO: i16 = -4000;
/// The exponent of infinities and not-a-numbers. A sum with any other exponent tells that a factor is not finite.
const NOT_FINITE: i16 = 12_000;
/// Sums of exponents up to this one are of products with a zero.
const LARGEST_OF_ZERO: i16 = -3000;
/// Exponents of sums that this way can do: units, scales, products and results are normal numbers of single precision then, or so small
/// that they are cut off.
const REGULAR: std::ops::RangeInclusive<i16> = -100..=120;

/// Factors beside each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factors<const COUNT: usize> {
    values: [f32; COUNT],
    /// The exponents of their leading bits, those of subnormals as large as the format's smallest.
    exponents: [i16; COUNT],
}

impl<const COUNT: usize> Factors<COUNT> {
    /// None of them is anything but zero.
    pub const ZERO: Factors<COUNT> = Factors { values: [0.0; COUNT], exponents: [ZERO; COUNT] };

    /// Takes elements apart. Those of tf32 have their format's bits from bit 13 on: `shift`.
    #[inline(always)]
    pub fn fill(&mut self, format: Format, shift: u32, bits: &[u32; COUNT]) {
        let (fraction, sign) = (format.fraction, 1u32 << (format.fraction + format.exponent));
        let (infinity, bias) = (format.infinity() as u32, format.bias());
        // Numbers of the format are, but for a factor, numbers of single precision with the same bits; subnormals, too.
        let unit = f32::from_bits(((127 - bias + 127) as u32) << 23);
        for place in 0..COUNT {
            let element = bits[place] >> shift;
            let magnitude = element & (sign - 1);
            let value = f32::from_bits(magnitude << (23 - fraction)) * unit;
            let negative = (element & sign) << (31 - fraction - format.exponent);
            self.values[place] = f32::from_bits(value.to_bits() | negative);
            let exponent = ((magnitude >> fraction).max(1) as i32 - bias) as i16;
            let exponent = if magnitude == 0 { ZERO } else { exponent };
            self.exponents[place] = if magnitude >= infinity { NOT_FINITE } else { exponent };
        }
    }
}

/// The exponents of accumulators in single precision.
#[inline(always)]
fn exponents_of(sums: &[u32; WIDTH]) -> [i16; WIDTH] {
    let mut exponents = [0; WIDTH];
    for column in 0..WIDTH {
        let exponent = (sums[column] >> 23 & 0xff) as i16;
        let number = if sums[column] << 1 == 0 { ZERO + ZERO } else { exponent.max(1) - 127 };
        exponents[column] = if exponent == 0xff { NOT_FINITE } else { number };
    }
    exponents
}

/// Adds a block of products to each of sixteen sums: the factors of one row, and those of the columns for each of them. The sums are
/// `.f32`, the results of the format `result`, one of `.f32` and `.f16`. False, and the sums as they were, where something is not finite,
/// too large or too small for this way.
#[inline(always)]
pub(crate) fn add_block<const DEPTH: usize>(
    adder: Adder,
    row: &Factors<DEPTH>,
    columns: &[Factors<WIDTH>; DEPTH],
    sums: &mut [u32; WIDTH],
    result: Format,
) -> bool {
    debug_assert!(DEPTH <= adder.block);
    let mut tops = exponents_of(sums);
    for place in 0..DEPTH {
        let exponent = row.exponents[place];
        for column in 0..WIDTH {
            tops[column] = tops[column].max(exponent.wrapping_add(columns[place].exponents[column]));
        }
    }
    let mut is_irregular = false;
    for top in &mut tops {
        let is_zero = *top <= LARGEST_OF_ZERO;
        is_irregular |= !is_zero & ((*top < *REGULAR.start()) | (*top > *REGULAR.end()));
        *top = (*top).max(*REGULAR.start());
    }
    if is_irregular {
        return false;
    }
    let mut scales = [0.0f32; WIDTH];
    for column in 0..WIDTH {
        scales[column] = f32::from_bits(((adder.fraction - i32::from(tops[column]) + 127) as u32) << 23);
    }
    let mut totals = [0i32; WIDTH];
    for place in 0..DEPTH {
        let left = row.values[place];
        for column in 0..WIDTH {
            let product = left * columns[place].values[column];
            totals[column] = totals[column].wrapping_add(cut_off(product * scales[column]));
        }
    }
    let mut exact = [0.0f64; WIDTH];
    for column in 0..WIDTH {
        let start = cut_off(f32::from_bits(sums[column]) * scales[column]);
        let unit = f64::from_bits(((i32::from(tops[column]) - adder.fraction + 1023) as u64) << 52);
        exact[column] = (f64::from(totals[column]) + f64::from(start)) * unit;
    }
    if result == Format::F16 {
        return to_halves(&exact, sums);
    }
    for column in 0..WIDTH {
        // The bits that single precision does not have are cut off.
        let cut = f64::from_bits(exact[column].to_bits() & !0x1fff_ffff);
        sums[column] = (cut as f32).to_bits();
    }
    true
}

/// The integer toward zero from a number that is in reach.
#[inline(always)]
fn cut_off(number: f32) -> i32 {
    debug_assert!(number.abs() < 134_217_728.0);
    // SAFETY: `add_block` has seen that all is finite and that no exponent is above that of the sum, of which the scale makes 25 or less:
    // the magnitude is below 2^27.
    unsafe { number.to_int_unchecked() }
}

/// Rounds exact sums to the nearest halves, which are normal numbers or zero; false, and nothing changed, where one is not.
#[inline(always)]
fn to_halves(exact: &[f64; WIDTH], sums: &mut [u32; WIDTH]) -> bool {
    let mut halves = [0; WIDTH];
    let mut are_regular = true;
    for column in 0..WIDTH {
        let bits = exact[column].to_bits();
        let magnitude = bits & (u64::MAX >> 1);
        let rounded = (magnitude + ((1 << 41) - 1) + (magnitude >> 42 & 1)) >> 42;
        let exponent = (rounded >> 10) as i32 - 1023;
        let half = (bits >> 48) as u32 & 0x8000 | ((exponent + 15) as u32) << 10 | (rounded as u32 & 0x3ff);
        are_regular &= (magnitude == 0) | ((exponent >= -14) & (exponent <= 15));
        halves[column] = if magnitude == 0 { 0 } else { half };
    }
    if are_regular {
        *sums = halves;
    }
    are_regular
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpreter::tensor_sum::{Factor, format_of, multiply_add};
    use crate::matrix::{Element, Generation};

    /// Numbers without a pattern.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 32) as u32
        }

        /// An element whose exponent is one of `spread` from the middle of its format's on; some are zero, few any bits.
        fn element(&mut self, element: Element, spread: u32) -> u32 {
            let (format, shift) = (format_of(element, 0).0, if element == Element::Tf32 { 13 } else { 0 });
            let bits = self.next();
            let exponent = (format.bias() as u32 + self.next() % spread).saturating_sub(spread / 2);
            let all = u32::MAX >> (31 - format.fraction - format.exponent);
            let number = match self.next() % 64 {
                0 => bits & all,
                1..8 => bits & (1 << (format.fraction + format.exponent)),
                _ => {
                    let sign = bits >> 31 << (format.fraction + format.exponent);
                    sign | exponent << format.fraction | bits & ((1 << format.fraction) - 1)
                }
            };
            number << shift
        }
    }

    fn agree<const DEPTH: usize>(random: &mut Random, element: Element, spread: u32, result: Format) -> u32 {
        let adder = Adder::new(Generation::Hopper, element);
        let (format, shift) = (format_of(element, 0).0, if element == Element::Tf32 { 13 } else { 0 });
        let left: [u32; DEPTH] = std::array::from_fn(|_| random.element(element, spread));
        let right: [[u32; WIDTH]; DEPTH] =
            std::array::from_fn(|_| std::array::from_fn(|_| random.element(element, spread)));
        let start: [u32; WIDTH] = std::array::from_fn(|_| match random.next() % 8 {
            0 => 0,
            _ => random.element(Element::F32, 2 * spread),
        });
        let (mut row, mut columns) = (Factors::ZERO, [Factors::ZERO; DEPTH]);
        row.fill(format, shift, &left);
        for (columns, right) in columns.iter_mut().zip(&right) {
            columns.fill(format, shift, right);
        }
        let mut sums = start;
        if !add_block(adder, &row, &columns, &mut sums, result) {
            assert_eq!(sums, start);
            return 0;
        }
        let left = left.map(|bits| Factor::new(element, bits));
        for column in 0..WIDTH {
            let right: Vec<Factor> = right.iter().map(|bits| Factor::new(element, bits[column])).collect();
            let expected = multiply_add(adder, &left, &right, 2 * format.fraction, start[column], result);
            assert_eq!(sums[column], expected, "{element:?} {result:?} spread {spread} column {column}");
        }
        1
    }

    #[test]
    fn sums_beside_each_other_are_sums_one_by_one() {
        let mut random = Random(7);
        let mut fast = 0;
        let rounds = 3000;
        for round in 0..rounds {
            let spread = [2, 6, 12, 24, 60][round % 5];
            let result = if round % 2 == 0 { Format::F32 } else { Format::F16 };
            fast += match round % 4 {
                0 => agree::<16>(&mut random, [Element::F16, Element::Bf16][round / 4 % 2], spread.min(28), result),
                1 => agree::<8>(&mut random, Element::Tf32, spread, Format::F32),
                2 => agree::<32>(&mut random, Element::E4m3, spread.min(12), result),
                _ => agree::<32>(&mut random, Element::E5m2, spread.min(24), result),
            };
        }
        assert!(fast > rounds as u32 / 4, "the fast way is taken: {fast} of {rounds}");
    }

    /// The largest products of halves, whose sum is the largest that 32 bits have to hold.
    #[test]
    fn the_largest_sums_fit() {
        let adder = Adder::new(Generation::Hopper, Element::F16);
        let (mut row, mut columns) = (Factors::<16>::ZERO, [Factors::ZERO; 16]);
        row.fill(Format::F16, 0, &[0x3fff; 16]);
        columns.iter_mut().for_each(|columns| columns.fill(Format::F16, 0, &[0x3fff; WIDTH]));
        let mut sums = [0x407f_ffff; WIDTH];
        assert!(add_block(adder, &row, &columns, &mut sums, Format::F32));
        let factor = [Factor::new(Element::F16, 0x3fff); 16];
        assert_eq!(sums, [multiply_add(adder, &factor, &factor, 20, 0x407f_ffff, Format::F32); WIDTH]);
    }
}
