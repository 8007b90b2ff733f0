//! Overrides: `--set gpu.sm[*].clock=1800MHz` and `--set value_epoch=10ns` on the command line, `set: {"sm[*].clock": "1530 MHz"}` of a part.

use super::error::{ErrorKind, Errors, TopologyError};
use super::nearest::suggestion;
use super::parameter::{self, Origin, Parameter};
use super::pattern::{self, Segment};
use super::scope::{Scope, inside, select};
use super::source::{Location, SourceFile};
use super::syntax::{Span, Value};
use super::workload::{self, WorkloadCatalogue};
use super::{ExpandedUnit, Topology, value_epoch};
use std::sync::Arc;

/// The first step of paths that mean the workload's parameters.
pub(crate) const WORKLOAD: &str = "workload";

/// Applies one `PATH=VALUE`.
pub(crate) fn apply_argument(
    argument: &str,
    topology: &mut Topology,
    scope: &Scope,
    workloads: Option<&dyn WorkloadCatalogue>,
    errors: &mut Errors,
) {
    let file = Arc::new(SourceFile::text("--set", argument));
    let place = |span: Span| Location { file: file.clone(), span };
    let Some((path, value)) = argument.split_once('=') else {
        let message = format!("`{argument}` has no value");
        let label = "expected PATH=VALUE, such as gpu.sm[*].clock=1800MHz";
        errors.push(TopologyError::new(ErrorKind::BadOverride, place(0..argument.len()), message, label));
        return;
    };
    let (value_place, value) = (place(path.len() + 1..argument.len()), value.trim());
    let segments = match pattern::parse(path.trim()) {
        Ok(segments) => segments,
        Err(error) => {
            errors.push(TopologyError::new(error.kind, place(error.span), error.message, "expected a path"));
            return;
        }
    };
    if let [first, key] = segments.as_slice()
        && first.name == WORKLOAD
    {
        let places = (place(key.span.clone()), value_place);
        set_workload(&key.name, value, topology, places, workloads, errors);
        return;
    }
    if let [key] = segments.as_slice()
        && key.name == value_epoch::KEY
    {
        let text = ron::from_str::<String>(value).unwrap_or_else(|_| value.to_owned());
        if let Some(epoch) = value_epoch::check(&text, value_place, errors) {
            topology.value_epoch = epoch;
        }
        return;
    }
    let set = Setting { segments: &segments, place: &place, value, value_place, quoted: false };
    set.apply(&mut topology.units, scope, errors);
}

/// Applies one entry of a part's `set`.
pub(crate) fn apply_entry(
    key: &Value,
    value: &Value,
    file: &Arc<SourceFile>,
    units: &mut [ExpandedUnit],
    scope: &Scope,
    errors: &mut Errors,
) {
    let place = |span: Span| inside(file, key, &span);
    let value_place = Location { file: file.clone(), span: value.span.clone() };
    let Some(path) = key.string() else {
        let message = format!("a path of `set` is {}", key.describe());
        let location = Location { file: file.clone(), span: key.span.clone() };
        errors.push(TopologyError::new(ErrorKind::BadOverride, location, message, "expected \"unit.parameter\""));
        return;
    };
    match pattern::parse(path) {
        Ok(segments) => {
            let text = &file.text[value.span.clone()];
            let set = Setting { segments: &segments, place: &place, value: text, value_place, quoted: true };
            set.apply(units, scope, errors);
        }
        Err(error) => {
            errors.push(TopologyError::new(error.kind, place(error.span), error.message, "expected a path"));
        }
    }
}

fn set_workload(
    key: &str,
    value: &str,
    topology: &mut Topology,
    places: (Location, Location),
    workloads: Option<&dyn WorkloadCatalogue>,
    errors: &mut Errors,
) {
    let Some(spec) = &mut topology.workload else {
        let message = "the topology names no workload";
        errors.push(TopologyError::new(ErrorKind::BadOverride, places.0, message, "nothing to set"));
        return;
    };
    if let Some(catalogue) = workloads {
        workload::check(&spec.name, key, value, places, catalogue, errors);
    }
    match spec.parameters.iter_mut().find(|(given, _)| given == key) {
        Some((_, given)) => *given = value.to_owned(),
        None => spec.parameters.push((key.to_owned(), value.to_owned())),
    }
}

/// One value for one parameter of one or more units.
struct Setting<'a> {
    segments: &'a [Segment],
    place: &'a dyn Fn(Span) -> Location,
    value: &'a str,
    value_place: Location,
    /// Is the value RON, with its strings in quotes?
    quoted: bool,
}

impl Setting<'_> {
    fn apply(&self, units: &mut [ExpandedUnit], scope: &Scope, errors: &mut Errors) {
        let [path @ .., key] = self.segments else { return };
        if path.is_empty() {
            let message = format!("`{}` names no parameter of a unit", key.name);
            // Only the command line sets keys of the topology itself.
            let own = (!self.quoted).then_some(value_epoch::KEY);
            let names = scope.rows.keys().map(String::as_str).chain(own);
            let error = TopologyError::new(
                ErrorKind::BadPath,
                (self.place)(key.span.clone()),
                message,
                "expected unit.parameter",
            );
            errors.push(error.help(suggestion(&key.name, names)));
            return;
        }
        let selected = match select(scope, path, units, self.place) {
            Ok(selected) => selected,
            Err(error) => {
                errors.push(*error);
                return;
            }
        };
        for unit in selected.units.into_iter().flatten() {
            let unit = &mut units[unit.0 as usize];
            let kind = unit.kind;
            let Some(place) = kind.parameters.iter().position(|definition| definition.name == key.name) else {
                errors.push(parameter::unknown_parameter(kind, &key.name, (self.place)(key.span.clone())));
                return;
            };
            let definition = &kind.parameters[place];
            let quoted = format!("{:?}", self.value);
            let mut text = self.value;
            let mut checked = parameter::check_value(kind, definition, text);
            if checked.is_err() && !self.quoted {
                // A string may lack its quotes on a command line.
                let again = parameter::check_value(kind, definition, &quoted);
                let is_quantity = matches!(definition.kind, "Frequency" | "Bytes" | "Bandwidth" | "SimTime");
                if again.is_ok() || (is_quantity && !self.value.starts_with('"')) {
                    (text, checked) = (quoted.as_str(), again);
                }
            }
            if let Err(error) = checked {
                errors.push(parameter::bad_value(&unit.path, definition, error, self.value_place.clone()));
                return;
            }
            let origin = Origin::Given(self.value_place.clone());
            let parameter = Parameter { definition, text: text.to_owned(), origin };
            let parameters = Arc::make_mut(&mut unit.parameters);
            // A missing parameter has been reported; the list is then shorter than the definition.
            match parameters.iter_mut().find(|given| given.definition.name == definition.name) {
                Some(given) => *given = parameter,
                None => parameters.push(parameter),
            }
        }
    }
}
