//! NVTX: the demands of its header on a library that is to hear of marks and ranges (`nvtx3/nvtxDetail/nvtxTypes.h`), and the descriptions
//! of ranges.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// Gives one of the header's tables by its number (`NvtxGetExportTableFunc_t`).
pub type GetExportTable = unsafe extern "C" fn(table: u32) -> *const c_void;

/// The number of [`Callbacks`] (`NVTX_ETID_CALLBACKS`).
pub const CALLBACKS: u32 = 1;

/// A table of places for functions, which has so many (`NvtxFunctionTable`). Places may be null.
pub type Places = *mut *mut *const c_void;

/// `NvtxExportTableCallbacks`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Callbacks {
    /// Bytes of this.
    pub size: usize,
    /// Gives the places of a module's functions, and how many there are; 0 if it has none.
    pub places: Option<unsafe extern "C" fn(module: c_int, places: *mut Places, count: *mut c_uint) -> c_int>,
}

/// Functions of no domain (`NVTX_CB_MODULE_CORE`, `NvtxCallbackIdCore`).
pub mod core {
    /// The module.
    pub const MODULE: i32 = 1;
    /// `nvtxRangeStartEx`.
    pub const RANGE_START_EX: usize = 4;
    /// `nvtxRangeStartA`.
    pub const RANGE_START_A: usize = 5;
    /// `nvtxRangeStartW`.
    pub const RANGE_START_W: usize = 6;
    /// `nvtxRangeEnd`.
    pub const RANGE_END: usize = 7;
    /// `nvtxRangePushEx`.
    pub const RANGE_PUSH_EX: usize = 8;
    /// `nvtxRangePushA`.
    pub const RANGE_PUSH_A: usize = 9;
    /// `nvtxRangePushW`.
    pub const RANGE_PUSH_W: usize = 10;
    /// `nvtxRangePop`.
    pub const RANGE_POP: usize = 11;
}

/// Functions with domains (`NVTX_CB_MODULE_CORE2`, `NvtxCallbackIdCore2`).
pub mod domains {
    /// The module.
    pub const MODULE: i32 = 5;
    /// `nvtxDomainRangeStartEx`.
    pub const RANGE_START_EX: usize = 2;
    /// `nvtxDomainRangeEnd`.
    pub const RANGE_END: usize = 3;
    /// `nvtxDomainRangePushEx`.
    pub const RANGE_PUSH_EX: usize = 4;
    /// `nvtxDomainRangePop`.
    pub const RANGE_POP: usize = 5;
    /// `nvtxDomainRegisterStringA`.
    pub const REGISTER_STRING_A: usize = 10;
    /// `nvtxDomainRegisterStringW`.
    pub const REGISTER_STRING_W: usize = 11;
    /// `nvtxDomainCreateA`.
    pub const CREATE_A: usize = 12;
    /// `nvtxDomainCreateW`.
    pub const CREATE_W: usize = 13;
}

/// `nvtxEventAttributes_t`, versions 1 to 3.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct EventAttributes {
    /// The version of the header.
    pub version: u16,
    /// Bytes of this.
    pub size: u16,
    /// `nvtxNameCategory`.
    pub category: u32,
    /// Whether there is a colour.
    pub color_type: i32,
    /// The colour.
    pub color: u32,
    /// The type of the payload.
    pub payload_type: i32,
    /// Zero.
    pub reserved: i32,
    /// A number for tools.
    pub payload: u64,
    /// The type of the message: one of [`message`].
    pub message_type: i32,
    /// The message: an address, or the handle of a registered string.
    pub message: *const c_void,
}

/// Kinds of messages (`nvtxMessageType_t`).
pub mod message {
    /// Text of `char`.
    pub const TEXT: i32 = 1;
    /// Text of `wchar_t`.
    pub const WIDE: i32 = 2;
    /// A string that was registered.
    pub const REGISTERED: i32 = 3;
}

/// `wchar_t` on Linux: a character.
pub type WideCharacter = u32;

/// The text at an address, which ends with a zero byte; `None` for a null pointer. Bytes that are no UTF-8 are replaced.
///
/// # Safety
///
/// The text is there.
pub unsafe fn text(address: *const c_char) -> Option<String> {
    // SAFETY: as the caller says.
    (!address.is_null()).then(|| unsafe { std::ffi::CStr::from_ptr(address) }.to_string_lossy().into_owned())
}

/// The text at an address, which ends with a zero character; `None` for a null pointer. Values that are no character are replaced.
///
/// # Safety
///
/// The text is there.
pub unsafe fn wide_text(address: *const WideCharacter) -> Option<String> {
    if address.is_null() {
        return None;
    }
    // SAFETY: as the caller says, each character before the last zero is there.
    let characters = (0..).map(|index| unsafe { address.add(index).read_unaligned() });
    let text = characters.take_while(|character| *character != 0);
    Some(text.map(|character| char::from_u32(character).unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::layout::check;

    /// Sizes and places by the header of CUDA 12.9.
    #[test]
    fn layouts_are_those_of_the_header() {
        check::<EventAttributes>(48, 8);
        check::<Callbacks>(16, 8);
        assert_eq!(std::mem::offset_of!(EventAttributes, payload), 24);
        assert_eq!(std::mem::offset_of!(EventAttributes, message_type), 32);
        assert_eq!(std::mem::offset_of!(EventAttributes, message), 40);
    }

    #[test]
    fn names_are_text_whatever_they_hold() {
        let wide: Vec<u32> = "größe \u{1F600}".chars().map(u32::from).chain([0xD800, 0]).collect();
        // SAFETY: both end with a zero.
        let (plain, wide) = unsafe { (text(c"a\xFF".as_ptr()), wide_text(wide.as_ptr())) };
        assert_eq!((plain.as_deref(), wide.as_deref()), (Some("a\u{FFFD}"), Some("größe \u{1F600}\u{FFFD}")));
        // SAFETY: null pointers are no text.
        assert_eq!(unsafe { (text(std::ptr::null()), wide_text(std::ptr::null())) }, (None, None));
    }
}
