//! The table of a card, its comparisons and its picture.

use super::card::Card;
use super::plan::{KernelJob, Plan};
use crate::validation::Selection;
use crate::validation::agreement::{Agreement, error_percent};
use crate::validation::recorded::{KERNELS_DATE, KernelRow};
use crate::validation::report::{Cell, Chart, Column, Comparison, Report, Table};
use crate::validation::runs::Runs;
use balar_charts::{Mark, Scatter, Series};
use std::collections::BTreeSet;

/// Decimals of a time: the program and the tables have microseconds with three.
const DECIMALS: usize = 6;
/// The setting of a figure that was not simulated now.
const RECORDED: &str = "recorded";

/// A row, and the figure beside that of the hardware.
struct Figure {
    row: &'static KernelRow,
    /// `None` where the run is missing, or nothing is recorded yet.
    simulated: Option<f64>,
    is_recorded: bool,
}

impl Figure {
    fn sets_nothing(&self) -> bool {
        self.row.sets.is_empty()
    }
}

/// Adds what a card's rows show; nothing where no row is chosen.
pub(super) fn enter(plan: &Plan, selection: &Selection, runs: &Runs<f64, KernelJob>, report: &mut Report) {
    if plan.rows.is_empty() {
        return;
    }
    let figures = plan.rows.iter().map(|(row, job)| Figure {
        row,
        simulated: job.as_ref().map_or(row.simulated, |job| runs.get(job).copied()),
        is_recorded: job.is_none(),
    });
    let figures: Vec<Figure> = figures.collect();
    report.charts.push(Chart { name: plan.card.table, svg: picture(plan.card, &figures) });
    report.tables.push(Table {
        name: plan.card.table,
        title: plan.card.title,
        columns: vec![
            Column::new("kernel", "kernel"),
            Column::new("simulated", "simulated"),
            Column::new("hardware", plan.card.name),
            Column::new("error_percent", "error %"),
            Column::new("simulated_when", "simulated when"),
            Column::droppable("sets", "sets"),
            Column::droppable("compiler", "compiler"),
        ],
        rows: figures.iter().map(cells).collect(),
        notes: notes(plan, selection, &figures),
    });
    report.comparisons.extend(figures.iter().map(|figure| Comparison {
        study: plan.card.description.name,
        program: figure.row.name.clone(),
        setting: if figure.is_recorded { RECORDED } else { plan.card.node }.to_owned(),
        quantity: figure.row.value.as_str().into(),
        simulated: figure.simulated,
        reference: Some(figure.row.hardware),
        unit: "ms".into(),
        source: figure.row.source.as_str().into(),
    }));
}

fn cells(figure: &Figure) -> Vec<Cell> {
    let Figure { row, simulated, is_recorded } = figure;
    vec![
        Cell::text(&row.name),
        Cell::number(*simulated, DECIMALS),
        Cell::Number(row.hardware, DECIMALS),
        Cell::signed(simulated.map(|simulated| error_percent(simulated, row.hardware)), 1),
        Cell::text(if *is_recorded { RECORDED } else { "now" }),
        Cell::text(&row.sets),
        Cell::text(&row.compiler),
    ]
}

fn notes(plan: &Plan, selection: &Selection, figures: &[Figure]) -> Vec<String> {
    let agreement = |who: &str, is_chosen: &dyn Fn(&Figure) -> bool| {
        let chosen = figures.iter().filter(|figure| is_chosen(figure));
        let agreement = Agreement::of(chosen.filter_map(|figure| Some((figure.simulated?, figure.row.hardware))))?;
        let rows = if agreement.pairs == 1 { "row" } else { "rows" };
        Some(format!("{who}: {} {rows}, {agreement}", agreement.pairs))
    };
    let mut notes = Vec::new();
    if figures.iter().all(Figure::sets_nothing) {
        notes.extend(agreement("simulated", &|_| true));
    } else {
        notes.extend(agreement("rows that set nothing", &Figure::sets_nothing));
        notes.extend(agreement("all rows", &|_| true));
        notes.push(
            "A row that sets a parameter does not say how well the model predicts: the parameter was set by it."
                .to_owned(),
        );
    }
    if figures.iter().any(|figure| figure.is_recorded) {
        notes.push(format!("Recorded figures were simulated on {KERNELS_DATE}, not now."));
        let absent: Vec<_> = plan.absent_programs().into_iter().collect();
        notes.push(match &selection.folder {
            Some(folder) => format!("Not in {folder}: {}. The rows keep their recorded figures.", absent.join(", ")),
            None => format!("--programs DIR simulates them now, where DIR has {}.", absent.join(", ")),
        });
    }
    let sources: BTreeSet<&str> = figures.iter().map(|figure| &*figure.row.source).collect();
    let sources: Vec<&str> = sources.into_iter().collect();
    notes.push(format!("Times of the {}: {}.", plan.card.name, sources.join("; ")));
    notes
}

fn picture(card: &Card, figures: &[Figure]) -> String {
    let points = |sets_nothing: bool| {
        let chosen = figures.iter().filter(move |figure| figure.sets_nothing() == sets_nothing);
        chosen.filter_map(|figure| Some((figure.row.hardware, figure.simulated?, figure.row.name.clone()))).collect()
    };
    balar_charts::scatter(&Scatter {
        title: card.title,
        x: &format!("{}, ms", card.name),
        y: "simulated, ms",
        diagonal: "as measured",
        series: vec![
            Series { name: "sets nothing", mark: Mark::Disc, points: points(true) },
            Series { name: "sets a parameter", mark: Mark::Ring, points: points(false) },
        ],
    })
}
