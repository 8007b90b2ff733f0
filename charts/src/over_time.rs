//! Lines over time, with the spans of kernels beneath them.

use crate::frame::{Area, Axis, Drawn, Frame, SMALL, TEXT, anchored, even_step, svg, text_width, tick_text};
use crate::palette::{REST, colour};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// Lines over time.
#[derive(Clone, Debug)]
pub struct OverTime<'a> {
    /// The name of the axis across, with its unit, and both of its ends.
    pub x: (&'a str, (f64, f64)),
    /// The name of the axis upward, with its unit.
    pub y: &'a str,
    /// Where the axis upward ends; without it, above the greatest value.
    pub most: Option<f64>,
    /// The lines.
    pub steps: Vec<Steps<'a>>,
    /// The spans beneath the lines.
    pub spans: Spans<'a>,
}

/// A line in steps: values that hold until a time each.
#[derive(Clone, Debug)]
pub struct Steps<'a> {
    /// Its name.
    pub name: &'a str,
    /// Ends and values, in order of time; none where there is no value, and the line has a gap.
    pub values: Vec<(f64, Option<f64>)>,
}

/// Spans of time, each kind in a colour of its own.
#[derive(Clone, Debug, Default)]
pub struct Spans<'a> {
    /// The names of the colours; the last one is grey where its name is "other".
    pub names: Vec<&'a str>,
    /// Which of the names, from when, until when.
    pub spans: Vec<(usize, f64, f64)>,
}

const WIDTH: i32 = 860;
const LEFT: i32 = 92;
const RIGHT: i32 = 836;
const HEIGHT: i32 = 190;
const LEGEND_ROW: i32 = 24;
const STRIP: i32 = 16;
/// Dashes tell lines apart without colours; the first is solid.
const DASHES: [(i32, i32); 4] = [(0, 0), (8, 4), (2, 3), (12, 3)];

/// An axis of time that has some length, even where no time passes.
pub(crate) fn span((start, end): (f64, f64)) -> (f64, f64) {
    if start.is_finite() && end.is_finite() && end > start { (start, end) } else { (0.0, 1.0) }
}

/// It, with its ticks.
pub(crate) fn time_axis((start, end): (f64, f64)) -> Axis {
    let step = even_step(end - start);
    let ticks = ((start / step - 1e-9).ceil() as i64..=(end / step + 1e-9) as i64).map(|tick| tick as f64 * step);
    let ticks = ticks.map(|tick| (tick, tick_text(tick, step))).collect();
    Axis { range: (start, end), is_logarithmic: false, ticks }
}

/// Draws lines over time.
pub fn over_time(chart: &OverTime<'_>) -> String {
    // A line alone needs no name.
    let named = if chart.steps.len() > 1 { &chart.steps[..] } else { &[] };
    let lines: Vec<&str> = named.iter().map(|line| line.name).collect();
    let (above, below) = (places(&lines, 42), places(&chart.spans.names, 22));
    let rows = |places: &[(i32, i32)]| LEGEND_ROW * places.last().map_or(0, |(_, row)| row + 1);
    let top = 18 + rows(&above);
    let bottom = top + HEIGHT + if chart.spans.spans.is_empty() { 0 } else { STRIP + 6 };
    let height = bottom + 58 + rows(&below);
    svg((WIDTH as u32, height as u32), |area| draw(chart, (&above, &below), top, area))
}

/// The place of each name, behind a mark of so many pixels.
fn places(names: &[&str], mark: i32) -> Vec<(i32, i32)> {
    let (mut x, mut row) = (LEFT, 0);
    let place = |name: &&str| {
        let width = mark + text_width(name, TEXT) + 20;
        if x + width > WIDTH && x > LEFT {
            (x, row) = (LEFT, row + 1);
        }
        x += width;
        (x - width, row)
    };
    names.iter().map(place).collect()
}

type Places<'a> = &'a [(i32, i32)];

fn draw(chart: &OverTime<'_>, (above, below): (Places<'_>, Places<'_>), top: i32, area: &Area<'_>) -> Drawn {
    let positive = |value: f64| if value.is_finite() && value > 0.0 { value } else { 1.0 };
    let (start, end) = span(chart.x.1);
    let greatest = chart.steps.iter().flat_map(|line| &line.values).filter_map(|(_, value)| *value).fold(0.0, f64::max);
    let most = positive(chart.most.unwrap_or(greatest));
    let axis = |end: f64, range_end: f64| {
        let step = even_step(end);
        let ticks = (0..=(range_end / step + 1e-9) as i32).map(|tick| f64::from(tick) * step);
        let ticks = ticks.map(|tick| (tick, tick_text(tick, step))).collect();
        Axis { range: (0.0, range_end), is_logarithmic: false, ticks }
    };
    let y_step = even_step(most);
    let y_end = if chart.most.is_some() { most } else { (most / y_step).ceil() * y_step };
    let bottom = top + HEIGHT;
    let strip = if chart.spans.spans.is_empty() { 0 } else { STRIP + 6 };
    let x = time_axis((start, end));
    let mut shell = Frame { left: LEFT, right: RIGHT, top, bottom, x, y: axis(most, y_end) };
    // Ticks stand below the strip.
    let ticks = std::mem::take(&mut shell.x.ticks);
    shell.draw(area, ("", chart.y))?;
    for (at, text) in &ticks {
        let middle = anchored(TEXT, HPos::Center, VPos::Top);
        area.draw(&Text::new(text.clone(), (shell.x(*at), bottom + strip + 7), middle))?;
    }
    let middle = (shell.left + shell.right) / 2;
    let name = anchored(TEXT, HPos::Center, VPos::Top);
    area.draw(&Text::new(chart.x.0.to_owned(), (middle, bottom + strip + 28), name))?;
    for (index, line) in chart.steps.iter().enumerate() {
        let mut points = Vec::new();
        let mut from = shell.x(start);
        for (until, value) in &line.values {
            let to = shell.x(until.clamp(start, end));
            match value {
                Some(value) => {
                    let y = shell.y(value.min(y_end));
                    if points.last() != Some(&(from, y)) {
                        points.push((from, y));
                    }
                    points.push((to, y));
                }
                None => stroke(area, index, std::mem::take(&mut points))?,
            }
            from = to;
        }
        stroke(area, index, points)?;
    }
    for (index, (line, (x, row))) in chart.steps.iter().zip(above).enumerate() {
        let y = 14 + LEGEND_ROW * row;
        stroke(area, index, vec![(*x, y), (x + 34, y)])?;
        area.draw(&Text::new(line.name.to_owned(), (x + 42, y), anchored(TEXT, HPos::Left, VPos::Center)))?;
    }
    let colours = |index: usize| if chart.spans.names.get(index) == Some(&"other") { REST } else { colour(index) };
    for (index, from, until) in &chart.spans.spans {
        if *until < start || *from > end {
            continue;
        }
        let (left, right) = (shell.x(from.max(start)), shell.x(until.min(end)));
        let corners = [(left, bottom + 5), (right.max(left + 1), bottom + 5 + STRIP)];
        area.draw(&Rectangle::new(corners, colours(*index).filled()))?;
    }
    for (index, (name, (x, row))) in chart.spans.names.iter().zip(below).enumerate() {
        let y = bottom + strip + 62 + LEGEND_ROW * row;
        area.draw(&Rectangle::new([(*x, y - 7), (x + 14, y + 7)], colours(index).filled()))?;
        area.draw(&Text::new((*name).to_owned(), (x + 22, y), anchored(SMALL, HPos::Left, VPos::Center)))?;
    }
    Ok(())
}

fn stroke(area: &Area<'_>, index: usize, points: Vec<(i32, i32)>) -> Drawn {
    if points.is_empty() {
        return Ok(());
    }
    let style = colour(index).stroke_width(2);
    match DASHES[index % DASHES.len()] {
        (0, _) => area.draw(&PathElement::new(points, style))?,
        (dash, gap) => area.draw(&DashedPathElement::new(points, dash, gap, style))?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_hold_until_their_ends_and_spans_lie_beneath() {
        let chart = OverTime {
            x: ("time, us", (0.0, 10.0)),
            y: "occupancy, %",
            most: Some(100.0),
            steps: vec![
                Steps { name: "A", values: vec![(2.5, None), (5.0, Some(0.0)), (10.0, Some(100.0))] },
                Steps { name: "B", values: Vec::new() },
            ],
            spans: Spans { names: vec!["k<1>", "other"], spans: vec![(0, 0.0, 5.0), (1, 5.0, 10.0)] },
        };
        let text = over_time(&chart);
        // 744 pixels are 10 us; 190 are 100 %.
        assert!(text.contains("278,232 464,232 464,42 836,42"), "{text}");
        for wanted in ["time, us", "occupancy, %", "k&lt;1&gt;", "#999999", "\n100\n"] {
            assert!(text.contains(wanted), "{wanted} is missing in {text}");
        }
    }

    #[test]
    fn a_part_of_the_time_can_be_shown() {
        let texts: Vec<String> = time_axis((2801.0, 3049.0)).ticks.into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["2\u{a0}850", "2\u{a0}900", "2\u{a0}950", "3\u{a0}000"]);
    }

    #[test]
    fn nothing_is_drawn_too() {
        for end in [0.0, f64::NAN] {
            let (steps, spans) = (vec![Steps { name: "A", values: Vec::new() }], Spans::default());
            let text = over_time(&OverTime { x: ("t", (0.0, end)), y: "y", most: None, steps, spans });
            assert!(text.contains("</svg>") && !text.contains("NaN"), "{text}");
        }
    }
}
