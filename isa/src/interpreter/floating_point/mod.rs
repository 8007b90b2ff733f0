//! Arithmetic on floating-point numbers.

pub(crate) mod directed;
pub(crate) mod float;
pub(crate) mod float_forms;
pub(crate) mod half;
pub(crate) mod half_arithmetic;
pub(crate) mod number_format;
