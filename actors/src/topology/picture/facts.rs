//! What a picture says of rows of units: their sizes, clocks and rates, from their parameters and what they provide.

use super::model::Row;
use super::quantities::{bandwidth, bytes, decimals, parameter, rate};
use crate::catalogue::Capability;
use crate::topology::ExpandedUnit;

/// What all units of a row have in common of a parameter: a row that differs in it says so.
fn common(row: &Row, name: &str) -> Option<String> {
    let first = parameter(row.units[0], name)?;
    let differs = row.units.iter().any(|unit| parameter(unit, name).as_ref() != Some(&first));
    Some(if differs { format!("{name} differs") } else { first })
}

/// Kind, clock, size and rate: the lines of a card.
pub(super) fn card(row: &Row) -> Vec<String> {
    let unit = row.units[0];
    let count = if row.units.len() == 1 { String::new() } else { format!("{} \u{d7} ", row.units.len()) };
    let mut lines = vec![format!("{count}{}", unit.kind.name)];
    let facts = [common(row, "clock"), common(row, "capacity").map(readable), bandwidth(unit)];
    lines.extend(facts.into_iter().flatten());
    lines
}

/// A capacity as its file has it, in larger units where that is shorter.
fn readable(text: String) -> String {
    match text.parse::<balar_protocol::Bytes>() {
        Ok(size) => bytes(size.0),
        Err(_) => text,
    }
}

fn joined(facts: impl IntoIterator<Item = Option<String>>) -> String {
    facts.into_iter().flatten().collect::<Vec<_>>().join(" \u{b7} ")
}

fn plural(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// "84 SMs · 1312 MHz · L1 128 KiB · 64 warps".
pub(super) fn sms(row: &Row) -> String {
    let clock = row.units[0].provides.iter().find_map(|capability| match capability {
        Capability::Sm(sm) => Some(sm.clock.hertz()),
        _ => None,
    });
    let clock = common(row, "clock").or(clock.map(|hertz| format!("{} MHz", decimals(hertz, 1_000_000))));
    let l1 = common(row, "unified_memory").map(|size| format!("L1 {}", readable(size)));
    let warps = row.units[0].provides.iter().find_map(|capability| match capability {
        Capability::Sm(sm) => Some(format!("{} warps", sm.resources.warps)),
        _ => None,
    });
    joined([Some(plural(row.units.len(), "SM")), clock, l1, warps])
}

/// "L2 6 MiB · 32 slices of 192 KiB · 1312 MHz".
pub(super) fn l2(row: &Row) -> String {
    let sizes: Vec<u64> = row
        .units
        .iter()
        .flat_map(|unit| unit.provides.iter())
        .filter_map(|capability| match capability {
            Capability::L2Cache { capacity } => Some(capacity.0),
            _ => None,
        })
        .collect();
    let total = sizes.iter().fold(0u64, |sum, size| sum.saturating_add(*size));
    let each = sizes.first().filter(|first| sizes.iter().all(|size| size == *first));
    let of = each.map(|size| format!(" of {}", bytes(*size))).unwrap_or_default();
    let slices = format!("{}{of}", plural(row.units.len(), "slice"));
    joined([Some(format!("L2 {}", bytes(total))), Some(slices), common(row, "clock")])
}

/// Capacity and bytes a second of a unit of device memory: what it names as its bandwidth, or two transfers a cycle of its bus.
fn memory_of(unit: &ExpandedUnit) -> Option<(u64, u128)> {
    let given = bandwidth(unit).and_then(|text| text.parse::<balar_protocol::Bandwidth>().ok());
    unit.provides.iter().find_map(|capability| match capability {
        Capability::DeviceMemory { capacity, clock, bus_bits } => {
            let bus = u128::from(clock.hertz()) * 2 * u128::from(*bus_bits) / 8;
            Some((capacity.0, given.map_or(bus, |given| u128::from(given.bytes_per_second()))))
        }
        _ => None,
    })
}

/// "16 GiB · 898 GB/s · 4 × hbm · 877 MHz": units of device memory have the name that the topology gives them, for one kind of units models
/// stacks of HBM and channels of GDDR. A kind that does not come with the simulator is named, too.
pub(super) fn memory(row: &Row) -> String {
    let (mut size, mut speed) = (0u64, 0u128);
    for (capacity, rate) in row.units.iter().filter_map(|unit| memory_of(unit)) {
        size = size.saturating_add(capacity);
        speed += rate;
    }
    let units = format!("{} \u{d7} {}", row.units.len(), row.name);
    let kind = Some(row.units[0].kind.name.to_owned()).filter(|_| row.is_own());
    joined([Some(format!("device memory {}", bytes(size))), Some(rate(speed)), Some(units), kind, common(row, "clock")])
}

/// The two lines of one stack.
pub(super) fn stack(unit: &ExpandedUnit) -> (String, String) {
    let (size, speed) = memory_of(unit).unwrap_or_default();
    (bytes(size), rate(speed))
}

/// A unit on the way from the SMs to memory: name, kind, clock, and the width of a switch.
pub(super) fn bar(row: &Row) -> String {
    let unit = row.units[0];
    let number = |name| parameter(unit, name).and_then(|text| text.parse::<u64>().ok());
    let width = number("flit_bytes").map(|flit| {
        let (into, out) = (number("input_ports").unwrap_or(1), number("output_ports").unwrap_or(1));
        format!("{} B in, {} B out a cycle and port", into * flit, out * flit)
    });
    let count = if row.units.len() == 1 { String::new() } else { format!("{} \u{d7} ", row.units.len()) };
    joined([
        Some(format!("{count}{}", row.name)),
        Some(unit.kind.name.to_owned()).filter(|_| row.is_own() || !count.is_empty()),
        common(row, "clock"),
        width,
    ])
}

/// "compute capability 7.0 · SMs at 1312 MHz".
pub(super) fn gpu<'a>(rows: impl Iterator<Item = &'a Row<'a>> + Clone, index: usize) -> String {
    let units = || rows.clone().flat_map(|row| row.units.iter());
    let version = units().flat_map(|unit| unit.provides.iter()).find_map(|capability| match capability {
        Capability::GpuFrontEnd { compute_capability: (major, minor) } => {
            Some(format!("compute capability {major}.{minor}"))
        }
        _ => None,
    });
    let mut clocks: Vec<u64> = units()
        .flat_map(|unit| unit.provides.iter())
        .filter_map(|capability| match capability {
            Capability::Sm(sm) => Some(sm.clock.hertz()),
            _ => None,
        })
        .collect();
    clocks.sort_unstable();
    clocks.dedup();
    let megahertz = |hertz: &u64| decimals(*hertz, 1_000_000);
    let clock = match (clocks.first(), clocks.last()) {
        (Some(least), Some(most)) if least == most => Some(format!("SMs at {} MHz", megahertz(least))),
        (Some(least), Some(most)) => Some(format!("SMs at {} to {} MHz", megahertz(least), megahertz(most))),
        _ => None,
    };
    joined([Some(format!("GPU {index}")), version, clock])
}
