//! The workload a topology names: `VectorAdd(elements: 163840)`.

use super::error::{ErrorKind, Errors, TopologyError};
use super::nearest::suggestion;
use super::source::{Location, SourceFile};
use super::syntax::{Value, ValueKind};
use std::sync::Arc;

/// A workload and its parameters, as given.
#[derive(Clone, Debug)]
pub struct WorkloadSpec {
    /// Its name as the catalogue has it: "vectoradd".
    pub name: String,
    /// (key, value); strings without their quotes.
    pub parameters: Vec<(String, String)>,
    /// Where it is named.
    pub location: Location,
}

/// What the loader asks of whoever knows the workloads.
pub trait WorkloadCatalogue {
    /// The names of all workloads.
    fn names(&self) -> Vec<String>;
    /// The parameters of a workload that exists.
    fn parameters(&self, workload: &str) -> Vec<String>;
    /// Does the workload accept this value? The error says what was expected.
    fn check(&self, workload: &str, parameter: &str, value: &str) -> Result<(), String>;
}

/// A name without case and underscores, so that `VectorAdd`, `vector_add` and `vectoradd` are one.
fn folded(name: &str) -> String {
    name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

/// Reads the value of the key `workload`.
pub(crate) fn read(
    value: &Value,
    file: &Arc<SourceFile>,
    catalogue: Option<&dyn WorkloadCatalogue>,
    errors: &mut Errors,
) -> Option<WorkloadSpec> {
    let at = |span: &std::ops::Range<usize>| Location { file: file.clone(), span: span.clone() };
    let ValueKind::Call(name, items) = &value.kind else {
        let message = format!("`workload` is {}, not a workload", value.describe());
        errors.push(
            TopologyError::new(ErrorKind::WrongShape, at(&value.span), message, "expected a workload")
                .help("write `VectorAdd(elements: 163840)`"),
        );
        return None;
    };
    let mut spec = WorkloadSpec { name: folded(&name.text), parameters: Vec::new(), location: at(&name.span) };
    let mut known = true;
    if let Some(catalogue) = catalogue {
        let names = catalogue.names();
        match names.iter().find(|known| folded(known) == spec.name) {
            Some(exact) => spec.name.clone_from(exact),
            None => {
                let message = format!("there is no workload `{}`", name.text);
                let error = TopologyError::new(ErrorKind::UnknownWorkload, at(&name.span), message, "not a workload");
                errors.push(error.help(suggestion(&spec.name, names.iter().map(String::as_str))));
                known = false;
            }
        }
    }
    for item in items {
        let Some(key) = &item.key else {
            let message = format!("a parameter of workload {} has no name", spec.name);
            errors.push(TopologyError::new(
                ErrorKind::WrongShape,
                at(&item.value.span),
                message,
                "expected `key: value`",
            ));
            continue;
        };
        if spec.parameters.iter().any(|(given, _)| *given == key.text) {
            let message = format!("the workload's `{}` is given twice", key.text);
            errors.push(TopologyError::new(ErrorKind::KeyGivenTwice, at(&key.span), message, "given before"));
            continue;
        }
        let text = plain(&item.value, file);
        if let Some(catalogue) = catalogue.filter(|_| known) {
            check(&spec.name, &key.text, &text, (at(&key.span), at(&item.value.span)), catalogue, errors);
        }
        spec.parameters.push((key.text.clone(), text));
    }
    Some(spec)
}

/// The value as a command line would give it.
fn plain(value: &Value, file: &SourceFile) -> String {
    match &value.kind {
        ValueKind::String(text) => text.clone(),
        ValueKind::Number => file.text[value.span.clone()].replace('_', ""),
        _ => file.text[value.span.clone()].to_owned(),
    }
}

/// Checks one parameter against the catalogue; `places` are those of key and value.
pub(crate) fn check(
    workload: &str,
    key: &str,
    value: &str,
    places: (Location, Location),
    catalogue: &dyn WorkloadCatalogue,
    errors: &mut Errors,
) {
    let names = catalogue.parameters(workload);
    if !names.iter().any(|name| name == key) {
        let message = format!("workload {workload} has no parameter `{key}`");
        let error = TopologyError::new(ErrorKind::UnknownWorkloadParameter, places.0, message, "not a parameter");
        errors.push(error.help(suggestion(key, names.iter().map(String::as_str))));
    } else if let Err(problem) = catalogue.check(workload, key, value) {
        errors.push(TopologyError::new(ErrorKind::BadWorkloadParameter, places.1, problem, "refused by the workload"));
    }
}
