//! Every broken topology of `topologies_bad/` with its report, one snapshot each: all mistakes of a file, each with its place.

use crate::toy_units::TOYS;
use balar_actors::catalogue::Surroundings;
use balar_actors::topology::{self, LoadOptions, Override, PartLibrary, TopologyErrors, TopologySource};
use balar_experiments::BuiltInWorkloads;
use std::path::Path;

fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../../snapshots/topologies_bad");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
}

fn load_and_build(name: &str, overrides: &[Override]) -> Result<(), TopologyErrors> {
    let library = PartLibrary::built_in();
    let options = LoadOptions { kinds: TOYS, library: &library, workloads: Some(&BuiltInWorkloads), overrides };
    let topology = topology::load(&TopologySource::from(name), &options)?;
    topology::build(&topology, &Surroundings::default()).map(drop)
}

#[test]
fn every_broken_topology_is_reported() {
    // Paths in the reports are relative to this folder.
    assert!(Path::new("topologies_bad").is_dir(), "tests run in their crate's folder");
    let mut names: Vec<String> = Vec::new();
    for entry in std::fs::read_dir("topologies_bad").expect("the folder of broken topologies") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "ron") {
            names.push(path.display().to_string());
        }
    }
    names.sort();
    assert!(names.len() >= 22, "{names:?}");
    for name in names {
        let errors = load_and_build(&name, &[]).expect_err(&name);
        assert!(!errors.errors.is_empty(), "{name}");
        let stem = Path::new(&name).file_stem().and_then(|stem| stem.to_str()).expect("a name");
        settings().bind(|| insta::assert_snapshot!(stem, errors.render()));
    }
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
    let errors = load_and_build("v100_nod", &[]).expect_err("no such topology");
    settings().bind(|| insta::assert_snapshot!("topology_not_found", errors.render()));
}
