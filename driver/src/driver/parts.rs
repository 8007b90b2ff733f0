//! The driver and its parts: its settings, its state, and the questions that it answers.

use crate::code::CodeChoice;
use crate::code::tables::DriverTables;
use crate::copies::{Copies, CopyUnderWay};
use crate::effect::Effects;
use crate::keys::OperationNumber;
use crate::launch::{Launches, LoadedCode, OtherNode};
use crate::memory::Memory;
use crate::order::Order;
use crate::outcome::Failure;
use crate::process::Processes;
use crate::process::context::ContextFailure;
use crate::wait::Until;
use balar_protocol::copy::CopyId;
use balar_protocol::cuda::{LaunchId, ProgramId};
use balar_protocol::{ContextId, DetailChoice, GpuDescription, ProcessId};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The settings of a driver.
#[derive(Clone, Debug, Default)]
pub struct DriverSettings {
    /// The GPUs, in the order of the topology.
    pub gpus: Vec<GpuDescription>,
    /// The addresses without memory that programs can reserve, by GPU.
    pub reservable: Vec<Range<u64>>,
    /// Whether there is pinned and managed memory.
    pub has_host_window: bool,
    /// Whether a driver of unified memory moves the pages of managed memory.
    pub has_unified_memory: bool,
    /// Operations of a context that are not yet done beyond which a call that adds one waits.
    pub queue_depth: usize,
    /// Which code of modules is loaded.
    pub code: CodeChoice,
    /// Which launches and copies are timed.
    pub detail: DetailChoice,
    /// Nodes that a program could run on instead, with the compute capability of their GPUs: messages name them where an image has no code
    /// for this node's GPU.
    pub other_nodes: &'static [OtherNode],
}

/// The memory that the driver has moved and handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Bytes copied from host to device.
    pub bytes_host_to_device: u64,
    /// Bytes copied from device to host.
    pub bytes_device_to_host: u64,
    /// Bytes copied from a device to another.
    pub bytes_peer: u64,
    /// Bytes of pinned and managed memory, the most at once.
    pub host_window_maximum: u64,
    /// Bytes of one GPU's memory, the most at once.
    pub device_memory_maximum: u64,
}

/// How much work the driver has given to GPUs so far: the number of the next launch, and that of the next copy or fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// See [`LaunchId`](balar_protocol::cuda::LaunchId).
    pub launches: u32,
    /// See [`CopyId`].
    pub copies: u32,
}

/// All that the driver's future depends on, beside the code that is loaded.
#[derive(Debug, Serialize, Deserialize)]
pub struct DriverState {
    pub(super) launches: Launches,
    pub(super) processes: Processes,
    pub(super) memory: Memory,
    pub(super) order: Order,
    pub(super) copies: Copies,
    /// No thread is left to run host functions.
    pub(super) program_ended: bool,
}

/// The CUDA driver of a node.
#[derive(Debug)]
pub struct Driver {
    pub(super) gpus: Vec<GpuDescription>,
    pub(super) detail: DetailChoice,
    pub(super) code: LoadedCode,
    pub(super) state: DriverState,
    pub(super) effects: Effects,
}

impl Driver {
    /// A driver for a node on which nothing but the code of `tables` is loaded.
    pub fn new(settings: DriverSettings, tables: &DriverTables) -> Driver {
        let DriverSettings {
            gpus,
            reservable,
            has_host_window,
            has_unified_memory,
            queue_depth,
            code,
            detail,
            other_nodes,
        } = settings;
        // Where nothing is timed, no pages move.
        let has_unified_memory = has_unified_memory && !detail.times_nothing();
        let state = DriverState {
            launches: Launches::default(),
            processes: Processes::new(gpus.len()),
            memory: Memory::new(&gpus, &reservable, has_host_window, has_unified_memory),
            order: Order::new(queue_depth),
            copies: Copies::default(),
            program_ended: false,
        };
        let compute_capabilities = gpus.iter().map(|gpu| gpu.compute_capability).collect();
        let code = LoadedCode::new(tables, code, compute_capabilities, other_nodes);
        Driver { gpus, detail, code, state, effects: Effects::default() }
    }

    /// Its state: a plain value. Effects must have been taken.
    pub fn state(&self) -> &DriverState {
        &self.state
    }

    /// Goes on from a state that a driver of the same node had. The tables must hold the code that was loaded then, under its numbers.
    ///
    /// # Errors
    ///
    /// The number of a program that is not loaded; the driver is as it was.
    pub fn restore(&mut self, mut state: DriverState) -> Result<(), ProgramId> {
        state.launches.larger_stacks.codes_mut().try_for_each(|code| self.code.complete(code))?;
        state.order.operations.launches_mut().try_for_each(|launch| {
            self.code.complete(&mut launch.code)?;
            let mut kernels = launch.device_kernels.to_vec();
            kernels.iter_mut().try_for_each(|kernel| self.code.complete(&mut kernel.code))?;
            launch.device_kernels = kernels.into();
            Ok(())
        })?;
        self.state = state;
        Ok(())
    }

    /// Is the work that a call waits for over?
    pub fn is_over(&self, until: &Until) -> bool {
        let DriverState { processes, memory, order, .. } = &self.state;
        let operations = &order.operations;
        match until {
            Until::Operations(numbers) => !numbers.iter().any(|&number| operations.is_pending(number)),
            &Until::ContextBefore { context, number } => operations.is_done_before(context, number),
            &Until::ProcessBefore(process, number) => {
                processes.contexts_of(process).all(|context| operations.is_done_before(context, number))
            }
            &Until::QueueRoom(context) => order.free_places(context) > 0,
            Until::EndedProcesses => !processes.has_ended(),
            &Until::Managed(id) => memory.unified.is_over(id),
        }
    }

    /// How many operations can be added to the streams of a context without any call having to wait for room: the one that takes the
    /// last place does.
    pub fn queue_room(&self, context: ContextId) -> usize {
        self.state.order.free_places(context).saturating_sub(1)
    }

    /// Will streams come to host functions?
    pub fn has_functions_to_come(&self) -> bool {
        self.state.order.operations.has_functions_to_come()
    }

    /// The oldest operation that is not yet done, in words.
    pub fn oldest(&self) -> Option<String> {
        self.state.order.operations.oldest()
    }

    /// The last error that a call of a process returned, in words.
    pub fn last_error(&self, process: ProcessId) -> Option<&Failure> {
        self.state.processes.get(process)?.last_error.as_ref()
    }

    /// Why a context has failed: the first one that has failed and was not reset.
    pub fn failure(&self) -> Option<&ContextFailure> {
        self.state.processes.failure()
    }

    /// The contexts of all processes that have made a call.
    pub fn contexts(&self) -> impl Iterator<Item = ContextId> + '_ {
        self.state.processes.contexts()
    }

    /// Is anything under way of a process that has ended?
    pub fn has_ended_processes(&self) -> bool {
        self.state.processes.has_ended()
    }

    /// The number of the next operation that a call asks for.
    pub fn next_operation(&self) -> OperationNumber {
        self.state.order.operations.next()
    }

    /// Is an operation not yet done?
    pub fn is_pending(&self, number: OperationNumber) -> bool {
        self.state.order.operations.is_pending(number)
    }

    /// The operation that a launch is, until it is done.
    pub fn operation_of_launch(&self, launch: LaunchId) -> Option<OperationNumber> {
        self.state.order.operations.of_launch(launch)
    }

    /// The work of a copy engine, by its number.
    pub fn copy_under_way(&self, id: CopyId) -> Option<&CopyUnderWay> {
        self.state.copies.under_way(id)
    }

    /// Bytes of a GPU's memory that are not allocated, and all bytes; 0 for a GPU that does not exist.
    pub fn memory_of_gpu(&self, gpu: usize) -> (u64, u64) {
        self.state.memory.of_gpu(gpu)
    }

    /// How much work it has given to GPUs.
    pub fn issued(&self) -> Issued {
        Issued { launches: self.state.launches.next(), copies: self.state.copies.next() }
    }

    /// The memory that it has moved and handed out.
    pub fn totals(&self) -> Totals {
        let moved = self.state.copies.moved;
        let (host_window_maximum, device_memory_maximum) = self.state.memory.maxima();
        Totals {
            bytes_host_to_device: moved.host_to_device,
            bytes_device_to_host: moved.device_to_host,
            bytes_peer: moved.peer,
            host_window_maximum,
            device_memory_maximum,
        }
    }
}
