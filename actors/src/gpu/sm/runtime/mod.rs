//! The effects of calls of the device runtime: `printf`, `malloc`, `free`, the end of an assertion that does not hold, conditions of
//! graphs; `launching.rs` has kernels that launch kernels.

mod format;
mod launching;

use super::lane_memory::{OwnWrites, SmMemory};
use balar_isa::execution::{
    AccessKind, AtomicCompletion, LOCAL_WINDOW, LaneMemory, LaneValues, MemoryAccess, MemoryProblem, SHARED_WINDOW,
    Space, SystemArguments, SystemCall, WINDOW_BYTES,
};
use balar_isa::program::lanes;
use balar_protocol::cuda::FaultCause;
use format::Arguments;
pub(super) use launching::PENDING_EXCEEDED;

/// The result of `vprintf` where the format is a null pointer (CUDA C++ Programming Guide, "Formatted Output").
const NO_FORMAT: u64 = -1i32 as u32 as u64;
/// Formats and strings are cut here: no longer record fits the buffer that it goes to.
const PRINTED_TEXT: usize = 1 << 20;
/// Strings of an assertion are cut here: a report stays readable.
const ASSERTION_TEXT: usize = 4096;

/// A call by the lanes of `mask`, in lane order. It has no effect where it gives a problem.
pub(super) fn system_call<L: OwnWrites>(
    memory: &mut SmMemory<L>,
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
            memory.log.log().allocate(memory.time, memory.context, mask, &arguments[0], memory.token);
            Ok(AtomicCompletion::Deferred)
        }
        SystemCall::Free => {
            // A null pointer is freed without effect.
            let named = (0..32).filter(|&lane| arguments[0][lane] != 0).fold(0, |lanes, lane| lanes | 1 << lane);
            memory.log.log().release(memory.time, memory.context, mask & named, &arguments[0], memory.token);
            Ok(AtomicCompletion::Deferred)
        }
        SystemCall::SetCondition => {
            let (space, kind) = (Space::Global, AccessKind::Store);
            let access =
                MemoryAccess { space, kind, bytes: 4, mask, addresses: arguments[0], ..MemoryAccess::default() };
            memory.store(&access, &LaneValues { low: arguments[1], ..LaneValues::default() })?;
            Ok(AtomicCompletion::Now)
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
            let cause = FaultCause::AssertionFailed { message, file, line, function, lanes: mask };
            Err(MemoryProblem::Fault { lane: lane as u8, cause })
        }
        call => launching::call(memory, call, mask, arguments, results),
    }
}

/// The records of all lanes are formatted first, so that a value that is not known yet leaves no record behind.
fn print<L: OwnWrites>(
    memory: &mut SmMemory<L>,
    mask: u32,
    arguments: &SystemArguments,
    results: &mut LaneValues,
) -> Result<(), MemoryProblem> {
    let mut text = Vec::new();
    let mut ends = [0; 32];
    let mut format = (0, Vec::new());
    for lane in lanes(mask) {
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
    for lane in lanes(mask) {
        if ends[lane] > start {
            memory.log.log().print(memory.time, memory.context, &text[start..ends[lane]]);
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
fn read<L: OwnWrites>(memory: &mut SmMemory<L>, lane: usize, address: u64, bytes: u8) -> Result<u64, MemoryProblem> {
    let (space, address) = resolve(address);
    let mut access = MemoryAccess { space, kind: AccessKind::Load, bytes, mask: 1 << lane, ..MemoryAccess::default() };
    access.addresses[lane] = address;
    let mut values = LaneValues::default();
    memory.load(&access, &mut values)?;
    Ok(values.low[lane])
}

/// Strings of one lane.
struct Strings<'a, 'b, L: OwnWrites> {
    memory: &'a mut SmMemory<'b, L>,
    lane: usize,
}

impl<L: OwnWrites> Strings<'_, '_, L> {
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
struct Buffer<'a, 'b, L: OwnWrites> {
    memory: &'a mut SmMemory<'b, L>,
    lane: usize,
    next: u64,
}

impl<L: OwnWrites> Arguments for Buffer<'_, '_, L> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::sm::lane_memory::{Caller, RecentRanges};
    use crate::gpu::sm::warps::cluster::ClusterSlot;
    use crate::gpu::sm::warps::device_runtime::DeviceRuntime;
    use crate::memory::{Bounds, DeviceMemory, WriteLog};
    use balar_isa::execution::MOST_ARGUMENTS;
    use balar_isa::program::LANES;
    use balar_protocol::cuda::{FaultAccess, FaultSpace};
    use balar_protocol::{ContextId, SimTime};

    const GLOBAL: u64 = DeviceMemory::BASE;

    /// Makes a call with this shared memory, local memories of 32 bytes, and an allocation of 4096 bytes that begins with a format.
    fn with_memory<R>(log: &mut WriteLog, shared: &mut [u8], call: impl FnOnce(&mut SmMemory) -> R) -> R {
        let device = DeviceMemory::new(1 << 20).expect("1 MiB can be mapped");
        let mut setup = WriteLog::default();
        setup.map(SimTime(0), GLOBAL, 4096, Bounds::Allocations);
        setup.write(SimTime(0), GLOBAL, &b"%s has %d and %s\n\0"[..].into(), 0..18);
        device.apply(&mut setup);
        let view = device.view();
        let (mut recent, mut further, mut local) = (RecentRanges::default(), Vec::new(), Vec::new());
        call(&mut SmMemory {
            view: &view,
            context: ContextId::first(0),
            log,
            time: SimTime(5),
            shared,
            shared_base: 0,
            cluster: &ClusterSlot::default(),
            remote: &mut None,
            sent: &mut None,
            local: &mut local,
            local_bytes: 32,
            recent: &mut recent,
            further: &mut further,
            token: 0,
            blocked_by: None,
            caller: Caller { launch: None, cta: [0; 3], first_thread: 0, runtime: &mut DeviceRuntime::default() },
        })
    }

    /// Writes to a lane's local memory.
    fn write(memory: &mut SmMemory, lane: usize, address: u64, value: u64, bytes: u8) {
        let (space, kind) = (Space::Local, AccessKind::Store);
        let mut access = MemoryAccess { space, kind, bytes, mask: 1 << lane, ..MemoryAccess::default() };
        let mut values = LaneValues::default();
        (access.addresses[lane], values.low[lane]) = (address, value);
        memory.store(&access, &values).expect("the lane has 32 bytes");
    }

    fn arguments(first: impl Fn(u64) -> u64, second: impl Fn(u64) -> u64) -> SystemArguments {
        let lanes = |value: &dyn Fn(u64) -> u64| std::array::from_fn(|lane| value(lane as u64));
        let mut all = [[0; LANES]; MOST_ARGUMENTS];
        (all[0], all[1]) = (lanes(&first), lanes(&second));
        all
    }

    fn printed(log: &mut WriteLog) -> String {
        let device = DeviceMemory::new(1 << 12).expect("a page can be mapped");
        device.apply(log);
        String::from_utf8(device.take_printed(ContextId::first(0)).text).expect("text")
    }

    #[test]
    fn strings_and_values_come_from_every_memory() {
        let mut shared = *b"lane\0...............................................................";
        let mut log = WriteLog::default();
        let mut results = LaneValues::default();
        let call = arguments(|lane| if lane == 2 { 0 } else { GLOBAL }, |_| LOCAL_WINDOW);
        let completion = with_memory(&mut log, &mut shared, |memory| {
            for lane in 0..4 {
                // The buffer: a string in shared memory, a number, a string in the lane's own memory at 24.
                write(memory, lane, 0, SHARED_WINDOW, 8);
                write(memory, lane, 8, lane as u64 * 7, 4);
                write(memory, lane, 16, LOCAL_WINDOW + 24, 8);
                write(memory, lane, 24, u64::from(b'A') + lane as u64, 2);
            }
            system_call(memory, SystemCall::Print, 0b1101, &call, &mut results)
        });
        assert_eq!(completion, Ok(AtomicCompletion::Now));
        // Lane 2 has no format.
        assert_eq!([0, 2, 3].map(|lane| results.low[lane] as u32 as i32), [3, -1, 3]);
        assert_eq!(printed(&mut log), "lane has 0 and A\nlane has 21 and D\n");
    }

    #[test]
    fn a_string_that_leaves_its_memory_is_a_fault_and_prints_nothing() {
        let mut shared = [b'x'; 64];
        let mut log = WriteLog::default();
        let call = arguments(|lane| if lane == 1 { SHARED_WINDOW } else { GLOBAL + 17 }, |_| 0);
        let problem = with_memory(&mut log, &mut shared, |memory| {
            system_call(memory, SystemCall::Print, 0b11, &call, &mut LaneValues::default())
        });
        let cause =
            FaultCause::IllegalAddress { address: 64, bytes: 1, access: FaultAccess::Load, space: FaultSpace::Shared };
        assert_eq!(problem, Err(MemoryProblem::Fault { lane: 1, cause }));
        assert!(log.is_empty());
    }

    #[test]
    fn a_null_pointer_is_freed_without_effect() {
        let mut log = WriteLog::default();
        let call = arguments(|lane| if lane == 3 { GLOBAL + 16 } else { 0 }, |_| 0);
        let completion = with_memory(&mut log, &mut [], |memory| {
            system_call(memory, SystemCall::Free, 0b1011, &call, &mut LaneValues::default())
        });
        assert_eq!(completion, Ok(AtomicCompletion::Deferred));
        let freed = log.atomic_results().next().expect("the frees were logged");
        assert_eq!((freed.mask, freed.first_zero()), (0b1000, Some((3, GLOBAL + 16))));
    }
}
