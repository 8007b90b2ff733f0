//! A run in POSIX shared memory: the object `/balar-actors.<pid>`, that its owner alone may open.
//!
//! docs/live.md has the layout and the reader's protocol, for programs in other languages. All words are of 8 bytes, in the order of bytes of
//! the machine:
//!
//! ```text
//!   header | descriptors of cells | descriptors of texts | names | cells | texts
//!                                                                └── under the sequence lock ──┘
//! ```
//!
//! The object begins with the header alone; the rest is laid out once, when the run has given its first sample, and stays where it is.
//!
//! **Invariant:** the writer never waits, and a reader changes nothing: it maps the object to read alone.
//! **Invariant:** the object goes with the run: removed by the run, or by its janitor where the run was killed.

mod contents;
mod layout;
mod mapping;
mod reader;
mod sequence;
mod writer;

pub use contents::{Number, contents};
pub use layout::{VERSION, name_of, remove};
pub use reader::{Board, BoardReader, OpenError, running};
pub use writer::SharedBoard;
