//! The picture of the node, its units and links coloured by how busy they were, and the numbers behind it.

use super::input::{RunInput, UnitCounts};
use super::units::{numbers, percent, titled};
use balar_actors::catalogue::UnitDefinition;
use balar_actors::engine::SampleLayout;
use balar_actors::topology::{Topology, live_svg};
use balar_protocol::statistics::{StatisticDefinition, StatisticRow};
use balar_record::metrics::rollup::pattern;
use balar_record::metrics::utilisation::Utilisation;
use balar_record::metrics::{Place, copies_use_l2, is_in};
use balar_record::run_folder::document::RowReading;
use balar_report::{Cell, Column, Format, Part, Picture, Section, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// How busy the units of a run were, in percent, by path.
type Loads = BTreeMap<String, f32>;

/// How busy the units of a run were, and over what.
#[derive(Default)]
struct Measured {
    loads: Loads,
    /// Units that are measured in the time of kernels; the others in that of the run.
    in_kernels: BTreeSet<String>,
}

/// How busy units were: those of GPUs in the time of kernels, unless copies use the same; others in the time of the run.
fn measured(run: &RunInput, topology: &Topology, kinds: &[&'static UnitDefinition]) -> Measured {
    let names: BTreeMap<&str, &StatisticDefinition> =
        kinds.iter().flat_map(|kind| kind.counters).map(|counter| (counter.name, counter)).collect();
    let mut layout = SampleLayout::default();
    let mut values = Vec::new();
    let mut rows: BTreeMap<&str, Vec<(&str, &StatisticDefinition, u64)>> = BTreeMap::new();
    for row in &run.document().statistics {
        let Some(definition) = names.get(&*row.what) else { continue };
        // The unit that a row is of, or of a part of: its path is the longest that fits.
        let mut path = row.location.as_str();
        while topology.units.iter().all(|unit| unit.path != path) {
            let Some(end) = path.rfind('.') else { break };
            path = &path[..end];
        }
        rows.entry(path).or_default().push((&row.location, definition, row.value));
    }
    for (path, rows) in rows {
        let first = layout.rows.len();
        for (location, definition, value) in rows {
            let StatisticDefinition { name: what, unit, maximum, .. } = *definition;
            layout.rows.push(StatisticRow { location: location.to_owned(), what, value, unit, maximum });
            values.push(value);
        }
        layout.units.push((path.to_owned(), first..layout.rows.len()));
    }
    let seconds = |picoseconds: u64| picoseconds as f64 * 1e-12;
    let mut measured = Measured {
        loads: Utilisation::new(&layout, &run.node).take(&values, seconds(run.time())),
        ..Measured::default()
    };
    let shared = shared_with_copies(run);
    for (gpu, path) in run.gpus.iter().enumerate() {
        let time = run.kernel_time(Some(gpu));
        if time == 0 {
            continue;
        }
        for (unit, load) in Utilisation::new(&layout, &run.node).take(&values, seconds(time)) {
            let is_shared = || shared.iter().any(|location| *location == unit || is_in(location, &unit));
            if is_in(&unit, path) && !unit.contains("copy_engine") && !is_shared() {
                measured.in_kernels.insert(unit.clone());
                measured.loads.insert(unit, load);
            }
        }
    }
    measured
}

/// What counts in GPUs and is used by copies as well, while no kernel runs: the L2, and what is below and before it, where copies go
/// through it.
fn shared_with_copies(run: &RunInput) -> Vec<&str> {
    if !copies_use_l2(run.document().statistics.iter().map(|row| (&*row.what, row.value))) {
        return Vec::new();
    }
    let is_below = |unit: &&UnitCounts| matches!(unit.place, Some(Place::L2 | Place::Crossbar | Place::Dram));
    run.units.iter().filter(is_below).map(|unit| unit.location.as_str()).collect()
}

/// How busy the units of a row were together while kernels ran, in percent, where copies use them as well: launches count what they did
/// there. `None` of other rows.
fn together_in_kernels(run: &RunInput, row: &str) -> Option<f64> {
    let shared = shared_with_copies(run);
    let is_shared = shared.iter().any(|location| {
        let location = pattern(location);
        location == row || is_in(&location, row)
    });
    // Of GPUs that do not share a row, the metrics are over the run.
    let rows: BTreeSet<String> = run.gpus.iter().map(|gpu| pattern(gpu)).collect();
    (is_shared && rows.len() == 1 && run.kernel_time(None) > 0)
        .then(|| utilisation_of(&run.document().metrics, row))
        .flatten()
}

/// The utilisation of a row of units among the metrics of a run.
fn utilisation_of(metrics: &[RowReading], row: &str) -> Option<f64> {
    let channels = format!("{row}.channel[*]");
    let is_of_row = |reading: &&RowReading| match reading.metric.as_str() {
        "l2.util" => reading.location == row,
        "dram.util" => reading.location == channels,
        _ => false,
    };
    metrics.iter().find(is_of_row)?.avg
}

/// The picture with the load of each shape, which is that of the busiest unit that it stands for.
fn picture(topology: &Topology, loads: &Loads) -> String {
    let svg = live_svg(topology);
    let mut shown = String::with_capacity(svg.len() * 2);
    for line in svg.lines() {
        let (before, units, after) = match split(line) {
            Some(parts) => parts,
            None => {
                let _ = writeln!(shown, "{line}");
                continue;
            }
        };
        let of_units = units.split(' ').filter_map(|unit| loads.get(unit)).copied();
        match of_units.reduce(f32::max) {
            Some(load) => {
                let before = before.replacen("class=\"", "class=\"loaded ", 1);
                // The eye sees a little load, too: the colour goes by the square root.
                let colour = (load * 100.0).sqrt();
                let after = after.replacen("</title>", &format!(": {load:.1} % busy</title>"), 1);
                let _ = writeln!(shown, "{before} style=\"--load:{colour:.1}%\"{after}");
            }
            None => {
                let _ = writeln!(shown, "{before}{after}");
            }
        }
    }
    shown
}

/// A shape that stands for units: what is before and after these.
fn split(line: &str) -> Option<(&str, &str, &str)> {
    const MARK: &str = " data-units=\"";
    let start = line.find(MARK)?;
    let (units, after) = line[start + MARK.len()..].split_once('"')?;
    Some((&line[..start], units, after))
}

/// The section; `None` where no run has a topology or a load.
pub fn section(runs: &[RunInput], kinds: &[&'static UnitDefinition]) -> Option<Section> {
    let mut parts = Vec::new();
    let mut pictures = Vec::new();
    let mut all: Vec<Measured> = Vec::new();
    for run in runs {
        match &run.topology {
            Ok(topology) => {
                let own = measured(run, topology, kinds);
                let busiest = own.loads.iter().max_by(|a, b| a.1.total_cmp(b.1));
                let busiest = busiest.map_or(String::new(), |(unit, load)| {
                    format!(" The busiest unit is {unit} with {}.", percent(f64::from(*load)))
                });
                let label = format!("The node, its units and links coloured by how busy they were.{busiest}");
                let title = titled(&run.document().topology, run, None);
                pictures.push(Part::Picture(Picture { title, label, svg: picture(topology, &own.loads) }));
                all.push(own);
            }
            Err(why) => {
                pictures.push(Part::Note(titled(&format!("the node is not drawn: {why}"), run, None)));
                all.push(Measured::default());
            }
        }
    }
    if pictures.len() == 2 {
        parts.push(Part::Beside(pictures))
    } else {
        parts.append(&mut pictures)
    }
    if all.iter().any(|own| !own.loads.is_empty()) {
        parts.push(Part::Table(table(runs, &all)));
    }
    let shared = if runs.iter().all(|run| shared_with_copies(run).is_empty()) {
        ""
    } else {
        "Copies use the L2, the crossbar and the memory, too: they are coloured by the time of the run; rows that are measured over kernels \
         have what launches did there. "
    };
    let span =
        format!("Units of GPUs are measured in the time in which kernels ran, others in the time of the run. {shared}");
    let lead = format!(
        "{span}Of a link, the busier direction counts. The colour goes by the square root, so that a little shows, too."
    );
    Some(Section { id: "node", title: "Node", lead, parts })
}

/// How busy rows of units were.
fn table(runs: &[RunInput], all: &[Measured]) -> Table {
    let mut rows: BTreeMap<String, Vec<Vec<f32>>> = BTreeMap::new();
    for (index, own) in all.iter().enumerate() {
        for (unit, load) in &own.loads {
            let row = rows.entry(pattern(unit)).or_insert_with(|| vec![Vec::new(); runs.len()]);
            row[index].push(*load);
        }
    }
    let mean =
        |loads: &Vec<f32>| super::units::quotient(loads.iter().map(|load| f64::from(*load)).sum(), loads.len() as f64);
    let most = |loads: &Vec<f32>| loads.iter().copied().reduce(f32::max).map(f64::from);
    let bytes = |run: &RunInput, row: &str| {
        let own = run.units.iter().filter(|unit| {
            // Of a unit that has parts, those are added up.
            let of_unit = pattern(&unit.location);
            of_unit == *row || of_unit.strip_prefix(row).is_some_and(|rest| matches!(rest, ".to_device" | ".to_host"))
        });
        let counted = own.filter_map(|unit| {
            let sectors = || Some(32 * (unit.counts.get("sectors_read")? + unit.get("sectors_written")));
            unit.counts.get("bytes").copied().or_else(sectors)
        });
        counted.reduce(u64::saturating_add).map(|bytes| bytes as f64 / 1e6)
    };
    let mut shown: Vec<(f64, Vec<Cell>)> = rows
        .iter()
        .map(|(row, loads)| {
            let together: Vec<Option<f64>> = runs.iter().map(|run| together_in_kernels(run, row)).collect();
            // Of one unit, what kernels did cannot be told apart from copies.
            let each = |of: &dyn Fn(&Vec<f32>) -> Option<f64>, known: bool| -> Vec<Option<f64>> {
                let pairs = loads.iter().zip(&together);
                pairs
                    .map(|(loads, together)| if together.is_some() { together.filter(|_| known) } else { of(loads) })
                    .collect()
            };
            let (means, busiest) = (each(&mean, true), each(&most, false));
            let greatest = busiest.iter().chain(&means).flatten().copied().fold(0.0, f64::max);
            let mut over: Vec<&str> = Vec::new();
            for ((own, together), loads) in all.iter().zip(&together).zip(loads) {
                let is_of_kernels = together.is_some() || own.in_kernels.iter().any(|unit| pattern(unit) == *row);
                let name = if is_of_kernels { "kernels" } else { "run" };
                if !loads.is_empty() && !over.contains(&name) {
                    over.push(name);
                }
            }
            let cells = vec![
                Cell::Text(row.clone()),
                Cell::count(loads.iter().map(Vec::len).max().unwrap_or(0) as u64),
                Cell::Numbers(means),
                Cell::Numbers(busiest),
                Cell::Text(over.join(", ")),
                numbers(runs, |run| bytes(run, row)),
            ];
            (greatest, cells)
        })
        .collect();
    shown.sort_by(|a, b| b.0.total_cmp(&a.0));
    Table {
        caption: "How busy units were".to_owned(),
        columns: vec![
            Column::text("units"),
            Column::number("number", "", Format::Count),
            Column::number("busy", "%, mean", Format::Percent),
            Column::number("busy", "%, busiest", Format::Percent),
            Column::text("measured over").meaning("kernels: the time in which kernels ran; run: the whole run"),
            Column::number("data", "MB", Format::Fixed(3)),
        ],
        rows: shown.into_iter().map(|(_, cells)| cells).collect(),
        is_sortable: true,
        rest: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_copies_use_have_what_launches_did() {
        let reading = |metric: &str, location: &str, avg| RowReading {
            metric: metric.to_owned(),
            location: location.to_owned(),
            instances: 8,
            sum: None,
            avg: Some(avg),
            min: None,
            max: None,
            unit: "%".to_owned(),
        };
        let metrics = [
            reading("dram.util", "gpu.hbm[*].channel[*]", 79.3),
            reading("l2.util", "gpu.l2[*]", 41.0),
            reading("l2.hit_rate_rd", "gpu.crossbar", 5.0),
        ];
        let of = |row| utilisation_of(&metrics, row);
        assert_eq!((of("gpu.hbm[*]"), of("gpu.l2[*]"), of("gpu.crossbar")), (Some(79.3), Some(41.0), None));
        assert_eq!(of("gpu2.hbm[*]"), None);
    }

    #[test]
    fn shapes_have_the_load_of_their_busiest_unit() {
        let topology =
            crate::simulation::node::load("v100_node", &[], balar_actors::kinds::UNITS).expect("it is built in");
        let loads: Loads = [("gpu.sm[3]".to_owned(), 25.0), ("data_link".to_owned(), 4.0)].into();
        let text = picture(&topology, &loads);
        assert_eq!(text.matches("--load:").count(), 3, "an SM, and a link with its line and its box");
        let sm = text.lines().find(|line| line.contains("gpu.sm[3]:")).expect("it is drawn");
        assert!(
            sm.contains("class=\"loaded sm\"") && sm.contains("--load:50.0%") && sm.contains("25.0 % busy"),
            "{sm}"
        );
        assert!(!text.contains("data-units") && text.contains("--load:20.0%"));
    }
}
