//! Two runs as tables to read.

use super::comparison::Comparison;
use super::counters::without_parts;
use super::inputs::InputDifference;
use super::kernels::{Figure, KernelPair, Stalls};
use super::pair::Pair;
use crate::options::compare::CompareOptions;
use crate::output::table::Lines;
use balar_record::kernel_name::{short_name, short_names};
use balar_record::run_folder::RunFolder;
use balar_record::run_folder::instructions::STALL;
use std::fmt::Write as _;

/// Kernels whose causes are told.
const CAUSES: usize = 3;
/// Figures and reasons that are told of a kernel.
const FIGURES: usize = 5;
/// Figures that moved less are told with --details alone: one part in a hundred.
const LEAST_CHANGE: f64 = 0.01;

/// All of it.
pub fn text(comparison: &Comparison, options: &CompareOptions, width: Option<u16>) -> String {
    let most = if options.details { usize::MAX } else { options.limit };
    let mut text = runs(comparison);
    text.push_str(&inputs(&comparison.inputs, most, width));
    if comparison.is_alike() {
        let document = &comparison.runs.before.document;
        let (kernels, counters) = (document.kernels.len(), document.statistics.len());
        let _ = writeln!(text, "\nthe runs are alike: {kernels} launches and {counters} counters are the same");
        text.push_str(&notes(comparison));
        return text;
    }
    text.push_str(&kernels(comparison, most, width));
    text.push_str(&only(comparison, most));
    let told = if options.details { usize::MAX } else { CAUSES };
    let figures = if options.details { usize::MAX } else { FIGURES };
    for kernel in comparison.kernels.iter().filter(|kernel| !kernel.is_alike()).take(told) {
        text.push_str(&causes(kernel, figures));
    }
    if options.details {
        text.push_str(&launches(comparison, width));
    }
    text.push_str(&run_stalls(&comparison.stalls, if options.details { usize::MAX } else { FIGURES }, width));
    text.push_str(&results(comparison));
    text.push_str(&counters(comparison, options, most, width));
    text.push_str(&notes(comparison));
    text
}

fn microseconds(picoseconds: u64) -> String {
    format!("{:.3}", picoseconds as f64 / 1e6)
}

/// `+12.5`, and nothing of a change that has no percentage.
fn signed(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".to_owned(), |value| {
        let text = format!("{value:+.digits$}");
        // Less than can be shown is no change.
        if text.trim_start_matches(['+', '-']).chars().all(|digit| matches!(digit, '0' | '.')) {
            text.replacen('-', "+", 1)
        } else {
            text
        }
    })
}

/// The two runs, and how their times differ.
fn runs(comparison: &Comparison) -> String {
    let Pair { before, after } = &comparison.runs;
    let names = [before, after].map(|run| run.path.display().to_string());
    let longest = names.iter().map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    for (side, (run, name)) in ["before", "after"].into_iter().zip([before, after].into_iter().zip(&names)) {
        let _ = writeln!(text, "{side:<6}  {name:<longest$}  {}", described(run));
    }
    let time = comparison.time();
    let change = time.map(|time| time as f64);
    let _ = writeln!(
        text,
        "simulated {} us -> {} us: {} us, {} %",
        microseconds(time.before),
        microseconds(time.after),
        signed(Some(change.change() / 1e6), 3),
        signed(change.percent(), 2)
    );
    text
}

/// A run in a line.
fn described(run: &RunFolder) -> String {
    let document = &run.document;
    let workload = &document.workload;
    let parameters = workload.parameters.iter().map(|(name, value)| format!(" {name}={value}"));
    let parameters: String = parameters.collect::<String>().replace('"', "");
    let name = if workload.name.is_empty() { "no workload" } else { &workload.name };
    let end = match (document.completed, document.verified) {
        (false, _) => format!(", ended by {}", document.ended_by),
        (_, Some(false)) => ", result wrong".to_owned(),
        _ => String::new(),
    };
    format!("{}, {name}{parameters} ({}){end}", document.topology, document.isa)
}

fn inputs(differences: &[InputDifference], most: usize, width: Option<u16>) -> String {
    if differences.is_empty() {
        return "inputs are the same\n".to_owned();
    }
    let rows = differences.iter().take(most).map(|it| {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "(absent)".to_owned());
        let units = if it.units > 1 { it.units.to_string() } else { String::new() };
        vec![it.location.clone(), it.what.clone(), units, value(&it.before), value(&it.after)]
    });
    let header = vec!["input", "parameter", "units", "before", "after"];
    let lines = Lines { header, left: vec![0, 1, 3, 4], droppable: vec![2], elastic: Some(0), rows: rows.collect() };
    format!("\n{}{}", lines.text(width), more(differences.len(), most, "inputs"))
}

/// A line that says how many are not shown.
fn more(all: usize, most: usize, what: &str) -> String {
    let hidden = all.saturating_sub(most);
    if hidden == 0 { String::new() } else { format!(" {hidden} more {what} differ: --details, --limit\n") }
}

fn kernels(comparison: &Comparison, most: usize, width: Option<u16>) -> String {
    let all = &comparison.kernels;
    if all.is_empty() {
        return "\nno kernel is in both runs\n".to_owned();
    }
    let names = short_names(all.iter().map(|kernel| &*kernel.name));
    let rows = all.iter().take(most).map(|kernel| {
        let calls = match kernel.calls {
            Pair { before, after } if before == after => before.to_string(),
            Pair { before, after } => format!("{before} -> {after}"),
        };
        let [before, after] = [kernel.time.before, kernel.time.after];
        let time = |time: Option<u64>| time.map_or("not simulated".to_owned(), microseconds);
        let both = before.zip(after).map(|(before, after)| Pair { before: before as f64, after: after as f64 });
        vec![
            calls,
            time(before),
            time(after),
            signed(both.map(|both| both.change() / 1e6), 3),
            signed(both.and_then(Pair::percent), 2),
            names[&*kernel.name].clone(),
        ]
    });
    let header = vec!["calls", "before us", "after us", "change us", "%", "kernel"];
    let lines = Lines { header, left: vec![5], droppable: vec![0], elastic: Some(5), rows: rows.collect() };
    let hidden = all.len().saturating_sub(most);
    let hidden = if hidden == 0 { String::new() } else { format!(" {hidden} more kernels changed less\n") };
    format!("\n{}{hidden}", lines.text(width))
}

/// Kernels that one run alone has.
fn only(comparison: &Comparison, most: usize) -> String {
    let mut text = String::new();
    for (side, kernels) in [("before", &comparison.only.before), ("after", &comparison.only.after)] {
        if kernels.is_empty() {
            continue;
        }
        let names = short_names(kernels.iter().map(|(name, _)| &**name));
        let shown = kernels.iter().take(most).map(|(name, calls)| {
            let calls = if *calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
            format!("{} ({calls})", names[&**name])
        });
        let hidden = kernels.len().saturating_sub(most);
        let hidden = if hidden == 0 { String::new() } else { format!(", and {hidden} more: --details, --limit") };
        let _ = writeln!(text, " only {side}: {}{hidden}", shown.collect::<Vec<_>>().join(", "));
    }
    text
}

/// Why a kernel takes another time.
fn causes(kernel: &KernelPair, most: usize) -> String {
    let both = kernel.cycles.before.zip(kernel.cycles.after);
    let cycles = both.map_or(String::new(), |(before, after)| {
        let percent = Pair { before: before as f64, after: after as f64 }.percent();
        format!(": {before} -> {after} SM cycles ({} %)", signed(percent, 2))
    });
    let mut text = format!("\n{}{cycles}\n", short_name(&kernel.name));
    if let Some(stalls) = &kernel.stalls {
        let total = |of: fn(&Pair<u64>) -> u64| stalls.iter().map(|(_, cycles)| of(cycles)).sum::<u64>();
        let total = Pair { before: total(|it| it.before), after: total(|it| it.after) };
        let _ = writeln!(text, "  warp cycles {} -> {}", total.before, total.after);
        for (reason, cycles) in stalls.iter().filter(|(_, it)| it.before != it.after).take(most) {
            let _ = writeln!(text, "    {}", stall(reason, *cycles, total));
        }
    }
    let least = if most == usize::MAX { 0.0 } else { LEAST_CHANGE };
    for figure in kernel.figures.iter().filter(|figure| figure.relative_change() >= least).take(most) {
        let _ = writeln!(text, "  {}", worded(figure));
    }
    text
}

/// `long_scoreboard +1200 (20.0 % -> 25.0 %)`.
fn stall(reason: &str, cycles: Pair<u64>, total: Pair<u64>) -> String {
    let share = |cycles: u64, total: u64| if total == 0 { 0.0 } else { 100.0 * cycles as f64 / total as f64 };
    let change = i128::from(cycles.after) - i128::from(cycles.before);
    format!(
        "{reason:<20} {change:>+14}   {:.1} % -> {:.1} %",
        share(cycles.before, total.before),
        share(cycles.after, total.after)
    )
}

/// `L2 hit rate of loads 99.5 % -> 80.1 %`.
fn worded(figure: &Figure) -> String {
    let number = |value: f64| if value.fract() == 0.0 { format!("{value}") } else { format!("{value:.2}") };
    let Pair { before, after } = figure.values;
    let percent = match (figure.unit, figure.values.percent()) {
        ("%", _) => " %".to_owned(),
        (_, Some(percent)) => format!(" ({} %)", signed(Some(percent), 1)),
        (_, None) => String::new(),
    };
    format!("{} {} -> {}{percent}", figure.name, number(before), number(after))
}

fn launches(comparison: &Comparison, width: Option<u16>) -> String {
    let rows = comparison.launches.iter().filter(|pair| !pair.is_alike()).map(|pair| {
        let cycles = |cycles: Option<u64>| cycles.map_or("not simulated".to_owned(), |cycles| cycles.to_string());
        let both = pair.cycles.before.zip(pair.cycles.after);
        let both = both.map(|(before, after)| Pair { before: before as f64, after: after as f64 });
        vec![
            pair.launch.before.to_string(),
            pair.launch.after.to_string(),
            cycles(pair.cycles.before),
            cycles(pair.cycles.after),
            signed(both.and_then(Pair::percent), 2),
            if pair.same_work { "" } else { "other counters" }.to_owned(),
            format!("{}[{}]", short_name(&pair.name), pair.ordinal),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let header = vec!["launch", "after", "cycles before", "cycles after", "%", "work", "kernel"];
    let lines = Lines { header, left: vec![5, 6], droppable: vec![5, 1], elastic: Some(6), rows };
    format!("\n{}", lines.text(width))
}

fn run_stalls(stalls: &Stalls, most: usize, width: Option<u16>) -> String {
    let changed: Vec<_> = stalls.iter().filter(|(_, cycles)| cycles.before != cycles.after).collect();
    if changed.is_empty() {
        return String::new();
    }
    let total = |of: fn(&Pair<u64>) -> u64| stalls.iter().map(|(_, cycles)| of(cycles)).sum::<u64>() as f64;
    let total = Pair { before: total(|it| it.before), after: total(|it| it.after) };
    let rows = changed.iter().take(most).map(|(reason, cycles)| {
        let share = |part: u64, whole: f64| {
            if whole == 0.0 { "-".to_owned() } else { format!("{:.1}", 100.0 * part as f64 / whole) }
        };
        let percent = cycles.map(|cycles| cycles as f64).percent();
        vec![
            reason.clone(),
            cycles.before.to_string(),
            cycles.after.to_string(),
            format!("{:+}", i128::from(cycles.after) - i128::from(cycles.before)),
            signed(percent, 1),
            share(cycles.before, total.before),
            share(cycles.after, total.after),
        ]
    });
    let header = vec!["warp cycles of the run", "before", "after", "change", "%", "share % before", "after"];
    let lines = Lines { header, left: vec![0], droppable: vec![6, 5], elastic: None, rows: rows.collect() };
    format!("\n{}", lines.text(width))
}

/// What the programs report of themselves.
fn results(comparison: &Comparison) -> String {
    let mut text = String::new();
    for (name, unit, values) in &comparison.results {
        let value = |value: Option<f64>| value.map_or("(absent)".to_owned(), |value| value.to_string());
        let _ = write!(text, "\n{name} {} -> {} {unit}", value(values.before), value(values.after));
    }
    if text.is_empty() { text } else { text + "\n" }
}

fn counters(comparison: &Comparison, options: &CompareOptions, most: usize, width: Option<u16>) -> String {
    let changes: Vec<_> = match options.details {
        true => comparison.counters.iter().collect(),
        // Cycles of warps have a table of their own.
        false => without_parts(&comparison.counters).into_iter().filter(|it| !it.what.starts_with(STALL)).collect(),
    };
    if changes.is_empty() {
        return "\nno counter of the run differs\n".to_owned();
    }
    let rows = changes.iter().take(most).map(|change| {
        let value = |value: Option<u64>| value.map_or("(absent)".to_owned(), |value| value.to_string());
        let Pair { before, after } = change.values;
        let both = before.zip(after).map(|(before, after)| Pair { before: before as f64, after: after as f64 });
        vec![
            change.location.clone(),
            change.what.clone(),
            value(before),
            value(after),
            signed(both.and_then(Pair::percent), 1),
            change.unit.clone(),
        ]
    });
    let header = vec!["units", "counter", "before", "after", "%", "unit"];
    let lines = Lines { header, left: vec![0, 1, 5], droppable: vec![5], elastic: Some(0), rows: rows.collect() };
    format!("\n{}{}", lines.text(width), more(changes.len(), most, "counters"))
}

fn notes(comparison: &Comparison) -> String {
    comparison.notes.iter().map(|note| format!("\nnote: {note}\n")).collect()
}
