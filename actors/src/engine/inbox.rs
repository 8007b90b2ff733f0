//! The messages that a unit gets in a window.

use super::buffers::Messages;
use balar_protocol::prefetch::prefetch;
use balar_protocol::{Message, SimTime};

/// The messages of one unit that arrive within the window, in their total order.
///
/// **Invariant:** they come in the order of (time, source unit), and messages of one source and time in the order in which it sent them.
#[derive(Debug, Default)]
pub struct Inbox {
    /// Messages in the order of arrival; a message that was taken leaves a hole.
    messages: Messages,
    /// Where each is, in order; empty where they came in order.
    order: Vec<Arrival>,
    /// Scratch: where the buckets of a sort begin.
    bounds: Vec<u32>,
    /// Messages taken.
    taken: usize,
    /// When the next one arrives.
    next: Option<SimTime>,
}

/// More messages than these are sorted into buckets first.
const FEW: usize = 64;

/// How many messages ahead of the one that is taken the processor is asked for.
const AHEAD: usize = 4;

/// A message of an inbox: when it arrives, and its source above its place.
type Arrival = (SimTime, u64);

/// The key of the message at a place.
#[inline]
fn arrival(message: &Message, place: usize) -> Arrival {
    (message.time, u64::from(message.source.0) << 32 | place as u64)
}

/// The end of the longest run of messages from `first` on that are in order.
#[inline]
fn run_of(messages: &[Option<Message>], first: usize) -> usize {
    let key = |message: &Option<Message>| message.as_ref().map(|message| (message.time, message.source));
    let mut end = first + 1;
    while end < messages.len() && key(&messages[end - 1]) <= key(&messages[end]) {
        end += 1;
    }
    end.min(messages.len())
}

impl Inbox {
    /// Moves messages here that were sent in this order; [`Self::sort`] follows. Returns memory that is free now.
    #[inline]
    pub(super) fn append(&mut self, mut from: Messages) -> Messages {
        if self.messages.is_empty() {
            return std::mem::replace(&mut self.messages, from);
        }
        self.messages.append(&mut from);
        from
    }

    /// As [`Self::append`].
    pub(crate) fn extend(&mut self, messages: impl Iterator<Item = Option<Message>>) {
        self.messages.extend(messages);
    }

    /// Brings the messages in order.
    #[inline]
    pub(crate) fn sort(&mut self) {
        let second = run_of(&self.messages, 0);
        if second < self.messages.len() {
            self.find_order(second);
        }
        self.taken = 0;
        self.find_next();
    }

    /// Sorts the places of the messages, where those before `second` are sorted.
    fn find_order(&mut self, second: usize) {
        if run_of(&self.messages, second) == self.messages.len() {
            return self.merge(second);
        }
        if self.messages.len() > FEW {
            return self.sort_by_buckets();
        }
        let places = self.messages.iter().enumerate();
        self.order.extend(places.filter_map(|(place, message)| Some(arrival(message.as_ref()?, place))));
        self.order.sort_unstable();
    }

    /// Sorts the places of messages where the messages before `second` are sorted, and the others too: two senders' most often.
    fn merge(&mut self, second: usize) {
        let Inbox { messages, order, .. } = self;
        let (mut left, mut right) = (0, second);
        order.reserve(messages.len());
        while left < second && right < messages.len() {
            let (Some(first), Some(other)) = (&messages[left], &messages[right]) else { break };
            let (first, other) = (arrival(first, left), arrival(other, right));
            // The message that was sent first has the smaller place.
            let is_left = first < other;
            order.push(if is_left { first } else { other });
            left += usize::from(is_left);
            right += usize::from(!is_left);
        }
        for rest in [left..second, right..messages.len()] {
            order.extend(rest.filter_map(|place| Some(arrival(messages[place].as_ref()?, place))));
        }
    }

    /// Sorts the places of many messages: into buckets of time first, so that each bucket has one or two.
    fn sort_by_buckets(&mut self) {
        let Inbox { messages, order, bounds, .. } = self;
        let times = || messages.iter().flatten().map(|message| message.time.0);
        let (first, last) = times().fold((u64::MAX, 0), |(first, last), time| (first.min(time), last.max(time)));
        let buckets = messages.len().next_power_of_two();
        let shift = (u64::BITS - (last - first).leading_zeros()).saturating_sub(buckets.ilog2());
        let bucket_of = |time: u64| ((time - first) >> shift) as usize;
        // The end of each bucket, and then, as it is filled from behind, its start.
        bounds.clear();
        bounds.resize(buckets, 0);
        times().for_each(|time| bounds[bucket_of(time)] += 1);
        let mut end = 0;
        for bound in &mut *bounds {
            end += *bound;
            *bound = end;
        }
        order.resize(end as usize, (SimTime::ZERO, 0));
        // From behind, so that a bucket has them as they came: mostly in order, for senders take turns.
        for (place, message) in messages.iter().enumerate().rev() {
            let Some(message) = message else { continue };
            let bound = &mut bounds[bucket_of(message.time.0)];
            *bound -= 1;
            order[*bound as usize] = arrival(message, place);
        }
        let ends = bounds.iter().skip(1).copied().chain([end]);
        for (&start, end) in bounds.iter().zip(ends) {
            if end - start > 1 {
                order[start as usize..end as usize].sort_unstable();
            }
        }
    }

    #[inline]
    fn find_next(&mut self) {
        self.next = match self.order.get(self.taken) {
            Some(&(time, _)) => Some(time),
            None => self.messages.get(self.taken).and_then(Option::as_ref).map(|message| message.time),
        };
    }

    /// Forgets the messages that are left.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.messages.clear();
        self.order.clear();
        self.taken = 0;
        self.next = None;
    }

    /// When the last message of the window arrives.
    pub(super) fn last_time(&self) -> Option<SimTime> {
        match self.order.last() {
            Some(&(time, _)) => Some(time),
            None => self.messages.last().and_then(Option::as_ref).map(|message| message.time),
        }
    }

    /// Messages not yet taken.
    pub(crate) fn len(&self) -> usize {
        self.messages.len() - self.taken
    }

    /// When the next message arrives; `None` where no more arrives in this window.
    #[inline]
    pub fn next_time(&self) -> Option<SimTime> {
        self.next
    }

    /// The messages of the window, in any order, before one is taken: for a unit that prefetches the data for them.
    #[inline]
    pub fn all(&self) -> impl Iterator<Item = &Message> + Clone {
        self.messages.iter().flatten()
    }

    /// Takes the next message if it has arrived by `time`.
    #[inline]
    pub fn take_until(&mut self, time: SimTime) -> Option<Message> {
        if self.next? <= time { self.take() } else { None }
    }

    /// Takes the next message of the window.
    #[inline]
    pub fn take(&mut self) -> Option<Message> {
        let place = self.next_place()?;
        self.messages[place].take()
    }

    /// As [`Self::take`], for a unit that only looks at the message: it is not moved.
    #[inline]
    pub fn look(&mut self) -> Option<&Message> {
        let place = self.next_place()?;
        self.messages[place].as_ref()
    }

    /// Where the next message lies, which is taken.
    #[inline]
    fn next_place(&mut self) -> Option<usize> {
        self.next?;
        let place = match self.order.get(self.taken) {
            Some(&(_, place)) => {
                // The messages lie in another order: the processor does not see which comes next.
                if let Some(&(_, ahead)) = self.order.get(self.taken + AHEAD) {
                    prefetch(&self.messages[ahead as u32 as usize]);
                }
                place as u32 as usize
            }
            None => self.taken,
        };
        self.taken += 1;
        self.find_next();
        Some(place)
    }

    /// Are all messages of the window taken?
    pub fn is_empty(&self) -> bool {
        self.next.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_protocol::{Payload, PortId, UnitId};
    use rand_core::Rng;
    use rand_pcg::Pcg64Mcg;

    /// Few messages and many, close together and far apart, from several senders in the same picosecond.
    #[test]
    fn messages_come_by_time_and_source_and_then_as_they_were_sent() {
        let mut random = Pcg64Mcg::new(7);
        for (count, span, runs) in [
            (1, 10, 0),
            (40, 40, 0),
            (40, 40, 2),
            (3, 40, 2),
            (100, 40, 0),
            (129, 1, 0),
            (1000, 300, 0),
            (1000, 1 << 40, 0),
        ] {
            let mut sent: Vec<(SimTime, UnitId, u64)> = (0..count)
                .map(|number| (SimTime(500 + random.next_u64() % span), UnitId((random.next_u64() % 5) as u32), number))
                .collect();
            if runs == 2 {
                // Two senders. Each sends in order.
                sent.iter_mut().for_each(|(_, source, number)| *source = UnitId(u32::from(*number < count / 3)));
                sent[..count as usize / 3].sort_unstable();
                sent[count as usize / 3..].sort_unstable();
            }
            let mut inbox = Inbox::default();
            inbox.extend(sent.iter().map(|&(time, source, number)| {
                Some(Message { time, source, port: PortId(0), payload: Payload::Custom([number, 0, 0]) })
            }));
            inbox.sort();
            sent.sort();
            let number = |message: &Message| match message.payload {
                Payload::Custom([number, _, _]) => (message.time, message.source, number),
                _ => panic!("not of this test"),
            };
            let mut came = Vec::new();
            while !inbox.is_empty() {
                came.extend(inbox.look().map(number));
                came.extend(inbox.take().as_ref().map(number));
            }
            assert_eq!(came, sent, "{count} messages within {span} ps");
            assert_eq!((inbox.len(), inbox.look().is_none()), (0, true));
        }
    }
}
