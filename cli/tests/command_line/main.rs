//! The binary from outside: arguments, exit codes, formats, error texts.

mod catalogues;
mod topologies;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const RING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ring.ron");

/// A small run on a real node: 8 CTAs.
const SMALL: [&str; 4] = ["--topology", "v100_node", "--workload", "vectoradd:elements=2048"];

/// What came of a call.
struct Called {
    code: i32,
    stdout: String,
    stderr: String,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_balar-actors"));
    // Whether this machine has a ptxas must not matter.
    command.args(arguments).env_remove("RUST_LOG").env_remove("BALAR_TOPOLOGY");
    command.env("BALAR_PTXAS", "").stdin(Stdio::null());
    command
}

/// The small run with more options.
fn small<'a>(options: &[&'a str]) -> Vec<&'a str> {
    SMALL.iter().chain(options).copied().collect()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

fn call(arguments: &[&str]) -> Called {
    let output = command(arguments).output().expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    let code = output.status.code().expect("it ends by itself");
    Called { code, stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// The text without the values of the wall clock.
fn redacted(text: &str) -> Vec<&str> {
    let clock = ["real time", "  \"wall_seconds\"", "  \"threads\"", "  \"warp_instructions_per_second\""];
    text.lines().filter(|line| !clock.iter().any(|start| line.starts_with(start))).collect()
}

#[test]
fn mistakes_in_arguments_end_with_2_and_say_what_is_right() {
    for (arguments, said) in [
        (&["--topology", RING, "--thread", "3"][..], "'--threads'"),
        (&["--topology", RING, "--threads", "0"], "0 is not in 1..=1024"),
        (&["--topology", RING, "--format", "yaml"], "table, json, csv"),
        (&["--topology", "v100_node", "--isa", "sass", "--compiler", "clang"], "--isa sass: --compiler names PTX"),
        (&["--topology", "v100_node", "--isa", "auto", "--ptxas", "/nonexistent/ptxas"], "--ptxas: /nonexistent/ptxas"),
        (&["--topology", "v100_node", "--isa", "ptx", "--ptxas", "/bin/true"], "nothing is assembled where PTX is"),
        (&["--topology", "p100_node", "--isa", "sass"], "workload vectoradd has no machine code for sm_60"),
        (&["--topology", RING, "--set", "a.latency"], "expected PATH=VALUE"),
        (&["--topology", "v100_node", "--workload", "vectorad"], "vectoradd"),
        (&["--topology", "v100_node", "--workload", "lud:siz=3"], "size"),
        (&["--topology", "v100_nod"], "v100_node"),
        (&["--topology", "V100"], "the nearest name is `v100_node`"),
        (&["snapshot", "check", "--topology", RING, "/nonexistent/pinned"], "snapshot accept"),
        (&["units", "crosbar"], "did you mean `Crossbar`?"),
        (&["workloads", "luud"], "lud"),
        (&["metrics", "inst_execute"], "the nearest name is `inst_executed`"),
        (&["replay", "--topology", RING], "replay"),
        (&[], "--topology"),
    ] {
        let called = call(arguments);
        assert_eq!(called.code, 2, "{arguments:?}: {}", called.stderr);
        assert!(called.stderr.contains(said), "{arguments:?}: {}", called.stderr);
        assert_eq!(called.stdout, "", "{arguments:?}");
    }
}

#[test]
fn a_run_without_a_topology_has_that_of_the_environment_or_the_default_one() {
    let workload = ["--workload", "vectoradd:elements=32", "--format", "json"];
    let note = "no topology is named, so the node is v100_node";
    let called = call(&workload);
    assert_eq!((called.code, &json(&called.stdout)["topology"]), (0, &"v100_node".into()), "{}", called.stderr);
    assert!(called.stderr.contains(note) && called.stderr.contains("BALAR_TOPOLOGY"), "{}", called.stderr);
    assert_eq!(call(&[&workload[..], &["--quiet"]].concat()).stderr, "");
    let output = command(&workload).env("BALAR_TOPOLOGY", "t4_node").output().expect("the binary runs");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!((json(&stdout)["topology"].clone(), output.stderr.as_slice()), ("t4_node".into(), &b""[..]));
    // An option has precedence.
    let output = command(&small(&["--format", "json"])).env("BALAR_TOPOLOGY", "t4_node").output().expect("it runs");
    assert_eq!(json(&String::from_utf8(output.stdout).expect("UTF-8"))["topology"], "v100_node");
}

#[test]
fn without_arguments_there_is_help() {
    let called = call(&[]);
    assert_eq!((called.code, called.stdout.as_str()), (2, ""));
    let help = call(&["--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (0, ""));
    let groups = ["What runs:", "Change the node:", "Detail and limits:", "What is printed:", "Files:", "Looking on:"];
    for said in
        groups.into_iter().chain(["Examples:", "-t, --topology", "-w, --workload", "-o, --output", "-q, --quiet"])
    {
        assert!(called.stderr.contains(said), "{said}: {}", called.stderr);
        assert!(help.stdout.contains(said), "{said}: {}", help.stdout);
    }
    assert!(help.stdout.contains("Exit codes:"), "{}", help.stdout);
}

#[test]
fn stdout_carries_the_result_alone() {
    let called = call(&small(&["--format", "json"]));
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let json = json(&called.stdout);
    assert_eq!((&json["schema"], &json["program"]), (&1.into(), &"balar-actors".into()));
    assert_eq!((&json["topology"], &json["isa"]), (&"v100_node".into(), &"sass".into()));
    assert_eq!(json["workload"]["name"], "vectoradd");
    assert_eq!(json["workload"]["parameters"]["elements"], 2048);
    assert_eq!((&json["completed"], &json["verified"]), (&true.into(), &true.into()));
    let kernel = &json["kernels"][0];
    assert_eq!((&kernel["launch"], &kernel["name"], &kernel["gpu"]), (&0.into(), &"vectorAdd".into(), &"gpu".into()));
    assert_eq!((&kernel["grid"], &kernel["block"]), (&serde_json::json!([8, 1, 1]), &serde_json::json!([256, 1, 1])));
    // 2048 threads are 64 warps.
    assert_eq!(kernel["warps_launched"], 64);
    let of = |key: &str| kernel[key].as_u64().unwrap_or_else(|| panic!("{key}"));
    assert_eq!(of("thread_inst_executed"), 32 * of("inst_executed"));
    assert!(of("end_ps") > of("start_ps") && of("cycles") > 0);
}

#[test]
fn results_are_the_same_bytes_but_for_the_wall_clock() {
    for options in [&[][..], &["--details"], &["--format", "json"], &["--format", "csv"]] {
        let one = call(&small(options)).stdout;
        let two = call(&small(&[options, &["--threads", "2"]].concat())).stdout;
        assert_eq!(redacted(&one), redacted(&two));
        assert!(redacted(&one).len() > if options.is_empty() { 15 } else { 100 }, "{options:?}: {one}");
    }
}

#[test]
fn a_table_is_one_screen_unless_more_is_asked_for() {
    let summary = call(&small(&[])).stdout;
    assert!(summary.lines().count() <= 40, "{summary}");
    for said in ["result verified", "vectorAdd", "gpu.hbm[*]", "stall_long_scoreboard", "--details"] {
        assert!(summary.contains(said), "{said}: {summary}");
    }
    let details = call(&small(&["--details"])).stdout;
    assert!(details.contains(" ctas_completed") && details.contains("cycle at 1312 MHz"), "{details}");
}

#[test]
fn a_kernel_that_has_not_run_is_a_mistake() {
    let called = call(&small(&["--kernel", "vectorSub"]));
    assert_eq!(called.code, 2, "{}", called.stderr);
    for said in ["--kernel vectorSub: no launch is of such a kernel", "the nearest name is `vectorAdd`"] {
        assert!(called.stderr.contains(said), "{said}: {}", called.stderr);
    }
    assert!(called.stdout.contains("0 of 1 launches are chosen"), "the result is printed: {}", called.stdout);
    assert_eq!(call(&small(&["--kernel", "vectorA.*"])).code, 0);
}

/// lud launches three kernels for each of its blocks but the last, which has one.
#[test]
fn a_run_ends_after_so_many_launches() {
    let lud = ["--topology", "v100_node", "--workload", "lud:size=64", "--format", "json"];
    let whole = json(&call(&lud).stdout);
    let limited = call(&[&lud[..], &["--launches", "2"]].concat());
    assert_eq!((limited.code, limited.stderr.as_str()), (0, ""));
    let limited = json(&limited.stdout);
    assert_eq!(
        (&limited["ended_by"], &limited["completed"], &limited["verified"]),
        (&"launches".into(), &false.into(), &serde_json::Value::Null)
    );
    let kernels = |document: &serde_json::Value| document["kernels"].as_array().expect("a list").clone();
    assert_eq!(kernels(&limited).len(), 2);
    // They are over, and did what they do in the whole run.
    for (limited, whole) in kernels(&limited).iter().zip(kernels(&whole)) {
        assert_eq!(limited["cycles"], whole["cycles"]);
    }
    let table = call(&["--topology", "v100_node", "--workload", "lud:size=64", "--launches", "2"]).stdout;
    assert!(table.contains("partial: --launches 2, result not checked"), "{table}");
    let beyond = json(&call(&[&lud[..], &["--launches", "1000"]].concat()).stdout);
    assert_eq!((&beyond["ended_by"], &beyond["verified"]), (&"completed".into(), &true.into()));
}

#[test]
fn what_run_cannot_run_is_told_with_what_is_right() {
    for (arguments, said) in [
        (&["run", "--workload", "gemm"][..], "`balar-actors --workload NAME` runs a built-in workload"),
        (&["run", "-w", "gemm"], "`balar-actors --workload NAME` runs a built-in workload"),
        (&["run", "gemm:size=64"], "`balar-actors --workload gemm:size=64` runs the built-in workload"),
        (&["run", "--timline", "t", "./app"], "the nearest option is `--timeline`"),
    ] {
        let called = call(arguments);
        assert_eq!((called.code, called.stdout.as_str()), (2, ""), "{arguments:?}: {}", called.stderr);
        assert!(called.stderr.contains(said), "{arguments:?}: {}", called.stderr);
    }
}

#[test]
fn a_program_without_a_cuda_call_is_told() {
    let called = call(&["run", "--topology", "v100_node", "true"]);
    assert_eq!((called.code, called.stdout.as_str()), (0, ""), "{}", called.stderr);
    assert_eq!(called.stderr, "balar-actors: true made no CUDA call that takes time: nothing was simulated\n");
}

#[test]
fn rows_can_be_chosen() {
    let chosen = ["--show", "gpu.l2[0..2]", "--show", "gpu.hbm", "--metrics", "sectors_read,row_*"];
    let table = call(&small(&chosen)).stdout;
    let rows = |location: &str| {
        let mut lines = table.lines().skip_while(|line| line.split_whitespace().next() != Some(location));
        lines.next().map(|line| line.split_whitespace().take(3).collect::<Vec<_>>())
    };
    assert_eq!(rows("gpu.l2[0..2]"), Some(vec!["gpu.l2[0..2]", "sectors_read", "2"]), "{table}");
    assert_eq!(rows("gpu.hbm[*]"), Some(vec!["gpu.hbm[*]", "sectors_read", "4"]), "{table}");
    assert!(!table.contains("queue_maximum") && !table.contains("gpu.sm"), "{table}");
    let csv = call(&small(&[&chosen[..], &["--format", "csv"]].concat())).stdout;
    assert_eq!(csv.lines().filter(|line| line.starts_with("gpu.l2[")).count(), 2, "{csv}");
    for (option, said) in [
        ("--show=gpu.l3[*]", "gpu.l2[*]"),
        ("--metrics=sector_read", "sectors_read"),
        ("--metrics=inst_executed,active_cycle", "--metrics active_cycle: no unit counts that"),
        ("--metrics=active_cycle", "the nearest name is `active_cycles`"),
        ("--metrics=smsp__inst_execute.sum", "the nearest name is `smsp__inst_executed.sum`"),
        ("--show=gpu.", "a name is missing"),
    ] {
        let called = call(&small(&[option]));
        assert_eq!((called.code, called.stdout.as_str()), (2, ""), "{option}");
        assert!(called.stderr.contains(said), "{option}: {}", called.stderr);
    }
}

/// The five counters of the study of LDMS, in VectorAdd: a warp has 32 elements, and no lanes part.
#[test]
fn the_identities_of_vectoradd_hold_for_any_size() {
    let folder = folder();
    let list = folder.path().join("metadata");
    let names = ["warps_launched", "inst_executed", "thread_inst_executed", "active_cycles", "inst_issued"];
    fs::write(&list, format!("# counters of the study\n{}\n", names.join("\n"))).expect("written");
    for isa in ["ptx", "auto"] {
        let mut of_warps = Vec::new();
        for elements in [32, 2048, 20_000, 163_840] {
            let workload = format!("vectoradd:elements={elements}");
            let list = list.to_str().expect("UTF-8");
            let options = [
                "--topology",
                "v100_node",
                "--workload",
                &workload,
                "--isa",
                isa,
                "--metrics",
                list,
                "--format",
                "nvprof",
            ];
            let called = call(&options);
            assert_eq!(called.code, 0, "{}", called.stderr);
            let value = |name: &str| -> u64 {
                let mut lines = called.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
                let cells =
                    lines.find(|cells| cells.get(1) == Some(&name)).unwrap_or_else(|| panic!("{}", called.stdout));
                assert_eq!(cells[0], "1", "invocations");
                // A metric has a description before its values, and no total.
                cells[cells.len() - 1].parse().expect("a count")
            };
            let [warps, inst, thread_inst, active, issued] = names.map(value);
            // A CTA of 256 threads is whole.
            assert_eq!(warps, (elements as u64).div_ceil(256) * 8, "{elements}");
            if elements % 256 == 0 {
                assert_eq!(warps, elements as u64 / 32);
                assert_eq!(thread_inst, 32 * inst);
                of_warps.push(inst / warps);
                assert_eq!(inst % warps, 0, "every warp does the same");
            }
            assert!(issued > 0 && active > 0, "{}", called.stdout);
            // The same of the run as a whole, under other names.
            let csv = call(
                &[&options[..6], &["--format", "csv", "--metrics"], &["sm__warps_launched.sum,gpu_sim_insn"]].concat(),
            );
            let sum = |name: &str| -> u64 {
                let mut reader = csv::Reader::from_reader(csv.stdout.as_bytes());
                let rows = reader.records().map(|row| row.expect("a row")).filter(|row| &row[1] == name);
                rows.map(|row| row[2].parse::<u64>().expect("a count")).sum()
            };
            assert_eq!((sum("sm__warps_launched.sum"), sum("gpu_sim_insn")), (warps, thread_inst), "{}", csv.stdout);
        }
        assert_eq!(of_warps.len(), 2);
        assert_eq!(of_warps[0], of_warps[1], "instructions of a warp do not depend on the size");
    }
}

#[test]
fn profiles_of_a_run_are_read_back() {
    let lud = ["--topology", "v100_node", "--workload", "lud:size=48", "--format"];
    let launches = json(&call(&[&lud[..], &["json"]].concat()).stdout)["kernels"].as_array().expect("a list").clone();
    let called = call(&[&lud[..], &["ncu-csv", "--metrics", "smsp__inst_executed.sum,l1.evictions"]].concat());
    let mut reader = csv::Reader::from_reader(called.stdout.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
    assert_eq!(rows.len(), launches.len() + 1, "{}", called.stdout);
    for (row, launch) in rows.iter().zip(&launches) {
        assert_eq!((&row[0], &row[4]), (launch["launch"].to_string().as_str(), launch["name"].as_str().expect("text")));
        assert_eq!((&row[12], &row[14]), ("smsp__inst_executed.sum", launch["inst_executed"].to_string().as_str()));
    }
    // What is not known of each launch is that of the run.
    let last = rows.last().expect("rows");
    assert_eq!((&last[0], &last[4], &last[12]), ("", "(whole run)", "l1.evictions"));
    let called = call(&[&lud[..], &["sst-csv"]].concat());
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(called.stdout.as_bytes());
    let header = reader.headers().expect("a header").clone();
    assert_eq!(header.iter().collect::<Vec<_>>()[6..], ["Sum.u64", "SumSQ.u64", "Count.u64", "Min.u64", "Max.u64"]);
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
    let sum: u64 =
        rows.iter().filter(|row| &row[1] == "inst_executed").map(|row| row[6].parse::<u64>().expect("a count")).sum();
    assert_eq!(sum, launches.iter().map(|launch| launch["inst_executed"].as_u64().expect("a count")).sum::<u64>());
}

#[test]
fn sections_have_what_is_derived() {
    for workload in ["vectoradd:elements=20000", "lud:size=48", "histogram"] {
        let called = call(&["--topology", "v100_node", "--workload", workload, "--sections"]);
        assert_eq!(called.code, 0, "{}", called.stderr);
        let text = called.stdout;
        for title in ["Speed of light", "Memory", "Accesses", "Occupancy", "Warp states"] {
            assert!(text.contains(&format!("\n\n{title}\n")), "{title}: {text}");
        }
        let cells: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(cells.contains(&vec!["together", "100.00"]), "{text}");
        let shares =
            cells.iter().skip_while(|cells| cells.first() != Some(&"state")).skip(2).map_while(|cells| cells.get(1));
        let shares: Vec<f64> = shares.map(|share| share.parse().expect("a share")).collect();
        // The last one is their sum.
        let sum: f64 = shares[..shares.len() - 1].iter().sum();
        assert!(shares.len() == 15 && (sum - 100.0).abs() < 0.1, "{text}");
        let level = |name: &str| -> f64 {
            let line =
                cells.iter().find(|cells| cells.first() == Some(&name)).unwrap_or_else(|| panic!("{name}: {text}"));
            line[1].parse().unwrap_or_else(|_| panic!("{line:?}"))
        };
        for name in ["SM", "memory", "gpu.l2[*]"] {
            assert!((0.0..=100.0).contains(&level(name)), "{name}: {text}");
        }
    }
    // A CTA of vectorAdd has 256 threads of few registers: 8 CTAs fill an SM, and a grid of 8 CTAs fills none.
    let called = call(&small(&["--sections"]));
    let line = called.stdout.lines().find(|line| line.contains(" grid ")).expect("the grid is what limits it");
    assert_eq!(line.split_whitespace().next(), Some("100.0"), "{}", called.stdout);
}

#[test]
fn launches_can_be_chosen() {
    let folder = folder();
    let path = folder.path().to_str().expect("UTF-8");
    let lud = ["--topology", "v100_node", "--workload", "lud:size=48", "--output", path];
    let called =
        call(&[&lud[..], &["--kernel", "^lud_diagonal$", "--launch-skip", "1", "--launch-count", "1"]].concat());
    assert_eq!(called.code, 0, "{}", called.stderr);
    assert!(
        called.stdout.contains(" 1 of 7 launches are chosen\n") && !called.stdout.contains("lud_internal"),
        "{}",
        called.stdout
    );
    let kernels = fs::read_to_string(folder.path().join("kernels.csv")).expect("written");
    assert_eq!(kernels.lines().count(), 2, "{kernels}");
    assert!(kernels.lines().any(|line| line.starts_with("3,lud_diagonal,")), "{kernels}");
    let none = call(&[&lud[..], &["--kernel", "nobody"]].concat());
    assert!(none.stdout.contains(" 0 of 7 launches are chosen\n"), "{}", none.stdout);
}

#[test]
fn csv_has_a_line_for_each_statistic() {
    let csv = call(&small(&["--format", "csv"])).stdout;
    let json = json(&call(&small(&["--format", "json"])).stdout);
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("location,what,value,unit"));
    for row in json["statistics"].as_array().expect("a list") {
        let text = |key: &str| row[key].as_str().map_or_else(|| row[key].to_string(), str::to_owned);
        let line = [text("location"), text("what"), text("value"), text("unit")].join(",");
        assert_eq!(lines.next(), Some(line.as_str()));
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn the_folder_holds_every_artefact() {
    let folder = folder();
    let path = folder.path().join("new/out");
    let called = call(&small(&["--format", "csv", "--output", path.to_str().expect("UTF-8")]));
    assert_eq!(called.code, 0, "{}", called.stderr);
    let read = |name: &str| fs::read_to_string(path.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(read("stats.csv"), called.stdout);
    assert!(read("summary.txt").starts_with("topology   v100_node\nworkload   vectoradd elements=2048"));
    assert_eq!(read("kernels.csv").lines().count(), 2);
    assert_eq!(json(&read("stats.json"))["completed"], true);
    let expanded = path.join("topology.ron");
    let again = call(&["--topology", expanded.to_str().expect("UTF-8"), "--format", "csv"]);
    assert_eq!(again.stdout, called.stdout, "the topology that is written is the one that ran: {}", again.stderr);
}

#[test]
fn a_folder_that_cannot_be_made_ends_before_the_run() {
    let called = call(&small(&["--output", &format!("{RING}/out")]));
    assert_eq!((called.code, called.stdout.as_str()), (2, ""));
    assert!(called.stderr.contains("cannot write"), "{}", called.stderr);
}

#[test]
fn a_topology_without_a_workload_or_gpu_is_refused() {
    let called = call(&["--topology", RING]);
    assert_eq!((called.code, called.stdout.as_str()), (2, ""));
    assert!(called.stderr.contains("no workload"), "{}", called.stderr);
    let called = call(&["--topology", RING, "--workload", "vectoradd"]);
    assert_eq!((called.code, called.stdout.as_str()), (2, ""));
    assert!(called.stderr.contains("no GPU"), "{}", called.stderr);
}

#[test]
fn kernels_can_come_from_each_compiler() {
    let lud = ["--topology", "v100_node", "--workload", "lud:size=32", "--format", "json", "--compiler"];
    let instructions = ["nvrtc", "nvcc", "clang"].map(|compiler| {
        let called = call(&[&lud[..], &[compiler]].concat());
        assert_eq!((called.code, called.stderr.as_str()), (0, ""), "{compiler}");
        let document = json(&called.stdout);
        assert_eq!(document["verified"], true, "{compiler}");
        let kernels = document["kernels"].as_array().expect("a list").iter();
        kernels.map(|kernel| kernel["inst_executed"].as_u64().expect("a count")).sum::<u64>()
    });
    let default = json(&call(&[&lud[..6], &["--isa", "ptx"]].concat()).stdout);
    assert_eq!(default, {
        let mut chosen = json(&call(&[&lud[..], &["nvrtc"]].concat()).stdout);
        assert_eq!(chosen["isa"], "ptx");
        for clock in ["wall_seconds", "warp_instructions_per_second"] {
            chosen[clock] = default[clock].clone();
        }
        chosen
    });
    assert_ne!(instructions[0], instructions[2], "clang's code is another one");
    let called = call(&small(&["--compiler", "clang", "--ptx", "kernel.ptx"]));
    assert_eq!(called.code, 2);
    assert!(called.stderr.contains("cannot be used with"), "{}", called.stderr);
}

#[test]
fn kernels_can_come_from_a_ptx_file_and_its_mistakes_have_lines() {
    let folder = folder();
    let path = folder.path().join("kernel.ptx");
    let file = path.to_str().expect("UTF-8");
    let built_in = concat!(env!("CARGO_MANIFEST_DIR"), "/../workloads/vectoradd/vectoradd.sm_70.ptx");
    let text = fs::read_to_string(built_in).expect("the workload's PTX");
    fs::write(&path, &text).expect("written");
    let called = call(&small(&["--ptx", file, "--format", "csv"]));
    assert_eq!(
        (called.code, called.stdout),
        (0, call(&small(&["--isa", "ptx", "--format", "csv"])).stdout),
        "{}",
        called.stderr
    );
    let line = 1 + text.lines().position(|line| line.contains("add.f32")).expect("it adds floats");
    fs::write(&path, text.replace("add.f32", "frobnicate.f32")).expect("written");
    let called = call(&small(&["--ptx", file]));
    assert_eq!((called.code, called.stdout.as_str()), (2, ""));
    for said in ["frobnicate", &format!("kernel.ptx:{line}:")] {
        assert!(called.stderr.contains(said), "{said}: {}", called.stderr);
    }
    let called = call(&small(&["--ptx", "/nonexistent.ptx"]));
    assert_eq!(called.code, 2);
    assert!(called.stderr.contains("cannot read /nonexistent.ptx"), "{}", called.stderr);
}

#[test]
fn a_run_can_stop_at_a_simulated_time() {
    let called = call(&small(&["--stop-at", "10 us", "--format", "json"]));
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let json = json(&called.stdout);
    assert_eq!((&json["completed"], &json["verified"]), (&false.into(), &serde_json::Value::Null));
    assert_eq!((&json["ended_by"], &json["sim_time_ps"]), (&"stop_time".into(), &10_000_000.into()));
}

#[test]
fn a_run_that_takes_too_long_ends_with_4_and_its_statistics() {
    let called =
        call(&["--topology", "v100_node", "--workload", "gemm:size=1024", "--max-wall", "0.2", "--format", "json"]);
    assert_eq!(called.code, 4, "{}", called.stderr);
    assert!(called.stderr.contains("--max-wall"), "{}", called.stderr);
    let json = json(&called.stdout);
    assert_eq!((&json["completed"], &json["ended_by"]), (&false.into(), &"wall_limit".into()));
    assert!(json["statistics"].as_array().is_some_and(|rows| rows.len() > 1000));
}

#[test]
fn a_program_that_fails_ends_with_3_and_its_statistics() {
    let called = call(&["--topology", "v100_node", "--set", "gpu.hbm[*].capacity=256 KiB", "--format", "json"]);
    assert_eq!(called.code, 3, "{}", called.stderr);
    assert!(called.stderr.contains("cudaMalloc"), "{}", called.stderr);
    let json = json(&called.stdout);
    assert_eq!(json["completed"], false);
    assert!(json["problem"].as_str().is_some_and(|problem| problem.contains("cudaMalloc")));
}

#[test]
fn a_limit_that_is_over_before_the_simulation_begins_has_a_result() {
    let called = call(&small(&["--max-wall", "0.000001", "--format", "json"]));
    assert_eq!(called.code, 4, "{}", called.stderr);
    let json = json(&called.stdout);
    assert_eq!((&json["completed"], &json["ended_by"]), (&false.into(), &"wall_limit".into()));
    assert_eq!((&json["topology"], &json["workload"]["name"]), (&"v100_node".into(), &"vectoradd".into()));
}

#[test]
fn a_replay_that_waits_for_its_trace_can_be_ended() {
    let folder = folder();
    // A pipe into which nobody writes.
    let calls = folder.path().join("cuda_calls.trace");
    assert!(Command::new("mkfifo").arg(&calls).status().expect("mkfifo runs").success());
    for trace in [folder.path(), &calls] {
        let trace = trace.to_str().expect("UTF-8");
        let called = call(&["replay", "--topology", "v100_node", "--max-wall", "0.2", "--format", "json", trace]);
        assert_eq!(called.code, 4, "{}", called.stderr);
        let json = json(&called.stdout);
        assert_eq!((&json["completed"], &json["ended_by"]), (&false.into(), &"wall_limit".into()));
    }
}

#[test]
fn a_trace_is_no_single_file() {
    let called = call(&["replay", "--topology", "v100_node", "/dev/null"]);
    assert_eq!(called.code, 2, "{}", called.stderr);
    assert!(
        called.stderr.contains("/dev/null is not a trace: a trace is a folder of several files"),
        "{}",
        called.stderr
    );
}

#[test]
fn an_endless_kernel_is_named_where_a_run_ends() {
    let folder = folder();
    let path = folder.path().join("endless.ptx");
    // The CTAs from the third on never end.
    let text = "
        .version 6.5
        .target sm_70
        .address_size 64
        .visible .entry vectorAdd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
        {
            .reg .pred %p;
            .reg .b32 %r;
            mov.u32 %r, %ctaid.x;
            setp.lt.u32 %p, %r, 2;
            @%p ret;
        again:
            add.u32 %r, %r, 1;
            bra again;
        }";
    fs::write(&path, text).expect("written");
    let called = call(&small(&["--ptx", path.to_str().expect("UTF-8"), "--max-wall", "1", "--format", "json"]));
    assert_eq!(called.code, 4, "{}", called.stderr);
    let json = json(&called.stdout);
    let kernel = &json["kernels"][0];
    assert_eq!((&kernel["name"], &kernel["completed"]), (&"vectorAdd".into(), &false.into()));
    assert_eq!(
        (&kernel["ctas"], &kernel["ctas_ended"], &kernel["end_ps"]),
        (&8.into(), &2.into(), &json["sim_time_ps"])
    );
    // What the six CTAs under way have issued is not lost.
    let of_sms = json["roll_ups"].as_array().expect("rows").iter();
    let issued = of_sms.filter(|row| row["what"] == "inst_executed").map(|row| row["sum"].as_u64().unwrap_or(0));
    assert_eq!(kernel["inst_executed"].as_u64(), Some(issued.sum()));
    assert!(json["warp_instructions_per_second"].as_f64() > Some(0.0), "{}", json["warp_instructions_per_second"]);
    let position = "in kernel vectorAdd on gpu (launch 0, stream 0: 2 of 8 CTAs done after ";
    assert!(json["problem"].as_str().is_some_and(|problem| problem.contains(position)), "{}", json["problem"]);
    assert!(called.stderr.contains(position), "{}", called.stderr);
}

#[test]
fn signals_end_a_run_with_its_statistics() {
    for (signal, code, ended_by) in [("-INT", 130, "interrupted"), ("-TERM", 143, "terminated")] {
        let arguments = ["--topology", "v100_node", "--workload", "gemm:size=1024", "--format", "json"];
        let mut command = command(&arguments);
        command.env("RUST_LOG", "balar_actors=info").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        while !line.contains("the units begin to run") {
            line.clear();
            assert!(stderr.read_line(&mut line).expect("UTF-8") > 0, "it ended before the simulation began");
        }
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
        assert!(sent.success());
        let output = child.wait_with_output().expect("it ends");
        let mut said = String::new();
        stderr.read_to_string(&mut said).expect("UTF-8");
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains("interrupted"), "{said}");
        let json = json(std::str::from_utf8(&output.stdout).expect("UTF-8"));
        assert_eq!((&json["completed"], &json["ended_by"]), (&false.into(), &ended_by.into()));
        assert!(json["statistics"].as_array().is_some_and(|rows| rows.len() > 1000), "{ended_by}");
    }
}

#[test]
fn snapshots_pin_and_tell_what_moved() {
    let folder = folder();
    let path = folder.path().join("vectoradd.snapshot");
    let file = path.to_str().expect("UTF-8");
    let snapshot = |action, options: &[&str]| call(&[&["snapshot", action][..], &small(options), &[file]].concat());
    let accepted = snapshot("accept", &[]);
    assert_eq!(accepted.code, 0, "{}", accepted.stderr);
    let checked = snapshot("check", &["--threads", "3"]);
    assert_eq!(checked.code, 0, "{}", checked.stdout);
    let pinned = fs::read_to_string(&path).expect("written");
    let changed =
        pinned.replace("\ngpu.sm[0..84] inst_barriers = 0 x84 ", "\ngpu.sm[0..84] inst_barriers = 0 x82, 64, 0 ");
    assert_ne!(changed, pinned);
    fs::write(&path, changed).expect("written");
    let checked = snapshot("check", &[]);
    assert_eq!(checked.code, 1, "{}", checked.stderr);
    let lines: Vec<Vec<&str>> = checked.stdout.lines().skip(3).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines, [["gpu.sm[82]", "inst_barriers", "1", "64", "instruction", "0", "instruction", "-100.00"]]);
    let checked = snapshot("check", &["--tolerance", "100"]);
    assert_eq!(checked.code, 0, "{}", checked.stdout);
    assert!(checked.stdout.contains("1 within 100 %"), "{}", checked.stdout);
    fs::write(&path, "something else\n").expect("written");
    let checked = snapshot("check", &[]);
    assert_eq!(checked.code, 2);
    assert!(checked.stderr.contains("is not a snapshot: line 1"), "{}", checked.stderr);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    for arguments in [&small(&["--format", "json"])[..], &["units"], &["workloads"], &["--help"]] {
        let mut child =
            command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
        assert_eq!(stderr, "", "{arguments:?}");
    }
}

#[test]
fn logs_go_to_stderr() {
    let output = command(&small(&["--format", "csv"])).env("RUST_LOG", "what=?").output().expect("it runs");
    assert!(String::from_utf8_lossy(&output.stderr).contains("RUST_LOG is ignored"));
    assert!(output.stdout.starts_with(b"location,what,value,unit\n"));
}
