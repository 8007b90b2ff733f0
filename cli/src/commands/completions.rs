//! `completions`: a script that completes arguments in a shell, with the names that they take: topologies, workloads, metrics, units.

use balar_actors::catalogue::UnitDefinition;
use balar_actors::topology::PartLibrary;
use balar_record::metrics::all_names;
use clap::Command;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap_complete::{Shell, generate};
use std::collections::BTreeSet;

/// Names that arguments take.
struct Names {
    topologies: Vec<PossibleValue>,
    workloads: Vec<PossibleValue>,
    metrics: Vec<PossibleValue>,
    units: Vec<PossibleValue>,
}

/// A name that no shell takes apart.
fn is_plain(name: &str) -> bool {
    name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.'))
}

impl Names {
    fn of(kinds: &[&'static UnitDefinition]) -> Names {
        let counters = kinds.iter().flat_map(|kind| kind.counters).map(|counter| counter.name);
        let metrics: BTreeSet<&'static str> = counters.chain(all_names()).filter(|name| is_plain(name)).collect();
        let workloads = balar_workloads::workloads().iter();
        Names {
            topologies: PartLibrary::built_in().topologies().map(PossibleValue::new).collect(),
            workloads: workloads.map(|workload| PossibleValue::new(workload.name).help(workload.summary)).collect(),
            metrics: metrics.into_iter().map(PossibleValue::new).collect(),
            units: kinds.iter().map(|kind| PossibleValue::new(kind.name)).collect(),
        }
    }

    /// Those that an argument of a command takes. It may take others, too: a topology may be a file.
    fn taken_by(&self, command: &str, argument: &str) -> Option<&[PossibleValue]> {
        match (command, argument) {
            (_, "topology") => Some(&self.topologies),
            (_, "workload" | "workloads") | ("workloads", "name") => Some(&self.workloads),
            (_, "metrics") | ("metrics", "name") => Some(&self.metrics),
            ("units", "name") => Some(&self.units),
            _ => None,
        }
    }

    /// The command with these names at its arguments, and those of its subcommands.
    fn put_into(&self, command: Command) -> Command {
        let name = command.get_name().to_owned();
        let arguments: Vec<clap::Id> = command.get_arguments().map(|argument| argument.get_id().clone()).collect();
        let inner: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
        let command = arguments.into_iter().fold(command, |command, id| match self.taken_by(&name, id.as_str()) {
            Some(names) => {
                let parser = PossibleValuesParser::new(names.to_vec());
                command.mut_arg(id, |argument| argument.value_parser(parser))
            }
            None => command,
        });
        inner.into_iter().fold(command, |command, name| command.mut_subcommand(name, |inner| self.put_into(inner)))
    }
}

/// The script for a shell. `program` is the command line.
pub fn script(shell: Shell, program: Command, kinds: &[&'static UnitDefinition]) -> String {
    let mut program = Names::of(kinds).put_into(program);
    let mut script = Vec::new();
    generate(shell, &mut program, "balar-actors", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if shell == Shell::Fish {
        names_of_commands(&program, &mut script);
    }
    script
}

/// Completes the names that commands take without an option, which the generator leaves out for fish.
fn names_of_commands(program: &Command, script: &mut String) {
    for command in program.get_subcommands() {
        let values = command.get_positionals().flat_map(|argument| argument.get_possible_values());
        let names: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        if !names.is_empty() {
            let (command, names) = (command.get_name(), names.join(" "));
            let line = format!(
                "complete -c balar-actors -n \"__fish_balar_actors_using_subcommand {command}\" -f -a \"{names}\"\n"
            );
            script.push_str(&line);
        }
    }
}
