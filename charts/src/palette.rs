//! Colours that are told apart by the colour-blind, and ramps that are read without colour.

use plotters::prelude::RGBColor;

/// Colours of Okabe and Ito, distinct to the colour-blind.
pub(crate) const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
    RGBColor(204, 121, 167),
    RGBColor(240, 228, 66),
];
/// The same for lines, the strongest first: yellow is too pale for one.
pub(crate) const LINE_COLOURS: [RGBColor; 7] =
    [COLOURS[0], COLOURS[3], COLOURS[2], COLOURS[5], COLOURS[1], COLOURS[4], RGBColor(0, 0, 0)];
/// The colour of the rest.
pub(crate) const REST: RGBColor = RGBColor(153, 153, 153);
/// From nothing to the most: each step is darker than the one before.
pub(crate) const RAMP: [RGBColor; 9] = [
    RGBColor(238, 243, 250),
    RGBColor(214, 227, 243),
    RGBColor(182, 208, 234),
    RGBColor(143, 184, 222),
    RGBColor(102, 157, 207),
    RGBColor(64, 128, 188),
    RGBColor(35, 99, 165),
    RGBColor(16, 71, 136),
    RGBColor(8, 45, 98),
];

/// The colour of a series.
pub(crate) fn colour(index: usize) -> RGBColor {
    COLOURS[index % COLOURS.len()]
}

/// The colour of text on a colour: nearly black or nearly white. Neither is the ink or the paper, so that a page which exchanges these
/// leaves it.
pub(crate) fn ink_on(RGBColor(red, green, blue): RGBColor) -> RGBColor {
    let light = 0.299 * f64::from(red) + 0.587 * f64::from(green) + 0.114 * f64::from(blue);
    if light > 120.0 { RGBColor(1, 1, 1) } else { RGBColor(254, 254, 254) }
}

/// Which step of the ramp a share of the most has.
pub(crate) fn step(share: f64) -> usize {
    ((share.clamp(0.0, 1.0) * RAMP.len() as f64) as usize).min(RAMP.len() - 1)
}

/// The colour in the notation of SVG, as plotters writes it.
pub(crate) fn hexadecimal(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// The steps of the ramp from nothing to the most, as they stand in charts: a page that has another paper gives them other colours.
pub fn ramp() -> Vec<String> {
    RAMP.map(hexadecimal).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ramp_darkens_step_by_step() {
        let light = |RGBColor(r, g, b): RGBColor| 299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b);
        assert!(RAMP.windows(2).all(|pair| light(pair[0]) > light(pair[1])));
        assert_eq!((step(0.0), step(0.5), step(1.0), step(7.0), step(f64::NAN)), (0, 4, 8, 8, 0));
    }

    #[test]
    fn text_on_a_colour_is_dark_or_light() {
        assert_eq!(ink_on(COLOURS[6]), RGBColor(1, 1, 1));
        assert_eq!(ink_on(COLOURS[0]), RGBColor(254, 254, 254));
        assert_eq!(hexadecimal(COLOURS[1]), "#E69F00");
    }
}
