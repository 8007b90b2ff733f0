//! An instruction over rows of operand values, a lane a row.

use crate::machine;
use std::fmt::Write;

/// Runs `instruction` once for each row and gives the destinations.
///
/// `instruction` is PTX without the semicolon, in which `$d` stands for the destination, `$a`, `$b`, `$c`, `$e` for the
/// sources. `widths` are the sources' register widths in bits, `width` that of the destination: 1 (a predicate), 16, 32
/// or 64; an 8-bit operand is in a 16-bit register, as PTX has it. A row holds a value for each source, in its low bits.
pub fn run(instruction: &str, widths: &[u32], width: u32, rows: &[Vec<u64>]) -> Vec<u64> {
    run_all(instruction, widths, &[width], rows).into_iter().map(|results| results[0]).collect()
}

/// Names of the sources and of the destinations in an instruction's text.
const SOURCES: &str = "abce";
const DESTINATIONS: &str = "dfghijkl";

/// Bytes of device memory after the rows, which begin at address 0 and take eight bytes for each source and destination of 32
/// lanes: for instructions to use.
const SCRATCH: usize = 1024;

/// As [`run`], with several destinations, which `$d`, `$f`, `$g`, `$h`, `$i`, `$j`, `$k`, `$l` stand for. There may be several
/// instructions with semicolons between them, which have registers `%x0` to `%x3` of 128 bits, `%y0` to `%y7` of 32, `%z0` to
/// `%z3` of 64 and `%n0` to `%n3`, predicates, for themselves.
pub fn run_all(instructions: &str, widths: &[u32], destinations: &[u32], rows: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let slots = widths.len() + destinations.len();
    let mut before = String::new();
    let mut after = String::new();
    let mut text = instructions.to_owned();
    for (index, (&bits, letter)) in widths.iter().zip(SOURCES.chars()).enumerate() {
        let name = register(bits, letter);
        text = text.replace(&format!("${letter}"), &name);
        let place = 8 * index;
        let line = match bits {
            1 => format!("ld.global.u32 %t0, [%base+{place}]; setp.ne.u32 {name}, %t0, 0;"),
            _ => format!("ld.global.b{bits} {name}, [%base+{place}];"),
        };
        let _ = writeln!(before, "{line}");
    }
    for (index, (&bits, letter)) in destinations.iter().zip(DESTINATIONS.chars()).enumerate() {
        let name = register(bits, letter);
        text = text.replace(&format!("${letter}"), &name);
        let place = 8 * (widths.len() + index);
        // A register that the instruction does not write keeps this value, so that a missing write shows.
        let _ = match bits {
            1 => writeln!(after, "selp.u32 %t0, 1, 0, {name}; st.global.u32 [%base+{place}], %t0;"),
            _ => {
                let _ = writeln!(before, "mov.b{bits} {name}, 0x5a5a;");
                writeln!(after, "st.global.b{bits} [%base+{place}], {name};")
            }
        };
    }
    let program = machine::load(&format!(
        ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n\
         .reg .pred %p<16>; .reg .b16 %h<16>; .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .b32 %t<4>; .reg .b64 %base; .reg .b64 %o;\n\
         .reg .b128 %x<4>; .reg .b32 %y<8>; .reg .b64 %z<4>; .reg .pred %n<4>;\n\
         mov.u32 %t0, %tid.x; mul.wide.u32 %o, %t0, {stride}; ld.param.u64 %base, [p]; add.s64 %base, %base, %o;\n\
         {before}{text};\n{after}\nret;\n}}\n",
        stride = 8 * slots
    ));
    let mut results = Vec::with_capacity(rows.len());
    for chunk in rows.chunks(32) {
        let mut memory = vec![0u8; 8 * slots * 32 + SCRATCH];
        for (lane, row) in chunk.iter().enumerate() {
            assert_eq!(row.len(), widths.len(), "a value for each source of {instructions}");
            for (index, value) in row.iter().enumerate() {
                let first = 8 * (lane * slots + index);
                memory[first..first + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
        let memory = machine::run(&program, &[0; 8], chunk.len() as u32, &memory);
        for lane in 0..chunk.len() {
            let first = 8 * (lane * slots + widths.len());
            let result = memory[first..first + 8 * destinations.len()].chunks_exact(8).map(|bytes| {
                let mut value = [0; 8];
                value.copy_from_slice(bytes);
                u64::from_le_bytes(value)
            });
            results.push(result.collect());
        }
    }
    results
}

fn register(bits: u32, letter: char) -> String {
    let number = SOURCES.find(letter).or_else(|| DESTINATIONS.find(letter).map(|place| place + SOURCES.len()));
    let number = number.unwrap_or(15);
    match bits {
        1 => format!("%p{number}"),
        16 => format!("%h{number}"),
        32 => format!("%r{number}"),
        _ => format!("%rd{number}"),
    }
}

/// Runs instructions with several destinations on every row; all destinations must be as expected.
///
/// # Panics
///
/// Where they are not: names the instructions, the operands and the results of the first few.
pub fn check_all(
    instructions: &str,
    widths: &[u32],
    destinations: &[u32],
    rows: &[Vec<u64>],
    expected: impl Fn(&[u64]) -> Vec<u64>,
) {
    let mut message = String::new();
    let mut wrong = 0;
    for (row, results) in rows.iter().zip(run_all(instructions, widths, destinations, rows)) {
        let right = expected(row);
        if results != right {
            wrong += 1;
            if wrong <= 8 {
                let _ = writeln!(message, "  {row:#x?} gives {results:#x?}: {right:#x?} expected");
            }
        }
    }
    assert!(wrong == 0, "{instructions}: {wrong} of {} cases are wrong\n{message}", rows.len());
}

/// Runs the instruction on every row and hands each result to `verdict`, which names its mistake.
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
