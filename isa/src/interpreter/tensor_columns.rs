//! The sums of tensor cores for sixteen columns beside each other, in single precision: what [`multiply_add`](super::tensor_sum::multiply_add)
//! gives, fast where all is regular.
//!
//! Products of two factors of at most 11 bits are exact in single precision. Scaled by a power of two, a product is cut off toward zero at
//! the unit of the sum by its conversion to an integer. Sums of blocks of 16 with 25 bits below the largest exponent just fit 32 bits: the
//! accumulator is added in double precision, which is exact, too.
//!
//! `mma` has sixteen rows of A in the place of columns; see `matrix_tiles`.

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

/// Factors, taken apart: `LINES` lines of `COUNT` of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factors<const COUNT: usize, const LINES: usize> {
    values: [[f32; COUNT]; LINES],
    /// The exponents of their leading bits, those of subnormals as large as the format's smallest.
    exponents: [[i16; COUNT]; LINES],
}

impl<const COUNT: usize, const LINES: usize> Factors<COUNT, LINES> {
    /// None of them is anything but zero.
    pub const ZERO: Self = Factors { values: [[0.0; COUNT]; LINES], exponents: [[ZERO; COUNT]; LINES] };

    /// Takes elements apart. Those of tf32 have their format's bits from bit 13 on: `shift`.
    #[inline(always)]
    pub fn fill(&mut self, format: Format, shift: u32, bits: &[[u32; COUNT]; LINES]) {
        let (fraction, sign) = (format.fraction, 1u32 << (format.fraction + format.exponent));
        let (infinity, bias) = (format.infinity() as u32, format.bias());
        // Numbers of the format are, but for a factor, numbers of single precision with the same bits; subnormals, too.
        let unit = f32::from_bits(((127 - bias + 127) as u32) << 23);
        let to = self.values.as_flattened_mut().iter_mut().zip(self.exponents.as_flattened_mut());
        for (bits, (value, exponent)) in bits.as_flattened().iter().zip(to) {
            let element = bits >> shift;
            let magnitude = element & (sign - 1);
            let absolute = f32::from_bits(magnitude << (23 - fraction)) * unit;
            let negative = (element & sign) << (31 - fraction - format.exponent);
            *value = f32::from_bits(absolute.to_bits() | negative);
            let number = ((magnitude >> fraction).max(1) as i32 - bias) as i16;
            let number = if magnitude == 0 { ZERO } else { number };
            *exponent = if magnitude >= infinity { NOT_FINITE } else { number };
        }
    }
}

/// A block of products: the factors of rows, and those of sixteen columns for each place in a row.
pub(crate) struct Products<'a, const DEPTH: usize, const ROWS: usize> {
    pub adder: Adder,
    pub rows: &'a Factors<DEPTH, ROWS>,
    pub columns: &'a Factors<WIDTH, DEPTH>,
    /// The format of the results, one of `.f32` and `.f16`.
    pub result: Format,
}

impl<const DEPTH: usize, const ROWS: usize> Products<'_, DEPTH, ROWS> {
    /// Adds the products of a row to the sums of its sixteen columns, which are `.f32`. False, and the sums as they were, where something is
    /// not finite, too large or too small for this way. Version 1 only for processors with vector features.
    #[inline(always)]
    pub fn add<const VERSION: usize>(&self, row: usize, sums: &mut [u32; WIDTH]) -> bool {
        debug_assert!(DEPTH <= self.adder.block);
        #[cfg(target_arch = "x86_64")]
        if VERSION == 1 {
            // SAFETY: version 1 is only reached where the processor's features have been checked.
            return unsafe { vectors::add(self, row, sums) };
        }
        self.add_portably(row, sums)
    }

    #[inline(always)]
    fn add_portably(&self, row: usize, sums: &mut [u32; WIDTH]) -> bool {
        let Products { adder, rows, columns, result } = self;
        let mut tops = exponents_of(sums);
        for (exponent, of_columns) in rows.exponents[row].iter().zip(&columns.exponents) {
            for (top, of_column) in tops.iter_mut().zip(of_columns) {
                *top = (*top).max(exponent.wrapping_add(*of_column));
            }
        }
        let is_regular = |top: &i16| *top <= LARGEST_OF_ZERO || REGULAR.contains(top);
        if !tops.iter().all(is_regular) {
            return false;
        }
        let exponents = tops.map(|top| i32::from(top.max(*REGULAR.start())));
        let scales = exponents.map(|exponent| f32::from_bits(((adder.fraction + 127 - exponent) as u32) << 23));
        let mut totals = [0i32; WIDTH];
        for (left, right) in rows.values[row].iter().zip(&columns.values) {
            for column in 0..WIDTH {
                totals[column] += cut_off(left * right[column] * scales[column]);
            }
        }
        let exact = std::array::from_fn(|column| {
            let start = cut_off(f32::from_bits(sums[column]) * scales[column]);
            let unit = f64::from_bits(((exponents[column] + 1023 - adder.fraction) as u64) << 52);
            (f64::from(totals[column]) + f64::from(start)) * unit
        });
        if *result == Format::F16 {
            return to_halves(&exact, sums);
        }
        *sums = exact.map(|sum| (f64::from_bits(sum.to_bits() & !NOT_OF_SINGLES) as f32).to_bits());
        true
    }
}

/// The products of a row of at most 64 integers and of sixteen columns of them. All sums of products are integers below 2^24, which single
/// precision has exactly. Version 1 only for processors with vector features.
#[inline(always)]
pub(crate) fn dot_products<const VERSION: usize, const DEPTH: usize>(
    row: &[f32; DEPTH],
    columns: &[[f32; WIDTH]; DEPTH],
) -> [i32; WIDTH] {
    #[cfg(target_arch = "x86_64")]
    if VERSION == 1 {
        // SAFETY: version 1 is only reached where the processor's features have been checked.
        return unsafe { vectors::dot_products(row, columns) };
    }
    let mut totals = [0.0f32; WIDTH];
    for (left, right) in row.iter().zip(columns) {
        for (total, right) in totals.iter_mut().zip(right) {
            *total += left * right;
        }
    }
    totals.map(|total| total as i32)
}

/// The bits of double precision that single precision does not have.
const NOT_OF_SINGLES: u64 = 0x1fff_ffff;

/// The exponents of accumulators in single precision.
fn exponents_of(sums: &[u32; WIDTH]) -> [i16; WIDTH] {
    sums.map(|sum| match (sum >> 23 & 0xff) as i16 {
        0xff => NOT_FINITE,
        _ if sum << 1 == 0 => ZERO + ZERO,
        exponent => exponent.max(1) - 127,
    })
}

/// The same with vectors of 256 bits.
#[cfg(target_arch = "x86_64")]
mod vectors {
    use super::{Format, LARGEST_OF_ZERO, NOT_FINITE, NOT_OF_SINGLES, Products, REGULAR, WIDTH, ZERO, to_halves};
    use std::arch::x86_64::*;

    /// Exponents of eight accumulators, 32 bits each.
    #[target_feature(enable = "avx2")]
    fn exponents_of(sums: __m256i) -> __m256i {
        let exponents = _mm256_and_si256(_mm256_srli_epi32(sums, 23), _mm256_set1_epi32(0xff));
        let numbers = _mm256_sub_epi32(_mm256_max_epi32(exponents, _mm256_set1_epi32(1)), _mm256_set1_epi32(127));
        let is_zero = _mm256_cmpeq_epi32(_mm256_slli_epi32(sums, 1), _mm256_setzero_si256());
        let numbers = _mm256_blendv_epi8(numbers, _mm256_set1_epi32((ZERO + ZERO).into()), is_zero);
        let is_not_finite = _mm256_cmpeq_epi32(exponents, _mm256_set1_epi32(0xff));
        _mm256_blendv_epi8(numbers, _mm256_set1_epi32(NOT_FINITE.into()), is_not_finite)
    }

    /// Four exact sums: those of the products, in units of a power of two, and the accumulators.
    #[target_feature(enable = "avx2")]
    fn exact(totals: __m128i, starts: __m128i, units: __m128i) -> __m256d {
        let units = _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_cvtepi32_epi64(units), 52));
        _mm256_mul_pd(_mm256_add_pd(_mm256_cvtepi32_pd(totals), _mm256_cvtepi32_pd(starts)), units)
    }

    /// Four of them, cut off to single precision.
    #[target_feature(enable = "avx2")]
    fn singles(exact: __m256d) -> __m128 {
        let kept = _mm256_castsi256_pd(_mm256_set1_epi64x(!NOT_OF_SINGLES as i64));
        _mm256_cvtpd_ps(_mm256_and_pd(exact, kept))
    }

    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
    pub fn dot_products<const DEPTH: usize>(row: &[f32; DEPTH], columns: &[[f32; WIDTH]; DEPTH]) -> [i32; WIDTH] {
        let (mut first, mut second) = (_mm256_setzero_ps(), _mm256_setzero_ps());
        for (left, right) in row.iter().zip(columns) {
            let left = _mm256_set1_ps(*left);
            let right: [__m256; 2] = bytemuck::cast(*right);
            first = _mm256_fmadd_ps(left, right[0], first);
            second = _mm256_fmadd_ps(left, right[1], second);
        }
        bytemuck::cast([_mm256_cvttps_epi32(first), _mm256_cvttps_epi32(second)])
    }

    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
    pub fn add<const DEPTH: usize, const ROWS: usize>(
        products: &Products<DEPTH, ROWS>,
        row: usize,
        sums: &mut [u32; WIDTH],
    ) -> bool {
        let Products { adder, rows, columns, result } = products;
        let starts: [__m256i; 2] = bytemuck::cast(*sums);
        // Packed by 128 bits: the middle quarters change places.
        let packed = _mm256_packs_epi32(exponents_of(starts[0]), exponents_of(starts[1]));
        let mut tops = _mm256_permute4x64_epi64(packed, 0b11_01_10_00);
        for (exponent, of_columns) in rows.exponents[row].iter().zip(&columns.exponents) {
            let sum = _mm256_add_epi16(_mm256_set1_epi16(*exponent), bytemuck::cast(*of_columns));
            tops = _mm256_max_epi16(tops, sum);
        }
        let (least, most) = (_mm256_set1_epi16(*REGULAR.start()), _mm256_set1_epi16(*REGULAR.end()));
        let is_zero = _mm256_cmpgt_epi16(_mm256_set1_epi16(LARGEST_OF_ZERO + 1), tops);
        let is_small = _mm256_andnot_si256(is_zero, _mm256_cmpgt_epi16(least, tops));
        if _mm256_movemask_epi8(_mm256_or_si256(is_small, _mm256_cmpgt_epi16(tops, most))) != 0 {
            return false;
        }
        let tops = _mm256_max_epi16(tops, least);
        let exponents = [
            _mm256_cvtepi16_epi32(_mm256_castsi256_si128(tops)),
            _mm256_cvtepi16_epi32(_mm256_extracti128_si256(tops, 1)),
        ];
        let bias = _mm256_set1_epi32(adder.fraction + 127);
        let [first_scale, second_scale] = [exponents[0], exponents[1]]
            .map(|exponents| _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_sub_epi32(bias, exponents), 23)));
        let (mut first, mut second) = (_mm256_setzero_si256(), _mm256_setzero_si256());
        for (left, right) in rows.values[row].iter().zip(&columns.values) {
            let left = _mm256_set1_ps(*left);
            let right: [__m256; 2] = bytemuck::cast(*right);
            let product = _mm256_mul_ps(_mm256_mul_ps(left, right[0]), first_scale);
            first = _mm256_add_epi32(first, _mm256_cvttps_epi32(product));
            let product = _mm256_mul_ps(_mm256_mul_ps(left, right[1]), second_scale);
            second = _mm256_add_epi32(second, _mm256_cvttps_epi32(product));
        }
        let unit = _mm256_set1_epi32(1023 - adder.fraction);
        let quarters = [(first, starts[0], first_scale, exponents[0]), (second, starts[1], second_scale, exponents[1])]
            .map(|(totals, starts, scale, exponents)| {
                let starts = _mm256_cvttps_epi32(_mm256_mul_ps(_mm256_castsi256_ps(starts), scale));
                let units = _mm256_add_epi32(exponents, unit);
                let low = _mm256_castsi256_si128;
                let high = |numbers| _mm256_extracti128_si256(numbers, 1);
                [exact(low(totals), low(starts), low(units)), exact(high(totals), high(starts), high(units))]
            });
        if *result == Format::F16 {
            return to_halves(&bytemuck::cast(quarters), sums);
        }
        *sums = bytemuck::cast(quarters.map(|quarters| quarters.map(|quarter| singles(quarter))));
        true
    }
}

/// The integer toward zero from a number that is in reach.
#[inline(always)]
fn cut_off(number: f32) -> i32 {
    debug_assert!(number.abs() < 134_217_728.0);
    // SAFETY: `add_portably` has seen that all is finite and that no exponent is above that of the sum, of which the scale makes 25 or less:
    // the magnitude is below 2^27.
    unsafe { number.to_int_unchecked() }
}

/// Rounds exact sums to the nearest halves; false, and nothing changed, where one is too large.
#[inline(always)]
fn to_halves(exact: &[f64; WIDTH], sums: &mut [u32; WIDTH]) -> bool {
    /// Subnormal halves are multiples of 2^-24, to which the addition of this number rounds, its last bits being those of the half.
    const OF_UNITS: f64 = 402_653_184.0;
    let bits: [u64; WIDTH] = bytemuck::cast(*exact);
    let (mut halves, mut subnormals) = ([0u32; WIDTH], [0u64; WIDTH]);
    let mut are_regular = true;
    for column in 0..WIDTH {
        subnormals[column] = (exact[column].abs() + OF_UNITS).to_bits();
    }
    for column in 0..WIDTH {
        let magnitude = bits[column] & (u64::MAX >> 1);
        let rounded = ((magnitude + ((1 << 41) - 1) + (magnitude >> 42 & 1)) >> 42) as u32;
        // The bias of double precision, 1023, becomes that of halves, 15.
        let normal = rounded.wrapping_sub((1023 - 15) << 10);
        are_regular &= rounded < (1023 + 16) << 10;
        let is_normal = rounded >= (1023 - 14) << 10;
        let half = if is_normal { normal } else { subnormals[column] as u32 & 0xfff };
        halves[column] = half | (bits[column] >> 48) as u32 & 0x8000;
    }
    if are_regular {
        *sums = halves;
    }
    are_regular
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpreter::bodies::has_vector_features;
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

    /// The sums of one row, if they are regular: by all versions alike.
    fn add<const DEPTH: usize>(products: &Products<DEPTH, 1>, start: [u32; WIDTH]) -> Option<[u32; WIDTH]> {
        let mut sums = start;
        let is_regular = products.add::<0>(0, &mut sums);
        assert!(is_regular || sums == start);
        if has_vector_features() {
            let mut others = start;
            assert_eq!((products.add::<1>(0, &mut others), others), (is_regular, sums));
        }
        is_regular.then_some(sums)
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
        let (mut rows, mut columns) = (Factors::ZERO, Factors::ZERO);
        rows.fill(format, shift, &[left]);
        columns.fill(format, shift, &right);
        let Some(sums) = add(&Products { adder, rows: &rows, columns: &columns, result }, start) else { return 0 };
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
        let (mut rows, mut columns) = (Factors::<16, 1>::ZERO, Factors::ZERO);
        rows.fill(Format::F16, 0, &[[0x3fff; 16]]);
        columns.fill(Format::F16, 0, &[[0x3fff; WIDTH]; 16]);
        let products = Products { adder, rows: &rows, columns: &columns, result: Format::F32 };
        let factor = [Factor::new(Element::F16, 0x3fff); 16];
        let expected = multiply_add(adder, &factor, &factor, 20, 0x407f_ffff, Format::F32);
        assert_eq!(add(&products, [0x407f_ffff; WIDTH]), Some([expected; WIDTH]));
    }
}
