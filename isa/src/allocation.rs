//! From unlimited virtual registers to a compact register file: liveness, then a linear scan.
//!
//! Rows of the register file are per lane, so the liveness of one thread is that of the warp. A write under a guard may leave the
//! old value and so does not end its life.

use crate::control_flow::Graph;
use crate::liveness::{Liveness, Uses, Width};
use crate::operation::operand::{FIRST_PREDICATE, FIRST_ROW};

/// Places of each kind of register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// Pairs of rows.
    pub wide: usize,
    /// Rows.
    pub narrow: usize,
    /// Predicate slots.
    pub predicates: usize,
}

impl Places {
    /// The larger number of each kind.
    pub fn max(self, other: Places) -> Places {
        Places {
            wide: self.wide.max(other.wide),
            narrow: self.narrow.max(other.narrow),
            predicates: self.predicates.max(other.predicates),
        }
    }

    /// The places of two together.
    pub fn plus(self, other: Places) -> Places {
        Places {
            wide: self.wide + other.wide,
            narrow: self.narrow + other.narrow,
            predicates: self.predicates + other.predicates,
        }
    }

    /// First row of the narrow registers, which follow the wide ones.
    pub fn first_narrow(self) -> usize {
        2 * self.wide + usize::from(FIRST_ROW)
    }

    /// Rows in all.
    pub fn rows(self) -> usize {
        self.first_narrow() + self.narrow
    }

    /// Predicate slots in all, the reserved ones included.
    pub fn predicate_slots(self) -> usize {
        self.predicates + usize::from(FIRST_PREDICATE)
    }
}

/// Where the virtual registers of a function are.
#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    /// The place of each register that is used, among the function's registers of its width, from 0; 0 for the others.
    pub places: Vec<u32>,
    /// How many the function takes.
    pub count: Places,
    /// The registers that may be read before they are written.
    pub read_first: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Interval {
    register: u32,
    first: u32,
    last: u32,
}

/// Finds a place for every register. `order` names the instruction, an index into `uses`, at each place of the code. The order keeps blocks
/// and dependences, so that `liveness`, computed for the order of the text, still tells the live registers where blocks begin and end.
pub(crate) fn allocate(
    graph: &Graph,
    liveness: &Liveness,
    uses: &[Uses],
    order: &[u32],
    widths: &[Width],
) -> Allocation {
    let read_first = if graph.len() == 0 { Vec::new() } else { liveness.live_in(0).collect() };
    let intervals = intervals(graph, uses, order, liveness, widths.len());
    let mut places = vec![0u32; widths.len()];
    // A lane of a wide register is not where the same lane of a narrow one would be: lanes that have parted would overwrite each
    // other's values if registers of different width shared rows. So each width has rows of its own.
    let mut busy_narrow: Vec<u32> = Vec::new();
    let mut busy_wide: Vec<u32> = Vec::new();
    let mut busy_predicates: Vec<u32> = Vec::new();
    for interval in intervals {
        // A place is free again after the last instruction that reads it; that instruction may write to it already.
        let free = |last: u32| last <= interval.first;
        let register = interval.register as usize;
        let last = interval.last.max(interval.first + 1);
        let place = match widths[register] {
            Width::Predicate => {
                let slot = first_fit(&mut busy_predicates, free);
                busy_predicates[slot] = last;
                slot
            }
            Width::One => {
                let row = first_fit(&mut busy_narrow, free);
                busy_narrow[row] = last;
                row
            }
            Width::Two => {
                let pair = first_fit(&mut busy_wide, free);
                busy_wide[pair] = last;
                pair
            }
        };
        places[register] = place as u32;
    }
    Allocation {
        places,
        count: Places { wide: busy_wide.len(), narrow: busy_narrow.len(), predicates: busy_predicates.len() },
        read_first,
    }
}

fn first_fit(busy: &mut Vec<u32>, free: impl Fn(u32) -> bool) -> usize {
    busy.iter().position(|last| free(*last)).unwrap_or_else(|| {
        busy.push(0);
        busy.len() - 1
    })
}

/// From where to where in the code each register must keep its value, by first instruction.
fn intervals(graph: &Graph, uses: &[Uses], order: &[u32], liveness: &Liveness, registers: usize) -> Vec<Interval> {
    const UNUSED: Interval = Interval { register: 0, first: u32::MAX, last: 0 };
    let mut found = vec![UNUSED; registers];
    let mut extend = |register: u32, pc: u32| {
        let interval = &mut found[register as usize];
        interval.register = register;
        interval.first = interval.first.min(pc);
        interval.last = interval.last.max(pc);
    };
    for block in 0..graph.len() {
        let (first, after) = (graph.starts[block], graph.starts[block + 1]);
        liveness.live_in(block).for_each(|register| extend(register, first));
        liveness.live_out(block).for_each(|register| extend(register, after));
        for pc in first..after {
            let uses = &uses[order[pc as usize] as usize];
            uses.reads.iter().chain(&uses.writes).for_each(|register| extend(*register, pc));
        }
    }
    // Each register goes behind those whose intervals begin earlier, and those of the same beginning with lower numbers.
    let mut ends = vec![0u32; uses.len() + 2];
    let is_used = |interval: &&Interval| interval.first != UNUSED.first;
    found.iter().filter(is_used).for_each(|interval| ends[interval.first as usize + 1] += 1);
    let mut count = 0;
    for end in &mut ends {
        count += *end;
        *end = count;
    }
    let mut intervals = vec![UNUSED; count as usize];
    for interval in found.iter().filter(is_used) {
        let place = &mut ends[interval.first as usize];
        intervals[*place as usize] = *interval;
        *place += 1;
    }
    intervals
}
