//! What each CUDA call costs and does.

use super::launch::{LaunchRequest, check_cooperative, validate};
use super::streams::Work;
use super::{HostCpu, State, Wait};
use crate::engine::Outbox;
use balar_host::call::{BUILT_IN_MODULE, CopyShape, Launch};
use balar_host::{Call, CallResult, CudaError};
use balar_protocol::SimTime;
use balar_protocol::copy::{CopyId, CopyOperation, Rows};
use balar_protocol::cuda::{KernelLaunch, LaunchId};
use std::sync::Arc;

/// What the kernels of a cooperative launch find at its grid workspace: its size, and the word of the grid's barrier, zero
/// (`cooperative_groups/details/driver_abi.h` of CUDA 11 and later: two 32-bit words).
const GRID_WORKSPACE: [u8; 8] = [8, 0, 0, 0, 0, 0, 0, 0];

/// What becomes of a call when its host time is over.
enum Outcome {
    Returns(CallResult),
    Waits(Wait),
}

type CallOutcome = Result<Outcome, (CudaError, String)>;

const NOTHING: CallOutcome = Ok(Outcome::Returns(CallResult::None));

impl HostCpu {
    /// When a call made at `now` has done its host part.
    pub(super) fn call_ends(&mut self, now: SimTime, call: &Call) -> SimTime {
        let costs = &self.costs;
        let counters = &mut self.counters;
        let (counter, cycles) = match call {
            Call::Compute { nanoseconds } => return now.saturating_add(SimTime(nanoseconds.saturating_mul(1000))),
            Call::ReadClock => return self.after(now, costs.clock_cost),
            Call::Exit { .. } => return now,
            Call::Malloc { .. } | Call::ArrayCreate { .. } => (&mut counters.calls_memory, costs.malloc_cost),
            Call::Free { .. } | Call::ArrayDestroy { .. } => (&mut counters.calls_memory, costs.free_cost),
            Call::TextureCreate { .. }
            | Call::SurfaceCreate { .. }
            | Call::ImageDestroy { .. }
            | Call::TextureBind { .. }
            | Call::SurfaceBind { .. } => (&mut counters.calls_memory, costs.call_cost),
            Call::Launch(_) => (&mut counters.calls_launch, costs.launch_cost),
            Call::StreamCreate { .. } | Call::StreamDestroy { .. } => (&mut counters.calls_stream, costs.call_cost),
            Call::StreamSynchronize { .. } | Call::DeviceSynchronize => {
                (&mut counters.calls_synchronize, costs.call_cost)
            }
            Call::ArrayWrite { .. }
            | Call::ArrayRead { .. }
            | Call::MemcpyHostToDevice { .. }
            | Call::MemcpyDeviceToHost { .. }
            | Call::MemcpyDeviceToDevice { .. }
            | Call::Memset { .. } => (&mut counters.calls_copy, costs.copy_cost),
            _ => (&mut counters.calls_memory, costs.call_cost),
        };
        *counter += 1;
        counters.calls += 1;
        self.after(now, cycles)
    }

    /// The host part of `call` is over.
    pub(super) fn end_call(&mut self, now: SimTime, call: Call, out: &mut Outbox) {
        let name = call.name();
        if matches!(call, Call::Launch(_)) {
            self.take_printed();
        }
        let outcome = match call {
            Call::Compute { .. } => NOTHING,
            Call::ReadClock => Ok(Outcome::Returns(CallResult::Time { picoseconds: now.picoseconds() })),
            _ if self.sticky.is_some() => Ok(Outcome::Returns(self.sticky_error())),
            call => self.perform(now, call, out),
        };
        self.dispatch(now, out);
        self.state = match outcome {
            Ok(Outcome::Returns(result)) => State::Returning { at: now, result },
            Ok(Outcome::Waits(wait)) if self.is_over(&wait) => {
                self.take_printed();
                if let Wait::DeviceThenFree(address) = wait {
                    self.end_allocation(now, address, out);
                }
                State::Returning { at: now, result: CallResult::None }
            }
            Ok(Outcome::Waits(wait)) => State::Waiting { since: now, call: name, wait },
            Err((error, text)) => {
                self.last_error = Some((error, text));
                State::Returning { at: now, result: CallResult::Error(error) }
            }
        };
    }

    /// The error of the failed context, as a call's result.
    pub(super) fn sticky_error(&mut self) -> CallResult {
        match &self.sticky {
            Some((error, text)) => {
                self.last_error = Some((*error, text.clone()));
                CallResult::Error(*error)
            }
            None => CallResult::None,
        }
    }

    /// An allocation ends, now that nothing uses it.
    pub(super) fn end_allocation(&mut self, now: SimTime, address: u64, out: &mut Outbox) {
        if self.allocator.free(address) {
            out.log.unmap(now, address);
        }
    }

    fn perform(&mut self, now: SimTime, call: Call, out: &mut Outbox) -> CallOutcome {
        match call {
            Call::Malloc { bytes } => self.malloc(now, bytes, out),
            Call::Free { pointer: 0 } => NOTHING,
            Call::Free { pointer } if self.allocator.is_allocation(pointer) => {
                Ok(Outcome::Waits(Wait::DeviceThenFree(pointer)))
            }
            Call::Free { pointer } => {
                Err((CudaError::InvalidDevicePointer, format!("no allocation begins at {pointer:#x}")))
            }
            Call::MemcpyHostToDevice { destination, data, stream, asynchronous } => {
                self.counters.bytes_host_to_device += data.len();
                let data = data.data().cloned().unwrap_or_default();
                let destination = Rows::linear(destination, data.len() as u64);
                self.copy(CopyOperation::HostToDevice { destination, data }, None, stream, asynchronous)
            }
            Call::MemcpyDeviceToHost { source, bytes, transfer, stream, asynchronous } => {
                let transfer = asynchronous.then_some(transfer);
                self.copy(
                    CopyOperation::DeviceToHost { source: Rows::linear(source, bytes) },
                    transfer,
                    stream,
                    asynchronous,
                )
            }
            Call::MemcpyDeviceToDevice { destination, source, bytes, stream, asynchronous } => {
                let [destination, source] = [destination, source].map(|address| Rows::linear(address, bytes));
                self.copy(CopyOperation::DeviceToDevice { destination, source }, None, stream, asynchronous)
            }
            Call::Memset { pointer, value, shape, pitch, element_bytes, stream, asynchronous } => {
                let (CopyShape { width, height, depth }, [row_pitch, slice_pitch]) = (shape, pitch);
                let destination = Rows { address: pointer, width, height, depth, row_pitch, slice_pitch };
                self.copy(CopyOperation::Fill { destination, value, element_bytes }, None, stream, asynchronous)
            }
            Call::Launch(launch) => {
                let Launch { function, grid, block, shared_memory_bytes, stream, parameters, cooperative } = launch;
                let dynamic_shared_bytes = shared_memory_bytes;
                let request = LaunchRequest { grid, block, dynamic_shared_bytes, stream, parameters, cooperative };
                self.launch(now, &function.name, request, out)
            }
            Call::ArrayCreate { description } => self.create_array(now, description, out).map(Outcome::Returns),
            Call::ArrayDestroy { array } => self.destroy_array(array).map(Wait::DeviceThenFree).map(Outcome::Waits),
            Call::ArrayWrite { array, data, stream, asynchronous } => {
                self.counters.bytes_host_to_device += data.len();
                let operation = self.write_array(array, data.data().cloned().unwrap_or_default())?;
                self.copy(operation, None, stream, asynchronous)
            }
            Call::ArrayRead { array, transfer, stream, asynchronous } => {
                let operation = self.read_array(array)?;
                self.copy(operation, asynchronous.then_some(transfer), stream, asynchronous)
            }
            Call::TextureCreate { resource, description } => {
                self.create_texture(now, resource, &description, out).map(Outcome::Returns)
            }
            Call::SurfaceCreate { array } => self.create_surface(now, array, out).map(Outcome::Returns),
            Call::ImageDestroy { object } => self.destroy_object(now, object, out).map(Outcome::Returns),
            Call::TextureBind { module: _, name, resource, description } => {
                self.bind_texture(now, &name, resource, &description, out).map(Outcome::Returns)
            }
            Call::SurfaceBind { module: _, name, array } => {
                self.bind_surface(now, &name, array, out).map(Outcome::Returns)
            }
            Call::StreamCreate { .. } => Ok(Outcome::Returns(CallResult::Stream(self.streams.create()))),
            Call::StreamDestroy { stream } if self.streams.destroy(stream) => NOTHING,
            Call::StreamDestroy { stream } => Err(no_stream(stream)),
            Call::StreamSynchronize { stream } => {
                self.check_stream(stream)?;
                Ok(Outcome::Waits(Wait::Stream(stream)))
            }
            Call::DeviceSynchronize => Ok(Outcome::Waits(Wait::Device)),
            Call::Compute { .. } | Call::ReadClock | Call::Exit { .. } => NOTHING,
            other => Err((CudaError::NotSupported, format!("{} is not modelled", other.name()))),
        }
    }

    fn malloc(&mut self, now: SimTime, bytes: u64, out: &mut Outbox) -> CallOutcome {
        if bytes == 0 {
            return Ok(Outcome::Returns(CallResult::Pointer(0)));
        }
        let address =
            self.allocator.allocate(bytes).map_err(|error| (CudaError::MemoryAllocation, error.to_string()))?;
        out.log.map(now, address, bytes);
        self.counters.device_memory_maximum = self.counters.device_memory_maximum.max(self.allocator.reserved());
        Ok(Outcome::Returns(CallResult::Pointer(address)))
    }

    fn copy(
        &mut self,
        operation: CopyOperation,
        transfer: Option<u32>,
        stream: u32,
        asynchronous: bool,
    ) -> CallOutcome {
        self.check_stream(stream)?;
        let bytes = operation.bytes();
        if bytes > 0 {
            for rows in operation.destination().into_iter().chain(operation.source()) {
                let span = rows.span().unwrap_or(u64::MAX);
                if !self.allocator.contains(rows.address, span) {
                    let text = format!("{span} bytes at {:#x} are not inside one allocation", rows.address);
                    return Err((CudaError::InvalidValue, text));
                }
            }
        }
        let id = CopyId(self.next_copy);
        self.next_copy += 1;
        let number = self.streams.push(stream, Work::Copy { id, operation, transfer });
        if asynchronous { NOTHING } else { Ok(Outcome::Waits(Wait::Operation { stream, number })) }
    }

    fn launch(&mut self, now: SimTime, kernel: &Arc<str>, request: LaunchRequest, out: &mut Outbox) -> CallOutcome {
        let (stream, cooperative) = (request.stream, request.cooperative);
        self.check_stream(stream)?;
        let Some(kernel) = self.kernels.find(0, BUILT_IN_MODULE, kernel) else {
            return Err((CudaError::InvalidDeviceFunction, format!("no kernel named {kernel} is loaded")));
        };
        let kernel = kernel.map_err(|why| (CudaError::NotSupported, why.to_string()))?;
        let mut launch = validate(&kernel, request, LaunchId(self.next_launch), self.compute_capability)?;
        if cooperative {
            self.begin_cooperative(now, &mut launch, out)?;
        }
        self.next_launch += 1;
        self.streams.push(stream, Work::Kernel(Arc::new(launch)));
        if self.is_over(&Wait::QueueRoom) { NOTHING } else { Ok(Outcome::Waits(Wait::QueueRoom)) }
    }

    /// Checks that the blocks of a cooperative launch can run at once, and gives it a grid workspace.
    fn begin_cooperative(
        &mut self,
        now: SimTime,
        launch: &mut KernelLaunch,
        out: &mut Outbox,
    ) -> Result<(), (CudaError, String)> {
        if let Some(gpu) = &self.gpu {
            check_cooperative(launch, gpu)?;
        }
        let bytes = GRID_WORKSPACE.len() as u64;
        let address =
            self.allocator.allocate(bytes).map_err(|error| (CudaError::MemoryAllocation, error.to_string()))?;
        out.log.map(now, address, bytes);
        out.log.write(now, address, &GRID_WORKSPACE.into(), 0..GRID_WORKSPACE.len());
        launch.grid_workspace = address;
        Ok(())
    }

    fn check_stream(&self, stream: u32) -> Result<(), (CudaError, String)> {
        if self.streams.exists(stream) { Ok(()) } else { Err(no_stream(stream)) }
    }
}

fn no_stream(stream: u32) -> (CudaError, String) {
    (CudaError::InvalidResourceHandle, format!("there is no stream {stream}"))
}
