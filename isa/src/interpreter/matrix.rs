//! Matrix instructions on a warp's registers: products, the exchanges of `ldmatrix`, `stmatrix` and `movmatrix`, addresses.

use super::bodies::Body;
use super::number_format::Format;
use super::registers::{Lane, Registers};
use super::tensor_sum::{Adder, Factor, format_of, multiply_add, widened};
use crate::matrix::{Element, Family, MatrixForm, Part};
use crate::operation::{Instruction, Row, Source};
use crate::program::LANES;

/// Most elements of A, of B, of C: `m16n8k64` and `m16n16k16`.
const MOST: usize = 1024;

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

/// Which lanes work together, and the place of each among them.
fn lane_in_group(form: &MatrixForm, group: usize, member: usize) -> usize {
    match form.family {
        Family::QuadPairs => 4 * group + member % 4 + member / 4 * 16,
        _ => member,
    }
}

/// The rows of the register file from a listed source on.
fn rows_of<'a>(registers: &'a Registers, constants: &'a [Row], source: u16, element: Element) -> &'a [Row] {
    registers.source(constants, Source(source), if element == Element::F64 { 2 } else { 1 })
}

/// The bits of one lane's element.
fn element_bits(rows: &[Row], element: Element, lane: usize, place: u32) -> u64 {
    if element == Element::F64 {
        let values: &[u64] = bytemuck::cast_slice(rows);
        return values[lane];
    }
    let bits = element.bits();
    u64::from(rows[0].0[lane] >> (bits * place)) & (u64::MAX >> (64 - bits))
}

/// `mma` and `wmma.mma`: the immediate is a [`MatrixForm`]; the list has D, A, B and C.
pub(crate) struct MultiplyMatrices;

impl Body for MultiplyMatrices {
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let form = MatrixForm::unpack(instruction.immediate);
        let groups = if form.family == Family::QuadPairs { 4 } else { 1 };
        for group in 0..groups {
            multiply(&form, instruction, registers, constants, mask, group);
        }
    }
}

/// Collects a matrix, row by row (column by column where `by_column`).
#[expect(clippy::too_many_arguments, reason = "one matrix of an instruction")]
fn gather(
    form: &MatrixForm,
    part: Part,
    element: Element,
    by_column: bool,
    group: usize,
    registers: &Registers,
    constants: &[Row],
    operands: impl Iterator<Item = u16>,
    mut put: impl FnMut(usize, u64),
) {
    let (rows, columns) = form.size(part);
    let lanes = if form.family == Family::QuadPairs { 8 } else { LANES };
    let each = element.per_register();
    for (number, operand) in operands.enumerate() {
        let values = rows_of(registers, constants, operand, element);
        for member in 0..lanes {
            let lane = lane_in_group(form, group, member);
            for place in 0..each {
                let (row, column) = form.position(part, member as u32, number as u32 * each + place);
                let index = if by_column { column * rows + row } else { row * columns + column };
                put(index as usize, element_bits(values, element, lane, place));
            }
        }
    }
}

fn multiply(
    form: &MatrixForm,
    instruction: &Instruction,
    registers: &mut Registers,
    constants: &[Row],
    mask: u32,
    group: usize,
) {
    let counts = [
        registers_of(form, Part::Accumulator, form.d),
        registers_of(form, Part::A, form.a),
        registers_of(form, Part::B, form.b),
        registers_of(form, Part::Accumulator, form.c),
    ];
    let firsts = [0, counts[0], counts[0] + counts[1], counts[0] + counts[1] + counts[2]];
    let source = |number: usize| listed(instruction, constants, firsts[number], counts[number]);
    let of_c = form.of_accumulator(form.c);
    let (m, n, k) = (form.m as usize, form.n as usize, form.k as usize);
    let mut results = [0u64; MOST];
    if form.a == Element::F64 {
        let (mut a, mut b, mut c) = ([0.0; MOST], [0.0; MOST], [0.0; MOST]);
        let value = f64::from_bits;
        gather(form, Part::A, form.a, false, group, registers, constants, source(1), |i, bits| a[i] = value(bits));
        gather(form, Part::B, form.b, true, group, registers, constants, source(2), |i, bits| b[i] = value(bits));
        gather(&of_c, Part::Accumulator, form.c, false, group, registers, constants, source(3), |i, bits| {
            c[i] = value(bits);
        });
        for row in 0..m {
            for column in 0..n {
                // A chain of fused multiply-adds, as the ISA's rounding modifier and the studies have it.
                let terms = a[row * k..][..k].iter().zip(&b[column * k..][..k]);
                let sum = terms.fold(c[row * n + column], |sum, (a, b)| a.mul_add(*b, sum));
                let sum = if sum.is_nan() { super::float::DOUBLE_NAN } else { sum };
                results[row * n + column] = sum.to_bits();
            }
        }
    } else if form.a.is_integer() {
        let (mut a, mut b, mut c) = ([0i32; MOST], [0i32; MOST], [0i32; MOST]);
        gather(form, Part::A, form.a, false, group, registers, constants, source(1), |i, bits| {
            a[i] = integer(form.a, bits);
        });
        gather(form, Part::B, form.b, true, group, registers, constants, source(2), |i, bits| {
            b[i] = integer(form.b, bits);
        });
        gather(&of_c, Part::Accumulator, form.c, false, group, registers, constants, source(3), |i, bits| {
            c[i] = bits as i32;
        });
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
                results[row * n + column] = if form.saturates { limited } else { sum } as u64;
            }
        }
    } else {
        let (mut a, mut b, mut c) = ([Factor::default(); MOST], [Factor::default(); MOST], [0u32; MOST]);
        gather(form, Part::A, form.a, false, group, registers, constants, source(1), |i, bits| {
            a[i] = Factor::new(form.a, bits as u32);
        });
        gather(form, Part::B, form.b, true, group, registers, constants, source(2), |i, bits| {
            b[i] = Factor::new(form.b, bits as u32);
        });
        gather(&of_c, Part::Accumulator, form.c, false, group, registers, constants, source(3), |i, bits| {
            c[i] = if form.c == Element::F16 { widened(bits as u32) } else { bits as u32 };
        });
        let adder = Adder::new(form.generation, form.a);
        let fractions = format_of(form.a, 0).0.fraction + format_of(form.b, 0).0.fraction;
        let result = if form.d == Element::F16 { Format::F16 } else { Format::F32 };
        for row in 0..m {
            for column in 0..n {
                let place = row * n + column;
                let factors = (&a[row * k..][..k], &b[column * k..][..k]);
                let bits = multiply_add(adder, factors.0, factors.1, fractions, c[place], result);
                results[place] = u64::from(if form.saturates { to_finite(bits, result) } else { bits });
            }
        }
    }
    scatter(form, instruction, registers, constants, mask, group, &results);
}

/// `.satfinite`: infinities become the largest number, not-a-number becomes 0.
fn to_finite(bits: u32, format: Format) -> u32 {
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

/// Writes D to the lanes of the mask.
fn scatter(
    form: &MatrixForm,
    instruction: &Instruction,
    registers: &mut Registers,
    constants: &[Row],
    mask: u32,
    group: usize,
    results: &[u64; MOST],
) {
    let lanes = if form.family == Family::QuadPairs { 8 } else { LANES };
    let members = (0..lanes).fold(0, |lanes, member| lanes | 1u32 << lane_in_group(form, group, member));
    let each = form.d.per_register();
    let count = registers_of(form, Part::Accumulator, form.d);
    for (number, destination) in listed(instruction, constants, 0, count).enumerate() {
        let mut values = [0u64; LANES];
        for member in 0..lanes {
            let value = &mut values[lane_in_group(form, group, member)];
            for place in 0..each {
                let index = number as u32 * each + place;
                let (row, column) = form.position(Part::Accumulator, member as u32, index);
                *value |= results[(row * form.n + column) as usize] << (form.d.bits() * place % 64);
            }
        }
        super::bodies::write_element(registers, destination, form.d == Element::F64, &values, mask & members);
    }
}

/// Halves of a warp's row of words, by lane and number from 0 to 1.
fn half_of(words: &[u32; LANES], lane: usize, half: usize) -> u32 {
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
            let element = |row: usize, column: usize| half_of(&words[column / 2], 8 * matrix + row, column % 2);
            let values = std::array::from_fn(|lane| {
                let (group, pair) = (lane / 4, lane % 4 * 2);
                if instruction.immediate == 0 {
                    element(group, pair) | element(group, pair + 1) << 16
                } else {
                    element(pair, group) | element(pair + 1, group) << 16
                }
            });
            u32::write(registers, destination, &values, mask);
        }
    }
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
            let values = std::array::from_fn(|lane| {
                let (matrix, row) = (lane / 8, lane % 8);
                let element = |column: usize| {
                    let (row, column) = if instruction.immediate == 0 { (row, column) } else { (column, row) };
                    half_of(&parts[matrix], 4 * row + column / 2, column % 2)
                };
                element(2 * word) | element(2 * word + 1) << 16
            });
            u32::write(registers, destination, &values, mask);
        }
    }
}

/// `movmatrix.trans`: of an 8 by 8 matrix of halves, two neighbours of row lane / 4 a lane, the transposed one.
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
