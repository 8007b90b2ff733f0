//! What becomes of launches while they run, as units tell it to whoever watches a run.

use crate::SimTime;
use crate::context::ContextId;
use crate::cuda::LaunchId;
use crate::statistics::KernelCounters;
use std::sync::Arc;

/// A launch that is on a GPU, or was until lately, as its CTA scheduler tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchFacts {
    /// The launch.
    pub launch: LaunchId,
    /// The kernel's name as the program gives it.
    pub name: Arc<str>,
    /// What it runs in.
    pub context: ContextId,
    /// Its stream.
    pub stream: u32,
    /// Path of the GPU it runs on.
    pub gpu: Arc<str>,
    /// CTAs of its grid.
    pub ctas: u64,
    /// Those that have ended.
    pub ctas_ended: u64,
    /// When the scheduler started it.
    pub start: SimTime,
    /// When it ended, if it has.
    pub end: Option<SimTime>,
}

/// What the CTAs of a launch did on an SM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchCounts {
    /// The launch.
    pub launch: LaunchId,
    /// CTAs that have ended since the SM was last asked.
    pub ended: KernelCounters,
    /// CTAs that are there: what they have done so far.
    pub resident: KernelCounters,
}

impl LaunchCounts {
    /// Nothing yet.
    pub fn of(launch: LaunchId) -> LaunchCounts {
        LaunchCounts { launch, ended: KernelCounters::default(), resident: KernelCounters::default() }
    }

    /// Those of `launch` among `counts`, where they are put if there are none. The launch that was asked for last comes first to mind.
    pub fn among(counts: &mut Vec<LaunchCounts>, launch: LaunchId) -> &mut LaunchCounts {
        let at = counts.iter().rposition(|known| known.launch == launch).unwrap_or_else(|| {
            counts.push(LaunchCounts::of(launch));
            counts.len() - 1
        });
        &mut counts[at]
    }
}

/// Where units tell of launches.
#[derive(Debug, Default)]
pub struct LaunchSink {
    /// Simulated time at which units are asked.
    pub now: SimTime,
    /// Launches that are on their GPUs, and those that have ended since their scheduler was last asked.
    pub begun: Vec<LaunchFacts>,
    /// What SMs counted of each: a launch has a part of every SM that ran CTAs of it.
    pub counts: Vec<LaunchCounts>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_launch_has_its_counts_once() {
        let mut counts = Vec::new();
        for (launch, warps) in [(1, 2), (2, 3), (1, 4), (2, 5), (3, 0)] {
            LaunchCounts::among(&mut counts, LaunchId(launch)).ended.ctas.warps_launched += warps;
        }
        let of: Vec<(u32, u64)> = counts.iter().map(|of| (of.launch.0, of.ended.ctas.warps_launched)).collect();
        assert_eq!(of, [(1, 6), (2, 8), (3, 0)]);
    }
}
