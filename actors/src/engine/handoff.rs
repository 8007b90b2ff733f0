//! Hands a value to a thread that waits for it without going to sleep.
//!
//! A window lasts microseconds, and so does waking a thread: where every shard has a processor of its own, shards and coordinator look
//! for each other's messages for a while before they return to their mailboxes.

use super::wall_clock::Stopwatch;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a thread looks for a value before it goes back to its mailbox: a few times the cost of waking it.
const PATIENCE: Duration = Duration::from_micros(50);

/// Looks between two readings of the clock.
const LOOKS: u32 = 32;

const CLOSED: u8 = 0;
const OPEN: u8 = 1;
const FULL: u8 = 2;

/// A place for one value, from one thread to another.
#[derive(Debug)]
pub(super) struct Handoff<T> {
    /// Changed with the lock of `value` held; read without it by who waits.
    state: AtomicU8,
    value: Mutex<Option<T>>,
}

impl<T> Default for Handoff<T> {
    fn default() -> Handoff<T> {
        Handoff { state: AtomicU8::new(CLOSED), value: Mutex::new(None) }
    }
}

impl<T> Handoff<T> {
    /// The receiver is about to wait.
    pub fn open(&self) {
        let _place = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.store(OPEN, Ordering::Release);
    }

    /// Leaves `value` for the receiver; gives it back where nobody waits.
    pub fn offer(&self, value: T) -> Result<(), T> {
        let mut place = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        if self.state.load(Ordering::Acquire) != OPEN {
            return Err(value);
        }
        *place = Some(value);
        self.state.store(FULL, Ordering::Release);
        Ok(())
    }

    /// May a value come, or has one?
    #[inline]
    pub fn is_open(&self) -> bool {
        self.state.load(Ordering::Acquire) != CLOSED
    }

    /// Takes the value, if there is one.
    #[inline]
    pub fn try_take(&self) -> Option<T> {
        if self.state.load(Ordering::Acquire) == FULL { self.close() } else { None }
    }

    /// The receiver waits no longer; takes the value that came meanwhile.
    pub fn close(&self) -> Option<T> {
        let mut place = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.store(CLOSED, Ordering::Release);
        place.take()
    }

    /// Waits for a value, not for long; closed afterwards.
    pub fn wait(&self) -> Option<T> {
        look_for(|| self.try_take()).or_else(|| self.close())
    }
}

/// Looks for a value until there is one or patience is over.
pub(super) fn look_for<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Stopwatch::start();
    loop {
        for _ in 0..LOOKS {
            let found = look();
            if found.is_some() {
                return found;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() > PATIENCE {
            return None;
        }
    }
}

/// Whether looking is worth while: where it was in vain, because the machine has other work, it is left out for a while.
#[derive(Debug, Default)]
pub(super) struct Patience {
    penalty: u32,
    left: u32,
}

impl Patience {
    /// Most times that looking is left out after it was in vain.
    const LONGEST: u32 = 255;

    /// Shall it look this time?
    pub fn worth_while(&mut self) -> bool {
        let worth_while = self.left == 0;
        self.left = self.left.saturating_sub(1);
        worth_while
    }

    /// It looked, and found something or not.
    pub fn looked(&mut self, found: bool) {
        self.penalty = if found { self.penalty / 2 } else { (2 * self.penalty + 1).min(Patience::LONGEST) };
        self.left = if found { 0 } else { self.penalty };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn looking_in_vain_becomes_rare() {
        let mut patience = Patience::default();
        let looks = (0..10_000).filter(|_| {
            let look = patience.worth_while();
            if look {
                patience.looked(false);
            }
            look
        });
        assert!(looks.count() < 60);
        patience.left = 0;
        for _ in 0..10 {
            assert!(patience.worth_while());
            patience.looked(true);
        }
    }

    #[test]
    fn no_value_is_lost_or_doubled_between_two_threads() {
        let handoff = Arc::new(Handoff::default());
        let (sender, mailbox) = std::sync::mpsc::channel();
        let giver = Arc::clone(&handoff);
        let giver = std::thread::spawn(move || {
            for value in 0..20_000_u32 {
                if let Err(value) = giver.offer(value) {
                    sender.send(value).expect("the receiver lives");
                }
            }
        });
        let mut received = Vec::new();
        while !giver.is_finished() {
            handoff.open();
            received.extend(handoff.wait());
        }
        giver.join().expect("the giver ends");
        received.extend(handoff.close());
        received.extend(mailbox.try_iter());
        received.sort_unstable();
        assert_eq!(received, (0..20_000).collect::<Vec<_>>());
    }
}
