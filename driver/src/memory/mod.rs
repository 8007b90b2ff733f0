//! The memory of the node as the driver hands it out: device memory, pinned and managed memory, reserved addresses and mappings.

mod allocator;
mod devices;
mod host_window;
mod imports;
mod module_room;
mod node_memory;
pub(crate) mod unified;
mod virtual_memory;

pub(crate) use node_memory::Memory;
