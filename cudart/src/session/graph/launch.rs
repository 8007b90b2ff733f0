//! Launches of executable graphs: their nodes as calls.

use crate::abi::graph::instantiate_flags;
use crate::session::addresses::copy::{Copy, Side, address_of_devices, linear};
use crate::session::connection::host_rows::HostRows;
use crate::session::connection::{self, callbacks, transfers};
use crate::session::graph::executable::{EXECUTABLES, Executable, with};
use crate::session::graph::footprint::{self, WantedMemory};
use crate::session::graph::node::Work;
use crate::session::graph::step::{ProgramMemory, Staging, Step};
use crate::session::graph::{allocation, store, user_object};
use crate::session::state::events;
use balar_host::call::{Conditional, CopyEnd, CopyShape, GraphNode};
use balar_host::{Bytes, Call, CallResult, CudaError};
use std::sync::PoisonError;

/// The nodes of a launch.
#[derive(Default)]
struct Lowered {
    nodes: Vec<GraphNode>,
    /// Bytes of the nodes' payloads, in order.
    payloads: Vec<Vec<u8>>,
}

impl Lowered {
    fn push(&mut self, call: Option<Call>, dependencies: Vec<u32>) -> u32 {
        self.nodes.push(GraphNode::of(call, dependencies));
        self.nodes.len() as u32 - 1
    }

    /// A node that has the program's callback thread do something.
    fn push_host(&mut self, function: callbacks::Function, dependencies: Vec<u32>) -> Result<u32, CudaError> {
        let function = callbacks::add(function)?;
        Ok(self.push(Some(Call::HostFunction { stream: 0, function }), dependencies))
    }
}

/// The node of a step that concerns devices alone, as all of those do that conditional nodes have.
fn of_device(step: &Step, dependencies: Vec<u32>) -> Result<GraphNode, CudaError> {
    let call = match &step.work {
        _ if !step.is_enabled => None,
        Work::Kernel(kernel) => Some(Call::Launch(kernel.launch.clone())),
        Work::Memset(call) => Some(for_devices((**call).clone())?),
        Work::Copy(work) => match work.copy.sides() {
            _ if work.copy.shape.bytes() == 0 => None,
            _ if work.copy.check_reach().is_err() => return Err(CudaError::InvalidValue),
            (Side::Node(destination), Side::Node(source)) => Some(copy_within(destination, source, work.copy.shape)),
            _ => return Err(CudaError::NotSupported),
        },
        Work::Conditional(work) => {
            let graphs = step.graphs.iter().map(|graph| {
                graph.iter().map(|step| of_device(step, step.dependencies.clone())).collect::<Result<Vec<_>, _>>()
            });
            let graphs = graphs.collect::<Result<_, _>>()?;
            let conditional = Conditional { kind: work.kind, address: work.condition.handle(), graphs };
            return Ok(GraphNode { call: None, conditional: Some(Box::new(conditional)), dependencies });
        }
        _ => None,
    };
    Ok(GraphNode::of(call, dependencies))
}

/// A copy whose ends devices know.
fn copy_within(destination: CopyEnd, source: CopyEnd, shape: CopyShape) -> Call {
    match (linear(&destination, shape), linear(&source, shape)) {
        (Some(destination), Some(source)) => Call::copy_within(destination, source, shape.bytes(), 0, true),
        _ => Call::Copy { destination, source, shape, transfer: 0, stream: 0, asynchronous: true },
    }
}

/// The conditions of steps that get a value at each launch, with the values.
fn first_values(steps: &[Step], found: &mut Vec<(u64, u32)>) {
    for step in steps {
        if let Work::Conditional(work) = &step.work {
            found.extend(work.condition.first_value.map(|value| (work.condition.handle(), value)));
        }
        step.graphs.iter().for_each(|graph| first_values(graph, found));
    }
}

/// A fill by the address by which devices know the memory: registered memory has one of its own.
fn for_devices(mut call: Call) -> Result<Call, CudaError> {
    if let Call::Memset { pointer, shape, pitch, .. } = &mut call {
        (*pointer, _) = address_of_devices(*pointer, *shape, *pitch)?;
    }
    Ok(call)
}

/// The allocations of a launch.
fn wanted(steps: &[Step]) -> Vec<WantedMemory> {
    let mut wanted: Vec<WantedMemory> = Vec::new();
    for step in steps {
        match &step.work {
            Work::Allocate(memory) => {
                // Allocations one after another may have one address.
                wanted.retain(|other| other.address != memory.address);
                let (address, device, bytes) = (memory.address, memory.device, memory.bytes);
                wanted.push(WantedMemory { address, device, bytes, stays: true });
            }
            Work::Free(address) => {
                wanted.iter_mut().filter(|other| other.address == *address).for_each(|other| other.stays = false);
            }
            _ => {}
        }
    }
    wanted
}

/// Launches an executable graph in a stream of a device.
pub fn launch(handle: u64, device: u32, stream: u32) -> Result<(), CudaError> {
    with(handle, |executable| executable.launch(device, stream))
}

/// Ends an executable graph.
pub fn destroy(handle: u64) -> Result<(), CudaError> {
    let executable = EXECUTABLES.remove(handle).map_err(store::no_such_thing)?;
    let mut executable = executable.lock().unwrap_or_else(PoisonError::into_inner);
    executable.end_launches()?;
    footprint::ended(executable.number);
    for (object, count) in std::mem::take(&mut executable.user_objects) {
        user_object::release(object, count)?;
    }
    Ok(())
}

impl Executable {
    /// Launches the graph in a stream of a device.
    fn launch(&mut self, device: u32, stream: u32) -> Result<(), CudaError> {
        self.allocate()?;
        let lowered = self.lower()?;
        self.come_after_other_streams(device, stream)?;
        let payloads: Vec<&[u8]> = lowered.payloads.iter().map(Vec::as_slice).collect();
        let mut conditions = Vec::new();
        first_values(&self.nodes, &mut conditions);
        let call = Call::GraphLaunch { nodes: lowered.nodes, conditions, stream };
        connection::call_with(device, &call, &payloads, &mut |_, _| {})?;
        self.launched_in = Some((device, stream));
        footprint::launched(self.number, (device, stream), &wanted(&self.nodes));
        Ok(())
    }

    /// The allocations of the graph belong to the program from now on, unless the graph frees them too.
    fn allocate(&self) -> Result<(), CudaError> {
        let frees_first = self.flags & instantiate_flags::AUTO_FREE_ON_LAUNCH != 0;
        for step in &self.nodes {
            match &step.work {
                Work::Allocate(memory) => memory.allocate(frees_first)?,
                Work::Free(address) => allocation::free(*address).unwrap_or(Err(CudaError::InvalidValue))?,
                _ => {}
            }
        }
        Ok(())
    }

    /// A graph runs once at a time: a launch in another stream waits for the last one.
    fn come_after_other_streams(&mut self, device: u32, stream: u32) -> Result<(), CudaError> {
        let Some((last_device, last_stream)) = self.launched_in.filter(|last| *last != (device, stream)) else {
            return Ok(());
        };
        let event = match self.launched {
            Some(event) => event,
            None => {
                let create = Call::EventCreate { timed: false };
                let CallResult::Event(event) = connection::call_on(last_device, &create)? else {
                    return Err(CudaError::Unknown);
                };
                *self.launched.insert(event)
            }
        };
        connection::call_on(last_device, &Call::EventRecord { event, stream: last_stream })?;
        connection::call_on(device, &Call::StreamWaitEvent { stream, event })?;
        Ok(())
    }

    /// Ends the allocations for launches.
    fn end_launches(&mut self) -> Result<(), CudaError> {
        for (_, staging) in std::mem::take(&mut self.staging) {
            connection::call_on(self.device, &Call::FreeHost { pointer: staging.address })?;
        }
        if let Some(event) = self.launched.take() {
            connection::call_on(self.device, &Call::EventDestroy { event })?;
        }
        Ok(())
    }

    fn lower(&mut self) -> Result<Lowered, CudaError> {
        let (reads_host_late, is_read_on_host) = self.host_order();
        let mut lowered = Lowered::default();
        // The node that each step has ended with.
        let mut ends: Vec<u32> = Vec::with_capacity(self.nodes.len());
        for index in 0..self.nodes.len() {
            let Step { work, dependencies, is_enabled, .. } = &self.nodes[index];
            let dependencies = dependencies.iter().map(|step| ends[*step as usize]).collect();
            let end = match work {
                _ if !is_enabled => lowered.push(None, dependencies),
                Work::Kernel(_) | Work::Memset(_) | Work::Conditional(_) => {
                    lowered.nodes.push(of_device(&self.nodes[index], dependencies)?);
                    lowered.nodes.len() as u32 - 1
                }
                Work::Host(host) => lowered.push_host(callbacks::of_program(*host), dependencies)?,
                Work::EventRecord(handle) => {
                    let event = events::number(*handle)?;
                    lowered.push(Some(Call::EventRecord { event, stream: 0 }), dependencies)
                }
                Work::EventWait(handle) => {
                    let event = events::number(*handle)?;
                    lowered.push(Some(Call::StreamWaitEvent { stream: 0, event }), dependencies)
                }
                Work::Empty | Work::Graph(_) | Work::Allocate(_) | Work::Free(_) => lowered.push(None, dependencies),
                Work::Copy(copy) => {
                    let copy = copy.copy;
                    let order = HostOrder { source_is_late: reads_host_late[index], is_read: is_read_on_host[index] };
                    self.lower_copy(index as u32, &copy, order, dependencies, &mut lowered)?
                }
            };
            ends.push(end);
        }
        Ok(lowered)
    }

    /// Which steps come after a step that writes the program's memory, and which come before one that reads it while the graph
    /// runs: those of the first kind cannot read it at the launch, those of the second must have written it when they end.
    fn host_order(&self) -> (Vec<bool>, Vec<bool>) {
        let count = self.nodes.len();
        let (mut after, mut before) = (vec![false; count], vec![false; count]);
        let uses: Vec<ProgramMemory> = self.nodes.iter().map(Step::program_memory).collect();
        for index in 0..count {
            let waits = &self.nodes[index].dependencies;
            after[index] = waits.iter().any(|step| after[*step as usize] || uses[*step as usize].is_written);
        }
        for index in (0..count).rev() {
            if before[index] || uses[index].is_read {
                for step in &self.nodes[index].dependencies {
                    before[*step as usize] = true;
                }
            }
        }
        (after, before)
    }

    fn lower_copy(
        &mut self,
        step: u32,
        copy: &Copy,
        order: HostOrder,
        dependencies: Vec<u32>,
        lowered: &mut Lowered,
    ) -> Result<u32, CudaError> {
        let shape = copy.shape;
        if shape.bytes() == 0 {
            return Ok(lowered.push(None, dependencies));
        }
        copy.check_reach()?;
        let (destination, source) = copy.sides();
        match (destination, source) {
            (Side::Host(destination), Side::Host(source)) => {
                let copy = move || {
                    // The ranges may overlap: the bytes are taken first.
                    let bytes = source.bytes().into_owned();
                    destination.write(0, &bytes);
                };
                lowered.push_host(Box::new(copy), dependencies)
            }
            (Side::Node(destination), Side::Host(source)) if !order.source_is_late => {
                let bytes = source.bytes().into_owned();
                let data = Bytes::absent(bytes.len() as u64);
                lowered.payloads.push(bytes);
                let call = match linear(&destination, shape) {
                    Some(destination) => Call::copy_to_device(destination, data, 0, true),
                    None => {
                        let source = CopyEnd::Bytes(data);
                        Call::Copy { destination, source, shape, transfer: 0, stream: 0, asynchronous: true }
                    }
                };
                Ok(lowered.push(Some(call), dependencies))
            }
            (Side::Node(destination), Side::Host(source)) => {
                let staging = self.staging(step, shape.bytes())?;
                let fill = move || {
                    // SAFETY: pinned memory of this graph alone, as large as the copy.
                    let pages =
                        unsafe { std::slice::from_raw_parts_mut(staging.address as *mut u8, staging.bytes as usize) };
                    let bytes = source.bytes();
                    pages[..bytes.len()].copy_from_slice(&bytes);
                };
                let filled = lowered.push_host(Box::new(fill), dependencies)?;
                let source = staging.rows(copy);
                let call = Call::Copy { destination, source, shape, transfer: 0, stream: 0, asynchronous: true };
                Ok(lowered.push(Some(call), vec![filled]))
            }
            (Side::Host(destination), Side::Node(source)) => {
                if let Some(source) = linear(&source, shape).filter(|_| !order.is_read) {
                    let transfer = transfers::expect(destination);
                    let bytes = shape.bytes();
                    let call = Call::copy_from_device(source, bytes, transfer, 0, true);
                    return Ok(lowered.push(Some(call), dependencies));
                }
                let staging = self.staging(step, shape.bytes())?;
                let call = Call::Copy {
                    destination: staging.rows(copy),
                    source,
                    shape,
                    transfer: 0,
                    stream: 0,
                    asynchronous: true,
                };
                let copied = lowered.push(Some(call), dependencies);
                let HostRows { shape, .. } = destination;
                let empty = move || {
                    // SAFETY: pinned memory of this graph alone, as large as the copy.
                    let pages =
                        unsafe { std::slice::from_raw_parts(staging.address as *const u8, shape.bytes() as usize) };
                    destination.write(0, pages);
                };
                lowered.push_host(Box::new(empty), vec![copied])
            }
            (Side::Node(destination), Side::Node(source)) => {
                Ok(lowered.push(Some(copy_within(destination, source, shape)), dependencies))
            }
        }
    }

    /// Pinned memory of a step.
    fn staging(&mut self, step: u32, bytes: u64) -> Result<Staging, CudaError> {
        if let Some(staging) = self.staging.get(&step) {
            if staging.bytes >= bytes {
                return Ok(*staging);
            }
            connection::call_on(self.device, &Call::FreeHost { pointer: staging.address })?;
            self.staging.remove(&step);
        }
        let CallResult::Pointer(address) = connection::call_on(self.device, &Call::MallocHost { bytes })? else {
            return Err(CudaError::Unknown);
        };
        let staging = Staging { address, bytes };
        self.staging.insert(step, staging);
        Ok(staging)
    }
}

/// How a copy's ends in the program's memory lie among the steps that use that memory.
#[derive(Clone, Copy)]
struct HostOrder {
    /// An earlier step may write the source.
    source_is_late: bool,
    /// A later step may read the destination.
    is_read: bool,
}
