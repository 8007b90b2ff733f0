//! The values that a warp's load reads.

use super::access_pattern::AccessPattern;
use super::{Bytes, DeviceMemoryView};
use balar_isa::execution::{LaneValues, MemoryAccess};
use balar_isa::program::LANES;

/// Reads a warp's load from the state at the start of the window. The access must have been checked; most lanes, if not all, lie
/// in the allocation `around`, as (first address, first address after it).
#[inline]
pub(crate) fn read_lanes(
    view: &DeviceMemoryView,
    (start, end): (u64, u64),
    access: &MemoryAccess,
    pattern: AccessPattern,
    values: &mut LaneValues,
) {
    if access.mask == 0 {
        return;
    }
    // Where an allocation lies is found once for all lanes: it is a matter of nanoseconds, in the inner loop of a simulation.
    match view.bytes(start, (end - start) as usize) {
        Bytes::Device(bytes) => read_slice(bytes, start, access, pattern, values, |address, lane| {
            let bytes = view.bytes(address, lane.len());
            bytes.read(0, lane);
        }),
        Bytes::Window(_) => read_shared(view, access, values),
    }
}

/// Reads a warp's load from bytes whose first has the address `start`, and lanes outside them from `elsewhere`, which gets their address.
#[inline(always)]
pub(crate) fn read_slice(
    memory: &[u8],
    start: u64,
    access: &MemoryAccess,
    pattern: AccessPattern,
    LaneValues { low, high }: &mut LaneValues,
    elsewhere: impl Fn(u64, &mut [u8]),
) {
    let lanes = Lanes { memory, start, access, pattern };
    match access.bytes {
        4 => lanes.each(elsewhere, |lane, bytes| low[lane] = u64::from(u32::from_le_bytes(bytes))),
        8 => lanes.each(elsewhere, |lane, bytes| low[lane] = u64::from_le_bytes(bytes)),
        16 => lanes.each(elsewhere, |lane, bytes| {
            let value = u128::from_le_bytes(bytes);
            (low[lane], high[lane]) = (value as u64, (value >> 64) as u64);
        }),
        2 => lanes.each(elsewhere, |lane, bytes| low[lane] = u64::from(u16::from_le_bytes(bytes))),
        _ => lanes.each(elsewhere, |lane, [byte]| low[lane] = u64::from(byte)),
    }
}

#[derive(Clone, Copy)]
struct Lanes<'a> {
    memory: &'a [u8],
    start: u64,
    access: &'a MemoryAccess,
    pattern: AccessPattern,
}

impl Lanes<'_> {
    #[inline(always)]
    fn each<const BYTES: usize>(self, elsewhere: impl Fn(u64, &mut [u8]), mut set: impl FnMut(usize, [u8; BYTES])) {
        let Lanes { memory, start, access, pattern } = self;
        let from = |address: u64| memory.get(address.wrapping_sub(start) as usize..);
        match pattern {
            AccessPattern::Consecutive => {
                if let Some(bytes) = from(access.addresses[0]).and_then(|rest| rest.get(..LANES * BYTES)) {
                    let (chunks, _) = bytes.as_chunks::<BYTES>();
                    for (lane, chunk) in chunks.iter().enumerate() {
                        set(lane, *chunk);
                    }
                    return;
                }
            }
            AccessPattern::Uniform => {
                if let Some(bytes) = from(access.addresses[0]).and_then(|rest| rest.first_chunk()) {
                    for lane in 0..LANES {
                        set(lane, *bytes);
                    }
                    return;
                }
            }
            AccessPattern::Scattered => {}
        }
        let mut lanes = access.mask;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            lanes &= lanes - 1;
            let address = access.addresses[lane];
            let near = from(address).and_then(|rest| rest.first_chunk()).copied();
            set(lane, near.unwrap_or_else(|| far(address, &elsewhere)));
        }
    }
}

#[cold]
fn far<const BYTES: usize>(address: u64, elsewhere: impl Fn(u64, &mut [u8])) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    elsewhere(address, &mut bytes);
    bytes
}

/// Reads from the host window, lane by lane: a warp that waits for the program there reads few bytes at a time.
#[cold]
fn read_shared(view: &DeviceMemoryView, access: &MemoryAccess, values: &mut LaneValues) {
    let length = usize::from(access.bytes);
    for lane in balar_isa::program::lanes(access.mask) {
        let mut bytes = [0; 16];
        view.bytes(access.addresses[lane], length).read(0, &mut bytes[..length]);
        values.set(lane, u128::from_le_bytes(bytes));
    }
}
