//! How tests check layouts.

/// Checks a type's size and alignment.
pub fn check<T>(size: usize, alignment: usize) {
    assert_eq!(size_of::<T>(), size, "size of {}", std::any::type_name::<T>());
    assert_eq!(align_of::<T>(), alignment, "alignment of {}", std::any::type_name::<T>());
}
