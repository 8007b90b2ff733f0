//! Atomics and operations on a device heap: read-modify-writes, lane by lane, that return a value to each.

use super::WriteLog;
use crate::memory::LaunchHeader;
use crate::memory::arena::Arena;
use balar_isa::execution::{AtomicFunction, LaneValues, MemoryAccess};
use balar_isa::program::{LANES, lanes};
use balar_protocol::{ContextId, SimTime};
use serde::{Deserialize, Serialize};

/// The operations of a warp's lanes at one time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct LaneOperation {
    function: LaneFunction,
    /// The first of its logged lanes.
    first: u32,
    /// The lanes of the warp that take part.
    mask: u32,
    /// The token by which the unit recognises it.
    pub token: u32,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum LaneFunction {
    /// A read-modify-write of so many bytes of each lane: a value, or a vector of them.
    Atomic { bytes: u8, function: AtomicFunction },
    /// An allocation from the device heap: the operand is the size, the old value the address.
    Allocate { context: ContextId },
    /// A buffer for the parameters of a launch: the operand is their size, the address and the replacement its header, the old value
    /// where it is.
    AllocateLaunch { context: ContextId },
    /// The end of a block of the device heap: the old value is 1 where the address begins a block.
    Release { context: ContextId },
}

/// One lane's part; the low and high halves of its values.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct LoggedLane {
    address: u64,
    /// The operand, and once the log is applied the old value.
    value: [u64; 2],
    replacement: [u64; 2],
}

/// The kind of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggedKind {
    /// An atomic: the old values.
    Atomic,
    /// Allocations from the device heap: the addresses.
    Allocation,
    /// Buffers for the parameters of launches: the addresses.
    LaunchBuffer,
    /// Ends of blocks of the device heap: 1 where the block was live.
    Release,
}

/// The old values an atomic of the last window returned.
pub struct AtomicResult<'a> {
    /// Its kind.
    pub kind: LoggedKind,
    /// The token that the unit gave when it logged the atomic.
    pub token: u32,
    /// Lanes that took part.
    pub mask: u32,
    lanes: &'a [LoggedLane],
}

impl AtomicResult<'_> {
    /// The first lane whose old value is 0, with the address it named.
    pub fn first_zero(&self) -> Option<(u8, u64)> {
        let mut lanes = lanes(self.mask).zip(self.lanes);
        lanes.find(|(_, entry)| entry.value[0] == 0).map(|(lane, entry)| (lane as u8, entry.address))
    }

    /// For buffers of launches: the lanes that wanted one and got none.
    pub fn without_buffer(&self) -> u32 {
        let lanes = lanes(self.mask).zip(self.lanes).filter(|(_, entry)| entry.value == [0, 1]);
        lanes.fold(0, |mask, (lane, _)| mask | 1 << lane)
    }

    /// Spreads the old values over their lanes.
    pub fn values(&self) -> LaneValues {
        let mut values = LaneValues::default();
        for (lane, entry) in lanes(self.mask).zip(self.lanes) {
            [values.low[lane], values.high[lane]] = entry.value;
        }
        values
    }
}

impl WriteLog {
    /// Logs a warp's atomic; after the window its old values come back under `token`.
    pub fn atomic(
        &mut self,
        time: SimTime,
        access: &MemoryAccess,
        function: AtomicFunction,
        operands: &LaneValues,
        replacements: &LaneValues,
        token: u32,
    ) {
        for lane in lanes(access.mask) {
            self.filter.insert(access.addresses[lane], u64::from(access.bytes));
        }
        let function = LaneFunction::Atomic { bytes: access.bytes, function };
        self.push_lanes(time, function, access.mask, token, |lane| {
            let [value, replacement] = [operands, replacements].map(|values| [values.low[lane], values.high[lane]]);
            LoggedLane { address: access.addresses[lane], value, replacement }
        });
    }

    /// Logs allocations from a context's device heap, one for each lane; after the window their addresses come back under `token`.
    pub fn allocate(&mut self, time: SimTime, context: ContextId, mask: u32, sizes: &[u64; LANES], token: u32) {
        let function = LaneFunction::Allocate { context };
        let lane = |lane: usize| LoggedLane { value: [sizes[lane], 0], ..LoggedLane::default() };
        self.push_lanes(time, function, mask, token, lane);
    }

    /// Logs that a warp wants buffers for the parameters of launches, with so many bytes for each lane that wants one; after the window
    /// their addresses come back under `token`.
    pub fn allocate_launches(
        &mut self,
        time: SimTime,
        context: ContextId,
        mask: u32,
        wanted: &[Option<(u64, LaunchHeader)>; LANES],
        token: u32,
    ) {
        let function = LaneFunction::AllocateLaunch { context };
        self.push_lanes(time, function, mask, token, |lane| match wanted[lane] {
            Some((bytes, LaunchHeader { kernel, grid, block })) => {
                LoggedLane { address: kernel, value: [bytes, 1], replacement: [grid, block] }
            }
            None => LoggedLane::default(),
        });
    }

    /// Logs the ends of blocks of a context's device heap, one for each lane.
    pub fn release(&mut self, time: SimTime, context: ContextId, mask: u32, addresses: &[u64; LANES], token: u32) {
        let function = LaneFunction::Release { context };
        let lane = |lane: usize| LoggedLane { address: addresses[lane], ..LoggedLane::default() };
        self.push_lanes(time, function, mask, token, lane);
    }

    fn push_lanes(
        &mut self,
        time: SimTime,
        function: LaneFunction,
        mask: u32,
        token: u32,
        lane: impl Fn(usize) -> LoggedLane,
    ) {
        let first = self.lanes.len() as u32;
        self.lanes.extend(lanes(mask).map(lane));
        self.push(time, LaneOperation { function, first, mask, token });
    }

    /// The old values of the atomics logged in the window before.
    pub fn atomic_results(&self) -> impl Iterator<Item = AtomicResult<'_>> {
        self.entries.iter().filter_map(|entry| {
            let operation = entry.lanes()?;
            let kind = match operation.function {
                LaneFunction::Atomic { .. } => LoggedKind::Atomic,
                LaneFunction::Allocate { .. } => LoggedKind::Allocation,
                LaneFunction::AllocateLaunch { .. } => LoggedKind::LaunchBuffer,
                LaneFunction::Release { .. } => LoggedKind::Release,
            };
            let lanes = &self.lanes[operation.range()];
            Some(AtomicResult { kind, token: operation.token, mask: operation.mask, lanes })
        })
    }
}

impl LaneOperation {
    fn range(&self) -> std::ops::Range<usize> {
        self.first as usize..self.first as usize + self.mask.count_ones() as usize
    }

    /// For an atomic: the address and bytes of each lane's value. Heap operations change no value.
    pub fn written<'a>(&self, lanes: &'a [LoggedLane]) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let (range, bytes) = match self.function {
            LaneFunction::Atomic { bytes, .. } => (self.range(), bytes),
            LaneFunction::Allocate { .. } | LaneFunction::AllocateLaunch { .. } | LaneFunction::Release { .. } => {
                (0..0, 0)
            }
        };
        lanes[range].iter().map(move |lane| (lane.address, u64::from(bytes)))
    }

    pub fn apply(&self, lanes: &mut [LoggedLane], arena: &mut Arena) {
        let lanes = &mut lanes[self.range()];
        match self.function {
            LaneFunction::Atomic { bytes, function } => {
                let whole = |[low, high]: [u64; 2]| u128::from(low) | u128::from(high) << 64;
                for lane in lanes {
                    let Some(memory) = arena.mapping.bytes_mut(lane.address, usize::from(bytes)) else { continue };
                    let (operand, replacement) = (whole(lane.value), whole(lane.replacement));
                    let old = memory.update(|memory| function.update(memory, operand, replacement));
                    lane.value = [old as u64, (old >> 64) as u64];
                }
            }
            LaneFunction::Allocate { context } => {
                lanes.iter_mut().for_each(|lane| lane.value[0] = arena.allocate(context, lane.value[0]));
            }
            LaneFunction::AllocateLaunch { context } => {
                for LoggedLane { address, value, replacement: [grid, block] } in lanes {
                    let header = LaunchHeader { kernel: *address, grid: *grid, block: *block };
                    let [bytes, is_wanted] = *value;
                    let buffer = if is_wanted == 0 { 0 } else { arena.allocate_launch(context, bytes, header) };
                    // A buffer that is not wanted is told apart from one that there is no room for.
                    *value = [buffer, is_wanted];
                }
            }
            LaneFunction::Release { context } => {
                let mut release = |address| u64::from(arena.release(context, address));
                lanes.iter_mut().for_each(|lane| lane.value[0] = release(lane.address));
            }
        }
    }
}
