//! What units count by launch: requests name the launch that they are of, so that each is charged to its own, however many kernels run.

use crate::cuda::LaunchId;
use crate::kernel_records::KernelRecords;
use crate::statistics::{CtaCounters, KernelCounters, KernelRecord, UnitCounters};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Part of [`UnitCounters`], as one unit counts it.
pub trait Share: Copy + Default {
    /// Adds these counts to those of a launch.
    fn give(&self, to: &mut UnitCounters);
}

/// A unit's counts by launch, until they are taken.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ByLaunch<C> {
    /// The launch that was counted for last; 0 = none, whose counts nobody takes.
    launch: u32,
    current: C,
    /// The others, ascending.
    others: Vec<(u32, C)>,
}

impl<C: Share> ByLaunch<C> {
    /// The counts of a launch.
    #[inline]
    pub fn of(&mut self, launch: u32) -> &mut C {
        if launch != self.launch {
            self.turn_to(launch);
        }
        &mut self.current
    }

    #[cold]
    fn turn_to(&mut self, launch: u32) {
        let current = std::mem::take(&mut self.current);
        if self.launch != 0 {
            let place = self.others.partition_point(|(other, _)| *other < self.launch);
            self.others.insert(place, (self.launch, current));
        }
        self.launch = launch;
        if let Ok(place) = self.others.binary_search_by_key(&launch, |(other, _)| *other) {
            self.current = self.others.remove(place).1;
        }
    }

    /// Gives what has been counted since the last time, launch by launch.
    pub fn give(&mut self, totals: &mut LaunchTotals) {
        self.turn_to(0);
        for (launch, counts) in self.others.drain(..) {
            counts.give(totals.of(LaunchId(launch)));
        }
    }
}

/// How many launches [`LaunchTotals`] holds ready to be added to.
const OPEN: usize = 256;

/// The sums over units of what they count by launch. Those of launches that were not added to for a while are kept packed.
#[derive(Clone, Debug, Default)]
pub struct LaunchTotals {
    /// Ascending by launch.
    open: Vec<(u32, UnitCounters)>,
    /// Where each part of a launch begins in `packed`. A launch may have several.
    places: Vec<(u32, u64)>,
    packed: Vec<u8>,
}

impl LaunchTotals {
    /// The counts of a launch, to add to.
    pub fn of(&mut self, launch: LaunchId) -> &mut UnitCounters {
        let find = |open: &[(u32, UnitCounters)]| open.binary_search_by_key(&launch.0, |(other, _)| *other);
        let place = find(&self.open).unwrap_or_else(|_| {
            if self.open.len() == OPEN {
                // The host numbers launches in their order: those that come first have ended.
                self.pack(OPEN / 2);
            }
            let place = self.open.partition_point(|(other, _)| *other < launch.0);
            self.open.insert(place, (launch.0, UnitCounters::default()));
            place
        });
        &mut self.open[place].1
    }

    /// Tells what has been added, launch by launch; of some, in parts.
    pub fn each(&self, mut tell: impl FnMut(LaunchId, &UnitCounters)) {
        self.places.iter().for_each(|(launch, place)| tell(LaunchId(*launch), &self.unpack(*place)));
        self.open.iter().for_each(|(launch, counters)| tell(LaunchId(*launch), counters));
    }

    fn unpack(&self, place: u64) -> UnitCounters {
        let mut rest = &self.packed[place as usize..];
        UnitCounters::of_values(std::iter::from_fn(|| {
            let (value, after) = postcard::take_from_bytes(rest).ok()?;
            rest = after;
            Some(value)
        }))
    }

    fn pack(&mut self, count: usize) {
        for (launch, counters) in self.open.drain(..count) {
            self.places.push((launch, self.packed.len() as u64));
            for value in counters.values() {
                let packed = std::mem::take(&mut self.packed);
                self.packed = postcard::to_extend(&value, packed).expect("a vector takes every byte");
            }
        }
    }

    /// Adds the sums of other units.
    pub fn append(&mut self, mut others: LaunchTotals) {
        others.pack(others.open.len());
        let first = self.packed.len() as u64;
        self.places.extend(others.places.iter().map(|(launch, place)| (*launch, first + place)));
        self.packed.append(&mut others.packed);
    }

    /// The launches with these sums added to what they have.
    pub fn complete(mut self, records: &KernelRecords) -> KernelRecords {
        self.pack(self.open.len());
        if self.places.is_empty() {
            return records.clone();
        }
        self.places.sort_by_key(|(launch, _)| *launch);
        let add_to = |mut record: KernelRecord| {
            let first = self.places.partition_point(|(launch, _)| *launch < record.launch.0);
            for (_, place) in self.places[first..].iter().take_while(|(launch, _)| *launch == record.launch.0) {
                record.counters.units.add(&self.unpack(*place));
            }
            record
        };
        records.iter().map(add_to).collect()
    }
}

/// What CTAs of a launch did of which its CTA scheduler does not hear before the run ends: those that are under way then, those that were
/// broken off with their launch, and those whose end is on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreported {
    /// The launch.
    pub launch: LaunchId,
    /// What they did.
    pub counters: KernelCounters,
    /// How many of them have not run to their end.
    pub ctas_unfinished: u64,
}

impl Unreported {
    /// That of `launch` among `all`, where an empty one is put if there is none.
    pub fn among(all: &mut Vec<Unreported>, launch: LaunchId) -> &mut Unreported {
        let at = all.iter().position(|known| known.launch == launch).unwrap_or_else(|| {
            all.push(Unreported { launch, counters: KernelCounters::default(), ctas_unfinished: 0 });
            all.len() - 1
        });
        &mut all[at]
    }

    /// Adds what a CTA did that has not run to its end.
    pub fn add_unfinished(&mut self, counters: &CtaCounters) {
        self.counters.ctas.add(counters);
        self.ctas_unfinished += 1;
    }
}

/// The launches with what their CTAs did of which no scheduler has heard.
pub fn add_unreported(records: KernelRecords, unreported: &[Unreported]) -> KernelRecords {
    if unreported.is_empty() {
        return records;
    }
    let mut by_launch: BTreeMap<u32, (KernelCounters, u64)> = BTreeMap::new();
    for Unreported { launch, counters, ctas_unfinished } in unreported {
        let (sum, unfinished) = by_launch.entry(launch.0).or_default();
        sum.add(counters);
        *unfinished += ctas_unfinished;
    }
    let complete = |mut record: KernelRecord| {
        if let Some((counters, unfinished)) = by_launch.get(&record.launch.0) {
            record.counters.add(counters);
            record.ctas_unfinished += unfinished;
        }
        record
    };
    records.iter().map(complete).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::ProcessId;
    use crate::detail::Detail;

    /// Reads alone.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    struct Reads(u64);

    impl Share for Reads {
        fn give(&self, to: &mut UnitCounters) {
            to.dram_sectors_read += self.0;
        }
    }

    #[test]
    fn counts_are_of_their_own_launch() {
        let mut reads = ByLaunch::<Reads>::default();
        for (launch, count) in [(2, 5), (1, 7), (2, 1), (0, 9), (3, 2), (1, 1)] {
            reads.of(launch).0 += count;
        }
        let taken = |reads: &mut ByLaunch<Reads>| {
            let mut totals = LaunchTotals::default();
            reads.give(&mut totals);
            let mut taken = Vec::new();
            totals.each(|launch, counters| taken.push((launch.0, counters.dram_sectors_read)));
            taken
        };
        assert_eq!(taken(&mut reads), [(1, 8), (2, 6), (3, 2)]);
        reads.of(2).0 += 4;
        assert_eq!(taken(&mut reads), [(2, 4)]);
    }

    fn record(launch: u32) -> KernelRecord {
        KernelRecord {
            launch: LaunchId(launch),
            process: ProcessId(0),
            name: "kernel".into(),
            stream: 0,
            gpu: "gpu".into(),
            grid: [1; 3],
            block: [1; 3],
            registers_per_thread: 16,
            shared_bytes: 0,
            detail: Detail::Timed,
            is_profiled: false,
            range: None,
            parent: None,
            start_ps: 0,
            end_ps: 1,
            cycles: 1,
            completed: true,
            counters: KernelCounters::default(),
            ctas_unfinished: 0,
        }
    }

    #[test]
    fn totals_of_many_launches_and_units_are_added_to_their_records() {
        let launches = 3 * OPEN as u32;
        let records: KernelRecords = (1..=launches).map(record).collect();
        let mut all = LaunchTotals::default();
        for unit in 1..=2 {
            let mut totals = LaunchTotals::default();
            for launch in 1..=launches {
                Reads(unit * u64::from(launch)).give(totals.of(LaunchId(launch)));
                // Something late of a launch that is packed by then.
                Reads(1).give(totals.of(LaunchId(1)));
            }
            all.append(totals);
        }
        let read: Vec<u64> =
            all.complete(&records).iter().map(|record| record.counters.units.dram_sectors_read).collect();
        let mut expected: Vec<u64> = (1..=u64::from(launches)).map(|launch| 3 * launch).collect();
        expected[0] += 2 * u64::from(launches);
        assert_eq!(read, expected);
    }

    #[test]
    fn what_no_scheduler_has_heard_of_is_added_to_its_launch() {
        let first = |launch| {
            let mut record = record(launch);
            record.counters.ctas.inst_executed = 1000;
            record
        };
        let records: KernelRecords = [first(1), first(2)].into_iter().collect();
        // Two SMs, one of which has two CTAs of the second launch, the other one that has ended.
        let mut one = Vec::new();
        let ran = |inst_executed| CtaCounters { inst_executed, ctas_launched: 1, ..CtaCounters::default() };
        Unreported::among(&mut one, LaunchId(2)).add_unfinished(&ran(30));
        Unreported::among(&mut one, LaunchId(2)).add_unfinished(&ran(12));
        assert_eq!(one.len(), 1);
        let mut other = Vec::new();
        Unreported::among(&mut other, LaunchId(2)).counters.ctas.add(&ran(100));
        one.extend(other);
        let found: Vec<_> = add_unreported(records, &one).iter().collect();
        assert_eq!(found[0], first(1));
        // 1000 of its record, 30 and 12 and 100 beside it.
        let ctas = &found[1].counters.ctas;
        assert_eq!((ctas.inst_executed, ctas.ctas_launched, found[1].ctas_unfinished), (1142, 3, 2));
    }
}
