//! NVTX, by which programs name their phases: this library hears of its ranges where `balar-actors run` asks for them.
//!
//! The header of NVTX, and libnvToolsExt.so.1 of older programs, load the library that `NVTX_INJECTION64_PATH` names at the first
//! mark or range, and call [`InitializeInjectionNvtx2`]. Where the variable is not set, marks and ranges are nothing.

use crate::abi::nvtx::{self, Callbacks, EventAttributes, GetExportTable, WideCharacter, core, domains, message};
use crate::session::api::raw;
use crate::session::tools::named_ranges;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// The domain of functions that have none.
const NO_DOMAIN: u64 = 0;

/// Takes the functions of ranges. Returns 1, or 0 where the program's NVTX has none, which then loses nothing but its ranges.
///
/// # Safety
///
/// It is NVTX that calls, with its own function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(tables: Option<GetExportTable>) -> c_int {
    let Some(tables) = tables else { return 0 };
    // SAFETY: the function gives a table of that type or a null pointer.
    let callbacks = unsafe { tables(nvtx::CALLBACKS).cast::<Callbacks>().as_ref() };
    let Some(callbacks) = callbacks.filter(|table| table.size >= size_of::<Callbacks>()) else { return 0 };
    let without_domain: [(usize, *const c_void); 8] = [
        (core::RANGE_START_EX, range_start_ex as *const c_void),
        (core::RANGE_START_A, range_start_a as *const c_void),
        (core::RANGE_START_W, range_start_w as *const c_void),
        (core::RANGE_END, range_end as *const c_void),
        (core::RANGE_PUSH_EX, range_push_ex as *const c_void),
        (core::RANGE_PUSH_A, range_push_a as *const c_void),
        (core::RANGE_PUSH_W, range_push_w as *const c_void),
        (core::RANGE_POP, range_pop as *const c_void),
    ];
    let with_domain: [(usize, *const c_void); 8] = [
        (domains::RANGE_START_EX, domain_range_start_ex as *const c_void),
        (domains::RANGE_END, domain_range_end as *const c_void),
        (domains::RANGE_PUSH_EX, domain_range_push_ex as *const c_void),
        (domains::RANGE_POP, domain_range_pop as *const c_void),
        (domains::REGISTER_STRING_A, domain_register_string_a as *const c_void),
        (domains::REGISTER_STRING_W, domain_register_string_w as *const c_void),
        (domains::CREATE_A, domain_create_a as *const c_void),
        (domains::CREATE_W, domain_create_w as *const c_void),
    ];
    // SAFETY: the functions have the types of their places. Versions of NVTX before domains have no such module.
    unsafe {
        fill(callbacks, domains::MODULE, &with_domain);
        c_int::from(fill(callbacks, core::MODULE, &without_domain))
    }
}

/// Puts functions into their places of a module. False if there is no such module.
///
/// # Safety
///
/// The table is NVTX's, and the functions have the types of their places.
unsafe fn fill(callbacks: &Callbacks, module: c_int, functions: &[(usize, *const c_void)]) -> bool {
    let Some(places_of) = callbacks.places else { return false };
    let (mut places, mut count): (nvtx::Places, c_uint) = (std::ptr::null_mut(), 0);
    // SAFETY: both are valid for the call. There are `count` pointers to places. Each is one or null.
    unsafe {
        if places_of(module, &raw mut places, &raw mut count) == 0 || places.is_null() {
            return false;
        }
        for (number, function) in functions.iter().filter(|(number, _)| *number < count as usize) {
            let place = places.add(*number).read();
            if !place.is_null() {
                place.write(*function);
            }
        }
    }
    true
}

/// The name of a range by its attributes; `None` if it has none.
///
/// # Safety
///
/// The attributes are there, if they are not null, and the text that they name.
unsafe fn name(attributes: *const EventAttributes) -> Option<String> {
    // SAFETY: as the caller says. The size, which the oldest have too, says whether there is a message.
    unsafe {
        if attributes.is_null() || usize::from((*attributes).size) < size_of::<EventAttributes>() {
            return None;
        }
        let EventAttributes { message_type, message, .. } = attributes.read_unaligned();
        match message_type {
            message::TEXT => nvtx::text(message.cast()),
            message::WIDE => nvtx::wide_text(message.cast()),
            message::REGISTERED => named_ranges::registered(message.addr() as u64),
            _ => None,
        }
    }
}

/// Where a range is, in how many others of its thread; negative if it is nowhere.
fn level(depth: Option<usize>) -> c_int {
    depth.and_then(|depth| c_int::try_from(depth).ok()).unwrap_or(-1)
}

// SAFETY of all below: NVTX passes on what the program has given, which is a text or attributes or a null pointer.

unsafe extern "C" fn range_start_ex(attributes: *const EventAttributes) -> u64 {
    raw(|| named_ranges::start(unsafe { name(attributes) }))
}

unsafe extern "C" fn range_start_a(text: *const c_char) -> u64 {
    raw(|| named_ranges::start(unsafe { nvtx::text(text) }))
}

unsafe extern "C" fn range_start_w(text: *const WideCharacter) -> u64 {
    raw(|| named_ranges::start(unsafe { nvtx::wide_text(text) }))
}

extern "C" fn range_end(range: u64) {
    raw(|| named_ranges::finish(range));
}

unsafe extern "C" fn range_push_ex(attributes: *const EventAttributes) -> c_int {
    unsafe { domain_range_push_ex(NO_DOMAIN, attributes) }
}

unsafe extern "C" fn range_push_a(text: *const c_char) -> c_int {
    raw(|| level(Some(named_ranges::push(NO_DOMAIN, unsafe { nvtx::text(text) }))))
}

unsafe extern "C" fn range_push_w(text: *const WideCharacter) -> c_int {
    raw(|| level(Some(named_ranges::push(NO_DOMAIN, unsafe { nvtx::wide_text(text) }))))
}

extern "C" fn range_pop() -> c_int {
    domain_range_pop(NO_DOMAIN)
}

unsafe extern "C" fn domain_range_start_ex(_domain: u64, attributes: *const EventAttributes) -> u64 {
    unsafe { range_start_ex(attributes) }
}

extern "C" fn domain_range_end(_domain: u64, range: u64) {
    range_end(range);
}

unsafe extern "C" fn domain_range_push_ex(domain: u64, attributes: *const EventAttributes) -> c_int {
    raw(|| level(Some(named_ranges::push(domain, unsafe { name(attributes) }))))
}

extern "C" fn domain_range_pop(domain: u64) -> c_int {
    raw(|| level(named_ranges::pop(domain)))
}

/// The handle of a string, or of a domain, is its number; 0, a null pointer, where there is none.
fn handle(name: Option<String>) -> u64 {
    name.map_or(0, named_ranges::register)
}

unsafe extern "C" fn domain_register_string_a(_domain: u64, text: *const c_char) -> u64 {
    raw(|| handle(unsafe { nvtx::text(text) }))
}

unsafe extern "C" fn domain_register_string_w(_domain: u64, text: *const WideCharacter) -> u64 {
    raw(|| handle(unsafe { nvtx::wide_text(text) }))
}

unsafe extern "C" fn domain_create_a(text: *const c_char) -> u64 {
    raw(|| handle(unsafe { nvtx::text(text) }))
}

unsafe extern "C" fn domain_create_w(text: *const WideCharacter) -> u64 {
    raw(|| handle(unsafe { nvtx::wide_text(text) }))
}
