//! The entries that a TLB shootdown drops: figures 5 and 6 of the study.

use super::Figures;
use super::common::{APPLICATIONS, Application, Compared, OF_REPORT, Part};
use crate::validation::agreement::Agreement;
use crate::validation::report::{Cell, Chart, Column, Report, Table};
use crate::validation::runs::{Point, Runs};
use crate::validation::{PartDescription, Selection};
use balar_charts::Bars;

pub(super) const PART: Part = Part {
    description: PartDescription {
        name: "shootdowns",
        summary: "TLB hits and cycles where each update of the page table drops its entry, or all entries",
    },
    points,
    report,
};

/// The study's average difference between the hit rates, points (figure 5; it gives no figure for an application).
const PUBLISHED_DIFFERENCE: f64 = 11.0;

fn chosen(selection: &Selection) -> impl Iterator<Item = &'static Application> {
    APPLICATIONS.iter().filter(|application| selection.has_program(application.name))
}

fn point(application: &Application, scope: &str) -> Point {
    application.point("managed", &[("gpu.gmmu.shootdown_when", "EachUpdate"), ("gpu.gmmu.shootdown_scope", scope)])
}

fn points(selection: &Selection) -> Vec<Point> {
    chosen(selection).flat_map(|application| ["Entry", "All"].map(|scope| point(application, scope))).collect()
}

fn report(selection: &Selection, runs: &Runs<Figures>, report: &mut Report) {
    let rows: Vec<_> = chosen(selection)
        .map(|application| (application.name, ["Entry", "All"].map(|scope| runs.get(&point(application, scope)))))
        .collect();
    if rows.is_empty() {
        return;
    }
    let mut differences = Vec::new();
    let cells = rows.iter().map(|(name, found)| {
        let hits = found.map(|found| found.map(|found| found.tlb_hits_percent));
        let cycles = found.map(|found| found.map(|found| found.cycles as f64));
        let difference = hits[0].zip(hits[1]).map(|(entry, all)| entry - all);
        differences.extend(difference);
        let ratio = cycles[0].zip(cycles[1]).map(|(entry, all)| entry / all);
        vec![
            Cell::text(*name),
            Cell::number(hits[0], 1),
            Cell::number(hits[1], 1),
            Cell::signed(difference, 1),
            Cell::number(cycles[0], 0),
            Cell::number(cycles[1], 0),
            Cell::number(ratio, 3),
        ]
    });
    let cells = cells.collect();
    let mean = (!differences.is_empty()).then(|| differences.iter().sum::<f64>() / differences.len() as f64);
    let cycles =
        rows.iter().filter_map(|(_, [entry, all])| Some((entry.as_ref()?.cycles as f64, all.as_ref()?.cycles as f64)));
    let mut notes = Vec::new();
    if let Some(mean) = mean {
        notes.push(format!(
            "hits: Entry {mean:+.1} points over All on average (the study: about +{PUBLISHED_DIFFERENCE:.0})"
        ));
    }
    if let Some(agreement) = Agreement::of(cycles) {
        notes.push(format!(
            "cycles: Entry over All {:.3}, geometric mean (the study: nearly equal)",
            agreement.mean_ratio
        ));
    }
    report.tables.push(Table {
        name: "shootdowns",
        title: "TLB shootdowns at each update of the page table: its entry, or all entries (figures 5 and 6 of the study)",
        columns: vec![
            Column::new("application", "application"),
            Column::new("entry_tlb_hits_percent", "Entry hit %"),
            Column::new("all_tlb_hits_percent", "All hit %"),
            Column::new("difference_points", "points"),
            Column::new("entry_cycles", "Entry cycles"),
            Column::new("all_cycles", "All cycles"),
            Column::new("entry_over_all_cycles", "Entry/All"),
        ],
        rows: cells,
        notes,
    });
    for (name, found) in &rows {
        for (scope, found) in ["Entry", "All"].into_iter().zip(found) {
            let compared =
                Compared { study: "shootdowns", program: name, setting: scope.to_owned(), source: OF_REPORT };
            report.comparisons.push(compared.with("TLB hits", "%", found.map(|found| found.tlb_hits_percent), None));
            report.comparisons.push(compared.with(
                "kernel cycles",
                "cycle",
                found.map(|found| found.cycles as f64),
                None,
            ));
        }
    }
    if mean.is_some() && selection.programs.is_empty() {
        let setting = "Entry minus All".to_owned();
        let compared = Compared { study: "shootdowns", program: "mean", setting, source: OF_REPORT };
        report.comparisons.push(compared.with("TLB hits", "points", mean, Some(PUBLISHED_DIFFERENCE)));
    }
    let bars = |of: fn(&Figures) -> f64| -> Vec<(&str, [Option<f64>; 2])> {
        rows.iter().map(|(name, found)| (*name, found.map(|found| found.map(of)))).collect()
    };
    let scopes = ["the entry of the page", "all entries"];
    let hits = balar_charts::bars(&Bars {
        title: "TLB hits where each update of the page table drops entries",
        x: "application",
        y: "lookups that hit, %",
        series: scopes,
        is_logarithmic: false,
        decimals: 1,
        groups: bars(|found| found.tlb_hits_percent),
    });
    let cycles = balar_charts::bars(&Bars {
        title: "Cycles where each update of the page table drops entries",
        x: "application",
        y: "kernel cycles",
        series: scopes,
        is_logarithmic: true,
        decimals: 0,
        groups: bars(|found| found.cycles as f64),
    });
    report.charts.push(Chart { name: "shootdown_tlb_hits", svg: hits });
    report.charts.push(Chart { name: "shootdown_cycles", svg: cycles });
}
