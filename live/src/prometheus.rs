//! The state of a run in the text format of Prometheus, version 0.0.4.
//!
//! There are series for the node, for each GPU, and for the kernels that run now. None is for a unit: a node has hundreds of them.

use super::state::{LiveState, Measured, Phase};
use std::fmt::Write;

/// The type of the content.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Kernels that have series at a time.
const KERNELS: usize = 16;

/// A family of series: its name, type and meaning, and by their labels the values.
struct Families(String);

impl Families {
    /// Adds a family with its series, unless it has none.
    fn add<'a>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        series: impl IntoIterator<Item = (Vec<(&'a str, &'a str)>, f64)>,
    ) {
        let mut series = series.into_iter().peekable();
        if series.peek().is_none() {
            return;
        }
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in series {
            let labels: Vec<String> =
                labels.iter().map(|(label, text)| format!("{label}=\"{}\"", escaped(text))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(self.0, "{name}{labels} {}", number(value));
        }
    }

    fn counter(&mut self, name: &str, help: &str, value: f64) {
        self.add(name, "counter", help, [(Vec::new(), value)]);
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.add(name, "gauge", help, [(Vec::new(), value)]);
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn number(value: f64) -> String {
    match value {
        value if value.is_nan() => "NaN".to_owned(),
        value if value.is_infinite() => if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned(),
        value => value.to_string(),
    }
}

/// All of it.
pub fn text(state: &LiveState) -> String {
    let mut families = Families(String::new());
    let run = &state.run;
    let facts = vec![
        ("version", run.program.as_str()),
        ("topology", run.topology.as_str()),
        ("workload", run.workload.as_str()),
    ];
    families.add("balar_run_info", "gauge", "which run this is", [(facts, 1.0)]);
    let phases = [Phase::Preparing, Phase::Running, Phase::Held, Phase::Concluding, Phase::Ended];
    let phases = phases.map(|phase| (vec![("phase", phase.name())], f64::from(u8::from(phase == state.phase))));
    families.add("balar_run_phase", "gauge", "1 for the phase that the run is in", phases);
    families.counter("balar_simulated_seconds_total", "simulated time", state.sim_ps as f64 / 1e12);
    families.counter("balar_wall_seconds_total", "real time since the run began", state.wall_seconds);
    families.counter("balar_held_seconds_total", "real time for which the run was held", state.held_seconds);
    families.counter("balar_windows_total", "windows of the engine", state.windows as f64);
    families.counter("balar_messages_total", "messages between units", state.messages as f64);
    families.counter("balar_ctas_ended_total", "CTAs that have ended, on all GPUs", state.ctas_ended as f64);
    families.counter("balar_kernels_ended_total", "launches that have ended, on all GPUs", state.kernels_ended as f64);
    if let Some(planned) = state.ctas_planned {
        families.gauge("balar_ctas_planned", "CTAs of all launches of the workload", planned as f64);
    }
    if let Some(left) = state.estimate.seconds_left {
        families.gauge("balar_estimated_seconds_left", &state.estimate.basis, left);
    }
    let unanswered = "real time for which the simulator has owed an answer";
    families.gauge("balar_unanswered_seconds", unanswered, state.unanswered_seconds);
    families.gauge("balar_still_seconds", "real time for which simulated time has not moved", state.still_seconds);

    let of_gpus = |value: fn(&super::state::Gpu) -> f64| {
        let series = state.gpus.iter().map(move |gpu| (vec![("gpu", gpu.name.as_str())], value(gpu)));
        series.collect::<Vec<_>>()
    };
    families.add("balar_gpu_kernels", "gauge", "launches on the GPU", of_gpus(|gpu| gpu.kernels as f64));
    let ended = "launches that have ended on the GPU";
    families.add("balar_gpu_kernels_ended_total", "counter", ended, of_gpus(|gpu| gpu.kernels_ended as f64));
    let ended = "CTAs that have ended on the GPU";
    families.add("balar_gpu_ctas_ended_total", "counter", ended, of_gpus(|gpu| gpu.ctas_ended as f64));
    let columns = state.gpus.first().map(|gpu| gpu.metrics.as_slice()).unwrap_or_default();
    for column in columns {
        let of = |gpu: &super::state::Gpu| gpu.metrics.iter().find(|metric| metric.name == column.name)?.value;
        let series = state.gpus.iter().filter_map(|gpu| Some((vec![("gpu", gpu.name.as_str())], of(gpu)?)));
        measured(&mut families, "gpu", column, series.collect());
    }
    for metric in &state.node {
        let series = metric.value.map(|value| (Vec::new(), value)).into_iter().collect();
        measured(&mut families, "node", metric, series);
    }

    let running = || state.kernels.iter().filter(|kernel| kernel.end_ps.is_none()).take(KERNELS);
    let launches: Vec<String> = running().map(|kernel| kernel.launch.to_string()).collect();
    let of_kernels = |value: fn(&super::state::Kernel) -> f64| {
        let series = running().zip(&launches).map(move |(kernel, launch)| {
            let labels = [("gpu", kernel.gpu.as_str()), ("kernel", kernel.name.as_str()), ("launch", launch.as_str())];
            (labels.into(), value(kernel))
        });
        series.collect::<Vec<_>>()
    };
    families.add(
        "balar_kernel_ctas",
        "gauge",
        "CTAs of a launch that is on a GPU",
        of_kernels(|kernel| kernel.ctas as f64),
    );
    let ended = "CTAs of a launch that have ended";
    families.add("balar_kernel_ctas_ended", "gauge", ended, of_kernels(|kernel| kernel.ctas_ended as f64));
    families.0
}

/// A metric, as a counter where it only grows.
fn measured(families: &mut Families, place: &str, metric: &Measured, series: Vec<(Vec<(&str, &str)>, f64)>) {
    let unit = if metric.unit.is_empty() { String::new() } else { format!(" ({})", metric.unit) };
    let help = format!("{}{unit}", metric.meaning);
    let name = format!("balar_{place}_{}", metric.name);
    if metric.is_count {
        families.add(&format!("{name}_total"), "counter", &help, series);
    } else {
        families.add(&name, "gauge", &help, series);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Gpu, Kernel};

    #[test]
    fn families_follow_the_format() {
        let metric = |name: &str, is_count, value| Measured {
            name: name.to_owned(),
            meaning: "sectors\\of loads".to_owned(),
            unit: "%".to_owned(),
            is_count,
            value,
        };
        let gpu = |name: &str, value| Gpu {
            name: name.to_owned(),
            metrics: vec![metric("inst", true, Some(3.0)), metric("hit_rate", false, value)],
            ..Gpu::default()
        };
        let kernel =
            Kernel { launch: 4, name: "a\"b\\c".to_owned(), gpu: "g".to_owned(), ctas: 9, ..Kernel::default() };
        let ended = Kernel { end_ps: Some(1), ..kernel.clone() };
        let state = LiveState {
            sim_ps: 2_500_000,
            gpus: vec![gpu("gpu[0]", None), gpu("gpu[1]", Some(12.5))],
            kernels: vec![ended, kernel],
            ..LiveState::default()
        };
        let text = text(&state);
        for line in [
            "# TYPE balar_simulated_seconds_total counter",
            "balar_simulated_seconds_total 0.0000025",
            "balar_run_phase{phase=\"preparing\"} 1",
            "# HELP balar_gpu_hit_rate sectors\\\\of loads (%)\n# TYPE balar_gpu_hit_rate gauge\nbalar_gpu_hit_rate{gpu=\"gpu[1]\"} 12.5",
            "balar_gpu_inst_total{gpu=\"gpu[0]\"} 3\nbalar_gpu_inst_total{gpu=\"gpu[1]\"} 3",
            "# TYPE balar_kernel_ctas gauge\nbalar_kernel_ctas{gpu=\"g\",kernel=\"a\\\"b\\\\c\",launch=\"4\"} 9\n#",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(!text.contains("balar_ctas_planned"), "what is not known is not there");
        assert!(text.ends_with('\n'));
    }
}
