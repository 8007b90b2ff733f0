//! Tensor cores, and the instructions that bring matrices to them.

use super::operands::Operands;
use super::{Lowered, NO_SUCH_OPERAND, Pending};
use crate::interpreter::bodies::functions;
use crate::interpreter::machine::matrix::TRANSPOSED;
use crate::interpreter::machine::matrix_step::{MatrixStep, step};
use crate::interpreter::matrix::{MultiplyMatrices, TransposeMatrix};
use crate::matrix::{Element, Family, Generation, MatrixForm, Part};
use crate::sass::{self, Aspect, Opcode};

/// A product of matrices in the layouts of `mma`.
fn product(elements: [Element; 4], [m, n, k]: [u32; 3]) -> MatrixForm {
    let [d, a, b, c] = elements;
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
        generation: Generation::Turing,
    }
}

impl Pending {
    pub(super) fn tensor(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        use Element::{Bits, F16, F32, S4, S8, S32, U4, U8};
        let saturates = sass.has(Aspect::Saturate);
        match sass.opcode() {
            Opcode::HmmaStep => self.step(sass, operands),
            Opcode::Hmma => {
                if sass.text(Aspect::Shape) != ".1688" {
                    return Err("a product of 16x8x4 matrices".to_owned());
                }
                if (0..2).filter_map(|number| sass.source(number)).any(|matrix| matrix.is_negated) {
                    return Err("a negated matrix".to_owned());
                }
                let accumulator = if sass.text(Aspect::ResultType) == ".F32" { F32 } else { F16 };
                let form = product([accumulator, F16, F16, accumulator], [16, 8, 8]);
                self.whole(sass, operands, &MatrixForm { saturates, ..form })
            }
            Opcode::Imma => {
                // `.8816.U8.S8`: the sizes, the types of both matrices.
                let mut parts = sass.text(Aspect::Shape).split('.').skip(1);
                let k = if parts.next() == Some("8832") { 32 } else { 16 };
                let mut element = || match parts.next() {
                    Some("U8") => U8,
                    Some("S8") => S8,
                    Some("U4") => U4,
                    _ => S4,
                };
                let (a, b) = (element(), element());
                self.whole(sass, operands, &MatrixForm { saturates, ..product([S32, a, b, S32], [8, 8, k]) })
            }
            Opcode::Bmma => self.whole(sass, operands, &product([S32, Bits, Bits, S32], [8, 8, 4])),
            _ => {
                self.take(sass, operands, 1)?;
                self.instruction.destinations[0] = operands.written(sass.destination(0));
                self.run(functions::<TransposeMatrix>(), 0)
            }
        }
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
        let mut list: Vec<u16> = (0..count(Part::Accumulator, form.d))
            .map(|further| operands.written_following(sass.destination(0), further))
            .collect();
        let sources = [(0, Part::A, form.a), (1, Part::B, form.b), (2, Part::Accumulator, form.c)];
        for (number, part, element) in sources {
            let register = sass.source(number).and_then(|source| source.register()).ok_or(NO_SUCH_OPERAND)?;
            list.extend((0..count(part, element)).map(|further| operands.following(register, further).0));
        }
        self.instruction.operand_list = operands.list(list);
        self.instruction.sources[4] = operands.places(form);
        self.run(functions::<MultiplyMatrices>(), form.pack())
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
