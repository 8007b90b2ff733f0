//! Programs and what instructions mean: front ends, control flow, warp state, instruction semantics.
//!
//! **Invariant:** this crate knows no time. An instruction names its pipe and latency class; how many cycles these are is the
//! topology's to say.

// Tests of the crate share a machine with the tests beside it, which know it by its name.
#[cfg(test)]
extern crate self as balar_isa;

mod allocation;
pub mod atomic;
mod control_flow;
mod convergence;
pub mod cubin;
mod decode;
pub mod execution;
pub mod fatbin;
pub mod interpreter;
mod layout;
mod linkage;
mod liveness;
pub mod location;
pub mod machine;
mod matrix;
pub mod mbarrier;
pub mod module;
mod operation;
pub mod program;
pub mod ptx;
mod register_demand;
pub mod sass;
mod scheduling;
pub mod source_lines;
mod system_call;
#[cfg(test)]
mod tests;
pub mod texture;
pub mod warp;
