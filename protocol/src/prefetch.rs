//! Brings what will be needed soon into the processor's cache: the state of a simulated node is larger than that.

/// Asks the processor to load the cache lines in which a value begins and ends. It changes nothing but how soon the value is there.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    prefetch_at(value);
}

/// As [`prefetch`], for a place at which there may be no value.
#[inline(always)]
pub fn prefetch_at<T>(place: *const T) {
    let first = place.cast::<u8>();
    prefetch_line(first);
    if size_of::<T>() > align_of::<T>() {
        prefetch_line(first.wrapping_add(size_of::<T>() - 1));
    }
}

#[inline(always)]
fn prefetch_line(place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and cannot fault, whatever the address.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(place.cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
