//! Overrides (but of the number of units, see `counts`): `--set gpu.sm[*].clock=1800MHz`, `--set gpu.sm[*].latencies.integer=7`, `--set gpu.clock=1500MHz` and
//! `--set value_epoch=10ns` on the command line, `set: {"sm[*].clock": "1530 MHz"}` of a part.

use super::error::{ErrorKind, Errors, TopologyError};
use super::nearest::suggestion;
use super::options::COMMAND_LINE;
use super::parameter::{self, Origin, Parameter};
use super::pattern::{self, Index, Segment};
use super::scope::{Member, Scope, inside, select};
use super::source::{Location, SourceFile};
use super::syntax::{Span, Value};
use super::workload::{self, WorkloadCatalogue};
use super::{ExpandedUnit, Topology, clock, comments, counts, nested, value_epoch};
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
    let file = Arc::new(SourceFile::text(COMMAND_LINE, argument));
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
        if let [part @ .., key] = self.segments
            && key.name == clock::KEY
            && key.index == Index::None
            && let Some(parts) = self.parts_of_clock(scope, part)
        {
            self.apply_to_clock(&parts, key, units, errors);
            return;
        }
        if let Some(mistake) = counts::mistake(scope, self.segments, units, self.place) {
            errors.push(*mistake);
            return;
        }
        let (path, keys) = self.segments.split_at(unit_steps(scope, self.segments));
        let Some((key, inner)) = keys.split_first() else { return };
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
        if let Some(key) = keys.iter().find(|key| key.index != Index::None) {
            let message = format!("`{}` is a parameter, not a row", key.name);
            errors.push(TopologyError::new(ErrorKind::BadPath, (self.place)(key.span.clone()), message, "an index"));
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
            if let Err(error) = self.apply_to(&mut units[unit.0 as usize], key, inner) {
                errors.push(*error);
                return;
            }
        }
    }

    /// The parts whose clock is meant: those that a path names, or, among the settings of a part, the part.
    fn parts_of_clock<'s>(&self, scope: &'s Scope, path: &[Segment]) -> Option<Vec<&'s Scope>> {
        if path.is_empty() { self.quoted.then(|| vec![scope]) } else { clock::parts(scope, path) }
    }

    /// Sets the clock of whole GPUs.
    fn apply_to_clock(&self, parts: &[&Scope], key: &Segment, units: &mut [ExpandedUnit], errors: &mut Errors) {
        for part in parts {
            let Some(domain) = clock::domain(part, units) else {
                let message = "the part is no GPU: none of its units takes kernel launches and has a clock";
                let error =
                    TopologyError::new(ErrorKind::BadPath, (self.place)(key.span.clone()), message, "no clock domain");
                errors.push(error.help("name the units whose clock is meant: part.unit.clock"));
                return;
            };
            for unit in domain {
                let unit = &mut units[unit.0 as usize];
                unit.own_clock = unit.own_clock.or_else(|| clock::of(unit));
                if let Err(error) = self.apply_to(unit, key, &[]) {
                    errors.push(*error);
                    return;
                }
            }
        }
    }

    /// Sets the parameter `key` of one unit, or what `inner` names inside of it.
    fn apply_to(&self, unit: &mut ExpandedUnit, key: &Segment, inner: &[Segment]) -> Result<(), Box<TopologyError>> {
        let kind = unit.kind;
        let Some(definition) = kind.parameters.iter().find(|definition| definition.name == key.name) else {
            return Err(Box::new(parameter::unknown_parameter(kind, &key.name, (self.place)(key.span.clone()))));
        };
        let whole = |value: &str| -> Result<String, Box<TopologyError>> {
            if inner.is_empty() {
                return Ok(value.to_owned());
            }
            let given = unit.parameter(definition.name).unwrap_or_default();
            nested::replace(given, inner, value).map_err(|problem| {
                let message = format!("{}: {}: {}", unit.path, definition.name, problem.message);
                let location = (self.place)(problem.span);
                let error = TopologyError::new(ErrorKind::UnknownParameter, location, message, "not a parameter");
                Box::new(match problem.help {
                    Some(help) => error.help(help),
                    None => error,
                })
            })
        };
        let mut text = whole(self.value)?;
        let mut checked = parameter::check_value(kind, definition, &text);
        if checked.is_err() && !self.quoted {
            // A string may lack its quotes on a command line.
            let quoted = whole(&format!("{:?}", self.value))?;
            let again = parameter::check_value(kind, definition, &quoted);
            let is_quantity = matches!(definition.kind, "Frequency" | "Bytes" | "Bandwidth" | "SimTime");
            if again.is_ok() || (is_quantity && !self.value.starts_with('"')) {
                (text, checked) = (quoted, again);
            }
        }
        checked.map_err(|error| parameter::bad_value(&unit.path, definition, error, self.value_place.clone()))?;
        if !inner.is_empty() {
            // The other values of the struct keep their comments; this one says that it is not the one of the file.
            let before = unit.parameter(definition.name).and_then(|given| nested::given(given, inner));
            let value = nested::given(&text, inner).unwrap_or_else(|| self.value.to_owned());
            text = whole(&format!("{value} {}", comments::replaced(&self.value_place, before.as_deref())))?;
        }
        let parameter = Parameter { definition, text, origin: Origin::Given(self.value_place.clone()) };
        let parameters = Arc::make_mut(&mut unit.parameters);
        // A missing parameter has been reported; the list is then shorter than the definition.
        match parameters.iter_mut().find(|given| given.definition.name == definition.name) {
            Some(given) => *given = parameter,
            None => parameters.push(parameter),
        }
        Ok(())
    }
}

/// How many steps of a path name units; the parameter follows them, and what is meant inside of it.
fn unit_steps(scope: &Scope, segments: &[Segment]) -> usize {
    let last = segments.len().saturating_sub(1);
    let mut scope = scope;
    for (step, segment) in segments.iter().enumerate().take(last) {
        let row = scope.rows.get(&segment.name);
        match row.and_then(|row| row.members.iter().find(|member| !matches!(member, Member::Broken))) {
            Some(Member::Unit(_)) => return step + 1,
            Some(Member::Part(part)) => scope = part,
            // What is not there is reported where the path is followed.
            Some(Member::Broken) | None => return last,
        }
    }
    last
}
