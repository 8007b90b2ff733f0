//! Copies: both ends, and whose memory they are in when the copy is made.

use crate::session::addresses::ranges::{self, Residence};
use crate::session::connection::host_rows::HostRows;
use crate::session::connection::{description, translation};
use balar_host::call::{CopyEnd, CopyShape};
use balar_host::{CudaError, memory};

/// The largest pitch of a copy, bytes (`cudaDevAttrMaxPitch` of all GPUs).
pub const MOST_PITCH: u64 = i32::MAX as u64;

/// An end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Memory, by the address that the program has: whose it is, its [residence](ranges::residence) says when the copy is made.
    Memory {
        /// Address of the first byte.
        address: u64,
        /// Bytes from a row to the next.
        row_pitch: u64,
        /// Bytes from a slice to the next.
        slice_pitch: u64,
    },
    /// An array.
    Array {
        /// The simulator's number.
        array: u64,
        /// The first byte of a row, row, slice or layer.
        offset: [u64; 3],
    },
}

impl End {
    /// Bytes without gaps.
    pub fn linear(address: u64, bytes: u64) -> End {
        End::Memory { address, row_pitch: bytes, slice_pitch: bytes }
    }
}

/// A copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The destination.
    pub destination: End,
    /// The source.
    pub source: End,
    /// Bytes of a row, rows, slices.
    pub shape: CopyShape,
}

/// An end as the copy sees it.
#[derive(Clone, Debug, PartialEq)]
pub enum Side {
    /// The program's memory.
    Host(HostRows),
    /// An address that the simulator knows.
    Node(CopyEnd),
}

impl Copy {
    /// Bytes without gaps.
    pub fn linear(destination: u64, source: u64, bytes: u64) -> Copy {
        Copy {
            destination: End::linear(destination, bytes),
            source: End::linear(source, bytes),
            shape: CopyShape::linear(bytes),
        }
    }

    /// Refuses ends that reach beyond the last address.
    pub fn check_reach(&self) -> Result<(), CudaError> {
        self.destination.reach(self.shape)?;
        self.source.reach(self.shape).map(|_| ())
    }

    /// Are both ends of devices alone? CUDA does not wait for such copies, whatever the call.
    pub fn is_within_devices(&self) -> bool {
        self.destination.is_of_device() && self.source.is_of_device()
    }

    /// The destination and the source, as far as they lie in memory now: whose memory each is, is looked up once.
    pub fn sides(&self) -> (Side, Side) {
        let (destination, source) = (self.destination.place(self.shape), self.source.place(self.shape));
        (self.side(&self.destination, destination, source), self.side(&self.source, source, destination))
    }

    /// An end that lies there, where the other one lies elsewhere; arrays have no place.
    fn side(&self, end: &End, place: Option<Residence>, other: Option<Residence>) -> Side {
        let shape = self.shape;
        let (address, row_pitch, slice_pitch) = match *end {
            End::Array { array, offset } => return Side::Node(CopyEnd::Array { array, offset }),
            End::Memory { address, row_pitch, slice_pitch } => (address, row_pitch, slice_pitch),
        };
        let rows = HostRows { address, shape, row_pitch, slice_pitch };
        let node = |address| Side::Node(CopyEnd::Memory { address, row_pitch, slice_pitch });
        match place {
            Some(Residence::Pageable) => Side::Host(rows),
            // Two ends in host memory, and the simulator does not see one of them: the host copies.
            Some(Residence::Pinned(_)) if other == Some(Residence::Pageable) => Side::Host(rows),
            Some(Residence::Pinned(address) | Residence::Managed(address)) => node(address),
            Some(Residence::Device(_)) | None => node(address),
        }
    }
}

impl End {
    /// Bytes from the first to the last; none of an array.
    fn reach(&self, shape: CopyShape) -> Result<u64, CudaError> {
        match *self {
            End::Memory { address, row_pitch, slice_pitch } => {
                HostRows { address, shape, row_pitch, slice_pitch }.reach()
            }
            End::Array { .. } => Ok(0),
        }
    }

    /// Refuses rows that reach beyond the last address, or beyond the memory of the device that they begin in.
    pub fn check(&self, shape: CopyShape) -> Result<(), CudaError> {
        let extent = self.reach(shape)?;
        let End::Memory { address, .. } = *self else { return Ok(()) };
        let memory::Place::Device(device) = memory::place_of(address) else { return Ok(()) };
        let own =
            memory::gpu_base(device as usize) + description::device(translation::of_program(device))?.memory_bytes;
        // Behind the memory are addresses that the program reserves.
        let end = if address < own { own } else { ranges::noted_end(address).unwrap_or(own) };
        if address.checked_add(extent).is_some_and(|last| last <= end) { Ok(()) } else { Err(CudaError::InvalidValue) }
    }

    fn is_of_device(&self) -> bool {
        match *self {
            End::Memory { address, .. } => ranges::is_of_device(address),
            End::Array { .. } => true,
        }
    }

    /// Whose memory it is now.
    fn place(&self, shape: CopyShape) -> Option<Residence> {
        let End::Memory { address, row_pitch, slice_pitch } = *self else { return None };
        Some(ranges::residence(address, HostRows { address, shape, row_pitch, slice_pitch }.extent()))
    }
}

/// The address of an end that is one piece of memory.
pub fn linear(end: &CopyEnd, shape: CopyShape) -> Option<u64> {
    match *end {
        CopyEnd::Memory { address, row_pitch, slice_pitch } => {
            HostRows { address, shape, row_pitch, slice_pitch }.is_contiguous().then_some(address)
        }
        CopyEnd::Bytes(_) | CopyEnd::Array { .. } => None,
    }
}

/// The address by which devices know memory that is to be filled, and whether the host sees it.
pub fn address_of_devices(address: u64, shape: CopyShape, pitch: [u64; 2]) -> Result<(u64, bool), CudaError> {
    let rows = HostRows { address, shape, row_pitch: pitch[0], slice_pitch: pitch[1] };
    match ranges::residence(address, rows.reach()?) {
        Residence::Device(_) => Ok((address, false)),
        Residence::Pinned(address) | Residence::Managed(address) => Ok((address, true)),
        Residence::Pageable => Err(CudaError::InvalidValue),
    }
}
