//! The streams that the program has made.

use crate::session::state::handles::{Handles, Kind};

/// A stream that the program made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The simulator's number.
    pub number: u32,
    /// The device that it belongs to.
    pub device: u32,
    /// The flags of its creation.
    pub flags: u32,
    /// Its priority.
    pub priority: i32,
}

/// The streams that the program has made.
pub static STREAMS: Handles<Stream> = Handles::new(Kind::Stream);
