//! The belongings of a process of the program: contexts, modules, images, streams and events.

pub(crate) mod context;
pub(crate) mod images;
pub(crate) mod modules;
mod table;

pub(crate) use table::{Process, Processes};
