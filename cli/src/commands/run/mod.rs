//! Running a CUDA program on the simulated node.
//!
//! ```text
//! balar-actors ── folder of the run: socket, libbalar_cudart.so, libcudart.so.*, libcuda.so.1, libbalar_audit.so
//!   ├─ program     (LD_AUDIT: the last of these, which answers searches for the others; stdin, stdout, stderr as they are)
//!   └─ janitor     (removes the folder if balar-actors is killed)
//! ```
//!
//! Memory is in anonymous files that vanish with their processes. The folder is removed by `run`, by its janitor, by the program when it finds
//! the simulator gone, or by the next run: a lock says which folders are in use.
//!
//! **Invariant:** the program keeps its standard streams, its exit code and its process group: nothing is written to stdout, and a script
//! that runs the program sees only what the program does.

mod child;
pub mod executable;
mod library;
mod signals;

use crate::commands::report;
use crate::commands::workload::say_problem;
use crate::options::detail;
use crate::options::format::Format;
use crate::options::program::{HostAccesses, KernelCode, ProgramOptions};
use crate::options::simulation::{SimulationOptions, check_detail};
use crate::output::{self, folder};
use crate::simulation::launch_limit::LaunchLimit;
use crate::simulation::node;
use crate::simulation::observation::Observation;
use crate::simulation::progress::Progress;
use crate::simulation::ptxas::code_choice;
use crate::simulation::recording::Recording;
use crate::simulation::simulate::engine_options;
use crate::timeline;
use balar_actors::catalogue::UnitDefinition;
use balar_actors::simulation::{
    CodeChoice, HostSurroundings, InitialCode, Replacement, RunResult, SimulationError, driver_version, simulate_host,
};
use balar_actors::topology::{self, Topology, nearest};
use balar_cudart::stub_library;
use balar_host::trace::Header;
use balar_host::tunnel::{
    ACCESSES_VARIABLE, ASSUMED, Control, EVERY_THREAD, ProgramEnd, RANGES_VARIABLE, SOCKET_VARIABLE, Server,
    ServerOptions, SocketFolder, StopReason, signal_name,
};
use balar_host::{DriverVersion, Host};
use balar_live::WhatRuns;
use balar_protocol::detail::KernelPattern;
use balar_record::ending::Ending;
use balar_record::kernel_name::readable_name;
use balar_record::result::RunRecord;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::{Failure, say};
use balar_record::system::files;
use balar_record::system::janitor::Janitor;
use child::ProgramChild;
use clap::Args;
use executable::Executable;
use signals::Signals;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Names the library that a program's NVTX tells of its ranges.
const NVTX_VARIABLE: &str = "NVTX_INJECTION64_PATH";

/// Runs the program that the options name. The exit code is the program's, unless the run itself fails.
///
/// # Errors
///
/// Where the run cannot begin.
pub fn run(options: &ProgramOptions, kinds: &[&'static UnitDefinition]) -> Result<ExitStatus, Failure> {
    let common = &options.simulation;
    let (program, arguments) = options.command.split_first().ok_or_else(|| Failure::input("no program is named"))?;
    let executable = executable::inspect(Path::new(program), std::env::var_os("PATH").as_deref());
    let executable = executable.map_err(|error| no_program(program, error))?;
    for note in &executable.notes {
        say(format_args!("balar-actors: {note}"));
    }
    let topology = node::of_simulation(common, kinds)?;
    common.selection.check(&topology)?;
    timeline::prepare(common)?;
    report::prepare(common)?;
    if let Some(path) = &common.output {
        folder::prepare(path).map_err(Failure::input)?;
    }
    check_detail(common)?;
    let replacements = replacements(&options.kernel_code)?;
    let choice = CodeChoice { replacements: replacements.clone(), ..code_choice(common)? };
    let surroundings = RunSurroundings::prepare(common, driver_version(&topology))?;
    let mut command = Command::new(&executable.path);
    command.arg0(program).args(arguments).envs(environment(&executable, &surroundings.folder));
    if options.host_accesses == HostAccesses::Assumed {
        command.env(ACCESSES_VARIABLE, ASSUMED);
    }
    let tool_listens = std::env::var_os(NVTX_VARIABLE).is_some_and(|value| !value.is_empty());
    if detail::needs_ranges(&common.detail) {
        if tool_listens {
            say(format_args!(
                "balar-actors: {NVTX_VARIABLE} is replaced for this run: --detail nvtx=NAME has to hear of ranges"
            ));
        }
        command.env(NVTX_VARIABLE, &surroundings.implementation).env(RANGES_VARIABLE, EVERY_THREAD);
    } else if !tool_listens {
        command.env(NVTX_VARIABLE, &surroundings.implementation);
    }
    let work = WhatRuns { name: program_name(program), is_program: true };
    let observation = Observation::prepare(common, &topology, work)?;
    let limit = LaunchLimit::new(options.launch_limit.launches);
    let work = Work { options, choice, limit: &limit, command };
    let (result, end, trace_problem) = simulate(work, &topology, &surroundings, &observation);
    let mut record = RunRecord::of(result.map_err(Failure::from)?, &topology);
    record.workload = program_name(program);
    record.parameters = parameters(arguments);
    record.chosen_launches = common.selection.launches.of(&record.statistics.kernels);
    limit.note_in(&mut record);
    if !matches!(record.ending, Ending::Launches(_)) {
        correct_ending(&mut record, end, &surroundings);
    }
    Recording::new(common.record.as_deref()).report_ending(&record);
    drop(surroundings);
    record.series = observation.take_counters();
    let written = timeline::write(&record, common);
    let page = report::write(&record, &topology::show(&topology, None), observation.take_samples(), common, kinds);
    report(&record, common, &topology, &observation)?;
    for (given, replacement) in options.kernel_code.iter().zip(&replacements) {
        if !replacement.is_used() {
            say(format_args!("balar-actors: --code {}: the program has loaded no kernel of this name", given.kernel));
        }
    }
    written.and(page)?;
    trace_problem.map_or(Ok(()), |problem| Err(Failure::input(problem)))?;
    Ok(status(&record, end))
}

/// The code of the files that `--code` names.
fn replacements(given: &[KernelCode]) -> Result<Vec<Replacement>, Failure> {
    let read = |KernelCode { kernel, file }: &KernelCode| {
        let code = files::read_bytes(file).map_err(|error| {
            Failure::input(format_args!("--code {kernel}: cannot read {}: {error}", file.display()))
        })?;
        let kernel = kernel.clone();
        let pattern = KernelPattern::new(move |name| name == kernel || readable_name(name) == kernel);
        Ok(Replacement::new(pattern, file.display().to_string(), code.into()))
    };
    given.iter().map(read).collect()
}

/// Why a program cannot be run; of an option that `run` does not have, and of a built-in workload, what is right.
fn no_program(program: &OsStr, error: executable::Unsuitable) -> Failure {
    let executable::Unsuitable::NotFound { in_path: true, .. } = &error else { return Failure::diagnosed(error) };
    let name = program.to_string_lossy();
    let is_workload = balar_workloads::workloads().iter().any(|workload| Some(workload.name) == name.split(':').next());
    if is_workload {
        let help = format!("`balar-actors --workload {name}` runs the built-in workload of that name, without `run`");
        return Failure::mistake(error, help);
    }
    let option = name.split('=').next().unwrap_or_default();
    if !option.starts_with('-') {
        return Failure::diagnosed(error);
    }
    let help = match option {
        "--workload" | "-w" => {
            "`balar-actors --workload NAME` runs a built-in workload, without `run`; `run` runs a CUDA program"
                .to_owned()
        }
        _ => {
            let command = ProgramOptions::augment_args(clap::Command::new("run"));
            let longs: Vec<String> =
                command.get_opts().filter_map(|it| Some(format!("--{}", it.get_long()?))).collect();
            let near =
                nearest(option, longs.iter().map(String::as_str)).map(|near| format!("the nearest option is `{near}`"));
            near.unwrap_or_else(|| {
                "`balar-actors run --help` lists its options; the program stands behind them".to_owned()
            })
        }
    };
    Failure::mistake(format_args!("`run` has no option `{option}`"), help)
}

/// What a run needs besides the node and the program. The folder is dropped before its janitor.
struct RunSurroundings {
    folder: SocketFolder,
    /// libbalar_cudart.so in it.
    implementation: PathBuf,
    _janitor: Janitor,
    signals: Signals,
    control: Control,
}

impl RunSurroundings {
    fn prepare(options: &SimulationOptions, driver: DriverVersion) -> Result<RunSurroundings, Failure> {
        let signals = Signals::listen().map_err(|error| cannot("listen for signals", error))?;
        let path = SocketFolder::choose();
        let janitor = Janitor::start(&path).map_err(|error| cannot("start a process", error))?;
        let folder = SocketFolder::create(path).map_err(|error| cannot("make a folder for the run", error))?;
        let implementation = library::write(folder.path()).map_err(Failure::input)?;
        stub_library::write(folder.path(), &implementation, driver).map_err(Failure::input)?;
        let control = Control::new(signals.interrupt.clone(), options.limits.max_wall);
        let control = control.map_err(|error| cannot("prepare the run", error))?;
        Ok(RunSurroundings { folder, implementation, _janitor: janitor, signals, control })
    }
}

/// What is to be run.
struct Work<'a> {
    options: &'a ProgramOptions,
    choice: CodeChoice,
    limit: &'a LaunchLimit,
    command: Command,
}

/// Simulates the node while the program runs, and ensures that the program has ended. Returns how, if it ended by itself.
fn simulate(
    work: Work<'_>,
    topology: &Topology,
    surroundings: &RunSurroundings,
    observation: &Observation,
) -> (Result<RunResult, SimulationError>, Option<ProgramEnd>, Option<String>) {
    let Work { options, choice, limit, command } = work;
    let RunSurroundings { folder, signals, control, .. } = surroundings;
    let common = &options.simulation;
    let board = observation.board();
    let mut recording = Recording::new(common.record.as_deref());
    let mut child = None;
    let start = |node: HostSurroundings| -> io::Result<Box<dyn Host>> {
        let window = node.shared_memory.clone();
        let server = Server::listen(
            &folder.socket(),
            ServerOptions {
                node: node.description,
                page_bytes: options.tunnel_page.0,
                arena: node.shared_memory,
                control: control.clone(),
                report: Arc::new(|text| say(format_args!("balar-actors: {text}"))),
            },
        )?;
        let started = ProgramChild::start(command, control.clone(), signals.interrupt.clone())?;
        signals.pass_to(started.handle());
        child = Some(started);
        recording.wrap(limit.around(Box::new(server)), header(options, topology), &InitialCode::new(), window)
    };
    let engine_options = engine_options(common, signals.interrupt.clone(), observation);
    let progress = Progress::show(&board, common.quiet || !options.progress);
    let result = simulate_host(topology, choice, start, engine_options);
    drop(progress);
    let end = child.and_then(ProgramChild::finish);
    (result, end, recording.problem())
}

/// The header of a recording of this program.
fn header(options: &ProgramOptions, topology: &Topology) -> Header {
    let (program, arguments) = match options.command.split_first() {
        Some((program, arguments)) => (program.as_os_str(), arguments),
        None => (OsStr::new(""), [].as_slice()),
    };
    Header {
        program: program_name(program),
        topology: topology.name.clone(),
        arguments: options.command.iter().map(|argument| argument.to_string_lossy().into_owned()).collect(),
        parameters: parameters(arguments),
        ..Header::default()
    }
}

fn cannot(what: &str, error: impl Display) -> Failure {
    Failure::input(format_args!("cannot {what}: {error}"))
}

/// Environment variables that the program gets in addition to those of this process.
fn environment(executable: &Executable, folder: &SocketFolder) -> Vec<(&'static str, OsString)> {
    let path = folder.path();
    let preload: Vec<OsString> = executable.preload.iter().map(|name| path.join(name).into_os_string()).collect();
    let mut variables = vec![
        (SOCKET_VARIABLE, folder.socket().into_os_string()),
        ("LD_AUDIT", before(path.join(stub_library::AUDIT).into_os_string(), "LD_AUDIT")),
        // For children whose dynamic linker knows no audit libraries, and for programs that look for the files themselves.
        ("LD_LIBRARY_PATH", before(path.as_os_str().to_owned(), "LD_LIBRARY_PATH")),
    ];
    if !preload.is_empty() {
        variables.push(("LD_PRELOAD", before(preload.join(OsStr::new(":")), "LD_PRELOAD")));
    }
    variables
}

/// `first`, followed by the present value of the variable.
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

/// Sets the ending of a run: the engine does not know why the program stopped making calls.
fn correct_ending(record: &mut RunRecord, end: Option<ProgramEnd>, surroundings: &RunSurroundings) {
    if matches!(record.ending, Ending::UnitPanic(_) | Ending::UnitBroken(_)) {
        return;
    }
    match (end, surroundings.control.stopped()) {
        (Some(ProgramEnd::Killed(signal)), _) => record.ending = Ending::ProgramKilled(signal_name(signal)),
        (_, Some(StopReason::WallLimit)) => record.ending = Ending::WallLimit,
        (_, Some(StopReason::Interrupted)) if surroundings.signals.is_terminated() => {
            record.ending = Ending::Terminated
        }
        (_, Some(StopReason::Interrupted)) if surroundings.signals.interrupted() => record.ending = Ending::Interrupted,
        _ => {}
    }
}

/// Writes the statistics into the folder of `--output`, or to stderr after the program's own output.
/// Where the folder takes no more, or where the options ask for more than the folder has, they go to stderr all the same.
fn report(
    record: &RunRecord,
    options: &SimulationOptions,
    topology: &Topology,
    observation: &Observation,
) -> Result<(), Failure> {
    let written = options.output.as_ref().map(|path| {
        let expanded = topology::show(topology, None);
        folder::write_asked(path, record, &expanded, options).and(observation.finish(record, &expanded))
    });
    observation.end(record);
    let made_no_call = makes_no_call(record);
    if made_no_call {
        say(format_args!("balar-actors: {} made no CUDA call that takes time: nothing was simulated", record.workload));
    }
    match &written {
        Some(Ok(())) if !options.selection.sections && !options.selection.is_partial() => {}
        // A table would have nothing but zeros.
        _ if made_no_call && options.format == Format::Table => {}
        _ => {
            say(format_args!("--- balar-actors: {} on {} ---", record.workload, record.topology));
            // Nobody is left to be told that stderr takes no more.
            let _ = output::write_result(record, options.format, &options.selection, io::stderr().lock());
        }
    }
    say_problem(record, "balar-actors");
    // The exit code is the program's.
    let unmatched = options.selection.launches.unmatched(&record.statistics.kernels);
    if let Some(mistake) = unmatched.filter(|_| record.ending == Ending::Completed && !made_no_call) {
        mistake.show();
    }
    written.unwrap_or(Ok(())).map_err(Failure::input)
}

/// Has the program ended without a CUDA call that takes time?
fn makes_no_call(record: &RunRecord) -> bool {
    let mut counts = record.statistics.rows.iter().filter(|row| row.what == "calls").map(|row| row.value);
    record.ending == Ending::Completed && record.statistics.kernels.is_empty() && counts.all(|calls| calls == 0)
}

/// The program's exit code, unless the run ended for another reason than the program's end.
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
