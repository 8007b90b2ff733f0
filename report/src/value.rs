//! Tables and their values: how numbers are written, and how they are compared.

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Its caption, for readers who jump from table to table.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// Can it be sorted by its headers?
    pub is_sortable: bool,
    /// A last row about the rows that are left out.
    pub rest: Option<String>,
}

impl Table {
    /// The same table with a column for each run, and one for how they differ, in place of cells that have both: for tables with few columns
    /// of numbers. A table of one run stays as it is.
    pub fn spread(self, labels: [&str; 2]) -> Table {
        let has_two =
            |at: usize| self.rows.iter().any(|row| matches!(&row[at], Cell::Numbers(values) if values.len() == 2));
        let is_pair: Vec<bool> = (0..self.columns.len()).map(has_two).collect();
        let of_column = |(column, is_pair): (Column, &bool)| {
            if !is_pair {
                return vec![column];
            }
            let named = |label: &str| Column { name: format!("{} {label}", column.name), ..column.clone() };
            vec![
                named(labels[0]),
                named(labels[1]),
                Column { name: "change".to_owned(), unit: String::new(), ..column.clone() },
            ]
        };
        let columns = self.columns.into_iter().zip(&is_pair).flat_map(of_column).collect();
        let of_cell = |(cell, is_pair): (Cell, &bool)| match cell {
            Cell::Numbers(values) if *is_pair => {
                let of = |at: usize| values.get(at).copied().flatten();
                vec![Cell::number(of(0)), Cell::number(of(1)), Cell::Change(of(0), of(1))]
            }
            cell => vec![cell],
        };
        let rows = self.rows.into_iter().map(|row| row.into_iter().zip(&is_pair).flat_map(of_cell).collect()).collect();
        Table { columns, rows, ..self }
    }
}

/// A row: a cell for each column.
pub type Row = Vec<Cell>;

/// A column.
#[derive(Clone, Debug, Default)]
pub struct Column {
    /// Its name, short.
    pub name: String,
    /// Its unit of measure.
    pub unit: String,
    /// One line of meaning.
    pub meaning: String,
    /// How its values are written.
    pub format: Format,
}

impl Column {
    /// A column of words.
    pub fn text(name: &str) -> Column {
        Column { name: name.to_owned(), ..Column::default() }
    }

    /// A column of numbers.
    pub fn number(name: &str, unit: &str, format: Format) -> Column {
        Column { name: name.to_owned(), unit: unit.to_owned(), meaning: String::new(), format }
    }

    /// With a line of meaning.
    pub fn meaning(self, meaning: &str) -> Column {
        Column { meaning: meaning.to_owned(), ..self }
    }
}

/// How the values of a column are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Words, at the left.
    #[default]
    Text,
    /// Whole numbers, grouped by thousands.
    Count,
    /// With so many decimals.
    Fixed(usize),
    /// Three digits that count, whatever the size.
    Short,
    /// Shares in percent, with one decimal. They change by points, other values by a percentage.
    Percent,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// Words of a row that stands in so many others above it.
    Nested(usize, String),
    /// A number of each run: one, or two that are compared. None where it is not known.
    Numbers(Vec<Option<f64>>),
    /// Words of each run.
    Texts(Vec<Option<String>>),
    /// How the second of two numbers differs from the first.
    Change(Option<f64>, Option<f64>),
}

impl Cell {
    /// The number of one run.
    pub fn number(value: impl Into<Option<f64>>) -> Cell {
        Cell::Numbers(vec![value.into()])
    }

    /// A count of one run.
    pub fn count(value: u64) -> Cell {
        Cell::number(value as f64)
    }
}

/// A number as text. "–" stands for none.
pub fn number(value: Option<f64>, format: Format) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else { return "\u{2013}".to_owned() };
    match format {
        Format::Text | Format::Count => grouped(value, 0),
        Format::Fixed(decimals) => grouped(value, decimals),
        Format::Percent => grouped(value, 1),
        Format::Short => {
            let decimals = match value.abs() {
                size if size == 0.0 || size >= 100.0 => 0,
                size if size >= 10.0 => 1,
                size if size >= 1.0 => 2,
                size if size >= 0.1 => 3,
                _ => 4,
            };
            grouped(value, decimals)
        }
    }
}

/// The change of a value: in percent of the earlier value, or in points where it is a share. Empty where one of them is not known.
pub fn change(values: &[Option<f64>], format: Format) -> String {
    let [Some(before), Some(after)] = *values else { return String::new() };
    let change = after - before;
    if change == 0.0 {
        return "=".to_owned();
    }
    let sign = if change > 0.0 { "+" } else { "\u{2212}" };
    if format == Format::Percent {
        let decimals = if change.abs() < 0.05 { 2 } else { 1 };
        return format!("{sign}{}\u{202f}pp", grouped(change.abs(), decimals));
    }
    if before == 0.0 {
        return "new".to_owned();
    }
    let percent = (change / before * 100.0).abs();
    let decimals = if percent < 0.1 { 2 } else { usize::from(percent < 1000.0) };
    format!("{sign}{}\u{202f}%", grouped(percent, decimals))
}

/// With a narrow space between groups of three digits.
fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let mut shown = String::new();
    let is_zero = text.chars().all(|digit| matches!(digit, '0' | '.'));
    if value < 0.0 && !is_zero {
        shown.push('\u{2212}');
    }
    for (index, digit) in whole.chars().enumerate() {
        // Four digits alone are read without a gap.
        if index > 0 && whole.len() > 4 && (whole.len() - index).is_multiple_of(3) {
            shown.push('\u{202f}');
        }
        shown.push(digit);
    }
    if let Some(rest) = rest {
        shown.push('.');
        shown.push_str(rest);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_by_their_format() {
        let plain = |value: f64, format| number(Some(value), format).replace('\u{202f}', " ").replace('\u{2212}', "-");
        assert_eq!(plain(1_234_567.0, Format::Count), "1 234 567");
        assert_eq!(plain(1234.0, Format::Count), "1234");
        assert_eq!(plain(-12_345.678, Format::Fixed(2)), "-12 345.68");
        assert_eq!(plain(-0.001, Format::Fixed(1)), "0.0");
        assert_eq!(plain(99.95, Format::Percent), "100.0");
        for (value, text) in
            [(0.0, "0"), (0.01234, "0.0123"), (0.5, "0.500"), (1.234, "1.23"), (45.67, "45.7"), (123.4, "123")]
        {
            assert_eq!(plain(value, Format::Short), text);
        }
        assert_eq!((number(None, Format::Count), number(Some(f64::NAN), Format::Count)), ("–".into(), "–".into()));
    }

    #[test]
    fn a_table_of_two_runs_spreads() {
        let table = Table {
            columns: vec![Column::text("what"), Column::number("time", "us", Format::Count)],
            rows: vec![vec![Cell::Text("a".to_owned()), Cell::Numbers(vec![Some(1.0), Some(2.0)])]],
            ..Table::default()
        };
        let spread = table.clone().spread(["A", "B"]);
        assert_eq!(
            spread.columns.iter().map(|column| &*column.name).collect::<Vec<_>>(),
            ["what", "time A", "time B", "change"]
        );
        assert_eq!(spread.rows[0][3], Cell::Change(Some(1.0), Some(2.0)));
        let one = Table { rows: vec![vec![Cell::Text("a".to_owned()), Cell::count(1)]], ..table };
        assert_eq!(one.clone().spread(["A", "B"]).columns.len(), 2);
    }

    #[test]
    fn changes_are_percentages_or_points() {
        let plain = |values: [f64; 2], format| {
            change(&values.map(Some), format).replace('\u{202f}', " ").replace('\u{2212}', "-")
        };
        assert_eq!(plain([200.0, 150.0], Format::Count), "-25.0 %");
        assert_eq!(plain([1.0, 40.0], Format::Fixed(1)), "+3900 %");
        assert_eq!(plain([10_000.0, 10_001.0], Format::Count), "+0.01 %");
        assert_eq!(plain([60.0, 45.5], Format::Percent), "-14.5 pp");
        assert_eq!((plain([0.0, 3.0], Format::Count), plain([3.0, 3.0], Format::Count)), ("new".into(), "=".into()));
        assert_eq!(change(&[Some(1.0), None], Format::Count), "");
    }
}
