//! Where the implementation of CUDA's functions is.

#![expect(clippy::disallowed_types, reason = "files are compared by their age")]

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The file's name.
const NAME: &str = "libbalar_cudart.so";

/// The library is not where it should be.
#[derive(Debug, thiserror::Error)]
#[error("{NAME} is missing: it is in none of {}", .0.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", "))]
pub struct Missing(Vec<PathBuf>);

/// Finds the library beside `executable`: in its folder, where cargo puts it, or in `../lib/balar-actors` of an installation.
///
/// # Errors
///
/// Where it is in none of them.
pub fn find(executable: &Path) -> Result<PathBuf, Missing> {
    let folder = executable.parent().unwrap_or(Path::new("."));
    let above = folder.parent().unwrap_or(folder);
    let places = vec![folder.to_owned(), folder.join("deps"), above.to_owned(), above.join("lib/balar-actors")];
    // Cargo leaves an older one beside the executable when it builds only what that needs: the newest is the right one.
    let age = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let found = places.iter().map(|place| place.join(NAME)).filter(|path| path.is_file()).rev().max_by_key(age);
    found.ok_or(Missing(places))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_library_is_found_beside_the_executable() {
        let root = tempfile::tempdir().expect("a folder");
        let executable = root.path().join("bin/balar-actors");
        let error = find(&executable).expect_err("nothing there").to_string();
        assert!(error.contains("libbalar_cudart.so is missing") && error.contains("lib/balar-actors"), "{error}");
        for (folder, _) in [("lib/balar-actors", 0), ("bin/deps", 1)] {
            let path = root.path().join(folder).join(NAME);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            let file = fs::File::create(&path).expect("written");
            if folder == "bin/deps" {
                file.set_modified(SystemTime::now() + std::time::Duration::from_secs(10)).expect("set");
            }
            assert_eq!(find(&executable).expect("there"), path);
        }
    }
}
