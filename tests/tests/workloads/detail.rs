//! `--detail`: a launch that runs for its values alone has the values of a timed run, and timed launches have its times.

use balar_actors::engine::{RunOptions, WindowCut};
use balar_actors::simulation::RunResult;
use balar_experiments::{SimulationRequest, simulate_wrapped};
use balar_host::{CallResult, Host, Measurement, Next, ThreadId};
use balar_protocol::detail::{KernelPattern, TimedPart};
use balar_protocol::statistics::{KernelCounters, KernelRecord, Verification};
use balar_protocol::{Detail, DetailChoice, ProcessId, SimTime};
use balar_tests::{built_in, small, small_run};
use std::sync::{Arc, Mutex};

/// Workloads whose kernels measure cycles, which they give back.
const MEASURE: [&str; 4] = ["alu_latency", "pointer_chase", "shared_chase", "row_walk"];
/// Workloads with sums of floats by atomics, whose roundings depend on which block comes first: they are checked within bounds.
const ROUND: [&str; 1] = ["reduction"];
/// Workloads of which instructions are executed as often as it takes: threads wait for others, or race with them.
const DEPENDS_ON_ORDER: [&str; 4] = ["bfs", "sssp", "grid_sync", "page_touch"];

/// A host that keeps what comes from the device.
struct Listener {
    inner: Box<dyn Host>,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Host for Listener {
    fn next(&mut self) -> Next {
        self.inner.next()
    }

    fn complete(&mut self, thread: ThreadId, result: CallResult) {
        if let CallResult::Data(bytes) = &result {
            self.heard.lock().expect("not poisoned").extend_from_slice(bytes.data().expect("bytes of this process"));
        }
        self.inner.complete(thread, result);
    }

    fn call_back(&mut self, process: ProcessId, function: u64) {
        self.inner.call_back(process, function);
    }

    fn receive(&mut self, process: ProcessId, transfer: u32, data: Arc<[u8]>) {
        self.heard.lock().expect("not poisoned").extend_from_slice(&data);
        self.inner.receive(process, transfer, data);
    }

    fn printed(&mut self, process: ProcessId, text: &[u8], error: &[u8]) {
        self.inner.printed(process, text, error);
    }

    fn verification(&self) -> Verification {
        self.inner.verification()
    }

    fn measurements(&self) -> Vec<Measurement> {
        self.inner.measurements()
    }
}

/// Runs a workload with its small parameters, and gives what came from the device.
fn run(topology: &str, workload: &str, detail: DetailChoice, threads: usize) -> (RunResult, Vec<u8>) {
    let heard = Arc::<Mutex<Vec<u8>>>::default();
    let request = SimulationRequest {
        topology: built_in(topology),
        workload: Some((workload.to_owned(), small(workload))),
        ptx: Vec::new(),
        code: Default::default(),
        options: RunOptions { threads, detail, ..RunOptions::default() },
    };
    let to = Arc::clone(&heard);
    let result = simulate_wrapped(request, |inner, _| Ok(Box::new(Listener { inner, heard: to })));
    let result = result.unwrap_or_else(|error| panic!("{workload}: {error}"));
    assert!(
        result.completed(),
        "{workload} on {topology}, {threads} threads: {:?} {:?}",
        result.outcome,
        result.program
    );
    assert_ne!(result.verified(), Some(false), "{workload} on {topology}, {threads} threads: {:?}", result.program);
    let heard = std::mem::take(&mut *heard.lock().expect("not poisoned"));
    (result, heard)
}

/// What is known of a launch without timing.
fn counts(launch: &KernelRecord) -> Vec<(&'static str, u64)> {
    let functional = KernelRecord { detail: Detail::Functional, ..launch.clone() };
    let names = KernelCounters::DEFINITIONS.iter().map(|definition| definition.name);
    names.zip(functional.known_counters()).filter_map(|(name, value)| Some((name, value?))).collect()
}

/// A launch: its kernel, its grid and its counts.
type Counted = (String, [u32; 3], Vec<(&'static str, u64)>);

/// Launches with their shapes and counts.
fn launches(result: &RunResult) -> Vec<Counted> {
    let mut launches: Vec<KernelRecord> = result.statistics.kernels.iter().collect();
    launches.sort_by_key(|launch| launch.launch);
    launches.iter().map(|launch| (launch.name.to_string(), launch.grid, counts(launch))).collect()
}

/// Compares runs without timing with a timed one: what differs.
fn differs_from_a_timed_run(topology: &str, workload: &str) -> Vec<String> {
    let (timed, expected) = run(topology, workload, DetailChoice::default(), 1);
    let program = |result: &RunResult| result.program.as_ref().map(|program| program.printed.clone());
    let mut different = Vec::new();
    for threads in [1, 2, 4] {
        let (result, heard) = run(topology, workload, DetailChoice::none(), threads);
        let mut is_same = |is_same: bool, what: &str| {
            if !is_same {
                different.push(format!("{what} of {workload} on {topology}, {threads} threads"));
            }
        };
        let has_other_values = MEASURE.contains(&workload) || ROUND.contains(&workload);
        is_same(heard.len() == expected.len() && (has_other_values || heard == expected), "values");
        is_same(program(&result) == program(&timed), "printed text");
        is_same(result.statistics.kernels.iter().all(|launch| launch.detail == Detail::Functional), "detail");
        is_same(DEPENDS_ON_ORDER.contains(&workload) || launches(&result) == launches(&timed), "counts");
    }
    different
}

#[test]
fn every_workload_on_the_v100() {
    let workloads = balar_workloads::workloads().iter();
    let different: Vec<String> =
        workloads.flat_map(|workload| differs_from_a_timed_run("v100_node", workload.name)).collect();
    assert!(different.is_empty(), "{different:#?}");
}

#[test]
fn unified_memory_needs_no_driver() {
    for workload in ["vectoradd", "reduction"] {
        assert_eq!(differs_from_a_timed_run("p100_node", workload), [""; 0]);
    }
}

/// Several runs without timing are the same bytes: statistics, results, even times that mean nothing.
#[test]
fn results_do_not_depend_on_threads() {
    for workload in ["bfs", "histogram", "grid_sync", "device_print", "concurrent"] {
        let of = |threads| balar_tests::described(&run("v100_node", workload, DetailChoice::none(), threads).0);
        let expected = of(1);
        assert_eq!(expected, of(2), "{workload}");
        assert_eq!(expected, of(4), "{workload}");
    }
}

/// Where windows end, and states that are saved and restored in the middle of launches, change nothing.
#[test]
fn neither_windows_nor_saved_states_change_anything() {
    for workload in ["histogram", "grid_sync", "reduction", "device_heap"] {
        let of = |options: RunOptions| {
            let options = RunOptions { detail: DetailChoice::none(), ..options };
            balar_tests::run("v100_node", workload, small(workload), options)
        };
        let result = of(RunOptions::default());
        let expected = balar_tests::described(&result);
        let cut = WindowCut { divisor: 7, ..WindowCut::default() };
        assert_eq!(expected, balar_tests::described(&of(RunOptions { cut, ..RunOptions::default() })), "{workload}");
        let launches = result.statistics.kernels.iter();
        let times = launches.flat_map(|launch| {
            let span = launch.end_ps - launch.start_ps;
            [3, 5, 7].map(|part| SimTime(launch.start_ps + span * part / 8))
        });
        let mut times: Vec<SimTime> = times.collect();
        times.sort_unstable();
        times.dedup();
        let again = of(RunOptions { threads: 2, hand_over_at: times.into(), ..RunOptions::default() });
        assert_eq!(expected, balar_tests::described(&again), "{workload}");
    }
}

#[test]
fn what_is_timed_takes_as_long_as_in_a_timed_run() {
    let timed = small_run("v100_node", "backprop");
    let of = |result: &RunResult, name: &str| -> KernelRecord {
        result.statistics.kernels.iter().find(|launch| &*launch.name == name).expect("it was launched")
    };
    let name = timed.statistics.kernels.iter().last().expect("it has launches").name.to_string();
    let pattern = name.clone();
    let part = TimedPart::Kernels(KernelPattern::new(move |kernel| kernel == pattern));
    for threads in [1, 2, 4] {
        let (result, _) = run("v100_node", "backprop", DetailChoice::of(vec![part.clone()]), threads);
        let (expected, found) = (of(&timed, &name), of(&result, &name));
        assert_eq!((found.detail, counts(&found)), (Detail::Timed, counts(&expected)));
        let ratio = found.cycles as f64 / expected.cycles as f64;
        // Its caches are cold, where other kernels came before.
        assert!((0.9..1.5).contains(&ratio), "{} cycles in place of {}", found.cycles, expected.cycles);
        let others: Vec<KernelRecord> =
            result.statistics.kernels.iter().filter(|launch| *launch.name != *name).collect();
        assert!(!others.is_empty() && others.iter().all(|launch| launch.timed_cycles().is_none()));
    }
}

#[test]
fn launches_are_timed_by_number() {
    let (result, _) = run("v100_node", "hotspot", DetailChoice::of(vec![TimedPart::Launches(1..=1)]), 2);
    let timed: Vec<bool> = result.statistics.kernels.iter().map(|launch| launch.detail.is_timed()).collect();
    assert!(
        timed.len() > 1 && timed.iter().enumerate().all(|(number, is_timed)| *is_timed == (number == 1)),
        "{timed:?}"
    );
}
