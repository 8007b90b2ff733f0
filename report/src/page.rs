//! What a page consists of.

use crate::value::Table;

/// A page about one run, or about two side by side.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// What it is about: "lud on v100_node".
    pub title: String,
    /// The runs: one or two.
    pub runs: Vec<RunHead>,
    /// The most important figures.
    pub tiles: Vec<Tile>,
    /// Everything else.
    pub sections: Vec<Section>,
    /// What stands at the end: who wrote it.
    pub footer: String,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// As it should.
    Good(String),
    /// Neither well nor badly: it has no check, or was ended early on purpose.
    #[default]
    Open,
    /// As before, in words.
    Plain(String),
    /// It went wrong.
    Bad(String),
}

/// What a run was.
#[derive(Clone, Debug, Default)]
pub struct RunHead {
    /// What it is called on this page where there are two: "A".
    pub label: String,
    /// What ran on what.
    pub name: String,
    /// How it ended.
    pub status: Status,
    /// What went in, by name.
    pub facts: Vec<(String, String)>,
    /// What went wrong, in words.
    pub problem: Option<String>,
}

/// A figure in large letters.
#[derive(Clone, Debug, Default)]
pub struct Tile {
    /// What it is.
    pub name: String,
    /// Its value in each run, with its unit.
    pub values: Vec<String>,
    /// How the second differs from the first.
    pub change: Option<String>,
}

/// A part of the page with a heading.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its name in addresses: letters and hyphens.
    pub id: &'static str,
    /// The heading.
    pub title: &'static str,
    /// A sentence or two beneath it.
    pub lead: String,
    /// What it shows.
    pub parts: Vec<Part>,
}

/// Something that a section shows.
#[derive(Clone, Debug)]
pub enum Part {
    /// A table.
    Table(Table),
    /// A chart, with its table folded away beneath it.
    Chart(Chart),
    /// A picture of a node.
    Picture(Picture),
    /// Something that is missing, and what would give it.
    Note(String),
    /// A line that names what follows.
    Heading(String),
    /// Parts side by side where there is room.
    Beside(Vec<Part>),
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What somebody who does not see it should know: one sentence.
    pub label: String,
    /// The chart as SVG, as `balar_charts` writes it.
    pub svg: String,
    /// The numbers that it shows.
    pub table: Table,
}

/// A picture whose shapes are coloured by the page's style.
#[derive(Clone, Debug)]
pub struct Picture {
    /// What it shows; empty where the section says it.
    pub title: String,
    /// What somebody who does not see it should know.
    pub label: String,
    /// The picture as SVG without a style of its own.
    pub svg: String,
}
