//! When the warps of an SM become ready: a wheel of cycles, each with a set of warps.

use crate::gpu::sm::serde_array;
use serde::{Deserialize, Serialize};

/// Warps of an SM, one bit each. No GPU has had more than 64 since compute capability 3.0 (CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability").
pub type WarpSet = u64;

/// The set of one warp.
#[inline]
pub fn only(warp: usize) -> WarpSet {
    1 << warp
}

/// How many warps a set has. Most sets have one at most, and not every processor counts bits by itself.
#[inline]
pub fn count(set: WarpSet) -> u64 {
    if set & set.wrapping_sub(1) == 0 { u64::from(set != 0) } else { u64::from(set.count_ones()) }
}

/// The warps of a set, ascending.
#[inline]
pub fn members(mut set: WarpSet) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (set != 0).then(|| {
            let warp = set.trailing_zeros() as usize;
            set &= set - 1;
            warp
        })
    })
}

/// Cycles that the wheel looks ahead.
const CYCLES: usize = 64;

/// Which warps are ready, and when the others will be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Wheel {
    /// Warps that could issue in the current cycle, as far as their operands go.
    ready: WarpSet,
    /// Slots of the wheel that are not empty.
    occupied: u64,
    /// The cycle up to which the wheel has been emptied.
    now: u64,
    /// The first cycle in `far`; `u64::MAX` where it is empty.
    far_first: u64,
    /// Warps that become ready in the 63 cycles after `now`, by cycle modulo the wheel's size.
    #[serde(with = "serde_array")]
    slots: [WarpSet; CYCLES],
    /// Warps that become ready later: (cycle, warp).
    far: Vec<(u64, u8)>,
}

impl Default for Wheel {
    fn default() -> Self {
        Wheel { ready: 0, occupied: 0, now: 0, far_first: u64::MAX, slots: [0; CYCLES], far: Vec::new() }
    }
}

impl Wheel {
    /// These warps are ready from `cycle` on.
    #[inline]
    pub fn insert(&mut self, warps: WarpSet, cycle: u64) {
        if cycle <= self.now {
            self.ready |= warps;
        } else if cycle - self.now < CYCLES as u64 {
            let slot = cycle as usize % CYCLES;
            self.slots[slot] |= warps;
            self.occupied |= 1 << slot;
        } else {
            self.far.extend(members(warps).map(|warp| (cycle, warp as u8)));
            self.far_first = self.far_first.min(cycle);
        }
    }

    /// The current cycle.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// A warp that becomes ready in a cycle of the wheel becomes so later.
    #[inline]
    pub fn postpone(&mut self, warp: usize, from: u64, to: u64) {
        let slot = from as usize % CYCLES;
        self.slots[slot] &= !only(warp);
        if self.slots[slot] == 0 {
            self.occupied &= !(1 << slot);
        }
        self.insert(only(warp), to);
    }

    /// Warps that are ready.
    #[inline]
    pub fn ready(&self) -> WarpSet {
        self.ready
    }

    /// These warps are no longer ready: they issue, or have to wait after all.
    #[inline]
    pub fn take(&mut self, warps: WarpSet) {
        self.ready &= !warps;
    }

    /// Forgets a warp that leaves the SM before its time, and tells when it would have become ready, if later than now.
    pub fn remove(&mut self, warp: usize) -> Option<u64> {
        self.take(only(warp));
        let mut due = None;
        for ahead in 1..CYCLES as u64 {
            let slot = (self.now + ahead) as usize % CYCLES;
            if self.slots[slot] & only(warp) != 0 {
                self.slots[slot] &= !only(warp);
                due = Some(self.now + ahead);
                if self.slots[slot] == 0 {
                    self.occupied &= !(1 << slot);
                }
            }
        }
        self.far.retain(|&(cycle, waiting)| {
            let leaves = usize::from(waiting) == warp;
            if leaves {
                due = Some(cycle);
            }
            !leaves
        });
        self.far_first = self.far.iter().map(|&(cycle, _)| cycle).min().unwrap_or(u64::MAX);
        due
    }

    /// The cycle when each warp becomes ready, if later than now.
    pub fn due(&self) -> [Option<u64>; WarpSet::BITS as usize] {
        let mut due = [None; WarpSet::BITS as usize];
        for ahead in 1..CYCLES as u64 {
            let waiting = self.slots[(self.now + ahead) as usize % CYCLES];
            members(waiting).for_each(|warp| due[warp] = Some(self.now + ahead));
        }
        for &(cycle, warp) in &self.far {
            due[usize::from(warp)] = Some(cycle);
        }
        due
    }

    /// Goes on to `cycle`: warps that are due become ready.
    #[inline]
    pub fn advance_to(&mut self, cycle: u64) {
        let elapsed = cycle.saturating_sub(self.now);
        if elapsed == 0 {
            return;
        }
        if self.occupied != 0 {
            let span = if elapsed >= CYCLES as u64 { u64::MAX } else { (1 << elapsed) - 1 };
            let mut due = self.occupied & span.rotate_left(((self.now + 1) % CYCLES as u64) as u32);
            self.occupied &= !due;
            while due != 0 {
                let slot = due.trailing_zeros() as usize;
                due &= due - 1;
                self.ready |= std::mem::take(&mut self.slots[slot]);
            }
        }
        self.now = cycle;
        if self.far_first < cycle + CYCLES as u64 {
            self.approach(cycle);
        }
    }

    /// Warps that were far ahead come into the wheel.
    #[cold]
    fn approach(&mut self, cycle: u64) {
        let mut at = 0;
        while at < self.far.len() {
            if self.far[at].0 < cycle + CYCLES as u64 {
                let (due, warp) = self.far.swap_remove(at);
                self.insert(only(usize::from(warp)), due);
            } else {
                at += 1;
            }
        }
        self.far_first = self.far.iter().map(|&(cycle, _)| cycle).min().unwrap_or(u64::MAX);
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
            let ahead = self.occupied.rotate_right(((self.now + 1) % CYCLES as u64) as u32);
            self.now + 1 + u64::from(ahead.trailing_zeros())
        };
        near.min(self.far_first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warps_become_ready_in_their_cycle() {
        let mut wheel = Wheel::default();
        for (warp, cycle) in [(0, 5), (1, 63), (62, 64), (3, 1000), (4, 0)] {
            wheel.insert(only(warp), cycle);
        }
        assert_eq!(wheel.ready(), only(4));
        wheel.take(only(4));
        let mut seen = Vec::new();
        while wheel.next_ready() != u64::MAX {
            let cycle = wheel.next_ready();
            wheel.advance_to(cycle);
            seen.extend(members(wheel.ready()).map(|warp| (warp, cycle)));
            wheel.take(wheel.ready());
        }
        assert_eq!(seen, [(0, 5), (1, 63), (62, 64), (3, 1000)]);
    }

    #[test]
    fn a_warp_is_postponed_alone() {
        let mut wheel = Wheel::default();
        wheel.insert(0b11, 1);
        wheel.insert(0b100, 2);
        wheel.postpone(0, 1, 80);
        wheel.postpone(2, 2, 3);
        let ready = [1, 2, 3, 80].map(|cycle| {
            wheel.advance_to(cycle);
            wheel.ready()
        });
        assert_eq!(ready, [0b010, 0b010, 0b110, 0b111]);
    }

    #[test]
    fn a_long_jump_misses_nothing() {
        let mut wheel = Wheel::default();
        wheel.insert(only(0), 10);
        wheel.insert(only(1), 70);
        wheel.advance_to(500);
        assert_eq!(wheel.ready(), 0b11);
    }

    #[test]
    fn a_warp_that_leaves_is_not_found_again() {
        let mut wheel = Wheel::default();
        wheel.advance_to(100);
        wheel.insert(0b11, 130);
        wheel.insert(only(2), 400);
        wheel.insert(only(3), 100);
        assert_eq!([0, 1, 2, 3].map(|warp| wheel.due()[warp]), [Some(130), Some(130), Some(400), None]);
        assert_eq!([0, 2, 3, 5].map(|warp| wheel.remove(warp)), [Some(130), Some(400), None, None]);
        wheel.advance_to(500);
        assert_eq!((wheel.ready(), wheel.next_ready()), (0b10, 501));
    }
}
