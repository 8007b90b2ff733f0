//! Contexts: which is current, and what libraries keep for each.

pub mod context;
pub mod storage;
