//! What the driver of unified memory tells of transfers and batches, where a run asks for it: a slice for each.

use super::record::{BatchRecord, TransferRecord};
use crate::catalogue::BuildContext;
use crate::catalogue::timeline::{Argument, Category, Kept, Section, TimelineLog, TrackGroup, TrackPlace, ValueKind};
use balar_protocol::SimTime;
use std::collections::BTreeMap;

const TRANSFER: &[Argument] =
    &[("address", ValueKind::Address), ("bytes", ValueKind::Number), ("faults", ValueKind::Number)];

const BATCH: &[Argument] = &[
    ("gpu", ValueKind::Number),
    ("entries", ValueKind::Number),
    ("pages", ValueKind::Number),
    ("blocks", ValueKind::Number),
    ("pages_moved", ValueKind::Number),
    ("pages_prefetched", ValueKind::Number),
];

/// What the driver needs to tell of what it does.
#[derive(Debug)]
pub(super) struct DriverTimeline {
    log: TimelineLog,
    /// Paths of the GPUs.
    gpus: Vec<String>,
    /// By GPU and direction: until when each of its tracks shows something. The driver learns of a transfer's end when the next one has begun.
    lanes: BTreeMap<(u8, bool), Vec<SimTime>>,
}

impl DriverTimeline {
    /// Of the driver that is built, where the run asks for it.
    pub fn of(context: &BuildContext) -> Option<Kept<DriverTimeline>> {
        let timeline = context.surroundings.timeline.as_ref()?;
        let gpus = context.surroundings.gpus.iter().map(|gpu| gpu.part.clone()).collect();
        Some(timeline.keep(context.unit, |log| DriverTimeline { log, gpus, lanes: BTreeMap::new() }))
    }

    /// A transfer is over.
    pub fn transfer(&mut self, record: &TransferRecord) {
        let gpu = usize::from(record.gpu);
        let tracks = TrackGroup::Gpu(gpu, self.gpus.get(gpu).cloned().unwrap_or_default());
        let direction = if record.to_device { (0, "to device".into()) } else { (1, "to host".into()) };
        let path = vec![Section::PageMigrations.name(), direction];
        let lanes = self.lanes.entry((record.gpu, record.to_device)).or_default();
        let lane = lanes.iter().position(|until| *until <= record.began).unwrap_or(lanes.len());
        lanes.resize(lanes.len().max(lane + 1), SimTime::ZERO);
        lanes[lane] = record.ended;
        let place = TrackPlace { lane: lane as u32, ..TrackPlace::slices(tracks, path) };
        let track = self.log.track(place);
        let label = self.log.label(Category::Migration, record.cause.words(), TRANSFER);
        let values = [record.address, record.bytes, record.faults.into()];
        self.log.begin(record.began, track, label, &values);
        self.log.end(record.ended, track);
    }

    /// A batch is over.
    pub fn batch(&self, record: &BatchRecord) {
        let place = TrackPlace::slices(TrackGroup::UnifiedMemory, vec![(0, "fault batches".into())]);
        // Batches of several GPUs overlap.
        let place = TrackPlace { lane: record.gpu.into(), ..place };
        let track = self.log.track(place);
        let label = self.log.label(Category::Fault, "fault batch", BATCH);
        let BatchRecord { gpu, entries, pages, blocks, pages_moved, pages_prefetched, .. } = *record;
        let small = [u32::from(gpu), entries, pages, blocks].map(u64::from);
        let values: Vec<u64> = small.into_iter().chain([pages_moved, pages_prefetched]).collect();
        self.log.begin(record.began, track, label, &values);
        self.log.end(record.ended, track);
    }
}
