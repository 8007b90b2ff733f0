//! Operations of streams: what a stream does in its order, at once or as a node of a graph.

use super::stream;
use super::{capture, connection, devices, process, ranges, staging};
use crate::abi::stream::StreamHandle;
use balar_host::call::{CopyEnd, CopyShape};
use balar_host::{Bytes, Call, CallResult, CudaError, memory};
use std::borrow::Cow;

/// Rows in the program's own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRows {
    /// Address of the first byte.
    pub address: u64,
    /// Bytes of a row, rows, slices.
    pub shape: CopyShape,
    /// Bytes from a row to the next.
    pub row_pitch: u64,
    /// Bytes from a slice to the next.
    pub slice_pitch: u64,
}

impl HostRows {
    /// Is it one piece of memory?
    fn is_contiguous(&self) -> bool {
        let CopyShape { width, height, depth } = self.shape;
        (height <= 1 || self.row_pitch == width) && (depth <= 1 || self.slice_pitch == width * height)
    }

    /// Address of a row.
    fn row(&self, index: u64) -> u64 {
        let height = self.shape.height.max(1);
        self.address + index / height * self.slice_pitch + index % height * self.row_pitch
    }

    /// The bytes of all rows, one after another.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        // SAFETY: a source that the program passed to a copy: it promises that the rows are there for reading.
        let read = |address: u64, bytes: u64| unsafe {
            if bytes == 0 { &[][..] } else { std::slice::from_raw_parts(address as *const u8, bytes as usize) }
        };
        if self.is_contiguous() {
            return Cow::Borrowed(read(self.address, self.shape.bytes()));
        }
        let rows = self.shape.height * self.shape.depth;
        let mut packed = Vec::with_capacity(self.shape.bytes() as usize);
        for row in 0..rows {
            packed.extend_from_slice(read(self.row(row), self.shape.width));
        }
        Cow::Owned(packed)
    }

    /// Writes bytes of the rows, from `offset` on in their sequence.
    pub fn write(&self, mut offset: u64, mut data: &[u8]) {
        // SAFETY: a destination that the program passed to a copy: it promises that the rows are there for writing.
        let put = |address: u64, bytes: &[u8]| unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len());
        };
        if self.is_contiguous() {
            return put(self.address + offset, data);
        }
        while !data.is_empty() {
            let (row, within) = (offset / self.shape.width, offset % self.shape.width);
            let now = (self.shape.width - within).min(data.len() as u64);
            let (piece, rest) = data.split_at(now as usize);
            put(self.row(row) + within, piece);
            data = rest;
            offset += now;
        }
    }
}

/// An end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Memory, by the address that the program has: whose it is, its [`place`](ranges::place) says when the copy is made.
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

/// What a stream does.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// A copy.
    Copy(Copy),
    /// Any other call that names a stream and has no payload. Its stream is replaced by the one that it is put into.
    Call(Call),
}

/// Puts an operation into a stream, or into the graph that the stream captures. A copy that is not `asynchronous` is over when this
/// returns.
pub fn enqueue(handle: StreamHandle, operation: Operation, asynchronous: bool) -> Result<CallResult, CudaError> {
    enqueue_on(super::thread::device(), handle, operation, asynchronous)
}

/// As [`enqueue`], with another device than the current one for what depends on it.
pub fn enqueue_on(
    device: u32,
    handle: StreamHandle,
    operation: Operation,
    asynchronous: bool,
) -> Result<CallResult, CudaError> {
    let stream = stream::resolve(handle)?;
    let Some(operation) = capture::take(&stream, operation, asynchronous)? else { return Ok(CallResult::None) };
    match operation {
        Operation::Copy(copy) => copy.run(device, stream.number, asynchronous).map(|()| CallResult::None),
        Operation::Call(mut call) => {
            if let Some(own) = call.stream_mut() {
                *own = stream.number;
            }
            connection::call_on(device, &call)
        }
    }
}

/// An end as the copy sees it.
#[derive(Clone, Debug, PartialEq)]
pub enum Side {
    /// The program's memory.
    Host(HostRows),
    /// What the simulator knows.
    Node(CopyEnd),
}

impl Copy {
    /// The destination and the source, as far as they lie in memory now.
    pub fn sides(&self) -> (Side, Side) {
        (self.side(&self.destination, &self.source), self.side(&self.source, &self.destination))
    }

    fn side(&self, end: &End, other: &End) -> Side {
        let shape = self.shape;
        match *end {
            End::Array { array, offset } => Side::Node(CopyEnd::Array { array, offset }),
            End::Memory { address, row_pitch, slice_pitch } => {
                let rows = HostRows { address, shape, row_pitch, slice_pitch };
                let node = |address| Side::Node(CopyEnd::Memory { address, row_pitch, slice_pitch });
                match ranges::place(address, rows.extent()) {
                    ranges::Place::Pageable => Side::Host(rows),
                    // Two ends in host memory of which the simulator does not see one: the host copies.
                    ranges::Place::Pinned(_) if other.is_pageable(shape) => Side::Host(rows),
                    ranges::Place::Pinned(address) | ranges::Place::Managed(address) => node(address),
                    ranges::Place::Device(_) => node(address),
                }
            }
        }
    }

    /// Makes the copy.
    pub fn run(&self, device: u32, stream: u32, asynchronous: bool) -> Result<(), CudaError> {
        if self.shape.bytes() == 0 {
            return Ok(());
        }
        // Checked before the program's bytes are read: there may be fewer than it says.
        for end in [&self.destination, &self.source] {
            end.check(self.shape)?;
        }
        match self.sides() {
            (Side::Host(destination), Side::Host(source)) => {
                connection::call_on(device, &Call::StreamSynchronize { stream })?;
                // The ranges may overlap: the bytes are taken first.
                let bytes = source.bytes().into_owned();
                destination.write(0, &bytes);
                Ok(())
            }
            (Side::Node(destination), Side::Host(source)) => {
                if let CopyEnd::Memory { address, row_pitch, slice_pitch } = destination {
                    let rows = HostRows { address, row_pitch, slice_pitch, ..source };
                    ranges::check_room(address, rows.extent())?;
                }
                let bytes = source.bytes();
                let has_room = asynchronous && staging::admit(device, stream, bytes.len() as u64);
                let Some(destination) = linear(&destination, self.shape) else {
                    let source = CopyEnd::Bytes(Bytes::absent(bytes.len() as u64));
                    let call = Call::Copy {
                        destination,
                        source,
                        shape: self.shape,
                        transfer: 0,
                        stream,
                        asynchronous: has_room,
                    };
                    return connection::call_with(device, &call, &[&bytes], &mut |_, _| {}).map(|_| ());
                };
                // An asynchronous copy for which there is no room is sent in pieces.
                let piece = if asynchronous && !has_room { staging::PIECE } else { bytes.len().max(1) };
                let mut destination = destination;
                for bytes in bytes.chunks(piece) {
                    let data = Bytes::absent(bytes.len() as u64);
                    let call = Call::copy_to_device(destination, data, stream, has_room);
                    connection::call_with(device, &call, &[bytes], &mut |_, _| {})?;
                    destination += bytes.len() as u64;
                }
                Ok(())
            }
            (Side::Host(destination), Side::Node(source)) => {
                let bytes = self.shape.bytes();
                let call = match linear(&source, self.shape) {
                    Some(source) => Call::copy_from_device(source, bytes, 0, stream, false),
                    None => {
                        let destination = CopyEnd::Bytes(Bytes::absent(bytes));
                        Call::Copy { destination, source, shape: self.shape, transfer: 0, stream, asynchronous: false }
                    }
                };
                // A copy that fails gives an error and no bytes: the sink only ever has what arrives.
                connection::call_with(device, &call, &[], &mut |offset, data| destination.write(offset, data))
                    .map(|_| ())
            }
            (Side::Node(destination), Side::Node(source)) => {
                let bytes = self.shape.bytes();
                let call = match (linear(&destination, self.shape), linear(&source, self.shape)) {
                    (Some(destination), Some(source)) => {
                        Call::copy_within(destination, source, bytes, stream, asynchronous)
                    }
                    _ => Call::Copy { destination, source, shape: self.shape, transfer: 0, stream, asynchronous },
                };
                connection::call_on(device, &call).map(|_| ())
            }
        }
    }
}

impl HostRows {
    /// Bytes from the first to the last.
    pub fn extent(&self) -> u64 {
        let CopyShape { width, height, depth } = self.shape;
        depth.saturating_sub(1) * self.slice_pitch + height.saturating_sub(1) * self.row_pitch + width
    }
}

impl End {
    /// Refuses rows that reach beyond the memory of the device that they begin in.
    fn check(&self, shape: CopyShape) -> Result<(), CudaError> {
        let End::Memory { address, row_pitch, slice_pitch } = *self else { return Ok(()) };
        let memory::Place::Device(device) = memory::place_of(address) else { return Ok(()) };
        let extent = HostRows { address, shape, row_pitch, slice_pitch }.extent();
        let own = memory::gpu_base(device as usize) + process::device(devices::of_program(device))?.memory_bytes;
        // Behind the memory are addresses that the program reserves.
        let end = if address < own { own } else { ranges::noted_end(address).unwrap_or(own) };
        if address.checked_add(extent).is_some_and(|last| last <= end) { Ok(()) } else { Err(CudaError::InvalidValue) }
    }

    fn is_pageable(&self, shape: CopyShape) -> bool {
        match *self {
            End::Memory { address, row_pitch, slice_pitch } => {
                let extent = HostRows { address, shape, row_pitch, slice_pitch }.extent();
                matches!(ranges::place(address, extent), ranges::Place::Pageable)
            }
            End::Array { .. } => false,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_packed_and_scattered() {
        let memory: Vec<u8> = (0..24).collect();
        let shape = CopyShape { width: 2, height: 2, depth: 2 };
        let rows = |address: u64| HostRows { address, shape, row_pitch: 3, slice_pitch: 12 };
        let source = rows(memory.as_ptr() as u64);
        assert_eq!(source.bytes().as_ref(), [0, 1, 3, 4, 12, 13, 15, 16]);
        assert_eq!(source.extent(), 17);
        let mut target = vec![0_u8; 24];
        let destination = rows(target.as_mut_ptr() as u64);
        destination.write(0, &[1, 2, 3]);
        destination.write(3, &[4, 5, 6, 7, 8]);
        assert_eq!(target[..17], [1, 2, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0, 5, 6, 0, 7, 8]);
    }

    #[test]
    fn a_piece_without_gaps_is_not_copied() {
        let memory = [1_u8, 2, 3, 4];
        let shape = CopyShape { width: 2, height: 2, depth: 1 };
        let rows = HostRows { address: memory.as_ptr() as u64, shape, row_pitch: 2, slice_pitch: 0 };
        assert!(matches!(rows.bytes(), Cow::Borrowed([1, 2, 3, 4])));
    }
}
