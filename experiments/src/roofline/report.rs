//! The measurements, as tables and charts.

use super::placement::{Placed, left_out};
use super::{Ceilings, Kernel, Measurements, Mechanism, Precision};
use crate::validation::report::{Cell, Chart, Column, Opening, Report, Table};
use balar_charts::{Line, Lines, Roofline, RooflinePoint, Scale};

/// How the page begins.
const LEAD: &str = "What the simulated GPU can do at most, measured by microbenchmarks and by its parameters, and programs below that.";

/// All that was measured, and where `placed` is.
pub fn report(found: &Measurements, placed: &[Placed]) -> Report {
    let opening = Some(Opening { title: format!("Roofline of {}", found.topology), lead: LEAD });
    let mut report = Report { study: "roofline", completed: true, opening, ..Report::default() };
    report.tables.push(ceilings(found));
    report
        .charts
        .push(Chart { name: "roofline", svg: chart(&found.topology, &found.empirical, Some(&found.textbook), placed) });
    if !placed.is_empty() {
        report.tables.push(placement(found, placed));
    }
    if !found.bandwidth.is_empty() {
        report.tables.push(bandwidth(found));
        report.charts.push(Chart { name: "bandwidth", svg: bandwidth_chart(found) });
    }
    if !found.throughput.is_empty() {
        report.tables.push(throughput(found));
        report.charts.push(Chart { name: "throughput", svg: throughput_chart(found) });
    }
    if !found.parallelism.is_empty() {
        report.tables.push(parallelism(found));
        report.charts.push(Chart { name: "parallelism", svg: parallelism_chart(found) });
    }
    if !found.reuse.is_empty() {
        report.tables.push(reuse(found));
        report.charts.push(Chart { name: "reuse", svg: reuse_chart(found) });
    }
    report
}

fn percent(part: Option<f64>, whole: Option<f64>) -> Cell {
    Cell::number(part.zip(whole).filter(|(_, whole)| *whole > 0.0).map(|(part, whole)| 100.0 * part / whole), 1)
}

fn ceilings(found: &Measurements) -> Table {
    let Measurements { empirical, textbook, .. } = found;
    let mut rows = Vec::new();
    let mut row = |name: String, unit: &str, measured: Option<f64>, by_parameters: Option<f64>| {
        if measured.is_some() || by_parameters.is_some() {
            let cells = [Cell::number(measured, 1), Cell::number(by_parameters, 1), percent(measured, by_parameters)];
            rows.push([Cell::text(name), Cell::text(unit)].into_iter().chain(cells).collect());
        }
    };
    let mut names: Vec<&str> =
        textbook.memory.iter().chain(&empirical.memory).map(|level| level.name.as_str()).collect();
    // Levels in the order of the textbook, with what was found beside it before DRAM.
    names.sort_by_key(|name| if *name == "DRAM" { (1, "") } else { (0, *name) });
    names.dedup();
    for name in names {
        row(name.to_owned(), "GB/s", empirical.level(name), textbook.level(name));
    }
    row("shared memory".to_owned(), "GB/s", empirical.shared, textbook.shared);
    for precision in Precision::ALL {
        row(precision.title().to_owned(), "GFLOP/s", empirical.of(precision), textbook.of(precision));
    }
    Table {
        name: "ceilings",
        title: "Ceilings: measured on the simulated GPU, and lanes, banks and buses times clocks",
        columns: vec![
            Column::new("ceiling", "ceiling"),
            Column::new("unit", "unit"),
            Column::new("measured", "measured"),
            Column::new("textbook", "textbook"),
            Column::new("percent", "%"),
        ],
        rows,
        notes: Vec::new(),
    }
}

fn placement(found: &Measurements, placed: &[Placed]) -> Table {
    let rows = placed.iter().map(|Placed { name, work }| {
        let precision = work.main_precision();
        let intensities = work.intensities();
        let rate = work.gigaflops();
        // The roof above it: that of the level which allows least.
        let roofs = precision.into_iter().flat_map(|precision| {
            intensities.iter().filter_map(move |(level, intensity)| {
                Some((*level, found.empirical.attainable(precision, level, (*intensity)?)?))
            })
        });
        let roof = roofs.min_by(|one, other| one.1.total_cmp(&other.1));
        let bound = roof.zip(precision).map(|((level, gigaflops), precision)| {
            let is_arithmetic = found.empirical.of(precision).is_some_and(|peak| gigaflops >= peak);
            if is_arithmetic { precision.title().to_owned() } else { level.to_owned() }
        });
        let mut cells =
            vec![Cell::text(name.clone()), Cell::Number(work.picoseconds as f64 / 1e6, 2), Cell::number(rate, 2)];
        cells.extend(intensities.iter().map(|(_, intensity)| Cell::number(*intensity, 3)));
        cells.push(bound.map_or(Cell::Absent, Cell::text));
        cells.push(percent(rate, roof.map(|(_, gigaflops)| gigaflops)));
        cells
    });
    Table {
        name: "placement",
        title: "Programs and kernels: operations for each byte of a level, and the lowest roof above them",
        columns: vec![
            Column::new("name", "name"),
            Column::new("time_us", "us"),
            Column::new("gigaflops", "GFLOP/s"),
            Column::new("flops_per_l1_byte", "per L1 byte"),
            Column::new("flops_per_l2_byte", "per L2 byte"),
            Column::new("flops_per_dram_byte", "per DRAM byte"),
            Column::new("roof", "roof"),
            Column::new("percent_of_roof", "% of it"),
        ],
        rows: rows.collect(),
        notes: placement_notes(placed),
    }
}

fn placement_notes(placed: &[Placed]) -> Vec<String> {
    let general = "operations of tensor cores are not counted; bytes that a kernel leaves dirty in the L2 are written to DRAM for others, \
                   whose requests take their place";
    [general.to_owned()].into_iter().chain(left_out(placed)).collect()
}

fn bandwidth(found: &Measurements) -> Table {
    let rows = found.bandwidth.iter().map(|point| {
        vec![
            Cell::text(point.kernel.name()),
            Cell::Number(point.working_set as f64, 0),
            Cell::Number(point.trials as f64, 0),
            Cell::Number(point.microseconds, 3),
            Cell::Number(point.bytes, 0),
            Cell::Number(point.with_launch, 1),
            Cell::Number(point.sustained, 1),
        ]
    });
    Table {
        name: "bandwidth",
        title: "Bandwidth over the working set",
        columns: vec![
            Column::new("kernel", "kernel"),
            Column::new("working_set_bytes", "working set, B"),
            Column::new("trials", "trials"),
            Column::droppable("microseconds", "us"),
            Column::droppable("bytes", "bytes"),
            Column::new("with_launch_gbytes", "GB/s with launch"),
            Column::new("sustained_gbytes", "GB/s"),
        ],
        rows: rows.collect(),
        notes: Vec::new(),
    }
}

fn throughput(found: &Measurements) -> Table {
    let rows = found.throughput.iter().map(|point| {
        vec![
            Cell::text(point.precision.name()),
            Cell::Number(f64::from(point.flops), 0),
            Cell::Number(point.intensity, 3),
            Cell::Number(point.with_launch, 1),
            Cell::Number(point.sustained, 1),
        ]
    });
    Table {
        name: "throughput",
        title: "Throughput over the operations on each element",
        columns: vec![
            Column::new("precision", "precision"),
            Column::new("flops", "operations"),
            Column::new("flops_per_byte", "per byte"),
            Column::new("with_launch_gflops", "GFLOP/s with launch"),
            Column::new("sustained_gflops", "GFLOP/s"),
        ],
        rows: rows.collect(),
        notes: Vec::new(),
    }
}

fn parallelism(found: &Measurements) -> Table {
    let rows = found.parallelism.iter().map(|point| {
        vec![
            Cell::text(point.precision.name()),
            Cell::Number(f64::from(point.warps), 0),
            Cell::Number(f64::from(point.chains), 0),
            Cell::Number(point.sustained, 1),
            percent(Some(point.sustained), found.textbook.of(point.precision)),
        ]
    });
    Table {
        name: "parallelism",
        title: "Throughput over warps of an SM and independent chains of a thread",
        columns: vec![
            Column::new("precision", "precision"),
            Column::new("warps", "warps"),
            Column::new("chains", "chains"),
            Column::new("sustained_gflops", "GFLOP/s"),
            Column::new("percent", "% of textbook"),
        ],
        rows: rows.collect(),
        notes: Vec::new(),
    }
}

fn reuse(found: &Measurements) -> Table {
    let rows = found.reuse.iter().map(|point| {
        vec![
            Cell::text(point.mechanism.title()),
            Cell::Number(point.working_set as f64, 0),
            Cell::Number(f64::from(point.reuse), 0),
            Cell::Number(point.effective, 3),
        ]
    });
    let has_managed = found.reuse.iter().any(|point| point.mechanism == Mechanism::Managed);
    let note =
        "managed memory is left out: the node has no driver of unified memory (gtx1080ti_node and k20x_node have one)";
    Table {
        name: "reuse",
        title: "Effective bandwidth of the host and the GPU in turn, over the GPU's iterations to one of the host",
        columns: vec![
            Column::new("mechanism", "mechanism"),
            Column::new("working_set_bytes", "working set, B"),
            Column::new("reuse", "reuse"),
            Column::new("effective_gbytes", "GB/s"),
        ],
        rows: rows.collect(),
        notes: if has_managed { Vec::new() } else { vec![note.to_owned()] },
    }
}

/// A roofline of a machine with programs below it.
pub fn chart(title: &str, empirical: &Ceilings, textbook: Option<&Ceilings>, placed: &[Placed]) -> String {
    let memory =
        |ceilings: &Ceilings| ceilings.memory.iter().map(|level| (level.name.clone(), level.gigabytes)).collect();
    let arithmetic =
        |ceilings: &Ceilings| ceilings.arithmetic.iter().map(|(one, rate)| (one.title().to_owned(), *rate)).collect();
    // By the levels that are drawn.
    let points = placed.iter().map(|Placed { name, work }| {
        let of_level = |level: &str| work.intensities().into_iter().find(|(name, _)| *name == level)?.1;
        let intensities = empirical.memory.iter().map(|level| of_level(&level.name)).collect();
        RooflinePoint { name, gigaflops: work.gigaflops().unwrap_or(0.0), intensities }
    });
    balar_charts::roofline(&Roofline {
        title,
        ceilings: "measured",
        memory: memory(empirical),
        arithmetic: arithmetic(empirical),
        textbook: textbook.map(|ceilings| (memory(ceilings), arithmetic(ceilings))).unwrap_or_default(),
        points: points.collect(),
        notes: left_out(placed),
    })
}

fn bandwidth_chart(found: &Measurements) -> String {
    let mut kernels: Vec<Kernel> = found.bandwidth.iter().map(|point| point.kernel).collect();
    kernels.dedup();
    let line = |kernel: Kernel| {
        let points = found.bandwidth.iter().filter(|point| point.kernel == kernel);
        // The toolkit's kernels are timed with their launches.
        let value =
            |point: &super::BandwidthPoint| if kernel == Kernel::Read { point.sustained } else { point.with_launch };
        Line {
            name: kernel.title(),
            points: points.map(|point| (point.working_set as f64 / 1024.0, value(point))).collect(),
        }
    };
    let levels: Vec<(String, f64)> = found
        .empirical
        .memory
        .iter()
        .map(|level| (format!("{} {:.0} GB/s", level.name, level.gigabytes), level.gigabytes))
        .collect();
    balar_charts::lines(&Lines {
        title: &format!("Bandwidth over the working set: {}", found.topology),
        x: "working set, KiB",
        x_scale: Scale::Logarithmic,
        y: "GB/s",
        y_scale: Scale::Logarithmic,
        lines: kernels.into_iter().map(line).collect(),
        references: levels.iter().map(|(name, value)| balar_charts::Reference { name, value: *value }).collect(),
    })
}

fn throughput_chart(found: &Measurements) -> String {
    let mut precisions: Vec<Precision> = found.throughput.iter().map(|point| point.precision).collect();
    precisions.dedup();
    let line = |precision: Precision| {
        let points = found.throughput.iter().filter(|point| point.precision == precision);
        Line {
            name: precision.title(),
            points: points.map(|point| (f64::from(point.flops), point.sustained)).collect(),
        }
    };
    balar_charts::lines(&Lines {
        title: &format!("Throughput over the operations on each element: {}", found.topology),
        x: "operations on an element that is read and written",
        x_scale: Scale::Logarithmic,
        y: "GFLOP/s",
        y_scale: Scale::Logarithmic,
        lines: precisions.into_iter().map(line).collect(),
        references: Vec::new(),
    })
}

fn parallelism_chart(found: &Measurements) -> String {
    let mut kinds: Vec<(Precision, u32)> =
        found.parallelism.iter().map(|point| (point.precision, point.chains)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let plural = |chains: u32| if chains == 1 { "" } else { "s" };
    let names: Vec<String> =
        kinds.iter().map(|(one, chains)| format!("{}, {chains} chain{}", one.title(), plural(*chains))).collect();
    let line = |((precision, chains), name): (&(Precision, u32), &'_ String)| {
        let points = found.parallelism.iter().filter(|point| (point.precision, point.chains) == (*precision, *chains));
        (name.clone(), points.map(|point| (f64::from(point.warps), point.sustained)).collect::<Vec<_>>())
    };
    let lines: Vec<_> = kinds.iter().zip(&names).map(line).collect();
    balar_charts::lines(&Lines {
        title: &format!("Throughput over parallelism: {}", found.topology),
        x: "warps of an SM",
        x_scale: Scale::Logarithmic,
        y: "GFLOP/s",
        y_scale: Scale::Logarithmic,
        lines: lines.iter().map(|(name, points)| Line { name, points: points.clone() }).collect(),
        references: Vec::new(),
    })
}

fn reuse_chart(found: &Measurements) -> String {
    // The largest working set with measurements of every reuse: one line a mechanism.
    let mut sets: Vec<u64> = found.reuse.iter().map(|point| point.working_set).collect();
    sets.sort_unstable();
    sets.dedup();
    let points_of = |set: u64| found.reuse.iter().filter(move |point| point.working_set == set);
    let most = sets.iter().map(|set| points_of(*set).count()).max().unwrap_or(0);
    let set = sets.iter().rev().copied().find(|set| points_of(*set).count() == most).unwrap_or(0);
    let line = |mechanism: Mechanism| {
        let points = points_of(set).filter(|point| point.mechanism == mechanism);
        Line {
            name: mechanism.title(),
            points: points.map(|point| (f64::from(point.reuse), point.effective)).collect(),
        }
    };
    let lines = Mechanism::ALL.into_iter().map(line).filter(|line| !line.points.is_empty()).collect();
    balar_charts::lines(&Lines {
        title: &format!("{} KiB that the host and the GPU use in turn: {}", set >> 10, found.topology),
        x: "iterations of the GPU to one of the host",
        x_scale: Scale::Logarithmic,
        y: "effective GB/s",
        y_scale: Scale::Logarithmic,
        lines,
        references: Vec::new(),
    })
}
