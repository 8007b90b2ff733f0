//! Stacked bars that lie: the parts of a whole, row by row.

use crate::frame::{Area, Axis, Drawn, Frame, SMALL, TEXT, anchored, cut, svg, text_width};
use crate::palette::{REST, colour, ink_on};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// Stacked bars, each a whole of 100 %.
#[derive(Clone, Debug)]
pub struct Stacked<'a> {
    /// The name of the axis across.
    pub x: &'a str,
    /// The names of the parts; a last one called "other" is grey.
    pub parts: Vec<&'a str>,
    /// The bars from top to bottom.
    pub rows: Vec<StackedRow<'a>>,
}

/// A bar.
#[derive(Clone, Debug)]
pub struct StackedRow<'a> {
    /// The name beside the bar.
    pub name: &'a str,
    /// The share of each part, percent.
    pub shares: Vec<f64>,
    /// Does it belong to the row above, and stand close to it?
    pub joins: bool,
}

const WIDTH: i32 = 860;
const RIGHT: i32 = 836;
const BAR: i32 = 22;
const GAP: i32 = 12;
const LEGEND_ROW: i32 = 24;
/// Names are cut to this width.
const NAME: i32 = 230;

/// Draws stacked bars.
pub fn stacked(chart: &Stacked<'_>) -> String {
    let places = legend(&chart.parts);
    let top = 22 + LEGEND_ROW * places.last().map_or(0, |(_, row)| row + 1);
    let gaps = chart.rows.iter().skip(1).map(|row| if row.joins { 3 } else { GAP }).sum::<i32>();
    let height = GAP + gaps + BAR * chart.rows.len() as i32;
    svg((WIDTH as u32, (top + height + 58) as u32), |area| draw(chart, &places, (top, top + height), area))
}

/// The place of each name above the frame: its left end and its row.
fn legend(names: &[&str]) -> Vec<(i32, i32)> {
    let (mut x, mut row) = (12, 0);
    let place = |name: &&str| {
        let width = 22 + text_width(name, TEXT) + 20;
        if x + width > WIDTH && x > 12 {
            (x, row) = (12, row + 1);
        }
        x += width;
        (x - width, row)
    };
    names.iter().map(place).collect()
}

fn draw(chart: &Stacked<'_>, places: &[(i32, i32)], (top, bottom): (i32, i32), area: &Area<'_>) -> Drawn {
    let widest = chart.rows.iter().map(|row| text_width(row.name, TEXT)).max().unwrap_or(0);
    let ticks = (0..=5).map(|step| (f64::from(20 * step), (20 * step).to_string())).collect();
    let x = Axis { range: (0.0, 100.0), is_logarithmic: false, ticks };
    let y = Axis { range: (0.0, 1.0), is_logarithmic: false, ticks: Vec::new() };
    let frame = Frame { left: widest.min(NAME) + 20, right: RIGHT, top, bottom, x, y };
    frame.draw(area, (chart.x, ""))?;
    let colours = |part: usize| if chart.parts.get(part) == Some(&"other") { REST } else { colour(part) };
    for (part, (name, (x, row))) in chart.parts.iter().zip(places).enumerate() {
        let y = 14 + LEGEND_ROW * row;
        area.draw(&Rectangle::new([(*x, y - 7), (x + 14, y + 7)], colours(part).filled()))?;
        area.draw(&Text::new((*name).to_owned(), (x + 22, y), anchored(TEXT, HPos::Left, VPos::Center)))?;
    }
    let mut y = top + GAP / 2;
    for (index, row) in chart.rows.iter().enumerate() {
        if index > 0 {
            y += BAR + if row.joins { 3 } else { GAP };
        }
        let name = cut(row.name, NAME, TEXT);
        area.draw(&Text::new(name, (frame.left - 8, y + BAR / 2), anchored(TEXT, HPos::Right, VPos::Center)))?;
        let mut before = 0.0;
        for (part, share) in row.shares.iter().enumerate() {
            let (left, right) = (frame.x(before), frame.x((before + share).min(100.0)));
            before += share;
            if right <= left {
                continue;
            }
            // A hair of paper tells neighbours apart without their colours.
            let end = if right - left > 3 { right - 1 } else { right };
            area.draw(&Rectangle::new([(left, y), (end, y + BAR)], colours(part).filled()))?;
            let text = format!("{share:.0}");
            if right - left > text_width(&text, SMALL) + 8 {
                let ink = ink_on(colours(part));
                let inside = anchored(SMALL, HPos::Center, VPos::Center).color(&ink);
                area.draw(&Text::new(text, ((left + right) / 2, y + BAR / 2), inside))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(rows: Vec<StackedRow<'_>>) -> String {
        stacked(&Stacked { x: "share, %", parts: vec!["wait < 4", "barrier", "other"], rows })
    }

    #[test]
    fn parts_lie_side_by_side_and_large_ones_say_how_large() {
        let text = chart(vec![
            StackedRow { name: "a<b>", shares: vec![62.4, 0.4, 37.2], joins: false },
            StackedRow { name: "c", shares: vec![100.0, 0.0, 0.0], joins: true },
        ]);
        for wanted in ["wait &lt; 4", "a&lt;b&gt;", "\n62\n", "\n37\n", "\n100\n", "share, %"] {
            assert!(text.contains(wanted), "{wanted} is missing in {text}");
        }
        assert!(!text.contains("\n0.4\n") && text.contains("#999999"), "{text}");
    }

    #[test]
    fn long_names_are_cut_and_no_row_is_needed() {
        let name = "kernel".repeat(40);
        let text = chart(vec![StackedRow { name: &name, shares: vec![1.0], joins: false }]);
        assert!(!text.contains(&name) && text.contains('\u{2026}'), "{text}");
        assert!(chart(Vec::new()).contains("</svg>"));
    }
}
