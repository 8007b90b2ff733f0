//! Objects of the program that graphs keep.

use crate::abi::arguments::Out;
use crate::runtime_api;
use crate::session::graph::{graph_objects, user_object};

runtime_api! {
    fn cudaUserObjectCreate(
        object: Out<u64>,
        pointer: u64,
        destructor: Option<user_object::Destructor>,
        references: u32,
        flags: u32,
    ) {
        object.check()?;
        object.set(user_object::create(pointer, destructor, references, flags)?)
    }

    fn cudaUserObjectRetain(object: u64, count: u32) {
        user_object::retain(object, count)
    }

    fn cudaUserObjectRelease(object: u64, count: u32) {
        user_object::release(object, count)
    }

    fn cudaGraphRetainUserObject(graph: u64, object: u64, count: u32, flags: u32) {
        graph_objects::retain_for_graph(graph, object, count, flags)
    }

    fn cudaGraphReleaseUserObject(graph: u64, object: u64, count: u32) {
        graph_objects::release_from_graph(graph, object, count)
    }
}
