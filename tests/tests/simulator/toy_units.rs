//! Unit kinds without behaviour, for tests of the topology language: a processor, a memory, a hub and a link.

use balar_actors::catalogue::{
    BuildContext, BuildError, Capability, ParameterProblem, ParameterSet, PortDefinition, Role, UnitDefinition, nothing,
};
use balar_actors::engine::{Inbox, NextWake, Outbox, Unit, Window};
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Bytes, Frequency, Protocol, SimTime};

balar_actors::parameters! {
    /// A processor.
    pub struct ProcessorParameters {
        /// clock of the processor
        clock: Frequency,
        /// instructions issued a cycle
        width: u32 = "2",
    }
}

balar_actors::parameters! {
    /// A memory.
    pub struct MemoryParameters {
        /// data capacity
        capacity: Bytes = r#""1 MiB""#,
        /// lines of a set, a power of two
        ways: u32 = "4",
        /// what it is made of
        technology: String = r#""DRAM""#,
    }
}

balar_actors::parameters! {
    /// A hub.
    pub struct HubParameters {
        /// entries of each queue
        queue_entries: u32 = "8",
    }
}

balar_actors::parameters! {
    /// A link.
    pub struct LinkParameters {
        /// time from end to end
        latency: SimTime,
    }
}

/// Does nothing.
struct Idle;

impl Unit for Idle {
    fn advance(&mut self, _: Window, _: &mut Inbox, _: &mut Outbox) -> NextWake {
        NextWake::OnMessage
    }

    fn statistics(&self, _: &mut StatisticSink) {}

    fn outstanding(&self) -> Option<String> {
        None
    }
}

const fn port(name: &'static str, protocol: Protocol, role: Role, indexed: bool, required: bool) -> PortDefinition {
    PortDefinition { name, protocol, role, indexed, required, meaning: "of a toy" }
}

fn build_idle(_: &str, _: &BuildContext) -> Result<Box<dyn Unit>, BuildError> {
    Ok(Box::new(Idle))
}

fn build_memory(text: &str, _: &BuildContext) -> Result<Box<dyn Unit>, BuildError> {
    let parameters: MemoryParameters = ron::from_str(text)?;
    if !parameters.ways.is_power_of_two() {
        let problem = format!("expected a power of two, found {}", parameters.ways);
        return Err(BuildError::Parameters(vec![ParameterProblem::new("ways", problem)]));
    }
    Ok(Box::new(Idle))
}

fn provides_link(text: &str) -> Vec<Capability> {
    let latency = ron::from_str(text).map_or(SimTime::ZERO, |parameters: LinkParameters| parameters.latency);
    vec![Capability::Forwards { ports: ["up", "down"], latency: Some(latency) }]
}

/// Issues requests.
pub const PROCESSOR: UnitDefinition = UnitDefinition {
    name: "Processor",
    summary: "issues requests",
    parameters: ProcessorParameters::DEFINITIONS,
    check: ProcessorParameters::check,
    ports: &[
        port("memory", Protocol::Memory, Role::Client, false, true),
        port("command", Protocol::Cuda, Role::Server, false, false),
    ],
    counters: &[],
    provides: nothing,
    weight: 2,
    build: build_idle,
};

/// Answers requests.
pub const MEMORY: UnitDefinition = UnitDefinition {
    name: "Memory",
    summary: "answers requests",
    parameters: MemoryParameters::DEFINITIONS,
    check: MemoryParameters::check,
    ports: &[port("client", Protocol::Memory, Role::Server, false, true)],
    counters: &[],
    provides: nothing,
    weight: 2,
    build: build_memory,
};

/// Forwards requests.
pub const HUB: UnitDefinition = UnitDefinition {
    name: "Hub",
    summary: "forwards requests",
    parameters: HubParameters::DEFINITIONS,
    check: HubParameters::check,
    ports: &[
        port("up", Protocol::Memory, Role::Server, true, true),
        port("down", Protocol::Memory, Role::Client, true, true),
        port("command", Protocol::Cuda, Role::Client, true, false),
    ],
    counters: &[],
    provides: nothing,
    weight: 2,
    build: build_idle,
};

/// Delays messages of any protocol.
pub const LINK: UnitDefinition = UnitDefinition {
    name: "Link",
    summary: "delays messages",
    parameters: LinkParameters::DEFINITIONS,
    check: LinkParameters::check,
    ports: &[
        port("up", Protocol::Any, Role::Server, false, true),
        port("down", Protocol::Any, Role::Client, false, true),
    ],
    counters: &[],
    provides: provides_link,
    weight: 2,
    build: build_idle,
};

/// All of them.
pub const TOYS: &[&UnitDefinition] = &[&PROCESSOR, &MEMORY, &HUB, &LINK];
