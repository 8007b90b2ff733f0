//! The rules of CUDA that the driver keeps, one test each; the test plays the GPUs.

mod failures;
mod managed;
mod memory;
mod modules;
mod order;
mod play;
mod processes;
mod virtual_memory;
