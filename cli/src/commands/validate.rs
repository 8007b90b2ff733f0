//! The `validate` command: a study, its progress, and what it found.

mod program;

use crate::options::validate::ValidateOptions;
use crate::output::{self, folder, study};
use crate::simulation::interrupt::Interrupt;
use balar_actors::topology::nearest;
use balar_experiments::validation::programs::ProgramRun;
use balar_experiments::validation::report::Report;
use balar_experiments::validation::runs::Running;
use balar_experiments::validation::{STUDIES, Selection, Study};
use balar_record::ending::Ending;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::{Failure, say};
use balar_record::system::terminal;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IsTerminal};
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;

/// The program of the user's that `--lulesh` brings.
const LULESH: &str = "LULESH";

/// Runs a study, prints what it found, and writes it where that is asked for; without a study, lists them.
///
/// # Errors
///
/// Where there is no such study, part or program, or the result cannot be written.
pub fn run(options: &ValidateOptions) -> Result<ExitStatus, Failure> {
    let Some(name) = &options.study else {
        let listed = study::list(STUDIES, options.format, terminal::width(&io::stdout()));
        return print(&listed);
    };
    let study = chosen(name)?;
    let selection = selection(study, options)?;
    options.output.as_deref().map_or(Ok(()), folder::prepare).map_err(Failure::input)?;
    let interrupt = Interrupt::listen(options.max_wall)
        .map_err(|error| Failure::input(format_args!("cannot listen for Ctrl-C: {error}")))?;
    let threads = options.threads.map_or_else(available, usize::from);
    let bar = bar(options.quiet);
    let progress = |ended, planned| {
        bar.set_length(planned as u64);
        bar.set_position(ended as u64);
    };
    let program = |run: &ProgramRun| program::run(run, &interrupt.flag);
    let running = Running { threads, interrupt: interrupt.flag.clone(), progress: &progress, program: Some(&program) };
    let report = (study.run)(&selection, &running);
    bar.finish_and_clear();
    let report = report.map_err(Failure::input)?;
    if let Some(path) = &options.output {
        study::write(path, &report).map_err(Failure::input)?;
    }
    print(&study::text(&report, options.format, terminal::width(&io::stdout())))?;
    for failure in &report.failures {
        say(format_args!("error: {failure}"));
    }
    Ok(status(&report, &interrupt))
}

fn print(text: &str) -> Result<ExitStatus, Failure> {
    output::print(text).map_err(|error| Failure::input(format_args!("cannot write the result: {error}")))?;
    Ok(ExitStatus::Done)
}

fn status(report: &Report, interrupt: &Interrupt) -> ExitStatus {
    if !report.failures.is_empty() {
        return ExitStatus::Wrong;
    }
    // A signal that comes when the last run has ended leaves nothing out.
    if report.completed || !interrupt.flag.load(Ordering::Relaxed) {
        return ExitStatus::Done;
    }
    match interrupt.ending() {
        Ending::Terminated => ExitStatus::Terminated,
        Ending::WallLimit => ExitStatus::DeadlockOrLimit,
        _ => ExitStatus::Interrupted,
    }
}

fn available() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

fn chosen(name: &str) -> Result<&'static Study, Failure> {
    let names = STUDIES.iter().map(|study| study.name);
    STUDIES.iter().find(|study| study.name == name).copied().ok_or_else(|| unknown("study", name, "", names))
}

fn selection(study: &Study, options: &ValidateOptions) -> Result<Selection, Failure> {
    let of = format!(" in study `{}`", study.name);
    let parts = || study.parts.iter().map(|part| part.name);
    for part in &options.parts {
        if parts().all(|name| name != part) {
            return Err(unknown("part", part, &of, parts()));
        }
    }
    let programs = (study.programs)();
    for program in &options.programs {
        if !programs.contains(&program.as_str()) {
            return Err(unknown("program", program, &of, programs.iter().copied()));
        }
    }
    let mut commands = BTreeMap::new();
    if let Some(command) = &options.lulesh {
        if !study.user_programs.contains(&LULESH) {
            let help = format!("study `{}` runs it", names_of(|study| study.user_programs.contains(&LULESH)));
            return Err(Failure::mistake(format_args!("study `{}` runs no LULESH", study.name), help));
        }
        commands.insert(LULESH.to_owned(), command.0.clone());
    }
    let folder = options.folder.as_deref().map(|folder| folder_of_programs(study, folder)).transpose()?;
    Ok(Selection { parts: options.parts.clone(), programs: options.programs.clone(), commands, folder })
}

/// The folder of programs that the user has named, from the root: programs run in folders of their own.
fn folder_of_programs(study: &Study, folder: &Path) -> Result<String, Failure> {
    if !study.takes_folder {
        let help = format!("study `{}` runs them", names_of(|study| study.takes_folder));
        return Err(Failure::mistake(format_args!("study `{}` runs no programs of a folder", study.name), help));
    }
    let cannot = |why: &dyn std::fmt::Display| Failure::input(format_args!("--programs {}: {why}", folder.display()));
    let whole = fs::canonicalize(folder).map_err(|error| cannot(&error))?;
    if !whole.is_dir() {
        return Err(cannot(&"it is no folder"));
    }
    whole.into_os_string().into_string().map_err(|_| cannot(&"its path is not UTF-8"))
}

/// The names of the studies that are so.
fn names_of(is_so: impl Fn(&Study) -> bool) -> String {
    let names: Vec<_> = STUDIES.iter().filter(|study| is_so(study)).map(|study| study.name).collect();
    names.join("`, `")
}

/// A name that is none, with the nearest that is one, or all.
fn unknown<'a>(what: &str, name: &str, place: &str, names: impl Iterator<Item = &'a str> + Clone) -> Failure {
    let help = match nearest(name, names.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", names.collect::<Vec<_>>().join(", ")),
    };
    Failure::mistake(format_args!("there is no {what} `{name}`{place}"), help)
}

/// A bar on stderr, if that is a terminal and the user has not asked for quiet.
fn bar(quiet: bool) -> ProgressBar {
    if quiet || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} [{bar:24}] {pos}/{len} runs, {elapsed}");
    let bar =
        ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    // Runs take up to minutes: the time goes on between them.
    bar.enable_steady_tick(std::time::Duration::from_millis(250));
    bar
}
