//! `--output DIR`: all artefacts of a run.

use crate::options::selection::Selection;
use crate::output::{comma_separated, details};
use balar_record::json;
use balar_record::result::RunRecord;
use balar_record::run_folder::instruction_table;
use balar_record::system::files::{self, WriteError};
use std::path::Path;
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
        None => match fs::remove_file(&by_instruction) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(WriteError { path: by_instruction, cause }),
            _ => Ok(()),
        },
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
    fn a_folder_that_cannot_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let error = prepare(&file.path().join("out")).expect_err("below a file").to_string();
        assert!(error.contains("cannot write") && error.contains("out"), "{error}");
    }
}
