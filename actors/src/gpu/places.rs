//! Places in the queue of another unit, as its credits tell of them.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Places that can be used from a cycle on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Span {
    from: u64,
    count: u32,
}

/// Places, in the order in which they can be used; `None` where there is any number.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Places(Option<VecDeque<Span>>);

impl Places {
    /// All places of a queue with so many entries; 0 = any number.
    pub fn of_queue(entries: u32) -> Places {
        Places((entries > 0).then(|| VecDeque::from([Span { from: 0, count: entries }])))
    }

    /// Are both of queues with an end, or both without?
    pub fn fits(&self, other: &Places) -> bool {
        self.0.is_some() == other.0.is_some()
    }

    /// A place is free from `cycle` on, not before those that were added earlier.
    pub fn add(&mut self, cycle: u64) {
        let Some(spans) = &mut self.0 else { return };
        match spans.back_mut() {
            Some(last) if last.from == cycle => last.count += 1,
            _ => spans.push_back(Span { from: cycle, count: 1 }),
        }
    }

    /// The cycle from which the next place can be used; `None` where nothing is known of one.
    #[inline]
    pub fn next(&self) -> Option<u64> {
        match &self.0 {
            None => Some(0),
            Some(spans) => spans.front().map(|span| span.from),
        }
    }

    /// Takes the place of [`Self::next`].
    #[inline]
    pub fn take(&mut self) {
        let Some(spans) = &mut self.0 else { return };
        if let Some(front) = spans.front_mut() {
            front.count -= 1;
            if front.count == 0 {
                spans.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_in_order() {
        let mut places = Places::of_queue(2);
        for cycle in [30, 30, 40] {
            places.add(cycle);
        }
        let mut from = Vec::new();
        while let Some(cycle) = places.next() {
            from.push(cycle);
            places.take();
        }
        assert_eq!(from, [0, 0, 30, 30, 40]);
    }

    #[test]
    fn a_queue_without_an_end_has_a_place_at_once() {
        let mut places = Places::of_queue(0);
        places.add(50);
        places.take();
        assert_eq!(places.next(), Some(0));
        assert!(!places.fits(&Places::of_queue(1)));
    }
}
