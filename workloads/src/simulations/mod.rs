//! Fields, bodies and chances: computed step by step over time, or drawn at random.

pub(crate) mod fdtd;
pub(crate) mod hotspot;
pub(crate) mod montecarlo;
pub(crate) mod nbody;
pub(crate) mod shock;
pub(crate) mod stencil3d;
