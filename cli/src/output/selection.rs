//! Which part of a result is printed: the summary, all of it, or the rows asked for.

use crate::failure::Failure;
use balar_actors::topology::{PathPattern, Topology, suggestion};
use balar_protocol::statistics::StatisticRow;
use clap::Args;

const SHOW_HELP: &str = "Print the counters of these units: 'gpu.l2[*]', 'gpu.sm[0..4]', 'gpu' (repeatable)";

/// What to print of a result. Files and JSON always have all of it.
#[derive(Args, Clone, Debug, Default)]
pub struct Selection {
    /// Print every counter, not a summary of one screen
    #[arg(long)]
    pub details: bool,
    /// Units whose counters are printed.
    #[arg(long, value_name = "PATH", value_parser = pattern, help = SHOW_HELP)]
    pub show: Vec<PathPattern>,
    /// Print these counters: inst_executed,'stall_*' (repeatable)
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub metrics: Vec<String>,
}

fn pattern(text: &str) -> Result<PathPattern, String> {
    text.parse().map_err(|error: balar_actors::topology::PatternError| error.message)
}

impl Selection {
    /// Everything.
    pub fn all() -> Selection {
        Selection { details: true, ..Selection::default() }
    }

    /// Are single rows asked for?
    pub fn is_partial(&self) -> bool {
        !self.show.is_empty() || !self.metrics.is_empty()
    }

    /// Refuses what no unit of the topology has, before a run that would print nothing.
    ///
    /// # Errors
    ///
    /// A path without a unit, or a counter that no unit has, with the nearest right one.
    pub fn check(&self, topology: &Topology) -> Result<(), Failure> {
        for path in &self.show {
            if !topology.units.iter().any(|unit| path.leads_to(&unit.path)) {
                let mut rows: Vec<String> =
                    topology.units.iter().map(|unit| crate::rollup::pattern(&unit.path)).collect();
                rows.dedup();
                let text = path.to_string();
                let help = suggestion(&text, rows.iter().map(String::as_str));
                return Err(Failure::mistake(format_args!("--show {text}: there is no such unit"), help));
            }
        }
        for wanted in &self.metrics {
            let names = || topology.units.iter().flat_map(|unit| unit.kind.counters).map(|counter| counter.name);
            if !names().any(|name| matches(wanted, name)) {
                let mut names: Vec<&str> = names().collect();
                names.sort_unstable();
                names.dedup();
                let help = suggestion(wanted, names);
                return Err(Failure::mistake(format_args!("--metrics {wanted}: no unit counts that"), help));
            }
        }
        Ok(())
    }

    /// Is this row asked for?
    pub fn covers(&self, row: &StatisticRow) -> bool {
        (self.show.is_empty() || self.show.iter().any(|path| path.covers(&row.location)))
            && (self.metrics.is_empty() || self.metrics.iter().any(|wanted| matches(wanted, row.what)))
    }

    /// The name that a row shares with those it is rolled up with.
    pub fn label(&self, location: &str) -> String {
        let own = self.show.iter().find(|path| path.covers(location));
        own.map_or_else(|| crate::rollup::pattern(location), |path| path.label(location))
    }
}

/// Is `name` as `pattern` says, in which "*" stands for anything?
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|tail| {
            let ends = tail.char_indices().map(|(at, _)| at).chain([tail.len()]);
            ends.into_iter().any(|at| matches(rest, &tail[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, name, same) in [
            ("stall_*", "stall_wait", true),
            ("stall_*", "install_wait", false),
            ("*_wait", "stall_wait", true),
            ("*", "calls", true),
            ("l1_*_load", "l1_sectors_load", true),
            ("l1_*_load", "l1_sectors_store", false),
            ("calls", "calls_failed", false),
        ] {
            assert_eq!(matches(pattern, name), same, "{pattern} {name}");
        }
    }

    #[test]
    fn rows_are_selected_by_both() {
        let row = |location: &str, what| StatisticRow {
            location: location.to_owned(),
            what,
            value: 1,
            unit: "sector",
            maximum: false,
        };
        let selection = Selection {
            details: false,
            show: vec!["gpu.l2[0..2]".parse().expect("a path")],
            metrics: vec!["sectors_*".to_owned()],
        };
        assert!(selection.covers(&row("gpu.l2[1]", "sectors_read")));
        assert!(!selection.covers(&row("gpu.l2[2]", "sectors_read")));
        assert!(!selection.covers(&row("gpu.l2[1]", "requests")));
        assert_eq!(selection.label("gpu.l2[1]"), "gpu.l2[0..2]");
        assert_eq!(Selection::all().label("gpu.l2[1]"), "gpu.l2[*]");
    }
}
