//! Where the stored elements of a sparse matrix belong.

use super::Element;
use crate::lanes::LANES;

/// Sixteen rows of a sparse A, half of whose elements are zero and not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SparseRows {
    pub element: Element,
    /// Columns, those with zeros too.
    pub depth: u32,
}

impl SparseRows {
    /// Lanes of four neighbours whose registers tell where the elements belong: four bits for each four columns, of which two are stored;
    /// for each two of tf32, for each eight, with four stored, of 4 bits.
    pub const fn metadata_lanes(self) -> u32 {
        let (rows, nibbles) = (2, self.depth / self.nibble_columns());
        rows * nibbles / 8
    }

    /// How many groups of so many lanes there are: a selector is below.
    pub const fn selectors(self) -> u32 {
        4 / self.metadata_lanes()
    }

    /// Columns that four bits of metadata are about.
    pub const fn nibble_columns(self) -> u32 {
        match self.element.bits() {
            4 => 8,
            32 => 2,
            _ => 4,
        }
    }

    /// The column of a stored element of a row, from the metadata of the warp's lanes and the selector, which says which lanes of four
    /// neighbours have it (PTX ISA, "Sparse matrix storage" and the figures of metadata for each shape; those of `wgmma` are the same).
    ///
    /// Lane 4 r and those behind it have the metadata of rows r and r + 8. Types of 16 and 32 bits: the lower half of a word is of row r,
    /// the upper half of row r + 8, and the next lane has the next columns. Types of 8 and 4 bits: a word is of one row, and the next lane
    /// has the other row. Own finding: the code that ptxas makes of sparse products that sm_90 does not have, out of those that it has, moves
    /// metadata between these layouts.
    #[inline(always)]
    pub fn column(self, metadata: &[u32; LANES], selector: u32, row: usize, place: usize) -> usize {
        let bits = self.element.bits();
        let columns = self.nibble_columns() as usize;
        let (nibble, within) = (place / (columns / 2), place % (columns / 2));
        let (lane, shift) = match bits {
            16.. => (nibble / 4, 16 * (row / 8) + 4 * (nibble % 4)),
            _ => (2 * (nibble / 8) + row / 8, 4 * (nibble % 8)),
        };
        let lane = 4 * (row % 8) + (selector * self.metadata_lanes()) as usize + lane;
        let word = metadata[lane % LANES] >> shift;
        // Indices have two bits. Those of tf32 count halves, those of 4 bits pairs.
        let index = match bits {
            4 => 2 * (word >> (2 * (within / 2)) & 3) + within as u32 % 2,
            32 => word >> 1 & 1,
            _ => word >> (2 * within) & 3,
        };
        nibble * columns + index as usize
    }
}
