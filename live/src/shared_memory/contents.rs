//! The contents of the cells and texts of the shared memory.

use super::super::state::LiveState;
use balar_actors::engine::SampleLayout;

/// A number in a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole number.
    Count(u64),
    /// A fraction; not a number where there is no value.
    Real(f64),
}

impl Number {
    /// The kind in its descriptor: 0 for a whole number, 1 for an IEEE 754 double.
    pub fn kind(self) -> u64 {
        match self {
            Number::Count(_) => 0,
            Number::Real(_) => 1,
        }
    }

    /// Its bits.
    pub fn bits(self) -> u64 {
        match self {
            Number::Count(count) => count,
            Number::Real(real) => real.to_bits(),
        }
    }

    /// The number of a kind with these bits.
    pub fn of(kind: u64, bits: u64) -> Number {
        if kind == 0 { Number::Count(bits) } else { Number::Real(f64::from_bits(bits)) }
    }
}

/// Gives each cell's name, unit of measure and number, always in the same order, and returns the texts with their names.
pub fn contents(
    state: &LiveState,
    layout: &SampleLayout,
    values: &[u64],
    mut cell: impl FnMut(&dyn Fn() -> String, &str, Number),
) -> Vec<(&'static str, String)> {
    let resident = state.kernels.iter().filter(|kernel| kernel.end_ps.is_none());
    let seconds = |seconds: f64| Number::Real(seconds);
    for (name, unit, number) in [
        ("phase", "", Number::Count(state.phase as u64)),
        ("sim_time", "ps", Number::Count(state.sim_ps)),
        ("sampled_at", "ps", Number::Count(state.sampled_ps)),
        ("windows", "window", Number::Count(state.windows)),
        ("messages", "message", Number::Count(state.messages)),
        ("wall_time", "s", seconds(state.wall_seconds)),
        ("held_time", "s", seconds(state.held_seconds)),
        ("still_time", "s", seconds(state.still_seconds)),
        ("unanswered_time", "s", seconds(state.unanswered_seconds)),
        ("time_left", "s", Number::Real(state.estimate.seconds_left.unwrap_or(f64::NAN))),
        ("ctas_ended", "CTA", Number::Count(state.ctas_ended)),
        ("ctas_planned", "CTA", Number::Count(state.ctas_planned.unwrap_or(0))),
        ("kernels_ended", "kernel", Number::Count(state.kernels_ended)),
        ("kernels_resident", "kernel", Number::Count(resident.clone().count() as u64)),
        ("sim_time_rate", "us/s", Number::Real(state.sim_us_per_second)),
        ("message_rate", "message/s", Number::Real(state.messages_per_second)),
        ("warp_instruction_rate", "instruction/s", Number::Real(state.warp_instructions_per_second)),
    ] {
        cell(&|| name.to_owned(), unit, number);
    }
    let of_gpus = state.gpus.iter().flat_map(|gpu| gpu.metrics.iter().map(move |metric| (gpu.name.as_str(), metric)));
    for (place, metric) in of_gpus.chain(state.node.iter().map(|metric| ("node", metric))) {
        let value = metric.value.unwrap_or(f64::NAN);
        let number = if metric.is_count { Number::Count(value as u64) } else { Number::Real(value) };
        cell(&|| format!("metric {place} {}", metric.name), &metric.unit, number);
    }
    for (path, percent) in &state.units {
        cell(&|| format!("utilisation {path}"), "%", Number::Real(f64::from(*percent)));
    }
    for (row, value) in layout.rows.iter().zip(values) {
        cell(&|| format!("counter {} {}", row.location, row.what), row.unit, Number::Count(*value));
    }
    let running: Vec<&str> = resident.map(|kernel| kernel.name.as_str()).collect();
    vec![
        ("topology", state.run.topology.clone()),
        ("workload", state.run.workload.clone()),
        ("phase", state.phase.name().to_owned()),
        ("ending", state.ending.clone().unwrap_or_default()),
        ("kernels", running.join(", ")),
        ("basis of time_left", state.estimate.basis.clone()),
        ("waiting", state.waiting.join("; ")),
    ]
}
