//! The CUDA runtime library that real programs load.
