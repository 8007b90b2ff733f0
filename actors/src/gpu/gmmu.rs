//! The GMMU: answers the TLBs of the SMs from its own TLB or by walking the page table.
//!
//! Every page is resident and mapped onto itself; an address never faults here.

use crate::catalogue::{
    BuildContext, BuildError, ParameterProblem, ParameterSet, PortDefinition, Role, UnitDefinition, nothing,
};
use crate::engine::{CodeSource, Inbox, NextWake, Outbox, StateError, Unit, Window, restore_state, save_state};
use balar_host::memory::is_pinned;
use balar_protocol::statistics::StatisticSink;
use balar_protocol::translation::{Aperture, Translation, TranslationMessage};
use balar_protocol::{Bytes, Clock, Frequency, Payload, Protocol};
use serde::{Deserialize, Serialize};

crate::parameters! {
    /// A GMMU.
    pub struct GmmuParameters {
        /// clock of the GMMU
        clock: Frequency,
        /// bytes of a page, a power of two
        page_size: Bytes = r#""2 MiB""#,
        /// entries of the TLB, fully associative, least recently used goes first (P100: 65, from its latency knee at 2080 MiB)
        entries: u32 = "65",
        /// bytes an entry covers, a power of two and at least a page (P100: 32 MiB)
        entry_reach: Bytes = r#""32 MiB""#,
        /// cycles of a TLB hit
        hit_latency: u32 = "1",
        /// further cycles of a page walk (P100: 110 cycles beyond the second TLB's reach)
        walk_latency: u32 = "110",
        /// walks at the same time
        walkers: u32 = "8",
        /// requests a cycle
        requests_per_cycle: u32 = "1",
    }
}

balar_protocol::counters! {
    /// What a GMMU counts.
    pub struct GmmuCounters {
        /// translation requests
        requests: "request",
        /// requests answered from the TLB
        tlb_hits: "request",
        /// requests that waited for a walk, their own or one under way
        tlb_misses: "request",
        /// page walks
        walks: "walk",
        /// cycles from arrival to answer, summed over requests
        latency: "cycle",
    }
}

/// The GMMU in the catalogue of units.
pub const DEFINITION: UnitDefinition = UnitDefinition {
    name: "Gmmu",
    summary: "memory-management unit of the GPU: second-level TLB and page walks",
    parameters: GmmuParameters::DEFINITIONS,
    check: GmmuParameters::check,
    ports: &[PortDefinition {
        name: "sm",
        protocol: Protocol::Translation,
        role: Role::Server,
        indexed: true,
        required: true,
        meaning: "the TLBs of the SMs",
    }],
    counters: GmmuCounters::DEFINITIONS,
    provides: nothing,
    weight: 2,
    build: |text, context| Ok(Box::new(Gmmu::new(ron::from_str(text)?, context)?)),
};

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Entry {
    /// Address / reach.
    tag: u64,
    last_use: u64,
    /// The cycle its walk ends.
    ready: u64,
}

/// Everything that changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct State {
    entries: Vec<Entry>,
    uses: u64,
    /// First free request slot (cycle x requests a cycle).
    free: u64,
    /// The cycle each walker is free again.
    walkers: Vec<u64>,
    counters: GmmuCounters,
}

/// A GMMU. It answers through the port at which it was asked.
#[derive(Debug)]
pub struct Gmmu {
    clock: Clock,
    parameters: GmmuParameters,
    state: State,
}

impl Gmmu {
    /// A GMMU with the wired ports of `context`.
    pub fn new(parameters: GmmuParameters, _context: &BuildContext) -> Result<Gmmu, BuildError> {
        let mut problems = Vec::new();
        for (key, value) in [
            ("entries", parameters.entries),
            ("walkers", parameters.walkers),
            ("requests_per_cycle", parameters.requests_per_cycle),
        ] {
            if value == 0 {
                problems.push(ParameterProblem::new(key, "expected at least 1, found 0"));
            }
        }
        for (key, value) in [("page_size", parameters.page_size), ("entry_reach", parameters.entry_reach)] {
            if !value.0.is_power_of_two() {
                problems.push(ParameterProblem::new(key, format!("expected a power of two, found {value}")));
            }
        }
        if parameters.entry_reach < parameters.page_size {
            problems.push(ParameterProblem::new("entry_reach", "expected at least a page"));
        }
        if !problems.is_empty() {
            return Err(BuildError::Parameters(problems));
        }
        Ok(Gmmu {
            clock: Clock::new(parameters.clock),
            state: State {
                entries: Vec::with_capacity(parameters.entries as usize),
                uses: 0,
                free: 0,
                walkers: vec![0; parameters.walkers as usize],
                counters: GmmuCounters::default(),
            },
            parameters,
        })
    }

    /// The cycle in which the translation of `address`, asked for in `cycle`, is known.
    fn translate(&mut self, address: u64, cycle: u64) -> u64 {
        let tag = address / self.parameters.entry_reach.0;
        self.state.uses += 1;
        let hit = cycle + u64::from(self.parameters.hit_latency);
        if let Some(entry) = self.state.entries.iter_mut().find(|entry| entry.tag == tag) {
            entry.last_use = self.state.uses;
            if entry.ready <= cycle {
                self.state.counters.tlb_hits += 1;
            } else {
                self.state.counters.tlb_misses += 1;
            }
            return hit.max(entry.ready);
        }
        self.state.counters.tlb_misses += 1;
        self.state.counters.walks += 1;
        let mut start = hit;
        if let Some(walker) = self.state.walkers.iter_mut().min() {
            start = start.max(*walker);
            *walker = start + u64::from(self.parameters.walk_latency);
        }
        let ready = start + u64::from(self.parameters.walk_latency);
        let entry = Entry { tag, last_use: self.state.uses, ready };
        if self.state.entries.len() < self.parameters.entries as usize {
            self.state.entries.push(entry);
        } else if let Some(oldest) = self.state.entries.iter_mut().min_by_key(|entry| entry.last_use) {
            *oldest = entry;
        }
        ready
    }
}

impl Unit for Gmmu {
    fn advance(&mut self, _window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        let rate = u64::from(self.parameters.requests_per_cycle);
        let page_bytes = self.parameters.page_size.0;
        let page_bits = page_bytes.trailing_zeros() as u8;
        while let Some(message) = inbox.take() {
            let Payload::Translation(TranslationMessage::Request { address, id, .. }) = message.payload else {
                // It moves no page, so nobody has a range to report as dropped.
                message.payload.unexpected("sm[*]")
            };
            let arrived = self.clock.cycle_at_or_after(message.time);
            let slot = self.state.free.max(arrived * rate);
            self.state.free = slot + 1;
            let ready = self.translate(address, slot / rate);
            self.state.counters.requests += 1;
            self.state.counters.latency += ready - arrived;
            let page = address & !(page_bytes - 1);
            let aperture = if is_pinned(page) { Aperture::Host } else { Aperture::Device };
            let translation = Translation { page, valid_bits: page_bits, aperture, writable: true, followed: false };
            let response = TranslationMessage::Response { id, translation };
            out.send(message.port, self.clock.time_of(ready), Payload::Translation(response));
        }
        NextWake::OnMessage
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        self.state.counters.write(sink);
    }

    fn outstanding(&self) -> Option<String> {
        None
    }

    fn save(&self) -> Result<Vec<u8>, StateError> {
        save_state(&self.state)
    }

    fn restore(&mut self, state: &[u8], _codes: &dyn CodeSource) -> Result<(), StateError> {
        let state: State = restore_state(state)?;
        let (entries, walkers) = (self.parameters.entries as usize, self.parameters.walkers as usize);
        if state.entries.len() > entries || state.walkers.len() != walkers {
            return Err(StateError::Mismatch("another number of entries or walkers".to_owned()));
        }
        self.state = state;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Bench;
    use crate::test_support::{Numbers, check_cuts_and_states, counter, with_context};
    use balar_protocol::translation::PageAccess;
    use balar_protocol::{PortId, SimTime};

    const MIB: u64 = 1 << 20;

    fn gmmu(parameters: &str) -> (Gmmu, Bench) {
        let parameters = GmmuParameters::from_ron(&format!(r#"(clock: "1 GHz", {parameters})"#)).expect("parameters");
        let unit = with_context(&[("sm", 0), ("sm", 1)], 1, |context| Gmmu::new(parameters, context)).expect("gmmu");
        (unit, Bench::new(&[SimTime(1000); 2]))
    }

    fn ask(bench: &mut Bench, ns: u64, port: u16, address: u64, id: u32) {
        let request = TranslationMessage::Request { address, id, access: PageAccess::Read };
        bench.deliver(SimTime(ns * 1000), PortId(port), Payload::Translation(request));
    }

    fn answers(unit: &mut Gmmu, bench: &mut Bench) -> Vec<(u64, u16, u32, u64)> {
        let sent = bench.run(unit, SimTime(10_000), SimTime(2_000_000));
        let answer = |(time, port, payload): (SimTime, PortId, Payload)| match payload {
            Payload::Translation(TranslationMessage::Response { id, translation }) => {
                assert_eq!(1 << translation.valid_bits, 2 * MIB);
                (time.0 / 1000, port.0, id, translation.page)
            }
            other => panic!("unexpected {other:?}"),
        };
        sent.into_iter().map(answer).collect()
    }

    #[test]
    fn a_miss_walks_and_later_requests_hit() {
        let (mut unit, mut bench) = gmmu("hit_latency: 5, walk_latency: 100");
        ask(&mut bench, 10, 0, 64 * MIB + 5, 1);
        ask(&mut bench, 20, 1, 67 * MIB, 2);
        ask(&mut bench, 300, 1, 95 * MIB, 3);
        let answers = answers(&mut unit, &mut bench);
        assert_eq!(
            answers,
            [(116, 0, 1, 64 * MIB), (116, 1, 2, 66 * MIB), (306, 1, 3, 94 * MIB)],
            "the second waits for the walk of the first"
        );
        assert_eq!(counter(&unit, "walks"), 1);
        assert_eq!((counter(&unit, "tlb_hits"), counter(&unit, "tlb_misses")), (1, 2));
    }

    #[test]
    fn the_least_recently_used_entry_goes_and_walkers_are_few() {
        let (mut unit, mut bench) = gmmu("entries: 2, walkers: 1, hit_latency: 5, walk_latency: 100");
        for (i, page) in [0u64, 1, 0, 2, 0, 1].into_iter().enumerate() {
            ask(&mut bench, 10 + 300 * i as u64, 0, page * 32 * MIB, i as u32);
        }
        answers(&mut unit, &mut bench);
        assert_eq!(counter(&unit, "walks"), 4, "0, 1, 2 and 1 again");

        let (mut unit, mut bench) = gmmu("walkers: 1, hit_latency: 5, walk_latency: 100");
        ask(&mut bench, 10, 0, 0, 0);
        ask(&mut bench, 10, 0, 32 * MIB, 1);
        let times: Vec<u64> = answers(&mut unit, &mut bench).iter().map(|answer| answer.0).collect();
        assert_eq!(times, [116, 216]);
    }

    #[test]
    fn nothing_depends_on_windows_and_a_state_goes_on() {
        let mut numbers = Numbers::new(8);
        let arrival = |id| {
            let request =
                TranslationMessage::Request { address: numbers.below(40) * 32 * MIB, id, access: PageAccess::Read };
            let (time, port) = (SimTime(numbers.below(8_000_000)), PortId(numbers.below(2) as u16));
            (time, port, Payload::Translation(request))
        };
        let script = (0..400).map(arrival).collect();
        let build = || -> Box<dyn Unit> { Box::new(gmmu("entries: 16, walkers: 2").0) };
        check_cuts_and_states(build, 2, SimTime(1000), script, |_| Vec::new(), SimTime(20_000_000));
    }
}
