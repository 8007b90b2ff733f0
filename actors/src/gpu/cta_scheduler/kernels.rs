//! Kernels on their way through the scheduler: those that wait in a queue, those whose CTAs run, those that are over.

use crate::catalogue::CtaNeeds;
use balar_protocol::cuda::{KernelLaunch, LaunchId};
use balar_protocol::statistics::CtaCounters;
use balar_protocol::{ContextId, SimTime};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;

/// A kernel whose CTAs are being placed or run.
#[derive(Serialize, Deserialize)]
pub(super) struct ResidentKernel {
    pub launch: Arc<KernelLaunch>,
    pub cta_needs: CtaNeeds,
    /// When it became resident.
    pub start: SimTime,
    /// First SM cycle in which a CTA of it may be placed.
    pub first_cycle: u64,
    /// Next CTA to place.
    pub next_cta: [u32; 3],
    /// CTAs not yet placed.
    pub unplaced: u64,
    /// CTAs placed and not yet ended.
    pub running: u64,
    /// CTAs that have ended, and whose stores are under way, less those whose last store was done before their end was known here.
    pub storing: i64,
    /// For a kernel that is not timed: the number of CTAs on each SM. Empty before the first are.
    pub of_sm: Vec<u32>,
    /// For such a kernel: it does not end before.
    pub until: SimTime,
    pub counters: CtaCounters,
}

impl ResidentKernel {
    /// Is everything done?
    pub fn is_over(&self) -> bool {
        self.running == 0 && self.unplaced == 0 && self.storing == 0
    }

    /// The number of the next cluster; its CTAs count as placed. Only called while some are unplaced.
    pub fn take_cluster(&mut self) -> u64 {
        let size = u64::from(self.launch.cluster_size());
        let number = (self.launch.cta_count() - self.unplaced) / size;
        self.unplaced = self.unplaced.saturating_sub(size);
        self.running += size;
        number
    }

    /// The next CTA's place in the grid, x fastest. Only called while some are unplaced.
    pub fn take_cta(&mut self) -> [u32; 3] {
        let cta = self.next_cta;
        let grid = self.launch.grid;
        self.unplaced -= 1;
        self.running += 1;
        self.next_cta[0] += 1;
        if self.next_cta[0] == grid[0] {
            self.next_cta[0] = 0;
            self.next_cta[1] += 1;
            if self.next_cta[1] == grid[1] {
                self.next_cta[1] = 0;
                self.next_cta[2] += 1;
            }
        }
        cta
    }
}

/// A kernel that is over but whose end the host does not know yet: it holds its queue until then.
#[derive(Serialize, Deserialize)]
pub(super) struct EndingKernel {
    pub end: SimTime,
    pub queue: QueueId,
    pub launch: LaunchId,
    pub is_timed: bool,
}

/// A queue of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct QueueId {
    pub context: ContextId,
    number: u32,
}

impl QueueId {
    /// The queue that a launch is for.
    pub fn of(launch: &KernelLaunch) -> QueueId {
        QueueId { context: launch.context, number: launch.queue }
    }
}

/// The launches of one queue, oldest first.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Queue {
    /// A kernel of this queue is resident or ending.
    pub busy: bool,
    /// Launches that wait for it, with their number in the order of arrival.
    pub waiting: VecDeque<(u64, Arc<KernelLaunch>)>,
}
