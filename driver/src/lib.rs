//! The CUDA driver of a simulated node: a state machine from calls to work.
//!
//! A [`Driver`] takes CUDA calls ([`Driver::call`]) and answers each with a result, an error, or a wait. It leaves its orders meanwhile
//! (launch a kernel, begin a copy, map memory) as [`Effect`]s, in order, for the owner of the hardware. It is told when work is over
//! ([`Driver::kernel_completed`], [`Driver::copy_completed`]). It has no clock, no threads and no engine: others decide the cost of a call
//! and the times of events. Its state is a plain value that serde can write.
//!
//! | folder or file | holds |
//! |---|---|
//! | `readable_names` | names in messages |
//! | `keys`, `outcome`, `wait`, [`effect`](Effect) | by what operations are known; who calls, what becomes of a call, what is to be done |
//! | [`code`] | modules: texts read and linked, variables placed, tables of kernels and variables |
//! | `order` | operations that wait for each other; streams, events and graphs, which say for which |
//! | `memory` | device memory, pinned and managed memory, reserved addresses and mappings, memory that processes open of each other |
//! | `process` | the belongings of a process: contexts with their limits and failures, modules, images, streams, events |
//! | `launch` | kernels that programs name, checks of a launch, its contents, the meaning of a fault |
//! | `copies` | copies and fills, and the work of the copy engines |
//! | `driver` | the parts put together: which call goes to which part, how work begins and ends |
//!
//! Each part owns its state; its methods are given the other parts that they need, and no more. A part stands on those above it in this
//! table alone.
//!
//! Streams, events, modules, textures and all other things that a program names by numbers belong to its process, and so do contexts.
//! Memory is one address space: an allocation knows its process, and a kernel of another process faults there unless the allocation was
//! shared (`cudaIpc*`). No two processes have allocations in one page. A process that ends by itself says so, and work that it has begun is
//! done first. The kernels of a process that was killed end at once.
//!
//! A new CUDA call has five places, through which the compiler leads from the first on: its variant of `balar_host::Call`, its row in the
//! table of facts beside it (name, cost, stream, bulk data), its arm in `driver` with the method of the part that does it, the function of
//! cudart's `session` that makes it, and the exported functions in cudart's `runtime` and `driver`. `docs/cuda-api.md` is made from those.

pub mod code;
mod copies;
mod driver;
mod effect;
mod keys;
mod launch;
mod memory;
mod order;
mod outcome;
mod process;
mod readable_names;
#[cfg(test)]
mod test_support;
mod wait;

pub use copies::CopyUnderWay;
pub use driver::{Driver, DriverSettings, DriverState, Issued, Totals};
pub use effect::{Effect, MemoryChange};
pub use keys::OperationNumber;
pub use launch::OtherNode;
pub use order::work::Delivery;
pub use outcome::{Caller, Failure, Outcome};
pub use process::context::ContextFailure;
pub use readable_names::readable_names;
pub use wait::{Then, Until, Wait};
