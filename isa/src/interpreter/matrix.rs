//! Matrix instructions on a warp's registers: products, the exchanges of `ldmatrix`, `stmatrix` and `movmatrix`, addresses.

use super::bodies::Body;
use super::floating_point::directed::fused;
use super::floating_point::float::{canonical, rounding};
use super::floating_point::number_format::Format;
use super::machine::signs::{sign, sign_of};
use super::matrix_tiles::{Operands, Strides, Sums, half_of_byte, is_tile, registers_of_tile, tile_of};
use super::registers::{Lane, Registers};
use super::tensor_sum::{Adder, widened};
use crate::lanes::LANES;
use crate::matrix::{Element, Family, MatrixForm, Part};
use crate::operation::Instruction;
use crate::operation::operand::{Row, Source};

/// Most elements that B, C or an A of floats have: `m16n8k64` and `m16n16k16`, a B of `m16n8k128`.
const MOST: usize = 1024;
/// Most elements that A has: a sparse one of `m16n8k128`.
const MOST_OF_A: usize = 2048;

/// The registers that an instruction lists: `count` of them from `first` on.
fn listed<'a>(
    instruction: &Instruction,
    constants: &'a [Row],
    first: usize,
    count: usize,
) -> impl Iterator<Item = u16> + use<'a> {
    let rows = &constants[usize::from(instruction.operand_list)..];
    (first..first + count).map(move |place| rows[place / LANES].0[place % LANES] as u16)
}

/// Registers of a lane's part of a matrix.
fn registers_of(form: &MatrixForm, part: Part, element: Element) -> usize {
    (form.elements(part) / element.per_register()) as usize
}

/// The rows of the register file from a listed source on.
fn rows_of<'a>(registers: &'a Registers, constants: &'a [Row], source: u16, element: Element) -> &'a [Row] {
    registers.source(constants, Source(source), if element == Element::F64 { 2 } else { 1 })
}

/// The bits of one lane's element. In machine code a double's halves are in `pairs` of registers.
#[inline(always)]
fn element_bits(rows: &[Row], element: Element, pairs: bool, lane: usize, place: u32) -> u64 {
    if element == Element::F64 && pairs {
        return u64::from(rows[0].0[lane]) | u64::from(rows[1].0[lane]) << 32;
    }
    if element == Element::F64 {
        let values: &[u64] = bytemuck::cast_slice(rows);
        return values[lane];
    }
    let bits = element.bits();
    u64::from(rows[0].0[lane] >> (bits * place)) & (u64::MAX >> (64 - bits))
}

/// `mma` and `wmma.mma`: the immediate is a [`MatrixForm`]; the list has D, A, B and C. With a sparse A its metadata follow, and
/// `memory.elements` is the selector. `offset` is how doubles are rounded; machine code may have signs of A, B and C.
pub(crate) struct MultiplyMatrices;

impl Body for MultiplyMatrices {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let form = MatrixForm::unpack(instruction.immediate);
        let multiply = if is_tile(&form) { multiply_registers::<0> } else { multiply_elements::<0> };
        multiply(&form, instruction, registers, constants, mask);
    }

    #[inline(always)]
    unsafe fn run_vectorised(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller has checked the features.
        unsafe {
            let form = MatrixForm::unpack(instruction.immediate);
            if is_tile(&form) {
                vectorised::multiply_registers(&form, instruction, registers, constants, mask);
            } else {
                vectorised::multiply_elements(&form, instruction, registers, constants, mask);
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Self::run(instruction, registers, constants, mask);
    }
}

/// The two ways, each a function of its own: they need much of the stack.
#[cfg(target_arch = "x86_64")]
mod vectorised {
    use super::{Instruction, MatrixForm, Registers, Row};

    #[inline(never)]
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
    pub fn multiply_registers(
        form: &MatrixForm,
        instruction: &Instruction,
        registers: &mut Registers,
        constants: &[Row],
        mask: u32,
    ) {
        super::multiply_registers::<1>(form, instruction, registers, constants, mask);
    }

    #[inline(never)]
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
    pub fn multiply_elements(
        form: &MatrixForm,
        instruction: &Instruction,
        registers: &mut Registers,
        constants: &[Row],
        mask: u32,
    ) {
        super::multiply_elements::<1>(form, instruction, registers, constants, mask);
    }
}

/// The place in the matrix, row by row, of each lane's elements: a row for each element of D, A, B and C, in this order. B is put column by
/// column, so that its columns lie together.
pub(crate) fn place_table(form: &MatrixForm) -> Vec<Row> {
    let of_c = form.of_accumulator(form.c);
    let mut table = Vec::new();
    for (form, part) in [(form, Part::Accumulator), (form, Part::A), (form, Part::B), (&of_c, Part::Accumulator)] {
        let (rows, columns) = form.stored_size(part);
        for index in 0..form.elements(part) {
            table.push(Row(std::array::from_fn(|lane| {
                let (group, member) = group_and_member(form, lane);
                let (row, column) = form.position(part, member, index);
                let first = group * rows * columns;
                first + if part == Part::B { column * rows + row } else { row * columns + column }
            })));
        }
    }
    table
}

/// Which group of lanes with matrices of their own a lane is in, and its place there.
fn group_and_member(form: &MatrixForm, lane: usize) -> (u32, u32) {
    let lane = lane as u32;
    match form.family {
        Family::QuadPairs => (lane % 16 / 4, lane % 4 + lane / 16 * 4),
        _ => (0, lane),
    }
}

/// The places of the elements of D, A, B or C: its rows of the table of places.
fn places<'a>(form: &MatrixForm, instruction: &Instruction, constants: &'a [Row], number: usize) -> &'a [Row] {
    let parts = [Part::Accumulator, Part::A, Part::B, Part::Accumulator];
    let elements = parts.map(|part| form.elements(part) as usize);
    let table = usize::from(instruction.sources[4].0 & !Source::CONSTANT);
    &constants[table + elements[..number].iter().sum::<usize>()..][..elements[number]]
}

/// The operands of an instruction: those of D, A, B and C by their numbers from 0 to 3.
struct Matrices<'a> {
    form: &'a MatrixForm,
    instruction: &'a Instruction,
    registers: &'a Registers,
    constants: &'a [Row],
    parts: [(Part, Element); 4],
    /// The first of each one's registers in the list, and how many it has.
    listed: [(usize, usize); 4],
    /// Whether the accumulator counts: machine code may leave it out.
    adds: bool,
}

impl<'a> Matrices<'a> {
    #[inline(always)]
    fn new(
        form: &'a MatrixForm,
        instruction: &'a Instruction,
        registers: &'a Registers,
        constants: &'a [Row],
        mask: u32,
    ) -> Matrices<'a> {
        let parts = [(Part::Accumulator, form.d), (Part::A, form.a), (Part::B, form.b), (Part::Accumulator, form.c)];
        let mut first = 0;
        let listed = parts.map(|(part, element)| {
            let count = registers_of(form, part, element);
            first += count;
            (first - count, count)
        });
        let adds = !instruction.memory.pairs
            || registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]) & mask != 0;
        Matrices { form, instruction, registers, constants, parts, listed, adds }
    }

    /// The registers of a matrix of a tile.
    #[inline(always)]
    fn words<const COUNT: usize>(&self, number: usize) -> [[u32; LANES]; COUNT] {
        let mut registers = [[0; LANES]; COUNT];
        if number == 3 && !self.adds {
            return registers;
        }
        let (first, count) = self.listed[number];
        for (words, operand) in registers.iter_mut().zip(listed(self.instruction, self.constants, first, count)) {
            *words = u32::read(self.registers, self.constants, Source(operand));
        }
        let sign = sign_of(self.instruction.signs, number - 1);
        if sign != 0 {
            let bits = self.parts[number].1.bits();
            let element = |word: u32, first: u32| {
                let element =
                    with_sign(self.parts[number].1, sign, u64::from(word >> first & (u32::MAX >> (32 - bits))));
                (element as u32) << first
            };
            for word in registers.as_flattened_mut() {
                *word = (0..32).step_by(bits as usize).fold(0, |all, first| all | element(*word, first));
            }
        }
        registers
    }

    /// Collects the elements of a matrix, row by row (B column by column).
    #[inline(always)]
    fn collect<T>(&self, number: usize, to: &mut [T], value: impl Fn(u64) -> T) {
        if number == 3 && !self.adds {
            return;
        }
        let (element, pairs) = (self.parts[number].1, self.instruction.memory.pairs);
        let sign = sign_of(self.instruction.signs, number - 1);
        let (first, count) = self.listed[number];
        let sparse = (number == 1 && self.form.family == Family::Sparse).then(|| self.sparse_places());
        let operands = listed(self.instruction, self.constants, first, count);
        let places = places(self.form, self.instruction, self.constants, number);
        for (operand, places) in operands.zip(places.chunks(element.per_register() as usize)) {
            let rows = rows_of(self.registers, self.constants, operand, element);
            if element != Element::F64 && sign == 0 && sparse.is_none() {
                for (part, places) in places.iter().enumerate() {
                    let (first, read) = (element.bits() * part as u32, u32::MAX >> (32 - element.bits()));
                    for (place, word) in places.0.iter().zip(rows[0].0) {
                        to[*place as usize] = value(u64::from(word >> first & read));
                    }
                }
                continue;
            }
            for (part, places) in places.iter().enumerate() {
                for (lane, place) in places.0.iter().enumerate() {
                    let bits = with_sign(element, sign, element_bits(rows, element, pairs, lane, part as u32));
                    let place = sparse.as_ref().map_or(*place as usize, |places| places[*place as usize]);
                    to[place] = value(bits);
                }
            }
        }
    }

    /// The place of each stored element of a sparse A in the whole matrix, row by row. Where metadata name a place twice, which the ISA does
    /// not allow, the later element is there.
    fn sparse_places(&self) -> Vec<usize> {
        let Matrices { form, instruction, registers, constants, .. } = *self;
        let (first, count) = self.listed[3];
        let operand = listed(instruction, constants, first + count, 1).next().unwrap_or_default();
        let metadata = u32::read(registers, constants, Source(operand));
        let (_, stored) = form.stored_size(Part::A);
        let columns = form.sparse_columns(&metadata, u32::from(instruction.memory.elements));
        let of_row = columns.chunks(stored as usize).enumerate();
        of_row
            .flat_map(|(row, columns)| columns.iter().map(move |column| row * form.k as usize + *column as usize))
            .collect()
    }
}

/// A product of a form that [`is_tile`].
#[inline(always)]
fn multiply_registers<const VERSION: usize>(
    form: &MatrixForm,
    instruction: &Instruction,
    registers: &mut Registers,
    constants: &[Row],
    mask: u32,
) {
    let matrices = Matrices::new(form, instruction, registers, constants, mask);
    let operands = Operands { a: matrices.words(1), b: matrices.words(2) };
    let words = multiply_tile::<VERSION>(form, &operands, &matrices.words(3));
    let (_, count) = matrices.listed[0];
    for (destination, words) in listed(instruction, constants, 0, count).zip(&words) {
        u32::write(registers, destination, words, mask);
    }
}

/// A product of any form, whose elements are collected one by one.
#[inline(always)]
fn multiply_elements<const VERSION: usize>(
    form: &MatrixForm,
    instruction: &Instruction,
    registers: &mut Registers,
    constants: &[Row],
    mask: u32,
) {
    let matrices = Matrices::new(form, instruction, registers, constants, mask);
    let destinations = listed(instruction, constants, 0, matrices.listed[0].1);
    let places = places(form, instruction, constants, 0);
    let groups = if form.family == Family::QuadPairs { 4 } else { 1 };
    let sizes = [form.m as usize, form.n as usize, form.k as usize];
    let mut results = [0u64; MOST];
    if form.a == Element::F64 {
        multiply_doubles(sizes, instruction.offset as u32, &matrices, &mut results);
    } else if form.a.is_integer() {
        multiply_integers(form, sizes, &matrices, &mut results);
    } else {
        multiply_floats::<VERSION>(form, groups, sizes, &matrices, &mut results);
    }
    let each = form.d.per_register() as usize;
    for (destination, places) in destinations.zip(places.chunks(each)) {
        let mut values = [0u64; LANES];
        for (part, places) in places.iter().enumerate() {
            for (value, place) in values.iter_mut().zip(places.0) {
                *value |= results[place as usize] << (form.d.bits() * part as u32 % 64);
            }
        }
        if form.d == Element::F64 && instruction.memory.pairs {
            u64::write_pair(registers, destination, &values, mask);
        } else {
            super::bodies::write_element(registers, destination, form.d == Element::F64, &values, mask);
        }
    }
}

/// An element with a sign of machine code.
fn with_sign(element: Element, sign: u8, bits: u64) -> u64 {
    let top = 1u64 << (element.bits() - 1);
    let bits = if sign & sign::ABSOLUTE != 0 { bits & !top } else { bits };
    if sign & sign::NEGATE != 0 { bits ^ top } else { bits }
}

/// `rounding` is one of [`rounding`](super::floating_point::float::rounding).
fn multiply_doubles([m, n, k]: [usize; 3], rounding: u32, matrices: &Matrices, results: &mut [u64]) {
    let (mut a, mut b, mut c) = ([0.0; MOST], [0.0; MOST], [0.0; MOST]);
    matrices.collect(1, &mut a, f64::from_bits);
    matrices.collect(2, &mut b, f64::from_bits);
    matrices.collect(3, &mut c, f64::from_bits);
    for row in 0..m {
        for column in 0..n {
            // A chain of fused multiply-adds, as the ISA's rounding modifier and the studies have it.
            let terms = a[row * k..][..k].iter().zip(&b[column * k..][..k]);
            let start = c[row * n + column];
            let sum = match rounding {
                rounding::NEAREST => terms.fold(start, |sum, (a, b)| a.mul_add(*b, sum)),
                direction => terms.fold(start, |sum, (a, b)| fused(*a, *b, sum, direction)),
            };
            let sum = if sum.is_nan() { super::floating_point::float::DOUBLE_NAN } else { sum };
            results[row * n + column] = sum.to_bits();
        }
    }
}

fn multiply_integers(form: &MatrixForm, [m, n, k]: [usize; 3], matrices: &Matrices, results: &mut [u64]) {
    let (mut a, mut b, mut c) = ([0i32; MOST_OF_A], [0i32; MOST], [0i32; MOST]);
    matrices.collect(1, &mut a, |bits| integer(form.a, bits));
    matrices.collect(2, &mut b, |bits| integer(form.b, bits));
    matrices.collect(3, &mut c, |bits| bits as i32);
    for row in 0..m {
        for column in 0..n {
            let terms = a[row * k..][..k].iter().zip(&b[column * k..][..k]);
            let products: i32 = match (form.a, form.conjunction) {
                (Element::Bits, true) => terms.map(|(a, b)| (a & b).count_ones() as i32).sum(),
                (Element::Bits, false) => terms.map(|(a, b)| (a ^ b).count_ones() as i32).sum(),
                _ => terms.map(|(a, b)| a * b).sum(),
            };
            let sum = i64::from(c[row * n + column]) + i64::from(products);
            let limited = sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
            results[row * n + column] = u64::from(if form.saturates { limited } else { sum } as u32);
        }
    }
}

/// A product of a form that [`is_tile`]: the registers of D from those of C.
#[inline(always)]
fn multiply_tile<const VERSION: usize>(
    form: &MatrixForm,
    operands: &Operands,
    accumulator: &[[u32; LANES]; 4],
) -> [[u32; LANES]; 4] {
    let mut tile = tile_of::<VERSION>(form.c, accumulator);
    if form.a.is_integer() {
        operands.add_integers::<VERSION>(form, &mut tile);
    } else if form.multiplies_bytes_as_halves() {
        let sums = sums_of_bytes(form);
        let mut totals = tile_of::<VERSION>(Element::F32, &[[0; LANES]; 4]);
        for half in 0..2 {
            let halves = operands.halves_of_bytes([form.a, form.b], half);
            halves.add_floats::<VERSION>(form.k as usize / 2, sums, &mut totals);
            if sums.result == Format::F16 {
                totals = totals.map(|sums| sums.map(widened));
            }
        }
        for (to, total) in tile.as_flattened_mut().iter_mut().zip(totals.as_flattened()) {
            *to = added_to_bytes(sums.result, *total, *to);
        }
    } else {
        let sums =
            Sums { elements: [form.a, form.b], adder: Adder::new(form.generation, form.a), result: sums_of(form) };
        operands.add_floats::<VERSION>(form.k as usize, sums, &mut tile);
        if is_narrowed(form) || form.saturates {
            tile = tile.map(|sums| sums.map(|sum| finished(form, sum)));
        }
    }
    registers_of_tile::<VERSION>(form.d, &tile)
}

/// How products of elements of this type are added up.
fn adder_of(form: &MatrixForm, element: Element) -> Adder {
    let adder = Adder::new(form.generation, element);
    if form.family == Family::Sparse { adder.of_sparse() } else { adder }
}

/// What sums are: halves where C and D are.
fn sums_of(form: &MatrixForm) -> Format {
    if form.d == Element::F16 && !is_narrowed(form) { Format::F16 } else { Format::F32 }
}

/// Whether C is of singles and D of halves: sums are singles, and only what comes of all products is rounded.
fn is_narrowed(form: &MatrixForm) -> bool {
    form.d == Element::F16 && form.c != Element::F16
}

/// An element of D from a sum.
#[inline(always)]
fn finished(form: &MatrixForm, sum: u32) -> u32 {
    let (bits, format) = if is_narrowed(form) { (narrowed(sum), Format::F16) } else { (sum, sums_of(form)) };
    if form.saturates { to_finite(bits, format) } else { bits }
}

#[inline(always)]
fn multiply_floats<const VERSION: usize>(
    form: &MatrixForm,
    groups: usize,
    [m, n, k]: [usize; 3],
    matrices: &Matrices,
    results: &mut [u64],
) {
    let (mut a, mut b, mut c) = ([0u32; MOST], [0u32; MOST], [0u32; MOST]);
    matrices.collect(1, &mut a, |bits| bits as u32);
    matrices.collect(2, &mut b, |bits| bits as u32);
    matrices.collect(3, &mut c, |bits| bits as u32);
    if form.c == Element::F16 {
        c[..groups * m * n].iter_mut().for_each(|bits| *bits = widened(*bits));
    }
    if form.multiplies_bytes_as_halves() {
        return multiply_bytes_as_halves::<VERSION>(form, [m, n, k], &a, &b, &c, results);
    }
    let sums = Sums { elements: [form.a, form.b], adder: adder_of(form, form.a), result: sums_of(form) };
    for group in 0..groups {
        let (a, b, c) = (&a[group * m * k..][..m * k], &b[group * k * n..][..k * n], &mut c[group * m * n..][..m * n]);
        let [by_line, of_sums] = [k, n].map(|line| Strides { line, place: 1 });
        sums.add_matrices::<VERSION>([m, n, k], (a, by_line), (b, by_line), (c, of_sums));
        for (to, sum) in results[group * m * n..].iter_mut().zip(c) {
            *to = u64::from(finished(form, *sum));
        }
    }
}

/// A product of 8-bit floats that is computed as ptxas' code for sm_90 does, whose tensor cores have such products for groups of warps alone
/// (own finding: the machine code of all forms): the elements become halves; those in the lower halves of registers are multiplied and summed
/// up, those in the upper halves are added as by a second instruction, and C is added at the end. B is column by column, C singles.
#[inline(always)]
fn multiply_bytes_as_halves<const VERSION: usize>(
    form: &MatrixForm,
    [m, n, k]: [usize; 3],
    a: &[u32],
    b: &[u32],
    c: &[u32],
    results: &mut [u64],
) {
    let sums = sums_of_bytes(form);
    // Of a sparse A, two neighbours stand for four columns.
    let neighbours = if form.family == Family::Sparse { 4 } else { 2 };
    let terms = k / 2;
    let mut totals = [0; MOST];
    for half in 0..2 {
        let places = || (0..k).filter(|place| place / neighbours % 2 == half).enumerate();
        let (mut left, mut right) = ([0; MOST], [0; MOST]);
        for (to, from) in places() {
            for row in 0..m {
                left[row * terms + to] = half_of_byte(form.a, a[row * k + from]);
            }
            for column in 0..n {
                right[column * terms + to] = half_of_byte(form.b, b[column * k + from]);
            }
        }
        let [by_line, of_sums] = [terms, n].map(|line| Strides { line, place: 1 });
        sums.add_matrices::<VERSION>([m, n, terms], (&left, by_line), (&right, by_line), (&mut totals, of_sums));
        if sums.result == Format::F16 {
            totals[..m * n].iter_mut().for_each(|sum| *sum = widened(*sum));
        }
    }
    for (to, (total, addend)) in results.iter_mut().zip(totals[..m * n].iter().zip(c)) {
        *to = u64::from(added_to_bytes(sums.result, *total, *addend));
    }
}

/// How the halves of [`multiply_bytes_as_halves`] are added up.
fn sums_of_bytes(form: &MatrixForm) -> Sums {
    Sums {
        elements: [Element::F16; 2],
        adder: adder_of(form, Element::F16),
        result: if form.d == Element::F16 { Format::F16 } else { Format::F32 },
    }
}

/// The total of [`multiply_bytes_as_halves`] and C.
#[inline(always)]
fn added_to_bytes(result: Format, total: u32, addend: u32) -> u32 {
    let sum = canonical(f32::from_bits(total) + f32::from_bits(addend)).to_bits();
    if result == Format::F16 { narrowed(sum) } else { sum }
}

/// A single rounded to the nearest half.
fn narrowed(bits: u32) -> u32 {
    let single = f32::from_bits(bits);
    if single.is_nan() { 0x7fff } else { u32::from(half::f16::from_f32(single).to_bits()) }
}

/// `.satfinite`: infinities become the largest number, not-a-number becomes 0.
pub(super) fn to_finite(bits: u32, format: Format) -> u32 {
    let sign = format.signed(true, 0) as u32;
    match (u64::from(bits & !sign), format.infinity()) {
        (magnitude, infinity) if magnitude < infinity => bits,
        (magnitude, infinity) if magnitude == infinity => bits & sign | format.largest() as u32,
        _ => 0,
    }
}

/// An integer element's value, or 32 bits as they are.
fn integer(element: Element, bits: u64) -> i32 {
    let bits = bits as u32;
    match element {
        Element::S8 => i32::from(bits as i8),
        Element::S4 => (bits << 28) as i32 >> 28,
        _ => bits as i32,
    }
}

/// Halves of a warp's row of words, by lane and number from 0 to 1.
pub(super) fn half_of(words: &[u32; LANES], lane: usize, half: usize) -> u32 {
    (words[lane] >> (16 * half)) & 0xffff
}

/// After the load of `ldmatrix`: lane 8 i + r has the 16 bytes of row r of matrix i in four registers; each lane gets two
/// neighbours of row lane / 4 (of a column, where the immediate is 1) of each matrix. The list has a destination for each matrix,
/// then the four registers.
pub(crate) struct DistributeMatrices;

impl Body for DistributeMatrices {
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let count = usize::from(instruction.memory.elements);
        let mut words = [[0; LANES]; 4];
        for (words, source) in words.iter_mut().zip(listed(instruction, constants, count, 4)) {
            *words = u32::read(registers, constants, Source(source));
        }
        for (matrix, destination) in listed(instruction, constants, 0, count).enumerate() {
            let values = distributed(&words, matrix, instruction.immediate != 0);
            u32::write(registers, destination, &values, mask);
        }
    }
}

/// Each lane's part of one of the matrices whose rows are in four words of the lanes; see [`DistributeMatrices`].
pub(super) fn distributed(words: &[[u32; LANES]; 4], matrix: usize, by_column: bool) -> [u32; LANES] {
    let element = |row: usize, column: usize| half_of(&words[column / 2], 8 * matrix + row, column % 2);
    std::array::from_fn(|lane| {
        let (group, pair) = (lane / 4, lane % 4 * 2);
        if by_column {
            element(pair, group) | element(pair + 1, group) << 16
        } else {
            element(group, pair) | element(group, pair + 1) << 16
        }
    })
}

/// Before the store of `stmatrix`: the contrary of [`DistributeMatrices`]. The list has the four registers, then a source for each
/// matrix.
pub(crate) struct CollectMatrices;

impl Body for CollectMatrices {
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let count = usize::from(instruction.memory.elements);
        let mut parts = [[0; LANES]; 4];
        for (part, source) in parts.iter_mut().zip(listed(instruction, constants, 4, count)) {
            *part = u32::read(registers, constants, Source(source));
        }
        for (word, destination) in listed(instruction, constants, 0, 4).enumerate() {
            let values = collected(&parts, word, instruction.immediate != 0);
            u32::write(registers, destination, &values, mask);
        }
    }
}

/// One of the four words of the rows of matrices that lanes have parts of; see [`CollectMatrices`].
pub(super) fn collected(parts: &[[u32; LANES]; 4], word: usize, by_column: bool) -> [u32; LANES] {
    std::array::from_fn(|lane| {
        let (matrix, row) = (lane / 8, lane % 8);
        let element = |column: usize| {
            let (row, column) = if by_column { (column, row) } else { (row, column) };
            half_of(&parts[matrix], 4 * row + column / 2, column % 2)
        };
        element(2 * word) | element(2 * word + 1) << 16
    })
}

/// `movmatrix.trans`: transposes an 8 by 8 matrix of halves. A lane has two neighbours of row lane / 4.
pub(crate) struct TransposeMatrix;

impl Body for TransposeMatrix {
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let words = u32::read(registers, constants, instruction.sources[0]);
        let values = std::array::from_fn(|lane| {
            let (group, pair) = (lane / 4, lane % 4 * 2);
            let element = |row: usize| half_of(&words, 4 * row + group / 2, group % 2);
            element(pair) | element(pair + 1) << 16
        });
        u32::write(registers, instruction.destinations[0], &values, mask);
    }
}

/// The address of a lane's part of a `wmma` matrix: the base, the stride in elements, and the rows of constants with each lane's line
/// and place in it. The immediate has the bits of an element.
pub(crate) struct MatrixAddress<const SHORT: bool>;

impl<const SHORT: bool> Body for MatrixAddress<SHORT> {
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let strides = u32::read(registers, constants, instruction.sources[1]);
        let lines = u32::read(registers, constants, instruction.sources[2]);
        let places = u32::read(registers, constants, instruction.sources[3]);
        let offset = |lane: usize| {
            let elements = u64::from(strides[lane]) * u64::from(lines[lane]) + u64::from(places[lane]);
            elements.wrapping_mul(u64::from(instruction.immediate)) / 8
        };
        if SHORT {
            let bases = u32::read(registers, constants, instruction.sources[0]);
            let values = std::array::from_fn(|lane| bases[lane].wrapping_add(offset(lane) as u32));
            u32::write(registers, instruction.destinations[0], &values, mask);
        } else {
            let bases = u64::read(registers, constants, instruction.sources[0]);
            let values = std::array::from_fn(|lane| bases[lane].wrapping_add(offset(lane)));
            u64::write(registers, instruction.destinations[0], &values, mask);
        }
    }
}

/// A predicate that is true in the lanes of the immediate where the first predicate source is.
pub(crate) struct LanesOf;

impl Body for LanesOf {
    fn run(instruction: &Instruction, registers: &mut Registers, _: &[Row], mask: u32) {
        let guard = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        registers.set_predicate(instruction.predicate_destinations[0], guard & instruction.immediate, mask);
    }
}

#[cfg(test)]
mod tests;
