//! Simulated figures beside others, row by row: a table, its agreement, the comparisons, and points about a diagonal.

use super::agreement::{Agreement, error_percent};
use super::report::{Cell, Chart, Column, Comparison, Report, Table};
use balar_charts::{Mark, Scatter, Series};
use std::borrow::Cow;

/// A simulated figure beside one that it is compared with.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    /// The program of the figure.
    pub program: String,
    /// The compared quantity, where rows of a sheet differ in it.
    pub quantity: Cow<'static, str>,
    /// The unit of all figures of the row.
    pub unit: Cow<'static, str>,
    /// The simulated figure; `None` where the run is missing.
    pub simulated: Option<f64>,
    /// The reference.
    pub reference: f64,
    /// The figure of the other simulator in the sheet.
    pub other: Option<f64>,
    /// Where the reference is from.
    pub source: Cow<'static, str>,
}

/// Rows with a table of their own.
pub(super) struct Sheet {
    /// The part of the study.
    pub part: &'static str,
    /// The name of its files.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// The subject of the rows, in print.
    pub subject: &'static str,
    /// Who measured the references, in print.
    pub reference: &'static str,
    /// Another simulator whose figures are known.
    pub other: Option<&'static str>,
    /// The setting of the runs.
    pub setting: &'static str,
    /// The facts that a reader must know.
    pub notes: Vec<String>,
    /// The rows.
    pub pairs: Vec<Pair>,
}

impl Sheet {
    /// Adds the table, the comparisons and the picture to a report; nothing where there is no row.
    pub fn enter(self, report: &mut Report) {
        if self.pairs.is_empty() {
            return;
        }
        report.charts.push(Chart { name: self.name, svg: self.picture() });
        report.tables.push(self.table());
        report.comparisons.extend(self.pairs.into_iter().map(|pair| Comparison {
            study: self.part,
            program: pair.program,
            setting: self.setting.to_owned(),
            quantity: pair.quantity,
            simulated: pair.simulated,
            reference: Some(pair.reference),
            unit: pair.unit,
            source: pair.source,
        }));
    }

    fn has_one_unit(&self) -> bool {
        self.pairs.iter().all(|pair| pair.unit == self.pairs[0].unit)
    }

    fn table(&self) -> Table {
        let (one_unit, one_quantity) =
            (self.has_one_unit(), self.pairs.iter().all(|pair| pair.quantity == self.pairs[0].quantity));
        let mut columns = vec![Column::new("name", self.subject)];
        if !one_quantity {
            columns.push(Column::new("quantity", "quantity"));
        }
        if !one_unit {
            columns.push(Column::new("unit", "unit"));
        }
        columns.extend([
            Column::new("simulated", "simulated"),
            Column::new("reference", self.reference),
            Column::new("error_percent", "error %"),
        ]);
        if let Some(other) = self.other {
            columns.extend([
                Column::droppable("other_simulator", other),
                Column::droppable("other_error_percent", "its error %"),
            ]);
        }
        let rows = self.pairs.iter().map(|pair| {
            let error = |value: Option<f64>| Cell::signed(value.map(|value| error_percent(value, pair.reference)), 1);
            let mut row = vec![Cell::text(&pair.program)];
            if !one_quantity {
                row.push(Cell::text(&*pair.quantity));
            }
            if !one_unit {
                row.push(Cell::text(&*pair.unit));
            }
            row.extend([figure(pair.simulated), figure(Some(pair.reference)), error(pair.simulated)]);
            if self.other.is_some() {
                row.extend([figure(pair.other), error(pair.other)]);
            }
            row
        });
        let found = self.pairs.iter().filter_map(|pair| Some((pair.simulated?, pair.reference)));
        // The other simulator's over the same rows.
        let theirs = self.pairs.iter().filter(|pair| pair.simulated.is_some());
        let theirs = theirs.filter_map(|pair| Some((pair.other?, pair.reference)));
        let agreements = [(Some("simulated"), Agreement::of(found)), (self.other, Agreement::of(theirs))]
            .into_iter()
            .filter_map(|(who, agreement)| {
                let (who, agreement) = (who?, agreement?);
                let rows = if agreement.pairs == 1 { "row" } else { "rows" };
                Some(format!("{who}: {} {rows}, {agreement}", agreement.pairs))
            });
        Table {
            name: self.name,
            title: self.title,
            columns,
            rows: rows.collect(),
            notes: agreements.chain(self.notes.iter().cloned()).collect(),
        }
    }

    fn picture(&self) -> String {
        // Of many points no name can be read.
        let name = |pair: &Pair| if self.pairs.len() > 40 { String::new() } else { pair.program.clone() };
        let points = self.pairs.iter().filter_map(|pair| Some((pair.reference, pair.simulated?, name(pair))));
        let mut series = vec![Series { name: "balar-actors", mark: Mark::Disc, points: points.collect() }];
        if let Some(other) = self.other {
            let points = self.pairs.iter().filter_map(|pair| Some((pair.reference, pair.other?, String::new())));
            series.push(Series { name: other, mark: Mark::Ring, points: points.collect() });
        }
        let unit = if self.has_one_unit() { &*self.pairs[0].unit } else { "each in its unit" };
        balar_charts::scatter(&Scatter {
            title: self.title,
            x: &format!("{}, {unit}", self.reference),
            y: &format!("simulated, {unit}"),
            diagonal: "as measured",
            series,
        })
    }
}

/// A figure with four digits, or all of a whole number.
pub(super) fn figure(value: Option<f64>) -> Cell {
    let digits = value.map_or(0.0, |value| if value == 0.0 { 0.0 } else { value.abs().log10().floor() });
    Cell::number(value, (3.0 - digits).clamp(0.0, 4.0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(program: &str, simulated: Option<f64>, reference: f64, other: Option<f64>) -> Pair {
        Pair {
            program: program.to_owned(),
            quantity: "cycles".into(),
            unit: "cycle".into(),
            simulated,
            reference,
            other,
            source: "a card".into(),
        }
    }

    fn sheet(pairs: Vec<Pair>) -> Sheet {
        Sheet {
            part: "part",
            name: "name",
            title: "Title",
            subject: "program",
            reference: "measured",
            other: Some("Other"),
            setting: "",
            notes: vec!["A note.".to_owned()],
            pairs,
        }
    }

    #[test]
    fn errors_and_agreement_are_those_of_what_ran() {
        let mut report = Report::default();
        let pairs = vec![pair("one", Some(110.0), 100.0, Some(50.0)), pair("two", None, 10.0, Some(10.0))];
        sheet(pairs).enter(&mut report);
        let table = &report.tables[0];
        let shown: Vec<Vec<_>> = table.rows.iter().map(|row| row.iter().map(Cell::shown).collect()).collect();
        assert_eq!(shown[0], ["one", "110.0", "100.0", "+10.0", "50.00", "-50.0"]);
        assert_eq!(shown[1], ["two", "-", "10.00", "-", "10.00", "+0.0"]);
        assert_eq!(table.notes.len(), 3);
        assert!(table.notes[0].starts_with("simulated: 1 row, mean absolute error 10.0 %"), "{:?}", table.notes);
        assert!(table.notes[1].starts_with("Other: 1 row, mean absolute error 50.0 %"), "{:?}", table.notes);
        assert_eq!((report.comparisons.len(), report.charts.len()), (2, 1));
    }

    #[test]
    fn rows_of_several_units_say_which() {
        let other = Pair { unit: "GB/s".into(), ..pair("two", Some(2.0), 2.0, None) };
        let table = sheet(vec![pair("one", Some(1.0), 1.0, None), other]).table();
        assert_eq!(table.columns[1].key, "unit");
        let mut report = Report::default();
        sheet(Vec::new()).enter(&mut report);
        assert!(report.tables.is_empty() && report.charts.is_empty());
    }
}
