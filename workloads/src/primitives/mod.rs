//! Building blocks of other programs: sums, counts, sorting, transforms.

pub(crate) mod bitonic;
pub(crate) mod fft;
pub(crate) mod histogram;
pub(crate) mod reduction;
pub(crate) mod scan;
