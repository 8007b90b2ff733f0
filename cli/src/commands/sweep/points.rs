//! The processes of points, and what goes into them.

use super::figures;
use super::keys::{Checked, PointSettings, filled, settings};
use crate::commands::run::executable;
use crate::options::sweep::{CommonOptions, SweepOptions};
use crate::options::topology::Override;
use crate::simulation::node;
use balar_actors::catalogue::UnitDefinition;
use balar_actors::topology;
use balar_record::system::failure::Failure;
use balar_record::system::files;
use balar_sweeps::SweepError;
use balar_sweeps::collect::RunFigures;
use balar_sweeps::definition::{Definition, Input, hash};
use balar_sweeps::worker::{Runs, output_file};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The version of the simulator, which the definition of a sweep names.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The runs of a sweep.
pub struct PointRuns<'a> {
    /// What all have in common.
    pub common: &'a CommonOptions,
    /// The program and its arguments; empty where a workload runs.
    pub program: &'a [String],
    /// What they are.
    pub definition: &'a Definition,
    /// The kinds of units.
    pub kinds: &'a [&'static UnitDefinition],
}

/// The options that say what a sweep is, as its definition has them.
pub fn defining_options(common: &CommonOptions) -> Vec<String> {
    let mut options = Vec::new();
    if let Some(topology) = &common.topology {
        options.extend(["--topology".to_owned(), topology.clone()]);
    }
    if let Some(workload) = &common.work.workload {
        options.extend(["--workload".to_owned(), workload.to_string()]);
    }
    options.extend(common.arguments());
    options
}

/// What goes into all points: topologies, code, the program.
///
/// # Errors
///
/// Something cannot be read, or the program cannot be run.
pub fn inputs(options: &SweepOptions, checked: &Checked) -> Result<Vec<Input>, Failure> {
    let topologies = checked.topologies.iter();
    let mut inputs: Vec<Input> = topologies
        .map(|(name, topology)| {
            let workload = topology.workload.as_ref().map(|own| (own.name.as_str(), &own.parameters[..]));
            Input::of(format!("topology {name}"), topology::show(topology, workload).as_bytes())
        })
        .collect();
    if options.common.work.ptx.is_empty() {
        for workload in &checked.workloads {
            let texts = workload.code.iter().map(|code| code.text.as_bytes());
            let all: Vec<u8> =
                texts.chain(workload.cubins.iter().map(|cubin| cubin.bytes)).flatten().copied().collect();
            inputs.push(Input::of(format!("code of workload {}", workload.name), &all));
        }
    }
    for path in &options.common.work.ptx {
        inputs.push(Input::of(format!("PTX file {}", path.display()), &read(path)?));
    }
    if let Some(program) = options.program.first()
        && filled(program, |_| Some(String::new())) == *program
    {
        let executable = executable::inspect(Path::new(program), std::env::var_os("PATH").as_deref());
        let executable = executable.map_err(Failure::diagnosed)?;
        inputs.push(Input::of(format!("program {program}"), &read(&executable.path)?));
    }
    Ok(inputs)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    files::read_bytes(path).map_err(|error| Failure::input(format_args!("cannot read {}: {error}", path.display())))
}

impl PointRuns<'_> {
    fn settings(&self, index: usize) -> PointSettings {
        settings(self.common, self.program, &self.definition.keys, &self.definition.points[index])
    }

    /// The program of a point and its arguments.
    fn program_of(&self, point: &PointSettings) -> Vec<String> {
        self.program.iter().map(|argument| filled(argument, |name| point.values.get(name).cloned())).collect()
    }

    /// What `--set` of the run of a point says.
    fn overrides(point: &PointSettings) -> Vec<Override> {
        let of_workload = |(name, value): &(String, String)| {
            let path = format!("workload.{name}");
            Override { path, value: value.clone() }
        };
        point.overrides.iter().cloned().chain(point.own_parameters.iter().map(of_workload)).collect()
    }
}

impl Runs for PointRuns<'_> {
    fn command(&self, index: usize, folder: &Path) -> Result<Command, SweepError> {
        let point = self.settings(index);
        // The file of this very process, even where another has taken its name since.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("balar-actors");
        if self.is_program() {
            command.arg("run").stdout(output_file(folder)?);
        } else {
            // The folder has what a run prints.
            command.stdout(Stdio::null());
        }
        command.args(["--topology", &point.topology]);
        for Override { path, value } in PointRuns::overrides(&point) {
            command.arg("--set").arg(format!("{path}={value}"));
        }
        if let Some(workload) = &point.workload {
            command.arg("--workload").arg(workload.to_string());
        }
        command.args(self.common.arguments());
        command.arg("--threads").arg(self.common.limits.threads.to_string());
        if let Some(limit) = self.common.limits.max_wall {
            command.arg("--max-wall").arg(limit.as_secs_f64().to_string());
        }
        if self.common.launches.kernel.is_some() {
            command.arg("--kernel-may-be-absent");
        }
        command.arg("--quiet").arg("--output").arg(folder);
        if self.is_program() {
            command.arg("--").args(self.program_of(&point));
        }
        Ok(command)
    }

    fn input_hash(&self, index: usize) -> Option<String> {
        let point = self.settings(index);
        let topology = node::load(&point.topology, &PointRuns::overrides(&point), self.kinds).ok()?;
        let own = topology.workload.as_ref().map(|own| (own.name.as_str(), &own.parameters[..]));
        let chosen = point.workload.as_ref().map(|choice| (choice.name.as_str(), &choice.parameters[..]));
        let workload = match chosen.or(own).filter(|_| !self.is_program()) {
            None => None,
            Some((name, given)) => {
                let workload = balar_workloads::find(name).ok()?;
                workload.parameters_from(given.iter().map(|(key, value)| (key.as_str(), value.as_str()))).ok()?;
                Some(workload)
            }
        };
        let mut text = topology::show(&topology, chosen.or(own));
        // All inputs of the sweep but its topologies, which are written out above; of workloads, that of the point alone.
        for input in &self.definition.inputs {
            let of_other = input
                .what
                .strip_prefix("code of workload ")
                .is_some_and(|name| workload.is_none_or(|workload| workload.name != name));
            if !of_other && !input.what.starts_with("topology ") {
                text += &format!("{} {}\n", input.what, input.hash);
            }
        }
        let arguments = self.program_of(&point);
        if let Some(program) = arguments.first().filter(|program| self.program.first() != Some(*program)) {
            let executable = executable::inspect(Path::new(program), std::env::var_os("PATH").as_deref()).ok()?;
            text += &hash(&files::read_bytes(&executable.path).ok()?);
        }
        text += &arguments.join("\0");
        Some(hash(text.as_bytes()))
    }

    fn figures(&self, folder: &Path) -> Result<Option<RunFigures>, String> {
        figures::of_folder(folder)
    }

    fn is_program(&self) -> bool {
        !self.program.is_empty()
    }
}
