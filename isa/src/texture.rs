//! Textures and surfaces: the memory that their objects refer to, the texels that a coordinate names, and the weights of these.
//!
//! Addressing and filtering follow the CUDA C++ Programming Guide, "Texture Fetching": the texel of a coordinate x is floor(x); a
//! linear fetch blends the texels around x - 0.5 with weights of 8 fractional bits, rounded to the nearest. The guide leaves open
//! how blends are rounded; in the simulator, a blend is a sum of exact products, rounded once. Texels of weight 0 take no part.

pub use balar_protocol::texture::{AddressMode, ChannelKind};
use half::f16;
use serde::{Deserialize, Serialize};

/// Which texels an instruction's coordinates count through. The names are those of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of PTX")]
pub enum Geometry {
    D1,
    D2,
    D3,
    A1d,
    A2d,
    Cube,
    Acube,
}

impl Geometry {
    /// Coordinates, the layer included.
    pub const fn coordinates(self) -> usize {
        match self {
            Geometry::D1 => 1,
            Geometry::D2 | Geometry::A1d => 2,
            Geometry::D3 | Geometry::A2d | Geometry::Cube => 3,
            Geometry::Acube => 4,
        }
    }

    /// Is the first coordinate a layer?
    pub const fn is_layered(self) -> bool {
        matches!(self, Geometry::A1d | Geometry::A2d | Geometry::Acube)
    }

    /// Dimensions in which texels are blended.
    const fn dimensions(self) -> usize {
        match self {
            Geometry::D1 | Geometry::A1d => 1,
            Geometry::D3 => 3,
            _ => 2,
        }
    }
}

/// How a texel is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TexelFormat {
    /// Channels: 1, 2 or 4.
    pub channels: u8,
    /// Bits of each: 8, 16 or 32.
    pub bits: u8,
    /// The kind of their values.
    pub kind: ChannelKind,
}

impl TexelFormat {
    /// Bytes of a texel.
    pub const fn bytes(self) -> u8 {
        self.channels * (self.bits / 8)
    }
}

/// How a texture is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampler {
    /// In x, y, z.
    pub addressing: [AddressMode; 3],
    /// Whether texels are blended; those read as integers never are.
    pub is_linear: bool,
    /// Whether coordinates go from 0 to 1 over the texture.
    pub is_normalized: bool,
    /// Whether channels of 8 and 16 bits are read as floats from 0 (signed ones: -1) to 1.
    pub reads_normalized_floats: bool,
    /// The channels of the border value, as they are returned.
    pub border: [u32; 4],
}

/// A texture or surface: texels in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Device address of the first texel.
    pub base: u64,
    /// Texels in x, y, z; 1 where there is no such dimension.
    pub extent: [u32; 3],
    /// Layers; 6 for each cube. 1 where the image has none.
    pub layers: u32,
    /// Bytes from a row to the next.
    pub row_pitch: u64,
    /// Bytes from a slice in z, or a layer, to the next.
    pub slice_pitch: u64,
    /// How texels are stored.
    pub format: TexelFormat,
    /// The image is linear memory, not an array: texels outside it read as 0, whatever the addressing.
    pub is_buffer: bool,
    /// How the image is sampled, if it is a texture.
    pub sampler: Sampler,
}

/// One of the texels that a fetch blends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Texel {
    /// Its device address; `None` = the border value.
    pub address: Option<u64>,
    /// Its weight: `UNIT` for all together.
    pub weight: u32,
}

/// The sum of the weights of a fetch.
pub(crate) const UNIT: u32 = 1 << 24;
/// Weight of a coordinate that lies on a texel: 8 bits of fraction.
const ONE: u32 = 1 << 8;

/// Two neighbouring texels of one dimension, and the second one's weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Neighbours {
    places: [Option<u32>; 2],
    weight: u32,
}

/// The texel with this number, counted on over the edges of a row of `extent`.
fn resolve(mode: AddressMode, place: i64, extent: u32) -> Option<u32> {
    let last = i64::from(extent) - 1;
    match mode {
        AddressMode::Wrap => Some(place.rem_euclid(last + 1) as u32),
        AddressMode::Clamp | AddressMode::Mirror => Some(place.clamp(0, last) as u32),
        AddressMode::Border => (0..=last).contains(&place).then_some(place as u32),
    }
}

fn neighbours(mode: AddressMode, normalized: bool, linear: bool, extent: u32, coordinate: f32) -> Neighbours {
    let size = f64::from(extent);
    // Beyond any texture, yet exact; a coordinate that is no number counts as 0.
    let limit = f64::from(1u32 << 30);
    let coordinate = if coordinate.is_nan() { 0.0 } else { f64::from(coordinate).clamp(-limit, limit) };
    let (mode, place) = match (mode, normalized) {
        (AddressMode::Wrap, true) => (AddressMode::Wrap, (coordinate - coordinate.floor()) * size),
        (AddressMode::Mirror, true) => {
            let period = coordinate.floor();
            let within = coordinate - period;
            let is_odd = period.rem_euclid(2.0) != 0.0;
            (AddressMode::Clamp, if is_odd { 1.0 - within } else { within } * size)
        }
        (mode, true) => (mode, coordinate * size),
        (AddressMode::Border, false) => (AddressMode::Border, coordinate),
        (_, false) => (AddressMode::Clamp, coordinate),
    };
    if !linear {
        // A coordinate a hair below a whole period may round up to it.
        let place = place.floor() as i64;
        let place = if mode == AddressMode::Wrap { place.min(i64::from(extent) - 1) } else { place };
        return Neighbours { places: [resolve(mode, place, extent); 2], weight: 0 };
    }
    let place = place - 0.5;
    let first = place.floor();
    let weight = ((place - first) * f64::from(ONE) + 0.5).floor() as u32;
    let first = first as i64;
    Neighbours { places: [resolve(mode, first, extent), resolve(mode, first + 1, extent)], weight }
}

impl Image {
    fn address(&self, [x, y, z]: [u32; 3], layer: u32) -> u64 {
        self.base
            + u64::from(x) * u64::from(self.format.bytes())
            + u64::from(y) * self.row_pitch
            + (u64::from(z) + u64::from(layer)) * self.slice_pitch
    }

    /// Are texels read as floats?
    pub(crate) fn is_floating(&self) -> bool {
        self.format.kind == ChannelKind::Float || (self.sampler.reads_normalized_floats && self.format.bits < 32)
    }

    fn layer(&self, number: u32) -> u32 {
        // A layer is an unsigned number; beyond the last it is the last.
        number.min(self.layers.max(1) - 1)
    }

    /// The texel of whole coordinates, which are not normalised.
    pub(crate) fn texel(&self, geometry: Geometry, coordinates: &[u32; 4]) -> Option<u64> {
        let (layer, rest) = if geometry.is_layered() { (coordinates[0], 1) } else { (0, 0) };
        let mut place = [0; 3];
        for axis in 0..geometry.dimensions() {
            let coordinate = i64::from(coordinates[rest + axis] as i32);
            let extent = self.extent[axis];
            let mode = match self.sampler.addressing[axis] {
                _ if self.is_buffer => AddressMode::Border,
                AddressMode::Border => AddressMode::Border,
                _ => AddressMode::Clamp,
            };
            place[axis] = resolve(mode, coordinate, extent)?;
        }
        Some(self.address(place, self.layer(layer)))
    }

    /// The texels of float coordinates, each with its weight; texels of weight 0 have no address. They are in order of x, then y, then
    /// z, the lower neighbour first. If a fetch reads one texel, it is the first.
    pub(crate) fn footprint(&self, geometry: Geometry, coordinates: &[u32; 4], linear: bool) -> [Texel; 8] {
        let mut layer = 0;
        let mut at = 0;
        if geometry.is_layered() {
            (layer, at) = (coordinates[0], 1);
        }
        let mut values = [0.0; 3];
        let mut normalized = self.sampler.is_normalized;
        let mut addressing = self.sampler.addressing;
        if matches!(geometry, Geometry::Cube | Geometry::Acube) {
            let direction = [0, 1, 2].map(|axis| f32::from_bits(coordinates[at + axis]));
            let (face, x, y) = cube_face(direction);
            // Faces are not blended with each other.
            (values, normalized, addressing) = ([x, y, 0.0], true, [AddressMode::Clamp; 3]);
            layer = self.layer(layer.saturating_mul(6).saturating_add(face));
        } else {
            layer = self.layer(layer);
            for axis in 0..geometry.dimensions() {
                values[axis] = f32::from_bits(coordinates[at + axis]);
            }
        }
        let mut axes = [Neighbours { places: [Some(0); 2], weight: 0 }; 3];
        for axis in 0..geometry.dimensions() {
            let mode = if self.is_buffer { AddressMode::Border } else { addressing[axis] };
            axes[axis] = neighbours(mode, normalized, linear, self.extent[axis], values[axis]);
        }
        let mut texels = [Texel::default(); 8];
        for (number, texel) in texels.iter_mut().enumerate() {
            let which = [number & 1, number >> 1 & 1, number >> 2];
            let weight = |axis: usize| if which[axis] == 1 { axes[axis].weight } else { ONE - axes[axis].weight };
            texel.weight = weight(0) * weight(1) * weight(2);
            if texel.weight == 0 {
                continue;
            }
            if let [Some(x), Some(y), Some(z)] = [0, 1, 2].map(|axis| axes[axis].places[which[axis]]) {
                texel.address = Some(self.address([x, y, z], layer));
            }
        }
        texels
    }

    /// The four texels that a linear fetch would blend, in the order in which a gather returns them: (-, +), (+, +), (+, -), (-, -).
    pub(crate) fn gathered(&self, geometry: Geometry, coordinates: &[u32; 4]) -> [Option<u64>; 4] {
        let (layer, at) = if geometry.is_layered() { (self.layer(coordinates[0]), 1) } else { (0, 0) };
        let axes = [0, 1].map(|axis| {
            let coordinate = f32::from_bits(coordinates[at + axis]);
            neighbours(self.sampler.addressing[axis], self.sampler.is_normalized, true, self.extent[axis], coordinate)
        });
        [(0, 1), (1, 1), (1, 0), (0, 0)].map(|(x, y)| match (axes[0].places[x], axes[1].places[y]) {
            (Some(x), Some(y)) => Some(self.address([x, y, 0], layer)),
            _ => None,
        })
    }

    /// Channels of a stored texel as a fetch returns them: floats as bits of f32, integers extended to 32 bits. Channels that are not
    /// stored are 0, the fourth is 1.
    pub(crate) fn channels(&self, texel: u128) -> [u32; 4] {
        let TexelFormat { channels, bits, kind } = self.format;
        let floating = self.is_floating();
        let one = if floating { 1f32.to_bits() } else { 1 };
        let mut values = [0, 0, 0, one];
        for (channel, value) in values.iter_mut().enumerate().take(usize::from(channels)) {
            let stored = (texel >> (channel * usize::from(bits))) as u32;
            let shift = 32 - u32::from(bits);
            let unsigned = stored << shift >> shift;
            let signed = (stored << shift) as i32 >> shift;
            *value = match kind {
                ChannelKind::Float if bits == 16 => f16::from_bits(unsigned as u16).to_f32().to_bits(),
                ChannelKind::Unsigned if floating => (unsigned as f32 / ((1u32 << bits) - 1) as f32).to_bits(),
                ChannelKind::Signed if floating => {
                    (signed as f32 / ((1u32 << (bits - 1)) - 1) as f32).max(-1.0).to_bits()
                }
                ChannelKind::Signed => signed as u32,
                ChannelKind::Unsigned | ChannelKind::Float => unsigned,
            };
        }
        values
    }

    /// A texel that is stored by its channels: integers saturate, floats of 16 bits are rounded.
    pub(crate) fn packed(&self, values: &[u32; 4]) -> u128 {
        let TexelFormat { channels, bits, kind } = self.format;
        let mut texel = 0;
        for (channel, &value) in values.iter().enumerate().take(usize::from(channels)) {
            let limit = (1u64 << (bits - 1)) as i64;
            let stored = match kind {
                ChannelKind::Float if bits == 16 => u32::from(f16::from_f32(f32::from_bits(value)).to_bits()),
                ChannelKind::Float => value,
                ChannelKind::Unsigned => u64::from(value).min((1u64 << bits) - 1) as u32,
                ChannelKind::Signed => i64::from(value as i32).clamp(-limit, limit - 1) as u32,
            };
            let stored = u64::from(stored) & ((1u64 << bits) - 1);
            texel |= u128::from(stored) << (channel * usize::from(bits));
        }
        texel
    }
}

/// The face of a cube that a direction meets, and where, from 0 to 1 (CUDA C++ Programming Guide, "Cubemap Textures").
fn cube_face([x, y, z]: [f32; 3]) -> (u32, f32, f32) {
    let (face, major, s, t) = if x.abs() >= y.abs() && x.abs() >= z.abs() {
        if x >= 0.0 { (0, x, -z, -y) } else { (1, -x, z, -y) }
    } else if y.abs() >= z.abs() {
        if y >= 0.0 { (2, y, x, z) } else { (3, -y, x, -z) }
    } else if z >= 0.0 {
        (4, z, x, -y)
    } else {
        (5, -z, -x, -y)
    };
    (face, (s / major + 1.0) / 2.0, (t / major + 1.0) / 2.0)
}

/// The effect of a surface access outside the surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bounds {
    /// Ends the kernel.
    Trap,
    /// Accesses the nearest texel inside.
    Clamp,
    /// Reads 0, writes nothing.
    Zero,
}

impl Image {
    /// The device address of an access of `bytes` at whole coordinates. The first one counts bytes where `in_bytes`, else texels.
    /// `None` where it does not take place.
    ///
    /// # Errors
    ///
    /// Where it ends the kernel.
    pub(crate) fn surface_address(
        &self,
        geometry: Geometry,
        coordinates: &[u32; 4],
        in_bytes: bool,
        bytes: u32,
        bounds: Bounds,
    ) -> Result<Option<u64>, ()> {
        let texel = i64::from(self.format.bytes());
        let (layer, at) = if geometry.is_layered() { (i64::from(coordinates[0]), 1) } else { (0, 0) };
        let coordinate = |axis: usize| i64::from(coordinates[at + axis] as i32);
        let scale = if in_bytes { 1 } else { texel };
        let width = i64::from(self.extent[0]) * texel;
        let mut place = [coordinate(0) * scale, 0, 0, layer];
        let last = [
            width - i64::from(bytes),
            i64::from(self.extent[1]) - 1,
            i64::from(self.extent[2]) - 1,
            i64::from(self.layers.max(1)) - 1,
        ];
        for (axis, place) in place.iter_mut().enumerate().take(geometry.dimensions()).skip(1) {
            *place = coordinate(axis);
        }
        for (place, &last) in place.iter_mut().zip(&last) {
            if *place < 0 || *place > last {
                match bounds {
                    Bounds::Trap => return Err(()),
                    Bounds::Clamp if last >= 0 => *place = (*place).clamp(0, last),
                    // An access that is wider than the surface fits nowhere.
                    Bounds::Clamp | Bounds::Zero => return Ok(None),
                }
            }
        }
        let [x, y, z, layer] = place.map(|place| place as u64);
        Ok(Some(self.base + x + y * self.row_pitch + (z + layer) * self.slice_pitch))
    }
}
