//! A sub-core: which of its warps are ready, when the others will be, and when its pipes are free.

use super::parameters::SchedulerPolicy;
use balar_isa::program::Pipe;

/// Cycles that the wheel looks ahead.
const WHEEL: usize = 64;

/// One of an SM's schedulers with its pipes. Warps are numbered within the sub-core, 0 to 63.
#[derive(Debug)]
pub struct SubCore {
    /// Warps that could issue in the current cycle, as far as their operands go.
    ready: u64,
    /// Warps that become ready in the 63 cycles after `now`, by cycle modulo the wheel's size.
    wheel: [u64; WHEEL],
    /// Slots of the wheel that are not empty.
    occupied: u64,
    /// Warps that become ready later: (cycle, warp).
    far: Vec<(u64, u8)>,
    /// The first cycle in `far`; `u64::MAX` where it is empty.
    far_first: u64,
    /// The cycle up to which the wheel has been emptied.
    now: u64,
    /// The warp that issued last.
    last: u8,
    /// When each warp came to the SM; smaller is older.
    ages: [u64; 64],
    /// First cycle in which each pipe can take an instruction.
    pub pipe_free: [u64; Pipe::ALL.len()],
}

impl Default for SubCore {
    fn default() -> Self {
        SubCore {
            ready: 0,
            wheel: [0; WHEEL],
            occupied: 0,
            far: Vec::new(),
            far_first: u64::MAX,
            now: 0,
            last: 0,
            ages: [0; 64],
            pipe_free: [0; Pipe::ALL.len()],
        }
    }
}

impl SubCore {
    /// Warp `warp` comes to the SM as the `age`-th.
    pub fn set_age(&mut self, warp: u8, age: u64) {
        self.ages[usize::from(warp)] = age;
    }

    /// Warp `warp` is ready from `cycle` on.
    #[inline]
    pub fn insert(&mut self, warp: u8, cycle: u64) {
        if cycle <= self.now {
            self.ready |= 1 << warp;
        } else if cycle - self.now < WHEEL as u64 {
            let slot = (cycle % WHEEL as u64) as usize;
            self.wheel[slot] |= 1 << warp;
            self.occupied |= 1 << slot;
        } else {
            self.far.push((cycle, warp));
            self.far_first = self.far_first.min(cycle);
        }
    }

    /// Forgets a warp that leaves the SM before its time.
    pub fn remove(&mut self, warp: u8) {
        self.ready &= !(1 << warp);
        for (slot, warps) in self.wheel.iter_mut().enumerate() {
            *warps &= !(1 << warp);
            if *warps == 0 {
                self.occupied &= !(1 << slot);
            }
        }
        self.far.retain(|&(_, waiting)| waiting != warp);
        self.far_first = self.far.iter().map(|&(cycle, _)| cycle).min().unwrap_or(u64::MAX);
    }

    /// Goes on to `cycle`: what is due becomes ready.
    #[inline]
    pub fn advance_to(&mut self, cycle: u64) {
        let elapsed = cycle.saturating_sub(self.now);
        if elapsed == 0 {
            return;
        }
        if self.occupied != 0 {
            let span = if elapsed >= WHEEL as u64 { u64::MAX } else { (1 << elapsed) - 1 };
            let mut due = self.occupied & span.rotate_left(((self.now + 1) % WHEEL as u64) as u32);
            self.occupied &= !due;
            while due != 0 {
                let slot = due.trailing_zeros() as usize;
                due &= due - 1;
                self.ready |= std::mem::take(&mut self.wheel[slot]);
            }
        }
        self.now = cycle;
        if self.far_first < cycle + WHEEL as u64 {
            let mut at = 0;
            while at < self.far.len() {
                if self.far[at].0 < cycle + WHEEL as u64 {
                    let (due, warp) = self.far.swap_remove(at);
                    self.insert(warp, due);
                } else {
                    at += 1;
                }
            }
            self.far_first = self.far.iter().map(|&(cycle, _)| cycle).min().unwrap_or(u64::MAX);
        }
    }

    /// The next cycle after the current one in which a warp is ready; `u64::MAX` where none will be by itself.
    #[inline]
    pub fn next_ready(&self) -> u64 {
        if self.ready != 0 {
            return self.now + 1;
        }
        let near = if self.occupied == 0 {
            u64::MAX
        } else {
            let ahead = self.occupied.rotate_right(((self.now + 1) % WHEEL as u64) as u32);
            self.now + 1 + u64::from(ahead.trailing_zeros())
        };
        near.min(self.far_first)
    }

    /// Is any warp ready now?
    #[inline]
    pub fn has_ready(&self) -> bool {
        self.ready != 0
    }

    /// The warp that the policy issues next; it stays ready until [`Self::take`].
    #[inline]
    pub fn choose(&self, policy: SchedulerPolicy, active_warps: u32) -> Option<u8> {
        if self.ready == 0 {
            return None;
        }
        Some(match policy {
            SchedulerPolicy::GreedyThenOldest => {
                if self.ready >> self.last & 1 == 1 {
                    self.last
                } else {
                    self.oldest()
                }
            }
            SchedulerPolicy::LooseRoundRobin => self.next_after(self.last, self.ready),
            SchedulerPolicy::TwoLevel => {
                let first = u32::from(self.last) / active_warps * active_warps;
                let group = (u64::MAX >> (64 - active_warps.min(64))) << first;
                match self.ready & group {
                    0 => self.next_after(self.last, self.ready),
                    ready => self.next_after(self.last, ready),
                }
            }
        })
    }

    fn oldest(&self) -> u8 {
        let mut ready = self.ready;
        let mut best = ready.trailing_zeros() as u8;
        ready &= ready - 1;
        while ready != 0 {
            let warp = ready.trailing_zeros() as u8;
            ready &= ready - 1;
            if self.ages[usize::from(warp)] < self.ages[usize::from(best)] {
                best = warp;
            }
        }
        best
    }

    fn next_after(&self, warp: u8, ready: u64) -> u8 {
        let later = ready & (u64::MAX << warp) & !(1 << warp);
        if later != 0 { later.trailing_zeros() as u8 } else { ready.trailing_zeros() as u8 }
    }

    /// Warp `warp` is no longer ready: it issues, or has to wait after all.
    #[inline]
    pub fn take(&mut self, warp: u8) {
        self.ready &= !(1 << warp);
    }

    /// Warp `warp` has issued.
    #[inline]
    pub fn issued(&mut self, warp: u8) {
        self.last = warp;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(policy: SchedulerPolicy, cycles: usize) -> Vec<u8> {
        let mut core = SubCore::default();
        for (warp, age) in [(0, 30), (1, 10), (2, 20), (3, 40)] {
            core.set_age(warp, age);
            core.insert(warp, 0);
        }
        core.last = 3;
        (0..cycles)
            .filter_map(|_| {
                let warp = core.choose(policy, 2)?;
                core.issued(warp);
                if policy == SchedulerPolicy::GreedyThenOldest {
                    core.take(warp);
                }
                Some(warp)
            })
            .collect()
    }

    #[test]
    fn policies() {
        assert_eq!(order(SchedulerPolicy::GreedyThenOldest, 5), [3, 1, 2, 0]);
        assert_eq!(order(SchedulerPolicy::LooseRoundRobin, 5), [0, 1, 2, 3, 0]);
        assert_eq!(order(SchedulerPolicy::TwoLevel, 4), [2, 3, 2, 3]);
    }

    #[test]
    fn warps_become_ready_in_their_cycle() {
        let mut core = SubCore::default();
        for (warp, cycle) in [(0, 5), (1, 63), (2, 64), (3, 1000), (4, 0)] {
            core.insert(warp, cycle);
        }
        assert_eq!(core.choose(SchedulerPolicy::LooseRoundRobin, 1), Some(4));
        core.take(4);
        let mut seen = Vec::new();
        while core.next_ready() != u64::MAX {
            let cycle = core.next_ready();
            core.advance_to(cycle);
            let warp = core.choose(SchedulerPolicy::LooseRoundRobin, 1).expect("a warp is ready");
            core.take(warp);
            seen.push((warp, cycle));
        }
        assert_eq!(seen, [(0, 5), (1, 63), (2, 64), (3, 1000)]);
    }

    #[test]
    fn a_long_jump_misses_nothing() {
        let mut core = SubCore::default();
        core.insert(0, 10);
        core.insert(1, 70);
        core.advance_to(500);
        assert_eq!(core.ready, 0b11);
    }
}
