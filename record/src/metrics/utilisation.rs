//! How busy each unit is, for the parts and links in the picture of the node.

use crate::metrics::node_facts::NodeFacts;
use balar_actors::engine::SampleLayout;
use balar_protocol::statistics::StatisticRow;
use std::collections::BTreeMap;

/// Which of a unit's counters say how long it was busy.
#[derive(Clone, Copy, Debug)]
enum Sign {
    /// Issue slots of an SM's sub-cores.
    IssueSlots,
    /// Cycles of the unit's clock.
    Cycles,
    /// Cycles of all outputs of a crossbar.
    Outputs,
    /// Picoseconds.
    Time,
}

/// The first that a unit counts is taken.
const SIGNS: [(&[&str], Sign); 5] = [
    (&["stall_none_selected"], Sign::IssueSlots),
    (&["data_busy_cycles"], Sign::Cycles),
    (&["output_busy_cycles_request", "output_busy_cycles_response"], Sign::Outputs),
    (&["cycles_busy"], Sign::Cycles),
    (&["busy_time"], Sign::Time),
];

/// How busy a unit is, by counters in samples.
#[derive(Debug)]
struct Busy {
    path: String,
    /// The rows of each part of it that is busy by itself.
    parts: Vec<Vec<usize>>,
    /// The most that a part counts in a second.
    most: f64,
    /// Directions of a link: the busier one counts. Other parts count together.
    is_link: bool,
    before: Vec<u64>,
}

/// How busy the units of a node are.
#[derive(Debug)]
pub struct Utilisation(Vec<Busy>);

impl Utilisation {
    /// The utilisation of the units that have such counters.
    pub fn new(layout: &SampleLayout, node: &NodeFacts) -> Utilisation {
        let busy = layout.units.iter().filter_map(|(path, range)| {
            let rows = &layout.rows[range.clone()];
            Busy::of(path, rows, range.start, node)
        });
        Utilisation(busy.collect())
    }

    /// In percent, by path, over the `seconds` of simulated time since this was asked before.
    pub fn take(&mut self, values: &[u64], seconds: f64) -> BTreeMap<String, f32> {
        self.0.iter_mut().map(|busy| (busy.path.clone(), busy.take(values, seconds))).collect()
    }
}

impl Busy {
    fn of(path: &str, rows: &[StatisticRow], first: usize, node: &NodeFacts) -> Option<Busy> {
        let has = |what: &str| rows.iter().any(|row| row.what == what);
        let (names, sign) = SIGNS.into_iter().find(|(names, _)| names.iter().all(|name| has(name)))?;
        let mut parts: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, row) in rows.iter().enumerate().filter(|(_, row)| names.contains(&row.what)) {
            parts.entry(&row.location).or_default().push(first + at);
        }
        // The row of the whole unit is the sum of its parts.
        if parts.len() > 1 {
            parts.remove(path);
        }
        let is_link = parts.keys().any(|location| location.ends_with(".to_device"));
        let clock = || Some(node.clock(path)?.hertz() as f64);
        let most = match sign {
            Sign::IssueSlots => clock()? * node.sub_cores(path)? as f64,
            Sign::Cycles => clock()?,
            Sign::Outputs => {
                let crossbar = node.crossbar(&crate::metrics::rollup::pattern(path))?;
                clock()? * (crossbar.slices + crossbar.requesters) as f64
            }
            Sign::Time => 1e12,
        };
        let before = vec![0; parts.len()];
        Some(Busy { path: path.to_owned(), parts: parts.into_values().collect(), most, is_link, before })
    }

    fn take(&mut self, values: &[u64], seconds: f64) -> f32 {
        let most = self.most * seconds;
        let shares = self.parts.iter().zip(&mut self.before).map(|(rows, before)| {
            let now: u64 = rows.iter().map(|&row| values[row]).sum();
            let grown = now.saturating_sub(std::mem::replace(before, now));
            if most > 0.0 { grown as f64 / most } else { 0.0 }
        });
        let shares: Vec<f64> = shares.collect();
        let share = if self.is_link {
            shares.iter().copied().fold(0.0, f64::max)
        } else {
            shares.iter().sum::<f64>() / shares.len() as f64
        };
        // Work that is counted when it begins may exceed the stretch by a little. A tenth of a percent is enough to look at.
        ((share * 1000.0).round() / 10.0).clamp(0.0, 100.0) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(location: &str, what: &'static str) -> StatisticRow {
        StatisticRow { location: location.to_owned(), what, value: 0, unit: "", maximum: false }
    }

    #[test]
    fn units_are_busy_by_what_they_count() {
        let topology = crate::sample::node("v100_node");
        let rows = vec![
            row("gpu.sm[0]", "stall_none_selected"),
            row("data_link", "busy_time"),
            row("data_link.to_device", "busy_time"),
            row("data_link.to_host", "busy_time"),
            row("gpu.hbm[0]", "busy_time"),
            row("gpu.hbm[0].channel[0]", "busy_time"),
            row("gpu.hbm[0].channel[1]", "busy_time"),
            row("gpu.gmmu", "walks"),
        ];
        let units = [("gpu.sm[0]", 0..1), ("data_link", 1..4), ("gpu.hbm[0]", 4..7), ("gpu.gmmu", 7..8)];
        let layout = SampleLayout { rows, units: units.map(|(path, rows)| (path.to_owned(), rows)).into() };
        let mut utilisation = Utilisation::new(&layout, &NodeFacts::of(&topology));
        // A microsecond: 1312 cycles of four sub-cores; 600 and 200 ns of the link's directions; 1000 and 500 ns of two channels.
        let values = [2624, 800_000, 600_000, 200_000, 1_500_000, 1_000_000, 500_000, 9];
        let expected = [("data_link", 60.0), ("gpu.hbm[0]", 75.0), ("gpu.sm[0]", 50.0)];
        let expected: BTreeMap<String, f32> = expected.map(|(path, percent)| (path.to_owned(), percent)).into();
        assert_eq!(utilisation.take(&values, 1e-6), expected);
        assert!(utilisation.take(&values, 1e-6).values().all(|&percent| percent == 0.0), "nothing more has happened");
    }
}
