//! How many blocks an SM holds.

use crate::abi::arguments::{In, Out};
use crate::abi::launch::LaunchConfiguration;
use crate::runtime_api;
use crate::session::code::{occupancy, registry};
use crate::session::order::launch::configuration_of;
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

    fn cudaOccupancyMaxPotentialClusterSize(
        blocks: Out<c_int>,
        function: usize,
        configuration: In<LaunchConfiguration>,
    ) {
        blocks.check()?;
        let (configuration, _) = configuration_of(&configuration.get()?)?;
        blocks.set(occupancy::largest_cluster(&*registry::kernel(function)?, &configuration)?)
    }

    fn cudaOccupancyMaxActiveClusters(
        clusters: Out<c_int>,
        function: usize,
        configuration: In<LaunchConfiguration>,
    ) {
        clusters.check()?;
        let (configuration, _) = configuration_of(&configuration.get()?)?;
        clusters.set(occupancy::active_clusters(&*registry::kernel(function)?, &configuration)?)
    }
}
