//! The events that the program has made.

use crate::session::state::captures::Captured;
use crate::session::state::handles::{Handles, Kind};
use balar_host::CudaError;

/// An event that the program made.
#[derive(Clone, Debug)]
pub struct Event {
    /// The simulator's number.
    pub number: u32,
    /// The device that was current.
    pub device: u32,
    /// The flags of its creation.
    pub flags: u32,
    /// The work that it stands for, where it was last recorded in a stream that was captured.
    pub captured: Option<Captured>,
}

/// The events that the program has made.
pub static EVENTS: Handles<Event> = Handles::new(Kind::Event);

/// The simulator's number of an event.
pub fn number(handle: u64) -> Result<u32, CudaError> {
    EVENTS.with(handle, |event| event.number)
}
