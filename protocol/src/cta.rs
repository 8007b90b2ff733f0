//! The CTA protocol: the scheduler places a CTA into a slot of an SM; the SM reports its end.

use crate::cluster::ClusterPlace;
use crate::device_launch::DeviceWork;
use crate::fault::KernelFault;
use crate::launch::{KernelLaunch, LaunchId};
use crate::ports::Side;
use crate::statistics::CtaCounters;
use crate::time::SimTime;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One CTA for one slot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CtaLaunch {
    /// The launch it belongs to.
    pub launch: Arc<KernelLaunch>,
    /// Its place in the grid.
    pub cta: [u32; 3],
    /// The SM's slot it goes to.
    pub slot: u16,
    /// The sub-core of each warp. A warp slot is free there.
    pub sub_cores: Box<[u8]>,
    /// Bytes of shared memory that the SM has while it runs the CTA. Other CTAs that run there have been sent with as many.
    pub carve_out: u32,
    /// Its cluster; `None` where it has none beside itself.
    pub cluster: Option<CtaCluster>,
}

/// The cluster of a CTA, whose CTAs are all placed at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CtaCluster {
    /// Its number in the grid, x fastest.
    pub number: u64,
    /// The CTA's own rank in it.
    pub rank: u8,
    /// The place of each CTA, by rank.
    pub members: Arc<[ClusterPlace]>,
}

/// CTAs of a launch that runs for its values alone: an SM takes up each when it comes to it, and they take none of its room.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FunctionalCtas {
    /// The launch they belong to.
    pub launch: Arc<KernelLaunch>,
    /// The number of the first in the grid: x fastest; where they form clusters, one cluster after the other, by rank.
    pub first: u64,
    /// How many there are: whole clusters.
    pub count: u32,
}

/// CTAs of such a launch have ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FunctionalEnd {
    /// The launch they belonged to.
    pub launch: LaunchId,
    /// How many have ended.
    pub count: u32,
    /// What they did.
    pub counters: CtaCounters,
    /// Why one of them failed, if it did.
    pub fault: Option<KernelFault>,
    /// When the last of them ended, by a clock that goes on by a cycle with each warp instruction of the SM: their kernel does not end before.
    pub until: SimTime,
}

/// The end of one CTA.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CtaCompletion {
    /// The launch it belonged to.
    pub launch: LaunchId,
    /// The slot that is free again.
    pub slot: u16,
    /// What the CTA did.
    pub counters: CtaCounters,
    /// Why it failed, if it did.
    pub fault: Option<KernelFault>,
    /// Stores of it are under way; [`CtaMessage::Stored`] follows.
    pub stores_under_way: bool,
}

/// Messages of the CTA protocol.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CtaMessage {
    /// Scheduler to SM.
    Launch(Box<CtaLaunch>),
    /// SM to scheduler.
    Completed(Box<CtaCompletion>),
    /// SM to scheduler: the last store of a CTA of this launch that has ended is done.
    Stored(LaunchId),
    /// Scheduler to SM: drop every CTA of this launch without a completion; its kernel has failed.
    Abort(LaunchId),
    /// Scheduler to SM: run these for their values alone.
    Functional(Box<FunctionalCtas>),
    /// SM to scheduler: some of these have ended, and everybody sees what they wrote.
    FunctionalEnd(Box<FunctionalEnd>),
    /// SM to scheduler: a thread has launched a kernel, or put something else into a stream of its grid.
    DeviceWork(Box<DeviceWork>),
}

impl CtaMessage {
    /// Which side sends it: the scheduler is the client, the SM the server.
    pub const fn sender(&self) -> Side {
        match self {
            CtaMessage::Launch(_) | CtaMessage::Abort(_) | CtaMessage::Functional(_) => Side::Client,
            CtaMessage::Completed(_)
            | CtaMessage::Stored(_)
            | CtaMessage::FunctionalEnd(_)
            | CtaMessage::DeviceWork(_) => Side::Server,
        }
    }
}
