//! The rules for a unit of the user's own: rules of time, of its protocols and of memory.

mod conversation;
mod guest;
pub(crate) mod memory_order;
pub(crate) mod rules;

pub use conversation::Conversation;
pub use guest::{Guest, GuestPort};
pub use rules::BrokenRule;
