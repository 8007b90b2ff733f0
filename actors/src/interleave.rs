//! How addresses spread over slices, sets and banks: which L2 slice holds a line, and the folding that keeps power-of-two strides apart.

use balar_protocol::memory::LINE_BYTES;

/// How lines spread over the slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
pub enum AddressHash {
    /// Line number modulo slices.
    Modulo,
    /// Line number with its higher bits folded in, so that power-of-two strides use every slice.
    Xor,
}

/// The map from lines to slices.
///
/// Each aligned run of as many lines as there are slices is a permutation of the slices, whatever their number: so lines are spread
/// evenly, and `line number / slices` numbers the lines within a slice.
#[derive(Clone, Copy, Debug)]
pub struct SliceMap {
    hash: AddressHash,
    slices: u32,
    /// Bits of a slice number, rounded up.
    bits: u32,
}

impl SliceMap {
    /// A map over `slices` slices, at least 1.
    pub fn new(hash: AddressHash, slices: u32) -> SliceMap {
        let slices = slices.max(1);
        SliceMap { hash, slices, bits: slices.next_power_of_two().trailing_zeros().max(1) }
    }

    /// The slice of the line at address `line`.
    #[inline]
    pub fn slice_of(&self, line: u64) -> u32 {
        let number = line / LINE_BYTES;
        let count = u64::from(self.slices);
        if self.slices.is_power_of_two() {
            let low = number & (count - 1);
            match self.hash {
                AddressHash::Modulo => low as u32,
                AddressHash::Xor => (low ^ (fold(number >> count.trailing_zeros(), self.bits) & (count - 1))) as u32,
            }
        } else {
            let low = number % count;
            match self.hash {
                AddressHash::Modulo => low as u32,
                AddressHash::Xor => {
                    let high = fold(number / count, self.bits) & ((1 << self.bits) - 1);
                    ((low + high) % count) as u32
                }
            }
        }
    }
}

/// Exclusive or of `value`'s groups of `bits` bits, in the lowest `bits` bits of the result; the rest of it means nothing.
#[inline]
pub(crate) fn fold(value: u64, bits: u32) -> u64 {
    let shift = |value: u64, by: u32| value.checked_shr(by).unwrap_or(0);
    let mut value = value;
    value ^= shift(value, 8 * bits);
    value ^= shift(value, 4 * bits);
    value ^= shift(value, 2 * bits);
    value ^ shift(value, bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(hash: AddressHash, slices: u32, stride: u64) -> (u32, u32) {
        let map = SliceMap::new(hash, slices);
        let mut counts = vec![0u32; slices as usize];
        for i in 0..u64::from(slices) * 64 {
            counts[map.slice_of(i * stride) as usize] += 1;
        }
        (*counts.iter().min().expect("slices"), *counts.iter().max().expect("slices"))
    }

    #[test]
    fn consecutive_lines_spread_evenly() {
        for slices in [1, 2, 24, 32, 48, 64, 80] {
            for hash in [AddressHash::Xor, AddressHash::Modulo] {
                assert_eq!(spread(hash, slices, LINE_BYTES), (64, 64), "{hash:?} over {slices}");
            }
        }
    }

    #[test]
    fn power_of_two_strides_use_every_slice() {
        for slices in [8, 24, 32, 48, 64] {
            for power in 7..24 {
                let (least, most) = spread(AddressHash::Xor, slices, 1 << power);
                assert!(least > 0 && most <= 160, "stride 2^{power} over {slices}: {least}..{most} of 64");
            }
        }
        assert_eq!(spread(AddressHash::Modulo, 32, 4096), (0, 32 * 64), "modulo has no such protection");
    }
}
