//! Which space a generic address is in.

use super::compare::Comparison;
use crate::execution::{LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW, WINDOW_BYTES};

/// Whether the first value is in the window that begins at the second.
pub(crate) struct InWindow;

impl Comparison for InWindow {
    type T = u64;
    #[inline(always)]
    fn test(address: u64, window: u64) -> bool {
        address.wrapping_sub(window) < WINDOW_BYTES
    }
}

/// `isspacep.global`: whether the address is in none of the windows. Constants lie in device memory.
pub(crate) struct IsGlobal;

impl Comparison for IsGlobal {
    type T = u64;
    #[inline(always)]
    fn test(address: u64, _: u64) -> bool {
        ![SHARED_WINDOW, LOCAL_WINDOW, PARAMETER_WINDOW]
            .into_iter()
            .any(|window| address.wrapping_sub(window) < WINDOW_BYTES)
    }
}
