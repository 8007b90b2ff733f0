//! Points about a diagonal.

use crate::frame::{
    Area, Axis, DIAGONAL, Drawn, Frame, Mark, RADIUS, SMALL, TEXT, anchored, decades, heading, mark, svg, text_width,
};
use crate::labels::place;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// Points about a diagonal, both axes logarithmic.
#[derive(Clone, Debug)]
pub struct Scatter<'a> {
    /// The title above the chart.
    pub title: &'a str,
    /// The name of the axis across, with its unit.
    pub x: &'a str,
    /// The name of the axis upward, with its unit.
    pub y: &'a str,
    /// The name of the diagonal.
    pub diagonal: &'a str,
    /// The points.
    pub series: Vec<Series<'a>>,
}

/// Points with the same mark.
#[derive(Clone, Debug)]
pub struct Series<'a> {
    /// Their name.
    pub name: &'a str,
    /// Their look.
    pub mark: Mark,
    /// Across, upward, and the label beside the point.
    pub points: Vec<(f64, f64, String)>,
}

/// Draws points about a diagonal.
pub fn scatter(chart: &Scatter<'_>) -> String {
    svg((760, 620), |root| draw_scatter(chart, root))
}

fn draw_scatter(chart: &Scatter<'_>, area: &Area<'_>) -> Drawn {
    let points = || chart.series.iter().flat_map(|series| &series.points);
    let x = decades(points().map(|point| point.0));
    // The diagonal is always within.
    let y = decades(points().flat_map(|point| [point.0, point.1]));
    let frame = Frame { left: 104, right: 736, top: 92, bottom: 556, x: Axis::logarithmic(x), y: Axis::logarithmic(y) };
    heading(area, chart.title, 760)?;
    frame.draw(area, (chart.x, chart.y))?;
    legend(area, chart, &frame)?;
    let mut taken = Vec::new();
    let (low, high) = (x.0.max(y.0), x.1.min(y.1));
    if low < high {
        let ends = [(frame.x(low), frame.y(low)), (frame.x(high), frame.y(high))];
        area.draw(&DashedPathElement::new(ends, 7, 5, DIAGONAL))?;
        // Labels keep off the diagonal.
        let steps = 200;
        taken.extend((0..steps).map(|step| {
            let along = |from: i32, to: i32| from + (to - from) * step / steps;
            let (x, y) = (along(ends[0].0, ends[1].0), along(ends[0].1, ends[1].1));
            (x - 1, y - 1, x + 1, y + 1)
        }));
    }
    let place_of = |point: &(f64, f64, String)| (frame.x(point.0), frame.y(point.1));
    taken.extend(points().map(place_of).map(|(x, y)| (x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS)));
    for series in &chart.series {
        for point in &series.points {
            mark(area, series.mark, place_of(point))?;
        }
    }
    for point in points().filter(|point| !point.2.is_empty()) {
        let found = place(place_of(point), &point.2, &frame, &taken);
        area.draw(&Text::new(point.2.clone(), (found.0, found.1), anchored(SMALL, HPos::Left, VPos::Top)))?;
        taken.push(found);
    }
    Ok(())
}

/// The marks and their names in a line above the frame, and the diagonal.
fn legend(area: &Area<'_>, chart: &Scatter<'_>, frame: &Frame) -> Drawn {
    let (mut x, y) = (frame.left + 4, 64);
    for series in &chart.series {
        mark(area, series.mark, (x + RADIUS, y))?;
        area.draw(&Text::new(series.name.to_owned(), (x + 18, y), anchored(TEXT, HPos::Left, VPos::Center)))?;
        x += 18 + text_width(series.name, TEXT) + 22;
    }
    area.draw(&DashedPathElement::new([(x, y), (x + 28, y)], 7, 5, DIAGONAL))?;
    Ok(area.draw(&Text::new(chart.diagonal.to_owned(), (x + 36, y), anchored(TEXT, HPos::Left, VPos::Center)))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture of so many points, which lie near each other.
    fn points_and_labels(count: usize) -> String {
        let points = (0..count)
            .map(|index| (1000.0 + 40.0 * index as f64, 1100.0 + 45.0 * index as f64, format!("name{index}")));
        scatter(&Scatter {
            title: "a & b",
            x: "measured, us",
            y: "simulated, us",
            diagonal: "equal",
            series: vec![Series { name: "ours", mark: Mark::Disc, points: points.collect() }],
        })
    }

    #[test]
    fn titles_axes_and_labels_are_text_and_nothing_breaks_the_markup() {
        let text = points_and_labels(6);
        for wanted in ["a &amp; b", "measured, us", "simulated, us", "ours", "name5", "2\u{a0}000"] {
            assert!(text.contains(wanted), "{wanted} is missing in {text}");
        }
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        assert_eq!(text.matches("<text").count(), text.matches("</text>").count());
    }

    #[test]
    fn a_chart_without_a_point_is_drawn() {
        assert!(points_and_labels(0).contains("equal"));
    }
}
