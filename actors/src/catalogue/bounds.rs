//! Bounds that parameters of many units share. Within its bounds, a unit can honour each of its parameters: no sum of times overflows, and
//! its allocations fit into the memory of a common machine.

use balar_protocol::{Bandwidth, Bytes, Frequency, SimTime};
use std::ops::{RangeInclusive, RangeToInclusive};

/// Clocks: 1 MHz to 100 GHz.
pub const CLOCK: RangeInclusive<Frequency> = Frequency::from_hertz(1_000_000)..=Frequency::from_hertz(100_000_000_000);
/// Latencies and costs of a unit of the device in cycles of its clock.
pub const CYCLES: RangeToInclusive<u32> = ..=1_000_000;
/// Intervals between two uses of something: at least a cycle.
pub const INTERVAL: RangeInclusive<u32> = 1..=1_000_000;
/// Costs of the host's driver in cycles of its clock.
pub const HOST_CYCLES: RangeToInclusive<u32> = ..=1_000_000_000;
/// Work in a cycle.
pub const PER_CYCLE: RangeInclusive<u32> = 1..=65_536;
/// Entries of a queue or a table that may not be empty.
pub const ENTRIES: RangeInclusive<u32> = 1..=65_536;
/// Latencies and costs that are times: up to a second.
pub const TIME: RangeToInclusive<SimTime> = ..=SimTime::from_nanoseconds(1_000_000_000);
/// Rates of links and memories: 1 MB/s to 1 PB/s.
pub const RATE: RangeInclusive<Bandwidth> =
    Bandwidth::from_bytes_per_second(1_000_000)..=Bandwidth::from_bytes_per_second(1_000_000_000_000_000);
/// Capacities of memories: a page of 4 KiB to 16 TiB.
pub const MEMORY: RangeInclusive<Bytes> = Bytes(4 << 10)..=Bytes(16 << 40);
