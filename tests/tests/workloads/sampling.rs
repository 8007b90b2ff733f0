//! Samples change nothing, are the same for any number of threads, and end with the totals of the run.

use balar_actors::engine::{Observer, RunControl, RunOptions, Sample, SampleKind, SampleLayout, Watch};
use balar_actors::simulation::RunResult;
use balar_protocol::SimTime;
use balar_protocol::cuda::LaunchId;
use balar_protocol::statistics::KernelCounters;
use balar_tests::{described, run, small, small_run};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

/// What a launch is known to have done.
#[derive(Clone, Debug, Default, PartialEq)]
struct Launch {
    ended: KernelCounters,
    resident: KernelCounters,
    has_ended: bool,
}

impl Launch {
    fn counters(&self) -> KernelCounters {
        let mut all = self.ended;
        all.add(&self.resident);
        all
    }
}

/// A sample, kept.
#[derive(Clone, Debug, PartialEq)]
struct Kept {
    time: SimTime,
    values: Vec<u64>,
    launches: BTreeMap<LaunchId, Launch>,
}

/// Keeps all samples.
#[derive(Default)]
struct Recorder {
    layout: SampleLayout,
    samples: Vec<Kept>,
    launches: BTreeMap<LaunchId, Launch>,
    waiting: Vec<String>,
}

impl Observer for Recorder {
    fn begin(&mut self, layout: &SampleLayout) {
        self.layout = layout.clone();
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        for launch in self.launches.values_mut() {
            launch.resident = KernelCounters::default();
        }
        for counts in &sample.launches.counts {
            let launch = self.launches.entry(counts.launch).or_default();
            launch.ended.add(&counts.ended);
            launch.resident.add(&counts.resident);
        }
        for facts in &sample.launches.begun {
            self.launches.entry(facts.launch).or_default().has_ended = facts.end.is_some();
        }
        self.waiting.extend(sample.waiting.iter().map(|unit| unit.path.clone()));
        if sample.kind != SampleKind::Asked {
            let (time, values, launches) = (sample.time, sample.values.to_vec(), self.launches.clone());
            self.samples.push(Kept { time, values, launches });
        }
    }
}

fn watched(workload: &str, interval: u64, options: RunOptions) -> (RunResult, Arc<Mutex<Recorder>>) {
    let recorder = Arc::new(Mutex::new(Recorder::default()));
    let watch = Watch::shared(Some(SimTime(interval)), RunControl::default(), recorder.clone());
    let result = run("v100_node", workload, small(workload), RunOptions { watch: Some(watch), ..options });
    (result, recorder)
}

fn of(recorder: &Mutex<Recorder>) -> MutexGuard<'_, Recorder> {
    recorder.lock().expect("the observer has not panicked")
}

/// Not a multiple of any clock's period, nor of the value epoch.
const INTERVAL: u64 = 733_337;

#[test]
fn samples_change_nothing_and_do_not_know_threads() {
    for workload in balar_workloads::workloads().iter().map(|workload| workload.name) {
        let expected = described(&small_run("v100_node", workload));
        let (result, first) = watched(workload, INTERVAL, RunOptions::default());
        assert_eq!(expected, described(&result), "{workload}: a run with samples");
        let others = if ["lud", "concurrent", "bfs", "vectoradd"].contains(&workload) { &[2, 4][..] } else { &[2] };
        for &threads in others {
            let (result, other) = watched(workload, INTERVAL, RunOptions { threads, ..RunOptions::default() });
            assert_eq!(expected, described(&result), "{workload}: {threads} threads");
            let (first, other) = (of(&first), of(&other));
            for (one, another) in first.samples.iter().zip(&other.samples) {
                assert_eq!(one.time, another.time, "{workload}, {threads} threads");
                let rows = first.layout.rows.iter().zip(one.values.iter().zip(&another.values));
                let differs: Vec<_> = rows.filter(|(_, (one, another))| one != another).take(5).collect();
                assert!(differs.is_empty(), "{workload}, {threads} threads, at {}: {differs:?}", one.time);
                assert_eq!(one.launches, another.launches, "{workload}, {threads} threads, at {}", one.time);
            }
            assert_eq!(first.samples.len(), other.samples.len(), "{workload}, {threads} threads");
        }
    }
}

/// The numbers of a row of the layout that ends like this, added up.
fn sum(recorder: &Recorder, sample: &Kept, is_wanted: impl Fn(&str, &str) -> bool) -> u64 {
    let rows = recorder.layout.rows.iter().zip(&sample.values);
    rows.filter(|(row, _)| is_wanted(&row.location, row.what)).map(|(_, value)| value).sum()
}

fn is_sm(location: &str) -> bool {
    location.starts_with("gpu.sm[")
}

#[test]
fn the_last_sample_has_the_totals_and_no_count_decreases() {
    for workload in ["lud", "concurrent", "bfs", "vectoradd", "histogram"] {
        let (result, recorder) = watched(workload, INTERVAL, RunOptions::default());
        let recorder = of(&recorder);
        let last = recorder.samples.last().expect("a sample");
        assert_eq!(last.time, result.sim_time, "{workload}");
        let rows: BTreeMap<(&str, &str), u64> = {
            let rows = result.statistics.rows.iter();
            rows.map(|row| ((row.location.as_str(), row.what), row.value)).collect()
        };
        assert_eq!(recorder.layout.rows.len(), rows.len(), "{workload}");
        for (row, value) in recorder.layout.rows.iter().zip(&last.values) {
            assert_eq!(rows.get(&(row.location.as_str(), row.what)), Some(value), "{workload}: {row:?}");
        }
        for pair in recorder.samples.windows(2) {
            assert!(pair[0].time < pair[1].time, "{workload}");
            for (row, (before, after)) in recorder.layout.rows.iter().zip(pair[0].values.iter().zip(&pair[1].values)) {
                assert!(before <= after, "{workload}, {} to {}: {row:?} {before} {after}", pair[0].time, pair[1].time);
            }
        }
    }
}

#[test]
fn every_cycle_of_a_warp_is_charged_at_every_moment() {
    for workload in ["lud", "gemm", "bfs", "reduction", "spmv"] {
        let (_, recorder) = watched(workload, INTERVAL, RunOptions::default());
        let recorder = of(&recorder);
        let mut residences = 0;
        for sample in &recorder.samples {
            let stalls = sum(&recorder, sample, |location, what| is_sm(location) && what.starts_with("stall_"));
            let cycles = sum(&recorder, sample, |location, what| is_sm(location) && what == "warp_cycles_active");
            assert_eq!(stalls, cycles, "{workload}, at {}", sample.time);
            residences += u64::from(cycles > 0);
        }
        assert!(residences > 3, "{workload}: {residences} samples with warps");
    }
}

#[test]
fn launches_have_what_their_ctas_did_at_every_moment() {
    for workload in ["lud", "concurrent", "bfs", "vectoradd"] {
        let (result, recorder) = watched(workload, INTERVAL, RunOptions::default());
        let recorder = of(&recorder);
        let of_sms: BTreeSet<&str> =
            recorder.layout.rows.iter().filter(|row| is_sm(&row.location)).map(|row| row.what).collect();
        for sample in &recorder.samples {
            let mut launches = KernelCounters::default();
            sample.launches.values().for_each(|launch| launches.add(&launch.counters()));
            for (definition, value) in KernelCounters::DEFINITIONS.iter().zip(launches.values()) {
                if !of_sms.contains(&definition.name) {
                    continue;
                }
                let sms = sum(&recorder, sample, |location, what| is_sm(location) && what == definition.name);
                // Launches that share an SM are active on it at the same time.
                let is_shared = workload == "concurrent" && definition.name == "cycles_active" && value > sms;
                assert!(value == sms || is_shared, "{workload}, at {}: {} {value} {sms}", sample.time, definition.name);
            }
        }
        let last = &recorder.samples.last().expect("a sample").launches;
        assert_eq!(last.len(), result.statistics.kernels.len(), "{workload}");
        for kernel in result.statistics.kernels.iter() {
            let launch = &last[&kernel.launch];
            assert!(launch.has_ended, "{workload}: launch {}", kernel.launch);
            assert_eq!(launch.ended, kernel.counters, "{workload}: launch {}", kernel.launch);
        }
    }
}

#[test]
fn what_stands_still_has_a_sample_at_both_ends() {
    let (result, recorder) = watched("vectoradd", 1000, RunOptions::default());
    let recorder = of(&recorder);
    let times: Vec<u64> = recorder.samples.iter().map(|sample| sample.time.0).collect();
    assert!((times.len() as u64) < result.sim_time.0 / 1000, "{} samples", times.len());
    assert!(times.iter().rev().skip(1).all(|time| time % 1000 == 0));
    let gaps: Vec<usize> = (1..times.len()).filter(|&at| times[at] - times[at - 1] > 1000).collect();
    assert!(!gaps.is_empty(), "the host computes between calls");
    let mut alike = 0;
    for at in gaps.into_iter().filter(|&at| at + 1 < times.len()) {
        let (before, after) = (&recorder.samples[at - 1], &recorder.samples[at]);
        alike += usize::from(before.values == after.values);
    }
    assert!(alike > 0, "nothing happens in a gap");
}

/// Holds a run at its start, asks it what it waits for, steps it, and lets it go.
#[test]
fn a_run_that_is_held_changes_nothing() {
    let expected = described(&small_run("v100_node", "lud"));
    let recorder = Arc::new(Mutex::new(Recorder::default()));
    let control = RunControl::default();
    control.pause();
    let watch = Watch::shared(None, control.clone(), recorder.clone());
    let run = std::thread::spawn(move || {
        run("v100_node", "lud", small("lud"), RunOptions { watch: Some(watch), threads: 2, ..RunOptions::default() })
    });
    let until = |is_so: &dyn Fn() -> bool| {
        while !is_so() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    };
    until(&|| control.is_held());
    for _ in 0..20 {
        control.step(SimTime::from_nanoseconds(5_000));
        until(&|| control.is_held());
    }
    control.ask();
    until(&|| !of(&recorder).waiting.is_empty());
    assert!(of(&recorder).samples.is_empty(), "none is due, and the run has not ended");
    control.resume();
    let result = run.join().expect("it ends");
    assert_eq!(expected, described(&result));
    assert_eq!(of(&recorder).samples.len(), 1, "the last one");
}
