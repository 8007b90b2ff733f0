//! How addresses spread over slices, sets and banks: which L2 slice holds a line, and the folding that keeps power-of-two strides apart.

mod derived;

pub(crate) use derived::derive;

use balar_protocol::Bytes;
use balar_protocol::memory::LINE_BYTES;
use std::fmt;

/// Code of all programs lies from here on, above device memory and local memory.
pub const CODE_WINDOW: u64 = 0x7f80_0000_0000;

/// How lines spread over the slices.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub enum AddressHash {
    /// Line number modulo slices.
    Modulo,
    /// Line number with its higher bits folded in, so that power-of-two strides use every slice.
    Xor,
    /// As `Xor`, of runs of so many bytes, a power of two of at least a line, each of which lies in one slice.
    Granules(Bytes),
    /// By measurements of a device: the bits of the address behind each bit of the slice number, the lowest first. Lines of code are spread
    /// as by `Xor`: caches that several SMs share, which are not simulated, keep them from asking one slice for the same code together.
    Bits(AddressBits),
}

/// Bits of a number, the lowest first: each is the exclusive or of some bits of the address, given by their positions.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(transparent)]
pub struct AddressBits(Vec<Vec<u32>>);

/// The lowest bit of a line's address that is not always 0, and the bits that take part.
const LOWEST_BIT: u32 = LINE_BYTES.trailing_zeros();
const ADDRESS_BITS: u32 = 32;
/// The most that bits number.
const MOST_NUMBERED: u32 = 256;

/// As a topology has it.
impl fmt::Display for AddressHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressHash::Modulo => f.write_str("Modulo"),
            AddressHash::Xor => f.write_str("Xor"),
            AddressHash::Granules(bytes) => write!(f, "Granules(\"{bytes}\")"),
            AddressHash::Bits(bits) => write!(f, "Bits({bits})"),
        }
    }
}

/// As a topology has them: `[[10, 13], [11]]`.
impl fmt::Display for AddressBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl AddressHash {
    /// Lines of the runs that lie in one slice by another rule than the bits of the address.
    pub fn lines_of_run(&self) -> u64 {
        match self {
            AddressHash::Granules(bytes) => (bytes.0 / LINE_BYTES).max(1),
            _ => 1,
        }
    }
}

impl AddressBits {
    /// Bits of the number.
    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// The function that they describe, of a number below `count`; an error names settings that contradict each other.
    pub fn function(&self, count: u32) -> Result<BitFunction, String> {
        if count != 1u32.checked_shl(self.count()).unwrap_or(0) || count > MOST_NUMBERED {
            return Err(format!("expected {count} = 2^bits of at most {MOST_NUMBERED}, found {} bits", self.count()));
        }
        let mut function = BitFunction([[0; 16]; 8]);
        for (i, positions) in self.0.iter().enumerate() {
            let last = LOWEST_BIT + ADDRESS_BITS - 1;
            if let Some(bit) = positions.iter().find(|bit| !(LOWEST_BIT..=last).contains(bit)) {
                return Err(format!("expected bits {LOWEST_BIT} to {last} of the address, found {bit}"));
            }
            for bit in positions {
                let (digit, bit) = ((bit - LOWEST_BIT) / 4, (bit - LOWEST_BIT) % 4);
                for (value, result) in function.0[digit as usize].iter_mut().enumerate() {
                    *result ^= u8::from(value >> bit & 1 == 1) << i;
                }
            }
        }
        Ok(function)
    }
}

/// The function that `AddressBits` describe, by the contribution of each four bits of the address.
#[derive(Clone, Debug)]
pub struct BitFunction([[u8; 16]; 8]);

impl BitFunction {
    /// The number of the line at address `line`.
    #[inline]
    pub fn of(&self, line: u64) -> u32 {
        let number = (line >> LOWEST_BIT) as usize;
        let table = |digit: usize| self.0[digit][number >> (4 * digit) & 15];
        u32::from((table(0) ^ table(1)) ^ (table(2) ^ table(3)) ^ (table(4) ^ table(5)) ^ (table(6) ^ table(7)))
    }
}

/// The map from lines to slices.
///
/// By `Modulo` and `Xor` each aligned run of as many lines as there are slices is a permutation of the slices, for any number of slices: so
/// lines are spread evenly, and `line number / slices` numbers the lines within a slice. So it is by `Granules` with runs for lines.
#[derive(Clone, Debug)]
pub struct SliceMap {
    kind: MapKind,
    slices: u32,
    /// Binary logarithm of the lines of a run that lies in one slice.
    run_bits: u32,
    /// Bits of a slice number, rounded up.
    bits: u32,
}

#[derive(Clone, Debug)]
enum MapKind {
    Modulo,
    Xor,
    Bits(BitFunction),
}

impl SliceMap {
    /// A map over `slices` slices, at least 1; says why there is none.
    pub fn new(hash: &AddressHash, slices: u32) -> Result<SliceMap, String> {
        let slices = slices.max(1);
        let kind = match hash {
            AddressHash::Modulo => MapKind::Modulo,
            AddressHash::Xor => MapKind::Xor,
            AddressHash::Granules(bytes) if bytes.0.is_power_of_two() && bytes.0 >= LINE_BYTES => MapKind::Xor,
            AddressHash::Granules(bytes) => {
                return Err(format!("expected a power of two of at least {LINE_BYTES} B, found {bytes}"));
            }
            AddressHash::Bits(bits) => MapKind::Bits(bits.function(slices)?),
        };
        let run_bits = hash.lines_of_run().trailing_zeros();
        Ok(SliceMap { run_bits, ..SliceMap::of_kind(kind, slices) })
    }

    /// The map `Xor` over `slices` slices, at least 1.
    pub fn xor(slices: u32) -> SliceMap {
        SliceMap::of_kind(MapKind::Xor, slices.max(1))
    }

    fn of_kind(kind: MapKind, slices: u32) -> SliceMap {
        SliceMap { kind, slices, run_bits: 0, bits: slices.next_power_of_two().trailing_zeros().max(1) }
    }

    /// The slice of the line at address `line`.
    #[inline]
    pub fn slice_of(&self, line: u64) -> u32 {
        let number = (line / LINE_BYTES) >> self.run_bits;
        let count = u64::from(self.slices);
        match &self.kind {
            MapKind::Bits(function) if line < CODE_WINDOW => function.of(line),
            MapKind::Modulo => (number % count) as u32,
            _ if self.slices.is_power_of_two() => {
                let low = number & (count - 1);
                (low ^ (fold(number >> count.trailing_zeros(), self.bits) & (count - 1))) as u32
            }
            _ => {
                let high = fold(number / count, self.bits) & ((1 << self.bits) - 1);
                ((number % count + high) % count) as u32
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

    fn spread(hash: &AddressHash, slices: u32, stride: u64) -> (u32, u32) {
        let map = SliceMap::new(hash, slices).expect("a map");
        let mut counts = vec![0u32; slices as usize];
        for i in 0..u64::from(slices) * 64 {
            counts[map.slice_of(i * stride) as usize] += 1;
        }
        (*counts.iter().min().expect("slices"), *counts.iter().max().expect("slices"))
    }

    #[test]
    fn consecutive_lines_spread_evenly() {
        for slices in [1, 2, 24, 32, 48, 64, 80] {
            for hash in [&AddressHash::Xor, &AddressHash::Modulo] {
                assert_eq!(spread(hash, slices, LINE_BYTES), (64, 64), "{hash:?} over {slices}");
            }
        }
    }

    #[test]
    fn power_of_two_strides_use_every_slice() {
        for slices in [8, 24, 32, 48, 64] {
            for power in 7..24 {
                let (least, most) = spread(&AddressHash::Xor, slices, 1 << power);
                assert!(least > 0 && most <= 160, "stride 2^{power} over {slices}: {least}..{most} of 64");
            }
        }
        assert_eq!(spread(&AddressHash::Modulo, 32, 4096), (0, 32 * 64), "modulo has no such protection");
    }

    /// Each aligned run of as many granules as there are slices is a permutation of the slices.
    #[test]
    fn granules_lie_in_one_slice_and_spread_evenly() {
        for slices in [24, 44, 64, 80, 94] {
            let map = SliceMap::new(&AddressHash::Granules(Bytes(1024)), slices).expect("a map");
            for block in 0..50 {
                let mut seen = vec![false; slices as usize];
                for granule in block * u64::from(slices)..(block + 1) * u64::from(slices) {
                    let of: Vec<u32> = (0..8).map(|line| map.slice_of(granule * 1024 + line * LINE_BYTES)).collect();
                    assert!(of.iter().all(|slice| *slice == of[0]), "{of:?}");
                    assert!(!std::mem::replace(&mut seen[of[0] as usize], true), "{granule} over {slices}");
                }
            }
        }
        for bytes in [64, 1000] {
            assert!(SliceMap::new(&AddressHash::Granules(Bytes(bytes)), 24).is_err(), "{bytes}");
        }
    }

    fn bits(positions: &[&[u32]]) -> AddressBits {
        AddressBits(positions.iter().map(|bits| bits.to_vec()).collect())
    }

    #[test]
    fn each_bit_is_the_exclusive_or_of_its_address_bits() {
        let function = bits(&[&[10, 38], &[7, 11, 20]]).function(4).expect("a function");
        let number = |bits: &[u32]| function.of(bits.iter().map(|bit| 1 << bit).sum());
        assert_eq!([number(&[]), number(&[8, 9]), number(&[38]), number(&[10, 38])], [0, 0, 1, 0]);
        assert_eq!([number(&[7]), number(&[7, 11]), number(&[7, 11, 20]), number(&[10, 11])], [2, 0, 2, 3]);
        // Higher than any device memory.
        assert_eq!(number(&[40]), 0);
    }

    #[test]
    fn bits_of_another_number_or_beyond_the_address_are_refused() {
        assert!(bits(&[&[10]]).function(4).is_err());
        assert!(bits(&[&[6]]).function(2).is_err());
        assert!(bits(&[&[39]]).function(2).is_err());
        assert!(SliceMap::new(&AddressHash::Bits(bits(&[&[10]])), 3).is_err());
    }
}
