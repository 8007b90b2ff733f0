//! Matrix instructions against exact products of small integers, and against published findings about the tensor cores' sums.

use crate::machine;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Bits of a small number (a multiple of 1/2) in a type's format.
pub fn encode(name: &str, value: f64) -> u64 {
    let small = |exponent_bias: i32, fraction: u32, width: u32| {
        if value == 0.0 {
            return 0;
        }
        let bits = value.abs().to_bits();
        let exponent = (bits >> 52) as i32 - 1023 + exponent_bias;
        let fraction_bits = (bits & ((1 << 52) - 1)) >> (52 - fraction);
        u64::from(value < 0.0) << (width - 1) | (exponent as u64) << fraction | fraction_bits
    };
    match name {
        "f16" => small(15, 10, 16),
        "bf16" => small(127, 7, 16),
        "f32" | "tf32" => u64::from((value as f32).to_bits()),
        "f64" => value.to_bits(),
        "e4m3" => small(7, 3, 8),
        "e5m2" => small(15, 2, 8),
        "s4" | "u4" => value as i64 as u64 & 0xf,
        "s8" | "u8" => value as i64 as u64 & 0xff,
        "b1" => u64::from(value != 0.0),
        _ => value as i64 as u64 & 0xffff_ffff,
    }
}

pub fn bits_of(name: &str) -> usize {
    match name {
        "b1" => 1,
        "s4" | "u4" => 4,
        "s8" | "u8" | "e4m3" | "e5m2" => 8,
        "f16" | "bf16" => 16,
        "f64" => 64,
        _ => 32,
    }
}

/// Numbers that every type of factors holds, different from place to place.
pub fn factor(name: &str, row: usize, column: usize, seed: usize) -> f64 {
    let mixed = (row * 7 + column * 13 + seed * 5 + row * column) % 11;
    match name {
        "b1" => (mixed % 2) as f64,
        "u4" | "u8" => mixed as f64,
        "e5m2" => [0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 4.0, 0.5, -0.5, 6.0][mixed],
        name if name.starts_with('s') => mixed as f64 - 5.0,
        _ => (mixed as f64 - 5.0) / 2.0,
    }
}

/// A, B, C as numbers, and D = A * B + C.
struct Case {
    a: Vec<Vec<f64>>,
    b: Vec<Vec<f64>>,
    c: Vec<Vec<f64>>,
    d: Vec<Vec<f64>>,
}

fn case(a_type: &str, b_type: &str, [m, n, k]: [usize; 3], seed: usize, exclusive: bool) -> Case {
    let matrix = |rows: usize, columns: usize, value: &dyn Fn(usize, usize) -> f64| -> Vec<Vec<f64>> {
        (0..rows).map(|row| (0..columns).map(|column| value(row, column)).collect()).collect()
    };
    let a = matrix(m, k, &|row, column| factor(a_type, row, column, seed));
    let b = matrix(k, n, &|row, column| factor(b_type, row, column, seed + 1));
    let c = matrix(m, n, &|row, column| (row * 3 + column * 5 + seed) as f64 % 17.0 - 8.0);
    let d = matrix(m, n, &|row, column| {
        let product = |place: usize| match exclusive {
            true => (a[row][place] - b[place][column]).abs(),
            false => a[row][place] * b[place][column],
        };
        (0..k).map(product).sum::<f64>() + c[row][column]
    });
    Case { a, b, c, d }
}

/// Writes a value's bits at a place counted in bits.
pub fn put(memory: &mut [u8], place: usize, bits: usize, value: u64) {
    for bit in 0..bits {
        if (value >> bit) & 1 != 0 {
            memory[(place + bit) / 8] |= 1 << ((place + bit) % 8);
        }
    }
}

pub fn get(memory: &[u8], place: usize, bits: usize) -> u64 {
    (0..bits).fold(0, |value, bit| value | u64::from((memory[(place + bit) / 8] >> ((place + bit) % 8)) & 1) << bit)
}

pub fn registers(prefix: &str, count: usize) -> String {
    let names: Vec<String> = (0..count).map(|number| format!("%{prefix}{number}")).collect();
    format!("{{{}}}", names.join(", "))
}

/// Lane records of 32 places of 8 bytes: A from place 0, B from 8, C from 16, D from 24.
pub const RECORD: usize = 256;

/// A program that loads registers, runs one instruction and stores the results. `counts` and `wide` are of D, A, B, C; `further` are operands
/// behind them, among which `%e` may be, from the last place.
pub fn register_program(
    target: &str,
    instruction: &str,
    counts: [usize; 4],
    wide: [bool; 4],
    further: &str,
) -> balar_isa::program::Program {
    let mut body = "ld.global.b32 %e, [%base+248];\n".to_owned();
    for (index, (prefix, place)) in [("a", 0), ("b", 8), ("c", 16)].into_iter().enumerate() {
        let width = if wide[index + 1] { 64 } else { 32 };
        for number in 0..counts[index + 1] {
            let _ = writeln!(body, "ld.global.b{width} %{prefix}{number}, [%base+{}];", 8 * (place + number));
        }
    }
    let operands: Vec<String> =
        ["d", "a", "b", "c"].iter().zip(counts).map(|(prefix, count)| registers(prefix, count)).collect();
    let _ = writeln!(body, "{instruction} {}{further};", operands.join(", "));
    for number in 0..counts[0] {
        let width = if wide[0] { 64 } else { 32 };
        let _ = writeln!(body, "st.global.b{width} [%base+{}], %d{number};", 8 * (24 + number));
    }
    let declarations: String = ["d", "a", "b", "c"]
        .iter()
        .zip(wide)
        .map(|(prefix, wide)| format!(".reg .b{} %{prefix}<8>; ", if wide { 64 } else { 32 }))
        .collect();
    machine::load(&format!(
        ".version 8.8\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n{declarations}\n\
         .reg .b32 %t, %e; .reg .b64 %base; .reg .b64 %o;\n\
         mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, {RECORD}; ld.param.u64 %base, [p]; add.s64 %base, %base, %o;\n\
         {body}ret;\n}}\n"
    ))
}

/// Row and column of element `i` of a lane, for matrix `part`, as the sections of the PTX ISA on the fragments of each shape say.
fn isa_position(shape: [usize; 3], bits: usize, part: char, lane: usize, i: usize) -> (usize, usize) {
    let (group, thread) = (lane >> 2, lane % 4);
    match (part, shape, bits) {
        ('c', [8, 8, _], _) => (group, thread * 2 + i),
        ('c', _, _) => (if i < 2 { group } else { group + 8 }, thread * 2 + (i & 1)),
        ('a', [8, 8, 4], 64) => (group, thread),
        ('b', [8, 8, 4], 64) => (thread, group),
        ('a', [16, 8, 8], 16) => (if i < 2 { group } else { group + 8 }, thread * 2 + (i & 1)),
        ('b', [16, 8, 8], 16) => (thread * 2 + i, group),
        ('a', [16, 8, 16], 16) => {
            let row = if i < 2 || (4..6).contains(&i) { group } else { group + 8 };
            (row, if i < 4 { thread * 2 + (i & 1) } else { thread * 2 + (i & 1) + 8 })
        }
        ('b', [16, 8, 16], 16) => (thread * 2 + (i & 1) + if i >= 2 { 8 } else { 0 }, group),
        ('a', [16, 8, 4], 32 | 64) => (if i == 0 { group } else { group + 8 }, thread),
        ('b', [16, 8, 4], 32 | 64) => (thread, group),
        ('a', [16, 8, 8], 32 | 64) => {
            (if i == 0 || i == 2 { group } else { group + 8 }, if i < 2 { thread } else { thread + 4 })
        }
        ('b', [16, 8, 8], 32 | 64) => (if i == 0 { thread } else { thread + 4 }, group),
        ('a', [16, 8, 16], 64) => (group + i % 2 * 8, (i - i % 2) * 2 + thread),
        ('b', [16, 8, 16], 64) => (thread + i * 4, group),
        ('a', [8, 8, 16], 8) => (group, thread * 4 + i),
        ('b', [8, 8, 16], 8) => (thread * 4 + i, group),
        ('a', [16, 8, 16], 8) => (if i < 4 { group } else { group + 8 }, thread * 4 + (i & 3)),
        ('b', [16, 8, 16], 8) => (thread * 4 + i, group),
        ('a', [16, 8, 32], 8) => {
            let row = if i < 4 || (8..12).contains(&i) { group } else { group + 8 };
            (row, thread * 4 + (i & 3) + if i < 8 { 0 } else { 16 })
        }
        ('b', [16, 8, 32], 8) => (thread * 4 + (i & 3) + if i < 4 { 0 } else { 16 }, group),
        ('a', [8, 8, 32], 4) => (group, thread * 8 + i),
        ('b', [8, 8, 32], 4) => (thread * 8 + i, group),
        ('a', [16, 8, 32], 4) => (if i < 8 { group } else { group + 8 }, thread * 8 + (i & 7)),
        ('b', [16, 8, 32], 4) => (thread * 8 + (i & 7), group),
        ('a', [16, 8, 64], 4) => {
            let row = if i < 8 || (16..24).contains(&i) { group } else { group + 8 };
            (row, thread * 8 + (i & 7) + if i < 16 { 0 } else { 32 })
        }
        ('b', [16, 8, 64], 4) => (thread * 8 + (i & 7) + if i < 8 { 0 } else { 32 }, group),
        ('a', [8, 8, 128], 1) => (group, thread * 32 + i),
        ('b', [8, 8, 128], 1) => (thread * 32 + i, group),
        ('a', [16, 8, 128], 1) => (if i < 32 { group } else { group + 8 }, thread * 32 + (i & 31)),
        ('b', [16, 8, 128], 1) => (thread * 32 + i, group),
        ('a', [16, 8, 256], 1) => {
            let row = if i < 32 || (64..96).contains(&i) { group } else { group + 8 };
            (row, thread * 32 + (i & 31) + if i < 64 { 0 } else { 128 })
        }
        ('b', [16, 8, 256], 1) => (thread * 32 + (i & 31) + if i < 32 { 0 } else { 128 }, group),
        _ => panic!("{part} of {shape:?} with {bits} bits"),
    }
}

pub fn shape_name([m, n, k]: [usize; 3]) -> String {
    format!("m{m}n{n}k{k}")
}

/// Runs `mma` with matrices of the case and compares D.
fn check_mma(
    words: &str,
    shape: [usize; 3],
    types: [&str; 4],
    position: impl Fn(char, usize, usize) -> (usize, usize),
) {
    let [m, n, k] = shape;
    let [d, a, b, c] = types;
    let size = |rows: usize, columns: usize, name: &str| {
        let elements = rows * columns / 32;
        (elements, (elements * bits_of(name)).div_ceil(32).min(elements))
    };
    // A quad pair has matrices of its own: each lane holds four times as many elements.
    let quads = if position('c', 4, 0) == position('c', 0, 0) { 4 } else { 1 };
    let sizes = [size(m * quads, n, d), size(m * quads, k, a), size(k * quads, n, b), size(m * quads, n, c)];
    let instruction = format!("mma.sync.aligned.{}.{words}", shape_name(shape));
    let wide = [d, a, b, c].map(|name| name == "f64");
    let program = register_program("sm_90", &instruction, sizes.map(|(_, registers)| registers), wide, "");
    for seed in 0..3 {
        let case = case(a, b, shape, seed, words.contains("xor"));
        let mut memory = vec![0; 32 * RECORD];
        for lane in 0..32 {
            for (part, name, elements, first, matrix) in
                [('a', a, sizes[1].0, 0, &case.a), ('b', b, sizes[2].0, 8, &case.b), ('c', c, sizes[3].0, 16, &case.c)]
            {
                let (bits, each) = (bits_of(name), (32 / bits_of(name)).max(1));
                for i in 0..elements {
                    let (row, column) = position(part, lane, i);
                    let place = 8 * (lane * RECORD + 8 * (first + i / each)) + i % each * bits;
                    put(&mut memory, place, bits, encode(name, matrix[row][column]));
                }
            }
        }
        let memory = machine::run(&program, &[0; 8], 32, &memory);
        let (bits, each) = (bits_of(d), (32 / bits_of(d)).max(1));
        for lane in 0..32 {
            for i in 0..sizes[0].0 {
                let (row, column) = position('d', lane, i);
                let place = 8 * (lane * RECORD + 8 * (24 + i / each)) + i % each * bits;
                let (found, right) = (get(&memory, place, bits), encode(d, case.d[row][column]));
                assert_eq!(found, right, "{instruction}: row {row} column {column}, {} expected", case.d[row][column]);
            }
        }
    }
}

#[test]
fn mma_of_every_shape_and_type() {
    let check = |words: &str, shape: [usize; 3], types: [&str; 4]| {
        let bits = bits_of(types[1]);
        check_mma(words, shape, types, |part, lane, i| {
            isa_position(shape, bits, if part == 'd' { 'c' } else { part }, lane, i)
        });
    };
    for shape in [[16, 8, 8], [16, 8, 16]] {
        for d in ["f16", "f32"] {
            for c in ["f16", "f32"] {
                check(&format!("row.col.{d}.f16.f16.{c}"), shape, [d, "f16", "f16", c]);
            }
        }
        check("row.col.f32.bf16.bf16.f32", shape, ["f32", "bf16", "bf16", "f32"]);
    }
    for shape in [[16, 8, 4], [16, 8, 8]] {
        check("row.col.f32.tf32.tf32.f32", shape, ["f32", "tf32", "tf32", "f32"]);
    }
    for shape in [[8, 8, 4], [16, 8, 4], [16, 8, 8], [16, 8, 16]] {
        check("row.col.f64.f64.f64.f64", shape, ["f64"; 4]);
    }
    for (names, shapes) in
        [(["s8", "u8"], [[8, 8, 16], [16, 8, 16], [16, 8, 32]]), (["s4", "u4"], [[8, 8, 32], [16, 8, 32], [16, 8, 64]])]
    {
        for shape in shapes {
            for a in names {
                for b in names {
                    check(&format!("row.col.s32.{a}.{b}.s32"), shape, ["s32", a, b, "s32"]);
                    check(&format!("row.col.satfinite.s32.{a}.{b}.s32"), shape, ["s32", a, b, "s32"]);
                }
            }
        }
    }
    for shape in [[8, 8, 128], [16, 8, 128], [16, 8, 256]] {
        for operation in ["and", "xor"] {
            check(&format!("row.col.s32.b1.b1.s32.{operation}.popc"), shape, ["s32", "b1", "b1", "s32"]);
        }
    }
    for shape in [[16, 8, 16], [16, 8, 32]] {
        for a in ["e4m3", "e5m2"] {
            for b in ["e4m3", "e5m2"] {
                for d in ["f16", "f32"] {
                    check(&format!("row.col.{d}.{a}.{b}.{d}"), shape, [d, a, b, d]);
                }
            }
        }
    }
}

#[test]
fn mma_of_quad_pairs() {
    for (a_layout, b_layout) in [("row", "row"), ("row", "col"), ("col", "row"), ("col", "col")] {
        for d in ["f16", "f32"] {
            for c in ["f16", "f32"] {
                // PTX ISA, matrix fragments for mma.m8n8k4 with .f16: by %laneid and whether it is less than 16.
                let position = |part: char, lane: usize, i: usize| {
                    let (in_quad, high) = (lane % 4, if lane < 16 { 0 } else { 4 });
                    match part {
                        'a' if a_layout == "row" => (in_quad + high, i),
                        'a' => (i % 4 + high, in_quad),
                        'b' if b_layout == "row" => (in_quad, i + high),
                        'b' => (i, in_quad + high),
                        'c' if c == "f16" => (in_quad + high, i),
                        'd' if d == "f16" => (in_quad + high, i),
                        _ => ((lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)),
                    }
                };
                let words = format!("{a_layout}.{b_layout}.{d}.f16.f16.{c}");
                check_mma(&words, [8, 8, 4], [d, "f16", "f16", c], position);
            }
        }
    }
}

/// `wmma` through memory: loads with strides, product, store.
fn check_wmma(shape: [usize; 3], types: [&str; 4], layouts: [&str; 4], space: &str, product: &str, padding: bool) {
    let [m, n, k] = shape;
    let [d, a, b, c] = types;
    let name = shape_name(shape);
    let case = case(a, b, shape, m + n, product.contains("xor"));
    let mut body = String::new();
    // Bytes from one matrix to the next.
    const MATRIX: usize = 8192;
    let mut memory = vec![0; 4 * MATRIX];
    let matrices = [(m, n, d, layouts[0]), (m, k, a, layouts[1]), (k, n, b, layouts[2]), (m, n, c, layouts[3])];
    let stride = |(rows, columns, element, layout): (usize, usize, &str, &str)| {
        // Rows start at multiples of 16 bytes, as they must.
        let length = if layout == "row" { columns } else { rows };
        if padding {
            (length * bits_of(element)).next_multiple_of(128) / bits_of(element) + 128 / bits_of(element)
        } else {
            length
        }
    };
    let index = |matrix: (usize, usize, &str, &str), row: usize, column: usize| {
        let stride = stride(matrix);
        if matrix.3 == "row" { row * stride + column } else { column * stride + row }
    };
    for (number, values) in [(1, &case.a), (2, &case.b), (3, &case.c)] {
        let matrix = matrices[number];
        for (row, line) in values.iter().enumerate() {
            for (column, value) in line.iter().enumerate() {
                let bits = bits_of(matrix.2);
                put(
                    &mut memory,
                    8 * number * MATRIX + index(matrix, row, column) * bits,
                    bits,
                    encode(matrix.2, *value),
                );
            }
        }
    }
    let count = |number: usize| {
        let (rows, columns, element, _) = matrices[number];
        let elements = if element == "f16" && (number == 1 || number == 2) { 16 } else { rows * columns / 32 };
        (elements * bits_of(element)).div_ceil(32).min(elements)
    };
    let stride_operand =
        |number: usize| if padding { format!(", {}", stride(matrices[number])) } else { String::new() };
    for (number, prefix) in [(1, "a"), (2, "b"), (3, "c")] {
        let _ = writeln!(
            body,
            "wmma.load.{prefix}.sync.aligned.{}.{name}{space}.{} {}, [%base+{}]{};",
            matrices[number].3,
            matrices[number].2,
            registers(prefix, count(number)),
            number * MATRIX,
            stride_operand(number)
        );
    }
    let all: Vec<String> =
        ["d", "a", "b", "c"].iter().enumerate().map(|(number, prefix)| registers(prefix, count(number))).collect();
    let _ = writeln!(body, "{product} {};", all.join(", "));
    let _ = writeln!(
        body,
        "wmma.store.d.sync.aligned.{}.{name}{space}.{d} [%base], {}{};",
        layouts[0],
        all[0],
        stride_operand(0)
    );
    let declarations: String = ["d", "a", "b", "c"]
        .iter()
        .zip(matrices)
        .map(|(prefix, matrix)| format!(".reg .b{} %{prefix}<8>; ", if matrix.2 == "f64" { 64 } else { 32 }))
        .collect();
    let program = machine::load(&format!(
        ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n{declarations}\n\
         .reg .b64 %base;\nld.param.u64 %base, [p];\n{body}ret;\n}}\n"
    ));
    let memory = machine::run(&program, &[0; 8], 32, &memory);
    for row in 0..m {
        for column in 0..n {
            let bits = bits_of(d);
            let found = get(&memory, index(matrices[0], row, column) * bits, bits);
            let right = encode(d, case.d[row][column]);
            assert_eq!(found, right, "{product} {layouts:?} {types:?}: row {row} column {column}");
        }
    }
}

#[test]
fn wmma_of_every_shape_type_and_layout() {
    let layouts = [
        ["row", "row", "row", "row"],
        ["row", "row", "col", "col"],
        ["col", "col", "row", "row"],
        ["col", "col", "col", "col"],
    ];
    for [d_layout, a_layout, b_layout, c_layout] in layouts {
        let layouts = [d_layout, a_layout, b_layout, c_layout];
        for shape in [[16, 16, 16], [8, 32, 16], [32, 8, 16]] {
            let head = format!("wmma.mma.sync.aligned.{a_layout}.{b_layout}.{}", shape_name(shape));
            for d in ["f16", "f32"] {
                for c in ["f16", "f32"] {
                    check_wmma(shape, [d, "f16", "f16", c], layouts, "", &format!("{head}.{d}.{c}"), d == c);
                }
            }
            check_wmma(
                shape,
                ["f32", "bf16", "bf16", "f32"],
                layouts,
                ".global",
                &format!("{head}.f32.bf16.bf16.f32"),
                true,
            );
            for name in ["s8", "u8"] {
                let product = format!("{head}.s32.{name}.{name}.s32");
                check_wmma(shape, ["s32", name, name, "s32"], layouts, ".global", &product, true);
                check_wmma(shape, ["s32", name, name, "s32"], layouts, "", &format!("{product}.satfinite"), false);
            }
        }
        let head = format!("wmma.mma.sync.aligned.{a_layout}.{b_layout}");
        let tf32 = ["f32", "tf32", "tf32", "f32"];
        check_wmma([16, 16, 8], tf32, layouts, "", &format!("{head}.m16n16k8.f32.tf32.tf32.f32"), true);
        check_wmma([8, 8, 4], ["f64"; 4], layouts, "", &format!("{head}.m8n8k4.rn.f64.f64.f64.f64"), true);
        check_wmma([8, 8, 4], ["f64"; 4], layouts, "", &format!("{head}.m8n8k4.f64.f64.f64.f64"), false);
    }
    for accumulators in ["row", "col"] {
        let layouts = [accumulators, "row", "col", accumulators];
        for name in ["s4", "u4"] {
            let product = format!("wmma.mma.sync.aligned.row.col.m8n8k32.s32.{name}.{name}.s32");
            check_wmma([8, 8, 32], ["s32", name, name, "s32"], layouts, "", &product, true);
        }
        for operation in ["xor", "and"] {
            let product = format!("wmma.mma.{operation}.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32");
            check_wmma([8, 8, 128], ["s32", "b1", "b1", "s32"], layouts, "", &product, true);
            check_wmma([8, 8, 128], ["s32", "b1", "b1", "s32"], layouts, "", &product, false);
        }
    }
}

/// One dot product of `mma` in row 0 and column 0: `k` factors of A and B and C, as bits; the bits of D.
fn dot(target: &str, shape: [usize; 3], types: [&str; 4], a: &[u64], b: &[u64], c: u64) -> u64 {
    dot_with(target, &format!("row.col.{}", types.join(".")), shape, types, a, b, c)
}

pub fn dot_with(target: &str, words: &str, shape: [usize; 3], types: [&str; 4], a: &[u64], b: &[u64], c: u64) -> u64 {
    let [m, n, k] = shape;
    let instruction = format!("mma.sync.aligned.{}.{words}", shape_name(shape));
    let wide = types.map(|name| name == "f64");
    let count = |elements: usize, name: &str| (elements * bits_of(name)).div_ceil(32).min(elements);
    let sizes = [(m * n, types[0]), (m * k, types[1]), (k * n, types[2]), (m * n, types[3])];
    let counts = sizes.map(|(elements, name)| count(elements / 32, name));
    let program = register_program(target, &instruction, counts, wide, "");
    let mut memory = vec![0; 32 * RECORD];
    for lane in 0..32 {
        for (part, name, elements, first) in
            [('a', types[1], m * k, 0), ('b', types[2], k * n, 8), ('c', types[3], m * n, 16)]
        {
            let (bits, each) = (bits_of(name), (32 / bits_of(name)).max(1));
            for i in 0..elements / 32 {
                let position = isa_position(shape, bits_of(types[1]), part, lane, i);
                let value = match (part, position) {
                    ('a', (0, place)) => a.get(place).copied().unwrap_or(0),
                    ('b', (place, 0)) => b.get(place).copied().unwrap_or(0),
                    ('c', (0, 0)) => c,
                    _ => 0,
                };
                put(&mut memory, 8 * (lane * RECORD + 8 * (first + i / each)) + i % each * bits, bits, value);
            }
        }
    }
    let memory = machine::run(&program, &[0; 8], 32, &memory);
    get(&memory, 8 * 8 * 24, bits_of(types[0]))
}

/// A power of two as a half, subnormal ones included.
fn half_power(exponent: i32) -> u64 {
    if exponent >= -14 { ((exponent + 15) as u64) << 10 } else { 1 << (exponent + 24) }
}

fn single(value: f32) -> u64 {
    u64::from(value.to_bits())
}

const HALF_TYPES: [&str; 4] = ["f32", "f16", "f16", "f32"];
const ULP: f32 = f32::EPSILON;

#[test]
fn addends_are_cut_below_the_largest() {
    // Fasi et al. 2021, section on extra bits: V100 keeps none, A100 one; Khattak and Mikaitis 2025: H100 two.
    let sum = |target: &str, exponent: i32, count: usize, c: f32| {
        let a = vec![half_power(-12); count];
        let b = vec![half_power(exponent + 12); count];
        f32::from_bits(dot(target, [16, 8, 8], HALF_TYPES, &a, &b, single(c)) as u32)
    };
    assert_eq!(sum("sm_70", -23, 4, 1.0), 1.0 + 4.0 * ULP);
    assert_eq!(sum("sm_70", -24, 4, 1.0), 1.0, "four halves of the last place are lost one by one");
    assert_eq!(sum("sm_75", -24, 4, 1.0), 1.0 + 2.0 * ULP);
    assert_eq!(sum("sm_80", -24, 8, 1.0), 1.0 + 4.0 * ULP);
    assert_eq!(sum("sm_80", -25, 8, 1.0), 1.0);
    assert_eq!(sum("sm_90", -25, 8, 1.0), 1.0 + 2.0 * ULP);
    assert_eq!(sum("sm_90", -26, 8, 1.0), 1.0);
    // Toward zero on both sides.
    assert_eq!(sum("sm_80", -24, 1, 1.0), 1.0);
    assert_eq!(sum("sm_80", -24, 3, 1.0), 1.0 + ULP);
    assert_eq!(sum("sm_80", -24, 3, -1.0), -1.0 + 1.5 * ULP, "numbers below 1 are twice as dense");
    assert_eq!(sum("sm_80", -24, 1, -1.0 - ULP), -1.0, "-1 - 1/2 ulp");
}

#[test]
fn sums_are_normalised_at_the_end_alone() {
    // 1 - 2^-24 and four times 2^-24: nothing is lost below 2^-1, and the sum 1 + 3 * 2^-24 is cut to 1 + 2^-23.
    let (a, b) = (vec![half_power(-12); 4], vec![half_power(-12); 4]);
    let result = dot("sm_70", [16, 8, 8], HALF_TYPES, &a, &b, single(1.0 - ULP / 2.0));
    assert_eq!(f32::from_bits(result as u32), 1.0 + ULP);
    // A product of 1.5 * 1.5 = 2.25 counts as 2^0: A100 keeps 24 bits below that, and so 2^-24 beside it.
    let mut a = vec![0x3e00, half_power(-12), half_power(-12)];
    let b = vec![0x3e00, half_power(-12), half_power(-12)];
    let result = dot("sm_80", [16, 8, 8], HALF_TYPES, &a, &b, single(-1.0));
    assert_eq!(f32::from_bits(result as u32), 1.25 + ULP);
    // On V100 they are lost.
    let result = dot("sm_70", [16, 8, 8], HALF_TYPES, &a, &b, single(-1.0));
    assert_eq!(f32::from_bits(result as u32), 1.25);
    a[0] = half_power(15);
    let result = dot("sm_80", [16, 8, 8], HALF_TYPES, &a, &[half_power(15)], single(-1_073_741_824.0));
    assert_eq!(result, 0, "2^30 - 2^30 is positive zero");
}

#[test]
fn blocks_follow_each_other() {
    // 2^-24 and 1, ... : in one block with 1 the small products are lost on V100; in a block before it they add up.
    let small = half_power(-12);
    let (mut a, mut b) = (vec![small; 8], vec![small; 8]);
    (a[0], b[0]) = (half_power(0), half_power(0));
    let run = |target: &str, a: &[u64], b: &[u64]| f32::from_bits(dot(target, [16, 8, 8], HALF_TYPES, a, b, 0) as u32);
    assert_eq!(run("sm_70", &a, &b), 1.0);
    a.rotate_left(1);
    b.rotate_left(1);
    // Four small ones, 2^-22, then 1 and three that are lost.
    assert_eq!(run("sm_70", &a, &b), 1.0 + 2.0 * ULP);
    // A100 adds all eight at once: seven halves of the last place. One is cut at the end.
    assert_eq!(run("sm_80", &a, &b), 1.0 + 3.0 * ULP);
}

#[test]
fn halves_are_rounded_to_nearest() {
    let types = ["f16", "f16", "f16", "f16"];
    let run = |product: &[u64; 2], c: u64| dot("sm_80", [16, 8, 8], types, &product[..1], &product[1..], c);
    let one = half_power(0);
    assert_eq!(run(&[half_power(-11), one], one), one, "a tie goes to the even number");
    assert_eq!(run(&[half_power(-11), one], one + 1), one + 2);
    assert_eq!(run(&[half_power(-11) + 1, one], one), one + 1);
    assert_eq!(run(&[half_power(-24), half_power(-1)], 0), 0, "half the smallest subnormal");
    assert_eq!(run(&[half_power(-24), one], 1), 2, "subnormals are kept");
    assert_eq!(run(&[0x7bff, half_power(1)], 0), 0x7c00, "overflow");
}

#[test]
fn specials_of_matrices() {
    let run = |a: u64, b: u64, c: f32| {
        dot("sm_70", [16, 8, 8], HALF_TYPES, &[a, half_power(0)], &[b, half_power(0)], single(c))
    };
    let (infinity, one, nan) = (0x7c00, half_power(0), 0x7e01);
    assert_eq!(run(infinity, one, 1.0), single(f32::INFINITY));
    assert_eq!(run(infinity | 0x8000, one, 1.0), single(f32::NEG_INFINITY));
    assert_eq!(run(infinity, 0, 1.0), 0x7fff_ffff);
    assert_eq!(run(infinity, one, f32::NEG_INFINITY), 0x7fff_ffff);
    assert_eq!(run(nan, 0, 0.0), 0x7fff_ffff);
    assert_eq!(run(one, one, f32::NAN), 0x7fff_ffff);
    assert_eq!(run(one, one, f32::INFINITY), single(f32::INFINITY));
    // 2^-149, the smallest subnormal, and addends that sum up to it.
    assert_eq!(run(0, 0, f32::from_bits(1)), single(1.0));
    assert_eq!(dot("sm_70", [16, 8, 8], HALF_TYPES, &[0], &[0], 1), 1);
    let tf32 = ["f32", "tf32", "tf32", "f32"];
    // The low 13 bits of a tf32 register do not count.
    assert_eq!(dot("sm_80", [16, 8, 8], tf32, &[single(1.0) | 0x1fff], &[single(3.0)], 0), single(3.0));
    let huge = single(f32::from_bits(0x7f00_0000));
    assert_eq!(dot("sm_80", [16, 8, 8], tf32, &[huge], &[huge], 0), single(f32::INFINITY));
    // The largest e4m3 is 448 and its all-ones not-a-number.
    let eighth = ["f32", "e4m3", "e4m3", "f32"];
    assert_eq!(dot("sm_89", [16, 8, 32], eighth, &[0x7e], &[0x38], 0), single(448.0));
    assert_eq!(dot("sm_89", [16, 8, 32], eighth, &[0x7f], &[0x38], 0), 0x7fff_ffff);
    assert_eq!(dot("sm_89", [16, 8, 32], ["f32", "e5m2", "e5m2", "f32"], &[0x7c], &[0x3c], 0), single(f32::INFINITY));
}

#[test]
fn eight_bit_floats_keep_thirteen_bits() {
    // Khattak and Mikaitis 2025: products of 8-bit floats are cut 13 bits below the largest on Ada. What sm_90 has of them is made of halves.
    let types = ["f32", "e5m2", "e5m2", "f32"];
    let power = |exponent: i32| ((exponent + 15) as u64) << 2;
    let run = |target: &str, exponent: i32| {
        dot(target, [16, 8, 32], types, &[power(0), power(exponent)], &[power(0), power(0)], 0)
    };
    assert_eq!(run("sm_89", -13), single(1.0 + 1.0 / 8192.0));
    assert_eq!(run("sm_89", -14), single(1.0));
    assert_eq!(run("sm_90", -14), single(1.0 + 1.0 / 16384.0));
}

#[test]
fn integers_wrap_or_saturate() {
    let types = ["s32", "s8", "s8", "s32"];
    let run = |words: &str, c: u64| dot_with("sm_80", words, [16, 8, 16], types, &[127], &[127], c);
    assert_eq!(run("row.col.s32.s8.s8.s32", 0x7fff_ffff), 0x8000_3f00);
    assert_eq!(run("row.col.satfinite.s32.s8.s8.s32", 0x7fff_ffff), 0x7fff_ffff);
    assert_eq!(run("row.col.satfinite.s32.s8.s8.s32", 0x8000_0000), 0x8000_3f01);
}

#[test]
fn double_products_are_chains_of_fused_additions() {
    let types = ["f64"; 4];
    let (a, b, c) = (1.0 + f64::EPSILON, 1.0 - f64::EPSILON / 2.0, -1.0);
    let result = dot("sm_80", [8, 8, 4], types, &[a.to_bits()], &[b.to_bits()], f64::to_bits(c));
    // Exactly (1 + 2^-52) (1 - 2^-53) - 1 = 2^-53 - 2^-105.
    assert_eq!(f64::from_bits(result), 2f64.powi(-53) - 2f64.powi(-105));
}

#[test]
fn double_products_are_rounded_as_they_say() {
    for (rounding, above, below) in [
        ("", 1.0, -1.0),
        (".rn", 1.0, -1.0),
        (".rz", 1.0, -1.0),
        (".rm", 1.0, -1.0 - f64::EPSILON),
        (".rp", 1.0 + f64::EPSILON, -1.0),
    ] {
        let instruction = format!("wmma.mma.sync.aligned.row.col.m8n8k4{rounding}.f64.f64.f64.f64");
        let program = register_program("sm_80", &instruction, [2, 1, 1, 2], [true; 4], "");
        for (sign, expected) in [(1.0, above), (-1.0, below)] {
            let mut memory = vec![0; 32 * RECORD];
            // The first row and column have one number each.
            for (place, value) in [(0, sign), (8, 2f64.powi(-60)), (16, sign)] {
                memory[8 * place..][..8].copy_from_slice(&f64::to_le_bytes(value));
            }
            let memory = machine::run(&program, &[0; 8], 32, &memory);
            assert_eq!(f64::from_bits(get(&memory, 8 * 8 * 24, 64)), expected, "{instruction} {sign}");
        }
    }
}

/// For sm_90, C is added at the end, rounded to the nearest; tensor cores cut it off with the products.
#[test]
fn accumulators_of_eight_bit_floats() {
    let types = ["f32", "e5m2", "e5m2", "f32"];
    // 1.5 times 2^-12, 2^-12, together 1.5 times 2^-24.
    let (a, b) = ((3 << 2) | 2, 3 << 2);
    let run = |target: &str| dot(target, [16, 8, 32], types, &[a], &[b], single(1.0));
    assert_eq!(run("sm_89"), single(1.0));
    assert_eq!(run("sm_90"), single(1.0 + f32::EPSILON));
}

/// `ldmatrix` and `stmatrix` on shared memory: rows of 16 bytes, 48 bytes apart.
fn exchange(body: &str, count: usize, fill: impl Fn(usize) -> u16) -> Vec<u16> {
    let program = machine::load(&format!(
        ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n\
         .reg .b32 %d<4>; .reg .b32 %t<6>; .reg .b64 %base; .reg .b64 %o; .reg .b64 %x<2>; .reg .pred %q;\n\
         .shared .align 16 .b8 s[2048];\n\
         mov.u32 %t0, %tid.x; mul.wide.u32 %o, %t0, 64; ld.param.u64 %base, [p]; add.s64 %base, %base, %o;\n\
         mov.u32 %t1, s; mad.lo.u32 %t2, %t0, 48, %t1; setp.lt.u32 %q, %t0, {lanes}; @!%q mov.u32 %t2, 0xffffffff;\n\
         {body}\nret;\n}}\n",
        lanes = 8 * count
    ));
    let mut memory = vec![0; 32 * 64];
    for index in 0..32 * 8 {
        let (lane, place) = (index / 8, index % 8);
        memory[64 * lane + 2 * place..][..2].copy_from_slice(&fill(index).to_le_bytes());
    }
    let memory = machine::run(&program, &[0; 8], 32, &memory);
    (0..32 * 8)
        .map(|index| {
            let first = 64 * (index / 8) + 16 + 2 * (index % 8);
            u16::from_le_bytes([memory[first], memory[first + 1]])
        })
        .collect()
}

#[test]
fn ldmatrix_gives_each_lane_its_pair() {
    for count in [1, 2, 4] {
        for trans in ["", ".trans"] {
            let destinations = registers("d", count);
            let body = format!(
                "ld.global.v4.b32 {{%d0, %d1, %d2, %d3}}, [%base]; @%q st.shared.v4.b32 [%t2], {{%d0, %d1, %d2, %d3}}; bar.sync 0;\n\
                 ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {destinations}, [%t2];\n\
                 st.global.v4.b32 [%base+16], {{%d0, %d1, %d2, %d3}};"
            );
            let results = exchange(&body, count, |index| index as u16);
            for lane in 0..32 {
                for matrix in 0..count {
                    for half in 0..2 {
                        let (row, column) = (lane / 4, lane % 4 * 2 + half);
                        let (row, column) = if trans.is_empty() { (row, column) } else { (column, row) };
                        let right = (8 * (8 * matrix + row) + column) as u16;
                        assert_eq!(results[8 * lane + 2 * matrix + half], right, "x{count}{trans} lane {lane}");
                    }
                }
            }
        }
    }
}

#[test]
fn stmatrix_is_the_contrary_of_ldmatrix() {
    for count in [1, 2, 4] {
        for trans in ["", ".trans"] {
            let sources = registers("d", count);
            let body = format!(
                "ld.global.v4.b32 {{%d0, %d1, %d2, %d3}}, [%base];\n\
                 stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%t2], {sources}; bar.sync 0;\n\
                 @%q ld.shared.v4.b32 {{%d0, %d1, %d2, %d3}}, [%t2]; st.global.v4.b32 [%base+16], {{%d0, %d1, %d2, %d3}};"
            );
            let results = exchange(&body, count, |index| index as u16);
            for lane in 0..8 * count {
                for place in 0..8 {
                    let (matrix, row) = (lane / 8, lane % 8);
                    let (row, column) = if trans.is_empty() { (row, place) } else { (place, row) };
                    // The lane that holds it, its register of that matrix, its half.
                    let right = (8 * (4 * row + column / 2) + 2 * matrix + column % 2) as u16;
                    assert_eq!(results[8 * lane + place], right, "x{count}{trans} lane {lane}");
                }
            }
        }
    }
}

#[test]
fn a_guarded_ldmatrix_leaves_registers_alone() {
    let body = "ld.global.v4.b32 {%d0, %d1, %d2, %d3}, [%base]; setp.eq.u32 %q, %t0, 99;\n\
                @%q ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%d0, %d1}, [%t2];\n\
                st.global.v4.b32 [%base+16], {%d0, %d1, %d2, %d3};";
    assert_eq!(exchange(body, 1, |index| index as u16), (0..256).collect::<Vec<u16>>());
}

#[test]
fn movmatrix_transposes() {
    let body =
        "ld.global.b32 %d0, [%base]; movmatrix.sync.aligned.m8n8.trans.b16 %d1, %d0; st.global.b32 [%base+16], %d1;";
    let results = exchange(body, 1, |index| index as u16);
    for lane in 0..32 {
        for half in 0..2 {
            let (row, column) = (lane % 4 * 2 + half, lane / 4);
            let right = (8 * (4 * row + column / 2) + column % 2) as u16;
            assert_eq!(results[8 * lane + half], right, "lane {lane}");
        }
    }
}

#[test]
fn the_scoreboard_sees_every_operand() {
    let program = register_program("sm_70", "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", [8; 4], [false; 4], "");
    let is_product = |pc: &u32| program.position(*pc).text.contains("wmma");
    let Some(pc) = (0..program.len() as u32).find(is_product) else { panic!("the product is in the program") };
    let dependencies = &program.timing(pc).dependencies;
    let all = |own: &[u16], further: &[u16]| own.iter().chain(further).copied().collect::<BTreeSet<u16>>();
    let waits = all(&dependencies.waits, program.further_waits(dependencies));
    let writes = all(&dependencies.writes, program.further_writes(dependencies));
    // Eight registers each of both factors and of the sum that comes in; that which goes out takes the place of the latter.
    assert_eq!((waits.len(), writes.len()), (24, 8));
    assert!(writes.is_subset(&waits));
}
