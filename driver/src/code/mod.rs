//! Code that programs run: what is loaded, and how it gets there.

mod assembler;
mod cache;
mod images;
pub mod loader;
mod module;
pub mod tables;

pub use assembler::{Assembled, Assembler, AssemblyError, CodeChoice, CubinForm};
pub use cache::CodeCache;
pub use images::{NamedCubin, NamedText};
pub use module::{IsaChoice, ModuleSource, PtxOrigin, is_cubin, runs_on};
