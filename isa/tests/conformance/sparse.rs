//! Products with a sparse A against exact products of small integers. Where elements and metadata lie is written down here once more, from the
//! sections of the PTX ISA about each shape.

use crate::machine;
use crate::matrix::{RECORD, bits_of, encode, factor, get, put, register_program, shape_name};

/// The pairs of places of four, in order.
const PAIRS: [[usize; 2]; 6] = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];

/// A shape, with elements of one width.
struct Shape {
    depth: usize,
    /// Bits of an element.
    bits: usize,
}

impl Shape {
    /// Columns of a chunk of A, of which half are stored.
    fn chunk(&self) -> usize {
        match self.bits {
            4 => 8,
            32 => 2,
            _ => 4,
        }
    }

    /// Lanes of four that have metadata.
    fn lanes(&self) -> usize {
        2 * self.depth / self.chunk() / 8
    }

    /// The columns of a chunk's stored elements, and its four bits of metadata, from any number.
    fn chosen(&self, number: usize) -> (Vec<usize>, u32) {
        let [first, second] = PAIRS[number % 6];
        let nibble = (first | second << 2) as u32;
        match self.bits {
            // Two pairs of four.
            4 => (vec![2 * first, 2 * first + 1, 2 * second, 2 * second + 1], nibble),
            // One of two.
            32 => (vec![number % 2], if number.is_multiple_of(2) { 0b0100 } else { 0b1110 }),
            _ => (vec![first, second], nibble),
        }
    }

    /// The lane, and the first bit of its register, that have the metadata of a chunk.
    fn metadata_place(&self, row: usize, chunk: usize, selector: usize) -> (usize, usize) {
        let (group, upper) = (row % 8, row / 8);
        let (lane, bit) = match self.bits {
            // A word has four chunks of both rows.
            16 | 32 => (chunk / 4, 16 * upper + 4 * (chunk % 4)),
            // A word has eight chunks of one row.
            _ => (chunk / 8 * 2 + upper, 4 * (chunk % 8)),
        };
        (4 * group + self.lanes() * selector + lane, bit)
    }

    /// Row and column of a stored element.
    fn place_of_a(&self, lane: usize, i: usize) -> (usize, usize) {
        let each = 32 / self.bits;
        let register = i / each;
        let column = lane % 4 * each + i % each + register / 2 * 4 * each;
        (lane / 4 + register % 2 * 8, column)
    }

    fn place_of_b(&self, lane: usize, i: usize) -> (usize, usize) {
        let each = 32 / self.bits;
        (i / each * 4 * each + lane % 4 * each + i % each, lane / 4)
    }
}

/// Runs `mma.sp` on matrices that follow from a seed, and compares D.
fn check(target: &str, words: &str, depth: usize, types: [&str; 4], selector: usize, seed: usize) {
    let [d, a, b, c] = types;
    let shape = Shape { depth, bits: bits_of(a) };
    let (rows, columns) = (16, 8);
    let mut sparse = vec![vec![0.0; depth]; rows];
    let mut stored = vec![Vec::new(); rows];
    let mut memory = vec![0; 32 * RECORD];
    for row in 0..rows {
        for chunk in 0..depth / shape.chunk() {
            let (places, nibble) = shape.chosen(row * 5 + chunk * 7 + seed + row * chunk);
            for place in places {
                let value = factor(a, row, chunk + place, seed);
                sparse[row][chunk * shape.chunk() + place] = value;
                stored[row].push(value);
            }
            let (lane, bit) = shape.metadata_place(row, chunk, selector);
            put(&mut memory, 8 * (lane * RECORD + 248) + bit, 4, nibble.into());
        }
    }
    let by = |row: usize, column: usize| factor(b, row, column, seed + 1);
    let added = |row: usize, column: usize| (row * 3 + column * 5 + seed) as f64 % 17.0 - 8.0;
    let counts = [rows * columns, rows * depth / 2, depth * columns, rows * columns].map(|elements| elements / 32);
    for lane in 0..32 {
        let mut set = |first: usize, name: &str, i: usize, value: f64| {
            let (bits, each) = (bits_of(name), 32 / bits_of(name));
            let place = 8 * (lane * RECORD + 8 * (first + i / each)) + i % each * bits;
            put(&mut memory, place, bits, encode(name, value));
        };
        for i in 0..counts[1] {
            let (row, column) = shape.place_of_a(lane, i);
            set(0, a, i, stored[row][column]);
        }
        for i in 0..counts[2] {
            let (row, column) = shape.place_of_b(lane, i);
            set(8, b, i, by(row, column));
        }
        for i in 0..counts[3] {
            let (row, column) = accumulated(lane, i);
            set(16, c, i, added(row, column));
        }
    }
    // Lanes that the selector does not name may have anything.
    for lane in (0..32).filter(|lane| lane % 4 / shape.lanes() != selector) {
        put(&mut memory, 8 * (lane * RECORD + 248), 32, 0x1b1b_1b1b);
    }
    let registers = [0, 1, 2, 3].map(|part| (counts[part] * bits_of(types[part])).div_ceil(32));
    let instruction = format!("mma.{words}.{}.row.col.{d}.{a}.{b}.{c}", shape_name([rows, columns, depth]));
    let program = register_program(target, &instruction, registers, [false; 4], &format!(", %e, {selector}"));
    let memory = machine::run(&program, &[0; 8], 32, &memory);
    let (bits, each) = (bits_of(d), 32 / bits_of(d));
    for lane in 0..32 {
        for i in 0..counts[0] {
            let (row, column) = accumulated(lane, i);
            let expected =
                (0..depth).map(|place| sparse[row][place] * by(place, column)).sum::<f64>() + added(row, column);
            let place = 8 * (lane * RECORD + 8 * (24 + i / each)) + i % each * bits;
            let found = get(&memory, place, bits);
            assert_eq!(found, encode(d, expected), "{instruction} {selector}: row {row} column {column}, {expected}");
        }
    }
}

/// Row and column of an element of C or D.
fn accumulated(lane: usize, i: usize) -> (usize, usize) {
    (lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2)
}

/// A target, types of factors, types of results, depths.
type Forms = (&'static str, &'static [&'static str], &'static [&'static str], [usize; 2]);

#[test]
fn sparse_mma_of_every_shape_and_type() {
    let forms: [Forms; 7] = [
        ("sm_80", &["f16"], &["f16", "f32"], [16, 32]),
        ("sm_80", &["bf16"], &["f32"], [16, 32]),
        ("sm_80", &["tf32"], &["f32"], [8, 16]),
        ("sm_80", &["s8", "u8"], &["s32"], [32, 64]),
        ("sm_80", &["s4", "u4"], &["s32"], [64, 128]),
        ("sm_89", &["e4m3", "e5m2"], &["f32"], [64, 64]),
        ("sm_90", &["e4m3", "e5m2"], &["f16", "f32"], [64, 64]),
    ];
    for (target, factors, results, depths) in forms {
        for depth in depths {
            for (a, b) in factors.iter().flat_map(|a| factors.iter().map(move |b| (*a, *b))) {
                for d in results {
                    let lanes = Shape { depth, bits: bits_of(a) }.lanes();
                    for selector in 0..4 / lanes {
                        let words = ["sp.sync.aligned", "sp::ordered_metadata.sync.aligned"][selector % 2];
                        for seed in 0..3 {
                            check(target, words, depth, [d, a, b, d], selector, seed);
                        }
                    }
                }
            }
        }
    }
}
