//! `--sample-interval`: the counts of units as time series, in each of its forms.

use crate::call::{Called, call_in};
use balar_tests::assert_snapshot;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const ALL_FORMS: &str = "jsonl,csv,sqlite,ldms-csv,ldms-jsonl";

/// Runs a workload into the folder `out` with these options.
fn sampled(workload: &str, options: &[&str]) -> (TempDir, Called) {
    let folder = TempDir::new().expect("a folder");
    let fixed = ["--topology", "v100_node", "--output", "out", "--format", "json", "--workload", workload];
    let called = call_in(folder.path(), &[&fixed, options].concat());
    (folder, called)
}

fn text(folder: &TempDir, file: &str) -> String {
    fs::read_to_string(folder.path().join("out").join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The rows of one table among JSON lines.
fn rows(text: &str, schema: &str) -> Vec<Map<String, Value>> {
    let lines = text.lines().map(|line| serde_json::from_str::<Map<String, Value>>(line).expect(line));
    lines.filter(|row| row["schema"] == schema).collect()
}

fn number(row: &Map<String, Value>, name: &str) -> u64 {
    row.get(name).and_then(Value::as_u64).unwrap_or_else(|| panic!("{name} in {row:?}"))
}

/// The sum of a counter over the SMs, of a result.
fn sum_of_sms(result: &Value, what: &str) -> u64 {
    let rows = result["roll_ups"].as_array().expect("roll-ups").iter();
    let mut row = rows.filter(|row| row["location"] == "gpu.sm[*]" && row["what"] == what);
    row.next().and_then(|row| row["sum"].as_u64()).unwrap_or_else(|| panic!("{what}"))
}

/// The five counters of the LDMS-GPU study under the names of nvprof, and its identities: a warp has 32 elements, and a warp instruction
/// without divergence is 32 thread instructions.
#[test]
fn five_million_elements_have_a_series_that_ends_with_the_totals() {
    let counters = "active_cycles,inst_executed,thread_inst_executed,inst_issued,warps_launched";
    let options = ["--sample-interval", "1us", "--metrics", counters];
    let (folder, called) = sampled("vectoradd:elements=5000000", &options);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let result: Value = serde_json::from_str(&called.stdout).expect("JSON");
    let lines = text(&folder, "samples.jsonl");
    let gpu = rows(&lines, "balar_gpu");
    assert!(gpu.len() >= 100, "{} samples", gpu.len());
    let last = gpu.last().expect("a sample");
    for (name, what) in [
        ("active_cycles", "cycles_active"),
        ("inst_executed", "inst_executed"),
        ("thread_inst_executed", "thread_inst_executed"),
        ("inst_issued", "inst_issued"),
        ("warps_launched", "warps_launched"),
    ] {
        assert_eq!(number(last, name), sum_of_sms(&result, what), "{name}");
        let series: Vec<u64> = gpu.iter().map(|row| number(row, name)).collect();
        assert!(series.is_sorted() && series[0] == 0, "{name}");
    }
    assert_eq!(number(last, "sim_ps"), result["sim_time_ps"].as_u64().expect("a time"));
    // Blocks of 256: the last one has threads that add nothing.
    assert_eq!(number(last, "warps_launched"), 5_000_000_u64.div_ceil(256) * 256 / 32);
    assert_eq!(number(last, "thread_inst_executed"), 32 * number(last, "inst_executed"));

    // While the kernel runs, rows say so; a launch has rows of its own, and the last of them has the values of its record.
    let of_kernel: Vec<_> = gpu.iter().filter(|row| row["kernel"] == "vectorAdd").collect();
    assert!(of_kernel.len() > 50, "{} rows", of_kernel.len());
    assert!(of_kernel.iter().all(|row| row["launch"] == 0 && row["context"] == 0 && row["kernels"] == 1));
    assert!(gpu.iter().any(|row| row["launch"] == -1 && row["kernel"] == ""));
    let launch = rows(&lines, "balar_launch");
    let (last, before) = launch.split_last().expect("rows");
    assert!(before.iter().all(|row| row["ended"] == 0));
    assert_eq!((number(last, "ended"), number(last, "ctas_ended")), (1, number(last, "ctas")));
    for name in ["inst_executed", "thread_inst_executed", "warps_launched"] {
        assert_eq!(Some(number(last, name)), result["kernels"][0][name].as_u64(), "{name}");
    }
}

/// The search of the LDMS-GPU study: a thread for each node, of which those that are not in the frontier leave at once. Of its first
/// launch it counted 31264 warps for a million nodes, 12.0 instructions a warp and 31.99 lanes an instruction.
#[test]
fn a_search_executes_as_many_instructions_as_its_warps_have() {
    let (folder, called) = sampled("bfs:nodes=100000,block=512", &["--detail", "none"]);
    assert_eq!(called.code, 0, "{}", called.stderr);
    let result: Value = serde_json::from_str(&text(&folder, "stats.json")).expect("JSON");
    let first = &result["kernels"][0];
    let of = |name: &str| first[name].as_u64().unwrap_or_else(|| panic!("{name}"));
    let warps = 100_000_u64.div_ceil(512) * 512 / 32;
    assert_eq!((first["name"].as_str(), of("warps_launched")), (Some("bfs_expand"), warps));
    // One node is in the frontier: what its warp does more is little beside all others, which execute the same few instructions.
    let by_warp = of("inst_executed") as f64 / warps as f64;
    assert!((12.0..=14.0).contains(&by_warp) && by_warp.fract() < 0.1, "{by_warp} instructions a warp");
    let lanes = of("thread_inst_executed") as f64 / of("inst_executed") as f64;
    assert!((31.8..32.0).contains(&lanes), "{lanes} lanes");
}

/// The identities hold for any size, and every sample of each.
#[test]
fn identities_hold_for_any_size_at_any_time() {
    for elements in [1_u32, 31, 33, 1000, 70_000] {
        let (folder, called) = sampled(&format!("vectoradd:elements={elements}"), &["--sample-interval", "100ns"]);
        assert_eq!(called.code, 0, "{}", called.stderr);
        for row in rows(&text(&folder, "samples.jsonl"), "balar_gpu") {
            assert!(number(&row, "sm_thread_inst_executed") <= 32 * number(&row, "sm_inst_executed"), "{row:?}");
            assert!(number(&row, "sm_warps_launched") <= u64::from(elements.div_ceil(256)) * 8, "{row:?}");
        }
    }
}

/// No counter moves, whatever is sampled; and no sample by the number of threads.
#[test]
fn samples_change_nothing_and_do_not_depend_on_threads() {
    let plain = sampled("lud:size=64", &[]);
    let statistics = text(&plain.0, "stats.csv");
    let options = |threads| ["--threads", threads, "--sample-interval", "700ns", "--samples", ALL_FORMS];
    let one = sampled("lud:size=64", &options("1"));
    assert_eq!(one.1.code, 0, "{}", one.1.stderr);
    assert_eq!(text(&one.0, "stats.csv"), statistics);
    for threads in ["2", "4"] {
        let other = sampled("lud:size=64", &options(threads));
        for file in [
            "samples.jsonl",
            "gpu_samples.csv",
            "node_samples.csv",
            "launch_samples.csv",
            "ldms/balar/balar_gpu",
            "ldms/balar/balar_launch.KIND",
            "stats.csv",
        ] {
            assert!(text(&one.0, file) == text(&other.0, file), "{file}, {threads} threads");
        }
        let [one, other] = [&one.0, &other.0].map(|folder| dump(&folder.path().join("out/run.db")));
        assert!(one == other, "run.db, {threads} threads");
    }
}

/// Every row of the series of a database.
fn dump(path: &Path) -> Vec<String> {
    let database = rusqlite::Connection::open(path).expect("a database");
    let query =
        "SELECT series || '|' || sim_ps || '|' || launch || '|' || counter || '|' || coalesce(value, '-') FROM sample";
    let mut rows = database.prepare(query).expect("the view is there");
    let texts = rows.query_map((), |row| row.get(0)).expect("rows");
    texts.map(|text| text.expect("a text")).collect()
}

/// The database, and the CSV files, say what the JSON lines say.
#[test]
fn every_form_has_the_same_values() {
    let options =
        ["--sample-interval", "2us", "--samples", ALL_FORMS, "--metrics", "inst_executed,sm.ipc,dram__bytes_read.sum"];
    let (folder, called) = sampled("lud:size=64", &options);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let lines = text(&folder, "samples.jsonl");
    for schema in ["gpu", "launch"] {
        let from_json = rows(&lines, &format!("balar_{schema}"));
        let mut table =
            csv::Reader::from_path(folder.path().join(format!("out/{schema}_samples.csv"))).expect("a table");
        let from_csv: Vec<BTreeMap<String, String>> = table.deserialize().map(|row| row.expect("a row")).collect();
        let database = rusqlite::Connection::open(folder.path().join("out/run.db")).expect("a database");
        assert_eq!(from_json.len(), from_csv.len());
        for (at, (json, csv)) in from_json.iter().zip(&from_csv).enumerate() {
            for (name, value) in csv.iter().filter(|(_, value)| !value.is_empty()) {
                let expected = json.get(name).unwrap_or_else(|| panic!("{name}"));
                let expected = expected.as_str().map_or_else(|| expected.to_string(), str::to_owned);
                let same = match (expected.parse::<f64>(), value.parse::<f64>()) {
                    (Ok(expected), Ok(value)) => (expected - value).abs() <= 1e-12 * expected.abs(),
                    _ => &expected == value,
                };
                assert!(same, "{schema}, row {at}: {name} {expected} {value}");
            }
            let absent = csv.iter().filter(|(_, value)| value.is_empty()).map(|(name, _)| name);
            absent.for_each(|name| assert!(!json.contains_key(name) || json[name] == "", "{schema}, row {at}: {name}"));
            let query = format!("SELECT inst_executed, sm_ipc FROM {schema}_samples WHERE rowid = {}", at + 1);
            let (count, ipc): (u64, Option<f64>) =
                database.query_row(&query, (), |row| Ok((row.get(0)?, row.get(1)?))).expect("a row");
            assert_eq!(count, number(json, "inst_executed"));
            let expected = json.get("sm_ipc").and_then(Value::as_f64);
            assert_eq!(ipc.is_some(), expected.is_some());
            assert!(ipc.zip(expected).is_none_or(|(ipc, expected)| (ipc - expected).abs() <= 1e-12 * expected));
        }
    }
    let database = rusqlite::Connection::open(folder.path().join("out/run.db")).expect("a database");
    let one = |query: &str| {
        database.query_row(query, (), |row| row.get::<_, i64>(0)).unwrap_or_else(|e| panic!("{query}: {e}"))
    };
    let result: Value = serde_json::from_str(&called.stdout).expect("JSON");
    assert_eq!(one("SELECT count(*) FROM launch"), result["kernels"].as_array().expect("kernels").len() as i64);
    assert_eq!(one("SELECT count(*) FROM statistic"), result["statistics"].as_array().expect("rows").len() as i64);
    assert_eq!(one("SELECT completed AND verified FROM run"), 1);
    let last =
        "SELECT value FROM sample WHERE series = 'gpu' AND counter = 'inst_executed' ORDER BY sim_ps DESC LIMIT 1";
    assert_eq!(one(last), sum_of_sms(&result, "inst_executed") as i64);
    assert_eq!(one("SELECT count(*) FROM counter WHERE meaning = '' OR name = ''"), 0);
}

/// Golden files: the form is that of an ldmsd's store_csv with `typeheader=2`.
#[test]
fn the_form_of_ldms_is_pinned() {
    let options = [
        "--sample-interval",
        "31us",
        "--samples",
        "ldms-csv",
        "--sample-epoch",
        "1795225532",
        "--metrics",
        "smsp__inst_executed.sum,active_cycles,sm.ctas_launched,l2.hit_rate_rd,calls",
        "--stop-at",
        "130us",
    ];
    let (folder, called) = sampled("vectoradd:elements=2048", &options);
    assert_eq!(called.code, 0, "{}", called.stderr);
    let files = ["node", "gpu", "launch"].into_iter().flat_map(|table| {
        ["", ".KIND"].map(|ending| {
            let file = format!("ldms/balar/balar_{table}{ending}");
            format!("--- {file}\n{}", text(&folder, &file))
        })
    });
    assert_snapshot("cli", "samples_in_the_form_of_ldms", &files.collect::<String>());
    // A Time and its microseconds, and simulated time, agree.
    let gpu = text(&folder, "ldms/balar/balar_gpu");
    for line in gpu.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let (seconds, microseconds) = fields[0].split_once('.').expect("a point");
        assert_eq!((seconds, microseconds.len()), ("1795225532", 6), "{line}");
        assert_eq!(microseconds.parse::<u64>().ok(), fields[1].parse::<u64>().ok(), "{line}");
        let simulated: u64 = fields[11].parse().expect("picoseconds");
        assert_eq!(fields[1].parse::<u64>().ok(), Some(simulated / 1_000_000), "{line}");
    }
    let kinds = |table: &str| text(&folder, &format!("ldms/balar/balar_{table}.KIND")).matches(',').count();
    let columns = |table: &str| {
        text(&folder, &format!("ldms/balar/balar_{table}")).lines().next().map(|l| l.matches(',').count())
    };
    for table in ["node", "gpu", "launch"] {
        assert_eq!(Some(kinds(table)), columns(table), "{table}");
    }
}

/// LDMS's json_stream_sampler makes metrics of the members of the first object of a schema, with the types that they have there.
#[test]
fn every_line_for_ldms_has_the_members_and_types_of_the_first_one() {
    let options = ["--sample-interval", "5us", "--samples", "jsonl,ldms-jsonl"];
    let (folder, called) = sampled("lud:size=64", &options);
    assert_eq!(called.code, 0, "{}", called.stderr);
    let lines = text(&folder, "ldms/stream.jsonl");
    let plain = text(&folder, "samples.jsonl");
    for schema in ["balar_node", "balar_gpu", "balar_launch"] {
        let (complete, plain) = (rows(&lines, schema), rows(&plain, schema));
        let shape = |row: &Map<String, Value>| -> Vec<(String, &str)> {
            let kind = |value: &Value| {
                if value.is_f64() {
                    "real"
                } else if value.is_i64() {
                    "count"
                } else {
                    "text"
                }
            };
            row.iter().map(|(name, value)| (name.clone(), kind(value))).collect()
        };
        let first = shape(&complete[0]);
        assert!(schema == "balar_node" || first.iter().any(|(_, kind)| *kind == "real"), "{schema}");
        for (row, plain) in complete.iter().zip(&plain) {
            assert_eq!(shape(row), first, "{schema}");
            assert!(plain.iter().all(|(name, value)| row[name] == *value), "{schema}: {row:?}");
        }
        assert_eq!(complete.len(), plain.len());
    }
}

/// Two GPUs, and two processes on one GPU: each has its own series.
#[test]
fn gpus_and_contexts_keep_their_series_apart() {
    let program = env!("CARGO_BIN_EXE_hardware-under-test");
    let both = "for gpu in \"$1\" \"$2\"; do CUDA_VISIBLE_DEVICES=$gpu \"$0\" reduction:elements=65536 --repeat 1 --cold > /dev/null & done; wait";
    for (topology, gpus) in [("two_v100_node", ["0", "1"]), ("v100_node", ["0", "0"])] {
        let folder = TempDir::new().expect("a folder");
        let options = ["run", "--quiet", "--topology", topology, "--output", "out", "--sample-interval", "1us"];
        let mps = if topology == "v100_node" { &["--set", "gpu.scheduler.mps=true"][..] } else { &[] };
        let command = ["--", "sh", "-c", both, program, gpus[0], gpus[1]];
        let called = call_in(folder.path(), &[&options, mps, &command].concat());
        assert_eq!(called.code, 0, "{topology}: {}", called.stderr);
        let stats: Value = serde_json::from_str(&text(&folder, "stats.json")).expect("JSON");
        let launches = rows(&text(&folder, "samples.jsonl"), "balar_launch");
        let mut last: BTreeMap<u64, &Map<String, Value>> = BTreeMap::new();
        last.extend(launches.iter().map(|row| (number(row, "launch"), row)));
        let kernels = stats["kernels"].as_array().expect("kernels");
        assert_eq!(last.len(), kernels.len(), "{topology}");
        for kernel in kernels {
            let row = last[&kernel["launch"].as_u64().expect("a number")];
            let gpu = kernel["gpu"].as_str();
            assert_eq!((row["kernel"].as_str(), row["gpu"].as_str()), (kernel["name"].as_str(), gpu), "{topology}");
            assert_eq!(
                number(row, "sm_inst_executed"),
                kernel["inst_executed"].as_u64().expect("a number"),
                "{topology}"
            );
        }
        let of =
            |name: &str| launches.iter().map(|row| row[name].to_string()).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(of("context").len(), 2, "{topology}: two processes");
        assert_eq!(of("gpu").len(), if topology == "v100_node" { 1 } else { 2 }, "{topology}");
    }
}

#[test]
fn mistakes_are_told_before_the_run() {
    let (_, called) = sampled("vectoradd:elements=512", &["--sample-interval", "1us", "--metrics", "inst_exeuted"]);
    assert_eq!((called.code, called.stdout.as_str()), (2, ""));
    assert!(called.stderr.contains("inst_exeuted") && called.stderr.contains("inst_executed"), "{}", called.stderr);
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("list"), "active_cycles\n\nwarps_lunched  # of the study\n").expect("written");
    let options = ["--topology", "v100_node", "--output", "out", "--sample-interval", "1us", "--metrics", "./list"];
    let called = call_in(folder.path(), &["--topology", "v100_node", "--sample-interval", "1us"]);
    assert_eq!((called.code, called.stdout.as_str()), (2, ""));
    assert!(called.stderr.contains("--output") && called.stderr.contains("--timeline"), "{}", called.stderr);
    let called = call_in(folder.path(), &options);
    assert_eq!(called.code, 2);
    assert!(called.stderr.contains("./list:3:") && called.stderr.contains("warps_launched"), "{}", called.stderr);
    let called =
        call_in(folder.path(), &["--topology", "v100_node", "--output", "/proc/out", "--sample-interval", "1us"]);
    assert_eq!((called.code, called.stdout.as_str()), (2, ""));
    assert!(called.stderr.contains("cannot write /proc/out"), "{}", called.stderr);
}

/// A limit on the size of files stands for a disk that is full.
#[test]
fn a_full_disk_costs_the_series_and_not_the_result() {
    for form in ["jsonl", "sqlite"] {
        let folder = TempDir::new().expect("a folder");
        let binary = env!("CARGO_BIN_EXE_command-line-under-test");
        let workload = "hotspot:size=128,iterations=4";
        let run = format!(
            "trap '' XFSZ; ulimit -f 64; exec '{binary}' --topology v100_node --workload {workload} --output out --sample-interval 20ns \
             --samples {form} --metrics 'stall_*' --format json"
        );
        let output = Command::new("bash").args(["-c", &run]).current_dir(folder.path()).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let result: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{form}: {error}: {said}"));
        assert_eq!(result["completed"], true, "{form}: {said}");
        assert_eq!(output.status.code(), Some(2), "{form}: {said}");
        assert!(said.contains("cannot write"), "{form}: {said}");
    }
}

/// What an earlier run left of its series does not stay beside the result of another.
#[test]
fn series_of_an_earlier_run_go() {
    let (folder, called) = sampled("vectoradd:elements=512", &["--sample-interval", "1us", "--samples", ALL_FORMS]);
    assert_eq!(called.code, 0, "{}", called.stderr);
    let own = folder.path().join("out");
    fs::write(own.join("notes.txt"), "the user's").expect("written");
    let options = ["--topology", "v100_node", "--output", "out", "--workload", "vectoradd:elements=512"];
    assert_eq!(call_in(folder.path(), &options).code, 0);
    for file in ["samples.jsonl", "gpu_samples.csv", "launch_samples.csv", "node_samples.csv", "run.db", "ldms"] {
        assert!(!own.join(file).exists(), "{file}");
    }
    assert!(own.join("notes.txt").exists() && own.join("stats.json").exists());
}
