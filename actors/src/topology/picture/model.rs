//! What a picture shows of a topology: rows of units, the GPUs that hold them, and what connects them.

use super::quantities::{bandwidth, nanoseconds};
use crate::catalogue::{Capability, Role};
use crate::topology::{ExpandedUnit, Topology, WireEnd};
use balar_protocol::SimTime;
use indexmap::IndexMap;

/// Units of one kind and place: "sm" of a GPU, or a single unit.
pub(super) struct Row<'a> {
    /// Its name: "sm" in a GPU, the path with `[*]` for indices elsewhere.
    pub(super) name: String,
    pub(super) units: Vec<&'a ExpandedUnit>,
    /// The GPU it belongs to.
    pub(super) gpu: Option<usize>,
}

impl Row<'_> {
    pub(super) fn has(&self, wanted: fn(&Capability) -> bool) -> bool {
        self.units.iter().any(|unit| unit.provides.iter().any(wanted))
    }

    pub(super) fn is_sm(&self) -> bool {
        self.has(|capability| matches!(capability, Capability::Sm(_)))
    }

    /// The paths of its units, separated by spaces.
    pub(super) fn paths(&self) -> String {
        self.units.iter().map(|unit| unit.path.as_str()).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn is_l2(&self) -> bool {
        self.has(|capability| matches!(capability, Capability::L2Cache { .. }))
    }

    pub(super) fn is_memory(&self) -> bool {
        self.has(|capability| matches!(capability, Capability::DeviceMemory { .. }))
    }

    /// Is it of a kind that does not come with the simulator?
    pub(super) fn is_own(&self) -> bool {
        !crate::kinds::is_built_in(self.units[0].kind)
    }
}

/// The wires from one row to one kind of another's ports, links that they lead through included.
pub(super) struct Edge {
    pub(super) client: usize,
    pub(super) server: usize,
    /// The names of the ports that they lead from, and of the one that they lead to.
    from: Vec<&'static str>,
    to: &'static str,
    pub(super) wires: usize,
    least: SimTime,
    most: SimTime,
    /// The links' names and bandwidths, each once.
    links: Vec<String>,
    pub(super) rates: Vec<String>,
}

impl Edge {
    /// "memory to sm", or "memory and device to copy".
    pub(super) fn ports(&self) -> String {
        format!("{} to {}", self.from.join(" and "), self.to)
    }

    /// "84 × 20 ns".
    pub(super) fn latency(&self) -> String {
        let count = if self.wires == 1 { String::new() } else { format!("{} \u{d7} ", self.wires) };
        let range = if self.least == self.most {
            nanoseconds(self.least)
        } else {
            format!("{} to {}", nanoseconds(self.least), nanoseconds(self.most))
        };
        format!("{count}{range}")
    }

    /// The name of its link, or of its ports where it is a plain wire.
    pub(super) fn name(&self) -> String {
        match self.links.as_slice() {
            [] => self.ports(),
            [link] => link.clone(),
            [link, rest @ ..] => format!("{link} and {} more", rest.len()),
        }
    }

    /// Paths of its links, separated by spaces.
    pub(super) fn link_paths(&self) -> String {
        self.links.join(" ")
    }

    /// "15.75 GB/s · 23.84 ns".
    pub(super) fn rate(&self) -> String {
        let rates = self.rates.iter().cloned().chain(std::iter::once(self.latency()));
        rates.collect::<Vec<_>>().join(" \u{b7} ")
    }
}

/// The picture's contents.
pub(super) struct Model<'a> {
    /// Paths of the GPUs.
    pub(super) gpus: Vec<&'a str>,
    pub(super) rows: Vec<Row<'a>>,
    pub(super) edges: Vec<Edge>,
}

fn with_any_index(path: &str) -> String {
    let steps = path.split('.').map(|step| match step.split_once('[') {
        Some((name, _)) => format!("{name}[*]"),
        None => step.to_owned(),
    });
    steps.collect::<Vec<_>>().join(".")
}

/// The path below the part `prefix`.
fn below<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    path.strip_prefix(prefix)?.strip_prefix('.')
}

/// For each unit that is a link between two units that are none, its two wires.
fn links(topology: &Topology) -> Vec<Option<[usize; 2]>> {
    let is_link = |unit: usize| {
        topology.units[unit]
            .provides
            .iter()
            .any(|capability| matches!(capability, Capability::Forwards { latency: Some(_), .. }))
    };
    let mut wires = vec![Vec::new(); topology.units.len()];
    for (index, wire) in topology.wires.iter().enumerate() {
        let (a, b) = (wire.a.unit.0 as usize, wire.b.unit.0 as usize);
        wires[a].push((index, b));
        wires[b].push((index, a));
    }
    let pair = |(unit, wires): (usize, &Vec<(usize, usize)>)| match wires.as_slice() {
        [(first, a), (second, b)] if is_link(unit) && !is_link(*a) && !is_link(*b) => Some([*first, *second]),
        _ => None,
    };
    wires.iter().enumerate().map(pair).collect()
}

pub(super) fn model(topology: &Topology) -> Model<'_> {
    let front_end = |capability: &Capability| matches!(capability, Capability::GpuFrontEnd { .. });
    let mut gpus: Vec<&str> = Vec::new();
    for unit in &topology.units {
        if !unit.part.is_empty() && unit.provides.iter().any(front_end) && !gpus.contains(&unit.part.as_str()) {
            gpus.push(&unit.part);
        }
    }
    let links = links(topology);
    let mut rows: IndexMap<(Option<usize>, String, &str), Row> = IndexMap::new();
    let mut row_of = vec![usize::MAX; topology.units.len()];
    for (index, unit) in topology.units.iter().enumerate() {
        if links[index].is_some() {
            continue;
        }
        let gpu = gpus.iter().position(|part| below(&unit.path, part).is_some());
        let local = gpu.and_then(|gpu| below(&unit.path, gpus[gpu])).unwrap_or(&unit.path);
        let name = with_any_index(local);
        let entry = rows.entry((gpu, name.clone(), unit.kind.name));
        row_of[index] = entry.index();
        let name = if gpu.is_some() { name.trim_end_matches("[*]").to_owned() } else { name };
        entry.or_insert_with(|| Row { name, units: Vec::new(), gpu }).units.push(unit);
    }
    let rows: Vec<Row> = rows.into_values().collect();
    let edges = edges(topology, &links, &row_of);
    Model { gpus, rows, edges }
}

fn edges(topology: &Topology, links: &[Option<[usize; 2]>], row_of: &[usize]) -> Vec<Edge> {
    let is_client = |end: &WireEnd| {
        let ports = topology.units[end.unit.0 as usize].kind.ports;
        ports.iter().any(|port| port.name == end.port && port.role == Role::Client)
    };
    let is_of_link = |end: &WireEnd| links[end.unit.0 as usize].is_some();
    let mut edges: IndexMap<(usize, usize, &str), Edge> = IndexMap::new();
    let mut add = |client: WireEnd, server: WireEnd, latency: SimTime, link: Option<&ExpandedUnit>| {
        let (from, to) = (row_of[client.unit.0 as usize], row_of[server.unit.0 as usize]);
        let edge = edges.entry((from, to, server.port)).or_insert_with(|| Edge {
            client: from,
            server: to,
            from: Vec::new(),
            to: server.port,
            wires: 0,
            least: latency,
            most: latency,
            links: Vec::new(),
            rates: Vec::new(),
        });
        edge.wires += 1;
        if !edge.from.contains(&client.port) {
            edge.from.push(client.port);
        }
        edge.least = edge.least.min(latency);
        edge.most = edge.most.max(latency);
        if let Some(link) = link {
            edge.links.push(link.path.clone());
            let rate = bandwidth(link);
            edge.rates.extend(rate.filter(|rate| !edge.rates.contains(rate)));
        }
    };
    for wire in topology.wires.iter().filter(|wire| !is_of_link(&wire.a) && !is_of_link(&wire.b)) {
        let (client, server) = if is_client(&wire.a) { (wire.a, wire.b) } else { (wire.b, wire.a) };
        add(client, server, wire.latency, None);
    }
    for (unit, wires) in links.iter().enumerate() {
        let Some(wires) = wires else { continue };
        let [first, second] = wires.map(|wire| &topology.wires[wire]);
        let outside = |wire: &crate::topology::ExpandedWire| if is_of_link(&wire.a) { wire.b } else { wire.a };
        let (mut a, mut b) = (outside(first), outside(second));
        if !is_client(&a) && is_client(&b) {
            (a, b) = (b, a);
        }
        add(a, b, SimTime(first.latency.0 + second.latency.0), Some(&topology.units[unit]));
    }
    edges.into_values().collect()
}
