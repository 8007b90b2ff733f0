//! Reads traces as Perfetto does: the messages that we write, as `perfetto_trace.proto` of Perfetto 59 declares them, decoded by prost; and
//! slices and counters put together from their packets, with everything checked that a trace must hold to.

use prost::Message;
use std::collections::BTreeMap;

#[derive(Message)]
pub struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

#[derive(Message)]
pub struct TracePacket {
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

#[derive(Message)]
pub struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
}

#[derive(Message)]
pub struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

#[derive(Message)]
pub struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    pub tid: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub thread_name: Option<String>,
}

#[derive(Message)]
pub struct CounterDescriptor {
    #[prost(string, optional, tag = "6")]
    pub unit_name: Option<String>,
}

#[derive(Message)]
pub struct TrackEvent {
    #[prost(uint64, repeated, tag = "3")]
    pub category_iids: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    pub r#type: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    #[prost(double, optional, tag = "44")]
    pub double_counter_value: Option<f64>,
    #[prost(fixed64, repeated, tag = "47")]
    pub flow_ids: Vec<u64>,
}

#[derive(Message)]
pub struct DebugAnnotation {
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    #[prost(bool, optional, tag = "2")]
    pub bool_value: Option<bool>,
    #[prost(uint64, optional, tag = "3")]
    pub uint_value: Option<u64>,
    #[prost(string, optional, tag = "6")]
    pub string_value: Option<String>,
    #[prost(uint64, optional, tag = "7")]
    pub pointer_value: Option<u64>,
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
    #[prost(uint64, optional, tag = "17")]
    pub string_value_iid: Option<u64>,
}

#[derive(Message)]
pub struct InternedData {
    #[prost(message, repeated, tag = "1")]
    pub event_categories: Vec<InternedName>,
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "29")]
    pub debug_annotation_string_values: Vec<InternedName>,
}

#[derive(Clone, Message)]
pub struct InternedName {
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

/// A slice of a trace. Values are in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// "gpu/Kernels by stream/stream 0".
    pub track: String,
    pub uuid: u64,
    pub category: String,
    pub name: String,
    pub begin: u64,
    pub end: u64,
    pub values: BTreeMap<String, String>,
    pub flows: Vec<u64>,
}

impl Slice {
    /// A value that is a number.
    pub fn number(&self, name: &str) -> u64 {
        let value = self.values.get(name).unwrap_or_else(|| panic!("{self:?} has no {name}"));
        value.parse().expect("a number")
    }
}

/// What is in a trace.
#[derive(Debug, Default)]
pub struct Timeline {
    /// In the order of their beginnings on each track.
    pub slices: Vec<Slice>,
    /// Times and values by the counter's track.
    pub counters: BTreeMap<String, Vec<(u64, f64)>>,
}

impl Timeline {
    /// The slices of a category.
    pub fn of(&self, category: &str) -> Vec<&Slice> {
        self.slices.iter().filter(|slice| slice.category == category).collect()
    }

    /// The sum of a value over the slices of a category on one track.
    pub fn sum(&self, category: &str, track: &str, value: &str) -> u64 {
        let slices = self.slices.iter().filter(|slice| slice.category == category && slice.track == track);
        slices.map(|slice| slice.number(value)).sum()
    }
}

/// The names that a sequence has told so far.
#[derive(Default)]
struct Names {
    categories: BTreeMap<u64, String>,
    events: BTreeMap<u64, String>,
    annotations: BTreeMap<u64, String>,
    texts: BTreeMap<u64, String>,
    last: u64,
}

/// Reads a trace and checks it: parents exist, times of a sequence ascend, names are told before they are used, slices end and nest.
pub fn read(bytes: &[u8]) -> Timeline {
    let trace = Trace::decode(bytes).expect("a trace");
    let tracks = tracks(&trace);
    let mut timeline = Timeline::default();
    let mut sequences: BTreeMap<u32, Names> = BTreeMap::new();
    let mut open: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for packet in trace.packet {
        let sequence = packet.trusted_packet_sequence_id.expect("each packet has a sequence");
        let Some(event) = packet.track_event else { continue };
        let flags = packet.sequence_flags.expect("each event has flags");
        if flags & 1 != 0 {
            sequences.insert(sequence, Names::default());
        }
        let names = sequences.get_mut(&sequence).expect("the first packet of a sequence clears its state");
        if let Some(data) = packet.interned_data {
            learn(&mut names.categories, data.event_categories);
            learn(&mut names.events, data.event_names);
            learn(&mut names.annotations, data.debug_annotation_names);
            learn(&mut names.texts, data.debug_annotation_string_values);
        }
        let time = packet.timestamp.expect("each event has a time");
        assert!(time >= names.last, "times of a sequence ascend");
        names.last = time;
        let uuid = event.track_uuid.expect("each event has a track");
        let track = tracks.get(&uuid).expect("the track was described before");
        let values = values(&event, names);
        match event.r#type {
            Some(1) => {
                let interned = event.name_iid.map(|name| names.events[&name].clone());
                open.entry(uuid).or_default().push(timeline.slices.len());
                timeline.slices.push(Slice {
                    track: track.clone(),
                    uuid,
                    category: event.category_iids.first().map_or(String::new(), |it| names.categories[it].clone()),
                    name: interned.or(event.name).expect("each slice has a name"),
                    begin: time,
                    end: u64::MAX,
                    values,
                    flows: event.flow_ids,
                });
            }
            Some(2) => {
                let slice = open.get_mut(&uuid).and_then(Vec::pop).expect("what ends has begun");
                let slice = &mut timeline.slices[slice];
                slice.end = time;
                slice.values.extend(values);
            }
            Some(4) => {
                let value = event.double_counter_value.or(event.counter_value.map(|value| value as f64));
                let counter = timeline.counters.entry(track.clone()).or_default();
                counter.push((time, value.expect("a counter has a value")));
            }
            other => panic!("no such event is written: {other:?}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "every slice ends");
    timeline
}

fn learn(known: &mut BTreeMap<u64, String>, names: Vec<InternedName>) {
    known.extend(names.into_iter().map(|it| (it.iid.expect("a number"), it.name.expect("a name"))));
}

fn values(event: &TrackEvent, names: &Names) -> BTreeMap<String, String> {
    let value = |annotation: &DebugAnnotation| {
        let name = annotation.name.clone().or_else(|| Some(names.annotations[&annotation.name_iid?].clone()));
        let number = annotation.uint_value.or(annotation.pointer_value).map(|value| value.to_string());
        let text = || annotation.string_value.clone();
        let interned = || Some(names.texts[&annotation.string_value_iid?].clone());
        let flag = || annotation.bool_value.map(|flag| flag.to_string());
        let value = number.or_else(text).or_else(interned).or_else(flag);
        (name.expect("a value has a name"), value.expect("and is one"))
    };
    event.debug_annotations.iter().map(value).collect()
}

/// The paths of all tracks, which come before what happens on them.
fn tracks(trace: &Trace) -> BTreeMap<u64, String> {
    let mut tracks: BTreeMap<u64, String> = BTreeMap::new();
    let mut processes: BTreeMap<i32, String> = BTreeMap::new();
    for track in trace.packet.iter().filter_map(|packet| packet.track_descriptor.as_ref()) {
        let path = match (&track.process, &track.thread) {
            (Some(process), _) => {
                let name = process.process_name.clone().expect("a process has a name");
                processes.insert(process.pid.expect("a number"), name.clone());
                name
            }
            (_, Some(thread)) => {
                let process = &processes[&thread.pid.expect("a thread has a process")];
                format!("{process}/{}", thread.thread_name.as_ref().expect("a name"))
            }
            _ => {
                let parent = track.parent_uuid.map(|parent| &tracks[&parent]);
                let name = track.name.as_ref().expect("a track has a name");
                parent.map_or_else(|| name.clone(), |parent| format!("{parent}/{name}"))
            }
        };
        let uuid = track.uuid.expect("a track has a number");
        assert!(tracks.insert(uuid, path).is_none(), "track {uuid} is described once");
    }
    tracks
}
