//! Copies and fills. The driver's functions say by their names or structures which end is whose; with unified addresses that is
//! known anyway, so it is checked.

use crate::abi::arguments::In;
use crate::abi::driver::{
    Copy2D, Copy3D, CopyEnd3D, DevicePointer, MEMORY_ARRAY, MEMORY_DEVICE, MEMORY_HOST, MEMORY_UNIFIED,
};
use crate::abi::stream::StreamHandle;
use crate::driver_api;
use crate::session::addresses::copy::{Copy, End, MOST_PITCH};
use crate::session::addresses::ranges::{self, Residence};
use crate::session::api::Outcome;
use crate::session::arrays::array;
use crate::session::contexts::context;
use crate::session::order::enqueue;
use crate::session::order::fill::{self, Fill};
use crate::session::order::operation::Operation;
use balar_host::CudaError;
use balar_host::call::CopyShape;

/// When a copy is over: when the call returns, or when the stream has reached it.
#[derive(Clone, Copy)]
enum When {
    Now,
    InOrder(StreamHandle),
}

impl When {
    /// The stream, and whether the host continues before the stream has reached the copy.
    fn stream(self) -> (StreamHandle, bool) {
        match self {
            When::Now => (StreamHandle::DEFAULT, false),
            When::InOrder(stream) => (stream, true),
        }
    }
}

fn enqueue(operation: Operation, when: When) -> Outcome {
    let (stream, asynchronous) = when.stream();
    enqueue::enqueue(stream, operation, asynchronous).map(|_| ())
}

/// Refuses an address that devices do not know.
fn check_device(address: DevicePointer, bytes: u64) -> Outcome {
    // Registered memory is known to devices by its own address too.
    if bytes > 0 && ranges::residence(address, bytes) == Residence::Pageable {
        Err(CudaError::InvalidValue)
    } else {
        Ok(())
    }
}

/// A copy between two addresses.
fn linear(destination: u64, source: u64, bytes: usize, when: When) -> Outcome {
    let bytes = bytes as u64;
    if bytes > 0 && (destination == 0 || source == 0) {
        return Err(CudaError::InvalidValue);
    }
    let copy = Copy::linear(destination, source, bytes);
    match when {
        // The host does not wait for copies within devices.
        When::Now if copy.is_within_devices() => enqueue(Operation::Copy(copy), When::InOrder(StreamHandle::DEFAULT)),
        when => enqueue(Operation::Copy(copy), when),
    }
}

fn to_device(destination: DevicePointer, source: u64, bytes: usize, when: When) -> Outcome {
    check_device(destination, bytes as u64)?;
    linear(destination, source, bytes, when)
}

fn to_host(destination: u64, source: DevicePointer, bytes: usize, when: When) -> Outcome {
    check_device(source, bytes as u64)?;
    linear(destination, source, bytes, when)
}

fn on_devices(destination: DevicePointer, source: DevicePointer, bytes: usize, when: When) -> Outcome {
    check_device(destination, bytes as u64)?;
    check_device(source, bytes as u64)?;
    linear(destination, source, bytes, when)
}

fn between_contexts(
    (destination, to): (DevicePointer, u64),
    (source, from): (DevicePointer, u64),
    bytes: usize,
    when: When,
) -> Outcome {
    context::device_of(to)?;
    context::device_of(from)?;
    on_devices(destination, source, bytes, when)
}

/// An array from `offset` bytes on, as one row of it has them.
fn in_array(array: u64, offset: usize) -> Result<End, CudaError> {
    Ok(End::Array { array: array::get(array)?.number, offset: [offset as u64, 0, 0] })
}

fn with_array(destination: End, source: End, bytes: usize, when: When) -> Outcome {
    enqueue(Operation::Copy(Copy { destination, source, shape: CopyShape::linear(bytes as u64) }), when)
}

fn device_end(address: DevicePointer, bytes: usize) -> Result<End, CudaError> {
    check_device(address, bytes as u64)?;
    Ok(End::linear(address, bytes as u64))
}

fn host_end(address: u64, bytes: usize) -> Result<End, CudaError> {
    if address == 0 { Err(CudaError::InvalidValue) } else { Ok(End::linear(address, bytes as u64)) }
}

/// An end of a copy of rows.
fn rows(end: &CopyEnd3D, shape: CopyShape) -> Result<End, CudaError> {
    let (x, y, z) = (end.x_bytes as u64, end.y as u64, end.z as u64);
    if end.level != 0 {
        return Err(CudaError::InvalidValue);
    }
    let address = match end.memory_type {
        MEMORY_ARRAY => {
            return Ok(End::Array { array: array::get(end.array as u64)?.number, offset: [x, y, z] });
        }
        MEMORY_HOST => end.host as u64,
        MEMORY_DEVICE | MEMORY_UNIFIED => end.device,
        _ => return Err(CudaError::InvalidValue),
    };
    // A pitch or height of 0 means that there are no gaps.
    let row_end = x.checked_add(shape.width).ok_or(CudaError::InvalidValue)?;
    let last_row = y.checked_add(shape.height).ok_or(CudaError::InvalidValue)?;
    let row_pitch = if end.pitch == 0 { row_end } else { end.pitch as u64 };
    let height = if end.height == 0 { last_row } else { end.height as u64 };
    let has_rows = last_row > 1 || shape.depth > 1 || z > 0;
    if row_pitch < row_end || (has_rows && row_pitch > MOST_PITCH) || (shape.depth > 1 && height < last_row) {
        return Err(CudaError::InvalidValue);
    }
    let slice_pitch = row_pitch.checked_mul(height).ok_or(CudaError::InvalidValue)?;
    let rows = y.checked_mul(row_pitch).and_then(|rows| rows.checked_add(x));
    let offset = z.checked_mul(slice_pitch).and_then(|slices| slices.checked_add(rows?));
    let address = offset.and_then(|offset| address.checked_add(offset)).ok_or(CudaError::InvalidValue)?;
    if end.memory_type == MEMORY_DEVICE {
        check_device(address, shape.width)?;
    }
    Ok(End::Memory { address, row_pitch, slice_pitch })
}

/// The copy that a structure describes.
pub(super) fn described(copy: &Copy3D) -> Result<Copy, CudaError> {
    let shape = CopyShape { width: copy.width_bytes as u64, height: copy.height as u64, depth: copy.depth as u64 };
    Ok(Copy { destination: rows(&copy.destination, shape)?, source: rows(&copy.source, shape)?, shape })
}

fn copy_3d(copy: In<Copy3D>, when: When) -> Outcome {
    enqueue(Operation::Copy(described(&copy.get()?)?), when)
}

fn copy_peer(copy: In<Copy3D>, when: When) -> Outcome {
    let described = copy.get()?;
    context::device_of(described.source.context as u64)?;
    context::device_of(described.destination.context as u64)?;
    copy_3d(copy, when)
}

fn copy_2d(copy: In<Copy2D>, when: When) -> Outcome {
    let copy = copy.get()?;
    let end = |end: &crate::abi::driver::CopyEnd2D| CopyEnd3D {
        x_bytes: end.x_bytes,
        y: end.y,
        z: 0,
        level: 0,
        memory_type: end.memory_type,
        host: end.host,
        device: end.device,
        array: end.array,
        context: std::ptr::null_mut(),
        pitch: end.pitch,
        height: 0,
    };
    let copy = Copy3D {
        source: end(&copy.source),
        destination: end(&copy.destination),
        width_bytes: copy.width_bytes,
        height: copy.height,
        depth: 1,
    };
    enqueue(Operation::Copy(described(&copy)?), when)
}

/// An element of a fill: its value and its bytes.
#[derive(Clone, Copy)]
struct Element(u32, u8);

fn fill_row(pointer: DevicePointer, element: Element, elements: usize, when: When) -> Outcome {
    fill_rows(pointer, None, element, elements, 1, when)
}

fn fill_rows(
    pointer: DevicePointer,
    pitch: Option<usize>,
    Element(value, element_bytes): Element,
    width: usize,
    height: usize,
    when: When,
) -> Outcome {
    let row = (width as u64).checked_mul(u64::from(element_bytes)).ok_or(CudaError::InvalidValue)?;
    let pitch = pitch.map_or(row, |pitch| pitch as u64);
    let aligned = |value: u64| value.is_multiple_of(element_bytes.into());
    if !aligned(pointer) || (height > 1 && (pitch < row || !aligned(pitch))) {
        return Err(CudaError::InvalidValue);
    }
    if row == 0 || height == 0 {
        return Ok(());
    }
    let slice = pitch.checked_mul(height as u64).ok_or(CudaError::InvalidValue)?;
    let shape = CopyShape { width: row, height: height as u64, depth: 1 };
    let (stream, asynchronous) = when.stream();
    fill::fill(Fill { address: pointer, shape, pitch: [pitch, slice], value, element_bytes }, stream, asynchronous)
}

driver_api! {
    stream fn cuMemcpy(destination: u64, source: u64, bytes: usize) {
        linear(destination, source, bytes, When::Now)
    }

    stream fn cuMemcpyAsync(destination: u64, source: u64, bytes: usize, stream: StreamHandle) {
        linear(destination, source, bytes, When::InOrder(stream))
    }

    stream fn cuMemcpyHtoD_v2(destination: DevicePointer, source: u64, bytes: usize) {
        to_device(destination, source, bytes, When::Now)
    }

    stream fn cuMemcpyHtoDAsync_v2(destination: DevicePointer, source: u64, bytes: usize, stream: StreamHandle) {
        to_device(destination, source, bytes, When::InOrder(stream))
    }

    stream fn cuMemcpyDtoH_v2(destination: u64, source: DevicePointer, bytes: usize) {
        to_host(destination, source, bytes, When::Now)
    }

    stream fn cuMemcpyDtoHAsync_v2(destination: u64, source: DevicePointer, bytes: usize, stream: StreamHandle) {
        to_host(destination, source, bytes, When::InOrder(stream))
    }

    stream fn cuMemcpyDtoD_v2(destination: DevicePointer, source: DevicePointer, bytes: usize) {
        on_devices(destination, source, bytes, When::Now)
    }

    stream fn cuMemcpyDtoDAsync_v2(destination: DevicePointer, source: DevicePointer, bytes: usize, stream: StreamHandle) {
        on_devices(destination, source, bytes, When::InOrder(stream))
    }

    stream fn cuMemcpyPeer(destination: DevicePointer, to: u64, source: DevicePointer, from: u64, bytes: usize) {
        between_contexts((destination, to), (source, from), bytes, When::Now)
    }

    stream fn cuMemcpyPeerAsync(
        destination: DevicePointer, to: u64, source: DevicePointer, from: u64, bytes: usize, stream: StreamHandle,
    ) {
        between_contexts((destination, to), (source, from), bytes, When::InOrder(stream))
    }

    stream fn cuMemcpyDtoA_v2(array: u64, offset: usize, source: DevicePointer, bytes: usize) {
        with_array(in_array(array, offset)?, device_end(source, bytes)?, bytes, When::Now)
    }

    stream fn cuMemcpyAtoD_v2(destination: DevicePointer, array: u64, offset: usize, bytes: usize) {
        with_array(device_end(destination, bytes)?, in_array(array, offset)?, bytes, When::Now)
    }

    stream fn cuMemcpyHtoA_v2(array: u64, offset: usize, source: u64, bytes: usize) {
        with_array(in_array(array, offset)?, host_end(source, bytes)?, bytes, When::Now)
    }

    stream fn cuMemcpyHtoAAsync_v2(array: u64, offset: usize, source: u64, bytes: usize, stream: StreamHandle) {
        with_array(in_array(array, offset)?, host_end(source, bytes)?, bytes, When::InOrder(stream))
    }

    stream fn cuMemcpyAtoH_v2(destination: u64, array: u64, offset: usize, bytes: usize) {
        with_array(host_end(destination, bytes)?, in_array(array, offset)?, bytes, When::Now)
    }

    stream fn cuMemcpyAtoHAsync_v2(destination: u64, array: u64, offset: usize, bytes: usize, stream: StreamHandle) {
        with_array(host_end(destination, bytes)?, in_array(array, offset)?, bytes, When::InOrder(stream))
    }

    stream fn cuMemcpyAtoA_v2(to: u64, to_offset: usize, from: u64, from_offset: usize, bytes: usize) {
        with_array(in_array(to, to_offset)?, in_array(from, from_offset)?, bytes, When::Now)
    }

    stream fn cuMemcpy2D_v2(copy: In<Copy2D>) {
        copy_2d(copy, When::Now)
    }

    stream fn cuMemcpy2DUnaligned_v2(copy: In<Copy2D>) {
        copy_2d(copy, When::Now)
    }

    stream fn cuMemcpy2DAsync_v2(copy: In<Copy2D>, stream: StreamHandle) {
        copy_2d(copy, When::InOrder(stream))
    }

    stream fn cuMemcpy3D_v2(copy: In<Copy3D>) {
        copy_3d(copy, When::Now)
    }

    stream fn cuMemcpy3DAsync_v2(copy: In<Copy3D>, stream: StreamHandle) {
        copy_3d(copy, When::InOrder(stream))
    }

    stream fn cuMemcpy3DPeer(copy: In<Copy3D>) {
        copy_peer(copy, When::Now)
    }

    stream fn cuMemcpy3DPeerAsync(copy: In<Copy3D>, stream: StreamHandle) {
        copy_peer(copy, When::InOrder(stream))
    }

    stream fn cuMemsetD8_v2(pointer: DevicePointer, value: u8, elements: usize) {
        fill_row(pointer, Element(value.into(), 1), elements, When::Now)
    }

    stream fn cuMemsetD16_v2(pointer: DevicePointer, value: u16, elements: usize) {
        fill_row(pointer, Element(value.into(), 2), elements, When::Now)
    }

    stream fn cuMemsetD32_v2(pointer: DevicePointer, value: u32, elements: usize) {
        fill_row(pointer, Element(value, 4), elements, When::Now)
    }

    stream fn cuMemsetD8Async(pointer: DevicePointer, value: u8, elements: usize, stream: StreamHandle) {
        fill_row(pointer, Element(value.into(), 1), elements, When::InOrder(stream))
    }

    stream fn cuMemsetD16Async(pointer: DevicePointer, value: u16, elements: usize, stream: StreamHandle) {
        fill_row(pointer, Element(value.into(), 2), elements, When::InOrder(stream))
    }

    stream fn cuMemsetD32Async(pointer: DevicePointer, value: u32, elements: usize, stream: StreamHandle) {
        fill_row(pointer, Element(value, 4), elements, When::InOrder(stream))
    }

    stream fn cuMemsetD2D8_v2(pointer: DevicePointer, pitch: usize, value: u8, width: usize, height: usize) {
        fill_rows(pointer, Some(pitch), Element(value.into(), 1), width, height, When::Now)
    }

    stream fn cuMemsetD2D16_v2(pointer: DevicePointer, pitch: usize, value: u16, width: usize, height: usize) {
        fill_rows(pointer, Some(pitch), Element(value.into(), 2), width, height, When::Now)
    }

    stream fn cuMemsetD2D32_v2(pointer: DevicePointer, pitch: usize, value: u32, width: usize, height: usize) {
        fill_rows(pointer, Some(pitch), Element(value, 4), width, height, When::Now)
    }

    stream fn cuMemsetD2D8Async(
        pointer: DevicePointer, pitch: usize, value: u8, width: usize, height: usize, stream: StreamHandle,
    ) {
        fill_rows(pointer, Some(pitch), Element(value.into(), 1), width, height, When::InOrder(stream))
    }

    stream fn cuMemsetD2D16Async(
        pointer: DevicePointer, pitch: usize, value: u16, width: usize, height: usize, stream: StreamHandle,
    ) {
        fill_rows(pointer, Some(pitch), Element(value.into(), 2), width, height, When::InOrder(stream))
    }

    stream fn cuMemsetD2D32Async(
        pointer: DevicePointer, pitch: usize, value: u32, width: usize, height: usize, stream: StreamHandle,
    ) {
        fill_rows(pointer, Some(pitch), Element(value, 4), width, height, When::InOrder(stream))
    }
}
