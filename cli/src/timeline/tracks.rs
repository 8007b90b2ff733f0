//! The tracks of a trace, as a tree: a process for the host and for each GPU, and inside of it tracks within tracks.

use super::packets::{Packets, Write};
use super::protobuf::Message;
use balar_actors::catalogue::timeline::{TrackGroup, TrackKind, TrackPlace};
use std::collections::BTreeMap;
use std::io;

/// Fields of `TrackDescriptor` and what is in it.
mod field {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PROCESS: u32 = 3;
    pub const THREAD: u32 = 4;
    pub const PARENT_UUID: u32 = 5;
    pub const COUNTER: u32 = 8;
    pub const CHILD_ORDERING: u32 = 11;
    pub const SIBLING_ORDER_RANK: u32 = 12;
    pub const DESCRIPTION: u32 = 14;
    pub const PROCESS_ORDERING: u32 = 19;
    pub const PROCESS_PID: u32 = 1;
    pub const PROCESS_NAME: u32 = 6;
    pub const THREAD_PID: u32 = 1;
    pub const THREAD_TID: u32 = 2;
    pub const THREAD_NAME: u32 = 5;
    pub const COUNTER_UNIT_NAME: u32 = 6;
}

/// `TrackDescriptor.ChildTracksOrdering.EXPLICIT`: by the ranks of the children.
const EXPLICIT: u64 = 3;
/// `TrackDescriptor.ProcessOrdering.PROCESS_ORDERING_EXPLICIT`: processes by their ranks.
const PROCESSES_EXPLICIT: u64 = 1;
/// The number of the track of the run itself.
pub const RUN: u64 = 1;
/// Threads have numbers from here on, processes lower ones.
const FIRST_THREAD: u64 = 10_000;

/// What is said of a process's track.
const ABOUT_TIMES: &str = "Times are simulated: a nanosecond of this trace is a nanosecond of simulated time. Values that end in _ps are picoseconds.";

/// All tracks, with their numbers: parents before their children, in the order in which they are shown.
#[derive(Debug, Default)]
pub struct Tracks(BTreeMap<TrackPlace, u64>);

impl Tracks {
    /// The tracks at these places, and those around them.
    pub fn of(places: impl IntoIterator<Item = TrackPlace>) -> Tracks {
        let mut all = BTreeMap::new();
        let mut last: Option<TrackPlace> = None;
        for place in places {
            // Lanes of a track follow each other.
            if last.is_none_or(|last| (&last.group, &last.path) != (&place.group, &place.path)) {
                for depth in 0..place.path.len() {
                    all.insert(TrackPlace::slices(place.group.clone(), &place.path[..depth]), 0);
                }
            }
            last = Some(place.clone());
            all.insert(place, 0);
        }
        for (number, uuid) in (RUN + 1..).zip(all.values_mut()) {
            *uuid = number;
        }
        Tracks(all)
    }

    /// The number of a track.
    pub fn number(&self, place: &TrackPlace) -> u64 {
        self.0.get(place).copied().unwrap_or(RUN)
    }

    /// Writes what the tracks are.
    ///
    /// # Errors
    ///
    /// Where the file takes no more.
    pub fn write(&self, packets: &mut Packets<impl Write>) -> io::Result<()> {
        packets.track_descriptor(|track| {
            track.number(field::UUID, RUN);
            track.text(field::NAME, "run");
            track.text(field::DESCRIPTION, ABOUT_TIMES);
        })?;
        let is_process = |place: &&TrackPlace| place.path.is_empty();
        let hosts = self.0.keys().filter(is_process).filter(|place| matches!(place.group, TrackGroup::Host(_))).count();
        let mut pid = 0;
        // The tracks around the present one, from the outermost: a track comes right before those within it.
        let mut around: Vec<u64> = Vec::new();
        for (rank, (place, &uuid)) in self.0.iter().enumerate() {
            let depth = place.path.len();
            packets.track_descriptor(|track| {
                track.number(field::UUID, uuid);
                track.number(field::SIBLING_ORDER_RANK, rank as u64);
                match place.path.last() {
                    None => {
                        pid += 1;
                        write_process(track, pid, &process_name(&place.group, hosts < 2));
                    }
                    Some((_, name)) => write_track(track, &place.kind, name, (pid, around[depth - 1])),
                }
            })?;
            if place.lane == 0 && place.kind == TrackKind::Slices {
                around.truncate(depth);
                around.push(uuid);
            }
        }
        Ok(())
    }
}

fn write_process(track: &mut Message, pid: u64, name: &str) {
    track.message(field::PROCESS, |process| {
        process.number(field::PROCESS_PID, pid);
        process.text(field::PROCESS_NAME, name);
    });
    track.number(field::CHILD_ORDERING, EXPLICIT);
    track.number(field::PROCESS_ORDERING, PROCESSES_EXPLICIT);
    track.text(field::DESCRIPTION, ABOUT_TIMES);
}

/// What a track within a process is.
fn write_track(track: &mut Message, kind: &TrackKind, name: &str, (pid, parent): (u64, u64)) {
    if let TrackKind::Thread(number) = kind {
        return track.message(field::THREAD, |thread| {
            thread.number(field::THREAD_PID, pid);
            thread.number(field::THREAD_TID, FIRST_THREAD + u64::from(*number));
            thread.text(field::THREAD_NAME, name);
        });
    }
    track.text(field::NAME, name);
    track.number(field::PARENT_UUID, parent);
    match kind {
        TrackKind::Counter(unit) => {
            track.message(field::COUNTER, |counter| counter.text(field::COUNTER_UNIT_NAME, unit));
        }
        _ => track.number(field::CHILD_ORDERING, EXPLICIT),
    }
}

fn process_name(group: &TrackGroup, is_single_host: bool) -> String {
    match group {
        TrackGroup::Host(_) if is_single_host => "host".to_owned(),
        TrackGroup::Host(process) => format!("host process {process}"),
        TrackGroup::Gpu(_, path) if path.is_empty() => "gpu".to_owned(),
        TrackGroup::Gpu(_, path) => path.clone(),
        TrackGroup::Links => "links".to_owned(),
        TrackGroup::UnifiedMemory => "unified memory".to_owned(),
    }
}
