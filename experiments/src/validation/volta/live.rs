//! The parts that run: built-in workloads that are the measured programs.

use super::part::{Figures, NODE, Part};
use crate::validation::recorded::{MICROBENCHMARKS, Row};
use crate::validation::report::Report;
use crate::validation::runs::{Point, Runs};
use crate::validation::side_by_side::{Pair, Sheet};
use crate::validation::{PartDescription, Selection};

pub(super) const LATENCY: Part = Part {
    description: PartDescription {
        name: "latency",
        summary: "latency of loads by working set, and of shared memory (pointer_chase, shared_chase)",
    },
    points: |selection| points_of(&LATENCIES, selection),
    report: |selection, runs, report| {
        let title = "Latency of loads, cycles, beside V100 and TITAN V";
        let note = "Latencies of the levels are calibrated; where a level ends is predicted.";
        enter(&LATENCIES, ("latency", title, note), selection, runs, report);
    },
};

pub(super) const INSTRUCTIONS: Part = Part {
    description: PartDescription { name: "instructions", summary: "latency of arithmetic (alu_latency)" },
    points: |selection| points_of(&ARITHMETIC, selection),
    report: |selection, runs, report| {
        let title = "Latency of arithmetic, cycles, beside a TITAN V";
        enter(&ARITHMETIC, ("instructions", title, "All are calibrated."), selection, runs, report);
    },
};

/// Workloads that measure the cycles of one access or instruction.
type Workloads = [&'static str];
const LATENCIES: [&str; 2] = ["pointer_chase", "shared_chase"];
const ARITHMETIC: [&str; 1] = ["alu_latency"];

/// The rows of the recorded table that are runs of these workloads, with the run of each.
fn rows(workloads: &Workloads, selection: &Selection) -> Vec<(&'static Row, Point)> {
    let chosen = MICROBENCHMARKS.iter().filter(|row| selection.has_program(&row.name));
    chosen
        .filter_map(|row| {
            // What stands in brackets behind a workload is done to it: it is another program.
            let (name, parameters) = row.workload.split_once(':').unwrap_or((&row.workload, ""));
            let workload = workloads.iter().find(|workload| **workload == name)?;
            let parameters = parameters.split(',').filter(|text| !text.is_empty());
            let parameters: Option<Vec<_>> = parameters.map(|parameter| parameter.split_once('=')).collect();
            let is_plain = !row.workload.contains(' ');
            is_plain
                .then_some((row, Point { topology: NODE, workload, parameters: parameters?, overrides: Vec::new() }))
        })
        .collect()
}

fn points_of(workloads: &Workloads, selection: &Selection) -> Vec<Point> {
    rows(workloads, selection).into_iter().map(|(_, point)| point).collect()
}

fn enter(
    workloads: &Workloads,
    (name, title, note): (&'static str, &'static str, &'static str),
    selection: &Selection,
    runs: &Runs<Figures>,
    report: &mut Report,
) {
    let pairs = rows(workloads, selection).into_iter().map(|(row, point)| Pair {
        program: row.name.clone(),
        quantity: "cycles".into(),
        unit: "cycle".into(),
        simulated: runs.get(&point).and_then(|found| found.cycles_of_one),
        reference: row.hardware,
        other: None,
        source: row.source.as_str().into(),
    });
    Sheet {
        part: name,
        name,
        title,
        subject: "benchmark",
        reference: "hardware",
        other: None,
        setting: NODE,
        notes: vec![note.to_owned()],
        pairs: pairs.collect(),
    }
    .enter(report);
}

pub(super) const BANDWIDTH: Part = Part {
    description: PartDescription {
        name: "bandwidth",
        summary: "bandwidth of DRAM over occupancy (stream), beside gpu-stream on a V100",
    },
    points: |selection| streams(selection).flat_map(|stream| [stream.point(LARGE), stream.point(SMALL)]).collect(),
    report: bandwidth,
};

/// Elements of the launches whose difference is measured; the difference removes the cost of a launch.
const LARGE: &str = "3145728";
const SMALL: &str = "1048576";
/// GHz of the card.
const CLOCK: f64 = 1.38;

/// A kernel at an occupancy of two blocks an SM.
struct Stream {
    row: &'static Row,
    operation: &'static str,
    /// Words of 8 bytes that an element moves.
    words: f64,
    block: &'static str,
}

/// Names of gpu-stream's kernels, the operation of the workload `stream`, and words of an element. `stream` has no kernel with the accesses
/// of its other kernels.
const OPERATIONS: [(&str, &str, f64); 3] = [("init", "write", 1.0), ("read", "read", 1.0), ("scale", "scale", 2.0)];
const BLOCKS: [&str; 5] = ["64", "128", "256", "512", "1024"];

fn streams(selection: &Selection) -> impl Iterator<Item = Stream> {
    let all = OPERATIONS.into_iter().flat_map(|operation| BLOCKS.map(|block| (operation, block)));
    all.filter_map(|((name, operation, words), block)| {
        let name = format!("DRAM {name}, 2 x {block} threads an SM");
        let row = MICROBENCHMARKS.iter().find(|row| row.name == name)?;
        selection.has_program(&row.name).then_some(Stream { row, operation, words, block })
    })
}

impl Stream {
    fn point(&self, elements: &'static str) -> Point {
        // So much shared memory that an SM with its 96 KiB holds two blocks.
        let parameters = vec![
            ("operation", self.operation),
            ("elements", elements),
            ("block", self.block),
            ("shared_memory", "49152"),
            ("launches", "1"),
        ];
        Point { topology: NODE, workload: "stream", parameters, overrides: Vec::new() }
    }

    /// GB/s of the elements that the larger launch has beyond the smaller one.
    fn bandwidth(&self, runs: &Runs<Figures>) -> Option<f64> {
        let cycles = |elements| Some(runs.get(&self.point(elements))?.cycles as f64);
        let elements = |text: &str| text.parse::<f64>().ok();
        let bytes = (elements(LARGE)? - elements(SMALL)?) * 8.0 * self.words;
        Some(bytes / ((cycles(LARGE)? - cycles(SMALL)?) / CLOCK))
    }
}

fn bandwidth(selection: &Selection, runs: &Runs<Figures>, report: &mut Report) {
    let pairs = streams(selection).map(|stream| Pair {
        program: stream.row.name.clone(),
        quantity: "bandwidth".into(),
        unit: "GB/s".into(),
        simulated: stream.bandwidth(runs),
        reference: stream.row.hardware,
        other: None,
        source: stream.row.source.as_str().into(),
    });
    Sheet {
        part: "bandwidth",
        name: "bandwidth",
        title: "Bandwidth of DRAM, GB/s, beside a V100",
        subject: "kernel",
        reference: "hardware",
        other: None,
        setting: NODE,
        notes: vec![
            "The difference of 3 Mi and 1 Mi elements. All 234 points, by the measured kernels, are among the recorded ones."
                .to_owned(),
        ],
        pairs: pairs.collect(),
    }
    .enter(report);
}
