//! Expands links into wires and checks that every wire makes sense.

mod side;

use super::counts::{self, counted::Counted};
use super::error::{ErrorKind, Errors, TopologyError};
use super::nearest::{nearest, suggestion};
use super::parameter::quantity_error;
use super::pattern::{self, Index, PatternError};
use super::scope::{Member, SET_HERE, Scope, inside, select};
use super::source::{Location, SourceFile};
use super::syntax::{Span, Value, ValueKind};
use super::{ExpandedWire, Topology, WireEnd, clock};
use crate::catalogue::{Capability, PortDefinition, Role, UnitDefinition};
use balar_protocol::{Protocol, SimTime, UnitId};
use indexmap::IndexMap;
use side::{Side, Unfit};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Expands every link of `scope` and the parts in it, then checks what is left unwired.
pub(crate) fn wire(topology: &mut Topology, scope: &Scope, errors: &mut Errors) {
    let mut wiring = Wiring {
        topology,
        errors,
        changed: counts::changed_rows(scope),
        taken: BTreeMap::new(),
        excused: BTreeSet::new(),
        excused_names: BTreeSet::new(),
    };
    wiring.scope(scope);
    wiring.check_link_protocols();
    wiring.check_single_index_rows();
    wiring.check_unconnected();
}

struct Wiring<'a> {
    topology: &'a mut Topology,
    errors: &'a mut Errors,
    /// Rows whose number of units was set.
    changed: Vec<Counted>,
    /// Wired ports: (unit, port, index) and the wire's place.
    taken: BTreeMap<WireEnd, Location>,
    /// Ports that a link with a mistake names: not reported as unconnected.
    excused: BTreeSet<(UnitId, &'static str)>,
    /// Port names in links whose unit is not known.
    excused_names: BTreeSet<String>,
}

impl Wiring<'_> {
    fn scope(&mut self, scope: &Scope) {
        for row in scope.rows.values() {
            for member in &row.members {
                if let Member::Part(part) = member {
                    self.errors.muted += u32::from(part.repeated);
                    self.scope(part);
                    self.errors.muted -= u32::from(part.repeated);
                }
            }
        }
        for (file, link) in &scope.links {
            self.link(scope, file, link);
        }
    }

    fn link(&mut self, scope: &Scope, file: &Arc<SourceFile>, link: &Value) {
        let at = |span: &Span| Location { file: file.clone(), span: span.clone() };
        let location = at(&link.span);
        let shape = |message: String, span: &Span| {
            TopologyError::new(
                ErrorKind::WrongShape,
                at(span),
                message,
                "expected (\"unit.port\", \"unit.port\", latency: \"15 ns\")",
            )
        };
        let ValueKind::Tuple(items) = &link.kind else {
            self.errors.push(shape(format!("a link is {}", link.describe()), &link.span));
            return;
        };
        let mut latency = None;
        let mut misnamed = false;
        let mut ends = Vec::new();
        for item in items {
            match &item.key {
                None => ends.push(&item.value),
                Some(key) if key.text == "latency" && latency.is_none() => latency = Some(&item.value),
                Some(key) if key.text == "latency" => {
                    let message = "the link's latency is given twice";
                    self.errors.push(TopologyError::new(
                        ErrorKind::KeyGivenTwice,
                        at(&key.span),
                        message,
                        "given before",
                    ));
                }
                Some(key) => {
                    let message = format!("a link has no key `{}`", key.text);
                    let error = TopologyError::new(ErrorKind::UnknownKey, at(&key.span), message, "not a key");
                    self.errors.push(error.help(suggestion(&key.text, ["latency"])));
                    misnamed = true;
                }
            }
        }
        let [a, b] = ends[..] else {
            let message = format!("a link joins two ports, this one names {}", ends.len());
            self.errors.push(shape(message, &link.span));
            return;
        };
        let latency_place = latency.map(|value| at(&value.span));
        // A key that is not `latency` may have been meant to be it.
        let latency = latency.map(|value| self.latency(value, file)).or(misnamed.then_some(None));
        let sides = (self.side(scope, a, file), self.side(scope, b, file));
        let (Some(mut a), Some(mut b)) = sides else {
            for side in [sides.0, sides.1].into_iter().flatten() {
                self.excuse(&side);
            }
            return;
        };
        side::follow_counts(&mut a, &mut b);
        let before = self.errors.list.len();
        self.check_sides(&a, &b, &location);
        if self.errors.list.len() == before {
            self.join(&a, &b, latency, latency_place, &location);
        }
        let broken = [&a, &b].iter().any(|side| side.selected.units.contains(&None));
        if broken || self.errors.list.len() > before {
            self.excuse(&a);
            self.excuse(&b);
        }
    }

    /// Reads a latency; `None` where it has a mistake, which is reported.
    fn latency(&mut self, value: &Value, file: &Arc<SourceFile>) -> Option<SimTime> {
        let place = Location { file: file.clone(), span: value.span.clone() };
        let Some(text) = value.string() else {
            let message = format!("a latency is {}", value.describe());
            self.errors.push(TopologyError::new(
                ErrorKind::WrongType,
                place,
                message,
                "expected a time, such as \"15 ns\"",
            ));
            return None;
        };
        match text.parse::<SimTime>() {
            Ok(latency) => Some(latency),
            Err(error) => {
                let (kind, message, help) = quantity_error(&error);
                let mut report = TopologyError::new(
                    kind,
                    place,
                    format!("latency: {message}"),
                    "expected a time, such as \"15 ns\"",
                );
                report.help = help;
                self.errors.push(report);
                None
            }
        }
    }

    fn excuse(&mut self, side: &Side) {
        let Some(definition) = side.definition else { return };
        self.excused.extend(side.selected.units.iter().flatten().map(|unit| (*unit, definition.name)));
    }

    /// Finds the ports one side of a link names.
    fn side(&mut self, scope: &Scope, end: &Value, file: &Arc<SourceFile>) -> Option<Side> {
        let location = Location { file: file.clone(), span: end.span.clone() };
        let place = |span: Span| inside(file, end, &span);
        let Some(text) = end.string() else {
            let message = format!("an end of a link is {}", end.describe());
            self.errors.push(TopologyError::new(ErrorKind::WrongShape, location, message, "expected \"unit.port\""));
            return None;
        };
        let mut segments = match pattern::parse(text) {
            Ok(segments) => segments,
            Err(PatternError { kind, message, span }) => {
                let label = if kind == ErrorKind::BadRange {
                    "expected `[start..end]`, start < end"
                } else {
                    "expected unit.port"
                };
                self.errors.push(TopologyError::new(kind, place(span), message, label));
                self.excused_names
                    .extend(text.rsplit('.').next().map(|port| port.split('[').next().unwrap_or(port).to_owned()));
                return None;
            }
        };
        let port = segments.pop()?;
        if segments.is_empty() {
            let message = format!("`{text}` names no port");
            self.errors.push(TopologyError::new(ErrorKind::BadPath, location, message, "expected unit.port"));
            return None;
        }
        let selected = match select(scope, &segments, &self.topology.units, &place) {
            Ok(selected) => selected,
            Err(error) => {
                self.errors.push(*error);
                self.excused_names.insert(port.name);
                return None;
            }
        };
        let mut side = Side { selected, port, definition: None, location };
        for unit in side.selected.units.iter().flatten() {
            let kind = self.topology.units[unit.0 as usize].kind;
            let name = side.port.name.as_str();
            let Some(definition) = kind.ports.iter().find(|port| port.name == name) else {
                let names = kind.ports.iter().map(|port| port.name);
                let message = format!("{} has no port `{name}`", kind.name);
                let error =
                    TopologyError::new(ErrorKind::UnknownPort, place(side.port.span.clone()), message, "not a port");
                self.errors.push(error.help(suggestion(name, names.clone())));
                if let Some(meant) = nearest(name, names) {
                    self.excused.extend(side.selected.units.iter().flatten().map(|unit| (*unit, meant)));
                }
                return None;
            };
            if side.port.index != Index::None && !definition.indexed {
                let message = format!("the port `{name}` of {} is a single port", kind.name);
                let label = "an index on a single port";
                let error = TopologyError::new(ErrorKind::BadPortIndex, place(side.port.span.clone()), message, label);
                self.errors.push(error.help(format!("write `{name}`")));
                side.definition = Some(definition);
                self.excuse(&side);
                return None;
            }
            side.definition = Some(definition);
        }
        Some(side)
    }

    /// Protocols and roles of the two sides.
    fn check_sides(&mut self, a: &Side, b: &Side, location: &Location) {
        let (Some(first), Some(second)) = (a.definition, b.definition) else { return };
        let agnostic = first.protocol == Protocol::Any || second.protocol == Protocol::Any;
        if first.protocol != second.protocol && !agnostic {
            let message = format!(
                "{} speaks {}, {} speaks {}",
                a.location.text(),
                first.protocol,
                b.location.text(),
                second.protocol
            );
            let label = format!("expected a port of the protocol {}", first.protocol);
            let error = TopologyError::new(ErrorKind::ProtocolMismatch, b.location.clone(), message, label);
            self.errors.push(error.other(a.location.clone(), format!("speaks {}", first.protocol)));
        } else if first.role == second.role {
            let (role, other) = match first.role {
                Role::Client => ("clients", "server"),
                Role::Server => ("servers", "client"),
            };
            let message = format!(
                "{} and {} are both {role} of the protocol {}",
                a.location.text(),
                b.location.text(),
                first.protocol
            );
            let label = format!("two {role}: expected one to be a {other}");
            self.errors.push(TopologyError::new(ErrorKind::RoleMismatch, location.clone(), message, label));
        }
    }

    /// Joins two sides port by port.
    fn join(
        &mut self,
        a: &Side,
        b: &Side,
        latency: Option<Option<SimTime>>,
        latency_place: Option<Location>,
        location: &Location,
    ) {
        let lengths = |message: String, help: String| {
            TopologyError::new(ErrorKind::RowLengths, location.clone(), message, "the two ends differ in length")
                .help(help)
        };
        let length = match (a.length(), b.length()) {
            (Some(length), _) | (None, Some(length)) => length,
            (None, None) => {
                let message = "neither end says how many ports are wired";
                let help = "write the range of ports of one end: `port[0..8]`";
                self.errors.push(lengths(message.to_owned(), help.to_owned()));
                return;
            }
        };
        let ((a_ends, a_dimensions), (b_ends, b_dimensions)) = (a.ends(length), b.ends(length));
        let same_depth = a_dimensions.len() == b_dimensions.len();
        if a_ends.len() != b_ends.len() || (same_depth && a_dimensions != b_dimensions) {
            let say = |dimensions: &[u32]| match dimensions {
                [] => "one port".to_owned(),
                lengths => format!("{} ports", lengths.iter().map(u32::to_string).collect::<Vec<_>>().join(" x ")),
            };
            let message = format!(
                "{} is {}, {} is {}",
                a.location.text(),
                say(&a_dimensions),
                b.location.text(),
                say(&b_dimensions)
            );
            let unfit = (a_ends.len() != b_ends.len()).then(|| side::unfit(a, b, &self.topology.units)).flatten();
            let help = "both ends of a link name the same number of ports; `[*]` on a row of ports takes its length from the other end";
            self.errors.push(match unfit {
                Some(Unfit { message: better, help, counted }) => {
                    lengths(better.unwrap_or(message), help).other(counted.place, SET_HERE)
                }
                None => lengths(message, help.to_owned()),
            });
            return;
        }
        for ((a_unit, a_index), (b_unit, b_index)) in a_ends.into_iter().zip(b_ends) {
            let (Some(a_unit), Some(b_unit)) = (a_unit, b_unit) else { continue };
            let (Some(a_port), Some(b_port)) = (a.definition, b.definition) else { continue };
            let end = |unit, port: &'static PortDefinition, index: Option<u32>| {
                let index = if port.indexed { index.or(Some(0)) } else { None };
                WireEnd { unit, port: port.name, index }
            };
            let (a_end, b_end) = (end(a_unit, a_port, a_index), end(b_unit, b_port, b_index));
            let before = self.errors.list.len();
            self.take(a_end, a, location);
            self.take(b_end, b, location);
            let latency = self.wire_latency(a_end, b_end, latency, latency_place.as_ref(), location);
            if self.errors.list.len() > before {
                return;
            }
            if let Some(latency) = latency {
                self.topology.wires.push(ExpandedWire { a: a_end, b: b_end, latency, location: location.clone() });
            }
        }
    }

    /// Marks a port as wired.
    fn take(&mut self, end: WireEnd, side: &Side, location: &Location) {
        if let Some(before) = self.taken.get(&end) {
            let message = format!("the port {} is wired twice", self.topology.end_name(end));
            let error = TopologyError::new(ErrorKind::PortWiredTwice, side.location.clone(), message, "wired again");
            self.errors.push(error.other(before.clone(), "wired before"));
        } else {
            self.taken.insert(end, location.clone());
        }
    }

    /// The latency of a wire: its own, or what its Link units say. `None` where it has a mistake.
    fn wire_latency(
        &mut self,
        a: WireEnd,
        b: WireEnd,
        given: Option<Option<SimTime>>,
        given_place: Option<&Location>,
        location: &Location,
    ) -> Option<SimTime> {
        let wire = format!("the wire from {} to {}", self.topology.end_name(a), self.topology.end_name(b));
        let shares: Vec<(WireEnd, SimTime)> =
            [a, b].into_iter().filter_map(|end| Some((end, self.share(end)?))).collect();
        let latency = match (shares.first(), given) {
            (Some((link, _)), Some(_)) => {
                let unit = &self.topology.units[link.unit.0 as usize];
                let kind = unit.kind.name;
                let message = format!("{wire} has a latency of its own beside that of the {kind} {}", unit.path);
                let place = given_place.unwrap_or(location).clone();
                let error =
                    TopologyError::new(ErrorKind::LatencyOnLinkWire, place, message, "expected no latency here");
                self.errors.push(error.help(format!("a {kind}'s two wires take its latency between them")));
                return None;
            }
            (Some(_), None) => shares.iter().fold(SimTime::ZERO, |sum, (_, share)| sum.saturating_add(*share)),
            (None, Some(given)) => clock::wire_latency(&self.topology.units, (a, b), given?),
            (None, None) => {
                let message = format!("{wire} has no latency");
                let label = "expected `latency: \"15 ns\"` after its ends";
                self.errors.push(TopologyError::new(ErrorKind::MissingLatency, location.clone(), message, label));
                return None;
            }
        };
        if latency == SimTime::ZERO {
            let place = given_place.unwrap_or(location).clone();
            let message = format!("{wire} takes no time");
            let error = TopologyError::new(ErrorKind::ZeroLatency, place, message, "expected a latency above zero");
            self.errors.push(
                error.help("units act at the same time in windows as long as the smallest latency between any two"),
            );
            return None;
        }
        Some(latency)
    }

    /// Of a unit whose wires take their latency from it: what the wire at this port takes.
    fn share(&self, end: WireEnd) -> Option<SimTime> {
        let unit = &self.topology.units[end.unit.0 as usize];
        unit.provides.iter().find_map(|capability| match capability {
            Capability::Forwards { ports, latency: Some(latency) } if ports.contains(&end.port) => {
                // The side away from the host takes most of it: a GPU's units are busy for longer than a host's, and the longer their
                // wires are, the longer are windows.
                let first = SimTime(latency.0.div_ceil(8));
                Some(if end.port == ports[0] { first } else { *latency - first })
            }
            _ => None,
        })
    }

    /// The two sides of a unit that forwards any protocol speak the same one.
    fn check_link_protocols(&mut self) {
        let units = &self.topology.units;
        let mut spoken: IndexMap<UnitId, (Protocol, Location)> = IndexMap::new();
        for wire in &self.topology.wires {
            for (link, other) in [(wire.a, wire.b), (wire.b, wire.a)] {
                let (link_kind, other_kind) = (units[link.unit.0 as usize].kind, units[other.unit.0 as usize].kind);
                let protocol_of = |kind: &UnitDefinition, name: &str| {
                    kind.ports.iter().find(|port| port.name == name).map(|port| port.protocol)
                };
                let (Some(Protocol::Any), Some(protocol)) =
                    (protocol_of(link_kind, link.port), protocol_of(other_kind, other.port))
                else {
                    continue;
                };
                if protocol == Protocol::Any {
                    continue;
                }
                let Some((carried, before)) = spoken.get(&link.unit) else {
                    spoken.insert(link.unit, (protocol, wire.location.clone()));
                    continue;
                };
                if *carried != protocol {
                    let path = &units[link.unit.0 as usize].path;
                    let message =
                        format!("{} {path} carries {carried} on one side and {protocol} on the other", link_kind.name);
                    let label = format!("expected a port of the protocol {carried}");
                    let error = TopologyError::new(ErrorKind::ProtocolMismatch, wire.location.clone(), message, label);
                    self.errors.push(error.other(before.clone(), format!("carries {carried}")));
                }
            }
        }
    }

    /// A row of ports may leave out its index only where it is a row of one.
    fn check_single_index_rows(&mut self) {
        let mut rows: BTreeMap<(UnitId, &str), Vec<&Location>> = BTreeMap::new();
        for (end, location) in &self.taken {
            if end.index.is_some() {
                rows.entry((end.unit, end.port)).or_default().push(location);
            }
        }
        let mut found = Vec::new();
        for ((unit, port), places) in rows {
            // The text of the link tells whether an index was written.
            let path = &self.topology.units[unit.0 as usize].path;
            let bare = |place: &&&Location| place.text().contains(&format!(".{port}\""));
            if let Some(place) = places.iter().find(bare).filter(|_| places.len() > 1) {
                let message = format!("the port `{port}` of {path} is a row of {} ports", places.len());
                let error =
                    TopologyError::new(ErrorKind::BadPortIndex, (*place).clone(), message, "an index is missing");
                found.push(error.help(format!("write `{port}[0]`")));
            }
        }
        for error in found {
            self.errors.push(error);
        }
    }

    fn check_unconnected(&mut self) {
        let wired: BTreeSet<(UnitId, &str)> = self.taken.keys().map(|end| (end.unit, end.port)).collect();
        // Units that were written together lack the same ports: one report for all of them.
        let mut groups: IndexMap<(String, usize, &str), (Vec<UnitId>, &PortDefinition)> = IndexMap::new();
        for (index, unit) in self.topology.units.iter().enumerate() {
            let id = UnitId(index as u32);
            for port in unit.kind.ports.iter().filter(|port| port.required) {
                let key = (id, port.name);
                if !wired.contains(&key) && !self.excused.contains(&key) && !self.excused_names.contains(port.name) {
                    let place = (unit.location.file.name.clone(), unit.location.span.start, port.name);
                    groups.entry(place).or_insert_with(|| (Vec::new(), port)).0.push(id);
                }
            }
        }
        for ((_, _, name), (units, port)) in groups {
            let first = &self.topology.units[units[0].0 as usize];
            let others =
                if units.len() > 1 { format!(" (and {} more of its kind)", units.len() - 1) } else { String::new() };
            let message = format!("the port `{name}` of {} {}{others} is not wired", first.kind.name, first.path);
            let (role, other) = match port.role {
                Role::Client => ("client", "server"),
                Role::Server => ("server", "client"),
            };
            let label = format!("its port `{name}` ({role} of the protocol {}) must be wired", port.protocol);
            let error = TopologyError::new(ErrorKind::UnconnectedPort, first.location.clone(), message, label);
            let added = self.changed.iter().find(|row| row.has(first) && first.index >= row.written);
            self.errors.push(match added {
                Some(row) => error.other(row.place.clone(), SET_HERE).help(format!(
                    "the file names the {} members of `{}` by number: it must say how another number is wired",
                    row.written, row.path
                )),
                None => error.help(format!("link it to a {other} of the protocol {}: {}", port.protocol, port.meaning)),
            });
        }
    }
}
