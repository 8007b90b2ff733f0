//! Numbers without a pattern, and values that go wrong.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A generator that gives the same numbers for a seed, wherever it runs.
pub struct Random(Pcg64Mcg);

/// Words that instructions treat each in their way: limits of integers, and singles and pairs of halves that are no plain numbers.
const WORDS: [u32; 32] = [
    0,
    1,
    2,
    31,
    32,
    33,
    0xff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_fffe,
    0xffff_ffff,
    0x3f80_0000,
    0xbf80_0000,
    0x3f00_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x7f80_0001,
    0xffff_fffd,
    0x0000_0003,
    0x8040_0000,
    0x007f_ffff,
    0x0080_0000,
    0x7f7f_ffff,
    0x4f00_0000,
    0xcf00_0000,
    0x7bff_7c00,
    0xfc00_7e00,
    0x0001_8001,
    0x3c00_bc00,
];

/// The same of 64 bits.
const PAIRS: [u64; 20] = [
    0,
    1,
    63,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_ffff,
    0x0000_0000_ffff_ffff,
    0x0000_0001_0000_0000,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    0x0000_0000_0000_0003,
    0x800f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    0x43e0_0000_0000_0000,
    0x41ef_ffff_fff0_0000,
];

impl Random {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() >> 32) as usize % limit
    }

    /// True once in so many cases.
    pub fn one_in(&mut self, cases: usize) -> bool {
        self.below(cases) == 0
    }

    /// One of some.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// A word or nothing.
    pub fn maybe(&mut self, word: &'static str) -> &'static str {
        if self.one_in(2) { word } else { "" }
    }

    /// A value of 1, 16, 32 or 64 bits that an instruction might treat in its way: notable, small, a float of moderate size, or any.
    pub fn value(&mut self, width: u32) -> u64 {
        let bits = match (width, self.below(8)) {
            (64, 0 | 1) => self.pick(&PAIRS),
            (64, 2) => self.value(32) | self.value(32) << 32,
            (64, 3) => ((self.below(4000) as f64 / 16.0 - 100.0) * 2f64.powi(self.below(40) as i32 - 20)).to_bits(),
            (64, 4) => self.value(32) as u32 as i32 as i64 as u64,
            (16, 0 | 1) => u64::from(self.pick(&WORDS)) >> (16 * self.below(2)),
            (16, 2 | 3) => self.moderate_half(),
            (_, 0 | 1) => u64::from(self.pick(&WORDS)),
            (_, 2) => {
                u64::from(((self.below(4000) as f32 / 16.0 - 100.0) * 2f32.powi(self.below(40) as i32 - 20)).to_bits())
            }
            (_, 3) => self.moderate_half() | self.moderate_half() << 16,
            (_, 4) => self.below(256) as u64,
            _ => self.bits(),
        };
        bits & (u64::MAX >> (64 - width))
    }

    /// A half whose products and sums are neither too large nor too small.
    fn moderate_half(&mut self) -> u64 {
        let bits = self.bits();
        bits & 0x83ff | (10 + (bits >> 32) % 9) << 10
    }
}
