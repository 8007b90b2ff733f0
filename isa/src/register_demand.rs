//! How many registers the GPU's own assembler would give a thread of a kernel.
//!
//! A program runs from unlimited registers. The registers that a kernel takes decide how many CTAs are resident, and which sizes of blocks
//! can be launched at all. So the number is estimated from the habits of the assembler. Values that instructions take from the constant
//! bank, as literals or as part of an address need no register. 64-bit values whose upper half is not needed take one. Loads are hoisted as
//! far as full occupancy allows. The estimate is compared with the assembler's figures for the workloads' kernels in `isa/tests/registers`.
//!
//! | room | what it holds |
//! |---|---|
//! | this file | from the operations of a function to the words that are live at once |
//! | `bounds` | the most registers that a kernel's directives leave it |
//! | `lines` | the instructions of a function with the registers that they name |
//! | `values` | which registers of the text need none of the machine's |
//! | `lowering` | from PTX to operations on the registers that are left |

mod bounds;
mod lines;
mod lowering;
mod values;

use crate::control_flow::Graph;
use crate::liveness::{LiveSet, Liveness, Uses, Width, liveness};
use crate::ptx::ast::{Function, PerformanceDirectives};
use crate::scheduling::{MOST_WORDS_AT_FULL_OCCUPANCY, schedule_freely};
use lowering::{Operations, lower};

/// Registers beyond the live words: the stack pointer, one lost to the alignment of pairs, and the two that a thread of Volta and
/// later takes for its own program counter (ptxas 12.9 for sm_70: an empty kernel has 4).
const RESERVED_REGISTERS: u32 = 4;
/// Registers that the calling convention takes where anything is called (ptxas 12.9: the least of any kernel with calls).
const CALL_REGISTERS: u32 = 24;
/// Fewest registers of a kernel that does anything: eight are given out at a time.
const FEWEST_REGISTERS: u32 = 8;

/// The demands of a function on the register file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    /// 32-bit words that are live at once.
    pub words: u32,
    /// Whether it calls anything.
    pub calls: bool,
}

/// Finds a function's demand, without those of the functions that it calls.
///
/// The assembler hoists loads while all warps of an SM still fit, and no further: the words are those of the fastest order up to
/// [`MOST_WORDS_AT_FULL_OCCUPANCY`], and those of the text where that has more already.
pub(crate) fn demand(function: &Function) -> Demand {
    let Operations { uses, nodes, flows, tables, widths, calls } = lower(function);
    let graph = Graph::new(&flows, &tables);
    let liveness = liveness(&graph, &uses, widths.len());
    let text: Vec<u32> = (0..uses.len() as u32).collect();
    let mut words = peak(&graph, &liveness, &uses, &text, &widths);
    if words < MOST_WORDS_AT_FULL_OCCUPANCY {
        let order = schedule_freely(&graph, &liveness, &uses, &nodes, &widths);
        words = words.max(peak(&graph, &liveness, &uses, &order, &widths).min(MOST_WORDS_AT_FULL_OCCUPANCY));
    }
    Demand { words: words.max(0) as u32, calls }
}

/// Registers of a thread of a kernel: `words` are live at once in it and the functions that it calls.
pub(crate) fn registers(words: u32, calls: bool, directives: &PerformanceDirectives) -> u32 {
    let least = if calls { CALL_REGISTERS } else { FEWEST_REGISTERS };
    // Most values come in pairs or are put where pairs could be.
    let registers = words.saturating_add(RESERVED_REGISTERS).next_multiple_of(2).max(least);
    registers.min(bounds::most_registers(directives))
}

/// Most words that are live between two operations of an order.
fn peak(graph: &Graph, liveness: &Liveness, uses: &[Uses], order: &[u32], widths: &[Width]) -> i32 {
    let mut live = LiveSet::new(widths);
    let mut most = 0;
    for block in 0..graph.len() {
        live.clear();
        liveness.live_out(block).for_each(|register| live.insert(register));
        most = most.max(live.words());
        for place in (graph.starts[block]..graph.starts[block + 1]).rev() {
            live.step_back(&uses[order[place as usize] as usize]);
            most = most.max(live.words());
        }
    }
    most
}

#[cfg(test)]
mod tests;
