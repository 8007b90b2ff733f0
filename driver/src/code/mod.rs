//! Code that programs run: what is loaded, and how it gets there.

mod cache;
pub mod loader;
pub mod tables;

pub use cache::{CodeCache, NamedText};
