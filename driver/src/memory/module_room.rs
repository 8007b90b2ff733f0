//! Where modules that are loaded get memory from.

use super::allocator::DeviceAllocator;
use super::host_window::HostWindow;
use super::unified::UnifiedMemory;
use crate::code::loader::{ModuleMemory, Room};
use crate::effect::Effects;
use balar_host::call::{AllocationKind, VariableKind};
use balar_protocol::ContextId;
use std::ops::Range;

/// Bytes to whose multiples large allocations are aligned.
const LARGE: u64 = 2 << 20;

/// An allocation of managed memory that begins or ends while modules are loaded and unloaded.
enum ManagedChange {
    Allocated { address: u64, bytes: u64 },
    Freed { address: u64 },
}

/// Memory for the modules of a context.
pub(crate) struct ModuleRoom<'a> {
    context: ContextId,
    device: &'a mut DeviceAllocator,
    window: &'a mut HostWindow,
    unified: &'a UnifiedMemory,
    managed: Vec<ManagedChange>,
    /// Device memory that nobody has any more.
    unused: Vec<Range<u64>>,
}

impl<'a> ModuleRoom<'a> {
    pub(super) fn new(
        context: ContextId,
        device: &'a mut DeviceAllocator,
        window: &'a mut HostWindow,
        unified: &'a UnifiedMemory,
    ) -> ModuleRoom<'a> {
        ModuleRoom { context, device, window, unified, managed: Vec::new(), unused: Vec::new() }
    }

    /// Tells the driver of unified memory about these changes, after the changes that the loader has asked for.
    pub fn tell(self, effects: &mut Effects) {
        self.unused.into_iter().for_each(|range| effects.zero(range));
        for change in self.managed {
            match change {
                ManagedChange::Allocated { address, bytes } => {
                    self.unified.allocated(self.context.process(), address, bytes, effects);
                }
                ManagedChange::Freed { address } => self.unified.freed(address, effects),
            }
        }
    }
}

impl ModuleMemory for ModuleRoom<'_> {
    fn allocate(&mut self, room: Room, bytes: u64, alignment: u64) -> Option<u64> {
        if room == Room::Variable(VariableKind::Managed) {
            // Pages are aligned enough.
            let address = self.window.allocate(AllocationKind::Managed, self.context, bytes).ok()?;
            self.managed.push(ManagedChange::Allocated { address, bytes });
            return Some(address);
        }
        let address = self.device.allocate(self.context.process(), bytes).ok()?;
        if address.is_multiple_of(alignment) {
            return Some(address);
        }
        // Nothing was written there.
        let _unused = self.device.free(address);
        self.device.allocate(self.context.process(), bytes.max(LARGE)).ok()
    }

    fn free(&mut self, address: u64) {
        match self.device.free(address) {
            Some(unused) => self.unused.push(unused),
            None if self.window.free(address) == Some(AllocationKind::Managed) => {
                self.managed.push(ManagedChange::Freed { address });
            }
            None => {}
        }
    }
}
