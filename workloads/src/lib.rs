//! Built-in CUDA workloads: our own CUDA sources, the PTX built from them (`tools/build-workloads`), and the host
//! programs that launch and check them.
