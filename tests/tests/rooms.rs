//! How the code is laid out: the contents of one folder can be read at a glance.

use std::fs;
use std::path::{Path, PathBuf};

/// Files of code in a folder, at most.
const MOST_LOOSE: usize = 25;

/// Folders with their files of code, below `folder`.
fn folders(folder: &Path, found: &mut Vec<(PathBuf, usize)>) {
    let entries: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    let is_code = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    found.push((folder.to_owned(), entries.iter().filter(is_code).count()));
    for inner in entries.iter().filter(|path| path.is_dir()) {
        let name = inner.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.starts_with('.') && name != "target" {
            folders(inner, found);
        }
    }
}

#[test]
fn no_folder_has_more_than_25_loose_files() {
    let mut found = Vec::new();
    folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut found);
    assert!(found.iter().filter(|(_, files)| *files > 0).count() > 100, "the code was not found");
    let full: Vec<_> = found.iter().filter(|(_, files)| *files > MOST_LOOSE).collect();
    assert!(full.is_empty(), "divide into rooms: {full:?}");
}
