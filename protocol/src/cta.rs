//! The CTA protocol: the scheduler places a CTA into a slot of an SM; the SM reports its end.

use crate::cuda::{KernelFault, KernelLaunch, LaunchId};
use crate::message::Side;
use crate::statistics::KernelCounters;
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
}

/// The end of one CTA.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CtaCompletion {
    /// The launch it belonged to.
    pub launch: LaunchId,
    /// The slot that is free again.
    pub slot: u16,
    /// What the CTA did.
    pub counters: KernelCounters,
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
}

impl CtaMessage {
    /// Which side sends it: the scheduler is the client, the SM the server.
    pub const fn sender(&self) -> Side {
        match self {
            CtaMessage::Launch(_) | CtaMessage::Abort(_) => Side::Client,
            CtaMessage::Completed(_) | CtaMessage::Stored(_) => Side::Server,
        }
    }
}
