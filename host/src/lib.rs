//! What host programs ask of CUDA.
