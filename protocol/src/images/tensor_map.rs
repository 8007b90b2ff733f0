//! Tensor maps of Hopper: 128 bytes in memory that describe a tensor and the boxes of it that bulk copies move. Hardware reads the first 64:
//! cuBLASLt and cuDNN pass maps of so many bytes to their kernels.
//!
//! The driver makes them (`cuTensorMapEncodeTiled`, `cuTensorMapEncodeIm2col`), and kernels change them (`tensormap.replace`, which compilers
//! turn into code that changes bits; the places of the fields that it can change are an own finding from that code). cuBLASLt and
//! cuDNN of CUDA 13.2 write maps themselves, which agree with these places, and tell the others:
//!
//! | byte | bits | field |
//! |---|---|---|
//! | 0x00 | 0 to 63 | address of the tensor |
//! | 0x08 | 0 | whether boxes are those of a convolution |
//! | | 1 to 3 | version, 1 |
//! | | 4 to 6 | dimensions, less 1 |
//! | | 7 to 10, 16 | type of the elements, see [`ElementType`] |
//! | | 11 to 12, 13 to 14 | interleaving, swizzle |
//! | | 15 | whether elements outside the tensor are read as not-a-number |
//! | | 17 to 18 | promotion of reads in the L2 |
//! | 0x0c, 0x10, 0x14, 0x18 | 0 to 31 | strides of dimensions 1 to 4 in units of 16 bytes, lower bits |
//! | 0x1c | 0 to 15 | their upper bits, four each |
//! | 0x20 to 0x33 | | sizes of the five dimensions, less 1 |
//! | 0x34 | 0 to 14 | traversal strides of the five dimensions, less 1, three bits each |
//! | | 24 to 31 | size of the box in dimension 0, less 1 |
//! | 0x38 | 0 to 31 | its sizes in dimensions 1 to 4, less 1, eight bits each |
//!
//! The boxes of a convolution have, in place of the last two lines:
//!
//! | byte | bits | field |
//! |---|---|---|
//! | 0x34 | 24 to 31 | channels of a pixel, less 1 |
//! | 0x38 | 0 to 15, 16 to 31 | lower and upper corner of the pixels: numbers of 16, 8 or 5 bits for one to three spatial dimensions |
//! | 0x3c | 0 to 9 | pixels of a column, less 1 |

/// Bytes of a tensor map.
pub const TENSOR_MAP_BYTES: usize = 128;
/// Bytes of it that hardware reads.
pub const TENSOR_MAP_READ: usize = 64;
/// Dimensions that a tensor can have.
pub const MOST_DIMENSIONS: usize = 5;
/// What `cuTensorMapEncodeTiled` and its kin write. A kernel that makes a map out of zeros by `tensormap.replace` leaves a zero there (own
/// finding: Triton's device-side descriptors), which hardware takes, too.
const VERSION: u32 = 1;

/// The type of a tensor's elements, numbered as the map has it: `tensormap.replace` numbers them so (PTX ISA), and the types behind `Bf16` are
/// those of `F32` and `F32Flushed` with a bit more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are the PTX types")]
pub enum ElementType {
    U8,
    U16,
    U32,
    S32,
    U64,
    S64,
    F16,
    F32,
    /// Subnormals become zeros.
    F32Flushed,
    F64,
    Bf16,
    /// Singles, which copies into shared memory round to the numbers of `tf32`.
    Tf32,
    /// The same, and subnormals become zeros.
    Tf32Flushed,
}

impl ElementType {
    /// All, in the order of `CUtensorMapDataType` (CUDA driver API).
    pub const OF_DRIVER: [ElementType; 13] = [
        ElementType::U8,
        ElementType::U16,
        ElementType::U32,
        ElementType::S32,
        ElementType::U64,
        ElementType::S64,
        ElementType::F16,
        ElementType::F32,
        ElementType::F64,
        ElementType::Bf16,
        ElementType::F32Flushed,
        ElementType::Tf32,
        ElementType::Tf32Flushed,
    ];

    /// Bytes of an element.
    pub const fn bytes(self) -> u32 {
        match self {
            ElementType::U8 => 1,
            ElementType::U16 | ElementType::F16 | ElementType::Bf16 => 2,
            ElementType::U32
            | ElementType::S32
            | ElementType::F32
            | ElementType::F32Flushed
            | ElementType::Tf32
            | ElementType::Tf32Flushed => 4,
            ElementType::U64 | ElementType::S64 | ElementType::F64 => 8,
        }
    }

    /// Is it a type of floats?
    pub const fn is_float(self) -> bool {
        !matches!(
            self,
            ElementType::U8
                | ElementType::U16
                | ElementType::U32
                | ElementType::S32
                | ElementType::U64
                | ElementType::S64
        )
    }

    /// The bits in the map's word: a number at bit 7, and bit 16.
    fn bits(self) -> u32 {
        match self {
            ElementType::Tf32 => (ElementType::F32 as u32) << 7 | 1 << 16,
            ElementType::Tf32Flushed => (ElementType::F32Flushed as u32) << 7 | 1 << 16,
            other => (other as u32) << 7,
        }
    }

    fn of_bits(word: u32) -> Option<ElementType> {
        let mask = 0xf << 7 | 1 << 16;
        ElementType::OF_DRIVER.into_iter().find(|element| element.bits() == word & mask)
    }

    /// The not-a-number that stands for elements outside the tensor: all bits but the sign (an assumption; CUDA names no bits).
    pub const fn not_a_number(self) -> u64 {
        u64::MAX >> 1 >> (64 - 8 * self.bytes())
    }
}

/// The boxes of a convolution: columns of pixels, each with some of its channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// First pixel that a column visits in each spatial dimension, innermost first.
    pub lower_corner: [i16; 3],
    /// The last one, counted from the last pixel of the tensor.
    pub upper_corner: [i16; 3],
    /// Channels of each pixel.
    pub channels: u16,
    /// Pixels of a column.
    pub pixels: u16,
}

/// A tensor map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Device address of the first element, a multiple of 16.
    pub address: u64,
    /// The type of its elements.
    pub element: ElementType,
    /// Dimensions, 1 to 5.
    pub dimensions: u8,
    /// Elements in each dimension, innermost first; 1 beyond its dimensions.
    pub sizes: [u64; MOST_DIMENSIONS],
    /// Bytes between neighbours in dimensions 1 to 4, multiples of 16.
    pub strides: [u64; MOST_DIMENSIONS - 1],
    /// Elements of the tensor that a box spans in each dimension, 1 to 256.
    pub box_sizes: [u32; MOST_DIMENSIONS],
    /// Of how many elements in a dimension one is in the box, 1 to 8. Without interleaving, that of dimension 0 says nothing.
    pub element_strides: [u8; MOST_DIMENSIONS],
    /// 0 for none; 1 and 2: slices of 16 and 32 bytes of channels.
    pub interleave: u8,
    /// 0 for none; 1, 2 and 3: patterns of 32, 64 and 128 bytes.
    pub swizzle: u8,
    /// Elements outside the tensor are read as not-a-number, not as zero.
    pub fills_with_nan: bool,
    /// 0 for none; 1, 2 and 3: reads bring 64, 128 and 256 bytes into the L2. It changes no value.
    pub promotion: u8,
    /// Boxes of a convolution, in place of `box_sizes`.
    pub convolution: Option<Convolution>,
}

/// A row of a box: bytes that are together in shared memory, and those of them that are in the tensor, together in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxRow {
    /// Where the row begins in the box, bytes.
    pub place: u32,
    /// Its bytes.
    pub bytes: u32,
    /// Its first byte in the tensor.
    pub first: u32,
    /// The byte behind its last one there; not beyond `first` where the row is outside.
    pub end: u32,
    /// The device address of its byte `first`.
    pub address: u64,
}

impl TensorMap {
    /// Does hardware take it? These are the conditions of `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col` (CUDA driver API).
    pub fn is_valid(&self) -> bool {
        let dimensions = usize::from(self.dimensions);
        let alignment = if self.interleave == 2 { 32 } else { 16 };
        let strides = self.strides.iter().take(dimensions.saturating_sub(1));
        let row = self.row_bytes();
        let row_fits = match self.swizzle {
            0 => true,
            pattern => row <= 16 << pattern,
        };
        let has_boxes = match &self.convolution {
            Some(columns) => {
                let of_dimensions =
                    |corner| TensorMap::unpacked_corner(self.dimensions, self.packed_corner(corner)) == corner;
                dimensions >= 3
                    && (1..=256).contains(&columns.channels)
                    && (1..=1024).contains(&columns.pixels)
                    && [columns.lower_corner, columns.upper_corner].into_iter().all(of_dimensions)
            }
            None => self.box_sizes.iter().all(|size| (1..=256).contains(size)),
        };
        (1..=MOST_DIMENSIONS).contains(&dimensions)
            && self.address.is_multiple_of(alignment)
            && strides.into_iter().all(|stride| stride.is_multiple_of(alignment) && *stride < 1 << 40)
            && self.sizes.iter().all(|size| (1..=1 << 32).contains(size))
            && self.element_strides.iter().all(|stride| (1..=8).contains(stride))
            && has_boxes
            && (self.interleave == 0 || dimensions >= 3)
            && (self.interleave != 0 || row.is_multiple_of(16) && row_fits)
            && (self.interleave != 2 || self.swizzle == 1)
            && (!self.fills_with_nan || self.element.is_float())
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; TENSOR_MAP_BYTES] {
        let mut map = [0; TENSOR_MAP_BYTES];
        let mut put = |at: usize, bytes: &[u8]| map[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.address.to_le_bytes());
        let kind = u32::from(self.convolution.is_some())
            | VERSION << 1
            | u32::from(self.dimensions - 1) << 4
            | self.element.bits()
            | u32::from(self.interleave) << 11
            | u32::from(self.swizzle) << 13
            | u32::from(self.fills_with_nan) << 15
            | u32::from(self.promotion) << 17;
        put(0x08, &kind.to_le_bytes());
        let mut upper = 0;
        for (dimension, stride) in self.strides.iter().enumerate() {
            let units = stride >> 4;
            put(0x0c + 4 * dimension, &(units as u32).to_le_bytes());
            upper |= ((units >> 32) as u32 & 0xf) << (4 * dimension);
        }
        put(0x1c, &upper.to_le_bytes());
        for (dimension, size) in self.sizes.iter().enumerate() {
            put(0x20 + 4 * dimension, &(size.wrapping_sub(1) as u32).to_le_bytes());
        }
        let less_one = |size: u32| size.wrapping_sub(1) as u8;
        let mut traversal = u32::from(less_one(self.box_sizes[0])) << 24;
        for (dimension, stride) in self.element_strides.iter().enumerate() {
            traversal |= (u32::from(*stride).wrapping_sub(1) & 7) << (3 * dimension);
        }
        put(0x34, &traversal.to_le_bytes());
        put(0x38, &[1, 2, 3, 4].map(|dimension| less_one(self.box_sizes[dimension])));
        if let Some(Convolution { lower_corner, upper_corner, channels, pixels }) = self.convolution {
            put(0x37, &[less_one(channels.into())]);
            put(0x38, &self.packed_corner(lower_corner).to_le_bytes());
            put(0x3a, &self.packed_corner(upper_corner).to_le_bytes());
            put(0x3c, &(u32::from(pixels).wrapping_sub(1) & 0x3ff).to_le_bytes());
        }
        map
    }

    /// Bits of each coordinate of a convolution's corners.
    const fn corner_bits(dimensions: u8) -> u32 {
        match dimensions {
            0..=3 => 16,
            4 => 8,
            _ => 5,
        }
    }

    /// A corner of a convolution's pixels, innermost coordinate lowest.
    fn packed_corner(&self, corner: [i16; 3]) -> u16 {
        let bits = TensorMap::corner_bits(self.dimensions);
        let spatial = usize::from(self.dimensions).saturating_sub(2);
        let all = corner.into_iter().take(spatial).enumerate();
        all.fold(0, |packed, (place, at)| packed | (at as u32 & ((1 << bits) - 1)) << (bits * place as u32)) as u16
    }

    /// The corner that [`Self::packed_corner`] packed.
    fn unpacked_corner(dimensions: u8, packed: u16) -> [i16; 3] {
        let bits = TensorMap::corner_bits(dimensions);
        let spatial = u32::from(dimensions).saturating_sub(2);
        std::array::from_fn(|place| match place as u32 {
            place if place < spatial => ((packed << (16 - bits * (place + 1))) as i16) >> (16 - bits),
            _ => 0,
        })
    }

    /// The map that these bytes are the first of; `None` where they are none.
    pub fn decode(map: &[u8; TENSOR_MAP_READ]) -> Option<TensorMap> {
        let half = |at: usize| u16::from_le_bytes([map[at], map[at + 1]]);
        let word = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
        let kind = word(0x08);
        let dimensions = (kind >> 4 & 7) as u8 + 1;
        if map.iter().all(|byte| *byte == 0) || kind >> 1 & 7 > VERSION || usize::from(dimensions) > MOST_DIMENSIONS {
            return None;
        }
        let is_convolution = kind & 1 != 0;
        let upper = word(0x1c);
        let traversal = word(0x34);
        Some(TensorMap {
            address: u64::from(word(0)) | u64::from(word(4)) << 32,
            element: ElementType::of_bits(kind)?,
            dimensions,
            sizes: std::array::from_fn(|dimension| u64::from(word(0x20 + 4 * dimension)) + 1),
            strides: std::array::from_fn(|dimension| {
                (u64::from(word(0x0c + 4 * dimension)) | u64::from(upper >> (4 * dimension) & 0xf) << 32) << 4
            }),
            box_sizes: std::array::from_fn(|dimension| match dimension {
                _ if is_convolution => 1,
                0 => (traversal >> 24) + 1,
                _ => u32::from(map[0x37 + dimension]) + 1,
            }),
            element_strides: std::array::from_fn(|dimension| (traversal >> (3 * dimension) & 7) as u8 + 1),
            interleave: (kind >> 11 & 3) as u8,
            swizzle: (kind >> 13 & 3) as u8,
            fills_with_nan: kind >> 15 & 1 != 0,
            promotion: (kind >> 17 & 3) as u8,
            convolution: is_convolution.then(|| Convolution {
                lower_corner: TensorMap::unpacked_corner(dimensions, half(0x38)),
                upper_corner: TensorMap::unpacked_corner(dimensions, half(0x3a)),
                channels: (traversal >> 24) as u16 + 1,
                pixels: half(0x3c) % 1024 + 1,
            }),
        })
    }

    /// Bytes of a row of a box in shared memory.
    fn row_bytes(&self) -> u32 {
        self.element.bytes() * self.convolution.map_or(self.box_sizes[0], |columns| u32::from(columns.channels))
    }

    /// Bytes from one row of a box to the next in shared memory: with a pattern, rows take its whole width (own finding: cuBLASLt's code for
    /// Hopper so lays out rows of 80 bytes in the pattern of 128).
    fn row_pitch(&self) -> u32 {
        let width = if self.swizzle == 0 { 0 } else { 16 << self.swizzle };
        self.row_bytes().max(width)
    }

    /// The rows of the box at these coordinates, innermost first, as they follow each other in shared memory. `offsets` are added to the
    /// pixels of a convolution.
    pub fn rows(&self, coordinates: [i32; MOST_DIMENSIONS], offsets: [u16; 3]) -> Vec<BoxRow> {
        match &self.convolution {
            Some(columns) => self.pixels(columns, coordinates, offsets),
            None => self.tile(coordinates),
        }
    }

    fn tile(&self, coordinates: [i32; MOST_DIMENSIONS]) -> Vec<BoxRow> {
        let counts: [u32; MOST_DIMENSIONS] = std::array::from_fn(|dimension| match dimension {
            0 => 1,
            _ if dimension >= usize::from(self.dimensions) => 1,
            _ => self.box_sizes[dimension].div_ceil(u32::from(self.element_strides[dimension])),
        });
        let rows = counts.iter().product::<u32>();
        let mut steps = [0; MOST_DIMENSIONS];
        let mut list = Vec::with_capacity(rows as usize);
        for row in 0..rows {
            let place = std::array::from_fn(|dimension| {
                let step = i64::from(steps[dimension] * u32::from(self.element_strides[dimension]));
                i64::from(coordinates[dimension]) + step
            });
            list.push(self.row(row, place));
            for dimension in 1..MOST_DIMENSIONS {
                steps[dimension] += 1;
                if steps[dimension] < counts[dimension] {
                    break;
                }
                steps[dimension] = 0;
            }
        }
        list
    }

    /// Pixels follow each other inside the corners, one spatial dimension after the other, and then in the next image (PTX ISA, im2col mode).
    fn pixels(&self, columns: &Convolution, coordinates: [i32; MOST_DIMENSIONS], offsets: [u16; 3]) -> Vec<BoxRow> {
        let images = usize::from(self.dimensions) - 1;
        let mut at = coordinates.map(i64::from);
        let mut list = Vec::with_capacity(usize::from(columns.pixels));
        for pixel in 0..u32::from(columns.pixels) {
            let mut place = at;
            for (dimension, offset) in (1..images).zip(offsets) {
                place[dimension] += i64::from(offset);
            }
            list.push(self.row(pixel, place));
            let mut dimension = 1;
            while dimension < images {
                let spatial = dimension - 1;
                at[dimension] += i64::from(self.element_strides[dimension]);
                if at[dimension] <= self.sizes[dimension] as i64 - 1 + i64::from(columns.upper_corner[spatial]) {
                    break;
                }
                at[dimension] = i64::from(columns.lower_corner[spatial]);
                dimension += 1;
            }
            if dimension == images {
                at[images] += 1;
            }
        }
        list
    }

    /// The row of a box that begins at this place of the tensor.
    fn row(&self, number: u32, place: [i64; MOST_DIMENSIONS]) -> BoxRow {
        let bytes = self.row_bytes();
        let element = i64::from(self.element.bytes());
        let mut row = BoxRow { place: number * self.row_pitch(), bytes, first: 0, end: 0, address: 0 };
        let mut address = self.address;
        let outer = place.iter().zip(&self.sizes).take(usize::from(self.dimensions)).skip(1);
        for ((&at, &size), &stride) in outer.zip(&self.strides) {
            if !(0..size as i64).contains(&at) {
                return row;
            }
            address = address.wrapping_add((at as u64).wrapping_mul(stride));
        }
        let length = i64::from(bytes) / element;
        let first = (-place[0]).clamp(0, length);
        let end = (self.sizes[0] as i64 - place[0]).clamp(first, length);
        row.first = (first * element) as u32;
        row.end = (end * element) as u32;
        row.address = address.wrapping_add(((place[0] + first) * element) as u64);
        row
    }
}

/// A field of a tensor map that kernels can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The address of the tensor.
    Address,
    /// Dimensions, less 1.
    Rank,
    /// The size of the box in a dimension.
    BoxSize(u8),
    /// The size of the tensor in a dimension.
    Size(u8),
    /// Bytes between neighbours, in a dimension from 0 for dimension 1 on.
    Stride(u8),
    /// The traversal stride in a dimension.
    ElementStride(u8),
    /// The type of the elements, by its number in PTX.
    ElementType,
    /// Interleaving.
    Interleave,
    /// The swizzle.
    Swizzle,
    /// What elements outside the tensor are read as.
    Fill,
}

/// Replaces a field, as `tensormap.replace` does (PTX ISA; the bits are those that compiled code changes).
pub fn replace(map: &mut [u8; TENSOR_MAP_READ], field: Field, value: u64) {
    let mut put = |at: usize, mask: u32, bits: u32| {
        if let Some(word) = map.get_mut(at..at + 4) {
            let old = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            word.copy_from_slice(&(old & !mask | bits & mask).to_le_bytes());
        }
    };
    let number = value as u32;
    let less_one = number.wrapping_sub(1);
    match field {
        Field::Address => {
            put(0x00, u32::MAX, number);
            put(0x04, u32::MAX, (value >> 32) as u32);
        }
        Field::Rank => put(0x08, 7 << 4, number << 4),
        Field::BoxSize(0) => put(0x34, 0xff << 24, less_one << 24),
        Field::BoxSize(dimension) => {
            let shift = 8 * u32::from(dimension - 1);
            put(0x38, 0xff << shift, less_one << shift);
        }
        Field::Size(dimension) => put(0x20 + 4 * usize::from(dimension), u32::MAX, less_one),
        Field::Stride(dimension) => {
            put(0x0c + 4 * usize::from(dimension), u32::MAX, (value >> 4) as u32);
            put(0x1c, 0xf << (4 * dimension), ((value >> 36) as u32) << (4 * dimension));
        }
        Field::ElementStride(dimension) => put(0x34, 7 << (3 * dimension), less_one << (3 * dimension)),
        Field::ElementType => {
            let bits = match number {
                11 => ElementType::Tf32.bits(),
                12 => ElementType::Tf32Flushed.bits(),
                other => other << 7,
            };
            put(0x08, 0xf << 7 | 1 << 16, bits);
        }
        Field::Interleave => put(0x08, 3 << 11, number << 11),
        Field::Swizzle => put(0x08, 3 << 13, number << 13),
        Field::Fill => put(0x08, 1 << 15, number << 15),
    }
}

/// Where the byte at an address of shared memory lies in a pattern: bits 4 to 6 of the address are changed by bits 7 to 9, or as many fewer
/// of them (PTX ISA, swizzling modes).
pub const fn swizzled(pattern: u8, address: u32) -> u32 {
    let changed = (1 << pattern) - 1;
    address ^ (address >> 7 & changed) << 4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TensorMap {
        TensorMap {
            address: 0x7f00_1234_5670,
            element: ElementType::Bf16,
            dimensions: 3,
            sizes: [100, 1 << 32, 7, 1, 1],
            strides: [208, 1 << 39, 0, 0],
            box_sizes: [64, 3, 256, 1, 1],
            element_strides: [1, 2, 8, 1, 1],
            interleave: 0,
            swizzle: 3,
            fills_with_nan: true,
            promotion: 2,
            convolution: None,
        }
    }

    fn decoded(bytes: &[u8; TENSOR_MAP_BYTES]) -> Option<TensorMap> {
        TensorMap::decode(bytes.first_chunk().expect("longer than what is read"))
    }

    #[test]
    fn bytes_are_those_that_kernels_change() {
        let bytes = map().encode();
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        assert_eq!(word(0x00), 0x1234_5670);
        assert_eq!(word(0x08) >> 4 & 7, 2, "dimensions less 1");
        assert_eq!(word(0x08) >> 7 & 0xf, 10, "bf16");
        assert_eq!((word(0x08) >> 13 & 3, word(0x08) >> 15 & 1), (3, 1));
        assert_eq!((word(0x0c), word(0x10), word(0x1c)), (13, 0, 8 << 4));
        assert_eq!((word(0x20), word(0x24), word(0x28)), (99, u32::MAX, 6));
        assert_eq!((word(0x34) >> 24, word(0x34) & 0x1ff), (63, 1 << 3 | 7 << 6));
        assert_eq!(bytes[0x38..0x3c], [2, 255, 0, 0]);
        assert_eq!(decoded(&bytes), Some(map()));
        assert_eq!(TensorMap::decode(&[0; TENSOR_MAP_READ]), None);
        let of_version = |version: u8| {
            let mut bytes = bytes;
            bytes[8] = bytes[8] & !0xe | version << 1;
            decoded(&bytes)
        };
        assert_eq!([0, 1, 2].map(of_version), [Some(map()), Some(map()), None]);
        for element in ElementType::OF_DRIVER {
            let other = TensorMap { element, ..map() };
            assert_eq!(decoded(&other.encode()), Some(other));
        }
    }

    /// The map with these words, each with its place; the others are zero.
    fn of_words(words: &[(usize, u32)]) -> Option<TensorMap> {
        let mut bytes = [0; TENSOR_MAP_READ];
        for (at, word) in words {
            bytes[*at..][..4].copy_from_slice(&word.to_le_bytes());
        }
        TensorMap::decode(&bytes)
    }

    /// A map that cuBLASLt 13.2 made for a product of halves: 128 by 128 elements, in boxes of 64 by 16.
    #[test]
    fn a_map_of_cublas_is_read() {
        let words = [(4, 0x7000), (8, 0x46322), (0xc, 16), (0x20, 127), (0x24, 127), (0x34, 63 << 24), (0x38, 15)];
        let expected = TensorMap {
            address: 0x7000_0000_0000,
            element: ElementType::F16,
            dimensions: 3,
            sizes: [128, 128, 1, 1, 1],
            strides: [256, 0, 0, 0],
            box_sizes: [64, 16, 1, 1, 1],
            element_strides: [1; 5],
            fills_with_nan: false,
            ..map()
        };
        assert_eq!(of_words(&words), Some(expected));
    }

    /// A map that cuDNN of CUDA 13.2 made for a convolution by one pixel in steps of two, of an image of 14 by 14 pixels with 256 channels.
    #[test]
    fn a_map_of_cudnn_is_read() {
        let words = [(4, 0x7000), (8, 0x563c3), (0xc, 0x40), (0x10, 0x380), (0x14, 0x3100), (0x18, 0x3100)];
        let further = [(0x20, 255), (0x24, 13), (0x28, 13), (0x34, 0x1f00_0048), (0x3c, 63)];
        let expected = TensorMap {
            address: 0x7000_0000_0000,
            element: ElementType::Tf32,
            dimensions: 5,
            sizes: [256, 14, 14, 1, 1],
            strides: [1 << 10, 0x3800, 0x3_1000, 0x3_1000],
            box_sizes: [1; 5],
            element_strides: [1, 2, 2, 1, 1],
            fills_with_nan: false,
            convolution: Some(Convolution { lower_corner: [0; 3], upper_corner: [0; 3], channels: 32, pixels: 64 }),
            ..map()
        };
        assert_eq!(of_words(&[&words[..], &further].concat()), Some(expected));
    }

    #[test]
    fn corners_have_as_many_bits_as_there_is_room_for() {
        for (dimensions, corners) in
            [(3, [[-32768, 0, 0], [32767, 0, 0]]), (4, [[-128, 127, 0], [3, -4, 0]]), (5, [[-16, 15, -1], [0, -9, 7]])]
        {
            let [lower_corner, upper_corner] = corners;
            let columns = Convolution { lower_corner, upper_corner, channels: 64, pixels: 1024 };
            let convolution = Some(columns);
            let map = TensorMap { dimensions, box_sizes: [1; 5], element_strides: [1; 5], convolution, ..map() };
            assert_eq!(decoded(&map.encode()), Some(map));
            assert!(TensorMap { strides: [208; 4], ..map }.is_valid());
            let wide = Convolution { lower_corner: [0, 1 << 7, 0], ..columns };
            assert!(!TensorMap { strides: [208; 4], convolution: Some(wide), ..map }.is_valid());
            let tall = Convolution { pixels: 1025, ..columns };
            assert!(!TensorMap { strides: [208; 4], convolution: Some(tall), ..map }.is_valid());
        }
    }

    #[test]
    fn maps_have_the_limits_of_hardware() {
        let map = TensorMap { element_strides: [1; 5], ..map() };
        assert!(map.is_valid());
        for other in [
            TensorMap { address: map.address + 8, ..map },
            TensorMap { dimensions: 0, ..map },
            TensorMap { strides: [8, 16, 0, 0], ..map },
            TensorMap { strides: [16, 1 << 40, 0, 0], ..map },
            TensorMap { sizes: [0, 1, 1, 1, 1], ..map },
            TensorMap { box_sizes: [64, 257, 1, 1, 1], ..map },
            // A row of 14 bytes, and one that is longer than its pattern.
            TensorMap { box_sizes: [7, 1, 1, 1, 1], ..map },
            TensorMap { box_sizes: [128, 1, 1, 1, 1], ..map },
            TensorMap { element_strides: [1, 9, 1, 1, 1], ..map },
            TensorMap { element: ElementType::U16, ..map },
        ] {
            assert!(!other.is_valid(), "{other:?}");
        }
    }

    #[test]
    fn fields_can_be_replaced() {
        let mut bytes = TensorMap { dimensions: 5, sizes: [2; 5], strides: [16; 4], ..map() }.encode();
        let changes = [
            (Field::Address, 0x1234_5678_9ab0),
            (Field::Rank, 2),
            (Field::BoxSize(0), 256),
            (Field::BoxSize(1), 17),
            (Field::BoxSize(2), 1),
            (Field::Size(2), 1 << 32),
            (Field::Stride(1), 0xab_cdef_0120),
            (Field::ElementStride(1), 8),
            (Field::ElementType, 11),
            (Field::Swizzle, 1),
            (Field::Fill, 0),
        ];
        let bytes = bytes.first_chunk_mut().expect("longer than what is read");
        for (field, value) in changes {
            replace(bytes, field, value);
        }
        let expected = TensorMap {
            address: 0x1234_5678_9ab0,
            dimensions: 3,
            box_sizes: [256, 17, 1, 1, 1],
            sizes: [2, 2, 1 << 32, 2, 2],
            strides: [16, 0xab_cdef_0120, 16, 16],
            element_strides: [1, 8, 8, 1, 1],
            element: ElementType::Tf32,
            swizzle: 1,
            fills_with_nan: false,
            ..map()
        };
        assert_eq!(TensorMap::decode(bytes), Some(expected));
    }

    #[test]
    fn rows_end_where_the_tensor_does() {
        let map = TensorMap { sizes: [10, 4, 1, 1, 1], strides: [32, 0, 0, 0], box_sizes: [8, 2, 1, 1, 1], ..map() };
        let patterned = TensorMap { dimensions: 2, address: 0x1000, element_strides: [1; 5], ..map };
        let map = TensorMap { swizzle: 0, ..patterned };
        let rows = |x, y| map.rows([x, y, 0, 0, 0], [0; 3]);
        let row = |place, first, end, address| BoxRow { place, bytes: 16, first, end, address };
        assert_eq!(rows(1, 1), [row(0, 0, 16, 0x1022), row(16, 0, 16, 0x1042)]);
        assert_eq!(rows(4, 3), [row(0, 0, 12, 0x1068), row(16, 0, 0, 0)]);
        assert_eq!(rows(-3, -1), [row(0, 0, 0, 0), row(16, 6, 16, 0x1000)]);
        // Rows take the whole width of a pattern.
        assert_eq!(patterned.rows([1, 1, 0, 0, 0], [0; 3]).iter().map(|row| row.place).collect::<Vec<u32>>(), [0, 128]);
        assert!(rows(10, 0).iter().chain(&rows(-8, 0)).all(|row| row.first == row.end));
    }

    #[test]
    fn pixels_of_a_convolution_go_on_in_the_next_row_and_image() {
        // A filter of 3 by 3 with a border of 1, on images of 4 by 3 pixels.
        let columns = Convolution { lower_corner: [-1, -1, 0], upper_corner: [-1, -1, 0], channels: 8, pixels: 16 };
        let map = TensorMap {
            address: 0,
            dimensions: 4,
            sizes: [8, 4, 3, 2, 1],
            strides: [16, 64, 192, 0],
            element_strides: [1; 5],
            convolution: Some(columns),
            ..map()
        };
        let rows = map.rows([0, -1, -1, 0, 0], [1, 1, 0]);
        // Places of the filter's centre: all twelve pixels of the first image, then four of the second one.
        let addresses: Vec<u64> = rows.iter().map(|row| row.address).collect();
        assert_eq!(addresses, (0..16).map(|pixel| 16 * pixel).collect::<Vec<u64>>());
        // The upper left of the filter lies outside at the border.
        let outside: Vec<bool> = map.rows([0, -1, -1, 0, 0], [0; 3]).iter().map(|row| row.end == 0).collect();
        assert_eq!(outside[..8], [true, true, true, true, true, false, false, false]);
    }

    #[test]
    fn patterns_change_fewer_bits_the_shorter_they_are() {
        let address = 0b11_1000_0000;
        assert_eq!(swizzled(0, address), address);
        assert_eq!(swizzled(1, address), address | 0x10);
        assert_eq!(swizzled(2, address), address | 0x30);
        assert_eq!(swizzled(3, address), address | 0x70);
        for pattern in 0..4 {
            assert!((0..2048).all(|address| swizzled(pattern, swizzled(pattern, address)) == address));
        }
    }
}
