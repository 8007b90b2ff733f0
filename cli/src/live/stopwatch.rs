//! Real time, for what is shown of a run.

use std::time::Duration;

/// Real time since it was made.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::disallowed_types, reason = "how long a run takes is shown, not simulated")]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Begins now.
    #[expect(clippy::disallowed_types, reason = "how long a run takes is shown, not simulated")]
    pub fn start() -> Stopwatch {
        Stopwatch(std::time::Instant::now())
    }

    /// How long that was ago.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
