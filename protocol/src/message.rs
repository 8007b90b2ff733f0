//! The envelope every message travels in, and the list of protocols.

use crate::cluster::ClusterMessage;
use crate::copy::CopyMessage;
use crate::cta::CtaMessage;
use crate::cuda::CudaMessage;
use crate::managed::ManagedMessage;
use crate::memory::MemoryMessage;
use crate::migration::MigrationMessage;
use crate::ports::{PortId, Side, UnitId};
use crate::time::SimTime;
use crate::translation::TranslationMessage;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A stamped message. An inbox is ordered by (`time`, `source`), and messages of one source and time come in the order they were sent in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Message {
    /// When it arrives.
    pub time: SimTime,
    /// Who sent it.
    pub source: UnitId,
    /// The receiver's port it arrives at.
    pub port: PortId,
    /// What it says.
    pub payload: Payload,
}

/// What a message says, by protocol.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Payload {
    /// Host to GPU commands and their completions.
    Cuda(CudaMessage),
    /// CTA scheduler and SM.
    Cta(CtaMessage),
    /// Loads, stores and atomics between SM, crossbar, L2 and memory.
    Memory(MemoryMessage),
    /// Virtual to physical addresses between SM and GMMU.
    Translation(TranslationMessage),
    /// Bulk transfers between host memory and device memory.
    Copy(CopyMessage),
    /// What the host CPU asks of the driver of unified memory.
    Managed(ManagedMessage),
    /// The driver of unified memory, GMMUs and migration links.
    Migration(MigrationMessage),
    /// The SMs of a cluster of CTAs, through the network between them.
    Cluster(ClusterMessage),
    /// A protocol of a user's own: three words that the simulator only carries.
    Custom([u64; 3]),
}

/// The protocols a port can speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// [`Payload::Cuda`].
    Cuda,
    /// [`Payload::Cta`].
    Cta,
    /// [`Payload::Memory`].
    Memory,
    /// [`Payload::Translation`].
    Translation,
    /// [`Payload::Copy`].
    Copy,
    /// [`Payload::Managed`].
    Managed,
    /// [`Payload::Migration`].
    Migration,
    /// [`Payload::Cluster`].
    Cluster,
    /// [`Payload::Custom`].
    Custom,
    /// Of a port that forwards whatever it gets: it takes the protocol of the port at the other end. No message has it.
    Any,
}

impl Protocol {
    /// Every protocol that messages have, in the order of [`Payload`].
    pub const ALL: [Protocol; 9] = [
        Protocol::Cuda,
        Protocol::Cta,
        Protocol::Memory,
        Protocol::Translation,
        Protocol::Copy,
        Protocol::Managed,
        Protocol::Migration,
        Protocol::Cluster,
        Protocol::Custom,
    ];

    /// Its name in messages to the user.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Cuda => "cuda",
            Protocol::Cta => "cta",
            Protocol::Memory => "memory",
            Protocol::Translation => "translation",
            Protocol::Copy => "copy",
            Protocol::Managed => "managed",
            Protocol::Migration => "migration",
            Protocol::Cluster => "cluster",
            Protocol::Custom => "custom",
            Protocol::Any => "any",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Payload {
    /// Which side sends it; `None` where both do.
    pub const fn sender(&self) -> Option<Side> {
        match self {
            Payload::Cuda(message) => Some(message.sender()),
            Payload::Cta(message) => Some(message.sender()),
            Payload::Memory(message) => Some(message.sender()),
            Payload::Translation(message) => Some(message.sender()),
            Payload::Copy(message) => message.sender(),
            Payload::Managed(message) => Some(message.sender()),
            Payload::Migration(message) => Some(message.sender()),
            Payload::Cluster(message) => message.sender(),
            Payload::Custom(_) => None,
        }
    }

    /// Ends the run: a unit's `port` has received what nobody may send there. The engine adds the unit and the time.
    ///
    /// # Panics
    ///
    /// Always.
    #[cold]
    #[track_caller]
    pub fn unexpected(&self, port: &str) -> ! {
        panic!("port {port} does not take this message of the {} protocol: {self:?}", self.protocol())
    }

    /// The protocol it belongs to.
    pub const fn protocol(&self) -> Protocol {
        match self {
            Payload::Cuda(_) => Protocol::Cuda,
            Payload::Cta(_) => Protocol::Cta,
            Payload::Memory(_) => Protocol::Memory,
            Payload::Translation(_) => Protocol::Translation,
            Payload::Copy(_) => Protocol::Copy,
            Payload::Managed(_) => Protocol::Managed,
            Payload::Migration(_) => Protocol::Migration,
            Payload::Cluster(_) => Protocol::Cluster,
            Payload::Custom(_) => Protocol::Custom,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stays_small() {
        // Messages are moved through inboxes by the million.
        assert!(size_of::<Payload>() <= 40, "{}", size_of::<Payload>());
        assert!(size_of::<Message>() <= 56, "{}", size_of::<Message>());
    }
}
