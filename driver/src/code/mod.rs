//! Code that programs run, and how it is loaded.
//!
//! From the ground up: what images hold (`images`), an assembler that somebody brings (`assembler`), which code is chosen (`source`,
//! `choice`) and which a user gives instead (`replacement`), code that was linked (`module`) and is kept (`cache`), the tables of what is loaded (`tables`), and the loader.

mod assembler;
mod cache;
mod choice;
mod error;
mod images;
pub mod loader;
mod module;
mod replacement;
mod source;
pub mod tables;

pub use assembler::{Assembled, Assembler, AssemblyError, CubinForm};
pub use cache::CodeCache;
pub use choice::{CodeChoice, IsaChoice};
pub use images::{NamedCubin, NamedText};
pub use replacement::Replacement;
pub use source::{ModuleSource, PtxOrigin, is_cubin, runs_on};
