//! Matrix instructions: shapes, element types, and which lane holds which element.
//!
//! The layouts of `mma` are those of the PTX ISA (matrix fragments for each shape). Those of `wmma` are opaque there; here a lane's
//! part of A or B is what lies together in memory, so that it takes few wide loads (V100 does the same), and the accumulators have
//! the layout of `mma`, tile by tile, whatever their order in memory.

mod sparse;

use crate::lanes::LANES;
pub(crate) use sparse::SparseRows;

/// The type of a matrix element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Element {
    F16,
    Bf16,
    Tf32,
    F64,
    S8,
    U8,
    S4,
    U4,
    /// 32 single bits: a matrix of k bits has k / 32 of these.
    Bits,
    E4m3,
    E5m2,
    F32,
    S32,
}

impl Element {
    pub const ALL: [Element; 13] = [
        Element::F16,
        Element::Bf16,
        Element::Tf32,
        Element::F64,
        Element::S8,
        Element::U8,
        Element::S4,
        Element::U4,
        Element::Bits,
        Element::E4m3,
        Element::E5m2,
        Element::F32,
        Element::S32,
    ];

    /// Bits of an element in a register.
    pub const fn bits(self) -> u32 {
        match self {
            Element::S4 | Element::U4 => 4,
            Element::S8 | Element::U8 | Element::E4m3 | Element::E5m2 => 8,
            Element::F16 | Element::Bf16 => 16,
            Element::Tf32 | Element::Bits | Element::F32 | Element::S32 => 32,
            Element::F64 => 64,
        }
    }

    /// Elements of a register: one of the 64-bit registers, several of the 32-bit ones.
    pub const fn per_register(self) -> u32 {
        if self.bits() < 32 { 32 / self.bits() } else { 1 }
    }

    /// Whether there are products of a sparse A of this type in this shape (PTX ISA, table of shapes of `mma.sp`).
    pub fn has_sparse_products(self, [m, n, k]: [u32; 3]) -> bool {
        let depths: &[u32] = match self {
            Element::F16 | Element::Bf16 => &[16, 32],
            Element::Tf32 => &[8, 16],
            Element::S8 | Element::U8 => &[32, 64],
            Element::S4 | Element::U4 => &[64, 128],
            Element::E4m3 | Element::E5m2 => &[64],
            Element::F64 | Element::Bits | Element::F32 | Element::S32 => &[],
        };
        [m, n] == [16, 8] && depths.contains(&k)
    }

    /// Whether the products are integers.
    pub const fn is_integer(self) -> bool {
        matches!(self, Element::S8 | Element::U8 | Element::S4 | Element::U4 | Element::Bits)
    }
}

/// One of the matrices of D = A * B + C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    A,
    B,
    /// C and D, which are laid out alike.
    Accumulator,
}

/// Whose layouts a form has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Wmma,
    Mma,
    /// `mma.m8n8k4` of half precision: each of the four quad pairs (lanes 4 q to 4 q + 3 and 16 more) has matrices of its own.
    QuadPairs,
    /// `mma.sp`: as `mma`, but half of A's elements are zero, and only the others are stored; see [`SparseRows`].
    Sparse,
}

/// The generation of tensor cores whose sums are computed; see `interpreter::tensor_sum`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Generation {
    Volta,
    Turing,
    Ampere,
    Ada,
    Hopper,
}

impl Generation {
    const ALL: [Generation; 5] =
        [Generation::Volta, Generation::Turing, Generation::Ampere, Generation::Ada, Generation::Hopper];

    /// The generation of a compute capability: 70 for `sm_70`.
    pub fn of(capability: u32) -> Generation {
        match capability {
            0..75 => Generation::Volta,
            75..80 => Generation::Turing,
            80..89 => Generation::Ampere,
            89 => Generation::Ada,
            _ => Generation::Hopper,
        }
    }
}

/// A form of `mma` or `wmma.mma`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatrixForm {
    pub family: Family,
    pub a: Element,
    pub b: Element,
    pub c: Element,
    pub d: Element,
    /// Rows of A, C and D: 8, 16 or 32.
    pub m: u32,
    /// Columns of B, C and D: 8, 16 or 32.
    pub n: u32,
    /// Columns of A and rows of B, in elements: 4 to 128.
    pub k: u32,
    /// Whether A is stored column by column.
    pub a_by_column: bool,
    pub b_by_column: bool,
    /// `.satfinite`
    pub saturates: bool,
    /// For single bits: `.and` in place of `.xor`.
    pub conjunction: bool,
    pub generation: Generation,
}

impl MatrixForm {
    /// All of it in an instruction's immediate.
    pub fn pack(&self) -> u32 {
        let logarithm = |size: u32| size.trailing_zeros();
        let family = match self.family {
            Family::Wmma => 0,
            Family::Mma => 1,
            Family::QuadPairs => 2,
            Family::Sparse => 3,
        };
        self.a as u32
            | (self.b as u32) << 4
            | (self.c as u32) << 8
            | (self.d as u32) << 12
            | (logarithm(self.m) - 3) << 16
            | (logarithm(self.n) - 3) << 18
            | (logarithm(self.k) - 2) << 20
            | u32::from(self.a_by_column) << 23
            | u32::from(self.b_by_column) << 24
            | family << 25
            | u32::from(self.saturates) << 27
            | u32::from(self.conjunction) << 28
            | (self.generation as u32) << 29
    }

    /// Reads a word that [`MatrixForm::pack`] made.
    pub fn unpack(word: u32) -> MatrixForm {
        let bits = |first: u32, count: u32| (word >> first) & ((1 << count) - 1);
        let element = |first: u32| Element::ALL[bits(first, 4) as usize % Element::ALL.len()];
        MatrixForm {
            family: [Family::Wmma, Family::Mma, Family::QuadPairs, Family::Sparse][bits(25, 2) as usize % 4],
            a: element(0),
            b: element(4),
            c: element(8),
            d: element(12),
            m: 8 << bits(16, 2),
            n: 8 << bits(18, 2),
            k: 4 << bits(20, 3),
            a_by_column: bits(23, 1) != 0,
            b_by_column: bits(24, 1) != 0,
            saturates: bits(27, 1) != 0,
            conjunction: bits(28, 1) != 0,
            generation: Generation::ALL[bits(29, 3) as usize % Generation::ALL.len()],
        }
    }

    /// Rows and columns of a matrix.
    pub fn size(&self, part: Part) -> (u32, u32) {
        match part {
            Part::A => (self.m, self.k),
            Part::B => (self.k, self.n),
            Part::Accumulator => (self.m, self.n),
        }
    }

    /// Rows and columns of the elements that registers hold.
    pub fn stored_size(&self, part: Part) -> (u32, u32) {
        match (self.family, part) {
            (Family::Sparse, Part::A) => (self.m, self.k / 2),
            _ => self.size(part),
        }
    }

    /// Whether products of 8-bit floats are those of halves: sm_90 has no others for a warp by itself.
    pub fn multiplies_bytes_as_halves(&self) -> bool {
        self.generation == Generation::Hopper && matches!(self.a, Element::E4m3 | Element::E5m2)
    }

    /// Elements of a matrix that a lane holds.
    pub fn elements(&self, part: Part) -> u32 {
        let (rows, columns) = self.stored_size(part);
        match self.family {
            // Each element of A and B is in two lanes or more where the matrix has fewer than these.
            Family::Wmma if part != Part::Accumulator && self.a == Element::F16 => 16,
            // A quad pair has 8 lanes.
            Family::QuadPairs => rows * columns / 8,
            _ => rows * columns / LANES as u32,
        }
    }

    /// Row and column of a lane's element, for a sparse A among those that are stored. Lanes of quad pairs count from 0 to 7 in their pair.
    pub fn position(&self, part: Part, lane: u32, index: u32) -> (u32, u32) {
        match (self.family, part) {
            (Family::QuadPairs, _) => self.quad_pair_position(part, lane, index),
            (_, Part::Accumulator) => accumulator_position(self.m, lane, index),
            (Family::Wmma, _) => {
                let by_column = if part == Part::A { self.a_by_column } else { self.b_by_column };
                let (rows, columns) = self.size(part);
                let (line, place) = self.line_and_place(part, by_column, lane, index);
                debug_assert!(line < if by_column { columns } else { rows });
                if by_column { (place, line) } else { (line, place) }
            }
            (Family::Mma | Family::Sparse, Part::A) => {
                let each = self.a.per_register();
                let (register, place) = (index / each, index % each);
                let (group, thread) = (lane / 4, lane % 4);
                let tiles = self.m / 8;
                (group + 8 * (register % tiles), register / tiles * 4 * each + thread * each + place)
            }
            (Family::Mma | Family::Sparse, Part::B) => {
                let each = self.b.per_register();
                let (register, place) = (index / each, index % each);
                (register * 4 * each + lane % 4 * each + place, lane / 4)
            }
        }
    }

    /// For A and B of `wmma`: the line of an element (row or column, whichever lies together in memory), and its place there.
    pub fn line_and_place(&self, part: Part, by_column: bool, lane: u32, index: u32) -> (u32, u32) {
        let (rows, columns) = self.size(part);
        let length = if by_column { rows } else { columns };
        let number = (lane * self.elements(part) + index) % (rows * columns);
        (number / length, number % length)
    }

    /// The rows of a sparse A.
    pub fn sparse_rows(&self) -> SparseRows {
        SparseRows { element: self.a, depth: self.k }
    }

    /// The column of each stored element of a sparse A, row by row.
    pub fn sparse_columns(&self, metadata: &[u32; LANES], selector: u32) -> Vec<u32> {
        let (rows, stored) = self.stored_size(Part::A);
        let places = (0..rows).flat_map(|row| (0..stored).map(move |place| (row, place)));
        let sparse = self.sparse_rows();
        places.map(|(row, place)| sparse.column(metadata, selector, row as usize, place as usize) as u32).collect()
    }

    fn quad_pair_position(&self, part: Part, lane: u32, index: u32) -> (u32, u32) {
        let (quad, high) = (lane % 4, lane / 4 * 4);
        match part {
            Part::A if self.a_by_column => (index + high, quad),
            Part::A => (quad + high, index),
            Part::B if self.b_by_column => (index, quad + high),
            Part::B => (quad, index + high),
            Part::Accumulator if self.accumulates_halves() => (quad + high, index),
            Part::Accumulator => ((lane & 1) + (index & 2) + high, (index & 4) + (lane & 2) + (index & 1)),
        }
    }

    /// Whether accumulators have the layout of `.f16`; C and D of different types are told apart by [`MatrixForm::of_accumulator`].
    fn accumulates_halves(&self) -> bool {
        self.d == Element::F16
    }

    /// The form whose accumulators are all of the type of C: the layout of C where that of D is another.
    pub fn of_accumulator(&self, element: Element) -> MatrixForm {
        MatrixForm { c: element, d: element, ..*self }
    }
}

/// Pairs of neighbours in a row; tiles of 8 by 8 go down first.
pub(crate) fn accumulator_position(rows: u32, lane: u32, index: u32) -> (u32, u32) {
    let (pair, tiles) = (index / 2, rows / 8);
    (8 * (pair % tiles) + lane / 4, 8 * (pair / tiles) + lane % 4 * 2 + index % 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(family: Family, element: Element, sizes: [u32; 3], columns: [bool; 2]) -> MatrixForm {
        let accumulator = match element {
            Element::F64 => Element::F64,
            element if element.is_integer() => Element::S32,
            _ => Element::F32,
        };
        MatrixForm {
            family,
            a: element,
            b: element,
            c: accumulator,
            d: accumulator,
            m: sizes[0],
            n: sizes[1],
            k: sizes[2],
            a_by_column: columns[0],
            b_by_column: columns[1],
            saturates: false,
            conjunction: true,
            generation: Generation::Ada,
        }
    }

    /// Types and shapes with a sparse A.
    const SPARSE: [(Element, &[[u32; 3]]); 5] = [
        (Element::Bf16, &[[16, 8, 16], [16, 8, 32]]),
        (Element::Tf32, &[[16, 8, 8], [16, 8, 16]]),
        (Element::S8, &[[16, 8, 32], [16, 8, 64]]),
        (Element::U4, &[[16, 8, 64], [16, 8, 128]]),
        (Element::E5m2, &[[16, 8, 64]]),
    ];

    /// Every form that the decoder accepts.
    fn forms() -> Vec<MatrixForm> {
        use Element::*;
        let mut forms = Vec::new();
        for columns in [[false, false], [false, true], [true, false], [true, true]] {
            for element in [F16, Bf16, S8, U8] {
                for sizes in [[16, 16, 16], [8, 32, 16], [32, 8, 16]] {
                    forms.push(form(Family::Wmma, element, sizes, columns));
                }
            }
            forms.push(form(Family::Wmma, Tf32, [16, 16, 8], columns));
            forms.push(form(Family::Wmma, F64, [8, 8, 4], columns));
            forms.push(form(Family::QuadPairs, F16, [8, 8, 4], columns));
            forms.push(form(Family::QuadPairs, F16, [8, 8, 4], columns).of_accumulator(F16));
        }
        for (element, sizes) in [
            (F16, [[16, 8, 8], [16, 8, 16]].as_slice()),
            (Tf32, &[[16, 8, 4], [16, 8, 8]]),
            (F64, &[[8, 8, 4], [16, 8, 4], [16, 8, 8], [16, 8, 16]]),
            (S8, &[[8, 8, 16], [16, 8, 16], [16, 8, 32]]),
            (U4, &[[8, 8, 32], [16, 8, 32], [16, 8, 64]]),
            (Bits, &[[8, 8, 4], [16, 8, 4], [16, 8, 8]]),
            (E4m3, &[[16, 8, 16], [16, 8, 32]]),
        ] {
            forms.extend(sizes.iter().map(|sizes| form(Family::Mma, element, *sizes, [false, true])));
        }
        for (element, sizes) in SPARSE {
            forms.extend(sizes.iter().map(|sizes| form(Family::Sparse, element, *sizes, [false, true])));
        }
        forms
    }

    #[test]
    fn a_form_fits_the_immediate() {
        for form in forms() {
            assert_eq!(MatrixForm::unpack(form.pack()), form);
        }
    }

    #[test]
    fn every_element_is_in_equally_many_lanes() {
        for form in forms() {
            for part in [Part::A, Part::B, Part::Accumulator] {
                let (rows, columns) = form.stored_size(part);
                let lanes = if form.family == Family::QuadPairs { 8 } else { LANES as u32 };
                let mut holders = vec![0; (rows * columns) as usize];
                for lane in 0..lanes {
                    for index in 0..form.elements(part) {
                        let (row, column) = form.position(part, lane, index);
                        assert!(row < rows && column < columns, "{form:?} {part:?}");
                        holders[(row * columns + column) as usize] += 1;
                    }
                }
                assert!(holders[0] > 0 && holders.iter().all(|count| *count == holders[0]), "{form:?} {part:?}");
            }
        }
    }

    /// With the indices 1 and 3 everywhere, stored elements are those of odd columns; every bit of metadata is of one chunk of one row, and
    /// the lanes that the selector does not name have none.
    #[test]
    fn metadata_names_columns() {
        for (element, sizes) in SPARSE {
            for form in sizes.iter().map(|sizes| form(Family::Sparse, element, *sizes, [false, true])) {
                let lanes = form.sparse_rows().metadata_lanes();
                let per_chunk = form.sparse_rows().nibble_columns() / 2;
                for selector in 0..4 / lanes {
                    let all = |nibbles: u32| {
                        std::array::from_fn(|lane| if lane as u32 % 4 / lanes == selector { nibbles } else { !nibbles })
                    };
                    let columns = form.sparse_columns(&all(0xdddd_dddd), selector);
                    assert_eq!(columns.len() as u32, form.m * form.k / 2, "{form:?}");
                    let expected = |place: u32| match element {
                        Element::U4 => place / 4 * 8 + [2, 3, 6, 7][place as usize % 4],
                        // 0b1101 is no index of tf32; its second bit says the first.
                        Element::Tf32 => 2 * place,
                        _ => 2 * place + 1,
                    };
                    let are_as_expected =
                        columns.iter().enumerate().all(|(at, column)| *column == expected(at as u32 % (form.k / 2)));
                    assert!(are_as_expected, "{form:?} {columns:?}");
                    let mut changed = vec![0; columns.len()];
                    let base = form.sparse_columns(&[0x4444_4444; LANES], selector);
                    for lane in 0..LANES {
                        for nibble in 0..8 {
                            let mut metadata = [0x4444_4444; LANES];
                            metadata[lane] ^= 0xa << (4 * nibble);
                            let other = form.sparse_columns(&metadata, selector);
                            let differing: Vec<usize> = (0..base.len()).filter(|at| base[*at] != other[*at]).collect();
                            let is_read = lane as u32 % 4 / lanes == selector;
                            assert_eq!(differing.len() as u32, if is_read { per_chunk } else { 0 }, "{form:?} {lane}");
                            differing.into_iter().for_each(|at| changed[at] += 1);
                        }
                    }
                    assert!(changed.iter().all(|count| *count == 1), "{form:?}");
                }
            }
        }
    }
}
