//! Matrix instructions on a warp's registers: products, the exchanges of `ldmatrix`, `stmatrix` and `movmatrix`, addresses.

use super::bodies::Body;
use super::floating_point::directed::fused;
use super::floating_point::float::{canonical, rounding};
use super::floating_point::number_format::{Format, Rounded, Rounding, Value};
use super::machine::signs::{sign, sign_of};
use super::registers::{Lane, Registers};
use super::tensor_sum::{Adder, Factor, format_of, multiply_add, multiply_all, widened};
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
        multiply(&MatrixForm::unpack(instruction.immediate), instruction, registers, constants, mask);
    }
}

/// Collects a matrix, row by row (column by column where `by_column`). `places` are the rows of [`place_table`] for it.
#[inline(always)]
fn gather(
    (element, pairs): (Element, bool),
    registers: &Registers,
    constants: &[Row],
    operands: impl Iterator<Item = u16>,
    places: &[Row],
    mut put: impl FnMut(usize, u64),
) {
    let each = element.per_register() as usize;
    for (operand, places) in operands.zip(places.chunks(each)) {
        let values = rows_of(registers, constants, operand, element);
        for (part, places) in places.iter().enumerate() {
            for (lane, place) in places.0.iter().enumerate() {
                put(*place as usize, element_bits(values, element, pairs, lane, part as u32));
            }
        }
    }
}

/// The place in the matrix, row by row, of each lane's elements: a row for each element of D, A, B and C, in this order. B of integers, of
/// doubles and of 8-bit floats is put column by column, so that its columns lie together.
pub(crate) fn place_table(form: &MatrixForm) -> Vec<Row> {
    let of_c = form.of_accumulator(form.c);
    let columns_first = !has_fast_sums(form.a);
    let mut table = Vec::new();
    for (form, part) in [(form, Part::Accumulator), (form, Part::A), (form, Part::B), (&of_c, Part::Accumulator)] {
        let (rows, columns) = form.stored_size(part);
        for index in 0..form.elements(part) {
            table.push(Row(std::array::from_fn(|lane| {
                let (group, member) = group_and_member(form, lane);
                let (row, column) = form.position(part, member, index);
                let first = group * rows * columns;
                first + if part == Part::B && columns_first { column * rows + row } else { row * columns + column }
            })));
        }
    }
    table
}

/// Whether products of this type have a fast way of adding; see `tensor_sum::multiply_all`.
fn has_fast_sums(element: Element) -> bool {
    matches!(element, Element::F16 | Element::Bf16 | Element::Tf32)
}

/// Which group of lanes with matrices of their own a lane is in, and its place there.
fn group_and_member(form: &MatrixForm, lane: usize) -> (u32, u32) {
    let lane = lane as u32;
    match form.family {
        Family::QuadPairs => (lane % 16 / 4, lane % 4 + lane / 16 * 4),
        _ => (0, lane),
    }
}

#[inline(always)]
fn multiply(form: &MatrixForm, instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
    let counts = [
        registers_of(form, Part::Accumulator, form.d),
        registers_of(form, Part::A, form.a),
        registers_of(form, Part::B, form.b),
        registers_of(form, Part::Accumulator, form.c),
    ];
    let firsts = [0, counts[0], counts[0] + counts[1], counts[0] + counts[1] + counts[2]];
    let parts = [(Part::Accumulator, form.d), (Part::A, form.a), (Part::B, form.b), (Part::Accumulator, form.c)];
    // The table of places, divided among the four matrices.
    let mut rest = &constants[usize::from(instruction.sources[4].0 & !Source::CONSTANT)..];
    let places = parts.map(|(part, _)| {
        let (own, others) = rest.split_at(form.elements(part) as usize);
        rest = others;
        own
    });
    let registers_now = &*registers;
    // Machine code may leave the accumulator out.
    let adds = !instruction.memory.pairs
        || registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]) & mask != 0;
    let sparse_places = (form.family == Family::Sparse)
        .then(|| sparse_places(form, instruction, registers_now, constants, firsts[3] + counts[3]));
    let collect = |number: usize, put: &mut dyn FnMut(usize, u64)| {
        if number == 3 && !adds {
            return;
        }
        let operands = listed(instruction, constants, firsts[number], counts[number]);
        let (element, pairs) = (parts[number].1, instruction.memory.pairs);
        let collect = |put: &mut dyn FnMut(usize, u64)| {
            gather((element, pairs), registers_now, constants, operands, places[number], put)
        };
        match (&sparse_places, sign_of(instruction.signs, number - 1)) {
            (None, 0) => collect(put),
            (places, sign) => collect(&mut |place, bits| {
                let place = places.as_ref().filter(|_| number == 1).map_or(place, |places| places[place]);
                put(place, with_sign(element, sign, bits));
            }),
        }
    };
    let groups = if form.family == Family::QuadPairs { 4 } else { 1 };
    let sizes = [form.m as usize, form.n as usize, form.k as usize];
    let mut results = [0u64; MOST];
    if form.a == Element::F64 {
        multiply_doubles(sizes, instruction.offset as u32, collect, &mut results);
    } else if form.a.is_integer() {
        multiply_integers(form, sizes, collect, &mut results);
    } else {
        multiply_floats(form, groups, sizes, collect, &mut results);
    }
    let each = form.d.per_register() as usize;
    let destinations = listed(instruction, constants, 0, counts[0]);
    for (destination, places) in destinations.zip(places[0].chunks(each)) {
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

/// The place of each stored element of a sparse A in the whole matrix, row by row. Where metadata name a place twice, which the ISA does not
/// allow, the later element is there.
fn sparse_places(
    form: &MatrixForm,
    instruction: &Instruction,
    registers: &Registers,
    constants: &[Row],
    first: usize,
) -> Vec<usize> {
    let operand = listed(instruction, constants, first, 1).next().unwrap_or_default();
    let metadata = u32::read(registers, constants, Source(operand));
    let (_, stored) = form.stored_size(Part::A);
    let columns = form.sparse_columns(&metadata, u32::from(instruction.memory.elements));
    let of_row = columns.chunks(stored as usize).enumerate();
    of_row
        .flat_map(|(row, columns)| columns.iter().map(move |column| row * form.k as usize + *column as usize))
        .collect()
}

/// An element with a sign of machine code.
fn with_sign(element: Element, sign: u8, bits: u64) -> u64 {
    let top = 1u64 << (element.bits() - 1);
    let bits = if sign & sign::ABSOLUTE != 0 { bits & !top } else { bits };
    if sign & sign::NEGATE != 0 { bits ^ top } else { bits }
}

/// `rounding` is one of [`rounding`](super::floating_point::float::rounding).
fn multiply_doubles(
    [m, n, k]: [usize; 3],
    rounding: u32,
    collect: impl Fn(usize, &mut dyn FnMut(usize, u64)),
    results: &mut [u64],
) {
    let (mut a, mut b, mut c) = ([0.0; MOST], [0.0; MOST], [0.0; MOST]);
    collect(1, &mut |place, bits| a[place] = f64::from_bits(bits));
    collect(2, &mut |place, bits| b[place] = f64::from_bits(bits));
    collect(3, &mut |place, bits| c[place] = f64::from_bits(bits));
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

fn multiply_integers(
    form: &MatrixForm,
    [m, n, k]: [usize; 3],
    collect: impl Fn(usize, &mut dyn FnMut(usize, u64)),
    results: &mut [u64],
) {
    let (mut a, mut b, mut c) = ([0i32; MOST_OF_A], [0i32; MOST], [0i32; MOST]);
    collect(1, &mut |place, bits| a[place] = integer(form.a, bits));
    collect(2, &mut |place, bits| b[place] = integer(form.b, bits));
    collect(3, &mut |place, bits| c[place] = bits as i32);
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

#[inline(always)]
fn multiply_floats(
    form: &MatrixForm,
    groups: usize,
    [m, n, k]: [usize; 3],
    collect: impl Fn(usize, &mut dyn FnMut(usize, u64)),
    results: &mut [u64],
) {
    let (mut a, mut b, mut c) = ([0u32; MOST], [0u32; MOST], [0u32; MOST]);
    collect(1, &mut |place, bits| a[place] = bits as u32);
    collect(2, &mut |place, bits| b[place] = bits as u32);
    collect(3, &mut |place, bits| c[place] = bits as u32);
    if form.c == Element::F16 {
        c[..groups * m * n].iter_mut().for_each(|bits| *bits = widened(*bits));
    }
    if form.multiplies_bytes_as_halves() {
        return multiply_bytes_as_halves(form, [m, n, k], &a, &b, &c, results);
    }
    let adder = Adder::new(form.generation, form.a);
    // Singles in C or D: sums are singles, and only what comes of all products is rounded to halves.
    let is_narrowed = form.d == Element::F16 && form.c != Element::F16;
    let result = if form.d == Element::F16 && !is_narrowed { Format::F16 } else { Format::F32 };
    for group in 0..groups {
        let (a, b, c) = (&a[group * m * k..][..m * k], &b[group * k * n..][..k * n], &c[group * m * n..][..m * n]);
        let mut sums = [0; MOST];
        sums[..m * n].copy_from_slice(c);
        if !multiply_all(adder, form.a, [m, n, k], a, b, &mut sums, result) {
            Product { form, adder, sizes: [m, n, k], result }.one_by_one(a, b, c, &mut sums);
        }
        for (to, bits) in results[group * m * n..].iter_mut().zip(&sums[..m * n]) {
            let (bits, format) = if is_narrowed { (narrowed(*bits), Format::F16) } else { (*bits, result) };
            *to = u64::from(if form.saturates { to_finite(bits, format) } else { bits });
        }
    }
}

/// A product of 8-bit floats that is computed as ptxas' code for sm_90 does, whose tensor cores have such products for groups of warps alone
/// (own finding: the machine code of all forms): the elements become halves; those in the lower halves of registers are multiplied and summed
/// up, those in the upper halves are added as by a second instruction, and C is added at the end. B is column by column, C singles.
fn multiply_bytes_as_halves(
    form: &MatrixForm,
    [m, n, k]: [usize; 3],
    a: &[u32],
    b: &[u32],
    c: &[u32],
    results: &mut [u64],
) {
    let halves = MatrixForm { a: Element::F16, b: Element::F16, ..*form };
    let result = if form.d == Element::F16 { Format::F16 } else { Format::F32 };
    let adder = Adder::new(form.generation, Element::F16);
    // Of a sparse A, two neighbours stand for four columns.
    let neighbours = if form.family == Family::Sparse { 4 } else { 2 };
    let terms = k / 2;
    let mut sums = [0; MOST];
    for half in 0..2 {
        let places = || (0..k).filter(|place| place / neighbours % 2 == half).enumerate();
        let (mut left, mut right) = ([0; MOST], [0; MOST]);
        for (to, from) in places() {
            for row in 0..m {
                left[row * terms + to] = half_of_byte(form.a, a[row * k + from]);
            }
            for column in 0..n {
                right[to * n + column] = half_of_byte(form.b, b[column * k + from]);
            }
        }
        let before = sums;
        let (left, right) = (&left[..m * terms], &right[..terms * n]);
        if !multiply_all(adder, Element::F16, [m, n, terms], left, right, &mut sums, result) {
            sums = before;
            Product { form: &halves, adder, sizes: [m, n, terms], result }.one_by_one(left, right, &before, &mut sums);
        }
        if result == Format::F16 {
            sums[..m * n].iter_mut().for_each(|sum| *sum = widened(*sum));
        }
    }
    for (to, (sum, addend)) in results.iter_mut().zip(sums[..m * n].iter().zip(c)) {
        let sum = canonical(f32::from_bits(*sum) + f32::from_bits(*addend)).to_bits();
        *to = u64::from(if result == Format::F16 { narrowed(sum) } else { sum });
    }
}

/// The half of the value of an 8-bit float.
fn half_of_byte(element: Element, bits: u32) -> u32 {
    let (format, bits) = format_of(element, bits.into());
    match format.value(bits) {
        Value::Finite(exact) => match Format::F16.round(exact, Rounding::Nearest) {
            Rounded::Bits(bits) => bits as u32,
            // There is none.
            Rounded::Overflow => Format::F16.signed(exact.negative, Format::F16.infinity()) as u32,
        },
        Value::Infinite { negative } => Format::F16.signed(negative, Format::F16.infinity()) as u32,
        Value::NotANumber => 0x7fff,
    }
}

/// A product of matrices of floating-point numbers, to which a third matrix is added.
struct Product<'a> {
    form: &'a MatrixForm,
    adder: Adder,
    /// Rows and columns of the result, and the terms of each of its elements.
    sizes: [usize; 3],
    /// What sums are.
    result: Format,
}

impl Product<'_> {
    /// Every element of D on its own.
    fn one_by_one(&self, a: &[u32], b: &[u32], c: &[u32], sums: &mut [u32]) {
        let Product { form, adder, sizes: [m, n, k], result } = *self;
        let fractions = format_of(form.a, 0).0.fraction + format_of(form.b, 0).0.fraction;
        let (mut left, mut right) = ([Factor::default(); MOST], [Factor::default(); MOST]);
        for (factor, bits) in left.iter_mut().zip(a) {
            *factor = Factor::new(form.a, *bits);
        }
        for column in 0..n {
            for place in 0..k {
                let index = if has_fast_sums(form.b) { place * n + column } else { column * k + place };
                right[column * k + place] = Factor::new(form.b, b[index]);
            }
        }
        for row in 0..m {
            for column in 0..n {
                let (left, right) = (&left[row * k..][..k], &right[column * k..][..k]);
                sums[row * n + column] = multiply_add(adder, left, right, fractions, c[row * n + column], result);
            }
        }
    }
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
