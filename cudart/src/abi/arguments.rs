//! Arguments of C functions. Where a caller keeps CUDA's contract (a pointer is null, or valid for the use that the function makes of it),
//! these types make its pointers safe to use.

use balar_host::CudaError;
use std::ffi::{CStr, c_char, c_int};

/// Where a result goes: null, or valid for writing a `T`.
#[repr(transparent)]
#[derive(Debug)]
pub struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    /// The result's place.
    ///
    /// # Safety
    ///
    /// `pointer` is null, or valid for writing a `T` as long as the value is used.
    pub unsafe fn new(pointer: *mut T) -> Out<T> {
        Out(pointer)
    }

    /// No place.
    pub fn nowhere() -> Out<T> {
        Out(std::ptr::null_mut())
    }

    /// Is the pointer null?
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The pointer as the caller gave it.
    pub fn pointer(self) -> *mut T {
        self.0
    }

    /// Writes the result; an invalid argument where there is no place for it.
    pub fn set(self, value: T) -> Result<(), CudaError> {
        self.check()?;
        // SAFETY: not null, so valid for writing (the type's contract).
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Writes the result if the caller wants it.
    pub fn set_if_wanted(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null, so valid for writing (the type's contract).
            unsafe { self.0.write_unaligned(value) };
        }
    }

    /// Refuses a place that is null, before anything is done.
    pub fn check(self) -> Result<(), CudaError> {
        if self.0.is_null() { Err(CudaError::InvalidValue) } else { Ok(()) }
    }
}

/// A value that the caller passes by address: null, or valid for reading a `T`.
#[repr(transparent)]
#[derive(Debug)]
pub struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T> In<T> {
    /// The value's place.
    ///
    /// # Safety
    ///
    /// `pointer` is null, or valid for reading a `T` as long as the argument is used.
    pub unsafe fn new(pointer: *const T) -> In<T> {
        In(pointer)
    }
}

impl<T: Copy> In<T> {
    /// No value.
    pub fn absent() -> In<T> {
        In(std::ptr::null())
    }

    /// Is the pointer null?
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The pointer as the caller gave it.
    pub fn pointer(self) -> *const T {
        self.0
    }

    /// The value; an invalid argument where there is none.
    pub fn get(self) -> Result<T, CudaError> {
        self.get_if_given().ok_or(CudaError::InvalidValue)
    }

    /// The value, if there is one.
    pub fn get_if_given(self) -> Option<T> {
        // SAFETY: not null, so valid for reading (the type's contract).
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }

    /// The first `count` values of an array, which the caller says has that many.
    pub fn array(self, count: usize) -> Result<Vec<T>, CudaError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        if self.0.is_null() {
            return Err(CudaError::InvalidValue);
        }
        // SAFETY: the caller passes an array of `count` values.
        Ok((0..count).map(|index| unsafe { self.0.add(index).read_unaligned() }).collect())
    }
}

/// A text that the caller passes: null, or a string that ends with a zero byte.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub struct Text(*const c_char);

impl Text {
    /// The text; an invalid argument where there is none.
    pub fn get(self) -> Result<String, CudaError> {
        if self.0.is_null() {
            return Err(CudaError::InvalidValue);
        }
        // SAFETY: not null, so a string that ends with a zero byte (the type's contract).
        Ok(unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }
}

/// Extents of a grid or block.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dim3 {
    /// In x.
    pub x: u32,
    /// In y.
    pub y: u32,
    /// In z.
    pub z: u32,
}

impl From<Dim3> for [u32; 3] {
    fn from(extent: Dim3) -> [u32; 3] {
        [extent.x, extent.y, extent.z]
    }
}

/// Writes a text and a zero byte where there are `room` bytes.
///
/// # Safety
///
/// `place` is null or valid for writing `room` bytes.
pub unsafe fn write_text(place: *mut c_char, room: c_int, text: &str) -> Result<(), CudaError> {
    let room = usize::try_from(room).map_err(|_| CudaError::InvalidValue)?;
    if place.is_null() || room <= text.len() {
        return Err(CudaError::InvalidValue);
    }
    // SAFETY: there is room for the text and the byte after it.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), place.cast::<u8>(), text.len());
        place.add(text.len()).write(0);
    }
    Ok(())
}

/// Writes handles into an array that has `room` entries; handles without room are left out.
///
/// # Safety
///
/// `place` is null or valid for writing `room` handles.
pub unsafe fn write_handles(place: *mut u64, room: u32, handles: &[u64]) -> Result<(), CudaError> {
    if place.is_null() {
        return Err(CudaError::InvalidValue);
    }
    for (index, handle) in handles.iter().take(room as usize).enumerate() {
        // SAFETY: there is room for `room` handles.
        unsafe { place.add(index).write_unaligned(*handle) };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_place_for_a_result_is_an_invalid_argument() {
        // SAFETY: null is allowed.
        let nowhere: Out<u32> = unsafe { Out::new(std::ptr::null_mut()) };
        assert_eq!(nowhere.set(1), Err(CudaError::InvalidValue));
        let mut value = 0;
        // SAFETY: `value` outlives its use.
        assert_eq!(unsafe { Out::new(&raw mut value) }.set(7), Ok(()));
        assert_eq!(value, 7);
    }

    #[test]
    fn a_text_needs_room_for_its_end() {
        let mut room = [1 as c_char; 16];
        // SAFETY: the array has at least as much room.
        unsafe {
            assert_eq!(write_text(room.as_mut_ptr(), 12, "0000:01:00.0"), Err(CudaError::InvalidValue));
            assert_eq!(write_text(room.as_mut_ptr(), 13, "0000:01:00.0"), Ok(()));
        }
        assert_eq!(room.map(|c| c as u8)[..14], *b"0000:01:00.0\0\x01");
    }
}
