//! How to run a simulation.

use super::{LiveBoard, Placement, Watch};
use balar_protocol::{DetailChoice, SimTime};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How to run a simulation. None of it changes the simulation itself, `stop_at` and `detail` apart.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Shards, each a thread; at least one is used, and no more than there are units.
    pub threads: usize,
    /// Nothing stamped at or after this time is simulated.
    pub stop_at: Option<SimTime>,
    /// End the run after this much time on the wall clock.
    pub max_wall: Option<Duration>,
    /// End the run between windows once this is set.
    pub interrupt: Arc<AtomicBool>,
    /// Where to show how far the run is.
    pub progress: Option<LiveBoard>,
    /// How units are spread over shards.
    pub placement: Placement,
    /// Where windows end before wires make them.
    pub cut: WindowCut,
    /// Whether units keep a profile of the code that they run: their counts, for each instruction. The code that builds the simulation
    /// reads this.
    pub profile_instructions: bool,
    /// Who watches the run, and when.
    pub watch: Option<Watch>,
    /// Whether units record their activity over time, and in which detail. The code that builds the simulation reads this.
    pub timeline: Option<TimelineDetail>,
    /// Which launches and copies are timed; the others are simulated for their values alone. The code that builds the simulation reads
    /// this.
    pub detail: DetailChoice,
    /// Times, in order, at which units are handed over ([`HandOver`](super::HandOver)). The code that builds the simulation reads this.
    pub hand_over_at: Arc<[SimTime]>,
}

/// How much a timeline shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimelineDetail {
    /// Calls, kernels, transfers.
    Kernels,
    /// Every CTA, too.
    Ctas,
}

/// Where windows end before wires and epochs make them end. It changes no result: tests show so by it.
#[derive(Clone, Debug, Default)]
pub struct WindowCut {
    /// Each window is as long as a window can be over this; 0 and 1 change nothing.
    pub divisor: u64,
    /// Ends of windows, in order.
    pub at: Arc<[SimTime]>,
}

impl WindowCut {
    /// The end of a window from `start` on that could last until `until`.
    #[inline]
    pub(super) fn shorten(&self, start: SimTime, mut until: SimTime) -> SimTime {
        if self.divisor > 1 {
            until = SimTime(start.0 + (until.0 - start.0).div_ceil(self.divisor));
        }
        if !self.at.is_empty()
            && let Some(&cut) = self.at.get(self.at.partition_point(|&cut| cut <= start))
        {
            until = until.min(cut);
        }
        until
    }
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            threads: 1,
            stop_at: None,
            max_wall: None,
            interrupt: Arc::new(AtomicBool::new(false)),
            progress: None,
            placement: Placement::Balanced,
            cut: WindowCut::default(),
            profile_instructions: false,
            watch: None,
            timeline: None,
            detail: DetailChoice::default(),
            hand_over_at: Arc::default(),
        }
    }
}
