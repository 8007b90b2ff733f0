//! The questions of the CUDA runtime to the driver about devices and code.

use super::table::{ExportTable, NAMES, Slot};
use crate::abi::arguments::Out;
use crate::driver::early;
use crate::export_slots;
use crate::session::code::{image, module};
use crate::session::contexts::context;
use balar_host::CudaError;
use std::ffi::{c_int, c_void};

const NUMBER: usize = 0;
const SLOTS: usize = 13;

/// The table.
pub static TABLE: ExportTable = ExportTable {
    name: NAMES[NUMBER],
    identifier: 0x6bd5fb6c_5bf4_e74a_8987_d93912fd9df9,
    slots: &const {
        export_slots![NUMBER; SLOTS;
            0 => Slot::number(SLOTS * size_of::<Slot>()),
            1 => Slot::function(load_wrapper as *const ()),
            2 => Slot::function(primary_context as *const ()),
            6 => Slot::function(load_image as *const ()),
            7 => Slot::function(nothing as *const ()),
            8 => Slot::function(load_image as *const ()),
            12 => Slot::function(load_compilers as *const ()),
        ]
    },
};

/// Loads the code of a record of a fatbin container in the current context.
unsafe extern "C" fn load_wrapper(place: Out<u64>, wrapper: *const c_void) -> c_int {
    early(&mut || load(place, wrapper))
}

/// As [`load_wrapper`], for a record or for a container itself. The runtime passes three zeros more.
unsafe extern "C" fn load_image(place: Out<u64>, image: *const c_void, _: usize, _: usize, _: usize) -> c_int {
    early(&mut || load(place, image))
}

fn load(place: Out<u64>, address: *const c_void) -> Result<(), CudaError> {
    place.check()?;
    let images = image::at(address)?;
    place.set(module::load_when_needed("CUDART_INTERFACE", images)?)
}

/// The primary context of a device, which does not become current.
unsafe extern "C" fn primary_context(place: Out<u64>, device: c_int) -> c_int {
    early(&mut || {
        crate::session::connection::description::device_of(device)?;
        place.set(context::primary(device as u32))
    })
}

/// Nothing is to be done.
unsafe extern "C" fn nothing(_: *const c_void) -> c_int {
    early(&mut || Ok(()))
}

/// Compilers are there when they are needed.
unsafe extern "C" fn load_compilers() -> c_int {
    early(&mut || Ok(()))
}
