//! Products of matrices by groups of four warps: `wgmma` of PTX, `HGMMA`, `IGMMA`, `BGMMA` and `QGMMA` of machine code.
//!
//! Each warp computes its own 16 rows of the result, when it issues the instruction: no values of other warps' registers take part. What
//! shared memory holds then is what is multiplied; code that changes it before it has waited for the product is wrong on the hardware, too.
//!
//! Sums are those of `mma.sync` on Hopper ([`tensor_sum`](super::tensor_sum)). That the two instructions round alike is an assumption: the
//! studies of Hopper's rounding have measured `mma` alone, but for 8-bit floats, of whose `wgmma` about 13 bits below the largest exponent
//! are known to be kept.

mod descriptor;
mod operands;
mod reads;

use super::floating_point::number_format::Format;
use super::registers::{Lane, Registers, special};
use super::tensor_columns::{Factors, Products, WIDTH, dot_products};
use super::tensor_sum::{Adder, Factor, format_of, multiply_add, unread_bits};
use crate::convergence::ReductionTarget;
use crate::execution::{BarrierArrival, BarrierKind, Effect, GROUP_BARRIERS, StepContext};
use crate::lanes::LANES;
use crate::matrix::{Element, Generation};
use crate::matrix_group::{GROUP_WARPS, GroupForm, MOST_DEPTH, MOST_STORED, WARP_ROWS};
use crate::operation::Instruction;
use crate::operation::operand::Row;
use crate::warp::WarpState;
use balar_protocol::cuda::{FaultAccess, FaultCause, FaultSpace};
use descriptor::{CHUNK, Descriptor, OutOfReach};
use operands::{BLOCK, Block, Product};
pub use reads::ProductReads;

/// A group's product. The immediate is a [`GroupForm`]; the list has D, C, A where it is in registers, and the metadata of a sparse A; the
/// first two sources are the descriptors of A and B, of which those of the first lane count. The accumulator counts where the first predicate
/// source is true. In PTX all lanes come together first.
pub(super) fn product<const VERSION: usize>(
    instruction: &Instruction,
    warp: &mut WarpState,
    context: &mut StepContext,
    mask: u32,
) -> Effect {
    let WarpState { control, registers, constants, .. } = warp;
    if mask == 0 {
        control.advance();
        return Effect::Plain;
    }
    let shared = context.memory.shared();
    let mut effect = Effect::Plain;
    if instruction.memory.pairs {
        effect = multiply::<VERSION>(instruction, registers, &constants.0, shared, mask);
        if !matches!(effect, Effect::Fault { .. }) {
            control.advance();
        }
    } else {
        let members = u32::read(registers, &constants.0, instruction.sources[3]);
        control.gather(mask, &members, true, |lanes| {
            effect = multiply::<VERSION>(instruction, registers, &constants.0, shared, lanes);
        });
    }
    effect
}

/// The warps of a group of four wait until at most so many groups of products are under way (`wgmma.wait_group`, `WARPGROUP.DEPBAR`), with
/// `u32::MAX` for each other alone. A product is one of the whole group, and each of its warps computes a part: none may go on, and change what
/// is multiplied, before all have done so. None may begin before all have come to the product (`wgmma.fence`, `WARPGROUP.ARRIVE`), for what the
/// others have written. Own finding: cuBLASLt's code for Hopper has `WARPGROUP.ARRIVE` and `WARPGROUP.WAIT` alone between what the warps write
/// to shared memory and the bulk copy by one of them that reads it.
pub(super) fn wait(instruction: &Instruction, warp: &mut WarpState, mask: u32) -> Effect {
    if mask == 0 {
        warp.control.advance();
        return Effect::Plain;
    }
    let threads = GROUP_WARPS * LANES as u32;
    let group = warp.registers.special[special::FIRST_THREAD] / threads;
    let (barrier, kind) = (GROUP_BARRIERS + group as u8, BarrierKind::Sync);
    warp.control.arrive_at_barrier(barrier, kind, ReductionTarget::None, mask);
    let arrival = BarrierArrival { barrier, kind, threads: Some(threads), mask, predicate: 0 };
    Effect::ProductWait { groups: instruction.immediate, arrival }
}

fn multiply<const VERSION: usize>(
    instruction: &Instruction,
    registers: &mut Registers,
    constants: &[Row],
    shared: &[u8],
    mask: u32,
) -> Effect {
    let form = GroupForm::unpack(instruction.immediate);
    let lane = mask.trailing_zeros() as usize % LANES;
    let words = [0, 1].map(|number| {
        let source = instruction.sources[number];
        let bits = if instruction.memory.pairs {
            u64::read_pair(registers, constants, source)
        } else {
            u64::read(registers, constants, source)
        };
        bits[lane]
    });
    let truth = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
    let product = Product {
        form,
        instruction,
        constants,
        shared,
        descriptors: words.map(Descriptor::new),
        adds: truth >> lane & 1 != 0,
        warp: registers.special[special::FIRST_THREAD] / LANES as u32 % GROUP_WARPS,
        mask,
    };
    match compute::<VERSION>(&product, registers) {
        Ok(()) => {
            let reads = ProductReads { form: instruction.immediate, descriptors: words, warp: product.warp };
            Effect::Product { passes: form.passes(), ends_group: form.ends_group, reads }
        }
        Err(OutOfReach { address }) => {
            let cause = FaultCause::IllegalAddress {
                address: address.into(),
                bytes: CHUNK as u32,
                access: FaultAccess::Load,
                space: FaultSpace::Shared,
            };
            Effect::Fault { lane: lane as u8, cause }
        }
    }
}

/// Version 1 only for processors with vector features, as of all steps.
#[inline(always)]
fn compute<const VERSION: usize>(product: &Product, registers: &mut Registers) -> Result<(), OutOfReach> {
    #[cfg(target_arch = "x86_64")]
    if VERSION == 1 {
        // SAFETY: version 1 is only reached through `step_vectorised`, which is handed out after a check of the processor's features.
        return unsafe { compute_with_features(product, registers) };
    }
    compute_portable(product, registers)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
fn compute_with_features(product: &Product, registers: &mut Registers) -> Result<(), OutOfReach> {
    product.compute::<1>(registers)
}

#[inline(never)]
fn compute_portable(product: &Product, registers: &mut Registers) -> Result<(), OutOfReach> {
    product.compute::<0>(registers)
}

impl Product<'_> {
    #[inline(always)]
    fn compute<const VERSION: usize>(&self, registers: &mut Registers) -> Result<(), OutOfReach> {
        match (self.form.a, self.form.selector) {
            (Element::F16 | Element::Bf16, None) => self.floats::<VERSION, 16, 16>(registers),
            (Element::F16 | Element::Bf16, Some(_)) => self.floats::<VERSION, 16, 32>(registers),
            (Element::Tf32, None) => self.floats::<VERSION, 8, 8>(registers),
            (Element::Tf32, Some(_)) => self.floats::<VERSION, 8, 16>(registers),
            (Element::E4m3 | Element::E5m2, None) => self.floats::<VERSION, 32, 32>(registers),
            (Element::E4m3 | Element::E5m2, Some(_)) => self.floats::<VERSION, MOST_STORED, MOST_DEPTH>(registers),
            (Element::Bits, _) => self.bits(registers),
            (_, None) => self.integers::<VERSION, 32, 32>(registers),
            (_, Some(_)) => self.integers::<VERSION, MOST_STORED, MOST_DEPTH>(registers),
        }
    }

    /// The columns that a block has, from its first on.
    fn block(&self, first: u32) -> usize {
        (self.form.columns - first).min(BLOCK as u32) as usize
    }

    /// Of rows of A, `STORED` elements are stored.
    #[inline(always)]
    fn floats<const VERSION: usize, const STORED: usize, const DEPTH: usize>(
        &self,
        registers: &mut Registers,
    ) -> Result<(), OutOfReach> {
        let GroupForm { a, b, d, columns, negates, selector, .. } = self.form;
        let adder = Adder::new(Generation::Hopper, a);
        let sums = Sums::<DEPTH> {
            elements: [a, b],
            adder: if selector.is_some() { adder.of_sparse() } else { adder },
            result: if d == Element::F16 { Format::F16 } else { Format::F32 },
        };
        let mut left = [[0; DEPTH]; WARP_ROWS];
        self.gather_whole_rows::<STORED, DEPTH>(registers, &mut left)?;
        if negates[0] {
            left.as_flattened_mut().iter_mut().for_each(|bits| *bits ^= 1 << (a.bits() - 1));
        }
        let (mut rows, mut factors) = (Factors::ZERO, Factors::ZERO);
        rows.fill(format_of(a, 0).0, unread_bits(a), &left);
        let mut right = [[[0; WIDTH]; DEPTH]; BLOCK / WIDTH];
        for first in (0..columns).step_by(BLOCK) {
            let count = self.block(first);
            self.gather_columns(first, count, &mut right)?;
            if negates[1] {
                let bits = right.as_flattened_mut().as_flattened_mut();
                bits.iter_mut().for_each(|bits| *bits ^= 1 << (b.bits() - 1));
            }
            let mut block = Block::ZERO;
            self.read_block(registers, first, count, &mut block);
            for (group, right) in right.iter().enumerate().take(count.div_ceil(WIDTH)) {
                factors.fill(format_of(b, 0).0, unread_bits(b), right);
                let products = Products { adder: sums.adder, rows: &rows, columns: &factors, result: sums.result };
                for (row, left) in left.iter().enumerate() {
                    let block = &mut block.0[row][group];
                    if !products.add::<VERSION>(row, block) {
                        sums.one_by_one(left, right, block);
                    }
                }
            }
            self.write_block(registers, first, count, &block);
        }
        Ok(())
    }

    #[inline(always)]
    fn integers<const VERSION: usize, const STORED: usize, const DEPTH: usize>(
        &self,
        registers: &mut Registers,
    ) -> Result<(), OutOfReach> {
        let GroupForm { a, b, columns, saturates, .. } = self.form;
        let mut left = [[0; DEPTH]; WARP_ROWS];
        self.gather_whole_rows::<STORED, DEPTH>(registers, &mut left)?;
        let mut rows = [[0.0; DEPTH]; WARP_ROWS];
        to_numbers(a, &left, &mut rows);
        let mut right = [[[0; WIDTH]; DEPTH]; BLOCK / WIDTH];
        let mut factors = [[0.0; WIDTH]; DEPTH];
        for first in (0..columns).step_by(BLOCK) {
            let count = self.block(first);
            self.gather_columns(first, count, &mut right)?;
            let mut block = Block::ZERO;
            self.read_block(registers, first, count, &mut block);
            for (group, right) in right.iter().enumerate().take(count.div_ceil(WIDTH)) {
                to_numbers(b, right, &mut factors);
                for (left, block) in rows.iter().zip(&mut block.0) {
                    let totals = dot_products::<VERSION, _>(left, &factors);
                    for (sum, total) in block[group].iter_mut().zip(totals) {
                        *sum = added(*sum, total, saturates);
                    }
                }
            }
            self.write_block(registers, first, count, &block);
        }
        Ok(())
    }

    /// Conjunctions of single bits, of which those that are set are counted.
    #[inline(always)]
    fn bits(&self, registers: &mut Registers) -> Result<(), OutOfReach> {
        const WORDS: usize = 8;
        let mut left = [[0; WORDS]; WARP_ROWS];
        self.gather_rows(registers, &mut left)?;
        let mut right = [[[0; WIDTH]; WORDS]; BLOCK / WIDTH];
        for first in (0..self.form.columns).step_by(BLOCK) {
            let count = self.block(first);
            self.gather_columns(first, count, &mut right)?;
            let mut block = Block::ZERO;
            self.read_block(registers, first, count, &mut block);
            for (group, right) in right.iter().enumerate().take(count.div_ceil(WIDTH)) {
                for (left, block) in left.iter().zip(&mut block.0) {
                    let mut totals = [0u32; WIDTH];
                    for (left, right) in left.iter().zip(right) {
                        for (total, right) in totals.iter_mut().zip(right) {
                            *total += (left & right).count_ones();
                        }
                    }
                    for (sum, total) in block[group].iter_mut().zip(totals) {
                        *sum = added(*sum, total as i32, false);
                    }
                }
            }
            self.write_block(registers, first, count, &block);
        }
        Ok(())
    }
}

/// How products of floats are added up.
struct Sums<const DEPTH: usize> {
    /// Of A and B.
    elements: [Element; 2],
    adder: Adder,
    result: Format,
}

impl<const DEPTH: usize> Sums<DEPTH> {
    /// Sums that there is no fast way for.
    #[inline(never)]
    fn one_by_one(&self, left: &[u32; DEPTH], right: &[[u32; WIDTH]; DEPTH], sums: &mut [u32; WIDTH]) {
        let [a, b] = self.elements;
        let fractions = format_of(a, 0).0.fraction + format_of(b, 0).0.fraction;
        let left = left.map(|bits| Factor::new(a, bits));
        for (column, sum) in sums.iter_mut().enumerate() {
            let right = right.map(|bits| Factor::new(b, bits[column]));
            *sum = multiply_add(self.adder, &left, &right, fractions, *sum, self.result);
        }
    }
}

/// Bytes as numbers.
#[inline(always)]
fn to_numbers<const COUNT: usize, const LINES: usize>(
    element: Element,
    bits: &[[u32; COUNT]; LINES],
    numbers: &mut [[f32; COUNT]; LINES],
) {
    // The sign bit of signed ones counts as much as all others and one, downwards.
    let sign = if element == Element::S8 { 0x80 } else { 0 };
    for (number, bits) in numbers.as_flattened_mut().iter_mut().zip(bits.as_flattened()) {
        *number = ((bits ^ sign) as i32 - sign as i32) as f32;
    }
}

/// A sum of integers, which wraps around or is limited.
#[inline(always)]
fn added(sum: u32, total: i32, saturates: bool) -> u32 {
    let sum = sum as i32;
    (if saturates { sum.saturating_add(total) } else { sum.wrapping_add(total) }) as u32
}
