//! The virtual-time engine: units, their inboxes, and what moves them on.

pub mod node;
pub mod unit;

pub use unit::{Inbox, NextWake, Outbox, Unit, Window};
