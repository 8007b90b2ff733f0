//! The messages on their way to one unit.

use balar_protocol::{Message, SimTime};

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
        let mut earliest = SimTime::MAX;
        let mut index = 0;
        while index < self.future.len() {
            let time = self.future[index].time;
            if time < until {
                due.push(self.future.swap_remove(index));
            } else {
                earliest = earliest.min(time);
                index += 1;
            }
        }
        self.earliest = earliest;
        due.sort_unstable_by(|a, b| b.order().cmp(&a.order()));
    }
}
