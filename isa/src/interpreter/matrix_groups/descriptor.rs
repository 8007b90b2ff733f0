//! Where a matrix lies in shared memory: the descriptors of `wgmma`, and the chunks of 16 bytes that they name.
//!
//! The layouts are the canonical ones of the PTX ISA ("asynchronous warpgroup level matrix shared memory layout"), in chunks of 16 bytes.
//! W chunks lie side by side in the pattern of a swizzle: 8, 4 or 2 (of 128, 64 or 32 bytes), or 1 without it. L and S are the leading and
//! the stride offset.
//!
//! | | the chunk with | lies at the start plus |
//! |---|---|---|
//! | K-major, no swizzle | rows 8 i + r, chunk c of the row | 16 r + S i + L c |
//! | K-major, swizzled | the same | 16 W r + S i + 16 c |
//! | MN-major, no swizzle | chunk i along M or N, depth 8 j + k | S i + 16 k + L j |
//! | MN-major, swizzled | chunk W i + c, depth 8 j + k | 16 c + L i + 16 W k + S j |
//!
//! A swizzle then changes bits 4 to 6 of the address by bits 7 to 9: as many of each as W has.

/// A descriptor, taken apart. Bytes throughout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    start: u32,
    leading: u32,
    stride: u32,
    /// Where the pattern of the swizzle begins, in units of 128 bytes: bits 7 to 9 of its address.
    base: u32,
    /// Chunks beside each other in the pattern of the swizzle: 1, 2, 4 or 8.
    width: u32,
}

/// A chunk that is not all in the CTA's shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutOfReach {
    pub address: u32,
}

/// Bytes of a chunk.
pub(super) const CHUNK: usize = 16;

impl Descriptor {
    /// Reads a descriptor. Bits that it does not have are ignored. That the base offset is what the pattern's own address has in these bits
    /// is as the PTX ISA says; that the hardware takes it off is an assumption.
    pub fn new(bits: u64) -> Descriptor {
        let offset = |first: u32| ((bits >> first) as u32 % (1 << 14)) << 4;
        Descriptor {
            start: offset(0),
            leading: offset(16),
            stride: offset(32),
            base: (bits >> 49) as u32 & 7,
            width: [1, 8, 4, 2][(bits >> 62) as usize],
        }
    }

    /// The address of a chunk of a K-major matrix: one of the row (of A; a column of B) with this number.
    #[inline(always)]
    pub fn of_row(&self, row: u32, chunk: u32) -> u32 {
        let between = if self.width == 1 { self.leading } else { CHUNK as u32 };
        self.swizzled(self.start + row % 8 * 16 * self.width + row / 8 * self.stride + chunk * between)
    }

    /// The address of a chunk of an MN-major matrix: one along M or N, at this depth.
    #[inline(always)]
    pub fn of_depth(&self, chunk: u32, depth: u32) -> u32 {
        let (outer, between) = match self.width {
            1 => (self.stride, self.leading),
            _ => (self.leading, self.stride),
        };
        let inside = chunk % self.width * 16 + depth % 8 * 16 * self.width;
        self.swizzled(self.start + inside + chunk / self.width * outer + depth / 8 * between)
    }

    #[inline(always)]
    fn swizzled(&self, address: u32) -> u32 {
        address ^ (((address >> 7).wrapping_sub(self.base) & (self.width - 1)) << 4)
    }
}

/// The bytes of a chunk of shared memory.
#[inline(always)]
pub(super) fn chunk(shared: &[u8], address: u32) -> Result<[u8; CHUNK], OutOfReach> {
    let bytes = shared.get(address as usize..).and_then(|rest| rest.first_chunk::<CHUNK>());
    bytes.copied().ok_or(OutOfReach { address })
}
