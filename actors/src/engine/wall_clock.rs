//! The wall clock, for `max_wall` and for the busy time of shards. Nothing that is simulated sees it.
#![expect(clippy::disallowed_types, reason = "limits and measures of the simulator itself, not of what it simulates")]

use std::time::{Duration, Instant};

/// Measures how long something takes.
pub(super) struct Stopwatch(Instant);

impl Stopwatch {
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// When a run has to end; it may never have to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(Option<Instant>);

impl Deadline {
    /// `limit` from now. A limit too far to count to is none.
    pub fn after(limit: Option<Duration>) -> Deadline {
        Deadline(limit.and_then(|limit| Instant::now().checked_add(limit)))
    }

    #[inline]
    pub fn is_over(self) -> bool {
        self.0.is_some_and(|deadline| Instant::now() >= deadline)
    }
}
