//! Matrices: the steps of Volta's product, and the load that distributes what it reads.

use crate::execution::{AccessKind, Effect, LaneValues, MemoryAccess, StepContext};
use crate::interpreter::bodies::Body;
use crate::interpreter::matrix::{distributed, half_of, to_finite};
use crate::interpreter::memory::{describe, problem};
use crate::interpreter::number_format::Format;
use crate::interpreter::registers::{Lane, Registers};
use crate::interpreter::tensor_sum::{Adder, add_products, widened};
use crate::matrix::{Element, Generation};
use crate::operation::{Instruction, Row};
use crate::program::LANES;
use crate::warp::WarpState;

/// Bits of the immediate of [`MatrixStep`].
pub(crate) mod step {
    /// The step's number, 0 to 3.
    pub const NUMBER: u32 = 3;
    /// A is stored column by column.
    pub const A_BY_COLUMN: u32 = 1 << 2;
    /// B is.
    pub const B_BY_COLUMN: u32 = 1 << 3;
    /// C has halves.
    pub const FROM_HALVES: u32 = 1 << 4;
    /// D has halves.
    pub const TO_HALVES: u32 = 1 << 5;
    /// Infinities become the largest number, not-a-number becomes 0.
    pub const SATURATE: u32 = 1 << 6;
    /// A is negated.
    pub const NEGATE_A: u32 = 1 << 7;
    /// B is.
    pub const NEGATE_B: u32 = 1 << 8;
    /// The sums are those of Turing.
    pub const TURING: u32 = 1 << 9;
}

/// `HMMA.884`: a step of the products of 8x8x4 matrices, of which each group of eight lanes has one of its own: lanes 4 g to 4 g + 3,
/// which have the upper rows and the left columns, and 16 more, which have the lower rows and the right columns. Sources are pairs of
/// registers: A, B and C.
///
/// A step reads all of A and B, and computes what its destination holds:
///
/// ```text
///  D of singles, C of either         D of halves
///      columns 0-3   4-7                 columns 0-3   4-7
///  rows 0, 1     0     2             rows 0-7        0     1
///       2, 3     1     3
///       4, 5     0     2
///       6, 7     1     3
/// ```
///
/// That is the part of the accumulators of `mma.m8n8k4` (PTX ISA, fragments of its C and D) in registers 2 `number` and 2 `number` + 1
/// of D. C of halves has its columns in the same pair for two steps.
pub(crate) struct MatrixStep;

/// The word and the half that have an element of A or B: `line` is the row of A or the column of B, `place` counts along the sum.
fn holder(group: usize, line: usize, place: usize, lies_along: bool) -> (usize, usize) {
    let (member, index) = if lies_along { (line % 4, place) } else { (place, line % 4) };
    (4 * group + member + line / 4 * 16, index)
}

impl Body for MatrixStep {
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let flags = instruction.immediate;
        let has = |flag: u32| flags & flag != 0;
        let number = (flags & step::NUMBER) as usize;
        let pair = |source: usize, negated: bool| {
            let sign = if negated { 0x8000_8000 } else { 0 };
            let rows = registers.source(constants, instruction.sources[source], 2);
            [rows[0].0.map(|word| word ^ sign), rows[1].0.map(|word| word ^ sign)]
        };
        let (a, b, c) = (pair(0, has(step::NEGATE_A)), pair(1, has(step::NEGATE_B)), pair(2, false));
        let element =
            |words: &[[u32; LANES]; 2], (lane, index): (usize, usize)| half_of(&words[index / 2], lane, index % 2);
        let each = if has(step::TO_HALVES) { 4 } else { 2 };
        let count = each * LANES;
        let (mut left, mut right) = ([0; MOST_FACTORS], [0; MOST_FACTORS]);
        let mut sums = [0; MOST_SUMS];
        for lane in 0..LANES {
            let (group, high) = (lane % 16 / 4, lane / 16 * 4);
            for index in 0..each {
                // All steps of halves have all rows; others have two of each four, the upper ones first.
                let (row, column) = if has(step::TO_HALVES) {
                    (lane % 4 + high, 4 * number + index)
                } else {
                    (lane % 2 + number % 2 * 2 + high, number / 2 * 4 + (lane & 2) + index)
                };
                let sum = each * lane + index;
                for place in 0..4 {
                    left[place * count + sum] = element(&a, holder(group, row, place, !has(step::A_BY_COLUMN)));
                    right[place * count + sum] = element(&b, holder(group, column, place, has(step::B_BY_COLUMN)));
                }
                sums[sum] = match (has(step::FROM_HALVES), has(step::TO_HALVES)) {
                    (true, _) => widened(element(&c, (4 * group + row % 4 + row / 4 * 16, column % 4))),
                    (false, true) => 0,
                    (false, false) => c[index][lane],
                };
            }
        }
        let generation = if has(step::TURING) { Generation::Turing } else { Generation::Volta };
        let result = if has(step::TO_HALVES) { Format::F16 } else { Format::F32 };
        let adder = Adder::new(generation, Element::F16);
        add_products(adder, &left[..4 * count], &right[..4 * count], &mut sums[..count], result);
        if has(step::SATURATE) {
            sums[..count].iter_mut().for_each(|sum| *sum = to_finite(*sum, result));
        }
        for register in 0..2 {
            let values = std::array::from_fn(|lane| match has(step::TO_HALVES) {
                true => sums[4 * lane + 2 * register] | sums[4 * lane + 2 * register + 1] << 16,
                false => sums[2 * lane + register],
            });
            u32::write(registers, instruction.destinations[register], &values, mask);
        }
    }
}

/// Most sums of a step.
const MOST_SUMS: usize = 4 * LANES;
/// Their factors.
const MOST_FACTORS: usize = 4 * MOST_SUMS;

/// The immediate of `LDSM` has this bit where the matrices are transposed; the bits above are their number.
pub(crate) const TRANSPOSED: u32 = 1;

/// `LDSM`: rows of 16 bytes of 8 by 8 matrices of 16 bits, which are distributed as `ldmatrix` does. Lane 8 i + r has the address of
/// row r of matrix i; other lanes' addresses are not read.
pub(crate) fn load_matrices(
    instruction: &Instruction,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    mask: u32,
) -> Effect {
    let count = (instruction.immediate >> 1).clamp(1, 4);
    access.kind = AccessKind::Load;
    let rows = describe(instruction, warp, access, mask & (u32::MAX >> (32 - 8 * count)));
    let values = &mut context.values.accessed;
    *values = LaneValues::default();
    if rows != 0
        && let Err(error) = context.memory.load(access, values)
    {
        return problem(error);
    }
    let words = std::array::from_fn(|word| {
        let half = if word < 2 { &values.low } else { &values.high };
        std::array::from_fn(|lane| (half[lane] >> (32 * (word % 2))) as u32)
    });
    for matrix in 0..count as usize {
        let part = distributed(&words, matrix, instruction.immediate & TRANSPOSED != 0);
        u32::write(&mut warp.registers, instruction.destinations[matrix], &part, mask);
    }
    warp.control.advance();
    Effect::Memory { deferred: false }
}
