//! The driver as a whole: it composes the parts, and leads calls and ends of work to them.

mod calls;
mod ends;
mod graphs;
mod parts;
mod progress;
mod streams;

pub use parts::{Driver, DriverSettings, DriverState, Issued, Totals};

#[cfg(test)]
mod tests;
