//! Which registers hold a value that is still needed where basic blocks begin and end.

use crate::control_flow::Graph;
use smallvec::SmallVec;

/// The width of a virtual register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    Predicate,
    /// 32 bits or fewer.
    One,
    /// 64 bits.
    Two,
}

/// Registers of an instruction. Nearly all have few enough to be stored in place.
pub(crate) type Registers = SmallVec<[u32; 6]>;

/// The virtual registers that an instruction reads and writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uses {
    pub reads: Registers,
    pub writes: Registers,
    /// Whether the writes may not happen.
    pub guarded: bool,
}

/// The registers that are live at the edges of each block, as bit sets. Most registers live inside one block: the sets have places
/// for the others alone, so that a kernel of thousands of blocks and registers takes little.
#[derive(Clone, Debug)]
pub(crate) struct Liveness {
    /// The register of each bit.
    registers: Vec<u32>,
    /// 64-bit words of a set.
    words: usize,
    live_in: Vec<u64>,
    live_out: Vec<u64>,
}

impl Liveness {
    /// Those live before a block's first instruction.
    pub fn live_in(&self, block: usize) -> impl Iterator<Item = u32> {
        self.members(&self.live_in, block)
    }

    /// Those live after a block's last instruction.
    pub fn live_out(&self, block: usize) -> impl Iterator<Item = u32> {
        self.members(&self.live_out, block)
    }

    fn members<'s>(&'s self, sets: &'s [u64], block: usize) -> impl Iterator<Item = u32> + 's {
        sets[block * self.words..][..self.words].iter().enumerate().flat_map(move |(word, bits)| {
            let mut rest = *bits;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
                Some(self.registers[word * 64 + bit])
            })
        })
    }
}

/// Word and bit of a register in the set of a block.
fn place_of(block: usize, number: u32, words: usize) -> (usize, u64) {
    (block * words + number as usize / 64, 1 << (number % 64))
}

/// Marks a register that has no bit.
const LOCAL: u32 = u32::MAX;

/// Finds the registers that are live at the edges of blocks: from each read that no write of its block precedes, backwards along
/// all paths until a write that surely happens.
pub(crate) fn liveness(graph: &Graph, uses: &[Uses], registers: usize) -> Liveness {
    let blocks = graph.len();
    let block_code = |block: usize| &uses[graph.starts[block] as usize..graph.starts[block + 1] as usize];
    let mut numbers = vec![LOCAL; registers];
    let mut crossing = Vec::new();
    // (block, register), where the block reads the value that comes into it.
    let mut reads = Vec::new();
    // The last block, counted from 1, that surely wrote the register, and that read the value that came into it.
    let mut written_in = vec![0u32; registers];
    let mut read_in = vec![0u32; registers];
    for block in 0..blocks {
        let mark = block as u32 + 1;
        for instruction in block_code(block) {
            for &register in &instruction.reads {
                let place = register as usize;
                if written_in[place] != mark && read_in[place] != mark {
                    read_in[place] = mark;
                    reads.push((block, register));
                    if numbers[place] == LOCAL {
                        numbers[place] = crossing.len() as u32;
                        crossing.push(register);
                    }
                }
            }
            if !instruction.guarded {
                instruction.writes.iter().for_each(|register| written_in[*register as usize] = mark);
            }
        }
    }
    let words = crossing.len().div_ceil(64);
    let mut written = vec![0u64; blocks * words];
    for block in 0..blocks {
        for instruction in block_code(block).iter().filter(|instruction| !instruction.guarded) {
            for number in instruction.writes.iter().map(|register| numbers[*register as usize]) {
                if number != LOCAL {
                    let (word, bit) = place_of(block, number, words);
                    written[word] |= bit;
                }
            }
        }
    }
    let mut predecessors = vec![Vec::new(); blocks];
    for (block, successors) in graph.successors.iter().enumerate().take(blocks) {
        for successor in successors.iter().filter(|successor| **successor < blocks) {
            predecessors[*successor].push(block);
        }
    }
    let mut live_in = vec![0u64; blocks * words];
    let mut live_out = vec![0u64; blocks * words];
    let mut pending = Vec::new();
    for (block, register) in reads {
        let number = numbers[register as usize];
        pending.push(block);
        while let Some(block) = pending.pop() {
            let (word, bit) = place_of(block, number, words);
            if live_in[word] & bit != 0 {
                continue;
            }
            live_in[word] |= bit;
            for &before in &predecessors[block] {
                let (word, bit) = place_of(before, number, words);
                live_out[word] |= bit;
                if written[word] & bit == 0 {
                    pending.push(before);
                }
            }
        }
    }
    Liveness { registers: crossing, words, live_in, live_out }
}

/// Registers that hold a value, and the words that they take.
pub(crate) struct LiveSet<'w> {
    widths: &'w [Width],
    members: Vec<u32>,
    /// Where a register is among the members.
    places: Vec<u32>,
    words: i32,
}

/// The place of a register that is no member.
const ABSENT: u32 = u32::MAX;

/// 32-bit words of a register that count as pressure.
pub(crate) fn words_of(width: Width) -> i32 {
    match width {
        Width::Predicate => 0,
        Width::One => 1,
        Width::Two => 2,
    }
}

impl<'w> LiveSet<'w> {
    pub fn new(widths: &'w [Width]) -> Self {
        LiveSet { widths, members: Vec::new(), places: vec![ABSENT; widths.len()], words: 0 }
    }

    pub fn contains(&self, register: u32) -> bool {
        self.places[register as usize] != ABSENT
    }

    /// 32-bit words of all members.
    pub fn words(&self) -> i32 {
        self.words
    }

    /// A register's width.
    pub fn width(&self, register: u32) -> Width {
        self.widths[register as usize]
    }

    /// The members, by number.
    pub fn sorted(&self) -> Vec<u32> {
        let mut members = self.members.clone();
        members.sort_unstable();
        members
    }

    pub fn insert(&mut self, register: u32) {
        if !self.contains(register) {
            self.places[register as usize] = self.members.len() as u32;
            self.members.push(register);
            self.words += words_of(self.widths[register as usize]);
        }
    }

    fn remove(&mut self, register: u32) {
        if self.contains(register) {
            let place = std::mem::replace(&mut self.places[register as usize], ABSENT);
            self.members.swap_remove(place as usize);
            if let Some(moved) = self.members.get(place as usize) {
                self.places[*moved as usize] = place;
            }
            self.words -= words_of(self.widths[register as usize]);
        }
    }

    pub fn clear(&mut self) {
        for register in self.members.drain(..) {
            self.places[register as usize] = ABSENT;
        }
        self.words = 0;
    }

    /// Makes the registers that are live after an instruction those that are live before it.
    pub fn step_back(&mut self, uses: &Uses) {
        if !uses.guarded {
            uses.writes.iter().for_each(|register| self.remove(*register));
        }
        uses.reads.iter().for_each(|register| self.insert(*register));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_flow::Flow;

    fn uses(reads: &[u32], writes: &[u32], guarded: bool) -> Uses {
        Uses { reads: reads.into(), writes: writes.into(), guarded }
    }

    #[test]
    fn values_live_around_loops_and_past_guarded_writes() {
        // 0: r0 = ..; 1: r1 = r0 (guarded); 2: r2 = r1; branch to 1; 3: .. = r2, r0; end.
        let code =
            [uses(&[], &[0], false), uses(&[0], &[1], true), uses(&[1], &[2], false), uses(&[2, 0], &[3], false)];
        let flows =
            [Flow::Next, Flow::Next, Flow::Branch { target: 1, conditional: true }, Flow::Exit { conditional: false }];
        let graph = Graph::new(&flows, &[]);
        let live = liveness(&graph, &code, 4);
        let sorted = |found: Vec<u32>| {
            let mut found = found;
            found.sort_unstable();
            found
        };
        let (into, out): (Vec<_>, Vec<_>) = (0..graph.len())
            .map(|block| (sorted(live.live_in(block).collect()), sorted(live.live_out(block).collect())))
            .unzip();
        let mut after = LiveSet::new(&[Width::One, Width::Two, Width::One, Width::Predicate]);
        live.live_out(1).for_each(|register| after.insert(register));
        assert_eq!((after.sorted(), after.words()), (vec![0, 1, 2], 4));
        after.step_back(&code[2]);
        assert_eq!((after.sorted(), after.words()), (vec![0, 1], 3));
        // r1 may keep its value from before the loop; r3 lives nowhere else.
        assert_eq!(into, [vec![1], vec![0, 1], vec![0, 2]]);
        assert_eq!(out, [vec![0, 1], vec![0, 1, 2], vec![]]);
    }
}
