//! The effect of prefetchers: beside UVMSmart's logs, and beside the same programs without unified memory (figure 4 of the study).

use super::common::{APPLICATIONS, Application, Compared, OF_UVMSMART, Part, STUDY_NODE, owned};
use super::{Figures, program_named};
use crate::validation::agreement::{Agreement, error_percent};
use crate::validation::report::{Cell, Chart, Column, Report, Table};
use crate::validation::runs::{Point, Runs};
use crate::validation::{PartDescription, Selection};
use balar_charts::{Mark, Scatter, Series};

pub(super) const PART: Part = Part {
    description: PartDescription {
        name: "prefetchers",
        summary: "times, faults and TLB hits by prefetcher beside UVMSmart, and cycles beside runs without unified memory",
    },
    points,
    report,
};

/// The study's prefetchers, as topologies name them.
const PREFETCHERS: [&str; 4] = ["None", "Random", "SequentialLocal", "Tree"];

/// The figures in UVMSmart's logs of a program: kernel time with 45 us for each fault, faults, and TLB hits, for each prefetcher.
struct Logged {
    program: &'static str,
    us: [f64; 4],
    faults: [u32; 4],
    tlb_hits_percent: [f64; 4],
}

const LOGGED: [Logged; 4] = [
    Logged {
        program: "backprop",
        us: [317_348.0, 224_346.0, 23_868.0, 7321.0],
        faults: [6785, 4718, 460, 100],
        tlb_hits_percent: [61.2, 64.3, 65.8, 73.7],
    },
    Logged {
        program: "bfs",
        us: [116_942.0, 82_505.0, 8919.0, 3845.0],
        faults: [2491, 1725, 162, 53],
        tlb_hits_percent: [96.9, 97.0, 97.0, 97.2],
    },
    Logged {
        program: "FDTD-2D",
        us: [198_157.0, 144_173.0, 15_046.0, 4884.0],
        faults: [4224, 3018, 277, 58],
        tlb_hits_percent: [92.2, 92.5, 92.4, 92.1],
    },
    Logged {
        program: "hotspot",
        us: [144_226.0, 102_153.0, 10_620.0, 3398.0],
        faults: [3072, 2137, 192, 36],
        tlb_hits_percent: [82.0, 83.9, 87.0, 90.5],
    },
];

const PREFETCHER: &str = "unified_memory.prefetcher";

fn logged(selection: &Selection) -> impl Iterator<Item = &'static Logged> {
    LOGGED.iter().filter(|logged| selection.has_program(logged.program))
}

fn applications(selection: &Selection) -> impl Iterator<Item = &'static Application> {
    APPLICATIONS.iter().filter(|application| selection.has_program(application.name))
}

fn point(logged: &Logged, prefetcher: &str) -> Point {
    program_named(logged.program).point(STUDY_NODE, &owned(&[(PREFETCHER, prefetcher)]))
}

/// The application without unified memory.
fn native(application: &Application) -> Point {
    application.point("device", &[])
}

fn managed(application: &Application, prefetcher: &str) -> Point {
    application.point("managed", &[(PREFETCHER, prefetcher)])
}

fn points(selection: &Selection) -> Vec<Point> {
    let logged = logged(selection).flat_map(|logged| PREFETCHERS.map(|prefetcher| point(logged, prefetcher)));
    let with_managed =
        applications(selection).flat_map(|application| PREFETCHERS.map(|prefetcher| managed(application, prefetcher)));
    logged.chain(with_managed).chain(applications(selection).map(native)).collect()
}

fn report(selection: &Selection, runs: &Runs<Figures>, report: &mut Report) {
    let logs: Vec<_> = logged(selection).collect();
    if !logs.is_empty() {
        beside_uvmsmart(&logs, runs, report);
    }
    let applications: Vec<_> = applications(selection).collect();
    if !applications.is_empty() {
        beside_native(&applications, runs, report);
    }
}

fn beside_uvmsmart(logs: &[&Logged], runs: &Runs<Figures>, report: &mut Report) {
    let mut rows = Vec::new();
    let (mut times, mut faults, mut hits) = (Vec::new(), Vec::new(), Vec::new());
    for logged in logs {
        for (index, prefetcher) in PREFETCHERS.into_iter().enumerate() {
            let found = runs.get(&point(logged, prefetcher));
            let (us, their_faults, their_hits) =
                (logged.us[index], f64::from(logged.faults[index]), logged.tlb_hits_percent[index]);
            let own_us = found.map(|found| found.kernel_us);
            let own_faults = found.map(|found| found.faults as f64);
            let own_hits = found.map(|found| found.tlb_hits_percent);
            times.extend(own_us.map(|own| (own, us)));
            faults.extend(own_faults.map(|own| (own, their_faults)));
            hits.extend(own_hits.map(|own| own - their_hits));
            rows.push(vec![
                Cell::text(logged.program),
                Cell::text(prefetcher),
                Cell::number(own_us, 0),
                Cell::Number(us, 0),
                Cell::signed(own_us.map(|own| error_percent(own, us)), 1),
                Cell::number(own_faults, 0),
                Cell::Number(their_faults, 0),
                Cell::signed(own_faults.map(|own| error_percent(own, their_faults)), 1),
                Cell::number(own_hits, 1),
                Cell::Number(their_hits, 1),
            ]);
            let compared = Compared {
                study: "prefetchers",
                program: logged.program,
                setting: prefetcher.to_owned(),
                source: OF_UVMSMART,
            };
            report.comparisons.extend([
                compared.with("kernel time", "us", own_us, Some(us)),
                compared.with("far faults", "fault", own_faults, Some(their_faults)),
                compared.with("TLB hits", "%", own_hits, Some(their_hits)),
            ]);
        }
    }
    let mut notes: Vec<_> = [("us", &times), ("faults", &faults)]
        .into_iter()
        .filter_map(|(name, pairs)| Some(format!("{name}: {}", Agreement::of(pairs.iter().copied())?)))
        .collect();
    if !hits.is_empty() {
        let mean = hits.iter().sum::<f64>() / hits.len() as f64;
        notes.push(format!("TLB hits: {mean:+.1} points on average"));
    }
    notes.push(
        "UVMSmart's time is the time of its kernels and 45 us for each fault; it simulates a GTX 1080 Ti, not a V100"
            .to_owned(),
    );
    report.tables.push(Table {
        name: "prefetchers",
        title: "Prefetchers, beside UVMSmart",
        columns: vec![
            Column::new("program", "program"),
            Column::new("prefetcher", "prefetcher"),
            Column::new("simulated_us", "us"),
            Column::new("uvmsmart_us", "UVMSmart"),
            Column::new("error_percent", "error %"),
            Column::new("faults", "faults"),
            Column::new("uvmsmart_faults", "UVMSmart"),
            Column::droppable("faults_error_percent", "error %"),
            Column::new("tlb_hits_percent", "TLB hit %"),
            Column::new("uvmsmart_tlb_hits_percent", "UVMSmart"),
        ],
        rows,
        notes,
    });
}

fn beside_native(applications: &[&Application], runs: &Runs<Figures>, report: &mut Report) {
    let cycles = |point: &Point| runs.get(point).map(|found| found.cycles as f64);
    let mut rows = Vec::new();
    let mut closest = Vec::new();
    for application in applications {
        let native = cycles(&native(application));
        let found = PREFETCHERS.map(|prefetcher| cycles(&managed(application, prefetcher)));
        let mut row = vec![Cell::text(application.name), Cell::text(application.arguments), Cell::number(native, 0)];
        row.extend(found.map(|cycles| Cell::number(cycles, 0)));
        let ratio = |cycles: Option<f64>| Some(cycles? / native?);
        row.push(Cell::number(ratio(found[3]), 1));
        rows.push(row);
        let distances = found.map(|cycles| ratio(cycles).map(|ratio| ratio.ln().abs()));
        if let [Some(none), Some(random), Some(sequential), Some(tree)] = distances {
            closest.push((application.name, tree <= none.min(random).min(sequential)));
        }
        for (prefetcher, cycles) in PREFETCHERS.into_iter().zip(found) {
            let setting = prefetcher.to_owned();
            let source = "the same program with memory=device, simulated";
            let compared = Compared { study: "native", program: application.name, setting, source };
            report.comparisons.push(compared.with("kernel cycles", "cycle", cycles, native));
        }
    }
    let mut notes = Vec::new();
    let over_native = PREFETCHERS.iter().filter_map(|prefetcher| {
        let pairs =
            applications.iter().filter_map(|one| Some((cycles(&managed(one, prefetcher))?, cycles(&native(one))?)));
        Some(format!("{prefetcher} {:.1}", Agreement::of(pairs)?.mean_ratio))
    });
    let over_native: Vec<_> = over_native.collect();
    if !over_native.is_empty() {
        notes.push(format!("cycles over native, geometric mean: {}", over_native.join(", ")));
    }
    if !closest.is_empty() {
        let few = closest.iter().filter(|(_, tree)| *tree).count();
        let mut text = format!(
            "no prefetcher is closer to native than Tree in {few} of {} (the study: Tree is closest)",
            closest.len()
        );
        let others: Vec<_> = closest.iter().filter(|(_, tree)| !tree).map(|(name, _)| *name).collect();
        if !others.is_empty() {
            text.push_str(&format!("; others are in {}", others.join(", ")));
        }
        notes.push(text);
    }
    report.tables.push(Table {
        name: "prefetchers_native",
        title: "Cycles by prefetcher, beside the same program without unified memory (figure 4 of the study)",
        columns: vec![
            Column::new("application", "application"),
            Column::droppable("arguments", "arguments"),
            Column::new("native_cycles", "native"),
            Column::new("none_cycles", "None"),
            Column::new("random_cycles", "Random"),
            Column::new("sequential_local_cycles", "SequentialLocal"),
            Column::new("tree_cycles", "Tree"),
            Column::new("tree_over_native", "Tree/native"),
        ],
        rows,
        notes,
    });
    let marks = [Mark::Cross, Mark::Triangle, Mark::Ring, Mark::Disc];
    let series = PREFETCHERS.iter().zip(marks).map(|(prefetcher, mark)| {
        let points = applications.iter().filter_map(|one| {
            let label = if *prefetcher == "Tree" { one.name.to_owned() } else { String::new() };
            Some((cycles(&native(one))?, cycles(&managed(one, prefetcher))?, label))
        });
        Series { name: prefetcher, mark, points: points.collect() }
    });
    let svg = balar_charts::scatter(&Scatter {
        title: "Cycles with managed memory, by prefetcher",
        x: "cycles without unified memory (native)",
        y: "cycles with managed memory",
        diagonal: "as native",
        series: series.collect(),
    });
    report.charts.push(Chart { name: "prefetchers_native", svg });
}
