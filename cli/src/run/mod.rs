//! Running a CUDA program on the simulated node.
//!
//! ```text
//! balar-actors ── folder of the run: socket, libcudart.so.*, libcuda.so.1
//!   ├─ program     (LD_LIBRARY_PATH: that folder; stdin, stdout, stderr as they are)
//!   └─ janitor     (removes the folder where balar-actors is killed)
//! ```
//!
//! **Invariant:** the program's own streams, its exit code and its process group are its own: nothing is written to stdout, and
//! whoever runs the program in a script sees what the program does.

mod child;
pub mod executable;
mod janitor;
mod library;
mod signals;

pub use janitor::{CLEAR_AWAY, clear_away};

use crate::arguments::{Isa, ProgramOptions, SimulationOptions};
use crate::exit::ExitStatus;
use crate::failure::{BUG, Failure, say};
use crate::node;
use crate::output::{self, folder};
use crate::progress::Progress;
use crate::replay::Recording;
use crate::result::{Ending, RunRecord};
use balar_actors::catalogue::UnitDefinition;
use balar_actors::engine::{self, LiveBoard};
use balar_actors::simulation::{HostSurroundings, InitialCode, simulate_host};
use balar_actors::topology::{self, Topology};
use balar_host::Host;
use balar_host::trace::Header;
use balar_host::tunnel::{
    Control, ProgramEnd, SOCKET_VARIABLE, Server, ServerOptions, SocketFolder, StopReason, signal_name,
};
use child::ProgramChild;
use executable::Executable;
use janitor::Janitor;
use signals::Signals;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::Command;

/// Runs the program that the options name; the exit code is the program's, unless something is wrong with the run.
///
/// # Errors
///
/// Where the run cannot begin.
pub fn run(options: &ProgramOptions, kinds: &[&'static UnitDefinition]) -> Result<ExitStatus, Failure> {
    let common = &options.simulation;
    if common.isa == Isa::Sass {
        let help = "--isa ptx, or auto, runs the PTX that programs carry".to_owned();
        let message = "--isa sass: this version runs no SASS";
        return Err(Failure::sentence(ExitStatus::BadInput, message, Some(help)));
    }
    let (program, arguments) = options.command.split_first().ok_or_else(|| Failure::input("no program is named"))?;
    let executable = executable::inspect(Path::new(program), std::env::var_os("PATH").as_deref());
    let executable = executable.map_err(Failure::diagnosed)?;
    for note in &executable.notes {
        say(format_args!("balar-actors: {note}"));
    }
    let topology = node::load(common.topology.as_deref().unwrap_or_default(), &common.set, kinds)?;
    if let Some(path) = &common.output {
        folder::prepare(path).map_err(Failure::input)?;
    }
    let own = std::env::current_exe().map_err(|error| cannot("find this program", error))?;
    let implementation = library::find(&own).map_err(Failure::input)?;
    let signals = Signals::listen().map_err(|error| cannot("listen for signals", error))?;
    let path = SocketFolder::choose();
    let janitor = Janitor::start(&path).map_err(|error| cannot("start a process", error))?;
    let place = SocketFolder::create(path).map_err(|error| cannot("make a folder for the run", error))?;
    balar_cudart::stub_library::write(place.path(), &implementation).map_err(Failure::input)?;
    let control =
        Control::new(signals.interrupt.clone(), common.max_wall).map_err(|error| cannot("prepare the run", error))?;

    let mut command = Command::new(&executable.path);
    std::os::unix::process::CommandExt::arg0(&mut command, program);
    command.args(arguments).envs(environment(&executable, &place));
    let mut child = None;
    let board = LiveBoard::default();
    let name = program_name(program);
    let mut recording = Recording::new(common.record.as_deref());
    let result = {
        let header = Header {
            program: name.clone(),
            topology: topology.name.clone(),
            arguments: options.command.iter().map(|argument| argument.to_string_lossy().into_owned()).collect(),
            parameters: parameters(arguments),
            finished: None,
        };
        let start = |surroundings: HostSurroundings| -> io::Result<Box<dyn Host>> {
            let window = surroundings.shared_memory.clone();
            let server = Server::listen(
                &place.socket(),
                ServerOptions {
                    node: surroundings.description,
                    page_bytes: options.tunnel_page.0,
                    arena: surroundings.shared_memory,
                    control: control.clone(),
                    report: Box::new(|text| say(format_args!("balar-actors: {text}"))),
                },
            )?;
            let started = ProgramChild::start(command, control.clone(), signals.interrupt.clone())?;
            signals.pass_to(started.handle());
            child = Some(started);
            recording.wrap(Box::new(server), header, &InitialCode::new(), window)
        };
        let engine_options = engine::RunOptions {
            threads: usize::from(common.threads),
            stop_at: common.stop_at,
            max_wall: common.max_wall,
            interrupt: signals.interrupt.clone(),
            progress: Some(board.clone()),
            ..engine::RunOptions::default()
        };
        let progress = Progress::show(&board, common.quiet || !options.progress);
        let result = simulate_host(&topology, start, engine_options);
        drop(progress);
        result
    };
    let end = child.and_then(ProgramChild::finish);
    drop(place);
    drop(janitor);
    recording.report();
    let mut record = RunRecord::from(result.map_err(Failure::from)?);
    record.workload.clone_from(&name);
    record.parameters = parameters(arguments);
    correct_ending(&mut record, end, &control, &signals);
    report(&record, common, &topology)?;
    Ok(status(&record, end))
}

fn cannot(what: &str, error: impl Display) -> Failure {
    Failure::input(format_args!("cannot {what}: {error}"))
}

/// What the program finds in its environment beside what this one has.
fn environment(executable: &Executable, place: &SocketFolder) -> Vec<(&'static str, OsString)> {
    let folder = place.path();
    let preload: Vec<OsString> = executable.preload.iter().map(|name| folder.join(name).into_os_string()).collect();
    let mut variables = vec![
        (SOCKET_VARIABLE, place.socket().into_os_string()),
        ("LD_LIBRARY_PATH", before(folder.as_os_str().to_owned(), "LD_LIBRARY_PATH")),
    ];
    if !preload.is_empty() {
        variables.push(("LD_PRELOAD", before(preload.join(OsStr::new(":")), "LD_PRELOAD")));
    }
    variables
}

/// `first` before what the variable says already.
fn before(mut first: OsString, variable: &str) -> OsString {
    if let Some(rest) = std::env::var_os(variable).filter(|rest| !rest.is_empty()) {
        first.push(":");
        first.push(rest);
    }
    first
}

fn program_name(program: &OsStr) -> String {
    let name = Path::new(program).file_name().unwrap_or(program);
    name.to_string_lossy().into_owned()
}

/// The arguments as parameters of the workload, by number.
fn parameters(arguments: &[OsString]) -> Vec<(String, String)> {
    let text = |argument: &OsString| argument.to_string_lossy().into_owned();
    arguments.iter().enumerate().map(|(index, argument)| ((index + 1).to_string(), text(argument))).collect()
}

/// The engine does not know why the program made no more calls.
fn correct_ending(record: &mut RunRecord, end: Option<ProgramEnd>, control: &Control, signals: &Signals) {
    if matches!(record.ending, Ending::UnitPanic(_)) {
        return;
    }
    match (end, control.stopped()) {
        (Some(ProgramEnd::Killed(signal)), _) => record.ending = Ending::ProgramKilled(signal_name(signal)),
        (_, Some(StopReason::WallLimit)) => record.ending = Ending::WallLimit,
        (_, Some(StopReason::Interrupted)) if signals.interrupted() => record.ending = Ending::Interrupted,
        _ => {}
    }
}

/// Writes the statistics: into the folder that was asked for, or else to stderr, after the program's own words.
fn report(record: &RunRecord, options: &SimulationOptions, topology: &Topology) -> Result<(), Failure> {
    match &options.output {
        Some(path) => {
            let expanded = topology::show(topology, None);
            folder::write(path, record, &expanded).map_err(Failure::input)?;
        }
        None => {
            let width = comfy_table::Table::new().width();
            let text = output::text(record, options.format, width);
            say(format_args!("--- balar-actors: {} on {} ---\n{}", record.workload, record.topology, text.trim_end()));
        }
    }
    if let Some(problem) = record.problem() {
        say(format_args!("balar-actors: {problem}"));
    }
    if record.status() == ExitStatus::Bug {
        say(BUG);
    }
    Ok(())
}

/// The program's exit code, unless the run ended otherwise than by the program's end.
fn status(record: &RunRecord, end: Option<ProgramEnd>) -> ExitStatus {
    let own = record.status();
    match (&record.ending, end) {
        (Ending::Completed | Ending::ProgramKilled(_), Some(ProgramEnd::Exited(code))) => {
            ExitStatus::OfProgram((code & 0xff) as u8)
        }
        (Ending::Completed | Ending::ProgramKilled(_), Some(ProgramEnd::Killed(signal))) => {
            ExitStatus::OfProgram((128 + signal).clamp(128, 255) as u8)
        }
        _ => own,
    }
}
