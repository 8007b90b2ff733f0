//! The parts that charts are drawn with: frames, axes, ticks, marks, text.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The look of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A filled circle.
    Disc,
    /// A circle, larger than a disc.
    Ring,
    /// A triangle on its base.
    Triangle,
    /// Two strokes that cross.
    Cross,
}

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// A drawing into memory fails only by a mistake in this file.
pub(crate) type Drawn = Result<(), Box<dyn std::error::Error>>;

pub(crate) const BLACK_LINE: RGBColor = RGBColor(0, 0, 0);
pub(crate) const FILL: RGBColor = RGBColor(70, 90, 130);
pub(crate) const GRID: RGBColor = RGBColor(222, 222, 222);
pub(crate) const DIAGONAL: RGBColor = RGBColor(120, 120, 120);
pub(crate) const FONT: &str = "sans-serif";
/// Sizes of text as plotters counts them: 1.24 times those in the picture.
pub(crate) const TEXT: i32 = 16;
pub(crate) const SMALL: i32 = 14;
/// Width of a small and of a large letter over the size of its font, roughly.
pub(crate) const LETTER: f64 = 0.5;
pub(crate) const CAPITAL: f64 = 0.58;
/// Radius of a mark.
pub(crate) const RADIUS: i32 = 5;

pub(crate) fn svg(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&WHITE)
            .map_err(Into::into)
            .and_then(|()| draw(&root))
            .and_then(|()| Ok(root.present()?))
            .expect("a drawing into memory succeeds");
    }
    without_dots(&text)
}

/// The drawing without lines from a place to itself, such as the last dash of a dashed line may be: they show nothing, and what makes pixels
/// of the drawing warns of each.
fn without_dots(svg: &str) -> String {
    let is_dot = |line: &str| {
        let points = line.strip_prefix("<polyline ").and_then(|rest| rest.split("points=\"").nth(1)?.split('"').next());
        points.is_some_and(|points| {
            let mut places = points.split_whitespace();
            let first = places.next();
            places.all(|place| Some(place) == first)
        })
    };
    svg.split_inclusive('\n').filter(|line| !is_dot(line)).collect()
}

/// A text that runs along a line: plotters turns texts by right angles alone. `place` is where its first letter stands.
pub(crate) fn slanted(text: &str, place: (f64, f64), degrees: f64, RGBColor(red, green, blue): RGBColor) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let (x, y, size) = (place.0, place.1, f64::from(SMALL) / 1.24);
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"start\" font-family=\"{FONT}\" font-size=\"{size:.2}\" opacity=\"1\" \
         fill=\"#{red:02X}{green:02X}{blue:02X}\" transform=\"rotate({degrees:.2}, {x:.1}, {y:.1})\">\n{text}\n</text>\n"
    )
}

pub(crate) fn style(size: i32) -> TextStyle<'static> {
    (FONT, size).into_font().color(&BLACK_LINE)
}

pub(crate) fn anchored(size: i32, horizontal: HPos, vertical: VPos) -> TextStyle<'static> {
    style(size).pos(Pos::new(horizontal, vertical))
}

/// How wide a text is, roughly, in pixels.
pub(crate) fn text_width(text: &str, size: i32) -> i32 {
    let letters = text.chars().map(|letter| if letter.is_uppercase() { CAPITAL } else { LETTER });
    (letters.sum::<f64>() * f64::from(size)).ceil() as i32
}

/// The text, or as much of it as fits into `width` pixels.
pub(crate) fn cut(text: &str, width: i32, size: i32) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut shorter: String = text.to_owned();
    while !shorter.is_empty() && text_width(&shorter, size) + size > width {
        shorter.pop();
    }
    shorter.push('\u{2026}');
    shorter
}

/// A range about values, whose ends are 1, 2 or 5 times a power of ten.
pub(crate) fn decades(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
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
pub(crate) fn ticks((low, high): (f64, f64)) -> Vec<f64> {
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let factors: &[f64] = if (high / low).log10() > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all = powers.flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power)));
    all.filter(|tick| *tick >= low * 0.999 && *tick <= high * 1.001).collect()
}

/// A number below one with its first digit: 0.05.
fn small(value: f64) -> String {
    let decimals = (-value.log10() - 1e-9).ceil().max(0.0) as usize;
    format!("{value:.decimals$}")
}

/// 12300 as "12 300".
pub(crate) fn grouped(value: f64) -> String {
    if value > 0.0 && value < 1.0 {
        return small(value);
    }
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

/// A tick of an axis with such steps: with as many decimals as the step has.
pub(crate) fn tick_text(tick: f64, step: f64) -> String {
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    if decimals > 0 {
        format!("{tick:.decimals$}")
    } else if tick >= 1e6 && step >= 1e3 {
        short(tick)
    } else {
        grouped(tick)
    }
}

/// 20000 as "20 k": round numbers alone.
pub(crate) fn magnitude(value: f64) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let found = units.into_iter().find(|(unit, _)| value >= 0.999 * unit);
    let plain = || if value > 0.0 && value < 1.0 { small(value) } else { format!("{value:.0}") };
    found.map_or_else(plain, |(unit, name)| format!("{:.0}\u{a0}{name}", value / unit))
}

/// A frame in pixels, and the range that each side stands for.
pub(crate) struct Frame {
    pub left: i32,
    pub right: i32,
    pub top: i32,
    pub bottom: i32,
    pub x: Axis,
    pub y: Axis,
}

/// The values along a side of a frame.
pub(crate) struct Axis {
    pub range: (f64, f64),
    pub is_logarithmic: bool,
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    pub fn logarithmic(range: (f64, f64)) -> Axis {
        let text = if range.1 >= 1e5 { magnitude } else { grouped };
        let ticks = ticks(range).into_iter().map(|tick| (tick, text(tick))).collect();
        Axis { range, is_logarithmic: true, ticks }
    }

    /// Where a value lies, from 0 to 1.
    pub fn share(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        if self.is_logarithmic { (value / low).ln() / (high / low).ln() } else { (value - low) / (high - low) }
    }
}

impl Frame {
    pub fn x(&self, value: f64) -> i32 {
        self.left + (self.x.share(value) * f64::from(self.right - self.left)).round() as i32
    }

    pub fn y(&self, value: f64) -> i32 {
        self.bottom - (self.y.share(value) * f64::from(self.bottom - self.top)).round() as i32
    }

    /// Draws the frame, its grid, ticks and names of axes.
    pub fn draw(&self, area: &Area<'_>, (x_name, y_name): (&str, &str)) -> Drawn {
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
        if !x_name.is_empty() {
            let below = anchored(size, HPos::Center, VPos::Top);
            area.draw(&Text::new(x_name.to_owned(), (middle.0, self.bottom + 28), below))?;
        }
        if y_name.is_empty() {
            return Ok(());
        }
        let widest = self.y.ticks.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0);
        let beside = self.left - 14 - (widest as f64 * LETTER * f64::from(size)) as i32;
        let upward = anchored(size, HPos::Center, VPos::Bottom).transform(FontTransform::Rotate270);
        area.draw(&Text::new(y_name.to_owned(), (beside, middle.1), upward))?;
        Ok(())
    }
}

pub(crate) fn heading(area: &Area<'_>, title: &str, width: i32) -> Drawn {
    Ok(area.draw(&Text::new(title.to_owned(), (width / 2, 14), anchored(20, HPos::Center, VPos::Top)))?)
}

pub(crate) fn mark(area: &Area<'_>, mark: Mark, at: (i32, i32)) -> Drawn {
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

/// A step of 1, 2 or 5 times a power of ten, so that four to nine steps reach `most`.
pub(crate) fn even_step(most: f64) -> f64 {
    let power = 10_f64.powf(most.log10().floor());
    [0.2, 0.5, 1.0, 2.0].map(|factor| factor * power).into_iter().find(|step| most / step <= 6.0).unwrap_or(2.0 * power)
}

/// Thousands and millions, with three digits.
pub(crate) fn short(value: f64) -> String {
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

    #[test]
    fn lines_without_length_are_left_out() {
        let line = |points: &str| format!("<polyline fill=\"none\" points=\"{points} \"/>\n");
        let (kept, dot) = (line("1,2 1,3"), line("472,338 472,338"));
        assert_eq!(
            without_dots(&format!("<svg>\n{kept}{dot}{}</svg>\n", line("5,5"))),
            format!("<svg>\n{kept}</svg>\n")
        );
    }

    #[test]
    fn large_ticks_are_short() {
        assert_eq!([0.01, 0.1, 0.05].map(magnitude), ["0.01", "0.1", "0.05"]);
        assert_eq!([0.02, 0.5, 1.0].map(grouped), ["0.02", "0.5", "1"]);
        let shown = [500.0, 1e3, 2e4, 5e5, 1e6, 1e9].map(magnitude).map(|text| text.replace('\u{a0}', " "));
        assert_eq!(shown, ["500", "1 k", "20 k", "500 k", "1 M", "1 G"]);
    }
}
