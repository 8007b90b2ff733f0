//! Value epochs: work at fixed multiples of a length of simulated time, counted from zero.
//!
//! How far the engine runs ahead (a window) follows from wires and changes no result. The state that units share, such as the values of
//! memory, changes only at the ends of epochs. No window crosses one.

use balar_protocol::SimTime;
use std::sync::Arc;

/// The work at the end of an epoch, when no unit runs.
pub trait EpochHook: Send + Sync {
    /// Everything before the end has been simulated, and nothing after it.
    fn epoch_ends(&self);
}

/// The epochs of a simulation.
#[derive(Clone, Default)]
pub struct Epochs {
    /// How long each is; zero where nothing happens at their ends.
    length: SimTime,
    hook: Option<Arc<dyn EpochHook>>,
}

impl Epochs {
    /// Epochs of `length`, which is above zero, at whose ends `hook` is called.
    pub fn new(length: SimTime, hook: Arc<dyn EpochHook>) -> Epochs {
        Epochs { length, hook: Some(hook) }
    }

    /// How long each is; `None` where nothing happens at their ends.
    pub(super) fn length(&self) -> Option<SimTime> {
        self.hook.is_some().then_some(self.length)
    }

    /// The first end of an epoch after `time`.
    #[inline]
    pub fn end_after(&self, time: SimTime) -> SimTime {
        if self.hook.is_none() { SimTime::MAX } else { epoch_end(self.length, time) }
    }

    /// Calls the hook where an epoch ends between two windows, one that began at `last` and one that begins at `next`.
    #[inline]
    pub(super) fn between(&self, last: SimTime, next: SimTime) {
        if let Some(hook) = &self.hook
            && epoch_end(self.length, last) <= next
        {
            hook.epoch_ends();
        }
    }

    /// Calls the hook once more at the end of a run.
    pub(super) fn finish(&self) {
        if let Some(hook) = &self.hook {
            hook.epoch_ends();
        }
    }
}

/// The first multiple of `length` (above zero) after `time`.
#[inline]
pub fn epoch_end(length: SimTime, time: SimTime) -> SimTime {
    SimTime((time.0 / length.0 + 1).saturating_mul(length.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[derive(Default)]
    struct Count(AtomicU32);

    impl EpochHook for Count {
        fn epoch_ends(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn ends_are_multiples_of_the_length() {
        let hook = Arc::new(Count::default());
        let epochs = Epochs::new(SimTime(20), Arc::clone(&hook) as Arc<dyn EpochHook>);
        let ends = [0, 19, 20, 41].map(|time| epochs.end_after(SimTime(time)).0);
        assert_eq!(ends, [20, 20, 40, 60]);
        for (last, next) in [(0, 19), (0, 20), (19, 20), (20, 39), (21, 500)] {
            epochs.between(SimTime(last), SimTime(next));
        }
        assert_eq!(hook.0.load(Ordering::Relaxed), 3);
        assert_eq!(Epochs::default().end_after(SimTime(5)), SimTime::MAX);
    }
}
