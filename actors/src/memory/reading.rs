//! What a warp's load reads.

use super::DeviceMemoryView;
use balar_isa::execution::{LaneValues, MemoryAccess};

/// Reads a warp's load from the state at the start of the window. The access must have been checked; most lanes, if not all, lie
/// in the allocation `around`, as (first address, first address after it).
#[inline]
pub(crate) fn read_lanes(
    view: &DeviceMemoryView,
    around: (u64, u64),
    access: &MemoryAccess,
    LaneValues { low, high }: &mut LaneValues,
) {
    match access.bytes {
        4 => read_each(view, around, access, |lane, bytes| low[lane] = u64::from(u32::from_le_bytes(bytes))),
        8 => read_each(view, around, access, |lane, bytes| low[lane] = u64::from_le_bytes(bytes)),
        16 => read_each(view, around, access, |lane, bytes| {
            let value = u128::from_le_bytes(bytes);
            (low[lane], high[lane]) = (value as u64, (value >> 64) as u64);
        }),
        2 => read_each(view, around, access, |lane, bytes| low[lane] = u64::from(u16::from_le_bytes(bytes))),
        _ => read_each(view, around, access, |lane, [byte]| low[lane] = u64::from(byte)),
    }
}

/// Where an allocation lies is found once for all lanes: it is a matter of nanoseconds, in the inner loop of a simulation.
#[inline(always)]
fn read_each<const BYTES: usize>(
    view: &DeviceMemoryView,
    (start, end): (u64, u64),
    access: &MemoryAccess,
    mut set: impl FnMut(usize, [u8; BYTES]),
) {
    if access.mask == 0 {
        return;
    }
    let allocation = view.bytes(start, (end - start) as usize);
    let mut lanes = access.mask;
    while lanes != 0 {
        let lane = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        let address = access.addresses[lane];
        let offset = address.wrapping_sub(start) as usize;
        let near = allocation.get(offset..).and_then(|rest| rest.first_chunk());
        set(lane, near.copied().unwrap_or_else(|| read_elsewhere(view, address)));
    }
}

#[cold]
fn read_elsewhere<const BYTES: usize>(view: &DeviceMemoryView, address: u64) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes.copy_from_slice(view.bytes(address, BYTES));
    bytes
}
