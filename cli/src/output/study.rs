//! What a study found: tables to read, a list of comparisons, JSON, and the files of a folder.

use crate::options::format::StudyFormat;
use crate::output::study_page;
use crate::output::table::Lines;
use balar_experiments::validation::Study;
use balar_experiments::validation::report::{Cell, Comparison, Report, Table};
use balar_record::json;
use balar_record::system::files::{self, WriteError};
use serde::Serialize;
use std::path::Path;

/// Columns of a note where no terminal says how many there are.
const NOTE_WIDTH: u16 = 120;

/// A study, as JSON lists it.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    summary: &'static str,
    duration: &'static str,
    parts: Vec<ListedPart>,
}

/// A part of it.
#[derive(Serialize)]
struct ListedPart {
    name: &'static str,
    summary: &'static str,
}

/// The studies and their parts.
pub fn list(studies: &[&Study], format: StudyFormat, width: Option<u16>) -> String {
    let parts = || studies.iter().flat_map(|study| study.parts.iter().map(move |part| (study, part)));
    match format {
        StudyFormat::Table => {
            let rows = parts().map(|(study, part)| [study.name, part.name, part.summary].map(str::to_owned).to_vec());
            let header = vec!["study", "part", "what"];
            let lines =
                Lines { header, left: vec![0, 1, 2], elastic: Some(2), rows: rows.collect(), ..Lines::default() };
            let durations =
                studies.iter().map(|study| format!("\n{}: {}, {}\n", study.name, study.summary, study.duration));
            lines.text(width) + &durations.collect::<String>()
        }
        StudyFormat::Json => json::to_text(
            &studies
                .iter()
                .map(|study| Listed {
                    name: study.name,
                    summary: study.summary,
                    duration: study.duration,
                    parts: study
                        .parts
                        .iter()
                        .map(|part| ListedPart { name: part.name, summary: part.summary })
                        .collect(),
                })
                .collect::<Vec<_>>(),
        ),
        StudyFormat::Csv => {
            let rows = parts().map(|(study, part)| [study.name, part.name, part.summary].map(str::to_owned).to_vec());
            comma_separated(&["study", "part", "what"], rows)
        }
    }
}

/// What a study found, as it is printed.
pub fn text(report: &Report, format: StudyFormat, width: Option<u16>) -> String {
    match format {
        StudyFormat::Table => tables(report, width),
        StudyFormat::Json => json::to_text(report),
        StudyFormat::Csv => comparisons(report),
    }
}

/// Writes a file for each table and chart, all comparisons, report.json, summary.txt, the tables as they are printed, and index.html, a page
/// with tables and charts.
///
/// # Errors
///
/// The first file that could not be written.
pub fn write(folder: &Path, report: &Report) -> Result<(), WriteError> {
    for table in &report.tables {
        let keys: Vec<_> = table.columns.iter().map(|column| column.key).collect();
        let rows = table.rows.iter().map(|row| row.iter().map(Cell::exact).collect());
        files::write(&folder.join(format!("{}.csv", table.name)), &comma_separated(&keys, rows))?;
    }
    for chart in &report.charts {
        files::write(&folder.join(format!("{}.svg", chart.name)), &chart.svg)?;
    }
    files::write(&folder.join("comparisons.csv"), &comparisons(report))?;
    files::write(&folder.join("report.json"), &json::to_text(report))?;
    files::write(&folder.join("index.html"), &study_page::page(report))?;
    files::write(&folder.join("summary.txt"), &tables(report, None))
}

fn tables(report: &Report, width: Option<u16>) -> String {
    let mut text: Vec<String> = report.tables.iter().map(|one| table(one, width)).collect();
    if !report.completed {
        text.push(format!("{} of {} runs: the tables are not complete\n", report.runs, report.planned));
    }
    if text.is_empty() {
        text.push("no part that was asked for has the programs that were asked for\n".to_owned());
    }
    text.join("\n")
}

fn table(table: &Table, width: Option<u16>) -> String {
    let is_text = |column: &usize| matches!(table.rows.first().and_then(|row| row.get(*column)), Some(Cell::Text(_)));
    let columns = &table.columns;
    let lines = Lines {
        header: columns.iter().map(|column| column.heading).collect(),
        left: (0..columns.len()).filter(is_text).collect(),
        droppable: (0..columns.len()).filter(|column| columns[*column].is_droppable).collect(),
        elastic: None,
        rows: table.rows.iter().map(|row| row.iter().map(Cell::shown).collect()).collect(),
    };
    let notes: String = table.notes.iter().map(|one| note(one, width)).collect();
    let space = if notes.is_empty() { "" } else { "\n" };
    format!("{}\n\n{}{space}{notes}", table.title, lines.text(width))
}

/// A note in lines that the terminal holds, the first one a space from its side.
fn note(text: &str, width: Option<u16>) -> String {
    let columns = usize::from(width.unwrap_or(NOTE_WIDTH)).max(20);
    textwrap::fill(text, textwrap::Options::new(columns).initial_indent(" ").subsequent_indent("   ")) + "\n"
}

fn comparisons(report: &Report) -> String {
    comma_separated(&Comparison::COLUMNS, report.comparisons.iter().map(|one| one.fields().to_vec()))
}

fn comma_separated(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut bytes = Vec::new();
    {
        let mut table = csv::Writer::from_writer(&mut bytes);
        let all = std::iter::once(header.iter().map(|name| (*name).to_owned()).collect()).chain(rows);
        for row in all {
            table.write_record(&row).expect("rows have as many fields as the header, and memory takes them");
        }
        table.flush().expect("memory takes it");
    }
    String::from_utf8(bytes).expect("the fields are text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_experiments::validation::STUDIES;
    use balar_experiments::validation::report::{Chart, Column};
    use std::fs;

    fn report() -> Report {
        let row = |program: &str, us: Option<f64>| {
            let error = us.map(|us| us - 100.0);
            vec![Cell::text(program), Cell::number(us, 1), Cell::Number(100.0, 1), Cell::signed(error, 1)]
        };
        Report {
            study: "study",
            completed: false,
            runs: 1,
            planned: 2,
            tables: vec![Table {
                name: "times",
                title: "Times",
                columns: vec![
                    Column::new("program", "program"),
                    Column::new("simulated_us", "us"),
                    Column::droppable("hardware_us", "hardware"),
                    Column::new("error_percent", "error %"),
                ],
                rows: vec![row("one", Some(102.25)), row("two, three", None)],
                notes: vec!["a note".to_owned()],
            }],
            comparisons: vec![Comparison {
                study: "times",
                program: "one".to_owned(),
                setting: String::new(),
                quantity: "kernel time".into(),
                simulated: Some(102.25),
                reference: None,
                unit: "us".into(),
                source: "".into(),
            }],
            charts: vec![Chart { name: "picture", svg: "<svg/>\n".to_owned() }],
            ..Report::default()
        }
    }

    #[test]
    fn missing_runs_are_dashes_and_said() {
        let text = text(&report(), StudyFormat::Table, None);
        let expected = "\
Times

 program     us     hardware  error %
--------------------------------------
 one         102.2     100.0     +2.2
 two, three      -     100.0        -

 a note

1 of 2 runs: the tables are not complete
";
        assert_eq!(text, expected);
        assert!(!super::text(&report(), StudyFormat::Table, Some(30)).contains("hardware"), "it makes room");
    }

    #[test]
    fn a_folder_has_every_file() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), &report()).expect("written");
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect(name);
        assert_eq!(
            read("times.csv"),
            "program,simulated_us,hardware_us,error_percent\none,102.25,100,2.25\n\"two, three\",,100,\n"
        );
        let comparisons =
            "study,program,setting,quantity,simulated,reference,unit,source\ntimes,one,,kernel time,102.25,,us,\n";
        assert_eq!(read("comparisons.csv"), comparisons);
        assert_eq!(read("picture.svg"), "<svg/>\n");
        assert_eq!(read("summary.txt"), text(&report(), StudyFormat::Table, None));
        let document: serde_json::Value = serde_json::from_str(&read("report.json")).expect("JSON");
        assert_eq!(document["tables"][0]["rows"][1], serde_json::json!(["two, three", null, 100.0, null]));
        assert_eq!(document["completed"], false);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 6);
    }

    #[test]
    fn every_study_is_listed() {
        let text = list(STUDIES, StudyFormat::Table, None);
        let listed: Vec<serde_json::Value> =
            serde_json::from_str(&list(STUDIES, StudyFormat::Json, None)).expect("JSON");
        assert_eq!(listed.len(), STUDIES.len());
        for study in STUDIES {
            assert!(text.contains(study.duration), "{text}");
            for part in study.parts {
                assert!(text.contains(&format!(" {}  ", part.name)), "{} in {text}", part.name);
            }
        }
    }
}
