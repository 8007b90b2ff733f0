//! Programs that use managed memory by their own pointers, on a node that moves its pages: their accesses are seen as they happen.
//!
//! Where the system refuses to tell of accesses (userfaultfd), a program says so and its managed memory is taken to be used by the host
//! between its waits. Tests of seen accesses then end with a message on standard error; the others hold all the same.

#![expect(clippy::print_stderr, reason = "says which test has found nothing to test")]

use assert_cmd::Command;
use std::ffi::OsStr;
use std::fs;
use std::time::Duration;

const KIB: u64 = 1 << 10;

/// A transfer of managed memory: KiB, and from where on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Transfer {
    kib: u64,
    at_kib: u64,
    to_host: bool,
    cause: String,
}

/// What a run left.
pub struct Outcome {
    stderr: String,
    transfers: Vec<Transfer>,
    statistics: Vec<(String, String)>,
}

impl Outcome {
    /// KiB of the transfers in one direction.
    fn sizes(&self, to_host: bool) -> Vec<u64> {
        self.transfers.iter().filter(|transfer| transfer.to_host == to_host).map(|transfer| transfer.kib).collect()
    }

    fn statistic(&self, name: &str) -> u64 {
        let found = self.statistics.iter().find(|(key, _)| key == name);
        found.unwrap_or_else(|| panic!("no {name}: {:?}", self.statistics)).1.parse().expect(name)
    }

    /// Were the program's accesses seen?
    pub fn saw(&self) -> bool {
        let saw = !self.stderr.contains("userfaultfd");
        if !saw {
            eprintln!("skipped: {}", self.stderr.lines().next().unwrap_or_default());
        }
        saw
    }
}

/// Runs a scenario of `managed-client` on a node.
fn run(topology: &str, options: &[&str], scenario: &str) -> Outcome {
    let program = [env!("CARGO_BIN_EXE_managed-client").as_ref(), scenario.as_ref()];
    run_program(topology, options, &program, "passed\n")
}

/// Runs a program on a node. It must print this.
pub fn run_program(topology: &str, options: &[&str], program: &[&OsStr], expected: &str) -> Outcome {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("out");
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command.args(["run", "--quiet", "--topology", topology, "--output"]).arg(&output).args(options);
    command.arg("--").args(program);
    let done = command.timeout(Duration::from_secs(120)).output().expect("runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&done.stdout), text(&done.stderr));
    assert_eq!(stdout, expected, "{program:?} on {topology}: {stderr}");
    assert_eq!(done.status.code(), Some(0), "{program:?} on {topology}: {stderr}");
    let table = fs::read_to_string(output.join("unified_memory_transfers.csv")).unwrap_or_default();
    let mut transfers = Vec::new();
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let address = u64::from_str_radix(fields[4].trim_start_matches("0x"), 16).expect("an address");
        transfers.push(Transfer {
            kib: fields[5].parse::<u64>().expect("bytes") / KIB,
            at_kib: address / KIB,
            to_host: fields[3] == "to_host",
            cause: fields[7].to_owned(),
        });
    }
    let statistics = fs::read_to_string(output.join("stats.csv")).expect("statistics");
    let statistics = statistics.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        let [unit, name, value, ..] = fields[..] else { return None };
        (unit == "unified_memory").then(|| (name.to_owned(), value.to_owned()))
    });
    Outcome { stderr, transfers, statistics: statistics.collect() }
}

/// The host has read leaves 16, 8, 4, 2, 1 and 0 of a block that it had written and a kernel had used all of: as a GTX 1080 Ti did then,
/// 4 KiB and 60 KiB of each come back, and leaf 3 in the end.
pub fn check_leaves_read_backwards(outcome: &Outcome) {
    let leaves = [16, 8, 4, 2, 1, 0].into_iter().flat_map(|leaf| [(4, 64 * leaf), (60, 64 * leaf + 4)]);
    let expected: Vec<(u64, u64)> = leaves.chain([(64, 64 * 3)]).collect();
    // An allocation of whole blocks begins with one.
    let to_host: Vec<&Transfer> = outcome.transfers.iter().filter(|transfer| transfer.to_host).collect();
    let start = to_host.first().map_or(0, |transfer| transfer.at_kib.wrapping_sub(64 * 16));
    let found: Vec<(u64, u64)> = to_host.iter().map(|transfer| (transfer.kib, transfer.at_kib - start)).collect();
    assert_eq!(found, expected);
    assert!(to_host.iter().all(|transfer| transfer.cause == "host_fault"), "{:?}", outcome.transfers);
    assert_eq!(outcome.sizes(false).iter().sum::<u64>(), 2048, "the host had written all of it");
    assert_eq!(outcome.statistic("host_faults"), 6);
}

#[test]
fn a_host_that_reads_back_gets_the_transfers_of_the_real_driver() {
    let outcome = run("gtx1080ti_node", &[], "block");
    if outcome.saw() {
        check_leaves_read_backwards(&outcome);
    }
}

#[test]
fn what_the_host_has_not_written_is_not_transferred() {
    let outcome = run("gtx1080ti_node", &[], "first_touch");
    if !outcome.saw() {
        return;
    }
    assert_eq!(outcome.sizes(false).iter().sum::<u64>(), 64);
    assert_eq!(outcome.statistic("host_faults"), 2);
}

#[test]
fn each_access_after_a_kernel_is_seen_once() {
    let outcome = run("gtx1080ti_node", &[], "again");
    if !outcome.saw() {
        return;
    }
    assert_eq!(outcome.statistic("host_faults"), 2, "one of each round");
    assert_eq!(outcome.sizes(true), [4, 60].repeat(2));
    assert_eq!(outcome.sizes(false).iter().sum::<u64>(), 2 * 64, "the leaf goes back each time");
}

#[test]
fn a_write_to_a_page_that_was_read_is_seen() {
    // The host of this node keeps copies: one that it writes is no longer the GPU's.
    let outcome = run("uvmsmart_v100_node", &[], "read_then_write");
    if outcome.saw() {
        assert!(outcome.sizes(false).iter().sum::<u64>() > 64, "{:?}", outcome.transfers);
    }
}

#[test]
fn accesses_that_are_not_seen_are_assumed() {
    let outcome = run("gtx1080ti_node", &["--host-accesses", "assumed"], "first_touch");
    assert_eq!(outcome.stderr, "", "it was asked for");
    // All of the block was on the host, and is there again after the synchronisation; the module's variable never moves.
    assert_eq!(outcome.sizes(false).iter().sum::<u64>(), 2048);
    assert_eq!(outcome.sizes(true).iter().sum::<u64>(), 2048);
    assert_eq!(outcome.statistic("host_faults"), 0);
    assert_eq!(outcome.statistic("pages_synchronised"), 512);
}

#[test]
fn programs_with_signals_threads_children_and_system_calls_run() {
    let scenarios = [
        "system_calls",
        "signals",
        "fork",
        "threads",
        "host_function",
        "freed",
        "copies",
        "variable",
        "illegal",
        "mistakes",
        "batches",
        "bad_batches",
    ];
    for topology in ["gtx1080ti_node", "uvmsmart_v100_node"] {
        for scenario in scenarios {
            run(topology, &[], scenario);
        }
    }
    // Assumed, and on a node whose managed memory is always there.
    for scenario in scenarios {
        run("gtx1080ti_node", &["--host-accesses", "assumed"], scenario);
        assert!(run("p100_node", &[], scenario).transfers.is_empty());
    }
}

#[test]
fn copies_and_fills_bring_their_pages() {
    let outcome = run("gtx1080ti_node", &[], "copies");
    if !outcome.saw() {
        return;
    }
    // The fill makes its pages on the GPU: none comes from the host before that has touched some.
    assert!(outcome.transfers.first().is_some_and(|transfer| transfer.to_host), "{:?}", outcome.transfers);
    // The host's changes go there with the copies.
    let caused = outcome.transfers.iter().filter(|transfer| !transfer.to_host);
    assert!(caused.clone().count() > 0 && caused.clone().all(|transfer| transfer.cause == "program"));
}

#[test]
fn a_batch_of_prefetches_moves_each_range_to_its_place() {
    let outcome = run("gtx1080ti_node", &[], "batches");
    if !outcome.saw() {
        return;
    }
    let prefetched = |to_host| {
        let asked =
            outcome.transfers.iter().filter(move |transfer| transfer.cause == "program" && transfer.to_host == to_host);
        asked.map(|transfer| transfer.kib).collect::<Vec<_>>()
    };
    // Both leaves of the first allocation go, and one comes back; the other allocation is where it is to be.
    assert_eq!((prefetched(false), prefetched(true)), (vec![64, 64], vec![64]));
    // Three ranges, one, and one that was discarded.
    assert_eq!(outcome.statistic("user_prefetches"), 5);
}

#[test]
fn a_batch_that_is_refused_prefetches_nothing() {
    // The two ranges of the only one that is right.
    assert_eq!(run("gtx1080ti_node", &[], "bad_batches").statistic("user_prefetches"), 2);
}

#[test]
fn a_recorded_program_replays_to_the_same_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, first, again) = (folder.path().join("trace"), folder.path().join("first"), folder.path().join("again"));
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
        command.timeout(Duration::from_secs(120));
        command
    };
    let mut recorded = command();
    recorded
        .args(["run", "--quiet", "--topology", "gtx1080ti_node", "--record"])
        .arg(&trace)
        .arg("--output")
        .arg(&first);
    recorded.args(["--", env!("CARGO_BIN_EXE_managed-client"), "block"]).assert().success();
    let mut replayed = command();
    replayed.args(["replay", "--quiet", "--topology", "gtx1080ti_node", "--output"]).arg(&again).arg(&trace);
    replayed.assert().success();
    for name in ["stats.csv", "unified_memory_transfers.csv", "unified_memory_pages.csv"] {
        let read = |folder: &std::path::Path| fs::read_to_string(folder.join(name)).expect(name);
        assert_eq!(read(&first), read(&again), "{name}");
    }
}

#[test]
fn a_program_ends_when_the_simulator_is_killed_while_it_uses_managed_memory() {
    for milliseconds in [300, 500, 700, 900] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
        command.args(["run", "--quiet", "--topology", "gtx1080ti_node", "--"]);
        command.args([env!("CARGO_BIN_EXE_managed-client"), "for_ever"]);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        command.stdout(writer).stderr(std::process::Stdio::null());
        let mut simulator = command.spawn().expect("starts");
        // The program has the pipe now, and the command no longer.
        drop(command);
        std::thread::sleep(Duration::from_millis(milliseconds));
        simulator.kill().expect("ours");
        simulator.wait().expect("ours");
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut said = String::new();
            let mut reader = reader;
            let _ = std::io::Read::read_to_string(&mut reader, &mut said);
            let _ = sender.send(said);
        });
        let said = receiver.recv_timeout(Duration::from_secs(20)).expect("the program ends and closes its output");
        assert!(said.is_empty() || !said.contains("passed"), "{said}");
    }
}
