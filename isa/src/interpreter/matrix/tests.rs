//! Products of all forms, element by element.

use super::*;
use crate::interpreter::bodies::{functions, has_vector_features};
use crate::interpreter::floating_point::number_format::{Rounded, Rounding, Value};
use crate::interpreter::matrix_tiles::half_of_byte;
use crate::interpreter::tensor_sum::{Factor, format_of, multiply_add, unread_bits};
use crate::matrix::Generation;
use std::sync::Arc;

/// Numbers without a pattern.
struct Random(u64);

/// Which numbers the elements of a matrix are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbers {
    /// All bits: infinities and not-a-numbers among them.
    Any,
    /// Exponents near 0, zeros among them.
    Near,
    /// The smallest, subnormal ones among them.
    Small,
    /// The largest finite ones.
    Large,
}

const KINDS: [Numbers; 4] = [Numbers::Any, Numbers::Near, Numbers::Small, Numbers::Large];

impl Random {
    fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    fn element(&mut self, element: Element, numbers: Numbers) -> u32 {
        let all = u32::MAX >> (32 - element.bits());
        let bits = self.bits();
        if element.is_integer() || element == Element::S32 || numbers == Numbers::Any {
            return bits & all;
        }
        let format = format_of(element, 0).0;
        let sign = bits & (1 << (format.fraction + format.exponent));
        let last = (1 << format.exponent) - 2;
        let bias = format.bias() as u32;
        let exponent = match numbers {
            _ if self.bits().is_multiple_of(8) => return sign << unread_bits(element),
            Numbers::Small => self.bits() % 3,
            Numbers::Large => last - self.bits() % 3,
            _ => bias - bias / 2 + self.bits() % bias.min(12),
        };
        (sign | exponent << format.fraction | bits & ((1 << format.fraction) - 1)) << unread_bits(element)
    }
}

/// The operands of a product by rows and columns, for each group of lanes.
struct Case {
    form: MatrixForm,
    signs: u8,
    adds: bool,
    /// A, B and C, row by row.
    matrices: [Vec<u32>; 3],
}

impl Case {
    fn groups(&self) -> usize {
        if self.form.family == Family::QuadPairs { 4 } else { 1 }
    }

    /// The form whose layout a matrix has: C may have another than D.
    fn layout(&self, number: usize) -> MatrixForm {
        if number == 3 { self.form.of_accumulator(self.form.c) } else { self.form }
    }

    /// Where a lane's element of D, A, B or C is in its matrix.
    fn place(&self, number: usize, lane: usize, index: u32) -> usize {
        let layout = self.layout(number);
        let part = [Part::Accumulator, Part::A, Part::B, Part::Accumulator][number];
        let (group, member) = group_and_member(&layout, lane);
        let (rows, columns) = layout.size(part);
        let (row, column) = layout.position(part, member, index);
        (group * rows * columns + row * columns + column) as usize
    }

    /// Registers of D, A, B and C, in this order; D is zero.
    fn registers(&self) -> (Vec<Row>, usize) {
        let form = &self.form;
        let parts = [(Part::Accumulator, form.d), (Part::A, form.a), (Part::B, form.b), (Part::Accumulator, form.c)];
        let mut rows = Vec::new();
        let mut of_d = 0;
        for (number, (part, element)) in parts.into_iter().enumerate() {
            let each = element.per_register();
            for register in 0..form.elements(part) / each {
                rows.push(Row(std::array::from_fn(|lane| {
                    if number == 0 {
                        return 0;
                    }
                    (0..each).fold(0, |word, within| {
                        let place = self.place(number, lane, register * each + within);
                        word | self.matrices[number - 1][place] << (within * element.bits())
                    })
                })));
            }
            of_d = if number == 0 { rows.len() } else { of_d };
        }
        (rows, of_d)
    }

    /// D, row by row, by a compilation of the body.
    fn product(&self, version: usize) -> Vec<u32> {
        let (rows, of_d) = self.registers();
        let mut constants = place_table(&self.form);
        let mut instruction = Instruction::nothing();
        instruction.operand_list = constants.len() as u16;
        instruction.sources[4] = Source(Source::CONSTANT);
        instruction.immediate = self.form.pack();
        instruction.signs = self.signs;
        instruction.memory.pairs = true;
        instruction.predicate_sources[0] = 0;
        for first in (0..rows.len()).step_by(LANES) {
            constants.push(Row(std::array::from_fn(|lane| (first + lane) as u32)));
        }
        let predicate = if self.adds { u32::MAX } else { 0 };
        let mut registers = Registers {
            cluster: Default::default(),
            rows,
            predicates: vec![predicate],
            carry: 0,
            special: Default::default(),
            parameters: Arc::default(),
        };
        // SAFETY: the instruction names registers that there are; the second version is called where the processor has its features.
        unsafe { functions::<MultiplyMatrices>()[version](&instruction, &mut registers, &constants, u32::MAX) };
        let each = self.form.d.per_register();
        let mut result = vec![0; self.groups() * (self.form.m * self.form.n) as usize];
        for (register, row) in registers.rows[..of_d].iter().enumerate() {
            for (lane, word) in row.0.iter().enumerate() {
                for within in 0..each {
                    let bits = word >> (within * self.form.d.bits()) & (u32::MAX >> (32 - self.form.d.bits()));
                    result[self.place(0, lane, register as u32 * each + within)] = bits;
                }
            }
        }
        result
    }

    /// D, row by row, each element by itself.
    fn one_by_one(&self) -> Vec<u32> {
        let MatrixForm { a, b, c, m, n, k, .. } = self.form;
        let [m, n, k] = [m, n, k].map(|size| size as usize);
        let element = |number: usize, element: Element, place: usize| {
            with_sign(element, sign_of(self.signs, number), self.matrices[number][place].into()) as u32
        };
        let mut result = Vec::new();
        for group in 0..self.groups() {
            for row in 0..m {
                for column in 0..n {
                    let left: Vec<u32> = (0..k).map(|place| element(0, a, (group * m + row) * k + place)).collect();
                    let right: Vec<u32> = (0..k).map(|place| element(1, b, (group * k + place) * n + column)).collect();
                    let start = if self.adds { element(2, c, (group * m + row) * n + column) } else { 0 };
                    result.push(self.sum(&left, &right, start));
                }
            }
        }
        result
    }

    fn sum(&self, left: &[u32], right: &[u32], start: u32) -> u32 {
        let form = &self.form;
        if form.a.is_integer() {
            let products: i64 = left
                .iter()
                .zip(right)
                .map(|(a, b)| i64::from(integer(form.a, (*a).into())) * i64::from(integer(form.b, (*b).into())))
                .sum();
            let sum = i64::from(start as i32) + products;
            return if form.saturates { sum.clamp(i32::MIN.into(), i32::MAX.into()) as u32 } else { sum as u32 };
        }
        let start = if form.c == Element::F16 { widened(start) } else { start };
        let sum = |[a, b]: [Element; 2], left: &[u32], right: &[u32], start: u32, result: Format| {
            let factors = |element: Element, bits: &[u32]| -> Vec<Factor> {
                bits.iter().map(|bits| Factor::new(element, *bits)).collect()
            };
            let fractions = [a, b].map(|element| format_of(element, 0).0.fraction).iter().sum();
            let adder = Adder::new(form.generation, a);
            multiply_add(adder, &factors(a, left), &factors(b, right), fractions, start, result)
        };
        if form.multiplies_bytes_as_halves() {
            let to_halves = form.d == Element::F16;
            let mut total = 0;
            for half in 0..2 {
                let halves = |element: Element, bits: &[u32]| -> Vec<u32> {
                    let of_half = bits.chunks(2).skip(half).step_by(2).flatten();
                    of_half.map(|bits| half_of_byte(element, *bits)).collect()
                };
                let result = if to_halves { Format::F16 } else { Format::F32 };
                let (left, right) = (halves(form.a, left), halves(form.b, right));
                total = sum([Element::F16; 2], &left, &right, total, result);
                total = if to_halves { widened(total) } else { total };
            }
            let sum = canonical(f32::from_bits(total) + f32::from_bits(start)).to_bits();
            return if to_halves { narrowed(sum) } else { sum };
        }
        let is_of_halves = form.d == Element::F16 && form.c == Element::F16;
        let result = if is_of_halves { Format::F16 } else { Format::F32 };
        let bits = sum([form.a, form.b], left, right, start, result);
        match form.d {
            Element::F16 if !is_of_halves => narrowed(bits),
            _ => bits,
        }
    }
}

/// The generations, shapes and types of A and B of products, whose accumulators are of the types that follow.
fn forms() -> Vec<MatrixForm> {
    use Element::*;
    let mut forms = Vec::new();
    let mut push = |family, [a, b]: [Element; 2], [m, n, k]: [u32; 3], columns: [bool; 2]| {
        let accumulators: &[[Element; 2]] = match a {
            F16 | E4m3 | E5m2 => &[[F32, F32], [F16, F16], [F16, F32], [F32, F16]],
            Bf16 | Tf32 => &[[F32, F32]],
            _ => &[[S32, S32]],
        };
        for [c, d] in accumulators {
            use Generation::*;
            for generation in [Volta, Turing, Ampere, Ada, Hopper] {
                let is_eighth = matches!(a, E4m3 | E5m2);
                if is_eighth && (!matches!(generation, Ada | Hopper) || c != d) {
                    continue;
                }
                let [a_by_column, b_by_column] = columns;
                forms.push(MatrixForm {
                    family,
                    a,
                    b,
                    c: *c,
                    d: *d,
                    m,
                    n,
                    k,
                    a_by_column,
                    b_by_column,
                    saturates: a.is_integer() && generation == Ampere,
                    conjunction: false,
                    generation,
                });
            }
        }
    };
    let mma = [false, true];
    for (elements, depths) in [
        ([F16, F16], [8, 16]),
        ([Bf16, Bf16], [8, 16]),
        ([Tf32, Tf32], [4, 8]),
        ([E4m3, E5m2], [16, 32]),
        ([E5m2, E4m3], [16, 32]),
        ([S8, U8], [16, 32]),
        ([U8, S8], [16, 32]),
        ([S4, U4], [32, 64]),
        ([S4, S4], [32, 64]),
    ] {
        for depth in depths {
            push(Family::Mma, elements, [16, 8, depth], mma);
        }
    }
    push(Family::Mma, [S8, S8], [8, 8, 16], mma);
    for columns in [[false, true], [true, false]] {
        for sizes in [[16, 16, 16], [32, 8, 16], [8, 32, 16]] {
            push(Family::Wmma, [F16, F16], sizes, columns);
            push(Family::Wmma, [Bf16, Bf16], sizes, columns);
        }
        push(Family::Wmma, [Tf32, Tf32], [16, 16, 8], columns);
        push(Family::QuadPairs, [F16, F16], [8, 8, 4], columns);
    }
    forms
}

/// Every product is the sum of its terms, one by one, whatever the numbers, the generation and the shape.
#[test]
fn products_are_sums_one_by_one() {
    let mut random = Random(3);
    for round in 0..16 {
        let (factors, accumulators) = (KINDS[round % 4], KINDS[round / 4]);
        for form in forms() {
            let groups = if form.family == Family::QuadPairs { 4 } else { 1 };
            let sizes = [(form.m * form.k, form.a, factors), (form.k * form.n, form.b, factors)];
            let sizes = [sizes[0], sizes[1], (form.m * form.n, form.c, accumulators)];
            let matrices = sizes
                .map(|(size, element, numbers)| (0..groups * size).map(|_| random.element(element, numbers)).collect());
            let signs = if form.a.is_integer() { 0 } else { random.bits() as u8 & 0x3f };
            let case = Case { form, signs, adds: !random.bits().is_multiple_of(4), matrices };
            let expected = case.one_by_one();
            for version in 0..if has_vector_features() { 2 } else { 1 } {
                let product = case.product(version);
                assert!(product == expected, "{form:?}, factors {factors:?}, C {accumulators:?}, version {version}");
            }
        }
    }
}

/// All 8-bit floats are halves, and all halves singles.
#[test]
fn small_floats_are_widened_exactly() {
    for element in [Element::E4m3, Element::E5m2] {
        for bits in 0..256 {
            let expected = match format_of(element, bits).0.value(bits) {
                Value::Finite(exact) => match Format::F16.round(exact, Rounding::Nearest) {
                    Rounded::Bits(bits) => bits as u32,
                    Rounded::Overflow => panic!("{element:?} {bits:#x} is too large"),
                },
                Value::Infinite { negative } => Format::F16.signed(negative, Format::F16.infinity()) as u32,
                Value::NotANumber => 0x7fff,
            };
            assert_eq!(half_of_byte(element, bits as u32), expected, "{element:?} {bits:#x}");
        }
    }
    for bits in 0..=u16::MAX {
        let value = half::f16::from_bits(bits).to_f32();
        let expected = if value.is_nan() { 0x7fff_ffff } else { value.to_bits() };
        assert_eq!(widened(bits.into()), expected, "{bits:#x}");
    }
}
