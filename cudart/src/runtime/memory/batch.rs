//! Several copies in one call, and copies with attributes, which are hints that the simulator ignores.

use super::copy::{Direction, copy};
use crate::abi::arguments::{In, Out};
use crate::abi::pool::MemLocation;
use crate::abi::stream::StreamHandle;
use crate::runtime_api;
use crate::session::memory::managed::{self, BatchLocations, RangeBatch};
use crate::session::order::batch;
use balar_host::CudaError;
use std::ffi::c_void;

/// Makes the copies, each as its addresses say; an error comes with the index of the copy that is wrong.
fn copy_all(
    destinations: In<u64>,
    sources: In<u64>,
    sizes: In<usize>,
    count: usize,
    attributes: (In<u8>, In<usize>, usize),
    stream: StreamHandle,
) -> Result<(), (CudaError, usize)> {
    let whole = |error| (error, usize::MAX);
    let (values, firsts, kinds) = attributes;
    batch::check_stream(stream).map_err(whole)?;
    // Each attribute is for the copies from its first one on.
    batch::firsts(firsts, kinds, count).map_err(whole)?;
    if values.is_null() {
        return Err(whole(CudaError::InvalidValue));
    }
    let destinations = destinations.array(count).map_err(whole)?;
    let sources = sources.array(count).map_err(whole)?;
    let sizes = sizes.array(count).map_err(whole)?;
    for (index, ((destination, source), bytes)) in destinations.into_iter().zip(sources).zip(sizes).enumerate() {
        copy(destination, source, bytes, Direction::Default, stream, true).map_err(|error| (error, index))?;
    }
    Ok(())
}

runtime_api! {
    stream fn cudaMemcpyBatchAsync_13(
        destinations: In<u64>,
        sources: In<u64>,
        sizes: In<usize>,
        count: usize,
        attributes: In<u8>,
        firsts: In<usize>,
        kinds: usize,
        stream: StreamHandle,
    ) {
        copy_all(destinations, sources, sizes, count, (attributes, firsts, kinds), stream).map_err(|(error, _)| error)
    }

    stream fn cudaMemcpyBatchAsync_12(
        destinations: In<u64>,
        sources: In<u64>,
        sizes: In<usize>,
        count: usize,
        attributes: In<u8>,
        firsts: In<usize>,
        kinds: usize,
        failed: Out<usize>,
        stream: StreamHandle,
    ) {
        let copied = copy_all(destinations, sources, sizes, count, (attributes, firsts, kinds), stream);
        copied.map_err(|(error, index)| {
            failed.set_if_wanted(index);
            error
        })
    }

    stream fn cudaMemcpyWithAttributesAsync(
        destination: u64,
        source: u64,
        bytes: usize,
        attributes: *const c_void,
        stream: StreamHandle,
    ) {
        if attributes.is_null() {
            return Err(CudaError::InvalidValue);
        }
        copy(destination, source, bytes, Direction::Default, stream, true)
    }

    stream fn cudaMemPrefetchBatchAsync(
        pointers: In<u64>,
        sizes: In<usize>,
        count: usize,
        locations: In<MemLocation>,
        firsts: In<usize>,
        kinds: usize,
        flags: u64,
        stream: StreamHandle,
    ) {
        let to = BatchLocations { locations, firsts, kinds };
        managed::prefetch_batch(RangeBatch { pointers, sizes, count, flags }, to, stream)
    }

    stream fn cudaMemDiscardBatchAsync(
        pointers: In<u64>,
        sizes: In<usize>,
        count: usize,
        flags: u64,
        stream: StreamHandle,
    ) {
        managed::discard_batch(RangeBatch { pointers, sizes, count, flags }, stream)
    }

    stream fn cudaMemDiscardAndPrefetchBatchAsync(
        pointers: In<u64>,
        sizes: In<usize>,
        count: usize,
        locations: In<MemLocation>,
        firsts: In<usize>,
        kinds: usize,
        flags: u64,
        stream: StreamHandle,
    ) {
        let to = BatchLocations { locations, firsts, kinds };
        managed::prefetch_batch(RangeBatch { pointers, sizes, count, flags }, to, stream)
    }
}
