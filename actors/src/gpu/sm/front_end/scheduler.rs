//! A sub-core: which of its ready warps issues next, and when its pipes are free.

use crate::gpu::sm::parameters::SchedulerPolicy;
use crate::gpu::sm::warps::WarpSet;
use crate::gpu::sm::warps::wheel::only;
use balar_isa::program::{BankReads, Pipe};
use serde::{Deserialize, Serialize};

/// Most instructions of a sub-core that can wait for the load/store units.
const MOST_QUEUED: usize = 16;

/// How the sub-cores of an SM choose.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Which ready warp issues.
    pub policy: SchedulerPolicy,
    /// Warps in a group of the two-level policy.
    pub active_warps: usize,
    /// Sub-cores: warp w belongs to sub-core w modulo this.
    pub sub_cores: usize,
}

/// One of an SM's schedulers with its pipes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SubCore {
    /// First cycle in which each pipe can take an instruction.
    pipe_free: [u64; Pipe::ALL.len()],
    /// The warp that issued last.
    last: u8,
    /// Pipes that may be taken in the current cycle, one bit each.
    taken: u16,
    /// When the last instructions left for the load/store units, a ring.
    leaves: [u64; MOST_QUEUED],
    /// The oldest of them.
    oldest: u8,
    /// First cycle in which addresses of another instruction can be made.
    addresses_from: u64,
    /// First cycle in which each bank of the registers can give another one.
    banks_free: [u64; 2],
}

/// The act of a sub-core in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The warp that issues.
    pub warp: Option<usize>,
    /// Warps whose turn came before, and that found a structure taken.
    pub refused: WarpSet,
}

impl SubCore {
    /// A sub-core that issued `first` last.
    pub fn new(first: u8) -> SubCore {
        SubCore { last: first, ..SubCore::default() }
    }

    /// Warps whose pipe is taken in `cycle`.
    #[inline]
    pub fn blocked(&mut self, wants: &[WarpSet; Pipe::ALL.len()], cycle: u64) -> WarpSet {
        let mut blocked = 0;
        let mut pipes = self.taken;
        while pipes != 0 {
            let pipe = pipes.trailing_zeros() as usize % Pipe::ALL.len();
            pipes &= pipes - 1;
            if self.pipe_free[pipe] > cycle {
                blocked |= wants[pipe];
            } else {
                self.taken &= !(1 << pipe);
            }
        }
        blocked
    }

    /// Pipes that were taken when [`Self::blocked`] looked, one bit each.
    #[inline]
    pub fn taken(&self) -> u16 {
        self.taken
    }

    /// When the pipe can take an instruction.
    #[inline]
    pub fn free_from(&self, pipe: usize) -> u64 {
        self.pipe_free[pipe]
    }

    /// A warp issues: its pipe takes no other instruction before `free`.
    #[inline]
    pub fn issue(&mut self, warp: usize, pipe: Pipe, free: u64) {
        self.last = warp as u8;
        self.pipe_free[pipe as usize] = free;
        self.taken |= 1 << pipe as u16;
    }

    /// A pipe takes no instruction before `free`.
    #[inline]
    pub fn hold_pipe(&mut self, pipe: Pipe, free: u64) {
        self.pipe_free[pipe as usize] = free.max(self.pipe_free[pipe as usize]);
        self.taken |= 1 << pipe as u16;
    }

    /// A warp issues an instruction for the load/store units: in the next cycle another can follow.
    #[inline]
    pub fn issue_memory(&mut self, warp: usize, next: u64) {
        self.last = warp as u8;
        self.hold_memory(next);
    }

    #[inline]
    fn hold_memory(&mut self, free: u64) {
        for pipe in Pipe::MEMORY {
            self.hold_pipe(pipe, free);
        }
    }

    /// First cycle, from `cycle` on, in which the addresses of an instruction can be made that issues then.
    #[inline]
    pub fn addresses_from(&self, cycle: u64) -> u64 {
        self.addresses_from.max(cycle)
    }

    /// The instruction that issued last leaves the queue of `entries` for the load/store units in a cycle; the addresses of the next can be
    /// made `addresses_from` another.
    #[inline]
    pub fn leaves(&mut self, cycle: u64, addresses_from: u64, entries: u8) {
        self.addresses_from = addresses_from;
        self.leaves[usize::from(self.oldest) % MOST_QUEUED] = cycle;
        self.oldest = (self.oldest + 1) % entries;
        self.hold_memory(self.leaves[usize::from(self.oldest) % MOST_QUEUED]);
    }

    /// An instruction that issues in a cycle reads registers. Where its operands are read in so many cycles, a bank gives one register in
    /// each of them, and what it has not given by then holds the instruction up, and all behind it. With 0 cycles, a bank gives an instruction
    /// two registers in the time that its pipe takes anyway, and each further one takes a cycle.
    #[inline]
    pub fn read(&mut self, registers: BankReads, cycles: u64, cycle: u64) {
        let later = if cycles == 0 {
            u64::from(registers.of_one_bank()).saturating_sub(2)
        } else {
            let mut last = 0_u64;
            for (free, count) in self.banks_free.iter_mut().zip(registers.by_bank()) {
                *free = cycle.max(*free) + u64::from(count);
                last = last.max(*free);
            }
            last.saturating_sub(cycle + cycles)
        };
        if later > 0 {
            self.hold(cycle + 1 + later);
        }
    }

    /// Takes no instruction at all before `free`.
    #[cold]
    pub fn hold(&mut self, free: u64) {
        for pipe in &mut self.pipe_free {
            *pipe = free.max(*pipe);
        }
        self.taken = (1 << Pipe::ALL.len()) - 1;
    }

    /// The warp that the policy comes to first among `ready` ones. There is at least one.
    #[inline]
    pub fn first(&self, policy: &Policy, ready: WarpSet, older: &[WarpSet]) -> usize {
        let last = usize::from(self.last);
        match policy.policy {
            SchedulerPolicy::GreedyThenOldest | SchedulerPolicy::GreedyThenYoungest if ready >> last & 1 == 1 => last,
            SchedulerPolicy::GreedyThenOldest => oldest(ready, older),
            SchedulerPolicy::GreedyThenYoungest => youngest(ready, older),
            SchedulerPolicy::LooseRoundRobin => next_ready(last, ready),
            SchedulerPolicy::TwoLevel => self.choose(policy, ready, 0, older).warp.unwrap_or(last),
        }
    }

    /// The warp that the policy issues among `ready` ones, and those `blocked` that it would have come to before.
    #[inline]
    pub fn choose(&self, policy: &Policy, ready: WarpSet, blocked: WarpSet, older: &[WarpSet]) -> Choice {
        let last = usize::from(self.last);
        match policy.policy {
            SchedulerPolicy::GreedyThenOldest | SchedulerPolicy::GreedyThenYoungest => {
                if ready == 0 {
                    return Choice { warp: None, refused: blocked };
                }
                if ready >> last & 1 == 1 {
                    return Choice { warp: Some(last), refused: 0 };
                }
                let (warp, before) = if policy.policy == SchedulerPolicy::GreedyThenOldest {
                    let warp = oldest(ready, older);
                    (warp, older[warp])
                } else {
                    let warp = youngest(ready, older);
                    (warp, !older[warp])
                };
                Choice { warp: Some(warp), refused: blocked & (before | only(last)) }
            }
            SchedulerPolicy::LooseRoundRobin => next_after(last, ready, blocked),
            SchedulerPolicy::TwoLevel => {
                let group = group(policy, last);
                let near = next_after(last, ready & group, blocked & group);
                if near.warp.is_some() {
                    return near;
                }
                let far = next_after(last, ready, blocked & !group);
                Choice { warp: far.warp, refused: near.refused | far.refused }
            }
        }
    }
}

/// The warps of a sub-core's group that `warp` belongs to, with others that belong to other sub-cores.
fn group(policy: &Policy, warp: usize) -> WarpSet {
    let Policy { active_warps, sub_cores, .. } = *policy;
    let first = warp / sub_cores / active_warps * active_warps * sub_cores;
    let length = (active_warps * sub_cores).min(WarpSet::BITS as usize);
    (WarpSet::MAX >> (WarpSet::BITS as usize - length)) << first
}

/// The warp that came first; the set is not empty.
#[inline]
fn oldest(set: WarpSet, older: &[WarpSet]) -> usize {
    let mut warp = set.trailing_zeros() as usize;
    loop {
        let before = set & older[warp];
        if before == 0 {
            return warp;
        }
        warp = before.trailing_zeros() as usize;
    }
}

/// The warp that came last; the set is not empty.
#[inline]
fn youngest(set: WarpSet, older: &[WarpSet]) -> usize {
    let mut warp = set.trailing_zeros() as usize;
    loop {
        let after = set & !older[warp] & !only(warp);
        if after == 0 {
            return warp;
        }
        warp = after.trailing_zeros() as usize;
    }
}

/// The next ready warp by number after `last`, which comes last itself.
#[inline]
fn next_after(last: usize, ready: WarpSet, blocked: WarpSet) -> Choice {
    if ready == 0 {
        return Choice { warp: None, refused: blocked };
    }
    let warp = next_ready(last, ready);
    let before = only(warp) - 1;
    let above = above(last);
    let refused = blocked & if warp > last { above & before } else { above | before };
    Choice { warp: Some(warp), refused }
}

/// The next warp of a set by number after `last`, which comes last itself; the set is not empty.
#[inline]
fn next_ready(last: usize, ready: WarpSet) -> usize {
    let later = ready & above(last);
    (if later != 0 { later } else { ready }).trailing_zeros() as usize
}

/// The warps with larger numbers.
#[inline]
fn above(warp: usize) -> WarpSet {
    (WarpSet::MAX << warp) & !only(warp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(policy: SchedulerPolicy) -> Policy {
        Policy { policy, active_warps: 2, sub_cores: 1 }
    }

    /// Warps 0 to 3. Warp 1 came first, then 2, 0 and 3.
    const OLDER: [WarpSet; 4] = [0b0110, 0, 0b0010, 0b0111];

    fn order(which: SchedulerPolicy, cycles: usize) -> Vec<usize> {
        let mut core = SubCore::new(3);
        let mut ready = 0b1111;
        (0..cycles)
            .filter_map(|_| {
                let warp = core.choose(&policy(which), ready, 0, &OLDER).warp?;
                core.issue(warp, Pipe::Int, 0);
                if matches!(which, SchedulerPolicy::GreedyThenOldest | SchedulerPolicy::GreedyThenYoungest) {
                    ready &= !only(warp);
                }
                Some(warp)
            })
            .collect()
    }

    #[test]
    fn policies() {
        assert_eq!(order(SchedulerPolicy::GreedyThenOldest, 5), [3, 1, 2, 0]);
        assert_eq!(order(SchedulerPolicy::GreedyThenYoungest, 5), [3, 0, 2, 1]);
        assert_eq!(order(SchedulerPolicy::LooseRoundRobin, 5), [0, 1, 2, 3, 0]);
        assert_eq!(order(SchedulerPolicy::TwoLevel, 4), [2, 3, 2, 3]);
    }

    /// Those that the policy would have come to before the one that issues are refused, and only those.
    #[test]
    fn who_is_refused() {
        for (which, last, ready, blocked, warp, refused) in [
            (SchedulerPolicy::GreedyThenOldest, 3, 0b1000, 0b0111, Some(3), 0),
            (SchedulerPolicy::GreedyThenOldest, 3, 0b0100, 0b1011, Some(2), 0b1010),
            (SchedulerPolicy::GreedyThenOldest, 0, 0, 0b1010, None, 0b1010),
            (SchedulerPolicy::GreedyThenYoungest, 3, 0b0100, 0b1011, Some(2), 0b1001),
            (SchedulerPolicy::GreedyThenYoungest, 0, 0, 0b1010, None, 0b1010),
            (SchedulerPolicy::LooseRoundRobin, 1, 0b1000, 0b0101, Some(3), 0b0100),
            (SchedulerPolicy::LooseRoundRobin, 1, 0b0010, 0b1101, Some(1), 0b1101),
            (SchedulerPolicy::LooseRoundRobin, 2, 0b0010, 0b1101, Some(1), 0b1001),
            (SchedulerPolicy::TwoLevel, 3, 0b0011, 0b1100, Some(0), 0b1100),
            (SchedulerPolicy::TwoLevel, 3, 0b0100, 0b1011, Some(2), 0),
        ] {
            let choice = SubCore::new(last).choose(&policy(which), ready, blocked, &OLDER);
            assert_eq!(choice, Choice { warp, refused }, "{which:?} after {last}: {ready:#b}, {blocked:#b}");
        }
    }

    #[test]
    fn a_taken_pipe_blocks_the_warps_that_want_it() {
        let mut core = SubCore::new(0);
        let mut wants = [0; Pipe::ALL.len()];
        (wants[Pipe::Int as usize], wants[Pipe::Sfu as usize]) = (0b01, 0b10);
        core.issue(0, Pipe::Int, 12);
        core.issue(1, Pipe::Sfu, 14);
        assert_eq!([10, 12, 13, 14].map(|cycle| core.blocked(&wants, cycle)), [0b11, 0b10, 0b10, 0]);
    }

    #[test]
    fn groups_count_the_warps_of_one_sub_core() {
        let policy = Policy { policy: SchedulerPolicy::TwoLevel, active_warps: 2, sub_cores: 4 };
        // Warps 8 and 12 are the third and the fourth of sub-core 0.
        assert_eq!(group(&policy, 12) & 0x1111_1111, only(8) | only(12));
    }

    #[test]
    fn instructions_wait_for_the_load_store_units_in_a_queue() {
        let mut sub_core = SubCore::new(0);
        let memory = Pipe::Load as usize;
        // Two entries; addresses take 4 cycles, and the units are busy until cycle 20.
        for (cycle, addresses, taken, free) in [(10, 10, 20, 11), (11, 21, 21, 20), (20, 25, 25, 21)] {
            assert!(sub_core.free_from(memory) <= cycle);
            sub_core.issue_memory(1, cycle + 1);
            assert_eq!(sub_core.addresses_from(cycle), addresses);
            sub_core.leaves(taken, (addresses + 4).max(taken + 1), 2);
            assert_eq!(sub_core.free_from(memory), free);
        }
        assert_eq!(sub_core.free_from(Pipe::Int as usize), 0);
    }
}
