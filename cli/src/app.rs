//! From the command line to the exit code.

use crate::arguments::{
    Arguments, CatalogueFormat, Command, GraphFormat, RunOptions, SimulationOptions, SnapshotCommand, SnapshotOptions,
    TopologyCommand,
};
use crate::disassemble::{DisassembleOptions, Listing, Source, check, disassemble};
use crate::exit::ExitStatus;
use crate::failure::{BUG, Failure, UNIT_BROKEN, say};
use crate::output::table::Lines;
use crate::output::{self, folder};
use crate::result::RunRecord;
use crate::run_folder::instructions::InstructionProfile;
use crate::simulate::Simulated;
use crate::snapshot::{self, Difference, Snapshot};
use crate::terminal;
use crate::{
    catalogue, compare, files, heap, hotspots, metric_listing, node, ptx, replay, report, roofline, run, simulate,
    sweep, timeline, validate, watch,
};
use balar_actors::catalogue::UnitDefinition;
use balar_actors::kinds::UNITS;
use balar_actors::topology::{PartLibrary, nearest};
use balar_workloads::Descriptor;
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Runs the program that the arguments of this process ask for. `own_units` are kinds of units that topologies can name
/// in addition to the built-in ones ([`UNITS`]): your own program passes its units here.
pub fn main(own_units: &[&'static UnitDefinition]) -> ExitStatus {
    heap::prefer_huge_pages();
    main_with(std::env::args_os(), own_units)
}

/// As [`main`], with these arguments, of which the first is the program's name.
pub fn main_with(
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    own_units: &[&'static UnitDefinition],
) -> ExitStatus {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version go to stdout with code 0, mistakes to stderr with code 2. A closed stream is ignored.
            let _ = error.print();
            return if error.use_stderr() { ExitStatus::BadInput } else { ExitStatus::Done };
        }
    };
    report_panics();
    start_log();
    match panic::catch_unwind(AssertUnwindSafe(|| act(&arguments, &kinds(own_units)?))) {
        Ok(Ok(status)) => status,
        Ok(Err(failure)) => {
            failure.show();
            failure.status
        }
        // The panic hook has already reported it.
        Err(_) => ExitStatus::Bug,
    }
}

/// A panic is a bug in balar-actors: the hook says so, and asks for a report.
fn report_panics() {
    let standard = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        standard(panic);
        say(BUG);
    }));
}

/// Logs go to stderr. `RUST_LOG` is a level ("debug") or levels by module ("balar_actors::engine=trace").
fn start_log() {
    let wanted = std::env::var("RUST_LOG").unwrap_or_default();
    let filter = match wanted.parse::<Targets>() {
        Ok(filter) if !wanted.is_empty() => filter,
        Ok(_) => Targets::new().with_default(LevelFilter::WARN),
        Err(error) => {
            say(format_args!("RUST_LOG is ignored: {error}"));
            Targets::new().with_default(LevelFilter::WARN)
        }
    };
    let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(io::stderr().is_terminal());
    // This fails only if a program that embeds this one has installed a log already.
    let _ = tracing_subscriber::registry().with(layer).with(filter).try_init();
}

/// The built-in kinds of units and `own`.
fn kinds(own: &[&'static UnitDefinition]) -> Result<Vec<&'static UnitDefinition>, Failure> {
    let mut kinds = UNITS.to_vec();
    for &kind in own {
        if kinds.iter().any(|other| other.name == kind.name) {
            return Err(Failure::input(format_args!("two kinds of units have the name `{}`", kind.name)));
        }
        kinds.push(kind);
    }
    Ok(kinds)
}

fn act(arguments: &Arguments, kinds: &[&'static UnitDefinition]) -> Result<ExitStatus, Failure> {
    match &arguments.command {
        None => main_job(&arguments.run, kinds),
        Some(Command::Run(options)) => run::run(options, kinds),
        Some(Command::Replay(options)) => {
            let common = &options.simulation;
            prepare(common)?;
            conclude(&replay::run(options, kinds)?, common, kinds)
        }
        Some(Command::ClearAway { folder, memory }) => {
            run::clear_away(folder.as_deref(), memory.as_deref());
            Ok(ExitStatus::Done)
        }
        Some(Command::Watch { pid }) => watch::run(*pid),
        Some(Command::Roofline(options)) => roofline::run(options, kinds),
        Some(Command::Validate(options)) => validate::run(options),
        Some(Command::Sweep(options)) => sweep::run(options, kinds),
        Some(Command::Units { name, format }) => print(&units(kinds, name.as_deref(), *format)?),
        Some(Command::Metrics { name, format }) => print(&metric_listing::metrics(name.as_deref(), *format, width())?),
        Some(Command::Workloads { name, format }) => print(&workloads(name.as_deref(), *format)?),
        Some(Command::Topologies { format }) => {
            print(&catalogue::topologies(&PartLibrary::built_in(), *format, width()))
        }
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "balar-actors", &mut script);
            print(&String::from_utf8_lossy(&script))
        }
        Some(Command::Man) => print(&manual().map_err(Failure::bug)?),
        Some(Command::Topology(TopologyCommand::Check(options))) => {
            let checked = node::check(options, kinds)?;
            print(&checked)
        }
        Some(Command::Topology(TopologyCommand::Show(options))) => print(&node::show(options, kinds)?),
        Some(Command::Topology(TopologyCommand::Graph { topology, output, format })) => {
            let format = format.unwrap_or_else(|| GraphFormat::of(output.as_deref()));
            let graph = node::graph(topology, kinds, format)?;
            match output {
                Some(path) => {
                    files::write(path, &graph).map_err(Failure::input)?;
                    Ok(ExitStatus::Done)
                }
                None => print(&graph),
            }
        }
        Some(Command::Ptx { files, format }) => {
            let (text, status) = ptx::check(files, *format, width())?;
            print(&text)?;
            Ok(status)
        }
        Some(Command::Disassemble(options)) => disassembled(options, kinds),
        Some(Command::Hotspots(options)) => print(&hotspots::run(options, width())?),
        Some(Command::Report(options)) => report::run(options, kinds),
        Some(Command::Compare(options)) => print(&compare::run(options, kinds, width())?),
        Some(Command::Snapshot(SnapshotCommand::Check { options, tolerance })) => {
            snapshot_check(options, *tolerance, kinds)
        }
        Some(Command::Snapshot(SnapshotCommand::Accept(options))) => {
            snapshot_accept(&options.run, kinds, &options.file)
        }
    }
}

/// The manual page: the program's, and a section for each of its commands.
fn manual() -> io::Result<String> {
    let mut page = Vec::new();
    let mut program = Arguments::command();
    program.build();
    clap_mangen::Man::new(program.clone()).render(&mut page)?;
    for command in program.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help") {
        let title = format!(".SH \"BALAR-ACTORS {}\"\n", command.get_name().to_uppercase());
        page.extend_from_slice(title.as_bytes());
        page.extend_from_slice(b".nf\n");
        let help = command.clone().render_long_help().to_string();
        // A line that begins with a dot or a quote would be an instruction to the formatter.
        for line in help.lines() {
            page.extend_from_slice(format!("\\&{}\n", line.replace('\\', "\\e").replace('-', "\\-")).as_bytes());
        }
        page.extend_from_slice(b".fi\n");
    }
    String::from_utf8(page).map_err(io::Error::other)
}

/// The width at which tables are folded: that of the terminal, if stdout is one.
fn width() -> Option<u16> {
    terminal::width(&io::stdout())
}

fn print_result(record: &RunRecord, options: &SimulationOptions) -> Result<(), Failure> {
    output::write_result(record, options.format, &options.selection, io::stdout().lock())
        .map_err(|error| Failure::input(format_args!("cannot write the result: {error}")))
}

fn print(text: &str) -> Result<ExitStatus, Failure> {
    output::print(text).map_err(|error| Failure::input(format_args!("cannot write the result: {error}")))?;
    Ok(ExitStatus::Done)
}

fn disassembled(options: &DisassembleOptions, kinds: &[&'static UnitDefinition]) -> Result<ExitStatus, Failure> {
    let sources = match (&options.file, &options.workload) {
        (Some(file), _) => vec![Source::read(file)?],
        (None, Some(workload)) => {
            let topology = options.topology.as_deref().map(|name| node::load(name, &[], kinds)).transpose()?;
            Source::of_workload(&workload.name, topology.as_ref())?
        }
        (None, None) => Vec::new(),
    };
    if options.check {
        let (text, status) = check(&sources, options.arch, options.format)?;
        print(&text)?;
        return Ok(status);
    }
    let run = options.run.as_deref().map(InstructionProfile::read).transpose()?;
    let listing = Listing {
        function: options.function.as_deref(),
        architecture: options.arch,
        format: options.format,
        with_words: options.words,
        with_live: options.live,
        run: run.as_ref(),
    };
    disassemble(&sources, listing, |text| print(text).map(|_| ()))
}

fn units(kinds: &[&UnitDefinition], name: Option<&str>, format: CatalogueFormat) -> Result<String, Failure> {
    let chosen: Vec<&UnitDefinition> =
        kinds.iter().copied().filter(|kind| name.is_none_or(|n| n == kind.name)).collect();
    match name {
        Some(name) if chosen.is_empty() => {
            let help = nearest(name, kinds.iter().map(|kind| kind.name)).map(|near| format!("did you mean `{near}`?"));
            let help = help.unwrap_or_else(|| "`balar-actors units` lists them".to_owned());
            Err(Failure::sentence(ExitStatus::BadInput, format_args!("there is no unit `{name}`"), Some(help)))
        }
        _ => Ok(catalogue::units(&chosen, name.is_some(), format, width())),
    }
}

fn workloads(name: Option<&str>, format: CatalogueFormat) -> Result<String, Failure> {
    let chosen: Vec<&Descriptor> = match name {
        Some(name) => vec![balar_workloads::find(name).map_err(Failure::input)?],
        None => balar_workloads::workloads().iter().collect(),
    };
    Ok(catalogue::workloads(&chosen, name.is_some(), format, width()))
}

fn main_job(options: &RunOptions, kinds: &[&'static UnitDefinition]) -> Result<ExitStatus, Failure> {
    prepare(&options.simulation)?;
    conclude(&simulate::run(options, kinds)?, &options.simulation, kinds)
}

/// Prints the result of a run when its artefacts have been written. It is printed even where they could not be.
fn conclude(
    simulated: &Simulated,
    options: &SimulationOptions,
    kinds: &[&'static UnitDefinition],
) -> Result<ExitStatus, Failure> {
    let told = tell(simulated, options, kinds);
    print_result(&simulated.record, options)?;
    told.map(|()| simulated.record.status())
}

/// Creates the folder for the artefacts, if one is named, and finds out whether the timeline and the report can be written.
fn prepare(options: &SimulationOptions) -> Result<(), Failure> {
    timeline::prepare(options)?;
    report::prepare(options)?;
    options.output.as_deref().map_or(Ok(()), folder::prepare).map_err(Failure::input)
}

/// Writes the requested artefacts, and reports problems on stderr.
fn tell(simulated: &Simulated, options: &SimulationOptions, kinds: &[&'static UnitDefinition]) -> Result<(), Failure> {
    let Simulated { record, expanded, observation } = simulated;
    let written = options.output.as_deref().map_or(Ok(()), |path| folder::write(path, record, expanded));
    let observed = observation.finish(record, expanded);
    let timeline = timeline::write(record, options);
    let report = report::write(record, expanded, observation, options, kinds);
    observation.end(record);
    if let Some(outcome) = &record.statistics.outcome {
        // The output of kernels is not part of the result. A closed stderr is ignored.
        let _ = io::Write::write_all(&mut io::stderr(), &outcome.printed);
    }
    if let Some(problem) = record.problem() {
        say(format_args!("error: {problem}"));
    }
    match record.status() {
        ExitStatus::Bug => say(BUG),
        ExitStatus::UnitBroken => say(UNIT_BROKEN),
        _ => {}
    }
    written.and(observed).map_err(Failure::input).and(timeline).and(report)
}

/// A run that can be compared with a snapshot: one that ended by itself, or at a simulated time.
fn comparable(
    options: &RunOptions,
    kinds: &[&'static UnitDefinition],
) -> Result<Result<RunRecord, ExitStatus>, Failure> {
    prepare(&options.simulation)?;
    let simulated = simulate::run(options, kinds)?;
    tell(&simulated, &options.simulation, kinds)?;
    let record = simulated.record;
    match record.status() {
        ExitStatus::Bug | ExitStatus::UnitBroken | ExitStatus::Interrupted | ExitStatus::Terminated => {
            Ok(Err(record.status()))
        }
        _ if record.ending == crate::result::Ending::WallLimit => Ok(Err(record.status())),
        _ => Ok(Ok(record)),
    }
}

fn snapshot_check(
    options: &SnapshotOptions,
    tolerance: f64,
    kinds: &[&'static UnitDefinition],
) -> Result<ExitStatus, Failure> {
    let SnapshotOptions { run: options, file } = options;
    let text = files::read(file).map_err(|error| {
        let help = "`balar-actors snapshot accept` with the same options writes it".to_owned();
        Failure::sentence(ExitStatus::BadInput, format_args!("cannot read {}: {error}", file.display()), Some(help))
    })?;
    let pinned = Snapshot::parse(&text)
        .map_err(|error| Failure::input(format_args!("{} is not a snapshot: {error}", file.display())))?;
    let record = match comparable(options, kinds)? {
        Ok(record) => record,
        Err(status) => return Ok(status),
    };
    let mut differences = pinned.differences(&Snapshot::of(&record));
    let all = differences.len();
    differences.retain(|difference| !difference.is_within(tolerance));
    let within = match all - differences.len() {
        0 => String::new(),
        few => format!(", {few} within {tolerance} %"),
    };
    let text = if differences.is_empty() {
        let nothing = if within.is_empty() { "nothing moved" } else { "nothing moved farther" };
        format!("{}: {nothing}{within}\n", file.display())
    } else {
        let moved = if options.simulation.selection.details { each(&differences) } else { by_row(&differences) };
        format!("{}: {} moved{within}\n{moved}", file.display(), differences.len())
    };
    print(&text)?;
    Ok(if differences.is_empty() { ExitStatus::Done } else { ExitStatus::Wrong })
}

fn percentage(percent: Option<f64>) -> String {
    percent.map(|percent| format!("{percent:+.2}")).unwrap_or_default()
}

/// The differences by row of units.
fn by_row(differences: &[Difference]) -> String {
    let rows = snapshot::roll_up(differences).into_iter().map(|moved| {
        let percent = percentage(moved.percent);
        vec![moved.location, moved.what, moved.units.to_string(), moved.old, moved.new, percent]
    });
    let header = vec!["location", "what", "units", "pinned", "now", "most %"];
    Lines { header, left: vec![0, 1], droppable: vec![2], elastic: Some(0), rows: rows.collect() }.text(width())
}

/// The differences one by one.
fn each(differences: &[Difference]) -> String {
    let rows = differences.iter().map(|difference| {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "(absent)".to_owned());
        vec![
            difference.location.clone(),
            difference.what.clone(),
            shown(&difference.old),
            shown(&difference.new),
            percentage(difference.percent()),
        ]
    });
    let header = vec!["location", "what", "pinned", "now", "%"];
    Lines { header, left: vec![0, 1], elastic: Some(0), rows: rows.collect(), ..Lines::default() }.text(width())
}

fn snapshot_accept(
    options: &RunOptions,
    kinds: &[&'static UnitDefinition],
    file: &Path,
) -> Result<ExitStatus, Failure> {
    let record = match comparable(options, kinds)? {
        Ok(record) => record,
        Err(status) => return Ok(status),
    };
    if record.status() == ExitStatus::Wrong {
        say("the result is wrong: the snapshot is not written");
        return Ok(ExitStatus::Wrong);
    }
    files::write(file, &Snapshot::of(&record).text()).map_err(Failure::input)?;
    print(&format!("{}: written\n", file.display()))
}
