//! Contexts: which is current, and values that libraries keep for each.

pub mod context;
pub mod storage;
