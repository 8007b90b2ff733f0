//! What a process of the program has of its own: contexts, modules, images, streams and events.

pub(crate) mod context;
pub(crate) mod images;
pub(crate) mod modules;
mod table;

pub(crate) use table::{Process, Processes};
