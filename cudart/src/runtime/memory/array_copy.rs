//! Copies from and to arrays in one and two dimensions.

use crate::abi::stream::StreamHandle;
use crate::runtime::memory::copy::Direction;
use crate::runtime_api;
use crate::session::addresses::copy::{Copy, End, MOST_PITCH};
use crate::session::addresses::ranges::{self, Residence};
use crate::session::arrays::array::{self, Array};
use crate::session::order::enqueue;
use crate::session::order::operation::Operation;
use balar_host::CudaError;
use balar_host::call::CopyShape;
use std::ffi::c_int;

/// A part of an array: from the byte `offset` of a row on.
#[derive(Clone, Copy)]
struct Part {
    array: u64,
    offset: u64,
    row: u64,
}

/// Rows in memory.
#[derive(Clone, Copy)]
struct Rows {
    address: u64,
    pitch: u64,
}

/// A copy of `width` bytes of `height` rows.
#[derive(Clone, Copy)]
struct Size {
    width: u64,
    height: u64,
}

impl Part {
    /// The array, where it has such a part.
    fn check(self, Size { width, height }: Size) -> Result<Array, CudaError> {
        let array = array::get(self.array)?;
        let element = array.element_bytes();
        let [columns, rows, _] = array.shape();
        let fits = |first: u64, count: u64, all: u64| first.checked_add(count).is_some_and(|end| end <= all);
        let is_whole = self.offset.is_multiple_of(element) && width.is_multiple_of(element);
        if !is_whole || !fits(self.offset, width, columns * element) || !fits(self.row, height, rows) {
            return Err(CudaError::InvalidValue);
        }
        Ok(array)
    }

    fn end(self, array: &Array) -> End {
        End::Array { array: array.number, offset: [self.offset, self.row, 0] }
    }
}

impl Rows {
    fn end(self, Size { height, .. }: Size) -> End {
        End::Memory { address: self.address, row_pitch: self.pitch, slice_pitch: self.pitch.saturating_mul(height) }
    }

    fn check(self, Size { width, height }: Size, is_host: Option<bool>) -> Result<(), CudaError> {
        if self.address == 0 {
            return Err(CudaError::InvalidValue);
        }
        if height > 1 && !(width..=MOST_PITCH).contains(&self.pitch) {
            return Err(CudaError::InvalidPitchValue);
        }
        match (ranges::residence(self.address, 1), is_host) {
            (Residence::Device(_), Some(true)) | (Residence::Pageable, Some(false)) => Err(CudaError::InvalidValue),
            _ => Ok(()),
        }
    }
}

/// Whether the end in memory is the host's, where the other is an array; an error where the direction does not fit.
fn memory_is_host(kind: c_int, array_is_destination: bool) -> Result<Option<bool>, CudaError> {
    match (Direction::of_code(kind)?, array_is_destination) {
        (Direction::HostToDevice, true) | (Direction::DeviceToHost, false) => Ok(Some(true)),
        (Direction::DeviceToDevice, _) => Ok(Some(false)),
        (Direction::Default, _) => Ok(None),
        _ => Err(CudaError::InvalidValue),
    }
}

fn enqueue(
    destination: End,
    source: End,
    Size { width, height }: Size,
    stream: StreamHandle,
    asynchronous: bool,
) -> Result<(), CudaError> {
    if width == 0 || height == 0 {
        return Ok(());
    }
    let copy = Copy { destination, source, shape: CopyShape { width, height, depth: 1 } };
    enqueue::enqueue(stream, Operation::Copy(copy), asynchronous).map(|_| ())
}

fn to_array(
    part: Part,
    rows: Rows,
    size: Size,
    kind: c_int,
    stream: StreamHandle,
    asynchronous: bool,
) -> Result<(), CudaError> {
    let is_host = memory_is_host(kind, true)?;
    rows.check(size, is_host)?;
    let array = part.check(size)?;
    enqueue(part.end(&array), rows.end(size), size, stream, asynchronous)
}

fn from_array(
    rows: Rows,
    part: Part,
    size: Size,
    kind: c_int,
    stream: StreamHandle,
    asynchronous: bool,
) -> Result<(), CudaError> {
    let is_host = memory_is_host(kind, false)?;
    rows.check(size, is_host)?;
    let array = part.check(size)?;
    enqueue(rows.end(size), part.end(&array), size, stream, asynchronous)
}

/// Bytes of an array in the order of its rows, in pieces that are rows: where each begins, its size, and the bytes before it.
fn pieces(part: Part, bytes: u64) -> Result<Vec<(Part, Size, u64)>, CudaError> {
    let array = array::get(part.array)?;
    let row_bytes = array.shape()[0] * array.element_bytes();
    split(part, bytes, row_bytes)
}

fn split(part: Part, bytes: u64, row_bytes: u64) -> Result<Vec<(Part, Size, u64)>, CudaError> {
    if part.offset >= row_bytes {
        return Err(CudaError::InvalidValue);
    }
    let mut pieces = Vec::new();
    let (mut next, mut done) = (part, 0);
    while done < bytes {
        let left = bytes - done;
        let size = if next.offset > 0 || left < row_bytes {
            Size { width: left.min(row_bytes - next.offset), height: 1 }
        } else {
            Size { width: row_bytes, height: left / row_bytes }
        };
        pieces.push((next, size, done));
        done += size.width * size.height;
        next = Part { offset: 0, row: next.row + size.height, ..next };
    }
    Ok(pieces)
}

/// Copies bytes to an array as if its rows were one.
fn line_to_array(
    part: Part,
    source: u64,
    bytes: u64,
    kind: c_int,
    stream: StreamHandle,
    asynchronous: bool,
) -> Result<(), CudaError> {
    for (part, size, done) in pieces(part, bytes)? {
        let rows = Rows { address: source + done, pitch: size.width };
        to_array(part, rows, size, kind, stream, asynchronous)?;
    }
    Ok(())
}

fn line_from_array(
    destination: u64,
    part: Part,
    bytes: u64,
    kind: c_int,
    stream: StreamHandle,
    asynchronous: bool,
) -> Result<(), CudaError> {
    for (part, size, done) in pieces(part, bytes)? {
        let rows = Rows { address: destination + done, pitch: size.width };
        from_array(rows, part, size, kind, stream, asynchronous)?;
    }
    Ok(())
}

fn between_arrays(destination: Part, source: Part, size: Size, kind: c_int) -> Result<(), CudaError> {
    if !matches!(Direction::of_code(kind)?, Direction::DeviceToDevice | Direction::Default) {
        return Err(CudaError::InvalidValue);
    }
    let (to, from) = (destination.check(size)?, source.check(size)?);
    enqueue(destination.end(&to), source.end(&from), size, StreamHandle::DEFAULT, true)
}

/// Copies bytes between arrays as if the rows of each were one.
fn line_between_arrays(destination: Part, source: Part, bytes: u64, kind: c_int) -> Result<(), CudaError> {
    let array = array::get(destination.array)?;
    let row_bytes = array.shape()[0] * array.element_bytes();
    for (part, size, done) in pieces(source, bytes)? {
        // If the rows of both are equally long and the positions match, a piece of one is a piece of the other.
        let at = destination.offset + done;
        let to = Part { offset: at % row_bytes, row: destination.row + at / row_bytes, ..destination };
        let is_same =
            (to.offset, size.width) == (0, row_bytes) || to.offset + size.width <= row_bytes && size.height == 1;
        if is_same {
            between_arrays(to, part, size, kind)?;
            continue;
        }
        for row in 0..size.height {
            let from = Part { row: part.row + row, ..part };
            let start = at + row * size.width;
            let to = Part { offset: start % row_bytes, row: destination.row + start / row_bytes, ..destination };
            for (to, size, done) in split(to, size.width, row_bytes)? {
                for line in 0..size.height {
                    let offset = done + line * size.width;
                    let from = Part { offset: from.offset + offset, ..from };
                    let to = Part { row: to.row + line, ..to };
                    between_arrays(to, from, Size { width: size.width, height: 1 }, kind)?;
                }
            }
        }
    }
    Ok(())
}

fn part(array: u64, offset: usize, row: usize) -> Part {
    Part { array, offset: offset as u64, row: row as u64 }
}

fn rows(address: u64, pitch: usize) -> Rows {
    Rows { address, pitch: pitch as u64 }
}

fn size(width: usize, height: usize) -> Size {
    Size { width: width as u64, height: height as u64 }
}

runtime_api! {
    stream fn cudaMemcpy2DToArray(
        array: u64, offset: usize, row: usize, source: u64, pitch: usize, width: usize, height: usize, kind: c_int,
    ) {
        to_array(part(array, offset, row), rows(source, pitch), size(width, height), kind, StreamHandle::DEFAULT, false)
    }

    stream fn cudaMemcpy2DToArrayAsync(
        array: u64, offset: usize, row: usize, source: u64, pitch: usize, width: usize, height: usize, kind: c_int,
        stream: StreamHandle,
    ) {
        to_array(part(array, offset, row), rows(source, pitch), size(width, height), kind, stream, true)
    }

    stream fn cudaMemcpy2DFromArray(
        destination: u64, pitch: usize, array: u64, offset: usize, row: usize, width: usize, height: usize, kind: c_int,
    ) {
        let stream = StreamHandle::DEFAULT;
        from_array(rows(destination, pitch), part(array, offset, row), size(width, height), kind, stream, false)
    }

    stream fn cudaMemcpy2DFromArrayAsync(
        destination: u64, pitch: usize, array: u64, offset: usize, row: usize, width: usize, height: usize, kind: c_int,
        stream: StreamHandle,
    ) {
        from_array(rows(destination, pitch), part(array, offset, row), size(width, height), kind, stream, true)
    }

    stream fn cudaMemcpy2DArrayToArray(
        destination: u64, to_offset: usize, to_row: usize, source: u64, from_offset: usize, from_row: usize,
        width: usize, height: usize, kind: c_int,
    ) {
        let (to, from) = (part(destination, to_offset, to_row), part(source, from_offset, from_row));
        between_arrays(to, from, size(width, height), kind)
    }

    stream fn cudaMemcpyToArray(array: u64, offset: usize, row: usize, source: u64, bytes: usize, kind: c_int) {
        line_to_array(part(array, offset, row), source, bytes as u64, kind, StreamHandle::DEFAULT, false)
    }

    stream fn cudaMemcpyToArrayAsync(
        array: u64, offset: usize, row: usize, source: u64, bytes: usize, kind: c_int, stream: StreamHandle,
    ) {
        line_to_array(part(array, offset, row), source, bytes as u64, kind, stream, true)
    }

    stream fn cudaMemcpyFromArray(destination: u64, array: u64, offset: usize, row: usize, bytes: usize, kind: c_int) {
        line_from_array(destination, part(array, offset, row), bytes as u64, kind, StreamHandle::DEFAULT, false)
    }

    stream fn cudaMemcpyFromArrayAsync(
        destination: u64, array: u64, offset: usize, row: usize, bytes: usize, kind: c_int, stream: StreamHandle,
    ) {
        line_from_array(destination, part(array, offset, row), bytes as u64, kind, stream, true)
    }

    stream fn cudaMemcpyArrayToArray(
        destination: u64, to_offset: usize, to_row: usize, source: u64, from_offset: usize, from_row: usize,
        bytes: usize, kind: c_int,
    ) {
        let (to, from) = (part(destination, to_offset, to_row), part(source, from_offset, from_row));
        line_between_arrays(to, from, bytes as u64, kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_into_rows() {
        let list = |offset, bytes| -> Vec<(u64, u64, u64, u64, u64)> {
            let pieces = split(Part { array: 0, offset, row: 3 }, bytes, 100).expect("within a row");
            let of_piece =
                |(part, size, done): (Part, Size, u64)| (part.offset, part.row, size.width, size.height, done);
            pieces.into_iter().map(of_piece).collect()
        };
        assert_eq!(list(0, 300), [(0, 3, 100, 3, 0)]);
        assert_eq!(list(0, 40), [(0, 3, 40, 1, 0)]);
        assert_eq!(list(60, 250), [(60, 3, 40, 1, 0), (0, 4, 100, 2, 40), (0, 6, 10, 1, 240)]);
        assert!(split(Part { array: 0, offset: 100, row: 0 }, 1, 100).is_err());
    }
}
