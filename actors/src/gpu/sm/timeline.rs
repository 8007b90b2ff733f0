//! The timeline of an SM's CTAs, where a run asks for it: a slice for each, from its arrival to its end, on a track for its slot.

use crate::catalogue::BuildContext;
use crate::catalogue::timeline::{
    Argument, Category, Label, Section, TimelineLog, Track, TrackGroup, TrackPlace, ValueKind,
};
use balar_protocol::Clock;
use balar_protocol::cta::CtaLaunch;
use balar_protocol::cuda::KernelLaunch;
use std::sync::Arc;

/// The values that come with a CTA; for a grid with one or two dimensions the first ones.
const ARGUMENTS: [Argument; 4] = [
    ("launch", ValueKind::Number),
    ("cta_x", ValueKind::Number),
    ("cta_y", ValueKind::Number),
    ("cta_z", ValueKind::Number),
];
const BY_DIMENSIONS: [&[Argument]; 3] = [ARGUMENTS.split_at(2).0, ARGUMENTS.split_at(3).0, &ARGUMENTS];

/// The state that an SM needs to record its CTAs.
#[derive(Debug)]
pub(super) struct SmTimeline {
    log: TimelineLog,
    clock: Clock,
    gpu: TrackGroup,
    /// The SM's number in its row.
    index: u32,
    /// The tracks of slots that have had a CTA.
    slots: Vec<Option<Track>>,
    /// The kernel whose CTA came last, and the label of such CTAs.
    last: Option<(Arc<str>, usize, Label)>,
}

impl SmTimeline {
    /// The timeline of the SM that is built, where the run asks for it.
    pub fn of(context: &BuildContext, clock: Clock) -> Option<SmTimeline> {
        let timeline = context.surroundings.timeline.as_ref().filter(|timeline| timeline.shows_ctas())?;
        let (log, gpu) = (timeline.log(context.unit), context.gpu_tracks());
        Some(SmTimeline { log, clock, gpu, index: context.index, slots: Vec::new(), last: None })
    }

    /// A CTA comes.
    pub fn begins(&mut self, command: &CtaLaunch, cycle: u64) {
        let CtaLaunch { launch, cta, slot, .. } = command;
        let dimensions = dimensions(launch);
        let values = [u64::from(launch.id.0).saturating_sub(1), cta[0].into(), cta[1].into(), cta[2].into()];
        let (track, label) = (self.track(*slot), self.label(&launch.name, dimensions));
        self.log.begin(self.clock.time_of(cycle), track, label, &values[..=dimensions]);
    }

    /// The CTA in a slot ends.
    pub fn ends(&mut self, slot: u16, cycle: u64) {
        let track = self.track(slot);
        self.log.end(self.clock.time_of(cycle), track);
    }

    fn track(&mut self, slot: u16) -> Track {
        let at = usize::from(slot);
        if self.slots.len() <= at {
            self.slots.resize(at + 1, None);
        }
        *self.slots[at].get_or_insert_with(|| {
            let path = vec![Section::Sms.name(), (self.index, format!("sm[{}]", self.index).into())];
            let place = TrackPlace::slices(self.gpu.clone(), path);
            self.log.track(TrackPlace { lane: slot.into(), ..place })
        })
    }

    fn label(&mut self, kernel: &Arc<str>, dimensions: usize) -> Label {
        match &self.last {
            Some((known, with, label)) if Arc::ptr_eq(known, kernel) && *with == dimensions => *label,
            _ => {
                let label = self.log.label(Category::Cta, kernel, BY_DIMENSIONS[dimensions - 1]);
                self.last = Some((Arc::clone(kernel), dimensions, label));
                label
            }
        }
    }
}

/// How many dimensions a launch's grid has: 1, 2 or 3.
fn dimensions(launch: &KernelLaunch) -> usize {
    match launch.grid {
        [_, 1, 1] => 1,
        [_, _, 1] => 2,
        _ => 3,
    }
}
