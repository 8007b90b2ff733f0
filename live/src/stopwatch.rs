//! Real time, for the display of a run.
#![expect(clippy::disallowed_types, reason = "how long a run takes is shown, not simulated")]

use std::time::{Duration, Instant};

/// Real time since it was made.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Begins now.
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// How long that was ago.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
