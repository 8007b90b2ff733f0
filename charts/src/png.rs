//! Charts as PNG: the picture of an SVG, drawn as pixels.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// Pixels of a PNG for each unit of the SVG: sharp in print and on dense screens.
const SCALE: f32 = 2.0;

/// Why there is no PNG.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// Text cannot be drawn.
    #[error("this system has no fonts to draw text with (Debian: apt-get install fonts-dejavu-core)")]
    NoFonts,
    /// It is no SVG.
    #[error("the chart is no SVG: {0}")]
    Svg(String),
    /// It is too large, or cannot be packed.
    #[error("the picture cannot be made: {0}")]
    Picture(String),
}

/// The bytes of a PNG file that shows a chart, twice as large. Its fonts are the system's: the same chart may differ between machines.
///
/// # Errors
///
/// Where the system has no fonts, or the text is no SVG.
pub fn png(svg: &str) -> Result<Vec<u8>, PngError> {
    let mut options = Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    let Some(family) = fonts.faces().next().and_then(|face| face.families.first()).map(|family| family.0.clone())
    else {
        return Err(PngError::NoFonts);
    };
    let sans = ["DejaVu Sans", "Liberation Sans", "Noto Sans", "Arial"].into_iter();
    let has = |name: &&str| fonts.faces().any(|face| face.families.iter().any(|family| family.0 == *name));
    let chosen = sans.filter(has).map(str::to_owned).next().unwrap_or(family);
    fonts.set_sans_serif_family(chosen);
    let tree = Tree::from_str(svg, &options).map_err(|error| PngError::Svg(error.to_string()))?;
    let size = tree.size();
    let (width, height) = ((size.width() * SCALE).ceil() as u32, (size.height() * SCALE).ceil() as u32);
    let too_large = || PngError::Picture(format!("{width} x {height} pixels"));
    let mut picture = Pixmap::new(width, height).ok_or_else(too_large)?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut picture.as_mut());
    picture.encode_png().map_err(|error| PngError::Picture(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_drawn_in_its_size() {
        let svg = r##"<svg width="20" height="10" viewBox="0 0 20 10" xmlns="http://www.w3.org/2000/svg"><rect width="20" height="10" fill="#FF0000"/></svg>"##;
        match png(svg) {
            Ok(bytes) => {
                assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
                // Width and height are the first numbers of the header.
                assert_eq!(bytes[16..24], [0, 0, 0, 40, 0, 0, 0, 20]);
                assert!(matches!(png("no svg"), Err(PngError::Svg(_))));
            }
            Err(error) => assert!(matches!(error, PngError::NoFonts), "{error}"),
        }
    }
}
