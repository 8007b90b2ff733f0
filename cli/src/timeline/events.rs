//! The events of a trace: a sequence for each unit that has told something, with the names that it uses.

use super::packets::{Packets, Write};
use super::protobuf::Message;
use super::tracks::{RUN, Tracks};
use balar_actors::catalogue::timeline::{Argument, Event, EventKind, Label, Track, UnitTimeline, ValueKind};
use balar_protocol::SimTime;
use balar_record::kernel_name::readable_name;
use balar_record::sampled::SampledCounter;
use std::io;

/// Fields of `TrackEvent`, `DebugAnnotation` and `InternedData`.
mod field {
    pub const CATEGORY_IIDS: u32 = 3;
    pub const DEBUG_ANNOTATIONS: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME_IID: u32 = 10;
    pub const TRACK_UUID: u32 = 11;
    pub const NAME: u32 = 23;
    pub const COUNTER_VALUE: u32 = 30;
    pub const DOUBLE_COUNTER_VALUE: u32 = 44;
    pub const FLOW_IDS: u32 = 47;
    pub const ANNOTATION_NAME_IID: u32 = 1;
    pub const ANNOTATION_BOOL: u32 = 2;
    pub const ANNOTATION_UINT: u32 = 3;
    pub const ANNOTATION_STRING: u32 = 6;
    pub const ANNOTATION_POINTER: u32 = 7;
    pub const ANNOTATION_NAME: u32 = 10;
    pub const ANNOTATION_STRING_IID: u32 = 17;
    pub const INTERNED_CATEGORIES: u32 = 1;
    pub const INTERNED_EVENT_NAMES: u32 = 2;
    pub const INTERNED_ANNOTATION_NAMES: u32 = 3;
    pub const INTERNED_STRINGS: u32 = 29;
    pub const INTERNED_IID: u32 = 1;
    pub const INTERNED_NAME: u32 = 2;
}

/// The values of `TrackEvent.Type`.
mod kind {
    pub const SLICE_BEGIN: u64 = 1;
    pub const SLICE_END: u64 = 2;
    pub const INSTANT: u64 = 3;
    pub const COUNTER: u64 = 4;
}

/// The nanosecond of a time.
fn nanoseconds(time: SimTime) -> u64 {
    time.0 / 1000
}

/// Which names of a kind a sequence has told, by their numbers, which begin at 1.
#[derive(Debug, Default)]
struct Told(Vec<bool>);

impl Told {
    /// True the first time.
    fn is_new(&mut self, number: u64) -> bool {
        let at = number as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, false);
        }
        !std::mem::replace(&mut self.0[at], true)
    }
}

/// The names that a sequence has told.
#[derive(Debug, Default)]
struct Names {
    /// Those of the next packet.
    new: Message,
    categories: Told,
    events: Told,
    texts: Told,
    /// Names of values, by their numbers from 1 on.
    arguments: Vec<&'static str>,
}

impl Names {
    fn tell(new: &mut Message, field: u32, number: u64, name: &str) {
        new.message(field, |interned| {
            interned.number(field::INTERNED_IID, number);
            interned.text(field::INTERNED_NAME, name);
        });
    }

    /// Tells what a label's event needs: its category, its name, the names of its values, and texts among them.
    fn prepare(&mut self, unit: &UnitTimeline, label: Label, values: &[u64], is_named: bool) {
        let (category, name, arguments) = unit.label(label);
        if is_named && self.categories.is_new(category as u64 + 1) {
            Self::tell(&mut self.new, field::INTERNED_CATEGORIES, category as u64 + 1, category.name());
        }
        if is_named && self.events.is_new(u64::from(label.0) + 1) {
            let readable = category.is_of_kernel().then(|| readable_name(name));
            let name = readable.as_deref().unwrap_or(name);
            Self::tell(&mut self.new, field::INTERNED_EVENT_NAMES, u64::from(label.0) + 1, name);
        }
        for ((name, kind), value) in arguments.iter().zip(values) {
            if !self.arguments.contains(name) {
                self.arguments.push(name);
                let number = self.arguments.len() as u64;
                Self::tell(&mut self.new, field::INTERNED_ANNOTATION_NAMES, number, name);
            }
            // A text is either a kernel's name wherever it is used, or nowhere.
            if matches!(kind, ValueKind::Text | ValueKind::Kernel) && self.texts.is_new(value + 1) {
                let text = unit.text(*value);
                let readable = (*kind == ValueKind::Kernel).then(|| readable_name(text));
                let text = readable.as_deref().unwrap_or(text);
                Self::tell(&mut self.new, field::INTERNED_STRINGS, value + 1, text);
            }
        }
    }

    fn annotate(&self, event: &mut Message, arguments: &[Argument], values: &[u64]) {
        for ((name, kind), &value) in arguments.iter().zip(values) {
            let number = self.arguments.iter().position(|known| known == name).map_or(0, |at| at as u64 + 1);
            event.message(field::DEBUG_ANNOTATIONS, |annotation| {
                annotation.number(field::ANNOTATION_NAME_IID, number);
                match kind {
                    ValueKind::Number => annotation.number(field::ANNOTATION_UINT, value),
                    ValueKind::Address => annotation.number(field::ANNOTATION_POINTER, value),
                    ValueKind::Text | ValueKind::Kernel => annotation.number(field::ANNOTATION_STRING_IID, value + 1),
                }
            });
        }
    }
}

/// Writes what a unit has told up to the end of the run. What has not ended by then ends there, and says that it is unfinished.
///
/// # Errors
///
/// Where the file takes no more.
pub fn write_unit(
    unit: &UnitTimeline,
    tracks: &Tracks,
    end: SimTime,
    packets: &mut Packets<impl Write>,
) -> io::Result<()> {
    packets.begin_sequence();
    let numbers: Vec<u64> = unit.tracks().iter().map(|place| tracks.number(place)).collect();
    let mut open = vec![0_u32; numbers.len()];
    let mut names = Names::default();
    unit.in_order(|event| {
        let track = event.track.0 as usize;
        match event.kind {
            _ if event.time > end => return Ok(()),
            EventKind::Begin(_) => open[track] += 1,
            // What began before the timeline did.
            EventKind::End(_) if open[track] == 0 => return Ok(()),
            EventKind::End(_) => open[track] -= 1,
            EventKind::Instant(_) | EventKind::Count(_) => {}
        }
        write_event(unit, &event, numbers[track], &mut names, packets)
    })?;
    for (track, open) in open.into_iter().enumerate() {
        for _ in 0..open {
            end_unfinished(Track(track as u32), &numbers, end, packets)?;
        }
    }
    Ok(())
}

fn write_event(
    unit: &UnitTimeline,
    event: &Event,
    track: u64,
    names: &mut Names,
    packets: &mut Packets<impl Write>,
) -> io::Result<()> {
    let (kind, label, is_named) = match event.kind {
        EventKind::Begin(label) => (kind::SLICE_BEGIN, Some(label), true),
        EventKind::End(label) => (kind::SLICE_END, label, false),
        EventKind::Instant(label) => (kind::INSTANT, Some(label), true),
        EventKind::Count(_) => (kind::COUNTER, None, false),
    };
    names.new.clear();
    if let Some(label) = label {
        names.prepare(unit, label, event.values, is_named);
    }
    packets.event(nanoseconds(event.time), &names.new, |message| {
        message.number(field::TYPE, kind);
        message.number(field::TRACK_UUID, track);
        if let Some(label) = label {
            let (category, _, arguments) = unit.label(label);
            if is_named {
                message.number(field::CATEGORY_IIDS, category as u64 + 1);
                message.number(field::NAME_IID, u64::from(label.0) + 1);
            }
            names.annotate(message, arguments, event.values);
        }
        if let EventKind::Count(value) = event.kind {
            message.number(field::COUNTER_VALUE, value);
        }
        event.flows.iter().for_each(|(_, flow)| message.fixed(field::FLOW_IDS, *flow));
    })
}

fn end_unfinished(track: Track, numbers: &[u64], end: SimTime, packets: &mut Packets<impl Write>) -> io::Result<()> {
    packets.event(nanoseconds(end), &Message::default(), |message| {
        message.number(field::TYPE, kind::SLICE_END);
        message.number(field::TRACK_UUID, numbers[track.0 as usize]);
        message.message(field::DEBUG_ANNOTATIONS, |annotation| {
            annotation.text(field::ANNOTATION_NAME, "unfinished");
            annotation.number(field::ANNOTATION_BOOL, 1);
        });
    })
}

/// Writes the run itself: a slice from its beginning to its end, with facts about it.
///
/// # Errors
///
/// Where the file takes no more.
pub fn write_run(
    name: &str,
    facts: &[(&str, String)],
    end: SimTime,
    packets: &mut Packets<impl Write>,
) -> io::Result<()> {
    packets.begin_sequence();
    let nothing = Message::default();
    packets.event(0, &nothing, |message| {
        message.number(field::TYPE, kind::SLICE_BEGIN);
        message.number(field::TRACK_UUID, RUN);
        message.text(field::NAME, name);
        for (name, value) in facts {
            message.message(field::DEBUG_ANNOTATIONS, |annotation| {
                annotation.text(field::ANNOTATION_NAME, name);
                annotation.text(field::ANNOTATION_STRING, value);
            });
        }
    })?;
    packets.event(nanoseconds(end), &nothing, |message| {
        message.number(field::TYPE, kind::SLICE_END);
        message.number(field::TRACK_UUID, RUN);
    })
}

/// Writes values over time.
///
/// # Errors
///
/// Where the file takes no more.
pub fn write_series(series: &SampledCounter, track: u64, packets: &mut Packets<impl Write>) -> io::Result<()> {
    packets.begin_sequence();
    for (time, value) in &series.values {
        packets.event(nanoseconds(*time), &Message::default(), |message| {
            message.number(field::TYPE, kind::COUNTER);
            message.number(field::TRACK_UUID, track);
            message.double(field::DOUBLE_COUNTER_VALUE, *value);
        })?;
    }
    Ok(())
}
