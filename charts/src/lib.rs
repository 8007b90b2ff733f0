//! Charts as SVG, to be read without colour: shapes, fills and strokes tell series apart.
//!
//! A chart is a plain value, and a function makes an SVG text of it: [`scatter()`], [`bars()`], [`panels()`], [`lines()`], [`roofline()`],
//! [`stacked()`], [`over_time()`], [`heat_map()`], [`cells()`]. The same value gives the same text on every machine, so that tests can pin it.
//!
//! Each kind of chart has a file. `frame.rs` has axes, ticks and marks, `palette.rs` colours, `labels.rs` where names find room, `rectangle.rs` what they take of it, `png.rs` the same as pixels.

mod bars;
mod frame;
mod heat_map;
mod labels;
mod lines;
mod over_time;
mod palette;
mod panels;
mod png;
mod rectangle;
mod roofline;
mod scatter;
mod stacked;

pub use bars::{Bars, bars};
pub use frame::Mark;
pub use heat_map::{Cells, HeatMap, cells, heat_map, heat_map_columns};
pub use lines::{Line, Lines, Reference, Scale, lines};
pub use over_time::{OverTime, Spans, Steps, over_time};
pub use palette::ramp;
pub use panels::{Panel, Panels, panels};
pub use png::{PngError, png};
pub use roofline::{Rates, Roofline, RooflinePoint, roofline};
pub use scatter::{Scatter, Series, scatter};
pub use stacked::{Stacked, StackedRow, stacked};
