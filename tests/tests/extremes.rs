//! Every parameter of every unit at its extremes: the node refuses the value by name, or it runs and ends. It never panics, aborts, waits for
//! itself or outlives its limit.
//!
//! A share of the extremes is tried each time. `BALAR_EXTREMES=10000` tries so many, spread evenly over all, and names each before it is
//! tried in the file that `BALAR_EXTREMES_LOG` names.

use balar_actors::engine::{Outcome, RunOptions};
use balar_actors::simulation::SimulationError;
use balar_experiments::{RequestError, SimulationRequest, simulate};
use balar_tests::{built_in, parameters, try_built_in_with};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::time::Duration;

/// The nodes, each with the workload that runs on it.
const NODES: [(&str, &str); 5] = [
    ("v100_node", "elements=2048"),
    ("p100_node", "elements=2048"),
    ("t4_node", "elements=2048"),
    ("gtx1080ti_node", "elements=65536,memory=managed"),
    ("uvmsmart_v100_node", "elements=65536,memory=managed"),
];
/// Extremes that are tried where nothing else is asked for.
const SHARE: usize = 1000;
/// What a run may take. Its statistics come on top.
const LIMIT: Duration = Duration::from_secs(1);

/// Whole numbers in place of a whole number.
const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "2",
    "3",
    "5",
    "31",
    "33",
    "64",
    "100",
    "1000",
    "65535",
    "65536",
    "1000000",
    "2147483648",
    "4294967295",
    "4294967296",
];
/// Values in place of a quantity, by its unit of measure.
const BYTES: [&str; 9] = ["0 B", "1 B", "3 B", "4095 B", "4 KiB", "64 KiB", "1 GiB", "1 TiB", "16777215 TiB"];
const TIMES: [&str; 7] = ["0 ps", "1 ps", "7 ps", "1 us", "1 s", "1000 s", "18446744 s"];
const FREQUENCIES: [&str; 6] = ["1 Hz", "1 MHz", "7 MHz", "100 GHz", "999 GHz", "1000 GHz"];
const RATES: [&str; 6] = ["1 B/s", "1 MB/s", "1 GB/s", "1000 TB/s", "16000000 TB/s", "1 KiB/s"];

/// A value of a parameter at an extreme.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Extreme {
    node: usize,
    setting: String,
}

/// The values in place of a quoted quantity.
fn quantities(text: &str) -> &'static [&'static str] {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ' ');
    match unit {
        _ if unit.ends_with("/s") => &RATES,
        _ if unit.ends_with("Hz") => &FREQUENCIES,
        "B" | "KiB" | "MiB" | "GiB" | "TiB" | "kB" | "MB" | "GB" | "TB" => &BYTES,
        "ps" | "ns" | "us" | "ms" | "s" => &TIMES,
        _ => &[],
    }
}

/// The texts that a value becomes when one number or quantity in it is at an extreme.
fn variants(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    let mut put = |range: std::ops::Range<usize>, values: &[&str], quote: &str| {
        for value in values {
            found.push(format!("{}{quote}{value}{quote}{}", &text[..range.start], &text[range.end..]));
        }
    };
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let end = at + 1 + text[at + 1..].find('"').expect("the string ends");
                put(at..end + 1, quantities(&text[at + 1..end]), "\"");
                at = end + 1;
            }
            b'0'..=b'9' => {
                let end = at + text[at..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - at);
                put(at..end, &NUMBERS, "");
                at = end;
            }
            b if b.is_ascii_alphabetic() || b == b'_' => {
                at += text[at..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len() - at);
            }
            _ => at += 1,
        }
    }
    found
}

/// All extremes of a node: of each kind of unit, those of its first unit, set for all of its row.
fn extremes(node: usize) -> BTreeSet<Extreme> {
    let topology = built_in(NODES[node].0);
    let mut found = BTreeSet::new();
    for unit in &topology.units {
        let path = unit.path.split('[').next().unwrap_or_default();
        let path = if unit.row.is_some() { format!("{path}[*]") } else { path.to_owned() };
        for parameter in unit.parameters.iter() {
            let setting = |value| format!("{path}.{}={value}", parameter.definition.name);
            found.extend(variants(&parameter.text).into_iter().map(|value| Extreme { node, setting: setting(value) }));
        }
    }
    found
}

/// What is wrong with how a run with this value went; `None` where it was refused, or ended.
fn fault(extreme: &Extreme) -> Option<String> {
    let topology = try_built_in_with(NODES[extreme.node].0, &[&extreme.setting]).ok()?;
    let request = SimulationRequest {
        topology,
        workload: Some(("vectoradd".to_owned(), parameters(NODES[extreme.node].1))),
        ptx: Vec::new(),
        code: balar_actors::simulation::CodeChoice::default(),
        options: RunOptions { max_wall: Some(LIMIT), ..RunOptions::default() },
    };
    let simulated = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| simulate(request))) {
        Ok(simulated) => simulated,
        Err(panic) => {
            return Some(panic.downcast_ref::<&str>().map_or("a panic".to_owned(), |text| (*text).to_owned()));
        }
    };
    match simulated {
        Err(RequestError::Simulation(SimulationError::Engine(error))) => Some(error.to_string()),
        Err(_) => None,
        Ok(result) => match (&result.outcome, &result.given_up) {
            (_, Some(unit)) => Some(format!("{unit} does not return")),
            (Outcome::Finished | Outcome::WallLimit, None) => None,
            (outcome, None) => Some(format!("{outcome:?}")),
        },
    }
}

#[test]
fn a_parameter_at_an_extreme_is_refused_or_honoured() {
    let all: Vec<Extreme> = (0..NODES.len()).flat_map(extremes).collect();
    let asked = std::env::var("BALAR_EXTREMES").ok().and_then(|text| text.parse().ok()).unwrap_or(SHARE);
    let mut log = std::env::var_os("BALAR_EXTREMES_LOG").map(|path| File::create(path).expect("it can be written"));
    let count = asked.min(all.len());
    let mut faults = Vec::new();
    for at in 0..count {
        let extreme = &all[at * all.len() / count];
        if let Some(log) = &mut log {
            writeln!(log, "{} of {count} (there are {}): {extreme:?}", at + 1, all.len()).expect("it can be written");
        }
        if let Some(fault) = fault(extreme) {
            let text = format!("{} --set '{}': {fault}", NODES[extreme.node].0, extreme.setting);
            if let Some(log) = &mut log {
                writeln!(log, "FAULT {text}").expect("it can be written");
            }
            faults.push(text);
        }
    }
    assert!(faults.is_empty(), "{} of {count} values break a run:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn the_extremes_are_many() {
    let count: usize = (0..NODES.len()).map(|node| extremes(node).len()).sum();
    assert!(count >= 10_000, "{count}");
}
