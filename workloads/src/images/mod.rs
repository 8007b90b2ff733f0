//! Images: filtered, cleared of noise, followed from frame to frame.

pub(crate) mod convolution;
pub(crate) mod srad;
pub(crate) mod tracking;
