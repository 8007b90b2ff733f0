//! Studies: simulated beside measured.
//!
//! A [`Study`] has parts. Each part names the runs that it needs ([`Point`](runs::Point)) and makes tables, charts and comparisons of their
//! figures. Another study is a file with a [`Study`], and a line in [`STUDIES`].
//!
//! `study.rs` says what a study is, `runs.rs` makes many runs at a time, `report.rs` has tables and comparisons, `agreement.rs` how well columns agree, `side_by_side.rs` rows with a reference each,
//! `recorded.rs` the tables of `validation/`, `programs.rs` programs of the user's, `instruction_mix.rs` classes of instructions; `balar`, `unified_memory`, `ldms`, `roofline`,
//! `volta` and `hardware` are the studies.

pub mod agreement;
pub mod balar;
pub mod hardware;
pub mod instruction_mix;
pub mod ldms;
pub mod programs;
mod recorded;
pub mod report;
pub mod roofline;
pub mod runs;
mod side_by_side;
mod study;
pub mod unified_memory;
pub mod volta;

pub use study::{PartDescription, Selection, Study};

/// All studies.
pub const STUDIES: &[&Study] =
    &[&balar::STUDY, &unified_memory::STUDY, &ldms::STUDY, &roofline::STUDY, &volta::STUDY, &hardware::STUDY];
