//! The timeline of copy engines, where a run asks for it: a slice for each transfer, on a track for its engine.

use super::state::{Route, Transfer};
use super::transfers::Counted;
use crate::catalogue::BuildContext;
use crate::catalogue::timeline::{Argument, Category, Section, TimelineLog, Track, TrackPlace, ValueKind, copy_flow};
use balar_protocol::SimTime;

const COPY: &[Argument] = &[("copy", ValueKind::Number), ("bytes", ValueKind::Number), ("start_ps", ValueKind::Number)];

/// The state that copy engines need to record their transfers.
pub(super) struct CopyTimeline {
    log: TimelineLog,
    /// Towards the device (and within it), and towards the host.
    tracks: [Track; 2],
}

impl CopyTimeline {
    /// The timeline of the engines that are built, where the run asks for it.
    pub fn of(context: &BuildContext) -> Option<CopyTimeline> {
        let log = context.timeline()?;
        let track = |rank, name: &'static str| {
            let path = vec![Section::CopyEngines.name(), (rank, name.into())];
            log.track(TrackPlace::slices(context.gpu_tracks(), path))
        };
        Some(CopyTimeline { tracks: [track(0, "to device"), track(1, "to host")], log })
    }

    /// A transfer of an engine begins.
    pub fn begins(&self, engine: usize, transfer: &Transfer) {
        let name = match (Counted::of(transfer), transfer.route) {
            (Counted::HostToDevice, _) => "copy host to device",
            (Counted::DeviceToHost, _) => "copy device to host",
            (Counted::Filled, _) => "fill",
            (Counted::DeviceToDevice, Route::Within) => "copy within the device",
            (Counted::DeviceToDevice, _) => "copy device to device",
        };
        let label = self.log.label(Category::Copy, name, COPY);
        let values = [transfer.id.0.into(), transfer.bytes, transfer.started.0];
        let event = self.log.begin(transfer.started, self.tracks[engine], label, &values);
        self.log.flow(event, copy_flow(transfer.id.0));
    }

    /// The transfer of an engine is over.
    pub fn ends(&self, engine: usize, at: SimTime) {
        self.log.end(at, self.tracks[engine]);
    }
}
