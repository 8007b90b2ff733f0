//! Programs and what instructions mean: front ends, control flow, warp state, instruction semantics.
//!
//! **Invariant:** this crate knows no time. An instruction names its pipe and latency class; how many cycles these are is the
//! topology's to say.
//!
//! | folder or file | what it holds |
//! |---|---|
//! | `ptx` | PTX text: lexer, parser, syntax tree, the table of what each opcode accepts |
//! | `module`, `linkage`, `layout` | several texts linked: what names stand for, which functions a kernel can reach, where variables and frames are |
//! | `decode` | from the trees to a `Program`, a kernel with its functions |
//! | `control_flow`, `scheduling`, `allocation`, `convergence` | post-dominators; list scheduling inside basic blocks; liveness and registers; which lanes of a warp are where |
//! | `register_demand` | how many registers the GPU's own assembler would give a thread: what limits occupancy. `isa/tests/registers` has its figures for the workloads |
//! | `interpreter` | what instructions do to 32 lanes; compiled twice, portable and with AVX2 and FMA, chosen at run time; `machine` what machine code does and PTX does not |
//! | `texture`, `matrix` | which texels a coordinate names and what they are worth; which lane holds which element of a matrix |
//! | `program`, `execution`, `location`, `source_lines` | what an SM sees of a program; what a step asks of memory and tells the SM; where an instruction stands |
//! | `fatbin`, `cubin`, `sass`, `machine` | containers; cubins as data; encodings and their text; cubins as modules that run |
//!
//! Each function has a graph and registers of its own. Those of a function lie behind those of its callers, so that a call saves nothing. Functions that can
//! call each other share a range, and save what they need later to the thread's stack. A frame begins with results and arguments, at the same offsets for
//! every function of the same parameters, so that calls through pointers work. The GPU passes them in registers, and accesses to them take no issue slot.
//!
//! A wide (64-bit) and a narrow register never share a row of the register file: the lanes of the two lie at different places, and lanes that have parted
//! would overwrite each other. A register of 128 bits is two wide ones.

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
mod lanes;
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
