//! A run held, stepped and asked from outside while it goes on.

use balar_protocol::SimTime;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a run that is held waits before it looks for an interrupt or the end of its time.
const LOOK: Duration = Duration::from_millis(20);

/// Holds a run, lets it go on for a while, and asks it for samples. A handle: clones control the same run.
///
/// Requests take effect between windows. They change no result, only when the run goes on.
#[derive(Clone, Debug, Default)]
pub struct RunControl {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Is there anything that the run has to look at?
    attention: AtomicBool,
    orders: Mutex<Orders>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Orders {
    /// Nothing is simulated from this time on.
    hold_at: Option<SimTime>,
    /// A time to hold at, once it is known where the run is: so much after that.
    step: Option<SimTime>,
    asked: bool,
    /// The run is held and waits.
    is_held: bool,
}

/// The next act of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Order {
    /// It goes on, but not to this time or beyond.
    GoOn(SimTime),
    /// It gives a sample, and then asks again.
    Sample,
    /// It is held, and nothing happens before this time: it looks whether it has to end, and asks again.
    Hold(SimTime),
}

impl RunControl {
    /// The run stops where it is.
    pub fn pause(&self) {
        self.change(|orders| (orders.hold_at, orders.step) = (Some(SimTime::ZERO), None));
    }

    /// A run that is held goes on for so much simulated time, which is above zero, and is held again. One that is not held is held then.
    /// The time counts from where the run stands, even where nothing happens for a while.
    pub fn step(&self, time: SimTime) {
        self.change(|orders| orders.step = Some(time));
    }

    /// A run that is held goes on.
    pub fn resume(&self) {
        self.change(|orders| (orders.hold_at, orders.step) = (None, None));
    }

    /// The run gives a sample as soon as it can, even where it is held.
    pub fn ask(&self) {
        self.change(|orders| orders.asked = true);
    }

    /// Does the run stand still because it is held?
    pub fn is_held(&self) -> bool {
        self.orders().is_held
    }

    /// Is there anything that the run has to look at?
    #[inline]
    pub(in crate::engine) fn needs_attention(&self) -> bool {
        self.shared.attention.load(Ordering::Relaxed)
    }

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.shared.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Orders)) {
        let mut orders = self.orders();
        change(&mut orders);
        self.shared.attention.store(true, Ordering::Release);
        self.shared.changed.notify_all();
    }

    /// The act of a run that stands at `reached`, and whose next event is at `start`. Waits for a while where it is held.
    #[inline]
    pub(in crate::engine) fn order(&self, reached: SimTime, start: SimTime) -> Order {
        if self.shared.attention.load(Ordering::Acquire) {
            self.order_now(reached, start)
        } else {
            Order::GoOn(SimTime::MAX)
        }
    }

    #[cold]
    fn order_now(&self, reached: SimTime, start: SimTime) -> Order {
        let mut orders = self.orders();
        if std::mem::take(&mut orders.asked) {
            return Order::Sample;
        }
        if let Some(step) = orders.step.take() {
            orders.hold_at = Some(reached.saturating_add(step));
        }
        match orders.hold_at {
            None => {
                orders.is_held = false;
                self.shared.attention.store(false, Ordering::Release);
                Order::GoOn(SimTime::MAX)
            }
            Some(hold_at) if start < hold_at => {
                orders.is_held = false;
                Order::GoOn(hold_at)
            }
            // A run that is not there yet says so before it counts as held.
            Some(hold_at) if reached < hold_at => Order::Hold(hold_at),
            Some(hold_at) => {
                orders.is_held = true;
                // Woken early or late, the run looks again.
                drop(self.shared.changed.wait_timeout(orders, LOOK));
                Order::Hold(hold_at)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_held_stepped_and_released() {
        let control = RunControl::default();
        let at = |time| control.order(SimTime(time), SimTime(time));
        let (go_on, hold) = (|time| Order::GoOn(SimTime(time)), |time| Order::Hold(SimTime(time)));
        assert_eq!(at(5), Order::GoOn(SimTime::MAX));
        control.pause();
        assert_eq!(at(5), hold(0));
        control.ask();
        assert_eq!([at(5), at(5)], [Order::Sample, hold(0)]);
        control.step(SimTime(10));
        assert_eq!([at(5), at(14), at(15)], [go_on(15), go_on(15), hold(15)]);
        assert!(control.is_held());
        // The next event is behind the end of the step: the run goes to that end, and is held there.
        control.step(SimTime(10));
        assert_eq!(control.order(SimTime(15), SimTime(18)), go_on(25));
        assert_eq!(control.order(SimTime(19), SimTime(40)), hold(25));
        assert!(!control.is_held());
        assert_eq!(control.order(SimTime(25), SimTime(40)), hold(25));
        assert!(control.is_held());
        control.resume();
        assert_eq!(at(15), Order::GoOn(SimTime::MAX));
        assert!(!control.needs_attention(), "a run that is not held has nothing to look at");
        control.ask();
        assert!(control.needs_attention(), "a shard that runs by itself gives that up");
        assert_eq!([at(20), at(20)], [Order::Sample, Order::GoOn(SimTime::MAX)]);
    }

    #[test]
    fn it_is_known_that_a_run_is_held() {
        let control = RunControl::default();
        control.pause();
        let run = control.clone();
        let held = std::thread::spawn(move || while run.order(SimTime(1), SimTime(1)) == Order::Hold(SimTime::ZERO) {});
        while !control.is_held() {
            std::thread::yield_now();
        }
        control.resume();
        held.join().expect("it goes on");
        assert!(!control.is_held());
    }
}
