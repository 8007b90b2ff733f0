//! The messages on their way to one unit.

use super::unit::Inbox;
use balar_protocol::{Message, SimTime};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// Spans of time ahead of the present that are told apart. A memory's answer is under way for half a dozen windows.
const SPANS: usize = 16;

/// Messages that arrive in one span of time, in the order they were sent in, and the earliest stamp among them.
#[derive(Debug)]
struct Span {
    messages: Vec<Message>,
    earliest: SimTime,
}

impl Span {
    #[inline]
    fn push(&mut self, message: Message) {
        self.earliest = self.earliest.min(message.time);
        self.messages.push(message);
    }

    fn take_until(&mut self, until: SimTime, inbox: &mut Inbox) {
        inbox.fill(self.messages.extract_if(.., |message| message.time < until));
        self.earliest = self.messages.iter().map(|message| message.time).min().unwrap_or(SimTime::MAX);
    }
}

impl Default for Span {
    fn default() -> Span {
        Span { messages: Vec::new(), earliest: SimTime::MAX }
    }
}

/// A message that arrives after the calendar's spans. The greatest arrives first; of those with one stamp, the one sent first.
#[derive(Debug)]
struct Far {
    message: Message,
    /// How many far ones were sent before.
    number: u64,
}

impl Far {
    fn key(&self) -> (SimTime, u64) {
        (self.message.time, self.number)
    }
}

impl Ord for Far {
    fn cmp(&self, other: &Far) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Far {
    fn partial_cmp(&self, other: &Far) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Far {
    fn eq(&self, other: &Far) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Far {}

/// Messages that have not arrived yet: a calendar of short spans, so that a window looks at its own messages alone, and a heap of
/// what comes after them: a link may have a million lines of a copy on their way.
#[derive(Debug)]
pub(super) struct Pending {
    /// A span lasts 2^`shift` ps.
    shift: u32,
    /// Number of the first span that may hold messages.
    first: u64,
    /// Those of span number n are in `spans[n % SPANS]`.
    spans: [Span; SPANS],
    /// What arrives after them.
    later: BinaryHeap<Far>,
    /// Messages that were put there.
    later_sent: u64,
    earliest: SimTime,
}

impl Pending {
    /// For windows of `lookahead`.
    pub fn new(lookahead: SimTime) -> Pending {
        Pending {
            shift: lookahead.0.max(1).ilog2(),
            first: 0,
            spans: std::array::from_fn(|_| Span::default()),
            later: BinaryHeap::new(),
            later_sent: 0,
            earliest: SimTime::MAX,
        }
    }

    /// The earliest stamp, [`SimTime::MAX`] where nothing is on its way.
    #[inline]
    pub fn earliest(&self) -> SimTime {
        self.earliest
    }

    /// Adds a message; no message that is added from now on arrives before `floor`.
    #[inline]
    pub fn push(&mut self, message: Message, floor: SimTime) {
        let number = message.time.0 >> self.shift;
        if number.wrapping_sub(self.first) >= SPANS as u64 {
            // The unit may have slept for long: the calendar starts with what is there.
            self.first = self.first.max(self.earliest.min(floor).0 >> self.shift);
            self.bring_near();
        }
        self.earliest = self.earliest.min(message.time);
        if number.wrapping_sub(self.first) < SPANS as u64 {
            self.spans[number as usize % SPANS].push(message);
        } else {
            self.later.push(Far { message, number: self.later_sent });
            self.later_sent += 1;
        }
    }

    /// Takes the first of the far messages, where `wanted` says so of it.
    fn pop_far(&mut self, wanted: impl Fn(&Message) -> bool) -> Option<Message> {
        let first = self.later.peek_mut().filter(|first| wanted(&first.message))?;
        Some(PeekMut::pop(first).message)
    }

    /// What the calendar has come to moves into it, before anything else is added there: it was sent before that.
    fn bring_near(&mut self) {
        let (shift, first) = (self.shift, self.first);
        while let Some(message) = self.pop_far(|message| (message.time.0 >> shift).wrapping_sub(first) < SPANS as u64) {
            self.spans[(message.time.0 >> shift) as usize % SPANS].push(message);
        }
    }

    /// Moves what arrives before `until` to `inbox`, which is empty, in order.
    #[inline]
    pub fn take_due(&mut self, until: SimTime, inbox: &mut Inbox) {
        if self.earliest < until {
            self.take(until, inbox);
        }
    }

    fn take(&mut self, until: SimTime, inbox: &mut Inbox) {
        // First what was far away when it was sent: of messages of one sender and stamp, these are the older ones.
        inbox.fill(std::iter::from_fn(|| self.pop_far(|message| message.time < until)));
        let last = until.0 >> self.shift;
        for number in (self.first..last).take(SPANS) {
            let span = &mut self.spans[number as usize % SPANS];
            inbox.fill(span.messages.drain(..));
            span.earliest = SimTime::MAX;
        }
        self.first = self.first.max(last);
        self.bring_near();
        let partial = &mut self.spans[last as usize % SPANS];
        if partial.earliest < until {
            partial.take_until(until, inbox);
        }
        inbox.sort();
        let earliest = self.spans.iter().map(|span| span.earliest).min();
        let later = self.later.peek().map_or(SimTime::MAX, |first| first.message.time);
        self.earliest = earliest.unwrap_or(SimTime::MAX).min(later);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_protocol::{Payload, PortId, UnitId};
    use rand_core::Rng;
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn every_message_comes_in_its_window_and_in_order_whatever_its_distance() {
        let mut random = Pcg64Mcg::new(1);
        let mut draw = |limit: u64| random.next_u64() % limit;
        let mut pending = Pending::new(SimTime(1000));
        let mut inbox = Inbox::default();
        let mut waiting: Vec<(SimTime, UnitId, u64)> = Vec::new();
        let (mut now, mut sequence) = (0, 0);
        for _ in 0..5000 {
            for _ in 0..draw(4) {
                sequence += 1;
                // Steps of 100 ps, so that stamps coincide; distances from one window to far beyond the calendar.
                let distance = 1 << draw(12);
                let time = SimTime(now + 100 * draw(distance));
                let (source, payload) = (UnitId(draw(3) as u32), Payload::Custom([0; 3]));
                pending.push(Message { time, source, sequence, port: PortId(0), payload }, SimTime(now));
                waiting.push((time, source, sequence));
            }
            waiting.sort_unstable();
            assert_eq!(pending.earliest(), waiting.first().map_or(SimTime::MAX, |first| first.0));
            // Now and then the unit sleeps until its next message.
            let start = if draw(8) == 0 { waiting.first().map_or(now, |first| first.0.0) } else { now };
            now = start + draw(1001);
            pending.take_due(SimTime(now), &mut inbox);
            let due = waiting.partition_point(|(time, _, _)| time.0 < now);
            let taken: Vec<_> = std::iter::from_fn(|| inbox.take()).map(|message| message.order()).collect();
            assert_eq!(taken, waiting.drain(..due).collect::<Vec<_>>());
        }
    }
}
