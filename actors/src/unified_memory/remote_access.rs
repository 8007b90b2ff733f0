//! Remote access: when a page stays where it is although another processor accesses it.

use super::Access;
use super::eviction::Frames;
use serde::{Deserialize, Serialize};

/// Bits of a leaf's count of accesses.
const ACCESS_BITS: u32 = 27;
/// The most accesses that a leaf counts.
pub const MOST_ACCESSES: u32 = (1 << ACCESS_BITS) - 1;
/// The most round trips that a leaf counts: its register has 32 bits, and the round trips the 5 above the accesses.
pub const MOST_ROUND_TRIPS: u32 = u32::MAX >> ACCESS_BITS;

/// For each 64 KiB leaf, how often it was accessed, locally and from afar, and how often it went to a GPU and back (UVMSmart, bafab5d).
///
/// Where a counter is full and should count on, the counters of its kind of all leaves are halved first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessCounters {
    /// Round trips above accesses, by leaf.
    registers: Vec<u32>,
}

impl AccessCounters {
    /// Counts an access to a leaf. The caller numbers leaves from 0.
    pub fn count_access(&mut self, leaf: usize) {
        if self.accesses(leaf) == MOST_ACCESSES {
            for register in &mut self.registers {
                *register = (*register & !MOST_ACCESSES) | ((*register & MOST_ACCESSES) / 2);
            }
        }
        *self.register(leaf) += 1;
    }

    /// Counts several accesses to a leaf.
    pub fn count_accesses(&mut self, leaf: usize, count: u32) {
        for _ in 0..count {
            self.count_access(leaf);
        }
    }

    /// Round trips above accesses, by leaf.
    pub fn registers(&self) -> &[u32] {
        &self.registers
    }

    /// Counters with these registers.
    pub fn from_registers(registers: Vec<u32>) -> AccessCounters {
        AccessCounters { registers }
    }

    /// Counts that a leaf left the GPU again. UVMSmart counts it for all leaves of a 2 MiB block when one of them is written back.
    pub fn count_round_trip(&mut self, leaf: usize) {
        if self.round_trips(leaf) == MOST_ROUND_TRIPS {
            for register in &mut self.registers {
                *register = (*register & MOST_ACCESSES) | (((*register >> ACCESS_BITS) / 2) << ACCESS_BITS);
            }
        }
        *self.register(leaf) += 1 << ACCESS_BITS;
    }

    /// How often a leaf was accessed.
    pub fn accesses(&self, leaf: usize) -> u32 {
        self.registers.get(leaf).map_or(0, |register| register & MOST_ACCESSES)
    }

    /// How often a leaf left the GPU again.
    pub fn round_trips(&self, leaf: usize) -> u32 {
        self.registers.get(leaf).map_or(0, |register| register >> ACCESS_BITS)
    }

    /// All counters are 0 again: a device synchronisation.
    pub fn reset(&mut self) {
        self.registers.clear();
    }

    fn register(&mut self, leaf: usize) -> &mut u32 {
        if leaf >= self.registers.len() {
            self.registers.resize(leaf + 1, 0);
        }
        &mut self.registers[leaf]
    }
}

/// Under which circumstances reads leave a page on the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RemoteAccessMode {
    /// Never: each fault migrates (UVMSmart's mode 0).
    #[default]
    Off,
    /// A threshold that grows with the occupied memory, and with round trips once the memory is oversubscribed (mode 1).
    Adaptive,
    /// Below the threshold (mode 2).
    Always,
    /// Below the threshold, once the memory is oversubscribed (mode 3).
    AfterOversubscription,
}

/// Decides between migration and remote access (UVMSmart, bafab5d; the study of IPDPS 2020).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RemoteAccessRule {
    /// When reads stay remote at all.
    pub mode: RemoteAccessMode,
    /// Accesses of a leaf from which on it migrates (`migrate_threshold`: 8 for the GTX 1080 Ti; 8, 16 and 32 in the study).
    pub threshold: u64,
    /// The factor of the threshold for each round trip, in oversubscribed memory and adaptive mode (`multiply_dma_penalty`: 2 for the GTX
    /// 1080 Ti; 2, 4, 8 and 2^20 in the study).
    pub penalty: u64,
}

impl Default for RemoteAccessRule {
    fn default() -> Self {
        RemoteAccessRule { mode: RemoteAccessMode::Off, threshold: 8, penalty: 2 }
    }
}

impl RemoteAccessRule {
    /// Do accesses from afar bring a page nearer?
    pub fn counts_accesses(&self) -> bool {
        self.mode != RemoteAccessMode::Off
    }

    /// Does a faulting access migrate its page? `accesses` and `round_trips` are those of its leaf, `oversubscribed` whether the memory has
    /// been too small since the last device synchronisation. Otherwise the page is accessed where it is.
    pub fn migrates(
        &self,
        access: Access,
        accesses: u32,
        round_trips: u32,
        oversubscribed: bool,
        frames: &Frames,
    ) -> bool {
        if access.writes() {
            return true;
        }
        let threshold = match (self.mode, oversubscribed) {
            (RemoteAccessMode::Off, _) | (RemoteAccessMode::AfterOversubscription, false) => return true,
            (RemoteAccessMode::Always, _) | (RemoteAccessMode::AfterOversubscription, true) => self.threshold,
            (RemoteAccessMode::Adaptive, false) => frames.one_and_occupancy_times(self.threshold),
            (RemoteAccessMode::Adaptive, true) => {
                self.threshold.saturating_mul(self.penalty).saturating_mul(u64::from(round_trips) + 1)
            }
        };
        u64::from(accesses) >= threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_counted_apart() {
        let mut counters = AccessCounters::default();
        for leaf in [3, 3, 1] {
            counters.count_access(leaf);
        }
        counters.count_round_trip(3);
        let read = |counters: &AccessCounters| {
            [0, 1, 2, 3, 9].map(|leaf| (counters.accesses(leaf), counters.round_trips(leaf)))
        };
        assert_eq!(read(&counters), [(0, 0), (1, 0), (0, 0), (2, 1), (0, 0)]);
        counters.reset();
        assert_eq!(read(&counters), [(0, 0); 5]);
    }

    #[test]
    fn full_counters_halve_all_of_their_kind() {
        assert_eq!((MOST_ACCESSES, MOST_ROUND_TRIPS), (134_217_727, 31));
        let mut counters = AccessCounters { registers: vec![MOST_ACCESSES, 7, (5 << 27) | 4] };
        counters.count_access(0);
        assert_eq!([0, 1, 2].map(|leaf| counters.accesses(leaf)), [MOST_ACCESSES / 2 + 1, 3, 2]);
        assert_eq!(counters.round_trips(2), 5);
        for _ in 0..31 {
            counters.count_round_trip(1);
        }
        assert_eq!([1, 2].map(|leaf| counters.round_trips(leaf)), [31, 5]);
        counters.count_round_trip(1);
        assert_eq!([1, 2].map(|leaf| counters.round_trips(leaf)), [16, 2]);
        assert_eq!([0, 1, 2].map(|leaf| counters.accesses(leaf)), [MOST_ACCESSES / 2 + 1, 3, 2]);
    }

    #[test]
    fn modes_differ_in_their_thresholds() {
        // Section 1.6 by hand. Half of the memory is occupied: floor(1 + 8 * 0.5) = 5.
        let frames = Frames { total: 100, free: 50, ..Frames::default() };
        /// The fewest accesses with which a read migrates.
        fn fewest(mode: RemoteAccessMode, round_trips: u32, oversubscribed: bool, frames: &Frames) -> Option<u32> {
            let rule = RemoteAccessRule { mode, ..RemoteAccessRule::default() };
            assert!(rule.migrates(Access::Write, 0, round_trips, oversubscribed, frames));
            assert!(rule.migrates(Access::Atomic, 0, round_trips, oversubscribed, frames));
            (0..1000).find(|&accesses| rule.migrates(Access::Read, accesses, round_trips, oversubscribed, frames))
        }
        use RemoteAccessMode::{Adaptive, AfterOversubscription, Always, Off};
        for (mode, oversubscribed, expected) in [
            (Off, false, [0, 0]),
            (Off, true, [0, 0]),
            (Always, false, [8, 8]),
            (Always, true, [8, 8]),
            (AfterOversubscription, false, [0, 0]),
            (AfterOversubscription, true, [8, 8]),
            (Adaptive, false, [5, 5]),
            (Adaptive, true, [16, 64]),
        ] {
            let found = [0, 3].map(|round_trips| fewest(mode, round_trips, oversubscribed, &frames));
            assert_eq!(found, expected.map(Some), "{mode:?}, oversubscribed: {oversubscribed}");
        }
        // A penalty of 2^20 keeps pages on the host.
        let rule = RemoteAccessRule { mode: Adaptive, threshold: 8, penalty: 1 << 20 };
        assert!(!rule.migrates(Access::Read, 8_000_000, 0, true, &frames));
    }

    #[test]
    fn ron_reads_a_rule() {
        let rule: RemoteAccessRule = ron::from_str("(mode: Adaptive, penalty: 4)").expect("it is a rule");
        assert_eq!(rule, RemoteAccessRule { mode: RemoteAccessMode::Adaptive, threshold: 8, penalty: 4 });
    }
}
