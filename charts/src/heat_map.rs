//! Heat maps: how much each of many things did, over time or as cells.

use crate::frame::{Area, Axis, BLACK_LINE, Drawn, Frame, SMALL, TEXT, anchored, svg, text_width};
use crate::over_time::{span, time_axis};
use crate::palette::{RAMP, hexadecimal, step};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::fmt::Write;

/// The activity of many things over time: a line of cells for each.
#[derive(Clone, Debug)]
pub struct HeatMap<'a> {
    /// The name of the axis across, with its unit, and both of its ends.
    pub x: (&'a str, (f64, f64)),
    /// The name of the coloured value, with its unit.
    pub value: &'a str,
    /// Names of lines, from top to bottom, with those that are written beside them; others are empty.
    pub names: Vec<String>,
    /// The cells of each line from left to right; all lines have as many.
    pub cells: Vec<Vec<f64>>,
}

/// Groups of cells, each with a name and a value.
#[derive(Clone, Debug)]
pub struct Cells<'a> {
    /// The name of the coloured value, with its unit.
    pub value: &'a str,
    /// The name of a group, and its cells.
    pub groups: Vec<(String, Vec<(String, f64)>)>,
}

const LEFT: i32 = 92;
const TOP: i32 = 44;
const MOST_WIDTH: i32 = 736;

/// How many cells a line can have so that all of them fill the chart, `most` of them at most.
pub fn heat_map_columns(most: usize) -> usize {
    let width = (MOST_WIDTH as usize).div_ceil(most.max(12)).max(4);
    MOST_WIDTH as usize / width
}

/// Draws a heat map over time.
pub fn heat_map(map: &HeatMap<'_>) -> String {
    let columns = map.cells.iter().map(Vec::len).max().unwrap_or(0).max(1) as i32;
    let rows = map.cells.len().max(1) as i32;
    let width = (MOST_WIDTH / columns).clamp(1, 60);
    let height = (300 / rows).clamp(3, 22);
    let (right, bottom) = (LEFT + columns * width, TOP + rows * height);
    let most = map.cells.iter().flatten().copied().fold(0.0, f64::max);
    let shell = svg(((LEFT + MOST_WIDTH + 32) as u32, (bottom + 62) as u32), |area| {
        let x = time_axis(span(map.x.1));
        let y = Axis { range: (0.0, 1.0), is_logarithmic: false, ticks: Vec::new() };
        Frame { left: LEFT, right, top: TOP, bottom, x, y }.draw(area, (map.x.0, ""))?;
        for (row, name) in map.names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            let at = (LEFT - 8, TOP + row as i32 * height + height / 2);
            area.draw(&Text::new(name.clone(), at, anchored(SMALL, HPos::Right, VPos::Center)))?;
        }
        key(area, map.value, most)
    });
    let mut layers = vec![String::new(); RAMP.len()];
    for (row, cells) in map.cells.iter().enumerate() {
        let mut column = 0;
        // Neighbours of one step are one shape.
        for run in cells.chunk_by(|a, b| shade(*a, most) == shade(*b, most)) {
            let layer = &mut layers[shade(run[0], most)];
            let (x, y, length) = (LEFT + column * width, TOP + row as i32 * height, run.len() as i32 * width);
            let _ = write!(layer, "M{x} {y}h{length}v{height}h-{length}z");
            column += run.len() as i32;
        }
    }
    with_layers(&shell, &layers)
}

fn shade(value: f64, most: f64) -> usize {
    // What did nothing at all has the first step for itself.
    if value <= 0.0 || most <= 0.0 { 0 } else { step(value / most).max(1) }
}

/// Draws groups of cells. Each cell has its name and value as a tooltip.
pub fn cells(chart: &Cells<'_>) -> String {
    const SIZE: i32 = 26;
    const GAP: i32 = 3;
    const PER_LINE: usize = 24;
    let names = chart.groups.iter().map(|(name, _)| text_width(name, SMALL)).max().unwrap_or(0);
    let left = 16 + names;
    let lines: Vec<i32> = chart.groups.iter().map(|(_, cells)| cells.len().div_ceil(PER_LINE).max(1) as i32).collect();
    let height = lines.iter().map(|lines| lines * (SIZE + GAP) + 5).sum::<i32>();
    let width = left + PER_LINE as i32 * (SIZE + GAP) + 12;
    let most = chart.groups.iter().flat_map(|(_, cells)| cells).map(|(_, value)| *value).fold(0.0, f64::max);
    let shell = svg((width.max(480) as u32, (TOP + height + 6) as u32), |area| {
        let mut top = TOP;
        for ((name, _), lines) in chart.groups.iter().zip(&lines) {
            area.draw(&Text::new(
                name.clone(),
                (left - 8, top + SIZE / 2),
                anchored(SMALL, HPos::Right, VPos::Center),
            ))?;
            top += lines * (SIZE + GAP) + 5;
        }
        key(area, chart.value, most)
    });
    let (mut top, mut shapes) = (TOP, String::new());
    for ((_, cells), lines) in chart.groups.iter().zip(&lines) {
        for (index, (name, value)) in cells.iter().enumerate() {
            let x = left + (index % PER_LINE) as i32 * (SIZE + GAP);
            let y = top + (index / PER_LINE) as i32 * (SIZE + GAP);
            let fill = hexadecimal(RAMP[shade(*value, most)]);
            let name = escape(name);
            let _ = writeln!(
                shapes,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{SIZE}\" height=\"{SIZE}\" rx=\"3\" fill=\"{fill}\" stroke=\"#787878\" \
                 stroke-width=\"0.5\"><title>{name}: {}</title></rect>",
                crate::frame::short(*value)
            );
        }
        top += lines * (SIZE + GAP) + 5;
    }
    insert(&shell, &shapes)
}

/// The key to the colours, above the frame.
fn key(area: &Area<'_>, value: &str, most: f64) -> Drawn {
    const CELL: i32 = 18;
    let mut x = LEFT;
    let y = 20;
    area.draw(&Text::new("0".to_owned(), (x, y), anchored(SMALL, HPos::Left, VPos::Center)))?;
    x += 14;
    let end = x + CELL * RAMP.len() as i32;
    for (index, colour) in RAMP.iter().enumerate() {
        let left = x + CELL * index as i32;
        area.draw(&Rectangle::new([(left, y - 7), (left + CELL, y + 7)], colour.filled()))?;
    }
    area.draw(&Rectangle::new([(x, y - 7), (end, y + 7)], BLACK_LINE))?;
    let text = format!("{}  {value}", most_text(most));
    Ok(area.draw(&Text::new(text, (end + 8, y), anchored(TEXT, HPos::Left, VPos::Center)))?)
}

fn most_text(most: f64) -> String {
    match most {
        most if most >= 100.0 || most == 0.0 => crate::frame::short(most),
        most if most >= 1.0 => format!("{most:.1}"),
        _ => format!("{most:.3}"),
    }
}

fn with_layers(shell: &str, layers: &[String]) -> String {
    let filled = layers.iter().zip(RAMP).filter(|(layer, _)| !layer.is_empty());
    let shapes: Vec<String> = filled
        .map(|(layer, colour)| {
            format!("<path shape-rendering=\"crispEdges\" fill=\"{}\" d=\"{layer}\"/>\n", hexadecimal(colour))
        })
        .collect();
    insert(shell, &shapes.concat())
}

/// The picture with shapes in front.
fn insert(svg: &str, shapes: &str) -> String {
    let end = svg.rfind("</svg>").unwrap_or(svg.len());
    format!("{}{shapes}{}", &svg[..end], &svg[end..])
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_step_are_one_shape() {
        let map = HeatMap {
            x: ("time, us", (0.0, 4.0)),
            value: "instructions",
            names: vec!["0".to_owned(), String::new()],
            cells: vec![vec![0.0, 0.0, 90.0, 90.0], vec![1.0, 0.0, 0.0, 0.0]],
        };
        let text = heat_map(&map);
        // Cells of 60 pixels: two empty ones, two of the last step; in the second line one that did a little, of the second step.
        let empty = format!("fill=\"{}\" d=\"M92 44h120v22h-120zM152 66h180v22h-180z\"", hexadecimal(RAMP[0]));
        let full = format!("fill=\"{}\" d=\"M212 44h120v22h-120z\"", hexadecimal(RAMP[8]));
        let little = format!("fill=\"{}\" d=\"M92 66h60v22h-60z\"", hexadecimal(RAMP[1]));
        for wanted in [&empty, &full, &little] {
            assert!(text.contains(&**wanted), "{wanted} is missing in {text}");
        }
        assert!(text.contains("time, us") && text.contains("90.0  instructions"), "{text}");
    }

    #[test]
    fn columns_fill_the_chart() {
        for (most, columns) in [(1000, 184), (150, 147), (100, 92), (0, 11)] {
            assert_eq!(heat_map_columns(most), columns);
        }
    }

    #[test]
    fn cells_have_names_and_values() {
        let groups = vec![("<hbm>".to_owned(), vec![("a&b".to_owned(), 5.0), ("c".to_owned(), 0.0)])];
        let text = cells(&Cells { value: "MB", groups });
        for wanted in ["&lt;hbm&gt;", "<title>a&amp;b: 5</title>", "<title>c: 0</title>", "5.0  MB"] {
            assert!(text.contains(wanted), "{wanted} is missing in {text}");
        }
    }

    #[test]
    fn nothing_is_drawn_too() {
        let map = HeatMap { x: ("t", (0.0, 0.0)), value: "v", names: Vec::new(), cells: Vec::new() };
        assert!(heat_map(&map).contains("</svg>") && !heat_map(&map).contains("NaN"));
        assert!(cells(&Cells { value: "v", groups: Vec::new() }).contains("</svg>"));
    }
}
