//! The report of a study: tables, charts, and a list of all comparisons.

use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// The report of a study.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The study.
    pub study: &'static str,
    /// Whether every run came to its end with a right result.
    pub completed: bool,
    /// Runs that came to their end.
    pub runs: usize,
    /// Runs that the tables need.
    pub planned: usize,
    /// Runs that failed, and why.
    pub failures: Vec<String>,
    /// Its tables.
    pub tables: Vec<Table>,
    /// All figures that are compared, one by one.
    pub comparisons: Vec<Comparison>,
    /// Its charts.
    #[serde(skip)]
    pub charts: Vec<Chart>,
    /// How its page begins, where it is not a study of `validate`.
    #[serde(skip)]
    pub opening: Option<Opening>,
}

/// How the page of a report begins.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Its title.
    pub title: String,
    /// What it shows, in a sentence or two.
    pub lead: &'static str,
}

/// Figures side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Its name: that of its file.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, a cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// The findings, and the facts that a reader must know.
    pub notes: Vec<String>,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Column {
    /// Its name in files.
    pub key: &'static str,
    /// Its name in print.
    #[serde(skip)]
    pub heading: &'static str,
    /// Whether a narrow terminal may go without it.
    #[serde(skip)]
    pub is_droppable: bool,
}

impl Column {
    /// A column with a name in files and one in print.
    pub const fn new(key: &'static str, heading: &'static str) -> Column {
        Column { key, heading, is_droppable: false }
    }

    /// A column that a narrow terminal may go without.
    pub const fn droppable(key: &'static str, heading: &'static str) -> Column {
        Column { key, heading, is_droppable: true }
    }
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// A number, and its decimals in print.
    Number(f64, usize),
    /// A number that is printed with its sign.
    Signed(f64, usize),
    /// Nothing is known, or the run is missing.
    Absent,
}

impl Cell {
    /// Text.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    /// A number where there is one.
    pub fn number(value: Option<f64>, decimals: usize) -> Cell {
        value.map_or(Cell::Absent, |value| Cell::Number(value, decimals))
    }

    /// A difference where there is one.
    pub fn signed(value: Option<f64>, decimals: usize) -> Cell {
        value.map_or(Cell::Absent, |value| Cell::Signed(value, decimals))
    }

    /// How it is printed.
    pub fn shown(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Number(value, decimals) => format!("{value:.decimals$}"),
            Cell::Signed(value, decimals) => format!("{value:+.decimals$}"),
            Cell::Absent => "-".to_owned(),
        }
    }

    /// How it stands in comma-separated values: numbers in full, nothing where there is none.
    pub fn exact(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Number(value, _) | Cell::Signed(value, _) => value.to_string(),
            Cell::Absent => String::new(),
        }
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::Text(text) => serializer.serialize_str(text),
            Cell::Number(value, _) | Cell::Signed(value, _) => serializer.serialize_f64(*value),
            Cell::Absent => serializer.serialize_none(),
        }
    }
}

/// A simulated figure beside another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The part of the study.
    pub study: &'static str,
    /// The program.
    pub program: String,
    /// The setting of the run.
    pub setting: String,
    /// The compared quantity.
    pub quantity: Cow<'static, str>,
    /// The simulated figure; `None` where the run is missing.
    pub simulated: Option<f64>,
    /// The reference; `None` where none is published.
    pub reference: Option<f64>,
    /// The unit of both.
    pub unit: Cow<'static, str>,
    /// Where the reference is from.
    pub source: Cow<'static, str>,
}

impl Comparison {
    /// The names of the fields, in their order.
    pub const COLUMNS: [&'static str; 8] =
        ["study", "program", "setting", "quantity", "simulated", "reference", "unit", "source"];

    /// The fields as they stand in comma-separated values.
    pub fn fields(&self) -> [String; 8] {
        // The simulator knows picoseconds; more digits are of the division.
        let number = |value: Option<f64>| value.map(|value| (value * 1e6).round() / 1e6);
        let shown = |value| number(value).map(|value| value.to_string()).unwrap_or_default();
        [
            self.study.to_owned(),
            self.program.clone(),
            self.setting.clone(),
            self.quantity.clone().into_owned(),
            shown(self.simulated),
            shown(self.reference),
            self.unit.clone().into_owned(),
            self.source.clone().into_owned(),
        ]
    }
}

/// The common part of the comparisons of a program in a setting.
pub(crate) struct Compared<'a> {
    pub study: &'static str,
    pub program: &'a str,
    pub setting: String,
    pub source: &'static str,
}

impl Compared<'_> {
    /// A figure beside another one.
    pub fn with(
        &self,
        quantity: &'static str,
        unit: &'static str,
        simulated: Option<f64>,
        reference: Option<f64>,
    ) -> Comparison {
        let Compared { study, program, setting, source } = self;
        let source = if reference.is_some() { source } else { "" };
        Comparison {
            study,
            program: (*program).to_owned(),
            setting: setting.clone(),
            quantity: quantity.into(),
            simulated,
            reference,
            unit: unit.into(),
            source: source.into(),
        }
    }
}

/// A picture.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Its name: that of its file.
    pub name: &'static str,
    /// The picture.
    pub svg: String,
}
