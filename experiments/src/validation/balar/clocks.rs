//! Table 3-2: LULESH at three clocks of the SMs and three of the memory.

use super::part::{Part, SOURCE_CLOCKS};
use super::subject::{NODE, Subject};
use crate::validation::agreement::error_percent;
use crate::validation::programs::{Job, ProgramFigures};
use crate::validation::report::{Cell, Chart, Column, Compared, Report, Table};
use crate::validation::runs::Runs;
use crate::validation::{PartDescription, Selection};
use balar_charts::{Line, Lines, Scale};

pub(super) const PART: Part = Part {
    description: PartDescription {
        name: "clocks",
        summary: "how clocks of SMs and memory change LULESH's time (table 3-2)",
    },
    jobs,
    report,
};

/// Clocks of the SMs, MHz; the second is the node's own.
const SM_CLOCKS: [u32; 3] = [500, 1312, 1800];
/// Clocks of the memory, MHz; the first is the node's own.
const MEMORY_CLOCKS: [u32; 3] = [877, 1200, 1600];
/// The speed-up by each step of the SMs' clock in the study.
const SPEED_UPS: [f64; 2] = [2.5, 1.3];
/// The greatest speed-up by the memory's clock in the study.
const MEMORY_SPEED_UP: f64 = 1.04;

fn points() -> impl Iterator<Item = (u32, u32)> {
    SM_CLOCKS.iter().flat_map(|sm| MEMORY_CLOCKS.iter().map(move |memory| (*sm, *memory)))
}

fn job(selection: &Selection, subject: &Subject, (sm, memory): (u32, u32)) -> Job {
    let mut overrides = Vec::new();
    if sm != SM_CLOCKS[1] {
        overrides.push(("gpu.clock", format!("{sm} MHz")));
    }
    if memory != MEMORY_CLOCKS[0] {
        overrides.push(("gpu.hbm[*].clock", format!("{memory} MHz")));
    }
    // The run at the node's own clocks serves the other parts, too.
    let by_instruction = overrides.is_empty() && selection.has_part(super::mix::PART.description.name);
    subject.job(overrides, by_instruction)
}

fn jobs(selection: &Selection) -> Vec<Job> {
    let Some(subject) = Subject::of(selection) else { return Vec::new() };
    points().map(|point| job(selection, &subject, point)).collect()
}

fn report(selection: &Selection, runs: &Runs<ProgramFigures, Job>, report: &mut Report) {
    let Some(subject) = Subject::of(selection) else { return };
    let time = |sm, memory| Some(runs.get(&job(selection, &subject, (sm, memory)))?.milliseconds());
    let ratio = |slow: (u32, u32), fast: (u32, u32)| Some(time(slow.0, slow.1)? / time(fast.0, fast.1)?);
    let base = (SM_CLOCKS[0], MEMORY_CLOCKS[0]);
    let rows = points().map(|(sm, memory)| {
        vec![
            Cell::Number(f64::from(sm), 0),
            Cell::Number(f64::from(memory), 0),
            Cell::number(time(sm, memory), 3),
            Cell::number(ratio(base, (sm, memory)), 2),
        ]
    });
    report.tables.push(Table {
        name: "clocks",
        title: "Time of all kernels by clocks of the SMs and of the memory",
        columns: vec![
            Column::new("sm_mhz", "SM MHz"),
            Column::new("memory_mhz", "memory MHz"),
            Column::new("kernel_ms", "ms"),
            Column::new("speed_up", "times as fast"),
        ],
        rows: rows.collect(),
        notes: vec![format!("{} on {NODE}.", subject.name())],
    });
    speed_ups(&subject, &ratio, report);
    report.charts.push(Chart { name: "clocks", svg: picture(&subject, &time) });
}

fn speed_ups(subject: &Subject, ratio: &dyn Fn((u32, u32), (u32, u32)) -> Option<f64>, report: &mut Report) {
    let memory = MEMORY_CLOCKS[0];
    let step = |at: usize| ratio((SM_CLOCKS[at], memory), (SM_CLOCKS[at + 1], memory));
    // Every clock of the SMs is to have its run: the largest of some is not the largest.
    let gains: Option<Vec<f64>> = SM_CLOCKS.iter().map(|sm| ratio((*sm, memory), (*sm, MEMORY_CLOCKS[2]))).collect();
    let most = gains.map(|gains| gains.into_iter().fold(0.0, f64::max));
    let steps = [
        ("SMs from 500 to 1312 MHz", step(0), SPEED_UPS[0]),
        ("SMs from 1312 to 1800 MHz", step(1), SPEED_UPS[1]),
        ("memory from 877 to 1600 MHz, at most", most, MEMORY_SPEED_UP),
    ];
    let rows = steps.iter().map(|(what, found, published)| {
        // Of another program an error would say nothing.
        let error = found.filter(|_| subject.is_lulesh()).map(|found| error_percent(found, *published));
        vec![Cell::text(*what), Cell::number(*found, 2), Cell::Number(*published, 2), Cell::signed(error, 1)]
    });
    report.tables.push(Table {
        name: "clock_speed_ups",
        title: "Speed-up by a faster clock, beside the study's LULESH (SAND2019-10389, table 3-2)",
        columns: vec![
            Column::new("step", "step"),
            Column::new("speed_up", "times as fast"),
            Column::new("published_speed_up", "LULESH in the study"),
            Column::new("error_percent", "error %"),
        ],
        rows: rows.collect(),
        notes: subject.note().into_iter().collect(),
    });
    for (what, found, published) in steps {
        let compared =
            Compared { study: "clocks", program: subject.name(), setting: what.to_owned(), source: SOURCE_CLOCKS };
        let published = subject.is_lulesh().then_some(published);
        report.comparisons.push(compared.with("speed-up", "times", found, published));
    }
}

fn picture(subject: &Subject, time: &dyn Fn(u32, u32) -> Option<f64>) -> String {
    let lines = MEMORY_CLOCKS.map(|memory| {
        let points = SM_CLOCKS.iter().filter_map(|sm| Some((f64::from(*sm), time(*sm, memory)?)));
        (format!("memory at {memory} MHz"), points.collect::<Vec<_>>())
    });
    balar_charts::lines(&Lines {
        title: &format!("{}: time of all kernels by the clock of the SMs", subject.name()),
        x: "clock of the SMs, MHz",
        x_scale: Scale::FromZero,
        y: "time of all kernels, ms",
        y_scale: Scale::FromZero,
        lines: lines.iter().map(|(name, points)| Line { name, points: points.clone() }).collect(),
        references: Vec::new(),
    })
}
