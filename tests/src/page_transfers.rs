//! The pages that a driver of unified memory moved, transfer by transfer.

use balar_actors::simulation::RunResult;
use balar_protocol::statistics::Field;

/// A transfer of managed pages over the link of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageTransfer {
    /// When its bytes began to cross the link, and when they were over: picoseconds.
    pub time: (u64, u64),
    /// Whose link it was.
    pub gpu: u64,
    /// From the host's memory to the GPU's, or back.
    pub to_device: bool,
    /// First address.
    pub address: u64,
    /// KiB.
    pub kib: u64,
    /// Why: "fault", "prefetch", "program", "eviction".
    pub cause: &'static str,
}

/// The transfers of a run, in the order of their ends.
///
/// # Panics
///
/// Where the node has no driver of unified memory.
pub fn page_transfers(result: &RunResult) -> Vec<PageTransfer> {
    let table = result.statistics.tables.iter().find(|table| table.name == "unified_memory_transfers");
    let table = table.expect("the driver records transfers");
    let number = |line: &[Field], name: &str| match line[column(table.columns, name)] {
        Field::Number(number) | Field::Address(number) => number,
        ref other => panic!("{name} is {other}"),
    };
    let word = |line: &[Field], name: &str| match line[column(table.columns, name)] {
        Field::Word(word) => word,
        ref other => panic!("{name} is {other}"),
    };
    let transfer = |line: &Vec<Field>| PageTransfer {
        time: (number(line, "began_ps"), number(line, "ended_ps")),
        gpu: number(line, "gpu"),
        to_device: word(line, "direction") == "to_device",
        address: number(line, "address"),
        kib: number(line, "bytes") >> 10,
        cause: word(line, "cause"),
    };
    table.lines.iter().map(transfer).collect()
}

fn column(columns: &[&str], name: &str) -> usize {
    columns.iter().position(|column| *column == name).unwrap_or_else(|| panic!("no column {name}"))
}
