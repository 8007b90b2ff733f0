//! Code that programs run: what is loaded, and how it gets there.

mod cache;
pub mod loader;
mod module;
pub mod tables;

pub use cache::CodeCache;
pub use module::{IsaChoice, ModuleSource, NamedCubin, NamedText};
