//! The order of the crate's modules: no module imports one that it is below, and the two APIs do not name each other.

use std::path::{Path, PathBuf};

/// Each module of `lib.rs`, and the others that it may name.
const LAYERS: [(&str, &[&str]); 11] = [
    ("abi", &[]),
    ("session", &["abi"]),
    ("cupti", &["abi", "session"]),
    ("device_files", &[]),
    ("runtime", &["abi", "session"]),
    ("driver", &["abi", "session"]),
    ("nvml", &["abi", "session"]),
    ("nvrtc", &["session"]),
    ("nvtx", &["abi", "session"]),
    ("unimplemented", &["session", "runtime"]),
    ("stub_library", &["abi"]),
];

fn sources(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            sources(&entry.unwrap().path(), found);
        }
    } else {
        found.push(path.to_owned());
    }
}

/// The modules that a source file names by their paths from the crate's root.
fn named(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("crate::").map(|(at, start)| {
        let path = &text[at + start.len()..];
        &path[..path.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(path.len())]
    })
}

#[test]
fn imports_point_one_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let modules = LAYERS.map(|(module, _)| module);
    for (module, allowed) in LAYERS {
        let mut files = Vec::new();
        let file = root.join(format!("{module}.rs"));
        sources(&if file.exists() { file } else { root.join(module) }, &mut files);
        assert!(!files.is_empty(), "{module}");
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            for other in named(&text).filter(|name| modules.contains(name) && *name != module) {
                assert!(allowed.contains(&other), "{} names {other}", file.display());
            }
        }
    }
}

/// Every module of the library has its place in the order.
#[test]
fn every_module_has_a_place() {
    let library = include_str!("../src/lib.rs");
    let mut declared: Vec<&str> =
        library.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    let mut known = LAYERS.map(|(module, _)| module);
    declared.sort_unstable();
    known.sort_unstable();
    assert_eq!(declared, known);
}
