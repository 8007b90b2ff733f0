//! Code that programs run, and how it is loaded.
//!
//! From the ground up: the contents of images (`images`), an assembler outside the simulator (`assembler`), the choice of code (`source`,
//! `choice`), code that was linked (`module`) and is kept (`cache`), the tables of loaded code (`tables`), and the loader.

mod assembler;
mod cache;
mod choice;
mod error;
mod images;
pub mod loader;
mod module;
mod source;
pub mod tables;

pub use assembler::{Assembled, Assembler, AssemblyError, CubinForm};
pub use cache::CodeCache;
pub use choice::{CodeChoice, IsaChoice};
pub use images::{NamedCubin, NamedText};
pub use source::{ModuleSource, PtxOrigin, is_cubin, runs_on};
