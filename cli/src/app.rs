//! From the command line to the exit code.

use crate::arguments::{Arguments, Command};
use crate::commands::printing::{folded, print, width};
use crate::commands::{
    catalogue, clear_away, compare, completions, disassemble, hotspots, metric_listing, new, ptx, replay, report,
    roofline, run, snapshot, sweep, topology, validate, watch, workload,
};
use crate::{heap, log};
use balar_actors::catalogue::UnitDefinition;
use balar_actors::kinds;
use balar_actors::topology::PartLibrary;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::{BUG, Failure, say};
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::panic::{self, AssertUnwindSafe};

/// Runs the program that the arguments of this process ask for. `own_units` are kinds of units that topologies can name
/// in addition to the built-in ones ([`kinds::UNITS`]): your own program passes its units here.
pub fn main(own_units: &[&'static UnitDefinition]) -> ExitStatus {
    heap::prefer_huge_pages();
    main_with(std::env::args_os(), own_units)
}

/// As [`main`], with these arguments, of which the first is the program's name.
pub fn main_with(
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    own_units: &[&'static UnitDefinition],
) -> ExitStatus {
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    if arguments.len() < 2 {
        // As with any other call that does not say what is to be done, stdout gets nothing. A closed stderr is ignored.
        let _ = write!(io::stderr(), "{}", Arguments::command().render_help());
        return ExitStatus::BadInput;
    }
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version go to stdout with code 0, mistakes to stderr with code 2. A closed stream is ignored.
            let _ = error.print();
            return if error.use_stderr() { ExitStatus::BadInput } else { ExitStatus::Done };
        }
    };
    report_panics();
    log::start(arguments.log_format);
    match panic::catch_unwind(AssertUnwindSafe(|| act(&arguments, &known_kinds(own_units)?))) {
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

/// The built-in kinds of units and `own`.
fn known_kinds(own: &[&'static UnitDefinition]) -> Result<Vec<&'static UnitDefinition>, Failure> {
    kinds::with(own).map_err(Failure::input)
}

fn act(arguments: &Arguments, kinds: &[&'static UnitDefinition]) -> Result<ExitStatus, Failure> {
    match &arguments.command {
        None => workload::run(&arguments.run, kinds),
        Some(Command::Run(options)) => run::run(options, kinds),
        Some(Command::Replay(options)) => {
            let common = &options.simulation;
            workload::prepare(common)?;
            workload::conclude(&replay::run(options, kinds)?, common, kinds)
        }
        Some(Command::ClearAway { folder, memory }) => {
            clear_away::clear_away(folder.as_deref(), memory.as_deref());
            Ok(ExitStatus::Done)
        }
        Some(Command::Watch { pid }) => watch::run(*pid),
        Some(Command::Roofline(options)) => roofline::run(options, kinds),
        Some(Command::Validate(options)) => validate::run(options),
        Some(Command::Sweep(options)) => sweep::run(options, kinds),
        Some(Command::Units { name, format }) => {
            print(&catalogue::named_units(kinds, name.as_deref(), *format, folded(name.as_deref()))?)
        }
        Some(Command::Metrics { name, format }) => print(&metric_listing::metrics(name.as_deref(), *format, width())?),
        Some(Command::Workloads { name, format }) => {
            print(&catalogue::named_workloads(name.as_deref(), *format, folded(name.as_deref()))?)
        }
        Some(Command::Topologies { format }) => {
            print(&catalogue::topologies(&PartLibrary::built_in(), *format, width()))
        }
        Some(Command::Completions { shell }) => print(&completions::script(*shell, Arguments::command(), kinds)),
        Some(Command::Man) => print(&manual().map_err(Failure::bug)?),
        Some(Command::Topology(command)) => topology::run(command, kinds),
        Some(Command::Ptx { files, format }) => {
            let (text, status) = ptx::check(files, *format, width())?;
            print(&text)?;
            Ok(status)
        }
        Some(Command::Disassemble(options)) => disassemble::run(options, kinds),
        Some(Command::Hotspots(options)) => print(&hotspots::run(options, width())?),
        Some(Command::Report(options)) => report::run(options, kinds),
        Some(Command::Compare(options)) => print(&compare::run(options, kinds, width())?),
        Some(Command::Snapshot(command)) => snapshot::run(command, kinds),
        Some(Command::New(command)) => new::run(command, kinds),
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
