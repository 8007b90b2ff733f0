//! The order of instructions inside basic blocks: a list scheduler, as the GPU's own assembler has one.
//!
//! PTX is not scheduled: a compiler emits each load right before its use, and an in-order machine would wait for every one. The scheduler
//! moves independent instructions, loads first of all, into these gaps. Blocks begin and end where they did, and nothing moves across
//! pinned instructions: branches, barriers, fences, reads of clocks, exchanges between lanes. The latencies are a heuristic of this pass
//! and no timing: the topology decides how long an instruction takes.
//!
//! | room | what it holds |
//! |---|---|
//! | this file | how many registers a region may take |
//! | `node` | what the scheduler knows of an instruction |
//! | `region` | the instructions between pinned ones, their registers, and the words that are live |
//! | `dependences` | which instructions of a region wait for which, and the longest paths |
//! | `list` | the choice of the next instruction |

mod dependences;
mod list;
mod node;
mod region;

use crate::control_flow::Graph;
use crate::execution::Space;
use crate::liveness::{LiveSet, Liveness, Uses, Width};
use crate::program::timing::LatencyClass;
use list::ListScheduler;
pub(crate) use node::{Access, Node, Order, spaces};
use region::Regions;

/// Registers that a region may take beyond those that it had in the order of the text: enough for some 16 loads in flight.
const EXTRA_REGISTERS: i32 = 16;
/// Registers beyond which no region grows.
const MOST_REGISTERS: i32 = 96;
/// Registers of a thread up to which an SM holds all its warps (64 Ki registers, 2048 threads), less the 4 of the calling convention.
pub(crate) const MOST_WORDS_AT_FULL_OCCUPANCY: i32 = 28;
/// More than any region has.
const UNLIMITED: i32 = 1 << 24;

/// Instructions that are ordered together at most: the time that this takes grows with the square.
const LONGEST_REGION: u32 = 1024;

/// Cycles that a load is expected to take: shared memory as measured on V100 (27), device memory about an L2 hit.
pub(crate) fn memory_latency(space: Option<Space>) -> u32 {
    match space {
        Some(Space::Shared) => 27,
        Some(Space::Constant | Space::Parameter) => 8,
        Some(Space::Global | Space::Local) | None => 200,
    }
}

/// Cycles that one pass of a class is expected to take.
pub(crate) fn expected_latency(class: LatencyClass) -> u32 {
    match class {
        LatencyClass::Special | LatencyClass::Conversion | LatencyClass::WideConversion => 20,
        LatencyClass::Double => 8,
        LatencyClass::Zero => 0,
        LatencyClass::Variable | LatencyClass::Branch => 1,
        _ => 4,
    }
}

/// A new order: the former place of the instruction at each place. `liveness` is that of the same graph and uses.
pub(crate) fn schedule(
    graph: &Graph,
    liveness: &Liveness,
    uses: &[Uses],
    nodes: &[Node],
    widths: &[Width],
) -> Vec<u32> {
    let regions = regions(graph, liveness, uses, nodes, widths);
    let pressure = regions.iter().map(|region| region.pressure).max().unwrap_or(0);
    // Registers are given out eight at a time: the rest of the last eight costs nothing.
    let spare = ((pressure + 4 + 7) / 8 * 8 - 4).max(MOST_WORDS_AT_FULL_OCCUPANCY);
    let limit = |pressure: i32| pressure.max(spare).max((pressure + EXTRA_REGISTERS).min(MOST_REGISTERS));
    in_order(&regions, nodes, uses.len(), limit)
}

/// As [`schedule`], with any number of registers.
pub(crate) fn schedule_freely(
    graph: &Graph,
    liveness: &Liveness,
    uses: &[Uses],
    nodes: &[Node],
    widths: &[Width],
) -> Vec<u32> {
    let regions = regions(graph, liveness, uses, nodes, widths);
    in_order(&regions, nodes, uses.len(), |_| UNLIMITED)
}

/// The regions of a function, from the end of each block.
fn regions(graph: &Graph, liveness: &Liveness, uses: &[Uses], nodes: &[Node], widths: &[Width]) -> Regions {
    let operands = uses.iter().map(|uses| uses.reads.len() + uses.writes.len()).sum();
    let mut regions = Regions::new(widths.len(), operands);
    let mut live = LiveSet::new(widths);
    for block in 0..graph.len() {
        live.clear();
        liveness.live_out(block).for_each(|register| live.insert(register));
        let first = graph.starts[block];
        let mut end = graph.starts[block + 1];
        while end > first {
            let is_pinned = |pc: u32| nodes[pc as usize].order == Order::Pinned;
            if is_pinned(end - 1) {
                end -= 1;
                live.step_back(&uses[end as usize]);
                continue;
            }
            let mut start = end - 1;
            while start > first && end - start < LONGEST_REGION && !is_pinned(start - 1) {
                start -= 1;
            }
            regions.add(start, end, uses, &mut live);
            end = start;
        }
    }
    regions
}

/// Orders each region within the limit that its words in the order of the text give.
fn in_order(regions: &Regions, nodes: &[Node], count: usize, limit: impl Fn(i32) -> i32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    let mut scheduler = ListScheduler::default();
    for region in regions.iter() {
        let range = region.start as usize..region.end as usize;
        scheduler.schedule(&region, &nodes[range.clone()], limit(region.pressure), &mut order[range]);
    }
    order
}

#[cfg(test)]
mod tests;
