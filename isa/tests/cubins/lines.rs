//! The lines of source files that machine code was compiled from.

use balar_isa::machine::MachineModule;
use balar_isa::program::Program;

const LINKED: &[u8] = include_bytes!("lines.sm_75.cubin");
const PIECE: &[u8] = include_bytes!("lines_piece.sm_75.cubin");

fn program(image: &[u8], kernel: &str) -> Program {
    let module = MachineModule::read([image.into()]).expect("a cubin");
    module.program(kernel, &[]).expect("it is executed")
}

/// The places of an instruction, innermost first: function and line.
fn chain(program: &Program, pc: u32) -> Vec<String> {
    let places = std::iter::successors(program.source_place(pc), |place| place.call());
    places.map(|it| format!("{}@{}:{}", it.inlined_function().unwrap_or("-"), it.file(), it.line())).collect()
}

/// The chain of the first instruction of a function whose text begins so.
fn of(program: &Program, function: &str, text: &str) -> Vec<String> {
    let mut found = program.locations().filter(|(_, it)| it.inner_function == function);
    let (pc, location) = found.find(|(_, it)| it.text.starts_with(text)).expect(text);
    assert_eq!(location.source.map(|place| place.line()), program.source_place(pc).map(|place| place.line()));
    chain(program, pc)
}

/// The lines are those of lines.cu: the sum of squares is inlined with the loop around it.
#[test]
fn machine_code_has_lines_and_what_was_inlined() {
    for (image, apart) in [(LINKED, "$first$_Z5apartf"), (PIECE, "_Z5apartf")] {
        let first = program(image, "first");
        assert_eq!(of(&first, "first", "LDG"), ["-@lines.cu:22"]);
        assert_eq!(of(&first, "first", "FFMA"), ["_Z8repeatedfi@lines.cu:14", "-@lines.cu:22"]);
        assert_eq!(of(&first, "first", "ISETP"), ["_Z8repeatedfi@lines.cu:13", "-@lines.cu:22"]);
        assert_eq!(of(&first, "first", "EXIT"), ["-@lines.cu:23"]);
        assert_eq!(of(&first, apart, "FFMA"), ["-@lines.cu:18"]);
        let second = program(image, "second");
        assert_eq!(of(&second, "second", "FSETP"), ["-@lines.cu:27"]);
        assert_eq!(of(&second, "second", "FFMA"), ["_Z8repeatedfi@lines.cu:14", "-@lines.cu:28"]);
        assert_eq!(of(&second, "second", "@P0 BRA"), ["_Z8repeatedfi@lines.cu:13", "-@lines.cu:28"]);
        assert_eq!(of(&second, "second", "STG"), ["-@lines.cu:28"]);
    }
}

/// Code runs, whatever its line table is: one that is broken is none.
#[test]
fn broken_line_tables_do_no_harm() {
    let name = b"lines.cu\0";
    let first = PIECE.windows(name.len()).position(|bytes| bytes == name).expect("the table has a file");
    for at in first - 40..first + 240 {
        for change in [0x01, 0x80, 0xff] {
            let mut image = PIECE.to_vec();
            image[at] ^= change;
            let Ok(module) = MachineModule::read([image.as_slice().into()]) else { continue };
            let Ok(program) = module.program("second", &[]) else { continue };
            (0..program.len() as u32).for_each(|pc| drop(chain(&program, pc)));
        }
    }
}
