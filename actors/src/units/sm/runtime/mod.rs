//! Calls of the device runtime: `printf`, `malloc`, `free`, and the end of an assertion that does not hold.

mod format;

use super::Sm;
use super::counters::Stall;
use super::issue::Step;
use super::lane_memory::SmMemory;
use super::warp_slot::Ready;
use crate::device_memory::DeviceMemory;
use balar_isa::execution::{
    AccessKind, AtomicCompletion, LOCAL_WINDOW, LaneMemory, LaneValues, MemoryAccess, MemoryProblem, SHARED_WINDOW,
    Space, SystemArguments, SystemCall, WINDOW_BYTES,
};
use balar_isa::program::{LANES, Timing};
use balar_protocol::cuda::FaultCause;
use format::Arguments;

/// What `vprintf` returns where the format is a null pointer (CUDA C++ Programming Guide, "Formatted Output").
const NO_FORMAT: u64 = -1i32 as u32 as u64;
/// Formats and strings are cut here: no longer record fits the buffer that it goes to.
const PRINTED_TEXT: usize = 1 << 20;
/// Strings of an assertion are cut here: a report stays readable.
const ASSERTION_TEXT: usize = 4096;

impl Sm {
    /// Times a call by these lanes. The GPU's runtime takes its place in a buffer, or a block from the heap, with atomics on words
    /// that all SMs share; a call is counted as one atomic of each lane on such a word, at the start of device memory. The
    /// instructions around it, and the stores of a record, are not modelled.
    pub(super) fn system_call(
        &mut self,
        warp: usize,
        pc: u32,
        timing: &Timing,
        (mask, deferred): (u32, bool),
        cycle: u64,
        step: &mut Step,
    ) {
        let kind = if deferred { AccessKind::Atomic } else { AccessKind::Reduction };
        self.access = MemoryAccess { kind, mask, addresses: [DeviceMemory::BASE; LANES], ..MemoryAccess::default() };
        self.access(warp, pc, timing, deferred, cycle, step);
        if !deferred {
            let latency = u64::from(self.latencies[timing.latency as usize]);
            self.warps[warp].set_ready(timing, Ready::at(cycle + latency, Stall::Wait));
        }
    }
}

/// A call by the lanes of `mask`, in lane order. It has no effect where it gives a problem.
pub(super) fn system_call(
    memory: &mut SmMemory,
    call: SystemCall,
    mask: u32,
    arguments: &SystemArguments,
    results: &mut LaneValues,
) -> Result<AtomicCompletion, MemoryProblem> {
    match call {
        SystemCall::Print => {
            print(memory, mask, arguments, results)?;
            Ok(AtomicCompletion::Now)
        }
        SystemCall::Allocate => {
            memory.log.allocate(memory.time, mask, &arguments[0], memory.token);
            Ok(AtomicCompletion::Deferred)
        }
        SystemCall::Free => {
            // A null pointer is freed without effect.
            let named = (0..32).filter(|&lane| arguments[0][lane] != 0).fold(0, |lanes, lane| lanes | 1 << lane);
            memory.log.release(memory.time, mask & named, &arguments[0], memory.token);
            Ok(AtomicCompletion::Deferred)
        }
        SystemCall::Assert => {
            let lane = mask.trailing_zeros() as usize;
            let mut text = |argument: usize| -> Result<String, MemoryProblem> {
                let mut bytes = Vec::new();
                if arguments[argument][lane] != 0 {
                    Strings { memory, lane }.string(arguments[argument][lane], ASSERTION_TEXT, &mut bytes)?;
                }
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            };
            let (message, file, function) = (text(0)?, text(1)?, text(3)?);
            let line = arguments[2][lane] as u32;
            let cause = FaultCause::AssertionFailed { message, file, line, function };
            Err(MemoryProblem::Fault { lane: lane as u8, cause })
        }
    }
}

/// The records of all lanes are formatted first, so that a value that is not known yet leaves no record behind.
fn print(
    memory: &mut SmMemory,
    mask: u32,
    arguments: &SystemArguments,
    results: &mut LaneValues,
) -> Result<(), MemoryProblem> {
    let mut text = Vec::new();
    let mut ends = [0; 32];
    let mut format = (0, Vec::new());
    for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
        let [format_address, buffer] = [arguments[0][lane], arguments[1][lane]];
        if format_address == 0 {
            results.low[lane] = NO_FORMAT;
        } else {
            // The lanes of a warp have the same format, unless it is written at run time to local memory.
            if format.0 != format_address || resolve(format_address).0 == Space::Local {
                format.1.clear();
                Strings { memory, lane }.string(format_address, PRINTED_TEXT, &mut format.1)?;
                format.0 = format_address;
            }
            let mut values = Buffer { memory, lane, next: buffer };
            results.low[lane] = u64::from(format::print(&format.1, &mut values, &mut text)?);
        }
        ends[lane] = text.len();
    }
    let mut start = 0;
    for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
        if ends[lane] > start {
            memory.log.print(memory.time, &text[start..ends[lane]]);
        }
        start = ends[lane];
    }
    Ok(())
}

/// The space of a generic address, and the address in it.
fn resolve(address: u64) -> (Space, u64) {
    if address.wrapping_sub(SHARED_WINDOW) < WINDOW_BYTES {
        (Space::Shared, address - SHARED_WINDOW)
    } else if address.wrapping_sub(LOCAL_WINDOW) < WINDOW_BYTES {
        (Space::Local, address - LOCAL_WINDOW)
    } else {
        (Space::Global, address)
    }
}

/// Reads 1, 4 or 8 bytes of one lane.
fn read(memory: &mut SmMemory, lane: usize, address: u64, bytes: u8) -> Result<u64, MemoryProblem> {
    let (space, address) = resolve(address);
    let mut access = MemoryAccess { space, kind: AccessKind::Load, bytes, mask: 1 << lane, ..MemoryAccess::default() };
    access.addresses[lane] = address;
    let mut values = LaneValues::default();
    memory.load(&access, &mut values)?;
    Ok(values.low[lane])
}

/// Strings of one lane.
struct Strings<'a, 'b> {
    memory: &'a mut SmMemory<'b>,
    lane: usize,
}

impl Strings<'_, '_> {
    fn string(&mut self, address: u64, limit: usize, to: &mut Vec<u8>) -> Result<(), MemoryProblem> {
        for at in 0..limit as u64 {
            match read(self.memory, self.lane, address.wrapping_add(at), 1)? {
                0 => break,
                byte => to.push(byte as u8),
            }
        }
        Ok(())
    }
}

/// The argument buffer of one lane: each value at the next multiple of its size.
struct Buffer<'a, 'b> {
    memory: &'a mut SmMemory<'b>,
    lane: usize,
    next: u64,
}

impl Arguments for Buffer<'_, '_> {
    type Error = MemoryProblem;

    fn next(&mut self, bytes: u64) -> Result<Option<u64>, MemoryProblem> {
        // A compiler passes no buffer where there are no arguments.
        if self.next == 0 {
            return Ok(None);
        }
        let address = self.next.wrapping_add(bytes - 1) & !(bytes - 1);
        self.next = address.wrapping_add(bytes);
        read(self.memory, self.lane, address, bytes as u8).map(Some)
    }

    fn string(&mut self, address: u64, limit: usize, to: &mut Vec<u8>) -> Result<(), MemoryProblem> {
        Strings { memory: self.memory, lane: self.lane }.string(address, limit.min(PRINTED_TEXT), to)
    }
}
