//! The declarations of a kind of unit beside its ports: the capabilities that it provides to its GPU, and the way it carries messages.

use crate::interleave::{AddressBits, AddressHash};
use balar_host::DriverVersion;
use balar_protocol::SmCapability;
use balar_protocol::{Bytes, Frequency, SimTime};

/// Something that units, the host's driver and the topology know of a unit without knowing its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capability {
    /// It takes kernel launches: the part that it belongs to is a GPU.
    GpuFrontEnd {
        /// Compute capability of the GPU: (7, 0).
        compute_capability: (u32, u32),
    },
    /// It is the host's CUDA driver.
    Driver {
        /// Its version.
        version: DriverVersion,
    },
    /// It executes CTAs.
    Sm(SmCapability),
    /// It joins the SMs of its GPU, so that clusters of CTAs can share their shared memory.
    SmNetwork {
        /// SMs of each GPC, in their order; empty where all are as one.
        gpcs: Vec<u32>,
    },
    /// It holds device memory.
    DeviceMemory {
        /// Capacity.
        capacity: Bytes,
        /// Clock of its interface.
        clock: Frequency,
        /// Width of its interface, bits.
        bus_bits: u32,
    },
    /// It caches device memory for the whole GPU.
    L2Cache {
        /// Capacity.
        capacity: Bytes,
    },
    /// It spreads lines over the units at a row of its ports.
    SpreadsLines {
        /// The row.
        ports: &'static str,
        /// The parameter that says how.
        parameter: &'static str,
        /// What that says.
        hash: AddressHash,
        /// Partitions of these units: where there are several, each has copies of the lines of the others.
        partitions: u32,
    },
    /// It is a cache that puts each line into one of its sets.
    CacheSets {
        /// The parameter that says by which bits of the address.
        parameter: &'static str,
        /// What that says.
        bits: AddressBits,
        /// How many sets it has.
        sets: u32,
    },
    /// It goes at a rate at best: what its lanes, buses and clock allow, whether or not anything gets there.
    Peak {
        /// The counted work.
        what: PeakRate,
        /// How many of these a second.
        per_second: u64,
    },
    /// Its queues have an end: it takes so many requests of each memory client, and so many responses of each memory server, before it gives
    /// a credit for one back to those that count them; 0 = any number.
    Queues {
        /// Of each client that [`Capability::CountsCredits`].
        requests: u32,
        /// Of each such server.
        responses: u32,
    },
    /// It sends no more than the queue of its peer has places for, and takes credits.
    CountsCredits,
    /// It holds stores of its memory client back: the client tells it by a `Drain` when a warp waits for them.
    HoldsStores,
    /// It passes a `Drain` of its memory client on, to a unit behind it that holds stores back.
    PassesDrains,
    /// Its copies of memory have the stores of its memory client, so that it may answer loads after a store from them.
    UpdatesCopies,
    /// A message that comes in at one of two ports leaves at the other, unchanged: units see through it to the unit behind. Port `a[i]` of
    /// a row belongs to `b[i]`.
    Forwards {
        /// The two ports.
        ports: [&'static str; 2],
        /// The time that its two wires take together, where links must not give them one of their own; the wire at the first port
        /// takes the smaller half.
        latency: Option<SimTime>,
    },
}

/// The work of a unit that has a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeakRate {
    /// Operations in double precision, two for a multiply-add.
    DoubleOperations,
    /// Operations in single precision.
    SingleOperations,
    /// Operations in half precision, outside tensor cores.
    HalfOperations,
    /// Operations of tensor cores on halves.
    TensorOperations,
    /// Bytes from the L1.
    L1Bytes,
    /// Bytes from or to shared memory.
    SharedBytes,
    /// Bytes from or to the L2.
    L2Bytes,
    /// Bytes from or to device memory.
    DeviceMemoryBytes,
    /// Bytes over a link, in one direction.
    LinkBytes,
}

/// Gives the capabilities of a unit with these parameters, a complete RON struct; nothing where they cannot be read.
pub type ProvidesFunction = fn(&str) -> Vec<Capability>;

/// The function of a kind of unit that provides nothing.
pub fn nothing(_: &str) -> Vec<Capability> {
    Vec::new()
}

/// The unit at the other end of a port, behind units that only forward.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// The unit's full path: "gpu.sm\[3\]".
    pub path: String,
    /// Its kind.
    pub kind: &'static str,
    /// Its capabilities.
    pub provides: Vec<Capability>,
}

impl Peer {
    /// Is it to be told when a warp waits for stores?
    pub fn holds_stores(&self) -> bool {
        self.provides.contains(&Capability::HoldsStores)
    }

    /// How it spreads lines.
    pub fn address_hash(&self) -> Option<&AddressHash> {
        self.provides.iter().find_map(|capability| match capability {
            Capability::SpreadsLines { hash, .. } => Some(hash),
            _ => None,
        })
    }

    /// The partitions of the units that it spreads lines over.
    pub fn partitions(&self) -> u32 {
        let partitions = self.provides.iter().find_map(|capability| match capability {
            Capability::SpreadsLines { partitions, .. } => Some(*partitions),
            _ => None,
        });
        partitions.unwrap_or(1)
    }

    /// The entries of its queues for requests and for responses of one unit; 0 = any number.
    pub fn queues(&self) -> (u32, u32) {
        let queues = self.provides.iter().find_map(|capability| match capability {
            Capability::Queues { requests, responses } => Some((*requests, *responses)),
            _ => None,
        });
        queues.unwrap_or_default()
    }

    /// Is it given credits?
    pub fn counts_credits(&self) -> bool {
        self.provides.contains(&Capability::CountsCredits)
    }

    /// Its number in its row of units; 0 where it is a single one.
    pub fn index(&self) -> u32 {
        let number = self.path.strip_suffix(']').and_then(|path| path.rsplit_once('['));
        number.and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
    }

    /// Its capability as an SM.
    pub fn sm(&self) -> Option<SmCapability> {
        self.provides.iter().find_map(|capability| match capability {
            Capability::Sm(sm) => Some(*sm),
            _ => None,
        })
    }
}
