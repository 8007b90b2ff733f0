//! Every broken topology of `topologies_bad/` with its report, one snapshot each: all mistakes of a file, each with its place.

use crate::toy_units::TOYS;
use balar_actors::catalogue::{Surroundings, UnitDefinition};
use balar_actors::kinds::UNITS;
use balar_actors::simulation::{SimulationError, check_units};
use balar_actors::topology::{self, LoadOptions, Override, PartLibrary, Topology, TopologyErrors, TopologySource};
use balar_experiments::BuiltInWorkloads;
use std::path::Path;

fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../../snapshots/topologies_bad");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
}

fn load(name: &str, kinds: &[&'static UnitDefinition], overrides: &[Override]) -> Result<Topology, TopologyErrors> {
    let library = PartLibrary::built_in();
    let options = LoadOptions { kinds, library: &library, workloads: Some(&BuiltInWorkloads), overrides };
    topology::load(&TopologySource::from(name), &options)
}

/// What is wrong with a topology of toys.
fn toy_errors(name: &str) -> TopologyErrors {
    let built = load(name, TOYS, &[]).and_then(|topology| topology::build(&topology, &Surroundings::default()));
    built.map(drop).expect_err(name)
}

/// What built-in units refuse.
fn refusals(name: &str, overrides: &[&str]) -> TopologyErrors {
    let overrides: Vec<Override> = overrides.iter().map(|text| Override((*text).to_owned())).collect();
    let topology = load(name, UNITS, &overrides).unwrap_or_else(|errors| panic!("{}", errors.render()));
    match check_units(&topology) {
        Err(SimulationError::Topology(errors)) => *errors,
        other => panic!("{name}: {other:?}"),
    }
}

/// The names of the topologies in a folder.
fn topologies_in(folder: &str) -> Vec<String> {
    // Paths in the reports are relative to this folder.
    assert!(Path::new(folder).is_dir(), "tests run in their crate's folder");
    let entries = std::fs::read_dir(folder).expect("the folder of broken topologies");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let topologies = paths.filter(|path| path.extension().is_some_and(|extension| extension == "ron"));
    let mut names: Vec<String> = topologies.map(|path| path.display().to_string()).collect();
    names.sort();
    names
}

fn check_reports(names: &[String], errors_of: impl Fn(&str) -> TopologyErrors) {
    for name in names {
        let errors = errors_of(name);
        assert!(!errors.errors.is_empty(), "{name}");
        let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str()).expect("a name");
        settings().bind(|| insta::assert_snapshot!(stem, errors.render()));
    }
}

#[test]
fn every_broken_topology_is_reported() {
    let names = topologies_in("topologies_bad");
    assert!(names.len() >= 22, "{names:?}");
    check_reports(&names, toy_errors);
}

/// Values that built-in units refuse: each is reported with its place, those inside of other values as well.
#[test]
fn values_out_of_range_are_reported() {
    let names = topologies_in("topologies_bad/built_in");
    assert!(names.len() >= 2, "{names:?}");
    check_reports(&names, |name| refusals(name, &[]));
}

#[test]
fn overrides_out_of_range_are_reported() {
    let overrides = [
        "unified_memory.thrashing.threshold=0",
        "unified_memory.prefetcher=Driver(threshold_percent: 120)",
        "unified_memory.eviction_options.reserve_percent=100",
        "unified_memory.costs.map=2s",
        "migration_link.to_device.bandwidth=\"1 kB/s\"",
        "gpu.gmmu.faults.per_tlb=0",
    ];
    let errors = refusals("v100_node", &overrides);
    assert_eq!(errors.errors.len(), overrides.len(), "{}", errors.render());
    settings().bind(|| insta::assert_snapshot!("overrides_out_of_range", errors.render()));
}

#[test]
fn bad_overrides_are_reported() {
    let overrides = [
        "cluster.cpu[*].widht=4",
        "cluster.cpu[7].width=4",
        "clutser.cpu[0].width=4",
        "cluster.cpu[*].width=four",
        "cluster.cpu[*].clock=1800Mhz",
        "cluster.ram.capacity",
        "cluster.ram=3",
        "workload.elments=3",
        "cluster.cpu.width=3",
        "value_epoch=101ns",
        "value_epoch=0ns",
        "value_epoch=20",
        "value_epoch=20 nsec",
        "value_epoch.length=20ns",
        "value_epcoh=20ns",
    ];
    let overrides: Vec<Override> = overrides.iter().map(|text| Override((*text).to_owned())).collect();
    let text = "Topology(name: \"good\", workload: VectorAdd(), units: {\"cluster\": Part(\"topologies_bad/parts/cluster.ron\")})";
    let library = PartLibrary::empty();
    let options =
        LoadOptions { kinds: TOYS, library: &library, workloads: Some(&BuiltInWorkloads), overrides: &overrides };
    let source = TopologySource::Text { name: "good.ron".to_owned(), text: text.to_owned() };
    let errors = topology::load(&source, &options).expect_err("bad overrides");
    assert_eq!(errors.errors.len(), overrides.len(), "{}", errors.render());
    settings().bind(|| insta::assert_snapshot!("overrides", errors.render()));
}

#[test]
fn a_topology_that_does_not_exist() {
    let errors = toy_errors("v100_nod");
    settings().bind(|| insta::assert_snapshot!("topology_not_found", errors.render()));
}
