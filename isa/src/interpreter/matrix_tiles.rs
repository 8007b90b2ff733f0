//! Products of a warp's matrices, sixteen rows beside each other: the sums of [`tensor_columns`](super::tensor_columns), whose columns are
//! rows of A here, and whose rows are columns of B. Products commute, so that the sums are the same.
//!
//! Of a product of m16n8, the operands come from registers as they lie there; others come element by element.

use super::floating_point::number_format::Format;
use super::narrowing::{half_of_e4m3, half_of_e5m2};
use super::tensor_columns::{Factors, Products, WIDTH, dot_products};
use super::tensor_sum::{Adder, Factor, format_of, multiply_add, unread_bits, widened};
use crate::lanes::LANES;
use crate::matrix::{Element, Family, MatrixForm};

/// Columns of a tile; it has [`WIDTH`] rows.
pub(super) const COLUMNS: usize = 8;
/// Most terms of a sum of floats: a sparse `m16n8k64`.
const MOST_TERMS: usize = 64;
/// Terms that are added at once where they are integers.
const INTEGERS: usize = 32;

/// The accumulator of a tile, column by column: `.f32` or `.s32`, sums in `.f16` in the lower half.
pub(super) type Tile = [[u32; WIDTH]; COLUMNS];
/// A register of a warp.
type Words = [u32; LANES];

/// The elements of A, `EACH` to a word: sixteen rows for each term.
type Rows<const EACH: usize> = [[[u32; WIDTH]; EACH]; 8];
/// The elements of B, `EACH` to a word: the terms of each column.
type Columns<const EACH: usize> = [[[u32; EACH]; 8]; COLUMNS];
/// A version of [`Sums::add`].
type Add = fn(&Sums, &[[u32; WIDTH]], [&[u32]; COLUMNS], &mut Tile);

/// How floats are multiplied and added up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    /// Those of A and B.
    pub elements: [Element; 2],
    pub adder: Adder,
    /// What sums are, one of `.f32` and `.f16`.
    pub result: Format,
}

/// Where the elements of a matrix lie: lines beside each other, and the places in a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strides {
    pub line: usize,
    pub place: usize,
}

impl Sums {
    /// Adds the products to the accumulators, which are `.f32` before. `left` has the factors of sixteen rows for each term, `right` those of
    /// each column. Their number is a power of two and at least four. Version 1 only for processors with vector features.
    #[inline(always)]
    fn add<const VERSION: usize>(&self, left: &[[u32; WIDTH]], right: [&[u32]; COLUMNS], sums: &mut Tile) {
        #[cfg(target_arch = "x86_64")]
        if VERSION == 1 {
            // SAFETY: version 1 is only reached where the processor's features have been checked.
            return unsafe { self.add_with_features(left, right, sums) };
        }
        self.add_portably(left, right, sums);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
    fn add_with_features(&self, left: &[[u32; WIDTH]], right: [&[u32]; COLUMNS], sums: &mut Tile) {
        self.add_version::<1>(left, right, sums);
    }

    #[inline(never)]
    fn add_portably(&self, left: &[[u32; WIDTH]], right: [&[u32]; COLUMNS], sums: &mut Tile) {
        self.add_version::<0>(left, right, sums);
    }

    #[inline(always)]
    fn add_version<const VERSION: usize>(&self, left: &[[u32; WIDTH]], right: [&[u32]; COLUMNS], sums: &mut Tile) {
        match self.adder.block.min(left.len()) {
            32 => self.add_blocks::<VERSION, 32>(left, right, sums),
            16 => self.add_blocks::<VERSION, 16>(left, right, sums),
            8 => self.add_blocks::<VERSION, 8>(left, right, sums),
            4 => self.add_blocks::<VERSION, 4>(left, right, sums),
            _ => {
                for (sums, right) in sums.iter_mut().zip(right) {
                    self.one_by_one(left, right, sums);
                }
            }
        }
    }

    #[inline(always)]
    fn add_blocks<const VERSION: usize, const DEPTH: usize>(
        &self,
        left: &[[u32; WIDTH]],
        right: [&[u32]; COLUMNS],
        sums: &mut Tile,
    ) {
        let starts = *sums;
        let mut are_regular = [true; COLUMNS];
        let [format, other] = self.elements.map(|element| format_of(element, 0).0);
        let [unread, other_unread] = self.elements.map(unread_bits);
        let mut rows = Factors::<WIDTH, DEPTH>::ZERO;
        let mut columns = Factors::<DEPTH, COLUMNS>::ZERO;
        for (number, block) in left.as_chunks::<DEPTH>().0.iter().enumerate() {
            let mut bits = [[0; DEPTH]; COLUMNS];
            for (bits, right) in bits.iter_mut().zip(right) {
                bits.copy_from_slice(&right[number * DEPTH..][..DEPTH]);
            }
            rows.fill(format, unread, block);
            columns.fill(other, other_unread, &bits);
            let products = Products { adder: self.adder, rows: &columns, columns: &rows, result: self.result };
            for (column, (sums, is_regular)) in sums.iter_mut().zip(&mut are_regular).enumerate() {
                if number > 0 && self.result == Format::F16 {
                    *sums = sums.map(widened);
                }
                *is_regular = *is_regular && products.add::<VERSION>(column, sums);
            }
        }
        for (column, sums) in sums.iter_mut().enumerate() {
            if !are_regular[column] {
                *sums = starts[column];
                self.one_by_one(left, right[column], sums);
            }
        }
    }

    /// Sums of a column that there is no fast way for.
    #[inline(never)]
    fn one_by_one(&self, left: &[[u32; WIDTH]], right: &[u32], sums: &mut [u32; WIDTH]) {
        let [a, b] = self.elements;
        let fractions = format_of(a, 0).0.fraction + format_of(b, 0).0.fraction;
        let factor = |element: Element, bits: u32| Factor::new(element, bits & (u32::MAX >> (32 - element.bits())));
        let (mut lefts, mut rights) = ([Factor::default(); MOST_TERMS], [Factor::default(); MOST_TERMS]);
        for (to, bits) in rights.iter_mut().zip(right) {
            *to = factor(b, *bits);
        }
        for (row, sum) in sums.iter_mut().enumerate() {
            for (to, bits) in lefts.iter_mut().zip(left) {
                *to = factor(a, bits[row]);
            }
            let (left, right) = (&lefts[..left.len()], &rights[..left.len()]);
            *sum = multiply_add(self.adder, left, right, fractions, *sum, self.result);
        }
    }

    /// The product of matrices of m by k and k by n elements, added to the accumulator. Lines are rows of A and of the accumulator, and
    /// columns of B. Where there are few rows, the matrices change their roles.
    #[inline(always)]
    pub fn add_matrices<const VERSION: usize>(
        self,
        [m, n, k]: [usize; 3],
        a: (&[u32], Strides),
        b: (&[u32], Strides),
        (sums, strides): (&mut [u32], Strides),
    ) {
        if m < WIDTH && n >= WIDTH {
            let swapped = Sums { elements: [self.elements[1], self.elements[0]], ..self };
            let strides = Strides { line: strides.place, place: strides.line };
            swapped.add_tiles([n, m, k], b, a, (sums, strides), Sums::add::<VERSION>);
        } else {
            self.add_tiles([m, n, k], a, b, (sums, strides), Sums::add::<VERSION>);
        }
    }

    /// The same tile by tile, each of sixteen rows; rows that there are not have zeros.
    #[inline(never)]
    fn add_tiles(
        &self,
        [m, n, k]: [usize; 3],
        (a, strides_of_a): (&[u32], Strides),
        (b, strides_of_b): (&[u32], Strides),
        (sums, strides): (&mut [u32], Strides),
        add: Add,
    ) {
        let mut left = [[0; WIDTH]; MOST_TERMS];
        let mut right = [[0; MOST_TERMS]; COLUMNS];
        let mut tile = [[0; WIDTH]; COLUMNS];
        for first_row in (0..m).step_by(WIDTH) {
            let rows = WIDTH.min(m - first_row);
            for (place, left) in left[..k].iter_mut().enumerate() {
                for (row, left) in left[..rows].iter_mut().enumerate() {
                    *left = a[(first_row + row) * strides_of_a.line + place * strides_of_a.place];
                }
            }
            for first_column in (0..n).step_by(COLUMNS) {
                for (column, right) in right.iter_mut().enumerate() {
                    for (place, right) in right[..k].iter_mut().enumerate() {
                        *right = b[(first_column + column) * strides_of_b.line + place * strides_of_b.place];
                    }
                }
                let place = |row: usize, column: usize| {
                    (first_row + row) * strides.line + (first_column + column) * strides.place
                };
                for (column, tile) in tile.iter_mut().enumerate() {
                    for (row, tile) in tile[..rows].iter_mut().enumerate() {
                        *tile = sums[place(row, column)];
                    }
                }
                add(self, &left[..k], right.each_ref().map(|right| &right[..k]), &mut tile);
                for (column, tile) in tile.iter().enumerate() {
                    for (row, tile) in tile[..rows].iter().enumerate() {
                        sums[place(row, column)] = *tile;
                    }
                }
            }
        }
    }
}

/// Whether operands of a form lie in registers as [`Operands`] has them, and its products are computed here.
pub(super) fn is_tile(form: &MatrixForm) -> bool {
    let is_float = matches!(form.a, Element::F16 | Element::Bf16 | Element::Tf32 | Element::E4m3 | Element::E5m2);
    let is_integer = form.a.is_integer() && form.a != Element::Bits;
    form.family == Family::Mma && [form.m, form.n] == [16, 8] && (is_float || is_integer)
}

/// The registers of A and B of a product of m16n8. The first words of A's pairs of registers have rows 0 to 7 of four words each, the second
/// rows 8 to 15; those of B have four words each of eight columns (PTX ISA, fragments of `mma`).
#[derive(Clone, Copy)]
pub(super) struct Operands {
    pub a: [Words; 4],
    pub b: [Words; 2],
}

impl Operands {
    /// The elements of A for each term and those of B for each column, `EACH` to a word. High bits may be other elements'.
    #[inline(always)]
    fn elements<const VERSION: usize, const EACH: usize>(&self) -> (Rows<EACH>, Columns<EACH>) {
        let (mut left, mut right) = ([[[0; WIDTH]; EACH]; 8], [[[0; EACH]; 8]; COLUMNS]);
        for (pair, left) in self.a.as_chunks::<2>().0.iter().zip(left.as_chunks_mut::<4>().0) {
            let halves = [by_member::<VERSION>(&pair[0]), by_member::<VERSION>(&pair[1])];
            for (member, left) in left.iter_mut().enumerate() {
                for (place, left) in left.iter_mut().enumerate() {
                    let shift = (place * 32 / EACH) as u32;
                    for row in 0..8 {
                        left[row] = halves[0][member][row] >> shift;
                        left[row + 8] = halves[1][member][row] >> shift;
                    }
                }
            }
        }
        for (register, words) in self.b.iter().enumerate() {
            for (words, right) in words.as_chunks::<4>().0.iter().zip(&mut right) {
                for (word, right) in words.iter().zip(&mut right[4 * register..]) {
                    for (place, right) in right.iter_mut().enumerate() {
                        *right = word >> (place * 32 / EACH);
                    }
                }
            }
        }
        (left, right)
    }

    /// The halves of the 8-bit floats in the lower or in the upper halves of the words.
    #[inline(always)]
    pub fn halves_of_bytes(&self, [a, b]: [Element; 2], half: usize) -> Operands {
        let halves = |element: Element, word: u32| {
            let bytes = word >> (16 * half);
            half_of_byte(element, bytes & 0xff) | half_of_byte(element, bytes >> 8 & 0xff) << 16
        };
        let mut operands = *self;
        for word in operands.a.as_flattened_mut() {
            *word = halves(a, *word);
        }
        for word in operands.b.as_flattened_mut() {
            *word = halves(b, *word);
        }
        operands
    }

    /// Adds the product to sums of floats.
    #[inline(always)]
    pub fn add_floats<const VERSION: usize>(&self, terms: usize, sums: Sums, tile: &mut Tile) {
        match sums.elements[0].per_register() {
            1 => self.add_floats_of::<VERSION, 1>(terms, sums, tile),
            2 => self.add_floats_of::<VERSION, 2>(terms, sums, tile),
            _ => self.add_floats_of::<VERSION, 4>(terms, sums, tile),
        }
    }

    #[inline(always)]
    fn add_floats_of<const VERSION: usize, const EACH: usize>(&self, terms: usize, sums: Sums, tile: &mut Tile) {
        let (left, right) = self.elements::<VERSION, EACH>();
        let right = right.each_ref().map(|right| &right.as_flattened()[..terms]);
        sums.add::<VERSION>(&left.as_flattened()[..terms], right, tile);
    }

    /// Adds the product to sums of integers, which wrap around or are limited.
    #[inline(always)]
    pub fn add_integers<const VERSION: usize>(&self, form: &MatrixForm, tile: &mut Tile) {
        match form.a.per_register() {
            4 => self.add_integers_of::<VERSION, 4>(form, tile),
            _ => self.add_integers_of::<VERSION, 8>(form, tile),
        }
    }

    #[inline(always)]
    fn add_integers_of<const VERSION: usize, const EACH: usize>(&self, form: &MatrixForm, tile: &mut Tile) {
        let (left, right) = self.elements::<VERSION, EACH>();
        let [of_a, of_b] = [form.a, form.b].map(Integers::new);
        let mut totals = [[0i32; WIDTH]; COLUMNS];
        let (mut rows, mut columns) = ([[0.0; WIDTH]; INTEGERS], [[0.0; INTEGERS]; COLUMNS]);
        for first in (0..form.k as usize).step_by(INTEGERS) {
            let bits = right.each_ref().map(|right| {
                let mut bits = [0; INTEGERS];
                bits.copy_from_slice(&right.as_flattened()[first..][..INTEGERS]);
                bits
            });
            of_a.fill(&left.as_flattened()[first..], &mut rows);
            of_b.fill(&bits, &mut columns);
            for (column, totals) in columns.iter().zip(&mut totals) {
                let further = dot_products::<VERSION, _>(column, &rows);
                for (total, further) in totals.iter_mut().zip(further) {
                    *total += further;
                }
            }
        }
        for (sum, total) in tile.as_flattened_mut().iter_mut().zip(totals.as_flattened()) {
            let start = *sum as i32;
            *sum = if form.saturates { start.saturating_add(*total) } else { start.wrapping_add(*total) } as u32;
        }
    }
}

/// What integer elements of 8 or 4 bits are: the bits that are read, and the one that counts negatively.
#[derive(Clone, Copy)]
struct Integers {
    read: u32,
    sign: u32,
}

impl Integers {
    fn new(element: Element) -> Integers {
        let read = u32::MAX >> (32 - element.bits());
        let is_signed = matches!(element, Element::S8 | Element::S4);
        Integers { read, sign: if is_signed { read / 2 + 1 } else { 0 } }
    }

    #[inline(always)]
    fn fill<const COUNT: usize, const LINES: usize>(self, bits: &[[u32; COUNT]], numbers: &mut [[f32; COUNT]; LINES]) {
        for (number, bits) in numbers.as_flattened_mut().iter_mut().zip(bits.as_flattened()) {
            *number = (((bits & self.read) ^ self.sign) as i32 - self.sign as i32) as f32;
        }
    }
}

/// The half of the value of an 8-bit float.
#[inline(always)]
pub(super) fn half_of_byte(element: Element, bits: u32) -> u32 {
    if element == Element::E5m2 { half_of_e5m2(bits) } else { half_of_e4m3(bits) }
}

/// The words of a register by the lane's place among its four neighbours. Version 1 only for processors with vector features.
#[inline(always)]
fn by_member<const VERSION: usize>(words: &Words) -> [[u32; 8]; 4] {
    #[cfg(target_arch = "x86_64")]
    if VERSION == 1 {
        // SAFETY: version 1 is only reached where the processor's features have been checked.
        return unsafe { vectors::by_member(words) };
    }
    let mut members = [[0; 8]; 4];
    for (group, words) in words.as_chunks::<4>().0.iter().enumerate() {
        for (member, word) in members.iter_mut().zip(words) {
            member[group] = *word;
        }
    }
    members
}

/// The contrary of [`by_member`].
#[inline(always)]
fn by_lane<const VERSION: usize>(members: &[[u32; 8]; 4]) -> Words {
    #[cfg(target_arch = "x86_64")]
    if VERSION == 1 {
        // SAFETY: version 1 is only reached where the processor's features have been checked.
        return unsafe { vectors::by_lane(members) };
    }
    std::array::from_fn(|lane| members[lane % 4][lane / 4])
}

/// The same with vectors of 256 bits.
#[cfg(target_arch = "x86_64")]
mod vectors {
    use super::Words;
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
    pub fn by_member(words: &Words) -> [[u32; 8]; 4] {
        let pairs: [__m256i; 4] = bytemuck::cast(*words);
        // Each has two groups: those of one member come beside each other.
        let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        let [first, second, third, fourth] = pairs.map(|pair| _mm256_permutevar8x32_epi32(pair, order));
        let [even, odd] = [_mm256_unpacklo_epi64(first, second), _mm256_unpackhi_epi64(first, second)];
        let [later_even, later_odd] = [_mm256_unpacklo_epi64(third, fourth), _mm256_unpackhi_epi64(third, fourth)];
        bytemuck::cast([
            _mm256_permute2x128_si256(even, later_even, 0x20),
            _mm256_permute2x128_si256(odd, later_odd, 0x20),
            _mm256_permute2x128_si256(even, later_even, 0x31),
            _mm256_permute2x128_si256(odd, later_odd, 0x31),
        ])
    }

    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
    pub fn by_lane(members: &[[u32; 8]; 4]) -> Words {
        let [first, second, third, fourth]: [__m256i; 4] = bytemuck::cast(*members);
        let [even, later_even] =
            [_mm256_permute2x128_si256(first, third, 0x20), _mm256_permute2x128_si256(first, third, 0x31)];
        let [odd, later_odd] =
            [_mm256_permute2x128_si256(second, fourth, 0x20), _mm256_permute2x128_si256(second, fourth, 0x31)];
        let order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
        let pairs = [
            _mm256_unpacklo_epi64(even, odd),
            _mm256_unpackhi_epi64(even, odd),
            _mm256_unpacklo_epi64(later_even, later_odd),
            _mm256_unpackhi_epi64(later_even, later_odd),
        ];
        bytemuck::cast(pairs.map(|pair| _mm256_permutevar8x32_epi32(pair, order)))
    }
}

/// The accumulators that registers hold, halves widened to `.f32`.
#[inline(always)]
pub(super) fn tile_of<const VERSION: usize>(element: Element, registers: &[Words; 4]) -> Tile {
    let mut tile = [[0; WIDTH]; COLUMNS];
    let each = if element == Element::F16 { 1 } else { 2 };
    for half in 0..2 {
        for number in 0..2 {
            // Halves share a register.
            let columns = by_member::<VERSION>(&registers[each * half + number % each]);
            for (member, column) in columns.iter().enumerate() {
                tile[2 * member + number][8 * half..][..8].copy_from_slice(column);
            }
        }
    }
    if element == Element::F16 {
        for (column, sums) in tile.iter_mut().enumerate() {
            for sum in sums {
                *sum = widened(*sum >> (16 * (column % 2)) & 0xffff);
            }
        }
    }
    tile
}

/// The contrary of [`tile_of`]: the registers of elements of 32 bits, or of 16 in the lower halves.
#[inline(always)]
pub(super) fn registers_of_tile<const VERSION: usize>(element: Element, tile: &Tile) -> [Words; 4] {
    let mut registers = [[0; LANES]; 4];
    let (each, shift) = if element == Element::F16 { (1, 16) } else { (2, 0) };
    for half in 0..2 {
        for number in 0..2 {
            let mut columns = [[0; 8]; 4];
            for (member, column) in columns.iter_mut().enumerate() {
                column.copy_from_slice(&tile[2 * member + number][8 * half..][..8]);
            }
            let words = by_lane::<VERSION>(&columns);
            for (to, word) in registers[each * half + number % each].iter_mut().zip(words) {
                *to |= word << (shift * number);
            }
        }
    }
    registers
}
