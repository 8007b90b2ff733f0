//! An instruction over rows of operand values, a lane a row.

use crate::machine;
use std::fmt::Write;

/// Runs `instruction` once for each row and gives the destinations.
///
/// `instruction` is PTX without the semicolon, in which `$d` stands for the destination, `$a`, `$b`, `$c`, `$e` for the
/// sources. `widths` are the sources' register widths in bits, `width` that of the destination: 1 (a predicate), 16, 32
/// or 64; an 8-bit operand is in a 16-bit register, as PTX has it. A row holds a value for each source, in its low bits.
pub fn run(instruction: &str, widths: &[u32], width: u32, rows: &[Vec<u64>]) -> Vec<u64> {
    let slots = widths.len() + 1;
    let mut body = String::new();
    let mut text = instruction.replace("$d", &register(width, 'd'));
    for (index, (&bits, letter)) in widths.iter().zip("abce".chars()).enumerate() {
        let name = register(bits, letter);
        text = text.replace(&format!("${letter}"), &name);
        let place = 8 * index;
        let line = match bits {
            1 => format!("ld.global.u32 %t0, [%base+{place}]; setp.ne.u32 {name}, %t0, 0;"),
            _ => format!("ld.global.b{bits} {name}, [%base+{place}];"),
        };
        let _ = writeln!(body, "{line}");
    }
    let destination = register(width, 'd');
    let place = 8 * widths.len();
    // What the instruction does not write keeps this value, so that a missing write shows.
    let initial = if width == 1 { String::new() } else { format!("mov.b{width} {destination}, 0x5a5a;") };
    let store = match width {
        1 => format!("selp.u32 %t0, 1, 0, {destination}; st.global.u32 [%base+{place}], %t0;"),
        _ => format!("st.global.b{width} [%base+{place}], {destination};"),
    };
    let program = machine::load(&format!(
        ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n\
         .reg .pred %p<6>; .reg .b16 %h<6>; .reg .b32 %r<6>; .reg .b64 %rd<6>; .reg .b32 %t<4>; .reg .b64 %base; .reg .b64 %o;\n\
         mov.u32 %t0, %tid.x; mul.wide.u32 %o, %t0, {stride}; ld.param.u64 %base, [p]; add.s64 %base, %base, %o;\n\
         {initial}\n{body}{text};\n{store}\nret;\n}}\n",
        stride = 8 * slots
    ));
    let mut results = Vec::with_capacity(rows.len());
    for chunk in rows.chunks(32) {
        let mut memory = vec![0u8; 8 * slots * 32];
        for (lane, row) in chunk.iter().enumerate() {
            assert_eq!(row.len(), widths.len(), "a value for each source of {instruction}");
            for (index, value) in row.iter().enumerate() {
                let first = 8 * (lane * slots + index);
                memory[first..first + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
        let memory = machine::run(&program, &[0; 8], chunk.len() as u32, &memory);
        for lane in 0..chunk.len() {
            let first = 8 * (lane * slots + widths.len());
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&memory[first..first + 8]);
            results.push(u64::from_le_bytes(bytes));
        }
    }
    results
}

fn register(bits: u32, letter: char) -> String {
    let number = "abced".find(letter).unwrap_or(5);
    match bits {
        1 => format!("%p{number}"),
        16 => format!("%h{number}"),
        32 => format!("%r{number}"),
        _ => format!("%rd{number}"),
    }
}

/// Runs the instruction on every row and hands each result to `verdict`, which says what is wrong with it.
///
/// # Panics
///
/// Where a verdict is an error: names the instruction, the operands and the result of the first few.
pub fn check_by(
    instruction: &str,
    widths: &[u32],
    width: u32,
    rows: &[Vec<u64>],
    verdict: impl Fn(&[u64], u64) -> Result<(), String>,
) {
    let mut message = String::new();
    let mut wrong = 0;
    for (row, result) in rows.iter().zip(run(instruction, widths, width, rows)) {
        if let Err(problem) = verdict(row, result) {
            wrong += 1;
            if wrong <= 8 {
                let operands: Vec<String> = row.iter().map(|value| format!("{value:#x}")).collect();
                let _ = writeln!(message, "  ({}) gives {result:#x}: {problem}", operands.join(", "));
            }
        }
    }
    assert!(wrong == 0, "{instruction}: {wrong} of {} cases are wrong\n{message}", rows.len());
}

/// As [`check_by`], with the one right result of each row.
pub fn check(instruction: &str, widths: &[u32], width: u32, rows: &[Vec<u64>], expected: impl Fn(&[u64]) -> u64) {
    check_by(instruction, widths, width, rows, |row, result| {
        let right = expected(row);
        if result == right { Ok(()) } else { Err(format!("{right:#x} expected")) }
    });
}

/// Every combination of one value from each list.
pub fn product(lists: &[&[u64]]) -> Vec<Vec<u64>> {
    let mut rows = vec![Vec::new()];
    for list in lists {
        rows = rows.iter().flat_map(|row| list.iter().map(move |value| [row.as_slice(), &[*value]].concat())).collect();
    }
    rows
}
