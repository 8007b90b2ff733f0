//! Pages over which processors fight: found, throttled, pinned.
//!
//! The rules are those of NVIDIA's open kernel modules 595.45.04, without revocations (system-wide atomics on pages that several processors
//! map) and without the shortcut for links with native atomics.

use super::residency::Reach;
use super::{PageSet, Processor, ProcessorSet};
use balar_protocol::SimTime;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// When a page thrashes, and the measures against it. The defaults are those of the driver's module parameters (`uvm_perf_thrashing_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ThrashingParameters {
    /// Migrations, each soon after the one before, from which on a page thrashes (3).
    pub threshold: u32,
    /// Times that processors were throttled from which on a page is pinned (10).
    pub pin_threshold: u32,
    /// How soon is soon (500 us).
    pub lapse: SimTime,
    /// How long a processor is throttled, in lapses (1).
    pub nap: u64,
    /// How long a block must be calm for its history to be forgotten, in lapses (2000).
    pub epoch: u64,
    /// How long a page stays pinned, in lapses (300); 0: for good.
    pub pin: u64,
    /// How often the history of a block is forgotten (4).
    pub max_resets: u32,
}

impl Default for ThrashingParameters {
    fn default() -> Self {
        let lapse = SimTime::from_nanoseconds(500_000);
        ThrashingParameters { threshold: 3, pin_threshold: 10, lapse, nap: 1, epoch: 2000, pin: 300, max_resets: 4 }
    }
}

impl ThrashingParameters {
    fn lapses(&self, count: u64) -> SimTime {
        SimTime(self.lapse.0.saturating_mul(count))
    }
}

/// The measure for a fault on a page that may thrash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrashingHint {
    /// Serve it as any other.
    None,
    /// Do not serve it before this time: the processor faults again.
    Throttle(SimTime),
    /// Hold the page in this memory, and map it from afar.
    Pin(Processor),
}

/// The history of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Page {
    last_migration: SimTime,
    /// Migrations soon after the one before.
    events: u32,
    /// Who fights.
    processors: ProcessorSet,
    /// Who is throttled now.
    throttled: ProcessorSet,
    /// When the present throttling period ends.
    throttled_until: SimTime,
    /// Who is not throttled in the present period.
    spared: Option<Processor>,
    throttles: u32,
    /// Where it is pinned, and until when.
    pinned: Option<(Processor, SimTime)>,
}

/// The history of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockThrashing {
    /// Pages that migrated since the block was first fought over.
    pages: BTreeMap<u16, Page>,
    /// Has the block been fought over?
    tracked: bool,
    thrashing: PageSet,
    last_migration: Option<(SimTime, Processor)>,
    /// The last migration of a page that thrashed.
    last_thrashing: Option<SimTime>,
    resets: u32,
}

impl BlockThrashing {
    /// The pages that thrash: they are not prefetched.
    pub fn thrashing_pages(&self) -> PageSet {
        self.thrashing
    }

    /// The pages that are pinned.
    pub fn pinned_pages(&self) -> PageSet {
        let pinned = self.pages.iter().filter(|(_, page)| page.pinned.is_some());
        pinned.map(|(&index, _)| usize::from(index)).collect()
    }

    /// Pages have migrated because of a fault, an access counter or a prefetcher. Evictions do not count, nor do migrations to where a page
    /// is pinned.
    pub fn migrated(&mut self, parameters: &ThrashingParameters, pages: PageSet, to: Processor, now: SimTime) {
        let fought_over =
            |(time, from): (SimTime, Processor)| from != to && now.saturating_sub(time) <= parameters.lapse;
        self.tracked |= self.last_migration.is_some_and(fought_over);
        self.last_migration = Some((now, to));
        if !self.tracked {
            return;
        }
        for index in pages.difference(self.pinned_pages()).iter() {
            let page = self.pages.entry(index as u16).or_default();
            let known = !page.processors.is_empty();
            let soon = now.saturating_sub(page.last_migration) <= parameters.lapse;
            page.processors.insert(to);
            page.last_migration = now;
            if known && soon {
                page.events = page.events.saturating_add(1);
                if page.events >= parameters.threshold {
                    self.thrashing.insert(index);
                    self.last_thrashing = Some(now);
                }
            } else if self.thrashing.contains(index) {
                self.forget_page(index);
            }
        }
    }

    /// A program moved pages or advised on them: their history counts no more.
    pub fn forget(&mut self, pages: PageSet) {
        pages.iter().for_each(|index| self.forget_page(index));
    }

    fn forget_page(&mut self, index: usize) {
        self.pages.remove(&(index as u16));
        self.thrashing.remove(index);
    }

    /// When the next pinned page is let go; `None`: none is, or for good.
    pub fn next_unpinning(&self) -> Option<SimTime> {
        let ends = self.pages.values().filter_map(|page| page.pinned.map(|(_, until)| until));
        ends.min().filter(|&until| until < SimTime::MAX)
    }

    /// Lets go the pages whose pinning has ended by `now`, and returns them: mappings from afar have to be taken away.
    pub fn unpin(&mut self, now: SimTime) -> PageSet {
        let ended = self.pages.iter().filter(|(_, page)| page.pinned.is_some_and(|(_, until)| until <= now));
        let ended: PageSet = ended.map(|(&index, _)| usize::from(index)).collect();
        self.forget(ended);
        ended
    }

    /// The measure for a fault of `requester` on a page. `preferred_location`: as advised.
    pub fn hint(
        &mut self,
        parameters: &ThrashingParameters,
        page: usize,
        requester: Processor,
        preferred_location: Option<Processor>,
        reach: &Reach,
        now: SimTime,
    ) -> ThrashingHint {
        self.forget_when_calm(parameters, now);
        if !self.thrashing.contains(page) {
            return ThrashingHint::None;
        }
        let Some(page) = self.pages.get_mut(&(page as u16)) else { return ThrashingHint::None };
        if page.throttled.contains(requester) {
            if now < page.throttled_until {
                return ThrashingHint::Throttle(page.throttled_until);
            }
            page.throttled.remove(requester);
            if page.throttled.is_empty() {
                page.throttled_until = SimTime::ZERO;
            }
        }
        if page.pinned.is_none() && now.saturating_sub(page.last_migration) > parameters.lapse {
            return ThrashingHint::None;
        }
        page.processors.insert(requester);
        page.spare_one(requester, now, parameters);
        let hint = page.decide(requester, preferred_location, reach, parameters);
        match hint {
            ThrashingHint::Throttle(_) => {
                page.throttled.insert(requester);
                if page.pinned.is_none() {
                    page.throttles = page.throttles.saturating_add(1);
                }
            }
            ThrashingHint::Pin(location) => page.pin(location, now, parameters),
            ThrashingHint::None => {}
        }
        hint
    }

    /// Begins anew where nothing has thrashed for long.
    fn forget_when_calm(&mut self, parameters: &ThrashingParameters, now: SimTime) {
        let calm =
            self.last_thrashing.is_some_and(|last| now.saturating_sub(last) > parameters.lapses(parameters.epoch));
        if calm && self.resets < parameters.max_resets && self.pinned_pages().is_empty() {
            *self = BlockThrashing { resets: self.resets + 1, ..BlockThrashing::default() };
        }
    }
}

impl Page {
    /// Chooses the processor that is not throttled: in a new period the requester, unless it was in the last; then the next one.
    fn spare_one(&mut self, requester: Processor, now: SimTime, parameters: &ThrashingParameters) {
        if self.throttled_until == SimTime::ZERO || now > self.throttled_until {
            self.throttled_until = now.saturating_add(parameters.lapses(parameters.nap));
            self.spared = if self.spared == Some(requester) { None } else { Some(requester) };
        } else {
            self.spared.get_or_insert(requester);
        }
    }

    fn decide(
        &self,
        requester: Processor,
        preferred_location: Option<Processor>,
        reach: &Reach,
        parameters: &ThrashingParameters,
    ) -> ThrashingHint {
        let throttle = ThrashingHint::Throttle(self.throttled_until);
        let spared = self.spared == Some(requester);
        if let Some(location) = preferred_location
            && reach.all_can_map(self.processors, location)
        {
            return ThrashingHint::Pin(location);
        }
        match self.pinned {
            None if !spared => throttle,
            None if self.throttles >= parameters.pin_threshold => ThrashingHint::Pin(requester),
            None => ThrashingHint::None,
            // The preferred location maps nothing from afar.
            Some((location, _)) if preferred_location == Some(requester) => {
                if location == requester || spared {
                    ThrashingHint::Pin(requester)
                } else {
                    throttle
                }
            }
            Some(_) if spared => {
                let common = reach.common_memories(self.processors);
                let nearest = if common.contains(requester) { Some(requester) } else { common.iter().next() };
                ThrashingHint::Pin(nearest.unwrap_or(requester))
            }
            Some((location, _)) if reach.can_map(requester, location) => ThrashingHint::Pin(location),
            Some(_) => throttle,
        }
    }

    /// Pins the page. A throttled processor may go on where the page goes elsewhere.
    fn pin(&mut self, location: Processor, now: SimTime, parameters: &ThrashingParameters) {
        let until = match self.pinned {
            Some((_, until)) => until,
            None if parameters.pin == 0 => SimTime::MAX,
            None => now.saturating_add(parameters.lapses(parameters.pin)),
        };
        if self.pinned.is_none_or(|(pinned, _)| pinned != location) {
            self.throttled = ProcessorSet::EMPTY;
            self.throttled_until = SimTime::ZERO;
            self.throttles = 0;
        }
        self.pinned = Some((location, until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Processor::{Gpu, Host};

    fn parameters() -> ThrashingParameters {
        ThrashingParameters::default()
    }

    fn us(count: u64) -> SimTime {
        SimTime::from_nanoseconds(count * 1000)
    }

    fn page(index: usize) -> PageSet {
        PageSet::range(index..index + 1)
    }

    /// Page 3 has gone to GPU and host in turn, every `step` us, so many times; the time of the last.
    fn fought_over(step: u64, times: u64) -> (BlockThrashing, SimTime) {
        let mut block = BlockThrashing::default();
        for turn in 0..times {
            let to = if turn % 2 == 0 { Gpu(0) } else { Host };
            block.migrated(&parameters(), page(3), to, us((turn + 1) * step));
        }
        (block, us(times * step))
    }

    fn hint(block: &mut BlockThrashing, requester: Processor, now: SimTime) -> ThrashingHint {
        block.hint(&parameters(), 3, requester, None, &Reach::pci_express(1), now)
    }

    #[test]
    fn three_migrations_each_soon_after_the_last_are_thrashing() {
        // The first shows where the page is, the second that the block is fought over; from the third on they count.
        let thrashes = |step, times| fought_over(step, times).0.thrashing_pages() == page(3);
        assert_eq!([1, 3, 4, 5, 9].map(|times| thrashes(100, times)), [false, false, false, true, true]);
        assert!(thrashes(500, 5) && !thrashes(501, 50));
        // One processor alone does not fight.
        let mut block = BlockThrashing::default();
        (1..20).for_each(|turn| block.migrated(&parameters(), page(3), Gpu(0), us(turn)));
        assert_eq!(block.thrashing_pages(), PageSet::EMPTY);
    }

    #[test]
    fn other_pages_do_not_thrash_with_it() {
        let (mut block, last) = fought_over(100, 8);
        block.migrated(&parameters(), page(4), Gpu(0), last + us(1));
        assert_eq!(block.thrashing_pages(), page(3));
        assert_eq!(block.hint(&parameters(), 4, Host, None, &Reach::pci_express(1), last + us(2)), ThrashingHint::None);
        // A migration after a while ends it, and so does a program that moves the page.
        let (mut calm, mut advised) = (block.clone(), block);
        calm.migrated(&parameters(), page(3), Host, last + us(501));
        advised.forget(PageSet::range(0..4));
        assert_eq!([calm, advised].map(|block| block.thrashing_pages()), [PageSet::EMPTY; 2]);
    }

    #[test]
    fn processors_are_throttled_in_turn() {
        let (mut block, last) = fought_over(100, 5);
        let at = |after| last + us(after);
        // The host opens a period of 500 us, in which the GPU waits.
        assert_eq!(hint(&mut block, Host, at(50)), ThrashingHint::None);
        block.migrated(&parameters(), page(3), Host, at(60));
        assert_eq!(hint(&mut block, Gpu(0), at(100)), ThrashingHint::Throttle(at(550)));
        assert_eq!(hint(&mut block, Gpu(0), at(549)), ThrashingHint::Throttle(at(550)));
        // Then it is the GPU's turn.
        assert_eq!(hint(&mut block, Gpu(0), at(550)), ThrashingHint::None);
        block.migrated(&parameters(), page(3), Gpu(0), at(560));
        assert_eq!(hint(&mut block, Host, at(600)), ThrashingHint::Throttle(at(1050)));
        // Long after the last migration it does not thrash any more.
        assert_eq!(hint(&mut block, Host, at(1061)), ThrashingHint::None);
    }

    #[test]
    fn nobody_is_spared_twice_in_a_row() {
        let (mut block, last) = fought_over(100, 5);
        let at = |after| last + us(after);
        assert_eq!(hint(&mut block, Host, at(0)), ThrashingHint::None);
        block.migrated(&parameters(), page(3), Host, at(400));
        // The host opens the next period too: it waits, and the GPU is spared when it comes.
        assert_eq!(hint(&mut block, Host, at(501)), ThrashingHint::Throttle(at(1001)));
        assert_eq!(hint(&mut block, Gpu(0), at(600)), ThrashingHint::None);
    }

    /// Both processors fault on page 3 whenever they may, every 50 us: throttlings until it is pinned, where, and when.
    fn fight(block: &mut BlockThrashing, start: SimTime) -> (u32, Processor, SimTime) {
        let (mut throttles, mut waiting) = (0, [SimTime::ZERO; 2]);
        for step in 1..2000 {
            let now = start + us(step * 50);
            let turn = (step % 2) as usize;
            let requester = [Host, Gpu(0)][turn];
            if now < waiting[turn] {
                continue;
            }
            match hint(block, requester, now) {
                ThrashingHint::None => block.migrated(&parameters(), page(3), requester, now),
                ThrashingHint::Throttle(until) => {
                    waiting[turn] = until;
                    throttles += 1;
                }
                ThrashingHint::Pin(location) => return (throttles, location, now),
            }
        }
        panic!("it is never pinned");
    }

    #[test]
    fn after_ten_throttlings_a_page_is_pinned_for_150_ms() {
        let (mut block, last) = fought_over(100, 5);
        let (throttles, location, now) = fight(&mut block, last);
        assert_eq!((throttles, block.pinned_pages()), (10, page(3)));
        assert_eq!(block.next_unpinning(), Some(now + us(150_000)));
        // Migrations to where it is pinned are no fight.
        let before = block.clone();
        block.migrated(&parameters(), page(3), location, now);
        assert_eq!(block.pages, before.pages);
        // Where it is pinned at the GPU, which the host cannot map, it comes to the host in the end.
        let later = (1..40)
            .map(|step| hint(&mut block, Host, now + us(step * 50)))
            .find(|hint| matches!(hint, ThrashingHint::Pin(_)));
        assert_eq!(later, Some(ThrashingHint::Pin(Host)));
        assert_eq!(hint(&mut block, Gpu(0), now + us(2001)), ThrashingHint::Pin(Host));

        assert_eq!(block.unpin(now + us(149_999)), PageSet::EMPTY);
        assert_eq!((block.unpin(now + us(150_000)), block.next_unpinning()), (page(3), None));
        assert_eq!((block.pinned_pages(), block.thrashing_pages()), (PageSet::EMPTY, PageSet::EMPTY));
    }

    #[test]
    fn a_preferred_location_that_all_can_map_pins_at_once() {
        let (mut block, last) = fought_over(100, 5);
        let hint = |block: &mut BlockThrashing, preferred, reach: &Reach| {
            block.clone().hint(&parameters(), 3, Gpu(0), Some(preferred), reach, last)
        };
        assert_eq!(hint(&mut block, Host, &Reach::pci_express(1)), ThrashingHint::Pin(Host));
        assert_eq!(hint(&mut block, Gpu(0), &Reach::pci_express(1)), ThrashingHint::None);
        assert_eq!(hint(&mut block, Gpu(0), &Reach::coherent(1)), ThrashingHint::Pin(Gpu(0)));
    }

    #[test]
    fn a_calm_block_begins_anew_four_times() {
        let mut block = BlockThrashing::default();
        for round in 0..6 {
            let start = us(round * 10_000_000);
            for turn in 1..=6u64 {
                block.migrated(
                    &parameters(),
                    page(3),
                    if turn % 2 == 0 { Gpu(0) } else { Host },
                    start + us(turn * 100),
                );
            }
            assert_eq!(block.thrashing_pages(), page(3), "round {round}");
            let calm = start + us(600);
            let _ = hint(&mut block, Host, calm + us(1_000_000));
            assert_eq!(block.thrashing_pages(), page(3), "an epoch has not passed");
            let _ = hint(&mut block, Host, calm + us(1_000_001));
            assert_eq!(block.thrashing_pages().is_empty(), round < 4, "round {round}");
        }
    }

    #[test]
    fn ron_reads_parameters() {
        let read: ThrashingParameters = ron::from_str(r#"(lapse: "1 ms", pin: 0)"#).expect("they are parameters");
        assert_eq!(read, ThrashingParameters { lapse: us(1000), pin: 0, ..ThrashingParameters::default() });
    }
}
