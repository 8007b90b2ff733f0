//! Tensor cores, and the instructions that bring matrices to them.

use super::float::rounding_of;
use super::operands::{Operands, sign_of};
use super::{Lowered, NO_SUCH_OPERAND, Pending};
use crate::interpreter::bodies::functions;
use crate::interpreter::machine::matrix::TRANSPOSED;
use crate::interpreter::machine::matrix_step::{MatrixStep, step};
use crate::interpreter::matrix::{MultiplyMatrices, TransposeMatrix};
use crate::matrix::{Element, Family, Generation, MatrixForm, Part};
use crate::sass::{self, Aspect, Opcode};

/// A product of matrices in the layouts of `mma`.
fn product(generation: Generation, [d, a, b, c]: [Element; 4], [m, n, k]: [u32; 3]) -> MatrixForm {
    MatrixForm {
        family: Family::Mma,
        a,
        b,
        c,
        d,
        m,
        n,
        k,
        a_by_column: false,
        b_by_column: true,
        saturates: false,
        conjunction: false,
        generation,
    }
}

/// The sizes m, n, k of a product, from its shape's name: `.16816`, `.16x8x4`.
fn sizes(sass: &sass::Instruction) -> Lowered<[u32; 3]> {
    let shape = sass.text(Aspect::Shape).trim_start_matches('.').split('.').next().unwrap_or_default();
    Ok(match shape {
        "884" | "8x8x4" => [8, 8, 4],
        "1684" | "16x8x4" => [16, 8, 4],
        "1688" | "16x8x8" => [16, 8, 8],
        "16816" | "16x8x16" => [16, 8, 16],
        "16832" => [16, 8, 32],
        "8816" => [8, 8, 16],
        "16864" => [16, 8, 64],
        "8832" => [8, 8, 32],
        "88128" => [8, 8, 128],
        "168128" => [16, 8, 128],
        "168256" => [16, 8, 256],
        other => return Err(format!("a product of the shape {other}")),
    })
}

/// How many of the least products of its latency class a product is: of doubles those of 8x8x4, of integers and bits those of 8 rows over 128 bits,
/// and of others those of 16 rows over 128 bits. A sparse one skips half of its depth.
fn least_products(form: &MatrixForm, is_sparse: bool) -> u8 {
    let least = match form.a {
        Element::F64 => 8 * 4 * 64,
        Element::F16 | Element::Bf16 | Element::Tf32 | Element::E4m3 | Element::E5m2 => 16 * 128,
        _ => 8 * 128,
    };
    let bits = form.m * form.k * form.a.bits() / if is_sparse { 2 } else { 1 };
    (bits / least).max(1) as u8
}

/// The element that a modifier names.
pub(super) fn element(name: &str) -> Lowered<Element> {
    Ok(match name {
        ".F16" | "" => Element::F16,
        ".F32" => Element::F32,
        ".BF16" => Element::Bf16,
        ".TF32" => Element::Tf32,
        ".U8" => Element::U8,
        ".S8" => Element::S8,
        ".U4" => Element::U4,
        ".S4" => Element::S4,
        ".E4M3" => Element::E4m3,
        ".E5M2" => Element::E5m2,
        other => return Err(format!("a matrix of the type {other}")),
    })
}

impl Pending {
    pub(super) fn tensor(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        use Element::{Bits, F64, S32};
        let saturates = sass.has(Aspect::Saturate);
        match sass.opcode() {
            Opcode::HmmaStep => return self.step(sass, operands),
            Opcode::Movm if sass.text(Aspect::Layout) != ".16.MT88" => {
                return Err("a matrix of 8 by 32 that is moved".to_owned());
            }
            Opcode::Movm => {
                self.take(sass, operands, 1)?;
                self.instruction.destinations[0] = operands.written(sass.destination(0));
                return self.run(functions::<TransposeMatrix>(), 0);
            }
            _ => {}
        }
        for (number, matrix) in sass.sources().take(3).enumerate() {
            self.instruction.signs |= sign_of(matrix, number);
        }
        // Where it is false, the product is not added to the accumulator.
        self.condition(sass);
        let [m, n, k] = sizes(sass)?;
        let generation = operands.generation;
        let form = match sass.opcode() {
            Opcode::Hmma => {
                let [accumulator, factor] =
                    [element(sass.text(Aspect::ResultType))?, element(sass.text(Aspect::SourceType))?];
                product(generation, [accumulator, factor, factor, accumulator], [m, n, k])
            }
            Opcode::Qmma => {
                let accumulator = element(sass.text(Aspect::ResultType))?;
                let [a, b] = [element(sass.text(Aspect::FirstType))?, element(sass.text(Aspect::SecondType))?];
                product(generation, [accumulator, a, b, accumulator], [m, n, k])
            }
            Opcode::Imma => {
                // Turing's shape has the types, too: `.8816.U8.S8`.
                let mut parts = sass.text(Aspect::Shape).split_inclusive('.').skip(2);
                let mut named = |aspect: Aspect| match parts.next() {
                    Some(part) => element(&format!(".{}", part.trim_end_matches('.'))),
                    None => element(sass.text(aspect)),
                };
                let (a, b) = (named(Aspect::FirstType)?, named(Aspect::SecondType)?);
                product(generation, [S32, a, b, S32], [m, n, k])
            }
            Opcode::Dmma => {
                self.instruction.offset = rounding_of(sass).into();
                product(generation, [F64; 4], [m, n, k])
            }
            _ => {
                // A row has as many words of 32 bits.
                let form = product(generation, [S32, Bits, Bits, S32], [m, n, k / 32]);
                MatrixForm { conjunction: sass.text(Aspect::Operation) == ".AND", ..form }
            }
        };
        let family = if sass.has(Aspect::Sparse) { Family::Sparse } else { form.family };
        self.products = least_products(&form, family == Family::Sparse);
        self.whole(sass, operands, &MatrixForm { family, saturates, ..form })
    }

    /// A step of Volta's product.
    fn step(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        self.take(sass, operands, 3)?;
        self.instruction.signs = 0;
        for register in 0..2 {
            self.instruction.destinations[usize::from(register)] =
                operands.written_following(sass.destination(0), register);
        }
        let mut flags = sass.value(Aspect::Step) as u32;
        let mut add = |flag: u32, is_set: bool| flags |= if is_set { flag } else { 0 };
        let [a, b] = [0, 1].map(|number| sass.source(number));
        add(step::A_BY_COLUMN, a.is_some_and(|matrix| matrix.part != 0));
        add(step::B_BY_COLUMN, b.is_some_and(|matrix| matrix.part != 0));
        // The types of the result and of what is added to.
        let types = sass.text(Aspect::Type);
        add(step::TO_HALVES, types.starts_with(".F16"));
        add(step::FROM_HALVES, types.ends_with(".F16"));
        add(step::SATURATE, sass.has(Aspect::Saturate));
        add(step::NEGATE_A, a.is_some_and(|matrix| matrix.is_negated));
        add(step::NEGATE_B, b.is_some_and(|matrix| matrix.is_negated));
        add(step::TURING, operands.generation == Generation::Turing);
        if flags & step::TO_HALVES != 0 && flags & step::NUMBER > 1 {
            return Err("a third step to halves".to_owned());
        }
        self.run(functions::<MatrixStep>(), flags)
    }

    /// A product of the whole warp.
    fn whole(&mut self, sass: &sass::Instruction, operands: &mut Operands, form: &MatrixForm) -> Lowered<()> {
        let count = |part: Part, element: Element| (form.elements(part) / element.per_register()) as u8;
        // A double takes a pair of registers, of which the first is listed.
        let each = if form.d == Element::F64 { 2 } else { 1 };
        self.instruction.memory.pairs = true;
        let mut list: Vec<u16> = (0..count(Part::Accumulator, form.d))
            .map(|further| operands.written_following(sass.destination(0), each * further))
            .collect();
        let sources = [(0, Part::A, form.a), (1, Part::B, form.b), (2, Part::Accumulator, form.c)];
        for (number, part, element) in sources {
            let register = sass.source(number).and_then(|source| source.register()).ok_or(NO_SUCH_OPERAND)?;
            list.extend((0..count(part, element)).map(|further| operands.following(register, each * further).0));
        }
        if form.family == Family::Sparse {
            if !form.a.has_sparse_products([form.m, form.n, form.k]) {
                return Err("a sparse matrix of a type that this shape does not have".to_owned());
            }
            // The third source is the accumulator. The metadata are behind it, and the number of the lanes that have them.
            let metadata = sass.source(3).and_then(|source| source.register()).ok_or(NO_SUCH_OPERAND)?;
            let selector = sass.source(4).and_then(|source| source.immediate()).ok_or(NO_SUCH_OPERAND)?;
            if selector >= form.sparse_rows().selectors() {
                return Err("metadata of lanes that are not there".to_owned());
            }
            list.push(operands.register(metadata).0);
            self.instruction.memory.elements = selector as u8;
        }
        self.instruction.operand_list = operands.list(list);
        self.instruction.sources[4] = operands.places(form);
        self.run(functions::<MultiplyMatrices>(), form.pack())
    }

    /// `STSM`.
    pub(super) fn matrix_store(&mut self, sass: &sass::Instruction, operands: &Operands) -> Lowered<()> {
        let transposes = if sass.text(Aspect::Layout) == ".16.MT88" { TRANSPOSED } else { 0 };
        let count = 1 << sass.value(Aspect::Count);
        let first = sass.source(0).and_then(|source| source.register()).ok_or(NO_SUCH_OPERAND)?;
        for matrix in 0..count {
            self.instruction.sources[1 + usize::from(matrix)] = operands.following(first, matrix);
        }
        self.instruction.immediate = u32::from(count) << 1 | transposes;
        Ok(())
    }

    /// `LDSM`.
    pub(super) fn matrix_load(&mut self, sass: &sass::Instruction, operands: &Operands) -> Lowered<()> {
        let transposes = match sass.text(Aspect::Layout) {
            ".16.M88" => 0,
            ".16.MT88" => TRANSPOSED,
            _ => return Err("matrices of 8 by 32".to_owned()),
        };
        let count = 1 << sass.value(Aspect::Count);
        for matrix in 0..count {
            self.instruction.destinations[usize::from(matrix)] =
                operands.written_following(sass.destination(0), matrix);
        }
        self.instruction.immediate = u32::from(count) << 1 | transposes;
        Ok(())
    }
}
