//! From an expanded topology to units that run: ports, wires, construction.

use super::error::{ErrorKind, TopologyError, TopologyErrors};
use super::parameter::{Origin, Parameter};
use super::source::Location;
use super::{ExpandedUnit, Topology, WireEnd, nested};
use crate::catalogue::{
    BuildContext, BuildError, Capability, ParameterProblem, Peer, PortMap, Role, Surroundings, UnitDefinition,
};
use crate::engine::containment::contain_outside;
use crate::engine::unit::Wire;
use crate::engine::{Guest, GuestPort, Unit};
use crate::kinds;
use balar_protocol::{PortId, Protocol, Side, UnitId};
use std::collections::{BTreeMap, BTreeSet};

/// A unit with its path and where its ports lead, in the order of its `PortId`s.
pub type BuiltUnit = (String, Box<dyn Unit>, Vec<Wire>);

impl Topology {
    /// The ends at each unit, in the order of its `PortId`s, with the wire and the other end.
    pub(super) fn ends(&self) -> Vec<Vec<(WireEnd, WireEnd, usize)>> {
        let mut ends = vec![Vec::new(); self.units.len()];
        for (index, wire) in self.wires.iter().enumerate() {
            ends[wire.a.unit.0 as usize].push((wire.a, wire.b, index));
            ends[wire.b.unit.0 as usize].push((wire.b, wire.a, index));
        }
        ends
    }

    /// The wired ports of each unit.
    pub fn port_maps(&self) -> Vec<PortMap> {
        let ends = self.ends();
        let map = |of_unit: &Vec<(WireEnd, WireEnd, usize)>| {
            let ports = of_unit.iter().map(|(end, _, _)| (end.port.to_owned(), end.index.unwrap_or(0)));
            let peers = of_unit.iter().map(|(_, other, _)| self.peer(&ends, *other));
            PortMap::new(ports).with_peers(peers.collect())
        };
        ends.iter().map(map).collect()
    }

    /// What a wire to `end` leads to: the unit there, or the one behind it where it forwards what comes in.
    fn peer(&self, ends: &[Vec<(WireEnd, WireEnd, usize)>], end: WireEnd) -> Peer {
        let end = self.end_behind(ends, end);
        let unit = &self.units[end.unit.0 as usize];
        let mut provides = unit.provides.to_vec();
        // A unit that passes drains on wants them for the one behind it.
        if provides.contains(&Capability::PassesDrains)
            && !provides.contains(&Capability::HoldsStores)
            && self.first_holder_below(ends, end.unit.0 as usize).is_some()
        {
            provides.push(Capability::HoldsStores);
        }
        Peer { path: unit.path.clone(), kind: unit.kind.name, provides }
    }

    /// The end of a wire, or the one behind it where the unit there forwards what comes in.
    pub(super) fn end_behind(&self, ends: &[Vec<(WireEnd, WireEnd, usize)>], mut end: WireEnd) -> WireEnd {
        // A circle of units that only forward ends where every unit has been seen.
        for _ in 0..self.units.len() {
            let beyond = self.units[end.unit.0 as usize].provides.iter().find_map(|capability| match capability {
                Capability::Forwards { ports: [a, b], .. } if end.port == *a => Some(*b),
                Capability::Forwards { ports: [a, b], .. } if end.port == *b => Some(*a),
                _ => None,
            });
            let behind = beyond.and_then(|port| {
                let is_it = |other: &WireEnd| other.port == port && other.index == end.index;
                ends[end.unit.0 as usize].iter().find(|(other, _, _)| is_it(other))
            });
            match behind {
                Some((_, other, _)) => end = *other,
                None => break,
            }
        }
        end
    }

    /// The other ends of a unit's memory ports of one role, behind units that only forward.
    fn memory_peers(&self, ends: &[Vec<(WireEnd, WireEnd, usize)>], unit: usize, role: Role) -> Vec<usize> {
        let ports = self.units[unit].kind.ports;
        let is_one = |end: &WireEnd| ports.iter().any(|port| port.name == end.port && port.is(Protocol::Memory, role));
        let wired = ends[unit].iter().filter(|(end, ..)| is_one(end));
        wired.map(|(_, other, _)| self.end_behind(ends, *other).unit.0 as usize).collect()
    }

    /// Do the memory clients of a unit lead to an SM before they lead to a crossbar? Then the L2 is where its accesses meet others.
    fn is_between_sm_and_l2(&self, ends: &[Vec<(WireEnd, WireEnd, usize)>], unit: usize) -> bool {
        let mut above = vec![unit];
        for _ in 0..self.units.len() {
            let clients = above.iter().flat_map(|&unit| self.memory_peers(ends, unit, Role::Server));
            let clients: BTreeSet<usize> = clients.collect();
            let is_sm = |&&unit: &&usize| {
                self.units[unit].provides.iter().any(|capability| matches!(capability, Capability::Sm(_)))
            };
            if clients.iter().any(|unit| is_sm(&unit)) {
                return true;
            }
            above = clients.into_iter().filter(|&unit| !kinds::is_built_in(self.units[unit].kind)).collect();
            if above.is_empty() {
                return false;
            }
        }
        false
    }

    /// The unit behind this one, towards the L2, that holds stores back and gets no `Drain`, because this one does not pass it on.
    fn cut_off_from_drains(&self, ends: &[Vec<(WireEnd, WireEnd, usize)>], unit: usize) -> Option<&ExpandedUnit> {
        let of = |unit: usize| &self.units[unit];
        if of(unit).provides.contains(&Capability::PassesDrains) || kinds::is_built_in(of(unit).kind) {
            return None;
        }
        self.first_holder_below(ends, unit).map(of)
    }

    /// The first unit towards the L2 that holds stores back, before any of the simulator's own that is no interposer.
    fn first_holder_below(&self, ends: &[Vec<(WireEnd, WireEnd, usize)>], unit: usize) -> Option<usize> {
        let mut at = unit;
        for _ in 0..self.units.len() {
            at = *self.memory_peers(ends, at, Role::Client).first()?;
            let provides = &self.units[at].provides;
            if provides.contains(&Capability::HoldsStores) {
                return Some(at);
            }
            if kinds::is_built_in(self.units[at].kind) && !provides.contains(&Capability::PassesDrains) {
                return None;
            }
        }
        None
    }

    /// What a unit that does not come with the simulator is held to at these ends.
    fn guest_ports(&self, ends: &[(WireEnd, WireEnd, usize)], wires: &[Wire]) -> Vec<GuestPort> {
        let port = |((end, _, _), wire): (&(WireEnd, WireEnd, usize), &Wire)| {
            let ports = self.units[end.unit.0 as usize].kind.ports;
            let definition = ports.iter().find(|port| port.name == end.port);
            let (protocol, role) = definition.map_or((Protocol::Any, Role::Client), |port| (port.protocol, port.role));
            GuestPort {
                name: end.index.map_or(end.port.to_owned(), |index| format!("{}[{index}]", end.port)),
                protocol,
                side: if role == Role::Client { Side::Client } else { Side::Server },
                latency: wire.latency,
            }
        };
        ends.iter().zip(wires).map(port).collect()
    }

    /// Where the ports of each unit lead, in the order of its `PortId`s.
    pub fn unit_wires(&self) -> Vec<Vec<Wire>> {
        let ends = self.ends();
        let mut ports = BTreeMap::new();
        for unit in &ends {
            for (port, (end, _, _)) in unit.iter().enumerate() {
                ports.insert(*end, PortId(port as u16));
            }
        }
        let wire = |(_, other, index): &(WireEnd, WireEnd, usize)| Wire {
            unit: other.unit,
            port: ports[other],
            latency: self.wires[*index].latency,
        };
        ends.iter().map(|unit| unit.iter().map(wire).collect()).collect()
    }
}

/// Builds every unit, in the order of [`Topology::units`].
///
/// # Errors
///
/// Every value that a unit refuses, at its place in the topology.
pub fn build(topology: &Topology, surroundings: &Surroundings) -> Result<Vec<BuiltUnit>, TopologyErrors> {
    let mut built = Vec::new();
    build_each(topology, surroundings, |unit| built.push(unit))?;
    Ok(built)
}

/// As [`build`], and hands each unit to `take` when it is built: who only checks units keeps none, for a row of large ones takes room.
///
/// # Errors
///
/// As [`build`].
pub fn build_each(
    topology: &Topology,
    surroundings: &Surroundings,
    mut take: impl FnMut(BuiltUnit),
) -> Result<(), TopologyErrors> {
    let (ends, maps, wires) = (topology.ends(), topology.port_maps(), topology.unit_wires());
    let mut refused: Vec<(UnitId, ParameterProblem)> = Vec::new();
    for (index, (unit, wires)) in topology.units.iter().zip(wires).enumerate() {
        let context = BuildContext {
            path: &unit.path,
            part: &unit.part,
            index: unit.index,
            row_length: unit.row.unwrap_or(1),
            ports: &maps[index],
            unit: index as u32,
            surroundings,
        };
        let is_built_in = kinds::is_built_in(unit.kind);
        let build = || (unit.kind.build)(&unit.ron(), &context);
        // What goes wrong in a unit that does not come with the simulator is that unit's mistake.
        let result = if is_built_in { Ok(build()) } else { contain_outside(build) };
        let result = result.unwrap_or_else(|panic| {
            let problem = format!("it panicked while it was built: {panic}");
            Err(BuildError::Parameters(vec![ParameterProblem::new("", problem)]))
        });
        match result {
            Ok(unit_built) if is_built_in => take((unit.path.clone(), unit_built, wires)),
            Ok(unit_built) => {
                let mut guest = Guest::new(unit_built, topology.guest_ports(&ends[index], &wires));
                if topology.is_between_sm_and_l2(&ends, index) {
                    guest = guest.between_clients_and_l2(unit.provides.contains(&Capability::UpdatesCopies));
                }
                take((unit.path.clone(), Box::new(guest), wires));
            }
            Err(BuildError::Parameters(problems)) => {
                refused.extend(problems.into_iter().map(|problem| (UnitId(index as u32), problem)));
            }
            Err(BuildError::Ron(error)) => {
                refused.push((UnitId(index as u32), ParameterProblem::new("", error.to_string())));
            }
        }
    }
    for index in 0..topology.units.len() {
        if let Some(holder) = topology.cut_off_from_drains(&ends, index) {
            let problem = format!(
                "leads to {}, which holds stores back, and {} does not pass a `Drain` on: the stores would stay there when a warp waits \
                 for them (a unit that passes it on provides `Capability::PassesDrains`)",
                holder.path, topology.units[index].path
            );
            refused
                .push((UnitId(index as u32), ParameterProblem::new(client_port(topology.units[index].kind), problem)));
        }
    }
    if refused.is_empty() {
        return Ok(());
    }
    // What a unit says of a port may follow from a mistake in the parameters of another.
    let of_port = |unit: &UnitId, problem: &ParameterProblem| {
        topology.units[unit.0 as usize].kind.ports.iter().any(|port| port.name == problem.key)
    };
    if refused.iter().any(|(unit, problem)| !of_port(unit, problem)) {
        refused.retain(|(unit, problem)| !of_port(unit, problem));
    }
    // The members of a row refuse the same value: one report for all of them.
    let mut errors: Vec<TopologyError> = Vec::new();
    for (unit, problem) in refused {
        let error = refusal(topology, unit, &problem);
        let same = |other: &TopologyError| {
            other.location.span == error.location.span
                && other.location.file.name == error.location.file.name
                && other.label == error.label
        };
        if !errors.iter().any(same) {
            errors.push(error);
        }
    }
    Err(TopologyErrors { topology: topology.name.clone(), errors })
}

/// The name of the port by which a unit asks the memory.
fn client_port(kind: &UnitDefinition) -> &'static str {
    kind.ports.iter().find(|port| port.is(Protocol::Memory, Role::Client)).map_or("", |port| port.name)
}

fn refusal(topology: &Topology, unit: UnitId, problem: &ParameterProblem) -> TopologyError {
    let unit = &topology.units[unit.0 as usize];
    let (key, inner) = problem.key.split_once('.').map_or((&*problem.key, None), |(key, inner)| (key, Some(inner)));
    let parameter = unit.parameters.iter().find(|parameter| parameter.definition.name == key);
    let given = parameter.and_then(|parameter| match &parameter.origin {
        Origin::Given(location) | Origin::Derived { place: location, .. } => Some(location.clone()),
        Origin::Default => None,
    });
    let given = given.map(|location| inner_place(&location, parameter, inner).unwrap_or(location));
    let label = match (&given, parameter) {
        (None, Some(parameter)) => format!("`{key}` has its default {}: {}", parameter.text, problem.problem),
        _ => problem.problem.clone(),
    };
    let location = given.unwrap_or_else(|| unit.location.clone());
    let message = format!("{} {}: {problem}", unit.kind.name, unit.path);
    let error = TopologyError::new(ErrorKind::ParameterOutOfBounds, location, message, label);
    match parameter {
        Some(parameter) => error.help(format!("{key} is: {}", parameter.definition.meaning)),
        None => error,
    }
}

/// The place of what is at fault inside of a value, where the value is all of the text at its end.
fn inner_place(location: &Location, parameter: Option<&Parameter>, inner: Option<&str>) -> Option<Location> {
    let text = &parameter?.text;
    let start = location.span.start + location.text().strip_suffix(text.as_str())?.len();
    let span = nested::place(text, inner?)?;
    Some(Location { span: start + span.start..start + span.end, ..location.clone() })
}
