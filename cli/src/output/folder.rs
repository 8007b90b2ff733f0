//! `--output DIR`: all artefacts of a run.

use crate::options::selection::Selection;
use crate::output::{comma_separated, details, sections};
use balar_record::json;
use balar_record::result::RunRecord;
use balar_record::run_folder::instruction_table;
use balar_record::system::files::{self, WriteError};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Makes `folder` and its parents where they are missing, and sees that files can be made in it.
///
/// # Errors
///
/// If that fails. It is worth knowing before a long run.
pub fn prepare(folder: &Path) -> Result<(), WriteError> {
    let made = fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder));
    made.map(drop).map_err(|cause| WriteError { path: folder.to_owned(), cause })
}

/// Writes stats.json, stats.csv, kernels.csv, summary.txt, and topology.ron, the topology as it was simulated, with its
/// parts, ranges and defaults written out; a file for each table that a unit has recorded; and instructions.csv, where the run
/// has counted by instruction.
///
/// # Errors
///
/// The first file that could not be written.
pub fn write(folder: &Path, record: &RunRecord, expanded_topology: &str) -> Result<(), WriteError> {
    prepare(folder)?;
    let all = Selection::all();
    files::write_text_with(&folder.join("stats.json"), |file| json::write(record, file))?;
    files::write_text_with(&folder.join("stats.csv"), |file| comma_separated::statistics(record, &all, file))?;
    files::write_text_with(&folder.join("kernels.csv"), |file| comma_separated::kernels(record, file))?;
    files::write(&folder.join("summary.txt"), &details::text(record, &all, None))?;
    files::write(&folder.join("topology.ron"), expanded_topology)?;
    for table in &record.statistics.tables {
        let path = folder.join(format!("{}.csv", table.name));
        files::write_text_with(&path, |file| comma_separated::table(table, file))?;
    }
    let by_instruction = folder.join(instruction_table::FILE);
    match &record.profiles {
        Some(profiles) => files::write_text_with(&by_instruction, |file| instruction_table::write(profiles, file)),
        // What an earlier run has left is of other kernels.
        None => remove(by_instruction),
    }
}

/// Writes sections.txt, what `--sections` prints, where that is asked for. Where it is not, one that an earlier run has left goes.
///
/// # Errors
///
/// If that fails.
pub fn write_sections(folder: &Path, record: &RunRecord, is_asked_for: bool) -> Result<(), WriteError> {
    let path = folder.join("sections.txt");
    if is_asked_for { files::write(&path, &sections::text(record, None)) } else { remove(path) }
}

/// Removes what an earlier run has left, if it has.
fn remove(path: PathBuf) -> Result<(), WriteError> {
    match fs::remove_file(&path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(WriteError { path, cause }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_record::sample::record;

    #[test]
    fn every_artefact_is_written() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("deep/out");
        write(&folder, &record(), "Topology()\n").expect("written");
        let mut names: Vec<_> = fs::read_dir(&folder).expect("made").map(|f| f.expect("entry").file_name()).collect();
        names.sort();
        assert_eq!(names, ["kernels.csv", "stats.csv", "stats.json", "summary.txt", "topology.ron"]);
        assert_eq!(fs::read_to_string(folder.join("stats.json")).expect("text"), json::to_text(&record().document()));
    }

    #[test]
    fn sections_are_written_where_they_are_asked_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sections.txt");
        write_sections(folder.path(), &record(), true).expect("written");
        let text = fs::read_to_string(&path).expect("text");
        assert!(text.contains("\nOccupancy\n"), "{text}");
        // The next run into this folder does not ask for them: they would be another run's.
        for _ in 0..2 {
            write_sections(folder.path(), &record(), false).expect("removed");
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let error = prepare(&file.path().join("out")).expect_err("below a file").to_string();
        assert!(error.contains("cannot write") && error.contains("out"), "{error}");
    }
}
