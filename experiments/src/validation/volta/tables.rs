//! The recorded parts: simulated figures of a date beside the hardware's figures.

use crate::validation::agreement::{Agreement, error_percent};
use crate::validation::recorded::{self, COUNTERS_DATE, DATE, PROGRAMS_DATE, Row, Rows};
use crate::validation::report::{Cell, Column, Report, Table};
use crate::validation::side_by_side::{Pair, Sheet};
use crate::validation::{PartDescription, Selection};

/// A recorded table.
pub(super) struct Recorded {
    pub description: PartDescription,
    rows: &'static Rows,
    /// When they were simulated.
    date: &'static str,
    title: &'static str,
    subject: &'static str,
    /// The compared quantity.
    quantity: fn(&Row) -> String,
    unit: fn(&Row) -> String,
    /// Whether Accel-Sim's errors are known.
    has_accel_sim: bool,
    how: &'static str,
    /// The groups of rows in a table of its own; nothing where all rows are one group.
    groups: Option<Groups>,
}

/// A table of groups of rows.
struct Groups {
    name: &'static str,
    title: &'static str,
    of: fn(&Row) -> &str,
}

pub(super) const MICROBENCHMARKS: Recorded = Recorded {
    description: PartDescription {
        name: "microbenchmarks",
        summary: "recorded: 469 figures of caches, DRAM, TLBs, arithmetic and copies",
    },
    rows: &recorded::MICROBENCHMARKS,
    date: DATE,
    title: "Microbenchmarks, recorded",
    subject: "benchmark",
    quantity: |row| row.group.clone(),
    unit: |row| row.unit.clone(),
    has_accel_sim: false,
    how: "validation/run --ptxas FILE measures them again.",
    groups: Some(Groups {
        name: "microbenchmark_groups",
        title: "Microbenchmarks by group, recorded",
        of: |row| &row.group,
    }),
};

pub(super) const PROGRAMS: Recorded = Recorded {
    description: PartDescription {
        name: "programs",
        summary: "recorded: cycles of 59 public programs beside a Quadro GV100",
    },
    rows: &recorded::PROGRAMS,
    date: PROGRAMS_DATE,
    title: "Cycles of public programs beside a Quadro GV100, recorded",
    subject: "program",
    quantity: |_| "cycles of all kernels".to_owned(),
    unit: |_| "cycle".to_owned(),
    has_accel_sim: true,
    how: "validation/run_programs FOLDER --ptxas FILE measures them again, where FOLDER has the programs.",
    groups: None,
};

pub(super) const PUBLIC_MICROBENCHMARKS: Recorded = Recorded {
    description: PartDescription {
        name: "public_microbenchmarks",
        summary: "recorded: what public microbenchmarks print, beside a TITAN V",
    },
    rows: &recorded::PUBLIC_MICROBENCHMARKS,
    date: DATE,
    title: "What public microbenchmarks print beside a TITAN V, recorded",
    subject: "program",
    quantity: |row| row.value.clone(),
    unit: |_| "as printed".to_owned(),
    has_accel_sim: false,
    how: PROGRAMS.how,
    groups: None,
};

pub(super) const COUNTERS: Recorded = Recorded {
    description: PartDescription {
        name: "counters",
        summary: "recorded: counters of kernels of public programs beside Nsight Compute",
    },
    rows: &recorded::COUNTERS,
    date: COUNTERS_DATE,
    title: "Counters of kernels beside a Quadro GV100 under Nsight Compute, recorded",
    subject: "kernel and counter",
    quantity: |_| "counter".to_owned(),
    unit: |_| "as counted".to_owned(),
    has_accel_sim: false,
    how: PROGRAMS.how,
    groups: Some(Groups {
        name: "counter_groups",
        title: "Counters of kernels by counter, recorded",
        of: |row| row.name.split_once(": ").map_or("", |(_, counter)| counter),
    }),
};

impl Recorded {
    /// Adds the recorded figures of the chosen rows.
    pub fn report(&self, selection: &Selection, report: &mut Report) {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| selection.has_program(&row.name)).collect();
        if let Some(groups) = &self.groups
            && rows.len() > 1
        {
            report.tables.push(groups.table(&rows, self.date));
        }
        let pairs = rows.iter().map(|row| Pair {
            program: row.name.clone(),
            quantity: (self.quantity)(row).into(),
            unit: (self.unit)(row).into(),
            simulated: Some(row.simulated),
            reference: row.hardware,
            other: row.accel_sim_error_percent.map(|error| row.hardware * (1.0 + error / 100.0)),
            source: row.source.as_str().into(),
        });
        Sheet {
            part: self.description.name,
            name: self.description.name,
            title: self.title,
            subject: self.subject,
            reference: "hardware",
            other: self.has_accel_sim.then_some("Accel-Sim"),
            setting: "recorded",
            notes: vec![format!("Simulated on {}, not now. {}", self.date, self.how)],
            pairs: pairs.collect(),
        }
        .enter(report);
    }
}

impl Groups {
    fn table(&self, rows: &[&Row], date: &str) -> Table {
        let group = self.of;
        let mut names: Vec<&str> = Vec::new();
        for name in rows.iter().map(|row| group(row)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let cells = names.iter().map(|name| {
            let chosen = || rows.iter().filter(|row| group(row) == *name && row.hardware > 0.0);
            let errors: Vec<f64> = chosen().map(|row| error_percent(row.simulated, row.hardware).abs()).collect();
            let agreement = Agreement::of(chosen().map(|row| (row.simulated, row.hardware)));
            let largest = errors.iter().copied().reduce(f64::max);
            let calibrated = chosen().filter(|row| row.calibrated_or_predicted == "calibrated").count();
            vec![
                Cell::text(*name),
                Cell::Number(errors.len() as f64, 0),
                Cell::Number(calibrated as f64, 0),
                Cell::number(agreement.map(|agreement| agreement.mean_error_percent), 1),
                Cell::Number(errors.iter().filter(|error| **error <= 5.0).count() as f64, 0),
                Cell::number(largest, 1),
                Cell::number(agreement.and_then(|agreement| agreement.correlation), 3),
            ]
        });
        Table {
            name: self.name,
            title: self.title,
            columns: vec![
                Column::new("group", "group"),
                Column::new("rows", "rows"),
                Column::droppable("calibrated_rows", "calibrated"),
                Column::new("mean_absolute_error_percent", "mean absolute error %"),
                Column::new("within_5_percent", "within 5 %"),
                Column::new("largest_error_percent", "largest %"),
                Column::new("correlation", "correlation of logarithms"),
            ],
            rows: cells.collect(),
            notes: vec![format!("Simulated on {date}, not now.")],
        }
    }
}
