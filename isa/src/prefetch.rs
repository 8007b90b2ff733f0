//! Brings what will be needed soon into the processor's cache: the state of a simulated node is larger than that.

/// Asks the processor to load the cache line in which a value begins. It changes nothing but how soon the value is there.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and cannot fault, whatever the address.
        #[allow(unused_unsafe, reason = "later compilers call it safe")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
