//! How many blocks an SM holds.

use crate::abi::arguments::{In, Out};
use crate::abi::launch::LaunchConfiguration;
use crate::runtime_api;
use crate::session::code::{occupancy, registry};
use balar_host::CudaError;
use std::ffi::c_int;

runtime_api! {
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: Out<c_int>,
        function: usize,
        threads: c_int,
        dynamic_bytes: usize,
    ) {
        blocks.check()?;
        blocks.set(occupancy::active_blocks(&*registry::kernel(function)?, threads, dynamic_bytes, 0)?)
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<c_int>,
        function: usize,
        threads: c_int,
        dynamic_bytes: usize,
        flags: u32,
    ) {
        blocks.check()?;
        blocks.set(occupancy::active_blocks(&*registry::kernel(function)?, threads, dynamic_bytes, flags)?)
    }

    fn cudaOccupancyAvailableDynamicSMemPerBlock(
        bytes: Out<usize>,
        function: usize,
        blocks: c_int,
        threads: c_int,
    ) {
        bytes.check()?;
        bytes.set(occupancy::available_shared_bytes(&*registry::kernel(function)?, blocks, threads)?)
    }

    /// The devices have no clusters of blocks.
    fn cudaOccupancyMaxPotentialClusterSize(
        _blocks: Out<c_int>,
        function: usize,
        _configuration: In<LaunchConfiguration>,
    ) {
        registry::kernel(function)?;
        Err(CudaError::NotSupported)
    }

    /// The devices have no clusters of blocks.
    fn cudaOccupancyMaxActiveClusters(
        _clusters: Out<c_int>,
        function: usize,
        _configuration: In<LaunchConfiguration>,
    ) {
        registry::kernel(function)?;
        Err(CudaError::NotSupported)
    }
}
