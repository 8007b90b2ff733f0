//! Rooflines: arithmetic performance over operational intensity, below the ceilings of a machine.

use crate::frame::{
    Area, Axis, BLACK_LINE, DIAGONAL, Drawn, Frame, RADIUS, SMALL, TEXT, anchored, decades, heading, svg, text_width,
};
use crate::labels::{Box4, place};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// Ceilings by name.
pub type Rates = Vec<(String, f64)>;

/// A roofline.
#[derive(Clone, Debug)]
pub struct Roofline<'a> {
    /// The title above the chart.
    pub title: &'a str,
    /// The name of its solid ceilings: "measured on the simulated node".
    pub ceilings: &'a str,
    /// Levels of memory with their bandwidth, GB/s, the fastest first.
    pub memory: Rates,
    /// Kinds of arithmetic with their throughput, GFLOP/s.
    pub arithmetic: Rates,
    /// The same by another source, drawn thin and dashed: (bandwidths, throughputs).
    pub textbook: (Rates, Rates),
    /// Programs or kernels, where there are.
    pub points: Vec<RooflinePoint<'a>>,
}

/// A program or kernel on a roofline.
#[derive(Clone, Debug)]
pub struct RooflinePoint<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its performance, GFLOP/s.
    pub gigaflops: f64,
    /// Operations for each byte that a level moved, in the order of the levels; none where a level moved no byte.
    pub intensities: Vec<Option<f64>>,
}

const WIDTH: i32 = 820;
const LEFT: i32 = 104;
const RIGHT: i32 = 796;
const TOP: i32 = 96;
const BOTTOM: i32 = 560;
/// Colours of levels, from the fastest on: told apart by colour and, at points, by shape.
const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(0, 158, 115), RGBColor(213, 94, 0), RGBColor(204, 121, 167)];

/// Draws a roofline.
pub fn roofline(chart: &Roofline<'_>) -> String {
    svg((WIDTH as u32, 624), |area| draw(chart, area))
}

fn draw(chart: &Roofline<'_>, area: &Area<'_>) -> Drawn {
    let is_drawn = |value: &f64| value.is_finite() && *value > 0.0;
    let top = chart.arithmetic.iter().chain(&chart.textbook.1).map(|roof| roof.1).filter(is_drawn).fold(0.0, f64::max);
    let intensities =
        chart.points.iter().flat_map(|point| point.intensities.iter().flatten().copied()).filter(is_drawn);
    let rates = chart.points.iter().map(|point| point.gigaflops).filter(is_drawn);
    let x = decades(intensities.chain([0.011, 90.0]));
    let slowest = chart.memory.iter().map(|level| level.1).filter(is_drawn).fold(f64::INFINITY, f64::min);
    let low = if slowest.is_finite() { slowest * x.0 * 2.0 } else { 1.0 };
    let y = decades(rates.chain([low, top.max(low * 10.0) * 1.3]));
    let frame =
        Frame { left: LEFT, right: RIGHT, top: TOP, bottom: BOTTOM, x: Axis::logarithmic(x), y: Axis::logarithmic(y) };
    heading(area, chart.title, WIDTH)?;
    frame.draw(area, ("operations for each byte, FLOP/byte", "GFLOP/s"))?;
    legend(chart, area)?;
    let mut taken = Vec::new();
    for (index, (_, gigabytes)) in chart.textbook.0.iter().enumerate() {
        slope(area, &frame, *gigabytes, top, COLOURS[index % COLOURS.len()], true)?;
    }
    for (_, gigaflops) in &chart.textbook.1 {
        flat(area, &frame, chart, *gigaflops, true)?;
    }
    for (name, gigaflops) in &chart.arithmetic {
        flat(area, &frame, chart, *gigaflops, false)?;
        let text = format!("{name} {} GFLOP/s", rate(*gigaflops));
        let at = (frame.right - 6, frame.y(*gigaflops) - 3);
        area.draw(&Text::new(text.clone(), at, anchored(SMALL, HPos::Right, VPos::Bottom)))?;
        taken.push((at.0 - text_width(&text, SMALL), at.1 - SMALL, at.0, at.1));
    }
    for (index, (name, gigabytes)) in chart.memory.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        slope(area, &frame, *gigabytes, top, colour, false)?;
        taken.push(name_slope(area, &frame, &format!("{name} {} GB/s", rate(*gigabytes)), *gigabytes, top)?);
    }
    points(chart, area, &frame, &mut taken)
}

/// A bandwidth with as many digits as matter.
fn rate(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// The ends of a slanted roof within the frame: from the left or the lower edge to the highest flat roof.
fn ends(frame: &Frame, gigabytes: f64, top: f64) -> Option<[(f64, f64); 2]> {
    let (left, right) = frame.x.range;
    let from = left.max(frame.y.range.0 / gigabytes);
    let to = (top / gigabytes).min(right);
    (gigabytes > 0.0 && from < to).then_some([(from, from * gigabytes), (to, to * gigabytes)])
}

fn slope(area: &Area<'_>, frame: &Frame, gigabytes: f64, top: f64, colour: RGBColor, is_textbook: bool) -> Drawn {
    let Some(ends) = ends(frame, gigabytes, top) else { return Ok(()) };
    let pixels = ends.map(|(x, y)| (frame.x(x), frame.y(y)));
    if is_textbook {
        area.draw(&DashedPathElement::new(pixels, 4, 4, colour.stroke_width(1)))?;
    } else {
        area.draw(&PathElement::new(pixels, colour.stroke_width(2)))?;
    }
    Ok(())
}

/// Writes the name of a slanted roof beside its lower end, level; gives the place that it takes.
fn name_slope(
    area: &Area<'_>,
    frame: &Frame,
    text: &str,
    gigabytes: f64,
    top: f64,
) -> Result<Box4, Box<dyn std::error::Error>> {
    let Some([(x, y), _]) = ends(frame, gigabytes, top) else { return Ok((0, 0, 0, 0)) };
    let width = text_width(text, SMALL);
    // Roofs rise to the right: one that begins at the left edge has room above it, as far as it has risen where its name ends; one that
    // begins at the lower edge has room below it.
    let at = if x > frame.x.range.0 * 1.01 {
        (frame.x(x) + 34, frame.bottom - 4)
    } else {
        let pixels = f64::from(frame.right - frame.left);
        let share = f64::from(width + 12) / pixels;
        let (low, high) = frame.x.range;
        let end = y * (high / low).powf(share);
        (frame.left + 8, frame.y(end) - 4)
    };
    area.draw(&Text::new(text.to_owned(), at, anchored(SMALL, HPos::Left, VPos::Bottom)))?;
    Ok((at.0, at.1 - SMALL, at.0 + width, at.1))
}

/// A flat roof begins where the fastest level reaches it.
fn flat(area: &Area<'_>, frame: &Frame, chart: &Roofline<'_>, gigaflops: f64, is_textbook: bool) -> Drawn {
    let levels = if is_textbook { &chart.textbook.0 } else { &chart.memory };
    let fastest = levels.iter().map(|level| level.1).fold(0.0, f64::max);
    let from = if fastest > 0.0 { (gigaflops / fastest).max(frame.x.range.0) } else { frame.x.range.0 };
    if !(gigaflops > 0.0 && from < frame.x.range.1) {
        return Ok(());
    }
    let pixels = [(frame.x(from), frame.y(gigaflops)), (frame.right, frame.y(gigaflops))];
    if is_textbook {
        area.draw(&DashedPathElement::new(pixels, 4, 4, DIAGONAL))?;
    } else {
        area.draw(&PathElement::new(pixels, BLACK_LINE.stroke_width(2)))?;
    }
    Ok(())
}

fn legend(chart: &Roofline<'_>, area: &Area<'_>) -> Drawn {
    let (mut x, y) = (LEFT + 4, 62);
    let beside = || anchored(TEXT, HPos::Left, VPos::Center);
    let solid = chart.ceilings;
    area.draw(&PathElement::new([(x, y), (x + 28, y)], BLACK_LINE.stroke_width(2)))?;
    area.draw(&Text::new(solid.to_owned(), (x + 36, y), beside()))?;
    x += 36 + text_width(solid, TEXT) + 22;
    if !chart.textbook.0.is_empty() || !chart.textbook.1.is_empty() {
        area.draw(&DashedPathElement::new([(x, y), (x + 28, y)], 4, 4, DIAGONAL))?;
        area.draw(&Text::new("textbook", (x + 36, y), beside()))?;
        x += 36 + text_width("textbook", TEXT) + 22;
    }
    if chart.points.is_empty() {
        return Ok(());
    }
    for (index, (name, _)) in chart.memory.iter().enumerate() {
        shape(area, index, (x + RADIUS, y))?;
        let text = format!("by {name} bytes");
        area.draw(&Text::new(text.clone(), (x + 16, y), beside()))?;
        x += 16 + text_width(&text, TEXT) + 16;
    }
    Ok(())
}

/// The mark of a level.
fn shape(area: &Area<'_>, level: usize, (x, y): (i32, i32)) -> Drawn {
    let colour = COLOURS[level % COLOURS.len()];
    match level % 3 {
        0 => area.draw(&Rectangle::new([(x - 4, y - 4), (x + 4, y + 4)], colour.filled()))?,
        1 => area.draw(&Polygon::new([(x, y - 5), (x + 5, y + 4), (x - 5, y + 4)], colour.filled()))?,
        _ => area.draw(&Circle::new((x, y), RADIUS, colour.filled()))?,
    }
    Ok(())
}

/// A point for each level, joined by a thin line, with the name beside the last one.
fn points(chart: &Roofline<'_>, area: &Area<'_>, frame: &Frame, taken: &mut Vec<Box4>) -> Drawn {
    let mut named = Vec::new();
    for point in chart.points.iter().filter(|point| point.gigaflops > 0.0 && point.gigaflops.is_finite()) {
        let places = point.intensities.iter().enumerate().filter_map(|(level, intensity)| {
            let intensity = (*intensity)?;
            (intensity > 0.0 && intensity.is_finite()).then(|| (level, (frame.x(intensity), frame.y(point.gigaflops))))
        });
        let places: Vec<_> = places.collect();
        if places.len() > 1 {
            area.draw(&PathElement::new(places.iter().map(|one| one.1).collect::<Vec<_>>(), DIAGONAL))?;
        }
        for (level, at) in &places {
            shape(area, *level, *at)?;
            taken.push((at.0 - RADIUS, at.1 - RADIUS, at.0 + RADIUS, at.1 + RADIUS));
        }
        named.extend(places.last().map(|(_, at)| (point.name, *at)));
    }
    for (name, at) in named {
        let found = place(at, name, frame, taken);
        area.draw(&Text::new(name.to_owned(), (found.0, found.1), anchored(SMALL, HPos::Left, VPos::Top)))?;
        taken.push(found);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<RooflinePoint<'_>>) -> String {
        let named = |pairs: &[(&str, f64)]| pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        roofline(&Roofline {
            title: "v100 & more",
            ceilings: "measured",
            memory: named(&[("L1", 14_000.0), ("L2", 2450.0), ("DRAM", 867.0)]),
            arithmetic: named(&[("FP64", 6900.0), ("FP32", 13_800.0)]),
            textbook: (named(&[("DRAM", 898.0)]), named(&[("FP64", 7065.0)])),
            points,
        })
    }

    #[test]
    fn roofs_and_points_are_named() {
        let points = vec![
            RooflinePoint { name: "lud_<diagonal>", gigaflops: 12.5, intensities: vec![Some(0.1), Some(0.4), None] },
            RooflinePoint { name: "nothing", gigaflops: 0.0, intensities: vec![Some(0.0), None, None] },
        ];
        let text = chart(points);
        for wanted in
            ["v100 &amp; more", "L2 2450 GB/s", "FP64 6900 GFLOP/s", "lud_&lt;diagonal&gt;", "textbook", "by L2 bytes"]
        {
            assert!(text.contains(wanted), "{wanted} is missing in {text}");
        }
        assert!(!text.contains("nothing") && !text.contains("NaN"), "{text}");
    }

    #[test]
    fn a_roofline_without_anything_is_drawn() {
        let empty = Roofline {
            title: "t",
            ceilings: "measured",
            memory: Vec::new(),
            arithmetic: Vec::new(),
            textbook: (Vec::new(), Vec::new()),
            points: Vec::new(),
        };
        assert!(roofline(&empty).contains("GFLOP/s"));
        assert!(!chart(Vec::new()).contains("by L2 bytes"));
    }
}
