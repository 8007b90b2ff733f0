//! The runs of a study: independent of each other, several at a time.

use super::programs::{ProgramFigures, ProgramRun};
use super::report::Report;
use crate::experiment::{ExperimentError, run_overridden};
use crate::pool::make_all;
use balar_actors::engine::RunOptions;
use balar_actors::simulation::RunResult;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A run: a workload on a node. Two that are equal give the same figures.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// The node.
    pub topology: &'static str,
    /// The workload.
    pub workload: &'static str,
    /// Its parameters.
    pub parameters: Vec<(&'static str, &'static str)>,
    /// Other values of the node's parameters.
    pub overrides: Vec<(&'static str, String)>,
}

impl Point {
    /// The command line that makes this run.
    pub fn command(&self) -> String {
        let parameters: Vec<_> = self.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let mut text = format!("--topology {} --workload {}", self.topology, self.workload);
        if !parameters.is_empty() {
            text.push_str(&format!(":{}", parameters.join(",")));
        }
        for (path, value) in &self.overrides {
            text.push_str(&format!(" --set '{path}={value}'"));
        }
        text
    }
}

/// How runs are made.
pub struct Running<'a> {
    /// Runs at the same time.
    pub threads: usize,
    /// Ends all of them once it is set.
    pub interrupt: Arc<AtomicBool>,
    /// Is told how many runs of how many have ended.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
    /// Runs a program of the user's; `None` where nobody can.
    pub program: Option<&'a ProgramRunner<'a>>,
}

impl Running<'_> {
    /// Runs a program of the user's.
    ///
    /// # Errors
    ///
    /// Where the run fails, or nobody can make it.
    pub fn run_program(&self, run: &ProgramRun) -> Result<ProgramFigures, JobError> {
        let nobody = || JobError::Failed("nobody is there to run programs of the user's".to_owned());
        self.program.ok_or_else(nobody)?(run)
    }
}

/// The function that runs a program of the user's on a simulated node.
pub type ProgramRunner<'a> = dyn Fn(&ProgramRun) -> Result<ProgramFigures, JobError> + Sync + 'a;

/// Why a run of a study has no figures.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// It did not come to its end; that is no failure of a run that was interrupted.
    #[error("{0}")]
    NotCompleted(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

impl From<ExperimentError> for JobError {
    fn from(error: ExperimentError) -> JobError {
        match &error {
            ExperimentError::NotCompleted { .. } => JobError::NotCompleted(error.to_string()),
            _ => JobError::Failed(error.to_string()),
        }
    }
}

/// Why no runs could be made.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no thread for them.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

/// The outcome of runs.
#[derive(Debug)]
pub struct Runs<T, J = Point> {
    figures: BTreeMap<J, T>,
    /// Runs that failed, and why; not those that were interrupted.
    pub failures: Vec<(J, JobError)>,
    /// How many were to be made.
    pub planned: usize,
}

impl<T, J: Ord> Runs<T, J> {
    /// The figures of a run; `None` where it failed, or was not made.
    pub fn get(&self, job: &J) -> Option<&T> {
        self.figures.get(job)
    }

    /// How many runs came to their end.
    pub fn completed(&self) -> usize {
        self.figures.len()
    }

    /// A study's report on the outcome of its runs, and nothing else yet; `command` makes one.
    pub fn report(&self, study: &'static str, command: impl Fn(&J) -> String) -> Report {
        Report {
            study,
            completed: self.completed() == self.planned,
            runs: self.completed(),
            planned: self.planned,
            failures: self.failures.iter().map(|(job, error)| format!("{}: {error}", command(job))).collect(),
            ..Report::default()
        }
    }
}

/// Makes runs of built-in workloads and keeps the result of `measure` for each; see [`make_jobs`].
///
/// # Errors
///
/// Where the system has no thread.
///
/// # Panics
///
/// Where a run does.
pub fn make<T: Send>(
    running: &Running<'_>,
    points: Vec<Point>,
    cost: impl Fn(&Point) -> u32,
    measure: impl Fn(&RunResult) -> T + Sync,
) -> Result<Runs<T>, RunError> {
    make_jobs(running, points, cost, |point| Ok(measure(&simulate(point, &running.interrupt, RunOptions::default())?)))
}

/// Makes runs of any kind and keeps the results of `run`; equal ones are made once. Runs that `cost` rates highest begin first, so that
/// none of them is left for the end. The results depend neither on this nor on the number of threads.
///
/// # Errors
///
/// Where the system has no thread.
///
/// # Panics
///
/// Where a run does.
pub fn make_jobs<T: Send, J: Clone + Ord + Send + Sync>(
    running: &Running<'_>,
    jobs: Vec<J>,
    cost: impl Fn(&J) -> u32,
    run: impl Fn(&J) -> Result<T, JobError> + Sync,
) -> Result<Runs<T, J>, RunError> {
    let mut jobs: Vec<J> = jobs.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    jobs.sort_by_key(|job| std::cmp::Reverse(cost(job)));
    let planned = jobs.len();
    let interrupted = || running.interrupt.load(Ordering::Relaxed);
    let make = |job: J| {
        let result = (!interrupted()).then(|| run(&job))?;
        Some((job, result))
    };
    let made = make_all(("study", running.threads), jobs, running.progress, make)?;
    let mut runs = Runs { figures: BTreeMap::new(), failures: Vec::new(), planned };
    for (job, result) in made {
        match result {
            Ok(figures) => drop(runs.figures.insert(job, figures)),
            Err(JobError::NotCompleted(_)) if interrupted() => {}
            Err(error) => runs.failures.push((job, error)),
        }
    }
    runs.failures.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(runs)
}

/// Makes a run of a built-in workload, which ends when `interrupt` is set, with other options of the engine.
///
/// # Errors
///
/// As [`run_overridden`].
pub fn simulate(point: &Point, interrupt: &Arc<AtomicBool>, options: RunOptions) -> Result<RunResult, ExperimentError> {
    let options = RunOptions { interrupt: interrupt.clone(), ..options };
    let overrides: Vec<_> = point.overrides.iter().map(|(path, value)| (*path, value.as_str())).collect();
    run_overridden(options, point.topology, point.workload, &point.parameters, &overrides, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn vectoradd(elements: &'static str) -> Point {
        Point {
            topology: "v100_node",
            workload: "vectoradd",
            parameters: vec![("elements", elements)],
            overrides: vec![("gpu.sm[*].warps", "32".to_owned())],
        }
    }

    fn made(threads: usize, points: &[Point], interrupt: bool) -> (Runs<u64>, Vec<(usize, usize)>) {
        let told = Mutex::new(Vec::new());
        let progress = |ended, planned| told.lock().expect("nobody panics").push((ended, planned));
        let interrupt = Arc::new(AtomicBool::new(interrupt));
        let running = Running { threads, interrupt, progress: &progress, program: None };
        let measure = |result: &RunResult| result.kernel_cycles("vectorAdd").expect("it has run");
        let runs = make(&running, points.to_vec(), |_| 0, measure).expect("threads");
        (runs, told.into_inner().expect("nobody panics"))
    }

    #[test]
    fn equal_runs_are_made_once_and_threads_change_nothing() {
        let points = [vectoradd("256"), vectoradd("4096"), vectoradd("256")];
        let (alone, told) = made(1, &points, false);
        assert_eq!((alone.planned, alone.completed(), told), (2, 2, vec![(0, 2), (1, 2), (2, 2)]));
        let (together, _) = made(2, &points, false);
        for point in &points {
            assert!(alone.get(point).is_some_and(|cycles| *cycles > 0));
            assert_eq!(alone.get(point), together.get(point));
        }
    }

    #[test]
    fn a_run_that_fails_leaves_the_others() {
        let (runs, _) = made(2, &[vectoradd("256"), vectoradd("none")], false);
        assert_eq!((runs.planned, runs.completed()), (2, 1));
        let [(point, error)] = &runs.failures[..] else { panic!("{:?}", runs.failures) };
        assert_eq!(point, &vectoradd("none"));
        assert!(error.to_string().contains("elements"), "{error}");
        let command = "--topology v100_node --workload vectoradd:elements=none --set 'gpu.sm[*].warps=32'";
        assert_eq!(point.command(), command);
    }

    #[test]
    fn nothing_runs_after_an_interrupt() {
        let (runs, told) = made(2, &[vectoradd("256")], true);
        assert_eq!((runs.planned, runs.completed(), runs.failures.len(), told), (1, 0, 0, vec![(0, 1)]));
    }
}
