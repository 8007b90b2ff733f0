//! A program's messages to profilers: which part of it is to be measured.

use crate::session::connection;
use balar_host::call::ProfilerCall;
use balar_host::{Call, CudaError};

/// `cudaProfilerStart`.
pub fn start() -> Result<(), CudaError> {
    connection::done(&Call::Profiler(ProfilerCall::Start))
}

/// `cudaProfilerStop`.
pub fn stop() -> Result<(), CudaError> {
    connection::done(&Call::Profiler(ProfilerCall::Stop))
}
