//! A program of the user's in a study: this command line runs it once more as `run` would, and what the folder of the run has is read.

use balar_experiments::validation::instruction_mix::InstructionMix;
use balar_experiments::validation::programs::{LaunchFigures, ProgramFigures, ProgramRun, last_lines};
use balar_experiments::validation::runs::JobError;
use balar_record::run_folder::document::RunDocument;
use balar_record::run_folder::instructions::InstructionProfile;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{env, io, thread};

/// How often a run is looked at.
const PERIOD: Duration = Duration::from_millis(20);

/// Runs the program in a process of its own until it ends, or until `interrupt` is set.
///
/// # Errors
///
/// Where it cannot be run, fails, or was interrupted.
pub fn run(run: &ProgramRun, interrupt: &AtomicBool) -> Result<ProgramFigures, JobError> {
    let folder = tempfile::tempdir().map_err(|error| failed("cannot make a folder for the run", error))?;
    let (messages, printed) = (folder.path().join("messages"), folder.path().join("printed"));
    let ended = start(run, folder.path(), &messages, &printed)
        .and_then(|child| wait(child, interrupt))
        .map_err(|error| failed("cannot run it", error))?;
    if interrupt.load(Ordering::Relaxed) {
        return Err(JobError::NotCompleted("it was interrupted".to_owned()));
    }
    if !ended.success() {
        let (messages, printed) = (last_lines(&text_of(&messages)?), last_lines(&text_of(&printed)?));
        return Err(JobError::Failed(why_it_failed(&ended.to_string(), &messages, &printed)));
    }
    Ok(ProgramFigures { printed: text_of(&printed)?, ..figures(run, folder.path())? })
}

/// How it ended, what it said on stderr, and what it printed.
fn why_it_failed(ended: &str, messages: &str, printed: &str) -> String {
    let parts = [("", ended), (": ", messages), ("; it printed: ", printed)];
    parts.into_iter().filter(|(_, text)| !text.is_empty()).flat_map(|(before, text)| [before, text]).collect()
}

fn text_of(file: &Path) -> Result<String, JobError> {
    let bytes = fs::read(file).map_err(|error| failed("cannot read what it wrote", error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn failed(what: &str, cause: impl std::fmt::Display) -> JobError {
    JobError::Failed(format!("{what}: {cause}"))
}

fn start(run: &ProgramRun, folder: &Path, messages: &Path, printed: &Path) -> io::Result<Child> {
    let mut command = Command::new(env::current_exe()?);
    // Runs of a study go side by side, each on a thread.
    command.args(run.arguments()).args(["--threads", "1", "--quiet", "--output"]).arg(folder).arg("--");
    command.args(&run.command);
    if let Some(directory) = &run.directory {
        command.current_dir(directory);
    }
    // A file takes any number of lines without anyone who reads them.
    command.stdin(Stdio::null()).stdout(File::create(printed)?).stderr(File::create(messages)?).spawn()
}

fn wait(mut child: Child, interrupt: &AtomicBool) -> io::Result<ExitStatus> {
    let mut is_told = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupt.load(Ordering::Relaxed) && !is_told {
            is_told = true;
            // Of a signal from a terminal it knows; a limit of time, or a signal to this process alone, it must be told.
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        }
        thread::sleep(PERIOD);
    }
}

fn figures(run: &ProgramRun, folder: &Path) -> Result<ProgramFigures, JobError> {
    let text = fs::read_to_string(folder.join("stats.json")).map_err(|error| failed("its result", error))?;
    let document = RunDocument::parse(&text).map_err(|error| failed("its result", error.problem))?;
    let launches = document.kernels.iter().map(|launch| LaunchFigures {
        kernel: launch.name.clone(),
        cycles: launch.cycles.unwrap_or(0),
        picoseconds: launch.time_ps.unwrap_or(0),
    });
    let mixes = if run.by_instruction { mixes(folder)? } else { BTreeMap::new() };
    Ok(ProgramFigures { isa: document.isa.clone(), launches: launches.collect(), mixes, printed: String::new() })
}

fn mixes(folder: &Path) -> Result<BTreeMap<String, InstructionMix>, JobError> {
    let profile = InstructionProfile::read(folder).map_err(|error| failed("its instructions", error))?;
    let column = |name: &str| profile.columns.iter().position(|column| column == name);
    let (Some(warps), Some(threads)) = (column("inst_executed"), column("thread_inst_executed_pred_on")) else {
        return Err(failed("its instructions", "they have no counts of warps and threads"));
    };
    let mut mixes: BTreeMap<String, InstructionMix> = BTreeMap::new();
    for row in &profile.rows {
        mixes.entry(row.kernel.clone()).or_default().add(&row.isa, &row.text, row.counts[warps], row.counts[threads]);
    }
    Ok(mixes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_run_tells_what_it_said_and_printed() {
        for (messages, printed, expected) in [
            ("no node", "half a result", "exit status: 3: no node; it printed: half a result"),
            ("", "half a result", "exit status: 3; it printed: half a result"),
            ("no node", "", "exit status: 3: no node"),
            ("", "", "exit status: 3"),
        ] {
            assert_eq!(why_it_failed("exit status: 3", messages, printed), expected);
        }
    }
}
