//! The log of a unit: its events, packed.

use super::{Argument, Category, TrackPlace};
use balar_protocol::SimTime;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A counter is written at most once in this much simulated time, but for zeros: it changes far more often than the eye can see.
const COUNTER_INTERVAL: SimTime = SimTime(1_000_000);

/// A track of a log, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Track(pub u32);

/// The name of a slice and of the values that come with it, by its number in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(pub u32);

/// An event of a log, by its number in the order of telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventNumber(pub u64);

/// An event on a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A slice begins.
    Begin(Label),
    /// The slice that began last on the track, and has not ended, ends; with a label, that label's values are the slice's, too.
    End(Option<Label>),
    /// Something happens that takes no time.
    Instant(Label),
    /// The counter has this value from now on.
    Count(u64),
}

/// An event as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// When.
    pub time: SimTime,
    /// Where.
    pub track: Track,
    /// The kind of event.
    pub kind: EventKind,
    /// The values of its label's arguments, in their order.
    pub values: &'a [u64],
    /// The flows through it.
    pub flows: &'a [(EventNumber, u64)],
}

/// Slices that follow each other closely, told as one.
#[derive(Clone, Debug)]
struct Burst {
    label: Label,
    from: SimTime,
    until: SimTime,
    sums: Vec<u64>,
}

/// The value that a counter showed last, and its value since.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    told: SimTime,
    value: u64,
    /// A value that is not told yet, and since when it holds.
    pending: Option<(SimTime, u64)>,
}

/// The events of a unit.
#[derive(Default)]
pub struct UnitTimeline {
    tracks: Vec<TrackPlace>,
    labels: Vec<(Category, Arc<str>, &'static [Argument])>,
    texts: Vec<Arc<str>>,
    /// The flow through an event, in the order of events.
    flows: Vec<(EventNumber, u64)>,
    events: u64,
    last: SimTime,
    packed: Vec<u8>,
    track_numbers: BTreeMap<TrackPlace, Track>,
    label_numbers: BTreeMap<Arc<str>, Vec<Label>>,
    text_numbers: BTreeMap<Arc<str>, u64>,
    bursts: BTreeMap<Track, Burst>,
    counts: BTreeMap<Track, Count>,
}

impl fmt::Debug for UnitTimeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnitTimeline").field("tracks", &self.tracks.len()).field("events", &self.events).finish()
    }
}

const BEGIN: u8 = 0;
const END: u8 = 1;
const END_WITH: u8 = 2;
const INSTANT: u8 = 3;
const COUNT: u8 = 4;

impl UnitTimeline {
    /// Its tracks, by their numbers.
    pub fn tracks(&self) -> &[TrackPlace] {
        &self.tracks
    }

    /// The category, name and arguments of a label.
    pub fn label(&self, label: Label) -> (Category, &str, &'static [Argument]) {
        let (category, name, arguments) = &self.labels[label.0 as usize];
        (*category, name, arguments)
    }

    /// Labels.
    pub fn label_count(&self) -> usize {
        self.labels.len()
    }

    /// The text of this number.
    pub fn text(&self, number: u64) -> &str {
        usize::try_from(number).ok().and_then(|number| self.texts.get(number)).map_or("", |text| text)
    }

    /// Texts.
    pub fn text_count(&self) -> usize {
        self.texts.len()
    }

    /// Was nothing told?
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Bytes that the events take.
    pub fn bytes(&self) -> usize {
        self.packed.capacity() + self.flows.capacity() * size_of::<(EventNumber, u64)>()
    }

    /// Gives the events in the order of their times; events of one time in the order of telling.
    ///
    /// # Errors
    ///
    /// The first one of `each`.
    pub fn in_order<E>(&self, mut each: impl FnMut(Event) -> Result<(), E>) -> Result<(), E> {
        let mut order = Vec::with_capacity(self.events as usize);
        let (mut rest, mut time, mut values) = (&self.packed[..], 0_i64, Vec::new());
        for number in 0..self.events {
            let place = self.packed.len() - rest.len();
            let (difference, ..) = self.read(&mut rest, &mut values);
            time = time.wrapping_add(difference);
            order.push((SimTime(time as u64), place, EventNumber(number)));
        }
        // Most logs are in order.
        if !order.is_sorted() {
            order.sort();
        }
        for (time, place, number) in order {
            let (_, track, kind) = self.read(&mut &self.packed[place..], &mut values);
            let first = self.flows.partition_point(|(event, _)| *event < number);
            let flows = &self.flows[first..];
            let flows = &flows[..flows.iter().take_while(|(event, _)| *event == number).count()];
            each(Event { time, track, kind, values: &values, flows })?;
        }
        Ok(())
    }

    /// Reads an event: the difference from the time of the event that was told before, the track, and the kind.
    fn read(&self, rest: &mut &[u8], values: &mut Vec<u64>) -> (i64, Track, EventKind) {
        values.clear();
        let (kind, difference, track): (u8, i64, u32) = take(rest);
        let mut labelled = |rest: &mut &[u8]| {
            let label = Label(take(rest));
            let arguments = self.labels[label.0 as usize].2;
            values.extend(arguments.iter().map(|_| take::<u64>(rest)));
            label
        };
        let kind = match kind {
            BEGIN => EventKind::Begin(labelled(rest)),
            END => EventKind::End(None),
            END_WITH => EventKind::End(Some(labelled(rest))),
            INSTANT => EventKind::Instant(labelled(rest)),
            _ => EventKind::Count(take(rest)),
        };
        (difference, Track(track), kind)
    }

    fn put(&mut self, at: SimTime, (kind, track): (u8, Track), then: impl IntoIterator<Item = u64>) -> EventNumber {
        let difference = at.0.wrapping_sub(self.last.0) as i64;
        self.last = at;
        let mut packed = put(&(kind, difference, track.0), std::mem::take(&mut self.packed));
        for value in then {
            packed = put(&value, packed);
        }
        self.packed = packed;
        self.events += 1;
        EventNumber(self.events - 1)
    }

    fn put_labelled(&mut self, at: SimTime, kind: u8, track: Track, label: Label, values: &[u64]) -> EventNumber {
        let arguments = self.labels[label.0 as usize].2.len();
        debug_assert_eq!(arguments, values.len(), "a value for each argument of {}", self.labels[label.0 as usize].1);
        let values = values.iter().copied().chain(std::iter::repeat(0)).take(arguments);
        self.put(at, (kind, track), std::iter::once(u64::from(label.0)).chain(values))
    }

    fn end_burst(&mut self, track: Track, burst: &Burst) {
        self.put_labelled(burst.from, BEGIN, track, burst.label, &burst.sums);
        self.put(burst.until, (END, track), None);
    }

    fn count(&mut self, at: SimTime, track: Track, value: u64) {
        let count = self.counts.entry(track).or_default();
        if value == count.pending.map_or(count.value, |(_, value)| value) {
            return;
        }
        // A pending later value is overtaken.
        let before = count.pending.take().filter(|(since, _)| *since <= at);
        let is_due = at >= count.told.saturating_add(COUNTER_INTERVAL) || value == 0;
        if !is_due && count.value != 0 {
            count.pending = Some((at, value));
            return;
        }
        (count.told, count.value) = (at, value);
        for (at, value) in before.into_iter().chain([(at, value)]) {
            self.put(at, (COUNT, track), Some(value));
        }
    }

    fn count_until(&mut self, (at, until): (SimTime, SimTime), track: Track, value: u64) {
        self.count(at, track, value);
        if let Some(count) = self.counts.get_mut(&track) {
            count.pending = Some((until, 0));
        }
    }

    /// Writes the values that are held back.
    fn finish(&mut self) {
        for (track, burst) in std::mem::take(&mut self.bursts) {
            self.end_burst(track, &burst);
        }
        for (track, count) in std::mem::take(&mut self.counts) {
            if let Some((at, value)) = count.pending {
                self.put(at, (COUNT, track), Some(value));
            }
        }
    }
}

/// The log of a unit: its events go to the timeline of the run.
#[derive(Clone, Debug, Default)]
pub struct TimelineLog(Arc<Mutex<UnitTimeline>>);

impl TimelineLog {
    fn with<R>(&self, act: impl FnOnce(&mut UnitTimeline) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The track at a place.
    pub fn track(&self, place: TrackPlace) -> Track {
        self.with(|log| {
            if let Some(&known) = log.track_numbers.get(&place) {
                return known;
            }
            let track = Track(log.tracks.len() as u32);
            log.tracks.push(place.clone());
            log.track_numbers.insert(place, track);
            track
        })
    }

    /// The names of a category's slices, and of the values that come with them.
    pub fn label(&self, category: Category, name: &str, arguments: &'static [Argument]) -> Label {
        self.with(|log| {
            let known = log.label_numbers.get(name).into_iter().flatten();
            let is_it = |label: &&Label| {
                let (of, _, with) = &log.labels[label.0 as usize];
                *of == category && *with == arguments
            };
            if let Some(&label) = known.into_iter().find(is_it) {
                return label;
            }
            let (label, name) = (Label(log.labels.len() as u32), Arc::from(name));
            log.labels.push((category, Arc::clone(&name), arguments));
            log.label_numbers.entry(name).or_default().push(label);
            label
        })
    }

    /// The number of a text.
    pub fn text(&self, text: &str) -> u64 {
        self.with(|log| {
            if let Some(&known) = log.text_numbers.get(text) {
                return known;
            }
            let (number, text): (_, Arc<str>) = (log.texts.len() as u64, text.into());
            log.texts.push(Arc::clone(&text));
            log.text_numbers.insert(text, number);
            number
        })
    }

    /// A slice begins, with a value for each argument of its label.
    pub fn begin(&self, at: SimTime, track: Track, label: Label, values: &[u64]) -> EventNumber {
        self.with(|log| log.put_labelled(at, BEGIN, track, label, values))
    }

    /// The slice that began last on the track, and has not ended, ends.
    pub fn end(&self, at: SimTime, track: Track) {
        self.with(|log| log.put(at, (END, track), None));
    }

    /// As [`Self::end`], with values that are known only now.
    pub fn end_with(&self, at: SimTime, track: Track, label: Label, values: &[u64]) {
        self.with(|log| log.put_labelled(at, END_WITH, track, label, values));
    }

    /// Something happens that takes no time.
    pub fn instant(&self, at: SimTime, track: Track, label: Label, values: &[u64]) -> EventNumber {
        self.with(|log| log.put_labelled(at, INSTANT, track, label, values))
    }

    /// A flow goes through an event that was told: a line leads from each event of a flow to the next.
    pub fn flow(&self, event: EventNumber, flow: u64) {
        self.with(|log| {
            let at = log.flows.partition_point(|(known, _)| *known <= event);
            log.flows.insert(at, (event, flow));
        });
    }

    /// A track is busy, with these amounts. A time that begins at most `gap` after the last such time ended is told with it, as one slice
    /// with the sums of the amounts.
    pub fn extend(&self, track: Track, label: Label, (from, until): (SimTime, SimTime), gap: SimTime, amounts: &[u64]) {
        self.with(|log| {
            if let Some(burst) = log.bursts.get_mut(&track) {
                if burst.label == label && from <= burst.until.saturating_add(gap) {
                    burst.until = burst.until.max(until);
                    burst.sums.iter_mut().zip(amounts).for_each(|(sum, amount)| *sum += amount);
                    return;
                }
                let before = burst.clone();
                log.end_burst(track, &before);
            }
            log.bursts.insert(track, Burst { label, from, until, sums: amounts.to_vec() });
        });
    }

    /// A counter has this value from `at` on. Where it changes more often than once in a microsecond, some of its values are left out.
    pub fn count(&self, at: SimTime, track: Track, value: u64) {
        self.with(|log| log.count(at, track, value));
    }

    /// As [`Self::count`]; the value is 0 from `until` on, unless another value follows before that.
    pub fn count_until(&self, (at, until): (SimTime, SimTime), track: Track, value: u64) {
        self.with(|log| log.count_until((at, until), track, value));
    }

    /// All that was told. The log is empty then.
    pub(super) fn take(&self) -> UnitTimeline {
        self.with(|log| {
            log.finish();
            std::mem::take(log)
        })
    }
}

fn put(value: &impl serde::Serialize, to: Vec<u8>) -> Vec<u8> {
    postcard::to_extend(value, to).expect("a vector takes every byte")
}

fn take<T: serde::de::DeserializeOwned>(from: &mut &[u8]) -> T {
    let (value, rest) = postcard::take_from_bytes(from).expect("`put` has written it");
    *from = rest;
    value
}

#[cfg(test)]
mod tests {
    use super::super::{TrackGroup, ValueKind};
    use super::*;

    const BYTES: &[Argument] = &[("bytes", ValueKind::Number)];

    fn log() -> (TimelineLog, Track) {
        let log = TimelineLog::default();
        let track = log.track(TrackPlace::slices(TrackGroup::Links, vec![(0, "link".into())]));
        (log, track)
    }

    /// (time, kind, values, flows) of all events in order.
    fn events(log: &TimelineLog) -> Vec<(u64, EventKind, Vec<u64>, Vec<u64>)> {
        let mut events = Vec::new();
        let each = |event: Event| -> Result<(), ()> {
            let flows = event.flows.iter().map(|(_, flow)| *flow).collect();
            events.push((event.time.0, event.kind, event.values.to_vec(), flows));
            Ok(())
        };
        log.take().in_order(each).expect("nothing fails");
        events
    }

    #[test]
    fn events_come_back_in_the_order_of_their_times() {
        let (log, track) = log();
        let copy = log.label(Category::Copy, "copy", BYTES);
        assert_eq!(copy, log.label(Category::Copy, "copy", BYTES));
        let plain = log.label(Category::Copy, "copy", &[]);
        assert_ne!(copy, plain);
        let first = log.begin(SimTime(500), track, copy, &[u64::MAX]);
        log.end(SimTime(u64::MAX), track);
        let second = log.begin(SimTime(100), track, plain, &[]);
        log.end_with(SimTime(400), track, copy, &[7]);
        log.flow(second, 9);
        log.flow(first, 8);
        log.flow(first, 6);
        let expected = [
            (100, EventKind::Begin(plain), vec![], vec![9]),
            (400, EventKind::End(Some(copy)), vec![7], vec![]),
            (500, EventKind::Begin(copy), vec![u64::MAX], vec![8, 6]),
            (u64::MAX, EventKind::End(None), vec![], vec![]),
        ];
        assert_eq!(events(&log), expected);
    }

    #[test]
    fn what_follows_closely_is_one_slice() {
        let (log, track) = log();
        let busy = log.label(Category::Link, "busy", BYTES);
        for (from, until, bytes) in [(100, 200, 1), (150, 250, 2), (300, 320, 4), (371, 380, 8)] {
            log.extend(track, busy, (SimTime(from), SimTime(until)), SimTime(50), &[bytes]);
        }
        let expected = [
            (100, EventKind::Begin(busy), vec![7], vec![]),
            (320, EventKind::End(None), vec![], vec![]),
            (371, EventKind::Begin(busy), vec![8], vec![]),
            (380, EventKind::End(None), vec![], vec![]),
        ];
        assert_eq!(events(&log), expected);
    }

    #[test]
    fn a_counter_is_told_once_in_a_microsecond_and_its_zeros_always() {
        let (log, track) = log();
        for (at, value) in [(10, 1), (20, 2), (30, 3), (1_000_040, 4), (1_000_050, 0), (1_000_060, 5), (1_000_070, 6)] {
            log.count(SimTime(at), track, value);
        }
        let told: Vec<_> = events(&log).into_iter().map(|(at, kind, ..)| (at, kind)).collect();
        let expected = [(10, 1), (30, 3), (1_000_040, 4), (1_000_050, 0), (1_000_060, 5), (1_000_070, 6)];
        assert_eq!(told, expected.map(|(at, value)| (at, EventKind::Count(value))));
    }

    #[test]
    fn a_counter_is_zero_from_the_end_that_it_was_given() {
        let (log, track) = log();
        let us = 1_000_000;
        for (at, until, value) in [(0, 3 * us, 5), (us, 4 * us, 6), (9 * us, 10 * us, 7), (9 * us + 1, 11 * us, 8)] {
            log.count_until((SimTime(at), SimTime(until)), track, value);
        }
        let told: Vec<_> = events(&log).into_iter().map(|(at, kind, ..)| (at, kind)).collect();
        let expected = [(0, 5), (us, 6), (4 * us, 0), (9 * us, 7), (11 * us, 0)];
        assert_eq!(told, expected.map(|(at, value)| (at, EventKind::Count(value))));
    }

    #[test]
    fn a_cta_takes_less_than_twenty_bytes() {
        let (log, _) = log();
        let place = |lane| TrackPlace { lane, ..TrackPlace::slices(TrackGroup::Links, vec![(0, "sm".into())]) };
        let slots: Vec<Track> = (0..32).map(|lane| log.track(place(lane))).collect();
        let label = log.label(Category::Cta, "scale", &[("launch", ValueKind::Number), ("cta", ValueKind::Number)]);
        for cta in 0..100_000_u64 {
            let slot = slots[cta as usize % slots.len()];
            log.begin(SimTime(cta * 700_000), slot, label, &[1000, cta]);
            log.end(SimTime(cta * 700_000 + 650_000), slot);
        }
        // Begin: kind, 3 of the time, track, label, 2 of the launch, 3 of the CTA; end: kind, 3 of the time, track.
        assert!(log.take().packed.len() <= 16 * 100_000);
    }
}
