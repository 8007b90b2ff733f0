//! A page that reports on a run, or on two side by side: one file of HTML, which asks nobody for anything.
//!
//! A [`Page`] is plain data: sections of tables, charts and pictures. [`Page::html`] makes the text of it. Nothing here knows of runs.
//!
//! ```text
//!   Page ── html.rs ──► markup ─┐
//!   assets/page.css, page.js ───┴─► one text; the same data gives the same bytes
//! ```
//!
//! **Invariants:** texts of users are escaped, wherever they come from; the page reads without its script, which only sorts tables; the
//! values of a chart stand in a table, too.
//!
//! `value.rs` has tables and how numbers are written and compared, `html.rs` markup, `assets/` the style, which gives charts the colours of the page, and the
//! script.

mod html;
mod page;
mod value;

pub use page::{Chart, Page, Part, Picture, RunHead, Section, Status, Tile};
pub use value::{Cell, Column, Format, Row, Table, change, number};
