//! `--output DIR`: all artefacts of a run.

use crate::options::selection::Selection;
use crate::options::simulation::SimulationOptions;
use crate::output::{comma_separated, details, sections, summary};
use balar_record::json;
use balar_record::result::RunRecord;
use balar_record::run_folder::instruction_table;
use balar_record::system::failure::say;
use balar_record::system::files::{self, WriteError};
use std::path::Path;
use std::{fs, io};

/// Files of tables that drivers of unified memory record; an earlier run may have left them where this one has none.
const TABLES: [&str; 3] = ["unified_memory_transfers.csv", "unified_memory_batches.csv", "unified_memory_pages.csv"];

/// Makes `folder` and its parents where they are missing, and sees that files can be made in it.
///
/// # Errors
///
/// If that fails, or if the folder is that of a sweep, whose files those of a run would replace. It is worth knowing before a long run.
pub fn prepare(folder: &Path) -> Result<(), WriteError> {
    if folder.join(balar_sweeps::definition::FILE).exists() {
        let cause =
            io::Error::other("it is the folder of a sweep, whose kernels.csv would be replaced; name another folder");
        return Err(WriteError { path: folder.to_owned(), cause });
    }
    let made = fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder));
    made.map(drop).map_err(|cause| WriteError { path: folder.to_owned(), cause })
}

/// Writes all that the options ask for of a run's folder, and tells which files of an earlier run are gone, unless it is to be quiet.
///
/// # Errors
///
/// The first file that could not be written.
pub fn write_asked(
    folder: &Path,
    record: &RunRecord,
    expanded_topology: &str,
    options: &SimulationOptions,
) -> Result<(), WriteError> {
    let removed = write(folder, record, expanded_topology)?;
    if !options.quiet {
        tell_removed(folder, &removed);
    }
    write_sections(folder, record, options.selection.sections)
}

/// Writes stats.json, stats.csv, kernels.csv, summary.txt, and topology.ron, the topology as it was simulated, with its
/// parts, ranges and defaults written out; a file for each table in which a unit has recorded something; and instructions.csv, where
/// the run has counted by instruction. Returns the names of files of an earlier run that are gone: what they told is not of this one.
///
/// # Errors
///
/// The first file that could not be written.
pub fn write(folder: &Path, record: &RunRecord, expanded_topology: &str) -> Result<Vec<String>, WriteError> {
    prepare(folder)?;
    let all = Selection::all();
    files::write_text_with(&folder.join("stats.json"), |file| json::write(record, file))?;
    files::write_text_with(&folder.join("stats.csv"), |file| comma_separated::statistics(record, &all, file))?;
    files::write_text_with(&folder.join("kernels.csv"), |file| comma_separated::kernels(record, file))?;
    let counters = details::body(record, &all, None);
    files::write(&folder.join("summary.txt"), &format!("{}\nAll of it\n{counters}", summary::shown(record, None)))?;
    files::write(&folder.join("topology.ron"), expanded_topology)?;
    let mut stale: Vec<String> = TABLES.map(str::to_owned).to_vec();
    for table in record.statistics.tables.iter().filter(|table| !table.lines.is_empty()) {
        let name = format!("{}.csv", table.name);
        files::write_text_with(&folder.join(&name), |file| comma_separated::table(table, file))?;
        stale.retain(|left| *left != name);
    }
    match &record.profiles {
        Some(profiles) => files::write_text_with(&folder.join(instruction_table::FILE), |file| {
            instruction_table::write(profiles, file)
        })?,
        None => stale.push(instruction_table::FILE.to_owned()),
    }
    let mut removed = Vec::new();
    for name in stale {
        if remove(&folder.join(&name))? {
            removed.push(name);
        }
    }
    Ok(removed)
}

/// Writes sections.txt, what `--sections` prints, where that is asked for. Where it is not, one that an earlier run has left goes.
///
/// # Errors
///
/// If that fails.
pub fn write_sections(folder: &Path, record: &RunRecord, is_asked_for: bool) -> Result<(), WriteError> {
    let path = folder.join("sections.txt");
    if is_asked_for { files::write(&path, &sections::text(record, None)) } else { remove(&path).map(|_| ()) }
}

/// Removes a file. Returns whether it was there.
///
/// # Errors
///
/// If that fails.
pub fn remove(file: &Path) -> Result<bool, WriteError> {
    match fs::remove_file(file) {
        Ok(()) => Ok(true),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(WriteError { path: file.to_owned(), cause }),
    }
}

/// Tells which files of an earlier run are gone from a folder.
pub fn tell_removed(folder: &Path, removed: &[String]) {
    if !removed.is_empty() {
        let (folder, files) = (folder.display(), removed.join(", "));
        say(format_args!("balar-actors: removed from {folder}, where an earlier run had left it: {files}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_protocol::statistics::{DataTable, Field};
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

    /// A record of a node that moves managed memory, in which so many transfers were recorded.
    fn with_transfers(lines: usize) -> RunRecord {
        let mut record = record();
        let line = vec![Field::Number(7)];
        let name = "unified_memory_transfers".to_owned();
        record.statistics.tables.push(DataTable { name, columns: &["began_ps"], lines: vec![line; lines] });
        record
    }

    #[test]
    fn tables_without_a_line_are_not_written_and_those_of_an_earlier_run_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let table = folder.path().join("unified_memory_transfers.csv");
        let write = |record: &RunRecord| write(folder.path(), record, "Topology()\n").expect("written");
        assert_eq!(write(&with_transfers(0)), [""; 0]);
        assert!(!table.exists());
        assert_eq!(write(&with_transfers(2)), [""; 0]);
        assert_eq!(fs::read_to_string(&table).expect("text"), "began_ps\n7\n7\n");
        fs::write(folder.path().join("instructions.csv"), "of other kernels").expect("written");
        assert_eq!(write(&with_transfers(0)), ["unified_memory_transfers.csv", "instructions.csv"]);
        assert!(!table.exists());
    }

    #[test]
    fn the_summary_begins_as_the_terminal_shows_it_and_ends_with_every_counter() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), &record(), "Topology()\n").expect("written");
        let text = fs::read_to_string(folder.path().join("summary.txt")).expect("text");
        assert!(text.starts_with(&summary::shown(&record(), None)), "{text}");
        assert_eq!(text.matches("\nreal time").count(), 1, "the head stands once: {text}");
        for row in &record().statistics.rows {
            assert!(text.contains(row.what), "{}: {text}", row.what);
        }
    }

    #[test]
    fn the_folder_of_a_sweep_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("sweep.json"), "{}").expect("written");
        let error = prepare(folder.path()).expect_err("a sweep").to_string();
        assert!(error.contains("it is the folder of a sweep"), "{error}");
    }

    #[test]
    fn sections_are_written_where_they_are_asked_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sections.txt");
        write_sections(folder.path(), &record(), true).expect("written");
        let text = fs::read_to_string(&path).expect("text");
        assert!(text.contains("\nAccesses\n"), "{text}");
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
