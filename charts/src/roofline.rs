//! Rooflines: arithmetic performance over operational intensity, below the ceilings of a machine.

use crate::frame::{
    Area, Axis, BLACK_LINE, DIAGONAL, Drawn, Frame, RADIUS, SMALL, TEXT, anchored, cut, decades, heading, slanted, svg,
    text_width,
};
use crate::labels::{DESCENT, Drawing, LEADER, TEXT_HEIGHT, spread};
use crate::rectangle::{self, Segment};
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
    /// What stands below: what is not drawn, and why; a line each.
    pub notes: Vec<String>,
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

const WIDTH: i32 = 920;
const LEFT: i32 = 104;
/// What is right of it belongs to the names of flat roofs.
const RIGHT: i32 = 752;
const TOP: i32 = 96;
const BOTTOM: i32 = 560;
const HEIGHT: i32 = 624;
const NOTE_HEIGHT: i32 = 18;
/// Of levels, from the fastest on: told apart by colour and, at points, by shape.
const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(0, 158, 115), RGBColor(213, 94, 0), RGBColor(204, 121, 167)];
/// The levels that have a colour wherever they stand: a GPU whose L1 keeps no loads has no ceiling of an L1.
const LEVELS: [&str; 3] = ["L1", "L2", "DRAM"];

/// Draws a roofline.
pub fn roofline(chart: &Roofline<'_>) -> String {
    let height = HEIGHT + NOTE_HEIGHT * chart.notes.len() as i32;
    let mut names = String::new();
    let text = svg((WIDTH as u32, height as u32), |area| draw(chart, area, &mut names));
    text.replacen("</svg>", &format!("{names}</svg>"), 1)
}

fn draw(chart: &Roofline<'_>, area: &Area<'_>, names: &mut String) -> Drawn {
    let frame = frame_of(chart);
    let roofs = roofs(chart, &frame);
    heading(area, chart.title, WIDTH)?;
    frame.draw(area, ("operations for each byte, FLOP/byte", "GFLOP/s"))?;
    legend(chart, area)?;
    for (at, note) in chart.notes.iter().enumerate() {
        let place = (LEFT, HEIGHT - 8 + NOTE_HEIGHT * at as i32);
        let text = cut(note, WIDTH - LEFT - 8, SMALL);
        area.draw(&Text::new(text, place, anchored(SMALL, HPos::Left, VPos::Top)))?;
    }
    for roof in &roofs {
        if roof.is_textbook {
            area.draw(&DashedPathElement::new(roof.line, 4, 4, roof.colour.stroke_width(1)))?;
        } else {
            area.draw(&PathElement::new(roof.line, roof.colour.stroke_width(2)))?;
        }
    }
    name_flat_roofs(area, &frame, &roofs)?;
    let places = places(chart, &frame);
    let mut drawing = Drawing { taken: Vec::new(), lines: roofs.iter().map(|roof| roof.line).collect() };
    for (level, at) in places.iter().flat_map(|(_, places)| places) {
        shape(area, *level, *at)?;
        let size = 2 * RADIUS + 2;
        drawing.taken.push(rectangle::Rectangle::level(at.0 - RADIUS - 1, at.1 - RADIUS - 1, size, size));
    }
    for roof in roofs.iter().filter(|roof| roof.is_slanted) {
        let Some(name) = &roof.name else { continue };
        let (it, distance) = name_slope(roof, name, &drawing, &frame);
        if distance >= LEADER {
            let end = it.at(0.0, 0.0);
            let start = foot(roof.line, end);
            let pixels = [start, end].map(|(x, y)| (x.round() as i32, y.round() as i32));
            area.draw(&PathElement::new(pixels, roof.colour.stroke_width(1)))?;
        }
        names.push_str(&slanted(name, it.at(0.0, f64::from(DESCENT)), it.degrees(), roof.colour));
        drawing.taken.push(it);
    }
    name_points(area, &frame, &places, &mut drawing)
}

/// A frame that holds the roofs and the points.
fn frame_of(chart: &Roofline<'_>) -> Frame {
    let is_drawn = |value: &f64| value.is_finite() && *value > 0.0;
    let top = top_of(chart);
    let points = || chart.points.iter().filter(|point| is_drawn(&point.gigaflops));
    let intensities = points().flat_map(|point| point.intensities.iter().flatten().copied()).filter(is_drawn);
    let rates = points().map(|point| point.gigaflops);
    let x = decades(intensities.chain([0.011, 90.0]));
    let slowest = chart.memory.iter().map(|level| level.1).filter(is_drawn).fold(f64::INFINITY, f64::min);
    let low = if slowest.is_finite() { slowest * x.0 * 2.0 } else { 1.0 };
    let y = decades(rates.chain([low, top.max(low * 10.0) * 1.3]));
    Frame { left: LEFT, right: RIGHT, top: TOP, bottom: BOTTOM, x: Axis::logarithmic(x), y: Axis::logarithmic(y) }
}

/// The highest flat roof.
fn top_of(chart: &Roofline<'_>) -> f64 {
    let roofs = chart.arithmetic.iter().chain(&chart.textbook.1).map(|roof| roof.1);
    roofs.filter(|roof| roof.is_finite() && *roof > 0.0).fold(0.0, f64::max)
}

/// A bandwidth with as many digits as matter.
fn rate(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// A ceiling in pixels.
#[derive(Debug)]
struct Roof {
    line: Segment,
    colour: RGBColor,
    is_slanted: bool,
    is_textbook: bool,
    /// What stands beside it; the textbook's have no names.
    name: Option<String>,
}

/// The roofs that the frame shows, those of the textbook first.
fn roofs(chart: &Roofline<'_>, frame: &Frame) -> Vec<Roof> {
    let top = top_of(chart);
    let mut roofs = Vec::new();
    for ((memory, arithmetic), is_textbook) in
        [((&chart.textbook.0, &chart.textbook.1), true), ((&chart.memory, &chart.arithmetic), false)]
    {
        for (place, (level, gigabytes)) in memory.iter().enumerate() {
            let name = (!is_textbook).then(|| format!("{level} {} GB/s", rate(*gigabytes)));
            let line = slope(frame, *gigabytes, top);
            let colour = COLOURS[level_place(level, place) % COLOURS.len()];
            roofs.extend(line.map(|line| Roof { line, colour, is_slanted: true, is_textbook, name }));
        }
        let fastest = memory.iter().map(|level| level.1).fold(0.0, f64::max);
        for (kind, gigaflops) in arithmetic {
            let name = (!is_textbook).then(|| format!("{kind} {} GFLOP/s", rate(*gigaflops)));
            let line = flat(frame, *gigaflops, fastest);
            let colour = if is_textbook { DIAGONAL } else { BLACK_LINE };
            roofs.extend(line.map(|line| Roof { line, colour, is_slanted: false, is_textbook, name }));
        }
    }
    roofs
}

/// Which colour and shape a level has: its own where it is a known one, its place's where it is not.
fn level_place(name: &str, place: usize) -> usize {
    LEVELS.iter().position(|level| *level == name).unwrap_or(place)
}

/// A slanted roof within the frame: from the left or the lower edge to the highest flat roof.
fn slope(frame: &Frame, gigabytes: f64, top: f64) -> Option<Segment> {
    let (left, right) = frame.x.range;
    let from = left.max(frame.y.range.0 / gigabytes);
    let to = (top / gigabytes).min(right);
    let pixels = |x: f64| (frame.x(x), frame.y(x * gigabytes));
    (gigabytes > 0.0 && from < to).then(|| [pixels(from), pixels(to)])
}

/// A flat roof begins where the fastest level reaches it.
fn flat(frame: &Frame, gigaflops: f64, fastest: f64) -> Option<Segment> {
    let left = frame.x.range.0;
    let from = if fastest > 0.0 { (gigaflops / fastest).max(left) } else { left };
    let y = |value: f64| frame.y(value);
    (gigaflops > 0.0 && gigaflops.is_finite() && from < frame.x.range.1)
        .then(|| [(frame.x(from), y(gigaflops)), (frame.right, y(gigaflops))])
}

/// Writes the names of flat roofs right of the frame, where nothing crosses them, each at the end of its line.
fn name_flat_roofs(area: &Area<'_>, frame: &Frame, roofs: &[Roof]) -> Drawn {
    let named: Vec<(&str, i32)> = roofs
        .iter()
        .filter(|roof| !roof.is_slanted)
        .filter_map(|roof| Some((roof.name.as_deref()?, roof.line[1].1)))
        .collect();
    let wanted: Vec<i32> = named.iter().map(|(_, y)| *y).collect();
    let heights = spread(&wanted, TEXT_HEIGHT + 2, frame.top, frame.bottom);
    for ((name, y), at) in named.into_iter().zip(heights) {
        area.draw(&PathElement::new([(frame.right, y), (frame.right + 8, at)], BLACK_LINE))?;
        let place = (frame.right + 12, at);
        area.draw(&Text::new(name.to_owned(), place, anchored(SMALL, HPos::Left, VPos::Center)))?;
    }
    Ok(())
}

/// Where the name of a slanted roof stands: along its line, where it crosses no other roof. A line that is too short for that, or among too
/// many, has its name along its first pixels all the same.
fn name_slope(roof: &Roof, name: &str, drawing: &Drawing, frame: &Frame) -> (rectangle::Rectangle, i32) {
    let size = (f64::from(text_width(name, SMALL)), f64::from(TEXT_HEIGHT));
    let crowded = || (rectangle::Rectangle::beside(roof.line, f64::from(TEXT_HEIGHT), 3.0, size), 0);
    drawing.along(roof.line, name, frame).unwrap_or_else(crowded)
}

/// The place of a line that is nearest to another place.
fn foot([from, to]: Segment, place: (f64, f64)) -> (f64, f64) {
    let (dx, dy) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
    let (x, y) = (place.0 - f64::from(from.0), place.1 - f64::from(from.1));
    let share = (x * dx + y * dy) / (dx * dx + dy * dy).max(1e-9);
    (f64::from(from.0) + share * dx, f64::from(from.1) + share * dy)
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
    for (place, (name, _)) in chart.memory.iter().enumerate() {
        shape(area, level_place(name, place), (x + RADIUS, y))?;
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

/// A point's name, and its marks: the level of each, and where it is.
type Places<'a> = (&'a str, Vec<(usize, (i32, i32))>);

/// The points that have marks.
fn places<'a>(chart: &Roofline<'a>, frame: &Frame) -> Vec<Places<'a>> {
    let is_drawn = |value: f64| value > 0.0 && value.is_finite();
    let of_point = |point: &RooflinePoint<'a>| {
        let levels = chart.memory.iter().enumerate().map(|(place, (name, _))| level_place(name, place));
        let marks = levels.zip(&point.intensities).filter_map(|(level, intensity)| {
            let intensity = intensity.filter(|intensity| is_drawn(*intensity))?;
            Some((level, (frame.x(intensity), frame.y(point.gigaflops))))
        });
        (point.name, marks.collect::<Vec<_>>())
    };
    let points = chart.points.iter().filter(|point| is_drawn(point.gigaflops)).map(of_point);
    points.filter(|(_, marks)| !marks.is_empty()).collect()
}

/// Joins the marks of each point by a thin line, and writes its name beside the last one.
fn name_points(area: &Area<'_>, frame: &Frame, points: &[Places<'_>], drawing: &mut Drawing) -> Drawn {
    for (_, marks) in points {
        if marks.len() > 1 {
            area.draw(&PathElement::new(marks.iter().map(|mark| mark.1).collect::<Vec<_>>(), DIAGONAL))?;
        }
    }
    for (name, marks) in points {
        let Some((_, at)) = marks.last() else { continue };
        let (left, top, distance) = drawing.beside(*at, name, frame);
        let width = text_width(name, SMALL);
        if distance >= LEADER {
            let end = (at.0.clamp(left, left + width), at.1.clamp(top, top + TEXT_HEIGHT));
            area.draw(&PathElement::new([*at, end], DIAGONAL))?;
        }
        area.draw(&Text::new((*name).to_owned(), (left, top), anchored(SMALL, HPos::Left, VPos::Top)))?;
        drawing.taken.push(rectangle::Rectangle::level(left, top, width, TEXT_HEIGHT));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(pairs: &[(&str, f64)]) -> Rates {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    fn chart(points: Vec<RooflinePoint<'_>>) -> Roofline<'_> {
        Roofline {
            title: "v100 & more",
            ceilings: "measured",
            memory: rates(&[("L1", 14_000.0), ("L2", 2450.0), ("DRAM", 867.0)]),
            arithmetic: rates(&[("FP64", 6900.0), ("FP32", 13_800.0)]),
            textbook: (rates(&[("DRAM", 898.0)]), rates(&[("FP64", 7065.0)])),
            points,
            notes: Vec::new(),
        }
    }

    #[test]
    fn roofs_and_points_are_named() {
        let points = vec![
            RooflinePoint { name: "lud_<diagonal>", gigaflops: 12.5, intensities: vec![Some(0.1), Some(0.4), None] },
            RooflinePoint { name: "nothing", gigaflops: 0.0, intensities: vec![Some(0.0), None, None] },
        ];
        let note = "not drawn, without operations: nothing & more".to_owned();
        let text = roofline(&Roofline { notes: vec![note], ..chart(points) });
        for wanted in [
            "v100 &amp; more",
            "L2 2450 GB/s",
            "FP64 6900 GFLOP/s",
            "lud_&lt;diagonal&gt;",
            "textbook",
            "by L2 bytes",
            "not drawn, without operations: nothing &amp; more",
            // A line more than without the note.
            "height=\"642\"",
        ] {
            assert!(text.contains(wanted), "{wanted} is missing in {text}");
        }
        assert!(!text.contains("\nnothing\n") && !text.contains("NaN"), "{text}");
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
            notes: Vec::new(),
        };
        assert!(roofline(&empty).contains("GFLOP/s"));
        assert!(!roofline(&chart(Vec::new())).contains("by L2 bytes"));
    }

    /// Where the names of slanted roofs stand, and in which colour.
    fn slopes_of(chart: &Roofline<'_>) -> Vec<(String, RGBColor, rectangle::Rectangle)> {
        let frame = frame_of(chart);
        let roofs = roofs(chart, &frame);
        let mut drawing = Drawing { taken: Vec::new(), lines: roofs.iter().map(|roof| roof.line).collect() };
        let named = roofs.iter().filter(|roof| roof.is_slanted).filter_map(|roof| {
            let name = roof.name.clone()?;
            let (it, _) = name_slope(roof, &name, &drawing, &frame);
            drawing.taken.push(it);
            Some((name, roof.colour, it))
        });
        named.collect()
    }

    /// A T4's L1 and L2 are as near to each other as levels are told apart (1.25 times), and the textbook's lines lie between them.
    #[test]
    fn names_of_slanted_roofs_cross_no_roof_and_no_other_name() {
        let near = Roofline {
            memory: rates(&[("L1", 1600.0), ("L2", 1280.0), ("DRAM", 290.0)]),
            arithmetic: rates(&[("FP64", 254.0), ("FP32", 8100.0), ("tensor", 65_000.0)]),
            textbook: (rates(&[("L1", 4070.0), ("L2", 1300.0), ("DRAM", 320.0)]), rates(&[("FP32", 8141.0)])),
            ..chart(Vec::new())
        };
        for chart in [near, chart(Vec::new())] {
            let frame = frame_of(&chart);
            let roofs = roofs(&chart, &frame);
            let named = slopes_of(&chart);
            assert_eq!(named.len(), 3);
            for (at, (name, colour, it)) in named.iter().enumerate() {
                assert_eq!(*colour, COLOURS[at], "{name}");
                assert!(roofs.iter().all(|roof| !it.meets(roof.line)), "{name} crosses a roof: {it:?}");
                assert!(named[..at].iter().all(|(_, _, other)| !it.overlaps(other)), "{name} covers another: {it:?}");
                // It runs as its line does: the frame's decades are as long for all of them.
                assert!(it.degrees() < -10.0 && (it.degrees() - named[0].2.degrees()).abs() < 1.0, "{name}: {it:?}");
            }
        }
    }

    #[test]
    fn a_level_has_its_colour_wherever_it_stands() {
        let without_l1 = Roofline {
            memory: rates(&[("L2", 2450.0), ("DRAM", 867.0)]),
            textbook: (rates(&[("L1", 14_000.0), ("L2", 2500.0), ("DRAM", 898.0)]), Vec::new()),
            ..chart(Vec::new())
        };
        let frame = frame_of(&without_l1);
        let colours: Vec<RGBColor> =
            roofs(&without_l1, &frame).iter().filter(|roof| roof.is_slanted).map(|roof| roof.colour).collect();
        assert_eq!(colours, [COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[1], COLOURS[2]]);
    }

    #[test]
    fn names_of_flat_roofs_stand_right_of_the_frame() {
        let text = roofline(&chart(Vec::new()));
        let before = text.split("FP64 6900 GFLOP/s").next().and_then(|text| text.rsplit("<text x=\"").next());
        let x: i32 = before.and_then(|tag| tag.split('"').next()).and_then(|x| x.parse().ok()).expect("a place");
        assert!(x > RIGHT && x + text_width("FP64 6900 GFLOP/s", SMALL) < WIDTH, "{x}");
    }
}
