//! The state of every instruction is told in `docs/ptx.md`.

use balar_isa::ptx::opcode::Opcode;

#[test]
fn every_instruction_is_named() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/ptx.md");
    let text = std::fs::read_to_string(path).expect("docs/ptx.md");
    // The first cell of a row names instructions.
    let cells = text.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1));
    let named: Vec<&str> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let missing: Vec<_> = Opcode::ALL.iter().filter(|opcode| !named.contains(&opcode.name())).collect();
    assert!(missing.is_empty(), "not in docs/ptx.md: {missing:?}");
}
