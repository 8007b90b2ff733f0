//! Small charts side by side.

use crate::frame::{
    Area, Axis, BLACK_LINE, Drawn, Frame, Mark, TEXT, anchored, even_step, grouped, heading, mark, svg, text_width,
};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// Small charts side by side, each with a solid and a dashed line.
#[derive(Clone, Debug)]
pub struct Panels<'a> {
    /// The title above the chart.
    pub title: &'a str,
    /// The name of the axes across, with its unit.
    pub x: &'a str,
    /// Where they have ticks, from left to right.
    pub x_ticks: &'a [f64],
    /// The name of the axes upward, with its unit.
    pub y: &'a str,
    /// The name of solid lines.
    pub solid: &'a str,
    /// The name of dashed lines.
    pub dashed: &'a str,
    /// The charts.
    pub panels: Vec<Panel<'a>>,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct Panel<'a> {
    /// The title above the panel.
    pub title: &'a str,
    /// Points of the solid line.
    pub solid: Vec<(f64, f64)>,
    /// Points of the dashed line.
    pub dashed: Vec<(f64, f64)>,
}

/// Draws small charts.
pub fn panels(chart: &Panels<'_>) -> String {
    let rows = chart.panels.len().div_ceil(2) as u32;
    svg((860, 100 + 290 * rows), |root| draw_panels(chart, root))
}

fn draw_panels(chart: &Panels<'_>, area: &Area<'_>) -> Drawn {
    heading(area, chart.title, 860)?;
    let (start, y) = (104, 60);
    area.draw(&PathElement::new([(start, y), (start + 34, y)], BLACK_LINE.stroke_width(2)))?;
    mark(area, Mark::Disc, (start + 17, y))?;
    area.draw(&Text::new(chart.solid.to_owned(), (start + 42, y), anchored(TEXT, HPos::Left, VPos::Center)))?;
    let start = start + 42 + text_width(chart.solid, TEXT) + 26;
    area.draw(&DashedPathElement::new([(start, y), (start + 34, y)], 6, 4, BLACK_LINE))?;
    mark(area, Mark::Ring, (start + 17, y))?;
    area.draw(&Text::new(chart.dashed.to_owned(), (start + 42, y), anchored(TEXT, HPos::Left, VPos::Center)))?;
    let (first, last) = (chart.x_ticks.first().copied().unwrap_or(0.0), chart.x_ticks.last().copied().unwrap_or(1.0));
    for (index, panel) in chart.panels.iter().enumerate() {
        let (column, row) = ((index % 2) as i32, (index / 2) as i32);
        let most = panel.solid.iter().chain(&panel.dashed).map(|point| point.1).fold(0.0_f64, f64::max).max(1.0);
        let step = even_step(most);
        let y_ticks = (0..=(most / step).ceil() as i32).map(|tick| f64::from(tick) * step);
        let frame = Frame {
            left: 104 + column * 420,
            right: 104 + column * 420 + 310,
            top: 112 + row * 290,
            bottom: 112 + row * 290 + 180,
            x: Axis {
                range: (first - 0.1 * (last - first), last + 0.1 * (last - first)),
                is_logarithmic: false,
                ticks: chart.x_ticks.iter().map(|tick| (*tick, grouped(*tick))).collect(),
            },
            y: Axis {
                range: (0.0, (most / step).ceil() * step),
                is_logarithmic: false,
                ticks: y_ticks.map(|tick| (tick, grouped(tick))).collect(),
            },
        };
        frame.draw(area, (chart.x, chart.y))?;
        let above = anchored(TEXT, HPos::Center, VPos::Bottom);
        area.draw(&Text::new(panel.title.to_owned(), ((frame.left + frame.right) / 2, frame.top - 7), above))?;
        let pixels = |points: &[(f64, f64)]| points.iter().map(|p| (frame.x(p.0), frame.y(p.1))).collect::<Vec<_>>();
        let (solid, dashed) = (pixels(&panel.solid), pixels(&panel.dashed));
        area.draw(&DashedPathElement::new(dashed.clone(), 6, 4, BLACK_LINE))?;
        area.draw(&PathElement::new(solid.clone(), BLACK_LINE.stroke_width(2)))?;
        for at in dashed {
            mark(area, Mark::Ring, at)?;
        }
        for at in solid {
            mark(area, Mark::Disc, at)?;
        }
    }
    Ok(())
}
