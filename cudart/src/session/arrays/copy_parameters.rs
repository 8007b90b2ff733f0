//! Copies in three dimensions, as programs describe them and as streams make them.

use crate::abi::copy::{Extent, Memcpy3DParameters, PitchedPointer, Position};
use crate::session::addresses::copy::{Copy, End, MOST_PITCH};
use crate::session::addresses::ranges::{self, Residence};
use crate::session::arrays::array::{self, Array};
use balar_host::CudaError;
use balar_host::call::CopyShape;

/// `cudaMemcpyKind` of copies between memory and memory.
mod kind {
    pub const HOST_TO_HOST: u32 = 0;
    pub const HOST_TO_DEVICE: u32 = 1;
    pub const DEVICE_TO_HOST: u32 = 2;
    pub const DEVICE_TO_DEVICE: u32 = 3;
    pub const DEFAULT: u32 = 4;
}

/// The copy that `cudaMemcpy3D` makes.
pub fn copy_of(parameters: &Memcpy3DParameters) -> Result<Copy, CudaError> {
    let source_array = array_of(parameters.source_array, &parameters.source)?;
    let destination_array = array_of(parameters.destination_array, &parameters.destination)?;
    let element_bytes = match (&source_array, &destination_array) {
        (Some(source), Some(destination)) if source.element_bytes() != destination.element_bytes() => {
            return Err(CudaError::InvalidValue);
        }
        (Some(array), _) | (_, Some(array)) => array.element_bytes(),
        (None, None) => 1,
    };
    let Extent { width, height, depth } = parameters.extent;
    let width = width.checked_mul(element_bytes).ok_or(CudaError::InvalidValue)?;
    let shape = CopyShape { width, height, depth };
    let end =
        |array: Option<Array>, memory: &PitchedPointer, position: Position, takes_host: bool, takes_device: bool| {
            let Some(array) = array else { return memory_end(memory, position, shape, takes_host, takes_device) };
            if !takes_device {
                return Err(CudaError::InvalidValue);
            }
            array.check_part(position, parameters.extent)?;
            let offset = [position.x * element_bytes, position.y, position.z];
            Ok(End::Array { array: array.number, offset })
        };
    let (from_host, to_host) = match parameters.kind {
        kind::HOST_TO_HOST => (Some(true), Some(true)),
        kind::HOST_TO_DEVICE => (Some(true), Some(false)),
        kind::DEVICE_TO_HOST => (Some(false), Some(true)),
        kind::DEVICE_TO_DEVICE => (Some(false), Some(false)),
        kind::DEFAULT => (None, None),
        _ => return Err(CudaError::InvalidMemcpyDirection),
    };
    let destination = end(
        destination_array,
        &parameters.destination,
        parameters.destination_position,
        to_host != Some(false),
        to_host != Some(true),
    )?;
    let source = end(
        source_array,
        &parameters.source,
        parameters.source_position,
        from_host != Some(false),
        from_host != Some(true),
    )?;
    Ok(Copy { destination, source, shape })
}

/// The array of an end. An end has an array or memory, not both.
fn array_of(handle: u64, memory: &PitchedPointer) -> Result<Option<Array>, CudaError> {
    match (handle, memory.pointer) {
        (0, 0) => Err(CudaError::InvalidValue),
        (0, _) => Ok(None),
        (handle, 0) => Ok(Some(array::get(handle)?)),
        _ => Err(CudaError::InvalidValue),
    }
}

fn memory_end(
    memory: &PitchedPointer,
    position: Position,
    shape: CopyShape,
    takes_host: bool,
    takes_device: bool,
) -> Result<End, CudaError> {
    let PitchedPointer { pointer, pitch, height, .. } = *memory;
    let has_rows = shape.height > 1 || shape.depth > 1;
    if has_rows && pitch < shape.width {
        return Err(CudaError::InvalidPitchValue);
    }
    let has_slices = shape.depth > 1 || position.z > 0;
    if has_slices && height < position.y.saturating_add(shape.height) {
        return Err(CudaError::InvalidValue);
    }
    let has_pitch = has_rows || position.y > 0 || has_slices;
    if has_pitch && pitch > MOST_PITCH {
        return Err(CudaError::InvalidPitchValue);
    }
    let row_pitch = if has_pitch { pitch } else { shape.width };
    let slice_pitch = row_pitch.checked_mul(height.max(1)).ok_or(CudaError::InvalidValue)?;
    let rows = position.y.checked_mul(row_pitch).ok_or(CudaError::InvalidValue)?;
    let slices = position.z.checked_mul(slice_pitch).ok_or(CudaError::InvalidValue)?;
    let offset = position.x.checked_add(rows).and_then(|offset| offset.checked_add(slices));
    let address = offset.and_then(|offset| pointer.checked_add(offset)).ok_or(CudaError::InvalidValue)?;
    let is_allowed = match ranges::residence(address, 1) {
        Residence::Device(_) => takes_device,
        Residence::Pageable => takes_host,
        Residence::Pinned(_) | Residence::Managed(_) => true,
    };
    if is_allowed { Ok(End::Memory { address, row_pitch, slice_pitch }) } else { Err(CudaError::InvalidValue) }
}

/// A copy as `cudaMemcpy3D` describes it.
pub fn parameters_of(copy: &Copy) -> Memcpy3DParameters {
    let element_bytes = [copy.destination, copy.source].into_iter().find_map(|end| match end {
        End::Array { array, .. } => Some(array::get(array::handle_of(array)?).ok()?.element_bytes()),
        End::Memory { .. } => None,
    });
    let element_bytes = element_bytes.unwrap_or(1).max(1);
    let CopyShape { width, height, depth } = copy.shape;
    let (source_array, source_position, source, from_device) = describe(&copy.source, copy.shape);
    let (destination_array, destination_position, destination, to_device) = describe(&copy.destination, copy.shape);
    Memcpy3DParameters {
        source_array,
        source_position,
        source,
        destination_array,
        destination_position,
        destination,
        extent: Extent { width: width / element_bytes, height, depth },
        kind: match (from_device, to_device) {
            (false, false) => kind::HOST_TO_HOST,
            (false, true) => kind::HOST_TO_DEVICE,
            (true, false) => kind::DEVICE_TO_HOST,
            (true, true) => kind::DEVICE_TO_DEVICE,
        },
        ..Memcpy3DParameters::default()
    }
}

/// An end: array, position, memory, and whether it is a device's.
fn describe(end: &End, shape: CopyShape) -> (u64, Position, PitchedPointer, bool) {
    match *end {
        End::Array { array, offset: [x, y, z] } => {
            let handle = array::handle_of(array).unwrap_or(0);
            let element_bytes = array::get(handle).map_or(1, |array| array.element_bytes().max(1));
            (handle, Position { x: x / element_bytes, y, z }, PitchedPointer::default(), true)
        }
        End::Memory { address, row_pitch, slice_pitch } => {
            let height = slice_pitch.checked_div(row_pitch).unwrap_or(1).max(1);
            let memory = PitchedPointer { pointer: address, pitch: row_pitch, width: shape.width, height };
            let is_device = matches!(ranges::residence(address, 1), Residence::Device(_) | Residence::Managed(_));
            (0, Position::default(), memory, is_device)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: u64 = balar_host::memory::BASE + 0x1000;

    fn rows() -> Memcpy3DParameters {
        Memcpy3DParameters {
            source: PitchedPointer { pointer: 0x1000, pitch: 100, width: 80, height: 7 },
            source_position: Position { x: 4, y: 1, z: 2 },
            destination: PitchedPointer { pointer: DEVICE, pitch: 512, width: 80, height: 5 },
            extent: Extent { width: 80, height: 5, depth: 3 },
            kind: kind::HOST_TO_DEVICE,
            ..Memcpy3DParameters::default()
        }
    }

    #[test]
    fn positions_are_offsets_of_memory() {
        let copy = copy_of(&rows()).expect("a sound copy");
        let source = End::Memory { address: 0x1000 + 4 + 100 + 2 * 700, row_pitch: 100, slice_pitch: 700 };
        assert_eq!(copy.source, source);
        assert_eq!(copy.destination, End::Memory { address: DEVICE, row_pitch: 512, slice_pitch: 2560 });
        let again = copy_of(&parameters_of(&copy)).expect("a sound copy");
        assert_eq!(again, copy);
    }

    #[test]
    fn wrong_copies_are_refused() {
        let rows = rows();
        let no_source = Memcpy3DParameters { source: PitchedPointer::default(), ..rows };
        assert_eq!(copy_of(&no_source), Err(CudaError::InvalidValue));
        let narrow = PitchedPointer { pitch: 79, ..rows.source };
        assert_eq!(copy_of(&Memcpy3DParameters { source: narrow, ..rows }), Err(CudaError::InvalidPitchValue));
        let wide = PitchedPointer { pitch: u64::MAX, ..rows.source };
        assert_eq!(copy_of(&Memcpy3DParameters { source: wide, ..rows }), Err(CudaError::InvalidPitchValue));
        let wrong_way = Memcpy3DParameters { kind: kind::DEVICE_TO_HOST, ..rows };
        assert_eq!(copy_of(&wrong_way), Err(CudaError::InvalidValue));
        let unknown = Memcpy3DParameters { kind: 9, ..rows };
        assert_eq!(copy_of(&unknown), Err(CudaError::InvalidMemcpyDirection));
    }
}
