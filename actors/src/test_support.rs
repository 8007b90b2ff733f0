//! What the tests of the memory units share.

use crate::catalogue::{BuildContext, PortMap, Surroundings};
use balar_protocol::memory::{MemoryKind, MemoryMessage, MemoryRequest, MemoryResponse};
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Payload, PortId, SimTime};

/// Calls `build` with a unit's surroundings: its wired ports in order, and the length of its row.
pub(crate) fn with_context<R>(ports: &[(&str, u32)], row_length: u32, build: impl FnOnce(&BuildContext) -> R) -> R {
    let ports = PortMap::new(ports.iter().map(|(name, index)| ((*name).to_owned(), *index)));
    let surroundings = Surroundings::default();
    let (path, part, surroundings) = ("gpu.unit", "gpu", &surroundings);
    build(&BuildContext { path, part, index: 0, row_length, ports: &ports, unit: 0, surroundings })
}

/// A load of `sectors` of the line at `line`.
pub(crate) fn load(line: u64, id: u32, sectors: u8) -> MemoryRequest {
    let kind = MemoryKind::Load;
    MemoryRequest { line, id, launch: 1, return_port: 0, data_bytes: 0, sectors, full_sectors: 0, operations: 0, kind }
}

/// A store of whole sectors.
pub(crate) fn store(line: u64, id: u32, sectors: u8) -> MemoryRequest {
    let data_bytes = sectors.count_ones() as u16 * 32;
    MemoryRequest { data_bytes, full_sectors: sectors, kind: MemoryKind::Store, ..load(line, id, sectors) }
}

/// The payload that carries `request`.
pub(crate) fn request(request: MemoryRequest) -> Payload {
    Payload::Memory(MemoryMessage::Request(request))
}

/// The responses among `sent`, with their arrival times and ports.
pub(crate) fn responses(sent: &[(SimTime, PortId, Payload)]) -> Vec<(SimTime, PortId, MemoryResponse)> {
    let pick = |(time, port, payload): &(SimTime, PortId, Payload)| match payload {
        Payload::Memory(MemoryMessage::Response(response)) => Some((*time, *port, *response)),
        _ => None,
    };
    sent.iter().filter_map(pick).collect()
}

/// The requests among `sent`, with their arrival times and ports.
pub(crate) fn requests(sent: &[(SimTime, PortId, Payload)]) -> Vec<(SimTime, PortId, MemoryRequest)> {
    let pick = |(time, port, payload): &(SimTime, PortId, Payload)| match payload {
        Payload::Memory(MemoryMessage::Request(request)) => Some((*time, *port, *request)),
        _ => None,
    };
    sent.iter().filter_map(pick).collect()
}

/// The value of counter `name` of the unit itself.
pub(crate) fn counter(unit: &dyn crate::engine::Unit, name: &str) -> u64 {
    let mut sink = StatisticSink::default();
    sink.set_location("unit");
    unit.statistics(&mut sink);
    let row = sink.rows.iter().find(|row| row.what == name && row.location == "unit");
    row.unwrap_or_else(|| panic!("no counter {name}")).value
}
