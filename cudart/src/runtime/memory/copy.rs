//! Copies of memory.

use crate::abi::arguments::In;
use crate::abi::copy::{Extent, Memcpy3DParameters, PitchedPointer, Position};
use crate::abi::stream::StreamHandle;
use crate::runtime_api;
use crate::session::addresses::copy::{Copy, End, MOST_PITCH};
use crate::session::addresses::ranges::{self, Residence};
use crate::session::arrays::copy_parameters;
use crate::session::connection::description;
use crate::session::order::enqueue;
use crate::session::order::operation::Operation;
use balar_host::CudaError;
use balar_host::call::CopyShape;
use std::ffi::c_int;

/// The direction of a copy, as the program states it (`cudaMemcpyKind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Within the host's memory.
    HostToHost,
    /// To a device.
    HostToDevice,
    /// From a device.
    DeviceToHost,
    /// Within or between devices.
    DeviceToDevice,
    /// The direction that the addresses imply.
    Default,
}

impl Direction {
    /// The direction with C's number.
    pub fn of_code(code: c_int) -> Result<Direction, CudaError> {
        match code {
            0 => Ok(Direction::HostToHost),
            1 => Ok(Direction::HostToDevice),
            2 => Ok(Direction::DeviceToHost),
            3 => Ok(Direction::DeviceToDevice),
            4 => Ok(Direction::Default),
            _ => Err(CudaError::InvalidMemcpyDirection),
        }
    }

    /// Refuses addresses that are not where the direction says: memory of devices where the host's is expected, and the other way
    /// around. Pinned and managed memory can be either.
    pub fn check(self, destination: u64, source: u64) -> Result<(), CudaError> {
        let (to_host, from_host) = match self {
            Direction::HostToHost => (Some(true), Some(true)),
            Direction::HostToDevice => (Some(false), Some(true)),
            Direction::DeviceToHost => (Some(true), Some(false)),
            Direction::DeviceToDevice => (Some(false), Some(false)),
            Direction::Default => (None, None),
        };
        let fits = |address: u64, host: Option<bool>| match host {
            Some(true) => !ranges::is_of_device(address),
            Some(false) => ranges::residence(address, 1) != Residence::Pageable,
            None => true,
        };
        if address_is_valid(destination)
            && address_is_valid(source)
            && fits(destination, to_host)
            && fits(source, from_host)
        {
            Ok(())
        } else {
            Err(CudaError::InvalidValue)
        }
    }
}

fn address_is_valid(address: u64) -> bool {
    address != 0
}

/// Puts a copy into a stream. Unless it is `asynchronous`, the program waits for it; but CUDA waits for no copy within devices.
fn put(copy: Copy, stream: StreamHandle, asynchronous: bool) -> Result<(), CudaError> {
    let asynchronous = asynchronous || copy.is_within_devices();
    enqueue::enqueue(stream, Operation::Copy(copy), asynchronous).map(|_| ())
}

/// Copies `bytes` bytes.
pub fn copy(
    destination: u64,
    source: u64,
    bytes: usize,
    direction: Direction,
    stream: StreamHandle,
    asynchronous: bool,
) -> Result<(), CudaError> {
    if bytes == 0 {
        return Ok(());
    }
    direction.check(destination, source)?;
    put(Copy::linear(destination, source, bytes as u64), stream, asynchronous)
}

/// Copies rows.
fn copy_rows(
    (destination, destination_pitch): (u64, usize),
    (source, source_pitch): (u64, usize),
    (width, height): (usize, usize),
    direction: Direction,
    stream: StreamHandle,
    asynchronous: bool,
) -> Result<(), CudaError> {
    if width == 0 || height == 0 {
        return Ok(());
    }
    if [destination_pitch, source_pitch].iter().any(|&pitch| width > pitch || pitch as u64 > MOST_PITCH) {
        return Err(CudaError::InvalidPitchValue);
    }
    direction.check(destination, source)?;
    let end = |address, pitch: usize| End::Memory {
        address,
        row_pitch: pitch as u64,
        slice_pitch: (pitch as u64).saturating_mul(height as u64),
    };
    let copy = Copy {
        destination: end(destination, destination_pitch),
        source: end(source, source_pitch),
        shape: CopyShape { width: width as u64, height: height as u64, depth: 1 },
    };
    put(copy, stream, asynchronous)
}

/// Copies a space of memory or arrays.
fn copy_space(parameters: &Memcpy3DParameters, stream: StreamHandle, asynchronous: bool) -> Result<(), CudaError> {
    put(copy_parameters::copy_of(parameters)?, stream, asynchronous)
}

/// `cudaMemcpy3DPeerParms`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PeerParameters {
    source_array: u64,
    source_position: Position,
    source: PitchedPointer,
    source_device: c_int,
    destination_array: u64,
    destination_position: Position,
    destination: PitchedPointer,
    destination_device: c_int,
    extent: Extent,
}

impl PeerParameters {
    /// The copy, whose addresses say which devices take part.
    fn without_devices(&self) -> Result<Memcpy3DParameters, CudaError> {
        description::device_of(self.source_device)?;
        description::device_of(self.destination_device)?;
        Ok(Memcpy3DParameters {
            source_array: self.source_array,
            source_position: self.source_position,
            source: self.source,
            destination_array: self.destination_array,
            destination_position: self.destination_position,
            destination: self.destination,
            extent: self.extent,
            kind: DEFAULT_KIND,
            ..Memcpy3DParameters::default()
        })
    }
}

/// `cudaMemcpyDefault`.
const DEFAULT_KIND: u32 = 4;

/// Copies between devices.
fn copy_between(
    (destination, to): (u64, c_int),
    (source, from): (u64, c_int),
    bytes: usize,
    stream: StreamHandle,
) -> Result<(), CudaError> {
    description::device_of(to)?;
    description::device_of(from)?;
    copy(destination, source, bytes, Direction::DeviceToDevice, stream, true)
}

runtime_api! {
    stream fn cudaMemcpy(destination: u64, source: u64, bytes: usize, kind: c_int) {
        copy(destination, source, bytes, Direction::of_code(kind)?, StreamHandle::DEFAULT, false)
    }

    stream fn cudaMemcpyAsync(destination: u64, source: u64, bytes: usize, kind: c_int, stream: StreamHandle) {
        copy(destination, source, bytes, Direction::of_code(kind)?, stream, true)
    }

    fn cudaMemcpyPeer(destination: u64, to: c_int, source: u64, from: c_int, bytes: usize) {
        copy_between((destination, to), (source, from), bytes, StreamHandle::DEFAULT)
    }

    stream fn cudaMemcpyPeerAsync(
        destination: u64,
        to: c_int,
        source: u64,
        from: c_int,
        bytes: usize,
        stream: StreamHandle,
    ) {
        copy_between((destination, to), (source, from), bytes, stream)
    }

    stream fn cudaMemcpy2D(
        destination: u64,
        destination_pitch: usize,
        source: u64,
        source_pitch: usize,
        width: usize,
        height: usize,
        kind: c_int,
    ) {
        let direction = Direction::of_code(kind)?;
        let (destination, source) = ((destination, destination_pitch), (source, source_pitch));
        copy_rows(destination, source, (width, height), direction, StreamHandle::DEFAULT, false)
    }

    stream fn cudaMemcpy2DAsync(
        destination: u64,
        destination_pitch: usize,
        source: u64,
        source_pitch: usize,
        width: usize,
        height: usize,
        kind: c_int,
        stream: StreamHandle,
    ) {
        let direction = Direction::of_code(kind)?;
        let (destination, source) = ((destination, destination_pitch), (source, source_pitch));
        copy_rows(destination, source, (width, height), direction, stream, true)
    }

    stream fn cudaMemcpy3D(parameters: In<Memcpy3DParameters>) {
        copy_space(&parameters.get()?, StreamHandle::DEFAULT, false)
    }

    stream fn cudaMemcpy3DAsync(parameters: In<Memcpy3DParameters>, stream: StreamHandle) {
        copy_space(&parameters.get()?, stream, true)
    }

    stream fn cudaMemcpy3DPeer(parameters: In<PeerParameters>) {
        copy_space(&parameters.get()?.without_devices()?, StreamHandle::DEFAULT, false)
    }

    stream fn cudaMemcpy3DPeerAsync(parameters: In<PeerParameters>, stream: StreamHandle) {
        copy_space(&parameters.get()?.without_devices()?, stream, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::layout::check;
    use balar_host::memory::BASE;
    use std::mem::offset_of;

    /// Sizes by a C compiler, with the headers of CUDA 11.8, 12.6 and 13.5.
    #[test]
    fn layouts_are_those_of_the_headers() {
        check::<PeerParameters>(168, 8);
        assert_eq!(offset_of!(PeerParameters, source_device), 64);
        assert_eq!(offset_of!(PeerParameters, destination_device), 136);
        assert_eq!(offset_of!(PeerParameters, extent), 144);
    }

    #[test]
    fn pitches_that_no_device_has_are_refused() {
        let copy = |destination_pitch, source_pitch, width, height| {
            let (destination, source) = ((0x1000, destination_pitch), (0x2000, source_pitch));
            copy_rows(destination, source, (width, height), Direction::Default, StreamHandle::DEFAULT, false)
        };
        for pitch in [usize::MAX, usize::MAX / 2, MOST_PITCH as usize + 1, 63] {
            for (destination, source) in [(pitch, 64), (64, pitch)] {
                assert_eq!(copy(destination, source, 64, 2), Err(CudaError::InvalidPitchValue), "{pitch}");
            }
        }
        assert_eq!(copy(usize::MAX, usize::MAX, 0, 2), Ok(()));
    }

    #[test]
    fn addresses_must_be_where_the_direction_says() {
        let (host, device) = (0x1000, BASE + 0x1000);
        assert_eq!(Direction::of_code(5), Err(CudaError::InvalidMemcpyDirection));
        assert_eq!(Direction::HostToDevice.check(device, host), Ok(()));
        assert_eq!(Direction::HostToDevice.check(host, device), Err(CudaError::InvalidValue));
        assert_eq!(Direction::DeviceToDevice.check(device, host), Err(CudaError::InvalidValue));
        assert_eq!(Direction::Default.check(host, device), Ok(()));
        assert_eq!(Direction::Default.check(0, device), Err(CudaError::InvalidValue));
    }
}
