//! Copies and fills: how a call's ends and shape become a command of a copy engine.

use crate::effect::Effect;
use crate::order::work::{Delivery, OperationNumber, Transfer, Work};
use crate::{Driver, Failure};
use balar_host::CudaError;
use balar_host::call::{CopyEnd, CopyShape};
use balar_host::memory::{Place, place_of};
use balar_protocol::ContextId;
use balar_protocol::copy::{CopyId, CopyOperation, Rows};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a copy engine works on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CopyUnderWay {
    /// The operation that it is.
    pub number: OperationNumber,
    /// The context whose operation it is.
    context: ContextId,
    /// The GPU whose copy engine has it.
    pub engine: usize,
    /// Bytes that it moves.
    pub bytes: u64,
    /// Whether bytes that it reads from outside its GPU are in the host's memory.
    pub reads_host: bool,
    /// The same of bytes that it writes.
    pub writes_host: bool,
}

impl Driver {
    /// A copy. `context` is that of its stream.
    ///
    /// An end in managed memory is in the memory of the GPU whose engine copies: a driver of unified memory brings its pages there first,
    /// as a prefetch does, when the copy's or fill's turn has come.
    pub(crate) fn copy(
        &mut self,
        context: ContextId,
        destination: CopyEnd,
        source: CopyEnd,
        shape: CopyShape,
        delivery: Delivery,
    ) -> Result<Work, Failure> {
        let bytes = shape.bytes();
        let operation = match (destination, source) {
            (CopyEnd::Bytes(_), CopyEnd::Bytes(_)) => {
                return Err((CudaError::InvalidMemcpyDirection, "a copy within pageable memory".to_owned()));
            }
            (destination, CopyEnd::Bytes(data)) => {
                let destination = self.rows(context, destination, shape)?;
                let data = data.data().cloned().unwrap_or_default();
                if data.len() as u64 != bytes {
                    let text = format!("{} bytes for a copy of {bytes}", data.len());
                    return Err((CudaError::InvalidValue, text));
                }
                self.state.totals.bytes_host_to_device += bytes;
                CopyOperation::HostToDevice { destination, data }
            }
            (CopyEnd::Bytes(_), source) => CopyOperation::DeviceToHost { source: self.rows(context, source, shape)? },
            (destination, source) => {
                let (destination, source) =
                    (self.rows(context, destination, shape)?, self.rows(context, source, shape)?);
                match (self.place_of(destination.address), self.place_of(source.address)) {
                    (Place::Device(_), Place::HostWindow) => self.state.totals.bytes_host_to_device += bytes,
                    (Place::HostWindow, Place::Device(_)) => self.state.totals.bytes_device_to_host += bytes,
                    (Place::Device(to), Place::Device(from)) if to != from => self.state.totals.bytes_peer += bytes,
                    _ => {}
                }
                CopyOperation::DeviceToDevice { destination, source }
            }
        };
        Ok(self.copy_work(context, operation, delivery))
    }

    /// A fill. `context` is that of its stream.
    pub(crate) fn fill(
        &mut self,
        context: ContextId,
        address: u64,
        shape: CopyShape,
        [row_pitch, slice_pitch]: [u64; 2],
        (value, element_bytes): (u32, u8),
    ) -> Result<Work, Failure> {
        let unit = u64::from(element_bytes);
        let is_multiple = |bytes: u64| unit > 0 && bytes.is_multiple_of(unit);
        if !matches!(unit, 1 | 2 | 4) || !is_multiple(address) || !is_multiple(shape.width) {
            let text = format!("{} bytes at {address:#x} in elements of {unit}", shape.width);
            return Err((CudaError::InvalidValue, text));
        }
        let destination = self.rows(context, CopyEnd::Memory { address, row_pitch, slice_pitch }, shape)?;
        let operation = CopyOperation::Fill { destination, value, element_bytes };
        Ok(self.copy_work(context, operation, Delivery::None))
    }

    fn copy_work(&self, context: ContextId, operation: CopyOperation, delivery: Delivery) -> Work {
        // The engine of the GPU that is written to, or else read from; of neither, that of the stream.
        let mut ends = operation.destination().into_iter().chain(operation.source());
        let owner = ends.find_map(|rows| match self.place_of(rows.address) {
            Place::Device(device) => Some(device as usize).filter(|&device| device < self.gpus.len()),
            Place::HostWindow | Place::Elsewhere => None,
        });
        let device = owner.unwrap_or(context.gpu());
        let detail = self.detail.of_copy(self.ranges(context.process()));
        Work::Copy(Box::new(Transfer { device, operation, delivery, detail }))
    }

    /// Checks an end of a copy in the memory of the node.
    fn rows(&mut self, context: ContextId, end: CopyEnd, shape: CopyShape) -> Result<Rows, Failure> {
        let CopyShape { width, height, depth } = shape;
        let (address, row_pitch, slice_pitch) = match end {
            CopyEnd::Bytes(_) => return Err((CudaError::InvalidMemcpyDirection, "no memory of the node".to_owned())),
            CopyEnd::Memory { address, row_pitch, slice_pitch } => (address, row_pitch, slice_pitch),
            CopyEnd::Array { array, offset } => self.place_in_array(context, array, offset, shape)?,
        };
        if (height > 1 && row_pitch < width) || (depth > 1 && slice_pitch < width) {
            let text = format!("rows of {width} bytes with pitches of {row_pitch} and {slice_pitch}");
            return Err((CudaError::InvalidPitchValue, text));
        }
        let rows = Rows { address, width, height, depth, row_pitch, slice_pitch };
        let span = rows.span().unwrap_or(u64::MAX);
        if span > 0 && !self.is_allocated(context.process(), address, span) {
            let text = format!("{span} bytes at {address:#x} are not inside one allocation");
            return Err((CudaError::InvalidValue, text));
        }
        Ok(rows)
    }

    /// Where an offset in an array is, and its pitches.
    fn place_in_array(
        &mut self,
        context: ContextId,
        array: u64,
        offset: [u64; 3],
        shape: CopyShape,
    ) -> Result<(u64, u64, u64), Failure> {
        let layout = self.own(context).images.array_layout(array)?;
        let fits = |offset: u64, length: u64, extent: u64| offset.checked_add(length).is_some_and(|end| end <= extent);
        let all = fits(offset[0], shape.width, layout.row_bytes)
            && fits(offset[1], shape.height, layout.rows)
            && fits(offset[2], shape.depth, layout.slices);
        if !all && shape.bytes() > 0 {
            let text = format!("{shape:?} from {offset:?} on is not inside array {array}");
            return Err((CudaError::InvalidValue, text));
        }
        let slice = layout.row_bytes * layout.rows;
        let inside = offset[0].wrapping_add(offset[1].wrapping_mul(layout.row_bytes));
        let address = layout.base.wrapping_add(inside).wrapping_add(offset[2].wrapping_mul(slice));
        Ok((address, layout.row_bytes, slice))
    }

    /// Gives a copy to its engine.
    pub(crate) fn begin_copy(&mut self, number: OperationNumber, context: ContextId) {
        let Some((_, Work::Copy(copy))) = self.state.operations.under_way(number) else { return };
        let (engine, operation, detail) = (copy.device, copy.operation.clone(), copy.detail);
        let id = CopyId(self.state.next_copy);
        self.state.next_copy = self.state.next_copy.wrapping_add(1);
        let is_host = |rows: Option<&Rows>| rows.is_none_or(|rows| place_of(rows.address) == Place::HostWindow);
        let under_way = CopyUnderWay {
            number,
            context,
            engine,
            bytes: operation.bytes(),
            reads_host: is_host(operation.source()),
            writes_host: is_host(operation.destination()),
        };
        self.state.commands.insert(id, under_way);
        self.want(Effect::Copy { gpu: engine, id, operation, detail });
    }

    /// What a copy engine works on.
    pub fn copy_under_way(&self, id: CopyId) -> Option<&CopyUnderWay> {
        self.state.commands.get(&id)
    }

    /// A copy engine is done with a command. Gives the bytes that it brought for pageable memory, and who gets them.
    pub fn copy_completed(
        &mut self,
        id: CopyId,
        data: Option<Arc<[u8]>>,
        error: Option<Box<str>>,
    ) -> Option<(Delivery, Arc<[u8]>)> {
        let CopyUnderWay { number, context, .. } = self.state.commands.remove(&id)?;
        let Some((_, Work::Copy(copy))) = self.state.operations.complete(number) else { return None };
        if let Some(error) = error {
            self.fail_context(context, CudaError::InvalidValue, error.into(), None);
            return None;
        }
        let data = data?;
        self.state.totals.bytes_device_to_host += data.len() as u64;
        Some((copy.delivery, data))
    }
}
