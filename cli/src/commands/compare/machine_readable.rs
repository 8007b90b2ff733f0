//! Two runs as CSV and JSON.

use super::comparison::Comparison;
use super::counters::CounterChange;
use super::inputs::InputDifference;
use super::kernels::{Figure, KernelPair, LaunchPair, Stalls};
use super::pair::Pair;
use balar_record::json::to_text;
use balar_record::run_folder::RunFolder;
use serde::Serialize;

/// The comparison, as JSON has it.
#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    alike: bool,
    before: RunEntry<'a>,
    after: RunEntry<'a>,
    inputs: &'a [InputDifference],
    kernels: Vec<KernelEntry<'a>>,
    only_before: Vec<OnlyEntry<'a>>,
    only_after: Vec<OnlyEntry<'a>>,
    launches: &'a [LaunchPair],
    stalls: Vec<StallEntry<'a>>,
    results: Vec<ResultEntry<'a>>,
    counters: &'a [CounterChange],
    notes: &'a [String],
}

#[derive(Serialize)]
struct RunEntry<'a> {
    path: String,
    version: &'a str,
    topology: &'a str,
    workload: &'a str,
    isa: &'a str,
    completed: bool,
    verified: Option<bool>,
    ended_by: &'a str,
    sim_time_ps: Option<u64>,
}

#[derive(Serialize)]
struct KernelEntry<'a> {
    name: &'a str,
    calls: Pair<u64>,
    time_ps: Pair<Option<u64>>,
    cycles: Pair<Option<u64>>,
    figures: &'a [Figure],
    stalls: Option<Vec<StallEntry<'a>>>,
}

#[derive(Serialize)]
struct OnlyEntry<'a> {
    name: &'a str,
    calls: u64,
}

#[derive(Serialize)]
struct StallEntry<'a> {
    reason: &'a str,
    #[serde(flatten)]
    warp_cycles: Pair<u64>,
}

#[derive(Serialize)]
struct ResultEntry<'a> {
    name: &'a str,
    unit: &'a str,
    #[serde(flatten)]
    values: Pair<Option<f64>>,
}

fn stalls(stalls: &Stalls) -> Vec<StallEntry<'_>> {
    stalls.iter().map(|(reason, warp_cycles)| StallEntry { reason, warp_cycles: *warp_cycles }).collect()
}

/// All of it.
pub fn json(comparison: &Comparison) -> String {
    let run = |run: &RunFolder| run.path.display().to_string();
    fn entry(run: &RunFolder, path: String) -> RunEntry<'_> {
        let document = &run.document;
        RunEntry {
            path,
            version: &document.version,
            topology: &document.topology,
            workload: &document.workload.name,
            isa: &document.isa,
            completed: document.completed,
            verified: document.verified,
            ended_by: &document.ended_by,
            sim_time_ps: document.sim_time_ps,
        }
    }
    fn only(kernels: &[(String, u64)]) -> Vec<OnlyEntry<'_>> {
        kernels.iter().map(|(name, calls)| OnlyEntry { name, calls: *calls }).collect()
    }
    fn kernel(it: &KernelPair) -> KernelEntry<'_> {
        KernelEntry {
            name: &it.name,
            calls: it.calls,
            time_ps: it.time,
            cycles: it.cycles,
            figures: &it.figures,
            stalls: it.stalls.as_ref().map(stalls),
        }
    }
    let Pair { before, after } = &comparison.runs;
    to_text(&Document {
        schema: 1,
        alike: comparison.is_alike(),
        before: entry(before, run(before)),
        after: entry(after, run(after)),
        inputs: &comparison.inputs,
        kernels: comparison.kernels.iter().map(kernel).collect(),
        only_before: only(&comparison.only.before),
        only_after: only(&comparison.only.after),
        launches: &comparison.launches,
        stalls: stalls(&comparison.stalls),
        results: comparison
            .results
            .iter()
            .map(|(name, unit, values)| ResultEntry { name, unit, values: *values })
            .collect(),
        counters: &comparison.counters,
        notes: &comparison.notes,
    })
}

/// A line for each value: which part it is of, whose it is, what it is, its two values, and the change.
pub fn csv(comparison: &Comparison) -> String {
    let mut table = csv::Writer::from_writer(Vec::new());
    let mut line = |part: &str, of: &str, what: &str, values: Pair<Option<f64>>, unit: &str| {
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let both = values.before.zip(values.after).map(|(before, after)| Pair { before, after });
        let (change, percent) = (both.map(Pair::change), both.and_then(Pair::percent));
        let cells = [number(values.before), number(values.after), number(change), number(percent)];
        let [before, after, change, percent] = &cells;
        // Writing to memory does not fail.
        let _ = table.write_record([part, of, what, before, after, change, percent, unit]);
    };
    let whole = |value: Option<u64>| value.map(|value| value as f64);
    line("run", "", "sim_time", comparison.time().map(|time| Some(time as f64)), "ps");
    for kernel in &comparison.kernels {
        let KernelPair { name, calls, time, cycles, figures, .. } = kernel;
        line("kernel", name, "calls", calls.map(|calls| Some(calls as f64)), "call");
        line("kernel", name, "time", time.map(whole), "ps");
        line("kernel", name, "cycles", cycles.map(whole), "cycle");
        for figure in figures {
            line("figure", name, figure.name, figure.values.map(Some), figure.unit);
        }
        for (reason, cycles) in kernel.stalls.iter().flatten() {
            line("stall", name, reason, cycles.map(|cycles| Some(cycles as f64)), "warp-cycle");
        }
    }
    for (name, calls) in &comparison.only.before {
        line("kernel", name, "calls", Pair { before: whole(Some(*calls)), after: None }, "call");
    }
    for (name, calls) in &comparison.only.after {
        line("kernel", name, "calls", Pair { before: None, after: whole(Some(*calls)) }, "call");
    }
    for launch in &comparison.launches {
        line("launch", &format!("{}[{}]", launch.name, launch.ordinal), "cycles", launch.cycles.map(whole), "cycle");
    }
    for (reason, cycles) in &comparison.stalls {
        line("stall", "", reason, cycles.map(|cycles| Some(cycles as f64)), "warp-cycle");
    }
    for (name, unit, values) in &comparison.results {
        line("result", "", name, *values, unit);
    }
    for change in &comparison.counters {
        line("counter", &change.location, &change.what, change.values.map(whole), &change.unit);
    }
    let rows = String::from_utf8(table.into_inner().unwrap_or_default()).unwrap_or_default();
    let text = |it: &InputDifference| {
        let mut table = csv::Writer::from_writer(Vec::new());
        let (before, after) = (it.before.as_deref().unwrap_or_default(), it.after.as_deref().unwrap_or_default());
        let _ = table.write_record(["input", &it.location, &it.what, before, after, "", "", ""]);
        String::from_utf8(table.into_inner().unwrap_or_default()).unwrap_or_default()
    };
    let inputs: String = comparison.inputs.iter().map(text).collect();
    format!("part,of,what,before,after,change,percent,unit\n{rows}{inputs}")
}
