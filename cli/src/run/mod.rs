//! Running a CUDA program on the simulated node.

pub mod executable;
