//! The messages on their way to one unit.

use balar_protocol::{Message, SimTime};
use std::cmp::Reverse;

/// Messages that have not arrived yet, in no order, and the earliest stamp among them.
#[derive(Debug)]
pub(super) struct Pending {
    future: Vec<Message>,
    earliest: SimTime,
}

impl Default for Pending {
    fn default() -> Pending {
        Pending { future: Vec::new(), earliest: SimTime::MAX }
    }
}

impl Pending {
    /// The earliest stamp, [`SimTime::MAX`] where nothing is on its way.
    #[inline]
    pub fn earliest(&self) -> SimTime {
        self.earliest
    }

    #[inline]
    pub fn push(&mut self, message: Message) {
        self.earliest = self.earliest.min(message.time);
        self.future.push(message);
    }

    /// Moves what arrives before `until` to `due`, which is empty, and sorts it by descending order.
    #[inline]
    pub fn take_due(&mut self, until: SimTime, due: &mut Vec<Message>) {
        if self.earliest >= until {
            return;
        }
        // Both ways keep the order of arrival: what one sender sends is often sorted already.
        if self.future.iter().all(|message| message.time < until) {
            std::mem::swap(&mut self.future, due);
            self.earliest = SimTime::MAX;
        } else {
            due.extend(self.future.extract_if(.., |message| message.time < until));
            self.earliest = self.future.iter().map(|message| message.time).min().unwrap_or(SimTime::MAX);
        }
        // Most often sorted already, once the earliest is last.
        due.reverse();
        due.sort_unstable_by_key(|message| Reverse(message.order()));
    }
}
