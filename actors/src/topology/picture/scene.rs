//! Boxes, lines and texts at places, and how they become SVG.

use std::fmt::Write;

/// Where a text stands against its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Start,
    Middle,
    End,
}

/// One thing in the picture. A class names how it looks.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Box { left: i32, top: i32, width: i32, height: i32, class: &'static str, tooltip: String, units: String },
    Line { points: Vec<(i32, i32)>, class: &'static str, tooltip: String, units: String },
    Text { x: i32, y: i32, align: Align, class: &'static str, text: String },
}

/// Who says what the shapes look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// The picture itself.
    Own,
    /// The page that it is part of, which finds the units of each shape in its `data-units`.
    OfPage,
}

/// Shapes, the later ones in front. All lengths are pixels.
#[derive(Clone, Debug, Default)]
pub(super) struct Scene {
    pub(super) shapes: Vec<Shape>,
}

/// The picture has a background of its own, so that it reads the same in dark and in light viewers.
const STYLE: &str = "\
text { font-family: 'DejaVu Sans', Verdana, Arial, sans-serif; fill: #22303f; }
.title { font-size: 22px; font-weight: bold; } .subtitle { font-size: 13px; fill: #5a6b7d; }
.name { font-size: 13px; font-weight: bold; } .fact { font-size: 11px; fill: #44566a; }
.gpu-name { font-size: 18px; font-weight: bold; }
.caption { font-size: 12px; font-weight: bold; } .rate { font-size: 11px; fill: #8a3c08; font-weight: bold; }
.latency { font-size: 10px; fill: #5a6b7d; } .inverse { font-size: 12px; font-weight: bold; fill: #ffffff; }
rect { stroke-width: 1.2; } .background { fill: #f5f7fa; stroke: none; }
.package { fill: #dfeadf; stroke: #7d9a80; } .die { fill: #ffffff; stroke: #6b7f95; }
.unit { fill: #eef2f8; stroke: #6b7f95; } .host { fill: #ffffff; stroke: #33507a; stroke-width: 1.6; }
.tick { fill: #c9d5e4; stroke: #6b7f95; stroke-width: 0.6; }
.own { fill: #fdf0dc; stroke: #b7791f; stroke-dasharray: 5 3; }
.cluster { fill: #eaf3ea; stroke: #b5ceb7; stroke-width: 0.8; } .sm { fill: #6fae74; stroke: #48804d; stroke-width: 0.8; }
.bar { fill: #4a6894; stroke: #33507a; } .l2 { fill: #8fb3dc; stroke: #4a6894; stroke-width: 0.8; }
.area { fill: #f4f7fb; stroke: #b9c7d8; stroke-width: 0.8; } .memory { fill: #e3d5ef; stroke: #7c5a9c; }
polyline { fill: none; stroke-linejoin: round; } .wire { stroke: #7b8da1; stroke-width: 1.2; }
.connector { stroke: #b8540f; stroke-width: 2.4; }
";

impl Scene {
    pub(super) fn block(
        &mut self,
        (left, top, width, height): (i32, i32, i32, i32),
        class: &'static str,
        tooltip: &str,
    ) {
        let (tooltip, units) = (tooltip.to_owned(), String::new());
        self.shapes.push(Shape::Box { left, top, width, height, class, tooltip, units });
    }

    /// The shape that was added last stands for these units, whose paths are separated by spaces.
    pub(super) fn stands_for(&mut self, paths: &str) {
        if let Some(Shape::Box { units, .. } | Shape::Line { units, .. }) = self.shapes.last_mut() {
            paths.clone_into(units);
        }
    }

    pub(super) fn line(&mut self, points: &[(i32, i32)], class: &'static str, tooltip: &str) {
        let mut points = points.to_vec();
        points.dedup();
        self.shapes.push(Shape::Line { points, class, tooltip: tooltip.to_owned(), units: String::new() });
    }

    pub(super) fn text(&mut self, (x, y): (i32, i32), align: Align, class: &'static str, text: &str) {
        self.shapes.push(Shape::Text { x, y, align, class, text: text.to_owned() });
    }

    /// A text cut to what fits into `width`.
    pub(super) fn text_within(&mut self, at: (i32, i32), width: i32, align: Align, class: &'static str, text: &str) {
        self.text(at, align, class, &fitted(text, width, class));
    }

    /// Adds the shapes of `other`, moved.
    pub(super) fn append(&mut self, other: Scene, (right, down): (i32, i32)) {
        self.shapes.extend(other.shapes.into_iter().map(|shape| match shape {
            Shape::Box { left, top, width, height, class, tooltip, units } => {
                Shape::Box { left: left + right, top: top + down, width, height, class, tooltip, units }
            }
            Shape::Line { points, class, tooltip, units } => {
                let points = points.iter().map(|(x, y)| (x + right, y + down)).collect();
                Shape::Line { points, class, tooltip, units }
            }
            Shape::Text { x, y, align, class, text } => Shape::Text { x: x + right, y: y + down, align, class, text },
        }));
    }

    /// Left becomes right in a scene of this width.
    pub(super) fn mirror(&mut self, scene_width: i32) {
        for shape in &mut self.shapes {
            match shape {
                Shape::Box { left, width, .. } => *left = scene_width - *left - *width,
                Shape::Line { points, .. } => points.iter_mut().for_each(|(x, _)| *x = scene_width - *x),
                Shape::Text { x, align, .. } => {
                    *x = scene_width - *x;
                    *align = match align {
                        Align::Start => Align::End,
                        Align::Middle => Align::Middle,
                        Align::End => Align::Start,
                    };
                }
            }
        }
    }

    /// The scene as an SVG document: boxes first, then lines, then texts.
    pub(super) fn svg(&self, width: i32, height: i32, name: &str, look: Look) -> String {
        let style = match look {
            Look::Own => format!("<style type=\"text/css\">\n{STYLE}</style>\n"),
            Look::OfPage => String::new(),
        };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\">\n<title>{}</title>\n{style}\
             <rect class=\"background\" x=\"0\" y=\"0\" width=\"{width}\" height=\"{height}\"/>\n",
            escape(name)
        );
        let order = |shape: &&Shape| match shape {
            Shape::Box { .. } => 0,
            Shape::Line { .. } => 1,
            Shape::Text { .. } => 2,
        };
        let mut shapes: Vec<&Shape> = self.shapes.iter().collect();
        shapes.sort_by_key(order);
        for shape in shapes {
            let _ = write_shape(&mut svg, shape, look);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn write_shape(svg: &mut String, shape: &Shape, look: Look) -> std::fmt::Result {
    let marked = |units: &str| match look {
        Look::OfPage if !units.is_empty() => format!(" data-units=\"{}\"", escape(units)),
        _ => String::new(),
    };
    match shape {
        Shape::Box { left, top, width, height, class, tooltip, units } => {
            let round = match *class {
                "package" => 18,
                "die" | "host" => 10,
                "sm" | "l2" => 2,
                "tick" => 1,
                _ => 5,
            };
            let tooltip = escape(tooltip);
            writeln!(
                svg,
                "<rect class=\"{class}\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" \
                 rx=\"{round}\"{}><title>{tooltip}</title></rect>",
                marked(units)
            )
        }
        Shape::Line { points, class, tooltip, units } => {
            let points = points.iter().map(|(x, y)| format!("{x},{y}")).collect::<Vec<_>>().join(" ");
            let tooltip = escape(tooltip);
            let units = marked(units);
            writeln!(svg, "<polyline class=\"{class}\" points=\"{points}\"{units}><title>{tooltip}</title></polyline>")
        }
        Shape::Text { x, y, align, class, text } => {
            let anchor = match align {
                Align::Start => "start",
                Align::Middle => "middle",
                Align::End => "end",
            };
            let text = escape(text);
            writeln!(svg, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>")
        }
    }
}

/// The text, or as much of it as fits into `width` pixels.
fn fitted(text: &str, width: i32, class: &str) -> String {
    // Tenths of a pixel that a character takes on average in the fonts of the style.
    let character = match class {
        "title" => 150,
        "gpu-name" => 125,
        "name" => 90,
        "caption" | "inverse" => 82,
        "rate" => 76,
        "latency" => 60,
        _ => 66,
    };
    let most = (width * 10 / character).max(1) as usize;
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let cut: String = text.chars().take(most - 1).collect();
    format!("{}\u{2026}", cut.trim_end())
}

fn escape(text: &str) -> String {
    // What XML 1.0 cannot hold, not even escaped, is left out.
    let plain = text.chars().filter(|c| !c.is_control());
    plain.collect::<String>().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
