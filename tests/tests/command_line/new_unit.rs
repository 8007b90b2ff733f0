//! `new unit`: a project that Cargo understands. That its files compile and their tests pass, `FirstUnit` of the examples shows, which
//! they are made of.

use crate::call::{call, call_in};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The folder of the sources.
fn clone() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the folder of the sources")
}

/// Files below a folder, in order.
fn files(folder: &Path, below: &Path, found: &mut Vec<String>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder.join(below)).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for entry in entries {
        let name = below.join(entry.file_name().expect("a name"));
        if entry.is_dir() {
            files(folder, &name, found);
        } else {
            found.push(name.to_string_lossy().into_owned());
        }
    }
}

/// What Cargo knows of a project, without the network.
fn metadata(project: &Path) -> Value {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--offline", "--format-version", "1"]);
    cargo.args(["--filter-platform", "x86_64-unknown-linux-gnu"]).current_dir(project);
    for variable in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"] {
        cargo.env_remove(variable);
    }
    let output = cargo.output().expect("Cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_project_is_made_that_cargo_understands() {
    let folder = TempDir::new().expect("a folder");
    let called = call_in(folder.path(), &["new", "unit", "WriteFilter"]);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    for said in ["write_filter: a project with the unit WriteFilter", "cd write_filter", "cargo test --release"] {
        assert!(called.stdout.contains(said), "{}", called.stdout);
    }
    let project = folder.path().join("write_filter");
    let mut found = Vec::new();
    files(&project, Path::new(""), &mut found);
    assert_eq!(
        found,
        [
            ".cargo/config.toml",
            ".gitignore",
            "Cargo.lock",
            "Cargo.toml",
            "README.md",
            "src/lib.rs",
            "src/main.rs",
            "src/write_filter/tests.rs",
            "src/write_filter.rs",
            "tests/write_filter.rs",
            "topologies/write_filter.ron",
        ]
    );

    let known = metadata(&project);
    assert_eq!(known["target_directory"].as_str(), clone().join("target").to_str());
    let packages = known["packages"].as_array().expect("packages");
    let package = |name: &str| packages.iter().find(|package| package["name"] == name).expect(name);
    assert_eq!(package("balar-actors")["manifest_path"].as_str(), clone().join("actors/Cargo.toml").to_str());
    let targets = package("write_filter")["targets"].as_array().expect("targets");
    let kinds: Vec<&str> = targets.iter().filter_map(|target| target["kind"][0].as_str()).collect();
    assert_eq!(kinds, ["lib", "bin", "test"]);
    // Every registered package has the version that the simulator is compiled with.
    let locked = fs::read_to_string(clone().join("Cargo.lock")).expect("the versions of the simulator");
    for package in packages.iter().filter(|package| !package["source"].is_null()) {
        let (name, version) = (&package["name"], &package["version"]);
        let entry = format!("name = {name}\nversion = {version}\n");
        assert!(locked.contains(&entry), "{name} {version} is none of the simulator's");
    }
}

#[test]
fn the_unit_has_its_name_everywhere() {
    let folder = TempDir::new().expect("a folder");
    let called = call_in(folder.path(), &["new", "unit", "l2-filter", "--path", "deep/down"]);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let text = |file: &str| fs::read_to_string(folder.path().join("deep/down").join(file)).expect(file);
    assert!(text("src/l2_filter.rs").contains("const NAME: &'static str = \"L2Filter\";"));
    assert!(text("topologies/l2_filter.ron").contains("\"l2_filter[0..84]\": L2Filter("));
    assert!(text("tests/l2_filter.rs").contains("use l2_filter::UNITS;"));
    assert!(text("README.md").contains("--set 'gpu.l2_filter[*].latency=8'"));
}

#[test]
fn what_cannot_be_made_is_refused() {
    let folder = TempDir::new().expect("a folder");
    fs::create_dir(folder.path().join("mine")).expect("a folder");
    for (arguments, said) in [
        (&["L2Slice"][..], "there is a unit `L2Slice` already"),
        (&["2nd"], "`2nd` is no name of a unit"),
        (&["Mine"], "mine is there already"),
        (&["Other", "--simulator", "mine"], "mine is no clone of balar-actors: its actors/Cargo.toml is missing"),
    ] {
        let arguments: Vec<&str> = ["new", "unit"].iter().chain(arguments).copied().collect();
        let called = call_in(folder.path(), &arguments);
        assert_eq!((called.code, called.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(called.stderr.contains(said), "{arguments:?}: {}", called.stderr);
    }
    let mut left = Vec::new();
    files(folder.path(), Path::new(""), &mut left);
    assert_eq!(left, Vec::<String>::new(), "nothing was written");
    assert_eq!(call(&["new"]).code, 2);
}
