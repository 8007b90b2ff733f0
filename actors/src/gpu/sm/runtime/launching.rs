//! Kernels that launch kernels: buffers for parameters, launches, streams, events and errors of the device runtime.
//!
//! A launch is checked here and given to the SM, which sends it to the CTA scheduler (CUDA C++ Programming Guide, "CUDA Dynamic
//! Parallelism").

use super::{read, resolve};
use crate::gpu::sm::lane_memory::{Caller, OwnWrites, SmMemory};
use crate::gpu::sm::warps::device_runtime::FIRST_HANDLE;
use crate::memory::{HEADER_BYTES, LaunchHeader, pack_block, pack_grid, unpack_block, unpack_grid};
use balar_isa::execution::{
    AccessKind, AtomicCompletion, LaneMemory, LaneValues, MemoryAccess, MemoryProblem, SystemArguments, SystemCall,
};
use balar_isa::program::{LANES, lanes};
use balar_protocol::cuda::{FaultCause, KernelLaunch, LaunchId};
use balar_protocol::device_launch::{DeviceKernel, DeviceOperation, DeviceStream, LaunchOrigin};
use balar_protocol::limits::extents_are_legal;
use balar_protocol::residency::L2Policy;
use std::sync::Arc;

/// Kernels that can stand between a kernel and the host (CUDA C++ Programming Guide, "Nesting Depth": 24).
const DEEPEST_NESTING: u32 = 24;

/// Why a launch is refused: the driver's number, and the runtime's that its table makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaunchError {
    /// The value that the driver's functions return.
    pub driver: u32,
    /// `cudaError`.
    pub runtime: u32,
}

/// `cudaErrorInvalidValue`.
const INVALID_VALUE: LaunchError = LaunchError { driver: 1, runtime: 1 };
/// `cudaErrorLaunchMaxDepthExceeded`.
const DEPTH_EXCEEDED: LaunchError = LaunchError { driver: 5, runtime: 65 };
/// `cudaErrorLaunchOutOfResources`.
const OUT_OF_RESOURCES: LaunchError = LaunchError { driver: 6, runtime: 701 };
/// `cudaErrorInvalidConfiguration`.
const INVALID_CONFIGURATION: LaunchError = LaunchError { driver: 7, runtime: 9 };
/// `cudaErrorLaunchPendingCountExceeded`: the error of a thread that gets no buffer, because as many launches wait as may.
pub(crate) const PENDING_EXCEEDED: LaunchError = LaunchError { driver: 12, runtime: 69 };

/// The launch that a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    kernel: u64,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    /// The address of its parameters.
    parameters: u64,
    /// It came by [`SystemCall::ParameterBuffer`], or the like: the buffer is free once it has begun.
    buffer: u64,
    stream: u64,
}

/// A call about launches by the lanes of `mask`, in lane order.
pub(super) fn call<L: OwnWrites>(
    memory: &mut SmMemory<L>,
    call: SystemCall,
    mask: u32,
    arguments: &SystemArguments,
    results: &mut LaneValues,
) -> Result<AtomicCompletion, MemoryProblem> {
    match call {
        SystemCall::ParameterBuffer | SystemCall::SizedParameterBuffer => {
            buffers(memory, call, mask, arguments);
            return Ok(AtomicCompletion::Deferred);
        }
        SystemCall::LaunchBuffer | SystemCall::Launch => {
            let posted = memory.caller.runtime.posted.len();
            let outcome = launches(memory, call, mask, arguments, results);
            if outcome.is_err() {
                // The step is repeated, or the kernel ends: nothing has been launched.
                memory.caller.runtime.posted.truncate(posted);
            }
            outcome?;
        }
        SystemCall::CreateStream | SystemCall::CreateEvent => {
            let cta = cta_number(&memory.caller);
            let mut handles = LaneValues::default();
            for lane in lanes(mask) {
                handles.low[lane] = memory.caller.runtime.new_handle(cta);
                results.low[lane] = 0;
            }
            write(memory, mask, &arguments[0], 8, &handles)?;
        }
        SystemCall::Device => {
            let number = memory.context.gpu() as u64;
            write(memory, mask, &arguments[0], 4, &LaneValues { low: [number; LANES], ..LaneValues::default() })?;
            results.low = [0; LANES];
        }
        _ => {
            for lane in lanes(mask) {
                results.low[lane] = u64::from(of_thread(memory, call, lane, arguments));
            }
        }
    }
    Ok(AtomicCompletion::Now)
}

/// A call that concerns no memory.
fn of_thread<L: OwnWrites>(
    memory: &mut SmMemory<L>,
    call: SystemCall,
    lane: usize,
    arguments: &SystemArguments,
) -> u32 {
    let thread = memory.caller.first_thread + lane as u32;
    let [first, second] = [arguments[0][lane], arguments[1][lane]];
    match call {
        SystemCall::SetLastError => {
            memory.caller.runtime.set_last_error(thread, first as u32);
            first as u32
        }
        SystemCall::LastError => memory.caller.runtime.last_error(thread),
        SystemCall::RecordEvent | SystemCall::WaitEvent => {
            let (event, stream, operation) = match call {
                SystemCall::RecordEvent => (first, second, DeviceOperation::Record(first)),
                _ => (second, first, DeviceOperation::Wait(second)),
            };
            match stream_of(&memory.caller, lane, stream).filter(|_| event >= FIRST_HANDLE) {
                Some(stream) => memory.caller.runtime.posted.push((stream, operation)),
                None => return INVALID_VALUE.driver,
            }
            0
        }
        // Work in a stream runs on, and an event is waited for until it is over.
        _ if first >= FIRST_HANDLE => 0,
        _ => INVALID_VALUE.driver,
    }
}

/// Asks for buffers. A launch that could not be is refused here: its thread gets none, and an error.
fn buffers<L: OwnWrites>(memory: &mut SmMemory<L>, call: SystemCall, mask: u32, arguments: &SystemArguments) {
    let mut wanted = [None; LANES];
    for lane in lanes(mask) {
        let of = |argument: usize| arguments[argument][lane];
        if call == SystemCall::SizedParameterBuffer {
            wanted[lane] = Some((of(1), LaunchHeader::default()));
            continue;
        }
        let extent = |first: usize| [0, 1, 2].map(|axis| of(first + axis) as u32);
        let (kernel, grid, block, shared_bytes) = (of(0), extent(1), extent(4), of(7) as u32);
        match checked(&memory.caller, kernel, grid, block, shared_bytes) {
            Ok(known) => {
                let header = LaunchHeader { kernel, grid: pack_grid(grid), block: pack_block(block, shared_bytes) };
                wanted[lane] = Some((u64::from(known.parameter_bytes), header));
            }
            Err(error) => {
                let thread = memory.caller.first_thread + lane as u32;
                memory.caller.runtime.set_last_error(thread, error.runtime);
            }
        }
    }
    memory.log.log().allocate_launches(memory.time, memory.context, mask, &wanted, memory.token);
}

fn launches<L: OwnWrites>(
    memory: &mut SmMemory<L>,
    call: SystemCall,
    mask: u32,
    arguments: &SystemArguments,
    results: &mut LaneValues,
) -> Result<(), MemoryProblem> {
    for lane in lanes(mask) {
        let of = |argument: usize| arguments[argument][lane];
        let request = if call == SystemCall::LaunchBuffer {
            let header = of(0).wrapping_sub(HEADER_BYTES);
            let mut word = |place: u64| read(memory, lane, header.wrapping_add(8 * place), 8);
            let (kernel, grid, (block, shared_bytes)) = (word(0)?, unpack_grid(word(1)?), unpack_block(word(2)?));
            Request { kernel, grid, block, shared_bytes, parameters: of(0), buffer: of(0), stream: of(1) }
        } else {
            let mut extent = |address: u64| -> Result<[u32; 3], MemoryProblem> {
                let mut axis = |axis: u64| Ok(read(memory, lane, address.wrapping_add(4 * axis), 4)? as u32);
                Ok([axis(0)?, axis(1)?, axis(2)?])
            };
            let (grid, block) = (extent(of(2))?, extent(of(3))?);
            let (kernel, shared_bytes) = (of(0), of(4) as u32);
            Request { kernel, grid, block, shared_bytes, parameters: of(1), buffer: of(1), stream: of(5) }
        };
        results.low[lane] = match launch(memory, lane, &request)? {
            Ok(()) => 0,
            Err(error) => u64::from(error.driver),
        };
    }
    Ok(())
}

/// A launch by one thread.
fn launch<L: OwnWrites>(
    memory: &mut SmMemory<L>,
    lane: usize,
    request: &Request,
) -> Result<Result<(), LaunchError>, MemoryProblem> {
    let &Request { kernel, grid, block, shared_bytes, parameters, buffer, stream } = request;
    let (known, parent) = match (checked(&memory.caller, kernel, grid, block, shared_bytes), memory.caller.launch) {
        (Ok(known), Some(parent)) => (known.clone(), Arc::clone(parent)),
        (Err(error), _) => return Ok(Err(error)),
        (_, None) => return Ok(Err(INVALID_VALUE)),
    };
    if let Some(why) = &known.refusal {
        let cause = FaultCause::Unsupported(format!("launch of kernel {}, which cannot run: {why}", known.name));
        return Err(MemoryProblem::Fault { lane: lane as u8, cause });
    }
    let Some(stream) = stream_of(&memory.caller, lane, stream) else { return Ok(Err(INVALID_VALUE)) };
    let mut block_of_parameters = Vec::with_capacity(known.parameter_bytes as usize);
    for word in 0..u64::from(known.parameter_bytes.div_ceil(4)) {
        // A buffer ends with a whole word.
        let value = read(memory, lane, parameters.wrapping_add(4 * word), 4)? as u32;
        block_of_parameters.extend_from_slice(&value.to_le_bytes());
    }
    block_of_parameters.truncate(known.parameter_bytes as usize);
    let depth = depth_below(&parent);
    let origin = LaunchOrigin { parent: parent.id, kernel: Arc::clone(&parent.name), depth, buffer };
    let launch = KernelLaunch {
        id: LaunchId(0),
        context: parent.context,
        code: known.code,
        name: known.name,
        grid,
        cluster: None,
        block,
        dynamic_shared_bytes: shared_bytes,
        shared_bytes: known.shared_bytes + shared_bytes,
        preferred_carve_out: known.preferred_carve_out,
        registers_per_thread: known.registers_per_thread,
        local_bytes: known.local_bytes,
        parameters: block_of_parameters.into(),
        stream: parent.stream,
        queue: 0,
        priority: parent.priority,
        grid_workspace: 0,
        // The window is that of the parent alone.
        l2_policy: parent.l2_policy.map(|policy| L2Policy { window: None, ..policy }),
        detail: parent.detail,
        is_profiled: parent.is_profiled,
        range: parent.range.clone(),
        origin: Some(Arc::new(origin)),
        device_kernels: Arc::clone(&parent.device_kernels),
    };
    memory.caller.runtime.posted.push((stream, DeviceOperation::Launch(Box::new(launch))));
    Ok(Ok(()))
}

fn depth_below(parent: &KernelLaunch) -> u32 {
    parent.origin.as_ref().map_or(0, |origin| origin.depth) + 1
}

/// The kernel at an address, if it can be launched so.
fn checked<'a>(
    caller: &Caller<'a>,
    address: u64,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
) -> Result<&'a DeviceKernel, LaunchError> {
    let parent = caller.launch.ok_or(INVALID_VALUE)?;
    let kernels = &parent.device_kernels;
    let place = kernels.binary_search_by_key(&address, |kernel| kernel.address).map_err(|_| INVALID_VALUE)?;
    let kernel = &kernels[place];
    if depth_below(parent) > DEEPEST_NESTING {
        return Err(DEPTH_EXCEEDED);
    }
    if kernel.refusal.is_some() {
        return Ok(kernel);
    }
    let threads: u32 = if extents_are_legal(grid, block) { block.iter().product() } else { 0 };
    let is_as_required = kernel.required_block.is_none_or(|required| required == block);
    if threads == 0 || threads > kernel.maximum_threads || !is_as_required {
        return Err(INVALID_CONFIGURATION);
    }
    // Its most threads are not more than its registers allow.
    if shared_bytes > kernel.dynamic_shared_limit {
        return Err(OUT_OF_RESOURCES);
    }
    Ok(kernel)
}

/// The number of the caller's CTA in its grid.
fn cta_number(caller: &Caller) -> u64 {
    let [width, height, _] = caller.launch.map_or([1; 3], |launch| launch.grid).map(u64::from);
    let [x, y, z] = caller.cta.map(u64::from);
    x + width * (y + height * z)
}

/// The stream that a thread means; `None` where it names none.
fn stream_of(caller: &Caller, lane: usize, handle: u64) -> Option<DeviceStream> {
    /// `cudaStreamLegacy`.
    const LEGACY: u64 = 1;
    /// `cudaStreamPerThread`.
    const PER_THREAD: u64 = 2;
    /// `cudaStreamTailLaunch`.
    const TAIL: u64 = 3;
    /// `cudaStreamFireAndForget`.
    const ALONE: u64 = 4;
    Some(match handle {
        0 | LEGACY => DeviceStream::Block(cta_number(caller)),
        PER_THREAD => DeviceStream::Thread(cta_number(caller), caller.first_thread + lane as u32),
        TAIL => DeviceStream::Tail,
        ALONE => DeviceStream::Alone,
        handle if handle >= FIRST_HANDLE => DeviceStream::Named(handle),
        _ => return None,
    })
}

/// Writes to generic addresses of lanes.
fn write<L: OwnWrites>(
    memory: &mut SmMemory<L>,
    mask: u32,
    addresses: &[u64; LANES],
    bytes: u8,
    values: &LaneValues,
) -> Result<(), MemoryProblem> {
    for lane in lanes(mask) {
        let (space, address) = resolve(addresses[lane]);
        let mut access =
            MemoryAccess { space, kind: AccessKind::Store, bytes, mask: 1 << lane, ..MemoryAccess::default() };
        access.addresses[lane] = address;
        memory.store(&access, values)?;
    }
    Ok(())
}
