//! Singles to the nearest halves and bfloat16, and 8-bit floats to halves, for all lanes at once: what kernels of neural networks convert
//! most. Other conversions go one by one.

use super::convert::{Conversion, Mode, Scalar};
use super::floating_point::half_arithmetic::{Brain, F16, Format};
use crate::lanes::LANES;

/// The bits of a half that is no number.
const NOT_A_NUMBER: u32 = 0x7fff;

impl Conversion {
    /// The results for all lanes, where it is one of those above.
    #[inline(always)]
    pub(super) fn of_lanes(&self, values: &[u32; LANES]) -> Option<[u32; LANES]> {
        if self.mode != Mode::Nearest || self.flushes || self.saturates || self.is_finite || self.is_integral {
            return None;
        }
        let results = match (self.from, self.to) {
            (Scalar::F32, Scalar::F16) => values.map(|bits| F16::narrow(f32::from_bits(bits)).into()),
            (Scalar::F32, Scalar::Bf16) => values.map(|bits| Brain::narrow(f32::from_bits(bits)).into()),
            (Scalar::E5m2, Scalar::F16) => values.map(half_of_e5m2),
            (Scalar::E4m3, Scalar::F16) => values.map(half_of_e4m3),
            _ => return None,
        };
        Some(if self.is_positive { results.map(|bits| if bits & 0x8000 != 0 { 0 } else { bits }) } else { results })
    }
}

/// A byte of `.e4m3` as a half.
#[inline(always)]
pub(super) fn half_of_e4m3(byte: u32) -> u32 {
    /// 2^120: the difference of the biases of single precision and of `.e4m3`.
    const UNIT: f32 = f32::from_bits((127 + 127 - 7) << 23);
    let magnitude = byte & 0x7f;
    // All of them but zero are normal numbers of both formats.
    let single = (f32::from_bits(magnitude << 20) * UNIT).to_bits();
    let half = (single >> 13).saturating_sub((127 - 15) << 10);
    if magnitude > 0x7e { NOT_A_NUMBER } else { (byte & 0x80) << 8 | half }
}

/// A byte of `.e5m2` as a half, of which it is the upper one.
#[inline(always)]
pub(super) fn half_of_e5m2(byte: u32) -> u32 {
    if byte & 0x7f > 0x7c { NOT_A_NUMBER } else { byte << 8 & 0xff00 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(from: Scalar, to: Scalar, values: impl Iterator<Item = u32>) {
        let values: Vec<u32> = values.collect();
        for is_positive in [false, true] {
            let conversion = Conversion {
                from,
                to,
                mode: Mode::Nearest,
                flushes: false,
                saturates: false,
                is_finite: false,
                is_positive,
                is_integral: false,
                is_packed: false,
            };
            for values in values.as_chunks::<LANES>().0 {
                let expected = values.map(|bits| conversion.convert(bits.into(), 0) as u32);
                assert_eq!(conversion.of_lanes(values), Some(expected), "{values:08x?}");
            }
        }
    }

    #[test]
    fn all_lanes_get_what_each_alone_gets() {
        for to in [Scalar::F16, Scalar::Bf16] {
            // All exponents, with fractions around the units of both formats and their halves.
            let edges =
                [0, 1, 0x7fff, 0x8000, 0x8001, 0xfff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x3001, 0x7f_ffff, 0x7f_efff];
            let near = (0..512u32).flat_map(|upper| edges.map(|fraction| upper << 23 | fraction));
            let random = (0..1u32 << 18).map(|number| number.wrapping_mul(0x9e37_79b9) ^ number << 7);
            check(Scalar::F32, to, near.chain(random));
        }
        for from in [Scalar::E4m3, Scalar::E5m2] {
            check(from, Scalar::F16, 0..256);
        }
    }

    #[test]
    fn others_go_one_by_one() {
        let word = Conversion { to: Scalar::F16, ..Conversion::unpack(0) };
        let conversion = Conversion { from: Scalar::F32, flushes: true, ..word };
        assert_eq!(conversion.of_lanes(&[0; LANES]), None);
    }
}
