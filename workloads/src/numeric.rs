//! Deterministic inputs, host arithmetic with the device's roundings, and comparisons.

use std::fmt::Debug;
use std::sync::Arc;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The generator of one of a workload's inputs: `stream` tells its inputs apart.
fn generator(seed: u64, stream: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(stream))
}

/// Numbers drawn uniformly from [-1, 1), multiples of 2^-23.
pub(crate) fn uniform_floats(seed: u64, stream: u64, count: usize) -> Vec<f32> {
    let mut pairs = float_pairs(seed, stream);
    let mut values = Vec::with_capacity(count + 1);
    while values.len() < count {
        values.extend(pairs());
    }
    values.truncate(count);
    values
}

/// The bytes of [`uniform_floats`], ready to be copied to the device.
pub(crate) fn uniform_float_bytes(seed: u64, stream: u64, count: usize) -> Arc<[u8]> {
    let mut pairs = float_pairs(seed, stream);
    let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, count * size_of::<f32>()).collect();
    for pair in Arc::make_mut(&mut bytes).chunks_mut(8) {
        let values = pairs().map(f32::to_le_bytes);
        pair.copy_from_slice(&values.as_flattened()[..pair.len()]);
    }
    bytes
}

/// Draws two numbers at a time.
fn float_pairs(seed: u64, stream: u64) -> impl FnMut() -> [f32; 2] {
    let mut generator = generator(seed, stream);
    let convert = |bits: u64| (bits & 0xff_ffff) as f32 * (1.0 / 8_388_608.0) - 1.0;
    move || {
        let bits = generator.next_u64();
        [convert(bits >> 40), convert(bits >> 16)]
    }
}

/// Numbers drawn uniformly from [-1, 1), multiples of 2^-52.
pub(crate) fn uniform_doubles(seed: u64, stream: u64, count: usize) -> Vec<f64> {
    let mut generator = generator(seed, stream);
    let unit = 1.0 / (1u64 << 52) as f64;
    (0..count).map(|_| (generator.next_u64() >> 11) as f64 * unit - 1.0).collect()
}

/// Any 32-bit numbers.
pub(crate) fn integers(seed: u64, stream: u64, count: usize) -> Vec<u32> {
    let mut generator = generator(seed, stream);
    (0..count).map(|_| (generator.next_u64() >> 32) as u32).collect()
}

/// The numbers 0 to `count` - 1 in random order, 0 first.
pub(crate) fn shuffled_from_zero(seed: u64, stream: u64, count: usize) -> Vec<usize> {
    let mut generator = generator(seed, stream);
    let mut order: Vec<usize> = (0..count).collect();
    for index in (2..count).rev() {
        let other = 1 + below(&mut generator, index as u64) as usize;
        order.swap(index, other);
    }
    order
}

/// `count` of the numbers below `limit`, ascending and each at most once.
pub(crate) fn sample(seed: u64, stream: u64, limit: usize, count: usize) -> Vec<usize> {
    let mut generator = generator(seed, stream);
    let mut chosen: Vec<usize> = (0..count).map(|_| below(&mut generator, limit as u64) as usize).collect();
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// A number below `limit`; its bias, at most limit / 2^64, does not matter here.
fn below(generator: &mut Pcg64Mcg, limit: u64) -> u64 {
    ((u128::from(generator.next_u64()) * u128::from(limit)) >> 64) as u64
}

/// Defines a function that is compiled twice: once for processors with a fused multiply-add, where `mul_add` is one
/// vector instruction, and once for others, where it is a library call. The result is the same. (A closure run inside
/// such a function would not do: the compiler need not inline it there.)
macro_rules! with_fused_multiply_add {
    (
        $(#[$attribute:meta])*
        fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block
    ) => {
        $(#[$attribute])*
        fn $name($($argument: $type),*) $(-> $result)? {
            #[inline(always)]
            fn portable($($argument: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn accelerated($($argument: $type),*) $(-> $result)? {
                    portable($($argument),*)
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the processor has both features that the function is compiled for, as just detected.
                    return unsafe { accelerated($($argument),*) };
                }
            }
            portable($($argument),*)
        }
    };
}
pub(crate) use with_fused_multiply_add;

/// `target[i] = factor * row[i] + target[i]`, rounded once.
#[inline(always)]
pub(crate) fn multiply_add(target: &mut [f32], factor: f32, row: &[f32]) {
    for (target, value) in target.iter_mut().zip(row) {
        *target = factor.mul_add(*value, *target);
    }
}

/// Values that are compared bit by bit.
pub(crate) trait Bits: Copy + Debug {
    fn same(self, other: Self) -> bool;
}

impl Bits for f32 {
    fn same(self, other: Self) -> bool {
        self.to_bits() == other.to_bits()
    }
}

impl Bits for f64 {
    fn same(self, other: Self) -> bool {
        self.to_bits() == other.to_bits()
    }
}

/// Types whose values are equal where their bits are.
macro_rules! bits_of_integers {
    ($($integer:ty),*) => {
        $(impl Bits for $integer {
            fn same(self, other: Self) -> bool {
                self == other
            }
        })*
    };
}

bits_of_integers!(u8, u32, i32);

/// Compares bit by bit; an error names the first difference. `place` says where index `i` lies.
pub(crate) fn compare_exactly<T: Bits>(
    expected: impl ExactSizeIterator<Item = T>,
    actual: &[T],
    place: impl Fn(usize) -> String,
) -> Result<(), String> {
    if expected.len() != actual.len() {
        return Err(format!("{} values instead of {}", actual.len(), expected.len()));
    }
    let count = actual.len();
    let mut first = None;
    let mut differences = 0usize;
    for (index, (expected, actual)) in expected.zip(actual).enumerate() {
        if !expected.same(*actual) {
            differences += 1;
            first.get_or_insert((index, expected, *actual));
        }
    }
    match first {
        None => Ok(()),
        Some((index, expected, actual)) => Err(format!(
            "{} is {actual:?} instead of {expected:?}; {differences} of {count} values differ",
            place(index)
        )),
    }
}

/// Compares within `tolerance` of the largest expected magnitude; an error names the worst difference.
pub(crate) fn compare_within(
    tolerance: f64,
    expected: &[f64],
    actual: impl ExactSizeIterator<Item = f64>,
    place: impl Fn(usize) -> String,
) -> Result<(), String> {
    if expected.len() != actual.len() {
        return Err(format!("{} values instead of {}", actual.len(), expected.len()));
    }
    let scale = expected.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    let mut worst: Option<(f64, usize, f64)> = None;
    for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
        // Not-a-number is as far off as can be.
        let error = (actual - expected).abs();
        let error = if error.is_nan() { f64::INFINITY } else { error };
        if worst.is_none_or(|(largest, ..)| error > largest) {
            worst = Some((error, index, actual));
        }
    }
    match worst {
        Some((error, index, actual)) if error > tolerance * scale => Err(format!(
            "{} is {actual:?} instead of {:?}: off by {error:e}, more than {tolerance:e} of the largest value {scale:?}",
            place(index),
            expected[index]
        )),
        _ => Ok(()),
    }
}
