//! The files of a project with a unit. Templates have the name `FirstUnit` in its forms, and SIMULATOR for the simulator's folder.

use super::name::UnitName;
use balar_record::system::failure::Failure;
use balar_record::system::files;
use std::path::Path;

/// (file of the project, its template)
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("../../../templates/unit/manifest.toml")),
    (".cargo/config.toml", include_str!("../../../templates/unit/configuration.toml")),
    (".gitignore", include_str!("../../../templates/unit/ignored.txt")),
    ("README.md", include_str!("../../../templates/unit/README.md")),
    ("src/lib.rs", include_str!("../../../templates/unit/library.txt")),
    ("src/main.rs", include_str!("../../../templates/unit/program.txt")),
    ("src/first_unit.rs", include_str!("../../../../examples/src/first_unit.rs")),
    ("src/first_unit/tests.rs", include_str!("../../../../examples/src/first_unit/tests.rs")),
    ("tests/first_unit.rs", include_str!("../../../../examples/tests/first_unit.rs")),
    ("topologies/first_unit.ron", include_str!("../../../../examples/topologies/first_unit.ron")),
];

/// The files of a project, each with its text.
fn files<'a>(name: &'a UnitName, simulator: &'a str) -> impl Iterator<Item = (String, String)> + 'a {
    FILES.iter().map(move |(file, template)| {
        let text = template.replace("balar_examples", &name.snake);
        let text = named(&text, name).replace("SIMULATOR", &quoted(simulator, file));
        (named(file, name), text)
    })
}

/// A template with another unit's name.
fn named(text: &str, name: &UnitName) -> String {
    text.replace("FirstUnit", &name.camel).replace("first_unit", &name.snake)
}

/// The simulator's folder as a file of this kind has it: within quotes in TOML.
fn quoted(simulator: &str, file: &str) -> String {
    if file.ends_with(".toml") { simulator.replace('\\', "\\\\").replace('"', "\\\"") } else { simulator.to_owned() }
}

/// Writes a project into a folder that is not there yet.
///
/// # Errors
///
/// The first file that cannot be written.
pub fn write(folder: &Path, name: &UnitName, simulator: &str) -> Result<(), Failure> {
    if simulator.contains(char::is_control) {
        return Err(Failure::input("the path of the simulator has characters that no Cargo.toml can have"));
    }
    for (file, text) in files(name, simulator) {
        let path = folder.join(file);
        if let Some(parent) = path.parent() {
            let failed = |error| Failure::input(format_args!("cannot make {}: {error}", parent.display()));
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        files::write(&path, &text).map_err(Failure::input)?;
    }
    // The same versions as the simulator's: they are compiled already.
    let (from, to) = (Path::new(simulator).join("Cargo.lock"), folder.join("Cargo.lock"));
    let failed = |error| Failure::input(format_args!("cannot copy {} to {}: {error}", from.display(), to.display()));
    std::fs::copy(&from, &to).map(drop).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The project's packages have the versions, and its profiles the settings, of the simulator: else it would be compiled anew.
    #[test]
    fn the_manifest_says_what_the_simulators_own_say() {
        let manifest = include_str!("../../../templates/unit/manifest.toml");
        let own = [include_str!("../../../../Cargo.toml"), include_str!("../../../../examples/Cargo.toml")];
        let (head, profiles) = manifest.split_once("[profile.release]").expect("it has profiles");
        let versions = head
            .lines()
            .filter(|line| ["ron =", "serde =", "edition =", "rust-version ="].iter().any(|key| line.starts_with(key)));
        let lines: Vec<&str> = versions.chain(profiles.lines()).filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), 4 + 2 + 2 * 2, "{lines:?}");
        for line in lines {
            assert!(own.iter().any(|text| text.lines().any(|own| own == line)), "the simulator does not say: {line}");
        }
    }

    #[test]
    fn nothing_of_the_template_is_left() {
        let name = UnitName { camel: "WriteFilter".to_owned(), snake: "write_filter".to_owned() };
        let made: Vec<(String, String)> = files(&name, r#"/a "b"\c"#).collect();
        for (file, text) in &made {
            for left in ["FirstUnit", "first_unit", "SIMULATOR", "balar_examples"] {
                assert!(!file.contains(left) && !text.contains(left), "{file} has {left}");
            }
        }
        let manifest = &made.iter().find(|(file, _)| file == "Cargo.toml").expect("a manifest").1;
        assert!(manifest.contains(r#"balar-actors = { path = "/a \"b\"\\c/actors" }"#), "{manifest}");
    }
}
