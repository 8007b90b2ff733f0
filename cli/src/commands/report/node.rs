//! The picture of the node, its units and links coloured by how busy they were, and the numbers behind it.

use super::input::RunInput;
use super::units::{numbers, percent, titled};
use balar_actors::catalogue::UnitDefinition;
use balar_actors::engine::SampleLayout;
use balar_actors::topology::{Topology, live_svg};
use balar_protocol::statistics::{StatisticDefinition, StatisticRow};
use balar_record::metrics::rollup::pattern;
use balar_record::metrics::utilisation::Utilisation;
use balar_record::metrics::{copies_use_l2, is_in};
use balar_report::{Cell, Column, Format, Part, Picture, Section, Table};
use std::collections::BTreeMap;
use std::fmt::Write;

/// How busy the units of a run were, in percent, by path.
type Loads = BTreeMap<String, f32>;

/// How busy units were: those of GPUs in the time of kernels, unless copies use the same; others in the time of the run.
fn loads(run: &RunInput, topology: &Topology, kinds: &[&'static UnitDefinition]) -> Loads {
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
    let mut loads = Utilisation::new(&layout, &run.node).take(&values, seconds(run.time()));
    if !is_of_run(run) {
        for (gpu, path) in run.gpus.iter().enumerate() {
            let in_kernels = Utilisation::new(&layout, &run.node).take(&values, seconds(run.kernel_time(Some(gpu))));
            loads.extend(in_kernels.into_iter().filter(|(unit, _)| is_in(unit, path) && !unit.contains("copy_engine")));
        }
    }
    loads
}

/// Are units of GPUs measured over the whole run? Copies through the L2 use them while no kernel runs.
fn is_of_run(run: &RunInput) -> bool {
    let statistics = &run.document().statistics;
    run.kernel_time(None) == 0 || copies_use_l2(statistics.iter().map(|row| (&*row.what, row.value)))
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
    let mut all: Vec<Loads> = Vec::new();
    for run in runs {
        match &run.topology {
            Ok(topology) => {
                let own = loads(run, topology, kinds);
                let busiest = own.iter().max_by(|a, b| a.1.total_cmp(b.1));
                let busiest = busiest.map_or(String::new(), |(unit, load)| {
                    format!(" The busiest unit is {unit} with {}.", percent(f64::from(*load)))
                });
                let label = format!("The node, its units and links coloured by how busy they were.{busiest}");
                let title = titled(&run.document().topology, run, None);
                pictures.push(Part::Picture(Picture { title, label, svg: picture(topology, &own) }));
                all.push(own);
            }
            Err(why) => {
                pictures.push(Part::Note(titled(&format!("the node is not drawn: {why}"), run, None)));
                all.push(Loads::default());
            }
        }
    }
    if pictures.len() == 2 {
        parts.push(Part::Beside(pictures))
    } else {
        parts.append(&mut pictures)
    }
    if all.iter().any(|loads| !loads.is_empty()) {
        parts.push(Part::Table(table(runs, &all)));
    }
    let span = if runs.iter().all(|run| !is_of_run(run)) {
        "Units of GPUs are measured in the time in which kernels ran, others in the time of the run. "
    } else {
        "Everything is measured in the time of the run. "
    };
    let lead = format!(
        "{span}Of a link, the busier direction counts. The colour goes by the square root, so that a little shows, too."
    );
    Some(Section { id: "node", title: "Node", lead, parts })
}

/// How busy rows of units were.
fn table(runs: &[RunInput], all: &[Loads]) -> Table {
    let mut rows: BTreeMap<String, Vec<Vec<f32>>> = BTreeMap::new();
    for (index, loads) in all.iter().enumerate() {
        for (unit, load) in loads {
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
            let greatest = loads.iter().filter_map(most).fold(0.0, f64::max);
            let cells = vec![
                Cell::Text(row.clone()),
                Cell::count(loads.iter().map(Vec::len).max().unwrap_or(0) as u64),
                Cell::Numbers(loads.iter().map(mean).collect()),
                Cell::Numbers(loads.iter().map(most).collect()),
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
