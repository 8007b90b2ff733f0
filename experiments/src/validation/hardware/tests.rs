//! The study with programs that a closure stands for.

use super::*;
use crate::validation::programs::{LaunchFigures, ProgramFigures, ProgramRun};
use crate::validation::report::Cell;
use crate::validation::runs::JobError;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;

/// A folder with programs that nobody starts.
fn folder_with(programs: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().expect("a new folder");
    for program in programs {
        fs::write(folder.path().join(program), "").expect("it can be written");
    }
    folder
}

fn path_of(folder: &TempDir) -> &str {
    folder.path().to_str().expect("UTF-8")
}

fn report(selection: &Selection, program: &(dyn Fn(&ProgramRun) -> Result<ProgramFigures, JobError> + Sync)) -> Report {
    let interrupt = Arc::new(AtomicBool::new(false));
    let running = Running { threads: 2, interrupt, progress: &|_, _| {}, program: Some(program) };
    run(selection, &running).expect("threads")
}

fn chosen(parts: &[&str], programs: &[&str], folder: Option<&TempDir>) -> Selection {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Selection {
        parts: owned(parts),
        programs: owned(programs),
        folder: folder.map(|folder| path_of(folder).to_owned()),
        ..Selection::default()
    }
}

/// The figures of a program that has launched a kernel.
fn printing(text: &str) -> Result<ProgramFigures, JobError> {
    let launch = LaunchFigures { kernel: "kernel".to_owned(), cycles: 1, picoseconds: 1000 };
    Ok(ProgramFigures { launches: vec![launch], printed: text.to_owned(), ..ProgramFigures::default() })
}

#[test]
fn without_programs_the_recorded_figures_stand_in() {
    let report = report(&chosen(&[], &[], None), &|run| panic!("{run:?} is not asked for"));
    assert!(report.completed && report.failures.is_empty());
    assert_eq!((report.planned, report.tables.len(), report.comparisons.len()), (0, 2, 48));
    for (table, card) in report.tables.iter().zip(CARDS) {
        let expected: Vec<_> = card.rows.iter().map(|row| Cell::number(row.simulated, 6)).collect();
        assert_eq!(table.rows.iter().map(|row| row[1].clone()).collect::<Vec<_>>(), expected, "{}", table.name);
        assert!(table.rows.iter().all(|row| row[4] == Cell::text("recorded")));
        assert!(table.notes.iter().any(|note| note.starts_with("--programs DIR")), "{:?}", table.notes);
    }
    assert!(report.comparisons.iter().all(|one| one.setting == "recorded" && one.source.contains("Debdeep23/test1")));
}

/// 0.004 ms beside the 0.004290 of the card are -6.8 %.
#[test]
fn a_program_that_is_there_runs_as_its_row_says() {
    let folder = folder_with(&["runner"]);
    let selection = chosen(&[], &["vector_add 262144"], Some(&folder));
    let report = report(&selection, &|run| {
        let arguments =
            format!("{}/runner --kernel vector_add --N 262144 --block 256 --warmup 1 --reps 3", path_of(&folder));
        assert_eq!((run.command.join(" "), run.topology), (arguments, "titanv_node"));
        assert_eq!(run.directory.as_deref(), Some(&*folder.path().join(".")));
        printing("kernel=vector_add\ntime_ms=0.004\n")
    });
    assert!(report.completed, "{:?}", report.failures);
    let [titanv, rtx2080ti] = &report.tables[..] else { panic!("{:?}", report.tables) };
    let shown: Vec<_> = titanv.rows[0].iter().map(Cell::shown).collect();
    assert_eq!(shown[..5], ["vector_add 262144", "0.004000", "0.004290", "-6.8", "now"]);
    assert!(titanv.notes[0].starts_with("simulated: 1 row, mean absolute error 6.8 %"), "{:?}", titanv.notes);
    assert!(!titanv.notes.iter().any(|note| note.contains("ecorded")), "{:?}", titanv.notes);
    // The other program is not there.
    assert_eq!(rtx2080ti.rows[0][4], Cell::text("recorded"));
    let told = format!("Not in {}: runner_sm75. ", path_of(&folder));
    assert!(rtx2080ti.notes.iter().any(|note| note.starts_with(&told)), "{:?}", rtx2080ti.notes);
    assert_eq!(report.comparisons[0].setting, "titanv_node");
}

/// `histogram` sets a parameter: 0.018964 ms on the card, and vector_add 0.004290.
#[test]
fn rows_that_set_a_parameter_are_told_apart() {
    let folder = folder_with(&["runner"]);
    let selection = chosen(&["titanv"], &["vector_add 262144", "histogram 262144"], Some(&folder));
    let report = report(&selection, &|run| {
        let is_histogram = run.command.iter().any(|word| word == "histogram");
        printing(if is_histogram { "time_ms=0.037928" } else { "time_ms=0.00429" })
    });
    let notes = &report.tables[0].notes;
    assert!(notes[0].starts_with("rows that set nothing: 1 row, mean absolute error 0.0 %"), "{notes:?}");
    assert!(notes[1].starts_with("all rows: 2 rows, mean absolute error 50.0 %"), "{notes:?}");
}

#[test]
fn a_run_without_its_figure_is_an_error_with_the_name_of_its_row() {
    let folder = folder_with(&["runner"]);
    let selection = chosen(
        &["titanv"],
        &["vector_add 262144", "dot_product 262144", "reduce_sum 262144", "matmul_naive 256"],
        Some(&folder),
    );
    let report = report(&selection, &|run| match &*run.command[2] {
        "vector_add" => printing("one\ntime_ms: 4\n"),
        "dot_product" => Err(JobError::Failed("exit status: 3: an illegal address".to_owned())),
        "reduce_sum" => printing(""),
        _ => Ok(ProgramFigures { printed: "time_ms=0.03".to_owned(), ..ProgramFigures::default() }),
    });
    assert!(!report.completed);
    assert_eq!((report.runs, report.planned), (0, 4));
    let failures = report.failures.join("\n");
    for (name, why) in [
        ("vector_add 262144", "it printed no `time_ms=NUMBER`; its last lines: one; time_ms: 4"),
        ("dot_product 262144", "exit status: 3: an illegal address"),
        ("reduce_sum 262144", "it printed no `time_ms=NUMBER`; it printed nothing"),
        ("matmul_naive 256", "it launched no kernel; its last lines: time_ms=0.03"),
    ] {
        let failure = report.failures.iter().find(|text| text.starts_with(&format!("{name} on titanv_node: run ")));
        assert!(failure.is_some_and(|text| text.ends_with(why)), "{failures}");
    }
    // A figure of another day does not stand where a run has failed.
    assert!(report.tables[0].rows.iter().all(|row| row[1] == Cell::Absent && row[4] == Cell::text("now")));
}
