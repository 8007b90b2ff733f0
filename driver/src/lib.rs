//! The CUDA driver of a simulated node: a state machine from calls to work.
//!
//! A [`Driver`] takes CUDA calls ([`Driver::call`]) and says what becomes of each: a result, an error, or a wait. What it wants done
//! meanwhile (kernels launched, copies begun, memory mapped) it leaves as [`Effect`]s, in order, for whoever has the hardware. It is told
//! when work is over ([`Driver::kernel_completed`], [`Driver::copy_completed`]). It has no clock, no threads and no engine: what a call
//! costs, and when anything happens, is for others to say. Its state is a plain value that serde can write.
//!
//! | folder or file | holds |
//! |---|---|
//! | [`code`] | modules: texts read and linked, variables placed, tables of kernels and variables |
//! | `order` | operations that wait for each other; streams and events, which say for what |
//! | `calls` | which call does what; the other files beside it, one topic each |
//! | `allocator`, `memory`, `virtual_memory` | device memory, pinned and managed memory, reserved addresses and mappings |
//! | `managed` | managed memory where a driver of unified memory moves its pages |
//! | `process` | what a process has of its own, and its end |
//! | `contexts` | what a context of a process on a GPU is: its limits, its failure |
//! | `ipc` | memory and events that processes share |

mod allocator;
mod calls;
pub mod code;
mod contexts;
mod copies;
mod device_kernels;
mod driver;
mod effect;
mod graphs;
mod images;
mod ipc;
mod launch;
mod managed;
mod memory;
mod modules;
mod order;
mod process;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod test_support;
mod virtual_memory;
mod wait;

pub use calls::{Caller, Outcome};
pub use contexts::ContextFailure;
pub use copies::CopyUnderWay;
pub use driver::{Driver, DriverSettings, Issued, OtherNode, State, Totals};
pub use effect::{Effect, MemoryChange};
pub use order::work::{Delivery, OperationNumber};
pub use wait::{Then, Until, Wait};

/// Why a call fails: the error that it returns, and the cause in words.
pub type Failure = (balar_host::CudaError, String);
