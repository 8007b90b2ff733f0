//! `--timeline`: the trace agrees with the statistics of the run, and nothing else changes.

use crate::call::{Called, call_in};
use crate::perfetto::{Slice, Timeline, read};
use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use tempfile::TempDir;

const V100: &str = "v100_node";

/// A run with its folder: the trace is `t.pftrace`, the statistics are in `out`.
struct Run {
    folder: TempDir,
    called: Called,
}

fn run(topology: &str, workload: &str, options: &[&str]) -> Run {
    let folder = TempDir::new().expect("a folder");
    let fixed = ["--topology", topology, "--workload", workload, "--output", "out", "--timeline", "t.pftrace"];
    let called = call_in(folder.path(), &[&fixed, options].concat());
    Run { folder, called }
}

/// A run that ends as it should.
fn completed(topology: &str, workload: &str, options: &[&str]) -> Run {
    let run = run(topology, workload, options);
    assert_eq!((run.called.code, run.called.stderr.as_str()), (0, ""));
    run
}

/// A row of a CSV file by its header.
type Row = BTreeMap<String, String>;

impl Run {
    fn bytes(&self) -> Vec<u8> {
        fs::read(self.folder.path().join("t.pftrace")).expect("it was written")
    }

    fn timeline(&self) -> Timeline {
        read(&self.bytes())
    }

    fn table(&self, name: &str) -> Vec<Row> {
        let path = self.folder.path().join("out").join(name);
        let mut reader = csv::Reader::from_path(path).expect("it was written");
        reader.deserialize().map(|row| row.expect("a row")).collect()
    }

    /// The counter of this name at a place.
    fn counter(&self, location: &str, what: &str) -> u64 {
        let rows = self.table("stats.csv");
        let row = rows.iter().find(|row| row["location"] == location && row["what"] == what);
        row.unwrap_or_else(|| panic!("no {what} of {location}"))["value"].parse().expect("a number")
    }

    fn simulated_ps(&self) -> u64 {
        let text = fs::read_to_string(self.folder.path().join("out/stats.json")).expect("it was written");
        let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        document["sim_time_ps"].as_u64().expect("a number")
    }
}

/// Kernels are those of kernels.csv, by their picoseconds, on the track of their stream.
fn kernels_agree(run: &Run, timeline: &Timeline) {
    let mut kernels = timeline.of("kernel");
    kernels.sort_by_key(|kernel| kernel.number("launch"));
    let rows = run.table("kernels.csv");
    assert_eq!(kernels.len(), rows.len());
    for (kernel, row) in kernels.iter().zip(&rows) {
        let number = |name: &str| row[name].parse::<u64>().expect("a number");
        for (value, column) in [
            ("launch", "launch"),
            ("start_ps", "start_ps"),
            ("end_ps", "end_ps"),
            ("cycles", "cycles"),
            ("registers_per_thread", "registers_per_thread"),
            ("shared_bytes", "shared_bytes"),
        ] {
            assert_eq!(kernel.number(value), number(column), "{value} of {kernel:?}");
        }
        // A nanosecond of the trace is a nanosecond of simulated time.
        assert_eq!((kernel.begin, kernel.end), (number("start_ps") / 1000, number("end_ps") / 1000));
        let grid = ["grid_x", "grid_y", "grid_z"].map(|side| kernel.values[side].clone()).join("x");
        assert_eq!((kernel.name.as_str(), grid), (row["name"].as_str(), row["grid"].clone()));
        assert_eq!(kernel.track, format!("gpu/Kernels by stream/stream {}", row["stream"]));
        assert_eq!(kernel.number("queued_ps"), kernel.number("start_ps") - kernel.number("received_ps"));
    }
}

/// There are as many CTAs as were launched, each within its kernel; those of one slot of an SM follow each other.
fn ctas_agree(run: &Run, timeline: &Timeline) {
    let ctas = timeline.of("cta");
    assert_eq!(ctas.len() as u64, run.counter("gpu.scheduler", "ctas_launched"));
    let kernels: BTreeMap<u64, &Slice> =
        timeline.of("kernel").into_iter().map(|kernel| (kernel.number("launch"), kernel)).collect();
    let mut places = BTreeMap::new();
    let mut slots: BTreeMap<u64, u64> = BTreeMap::new();
    for cta in ctas {
        let kernel = kernels[&cta.number("launch")];
        assert_eq!(cta.name, kernel.name);
        assert!(kernel.begin <= cta.begin && cta.end <= kernel.end, "{cta:?} in {kernel:?}");
        let free = slots.insert(cta.uuid, cta.end).unwrap_or(0);
        assert!(cta.begin >= free, "{cta:?} begins before {free}");
        let place = ["cta_x", "cta_y", "cta_z"].map(|side| cta.values.get(side).cloned());
        assert!(places.insert((cta.number("launch"), place), ()).is_none(), "{cta:?} is there once");
    }
}

/// The bytes of copies and of links are those that the units have counted.
fn bytes_agree(run: &Run, timeline: &Timeline) {
    for direction in ["to device", "to host"] {
        let location = direction.replace(' ', "_");
        let counted = ["bytes_host_to_device", "bytes_device_to_host", "bytes_device_to_device", "bytes_filled"]
            .map(|what| run.counter(&format!("gpu.copy_engine.{location}"), what));
        let copied = timeline.sum("copy", &format!("gpu/copy engines/{direction}"), "bytes");
        assert_eq!(copied, counted.iter().sum::<u64>(), "{direction}");
        for link in ["command_link", "data_link"] {
            let track = format!("links/{link}/{direction}");
            for (value, what) in [("bytes", "bytes"), ("messages", "messages"), ("busy_ps", "busy_time")] {
                let counted = run.counter(&format!("{link}.{location}"), what);
                assert_eq!(timeline.sum("link", &track, value), counted, "{value} of {track}");
            }
        }
    }
}

/// Each kernel, and each copy that began with its call, has a line from the call.
fn calls_lead_to_their_work(timeline: &Timeline) {
    let calls = timeline.of("call");
    for kernel in timeline.of("kernel") {
        let call = calls.iter().find(|call| call.flows.contains(&kernel.flows[0])).expect("a call launched it");
        assert_eq!((call.name.as_str(), call.values.get("kernel")), ("cudaLaunchKernel", Some(&kernel.name)));
        assert!(call.end <= kernel.begin && call.values["stream"] == kernel.values["stream"], "{call:?}, {kernel:?}");
    }
    let copies = timeline.of("copy");
    let led = copies.iter().filter(|copy| calls.iter().any(|call| call.flows.contains(&copy.flows[0])));
    assert!(led.count() > 0);
}

#[test]
fn the_trace_agrees_with_the_statistics() {
    for workload in ["vectoradd:elements=4096,block=64", "lud:size=64", "concurrent:streams=3,elements=600,rounds=8"] {
        let run = completed(V100, workload, &[]);
        let timeline = run.timeline();
        kernels_agree(&run, &timeline);
        ctas_agree(&run, &timeline);
        bytes_agree(&run, &timeline);
        calls_lead_to_their_work(&timeline);
        assert_eq!(timeline.of("call").len() as u64, run.counter("cpu", "calls") + more_than_calls(&timeline));
        // The run itself, from its beginning to its end.
        let whole = timeline.slices.iter().find(|slice| slice.track == "run").expect("the run is there");
        assert_eq!((whole.begin, whole.end), (0, run.simulated_ps() / 1000));
        assert_eq!(whole.values["ended_by"], "completed");
        assert!(!timeline.slices.iter().any(|slice| slice.values.contains_key("unfinished")));
        for (track, values) in &timeline.counters {
            assert_eq!(values.last().map(|(_, value)| *value), Some(0.0), "{track} at the end");
        }
    }
}

/// What the trace shows as calls and the host CPU does not count: the program's own work.
fn more_than_calls(timeline: &Timeline) -> u64 {
    let own = ["compute", "read clock"];
    timeline.of("call").iter().filter(|call| own.contains(&call.name.as_str())).count() as u64
}

#[test]
fn migrations_are_those_that_the_driver_records() {
    let run = completed("gtx1080ti_node", "nw:length=128,memory=managed", &[]);
    let timeline = run.timeline();
    kernels_agree(&run, &timeline);
    let mut migrations: Vec<[u64; 3]> = timeline
        .of("migration")
        .iter()
        .map(|slice| {
            assert!(slice.track.starts_with("gpu/page migrations/to "), "{slice:?}");
            [slice.begin, slice.end, slice.number("bytes")]
        })
        .collect();
    let number = |row: &Row, name: &str| row[name].parse::<u64>().expect("a number");
    let recorded = run.table("unified_memory_transfers.csv");
    let mut recorded: Vec<[u64; 3]> = recorded
        .iter()
        .map(|row| [number(row, "began_ps") / 1000, number(row, "ended_ps") / 1000, number(row, "bytes")])
        .collect();
    migrations.sort_unstable();
    recorded.sort_unstable();
    assert!(migrations.len() > 4 && migrations == recorded, "{migrations:?}\n{recorded:?}");
    let batches = timeline.of("fault");
    assert_eq!(batches.len(), run.table("unified_memory_batches.csv").len());
    assert!(batches.iter().all(|batch| batch.track == "unified memory/fault batches"));
}

#[test]
fn the_bytes_do_not_depend_on_threads_and_nothing_else_changes() {
    for (topology, workload) in [(V100, "lud:size=64"), ("gtx1080ti_node", "nw:length=64,memory=managed")] {
        let one = completed(topology, workload, &["--format", "csv"]);
        for threads in ["2", "4"] {
            let several = completed(topology, workload, &["--threads", threads]);
            assert!(one.bytes() == several.bytes(), "{workload} with {threads} threads");
        }
        let without = ["--topology", topology, "--workload", workload, "--format", "csv"];
        assert_eq!(call_in(one.folder.path(), &without).stdout, one.called.stdout);
    }
}

#[test]
fn a_name_that_ends_in_gz_gives_a_packed_trace_and_kernels_alone_are_less() {
    let run = completed(V100, "vectoradd:elements=4096", &[]);
    let fixed = ["--topology", V100, "--workload", "vectoradd:elements=4096", "--timeline"];
    let packed = call_in(run.folder.path(), &[&fixed[..], &["t.pftrace.gz"]].concat());
    assert_eq!((packed.code, packed.stderr.as_str()), (0, ""));
    let file = File::open(run.folder.path().join("t.pftrace.gz")).expect("it was written");
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).expect("it is packed");
    assert!(bytes == run.bytes(), "the same trace");

    let kernels = completed(V100, "vectoradd:elements=4096", &["--timeline-detail", "kernels"]);
    let timeline = kernels.timeline();
    assert_eq!((timeline.of("cta").len(), timeline.of("kernel").len()), (0, 1));
    assert!(kernels.bytes().len() < run.bytes().len());
}

#[test]
fn what_has_not_ended_when_a_run_is_ended_says_so() {
    // The kernel of this run starts at 320.9 us and ends at 324.6 us.
    let run = completed(V100, "vectoradd", &["--stop-at", "322.5 us"]);
    let timeline = run.timeline();
    kernels_agree_in_number(&run, &timeline);
    let end = run.simulated_ps() / 1000;
    assert!(timeline.slices.iter().all(|slice| slice.begin <= slice.end && slice.end <= end));
    let unfinished = |category: &str| {
        timeline
            .of(category)
            .iter()
            .filter(|slice| slice.values.get("unfinished").is_some_and(|it| it == "true"))
            .count()
    };
    assert_eq!(unfinished("kernel"), 1);
    assert!(unfinished("cta") > 0 && unfinished("call") == 1);
    let whole = timeline.slices.iter().find(|slice| slice.track == "run").expect("the run is there");
    assert_eq!(whole.values["ended_by"], "stop_time");
}

fn kernels_agree_in_number(run: &Run, timeline: &Timeline) {
    assert_eq!(timeline.of("kernel").len(), run.table("kernels.csv").len());
}

#[test]
fn a_kernel_that_fails_ends_and_is_not_completed() {
    let folder = TempDir::new().expect("a folder");
    let text = ".version 7.8\n.target sm_70\n.address_size 64\n.visible .entry vectorAdd(.param .u64 a, .param .u64 b, \
                .param .u64 c, .param .u32 n)\n{\n\ttrap;\n}\n";
    fs::write(folder.path().join("kernel.ptx"), text).expect("written");
    let arguments = ["--topology", V100, "--workload", "vectoradd:elements=2048", "--ptx", "kernel.ptx"];
    let called = call_in(folder.path(), &[&arguments[..], &["--timeline", "t.pftrace"]].concat());
    assert_eq!(called.code, 3, "{}", called.stderr);
    let timeline = read(&fs::read(folder.path().join("t.pftrace")).expect("it was written"));
    let kernels = timeline.of("kernel");
    assert_eq!((kernels.len(), kernels[0].number("completed")), (1, 0));
    assert!(!timeline.of("cta").is_empty());
    assert!(timeline.slices.iter().all(|slice| !slice.values.contains_key("unfinished")), "all of it has ended");
    let failed = timeline.slices.iter().find(|slice| slice.values.contains_key("error")).expect("a call fails");
    assert!(failed.values["error"].contains("cudaErrorLaunchFailure") || failed.values["error"].contains("cudaError"));
}

/// Where the file cannot be made, nothing is simulated; where it cannot be written to its end, the result is printed nevertheless.
#[test]
fn a_file_that_cannot_be_written_is_named() {
    let folder = TempDir::new().expect("a folder");
    let arguments = ["--topology", V100, "--workload", "vectoradd:elements=2048", "--format", "csv", "--timeline"];
    for path in ["missing/t.pftrace", "."] {
        let called = call_in(folder.path(), &[&arguments[..], &[path]].concat());
        assert_eq!((called.code, called.stdout.as_str()), (2, ""), "{path}");
        assert!(called.stderr.starts_with(&format!("error: --timeline: cannot write {path}: ")), "{}", called.stderr);
    }
    if Path::new("/dev/full").exists() {
        let called = call_in(folder.path(), &[&arguments[..], &["/dev/full"]].concat());
        assert_eq!(called.code, 2);
        assert!(called.stderr.contains("cannot write /dev/full: No space left on device"), "{}", called.stderr);
        let without = call_in(folder.path(), &arguments[..arguments.len() - 1]);
        assert_eq!(called.stdout, without.stdout, "the statistics are there");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing is left behind");
}

/// A recorded run has the same timeline when it is replayed, but for what the run is called.
#[test]
fn a_replay_has_the_kernels_of_its_recording() {
    let run = completed(V100, "vectoradd:elements=2048", &["--record", "trace"]);
    let arguments = ["replay", "--topology", V100, "--timeline", "again.pftrace", "trace"];
    let called = call_in(run.folder.path(), &arguments);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let again = read(&fs::read(run.folder.path().join("again.pftrace")).expect("it was written"));
    assert_eq!(again.of("kernel"), run.timeline().of("kernel"));
}

/// What Perfetto's own classes and its trace processor say of traces.
#[test]
#[ignore = "needs packages of Python, which tools/check-timeline installs"]
fn perfettos_own_code_reads_the_traces() {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/check-timeline");
    for (topology, workload) in [
        (V100, "lud:size=64"),
        (V100, "concurrent:streams=3,elements=600,rounds=8"),
        ("gtx1080ti_node", "nw:length=128,memory=managed"),
    ] {
        let run = completed(topology, workload, &[]);
        let mut command = std::process::Command::new(&tool);
        command.args(["--run", "out", "t.pftrace"]).current_dir(run.folder.path());
        let output = command.output().expect("the tool runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains(" slices, "), "{said}");
    }
}
