//! An HBM stack: channels behind the L2 slices. Port `slice[i]` leads to channel i x channels / ports; where there are fewer ports than
//! channels, to as many channels from there on as it takes to use all of them, over which the lines of the slice spread.

use crate::catalogue::bounds::{CLOCK, MEMORY};
use crate::catalogue::{
    BuildContext, BuildError, Capability, ParameterSet, PeakRate, PortDefinition, Role, UnitDefinition,
};
use crate::dram::{ChannelCounters, Channels, MemoryModel};
use crate::engine::{CodeSource, Inbox, NextWake, Outbox, StateError, Unit, Window};
use crate::interleave::SliceMap;
use balar_protocol::by_launch::LaunchTotals;
use balar_protocol::memory::LINE_BYTES;
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Bytes, Frequency, Protocol};

crate::parameters! {
    /// An HBM stack, or a chip of GDDR memory.
    pub struct HbmStackParameters {
        /// clock of the memory interface, two transfers a cycle (V100: 877 MHz)
        #[range(CLOCK)]
        clock: Frequency,
        /// data capacity of the stack (V100: 4 GiB)
        #[range(MEMORY)]
        capacity: Bytes,
        /// channels of the stack (HBM2: 8 of 128 bits)
        #[range(1..=4096)]
        channels: u32 = "8",
        /// width of a channel in bits (HBM2: 128; GDDR6: 16), which the device reports; the bandwidth of a channel is up to its model
        #[range(1..=1 << 16)]
        channel_bits: u32 = "128",
        /// Simple(latency, bandwidth of the stack) or BankTimed(timing: (...), controller_latency), the latter calibrated with the 425-cycle random access of the V100
        model: MemoryModel = r#"BankTimed(controller_latency: "72 ns")"#,
    }
}

/// The HBM stack in the catalogue of units.
pub const DEFINITION: UnitDefinition = UnitDefinition {
    name: "HbmStack",
    summary: "stack of high-bandwidth memory with its controllers",
    parameters: HbmStackParameters::DEFINITIONS,
    check: HbmStackParameters::check,
    ports: &[PortDefinition {
        name: "slice",
        protocol: Protocol::Memory,
        role: Role::Server,
        indexed: true,
        required: true,
        meaning: "the L2 slices whose lines it holds",
    }],
    counters: ChannelCounters::DEFINITIONS,
    provides,
    weight: 8,
    build: |text, context| Ok(Box::new(HbmStack::new(ron::from_str(text)?, context)?)),
};

fn provides(text: &str) -> Vec<Capability> {
    let Ok(HbmStackParameters { clock, capacity, channels, channel_bits, model }) = ron::from_str(text) else {
        return Vec::new();
    };
    let bus_bits = channels.saturating_mul(channel_bits);
    let per_second = match model {
        MemoryModel::Simple { bandwidth, .. } => bandwidth.bytes_per_second(),
        // Two transfers a cycle.
        MemoryModel::BankTimed { .. } => clock.hertz().saturating_mul(u64::from(bus_bits)) / 4,
    };
    vec![
        Capability::DeviceMemory { capacity, clock, bus_bits },
        Capability::Peak { what: PeakRate::DeviceMemoryBytes, per_second },
    ]
}

/// An HBM stack.
#[derive(Debug)]
pub struct HbmStack {
    /// The clients behind the ports, by `PortId`.
    behind: Vec<Behind>,
    /// Ports of all stacks of the row, over which lines spread before they come here.
    ports_of_row: u64,
    channels: Channels,
}

/// The channels that a port leads to.
#[derive(Clone, Debug, Default)]
struct Behind {
    first: usize,
    /// How lines spread over several.
    spread: Option<SliceMap>,
}

impl Behind {
    /// The client behind port `index` of `ports`.
    fn new(index: usize, ports: usize, channels: usize) -> Behind {
        let (first, end) = (index * channels / ports, (index + 1) * channels / ports);
        Behind { first, spread: (end > first + 1).then(|| SliceMap::xor((end - first) as u32)) }
    }

    /// The channel that has a line; lines follow each other over `ports_of_row` ports.
    #[inline]
    fn channel(&self, line: u64, ports_of_row: u64) -> usize {
        match &self.spread {
            Some(map) => self.first + map.slice_of(line / LINE_BYTES / ports_of_row * LINE_BYTES) as usize,
            None => self.first,
        }
    }
}

impl HbmStack {
    /// A stack with the wired ports of `context`; the stacks of its row share the lines.
    pub fn new(parameters: HbmStackParameters, context: &BuildContext) -> Result<HbmStack, BuildError> {
        parameters.range_problems().into_result()?;
        let ports = context.ports.count("slice");
        let mut behind = vec![Behind::default(); ports];
        for (i, (_, port)) in context.ports.row("slice").enumerate() {
            behind[usize::from(port.0)] = Behind::new(i, ports, parameters.channels as usize);
        }
        let stacks = context.row_length.max(1);
        let interleave = parameters.channels.saturating_mul(stacks);
        let ports_of_row = ports.max(1) as u64 * u64::from(stacks);
        let channels = Channels::new(parameters.clock, &parameters.model, parameters.channels, interleave, false)?;
        Ok(HbmStack { behind, ports_of_row, channels })
    }
}

impl Unit for HbmStack {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        let (behind, ports_of_row) = (&self.behind, self.ports_of_row);
        self.channels.advance(window, inbox, out, |port, line| behind[usize::from(port.0)].channel(line, ports_of_row))
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        self.channels.statistics(sink);
    }

    fn shares(&mut self, totals: &mut LaunchTotals) {
        self.channels.shares(totals);
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
    use crate::test_support::{check_cuts_and_states, random_requests, with_context};
    use balar_protocol::SimTime;

    fn stack(model: &str) -> Box<dyn Unit> {
        let text = format!(r#"(clock: "877 MHz", capacity: "4 GiB", model: {model}, channels: 2)"#);
        let parameters = HbmStackParameters::from_ron(&text).expect("parameters");
        let ports = [("slice", 0), ("slice", 1)];
        Box::new(with_context(&ports, 1, |context| HbmStack::new(parameters, context)).expect("a stack"))
    }

    /// Bursts of few banks with idle stretches between them, in which refreshes fall due.
    #[test]
    fn nothing_depends_on_windows_and_a_state_goes_on() {
        let none = |_: &_| Vec::new();
        for model in [
            r#"BankTimed(controller_latency: "72 ns", timing: (write_high: 6, write_low: 2, row_hit_cap: 3, t_refi: 1600))"#,
            r#"BankTimed(controller_latency: "72 ns", timing: (refresh: AllBank, t_refi: 900, banks: 8))"#,
            r#"BankTimed(controller_latency: "72 ns", timing: (masked_writes: false, write_high: 6, write_low: 2))"#,
            r#"Simple(latency: "90 ns", bandwidth: "100 GB/s")"#,
        ] {
            let mut script = random_requests(4, 400, 4000, 700, 2);
            let later = random_requests(5, 300, 100, 400, 2);
            script.extend(later.into_iter().map(|(time, port, payload)| (time + SimTime(5_000_000), port, payload)));
            check_cuts_and_states(|| stack(model), 2, SimTime(1000), script, none, SimTime(9_000_000));
        }
    }

    /// Lines as two slices of a row of four stacks have them.
    #[test]
    fn the_lines_of_a_slice_spread_over_its_channels() {
        let counts = |index, ports, channels: usize| {
            let behind = Behind::new(index, ports, channels);
            let mut counts = vec![0; channels];
            for number in 0..4096 {
                counts[behind.channel((number * 4 * ports as u64 + index as u64) * LINE_BYTES, 4 * ports as u64)] += 1;
            }
            counts
        };
        assert_eq!(counts(1, 2, 8), [0, 0, 0, 0, 1024, 1024, 1024, 1024]);
        assert_eq!(counts(1, 8, 4), [4096, 0, 0, 0]);
        assert_eq!(counts(1, 2, 3), [0, 2048, 2048]);
    }
}
