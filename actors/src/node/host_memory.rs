//! The host's memory: DDR channels behind one controller, lines interleaved over them.

use crate::catalogue::bounds::{CLOCK, MEMORY};
use crate::catalogue::{BuildContext, BuildError, ParameterSet, PortDefinition, Role, UnitDefinition, nothing};
use crate::dram::{ChannelCounters, Channels, MemoryModel};
use crate::engine::{CodeSource, Inbox, NextWake, Outbox, StateError, Unit, Window};
use balar_protocol::by_launch::LaunchTotals;
use balar_protocol::memory::LINE_BYTES;
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Bytes, Frequency, Protocol};

crate::parameters! {
    /// The host's memory.
    pub struct HostMemoryParameters {
        /// clock of the memory interface, two transfers a cycle (DDR4-2666: 1333 MHz)
        #[range(CLOCK)]
        clock: Frequency,
        /// data capacity
        #[range(MEMORY)]
        capacity: Bytes,
        /// channels
        #[range(1..=4096)]
        channels: u32 = "4",
        /// Simple(latency, bandwidth of all channels) or BankTimed(timing: (...), controller_latency); by default four channels of DDR4-2666 with 21.3 GB/s each and a load latency of 90 ns (assumed)
        model: MemoryModel = r#"Simple(latency: "90 ns", bandwidth: "85.3 GB/s")"#,
    }
}

/// The host memory in the catalogue of units.
pub const DEFINITION: UnitDefinition = UnitDefinition {
    name: "HostMemory",
    summary: "the host's DDR memory",
    parameters: HostMemoryParameters::DEFINITIONS,
    check: HostMemoryParameters::check,
    ports: &[PortDefinition {
        name: "client",
        protocol: Protocol::Memory,
        role: Role::Server,
        indexed: true,
        required: false,
        meaning: "who reads and writes it",
    }],
    counters: ChannelCounters::DEFINITIONS,
    provides: nothing,
    weight: 2,
    build: |text, context| Ok(Box::new(HostMemory::new(ron::from_str(text)?, context)?)),
};

/// The host's memory.
#[derive(Debug)]
pub struct HostMemory {
    count: u64,
    channels: Channels,
}

impl HostMemory {
    /// A memory with the wired ports of `context`.
    pub fn new(parameters: HostMemoryParameters, _context: &BuildContext) -> Result<HostMemory, BuildError> {
        parameters.range_problems().into_result()?;
        let count = parameters.channels;
        let channels = Channels::new(parameters.clock, &parameters.model, count, count, true)?;
        Ok(HostMemory { count: u64::from(count), channels })
    }
}

impl Unit for HostMemory {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        let count = self.count;
        self.channels.advance(window, inbox, out, |_, line| (line / LINE_BYTES % count) as usize)
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        self.channels.statistics(sink);
    }

    /// It counts nothing by launch: the counts of its channels by launch are dropped.
    fn shares(&mut self, _: &mut LaunchTotals) {
        self.channels.shares(&mut LaunchTotals::default());
    }

    fn outstanding(&self) -> Option<String> {
        self.channels.outstanding()
    }

    fn save(&self) -> Result<Vec<u8>, StateError> {
        self.channels.save()
    }

    fn restore(&mut self, state: &[u8], _codes: &dyn CodeSource) -> Result<(), StateError> {
        self.channels.restore(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Bench;
    use crate::lines::LineRange;
    use crate::test_support::{
        check_cuts_and_states, counter, load, random_requests, request, responses, with_context,
    };
    use balar_protocol::memory::{MemoryBurst, MemoryKind, MemoryMessage};
    use balar_protocol::{Payload, PortId, SimTime};

    #[test]
    fn lines_interleave_over_the_channels() {
        let parameters = HostMemoryParameters::from_ron(
            r#"(model: Simple(latency: "90 ns", bandwidth: "25.6 GB/s"), clock: "1333 MHz", capacity: "64 GiB", channels: 2)"#,
        )
        .expect("parameters");
        let mut unit = with_context(&[("client", 0)], 1, |c| HostMemory::new(parameters, c)).expect("memory");
        let mut bench = Bench::new(&[SimTime(1000)]);
        for id in 0..4 {
            bench.deliver(SimTime(1000), PortId(0), request(load(u64::from(id) * 128, id, 0b1111)));
        }
        let sent = responses(&bench.run(&mut unit, SimTime(5000), SimTime(200_000)));
        let times: Vec<_> = sent.iter().map(|(time, _, response)| (response.id, time.0)).collect();
        // 128 bytes take 10 ns of a channel with 12.8 GB/s.
        assert_eq!(times, [(0, 92_000), (1, 92_000), (2, 102_000), (3, 102_000)]);
        assert_eq!(counter(&unit, "sectors_read"), 16);
        assert_eq!(counter(&unit, "busy_time"), 40_000);
    }

    /// Several channels answer through one port: their order is that of simulated time, too.
    #[test]
    fn nothing_depends_on_windows_and_a_state_goes_on() {
        for model in
            [r#"BankTimed(controller_latency: "20 ns")"#, r#"Simple(latency: "90 ns", bandwidth: "25.6 GB/s")"#]
        {
            let build = || -> Box<dyn Unit> {
                let text = format!(r#"(clock: "1333 MHz", capacity: "64 GiB", model: {model}, channels: 4)"#);
                let parameters = HostMemoryParameters::from_ron(&text).expect("parameters");
                let ports = [("client", 0), ("client", 1)];
                Box::new(with_context(&ports, 1, |c| HostMemory::new(parameters, c)).expect("memory"))
            };
            let script = random_requests(6, 700, 600, 1500, 2);
            check_cuts_and_states(build, 2, SimTime(1000), script, |_| Vec::new(), SimTime(8_000_000));
        }
    }

    /// (arrival in ns, address, bytes, kind) of the requests.
    const TRAFFIC: [(u64, u64, u32, MemoryKind); 7] = [
        (1000, 0, 4096, MemoryKind::Load),
        (1000, 1 << 20, 4096, MemoryKind::Load),
        (1003, 64, 128, MemoryKind::Store),
        (1010, (1 << 21) + 100, 5000, MemoryKind::Store),
        (1011, 0x4000, 1, MemoryKind::Load),
        (1500, 4096, 4096, MemoryKind::Load),
        (1500, 40, 300, MemoryKind::Store),
    ];

    /// When each of the requests of [`TRAFFIC`] is done, by number, and all counters; asked for in bursts or line by line.
    fn serve(model: &str, channels: u32, in_bursts: bool, window: u64) -> (Vec<SimTime>, Vec<u64>) {
        let text = format!(r#"(model: {model}, clock: "1333 MHz", capacity: "64 GiB", channels: {channels})"#);
        let parameters = HostMemoryParameters::from_ron(&text).expect("parameters");
        let mut unit = with_context(&[("client", 0)], 1, |c| HostMemory::new(parameters, c)).expect("memory");
        let mut bench = Bench::new(&[SimTime(20_000)]);
        for (id, (time, address, bytes, kind)) in (0..).zip(TRAFFIC) {
            let time = SimTime(time * 1000);
            if in_bursts {
                let burst = MemoryBurst { address, bytes, id, kind };
                bench.deliver(time, PortId(0), Payload::Memory(MemoryMessage::Burst(burst)));
                continue;
            }
            let mut lines = LineRange::new(address, u64::from(bytes));
            while let Some(line) = lines.next_request(kind, id) {
                bench.deliver(time, PortId(0), request(line));
            }
        }
        let mut done = vec![SimTime::ZERO; TRAFFIC.len()];
        let mut answers = 0;
        for (time, _, payload) in bench.run(&mut unit, SimTime(window), SimTime(20_000_000)) {
            let id = match payload {
                Payload::Memory(MemoryMessage::Response(response)) => response.id,
                Payload::Memory(MemoryMessage::BurstDone(burst)) => burst.id,
                other => panic!("unexpected {other:?}"),
            };
            answers += 1;
            done[id as usize] = done[id as usize].max(time);
        }
        let lines = TRAFFIC.iter().map(|(_, address, bytes, _)| LineRange::new(*address, u64::from(*bytes)).count());
        assert_eq!(answers, if in_bursts { TRAFFIC.len() as u32 } else { lines.sum() });
        assert_eq!(unit.outstanding(), None);
        let mut sink = StatisticSink::default();
        unit.statistics(&mut sink);
        (done, sink.rows.iter().map(|row| row.value).collect())
    }

    #[test]
    fn a_burst_takes_as_long_and_counts_as_much_as_its_lines() {
        for model in
            [r#"Simple(latency: "90 ns", bandwidth: "85.3 GB/s")"#, r#"BankTimed(controller_latency: "30 ns")"#]
        {
            for channels in [1, 4] {
                let lines = serve(model, channels, false, 20_000);
                for window in [20_000, 7_000, 1_000, 333] {
                    let bursts = serve(model, channels, true, window);
                    assert_eq!(bursts, lines, "{model} of {channels} channels in windows of {window} ps");
                }
            }
        }
    }

    #[test]
    fn bursts_do_not_depend_on_windows_and_their_state_goes_on() {
        for model in
            [r#"Simple(latency: "90 ns", bandwidth: "85.3 GB/s")"#, r#"BankTimed(controller_latency: "30 ns")"#]
        {
            let build = || -> Box<dyn Unit> {
                let text = format!(r#"(model: {model}, clock: "1333 MHz", capacity: "64 GiB", channels: 4)"#);
                let parameters = HostMemoryParameters::from_ron(&text).expect("parameters");
                Box::new(with_context(&[("client", 0)], 1, |c| HostMemory::new(parameters, c)).expect("memory"))
            };
            let burst = |(id, (time, address, bytes, kind)): (u32, (u64, u64, u32, MemoryKind))| {
                let burst = MemoryBurst { address, bytes, id, kind };
                (SimTime(time * 1000), PortId(0), Payload::Memory(MemoryMessage::Burst(burst)))
            };
            let script = (0..).zip(TRAFFIC).map(burst).collect();
            check_cuts_and_states(build, 1, SimTime(20_000), script, |_| Vec::new(), SimTime(3_600_000));
        }
    }

    #[test]
    fn a_memory_without_channels_or_capacity_is_refused() {
        let problem = |channels: u32, capacity: &str| {
            let text = format!("(clock: \"1333 MHz\", capacity: {capacity:?}, channels: {channels})");
            let parameters = HostMemoryParameters::from_ron(&text).expect("parameters");
            parameters.range_problems().into_result().err().map_or(String::new(), |error| error.to_string())
        };
        assert_eq!([problem(1, "4 KiB"), problem(4096, "1 TiB")], ["", ""]);
        let few = "channels: expected 1 to 4096, found 0";
        assert_eq!([problem(0, "4 KiB"), problem(4097, "4 KiB")], [few, "channels: expected 1 to 4096, found 4097"]);
        assert_eq!(problem(0, "0 B"), format!("capacity: expected 4 KiB to 16 TiB, found 0 B; {few}"));
    }
}
