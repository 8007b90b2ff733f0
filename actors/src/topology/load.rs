//! Reads a topology file and everything it includes.

use super::error::{ErrorKind, TopologyError, TopologyErrors};
use super::expand::{Expander, Scope};
use super::nearest::suggestion;
use super::source::{self, Location, LookupError, PartLibrary, SourceFile, TopologySource};
use super::syntax::{self, Item, Value, ValueKind};
use super::workload::{self, WorkloadCatalogue};
use super::{Override, Topology, overrides, wiring};
use crate::catalogue::UnitDefinition;
use crate::memory::DeviceMemory;
use balar_protocol::SimTime;
use std::sync::Arc;

/// What a topology is read with.
#[derive(Clone, Copy)]
pub struct LoadOptions<'a> {
    /// The kinds of units that exist.
    pub kinds: &'a [&'static UnitDefinition],
    /// The built-in topologies and parts.
    pub library: &'a PartLibrary,
    /// The workloads that exist; `None` leaves the key `workload` unchecked.
    pub workloads: Option<&'a dyn WorkloadCatalogue>,
    /// Overrides, applied in order.
    pub overrides: &'a [Override],
}

/// Reads, expands and checks a topology.
///
/// # Errors
///
/// Every mistake that was found in the topology, its parts and the overrides.
pub fn load(source: &TopologySource, options: &LoadOptions) -> Result<Topology, TopologyErrors> {
    let mut errors = Errors::default();
    let (asked, file) = match source {
        TopologySource::Text { name, text } => (name, Some(Arc::new(SourceFile::text(name, text)))),
        TopologySource::Named(name) => (name, find_topology(name, options.library, &mut errors)),
    };
    let topology = file.and_then(|file| load_file(&file, options, &mut errors));
    match topology {
        Some(topology) if errors.list.is_empty() => Ok(topology),
        _ => Err(TopologyErrors { topology: asked.clone(), errors: errors.list }),
    }
}

fn find_topology(name: &str, library: &PartLibrary, errors: &mut Errors) -> Option<Arc<SourceFile>> {
    let asked = Arc::new(SourceFile::text("--topology", name));
    let location = Location { file: asked, span: 0..name.len() };
    match source::find(name, None, library) {
        Ok(file) => return Some(file),
        Err(LookupError::NotFound) => {
            let message = format!("there is no topology `{name}`");
            let label = "neither a file nor a built-in topology";
            let stem = name.rsplit('/').next().unwrap_or(name).trim_end_matches(".ron");
            errors.push(
                TopologyError::new(ErrorKind::TopologyNotFound, location, message, label)
                    .help(suggestion(stem, library.topologies())),
            );
        }
        Err(LookupError::Unreadable(problem)) => {
            let message = format!("`{name}` cannot be read: {problem}");
            errors.push(TopologyError::new(ErrorKind::Unreadable, location, message, "a file that cannot be read"));
        }
    }
    None
}

fn load_file(file: &Arc<SourceFile>, options: &LoadOptions, errors: &mut Errors) -> Option<Topology> {
    let keys = ["name", "workload", "value_epoch", "units", "links"];
    let fields = Fields::read(file, "Topology", &keys, errors)?;
    let mut expander = Expander::new(options, errors);
    let name = fields.string("name", expander.errors);
    let workload = fields.get("workload").cloned();
    let workload = workload.and_then(|value| workload::read(&value, file, options.workloads, expander.errors));
    let value_epoch = value_epoch(&fields, expander.errors);
    let mut scope = Scope::default();
    if let Some(units) = fields.required("units", expander.errors) {
        expander.expand(units, file, "", &mut scope);
    }
    scope.links = fields.list("links", expander.errors).unwrap_or_default();
    let units = std::mem::take(&mut expander.units);
    let mut topology = Topology { name: name.unwrap_or_default(), workload, value_epoch, units, wires: Vec::new() };
    for given in options.overrides {
        overrides::apply_argument(&given.0, &mut topology, &scope, options.workloads, errors);
    }
    wiring::wire(&mut topology, &scope, errors);
    Some(topology)
}

/// The longest value epoch: what a store has done is then visible before anybody can have learned of its end. The fastest answer
/// that the L2 of a P100 or V100 gives takes more than 150 ns.
const LONGEST_EPOCH: SimTime = SimTime::from_nanoseconds(100);

/// The node's `value_epoch`, or its default.
fn value_epoch(fields: &Fields, errors: &mut Errors) -> SimTime {
    let default = DeviceMemory::DEFAULT_EPOCH;
    let Some(value) = fields.get("value_epoch") else { return default };
    let epoch = value.string().and_then(|text| ron::from_str::<SimTime>(&format!("{text:?}")).ok());
    match epoch {
        Some(epoch) if epoch > SimTime::ZERO && epoch <= LONGEST_EPOCH => epoch,
        _ => {
            fields.wrong_shape("value_epoch", value, "a time from \"1 ps\" to \"100 ns\", such as \"20 ns\"", errors);
            default
        }
    }
}

/// Collects mistakes.
#[derive(Default)]
pub(crate) struct Errors {
    pub(crate) list: Vec<TopologyError>,
    /// While above zero, mistakes are not kept: a later member of a row repeats those of the first.
    pub(crate) muted: u32,
}

impl Errors {
    pub(crate) fn push(&mut self, error: TopologyError) {
        if self.muted == 0 {
            self.list.push(error);
        }
    }
}

/// The keys of `Topology(...)` or `Part(...)`.
pub(crate) struct Fields {
    file: Arc<SourceFile>,
    /// "Topology" or "Part", and its place.
    what: (String, Location),
    entries: Vec<(String, Value)>,
}

impl Fields {
    /// Reads a whole file that holds `what(...)`.
    pub(crate) fn read(file: &Arc<SourceFile>, what: &str, keys: &[&str], errors: &mut Errors) -> Option<Fields> {
        let at = |span: &syntax::Span| Location { file: file.clone(), span: span.clone() };
        let value = match syntax::parse(&file.text) {
            Ok(value) => value,
            Err(error) => {
                let mut report = TopologyError::new(
                    ErrorKind::Syntax,
                    at(&error.span),
                    error.message.clone(),
                    "the text is not RON here",
                );
                if let Some(opened) = &error.opened {
                    report = report.other(at(opened), "opened here");
                }
                errors.push(report);
                return None;
            }
        };
        match &value.kind {
            ValueKind::Call(name, items) if name.text == what => {
                Some(Fields::from_items(what, at(&name.span), items, file, keys, errors))
            }
            other => {
                let found = match other {
                    ValueKind::Call(name, _) => format!("`{}`", name.text),
                    _ => value.describe().to_owned(),
                };
                let span = match other {
                    ValueKind::Call(name, _) => name.span.clone(),
                    _ => value.span.start..value.span.start + 1,
                };
                let message = format!("the file holds {found}, not a {what}");
                let label = format!("expected `{what}(...)`");
                errors.push(TopologyError::new(ErrorKind::WrongFileKind, at(&span), message, label));
                None
            }
        }
    }

    /// Sorts the items of `what(...)`.
    pub(crate) fn from_items(
        what: &str,
        location: Location,
        items: &[Item],
        file: &Arc<SourceFile>,
        keys: &[&str],
        errors: &mut Errors,
    ) -> Fields {
        let mut entries: Vec<(String, Value)> = Vec::new();
        for item in items {
            let at = |span: &syntax::Span| Location { file: file.clone(), span: span.clone() };
            let Some(key) = &item.key else {
                let message = format!("a value of {what} has no key");
                let error =
                    TopologyError::new(ErrorKind::WrongShape, at(&item.value.span), message, "expected `key: value`");
                errors.push(error.help(format!("the keys are: {}", keys.join(", "))));
                continue;
            };
            if !keys.contains(&key.text.as_str()) {
                let message = format!("{what} has no key `{}`", key.text);
                let error = TopologyError::new(ErrorKind::UnknownKey, at(&key.span), message, "not a key");
                errors.push(error.help(suggestion(&key.text, keys.iter().copied())));
            } else if entries.iter().any(|(given, _)| *given == key.text) {
                let message = format!("the key `{}` of {what} is given twice", key.text);
                errors.push(TopologyError::new(ErrorKind::KeyGivenTwice, at(&key.span), message, "given before"));
            } else {
                entries.push((key.text.clone(), item.value.clone()));
            }
        }
        Fields { file: file.clone(), what: (what.to_owned(), location), entries }
    }

    fn at(&self, value: &Value) -> Location {
        Location { file: self.file.clone(), span: value.span.clone() }
    }

    /// The value of `key`.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.entries.iter().find(|(given, _)| given == key).map(|(_, value)| value)
    }

    /// The value of `key`; its absence is a mistake.
    pub(crate) fn required(&self, key: &str, errors: &mut Errors) -> Option<&Value> {
        let value = self.get(key);
        if value.is_none() {
            let message = format!("{} lacks the key `{key}`", self.what.0);
            let label = format!("expected `{key}: ...` inside");
            errors.push(TopologyError::new(ErrorKind::MissingKey, self.what.1.clone(), message, label));
        }
        value
    }

    /// The string at `key`, which must be there.
    pub(crate) fn string(&self, key: &str, errors: &mut Errors) -> Option<String> {
        let value = self.required(key, errors)?;
        if value.string().is_none() {
            self.wrong_shape(key, value, "a string", errors);
        }
        value.string().map(str::to_owned)
    }

    /// The list at `key`, empty where absent.
    pub(crate) fn list(&self, key: &str, errors: &mut Errors) -> Option<Vec<(Arc<SourceFile>, Value)>> {
        let value = self.get(key)?;
        let ValueKind::List(values) = &value.kind else {
            self.wrong_shape(key, value, "a list", errors);
            return None;
        };
        Some(values.iter().map(|value| (self.file.clone(), value.clone())).collect())
    }

    pub(crate) fn wrong_shape(&self, key: &str, value: &Value, expected: &str, errors: &mut Errors) {
        let message = format!("`{key}` of {} is {}", self.what.0, value.describe());
        let label = format!("expected {expected}");
        errors.push(TopologyError::new(ErrorKind::WrongShape, self.at(value), message, label));
    }
}
