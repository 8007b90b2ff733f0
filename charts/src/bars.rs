//! Groups of two bars.

use crate::frame::{
    Area, Axis, BLACK_LINE, Drawn, FILL, Frame, SMALL, TEXT, anchored, decades, heading, short, svg, text_width,
};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// Groups of two bars each.
#[derive(Clone, Debug)]
pub struct Bars<'a> {
    /// The title above the chart.
    pub title: &'a str,
    /// The name of the axis across.
    pub x: &'a str,
    /// The name of the axis upward, with its unit.
    pub y: &'a str,
    /// The names of the filled and the empty bar of a group.
    pub series: [&'a str; 2],
    /// Whether the axis upward is divided by logarithms; otherwise it shows percent.
    pub is_logarithmic: bool,
    /// Decimals of the numbers above the bars.
    pub decimals: usize,
    /// The name and the values of each group.
    pub groups: Vec<(&'a str, [Option<f64>; 2])>,
}

/// Draws groups of bars.
pub fn bars(chart: &Bars<'_>) -> String {
    svg((760, 480), |root| draw_bars(chart, root))
}

fn draw_bars(chart: &Bars<'_>, area: &Area<'_>) -> Drawn {
    let values = || chart.groups.iter().flat_map(|(_, pair)| pair.iter().copied().flatten());
    let y = if chart.is_logarithmic {
        Axis::logarithmic(decades(values()))
    } else {
        let ticks = (0..=5).map(|step| (f64::from(20 * step), (20 * step).to_string())).collect();
        Axis { range: (0.0, 108.0), is_logarithmic: false, ticks }
    };
    let count = chart.groups.len().max(1) as f64;
    let names = chart.groups.iter().enumerate().map(|(index, (name, _))| (index as f64 + 0.5, (*name).to_owned()));
    let x = Axis { range: (0.0, count), is_logarithmic: false, ticks: names.collect() };
    let frame = Frame { left: 104, right: 736, top: 92, bottom: 416, x, y };
    heading(area, chart.title, 760)?;
    frame.draw(area, (chart.x, chart.y))?;
    let mut at = frame.left + 4;
    for (index, name) in chart.series.iter().enumerate() {
        bar(area, [(at, 58), (at + 16, 70)], index)?;
        area.draw(&Text::new((*name).to_owned(), (at + 24, 64), anchored(TEXT, HPos::Left, VPos::Center)))?;
        at += 24 + text_width(name, TEXT) + 26;
    }
    for (group, (_, pair)) in chart.groups.iter().enumerate() {
        for (index, value) in pair.iter().enumerate() {
            let Some(value) = value else { continue };
            let left = group as f64 + 0.14 + 0.36 * index as f64;
            let (left, right, top) = (frame.x(left), frame.x(left + 0.36), frame.y(*value));
            bar(area, [(left, top), (right, frame.bottom)], index)?;
            let shown = if chart.decimals == 0 { short(*value) } else { format!("{value:.*}", chart.decimals) };
            let above = anchored(SMALL, HPos::Center, VPos::Bottom);
            area.draw(&Text::new(shown, ((left + right) / 2, top - 4), above))?;
        }
    }
    Ok(())
}

fn bar(area: &Area<'_>, corners: [(i32, i32); 2], index: usize) -> Drawn {
    let fill = if index == 0 { FILL } else { WHITE };
    area.draw(&Rectangle::new(corners, fill.filled()))?;
    Ok(area.draw(&Rectangle::new(corners, BLACK_LINE))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_without_a_bar_is_drawn() {
        let empty = Bars {
            title: "t",
            x: "x",
            y: "y",
            series: ["a", "b"],
            is_logarithmic: true,
            decimals: 0,
            groups: vec![("one", [None, None])],
        };
        assert!(bars(&empty).contains("one"));
    }
}
