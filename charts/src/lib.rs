//! Charts as SVG, to be read without colour: shapes, fills and strokes tell series apart.
//!
//! A chart is a plain value, and a function makes an SVG text of it: [`scatter()`], [`bars()`], [`panels()`], [`lines()`]. The same value gives
//! the same text on every machine, so that tests can pin it.

mod bars;
mod frame;
mod labels;
mod lines;
mod panels;
mod scatter;

pub use bars::{Bars, bars};
pub use frame::Mark;
pub use lines::{Line, Lines, Reference, Scale, lines};
pub use panels::{Panel, Panels, panels};
pub use scatter::{Scatter, Series, scatter};
