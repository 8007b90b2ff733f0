//! How the addresses of a warp's lanes follow one another.
//!
//! Most accesses of most kernels are consecutive, or all to one address. A result for all 32 lanes can then be computed once; it is the
//! same as lane by lane.

use balar_isa::execution::MemoryAccess;
use balar_isa::program::LANES;

/// The addresses of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessPattern {
    /// All lanes take part, each at the first byte behind those of the lane before. No address wraps around.
    Consecutive,
    /// All lanes take part, at the same address.
    Uniform,
    /// Any others.
    Scattered,
}

impl AccessPattern {
    /// The pattern of an access, aligned or not.
    #[inline]
    pub fn of(access: &MemoryAccess) -> AccessPattern {
        let first = access.addresses[0];
        let stride = access.addresses[1].wrapping_sub(first);
        let bytes = u64::from(access.bytes);
        if access.mask != u32::MAX || (stride != 0 && stride != bytes) {
            return AccessPattern::Scattered;
        }
        let mut differences = 0;
        for (lane, &address) in access.addresses.iter().enumerate() {
            differences |= address ^ first.wrapping_add(stride * lane as u64);
        }
        match (differences, stride) {
            (0, 0) => AccessPattern::Uniform,
            (0, _) if first.checked_add(bytes * LANES as u64).is_some() => AccessPattern::Consecutive,
            _ => AccessPattern::Scattered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_told_apart() {
        use AccessPattern::{Consecutive, Scattered, Uniform};
        let access = |bytes: u8, mask: u32, address: &dyn Fn(u64) -> u64| MemoryAccess {
            bytes,
            mask,
            addresses: std::array::from_fn(|lane| address(lane as u64)),
            ..MemoryAccess::default()
        };
        for (bytes, mask, expected, address) in [
            (4, u32::MAX, Consecutive, &(|lane: u64| 0x1002 + 4 * lane) as &dyn Fn(u64) -> u64),
            (8, u32::MAX, Scattered, &|lane| 0x1000 + 4 * lane),
            (4, u32::MAX >> 1, Scattered, &|lane| 0x1000 + 4 * lane),
            (4, u32::MAX, Scattered, &|lane| 0x1000 + 4 * lane + u64::from(lane == 31)),
            (16, u32::MAX, Uniform, &|_| 7),
            (16, u32::MAX - 1, Scattered, &|_| 7),
            (1, u32::MAX, Scattered, &|lane| u64::from(lane == 17)),
            (16, u32::MAX, Scattered, &|lane| (u64::MAX - 15).wrapping_add(16 * lane)),
            (4, u32::MAX, Scattered, &|lane| 0x1000 - 4 * lane),
        ] {
            assert_eq!(AccessPattern::of(&access(bytes, mask, address)), expected, "{bytes} bytes, {mask:#x}");
        }
    }
}
