//! Lines over a common axis.

use crate::frame::{
    Area, Axis, DIAGONAL, Drawn, Frame, SMALL, TEXT, anchored, decades, even_step, heading, svg, text_width, tick_text,
};
use crate::palette::LINE_COLOURS;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// Lines over a common axis.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    /// The title above the chart.
    pub title: &'a str,
    /// The name of the axis across, with its unit.
    pub x: &'a str,
    /// How it is divided.
    pub x_scale: Scale,
    /// The name of the axis upward, with its unit.
    pub y: &'a str,
    /// How it is divided.
    pub y_scale: Scale,
    /// The lines.
    pub lines: Vec<Line<'a>>,
    /// Values across the chart to compare them with.
    pub references: Vec<Reference<'a>>,
}

/// How an axis is divided.
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// Evenly, from zero.
    FromZero,
    /// By logarithms; points that are not above zero are left out.
    Logarithmic,
    /// Names at 0, 1, 2, ...: a place for each.
    Names(Vec<String>),
}

/// A line.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its points from left to right.
    pub points: Vec<(f64, f64)>,
}

/// A value across a chart.
#[derive(Clone, Debug)]
pub struct Reference<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where.
    pub value: f64,
}

const WIDTH: u32 = 760;
const LEFT: i32 = 104;
const RIGHT: i32 = 736;
const FRAME_HEIGHT: i32 = 380;
const LEGEND_TOP: i32 = 60;
const LEGEND_ROW: i32 = 24;
/// More points than these on a line have no shapes of their own.
const SHAPED_POINTS: usize = 60;

/// Draws lines.
pub fn lines(chart: &Lines<'_>) -> String {
    let legend = legend(chart);
    let rows = legend.last().map_or(0, |entry| entry.row + 1);
    let top = LEGEND_TOP + LEGEND_ROW * rows + 8;
    svg((WIDTH, (top + FRAME_HEIGHT + 64) as u32), |area| draw(chart, &legend, top, area))
}

/// Where a line's name stands.
struct Entry {
    x: i32,
    row: i32,
}

/// The names in rows above the frame.
fn legend(chart: &Lines<'_>) -> Vec<Entry> {
    let (mut x, mut row) = (LEFT, 0);
    chart
        .lines
        .iter()
        .map(|line| {
            let width = 42 + text_width(line.name, TEXT) + 18;
            if x + width > RIGHT + 16 && x > LEFT {
                (x, row) = (LEFT, row + 1);
            }
            let entry = Entry { x, row };
            x += width;
            entry
        })
        .collect()
}

fn axis(scale: &Scale, values: impl Iterator<Item = f64> + Clone) -> Axis {
    match scale {
        Scale::Logarithmic => Axis::logarithmic(decades(values)),
        Scale::FromZero => {
            let most = values.fold(0.0, f64::max);
            let most = if most > 0.0 && most.is_finite() { most } else { 1.0 };
            let step = even_step(most);
            let count = (most / step).ceil().max(1.0);
            let ticks = (0..=count as i32).map(|tick| f64::from(tick) * step);
            let ticks = ticks.map(|tick| (tick, tick_text(tick, step))).collect();
            Axis { range: (0.0, count * step), is_logarithmic: false, ticks }
        }
        Scale::Names(names) => {
            let ticks = names.iter().enumerate().map(|(index, name)| (index as f64, name.clone())).collect();
            Axis { range: (-0.5, names.len().max(1) as f64 - 0.5), is_logarithmic: false, ticks }
        }
    }
}

fn draw(chart: &Lines<'_>, legend: &[Entry], top: i32, area: &Area<'_>) -> Drawn {
    let can_stand = |value: f64, scale: &Scale| value.is_finite() && (*scale != Scale::Logarithmic || value > 0.0);
    let drawn = |point: &&(f64, f64)| can_stand(point.0, &chart.x_scale) && can_stand(point.1, &chart.y_scale);
    let points = || chart.lines.iter().flat_map(|line| &line.points).filter(drawn);
    let references = || chart.references.iter().map(|one| one.value).filter(|value| can_stand(*value, &chart.y_scale));
    let x = axis(&chart.x_scale, points().map(|point| point.0));
    let y = axis(&chart.y_scale, points().map(|point| point.1).chain(references()));
    let frame = Frame { left: LEFT, right: RIGHT, top, bottom: top + FRAME_HEIGHT, x, y };
    heading(area, chart.title, WIDTH as i32)?;
    frame.draw(area, (chart.x, chart.y))?;
    for one in &chart.references {
        if can_stand(one.value, &chart.y_scale) {
            let y = frame.y(one.value);
            area.draw(&DashedPathElement::new([(frame.left, y), (frame.right, y)], 7, 5, DIAGONAL))?;
            let above = anchored(SMALL, HPos::Right, VPos::Bottom);
            area.draw(&Text::new(one.name.to_owned(), (frame.right - 6, y - 3), above))?;
        }
    }
    for (index, (line, entry)) in chart.lines.iter().zip(legend).enumerate() {
        let colour = LINE_COLOURS[index % LINE_COLOURS.len()];
        let pixels: Vec<_> =
            line.points.iter().filter(drawn).map(|point| (frame.x(point.0), frame.y(point.1))).collect();
        if pixels.len() > 1 {
            area.draw(&PathElement::new(pixels.clone(), colour.stroke_width(2)))?;
        }
        if pixels.len() <= SHAPED_POINTS {
            for at in pixels {
                shape(area, index, colour, at)?;
            }
        }
        let y = LEGEND_TOP + LEGEND_ROW * entry.row;
        area.draw(&PathElement::new([(entry.x, y), (entry.x + 34, y)], colour.stroke_width(2)))?;
        shape(area, index, colour, (entry.x + 17, y))?;
        let beside = anchored(TEXT, HPos::Left, VPos::Center);
        area.draw(&Text::new(line.name.to_owned(), (entry.x + 42, y), beside))?;
    }
    Ok(())
}

/// The shape at the points of a line.
fn shape(area: &Area<'_>, index: usize, colour: RGBColor, (x, y): (i32, i32)) -> Drawn {
    const ARM: i32 = 4;
    match index % 5 {
        0 => area.draw(&Circle::new((x, y), ARM, colour.filled()))?,
        1 => area.draw(&Rectangle::new([(x - ARM, y - ARM), (x + ARM, y + ARM)], colour.filled()))?,
        2 => {
            let corners = [(x, y - ARM - 1), (x + ARM + 1, y + ARM), (x - ARM - 1, y + ARM)];
            area.draw(&Polygon::new(corners, colour.filled()))?;
        }
        3 => {
            area.draw(&Circle::new((x, y), ARM, WHITE.filled()))?;
            area.draw(&Circle::new((x, y), ARM, colour.stroke_width(2)))?;
        }
        _ => {
            area.draw(&PathElement::new([(x - ARM, y - ARM), (x + ARM, y + ARM)], colour.stroke_width(2)))?;
            area.draw(&PathElement::new([(x - ARM, y + ARM), (x + ARM, y - ARM)], colour.stroke_width(2)))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(x_scale: Scale, y_scale: Scale, points: &[(f64, f64)]) -> String {
        lines(&Lines {
            title: "a < b",
            x: "clock, MHz",
            x_scale,
            y: "time, us",
            y_scale,
            lines: vec![Line { name: "one", points: points.to_vec() }, Line { name: "two", points: Vec::new() }],
            references: vec![Reference { name: "measured", value: 5.0 }],
        })
    }

    #[test]
    fn axes_lines_and_references_are_named() {
        let text = chart(Scale::FromZero, Scale::FromZero, &[(500.0, 2.0), (1800.0, 9.5)]);
        for wanted in ["a &lt; b", "clock, MHz", "time, us", "one", "two", "measured", "\n0\n", "\n500\n", "\n10\n"] {
            assert!(text.contains(wanted), "{wanted} is missing in {text}");
        }
    }

    #[test]
    fn small_values_have_decimals() {
        let text = chart(Scale::FromZero, Scale::FromZero, &[(0.0, 0.0), (0.5, 0.9)]);
        assert!(text.contains("\n0.2\n"), "{text}");
    }

    #[test]
    fn names_stand_for_places() {
        let names = Scale::Names(vec!["LRU".to_owned(), "Tree".to_owned()]);
        let text = chart(names, Scale::Logarithmic, &[(0.0, 1.0), (1.0, 100.0)]);
        assert!(text.contains("LRU") && text.contains("Tree"), "{text}");
    }

    #[test]
    fn what_a_logarithm_cannot_show_is_left_out() {
        for points in [&[][..], &[(0.0, 1.0), (f64::NAN, 3.0), (1.0, f64::INFINITY), (1.0, -2.0)]] {
            let text = chart(Scale::Logarithmic, Scale::Logarithmic, points);
            assert!(text.contains("</svg>") && !text.contains("NaN"), "{text}");
        }
    }

    #[test]
    fn many_names_take_several_rows() {
        let names: Vec<String> = (0..12).map(|index| format!("a rather long name {index}")).collect();
        let made: Vec<Line<'_>> = names.iter().map(|name| Line { name, points: vec![(1.0, 1.0)] }).collect();
        let chart = Lines {
            title: "t",
            x: "x",
            x_scale: Scale::FromZero,
            y: "y",
            y_scale: Scale::FromZero,
            lines: made,
            references: Vec::new(),
        };
        let rows = legend(&chart);
        assert!(rows.last().is_some_and(|entry| entry.row >= 3));
        assert!(rows.iter().all(|entry| entry.x >= LEFT && entry.x < RIGHT));
    }
}
