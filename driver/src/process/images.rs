//! Arrays, textures and surfaces, as the CUDA driver keeps them.
//!
//! An array lies in device memory row by row, slice by slice, without gaps. Hardware stores texels in an order of its own, in which
//! neighbours in all directions share lines; the results of a program do not depend on it.

use super::modules::ModuleList;
use crate::code::tables::SymbolTable;
use crate::effect::{Effects, MemoryChange};
use crate::keys::OperationNumber;
use crate::memory::Memory;
use crate::order::Order;
use crate::order::operations::Operations;
use crate::outcome::{CallOutcome, Failure, NOTHING, Outcome, not_modelled};
use crate::wait::Then;
use balar_host::CudaError;
use balar_host::{ArrayDescription, Call, CallResult, ChannelFormat, Resource, TextureDescription};
use balar_isa::texture::{ChannelKind, Image, Sampler, TexelFormat};
use balar_protocol::ContextId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Alignment of a texture's first texel: that of allocations, which CUDA promises to be enough (the property
/// `cudaDevAttrTextureAlignment` says more, 512).
const ALIGNMENT: u64 = 256;
/// Alignment of the pitch of a texture's rows (`cudaDevAttrTexturePitchAlignment`, 32 for all simulated GPUs).
const PITCH_ALIGNMENT: u64 = 32;

/// The arrays and objects of a process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Images {
    /// By number.
    arrays: BTreeMap<u64, Array>,
    /// Handles of texture and surface objects, with their contexts.
    objects: BTreeMap<u64, ContextId>,
    /// Objects destroyed while kernels launched before may use them: context, the operation that follows, handle.
    ending: Vec<(ContextId, OperationNumber, u64)>,
    /// The images that references of modules are bound to, by handle, with their contexts.
    bound: BTreeMap<u64, (ContextId, Image)>,
    next: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Array {
    context: ContextId,
    base: u64,
    description: ArrayDescription,
}

impl Array {
    /// Bytes of a row; rows of a slice; slices or layers.
    fn layout(&self) -> (u64, u64, u64) {
        let [x, y, z] = self.description.extent.map(|extent| u64::from(extent.max(1)));
        (x * self.description.format.bytes(), y, z * u64::from(self.description.layers.max(1)))
    }
}

/// Where an array lies: rows follow each other without gaps.
pub(crate) struct ArrayLayout {
    pub base: u64,
    pub row_bytes: u64,
    pub rows: u64,
    /// Slices or layers.
    pub slices: u64,
}

impl Default for Images {
    fn default() -> Self {
        Images {
            arrays: BTreeMap::new(),
            objects: BTreeMap::new(),
            ending: Vec::new(),
            bound: BTreeMap::new(),
            next: 1,
        }
    }
}

impl Images {
    fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    fn find(&self, array: u64) -> Result<Array, Failure> {
        let found = self.arrays.get(&array).copied();
        found.ok_or_else(|| (CudaError::InvalidResourceHandle, format!("there is no array {array}")))
    }

    fn array(&self, array: u64) -> Result<(u64, ArrayDescription), Failure> {
        self.find(array).map(|array| (array.base, array.description))
    }

    /// Where an array lies.
    pub fn array_layout(&self, array: u64) -> Result<ArrayLayout, Failure> {
        let array = self.find(array)?;
        let (row_bytes, rows, slices) = array.layout();
        Ok(ArrayLayout { base: array.base, row_bytes, rows, slices })
    }

    /// Everything of a context ends. Gives the handles that have no meaning any more.
    pub fn destroy_all(&mut self, context: ContextId) -> Vec<u64> {
        self.arrays.retain(|_, array| array.context != context);
        self.bound.retain(|_, (owner, _)| *owner != context);
        let ended = self.objects.iter().filter(|(_, owner)| **owner == context);
        let ended: Vec<u64> = ended.map(|(handle, _)| *handle).collect();
        self.objects.retain(|_, owner| *owner != context);
        ended
    }
}

fn texel_format(format: ChannelFormat) -> Result<TexelFormat, Failure> {
    let float_fits = format.kind != ChannelKind::Float || format.bits > 8;
    if !matches!(format.channels, 1 | 2 | 4) || !matches!(format.bits, 8 | 16 | 32) || !float_fits {
        let text = format!("{} channels of {} bits, {:?}", format.channels, format.bits, format.kind);
        return Err((CudaError::InvalidChannelDescriptor, format!("no texture has {text}")));
    }
    Ok(TexelFormat { channels: format.channels, bits: format.bits, kind: format.kind })
}

/// The image of an array, sampled as textures are that say nothing.
fn image_of(base: u64, description: &ArrayDescription) -> Result<Image, Failure> {
    let format = texel_format(description.format)?;
    let extent = description.extent.map(|extent| extent.max(1));
    let row_pitch = u64::from(extent[0]) * u64::from(format.bytes());
    Ok(Image {
        base,
        extent,
        layers: description.layers.max(1),
        row_pitch,
        slice_pitch: row_pitch * u64::from(extent[1]),
        format,
        is_buffer: false,
        sampler: Sampler::default(),
    })
}

fn sampler(image: &Image, description: &TextureDescription) -> Result<Sampler, Failure> {
    let normalizes = description.reads_normalized_floats && image.format.kind != ChannelKind::Float;
    if normalizes && image.format.bits == 32 {
        let text = "integers of 32 bits are not read as normalised floats".to_owned();
        return Err((CudaError::InvalidChannelDescriptor, text));
    }
    let floating = normalizes || image.format.kind == ChannelKind::Float;
    if description.is_linear && (!floating || image.is_buffer) {
        let text = "texels are blended only in arrays and pitched memory that are read as floats".to_owned();
        return Err((CudaError::InvalidFilterSetting, text));
    }
    // Integers have a border of integers.
    let border = description.border.map(|value| if floating { value.to_bits() } else { value as i32 as u32 });
    Ok(Sampler {
        addressing: description.addressing,
        is_linear: description.is_linear,
        is_normalized: description.is_normalized,
        reads_normalized_floats: normalizes,
        border,
    })
}

/// The parts of the driver that calls about images need beside the images of their process.
pub(crate) struct ImageNeeds<'a> {
    /// The modules of the process.
    pub modules: &'a ModuleList,
    /// Where the references of modules lie.
    pub symbols: &'a SymbolTable,
    pub memory: &'a mut Memory,
    pub order: &'a Order,
    pub effects: &'a mut Effects,
}

impl Images {
    /// A call about arrays, textures and surfaces.
    pub fn call(&mut self, context: ContextId, call: Call, needs: ImageNeeds) -> CallOutcome {
        let result = match call {
            Call::ArrayCreate { description } => {
                self.create_array(context, description, needs.memory, needs.effects)?
            }
            Call::ArrayDestroy { array } => {
                let Array { context: owner, base, .. } = self.find(array)?;
                self.arrays.remove(&array);
                return Ok(Outcome::waits(needs.order.end_of_context(owner), Then::Free(base)));
            }
            Call::TextureCreate { resource, description } => {
                let image = self.texture(context, resource, &description, &needs)?;
                self.create_object(context, image, needs.effects)
            }
            Call::SurfaceCreate { array } => {
                let (base, description) = self.array(array)?;
                let image = image_of(base, &description)?;
                self.create_object(context, image, needs.effects)
            }
            Call::TextureBind { module, name, resource, description } => {
                let handle = reference(context, module, &name, &needs)?;
                let image = self.texture(context, resource, &description, &needs)?;
                let again = Call::TextureBind { module, name, resource, description };
                return self.bind(context, (handle, image), again, needs);
            }
            Call::SurfaceBind { module, name, array } => {
                let (base, description) = self.array(array)?;
                let (handle, image) = (reference(context, module, &name, &needs)?, image_of(base, &description)?);
                return self.bind(context, (handle, image), Call::SurfaceBind { module, name, array }, needs);
            }
            other => return Err(not_modelled(&other)),
        };
        Ok(Outcome::Returns(result))
    }

    fn create_array(
        &mut self,
        context: ContextId,
        description: ArrayDescription,
        memory: &mut Memory,
        effects: &mut Effects,
    ) -> Result<CallResult, Failure> {
        texel_format(description.format)?;
        if description.extent[0] == 0 {
            return Err((CudaError::InvalidValue, "an array without texels".to_owned()));
        }
        let base = memory.allocate_device(context, description.bytes(), effects)?;
        let number = self.number();
        self.arrays.insert(number, Array { context, base, description });
        Ok(CallResult::Object(number))
    }

    fn texture(
        &self,
        context: ContextId,
        resource: Resource,
        description: &TextureDescription,
        needs: &ImageNeeds,
    ) -> Result<Image, Failure> {
        let linear = |pointer: u64, bytes: u64| {
            let is_allocated = needs.memory.is_allocated(context.process(), pointer, bytes, needs.symbols);
            if is_allocated && pointer.is_multiple_of(ALIGNMENT) {
                return Ok(());
            }
            let text =
                format!("{bytes} bytes at {pointer:#x} are not inside one allocation, at a multiple of {ALIGNMENT}");
            Err((CudaError::InvalidValue, text))
        };
        let mut image = match resource {
            Resource::Array(array) => {
                let (base, description) = self.array(array)?;
                image_of(base, &description)?
            }
            Resource::Linear { pointer, bytes, format } => {
                linear(pointer, bytes)?;
                let texels = bytes / format.bytes().max(1);
                let width = u32::try_from(texels)
                    .map_err(|_| (CudaError::InvalidValue, format!("a texture of {texels} texels")))?;
                let description = ArrayDescription { format, extent: [width, 0, 0], layers: 0 };
                Image { is_buffer: true, ..image_of(pointer, &description)? }
            }
            Resource::Pitch2D { pointer, width, height, pitch, format } => {
                let row = u64::from(width) * format.bytes();
                if height == 0 || pitch < row || !pitch.is_multiple_of(PITCH_ALIGNMENT) {
                    let text = format!(
                        "{height} rows of {row} bytes with a pitch of {pitch}, expected a multiple of {PITCH_ALIGNMENT}"
                    );
                    return Err((CudaError::InvalidValue, text));
                }
                linear(pointer, pitch.saturating_mul(u64::from(height) - 1).saturating_add(row))?;
                let description = ArrayDescription { format, extent: [width, height, 0], layers: 0 };
                Image { row_pitch: pitch, ..image_of(pointer, &description)? }
            }
        };
        image.sampler = sampler(&image, description)?;
        Ok(image)
    }

    fn create_object(&mut self, context: ContextId, image: Image, effects: &mut Effects) -> CallResult {
        let handle = self.number();
        self.objects.insert(handle, context);
        effects.change(MemoryChange::Image { process: context.process(), handle, image: Some(image) });
        CallResult::Object(handle)
    }

    /// A texture or surface object is known no more. Kernels launched before operation `next` may go on using it.
    pub fn destroy_object(&mut self, handle: u64, next: OperationNumber) -> Result<(), Failure> {
        let Some(context) = self.objects.remove(&handle) else {
            let text = format!("there is no texture or surface object {handle}");
            return Err((CudaError::InvalidValue, text));
        };
        self.ending.push((context, next, handle));
        Ok(())
    }

    /// Destroyed objects end when no kernel launched before is left. Gives those that do, with their contexts.
    pub fn take_ended(&mut self, operations: &Operations) -> Vec<(ContextId, u64)> {
        let is_over = |&mut (context, number, _): &mut (ContextId, OperationNumber, u64)| {
            operations.is_done_before(context, number)
        };
        let ended = self.ending.extract_if(.., is_over);
        ended.map(|(context, _, handle)| (context, handle)).collect()
    }

    /// Binds a reference. Kernels launched before see its earlier image. A reference has but one image at a time here, so a new one waits
    /// for these kernels; on hardware it does not.
    fn bind(
        &mut self,
        context: ContextId,
        (handle, image): (u64, Image),
        again: Call,
        needs: ImageNeeds,
    ) -> CallOutcome {
        let changes = self.bound.get(&handle).is_some_and(|&before| before != (context, image));
        let operations = &needs.order.operations;
        if changes && !operations.is_done_before(context, operations.next()) {
            return Ok(Outcome::waits(needs.order.end_of_context(context), Then::Again(Box::new(again))));
        }
        self.bound.insert(handle, (context, image));
        needs.effects.change(MemoryChange::Image { process: context.process(), handle, image: Some(image) });
        NOTHING
    }
}

/// A reference of a module is its own handle: its address.
fn reference(context: ContextId, module: u32, name: &str, needs: &ImageNeeds) -> Result<u64, Failure> {
    needs.modules.check(context, module)?;
    let symbol = needs.symbols.find(context, module, name);
    let address = symbol.map(|symbol| symbol.address);
    address.ok_or_else(|| (CudaError::InvalidSymbol, format!("the module has no variable {name}")))
}
