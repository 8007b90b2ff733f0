//! Tensor cores, and the instructions that bring matrices to them.

use super::operands::Operands;
use super::{Lowered, Pending};
use crate::interpreter::bodies::functions;
use crate::interpreter::machine::matrix::TRANSPOSED;
use crate::interpreter::machine::matrix_step::{MatrixStep, step};
use crate::interpreter::matrix::{MultiplyMatrices, TransposeMatrix};
use crate::matrix::{Element, Family, Generation, MatrixForm, Part};
use crate::sass::{self, Opcode, Word};

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
        let word = sass.word();
        match sass.opcode() {
            Opcode::Hmma if word.code() == 0x236 => self.step(word, operands),
            Opcode::Hmma => {
                if word.bit(75) || word.bit(78) {
                    return Err("a product of 16x8x4 matrices".to_owned());
                }
                if word.bit(72) || word.bit(63) {
                    return Err("a negated matrix".to_owned());
                }
                let accumulator = if word.bit(76) { F32 } else { F16 };
                let form = product([accumulator, F16, F16, accumulator], [16, 8, 8]);
                self.whole(word, operands, &MatrixForm { saturates: word.bit(77), ..form })
            }
            Opcode::Imma => {
                let types = if word.bits(83, 3) == 0 { [U8, S8] } else { [U4, S4] };
                let [a, b] = [76, 78].map(|bit| types[usize::from(word.bit(bit))]);
                let k = if word.bits(83, 3) == 0 { 16 } else { 32 };
                let form = product([S32, a, b, S32], [8, 8, k]);
                self.whole(word, operands, &MatrixForm { saturates: word.bit(82), ..form })
            }
            Opcode::Bmma => self.whole(word, operands, &product([S32, Bits, Bits, S32], [8, 8, 4])),
            _ => {
                self.instruction.sources[0] = operands.register(word.bits(24, 8) as u8);
                self.instruction.destinations[0] = operands.row(word.bits(16, 8) as u8);
                self.run(functions::<TransposeMatrix>(), 0)
            }
        }
    }

    /// A step of Volta's product.
    fn step(&mut self, word: Word, operands: &Operands) -> Lowered<()> {
        for (source, low) in [24, 32, 64].into_iter().enumerate() {
            self.instruction.sources[source] = operands.register(word.bits(low, 8) as u8);
        }
        for register in 0..2 {
            self.instruction.destinations[usize::from(register)] =
                operands.following_row(word.bits(16, 8) as u8, register);
        }
        let mut flags = u32::from(word.bit(79)) | u32::from(word.bit(80)) << 1;
        let mut add = |flag: u32, is_set: bool| flags |= if is_set { flag } else { 0 };
        add(step::A_BY_COLUMN, word.bit(73));
        add(step::B_BY_COLUMN, word.bit(74));
        add(step::TO_HALVES, !word.bit(76));
        add(step::FROM_HALVES, !word.bit(78));
        add(step::SATURATE, word.bit(77));
        add(step::NEGATE_A, word.bit(72));
        add(step::NEGATE_B, word.bit(63));
        add(step::TURING, operands.generation == Generation::Turing);
        if flags & step::TO_HALVES != 0 && flags & step::NUMBER > 1 {
            return Err("a third step to halves".to_owned());
        }
        self.run(functions::<MatrixStep>(), flags)
    }

    /// A product of the whole warp.
    fn whole(&mut self, word: Word, operands: &mut Operands, form: &MatrixForm) -> Lowered<()> {
        let count = |part: Part, element: Element| (form.elements(part) / element.per_register()) as u8;
        let rows = |low: u8, count: u8| (0..count).map(move |further| (word.bits(low, 8) as u8, further));
        let mut list: Vec<u16> = rows(16, count(Part::Accumulator, form.d))
            .map(|(register, further)| operands.following_row(register, further))
            .collect();
        let sources = [(24, Part::A, form.a), (32, Part::B, form.b), (64, Part::Accumulator, form.c)];
        for (low, part, element) in sources {
            let rows = rows(low, count(part, element));
            list.extend(rows.map(|(register, further)| operands.following(register, further).0));
        }
        self.instruction.operand_list = operands.list(list);
        self.instruction.sources[4] = operands.places(form);
        self.run(functions::<MultiplyMatrices>(), form.pack())
    }

    /// `LDSM`.
    pub(super) fn matrix_load(&mut self, word: Word, operands: &Operands) -> Lowered<()> {
        if word.bits(78, 2) > 1 {
            return Err("matrices of 8 by 32".to_owned());
        }
        let count = 1 << word.bits(72, 2);
        for matrix in 0..count {
            self.instruction.destinations[usize::from(matrix)] = operands.following_row(word.bits(16, 8) as u8, matrix);
        }
        self.instruction.immediate = u32::from(count) << 1 | if word.bits(78, 2) == 1 { TRANSPOSED } else { 0 };
        Ok(())
    }
}
