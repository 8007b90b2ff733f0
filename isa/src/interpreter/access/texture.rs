//! Textures and surfaces: from coordinates to texels, and back.

use super::memory::problem;
use crate::execution::{
    AccessKind, AtomicFunction, AtomicType, CacheOperator, Effect, LaneValues, MemoryAccess, Space, StepContext,
};
use crate::interpreter::bodies::{extend, write_element};
use crate::interpreter::registers::Lane;
use crate::lanes::{LANES, lanes};
use crate::operation::operand::Source;
use crate::operation::{ImageForm, ImageOperation, Instruction, Query};
use crate::program::Program;
use crate::texture::{AddressMode, Bounds, ChannelKind, Geometry, Image, Texel, UNIT};
use crate::warp::WarpState;
use balar_protocol::cuda::FaultCause;
use half::f16;

/// Where the coordinates begin, behind image and sampler.
const COORDINATES: usize = 2;
/// Where the values of a store begin.
const VALUES: usize = 6;

struct Operands<'a> {
    program: &'a Program,
    instruction: &'a Instruction,
    destinations: usize,
}

impl Operands<'_> {
    fn place(&self, index: usize) -> u16 {
        let row = usize::from(self.instruction.operand_list) + index / LANES;
        self.program.constants[row].0[index % LANES] as u16
    }

    fn source<T: Lane>(&self, warp: &WarpState, index: usize) -> [T; LANES] {
        let source = Source(self.place(self.destinations + index));
        match self.instruction.memory.pairs {
            true => T::read_pair(&warp.registers, &warp.constants.0, source),
            false => T::read(&warp.registers, &warp.constants.0, source),
        }
    }

    /// The handle of an image or a sampler.
    fn handles(&self, warp: &WarpState, index: usize) -> [u64; LANES] {
        if self.instruction.memory.pairs {
            self.source::<u32>(warp, index).map(u64::from)
        } else {
            self.source(warp, index)
        }
    }

    fn coordinates(&self, warp: &WarpState, geometry: Geometry) -> [[u32; 4]; LANES] {
        let mut coordinates = [[0; 4]; LANES];
        for index in 0..geometry.coordinates() {
            let values = self.source::<u32>(warp, COORDINATES + index);
            for (lane, value) in values.into_iter().enumerate() {
                coordinates[lane][index] = value;
            }
        }
        coordinates
    }
}

/// What one step of an instruction accesses: an image, for the lanes that name it.
struct ImageAccess<'a> {
    operands: Operands<'a>,
    form: &'a ImageForm,
    image: Image,
    /// The lanes.
    mask: u32,
}

/// Runs one instruction. Lanes that name another image than the first lane's are left for a step of their own.
pub(in crate::interpreter) fn run(
    program: &Program,
    instruction: &Instruction,
    form: &ImageForm,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    mask: u32,
) -> Effect {
    let is_query = matches!(form.operation, ImageOperation::Query(_));
    (access.mask, access.space, access.cache, access.kind) = (0, Space::Global, CacheOperator::All, AccessKind::Load);
    if mask == 0 {
        warp.control.advance();
        return if is_query { Effect::Plain } else { Effect::Memory { deferred: false } };
    }
    let destinations = match form.operation {
        ImageOperation::Fetch { .. } | ImageOperation::Gather { .. } => 4,
        ImageOperation::Load { .. } => usize::from(instruction.memory.elements),
        ImageOperation::Store { .. } | ImageOperation::Reduce { .. } => 0,
        ImageOperation::Query(_) => 1,
    };
    let operands = Operands { program, instruction, destinations };
    let first = mask.trailing_zeros() as usize;
    let handles = operands.handles(warp, 0);
    let done = lanes(mask).filter(|&lane| handles[lane] == handles[first]).fold(0, |done, lane| done | 1 << lane);
    let lane = first as u8;
    let Some(mut image) = context.memory.image(handles[first]) else {
        return Effect::Fault { lane, cause: FaultCause::InvalidImage { handle: handles[first] } };
    };
    if form.has_sampler {
        let handle = operands.handles(warp, 1)[first];
        let Some(sampler) = context.memory.image(handle) else {
            return Effect::Fault { lane, cause: FaultCause::InvalidImage { handle } };
        };
        image.sampler = sampler.sampler;
    }
    let of = ImageAccess { operands, form, image, mask: done };
    let ended = match form.operation {
        ImageOperation::Fetch { floats } => of.fetch(floats, warp, context, access),
        ImageOperation::Gather { channel } => of.gather(channel, warp, context, access),
        ImageOperation::Load { bounds } => of.load(bounds, warp, context, access),
        ImageOperation::Store { bounds, formatted } => of.store(bounds, formatted, warp, context, access),
        ImageOperation::Reduce { bounds, formatted } => of.reduce(bounds, formatted, warp, context, access),
        ImageOperation::Query(query) => {
            let value = answer(&of.image, query);
            u32::write(&mut warp.registers, of.operands.place(0), &[value; LANES], done);
            Ok(())
        }
    };
    if let Err(effect) = ended {
        return effect;
    }
    if mask != done {
        warp.control.postpone(mask & !done);
    }
    warp.control.advance();
    if is_query { Effect::Plain } else { Effect::Memory { deferred: false } }
}

fn answer(image: &Image, query: Query) -> u32 {
    match query {
        Query::Width => image.extent[0],
        Query::Height => image.extent[1],
        Query::Depth => image.extent[2],
        Query::ArraySize => image.layers,
        Query::IsNormalized => u32::from(image.sampler.is_normalized),
        Query::IsNotNormalized => u32::from(!image.sampler.is_normalized),
        Query::IsLinear => u32::from(image.sampler.is_linear),
        // As the CUDA runtime numbers them (`cudaTextureAddressMode`).
        Query::AddressMode(axis) => match image.sampler.addressing[usize::from(axis)] {
            AddressMode::Wrap => 0,
            AddressMode::Clamp => 1,
            AddressMode::Mirror => 2,
            AddressMode::Border => 3,
        },
        Query::One => 1,
    }
}

/// Reads one texel for each lane that has an address, and leaves the `values` of other lanes. The instruction describes its first such
/// access; later ones are further accesses.
fn read_texels(
    image: &Image,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    addresses: &[Option<u64>; LANES],
    values: &mut LaneValues,
) -> Result<u32, Effect> {
    let (bytes, cache) = (image.format.bytes(), CacheOperator::Texture);
    let mut own = MemoryAccess { bytes, cache, ..MemoryAccess::default() };
    for (lane, address) in addresses.iter().enumerate() {
        if let Some(address) = address {
            own.addresses[lane] = *address;
            own.mask |= 1 << lane;
        }
    }
    if own.mask == 0 {
        return Ok(0);
    }
    context.memory.load(&own, values).map_err(problem)?;
    let mask = own.mask;
    if access.mask == 0 {
        *access = own;
    } else {
        context.memory.touch(&own);
    }
    Ok(mask)
}

/// The value that a lane stores in an element.
fn element(operands: &Operands, warp: &WarpState, index: usize) -> [u64; LANES] {
    if operands.instruction.memory.wide[0] {
        operands.source::<u64>(warp, VALUES + index)
    } else {
        operands.source::<u32>(warp, VALUES + index).map(u64::from)
    }
}

impl ImageAccess<'_> {
    /// Writes four values a lane, as floats of 16 bits where the instruction asks for them.
    fn write_channels(&self, warp: &mut WarpState, channels: &[[u32; 4]; LANES]) {
        let ImageAccess { operands, form, image, mask } = self;
        let returned = |all: &[u32; 4], channel: usize| match (form.halves, image.is_floating()) {
            (true, true) => u32::from(f16::from_f32(f32::from_bits(all[channel])).to_bits()),
            (true, false) => all[channel] & 0xffff,
            _ => all[channel],
        };
        if form.halves && operands.instruction.memory.pairs {
            let mut words = [[0; LANES]; 2];
            for (place, channel) in lanes(operands.instruction.immediate & 0xf).enumerate() {
                for (word, all) in words[place / 2].iter_mut().zip(channels) {
                    *word |= returned(all, channel) << (16 * (place % 2));
                }
            }
            for (place, word) in words.iter().enumerate() {
                u32::write(&mut warp.registers, operands.place(place), word, *mask);
            }
            return;
        }
        for channel in 0..4 {
            let values = channels.map(|all| returned(&all, channel));
            u32::write(&mut warp.registers, operands.place(channel), &values, *mask);
        }
    }

    /// Reads a texel for each lane, or several of which it makes one.
    fn fetch(
        &self,
        floats: bool,
        warp: &mut WarpState,
        context: &mut StepContext,
        access: &mut MemoryAccess,
    ) -> Result<(), Effect> {
        let ImageAccess { operands, form, image, mask } = self;
        let coordinates = operands.coordinates(warp, form.geometry);
        // Compilers read textures of one dimension as if they had two, and the hardware knows better.
        let geometry = match form.geometry {
            Geometry::D2 if operands.instruction.memory.pairs && image.extent[1] == 1 => Geometry::D1,
            geometry => geometry,
        };
        let is_linear = floats && image.sampler.is_linear && image.is_floating();
        let mut footprints = [[Texel::default(); 8]; LANES];
        for lane in lanes(*mask) {
            if floats {
                footprints[lane] = image.footprint(geometry, &coordinates[lane], is_linear);
            } else {
                footprints[lane][0] = Texel { address: image.texel(geometry, &coordinates[lane]), weight: UNIT };
            }
        }
        let outside = if image.is_buffer { [0; 4] } else { image.sampler.border };
        let mut sums = [[0f64; 4]; LANES];
        let mut channels = [[0; 4]; LANES];
        let mut values = LaneValues::default();
        for texel in 0..if is_linear { 8 } else { 1 } {
            // The other lanes have no footprint.
            let addresses = footprints.map(|texels| texels[texel].address);
            let weights = footprints.map(|texels| texels[texel].weight);
            let read = read_texels(image, context, access, &addresses, &mut values)?;
            for lane in lanes(*mask) {
                let weight = weights[lane];
                if weight == 0 {
                    continue;
                }
                let inside = read >> lane & 1 == 1;
                channels[lane] = if inside { image.channels(values.get(lane)) } else { outside };
                for (sum, value) in sums[lane].iter_mut().zip(channels[lane]) {
                    *sum += f64::from(f32::from_bits(value)) * f64::from(weight);
                }
            }
        }
        if is_linear {
            for lane in lanes(*mask) {
                // A texel that counts alone is returned bit for bit.
                if footprints[lane].iter().all(|texel| texel.weight < UNIT) {
                    channels[lane] = sums[lane].map(|sum| ((sum / f64::from(UNIT)) as f32).to_bits());
                }
            }
        }
        self.write_channels(warp, &channels);
        Ok(())
    }

    /// Reads one channel of four texels for each lane.
    fn gather(
        &self,
        channel: u8,
        warp: &mut WarpState,
        context: &mut StepContext,
        access: &mut MemoryAccess,
    ) -> Result<(), Effect> {
        let ImageAccess { operands, form, image, mask } = self;
        let coordinates = operands.coordinates(warp, form.geometry);
        let mut texels = [[None; 4]; LANES];
        for lane in lanes(*mask) {
            texels[lane] = image.gathered(form.geometry, &coordinates[lane]);
        }
        let mut channels = [[0; 4]; LANES];
        let mut values = LaneValues::default();
        for number in 0..4 {
            let mut addresses = [None; LANES];
            for lane in lanes(*mask) {
                addresses[lane] = texels[lane][number];
            }
            let read = read_texels(image, context, access, &addresses, &mut values)?;
            for lane in lanes(*mask) {
                let inside = read >> lane & 1 == 1;
                let all = if inside { image.channels(values.get(lane)) } else { image.sampler.border };
                channels[lane][number] = all[usize::from(channel)];
            }
        }
        self.write_channels(warp, &channels);
        Ok(())
    }

    /// Fills in an access to a surface; lanes whose access does not take place are left out.
    fn describe(
        &self,
        bounds: Bounds,
        (in_bytes, bytes): (bool, u8),
        warp: &WarpState,
        access: &mut MemoryAccess,
    ) -> Result<(), Effect> {
        let ImageAccess { operands, form, image, mask } = self;
        let coordinates = operands.coordinates(warp, form.geometry);
        access.bytes = bytes;
        for lane in lanes(*mask) {
            match image.surface_address(form.geometry, &coordinates[lane], in_bytes, u32::from(bytes), bounds) {
                Ok(Some(address)) => {
                    access.addresses[lane] = address;
                    access.mask |= 1 << lane;
                }
                Ok(None) => {}
                Err(()) => {
                    let coordinates = coordinates[lane].map(|coordinate| coordinate as i32);
                    let cause = FaultCause::OutsideSurface { coordinates, extent: image.extent, layers: image.layers };
                    return Err(Effect::Fault { lane: lane as u8, cause });
                }
            }
        }
        Ok(())
    }

    /// Loads from a surface.
    fn load(
        &self,
        bounds: Bounds,
        warp: &mut WarpState,
        context: &mut StepContext,
        access: &mut MemoryAccess,
    ) -> Result<(), Effect> {
        let operands = &self.operands;
        let memory = &operands.instruction.memory;
        let bytes = memory.element_bytes * memory.elements;
        self.describe(bounds, (true, bytes), warp, access)?;
        let mut values = LaneValues::default();
        if access.mask != 0 {
            context.memory.load(access, &mut values).map_err(problem)?;
        }
        for element in 0..usize::from(memory.elements) {
            let shift = element * usize::from(memory.element_bytes) * 8;
            let keep = u64::MAX >> (64 - 8 * u32::from(memory.element_bytes));
            let mut part = [0; LANES];
            for lane in lanes(access.mask) {
                let value = (values.get(lane) >> shift) as u64 & keep;
                part[lane] = extend(value, memory.element_bytes, memory.signed);
            }
            write_element(&mut warp.registers, operands.place(element), memory.wide[element], &part, self.mask);
        }
        Ok(())
    }

    /// Stores to a surface.
    fn store(
        &self,
        bounds: Bounds,
        formatted: bool,
        warp: &mut WarpState,
        context: &mut StepContext,
        access: &mut MemoryAccess,
    ) -> Result<(), Effect> {
        let ImageAccess { operands, image, .. } = self;
        access.kind = AccessKind::Store;
        let memory = &operands.instruction.memory;
        let bytes = if formatted { image.format.bytes() } else { memory.element_bytes * memory.elements };
        self.describe(bounds, (!formatted, bytes), warp, access)?;
        let mut texels = [0u128; LANES];
        let mut channels = [[0; 4]; LANES];
        for index in 0..usize::from(memory.elements) {
            let values = element(operands, warp, index);
            let keep = u64::MAX >> (64 - 8 * u32::from(memory.element_bytes));
            for (all, value) in channels.iter_mut().zip(values) {
                all[index] = value as u32;
            }
            for lane in lanes(access.mask) {
                texels[lane] |= u128::from(values[lane] & keep) << (index * usize::from(memory.element_bytes) * 8);
            }
        }
        let mut values = LaneValues::default();
        for lane in lanes(access.mask) {
            let texel = if formatted { image.packed(&channels[lane]) } else { texels[lane] };
            values.set(lane, texel);
        }
        if access.mask != 0 {
            context.memory.store(access, &values).map_err(problem)?;
        }
        Ok(())
    }

    /// Reduces into a surface.
    fn reduce(
        &self,
        bounds: Bounds,
        formatted: bool,
        warp: &mut WarpState,
        context: &mut StepContext,
        access: &mut MemoryAccess,
    ) -> Result<(), Effect> {
        let ImageAccess { operands, image, .. } = self;
        access.kind = AccessKind::Reduction;
        let memory = &operands.instruction.memory;
        self.describe(bounds, (!formatted, memory.element_bytes), warp, access)?;
        let values = LaneValues { low: element(operands, warp, 0), ..LaneValues::default() };
        if access.mask != 0 {
            let data_type = match memory.data_type {
                // Of texels, the format says whether they have signs.
                AtomicType::U32 | AtomicType::S32 if formatted && image.format.kind == ChannelKind::Signed => {
                    AtomicType::S32
                }
                AtomicType::U32 | AtomicType::S32 if formatted => AtomicType::U32,
                data_type => data_type,
            };
            let function = AtomicFunction { operation: memory.operation, data_type };
            let (none, mut old) = (LaneValues::default(), LaneValues::default());
            context.memory.atomic(access, function, &values, &none, &mut old).map_err(problem)?;
        }
        Ok(())
    }
}
