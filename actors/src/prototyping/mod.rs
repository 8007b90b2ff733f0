//! A kit that makes a new hardware unit short: the parts that every unit between a memory client and a memory server needs.
//!
//! - [`Interposer`]: the decisions of such a unit; [`definition`] makes a kind of unit of it.
//! - [`OutputPort`]: the times when messages leave, so many in a cycle.
//! - [`Numbers`]: requests under way, by number.
//! - [`PassThrough`]: a unit that changes nothing but the time, to compare with.
//! - [`MemoryBench`]: requests and answers for a unit on its own, and the rules that it is held to.
//!
//! `docs/prototyping.md` leads through them. A whole node with the unit in it is run by `balar_experiments::run`.

mod interposer;
mod memory_bench;
mod numbers;
mod output_port;
mod pass_through;

pub use interposer::{Interposed, Interposer, Io, Pace, definition};
pub use memory_bench::{BrokenProtocol, MemoryBench, Played, StateMistake, load, reduction, store};
pub use numbers::Numbers;
pub use output_port::OutputPort;
pub use pass_through::{DEFINITION as PASS_THROUGH, PassThrough, PassThroughCounters, PassThroughParameters};
