//! Names of metrics, in any dialect, looked up.

use super::catalogue::METRICS;
use super::formula::Formula;
use super::metric::{Dialect, Metric, RollUpKind};

/// A metric as a user has named it.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The metric.
    pub metric: &'static Metric,
    /// Whose name it was.
    pub dialect: Dialect,
    /// The name that was found for the pattern: with the ending, where it has one.
    pub name: String,
    /// The roll-up that the name asks for.
    pub roll_up: Option<RollUpKind>,
}

/// The metrics that a name stands for, in which "*" stands for anything; each of them once. Empty where there is none.
pub fn find(pattern: &str) -> Vec<Choice> {
    METRICS.iter().filter_map(|metric| choice(metric, pattern)).collect()
}

/// Every name of every metric, without the endings of roll-ups.
pub fn all_names() -> impl Iterator<Item = &'static str> {
    METRICS.iter().flat_map(|metric| Dialect::ALL.into_iter().flat_map(|dialect| metric.names_in(dialect)))
}

/// Is `name` as `pattern` says, in which "*" stands for anything?
pub fn is_like(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|tail| {
            let ends = tail.char_indices().map(|(at, _)| at).chain([tail.len()]);
            ends.into_iter().any(|at| is_like(rest, &tail[at..]))
        }),
    }
}

fn choice(metric: &'static Metric, pattern: &str) -> Option<Choice> {
    let names =
        || Dialect::ALL.into_iter().flat_map(|dialect| metric.names_in(dialect).map(move |name| (dialect, name)));
    let whole = names().find(|(_, name)| is_like(pattern, name)).map(|(dialect, name)| {
        let roll_up = (dialect == Dialect::Ncu).then(|| ending_of(name)).flatten();
        Choice { metric, dialect, name: name.to_owned(), roll_up }
    });
    whole.or_else(|| {
        let mut rolled =
            names().filter(|(dialect, name)| takes_ending(metric, *dialect, name)).flat_map(|(dialect, name)| {
                let named = move |kind: RollUpKind| (dialect, format!("{name}{}", kind.ending()), kind);
                RollUpKind::ALL.into_iter().map(named)
            });
        let (dialect, name, kind) = rolled.find(|(_, name, _)| is_like(pattern, name))?;
        Some(Choice { metric, dialect, name, roll_up: Some(kind) })
    })
}

/// Does a name take the ending of a roll-up? Ours do, and names of ncu that have none: only counters have such.
fn takes_ending(metric: &Metric, dialect: Dialect, name: &str) -> bool {
    match dialect {
        Dialect::Own => true,
        Dialect::Ncu => !name.contains('.') && !matches!(metric.formula, Formula::Ratio { .. }),
        _ => false,
    }
}

/// The roll-up that a name ends with.
fn ending_of(name: &str) -> Option<RollUpKind> {
    RollUpKind::ALL.into_iter().find(|kind| name.ends_with(kind.ending()))
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
            assert_eq!(is_like(pattern, name), same, "{pattern} {name}");
        }
    }

    #[test]
    fn a_metric_is_found_by_any_of_its_names() {
        for (name, metric, dialect, roll_up) in [
            ("sm.cycles_active", "sm.cycles_active", Dialect::Own, None),
            ("sm.cycles_active.max", "sm.cycles_active", Dialect::Own, Some(RollUpKind::Max)),
            ("active_cycles", "sm.cycles_active", Dialect::NvprofEvent, None),
            ("sm__cycles_active.avg", "sm.cycles_active", Dialect::Ncu, Some(RollUpKind::Avg)),
            ("smsp__inst_executed.sum", "sm.inst_executed", Dialect::Ncu, Some(RollUpKind::Sum)),
            ("sm__cycles_elapsed.max", "gpu.cycles_elapsed", Dialect::Ncu, Some(RollUpKind::Max)),
            ("achieved_occupancy", "sm.achieved_occupancy", Dialect::NvprofMetric, None),
            ("gpu_sim_insn", "sm.thread_inst_executed", Dialect::GpgpuSim, None),
            ("l1gcache_N.CacheHits", "l1.hits_ld", Dialect::Sst, None),
        ] {
            let found = find(name);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            let choice = &found[0];
            assert_eq!((choice.metric.name, choice.dialect, choice.roll_up), (metric, dialect, roll_up), "{name}");
            assert_eq!(choice.name, name);
        }
    }

    #[test]
    fn patterns_find_each_metric_once() {
        let stalls = find("stall.*");
        assert!(stalls.len() > 12 && stalls.iter().all(|choice| choice.roll_up.is_none()), "{stalls:?}");
        let sums = find("dram__*.sum");
        assert!(sums.iter().all(|choice| choice.roll_up == Some(RollUpKind::Sum)), "{sums:?}");
        assert!(sums.iter().any(|choice| choice.name == "dram__sectors_read.sum"), "{sums:?}");
        for wrong in ["", "inst_execute", "smsp__inst_executed.max", "sm__cycles_active.pct", "active_cycles.sum"] {
            assert!(find(wrong).is_empty(), "{wrong}");
        }
    }
}
