//! Who speaks to whom: units, their ports, and the two sides of a conversation.

use serde::{Deserialize, Serialize};

/// A unit of the node, numbered in the order of the expanded topology.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UnitId(pub u32);

/// A port of a unit: the index in the unit's own list of wired ports. Ports are duplex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PortId(pub u16);

/// The two sides of a conversation: the client asks, the server answers. Each port of a unit is one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Side {
    /// The host before a GPU, the CTA scheduler before an SM, whoever reads and writes before a memory.
    Client,
    /// The other one.
    Server,
}
