//! The link between host and GPU as pages of unified memory cross it: a channel for each direction, and a time for each transfer.
//!
//! A transfer is a run of contiguous pages. Those of one direction follow each other; the two directions do not disturb each other. How
//! long one takes by its size is a curve, measured or fitted, in which the copy engine's part is included.

use crate::catalogue::bounds::TIME;
use crate::catalogue::{BuildContext, BuildError, ParameterSet, PortDefinition, UnitDefinition, nothing};
use crate::engine::{CodeSource, Inbox, NextWake, Outbox, StateError, Unit, Window, restore_state, save_state};
use crate::unified_memory::BLOCK_BYTES;
use crate::unified_memory::bandwidth::TransferCurve;
use balar_protocol::migration::{Direction, MigrationMessage};
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Bandwidth, Payload, PortId, Protocol, SimTime};
use serde::{Deserialize, Serialize};

crate::parameters! {
    /// A link as migrations see it.
    pub struct MigrationLinkParameters {
        /// time of a transfer to the GPU by its bytes: Linear(latency, bandwidth), Table([(bytes, time), ...]), or Arctangent(asymptote, per_kib), the fit of UVMSmart (default: a line through the transfers of a GTX 1080 Ti)
        to_device: TransferCurve = r#"Linear(latency: "880 ns", bandwidth: "12.234 GB/s")"#,
        /// the same for transfers to the host (default: as before)
        to_host: TransferCurve = r#"Linear(latency: "710 ns", bandwidth: "13.145 GB/s")"#,
        /// time that each fault occupies the direction to the GPU before its pages move, where faults are serviced one by one (UVMSmart's accurate simulation: 45 us; the driver services batches instead: 0)
        #[range(TIME)]
        fault_time: SimTime = r#""0 ns""#,
    }
}

impl MigrationLinkParameters {
    fn check_values(&self) -> Result<(), BuildError> {
        let mut problems = self.range_problems();
        for (key, curve) in [("to_device", &self.to_device), ("to_host", &self.to_host)] {
            match curve {
                TransferCurve::Arctangent { asymptote, per_kib } => {
                    problems.check_range(format!("{key}.asymptote"), *asymptote, 0.001..=1e6);
                    problems.check_range(format!("{key}.per_kib"), *per_kib, 1e-6..=1e6);
                }
                TransferCurve::Table(_) => {
                    let time = curve.time(BLOCK_BYTES);
                    let problem = format!("expected at most {:#} for 2 MiB, found {time:#}", TIME.end);
                    problems.check(TIME.contains(&time), key, &problem);
                }
                TransferCurve::Linear { latency, bandwidth } => {
                    problems.check_range(format!("{key}.latency"), *latency, TIME);
                    problems.check_range(
                        format!("{key}.bandwidth"),
                        *bandwidth,
                        Bandwidth::from_bytes_per_second(1_000_000)..,
                    );
                }
            }
        }
        problems.into_result()
    }
}

balar_protocol::counters! {
    /// The counters of a migration link, for each direction.
    pub struct MigrationLinkCounters {
        /// transfers
        transfers: "transfer",
        /// bytes transferred
        bytes: "byte",
        /// bytes of the smallest transfer
        smallest: "byte" maximum,
        /// bytes of the largest transfer
        largest: "byte" maximum,
        /// time that transfers took
        busy_time: "ps",
        /// time that faults occupied the link before their pages moved
        fault_time: "ps",
        /// time that transfers waited for those before them
        queue_time: "ps",
        /// transfers of at most 4 KiB
        transfers_to_4_kib: "transfer",
        /// transfers beyond 4 KiB, at most 64 KiB
        transfers_to_64_kib: "transfer",
        /// transfers beyond 64 KiB, at most 512 KiB
        transfers_to_512_kib: "transfer",
        /// transfers beyond 512 KiB
        transfers_beyond_512_kib: "transfer",
    }
}

/// The catalogue's entry.
pub const DEFINITION: UnitDefinition = UnitDefinition {
    name: "MigrationLink",
    summary: "a link between host and GPU as pages of unified memory cross it: a channel for each direction",
    parameters: MigrationLinkParameters::DEFINITIONS,
    check: MigrationLinkParameters::check,
    ports: &[PortDefinition::server("driver", Protocol::Migration, "the driver of unified memory")],
    counters: MigrationLinkCounters::DEFINITIONS,
    provides: nothing,
    weight: 1,
    build,
};

fn build(text: &str, context: &BuildContext) -> Result<Box<dyn Unit>, BuildError> {
    let parameters: MigrationLinkParameters = ron::from_str(text)?;
    parameters.check_values()?;
    Ok(Box::new(MigrationLink::new(parameters, context.required_port("driver")?)))
}

/// One direction.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Channel {
    counters: MigrationLinkCounters,
    /// When its last transfer is over.
    free_at: SimTime,
}

impl Channel {
    /// A transfer is asked for at `now`; returns when its bytes begin to cross the link, and when they are over.
    fn transfer(&mut self, now: SimTime, bytes: u64, service: SimTime, duration: SimTime) -> (SimTime, SimTime) {
        let counters = &mut self.counters;
        let start = self.free_at.max(now);
        self.free_at = start + service + duration;
        counters.queue_time += (start - now).0;
        counters.fault_time += service.0;
        counters.busy_time += duration.0;
        counters.bytes += bytes;
        counters.largest = counters.largest.max(bytes);
        counters.smallest = if counters.transfers == 0 { bytes } else { counters.smallest.min(bytes) };
        counters.transfers += 1;
        *match bytes >> 10 {
            0..=4 => &mut counters.transfers_to_4_kib,
            5..=64 => &mut counters.transfers_to_64_kib,
            65..=512 => &mut counters.transfers_to_512_kib,
            _ => &mut counters.transfers_beyond_512_kib,
        } += 1;
        (start + service, self.free_at)
    }
}

/// Everything that changes.
#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    to_device: Channel,
    to_host: Channel,
}

/// The unit.
struct MigrationLink {
    parameters: MigrationLinkParameters,
    driver: PortId,
    state: State,
}

impl MigrationLink {
    fn new(parameters: MigrationLinkParameters, driver: PortId) -> MigrationLink {
        MigrationLink { parameters, driver, state: State::default() }
    }
}

impl Unit for MigrationLink {
    fn advance(&mut self, _window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        while let Some(message) = inbox.take() {
            let Payload::Migration(MigrationMessage::Transfer { id, bytes, direction, faults }) = message.payload
            else {
                message.payload.unexpected("driver")
            };
            let (began, over) = match direction {
                Direction::ToDevice => {
                    let service = SimTime(self.parameters.fault_time.0.saturating_mul(u64::from(faults)));
                    let duration = self.parameters.to_device.time(bytes);
                    self.state.to_device.transfer(message.time, bytes, service, duration)
                }
                Direction::ToHost => {
                    let duration = self.parameters.to_host.time(bytes);
                    self.state.to_host.transfer(message.time, bytes, SimTime::ZERO, duration)
                }
            };
            out.send(self.driver, over, Payload::Migration(MigrationMessage::Transferred { id, began }));
        }
        NextWake::OnMessage
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        self.state.to_device.counters.write_of("to_device", sink);
        self.state.to_host.counters.write_of("to_host", sink);
    }

    fn outstanding(&self) -> Option<String> {
        None
    }

    fn save(&self) -> Result<Vec<u8>, StateError> {
        save_state(&self.state)
    }

    fn restore(&mut self, state: &[u8], _codes: &dyn CodeSource) -> Result<(), StateError> {
        self.state = restore_state(state)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Bench;
    use crate::test_support::{Numbers, check_cuts_and_states};

    const DRIVER: PortId = PortId(0);

    fn link(parameters: &str) -> MigrationLink {
        MigrationLink::new(MigrationLinkParameters::from_ron(parameters).expect(parameters), DRIVER)
    }

    fn transfer(id: u32, kib: u64, direction: Direction, faults: u32) -> Payload {
        Payload::Migration(MigrationMessage::Transfer { id, bytes: kib << 10, direction, faults })
    }

    #[test]
    fn transfers_of_one_direction_follow_each_other_and_faults_are_serviced_before() {
        let curve = r#"Arctangent(asymptote: 12.0, per_kib: 0.07292)"#;
        let mut unit = link(&format!(r#"(to_device: {curve}, to_host: {curve}, fault_time: "45 us")"#));
        let mut bench = Bench::new(&[SimTime(1000)]);
        bench.deliver(SimTime(0), DRIVER, transfer(1, 4, Direction::ToDevice, 1));
        bench.deliver(SimTime(0), DRIVER, transfer(2, 60, Direction::ToDevice, 0));
        bench.deliver(SimTime(0), DRIVER, transfer(3, 64, Direction::ToHost, 0));
        let sent = bench.run(&mut unit, SimTime(1000), SimTime(1_000_000_000));
        let mut times: Vec<_> = sent
            .into_iter()
            .map(|(time, _, payload)| match payload {
                Payload::Migration(MigrationMessage::Transferred { id, .. }) => (id, (time.0 - 1000).div_ceil(1000)),
                other => panic!("unexpected {other:?}"),
            })
            .collect();
        times.sort_unstable();
        // Section 1.4 of the specification: 1.759 us, 5.564 us and 5.876 us.
        assert_eq!(times, [(1, 46_760), (2, 52_324), (3, 5_876)]);
        let counters = &unit.state.to_device.counters;
        assert_eq!((counters.fault_time, counters.bytes, counters.transfers), (45_000_000, 64 << 10, 2));
    }

    #[test]
    fn times_out_of_range_are_errors() {
        let problems = |parameters: &str| {
            let parameters = MigrationLinkParameters::from_ron(parameters).expect(parameters);
            parameters.check_values().err().map_or(String::new(), |error| error.to_string())
        };
        for (legal, illegal, problem) in [
            (
                "(to_device: Arctangent(asymptote: 0.001, per_kib: 1e-6))",
                "(to_device: Arctangent(asymptote: 0, per_kib: 0.5))",
                "to_device.asymptote: expected 0.001 to 1000000, found 0",
            ),
            (
                r#"(to_host: Linear(latency: "1 s", bandwidth: "1 MB/s"))"#,
                r#"(to_host: Linear(latency: "1 s", bandwidth: "999 kB/s"))"#,
                "to_host.bandwidth: expected at least 1 MB/s, found 999 kB/s",
            ),
            (
                r#"(to_device: Table([("2 MiB", "1 s")]))"#,
                r#"(to_device: Table([("1 MiB", "1 s")]))"#,
                "to_device: expected at most 1 s for 2 MiB, found 2 s",
            ),
            (r#"(fault_time: "1 s")"#, r#"(fault_time: "2 s")"#, "fault_time: expected at most 1 s, found 2 s"),
        ] {
            assert_eq!((problems(legal), problems(illegal)), (String::new(), problem.to_owned()), "{legal}, {illegal}");
        }
    }

    #[test]
    fn nothing_depends_on_windows_and_a_state_goes_on() {
        let mut numbers = Numbers::new(3);
        let arrival = |id| {
            let direction = if numbers.below(2) == 0 { Direction::ToDevice } else { Direction::ToHost };
            let message = transfer(id, 4 * (1 + numbers.below(500)), direction, numbers.below(3) as u32);
            (SimTime(numbers.below(9_000_000_000)), DRIVER, message)
        };
        let script = (0..200).map(arrival).collect();
        let build = || -> Box<dyn Unit> { Box::new(link(r#"(fault_time: "45 us")"#)) };
        check_cuts_and_states(build, 1, SimTime(1_000_000), script, |_| Vec::new(), SimTime(60_000_000_000));
    }
}
