//! The facts about the node that a result needs beside its counters: clocks, GPUs, and how much the L1 and the crossbar can deliver.

use crate::metrics::rollup::pattern;
use balar_actors::topology::{ExpandedUnit, Topology};
use balar_protocol::{Frequency, GpuDescription};
use std::collections::BTreeMap;

/// Facts of each row of units, by its path with "\[*\]" for each index; none where the units of a row differ.
#[derive(Clone, Debug, Default)]
pub struct NodeFacts {
    clocks: BTreeMap<String, Option<Frequency>>,
    l1_sectors_per_cycle: BTreeMap<String, Option<u64>>,
    sub_cores: BTreeMap<String, Option<u64>>,
    crossbars: BTreeMap<String, Option<CrossbarFacts>>,
    gpus: Vec<GpuDescription>,
}

/// The dimensions of a crossbar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossbarFacts {
    /// Bytes of a flit.
    pub flit_bytes: u64,
    /// Outputs towards slices.
    pub slices: u64,
    /// Outputs towards requesters of one width: without those of copies within the device.
    pub requesters: u64,
    /// Flits that an output towards a slice passes on in a cycle.
    pub slice_flits: u64,
    /// Flits that an output towards a requester passes on in a cycle.
    pub requester_flits: u64,
}

impl NodeFacts {
    /// The facts of a topology.
    pub fn of(topology: &Topology) -> NodeFacts {
        NodeFacts {
            clocks: collect(topology, |unit| unit.parameter("clock")?.trim_matches('"').parse().ok()),
            l1_sectors_per_cycle: collect(topology, |unit| unit.parameter("l1_sectors_per_cycle")?.parse().ok()),
            sub_cores: collect(topology, |unit| unit.parameter("sub_cores")?.parse().ok()),
            crossbars: crossbars(topology),
            gpus: topology.gpus(),
        }
    }

    /// The crossbars of a row.
    pub fn crossbar(&self, location: &str) -> Option<CrossbarFacts> {
        self.crossbars.get(location).copied().flatten()
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

    /// Sectors that each L1 of a row can deliver in a cycle; an SM of it is as good as its row.
    pub fn l1_sectors_per_cycle(&self, location: &str) -> Option<u64> {
        self.l1_sectors_per_cycle.get(&pattern(location)).copied().flatten()
    }

    /// Sub-cores of each SM of a row; an SM of it is as good as its row.
    pub fn sub_cores(&self, location: &str) -> Option<u64> {
        self.sub_cores.get(&pattern(location)).copied().flatten()
    }

    /// The GPUs.
    pub fn gpus(&self) -> &[GpuDescription] {
        &self.gpus
    }
}

fn crossbars(topology: &Topology) -> BTreeMap<String, Option<CrossbarFacts>> {
    let mut outputs: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for end in topology.wires.iter().flat_map(|wire| [wire.a, wire.b]) {
        let unit = &topology.units[end.unit.0 as usize];
        let [slices, requesters] = outputs.entry(&unit.path).or_default();
        match end.port {
            "slice" => *slices += 1,
            "sm" => *requesters += 1,
            "copy" if end.index.unwrap_or(0) == 0 => *requesters += 1,
            _ => {}
        }
    }
    collect(topology, |unit| {
        let number = |name| unit.parameter(name)?.parse::<u64>().ok();
        let [slices, requesters] = outputs.get(unit.path.as_str()).copied().unwrap_or_default();
        let requester_flits = number("output_ports")?;
        let slice_flits = requester_flits.saturating_mul(number("slice_width")?);
        Some(CrossbarFacts { flit_bytes: number("flit_bytes")?, slices, requesters, slice_flits, requester_flits })
    })
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
