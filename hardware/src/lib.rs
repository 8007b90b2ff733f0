//! Runs the built-in workloads on a GPU of this machine, through its driver, and prints their times there: the other side of a comparison
//! with the simulator.
//!
//! The driver compiles the workload's PTX for its GPU. Each workload runs once to warm up, then `--repeat` times. A kernel's time is the
//! time of all its launches in a run, by events around each, and the median of the runs is printed. Events add one or two microseconds to a
//! launch.

mod driver;
mod gpu;
mod print;
mod stopwatch;

use balar_protocol::statistics::Verification;
use balar_workloads::{Descriptor, Parameters, WorkloadError};
use clap::Parser;
use driver::{Device, Driver, DriverError};
use gpu::{Gpu, RunError};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use stopwatch::Stopwatch;

/// Runs the built-in workloads on a GPU of this machine and prints what they take there, as comma-separated values
#[derive(Parser)]
#[command(name = "balar-hardware")]
struct Arguments {
    /// Workloads, with parameters; all of them at their default sizes if none is given
    #[arg(value_name = "NAME[:key=value,...]")]
    workloads: Vec<String>,
    /// A parameter for every workload that has it, such as memory=managed
    #[arg(long, value_name = "key=value")]
    with: Option<String>,
    /// Run those whose parameters are not given at sizes that a simulator runs at once
    #[arg(long)]
    small: bool,
    /// Runs that are timed
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// Do not run a workload once before the timed runs, so that what is compiled and allocated first is part of them
    #[arg(long)]
    cold: bool,
    /// Write to this file instead of the standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Driver(#[from] DriverError),
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error("the workload {0} has no code for compute capability {1}")]
    NoCode(&'static str, u32),
    #[error("the table cannot be written: {0}")]
    Table(#[from] csv::Error),
    #[error("the table cannot be written: {0}")]
    Output(#[from] std::io::Error),
}

/// One figure.
#[derive(Serialize)]
struct Row<'text> {
    device: &'text str,
    cuda: u32,
    workload: &'static str,
    parameters: &'text str,
    /// A kernel, a value that the workload measures itself, or `program`.
    figure: &'text str,
    launches: usize,
    unit: &'text str,
    median: f64,
    least: f64,
    greatest: f64,
    result: &'text str,
}

/// The figures of several runs, by name.
#[derive(Default)]
struct Figures {
    /// Unit, launches of a run, and the values of all runs.
    values: BTreeMap<String, (&'static str, usize, Vec<f64>)>,
    result: String,
}

impl Figures {
    fn add(&mut self, name: &str, unit: &'static str, launches: usize, value: f64) {
        let entry = self.values.entry(name.to_owned()).or_insert((unit, launches, Vec::new()));
        entry.2.push(value);
    }

    /// Runs a workload once, and adds what it gives.
    fn run(
        &mut self,
        driver: &Driver,
        code: &str,
        workload: &Descriptor,
        parameters: &Parameters,
    ) -> Result<(), Failure> {
        let mut program = workload.program(parameters)?;
        let gpu = Gpu::new(driver, code.as_bytes())?;
        let begun = Stopwatch::start();
        let (launches, text) = print::captured(|| gpu.run(&mut *program))?;
        program.printed(&text);
        let launches = match launches {
            Ok(launches) => launches,
            Err(RunError::Driver(error)) => return Err(error.into()),
            Err(error) => {
                self.result = error.to_string();
                return Ok(());
            }
        };
        self.add("program", "us", launches.len(), begun.elapsed().as_secs_f64() * 1e6);
        let mut kernels: BTreeMap<String, (usize, f64)> = BTreeMap::new();
        for launch in launches {
            let kernel = kernels.entry(launch.kernel).or_default();
            kernel.0 += 1;
            kernel.1 += launch.microseconds;
        }
        for (kernel, (count, microseconds)) in kernels {
            self.add(&kernel, "us", count, microseconds);
        }
        for measurement in program.measurements() {
            self.add(measurement.name, measurement.unit, 0, measurement.value);
        }
        self.result = match program.verification() {
            Verification::Passed => "passed".to_owned(),
            Verification::NotChecked => "not checked".to_owned(),
            Verification::Failed(why) => format!("failed: {why}"),
        };
        Ok(())
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

/// To thousandths.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// A workload that was asked for, with its settings.
fn chosen(arguments: &Arguments) -> Result<Vec<(&'static Descriptor, String)>, WorkloadError> {
    let complete = |workload: &'static Descriptor, settings: &str| {
        let has = |setting: &&str| {
            let own = workload.parameters.iter().chain([&balar_workloads::MEMORY]);
            own.map(|parameter| parameter.name).any(|name| setting.split('=').next() == Some(name))
        };
        let extra = arguments.with.as_deref().filter(has);
        let parts = [Some(settings), extra].into_iter().flatten().filter(|part| !part.is_empty());
        (workload, parts.collect::<Vec<_>>().join(","))
    };
    let default = |workload: &'static Descriptor| if arguments.small { workload.small } else { "" };
    if arguments.workloads.is_empty() {
        return Ok(balar_workloads::workloads().iter().map(|workload| complete(workload, default(workload))).collect());
    }
    let named = arguments.workloads.iter().map(|text| {
        let (name, settings) = text.split_once(':').map_or((text.as_str(), None), |(name, given)| (name, Some(given)));
        let workload = balar_workloads::find(name)?;
        Ok(complete(workload, settings.unwrap_or(default(workload))))
    });
    named.collect()
}

fn measure(
    arguments: &Arguments,
    driver: &Driver,
    device: &Device,
    table: &mut csv::Writer<Box<dyn std::io::Write>>,
) -> Result<(), Failure> {
    for (workload, settings) in chosen(arguments)? {
        let parameters = workload.parse_parameters(&settings)?;
        let code = workload.ptx_for(device.compute_capability);
        let code = code.ok_or(Failure::NoCode(workload.name, device.compute_capability))?;
        if !arguments.cold {
            Figures::default().run(driver, code, workload, &parameters)?;
        }
        let mut figures = Figures::default();
        for _ in 0..arguments.repeat {
            figures.run(driver, code, workload, &parameters)?;
        }
        for (figure, (unit, launches, values)) in &figures.values {
            table.serialize(Row {
                device: &device.name,
                cuda: device.cuda_version,
                workload: workload.name,
                parameters: &settings,
                figure,
                launches: *launches,
                unit,
                median: rounded(median(values)),
                least: rounded(values.iter().copied().fold(f64::INFINITY, f64::min)),
                greatest: rounded(values.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
                result: &figures.result,
            })?;
        }
        table.flush()?;
    }
    Ok(())
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (driver, device) = Driver::open()?;
    let output: Box<dyn std::io::Write> = match &arguments.output {
        Some(file) => Box::new(std::fs::File::create(file)?),
        None => Box::new(std::io::stdout()),
    };
    measure(arguments, &driver, &device, &mut csv::Writer::from_writer(output))
}

/// Runs the command line of `balar-hardware`.
#[expect(clippy::print_stderr, reason = "a program says what went wrong")]
pub fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
