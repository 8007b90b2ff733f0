//! Products of matrices by groups of four warps (`wgmma`, from Hopper on): their sizes and types, and which lane has which element.
//!
//! D has 64 rows, of which each warp has 16. B, and A unless registers have it, are in shared memory, as descriptors say.

use crate::lanes::LANES;
use crate::matrix::{Element, SparseRows};

/// Rows of the result that one warp computes.
pub(crate) const WARP_ROWS: usize = 16;
/// Warps of a group.
pub(crate) const GROUP_WARPS: u32 = 4;
/// Most columns of the result.
pub(crate) const MOST_COLUMNS: u32 = 256;
/// Bytes of a row of A, of a sparse one those that are stored. A column of B has as many, or twice as many with a sparse A.
pub(crate) const DEPTH_BYTES: u32 = 32;
/// Most stored elements of a row of A.
pub(crate) const MOST_STORED: usize = 32;
/// Most elements of a column of B.
pub(crate) const MOST_DEPTH: usize = 2 * MOST_STORED;

/// A form of a group's product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupForm {
    pub a: Element,
    pub b: Element,
    /// Of the accumulator and of the result.
    pub d: Element,
    /// Columns of B and D: a multiple of 8 up to [`MOST_COLUMNS`].
    pub columns: u32,
    /// A is in registers, in the layout of `mma`; otherwise a descriptor says where it is.
    pub a_in_registers: bool,
    /// A and B are negated.
    pub negates: [bool; 2],
    /// The elements of a column of A, or of a row of B, lie together in shared memory (MN-major), not those of a row of A or a column of
    /// B (K-major).
    pub transposes: [bool; 2],
    /// Sums of integers are limited, and do not wrap around.
    pub saturates: bool,
    /// Machine code: the product is the last of its group.
    pub ends_group: bool,
    /// A is sparse, and which lanes of four neighbours have its metadata; see [`SparseRows`].
    pub selector: Option<u8>,
}

impl GroupForm {
    /// All of it in an instruction's immediate.
    pub fn pack(&self) -> u32 {
        let flags = [
            self.a_in_registers,
            self.negates[0],
            self.negates[1],
            self.transposes[0],
            self.transposes[1],
            self.saturates,
            self.ends_group,
        ];
        let flags = flags.into_iter().rev().fold(0, |word, flag| word << 1 | u32::from(flag));
        self.a as u32
            | (self.b as u32) << 4
            | (self.d as u32) << 8
            | ((self.columns / 8).saturating_sub(1) % 32) << 12
            | flags << 17
            | self.selector.map_or(0, |selector| 1 << 24 | u32::from(selector) << 25)
    }

    /// Reads a word that [`GroupForm::pack`] made.
    pub fn unpack(word: u32) -> GroupForm {
        let element = |first: u32| Element::ALL[(word >> first & 15) as usize % Element::ALL.len()];
        let flag = |number: u32| word >> (17 + number) & 1 != 0;
        GroupForm {
            a: element(0),
            b: element(4),
            d: element(8),
            columns: ((word >> 12 & 31) + 1) * 8,
            a_in_registers: flag(0),
            negates: [flag(1), flag(2)],
            transposes: [flag(3), flag(4)],
            saturates: flag(5),
            ends_group: flag(6),
            selector: flag(7).then_some((word >> 25 & 3) as u8),
        }
    }

    /// Elements of a row of A that are stored.
    pub fn stored(&self) -> u32 {
        DEPTH_BYTES * 8 / if self.a == Element::Bits { 1 } else { self.a.bits() }
    }

    /// Elements of a column of B.
    pub fn depth(&self) -> u32 {
        if self.selector.is_some() { 2 * self.stored() } else { self.stored() }
    }

    /// The warp's rows of a sparse A.
    pub fn sparse_rows(&self) -> SparseRows {
        SparseRows { element: self.a, depth: self.depth() }
    }

    /// Whether as many lanes of four neighbours as the metadata take are there from the selector on (PTX ISA, "Sparsity selector").
    pub fn has_metadata(&self) -> bool {
        self.selector.is_none_or(|selector| u32::from(selector) < self.sparse_rows().selectors())
    }

    /// Registers of a lane's part of the accumulator and of the result.
    pub fn result_registers(&self) -> usize {
        (self.columns / (2 * self.d.per_register())) as usize
    }

    /// Registers of a lane's part of A, where registers have it.
    pub fn factor_registers(&self) -> usize {
        if self.a_in_registers { 4 } else { 0 }
    }

    /// Row, of the warp's 16, and place in the row of an element of A that is in registers.
    pub fn factor_position(&self, lane: usize, register: usize, part: usize) -> (usize, usize) {
        debug_assert!(lane < LANES);
        let each = self.a.per_register() as usize;
        (lane / 4 + 8 * (register % 2), register / 2 * 4 * each + lane % 4 * each + part)
    }

    /// Cycles that the product takes a sub-core's tensor cores, one with a sparse A as one of its stored elements: an estimate. The dense peak of H100 (NVIDIA H100 whitepaper) is 512
    /// multiply-adds of halves a cycle and sub-core, half as many of tf32 and twice as many of bytes, so that 16 rows of the warp take half
    /// a cycle a column, whatever the type. Products of single bits are taken to go at the rate of their bytes.
    pub fn passes(&self) -> u8 {
        (self.columns / 2).clamp(1, 255) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_fits_the_immediate() {
        for number in 0..128u32 {
            let flag = |bit: u32| number >> bit & 1 != 0;
            let form = GroupForm {
                a: Element::E4m3,
                b: Element::E5m2,
                d: Element::F16,
                columns: 8 + number % 32 * 8,
                a_in_registers: flag(0),
                negates: [flag(1), flag(2)],
                transposes: [flag(3), flag(4)],
                saturates: flag(5),
                ends_group: flag(6),
                selector: (number % 3 == 0).then_some((number % 4) as u8),
            };
            assert_eq!(GroupForm::unpack(form.pack()), form);
        }
    }

    #[test]
    fn each_lane_has_its_own_elements_of_a() {
        for a in [Element::F16, Element::Tf32, Element::S8, Element::Bits] {
            let form = GroupForm { a, a_in_registers: true, ..GroupForm::unpack(0) };
            let depth = (DEPTH_BYTES * 8 / a.bits()) as usize;
            let mut seen = vec![false; WARP_ROWS * depth];
            for lane in 0..LANES {
                for register in 0..4 {
                    for part in 0..a.per_register() as usize {
                        let (row, place) = form.factor_position(lane, register, part);
                        assert!(!std::mem::replace(&mut seen[row * depth + place], true), "{a:?}");
                    }
                }
            }
            assert!(seen.iter().all(|is_seen| *is_seen), "{a:?}");
        }
    }
}
