//! `wgmma`: products of small numbers, which are exact, for all shapes and types; the layouts of matrices in shared memory against the
//! canonical layouts; sums that are rounded against `mma`.

use crate::machine::{Execution, load};
use crate::matrix::{bits_of, dot_with, encode, get, put};
use crate::programs::machine_code::Random;
use balar_isa::interpreter::{portable_step_function, step_function};
use std::fmt::Write;

/// Bytes of a thread's memory: two descriptors, whether the accumulator counts, metadata of a sparse A, A from byte 32 on, the accumulator and the result from
/// byte 64 on.
const RECORD: usize = 64 + 4 * 128;
const THREADS: usize = 128;
/// Where the pattern of B begins in shared memory; that of A begins at the front.
const B_BASE: usize = 1 << 15;

/// A layout of a matrix in shared memory.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Columns of A, and rows of B, lie together.
    is_transposed: bool,
    /// Chunks of 16 bytes in the pattern of the swizzle: 1 without it, 2, 4 or 8.
    width: usize,
    leading: usize,
    stride: usize,
    /// The part along K, of 32 bytes, of a K-major matrix.
    part: usize,
    /// Where the pattern begins, beyond the usual place.
    shift: usize,
}

/// An offset by a shape and its strides, from the inside out, as layouts are written: `(T, 8, m):(1, T, LBO)`.
fn offset(modes: &[(usize, usize)], mut index: usize) -> usize {
    let mut offset = 0;
    for (size, stride) in modes {
        offset += index % size * stride;
        index /= size;
    }
    assert_eq!(index, 0, "the index is in the layout");
    offset
}

impl Layout {
    const fn new(is_transposed: bool, width: usize, [leading, stride]: [usize; 2]) -> Layout {
        Layout { is_transposed, width, leading, stride, part: 0, shift: 0 }
    }

    /// The byte of an element in shared memory, by the canonical layouts in elements; T of them have 16 bytes.
    fn place(&self, base: usize, bytes: usize, along: usize, depth: usize) -> usize {
        const MANY: usize = 1 << 20;
        let (t, w) = (16 / bytes, self.width);
        let (leading, stride) = (self.leading / bytes, self.stride / bytes);
        let elements = match (self.is_transposed, w) {
            (false, 1) => offset(&[(8, t), (MANY, stride)], along) + offset(&[(t, 1), (4, leading)], depth),
            (false, _) => {
                let depth = depth + self.part * 2 * t;
                offset(&[(8, w * t), (MANY, stride)], along) + offset(&[(t, 1), (w, t)], depth)
            }
            (true, 1) => offset(&[(t, 1), (1, t), (MANY, stride)], along) + offset(&[(8, t), (MANY, leading)], depth),
            (true, _) => {
                offset(&[(t, 1), (w, t), (MANY, leading)], along) + offset(&[(8, w * t), (MANY, stride)], depth)
            }
        };
        // Swizzle<B, 4, 3>, with as many bits B as the width has. It is one of addresses; a pattern that begins elsewhere has its own.
        let bits = w - 1;
        let byte = elements * bytes;
        let swizzled = |address: usize| address ^ (address >> 7 & bits) << 4;
        if self.shift == 0 { swizzled(base + byte) } else { base + self.shift + swizzled(byte) }
    }

    fn descriptor(&self, base: usize) -> u64 {
        let start = base + self.shift + 32 * self.part;
        let mode = match self.width {
            1 => 0,
            8 => 1,
            4 => 2,
            _ => 3u64,
        };
        let field = |bytes: usize| (bytes as u64 >> 4) & 0x3fff;
        let offset = if self.shift == 0 { 0 } else { (base + self.shift) as u64 >> 7 & 7 };
        field(start) | field(self.leading) << 16 | field(self.stride) << 32 | offset << 49 | mode << 62
    }
}

/// The layout that is used where layouts are not what is tested.
const PLAIN: Layout = Layout::new(false, 1, [128, 256]);
/// The same of a B that is multiplied by a sparse A: its columns take 64 bytes.
const DEEP: Layout = Layout::new(false, 1, [128, 512]);
const SPARSE: Case = Case { layouts: [PLAIN, DEEP], selector: Some(0), ..CASE };

/// A product.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Of D, A and B.
    types: [&'static str; 3],
    columns: usize,
    layouts: [Layout; 2],
    a_in_registers: bool,
    negates: [bool; 2],
    adds: bool,
    saturates: bool,
    /// Of a sparse A: which lanes have its metadata.
    selector: Option<usize>,
}

const CASE: Case = Case {
    types: ["f32", "f16", "f16"],
    columns: 8,
    layouts: [PLAIN; 2],
    a_in_registers: false,
    negates: [false; 2],
    adds: true,
    saturates: false,
    selector: None,
};

impl Case {
    /// Elements of a row of A that are stored.
    fn stored(&self) -> usize {
        256 / bits_of(self.types[1])
    }

    fn depth(&self) -> usize {
        self.stored() * if self.selector.is_some() { 2 } else { 1 }
    }

    /// The column of a stored element of A: of each four columns two are stored, of tf32 one of two.
    fn column_of(&self, row: usize, place: usize) -> usize {
        const PAIRS: [[usize; 2]; 6] = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
        match () {
            () if self.selector.is_none() => place,
            () if self.types[1] == "tf32" => 2 * place + (row + row / 8 + 3 * place) % 5 % 2,
            () => place / 2 * 4 + PAIRS[(row + row / 8 + 5 * (place / 2)) % 7 % 6][place % 2],
        }
    }

    /// The metadata of a thread: CUTLASS' layouts `ELayout_64x16`, `ELayout_64x32` and `ELayout_64x64`, which say the rows and columns that
    /// each thread's bits are about.
    fn metadata(&self, thread: usize) -> u32 {
        let (pair, other_pair, row, warp) = (thread % 2, thread / 2 % 2, thread / 4 % 8, thread / 32);
        let bits = bits_of(self.types[1]);
        if self.selector.is_none() || bits > 8 && Some(other_pair) != self.selector {
            return 0x5a5a_5a5a;
        }
        // Rows, and the first of the columns that four bits are about.
        let nibble = |number: usize| match bits {
            32 => (row + 8 * (number / 4), 8 * pair + number % 4 * 2),
            16 => (row + 8 * (number / 4), 16 * pair + number % 4 * 4),
            _ => (row + 8 * pair, 32 * other_pair + number * 4),
        };
        (0..8).fold(0, |word, number| {
            let (row, column) = nibble(number);
            let index = |place: usize| (self.column_of(16 * warp + row, place) - column) as u32;
            let bits = match bits {
                32 => [0b0100, 0b1110][index(column / 2) as usize],
                _ => index(column / 2) | index(column / 2 + 1) << 2,
            };
            word | bits << (4 * number)
        })
    }

    fn result_registers(&self) -> usize {
        self.columns * bits_of(self.types[0]) / 64
    }

    fn text(&self) -> String {
        let [d, a, b] = self.types;
        let count = self.result_registers();
        let is_float = !matches!(a, "s8" | "u8" | "b1");
        let names: Vec<String> = (0..count).map(|number| format!("%d{number}")).collect();
        let vector = names.join(", ");
        let left = if self.a_in_registers { "{%e0, %e1, %e2, %e3}" } else { "%a" };
        let metadata = self.selector.map_or_else(String::new, |selector| format!(", %m, {selector}"));
        let mut operands = format!("{{{vector}}}, {left}, %b{metadata}, %q");
        if is_float {
            for negates in self.negates {
                operands += if negates { ", -1" } else { ", 1" };
            }
        }
        if matches!(a, "f16" | "bf16") {
            let first = usize::from(self.a_in_registers);
            for layout in &self.layouts[first..] {
                let _ = write!(operands, ", {}", u32::from(layout.is_transposed));
            }
        }
        let further = match () {
            () if a == "b1" => ".and.popc",
            () if self.saturates => ".satfinite",
            () => "",
        };
        let mut body = String::new();
        for (number, name) in names.iter().enumerate() {
            let _ = writeln!(body, "ld.global.b32 {name}, [%o+{}];", 64 + 4 * number);
        }
        let _ = writeln!(
            body,
            "wgmma.fence.sync.aligned;\nwgmma.mma_async{}.sync.aligned.m64n{}k{}.{d}.{a}.{b}{further} {operands};\n\
             wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;",
            if self.selector.is_some() { ".sp" } else { "" },
            self.columns,
            self.depth(),
        );
        for (number, name) in names.iter().enumerate() {
            let _ = writeln!(body, "st.global.b32 [%o+{}], {name};", 64 + 4 * number);
        }
        format!(
            ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n\
             .reg .b32 %d<{count}>; .reg .b32 %e<4>; .reg .b32 %t<2>; .reg .b32 %m; .reg .b64 %a; .reg .b64 %b; .reg .b64 %o; .reg .pred %q;\n\
             mov.u32 %t0, %tid.x; ld.param.u64 %o, [p]; mad.wide.u32 %o, %t0, {RECORD}, %o;\n\
             ld.global.u64 %a, [%o]; ld.global.u64 %b, [%o+8]; ld.global.u32 %t1, [%o+16]; setp.ne.b32 %q, %t1, 0;\n\
             ld.global.u32 %m, [%o+20];\n\
             ld.global.v4.b32 {{%e0, %e1, %e2, %e3}}, [%o+32];\n{body}ret;\n}}\n"
        )
    }

    /// Row and column of element `i` of a thread's part of D: PTX ISA, figure of the layout of the accumulator of `wgmma`.
    fn result_position(thread: usize, i: usize) -> (usize, usize) {
        let (warp, lane) = (thread / 32, thread % 32);
        (16 * warp + lane / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + lane % 4 * 2 + i % 2)
    }

    /// The same of A where it is in registers.
    fn factor_position(&self, thread: usize, i: usize) -> (usize, usize) {
        let (warp, lane, each) = (thread / 32, thread % 32, 32 / bits_of(self.types[1]));
        let (register, part) = (i / each, i % each);
        let row = 16 * warp + lane / 4 + 8 * (register & 1);
        (row, (register >> 1) * 4 * each + lane % 4 * each + part)
    }

    /// D as bits, by rows, for matrices of bits, of which A has its stored elements.
    fn run(&self, a: &[Vec<u64>], b: &[Vec<u64>], c: &[Vec<u64>]) -> Vec<Vec<u64>> {
        let [d_bits, a_bits, b_bits] = self.types.map(bits_of);
        let mut shared = vec![0; 1 << 16];
        for (base, bits, layout, matrix) in [(0, a_bits, self.layouts[0], a), (B_BASE, b_bits, self.layouts[1], b)] {
            for (along, line) in matrix.iter().enumerate() {
                for (depth, value) in line.iter().enumerate() {
                    // Single bits lie in bytes, the lowest first.
                    let (bytes, bit) = if bits == 1 { (1, depth % 8) } else { (bits / 8, 0) };
                    let depth = if bits == 1 { depth / 8 } else { depth };
                    let place = layout.place(base, bytes, along, depth);
                    put(&mut shared, 8 * place + bit, bits, *value);
                }
            }
        }
        let mut memory = vec![0; THREADS * RECORD];
        let mut word = |place: usize, bits: usize, value: u64| put(&mut memory, place, bits, value);
        for thread in 0..THREADS {
            let first = 8 * thread * RECORD;
            word(first, 64, self.layouts[0].descriptor(0));
            word(first + 64, 64, self.layouts[1].descriptor(B_BASE));
            word(first + 128, 32, u64::from(self.adds));
            word(first + 160, 32, self.metadata(thread).into());
            for i in 0..128 / a_bits {
                let (row, depth) = self.factor_position(thread, i);
                word(first + 256 + i * a_bits, a_bits, a[row][depth]);
            }
            for i in 0..self.columns / 2 {
                let (row, column) = Case::result_position(thread, i);
                word(first + 512 + i * d_bits, d_bits, c[row][column]);
            }
        }
        let program = load(&self.text());
        let mut results = [step_function(), portable_step_function()].map(|step| {
            let mut memory = memory.clone();
            for warp in 0..4 {
                let mut execution = Execution::of_warp(&program, &[0; 8], (THREADS as u32, warp), &memory, &[]);
                execution.machine.shared.copy_from_slice(&shared);
                while execution.advance(step, &program) {}
                memory = execution.machine.global;
            }
            memory
        });
        assert!(results[0] == results[1], "the step functions agree: {self:?}");
        let memory = std::mem::take(&mut results[0]);
        let mut result = vec![vec![0; self.columns]; 64];
        for thread in 0..THREADS {
            for i in 0..self.columns / 2 {
                let (row, column) = Case::result_position(thread, i);
                result[row][column] = get(&memory, 8 * (thread * RECORD + 64) + i * d_bits, d_bits);
            }
        }
        result
    }

    /// Compares exact products of small numbers.
    fn check(&self) {
        let [d, a, b] = self.types;
        let depth = self.depth();
        let small = |name: &str, row: usize, column: usize, seed: usize| {
            let mixed = (row * 7 + column * 13 + seed * 5 + row * column + row / 5) % 11;
            match name {
                "b1" => (mixed % 2) as f64,
                "u8" => 2.0 * mixed as f64,
                "e5m2" => [0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 4.0, 0.5, -0.5, 6.0][mixed],
                "s8" => 3.0 * (mixed as f64 - 5.0),
                _ => (mixed as f64 - 5.0) / 2.0,
            }
        };
        let left = |row: usize, depth: usize| small(a, row, depth, 1);
        let right = |column: usize, depth: usize| small(b, column, depth, 2);
        let start = |row: usize, column: usize| ((row * 3 + column * 5) % 17) as f64 - 8.0;
        let matrix = |rows: usize, columns: usize, value: &dyn Fn(usize, usize) -> u64| -> Vec<Vec<u64>> {
            (0..rows).map(|row| (0..columns).map(|column| value(row, column)).collect()).collect()
        };
        let result = self.run(
            &matrix(64, self.stored(), &|row, place| encode(a, left(row, place))),
            &matrix(self.columns, depth, &|column, depth| encode(b, right(column, depth))),
            &matrix(64, self.columns, &|row, column| encode(d, start(row, column))),
        );
        let sign = if self.negates[0] == self.negates[1] { 1.0 } else { -1.0 };
        for (row, line) in result.iter().enumerate() {
            for (column, found) in line.iter().enumerate() {
                let products =
                    (0..self.stored()).map(|place| left(row, place) * right(column, self.column_of(row, place)));
                let product: f64 = products.sum();
                let expected = sign * product + if self.adds { start(row, column) } else { 0.0 };
                assert_eq!(*found, encode(d, expected), "{self:?}: row {row} column {column}, {expected} expected");
            }
        }
    }
}

/// All types of D, A and B.
const TYPES: [[&str; 3]; 17] = [
    ["f32", "f16", "f16"],
    ["f16", "f16", "f16"],
    ["f32", "bf16", "bf16"],
    ["f32", "tf32", "tf32"],
    ["f32", "e4m3", "e4m3"],
    ["f32", "e4m3", "e5m2"],
    ["f32", "e5m2", "e4m3"],
    ["f32", "e5m2", "e5m2"],
    ["f16", "e4m3", "e4m3"],
    ["f16", "e4m3", "e5m2"],
    ["f16", "e5m2", "e4m3"],
    ["f16", "e5m2", "e5m2"],
    ["s32", "s8", "s8"],
    ["s32", "s8", "u8"],
    ["s32", "u8", "s8"],
    ["s32", "u8", "u8"],
    ["s32", "b1", "b1"],
];

#[test]
fn products_of_every_shape_and_type() {
    for types in TYPES {
        let is_integer = matches!(types[1], "s8" | "u8" | "b1");
        for columns in (8..=256).step_by(8) {
            if is_integer && columns % 16 != 0 && columns != 8 && columns != 24 {
                continue;
            }
            Case { types, columns, a_in_registers: columns % 3 == 0, adds: columns % 5 != 0, ..CASE }.check();
        }
        Case { types, columns: 24, a_in_registers: true, saturates: types[1] == "u8", ..CASE }.check();
    }
}

#[test]
fn products_of_sparse_matrices() {
    for types in TYPES.into_iter().filter(|types| types[1] != "b1") {
        let selectors = if bits_of(types[1]) > 8 { 0..2 } else { 0..1 };
        for selector in selectors.map(Some) {
            for columns in [8, 24, 48, 64, 80, 128, 176, 256] {
                Case { types, columns, selector, a_in_registers: columns % 3 == 0, adds: columns % 5 != 0, ..SPARSE }
                    .check();
            }
            Case { types, columns: 24, selector, saturates: types[1] == "u8", ..SPARSE }.check();
            // Columns of B take 64 bytes.
            let wide = [Layout::new(false, 4, [16, 512]), Layout::new(false, 8, [16, 1024])];
            Case { types, columns: 32, selector, layouts: wide, ..SPARSE }.check();
            Case { types, columns: 32, selector, layouts: [wide[1], wide[0]], ..SPARSE }.check();
        }
    }
    let layouts = [Layout::new(true, 8, [2048, 1024]), Layout::new(true, 4, [4096, 512])];
    for (types, negates) in [(TYPES[0], [true, false]), (TYPES[1], [false; 2]), (TYPES[2], [false, true])] {
        Case { types, columns: 64, selector: Some(1), layouts, negates, ..SPARSE }.check();
    }
}

/// Elements that are multiplied at once are those that are stored: as many of a sparse A as of another one.
#[test]
fn sums_of_sparse_matrices_are_rounded_as_those_of_dense_ones() {
    let mut random = Random::new(12);
    for (types, depth) in [(TYPES[0], 16), (TYPES[1], 16), (TYPES[2], 16), (TYPES[3], 8), (TYPES[4], 32)] {
        let [d, a, b] = types;
        let mut number = |name: &str| {
            let (width, fraction, middle) = match name {
                "f16" => (16, 10, 15),
                "bf16" => (16, 7, 127),
                "e4m3" => (8, 3, 7),
                _ => (32, 23, 127),
            };
            let bits = u64::from(random.next());
            let near = middle + u64::from(random.next() % 7) - 3;
            (bits & 1) << (width - 1) | near << fraction | bits >> 1 & ((1 << fraction) - 1)
        };
        let mut matrix = |rows: usize, columns: usize, name: &str| -> Vec<Vec<u64>> {
            (0..rows).map(|_| (0..columns).map(|_| number(name)).collect()).collect()
        };
        let (left, start) = (matrix(64, depth, a), matrix(64, 8, d));
        // The columns that meet a row's stored elements differ from row to row: only those of the row itself are those of the dense matrix.
        let dense = matrix(8, depth, b);
        let case = Case { types, columns: 8, ..SPARSE };
        let expected = Case { types, columns: 8, ..CASE }.run(&left, &dense, &start);
        for row in [0, 7, 13, 30, 63] {
            let whole: Vec<Vec<u64>> = dense
                .iter()
                .map(|column| {
                    let mut whole = vec![0; 2 * depth];
                    for (place, element) in column.iter().enumerate() {
                        whole[case.column_of(row, place)] = *element;
                    }
                    whole
                })
                .collect();
            assert_eq!(case.run(&left, &whole, &start)[row], expected[row], "{types:?} row {row}");
        }
    }
}

#[test]
fn matrices_along_k_in_every_swizzle() {
    // Without a swizzle, the two parts of a row beside each other, or all rows first.
    let mut layouts = vec![PLAIN, Layout::new(false, 1, [128 * 40, 128])];
    for width in [2, 4, 8] {
        for stride in [128 * width, 256 * width] {
            for part in 0..width / 2 {
                layouts.push(Layout { part, ..Layout::new(false, width, [16, stride]) });
            }
        }
    }
    for types in [TYPES[0], TYPES[3], TYPES[5], TYPES[12], TYPES[16]] {
        for (number, layout) in layouts.iter().enumerate() {
            let other = layouts[(number * 5 + 3) % layouts.len()];
            Case { types, columns: 48, layouts: [*layout, other], ..CASE }.check();
            Case { types, columns: 80, layouts: [other, *layout], a_in_registers: true, ..CASE }.check();
        }
    }
}

#[test]
fn matrices_of_16_bits_across_k_in_every_swizzle() {
    let mut layouts = vec![PLAIN, Layout::new(true, 1, [128 * 40, 128]), Layout::new(true, 1, [128, 256])];
    for width in [2, 4, 8] {
        layouts.push(Layout::new(true, width, [256 * width, 128 * width]));
        layouts.push(Layout::new(true, width, [128 * width, 2048 * 4]));
        layouts.push(Layout::new(false, width, [16, 128 * width]));
    }
    for types in [TYPES[0], TYPES[1], TYPES[2]] {
        for (number, layout) in layouts.iter().enumerate() {
            let other = layouts[(number * 5 + 3) % layouts.len()];
            Case { types, columns: 64, layouts: [*layout, other], ..CASE }.check();
            Case { types, columns: 72, layouts: [other, *layout], adds: false, ..CASE }.check();
        }
    }
}

#[test]
fn patterns_that_begin_elsewhere() {
    for (width, shift) in [(8, 128), (8, 640), (4, 128), (4, 384), (2, 128)] {
        let layout = Layout { shift, ..Layout::new(false, width, [16, 128 * width]) };
        Case { columns: 32, layouts: [layout, layout], ..CASE }.check();
        let layout = Layout { shift, ..Layout::new(true, width, [256 * width, 128 * width]) };
        Case { columns: 32, layouts: [layout, layout], ..CASE }.check();
    }
}

#[test]
fn negated_matrices() {
    for types in [TYPES[0], TYPES[1], TYPES[2], TYPES[3], TYPES[6]] {
        for negates in [[true, false], [false, true], [true, true]] {
            Case { types, columns: 16, negates, ..CASE }.check();
            Case { types, columns: 16, negates, a_in_registers: true, adds: false, ..CASE }.check();
        }
    }
}

#[test]
fn integers_are_limited_or_wrap_around() {
    for (saturates, start, expected) in [
        (true, i32::MAX - 5, i32::MAX),
        (false, i32::MAX - 5, i32::MIN + 26),
        (true, i32::MIN, i32::MIN + 32),
        (true, i32::MAX - 32, i32::MAX),
    ] {
        let case = Case { types: TYPES[15], columns: 8, saturates, ..CASE };
        let result =
            case.run(&vec![vec![1; 32]; 64], &vec![vec![1; 32]; 8], &vec![vec![u64::from(start as u32); 8]; 64]);
        assert_eq!(result, vec![vec![u64::from(expected as u32); 8]; 64]);
    }
    let case = Case { types: TYPES[13], columns: 8, saturates: true, ..CASE };
    let result = case.run(&vec![vec![0x80; 32]; 64], &vec![vec![0xff; 32]; 8], &vec![vec![0x8000_0010; 8]; 64]);
    assert_eq!(result[0][0], 0x8000_0000, "-128 times 255, 32 times");
}

/// Bits of all kinds, as `mma` multiplies them: a column of the result is a product of `mma` of the same depth.
#[test]
fn sums_are_rounded_as_those_of_mma() {
    let mut random = Random::new(11);
    // `mma` of 8-bit floats is another matter: compilers make products of halves of it.
    let shapes = [(TYPES[0], 16), (TYPES[1], 16), (TYPES[2], 16), (TYPES[3], 8)];
    for (types, depth) in shapes {
        let [d, a, b] = types;
        for round in 0..6 {
            let mut number = |name: &str| {
                let bits = u64::from(random.next());
                let (width, fraction, exponent, middle) = match name {
                    "f16" => (16, 10, 5, 15),
                    "bf16" => (16, 7, 8, 127),
                    _ => (32, 23, 8, 127),
                };
                match (round, bits >> 28) {
                    (0, _) | (1, 0) => bits & (u64::MAX >> (64 - width)),
                    _ => {
                        let near = middle + u64::from(random.next() % 9).saturating_sub(4);
                        let sign = (bits & 1) << (width - 1);
                        sign | (near % (1 << exponent)) << fraction | bits >> 1 & ((1 << fraction) - 1)
                    }
                }
            };
            let mut matrix = |rows: usize, columns: usize, name: &str| -> Vec<Vec<u64>> {
                (0..rows).map(|_| (0..columns).map(|_| number(name)).collect()).collect()
            };
            let (left, right, start) = (matrix(64, depth, a), matrix(24, depth, b), matrix(64, 24, d));
            let result = Case { types, columns: 24, ..CASE }.run(&left, &right, &start);
            for (row, column) in [(0, 0), (9, 3), (17, 8), (38, 15), (63, 23), (50, 20)] {
                let words = format!("row.col.{d}.{a}.{b}.{d}");
                let (left, right) = (&left[row], &right[column]);
                let shape = [16, 8, depth];
                let expected = dot_with("sm_90", &words, shape, [d, a, b, d], left, right, start[row][column]);
                assert_eq!(result[row][column], expected, "{types:?} round {round}, row {row}, column {column}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "shared load")]
fn a_matrix_beyond_shared_memory_faults() {
    let layout = Layout::new(false, 1, [128, 1 << 17]);
    let case = Case { columns: 16, ..CASE };
    let program = load(&case.text());
    let mut memory = vec![0; THREADS * RECORD];
    for thread in 0..THREADS {
        put(&mut memory, 8 * thread * RECORD, 64, PLAIN.descriptor(0));
        put(&mut memory, 8 * thread * RECORD + 64, 64, layout.descriptor(B_BASE));
    }
    let mut execution = Execution::of_warp(&program, &[0; 8], (THREADS as u32, 1), &memory, &[]);
    while execution.advance(step_function(), &program) {}
}

/// What is said about an instruction in code for a target; nothing where it is accepted.
fn problem(target: &str, instruction: &str) -> String {
    let text = format!(
        ".version 8.3\n.target {target}\n.address_size 64\n.visible .entry k() {{\n\
         .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<2>;\n{instruction};\nret;\n}}\n"
    );
    match balar_isa::module::PtxModule::parse("test.ptx", &text) {
        Ok(module) => module.program("k", &[]).err().map(|errors| errors.to_string()).unwrap_or_default(),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn what_does_not_exist_is_refused() {
    let good = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r0, %r1, %r2, %r3}, %rd0, %rd1, %p0, 1, 1, 0, 0";
    assert_eq!(problem("sm_90a", good), "");
    for (instruction, expected) in [
        (good.replace("f32.f16.f16", "f32.f32.f16"), "not supported"),
        (good.replace("k16", "k8"), "not supported"),
        (good.replace("m64n8", "m64n12"), "has no modifier"),
        (good.replace("f32.f16.f16", "f16.bf16.bf16"), "not supported"),
        (good.replace("1, 1, 0, 0", "1, 2, 0, 0"), "a factor is 1 or -1"),
        (good.replace("1, 1, 0, 0", "1, 1, 0, 2"), "0 or 1 is expected"),
        (good.replace("1, 1, 0, 0", "1, 1"), "has 8 operands"),
        (good.replace("%rd0", "%r4"), "a descriptor has 64 bits"),
        (good.replace(", %r3}", "}"), "4 registers are expected"),
        (good.replace(".f32", ".satfinite.f32"), "not supported"),
        (good.replace(".sync.aligned", ""), "not supported"),
        (
            "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%r0, %r1, %r2, %r3}, %rd0, %rd1, %r4, 0, %p0, 1, 1, 0, 0"
                .to_owned(),
            "",
        ),
        (
            "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%r0, %r1, %r2, %r3}, %rd0, %rd1, %r4, 2, %p0, 1, 1, 0, 0"
                .to_owned(),
            "given by a number below 2",
        ),
        (
            "wgmma.mma_async.sp.sync.aligned.m64n8k16.f32.f16.f16 {%r0, %r1, %r2, %r3}, %rd0, %rd1, %r4, 0, %p0, 1, 1, 0, 0"
                .to_owned(),
            "not supported",
        ),
        (
            "wgmma.mma_async.sp.sync.aligned.m64n8k512.s32.b1.b1.and.popc {%r0, %r1, %r2, %r3}, %rd0, %rd1, %r4, 0, %p0".to_owned(),
            "has no modifier",
        ),
        ("wgmma.wait_group.sync.aligned %r0".to_owned(), "a number of groups"),
    ] {
        let found = problem("sm_90a", &instruction);
        assert!(found.contains(expected), "{instruction}: {found:?}, {expected:?} expected");
    }
    for target in ["sm_90", "sm_100a"] {
        assert!(problem(target, good).contains("`wgmma` needs `.target sm_90a`"));
    }
}
