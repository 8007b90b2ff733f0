//! Devices in use: waiting for them, their settings, access between them; how contexts on them end.

pub mod context_ends;
pub mod device;
