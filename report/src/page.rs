//! The parts of a page.

use crate::value::Table;

/// A page about one run, or about two side by side.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Its subject: "lud on v100_node".
    pub title: String,
    /// The runs: one or two.
    pub runs: Vec<RunHead>,
    /// The most important figures.
    pub tiles: Vec<Tile>,
    /// Everything else.
    pub sections: Vec<Section>,
    /// The line at the end: who wrote the page.
    pub footer: String,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// A good result.
    Good(String),
    /// Neither well nor badly: it has no check, or was ended early on purpose.
    #[default]
    Open,
    /// As before, in words.
    Plain(String),
    /// It went wrong.
    Bad(String),
}

/// A run, as the page describes it.
#[derive(Clone, Debug, Default)]
pub struct RunHead {
    /// Its label on a page of two runs: "A".
    pub label: String,
    /// Its name: the program and the node.
    pub name: String,
    /// How it ended.
    pub status: Status,
    /// Its inputs, by name.
    pub facts: Vec<(String, String)>,
    /// Its failure, in words.
    pub problem: Option<String>,
}

/// A figure in large letters.
#[derive(Clone, Debug, Default)]
pub struct Tile {
    /// Its title.
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
    /// Its contents.
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
    /// A note about something that is missing, and how to get it.
    Note(String),
    /// A heading for the parts below it.
    Heading(String),
    /// Parts side by side where there is room.
    Beside(Vec<Part>),
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Its title.
    pub title: String,
    /// Its description for readers who do not see it: one sentence.
    pub label: String,
    /// The chart as SVG, as `balar_charts` writes it.
    pub svg: String,
    /// The numbers that it shows.
    pub table: Table,
}

/// A picture whose shapes are coloured by the page's style.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Its title; empty where the title of the section is enough.
    pub title: String,
    /// Its description for readers who do not see it.
    pub label: String,
    /// The picture as SVG without a style of its own.
    pub svg: String,
}
