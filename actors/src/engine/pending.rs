//! The messages on their way to one unit.

use super::buffers::{Buffers, Messages, Size};
use super::inbox::Inbox;
use balar_protocol::{Message, SimTime};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// How far ahead messages lie in the calendar, picoseconds: a memory's answer is under way for so long.
const AHEAD: u64 = 320_000;
/// The most spans of a calendar, and the fewest.
const MOST_SPANS: u64 = 256;
const FEWEST_SPANS: u64 = 8;
/// A span that could hold so many of the shortest windows is halved.
const SHORTEST_OF_SPAN: u64 = 8;

/// A message that arrives after the calendar's spans. The greatest arrives first; among messages with one stamp, the one sent first.
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

/// The shape of a calendar: the same for all units of a simulation.
#[derive(Clone, Copy, Debug)]
pub(super) struct CalendarShape {
    /// Picoseconds of a span.
    span: u64,
    /// Spans, a power of two.
    spans: u64,
}

impl CalendarShape {
    /// The shape for windows that are mostly `window` long and begin at its multiples. A few are as short as `shortest`; a span holds a few
    /// of these.
    pub fn new(window: SimTime, shortest: SimTime) -> CalendarShape {
        let mut span = window.0.max(1);
        while span >= SHORTEST_OF_SPAN * shortest.0.max(1) && span.is_multiple_of(2) {
            span /= 2;
        }
        let spans = AHEAD.div_ceil(span).next_power_of_two().clamp(FEWEST_SPANS, MOST_SPANS);
        CalendarShape { span, spans }
    }

    #[inline]
    fn number(&self, time: SimTime) -> u64 {
        time.0 / self.span
    }
}

/// The messages of a span of time.
#[derive(Debug)]
struct Span {
    /// None of them is a hole. Where there is none, there is no memory.
    messages: Messages,
    /// When the first arrives; [`SimTime::MAX`] where there is none.
    earliest: SimTime,
}

impl Default for Span {
    fn default() -> Span {
        Span { messages: Vec::new(), earliest: SimTime::MAX }
    }
}

/// Messages that have not arrived yet: a calendar of spans of time, each with its messages in the order in which they were sent, and a heap
/// of later messages: a link may have a million lines of a copy on their way.
///
/// A window mostly is one span, and its messages are handed over without being moved.
#[derive(Debug)]
pub(super) struct Pending {
    shape: CalendarShape,
    /// Number of the first span that may hold messages.
    first: u64,
    /// Span number n is `spans[n % spans]`.
    spans: Vec<Span>,
    /// Size of the buffer that the largest span so far needed.
    size: Size,
    /// The messages after the spans.
    later: BinaryHeap<Far>,
    /// Messages that were put there.
    later_sent: u64,
    /// Messages in the calendar.
    near: usize,
    earliest: SimTime,
}

impl Pending {
    pub fn new(shape: CalendarShape) -> Pending {
        Pending {
            shape,
            first: 0,
            spans: (0..shape.spans).map(|_| Span::default()).collect(),
            size: Size::default(),
            later: BinaryHeap::new(),
            later_sent: 0,
            near: 0,
            earliest: SimTime::MAX,
        }
    }

    /// The earliest stamp, [`SimTime::MAX`] where nothing is on its way.
    #[inline]
    pub fn earliest(&self) -> SimTime {
        self.earliest
    }

    #[inline]
    fn span(&mut self, number: u64) -> &mut Span {
        let at = number & (self.shape.spans - 1);
        &mut self.spans[at as usize]
    }

    /// Where a message of span `number`, one of the calendar's, is to be pushed that arrives at `time`. It counts as there.
    #[inline]
    fn place_near(&mut self, number: u64, time: SimTime, buffers: &mut Buffers) -> &mut Messages {
        self.near += 1;
        let size = self.size;
        let span = self.span(number);
        span.earliest = span.earliest.min(time);
        if span.messages.capacity() == 0 {
            span.messages = buffers.take(size);
        }
        &mut span.messages
    }

    /// Where to push a message that arrives at `time`, which counts as there; `None` where that is not in the calendar as it stands,
    /// which [`Self::push_far`] is for.
    #[inline]
    pub fn place(&mut self, time: SimTime, buffers: &mut Buffers) -> Option<&mut Messages> {
        let number = self.shape.number(time);
        if number.wrapping_sub(self.first) >= self.shape.spans {
            return None;
        }
        self.earliest = self.earliest.min(time);
        Some(self.place_near(number, time, buffers))
    }

    /// Adds a message; none that is added from now on arrives before `floor`.
    #[inline]
    pub fn push(&mut self, message: Message, floor: SimTime, buffers: &mut Buffers) {
        match self.place(message.time, buffers) {
            Some(messages) => messages.push(Some(message)),
            None => self.push_far(message, floor, buffers),
        }
    }

    /// Adds a message that lies after the calendar as it stands; none that is added from now on arrives before `floor`.
    #[cold]
    pub fn push_far(&mut self, message: Message, floor: SimTime, buffers: &mut Buffers) {
        // The unit may have slept for long: the calendar starts with the present messages.
        self.first = self.first.max(self.shape.number(self.earliest.min(floor)));
        self.bring_near(buffers);
        self.earliest = self.earliest.min(message.time);
        let number = self.shape.number(message.time);
        if number.wrapping_sub(self.first) < self.shape.spans {
            self.place_near(number, message.time, buffers).push(Some(message));
        } else {
            self.later.push(Far { message, number: self.later_sent });
            self.later_sent += 1;
        }
    }

    /// Moves messages into the spans that the calendar has come to, before anything else is added there: they were sent before that.
    fn bring_near(&mut self, buffers: &mut Buffers) {
        loop {
            let (shape, first) = (self.shape, self.first);
            let is_near = |far: &PeekMut<Far>| shape.number(far.message.time).wrapping_sub(first) < shape.spans;
            let Some(far) = self.later.peek_mut().filter(is_near) else { return };
            let message = PeekMut::pop(far).message;
            self.place_near(shape.number(message.time), message.time, buffers).push(Some(message));
        }
    }

    /// Moves the messages that arrive before `until` to `inbox`, which is empty, in order.
    #[inline]
    pub fn take_due(&mut self, until: SimTime, inbox: &mut Inbox, buffers: &mut Buffers) {
        if self.earliest < until {
            self.take(until, inbox, buffers);
        }
    }

    fn take(&mut self, until: SimTime, inbox: &mut Inbox, buffers: &mut Buffers) {
        let last = self.shape.number(until);
        let mut number = self.shape.number(self.earliest).max(self.first);
        while number < last {
            self.first = number;
            self.bring_near(buffers);
            buffers.give(inbox.append(std::mem::take(self.span(number)).messages));
            number += 1;
            if self.near == inbox.len() {
                // An idle stretch: on to the messages that lie far ahead, if these are due.
                match self.later.peek() {
                    Some(far) if far.message.time < until => number = number.max(self.shape.number(far.message.time)),
                    _ => break,
                }
            }
        }
        self.first = last;
        self.bring_near(buffers);
        let due = |message: &mut Option<Message>| message.as_ref().is_some_and(|message| message.time < until);
        let span = self.span(last);
        // Most windows end where a span does.
        if span.earliest < until {
            inbox.extend(span.messages.extract_if(.., due));
            let rest = span.messages.iter().flatten().map(|message| message.time);
            span.earliest = rest.min().unwrap_or(SimTime::MAX);
            if span.messages.is_empty() {
                buffers.give(std::mem::take(&mut span.messages));
            }
        }
        self.near -= inbox.len();
        self.size = self.size.max(Size::of(inbox.len()));
        inbox.sort();
        self.earliest = self.find_earliest();
    }

    /// Puts another message with the same stamp in the place of each; stops at the first problem.
    pub fn replace<E>(&mut self, mut other: impl FnMut(&Message) -> Result<Message, E>) -> Result<(), E> {
        for message in self.spans.iter_mut().flat_map(|span| &mut span.messages).flatten() {
            *message = other(message)?;
        }
        let mut later = std::mem::take(&mut self.later).into_vec();
        for far in &mut later {
            far.message = other(&far.message)?;
        }
        self.later = later.into();
        Ok(())
    }

    fn find_earliest(&self) -> SimTime {
        if self.near == 0 {
            return self.later.peek().map_or(SimTime::MAX, |far| far.message.time);
        }
        // Spans follow each other in time: the first that holds something has the earliest.
        let spans = (self.first..self.first + self.shape.spans).map(|number| number & (self.shape.spans - 1));
        let mut times = spans.map(|at| self.spans[at as usize].earliest);
        times.find(|&time| time != SimTime::MAX).unwrap_or(SimTime::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_protocol::{Payload, PortId, UnitId};
    use rand_core::Rng;
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn spans_are_windows_or_parts_of_them() {
        let shape = |window, shortest| CalendarShape::new(SimTime(window), SimTime(shortest)).span;
        assert_eq!([shape(20_000, 2_980), shape(20_000, 2_500), shape(20_000, 1_000)], [20_000, 10_000, 5_000]);
        assert_eq!([shape(20_000, 1), shape(15, 1), shape(7, 90)], [625, 15, 7]);
    }

    #[test]
    fn every_message_comes_in_its_window_and_in_order_whatever_its_distance() {
        for (window, shortest) in [(1000, 1000), (1000, 200), (1024, 1)] {
            let mut random = Pcg64Mcg::new(1);
            let mut draw = |limit: u64| random.next_u64() % limit;
            let mut pending = Pending::new(CalendarShape::new(SimTime(window), SimTime(shortest)));
            let (mut inbox, mut buffers) = (Inbox::default(), Buffers::default());
            let mut waiting: Vec<(SimTime, UnitId, u64)> = Vec::new();
            let (mut now, mut sent) = (0, 0);
            for _ in 0..5000 {
                for _ in 0..draw(4) {
                    sent += 1;
                    // Steps of 100 ps, so that stamps coincide; distances from one window to far beyond the calendar.
                    let distance = 1 << draw(14);
                    let time = SimTime(now + 100 * draw(distance));
                    let (source, payload) = (UnitId(draw(3) as u32), Payload::Custom([sent, 0, 0]));
                    let message = Message { time, source, port: PortId(0), payload };
                    pending.push(message, SimTime(now), &mut buffers);
                    waiting.push((time, source, sent));
                }
                waiting.sort_unstable();
                assert_eq!(pending.earliest(), waiting.first().map_or(SimTime::MAX, |first| first.0));
                // Now and then the unit sleeps until its next message.
                let start = if draw(8) == 0 { waiting.first().map_or(now, |first| first.0.0) } else { now };
                now = if draw(2) == 0 { (start / window + 1) * window } else { start + draw(window + 1) };
                inbox.clear();
                pending.take_due(SimTime(now), &mut inbox, &mut buffers);
                let due = waiting.partition_point(|(time, _, _)| time.0 < now);
                let taken = std::iter::from_fn(|| inbox.take()).map(|message| {
                    let Payload::Custom([number, _, _]) = message.payload else { panic!("not of this test") };
                    (message.time, message.source, number)
                });
                assert_eq!(taken.collect::<Vec<_>>(), waiting.drain(..due).collect::<Vec<_>>());
            }
        }
    }
}
