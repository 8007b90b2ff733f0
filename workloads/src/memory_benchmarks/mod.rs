//! Measurements of the levels of memory: latency, bandwidth, pages that move.

pub(crate) mod bandwidth;
pub(crate) mod page_touch;
pub(crate) mod pointer_chase;
pub(crate) mod random_access;
pub(crate) mod reuse;
pub(crate) mod shared_chase;
pub(crate) mod stream;
