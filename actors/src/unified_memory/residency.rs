//! Where pages are, and where a faulting page goes.

use super::{Access, Processor, ProcessorSet};
use serde::{Deserialize, Serialize};

/// Where a page is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PageState {
    /// Nowhere: no processor has touched it. Nothing is transferred for it; the processor that touches it first gets a page of zeros. (On a
    /// GTX 1080 Ti fewer bytes move than are allocated: bytes that the host never initialises do not move.)
    #[default]
    Unpopulated,
    /// In one memory.
    At(Processor),
    /// In several memories, with the same contents: read-duplicated.
    Duplicated(ProcessorSet),
    /// In one memory and held there because it thrashed; others reach it from afar.
    Pinned(Processor),
}

impl PageState {
    /// The memories in which it is.
    pub fn holders(self) -> ProcessorSet {
        match self {
            PageState::Unpopulated => ProcessorSet::EMPTY,
            PageState::At(processor) | PageState::Pinned(processor) => ProcessorSet::only(processor),
            PageState::Duplicated(processors) => processors,
        }
    }

    /// Where it is after an access was placed.
    #[must_use]
    pub fn after(self, placement: Placement, access: Access) -> PageState {
        let mut holders = self.holders();
        match placement.rule {
            PlacementRule::Thrashing => return PageState::Pinned(placement.location),
            // Reading a copy leaves the others alone.
            PlacementRule::AccessedBy if !access.writes() => return self,
            _ => holders.insert(placement.location),
        }
        if placement.rule == PlacementRule::ReadMostly && holders.len() > 1 {
            PageState::Duplicated(holders)
        } else {
            PageState::At(placement.location)
        }
    }
}

/// A program's advice for a range (cudaMemAdvise).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    /// cudaMemAdviseSetReadMostly.
    pub read_mostly: bool,
    /// cudaMemAdviseSetPreferredLocation.
    pub preferred_location: Option<Processor>,
    /// cudaMemAdviseSetAccessedBy.
    pub accessed_by: ProcessorSet,
}

/// Whose memory each processor can map into its own page table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// Processors and the processors whose memory each can map beside its own.
    others: Vec<(Processor, ProcessorSet)>,
}

impl Reach {
    /// GPUs on PCI Express: each can map the host's memory, and nobody a GPU's.
    pub fn pci_express(gpus: u8) -> Reach {
        let mut reach = Reach::default();
        (0..gpus).for_each(|gpu| reach.allow(Processor::Gpu(gpu), Processor::Host));
        reach
    }

    /// GPUs on coherent links: all can map each other's memory, and the host's, and the host theirs.
    pub fn coherent(gpus: u8) -> Reach {
        let mut reach = Reach::default();
        let all: Vec<_> = std::iter::once(Processor::Host).chain((0..gpus).map(Processor::Gpu)).collect();
        for &from in &all {
            all.iter().filter(|&&to| to != from).for_each(|&to| reach.allow(from, to));
        }
        reach
    }

    /// Lets one processor map another's memory.
    ///
    /// # Panics
    ///
    /// Beyond GPU 62.
    pub fn allow(&mut self, from: Processor, to: Processor) {
        match self.others.iter_mut().find(|(processor, _)| *processor == from) {
            Some((_, memories)) => memories.insert(to),
            None => self.others.push((from, ProcessorSet::only(to))),
        }
    }

    /// The memories that a processor can map, its own included.
    pub fn memories(&self, from: Processor) -> ProcessorSet {
        let others = self.others.iter().find(|(processor, _)| *processor == from);
        let mut memories = others.map_or(ProcessorSet::EMPTY, |&(_, memories)| memories);
        memories.insert(from);
        memories
    }

    /// Can one processor map another's memory?
    pub fn can_map(&self, from: Processor, to: Processor) -> bool {
        self.memories(from).contains(to)
    }

    /// Can each of these processors map a memory?
    pub fn all_can_map(&self, processors: ProcessorSet, to: Processor) -> bool {
        processors.iter().all(|from| self.can_map(from, to))
    }

    /// The memories that each of these processors can map.
    pub fn common_memories(&self, processors: ProcessorSet) -> ProcessorSet {
        let memories = processors.iter().map(|processor| self.memories(processor));
        memories.reduce(ProcessorSet::intersection).unwrap_or_default()
    }
}

/// Why a page goes where it goes: the rules in the order in which the driver asks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlacementRule {
    /// The range is read mostly, and the access does not write: the requester gets a copy.
    ReadMostly,
    /// The requester is the preferred location.
    RequesterPreferred,
    /// The page thrashes: it is pinned.
    Thrashing,
    /// The page is nowhere: it is made at the preferred location if the requester can map that, otherwise at the requester.
    FirstTouch,
    /// The requester is advised to access the range from afar, and can map a memory where the page is: it stays.
    AccessedBy,
    /// The page goes to its preferred location, which the requester can map.
    PreferredLocation,
    /// The page goes to the requester.
    Requester,
}

/// Where an access finds its page from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The memory. A requester that is another processor maps it from afar.
    pub location: Processor,
    /// Why.
    pub rule: PlacementRule,
}

impl Placement {
    /// Where a faulting page goes, and why (NVIDIA's open kernel modules 595.45.04: the selection of a block's new residency).
    ///
    /// `pin`: where the page is to be held because it thrashes.
    pub fn of(
        state: PageState,
        advice: &Advice,
        pin: Option<Processor>,
        access: Access,
        requester: Processor,
        reach: &Reach,
    ) -> Placement {
        let placement = |rule, location| Placement { location, rule };
        let holders = state.holders();
        let reachable_preferred = advice.preferred_location.filter(|&location| reach.can_map(requester, location));
        if advice.read_mostly && !access.writes() {
            return placement(PlacementRule::ReadMostly, requester);
        }
        if advice.preferred_location == Some(requester) {
            return placement(PlacementRule::RequesterPreferred, requester);
        }
        if let Some(location) = pin {
            return placement(PlacementRule::Thrashing, location);
        }
        if holders.is_empty() {
            return placement(PlacementRule::FirstTouch, reachable_preferred.unwrap_or(requester));
        }
        if advice.accessed_by.contains(requester) {
            // Of several copies its own is the nearest.
            let nearest = if holders.contains(requester) {
                Some(requester)
            } else {
                holders.intersection(reach.memories(requester)).iter().next()
            };
            if let Some(holder) = nearest {
                return placement(PlacementRule::AccessedBy, holder);
            }
        }
        match reachable_preferred {
            Some(location) => placement(PlacementRule::PreferredLocation, location),
            None => placement(PlacementRule::Requester, requester),
        }
    }

    /// Does the page have to be brought there?
    pub fn moves(self, state: PageState) -> bool {
        !state.holders().contains(self.location)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Access::{Atomic, Prefetch, Read, Write};
    use Processor::{Gpu, Host};

    const NO_ADVICE: Advice = Advice { read_mostly: false, preferred_location: None, accessed_by: ProcessorSet::EMPTY };

    fn only(processor: Processor) -> ProcessorSet {
        ProcessorSet::only(processor)
    }

    #[test]
    fn the_first_rule_that_applies_places_a_page() {
        // Section 3, rules 1 to 7, on PCI Express: GPUs can map the host, the host cannot map them.
        let reach = Reach::pci_express(2);
        let prefer = |location| Advice { preferred_location: Some(location), ..NO_ADVICE };
        let accessed_by = |processor| Advice { accessed_by: only(processor), ..NO_ADVICE };
        let read_mostly = Advice { read_mostly: true, ..prefer(Gpu(1)) };
        let check = |advice: Advice, pin, state, access, requester, rule, location| {
            let placement = Placement::of(state, &advice, pin, access, requester, &reach);
            assert_eq!(placement, Placement { location, rule }, "{advice:?}, {state:?}, {access:?} by {requester:?}");
        };
        let (at_host, at_gpu, nowhere) = (PageState::At(Host), PageState::At(Gpu(0)), PageState::Unpopulated);

        check(read_mostly, Some(Host), at_host, Read, Gpu(0), PlacementRule::ReadMostly, Gpu(0));
        check(read_mostly, None, at_host, Prefetch, Gpu(0), PlacementRule::ReadMostly, Gpu(0));
        check(read_mostly, None, at_host, Write, Gpu(1), PlacementRule::RequesterPreferred, Gpu(1));
        check(prefer(Gpu(0)), Some(Host), at_host, Read, Gpu(0), PlacementRule::RequesterPreferred, Gpu(0));
        check(prefer(Gpu(1)), Some(Host), at_gpu, Atomic, Gpu(0), PlacementRule::Thrashing, Host);
        check(NO_ADVICE, None, nowhere, Write, Gpu(0), PlacementRule::FirstTouch, Gpu(0));
        check(prefer(Host), None, nowhere, Write, Gpu(0), PlacementRule::FirstTouch, Host);
        check(prefer(Gpu(1)), None, nowhere, Read, Gpu(0), PlacementRule::FirstTouch, Gpu(0));
        check(accessed_by(Gpu(0)), None, at_host, Write, Gpu(0), PlacementRule::AccessedBy, Host);
        check(accessed_by(Gpu(1)), None, at_host, Write, Gpu(0), PlacementRule::Requester, Gpu(0));
        // The host cannot map the memory of a GPU.
        check(accessed_by(Host), None, at_gpu, Read, Host, PlacementRule::Requester, Host);
        check(prefer(Host), None, PageState::At(Gpu(1)), Read, Gpu(0), PlacementRule::PreferredLocation, Host);
        check(prefer(Gpu(0)), None, at_gpu, Read, Host, PlacementRule::Requester, Host);
        check(NO_ADVICE, None, at_host, Read, Gpu(0), PlacementRule::Requester, Gpu(0));
    }

    #[test]
    fn the_nearest_copy_is_accessed() {
        let advice = Advice { accessed_by: only(Gpu(1)), ..NO_ADVICE };
        let copies = PageState::Duplicated([Host, Gpu(0), Gpu(1)].into_iter().collect());
        let placement = |reach: &Reach, state| Placement::of(state, &advice, None, Read, Gpu(1), reach).location;
        assert_eq!(placement(&Reach::pci_express(2), copies), Gpu(1));
        assert_eq!(placement(&Reach::coherent(2), PageState::At(Gpu(0))), Gpu(0));
        assert_eq!(placement(&Reach::pci_express(2), PageState::At(Gpu(0))), Gpu(1));
    }

    #[test]
    fn placements_change_the_state() {
        let check = |state: PageState, rule, location, access, expected: PageState, moves| {
            let placement = Placement { location, rule };
            assert_eq!(
                (state.after(placement, access), placement.moves(state)),
                (expected, moves),
                "{state:?}, {placement:?}"
            );
        };
        let both = PageState::Duplicated([Host, Gpu(0)].into_iter().collect());
        check(PageState::At(Host), PlacementRule::ReadMostly, Gpu(0), Read, both, true);
        check(PageState::Unpopulated, PlacementRule::ReadMostly, Gpu(0), Read, PageState::At(Gpu(0)), true);
        check(both, PlacementRule::ReadMostly, Gpu(0), Read, both, false);
        // A write invalidates the other copies.
        check(both, PlacementRule::Requester, Gpu(0), Write, PageState::At(Gpu(0)), false);
        check(both, PlacementRule::AccessedBy, Host, Write, PageState::At(Host), false);
        check(both, PlacementRule::AccessedBy, Host, Read, both, false);
        check(PageState::At(Gpu(0)), PlacementRule::Thrashing, Host, Read, PageState::Pinned(Host), true);
        check(PageState::Pinned(Host), PlacementRule::Requester, Gpu(0), Read, PageState::At(Gpu(0)), true);
        check(PageState::Unpopulated, PlacementRule::FirstTouch, Host, Write, PageState::At(Host), true);
    }

    #[test]
    fn links_decide_what_can_be_mapped() {
        let pci_express = Reach::pci_express(2);
        assert!(pci_express.can_map(Gpu(1), Host) && pci_express.can_map(Gpu(1), Gpu(1)));
        assert!(!pci_express.can_map(Host, Gpu(1)) && !pci_express.can_map(Gpu(0), Gpu(1)));
        assert_eq!(pci_express.common_memories([Host, Gpu(0)].into_iter().collect()), only(Host));
        assert!(pci_express.common_memories(ProcessorSet::EMPTY).is_empty());
        let coherent = Reach::coherent(2);
        assert!(coherent.all_can_map([Host, Gpu(0), Gpu(1)].into_iter().collect(), Gpu(1)));
        let mut peers = pci_express.clone();
        peers.allow(Gpu(0), Gpu(1));
        assert!(peers.can_map(Gpu(0), Gpu(1)) && !peers.can_map(Gpu(1), Gpu(0)));
    }
}
