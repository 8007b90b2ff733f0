//! Copies and fills: how a call's ends and shape become a command of a copy engine.

use crate::code::tables::SymbolTable;
use crate::effect::{Effect, Effects};
use crate::keys::OperationNumber;
use crate::memory::Memory;
use crate::order::work::{Delivery, Transfer, Work};
use crate::outcome::{Failure, invalid};
use crate::process::images::Images;
use balar_host::CudaError;
use balar_host::call::{CopyEnd, CopyShape};
use balar_host::memory::{Place, place_of};
use balar_protocol::copy::{CopyId, CopyOperation, Rows};
use balar_protocol::{ContextId, Detail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The work of a copy engine.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CopyUnderWay {
    /// The operation that it is.
    pub number: OperationNumber,
    /// The context whose operation it is.
    pub context: ContextId,
    /// The GPU whose copy engine has it.
    pub engine: usize,
    /// Bytes that it moves.
    pub bytes: u64,
    /// Whether bytes that it reads from outside its GPU are in the host's memory.
    pub reads_host: bool,
    /// The same of bytes that it writes.
    pub writes_host: bool,
}

/// The copies and fills of the node: work that copy engines have been given and have not done, and the bytes that were moved.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Copies {
    under_way: BTreeMap<CopyId, CopyUnderWay>,
    next: u32,
    pub moved: MovedBytes,
}

/// Bytes that were moved.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct MovedBytes {
    pub host_to_device: u64,
    pub device_to_host: u64,
    /// From a device to another.
    pub peer: u64,
}

/// A copy that a program asks for.
pub(crate) struct AskedCopy {
    pub destination: CopyEnd,
    pub source: CopyEnd,
    pub shape: CopyShape,
    /// Who gets bytes for pageable memory.
    pub delivery: Delivery,
}

/// A fill that a program asks for.
pub(crate) struct AskedFill {
    pub address: u64,
    pub shape: CopyShape,
    /// From row to row, and from slice to slice.
    pub pitches: [u64; 2],
    pub value: u32,
    pub element_bytes: u8,
}

/// Where copies and fills begin and end.
pub(crate) struct CopyPlaces<'a> {
    /// The context of the stream.
    pub context: ContextId,
    /// The images of its process.
    pub images: &'a Images,
    pub memory: &'a Memory,
    /// The variables of built-in modules.
    pub symbols: &'a SymbolTable,
    /// How many GPUs there are.
    pub gpus: usize,
    /// How closely a copy that begins now is simulated.
    pub detail: Detail,
}

impl Default for Copies {
    fn default() -> Copies {
        Copies { under_way: BTreeMap::new(), next: 1, moved: MovedBytes::default() }
    }
}

impl Copies {
    /// The number of the next copy or fill.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// A copy.
    ///
    /// An end in managed memory is in the memory of the GPU whose engine copies: a driver of unified memory brings its pages there first,
    /// as a prefetch does, when the copy's or fill's turn has come.
    pub fn copy(&mut self, asked: AskedCopy, places: &CopyPlaces) -> Result<Work, Failure> {
        let AskedCopy { destination, source, shape, delivery } = asked;
        let bytes = shape.bytes();
        let operation = match (destination, source) {
            (CopyEnd::Bytes(_), CopyEnd::Bytes(_)) => {
                return Err((CudaError::InvalidMemcpyDirection, "a copy within pageable memory".to_owned()));
            }
            (destination, CopyEnd::Bytes(data)) => {
                let destination = places.rows(destination, shape)?;
                let data = data.data().cloned().unwrap_or_default();
                if data.len() as u64 != bytes {
                    return Err(invalid(format!("{} bytes for a copy of {bytes}", data.len())));
                }
                self.moved.host_to_device += bytes;
                CopyOperation::HostToDevice { destination, data }
            }
            (CopyEnd::Bytes(_), source) => CopyOperation::DeviceToHost { source: places.rows(source, shape)? },
            (destination, source) => {
                let (destination, source) = (places.rows(destination, shape)?, places.rows(source, shape)?);
                match (places.memory.place_of(destination.address), places.memory.place_of(source.address)) {
                    (Place::Device(_), Place::HostWindow) => self.moved.host_to_device += bytes,
                    (Place::HostWindow, Place::Device(_)) => self.moved.device_to_host += bytes,
                    (Place::Device(to), Place::Device(from)) if to != from => self.moved.peer += bytes,
                    _ => {}
                }
                CopyOperation::DeviceToDevice { destination, source }
            }
        };
        Ok(places.work(operation, delivery))
    }

    /// Gives a copy to its engine.
    pub fn begin(&mut self, number: OperationNumber, context: ContextId, copy: &Transfer, effects: &mut Effects) {
        let (engine, operation, detail) = (copy.device, copy.operation.clone(), copy.detail);
        let id = CopyId(self.next);
        self.next = self.next.wrapping_add(1);
        let is_host = |rows: Option<&Rows>| rows.is_none_or(|rows| place_of(rows.address) == Place::HostWindow);
        let under_way = CopyUnderWay {
            number,
            context,
            engine,
            bytes: operation.bytes(),
            reads_host: is_host(operation.source()),
            writes_host: is_host(operation.destination()),
        };
        self.under_way.insert(id, under_way);
        effects.want(Effect::Copy { gpu: engine, id, operation, detail });
    }

    /// The work of a copy engine, by its number.
    pub fn under_way(&self, id: CopyId) -> Option<&CopyUnderWay> {
        self.under_way.get(&id)
    }

    /// A copy engine is done with a command.
    pub fn take(&mut self, id: CopyId) -> Option<CopyUnderWay> {
        self.under_way.remove(&id)
    }
}

impl CopyPlaces<'_> {
    /// A fill.
    pub fn fill(&self, asked: AskedFill) -> Result<Work, Failure> {
        let AskedFill { address, shape, pitches: [row_pitch, slice_pitch], value, element_bytes } = asked;
        let unit = u64::from(element_bytes);
        let is_multiple = |bytes: u64| unit > 0 && bytes.is_multiple_of(unit);
        if !matches!(unit, 1 | 2 | 4) || !is_multiple(address) || !is_multiple(shape.width) {
            return Err(invalid(format!("{} bytes at {address:#x} in elements of {unit}", shape.width)));
        }
        let destination = self.rows(CopyEnd::Memory { address, row_pitch, slice_pitch }, shape)?;
        let operation = CopyOperation::Fill { destination, value, element_bytes };
        Ok(self.work(operation, Delivery::None))
    }

    fn work(&self, operation: CopyOperation, delivery: Delivery) -> Work {
        // The engine of the GPU that is written to, or else read from; of neither, that of the stream.
        let mut ends = operation.destination().into_iter().chain(operation.source());
        let owner = ends.find_map(|rows| match self.memory.place_of(rows.address) {
            Place::Device(device) => Some(device as usize).filter(|&device| device < self.gpus),
            Place::HostWindow | Place::Elsewhere => None,
        });
        let device = owner.unwrap_or(self.context.gpu());
        Work::Copy(Box::new(Transfer { device, operation, delivery, detail: self.detail }))
    }

    /// Checks an end of a copy in the memory of the node.
    fn rows(&self, end: CopyEnd, shape: CopyShape) -> Result<Rows, Failure> {
        let CopyShape { width, height, depth } = shape;
        let (address, row_pitch, slice_pitch) = match end {
            CopyEnd::Bytes(_) => return Err((CudaError::InvalidMemcpyDirection, "no memory of the node".to_owned())),
            CopyEnd::Memory { address, row_pitch, slice_pitch } => (address, row_pitch, slice_pitch),
            CopyEnd::Array { array, offset } => self.place_in_array(array, offset, shape)?,
        };
        if (height > 1 && row_pitch < width) || (depth > 1 && slice_pitch < width) {
            let text = format!("rows of {width} bytes with pitches of {row_pitch} and {slice_pitch}");
            return Err((CudaError::InvalidPitchValue, text));
        }
        let rows = Rows { address, width, height, depth, row_pitch, slice_pitch };
        let span = rows.span().unwrap_or(u64::MAX);
        if span > 0 && !self.memory.is_allocated(self.context.process(), address, span, self.symbols) {
            return Err(invalid(format!("{span} bytes at {address:#x} are not inside one allocation")));
        }
        Ok(rows)
    }

    /// Where an offset in an array is, and its pitches.
    fn place_in_array(&self, array: u64, offset: [u64; 3], shape: CopyShape) -> Result<(u64, u64, u64), Failure> {
        let layout = self.images.array_layout(array)?;
        let fits = |offset: u64, length: u64, extent: u64| offset.checked_add(length).is_some_and(|end| end <= extent);
        let all = fits(offset[0], shape.width, layout.row_bytes)
            && fits(offset[1], shape.height, layout.rows)
            && fits(offset[2], shape.depth, layout.slices);
        if !all && shape.bytes() > 0 {
            return Err(invalid(format!("{shape:?} from {offset:?} on is not inside array {array}")));
        }
        let slice = layout.row_bytes * layout.rows;
        let inside = offset[0].wrapping_add(offset[1].wrapping_mul(layout.row_bytes));
        let address = layout.base.wrapping_add(inside).wrapping_add(offset[2].wrapping_mul(slice));
        Ok((address, layout.row_bytes, slice))
    }
}
