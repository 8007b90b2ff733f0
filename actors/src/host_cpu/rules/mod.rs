//! The rules of CUDA that the host keeps, one test each; the test plays the GPUs.

mod memory;
mod modules;
mod order;
mod processes;
mod threads;
mod virtual_memory;
