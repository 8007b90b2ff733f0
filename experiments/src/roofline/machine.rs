//! Microbenchmarks on a node: workloads that run several at a time, each giving the values that it measures itself.

use super::MeasureError;
use crate::pool::make_all;
use crate::{RequestError, SimulationRequest, simulate};
use balar_actors::catalogue::GpuDescription;
use balar_actors::engine::RunOptions;
use balar_actors::simulation::CodeChoice;
use balar_actors::topology::Topology;
use balar_protocol::statistics::Verification;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How microbenchmarks run.
pub struct Running<'a> {
    /// Runs at the same time; no figure depends on their number.
    pub jobs: usize,
    /// Which code of a kernel runs.
    pub code: CodeChoice,
    /// Ends all of them once it is set.
    pub interrupt: Arc<AtomicBool>,
    /// Is told how many runs have ended, and how many are known by now.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

/// A microbenchmark: a built-in workload with parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Benchmark {
    pub workload: &'static str,
    pub parameters: Vec<(&'static str, String)>,
}

impl Benchmark {
    pub fn new(workload: &'static str, parameters: &[(&'static str, &dyn ToString)]) -> Benchmark {
        let parameters = parameters.iter().map(|(key, value)| (*key, value.to_string())).collect();
        Benchmark { workload, parameters }
    }
}

/// The measurements of a run, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured(Vec<(String, f64)>);

impl Measured {
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }
}

/// The node that is measured, and its first GPU.
pub(super) struct Machine<'a> {
    pub topology: &'a Topology,
    pub gpu: GpuDescription,
}

impl Machine<'_> {
    pub fn new(topology: &Topology) -> Result<Machine<'_>, MeasureError> {
        let gpu = topology.gpus().into_iter().next().filter(|gpu| !gpu.sms.is_empty());
        let gpu = gpu.ok_or_else(|| MeasureError::NoGpu(topology.name.clone()))?;
        Ok(Machine { topology, gpu })
    }

    /// Threads that an SM has room for.
    pub fn threads_of_sm(&self) -> u32 {
        self.gpu.smallest_sm().map_or(32, |sm| sm.resources.threads.max(32))
    }

    /// Runs all of them; the measurements of each have its place in the result.
    pub fn run(&self, benchmarks: &[Benchmark], running: &Running<'_>) -> Result<Vec<Measured>, MeasureError> {
        // Larger ones come last in every list: they begin first.
        let jobs: Vec<(usize, &Benchmark)> = benchmarks.iter().enumerate().rev().collect();
        let make = |(index, benchmark)| {
            let is_wanted = !running.interrupt.load(Ordering::Relaxed);
            is_wanted.then(|| (index, self.one(benchmark, running)))
        };
        let made = make_all(("roofline", running.jobs), jobs, running.progress, make).map_err(MeasureError::Thread)?;
        let mut made: BTreeMap<usize, Result<Measured, MeasureError>> = made.into_iter().collect();
        (0..benchmarks.len()).map(|index| made.remove(&index).unwrap_or(Err(MeasureError::Interrupted))).collect()
    }

    fn one(&self, benchmark: &Benchmark, running: &Running<'_>) -> Result<Measured, MeasureError> {
        let parameters = benchmark.parameters.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let request = SimulationRequest {
            topology: self.topology.clone(),
            workload: Some((benchmark.workload.to_owned(), parameters)),
            ptx: Vec::new(),
            code: running.code.clone(),
            options: RunOptions { interrupt: running.interrupt.clone(), ..RunOptions::default() },
        };
        let failed = |why: String| MeasureError::Failed { benchmark: benchmark.command(), why };
        let result = simulate(request).map_err(|error: RequestError| failed(error.to_string()))?;
        if !result.completed() && running.interrupt.load(Ordering::Relaxed) {
            return Err(MeasureError::Interrupted);
        }
        let Some(program) = result.program.filter(|program| program.finished) else {
            return Err(failed(format!("it did not come to its end: {:?}", result.outcome)));
        };
        match program.verification {
            Verification::Failed(why) => Err(failed(format!("its result is wrong: {why}"))),
            _ => Ok(Measured(program.results.into_iter().map(|(name, value, _)| (name.to_string(), value)).collect())),
        }
    }
}

impl Benchmark {
    /// The workload as `--workload` takes it.
    fn command(&self) -> String {
        let parameters: Vec<_> = self.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
        format!("{}:{}", self.workload, parameters.join(","))
    }
}
