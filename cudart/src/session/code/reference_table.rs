//! The texture and surface references of modules that a program has asked for, each with its state.

use crate::abi::array::ChannelFormatDesc;
use crate::session::state::handles::{Handles, Kind};
use std::sync::Arc;

/// `CU_TR_ADDRESS_MODE_CLAMP`, which a reference has at first.
pub(in crate::session) const CLAMP: u32 = 1;

/// The memory that a texture reference reads.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// Nothing yet.
    Nothing,
    /// An array, by its handle.
    Array(u64),
    /// Memory in a line.
    Linear {
        /// The devices' address.
        address: u64,
        /// Bytes.
        bytes: u64,
    },
    /// Rows of memory.
    Rows {
        /// The devices' address.
        address: u64,
        /// Texels of a row.
        width: u32,
        /// Rows.
        height: u32,
        /// Bytes from a row to the next.
        pitch: u64,
    },
}

/// A texture reference of a module.
#[derive(Clone, Debug)]
pub struct Reference {
    pub(in crate::session) module: u32,
    pub(in crate::session) device: u32,
    pub(in crate::session) name: Arc<str>,
    /// The memory that it reads.
    pub source: Source,
    /// Its texels, where it reads memory.
    pub format: ChannelFormatDesc,
    /// How coordinates outside are read, as C has it.
    pub address_modes: [u32; 3],
    /// `CUfilter_mode`.
    pub filter: u32,
    /// `CU_TRSF_*`.
    pub flags: u32,
    /// The value outside of the texture in mode `CU_TR_ADDRESS_MODE_BORDER`.
    pub border: [f32; 4],
}

/// A surface reference of a module.
#[derive(Clone, Debug)]
pub(in crate::session) struct Surface {
    pub(in crate::session) module: u32,
    pub(in crate::session) device: u32,
    pub(in crate::session) name: Arc<str>,
    pub(in crate::session) array: u64,
}

pub(in crate::session) static TEXTURES: Handles<Reference> = Handles::new(Kind::TextureReference);

pub(in crate::session) static SURFACES: Handles<Surface> = Handles::new(Kind::SurfaceReference);

/// A device has unloaded a module: its references are no longer there.
pub fn forget(device: u32, module: u32) {
    TEXTURES.retain(|_, reference| (reference.device, reference.module) != (device, module));
    SURFACES.retain(|_, surface| (surface.device, surface.module) != (device, module));
}
