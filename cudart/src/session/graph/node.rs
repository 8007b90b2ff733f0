//! Nodes of graphs and their work.

use crate::abi::copy::Memcpy3DParameters;
use crate::abi::graph::{HostNodeParams, MemsetParams, node_type};
use crate::session::addresses::copy::Copy;
use crate::session::arrays::copy_parameters;
use crate::session::graph::allocation::{self, Allocation};
use crate::session::graph::condition::ConditionalWork;
use crate::session::state::dependency::Dependency;
use crate::session::state::events;
use balar_host::call::{CopyShape, Launch};
use balar_host::{Call, CudaError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its work.
    pub work: Work,
    /// Its dependencies.
    pub dependencies: Vec<Dependency>,
    /// Its number in the graph.
    pub local_id: u32,
    /// Whether it does it.
    pub is_enabled: bool,
}

/// The work of a node.
#[derive(Clone, Debug)]
pub enum Work {
    /// A kernel.
    Kernel(Box<KernelWork>),
    /// A copy.
    Copy(Box<CopyWork>),
    /// A fill: [`Call::Memset`].
    Memset(Box<Call>),
    /// A function of the program.
    Host(HostNodeParams),
    /// Another graph, which belongs to the node.
    Graph(u64),
    /// Other graphs, which belong to the node and run as a condition says.
    Conditional(ConditionalWork),
    /// Nothing.
    Empty,
    /// An event, by its handle.
    EventRecord(u64),
    /// An event, by its handle.
    EventWait(u64),
    /// Device memory.
    Allocate(Arc<Allocation>),
    /// The end of the memory that an allocation node allocated.
    Free(u64),
}

/// A kernel launch.
#[derive(Clone, Debug)]
pub struct KernelWork {
    /// The program's handle of the kernel; `None` if the launch was captured.
    pub name: Option<u64>,
    /// The device that runs it.
    pub device: u32,
    /// The launch.
    pub launch: Launch,
    /// Attributes that the program has set, as C has them.
    pub attributes: BTreeMap<u32, [u64; 8]>,
    /// Addresses of the parameters for programs that ask, as long as those are the same.
    pub shown: Vec<u64>,
}

/// A copy.
#[derive(Clone, Debug)]
pub struct CopyWork {
    /// The copy.
    pub copy: Copy,
    /// The copy as the program described it, if it did.
    pub parameters: Option<Memcpy3DParameters>,
}

impl Work {
    /// The end of memory that a node allocates.
    pub fn free(address: u64) -> Result<Work, CudaError> {
        allocation::find(address).map(|_| Work::Free(address)).ok_or(CudaError::InvalidValue)
    }

    /// A copy as the program says it.
    pub fn copy(parameters: &Memcpy3DParameters) -> Result<Work, CudaError> {
        let copy = copy_parameters::copy_of(parameters)?;
        Ok(Work::Copy(Box::new(CopyWork { copy, parameters: Some(*parameters) })))
    }

    /// A copy as programs ask for it.
    pub fn copy_parameters(&self) -> Result<Memcpy3DParameters, CudaError> {
        match self {
            Work::Copy(work) => Ok(work.parameters.unwrap_or_else(|| copy_parameters::parameters_of(&work.copy))),
            _ => Err(CudaError::InvalidValue),
        }
    }

    /// A function of the program, which must be given.
    pub fn host(parameters: HostNodeParams) -> Result<Work, CudaError> {
        if parameters.function == 0 { Err(CudaError::InvalidValue) } else { Ok(Work::Host(parameters)) }
    }

    /// A function of the program as programs ask for it.
    pub fn host_parameters(&self) -> Result<HostNodeParams, CudaError> {
        if let Work::Host(host) = self { Ok(*host) } else { Err(CudaError::InvalidValue) }
    }

    /// The record of an event, which must be there.
    pub fn event_record(event: u64) -> Result<Work, CudaError> {
        events::number(event).map(|_| Work::EventRecord(event))
    }

    /// The event that is recorded.
    pub fn recorded_event(&self) -> Result<u64, CudaError> {
        if let Work::EventRecord(event) = self { Ok(*event) } else { Err(CudaError::InvalidValue) }
    }

    /// The wait for an event, which must be there.
    pub fn event_wait(event: u64) -> Result<Work, CudaError> {
        events::number(event).map(|_| Work::EventWait(event))
    }

    /// The event that is waited for.
    pub fn awaited_event(&self) -> Result<u64, CudaError> {
        if let Work::EventWait(event) = self { Ok(*event) } else { Err(CudaError::InvalidValue) }
    }

    /// The address of the memory that is freed.
    pub fn freed_address(&self) -> Result<u64, CudaError> {
        if let Work::Free(address) = self { Ok(*address) } else { Err(CudaError::InvalidValue) }
    }

    /// A fill as the program says it.
    pub fn of_memset(parameters: &MemsetParams) -> Result<Work, CudaError> {
        let MemsetParams { destination: pointer, pitch, value, element_bytes, width, height, .. } = *parameters;
        let bytes = width.checked_mul(u64::from(element_bytes)).ok_or(CudaError::InvalidValue)?;
        let is_aligned = |address: u64| address.is_multiple_of(u64::from(element_bytes));
        if pointer == 0 || !matches!(element_bytes, 1 | 2 | 4) || !is_aligned(pointer) || width == 0 || height == 0 {
            return Err(CudaError::InvalidValue);
        }
        if height > 1 && (pitch < bytes || !is_aligned(pitch)) {
            return Err(CudaError::InvalidValue);
        }
        let pitch = if height > 1 { pitch } else { bytes };
        Ok(Work::Memset(Box::new(Call::Memset {
            pointer,
            shape: CopyShape { width: bytes, height, depth: 1 },
            pitch: [pitch, pitch.saturating_mul(height)],
            value,
            element_bytes: element_bytes as u8,
            stream: 0,
            asynchronous: true,
        })))
    }

    /// A fill as programs ask for it.
    pub fn memset_parameters(&self) -> Result<MemsetParams, CudaError> {
        let Work::Memset(call) = self else { return Err(CudaError::InvalidValue) };
        let Call::Memset { pointer, shape, pitch, value, element_bytes, .. } = **call else {
            return Err(CudaError::InvalidValue);
        };
        Ok(MemsetParams {
            destination: pointer,
            pitch: pitch[0],
            value,
            element_bytes: u32::from(element_bytes),
            width: shape.width / u64::from(element_bytes.max(1)),
            height: shape.height * shape.depth,
        })
    }

    /// C's number for the kind of its work.
    pub fn kind(&self) -> u32 {
        match self {
            Work::Kernel(_) => node_type::KERNEL,
            Work::Copy(_) => node_type::MEMCPY,
            Work::Memset(_) => node_type::MEMSET,
            Work::Host(_) => node_type::HOST,
            Work::Graph(_) => node_type::GRAPH,
            Work::Conditional(_) => node_type::CONDITIONAL,
            Work::Empty => node_type::EMPTY,
            Work::EventRecord(_) => node_type::EVENT_RECORD,
            Work::EventWait(_) => node_type::WAIT_EVENT,
            Work::Allocate(_) => node_type::MEM_ALLOC,
            Work::Free(_) => node_type::MEM_FREE,
        }
    }

    /// The graphs that belong to the node.
    pub fn graphs(&self) -> &[u64] {
        match self {
            Work::Graph(child) => std::slice::from_ref(child),
            Work::Conditional(work) => &work.graphs,
            _ => &[],
        }
    }

    /// Can a program have it left out of launches?
    pub fn can_be_disabled(&self) -> bool {
        matches!(self, Work::Kernel(_) | Work::Copy(_) | Work::Memset(_))
    }
}

impl KernelWork {
    /// Address of the addresses of the parameters, which are at these places of the parameter block.
    pub fn show_parameters(&mut self, layout: &[(u32, u32)]) -> u64 {
        let base = self.launch.parameters.as_ptr() as u64;
        self.shown = layout.iter().map(|(offset, _)| base + u64::from(*offset)).collect();
        self.shown.as_ptr() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fill_is_checked_and_given_back_as_it_was() {
        let parameters = MemsetParams {
            destination: 0x7000_0000_0100,
            pitch: 512,
            value: 7,
            element_bytes: 4,
            width: 100,
            height: 3,
        };
        let work = Work::of_memset(&parameters).expect("a fill");
        assert_eq!(work.memset_parameters(), Ok(parameters));
        let wrong = [
            MemsetParams { element_bytes: 3, ..parameters },
            MemsetParams { destination: 0, ..parameters },
            MemsetParams { destination: 0x7000_0000_0102, ..parameters },
            MemsetParams { pitch: 399, ..parameters },
            MemsetParams { width: 0, ..parameters },
        ];
        for wrong in wrong {
            assert!(Work::of_memset(&wrong).is_err(), "{wrong:?}");
        }
    }
}
