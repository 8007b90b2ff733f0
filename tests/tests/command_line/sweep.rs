//! `sweep`: many points, shared, interrupted, gone on with; their results in one place.

use crate::call::{Called, call_in};
use balar_tests::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Four points of a second together.
const SMALL: [&str; 8] = [
    "--topology",
    "v100_node",
    "--workload",
    "vectoradd:elements=256",
    "--set",
    "gpu.clock=500 MHz,1312 MHz",
    "--set",
    "workload.elements=256,512",
];

fn sweep(folder: &Path, arguments: &[&str]) -> Called {
    call_in(folder, &[&["sweep", "--isa", "ptx"], arguments].concat())
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

fn json(path: impl AsRef<Path>) -> serde_json::Value {
    serde_json::from_str(&read(path)).expect("JSON")
}

/// Rows of a CSV file, without the header.
fn rows(path: impl AsRef<Path>) -> Vec<csv::StringRecord> {
    let mut reader = csv::Reader::from_path(path).expect("a file");
    reader.records().map(|row| row.expect("a row")).collect()
}

/// Column `name` of a CSV file.
fn column(path: impl AsRef<Path>, name: &str) -> Vec<String> {
    let mut reader = csv::Reader::from_path(path).expect("a file");
    let at = reader.headers().expect("a header").iter().position(|column| column == name).expect(name);
    reader.records().map(|row| row.expect("a row")[at].to_owned()).collect()
}

/// Names in a folder, in order.
fn names(path: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(path).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command.args(["sweep", "--isa", "ptx"]).args(arguments).current_dir(folder).env_remove("RUST_LOG");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

#[test]
fn every_combination_is_a_point_and_a_run_of_its_own() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let options = ["--output", "deep/sweep", "--metrics", "l2.requests,dram__bytes_read.sum", "--format", "csv"];
    let called = sweep(path, &[&SMALL[..], &options].concat());
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let sweep = path.join("deep/sweep");
    assert_eq!(names(&sweep), ["kernels.csv", "locks", "plot.svg", "points", "results.csv", "sweep.db", "sweep.json"]);
    assert_eq!(names(sweep.join("points")), ["0000", "0001", "0002", "0003"]);
    assert_eq!(read(sweep.join("results.csv")), called.stdout);
    assert_eq!(column(sweep.join("results.csv"), "gpu.clock"), ["500 MHz", "500 MHz", "1312 MHz", "1312 MHz"]);
    assert_eq!(column(sweep.join("results.csv"), "workload.elements"), ["256", "512", "256", "512"]);
    assert_eq!(column(sweep.join("results.csv"), "status"), ["done"; 4]);
    // The results of the last point are the results of the same run.
    let fixed = [
        "--topology",
        "v100_node",
        "--workload",
        "vectoradd:elements=512",
        "--set",
        "gpu.clock=1312 MHz",
        "--isa",
        "ptx",
    ];
    let alone = call_in(path, &[&fixed[..], &["--format", "json"]].concat());
    let alone: serde_json::Value = serde_json::from_str(&alone.stdout).expect("JSON");
    let kernel = &alone["kernels"][0];
    let of = |name: &str| column(sweep.join("results.csv"), name)[3].parse::<u64>().expect(name);
    assert_eq!(alone["sim_time_ps"], of("sim_time_ps"));
    assert_eq!(kernel["cycles"], of("kernel_cycles"));
    assert_eq!(
        kernel["end_ps"].as_u64().zip(kernel["start_ps"].as_u64()).map(|(end, start)| end - start),
        Some(of("kernel_time_ps"))
    );
    assert_eq!(kernel["inst_executed"], of("warp_instructions"));
    let metric = |name: &str| {
        let all = alone["metrics"].as_array().expect("a list");
        all.iter().find(|metric| metric["metric"] == name).expect(name)["sum"].clone()
    };
    assert_eq!(metric("dram.bytes_rd"), of("dram__bytes_read.sum"));
    // A slower clock takes longer.
    let times = column(sweep.join("results.csv"), "kernel_time_ps");
    let times: Vec<u64> = times.iter().map(|time| time.parse().expect("a number")).collect();
    assert!(times[0] > times[2] * 3 / 2 && times[1] > times[3] * 3 / 2, "{times:?}");
    let kernels = rows(sweep.join("kernels.csv"));
    assert_eq!(kernels.len(), 4);
    assert!(kernels.iter().all(|row| &row[1] == "vectorAdd" && &row[2] == "1"), "{kernels:?}");
    let point = json(sweep.join("points/0003/point.json"));
    assert_eq!((&point["status"], &point["exit_code"], &point["index"]), (&"done".into(), &0.into(), &3.into()));
    assert_eq!(point["settings"], serde_json::json!({"gpu.clock": "1312 MHz", "workload.elements": "512"}));
    assert_ne!(point["input_hash"], json(sweep.join("points/0002/point.json"))["input_hash"]);
    assert_eq!(point["input_hash"].as_str().map(str::len), Some(32));
    let chart = read(sweep.join("plot.svg"));
    for wanted in
        ["vectoradd:elements=256 on v100_node", "gpu.clock, MHz", "kernel time, us", "workload.elements = 512"]
    {
        assert!(chart.contains(wanted), "{wanted} is missing in {chart}");
    }
    let database = rusqlite::Connection::open(sweep.join("sweep.db")).expect("a database");
    let count = |query: &str| database.query_row(query, [], |row| row.get::<_, u64>(0)).expect(query);
    assert_eq!(count("SELECT count(*) FROM point WHERE status = 'done'"), 4);
    assert_eq!(count("SELECT sim_time_ps FROM point WHERE point = 3"), of("sim_time_ps"));
    assert_eq!(
        count("SELECT count(*) FROM kernel JOIN setting USING (point) WHERE key = 'gpu.clock' AND number = 500"),
        2
    );
    assert_eq!(count("SELECT count(DISTINCT point) FROM metric WHERE metric = 'dram.bytes_rd'"), 4);
    assert!(count("SELECT count(*) FROM statistic WHERE point = 0 AND statistic = 'inst_executed'") > 0);
}

/// What follows from a number of units is noted once for each value; a number that no wiring has fails its point alone.
#[test]
fn the_number_of_units_of_a_row_is_swept() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let node = ["--topology", "v100_node", "--workload", "vectoradd:elements=4096", "--set", "gpu.l2.count=32,64,33"];
    let called = sweep(path, &[&node[..], &["--output", "out", "--format", "csv"]].concat());
    let note = "note: gpu.crossbar.address_hash follows --set gpu.l2.count=64: the 5 bits of 32 slices, and below them one of the set \
                number; not measured\n";
    assert_eq!((called.code, called.stderr.matches(note).count()), (1, 1), "{}", called.stderr);
    assert!(called.stderr.contains("error: point 2 (gpu.l2.count=33): bad configuration"), "{}", called.stderr);
    let refused = read(path.join("out/points/0002/stderr.txt"));
    assert!(refused.contains("`gpu.l2.count` can be 32 or 36"), "{refused}");
    let results = path.join("out/results.csv");
    assert_eq!(column(&results, "gpu.l2.count"), ["32", "64", "33"]);
    assert_eq!(column(&results, "status"), ["done", "done", "bad_configuration"]);
    assert!(read(path.join("out/plot.svg")).contains("gpu.l2.count"));
    assert_eq!(read(path.join("out/points/0001/stderr.txt")), note);

    let checked = call_in(path, &["topology", "check", "v100_node", "--set", "gpu.l2.count=64"]);
    let units = "v100_node: 162 units, 390 wires, shortest wire 2980 ps\n";
    assert_eq!((checked.code, checked.stdout), (0, format!("{units}{note}")));
}

/// A crossbar with two partitions wants slices that are wired to those of the other one.
#[test]
fn slices_without_wires_to_the_other_partition_are_an_error() {
    for (topology, setting, slice) in [
        ("v100_node", "gpu.crossbar.partitions=2", "gpu.l2[0]"),
        ("a100_sxm_80gb_node", "gpu.l2.count=160", "gpu.l2[80]"),
    ] {
        let checked = call_in(Path::new("."), &["topology", "check", topology, "--set", setting]);
        let said = format!("L2Slice {slice}: far: expected a wire to this port, as `partitions` of gpu.crossbar is 2");
        assert!(checked.code == 2 && checked.stderr.contains(&said), "{}", checked.stderr);
    }
}

/// No single one of these numbers fits the others that the file has.
#[test]
fn numbers_of_units_that_go_together_are_accepted_together() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let point = r#"{"gpu.count": "1", "command_link.count": "1", "data_link.count": "1", "migration_link.count": "1"}"#;
    fs::write(path.join("points.ron"), format!("[{point}]")).expect("written");
    let node = ["--topology", "two_v100_node", "--workload", "vectoradd:elements=4096", "--points-file", "points.ron"];
    let called = sweep(path, &[&node[..], &["--output", "out"]].concat());
    assert_eq!((called.code, called.stderr.as_str()), (0, ""), "{}", called.stdout);
    assert_eq!(column(path.join("out/results.csv"), "status"), ["done"]);
}

#[test]
fn a_misspelt_number_of_units_is_told_before_the_first_point() {
    let folder = TempDir::new().expect("a folder");
    let called = sweep(folder.path(), &["--topology", "v100_node", "--set", "gpu.l2.cout=32,64", "--output", "out"]);
    assert_eq!(called.code, 2, "{}", called.stderr);
    assert!(called.stderr.contains("the row `l2` has no `cout`"), "{}", called.stderr);
    assert!(called.stderr.contains("`gpu.l2.count`") && !folder.path().join("out").exists(), "{}", called.stderr);
}

#[test]
fn finished_points_are_not_run_again() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let options = [&SMALL[..], &["--output", "out"]].concat();
    let first = sweep(path, &options);
    assert_eq!((first.code, first.stderr.as_str()), (0, ""));
    let summary = |point: usize| read(path.join(format!("out/points/000{point}/point.json")));
    let before = [0, 1, 2, 3].map(summary);
    let results = read(path.join("out/results.csv"));
    fs::remove_dir_all(path.join("out/points/0002")).expect("removed");
    fs::remove_file(path.join("out/results.csv")).expect("removed");
    let again = sweep(path, &options);
    assert_eq!((again.code, again.stderr.as_str(), again.stdout), (0, "", first.stdout));
    // They hold how long they took.
    let after = [0, 1, 2, 3].map(summary);
    assert_eq!((&after[..2], &after[3]), (&before[..2], &before[3]));
    assert_ne!(after[2], before[2]);
    assert_eq!(read(path.join("out/results.csv")), results);
}

#[test]
fn a_point_that_fails_is_told_and_the_others_go_on() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let options = [
        "--topology",
        "v100_node",
        "--workload",
        "vectoradd",
        "--set",
        "workload.elements=256,many,512",
        "--output",
        "out",
    ];
    let called = sweep(path, &options);
    assert_eq!(called.code, 1, "{}", called.stderr);
    assert_snapshot("errors", "sweep_point_fails", &format!("exit code {}\n{}", called.code, called.stderr));
    assert_eq!(column(path.join("out/results.csv"), "status"), ["done", "bad_configuration", "done"]);
    let point = json(path.join("out/points/0001/point.json"));
    assert_eq!((&point["exit_code"], &point["input_hash"]), (&2.into(), &serde_json::Value::Null));
    assert!(read(path.join("out/points/0001/stderr.txt")).contains("elements = `many`"));
    // It is not run again unless that is asked for.
    let again = sweep(path, &options);
    assert_eq!((again.code, &again.stderr), (1, &called.stderr));
    assert_eq!(json(path.join("out/points/0001/point.json")), point);
    let retried = sweep(path, &[&options[..], &["--retry-failed"]].concat());
    assert_eq!((retried.code, &retried.stderr), (1, &called.stderr));
    assert_ne!(json(path.join("out/points/0001/point.json")), point, "it took another time");
    let limited = sweep(
        path,
        &[
            "--topology",
            "v100_node",
            "--workload",
            "lud:size=512",
            "--set",
            "gpu.clock=1 GHz",
            "--output",
            "limited",
            "--max-wall",
            "0.2",
        ],
    );
    assert_eq!(
        (limited.code, column(path.join("limited/results.csv"), "status")),
        (1, vec!["limit_or_deadlock".to_owned()])
    );
    assert!(limited.stderr.contains("time limit or deadlock (exit code 4): ended by --max-wall"), "{}", limited.stderr);
}

#[test]
fn a_folder_is_of_one_sweep() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let first = [
        "--topology",
        "v100_node",
        "--workload",
        "vectoradd:elements=256",
        "--set",
        "gpu.clock=1 GHz",
        "--output",
        "out",
    ];
    assert_eq!(sweep(path, &first).code, 0);
    let refused = |name: &str, arguments: &[&str]| {
        let called = sweep(path, arguments);
        assert_eq!((called.code, called.stdout.as_str()), (2, ""), "{name}: {}", called.stderr);
        assert_snapshot("errors", name, &called.stderr.replace(env!("CARGO_PKG_VERSION"), "[version]"));
    };
    let other = [
        "--topology",
        "v100_node",
        "--workload",
        "vectoradd:elements=256",
        "--set",
        "gpu.clock=2 GHz",
        "--output",
        "out",
    ];
    refused("sweep_of_another_value", &other);
    refused("sweep_of_another_workload", &["--topology", "v100_node", "--set", "gpu.clock=1 GHz", "--output", "out"]);
    // A topology that has changed in between is another one.
    fs::write(path.join("node.ron"), call_in(path, &["topology", "show", "v100_node"]).stdout).expect("written");
    let own = [
        "--topology",
        "node.ron",
        "--workload",
        "vectoradd:elements=256",
        "--set",
        "gpu.clock=1 GHz",
        "--output",
        "own",
    ];
    assert_eq!(sweep(path, &own).code, 0);
    fs::write(path.join("node.ron"), read(path.join("node.ron")).replace("2660 MHz", "2661 MHz")).expect("written");
    refused("sweep_of_a_changed_topology", &own);
    assert_eq!(sweep(path, &[&other[..], &["--restart"]].concat()).code, 0);
    assert_eq!(column(path.join("out/results.csv"), "gpu.clock"), ["2 GHz"]);
    let file = path.join("out/sweep.json");
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    let of_another = read(&file).replace(&version, "\"version\": \"0.0.9\"");
    fs::write(&file, of_another).expect("written");
    refused("sweep_of_another_version", &other);
    let collected = call_in(path, &["sweep", "collect", "out"]);
    assert!(collected.code == 2 && collected.stderr.contains("version 0.0.9"), "{}", collected.stderr);
    assert_eq!(sweep(path, &[&other[..], &["--restart"]].concat()).code, 0);
}

#[test]
fn mistakes_are_told_before_the_first_point() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    fs::write(path.join("points.ron"), "[\n    {\"gpu.clock\": \"1 GHz\"},\n    {\"gpu.clock\" \"2 GHz\"},\n]\n")
        .expect("written");
    let program = env!("CARGO_BIN_EXE_driver-client");
    let node = ["--topology", "v100_node", "--output", "out"];
    for (name, arguments, named) in [
        ("sweep_unknown_unit", &["--set", "gpu.sn[*].clock=1 GHz,2 GHz"][..], &["`sm`"][..]),
        ("sweep_unknown_parameter", &["--set", "gpu.sm[*].clok=1 GHz,2 GHz"], &["clock"]),
        ("sweep_value_that_no_unit_takes", &["--set", "gpu.clock=fast,faster"], &["frequency"]),
        ("sweep_unknown_workload_parameter", &["--workload", "lud", "--set", "workload.sise=64,128"], &["`size`"]),
        ("sweep_unknown_workload", &["--set", "workload=lud,vectorad"], &["`vectoradd`"]),
        ("sweep_unknown_topology", &["--set", "topology=v100_node,v100_nod"], &["v100_node"]),
        ("sweep_key_twice", &["--set", "gpu.clock=1 GHz", "--set", "gpu.clock=2 GHz"], &["gpu.clock"]),
        ("sweep_value_twice", &["--set", "gpu.clock=1 GHz,1 GHz"], &["1 GHz"]),
        ("sweep_of_nothing", &[], &["--set"]),
        ("sweep_points_file", &["--points-file", "points.ron"], &["points.ron:3:"]),
        ("sweep_points_beyond", &["--set", "gpu.clock=1 GHz,2 GHz", "--points", "1..5"], &["2 points"]),
        ("sweep_unknown_metric", &["--set", "gpu.clock=1 GHz", "--metrics", "inst_execute"], &["inst_executed"]),
        ("sweep_unknown_plot", &["--set", "gpu.clock=1 GHz", "--plot", "kernel_tim_ps"], &["kernel_time_ps"]),
        ("sweep_value_for_no_name", &["--set", "sise=1,2", "--", program, "--size={size}"], &["`size`", "`sise`"]),
        (
            "sweep_name_beside",
            &["--set", "size=1", "--set", "sise=1,2", "--", program, "{size}"],
            &["`sise`", "`size`"],
        ),
        ("sweep_workload_beside_a_program", &["--set", "workload=lud,gemm", "--", program], &["program"]),
    ] {
        let arguments = if name == "sweep_unknown_topology" { [&node[2..], arguments] } else { [&node[..], arguments] };
        let called = sweep(path, &arguments.concat());
        assert_eq!((called.code, called.stdout.as_str()), (2, ""), "{name}: {}", called.stderr);
        for word in named {
            assert!(called.stderr.contains(word), "{name} does not name {word}:\n{}", called.stderr);
        }
        assert_snapshot("errors", name, &called.stderr);
        assert!(!path.join("out/points").exists(), "{name}: nothing was run");
    }
    let called = call_in(path, &["sweep", "collect", "nowhere"]);
    assert_eq!((called.code, called.stdout.as_str()), (2, ""));
    assert_snapshot("errors", "sweep_collect_nothing", &called.stderr);
    let called = sweep(path, &[&node[..], &["--set", "gpu.clock=1 GHz", "--parquet"]].concat());
    assert_eq!(called.code, 2);
    assert_snapshot("errors", "sweep_without_parquet", &called.stderr);
}

/// A file of points, a swept topology, and commas within values.
#[test]
fn points_of_a_file_run() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let text = "// Two caches.\n[\n    {\"gpu.sm[*].shared_carve_outs\": [\"32 KiB\", \"96 KiB\"], \"workload.elements\": 256},\n    \
                {\"topology\": \"p100_node\", \"workload\": \"lud\", \"workload.size\": 32},\n]\n";
    fs::write(path.join("points.ron"), text).expect("written");
    let options =
        ["--topology", "v100_node", "--points-file", "points.ron", "--set", "gpu.l2[*].ways=8,16", "--output", "out"];
    let called = sweep(path, &options);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let of = |name: &str| column(path.join("out/results.csv"), name);
    assert_eq!(of("gpu.sm[*].shared_carve_outs"), ["[\"32 KiB\", \"96 KiB\"]", "[\"32 KiB\", \"96 KiB\"]", "", ""]);
    assert_eq!(
        (of("topology"), of("workload")),
        (
            ["", "", "p100_node", "p100_node"].map(str::to_owned).to_vec(),
            ["", "", "lud", "lud"].map(str::to_owned).to_vec()
        )
    );
    assert_eq!(
        (of("status"), of("gpu.l2[*].ways")),
        (vec!["done".to_owned(); 4], ["8", "16", "8", "16"].map(str::to_owned).to_vec())
    );
    let document = json(path.join("out/points/0003/stats.json"));
    assert_eq!((&document["topology"], &document["workload"]["name"]), (&"p100_node".into(), &"lud".into()));
}

#[test]
fn a_program_gets_the_values_in_its_arguments() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let program = env!("CARGO_BIN_EXE_driver-client");
    let called = call_in(
        path,
        &["sweep", "--topology", "v100_node", "--set", "size=1,2", "--output", "out", "--", program, "--size={size}"],
    );
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    assert_eq!(column(path.join("out/results.csv"), "status"), ["done", "done"]);
    for (point, argument) in [(0, "--size=1"), (1, "--size=2")] {
        let place = path.join(format!("out/points/000{point}"));
        assert_eq!(read(place.join("stdout.txt")), "passed\n");
        assert_eq!(json(place.join("stats.json"))["workload"]["parameters"]["1"], argument);
    }
    // Its own exit code is a failure of the program, whatever the number means elsewhere.
    let called = call_in(
        path,
        &[
            "sweep",
            "--topology",
            "v100_node",
            "--set",
            "code=0,2",
            "--output",
            "codes",
            "--",
            "sh",
            "-c",
            "exit {code}",
        ],
    );
    assert_eq!(called.code, 1, "{}", called.stderr);
    assert_eq!(column(path.join("codes/results.csv"), "status"), ["done", "program_failed"], "{}", called.stderr);
    assert_eq!(column(path.join("codes/results.csv"), "exit_code"), ["0", "2"]);
}

/// Parts of a sweep, at the same time and in any order, come to what one process comes to.
#[test]
fn parts_make_the_same_whole() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let serial = [&SMALL[..], &["--output", "serial", "--jobs", "1"]].concat();
    assert_eq!(sweep(path, &serial).code, 0);
    let part = |range: &'static str| [&SMALL[..], &["--output", "parts", "--points", range]].concat();
    let late = start(path, &part("2.."));
    let called = sweep(path, &part("0..1"));
    assert_eq!((called.code, called.stdout.lines().count()), (0, 3), "{}", called.stdout);
    assert_eq!(late.wait_with_output().expect("it ends").status.code(), Some(0));
    assert!(!path.join("parts/results.csv").exists(), "a part does not collect");
    let collected = call_in(path, &["sweep", "collect", "parts"]);
    assert_eq!((collected.code, collected.stderr.as_str()), (0, "1 of 4 points are not finished\n"));
    assert_eq!(column(path.join("parts/results.csv"), "status"), ["done", "not_run", "done", "done"]);
    // Two that do all of it share the remaining points, and both end when it is done.
    let whole = [&SMALL[..], &["--output", "parts"]].concat();
    let other = start(path, &whole);
    assert_eq!(sweep(path, &whole).code, 0);
    assert_eq!(other.wait_with_output().expect("it ends").status.code(), Some(0));
    assert_eq!(call_in(path, &["sweep", "collect", "parts"]).code, 0);
    for file in ["results.csv", "kernels.csv", "plot.svg"] {
        assert_eq!(read(path.join("parts").join(file)), read(path.join("serial").join(file)), "{file}");
    }
    assert_eq!(names(path.join("parts/locks")), ["sweep"]);
}

/// Points that take long enough to be in the middle of.
const LONG: [&str; 6] =
    ["--topology", "v100_node", "--workload", "lud:size=128", "--set", "gpu.sm[*].latencies.integer=4,5,6,7,8"];

/// Waits until a point is finished and another has begun.
fn wait_for_the_middle(points: &Path) {
    for _ in 0..6000 {
        let there = if points.is_dir() { names(points) } else { Vec::new() };
        let partial = there.iter().filter(|name| name.contains("partial")).count();
        if partial > 0 && there.len() > partial {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("no point is finished in a minute");
}

#[test]
fn an_interrupted_sweep_goes_on_where_it_was() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    assert_eq!(sweep(path, &[&LONG[..], &["--output", "serial", "--jobs", "1"]].concat()).code, 0);
    let options = [&LONG[..], &["--output", "out", "--jobs", "1"]].concat();
    for (signal, code, said) in
        [(Signal::INT, Some(130), true), (Signal::TERM, Some(143), true), (Signal::KILL, None, false)]
    {
        let _ = fs::remove_dir_all(path.join("out"));
        let child = start(path, &options);
        wait_for_the_middle(&path.join("out/points"));
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let output = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), code, "{stderr}");
        let goes_on = stderr.contains("of 5 points are finished; the same command goes on with the others");
        assert_eq!(goes_on, said, "{signal:?}: {stderr}");
        assert!(!path.join("out/results.csv").exists());
        let finished = names(path.join("out/points"));
        let partial = finished.iter().filter(|name| name.contains("partial")).count();
        assert_eq!(partial, usize::from(signal == Signal::KILL), "{finished:?}");
        let first = read(path.join("out/points/0000/point.json"));
        assert_eq!(sweep(path, &options).code, 0);
        assert_eq!(names(path.join("out/points")), ["0000", "0001", "0002", "0003", "0004"]);
        assert_eq!(read(path.join("out/points/0000/point.json")), first, "it is not run again");
        for file in ["results.csv", "kernels.csv"] {
            assert_eq!(read(path.join("out").join(file)), read(path.join("serial").join(file)), "{file}");
        }
    }
}

#[test]
fn what_cannot_be_written_is_named_and_is_no_result() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let binary = env!("CARGO_BIN_EXE_command-line-under-test");
    let mut command = Command::new("sh");
    // Blocks of 512 bytes: the definition fits, a document does not.
    command.args(["-c", "ulimit -f 64; exec \"$0\" sweep --isa ptx --output out --jobs 1 \"$@\"", binary]);
    let output = command.args(SMALL).current_dir(path).stdin(Stdio::null()).output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.starts_with("error: point 0: cannot write out/points/0000: its files are longer than"), "{stderr}");
    assert_eq!(names(path.join("out/points")), [""; 0]);
    assert_eq!(sweep(path, &[&SMALL[..], &["--output", "out"]].concat()).code, 0, "with room, it goes on");
    let called = sweep(path, &[&SMALL[..], &["--output", "/dev/null/out"]].concat());
    assert_eq!((called.code, called.stdout.as_str()), (2, ""));
    assert!(called.stderr.starts_with("error: cannot write /dev/null/out: "), "{}", called.stderr);
}
