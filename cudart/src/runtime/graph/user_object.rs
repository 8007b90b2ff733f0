//! Objects of the program that graphs keep.

use crate::abi::arguments::Out;
use crate::cuda_api;
use crate::session::graph::{self, user_object};
use balar_host::CudaError;

/// `cudaUserObjectNoDestructorSync`, which must be given.
const NO_DESTRUCTOR_SYNC: u32 = 1;
/// `cudaGraphUserObjectMove`.
const MOVE: u32 = 1;

cuda_api! {
    fn cudaUserObjectCreate(
        object: Out<u64>,
        pointer: u64,
        destructor: Option<user_object::Destructor>,
        references: u32,
        flags: u32,
    ) {
        object.check()?;
        if flags != NO_DESTRUCTOR_SYNC {
            return Err(CudaError::InvalidValue);
        }
        object.set(user_object::create(pointer, destructor.ok_or(CudaError::InvalidValue)?, references)?)
    }

    fn cudaUserObjectRetain(object: u64, count: u32) {
        user_object::retain(object, count)
    }

    fn cudaUserObjectRelease(object: u64, count: u32) {
        user_object::release(object, count)
    }

    fn cudaGraphRetainUserObject(graph: u64, object: u64, count: u32, flags: u32) {
        if flags & !MOVE != 0 || count == 0 {
            return Err(CudaError::InvalidValue);
        }
        graph::with(graph, |_| Ok(()))?;
        // References that are moved are the caller's no longer: none is added.
        if flags & MOVE == 0 {
            user_object::retain(object, count)?;
        }
        graph::with(graph, |graph| {
            *graph.user_objects.entry(object).or_default() += count;
            Ok(())
        })
    }

    fn cudaGraphReleaseUserObject(graph: u64, object: u64, count: u32) {
        graph::with(graph, |graph| {
            let held = graph.user_objects.get_mut(&object).ok_or(CudaError::InvalidValue)?;
            *held = held.checked_sub(count).ok_or(CudaError::InvalidValue)?;
            if *held == 0 {
                graph.user_objects.remove(&object);
            }
            Ok(())
        })?;
        user_object::release(object, count)
    }
}
