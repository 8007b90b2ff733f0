//! From a page to its text.

use crate::page::{Chart, Page, Part, Picture, RunHead, Section, Status, Tile};
use crate::value::{Cell, Column, Format, Table, change, number};
use balar_charts::ramp;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::fmt::Write;

const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");
/// Steps of heat maps on dark paper, from nothing to the most: each is lighter than the one before.
const DARK_RAMP: [&str; 9] =
    ["#1D2733", "#1F3A56", "#23507B", "#2A689E", "#3B82BD", "#5A9CD0", "#83B7E0", "#B2D3EE", "#E6F1FB"];

impl Page {
    /// The page as HTML, complete.
    pub fn html(&self) -> String {
        let script = SCRIPT.trim();
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    // Nothing is to be asked for, whatever a text might hold.
                    meta http-equiv="Content-Security-Policy"
                        content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
                    link rel="icon" href="data:,";
                    title { (self.title) }
                    style { (PreEscaped(STYLE.trim())) (PreEscaped(ramp_style())) }
                }
                body class=[self.is_comparison().then_some("two")] {
                    header {
                        h1 { (self.title) }
                        div class="runs" { @for run in &self.runs { (head(run)) } }
                        dl class="tiles" { @for tile in &self.tiles { (self.tile(tile)) } }
                        nav aria-label="Sections" {
                            @for section in &self.sections { a href={ "#" (section.id) } { (section.title) } }
                        }
                    }
                    main { @for part in &self.sections { (section(part)) } }
                    footer { (self.footer) }
                    script { (PreEscaped(script)) }
                }
            }
        };
        let mut text = page.into_string();
        text.push('\n');
        text
    }

    fn is_comparison(&self) -> bool {
        self.runs.len() > 1
    }

    fn tile(&self, tile: &Tile) -> Markup {
        html! {
            div {
                dt { (tile.name) }
                @for (run, value) in self.runs.iter().zip(&tile.values) {
                    dd {
                        @if self.is_comparison() { span class="run" { (run.label) } }
                        (value)
                    }
                }
                @if let Some(change) = &tile.change { dd class="change" { (change) } }
            }
        }
    }
}

/// Colours of heat maps for dark paper.
fn ramp_style() -> String {
    let rules = ramp().iter().zip(DARK_RAMP).fold(String::new(), |mut rules, (light, dark)| {
        let _ = write!(rules, ".chart [fill=\"{light}\"]{{fill:{dark}}}");
        rules
    });
    format!("\n@media screen and (prefers-color-scheme: dark){{{rules}}}\n")
}

fn head(run: &RunHead) -> Markup {
    let (class, words) = match &run.status {
        Status::Good(words) => ("good", words.as_str()),
        Status::Open => ("plain", ""),
        Status::Plain(words) => ("plain", words.as_str()),
        Status::Bad(words) => ("bad", words.as_str()),
    };
    html! {
        div class="head" {
            p class="name" {
                @if !run.label.is_empty() { span class="run" { (run.label) } }
                strong { (run.name) }
                @if !words.is_empty() { span class={ "badge " (class) } { (words) } }
            }
            @if let Some(problem) = &run.problem { p class="problem" { (problem) } }
            dl class="facts" { @for (name, value) in &run.facts { div { dt { (name) } dd { (value) } } } }
        }
    }
}

fn section(section: &Section) -> Markup {
    html! {
        section id=(section.id) class="card" {
            h2 { (section.title) }
            @if !section.lead.is_empty() { p class="lead" { (words(&section.lead)) } }
            @for shown in &section.parts { (part(shown)) }
        }
    }
}

fn part(part: &Part) -> Markup {
    match part {
        Part::Table(shown) => table(shown),
        Part::Chart(shown) => chart(shown),
        Part::Picture(shown) => picture(shown),
        Part::Note(text) => html! { p class="note" { (words(text)) } },
        Part::Heading(text) => html! { h3 { (text) } },
        Part::Beside(parts) => html! { div class="beside" { @for shown in parts { div { (self::part(shown)) } } } },
    }
}

/// A text in which options and files stand out, and are not broken.
fn words(text: &str) -> Markup {
    html! {
        @for word in text.split_inclusive(' ') {
            @let (bare, rest) = word.split_at(word.trim_end_matches([' ', '.', ',', ':']).len());
            @if bare.starts_with("--") || bare.ends_with(".csv") || bare.ends_with(".jsonl") { code { (bare) } (rest) }
            @else { (word) }
        }
    }
}

fn chart(chart: &Chart) -> Markup {
    html! {
        figure class="chart" {
            @if !chart.title.is_empty() { figcaption { (chart.title) } }
            div class="scroll" tabindex="0" role="group" aria-label=(chart.title) { (image(&chart.svg, &chart.label)) }
            @if !chart.table.rows.is_empty() {
                details { summary { "Data" } (table(&chart.table)) }
            }
        }
    }
}

fn picture(picture: &Picture) -> Markup {
    html! {
        figure {
            figcaption class="line" {
                span { (picture.title) }
                span class="key" aria-hidden="true" { span { "idle" } i {} span { "busy" } }
            }
            div class="picture scroll" tabindex="0" role="group" aria-label=(picture.label) {
                (image(&picture.svg, &picture.label))
            }
        }
    }
}

/// An SVG with a name for those who do not see it.
fn image(svg: &str, label: &str) -> Markup {
    let label = html! { (label) }.into_string().replace('"', "&quot;");
    PreEscaped(svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{label}\" "), 1))
}

fn table(table: &Table) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="group" aria-label=(table.caption) {
            table class=[table.is_sortable.then_some("sortable")] {
                caption { (table.caption) }
                thead { tr { @for column in &table.columns { (heading(column)) } } }
                tbody {
                    @for row in &table.rows {
                        tr { @for (at, (cell, column)) in row.iter().zip(&table.columns).enumerate() { (data(cell, column, at == 0)) } }
                    }
                }
                @if let Some(rest) = &table.rest {
                    tfoot { tr { td colspan=(table.columns.len()) { (rest) } } }
                }
            }
        }
    }
}

fn heading(column: &Column) -> Markup {
    let class = (column.format != Format::Text).then_some("number");
    let meaning = Some(&column.meaning).filter(|meaning| !meaning.is_empty());
    html! {
        th scope="col" class=[class] title=[meaning] {
            (column.name)
            @if !column.unit.is_empty() { span class="unit" { (column.unit) } }
        }
    }
}

fn data(cell: &Cell, column: &Column, is_first: bool) -> Markup {
    let inside = match cell {
        Cell::Text(text) => html! { (text) },
        Cell::Nested(depth, text) => {
            html! { span class="nested" style={ "padding-inline-start:" (depth) "em" } { (text) } }
        }
        Cell::Change(before, after) => html! { (change(&[*before, *after], column.format)) },
        Cell::Texts(texts) => html! {
            @for (text, run) in texts.iter().zip(["a", "b"]) { span class=(run) { (text.as_deref().unwrap_or("\u{2013}")) } }
        },
        Cell::Numbers(values) if values.len() < 2 => {
            html! { (number(values.first().copied().flatten(), column.format)) }
        }
        // A fact that is the same in both is said once.
        Cell::Numbers(values) if values[0].is_some() && values.iter().all(|value| *value == values[0]) => html! {
            (number(values[0], column.format))
            span class="change" { "=" }
        },
        Cell::Numbers(values) => html! {
            @for (value, run) in values.iter().zip(["a", "b"]) { span class=(run) { (number(*value, column.format)) } }
            @let change = change(values, column.format);
            @if !change.is_empty() { span class="change" { (change) } }
        },
    };
    match cell {
        Cell::Numbers(values) => {
            let key = values.first().copied().flatten().filter(|value| value.is_finite());
            html! { td class="number" data-value=[key] { (inside) } }
        }
        Cell::Change(before, after) => {
            let key = before.zip(*after).map(|(before, after)| after - before);
            html! { td class="number change" data-value=[key] { (inside) } }
        }
        _ if is_first => html! { th scope="row" { (inside) } },
        _ => html! { td { (inside) } },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "<script>alert(\"1\")</script>&'";

    fn page() -> Page {
        let table = Table {
            caption: HOSTILE.to_owned(),
            columns: vec![Column::text(HOSTILE), Column::number("time", "us", Format::Fixed(1)).meaning(HOSTILE)],
            rows: vec![
                vec![Cell::Text(HOSTILE.to_owned()), Cell::Numbers(vec![Some(2.0), Some(3.0)])],
                vec![Cell::Texts(vec![Some(HOSTILE.to_owned()), None]), Cell::Numbers(vec![None, Some(3.0)])],
            ],
            is_sortable: true,
            rest: Some(HOSTILE.to_owned()),
        };
        let chart = Chart {
            title: HOSTILE.to_owned(),
            label: HOSTILE.to_owned(),
            svg: "<svg width=\"1\"></svg>".to_owned(),
            table: table.clone(),
        };
        let parts = vec![
            Part::Table(table),
            Part::Beside(vec![Part::Chart(chart), Part::Note(HOSTILE.to_owned())]),
            Part::Heading(HOSTILE.to_owned()),
        ];
        let head = |label: &str| RunHead {
            label: label.to_owned(),
            name: HOSTILE.to_owned(),
            status: Status::Bad(HOSTILE.to_owned()),
            facts: vec![(HOSTILE.to_owned(), HOSTILE.to_owned())],
            problem: Some(HOSTILE.to_owned()),
        };
        Page {
            title: HOSTILE.to_owned(),
            runs: vec![head("A"), head("B")],
            tiles: vec![Tile { name: HOSTILE.into(), values: vec![HOSTILE.into(); 2], change: Some(HOSTILE.into()) }],
            sections: vec![Section { id: "s", title: "S", lead: HOSTILE.to_owned(), parts }],
            footer: HOSTILE.to_owned(),
        }
    }

    #[test]
    fn texts_are_escaped_wherever_they_stand() {
        let text = page().html();
        assert_eq!(text.matches("<script").count(), 1, "its own alone");
        assert!(
            !text.contains("alert(\"1\")") && text.contains("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;")
        );
    }

    #[test]
    fn nothing_is_asked_for() {
        let text = page().html();
        for foreign in ["http:", "https:", "url(", "@import", "src="] {
            let found = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!found.contains(foreign), "{foreign}");
        }
    }

    #[test]
    fn two_values_stand_with_their_change() {
        let text = page().html();
        let cell = "<td class=\"number\" data-value=\"2\"><span class=\"a\">2.0</span><span class=\"b\">3.0</span>\
                    <span class=\"change\">+50.0\u{202f}%</span></td>";
        assert!(text.contains(cell), "{text}");
        assert!(
            text.contains("<td class=\"number\"><span class=\"a\">\u{2013}</span>"),
            "what is not known has no value"
        );
    }

    #[test]
    fn a_page_of_nothing_is_a_page() {
        let text = Page::default().html();
        assert!(text.starts_with("<!DOCTYPE html>") && text.trim_end().ends_with("</html>"));
    }
}
