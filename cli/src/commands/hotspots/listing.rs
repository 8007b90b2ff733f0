//! The annotated listing: the text of source files with what ran of each line beside it, else the code.

use super::rows::{self, HotRow, KernelHotspots, file_name, function_name};
use super::table::{shown, stalls};
use crate::options::hotspots::By;
use balar_record::kernel_name::readable_name;
use balar_record::run_folder::instructions::InstructionProfile;
use balar_record::system::failure::say;
use balar_record::system::files;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Lines that are shown around those that ran.
const AROUND: u32 = 2;

/// A listing of each kernel: of the files whose text is found, and of the code of what is in no such file.
pub fn text(profile: &InstructionProfile, kernels: &[KernelHotspots<'_>], folders: &[PathBuf]) -> String {
    let mut sources: BTreeMap<String, Option<Vec<String>>> = BTreeMap::new();
    let mut text = String::new();
    for kernel in kernels {
        let is_this = |name: &str| name == kernel.name;
        let of = |by| rows::kernels(profile, by, is_this).into_iter().find(|other| other.isa == kernel.isa);
        let (Some(lines), Some(code)) = (of(By::Line), of(By::Instruction)) else { continue };
        if !text.is_empty() {
            text.push('\n');
        }
        let total = &kernel.total;
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{} ({}): {} warp instructions, {} warp cycles",
            readable_name(&kernel.name),
            kernel.isa,
            total.executed(),
            total.cycles()
        );
        for file in files_of(&lines) {
            if !sources.contains_key(&file) {
                sources.insert(file.clone(), read(&file, folders));
            }
        }
        let found = |file: &str| sources.get(file).and_then(Option::as_ref);
        let missing = files_of(&lines).into_iter().filter(|file| found(file).is_none()).collect::<Vec<_>>();
        if kernel.has_source && !missing.is_empty() {
            let missing = missing.join(", ");
            say(format_args!("note: not found, so that the code is listed: {missing}; --source DIR looks there"));
        }
        let is_whole = missing.len() == files_of(&lines).len();
        for file in files_of(&lines) {
            if let Some(source) = found(&file) {
                let rows: BTreeMap<u32, &HotRow<'_>> = of_file(&lines, &file).collect();
                text.push_str(&source_listing(&lines, &file, source, &rows));
            }
        }
        // Beside source text, code that did not run and is of no line tells nothing.
        let is_told = |row: &HotRow<'_>| is_whole || row.counts.all().any(|(_, count)| count > 0);
        let is_elsewhere = |row: &HotRow<'_>| row.line.as_ref().is_none_or(|line| found(&line.file).is_none());
        text.push_str(&code_listing(&code, |row| is_elsewhere(row) && is_told(row)));
    }
    text
}

/// The files of a kernel's lines, in the order of the code.
fn files_of(lines: &KernelHotspots<'_>) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for line in lines.rows.iter().filter_map(|row| row.line.as_ref()) {
        if !files.contains(&line.file) {
            files.push(line.file.clone());
        }
    }
    files
}

fn of_file<'k, 'a>(
    lines: &'k KernelHotspots<'a>,
    file: &str,
) -> impl Iterator<Item = (u32, &'k HotRow<'a>)> + use<'k, 'a> {
    let file = file.to_owned();
    lines.rows.iter().filter_map(move |row| {
        let line = row.line.as_ref().filter(|line| line.file == file)?;
        Some((line.line, row))
    })
}

/// The lines of a source file: where the code says that it is, or in one of the folders, with its folders or without them.
fn read(file: &str, folders: &[PathBuf]) -> Option<Vec<String>> {
    let path = Path::new(file);
    let relative = path.strip_prefix("/").unwrap_or(path);
    let in_folders = folders.iter().flat_map(|folder| [folder.join(relative), folder.join(file_name(file))]);
    let found = in_folders.chain([path.to_owned()]).find(|path| path.is_file())?;
    let text = files::read(&found).ok()?;
    Some(text.lines().map(str::to_owned).collect())
}

/// The titles over the counts, and how wide these are.
const TITLES: &str = " cycles %   executed  lanes  sectors  conflicts  main stalls (% of the line's cycles)";
const STALLS_WIDTH: usize = 38;

/// What ran of a row, in columns.
fn cells(kernel: &KernelHotspots<'_>, row: &HotRow<'_>) -> String {
    let counts = &row.counts;
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    format!(
        "{:>9.1} {:>10} {:>6} {:>8} {:>10}  {:<STALLS_WIDTH$}",
        100.0 * kernel.share(row),
        counts.executed(),
        or_dash(counts.lanes().map(|lanes| format!("{lanes:.1}"))),
        or_dash(counts.sectors()),
        or_dash(counts.bank_conflicts().map(|conflicts| conflicts.to_string())),
        stalls(row),
    )
}

fn source_listing(
    kernel: &KernelHotspots<'_>,
    file: &str,
    source: &[String],
    rows: &BTreeMap<u32, &HotRow<'_>>,
) -> String {
    let mut text = format!("\n  {file}\n{TITLES}\n");
    let blank = " ".repeat(TITLES.find("main").unwrap_or(0) + STALLS_WIDTH);
    let is_near =
        |number: u32| rows.range(number.saturating_sub(AROUND)..=number.saturating_add(AROUND)).next().is_some();
    let mut last = 0;
    for (number, line) in (1..).zip(source).filter(|(number, _)| is_near(*number)) {
        if last + 1 < number && last > 0 {
            let _ = writeln!(text, "{blank}  {:>5}", "...");
        }
        last = number;
        let cells = rows.get(&number).map_or_else(|| blank.clone(), |row| cells(kernel, row));
        let _ = writeln!(text, "{}", format!("{cells}  {number:>5}  {line}").trim_end());
    }
    // The file may have changed since.
    for (number, row) in rows.range(source.len() as u32 + 1..) {
        let _ = writeln!(text, "{}  {number:>5}  (the file has no such line)", cells(kernel, row));
    }
    text
}

/// The instructions that are chosen, function by function.
fn code_listing(kernel: &KernelHotspots<'_>, chosen: impl Fn(&HotRow<'_>) -> bool) -> String {
    let mut text = String::new();
    let mut function = None;
    for row in kernel.rows.iter().filter(|row| chosen(row)) {
        if function.replace(&row.function) != Some(&row.function) {
            let _ = write!(text, "\n  {}\n{TITLES}\n", function_name(&row.function));
        }
        let place = match (&row.line, row.address) {
            (_, Some(address)) if kernel.isa == "sass" => format!("{address:05x}"),
            (Some(line), _) => format!("{}:{}", file_name(&line.file), line.line),
            (None, address) => address.map_or(String::new(), |address| address.to_string()),
        };
        let _ = writeln!(text, "{}  {place:>5}  {}", cells(kernel, row), shown(&row.text));
    }
    text
}
