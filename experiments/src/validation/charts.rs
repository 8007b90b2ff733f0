//! Charts as SVG, to be read without colour: shapes, fills and strokes tell series apart.

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Points about a diagonal, both axes logarithmic.
pub(super) struct Scatter<'a> {
    pub title: &'a str,
    /// What the axis across shows, with its unit.
    pub x: &'a str,
    /// What the axis upward shows, with its unit.
    pub y: &'a str,
    /// What the diagonal stands for.
    pub diagonal: &'a str,
    pub series: Vec<Series<'a>>,
}

/// Points with the same mark.
pub(super) struct Series<'a> {
    pub name: &'a str,
    pub mark: Mark,
    /// Across, upward, and what is written beside.
    pub points: Vec<(f64, f64, String)>,
}

/// What a point looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Disc,
    Ring,
    Triangle,
    Cross,
}

/// Groups of two bars each.
pub(super) struct Bars<'a> {
    pub title: &'a str,
    pub x: &'a str,
    pub y: &'a str,
    /// What the filled and the empty bar of a group stand for.
    pub series: [&'a str; 2],
    pub is_logarithmic: bool,
    /// Decimals of the numbers above the bars.
    pub decimals: usize,
    pub groups: Vec<(&'a str, [Option<f64>; 2])>,
}

/// Small charts side by side, each with a solid and a dashed line.
pub(super) struct Panels<'a> {
    pub title: &'a str,
    pub x: &'a str,
    pub y: &'a str,
    pub solid: &'a str,
    pub dashed: &'a str,
    pub panels: Vec<Panel<'a>>,
}

/// One of them.
pub(super) struct Panel<'a> {
    pub title: &'a str,
    pub solid: Vec<(f64, f64)>,
    pub dashed: Vec<(f64, f64)>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// A drawing into memory fails only by a mistake in this file.
type Drawn = Result<(), Box<dyn std::error::Error>>;

const BLACK_LINE: RGBColor = RGBColor(0, 0, 0);
const FILL: RGBColor = RGBColor(70, 90, 130);
const GRID: RGBColor = RGBColor(222, 222, 222);
const DIAGONAL: RGBColor = RGBColor(120, 120, 120);
const FONT: &str = "sans-serif";
/// Sizes of text as plotters counts them: 1.24 times those in the picture.
const TEXT: i32 = 16;
const SMALL: i32 = 14;
/// Width of a small and of a large letter over the size of its font, roughly.
const LETTER: f64 = 0.5;
const CAPITAL: f64 = 0.58;
/// Radius of a mark.
const RADIUS: i32 = 5;

/// Draws points about a diagonal.
pub(super) fn scatter(chart: &Scatter<'_>) -> String {
    svg((760, 620), |root| draw_scatter(chart, root))
}

/// Draws groups of bars.
pub(super) fn bars(chart: &Bars<'_>) -> String {
    svg((760, 480), |root| draw_bars(chart, root))
}

/// Draws small charts.
pub(super) fn panels(chart: &Panels<'_>) -> String {
    let rows = chart.panels.len().div_ceil(2) as u32;
    svg((860, 100 + 290 * rows), |root| draw_panels(chart, root))
}

fn svg(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&WHITE)
            .map_err(Into::into)
            .and_then(|()| draw(&root))
            .and_then(|()| Ok(root.present()?))
            .expect("a drawing into memory succeeds");
    }
    text
}

fn style(size: i32) -> TextStyle<'static> {
    (FONT, size).into_font().color(&BLACK_LINE)
}

fn anchored(size: i32, horizontal: HPos, vertical: VPos) -> TextStyle<'static> {
    style(size).pos(Pos::new(horizontal, vertical))
}

/// A range about values, whose ends are 1, 2 or 5 times a power of ten.
fn decades(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let positive = values.into_iter().filter(|value| *value > 0.0);
    let (least, most) = positive.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if most <= 0.0 {
        return (1.0, 10.0);
    }
    let step = |value: f64| 10_f64.powf(value.log10().floor());
    let (below, above) = (step(least / 1.1), step(most * 1.1));
    let low = [5.0, 2.0, 1.0].map(|factor| factor * below).into_iter().find(|end| *end <= least / 1.1).unwrap_or(below);
    let ends = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * above);
    let high = ends.into_iter().find(|end| *end >= most * 1.1).unwrap_or(10.0 * above);
    (low, high)
}

/// Places of ticks between the ends: 1, 2 and 5 times powers of ten, or powers alone where there are many.
fn ticks((low, high): (f64, f64)) -> Vec<f64> {
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let factors: &[f64] = if (high / low).log10() > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all = powers.flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power)));
    all.filter(|tick| *tick >= low * 0.999 && *tick <= high * 1.001).collect()
}

/// 12300 as "12 300".
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push('\u{a0}');
        }
        text.push(digit);
    }
    text
}

/// 20000 as "20 k": round numbers alone.
fn magnitude(value: f64) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let found = units.into_iter().find(|(unit, _)| value >= 0.999 * unit);
    found.map_or_else(|| format!("{value:.0}"), |(unit, name)| format!("{:.0}\u{a0}{name}", value / unit))
}

/// A frame in pixels, and the range that each side stands for.
struct Frame {
    left: i32,
    right: i32,
    top: i32,
    bottom: i32,
    x: Axis,
    y: Axis,
}

/// What a side of a frame stands for.
struct Axis {
    range: (f64, f64),
    is_logarithmic: bool,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    fn logarithmic(range: (f64, f64)) -> Axis {
        let text = if range.1 > 1e5 { magnitude } else { grouped };
        let ticks = ticks(range).into_iter().map(|tick| (tick, text(tick))).collect();
        Axis { range, is_logarithmic: true, ticks }
    }

    /// Where a value lies, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        if self.is_logarithmic { (value / low).ln() / (high / low).ln() } else { (value - low) / (high - low) }
    }
}

impl Frame {
    fn x(&self, value: f64) -> i32 {
        self.left + (self.x.share(value) * f64::from(self.right - self.left)).round() as i32
    }

    fn y(&self, value: f64) -> i32 {
        self.bottom - (self.y.share(value) * f64::from(self.bottom - self.top)).round() as i32
    }

    /// Draws the frame, its grid, ticks and names of axes.
    fn draw(&self, area: &Area<'_>, (x_name, y_name): (&str, &str)) -> Drawn {
        let size = if self.right - self.left > 400 { TEXT } else { SMALL };
        for (tick, text) in &self.x.ticks {
            let x = self.x(*tick);
            if !text.is_empty() && self.x.is_logarithmic {
                area.draw(&PathElement::new([(x, self.top), (x, self.bottom)], GRID))?;
            }
            area.draw(&Text::new(text.clone(), (x, self.bottom + 7), anchored(size, HPos::Center, VPos::Top)))?;
        }
        for (tick, text) in &self.y.ticks {
            let y = self.y(*tick);
            area.draw(&PathElement::new([(self.left, y), (self.right, y)], GRID))?;
            area.draw(&Text::new(text.clone(), (self.left - 7, y), anchored(size, HPos::Right, VPos::Center)))?;
        }
        area.draw(&Rectangle::new([(self.left, self.top), (self.right, self.bottom)], BLACK_LINE))?;
        let middle = ((self.left + self.right) / 2, (self.top + self.bottom) / 2);
        area.draw(&Text::new(
            x_name.to_owned(),
            (middle.0, self.bottom + 28),
            anchored(size, HPos::Center, VPos::Top),
        ))?;
        let widest = self.y.ticks.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0);
        let beside = self.left - 14 - (widest as f64 * LETTER * f64::from(size)) as i32;
        let upward = anchored(size, HPos::Center, VPos::Bottom).transform(FontTransform::Rotate270);
        area.draw(&Text::new(y_name.to_owned(), (beside, middle.1), upward))?;
        Ok(())
    }
}

fn heading(area: &Area<'_>, title: &str, width: i32) -> Drawn {
    Ok(area.draw(&Text::new(title.to_owned(), (width / 2, 14), anchored(20, HPos::Center, VPos::Top)))?)
}

fn mark(area: &Area<'_>, mark: Mark, at: (i32, i32)) -> Drawn {
    let thin = BLACK_LINE.stroke_width(1);
    match mark {
        Mark::Disc => {
            area.draw(&Circle::new(at, RADIUS, FILL.filled()))?;
            area.draw(&Circle::new(at, RADIUS, thin))?;
        }
        // It is seen about a disc at the same place.
        Mark::Ring => area.draw(&Circle::new(at, RADIUS + 2, thin))?,
        Mark::Triangle => {
            let (x, y) = at;
            let corners =
                [(x, y - RADIUS), (x + RADIUS, y + RADIUS - 1), (x - RADIUS, y + RADIUS - 1), (x, y - RADIUS)];
            area.draw(&PathElement::new(corners, thin))?;
        }
        Mark::Cross => {
            let (x, y, arm) = (at.0, at.1, RADIUS - 1);
            area.draw(&PathElement::new([(x - arm, y - arm), (x + arm, y + arm)], thin))?;
            area.draw(&PathElement::new([(x - arm, y + arm), (x + arm, y - arm)], thin))?;
        }
    }
    Ok(())
}

/// A rectangle in pixels: left, top, right, bottom.
type Box4 = (i32, i32, i32, i32);

fn overlaps(one: Box4, other: Box4) -> bool {
    one.0 < other.2 && other.0 < one.2 && one.1 < other.3 && other.1 < one.3
}

fn text_width(text: &str, size: i32) -> i32 {
    let letters = text.chars().map(|letter| if letter.is_uppercase() { CAPITAL } else { LETTER });
    (letters.sum::<f64>() * f64::from(size)).ceil() as i32
}

/// Where a label beside a mark covers the least of what is `taken` already, within the frame.
fn place(at: (i32, i32), text: &str, frame: &Frame, taken: &[Box4]) -> Box4 {
    let (width, height) = (text_width(text, SMALL), SMALL + 2);
    let (x, y) = at;
    let gap = RADIUS + 4;
    let (middle_x, middle_y) = (x - width / 2, y - height / 2);
    let corners = [
        (x + gap, middle_y),
        (x - gap - width, middle_y),
        (middle_x, y - gap - height),
        (middle_x, y + gap),
        (x + gap, y - gap - height / 2),
        (x + gap, y + gap / 2),
        (x - gap - width, y - gap - height / 2),
        (x - gap - width, y + gap / 2),
        (x + 2 * gap, y + 2 * gap),
        (x - 2 * gap - width, y - 2 * gap - height / 2),
        (middle_x, y - 2 * gap - height),
        (middle_x, y + 2 * gap),
    ];
    let boxes = corners.map(|(left, top)| (left, top, left + width, top + height));
    let inside = |b: &Box4| b.0 > frame.left && b.2 < frame.right && b.1 > frame.top && b.3 < frame.bottom;
    let covered = |b: &Box4| taken.iter().filter(|other| overlaps(*b, **other)).count() + 3 * usize::from(!inside(b));
    boxes.into_iter().min_by_key(covered).unwrap_or(boxes[0])
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

/// Thousands and millions, with three digits.
fn short(value: f64) -> String {
    let (scaled, unit) = match value {
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e3 => (value / 1e3, "k"),
        value => (value, ""),
    };
    let decimals = if scaled >= 100.0 || unit.is_empty() {
        0
    } else if scaled >= 10.0 {
        1
    } else {
        2
    };
    format!("{scaled:.decimals$}{unit}")
}

fn bar(area: &Area<'_>, corners: [(i32, i32); 2], index: usize) -> Drawn {
    let fill = if index == 0 { FILL } else { WHITE };
    area.draw(&Rectangle::new(corners, fill.filled()))?;
    Ok(area.draw(&Rectangle::new(corners, BLACK_LINE))?)
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
                range: (95.0, 155.0),
                is_logarithmic: false,
                ticks: [100.0, 110.0, 125.0, 150.0].map(|tick| (tick, grouped(tick))).to_vec(),
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

/// A step of 1, 2 or 5 times a power of ten, of which four to nine reach `most`.
fn even_step(most: f64) -> f64 {
    let power = 10_f64.powf(most.log10().floor());
    [0.2, 0.5, 1.0, 2.0].map(|factor| factor * power).into_iter().find(|step| most / step <= 6.0).unwrap_or(2.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_ticks_are_round_numbers() {
        assert_eq!(decades([2051.0, 10544.0]), (1000.0, 20000.0));
        assert_eq!(ticks((1000.0, 20000.0)), [1000.0, 2000.0, 5000.0, 10000.0, 20000.0]);
        assert_eq!(ticks((1e3, 1e7)), [1e3, 1e4, 1e5, 1e6, 1e7]);
        assert_eq!(decades([]), (1.0, 10.0));
        assert_eq!((even_step(9173.0), even_step(33000.0), even_step(1.0)), (2000.0, 10000.0, 0.2));
        assert_eq!(
            (grouped(1234567.0), short(14_250.0), short(999.0)),
            ("1\u{a0}234\u{a0}567".into(), "14.2k".into(), "999".into())
        );
    }

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
    fn labels_of_near_points_do_not_cover_each_other() {
        let frame = Frame {
            left: 0,
            right: 600,
            top: 0,
            bottom: 400,
            x: Axis::logarithmic((1.0, 10.0)),
            y: Axis::logarithmic((1.0, 10.0)),
        };
        let mut taken: Vec<Box4> = Vec::new();
        for at in [(300, 200), (306, 203), (310, 196), (302, 190)] {
            let found = place(at, "program", &frame, &taken);
            assert!(taken.iter().all(|other| !overlaps(found, *other)), "{found:?} of {taken:?}");
            taken.push(found);
        }
    }

    #[test]
    fn large_ticks_are_short() {
        let shown = [500.0, 1e3, 2e4, 5e5, 1e6, 1e9].map(magnitude).map(|text| text.replace('\u{a0}', " "));
        assert_eq!(shown, ["500", "1 k", "20 k", "500 k", "1 M", "1 G"]);
    }

    #[test]
    fn charts_without_a_point_are_drawn() {
        assert!(points_and_labels(0).contains("equal"));
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
