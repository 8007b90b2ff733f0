//! Instructions of machine code that do something that no instruction of PTX does.
//!
//! Values of 64 bits lie in two registers, a row each ([`Lane::read_pair`](super::registers::Lane::read_pair)), and sources have signs
//! ([`signs`]). Arithmetic itself is that of PTX wherever there is the like.

pub(crate) mod arithmetic;
pub(crate) mod compare;
pub(crate) mod control;
pub(crate) mod convert;
pub(crate) mod extrema;
pub(crate) mod half;
pub(crate) mod logic;
pub(crate) mod matrix;
pub(crate) mod matrix_step;
pub(crate) mod memory;
pub(crate) mod signs;
pub(crate) mod special;
