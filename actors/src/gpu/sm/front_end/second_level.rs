//! The second level of instruction and constant caches, one for an SM (NVIDIA's L1.5): missing lines are fetched from L2.

use super::lines::{Lines, UNDER_WAY};
use crate::interleave::CODE_WINDOW;
use crate::slab::Slab;
use balar_protocol::cuda::{LaunchId, ProgramId};
use balar_protocol::memory::LINE_BYTES;
use serde::{Deserialize, Serialize};

/// Each program has a mebibyte of the addresses from [`CODE_WINDOW`] on.
const CODE_BYTES: u64 = 1 << 20;
/// Where the constants of a program begin that its compiler made: behind its code.
const COMPILER_CONSTANTS: u64 = 3 << 18;
/// Bytes of a constant bank.
const BANK_BYTES: u64 = 1 << 16;
/// Marks the addresses of a launch's values; the number of the launch follows, then the offset. The values of a launch are always new.
const OF_LAUNCH: u64 = 1 << 63;
/// Lines that are fetched from L2 together for a constant: 256 bytes [Jia et al. 2018, table 3.1].
const CONSTANT_LINES: u64 = 256 / LINE_BYTES;

/// Where a program's code begins.
#[inline]
pub fn code_address(program: ProgramId) -> u64 {
    CODE_WINDOW + u64::from(program.0) * CODE_BYTES
}

/// The address of a constant: values of a launch in bank 0, variables in bank 3 at their own addresses, the compiler's constants elsewhere.
#[inline]
pub fn constant_address(program: ProgramId, launch: LaunchId, (bank, offset): (u32, u32), bank_3: Option<u64>) -> u64 {
    let offset = u64::from(offset);
    match (bank, bank_3) {
        (0, _) => OF_LAUNCH + u64::from(launch.0) * BANK_BYTES + offset % BANK_BYTES,
        (3, Some(address)) => address + offset,
        _ => code_address(program) + COMPILER_CONSTANTS + u64::from(bank % 4) * BANK_BYTES + offset,
    }
}

/// The number of the line with an address, here.
#[inline]
pub fn line_of(address: u64) -> u64 {
    address / LINE_BYTES
}

/// Requests for L2: number and address.
pub type Wanted = Vec<(u32, u64)>;

/// Lines of code and constants, 128 bytes each. It gives one a cycle to the caches above it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SecondLevel {
    lines: Lines,
    /// Lines under way from L2.
    fetches: Slab<u64>,
    latency: u64,
    launch_latency: u64,
    /// The first cycle in which it can give another line.
    free: u64,
}

impl SecondLevel {
    /// A cache of so many bytes. A line is there `latency` cycles after it is asked for. A line of a launch's values that is in no cache of
    /// the SM takes `launch_latency`: the front end has written it to L2 just before.
    pub fn new(bytes: u64, latency: u32, launch_latency: u32) -> SecondLevel {
        SecondLevel {
            lines: Lines::new(bytes / LINE_BYTES),
            fetches: Slab::default(),
            latency: u64::from(latency),
            launch_latency: u64::from(launch_latency),
            free: 0,
        }
    }

    /// Whether it is there at all; otherwise every line is where it is wanted.
    #[inline]
    pub fn is_absent(&self) -> bool {
        self.lines.is_empty()
    }

    /// Lines under way.
    pub fn under_way(&self) -> u32 {
        self.fetches.len()
    }

    /// Is asked for a line of code in a cycle: gives when it is there, [`UNDER_WAY`] where it comes from L2, which `wanted` is to be asked
    /// for unless it was.
    pub fn code(&mut self, line: u64, cycle: u64, wanted: &mut Wanted) -> u64 {
        match self.lines.find(line) {
            Some(UNDER_WAY) => UNDER_WAY,
            Some(from) => self.give(cycle).max(from),
            None => {
                self.fetch(line, wanted);
                UNDER_WAY
            }
        }
    }

    /// The same for a constant, where two lines are fetched together.
    pub fn constant(&mut self, line: u64, cycle: u64, wanted: &mut Wanted) -> u64 {
        let first = line / CONSTANT_LINES * CONSTANT_LINES;
        if line >= line_of(OF_LAUNCH) && self.lines.find(line).is_none() {
            let from = cycle + self.launch_latency;
            for line in first..first + CONSTANT_LINES {
                self.lines.insert(line, from);
            }
            return from;
        }
        let from = self.code(line, cycle, wanted);
        if from == UNDER_WAY {
            for other in first..first + CONSTANT_LINES {
                if self.lines.find(other).is_none() {
                    self.fetch(other, wanted);
                }
            }
        }
        from
    }

    /// Gives a line to a cache above it. Where it stands alone, as on a P100, sub-cores read their lines from it as they come to them.
    fn give(&mut self, cycle: u64) -> u64 {
        if self.latency == 0 {
            return cycle;
        }
        let start = cycle.max(self.free);
        self.free = start + 1;
        start + self.latency
    }

    fn fetch(&mut self, line: u64, wanted: &mut Wanted) {
        self.lines.insert(line, UNDER_WAY);
        wanted.push((self.fetches.insert(line), line * LINE_BYTES));
    }

    /// No line is there any more; those under way still come.
    pub fn clear(&mut self) {
        self.lines.clear();
    }

    /// The line that was asked for under a number has arrived from L2: gives the line, and when the caches above have it.
    pub fn arrived(&mut self, number: u32, cycle: u64) -> (u64, u64) {
        let line = self.fetches.remove(number);
        if self.lines.find(line).is_none() {
            self.lines.insert(line, UNDER_WAY);
        }
        self.lines.arrives(line, 0);
        (line, self.give(cycle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_asked_for_once_and_given_one_a_cycle() {
        let mut level = SecondLevel::new(128 << 10, 62, 218);
        let mut wanted = Wanted::new();
        let line = line_of(code_address(ProgramId(1)) + 256);
        assert_eq!(level.code(line, 100, &mut wanted), UNDER_WAY);
        assert_eq!(level.code(line, 101, &mut wanted), UNDER_WAY);
        assert_eq!(wanted, [(0, 0x7f80_0010_0100)]);
        assert_eq!(level.under_way(), 1);
        assert_eq!(level.arrived(0, 400), (line, 462));
        assert_eq!([400, 400, 410].map(|cycle| level.code(line, cycle, &mut wanted)), [463, 464, 472]);
    }

    #[test]
    fn constants_come_in_pairs_of_lines() {
        let mut level = SecondLevel::new(128 << 10, 62, 218);
        let mut wanted = Wanted::new();
        let of = |offset| line_of(constant_address(ProgramId(1), LaunchId(7), (3, offset), Some(0x7000_0000)));
        assert_eq!(level.constant(of(0x1a0), 10, &mut wanted), UNDER_WAY);
        assert_eq!(wanted, [(0, 0x7000_0180), (1, 0x7000_0100)]);
        assert_eq!(level.constant(of(0x100), 10, &mut wanted), UNDER_WAY);
        assert_eq!(wanted.len(), 2, "it is under way");
        level.arrived(0, 50);
        assert_eq!(level.constant(of(0x1a0), 60, &mut wanted), 122);
    }

    #[test]
    fn what_a_launch_says_comes_anew() {
        let mut level = SecondLevel::new(128 << 10, 62, 218);
        let mut wanted = Wanted::new();
        let of = |launch, offset| line_of(constant_address(ProgramId(1), LaunchId(launch), (0, offset), None));
        let at = [(7, 0x160, 10), (7, 0x1f0, 20), (7, 0x160, 300), (8, 0x160, 300)];
        let there = at.map(|(launch, offset, cycle)| level.constant(of(launch, offset), cycle, &mut wanted));
        assert_eq!(there, [228, 228, 362, 518]);
        assert!(wanted.is_empty());
    }

    #[test]
    fn each_bank_has_a_place_of_its_own() {
        let at = |bank| constant_address(ProgramId(2), LaunchId(1), (bank, 0x40), Some(0x7000_0000));
        assert_eq!(at(3), 0x7000_0040);
        assert_eq!((at(2), at(4)), (0x7f80_002e_0040, 0x7f80_002c_0040));
    }
}
