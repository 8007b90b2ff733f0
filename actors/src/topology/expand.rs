//! Expands the units of a topology and its parts: rows into members, parts into units under their prefix.

use super::counts::counted::Counted;
use super::counts::{self, Counts};
use super::error::{ErrorKind, Errors, TopologyError};
use super::fields::Fields;
use super::nearest::suggestion;
use super::options::LoadOptions;
use super::parameter::{self, Origin, Parameter};
use super::pattern::{self, Index, PatternError};
use super::scope::{Member, Row, Scope, inside};
use super::source::{self, Location, LookupError, SourceFile};
use super::syntax::{Item, Name, Span, Value, ValueKind};
use super::{ExpandedUnit, overrides};
use crate::catalogue::UnitDefinition;
use balar_protocol::UnitId;
use indexmap::IndexMap;
use std::sync::Arc;

/// Parts nest at most this deep.
const MAXIMUM_DEPTH: usize = 16;
/// A row, and a whole node with its parts, hold at most this many units: hundreds of GPUs. More would exhaust the memory of the machine
/// long before they run.
const MAXIMUM_UNITS: usize = 1 << 16;

/// The expansion under way.
pub(crate) struct Expander<'a> {
    options: &'a LoadOptions<'a>,
    pub(crate) errors: &'a mut Errors,
    /// The units so far.
    pub(crate) units: Vec<ExpandedUnit>,
    /// Numbers of units that are asked for.
    pub(crate) counts: Counts,
    /// The part files that are being expanded: (identity, name).
    including: Vec<(String, String)>,
    /// Parts so far.
    parts: usize,
    /// Where the node became too large; nothing is expanded after that.
    pub(crate) too_large: Option<Location>,
}

/// One entry of the map of units.
struct Entry<'e> {
    /// What it says.
    value: &'e Value,
    file: &'e Arc<SourceFile>,
    /// The path of the part that it is in.
    prefix: &'e str,
    name: &'e str,
    /// Whether its name has no index.
    single: bool,
    /// The index of the first unit or part.
    start: u32,
    /// How many there are.
    count: u32,
}

fn at(file: &Arc<SourceFile>, span: &Span) -> Location {
    Location { file: file.clone(), span: span.clone() }
}

/// The name of the row that a key of `units` is a piece of.
fn row_name(key: &Value) -> Option<&str> {
    key.string()?.split_once('[').map(|(name, _)| name)
}

/// The names of the rows in a map of units.
fn row_names(units: &Value) -> Vec<&str> {
    match &units.kind {
        ValueKind::Map(entries) => entries.iter().filter_map(|(key, _)| row_name(key)).collect(),
        _ => Vec::new(),
    }
}

/// The ends of a link as they are written.
fn link_ends(link: &Value) -> Option<(&str, &str)> {
    let ValueKind::Tuple(items) = &link.kind else { return None };
    let mut ends = items.iter().filter(|item| item.key.is_none()).map(|item| item.value.string());
    match (ends.next(), ends.next(), ends.next()) {
        (Some(Some(a)), Some(Some(b)), None) => Some((a, b)),
        _ => None,
    }
}

impl<'a> Expander<'a> {
    pub(crate) fn new(options: &'a LoadOptions<'a>, errors: &'a mut Errors) -> Expander<'a> {
        let counts = Counts::of_arguments(options.overrides);
        Expander { options, errors, units: Vec::new(), counts, including: Vec::new(), parts: 0, too_large: None }
    }

    /// Is there room for so many units and parts more?
    fn has_room(&mut self, more: usize, location: impl FnOnce() -> Location) -> bool {
        if self.too_large.is_none() && self.units.len().saturating_add(self.parts).saturating_add(more) > MAXIMUM_UNITS
        {
            self.too_large = Some(location());
        }
        self.too_large.is_none()
    }

    /// The error of a node that is too large.
    pub(crate) fn too_large_error(location: Location) -> TopologyError {
        let message = format!("the node holds more than {MAXIMUM_UNITS} units and parts");
        let error = TopologyError::new(ErrorKind::TooLarge, location, message, "beyond the bound here");
        error.help("rows inside of rows multiply: the members of all of them count")
    }

    /// Expands a map of units into `scope`, whose path is `prefix`. Another map lengthens the rows `later`.
    pub(crate) fn expand(
        &mut self,
        units: &Value,
        file: &Arc<SourceFile>,
        prefix: &str,
        scope: &mut Scope,
        later: &[&str],
    ) {
        let ValueKind::Map(entries) = &units.kind else {
            let message = format!("`units` is {}", units.describe());
            let label = "expected a map: {\"name\": Kind(...), ...}";
            self.errors.push(TopologyError::new(ErrorKind::WrongShape, at(file, &units.span), message, label));
            return;
        };
        if entries.is_empty() {
            let message = "there is no unit";
            let label = "expected at least one unit: {\"name\": Kind(...)}";
            self.errors.push(TopologyError::new(ErrorKind::Empty, at(file, &units.span), message, label));
        }
        let first_unit = self.units.len();
        for (at_entry, (key, value)) in entries.iter().enumerate() {
            if self.too_large.is_some() {
                return;
            }
            let Some((name, written)) = self.unit_name(key, file, scope) else { continue };
            let asked = written.as_ref().and_then(|_| self.counts.of(prefix, &name, MAXIMUM_UNITS, self.errors));
            let range = match (&written, &asked) {
                (Some(written), Some((count, _))) => {
                    let is_later = |(key, _): &(Value, Value)| row_name(key) == Some(name.as_str());
                    let is_last = !entries[at_entry + 1..].iter().any(is_later) && !later.contains(&name.as_str());
                    counts::piece(written, *count, is_last)
                }
                (Some(written), None) => written.clone(),
                (None, _) => 0..1,
            };
            let row = scope.rows.entry(name.clone()).or_insert_with(|| Row {
                single: written.is_none(),
                members: Vec::new(),
                written: 0,
                counted: None,
                location: at(file, &key.span),
            });
            row.written = written.as_ref().map_or(1, |written| written.end);
            row.counted = asked.clone().map(|(count, place)| {
                let dot = if prefix.is_empty() { "" } else { "." };
                Counted { path: format!("{prefix}{dot}{name}"), count, written: row.written, place }
            });
            let count = range.end - range.start;
            if let Some((_, place)) = &asked
                && !self.has_room(count as usize, || place.clone())
            {
                return;
            }
            if count == 0 {
                continue;
            }
            let before = self.errors.list.len();
            let entry =
                Entry { value, file, prefix, name: &name, single: written.is_none(), start: range.start, count };
            let members = self.members(&entry);
            if let Some((_, place)) = asked {
                for member in &members {
                    if let Member::Unit(unit) = member {
                        self.units[unit.0 as usize].counted_at = Some(place.clone());
                    }
                }
            }
            let broken = self.errors.list.len() > before && members.is_empty();
            if broken {
                row.members.extend((0..count).map(|_| Member::Broken));
            } else {
                row.members.extend(members);
            }
        }
        self.set_row_lengths(first_unit, prefix, scope);
    }

    /// Tells the units of this scope how long their rows are: a row may be given in pieces.
    fn set_row_lengths(&mut self, first_unit: usize, prefix: &str, scope: &Scope) {
        for row in scope.rows.values().filter(|row| !row.single) {
            for member in &row.members {
                if let Member::Unit(unit) = member {
                    self.units[unit.0 as usize].row = Some(row.members.len() as u32);
                }
            }
        }
        debug_assert!(self.units[first_unit..].iter().all(|unit| unit.path.starts_with(prefix)));
    }

    /// Reads the key of a unit: its name, and the members it stands for.
    fn unit_name(
        &mut self,
        key: &Value,
        file: &Arc<SourceFile>,
        scope: &Scope,
    ) -> Option<(String, Option<std::ops::Range<u32>>)> {
        let bad = |message: String, span: Location| {
            TopologyError::new(ErrorKind::BadUnitName, span, message, "expected \"name\" or \"name[0..8]\"")
        };
        let Some(text) = key.string() else {
            self.errors.push(bad(format!("a unit's name is {}", key.describe()), at(file, &key.span)));
            return None;
        };
        let segment = match pattern::parse(text).map(<[_; 1]>::try_from) {
            Ok(Ok([segment])) => segment,
            Ok(Err(_)) => {
                self.errors.push(bad(format!("the unit name `{text}` holds a dot"), at(file, &key.span)));
                return None;
            }
            Err(PatternError { kind, message, span }) => {
                let place = inside(file, key, &span);
                let error = match kind {
                    ErrorKind::BadRange => {
                        TopologyError::new(kind, place, message, "expected `[start..end]`, start < end")
                    }
                    _ => bad(format!("bad unit name: {message}"), place),
                };
                self.errors.push(error);
                return None;
            }
        };
        let range = match segment.index {
            Index::None => None,
            Index::One(index) => Some(index..index.saturating_add(1)),
            Index::Range(start, end) => Some(start..end),
            Index::All => {
                self.errors.push(bad(format!("the row `{text}` has no length"), at(file, &key.span)));
                return None;
            }
        };
        let name = segment.name;
        if name == overrides::WORKLOAD {
            self.errors.push(bad(format!("the name `{name}` is taken by the workload"), at(file, &key.span)));
            return None;
        }
        if range.as_ref().is_some_and(|range| range.end as usize > MAXIMUM_UNITS) {
            let message = format!("the row `{text}` is longer than {MAXIMUM_UNITS} units");
            self.errors.push(TopologyError::new(ErrorKind::BadRange, at(file, &key.span), message, "too long"));
            return None;
        }
        let present = scope.rows.get(&name);
        let length = present.map_or(0, |row| row.written);
        let clash = present.is_some_and(|row| row.single || range.as_ref().is_none_or(|range| range.start < length));
        if let Some(row) = present.filter(|_| clash) {
            let message = format!("the name `{name}` is given twice");
            let error = TopologyError::new(ErrorKind::NameGivenTwice, at(file, &key.span), message, "given again");
            self.errors.push(error.other(row.location.clone(), "given before"));
            return None;
        }
        if let Some(range) = range.as_ref().filter(|range| range.start > length) {
            let message = format!("the row `{name}` has no member {length}");
            let label = format!("expected `{name}[{length}..{}]`", range.end);
            let error = TopologyError::new(ErrorKind::RowGap, at(file, &key.span), message, label);
            self.errors.push(error.help("a row begins at 0 and has no gap"));
            return None;
        }
        Some((name, range))
    }

    /// Expands one entry; empty where it has a mistake that leaves nothing to wire.
    fn members(&mut self, entry: &Entry<'_>) -> Vec<Member> {
        let &Entry { value, file, prefix, name, single, start, count } = entry;
        let ValueKind::Call(kind, items) = &value.kind else {
            let message = format!("`{name}` is {}, not a unit", value.describe());
            let label = "expected `Kind(...)` or `Part(\"parts/...\")`";
            self.errors.push(TopologyError::new(ErrorKind::WrongShape, at(file, &value.span), message, label));
            return Vec::new();
        };
        let path = |index: u32| {
            let dot = if prefix.is_empty() { "" } else { "." };
            let index = if single { String::new() } else { format!("[{index}]") };
            format!("{prefix}{dot}{name}{index}")
        };
        if kind.text == "Part" {
            return (start..start + count)
                .map_while(|index| {
                    if !self.has_room(1, || at(file, &kind.span)) {
                        return None;
                    }
                    self.parts += 1;
                    let muted = u32::from(index > start);
                    self.errors.muted += muted;
                    let part = self.part(items, kind, file, &path(index));
                    self.errors.muted -= muted;
                    part.map(|scope| Member::Part(Scope { repeated: index > start, ..scope }))
                })
                .collect();
        }
        let Some(&definition) = self.options.kinds.iter().find(|known| known.name == kind.text) else {
            let names = self.options.kinds.iter().map(|known| known.name).chain(std::iter::once("Part"));
            let message = format!("there is no kind of unit `{}`", kind.text);
            let error =
                TopologyError::new(ErrorKind::UnknownUnitKind, at(file, &kind.span), message, "not a kind of unit");
            self.errors.push(error.help(suggestion(&kind.text, names)));
            return Vec::new();
        };
        if !self.has_room(count as usize, || at(file, &kind.span)) {
            return Vec::new();
        }
        let parameters = Arc::new(self.parameters(definition, items, kind, file));
        let location = at(file, &kind.span);
        (start..start + count)
            .map(|index| {
                let unit = UnitId(self.units.len() as u32);
                self.units.push(ExpandedUnit {
                    path: path(index),
                    part: prefix.to_owned(),
                    index,
                    row: None,
                    kind: definition,
                    parameters: parameters.clone(),
                    provides: Arc::default(),
                    own_clock: None,
                    location: location.clone(),
                    counted_at: None,
                });
                Member::Unit(unit)
            })
            .collect()
    }

    /// The parameters of a unit, complete, in the order of its definition.
    fn parameters(
        &mut self,
        kind: &'static UnitDefinition,
        items: &[Item],
        name: &Name,
        file: &Arc<SourceFile>,
    ) -> Vec<Parameter> {
        let mut given: IndexMap<&str, &Item> = IndexMap::new();
        for item in items {
            let Some(key) = &item.key else {
                let message = format!("a parameter of {} has no name", kind.name);
                let location = at(file, &item.value.span);
                self.errors.push(TopologyError::new(ErrorKind::WrongShape, location, message, "expected `key: value`"));
                continue;
            };
            if !kind.parameters.iter().any(|definition| definition.name == key.text) {
                self.errors.push(parameter::unknown_parameter(kind, &key.text, at(file, &key.span)));
            } else if let Some(first) = given.get(key.text.as_str()) {
                let message = format!("the parameter `{}` of {} is given twice", key.text, kind.name);
                let error = TopologyError::new(ErrorKind::KeyGivenTwice, at(file, &key.span), message, "given again");
                self.errors.push(error.other(at(file, &first.span()), "given before"));
            } else {
                given.insert(&key.text, item);
            }
        }
        let mut parameters = Vec::new();
        for definition in kind.parameters {
            if let Some(item) = given.get(definition.name) {
                let text = &file.text[item.value.span.clone()];
                if let Err(error) = parameter::check_value(kind, definition, text) {
                    let location = at(file, &item.value.span);
                    self.errors.push(parameter::bad_value(kind.name, definition, error, location));
                }
                let origin = Origin::Given(at(file, &item.span()));
                parameters.push(Parameter { definition, text: text.to_owned(), origin });
            } else if let Some(default) = definition.default {
                parameters.push(Parameter { definition, text: default.to_owned(), origin: Origin::Default });
            } else {
                let message = format!("{} lacks its parameter `{}`", kind.name, definition.name);
                let label = format!("expected `{}: {}` ({})", definition.name, definition.kind, definition.meaning);
                self.errors.push(TopologyError::new(ErrorKind::MissingParameter, at(file, &name.span), message, label));
            }
        }
        parameters
    }

    /// Expands `Part("file", set: {...})`, or a part written in place: `Part(units: {...}, links: [...])`. An included part
    /// can be changed where it is included: `without` takes links out of it, `units` and `links` are added to it.
    fn part(&mut self, items: &[Item], name: &Name, file: &Arc<SourceFile>, path: &str) -> Option<Scope> {
        let here = at(file, &name.span);
        if self.including.len() == MAXIMUM_DEPTH {
            let message = format!("parts nest deeper than {MAXIMUM_DEPTH} levels");
            self.errors.push(TopologyError::new(ErrorKind::IncludeCycle, here, message, "one part too deep"));
            return None;
        }
        let included = items.first().filter(|item| item.key.is_none());
        let named = if included.is_some() { &items[1..] } else { items };
        let keys: &[&str] =
            if included.is_some() { &["set", "without", "units", "links"] } else { &["name", "units", "links", "set"] };
        let outer = Fields::from_items("Part", here, named, file, keys, self.errors);
        let (body, body_file) = match included {
            Some(item) => {
                let part_file = self.find_part(&item.value, file)?;
                let body = Fields::read(&part_file, "Part", &["name", "units", "links"], self.errors)?;
                self.including.push((part_file.identity.clone(), part_file.name.clone()));
                (Some(body), part_file)
            }
            None => {
                self.including.push((String::new(), path.to_owned()));
                (None, file.clone())
            }
        };
        let fields = body.as_ref().unwrap_or(&outer);
        let mut scope = Scope::default();
        let first_setting = self.counts.enter(path, outer.get("set"), file);
        let later = outer.get("units").filter(|_| included.is_some());
        if let Some(units) = fields.required("units", self.errors) {
            self.expand(units, &body_file, path, &mut scope, &later.map(row_names).unwrap_or_default());
        }
        scope.links = fields.list("links", self.errors).unwrap_or_default();
        self.including.pop();
        if included.is_some() {
            for (_, without) in outer.list("without", self.errors).unwrap_or_default() {
                self.take_out(&without, file, &mut scope);
            }
            if let Some(units) = later {
                self.expand(units, file, path, &mut scope, &[]);
            }
            scope.links.extend(outer.list("links", self.errors).unwrap_or_default());
        }
        if let Some(set) = outer.get("set") {
            if let ValueKind::Map(entries) = &set.kind {
                for (entry, (key, value)) in entries.iter().enumerate() {
                    if !self.counts.is_taken(first_setting + entry) {
                        overrides::apply_entry(key, value, file, &mut self.units, &scope, self.errors);
                    }
                }
            } else {
                outer.wrong_shape("set", set, "a map: {\"sm[*].clock\": \"1530 MHz\"}", self.errors);
            }
        }
        self.counts.leave(first_setting);
        Some(scope)
    }

    /// Takes the link whose two ends are written as in `without` out of a part.
    fn take_out(&mut self, without: &Value, file: &Arc<SourceFile>, scope: &mut Scope) {
        let place = at(file, &without.span);
        let Some(ends) = link_ends(without) else {
            let message = format!("a link to leave out is {}", without.describe());
            let label = "expected the two ends of a link of the part: (\"unit.port\", \"unit.port\")";
            self.errors.push(TopologyError::new(ErrorKind::WrongShape, place, message, label));
            return;
        };
        let same = |link: &Value| link_ends(link).is_some_and(|(a, b)| (a, b) == ends || (b, a) == ends);
        if let Some(found) = scope.links.iter().position(|(_, link)| same(link)) {
            scope.links.remove(found);
            return;
        }
        let written = |(a, b)| format!("({a:?}, {b:?})");
        let links: Vec<String> = scope.links.iter().filter_map(|(_, link)| link_ends(link)).map(written).collect();
        let message = format!("the part has no link {} to leave out", written(ends));
        let error =
            TopologyError::new(ErrorKind::BadPath, place, message, "not a link of the part, as it is written there");
        self.errors.push(error.help(suggestion(&written(ends), links.iter().map(String::as_str))));
    }

    fn find_part(&mut self, value: &Value, file: &Arc<SourceFile>) -> Option<Arc<SourceFile>> {
        let place = at(file, &value.span);
        let Some(name) = value.string() else {
            let message = format!("the file of a Part is {}", value.describe());
            self.errors.push(TopologyError::new(ErrorKind::WrongShape, place, message, "expected \"parts/...\""));
            return None;
        };
        let found = match source::find(name, Some(file), self.options.library) {
            Ok(found) => found,
            Err(LookupError::NotFound) => {
                let message = format!("there is no part `{name}`");
                let label = "neither a file nor a built-in part";
                let built_in = self.options.library.files.iter().map(|(key, _)| *key).filter(|key| key.contains('/'));
                let error = TopologyError::new(ErrorKind::PartNotFound, place, message, label);
                self.errors.push(error.help(suggestion(name, built_in)));
                return None;
            }
            Err(LookupError::Unreadable(problem)) => {
                let message = format!("the part `{name}` cannot be read: {problem}");
                let label = "a file that cannot be read";
                self.errors.push(TopologyError::new(ErrorKind::Unreadable, place, message, label));
                return None;
            }
        };
        if let Some(first) = self.including.iter().position(|(identity, _)| *identity == found.identity) {
            let names = self.including[first..].iter().map(|(_, name)| name.as_str());
            let cycle: Vec<&str> = names.chain(std::iter::once(found.name.as_str())).collect();
            let message = format!("the part `{name}` includes itself: {}", cycle.join(" -> "));
            self.errors.push(TopologyError::new(ErrorKind::IncludeCycle, place, message, "included again"));
            return None;
        }
        Some(found)
    }
}
