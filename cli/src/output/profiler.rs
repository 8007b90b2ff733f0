//! Launches as profilers list them: nvprof's table of events and metrics, and Nsight Compute's comma-separated values.

use crate::options::selection::Selection;
use balar_protocol::statistics::KernelRecord;
use balar_record::kernel_name::full_name;
use balar_record::metrics::{Choice, Dialect, Formula, METRICS, Measurement, Metric, Place, RollUpKind, Value};
use balar_record::result::RunRecord;
use balar_record::timing::Timing;
use std::io::{self, Write};
use std::sync::Arc;

/// What the launches of a kernel on a GPU have of a metric.
struct Line {
    name: String,
    metric: &'static Metric,
    values: Vec<Value>,
}

/// All launches of a kernel on a GPU.
struct Kernel {
    name: Arc<str>,
    gpu: Arc<str>,
    launches: Vec<KernelRecord>,
}

/// The columns of Nsight Compute's comma-separated values.
const NCU_COLUMNS: [&str; 15] = [
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
    "Section Name",
    "Metric Name",
    "Metric Unit",
    "Metric Value",
];

/// Which metrics are printed in a dialect, each with the name that it has there: those that are asked for, or all that launches have.
fn chosen(record: &RunRecord, selection: &Selection, measured: &Measurement, dialects: &[Dialect]) -> Vec<Choice> {
    let named = |metric: &'static Metric| {
        let mut names = dialects.iter().flat_map(|dialect| metric.names_in(*dialect).map(move |name| (*dialect, name)));
        names.next().map(|(dialect, name)| {
            let takes_ending = dialect == Dialect::Ncu && !name.contains('.') && !name.starts_with("launch__");
            let ending = if takes_ending { metric.usual_roll_up().ending() } else { "" };
            Choice { metric, dialect, name: format!("{name}{ending}"), roll_up: None }
        })
    };
    match selection.chosen_metrics() {
        Some(wanted) => wanted
            .into_iter()
            .map(
                |choice| {
                    if dialects.contains(&choice.dialect) { choice } else { named(choice.metric).unwrap_or(choice) }
                },
            )
            .collect(),
        None => {
            // One that was timed has the most.
            let timed = || record.launches().iter().find(|launch| launch.detail.is_timed());
            let first = if record.timing == Timing::Everything { None } else { timed() };
            let first = first.or_else(|| record.launches().first());
            let is_known =
                |metric: &Metric| first.as_ref().is_some_and(|launch| measured.of_launch(metric, launch).is_some());
            METRICS.iter().filter(|metric| is_known(metric)).filter_map(named).collect()
        }
    }
}

/// Writes nvprof's tables: events, then metrics, by GPU and kernel. What is not known of each launch is that of the whole run.
///
/// # Errors
///
/// If `writer` fails.
pub fn nvprof(record: &RunRecord, selection: &Selection, writer: &mut dyn Write) -> io::Result<()> {
    let measured = record.measurement();
    let choices = chosen(record, selection, &measured, &[Dialect::NvprofEvent, Dialect::NvprofMetric]);
    let (events, metrics): (Vec<Choice>, Vec<Choice>) = choices.into_iter().partition(is_event);
    let process = record.launches().first().map_or(0, |launch| launch.process.0);
    writeln!(writer, "=={process}== Profiling result:")?;
    let kernels = kernels(record);
    for (choices, are_events) in [(&events, true), (&metrics, false)] {
        if choices.is_empty() {
            continue;
        }
        let what = if are_events { "Event" } else { "Metric" };
        writeln!(writer, "=={process}== {what} result:")?;
        let description = if are_events { "" } else { "Metric Description" };
        write!(writer, "{:>11}  {:>40}", "Invocations", format!("{what} Name"))?;
        if !are_events {
            write!(writer, "  {description:>40}")?;
        }
        write!(writer, "  {:>10}  {:>10}  {:>10}", "Min", "Max", "Avg")?;
        writeln!(writer, "{}", if are_events { format!("  {:>10}", "Total") } else { String::new() })?;
        let mut previous = None;
        for kernel in &kernels {
            if previous != Some(&kernel.gpu) {
                device(record, &kernel.gpu, writer)?;
                previous = Some(&kernel.gpu);
            }
            writeln!(writer, "    Kernel: {}", full_name(&kernel.name))?;
            for choice in choices {
                let of = |launch| measured.of_launch(choice.metric, launch);
                let values: Vec<Value> = kernel.launches.iter().filter_map(of).collect();
                let line = Line { name: choice.name.clone(), metric: choice.metric, values };
                line.write(are_events, writer)?;
            }
        }
        of_run(record, choices, &measured, are_events, writer)?;
    }
    Ok(())
}

/// Metrics that are asked for and that launches do not have, of the whole run.
fn of_run(
    record: &RunRecord,
    choices: &[Choice],
    measured: &Measurement,
    are_events: bool,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let known =
        |choice: &&Choice| record.launches().iter().any(|launch| measured.of_launch(choice.metric, &launch).is_some());
    let rest: Vec<&Choice> = choices.iter().filter(|choice| !known(choice)).collect();
    if !rest.is_empty() {
        writeln!(writer, "Whole run")?;
    }
    for choice in rest {
        let Some(value) = run_value(choice, measured) else { continue };
        let Choice { name, metric, .. } = choice;
        let launches = record.statistics.kernels.len();
        let text = shown(value, metric.unit());
        write!(writer, "{launches:>11}  {name:>40}")?;
        if are_events {
            writeln!(writer, "  {:>10}  {:>10}  {:>10}  {text:>10}", "-", "-", "-")?;
        } else {
            writeln!(writer, "  {:>40}  {:>10}  {:>10}  {text:>10}", metric.meaning(), "-", "-")?;
        }
    }
    Ok(())
}

/// Of the run: as the name rolls it up, or as usual.
fn run_value(choice: &Choice, measured: &Measurement) -> Option<Value> {
    let kind = choice.roll_up.unwrap_or_else(|| choice.metric.usual_roll_up());
    measured.total(choice.metric)?.rolled_up(kind)
}

fn device(record: &RunRecord, gpu: &str, writer: &mut dyn Write) -> io::Result<()> {
    writeln!(writer, "Device \"Simulated {} ({gpu}) ({})\"", record.topology, number(record, gpu))
}

/// The number of a GPU on the node.
fn number(record: &RunRecord, gpu: &str) -> usize {
    record.node.gpus().iter().position(|known| known.part == gpu).unwrap_or(0)
}

impl Line {
    fn write(&self, is_event: bool, writer: &mut dyn Write) -> io::Result<()> {
        let by = |a: &Value, b: &Value| a.real().total_cmp(&b.real());
        let (Some(least), Some(most)) =
            (self.values.iter().copied().min_by(by), self.values.iter().copied().max_by(by))
        else {
            return Ok(());
        };
        let unit = self.metric.unit();
        let total: f64 = self.values.iter().map(|value| value.real()).sum();
        let average = total / self.values.len() as f64;
        // Counts have no fraction in nvprof's tables.
        let average =
            if matches!(least, Value::Count(_)) { Value::Count(average as u64) } else { Value::Real(average) };
        write!(writer, "{:>11}  {:>40}", self.values.len(), self.name)?;
        if !is_event {
            write!(writer, "  {:>40}", self.metric.meaning())?;
        }
        let [least, most, average] = [least, most, average].map(|value| shown(value, unit));
        write!(writer, "  {least:>10}  {most:>10}  {average:>10}")?;
        let counts = self.values.iter().map(|value| if let Value::Count(count) = value { *count } else { 0 });
        let total: u64 = counts.fold(0, u64::saturating_add);
        writeln!(writer, "{}", if is_event { format!("  {total:>10}") } else { String::new() })
    }
}

/// A value as nvprof writes it.
fn shown(value: Value, unit: &str) -> String {
    match (value, unit) {
        (Value::Count(count), _) => count.to_string(),
        (Value::Real(real), "%") => format!("{real:.2}%"),
        (Value::Real(real), "GB/s") => format!("{real:.3}GB/s"),
        (Value::Real(real), _) => format!("{real:.6}"),
    }
}

/// Is it in the table of events? Those are counts.
fn is_event(choice: &Choice) -> bool {
    match choice.dialect {
        Dialect::NvprofEvent => true,
        Dialect::NvprofMetric => false,
        _ => matches!(choice.metric.formula, Formula::Sum(_) | Formula::Times(..) | Formula::Without(_)),
    }
}

/// The launches by GPU and kernel, in the order in which they first come.
fn kernels(record: &RunRecord) -> Vec<Kernel> {
    let mut kernels: Vec<Kernel> = Vec::new();
    for launch in record.launches().iter() {
        match kernels.iter_mut().find(|kernel| kernel.name == launch.name && kernel.gpu == launch.gpu) {
            Some(kernel) => kernel.launches.push(launch),
            None => {
                let (name, gpu) = (Arc::clone(&launch.name), Arc::clone(&launch.gpu));
                kernels.push(Kernel { name, gpu, launches: vec![launch] });
            }
        }
    }
    kernels.sort_by_key(|kernel| number(record, &kernel.gpu));
    kernels
}

/// Writes a line for each launch and metric, in the columns of Nsight Compute. What is asked for and not known of launches follows with
/// the kernel name "(whole run)". Numbers have no separators of thousands.
///
/// # Errors
///
/// If `writer` fails.
pub fn ncu(record: &RunRecord, selection: &Selection, writer: &mut dyn Write) -> io::Result<()> {
    let measured = record.measurement();
    let choices = chosen(record, selection, &measured, &[Dialect::Ncu]);
    let mut table = csv::WriterBuilder::new().quote_style(csv::QuoteStyle::Always).from_writer(writer);
    table.write_record(NCU_COLUMNS)?;
    let size = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
    let mut line = |launch: Option<&KernelRecord>, choice: &Choice, value: Value| {
        let of = |text: &dyn Fn(&KernelRecord) -> String| launch.map_or(String::new(), text);
        let device = launch.map(|launch| number(record, &launch.gpu));
        let capability = device.and_then(|device| record.node.gpus().get(device)).map(|gpu| gpu.compute_capability);
        let (value, unit) = in_units_of_ncu(value, choice.metric.unit());
        table.write_record([
            of(&|launch| launch.launch.0.to_string()),
            of(&|launch| launch.process.to_string()),
            record.workload.clone(),
            record.topology.clone(),
            launch.map_or("(whole run)".to_owned(), |launch| full_name(&launch.name)),
            of(&|launch| (launch.process.0 + 1).to_string()),
            of(&|launch| launch.stream.to_string()),
            of(&|launch| size(launch.block)),
            of(&|launch| size(launch.grid)),
            device.map_or(String::new(), |device| device.to_string()),
            capability.map_or(String::new(), |(major, minor)| format!("{major}.{minor}")),
            if launch.is_some() { "Command line profiler metrics" } else { "Whole run" }.to_owned(),
            choice.name.clone(),
            unit.to_owned(),
            value.to_string(),
        ])
    };
    for launch in record.launches().iter() {
        for choice in &choices {
            if let Some(value) = launch_value(choice, &measured, &launch) {
                line(Some(&launch), choice, value)?;
            }
        }
    }
    for choice in &choices {
        let is_known = record.launches().iter().any(|launch| launch_value(choice, &measured, &launch).is_some());
        if let Some(value) = run_value(choice, &measured).filter(|_| !is_known) {
            line(None, choice, value)?;
        }
    }
    table.flush()
}

/// Of a launch: only the sum over its units is known, or the one value of what is no sum.
fn launch_value(choice: &Choice, measured: &Measurement, launch: &KernelRecord) -> Option<Value> {
    let is_one = choice.metric.place == Place::Launch || matches!(choice.metric.formula, Formula::Ratio { .. });
    let is_sum = choice.roll_up.is_none_or(|kind| kind == RollUpKind::Sum);
    if is_one || is_sum { measured.of_launch(choice.metric, launch) } else { None }
}

/// A value in the unit that Nsight Compute has for it.
fn in_units_of_ncu(value: Value, unit: &'static str) -> (Value, &'static str) {
    match unit {
        "ps" => (Value::Real(value.real() / 1e3), "nsecond"),
        "instruction" => (value, "inst"),
        "instruction/cycle" => (value, "inst/cycle"),
        "CTA" => (value, "block"),
        "Hz" => (Value::Real(value.real() / 1e9), "cycle/nsecond"),
        "GB/s" => (Value::Real(value.real() * 1e9), "byte/second"),
        unit => (value, unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::selection::tests::metrics;
    use balar_record::metrics::node_facts::NodeFacts;
    use balar_record::sample::record;

    fn on_node() -> RunRecord {
        let topology =
            crate::simulation::node::load("v100_node", &[], balar_actors::kinds::UNITS).expect("it is built in");
        RunRecord { node: NodeFacts::of(&topology), ..record() }
    }

    fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
        let mut bytes = Vec::new();
        write(&mut bytes).expect("memory takes every byte");
        String::from_utf8(bytes).expect("UTF-8")
    }

    #[test]
    fn nvprof_lists_events_and_metrics_by_kernel() {
        let names = "warps_launched,inst_executed,inst_per_warp,active_cycles,elapsed_cycles_sm";
        let selection = Selection { metrics: metrics(names), ..Selection::default() };
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../snapshots/cli"));
        settings.set_prepend_module_to_snapshot(false);
        let mut record = on_node();
        for (sm, value) in [(0, 300), (1, 200)] {
            let at = record.statistics.rows.iter().rposition(|row| row.location == format!("gpu.sm[{sm}]"));
            for (what, value) in [("cycles_active", value), ("warp_cycles_active", 8 * value)] {
                let row = balar_protocol::statistics::StatisticRow {
                    what,
                    value,
                    ..record.statistics.rows[at.expect("it counts")].clone()
                };
                record.statistics.rows.insert(at.expect("it counts"), row);
            }
        }
        settings.bind(|| insta::assert_snapshot!("nvprof", text(|writer| nvprof(&record, &selection, writer))));
    }

    #[test]
    fn ncu_has_a_line_for_each_launch_and_metric() {
        let names = "sm__inst_executed.sum,sm__inst_executed.max,gpu__time_duration.sum,launch__grid_size,gpu_ipc";
        let selection = Selection { metrics: metrics(names), ..Selection::default() };
        let text = text(|writer| ncu(&on_node(), &selection, writer));
        assert!(
            text.starts_with("\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\""),
            "{text}"
        );
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("row")).collect();
        let find = |id: &str, metric: &str| {
            let row = rows
                .iter()
                .find(|row| &row[0] == id && &row[12] == metric)
                .unwrap_or_else(|| panic!("{metric}: {text}"));
            (row[13].to_owned(), row[14].to_owned(), row[8].to_owned(), row[10].to_owned())
        };
        let of =
            |unit: &str, value: &str| (unit.to_owned(), value.to_owned(), "(4, 2, 1)".to_owned(), "7.0".to_owned());
        assert_eq!(find("1", "sm__inst_executed.sum"), of("inst", "800"));
        assert_eq!(find("1", "gpu__time_duration.sum"), of("nsecond", "304.8"));
        assert_eq!(find("2", "launch__grid_size"), of("block", "8"));
        // It has no name in ncu.
        assert_eq!(find("0", "gpu_ipc"), of("inst/cycle", "48"));
        // The greatest of any SM is known of the run alone.
        let run: Vec<&csv::StringRecord> = rows.iter().filter(|row| row[0].is_empty()).collect();
        assert!(run.iter().all(|row| &row[4] == "(whole run)" && &row[12] == "sm__inst_executed.max"), "{text}");
        assert_eq!(rows.len(), 3 * 4 + run.len());
    }

    #[test]
    fn without_names_all_that_launches_have_is_listed() {
        let record = on_node();
        let text = text(|writer| ncu(&record, &Selection::default(), writer));
        assert!(
            text.contains("\"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum\"") && !text.contains("whole run"),
            "{text}"
        );
        let launches = record.statistics.kernels.len();
        assert!(text.lines().count() > 40 * launches, "{text}");
    }
}
