//! What a summary has to know of the node beside its counters: clocks, and how much the L1 can deliver.

use crate::rollup::pattern;
use balar_actors::topology::{ExpandedUnit, Topology};
use balar_protocol::Frequency;
use std::collections::BTreeMap;

/// Facts of each row of units, by its path with "\[*\]" for each index; none where the units of a row differ.
#[derive(Clone, Debug, Default)]
pub struct NodeFacts {
    clocks: BTreeMap<String, Option<Frequency>>,
    l1_sectors_per_cycle: BTreeMap<String, Option<u64>>,
}

impl NodeFacts {
    /// Those of a topology.
    pub fn of(topology: &Topology) -> NodeFacts {
        NodeFacts {
            clocks: collect(topology, |unit| unit.parameter("clock")?.trim_matches('"').parse().ok()),
            l1_sectors_per_cycle: collect(topology, |unit| unit.parameter("l1_sectors_per_cycle")?.parse().ok()),
        }
    }

    /// The clock of the units at `location`, a path or part of a unit with or without indices.
    pub fn clock(&self, location: &str) -> Option<Frequency> {
        let mut path = pattern(location);
        loop {
            if let Some(clock) = self.clocks.get(&path) {
                return *clock;
            }
            // Parts of a unit have its clock.
            path.truncate(path.rfind('.')?);
        }
    }

    /// Sectors that each L1 of a row can deliver in a cycle.
    pub fn l1_sectors_per_cycle(&self, location: &str) -> Option<u64> {
        self.l1_sectors_per_cycle.get(location).copied().flatten()
    }
}

fn collect<T: Copy + PartialEq>(
    topology: &Topology,
    read: impl Fn(&ExpandedUnit) -> Option<T>,
) -> BTreeMap<String, Option<T>> {
    let mut facts: BTreeMap<String, Option<T>> = BTreeMap::new();
    for unit in &topology.units {
        if let Some(fact) = read(unit) {
            let known = facts.entry(pattern(&unit.path)).or_insert(Some(fact));
            *known = known.filter(|known| *known == fact);
        }
    }
    facts
}
