//! The lanes of a warp.

/// Lanes of a warp.
pub const LANES: usize = 32;

/// The lanes of a mask, ascending.
#[inline(always)]
pub fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| (mask >> lane) & 1 != 0)
}
