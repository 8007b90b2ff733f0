//! Reads a topology file and everything it includes.

use super::counts::address_map;
use super::error::{ErrorKind, Errors, TopologyError, TopologyErrors};
use super::expand::Expander;
use super::fields::Fields;
use super::nearest::suggestion;
use super::options::LoadOptions;
use super::scope::Scope;
use super::source::{self, Location, LookupError, PartLibrary, SourceFile, TopologySource};
use super::{ExpandedUnit, Topology, overrides, value_epoch, wiring, workload};
use std::sync::Arc;

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
    let _span = tracing::info_span!("topology", name = asked).entered();
    let topology = file.and_then(|file| load_file(&file, options, &mut errors));
    match topology {
        Some(topology) if errors.list.is_empty() => {
            let (units, wires) = (topology.units.len(), topology.wires.len());
            tracing::debug!(units, wires, overrides = options.overrides.len(), "the topology is read");
            Ok(topology)
        }
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
    let value_epoch = value_epoch::read(&fields, expander.errors);
    let mut scope = Scope::default();
    if let Some(units) = fields.required("units", expander.errors) {
        expander.expand(units, file, "", &mut scope, &[]);
    }
    if let Some(location) = expander.too_large.take() {
        expander.errors.push(Expander::too_large_error(location));
        // What was left out would be missed everywhere.
        return None;
    }
    scope.links = fields.list("links", expander.errors).unwrap_or_default();
    let (units, counts) = (std::mem::take(&mut expander.units), std::mem::take(&mut expander.counts));
    let name = name.unwrap_or_default();
    let mut topology = Topology { name, workload, value_epoch, units, wires: Vec::new(), notes: Vec::new() };
    for (number, given) in options.overrides.iter().enumerate() {
        if !counts.is_taken(number) {
            overrides::apply_argument(&given.0, &mut topology, &scope, options.workloads, errors);
        }
    }
    tell_what_units_provide(&mut topology.units);
    wiring::wire(&mut topology, &scope, errors);
    if errors.list.is_empty() && address_map::follow_counts(&mut topology, &scope) {
        tell_what_units_provide(&mut topology.units);
    }
    Some(topology)
}

fn tell_what_units_provide(units: &mut [ExpandedUnit]) {
    // The units of a row mostly have the same parameters.
    let mut before: Option<(&str, String)> = None;
    let mut provides = Arc::default();
    for unit in units {
        let this = (unit.kind.name, unit.ron());
        if before.as_ref() != Some(&this) {
            provides = Arc::new((unit.kind.provides)(&this.1));
        }
        unit.provides = Arc::clone(&provides);
        before = Some(this);
    }
}
