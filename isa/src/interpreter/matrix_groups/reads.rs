//! What products read of shared memory: for the check of hazards.

use super::descriptor::{CHUNK, Descriptor};
use crate::matrix_group::{DEPTH_BYTES, GroupForm, WARP_ROWS};

/// What a warp's part of a group's product reads of shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProductReads {
    /// A packed [`GroupForm`].
    pub(super) form: u32,
    /// Those of A and B.
    pub(super) descriptors: [u64; 2],
    /// The warp's number in its group.
    pub(super) warp: u32,
}

impl ProductReads {
    /// Bytes of a chunk of a matrix.
    pub const CHUNK: u32 = CHUNK as u32;

    /// Calls back with the offsets of its chunks in the CTA's shared memory. A chunk may come more than once.
    pub fn for_each_chunk(&self, mut each: impl FnMut(u32)) {
        let form = GroupForm::unpack(self.form);
        let [a, b] = self.descriptors.map(Descriptor::new);
        let chunk_elements = Self::CHUNK * 8 / form.a.bits();
        let rows = WARP_ROWS as u32;
        if !form.a_in_registers && form.transposes[0] {
            let chunks = rows / chunk_elements;
            (0..form.stored())
                .flat_map(|depth| (0..chunks).map(move |chunk| (self.warp * chunks + chunk, depth)))
                .for_each(|(chunk, depth)| each(a.of_depth(chunk, depth)));
        } else if !form.a_in_registers {
            (0..rows)
                .flat_map(|row| (0..DEPTH_BYTES / Self::CHUNK).map(move |chunk| (self.warp * rows + row, chunk)))
                .for_each(|(row, chunk)| each(a.of_row(row, chunk)));
        }
        if form.transposes[1] {
            (0..form.columns / chunk_elements)
                .flat_map(|chunk| (0..form.depth()).map(move |depth| (chunk, depth)))
                .for_each(|(chunk, depth)| each(b.of_depth(chunk, depth)));
        } else {
            let chunks = DEPTH_BYTES / Self::CHUNK * (form.depth() / form.stored());
            (0..form.columns)
                .flat_map(|column| (0..chunks).map(move |chunk| (column, chunk)))
                .for_each(|(column, chunk)| each(b.of_row(column, chunk)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Element;
    use std::collections::BTreeSet;

    fn offsets(form: &GroupForm, descriptors: [u64; 2], warp: u32) -> BTreeSet<u32> {
        let mut offsets = BTreeSet::new();
        ProductReads { form: form.pack(), descriptors, warp }.for_each_chunk(|offset| {
            offsets.insert(offset);
        });
        offsets
    }

    /// Chunks of rows beside each other: 128 bytes between the two of a row, 256 between groups of eight rows.
    const fn plain(start: u64) -> u64 {
        start >> 4 | 8 << 16 | 16 << 32
    }

    #[test]
    fn a_warp_reads_its_rows_and_all_columns() {
        let half = GroupForm { a: Element::F16, b: Element::F16, d: Element::F32, columns: 24, ..GroupForm::unpack(0) };
        let descriptors = [plain(0x1000), plain(0x4000)];
        let of = |start: u32, count: u32| (0..count).map(move |chunk| start + 16 * chunk);
        let expected: BTreeSet<u32> = of(0x1000 + 2 * 512, 32).chain(of(0x4000, 48)).collect();
        assert_eq!(offsets(&half, descriptors, 2), expected);
        // Across K, eight rows or columns of a depth lie in a chunk: 8 depths follow each other, then the next 8 by the leading offset.
        let across = GroupForm { transposes: [true, true], ..half };
        assert_eq!(offsets(&across, descriptors, 2), expected);
        let registers = GroupForm { a_in_registers: true, ..half };
        assert_eq!(offsets(&registers, descriptors, 2), of(0x4000, 48).collect());
        // With a sparse A, columns have four chunks; here those of one are where the next group's begin.
        let sparse = GroupForm { selector: Some(0), a_in_registers: true, ..half };
        assert_eq!(offsets(&sparse, descriptors, 2), of(0x4000, 64).collect());
    }
}
