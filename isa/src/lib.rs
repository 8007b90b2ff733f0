//! Programs and the meaning of instructions: front ends, control flow, warp state, instruction semantics.
//!
//! **Invariant:** this crate knows no time. An instruction names its pipe and latency class; how many cycles these are is the
//! topology's to say.
//!
//! | folder or file | what it holds |
//! |---|---|
//! | `ptx` | PTX text: lexer, parser, syntax tree, the table of the forms of each opcode |
//! | `module`, `linkage`, `layout` | several texts linked: the meaning of names, the functions that a kernel can reach, the places of variables and frames |
//! | `decode` | from the trees to a `Program`, a kernel with its functions |
//! | `control_flow`, `scheduling`, `allocation`, `convergence` | post-dominators; list scheduling inside basic blocks; liveness and registers; which lanes of a warp are where |
//! | `register_demand` | how many registers the GPU's own assembler would give a thread, which limits occupancy. `isa/tests/registers` has its figures for the workloads |
//! | `interpreter` | the effect of instructions on 32 lanes; compiled twice, portable and with AVX2 and FMA, chosen at run time; `machine` has the instructions of machine code that PTX does not have |
//! | `cluster` | the place of a CTA in its cluster, and addresses in the shared memory of a cluster |
//! | `texture`, `matrix`, `matrix_group` | the texels that a coordinate names, and their weights; which lane holds which element of a matrix |
//! | `program`, `execution`, `location`, `source_lines` | an SM's view of a program; the questions of a step to memory and its messages to the SM; the places of instructions in files |
//! | `fatbin`, `cubin`, `sass`, `machine` | containers; cubins as data; encodings and their text; cubins as modules that run |
//!
//! Each function has a graph and registers of its own. The registers of a function lie behind those of its callers, so that a call saves
//! nothing. Functions that can call each other share a range, and save registers that they need later to the thread's stack. A frame begins
//! with results and arguments, at the same offsets for every function of the same parameters, so that calls through pointers work. The GPU
//! passes them in registers, and accesses to them take no issue slot.
//!
//! A wide (64-bit) and a narrow register never share a row of the register file: the lanes of the two lie at different places, and lanes that have parted
//! would overwrite each other. A register of 128 bits is two wide ones.

// Tests of the crate share a machine with the tests beside it, which know it by its name.
#[cfg(test)]
extern crate self as balar_isa;

mod allocation;
pub mod atomic;
pub mod cluster;
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
mod matrix_group;
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
