//! Units between a memory client and a memory server.
//!
//! ```text
//!               upstream                                     downstream
//!   +--------+  requests   +-------------------------------+  requests   +--------+
//!   |        | ----------> | on_request   forward, ask     | ----------> |        |
//!   | client |             |              on_wake          |             | server |
//!   |        | <---------- | answer       on_response      | <---------- |        |
//!   +--------+  responses  +-------------------------------+  responses  +--------+
//! ```

use super::numbers::Numbers;
use super::output_port::OutputPort;
use crate::catalogue::timeline::{Category, Section, TimelineLog, Track, TrackPlace, ValueKind};
use crate::catalogue::{BuildContext, BuildError, Capability, ParameterSet, PortDefinition, Problems, UnitDefinition};
use crate::engine::{CodeSource, Inbox, NextWake, Outbox, StateError, Unit, Window, restore_state, save_state};
use balar_protocol::memory::{Credits, MemoryMessage, MemoryRequest, MemoryResponse, ServedBy};
use balar_protocol::statistics::{CounterSet, StatisticSink};
use balar_protocol::{Clock, Frequency, Message, Payload, PortId, Protocol, SimTime};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt::Debug;

/// What a unit between a memory client and a memory server decides. Its fields are its state: parameters, counters, ports and the
/// requests under way are kept for it, and reached through [`Io`]. Serde writes it where a run is to be saved.
///
/// Whatever it does not decide passes: by default every request goes on to the server and every answer back to the client.
pub trait Interposer: Debug + Send + Serialize + DeserializeOwned + 'static {
    /// Its name in topologies: "WriteBuffer".
    const NAME: &'static str;
    /// One line: what it models.
    const SUMMARY: &'static str;
    /// Does it hold stores back? Then its client sends it a [`MemoryMessage::Drain`] when a warp waits for its stores. A unit in front of
    /// it gets these, too, and passes them on by itself.
    const HOLDS_STORES: bool = false;
    /// Do its copies have what its client stores? Otherwise a load after a store of the same sectors may not be answered from a copy that
    /// was asked for before.
    const UPDATES_COPIES: bool = false;
    /// Its parameters, declared with [`parameters!`](crate::parameters).
    type Parameters: ParameterSet + Debug + Send;
    /// Its counters, declared with [`counters!`](balar_protocol::counters).
    type Counters: CounterSet + Debug + Send + Serialize + DeserializeOwned;
    /// Its note about a request of its own ([`Io::ask`]), which it gets back with the answer.
    type Own: Debug + Send + Serialize + DeserializeOwned;

    /// A unit in its first state.
    fn new(parameters: &Self::Parameters) -> Self;

    /// Its clock, and the cost of passing through it.
    fn pace(parameters: &Self::Parameters) -> Pace;

    /// Notes the mistakes in the parameters beyond their types.
    fn check(parameters: &Self::Parameters, problems: &mut Problems) {
        let _ = (parameters, problems);
    }

    /// The client asks for something. Each request is to be answered once: [`Io::forward`] sends it on, and its answer comes back to
    /// the client by itself; a unit that keeps it calls [`Io::answer`], now or later.
    fn on_request(&mut self, request: MemoryRequest, io: &mut Io<Self>) {
        io.forward(request);
    }

    /// The answer to a request of its own has come.
    fn on_response(&mut self, response: MemoryResponse, own: Self::Own, io: &mut Io<Self>) {
        let _ = (response, own, io);
    }

    /// Another message is about to pass, in either direction: [`MemoryMessage::Drain`], upon which held requests go on, or a message of a
    /// kind that is yet to be.
    fn on_passing(&mut self, message: &MemoryMessage, io: &mut Io<Self>) {
        let _ = (message, io);
    }

    /// The first cycle in which it has something to do without a message; `None` where it has nothing to do. It is asked after
    /// everything that happens.
    fn next_wake(&self, parameters: &Self::Parameters) -> Option<u64> {
        let _ = parameters;
        None
    }

    /// The cycle of [`Interposer::next_wake`] has come. Messages of the cycle were handled before. It is called once in a cycle at most.
    fn on_wake(&mut self, io: &mut Io<Self>) {
        let _ = io;
    }

    /// Writes what it has to say beside its counters, once the run is over: rows, tables of what came up.
    fn records(&self, sink: &mut StatisticSink) {
        let _ = sink;
    }

    /// What it waits for beside answers, in words, for the report of a deadlock.
    fn outstanding(&self) -> Option<String> {
        None
    }
}

/// The clock of an [`Interposer`], and the cost of passing through it.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    clock: Clock,
    latency: u32,
    requests: u32,
    responses: u32,
}

impl Pace {
    /// Every message takes `latency` cycles from its arrival to its departure, and one leaves in a cycle in each direction.
    pub const fn new(clock: Frequency, latency: u32) -> Pace {
        Pace { clock: Clock::new(clock), latency, requests: 1, responses: 1 }
    }

    /// So many requests leave in a cycle; 0 = any number.
    #[must_use]
    pub const fn requests_per_cycle(self, requests: u32) -> Pace {
        Pace { requests, ..self }
    }

    /// So many responses leave in a cycle; 0 = any number, and then each leaves when it likes.
    #[must_use]
    pub const fn responses_per_cycle(self, responses: u32) -> Pace {
        Pace { responses, ..self }
    }
}

/// The origin of a request that went downstream.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum UnderWay<Own> {
    /// One of the client's, which has these numbers there.
    Passed { id: u32, return_port: u16 },
    /// One of the unit's own.
    Own(Own),
}

/// The wires of an interposer, and the state that the kit keeps for it.
#[derive(Debug)]
struct Link<Own> {
    upstream: PortId,
    downstream: PortId,
    clock: Clock,
    latency: u64,
    kept: Kept<Own>,
    notes: Option<Notes>,
}

/// The unit's track in the timeline, in a run that asks for one.
#[derive(Debug)]
struct Notes {
    log: TimelineLog,
    track: Track,
}

impl Notes {
    fn of(context: &BuildContext) -> Option<Notes> {
        let log = context.timeline()?;
        let name = context.path.strip_prefix(context.part).unwrap_or(context.path).trim_start_matches('.');
        let path = vec![Section::Units.name(), (context.unit, name.to_owned().into())];
        Some(Notes { track: log.track(TrackPlace::slices(context.gpu_tracks(), path)), log })
    }
}

/// The state that the kit keeps for an interposer: departures and requests under way.
#[derive(Debug, Serialize, Deserialize)]
struct Kept<Own> {
    requests: OutputPort,
    responses: OutputPort,
    under_way: Numbers<UnderWay<Own>>,
    /// Requests of the unit that leave when no others want to.
    idle: VecDeque<(MemoryRequest, Own)>,
    /// Requests of the client that it has no answer to.
    held: u64,
    /// Queue entries of the server that the client has paid for and that no request took, less those that requests of the unit took
    /// unpaid. Where nobody counts credits, nobody asks for it.
    credits: i64,
    /// The server gives credits.
    counts_credits: bool,
    /// When credits of the server come that it has given ahead of their time.
    coming_credits: VecDeque<SimTime>,
    /// The cycle of the last thing that happened.
    cycle: u64,
    /// The last cycle in which it was woken.
    woken: Option<u64>,
}

/// The acts that an [`Interposer`] may take at the moment of an event.
#[derive(Debug)]
pub struct Io<'a, T: Interposer> {
    /// Its parameters.
    pub parameters: &'a T::Parameters,
    /// Its counters.
    pub counters: &'a mut T::Counters,
    link: &'a mut Link<T::Own>,
    cycle: u64,
    out: &'a mut Outbox,
}

impl<T: Interposer> Io<'_, T> {
    /// The present cycle of the unit's clock.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Sends a request of the client on to the server. The answer goes back to the client by itself.
    pub fn forward(&mut self, request: MemoryRequest) {
        let passed = UnderWay::Passed { id: request.id, return_port: request.return_port };
        self.send_request(request, passed);
    }

    /// Sends a request of the unit's own to the server; its `id` and `return_port` do not matter. [`Interposer::on_response`] gets
    /// `own` with the answer.
    pub fn ask(&mut self, request: MemoryRequest, own: T::Own) {
        self.link.kept.credits -= 1;
        self.send_request(MemoryRequest { return_port: 0, ..request }, UnderWay::Own(own));
    }

    /// As [`Io::ask`], in the first cycle in which no other request wants to leave: the client's requests, and those of [`Io::ask`], go
    /// before it whenever they come. Requests that wait so leave in the order of their calls.
    pub fn ask_when_idle(&mut self, request: MemoryRequest, own: T::Own) {
        self.link.kept.idle.push_back((request, own));
    }

    /// How many requests of [`Io::ask_when_idle`] have not left.
    pub fn waiting_to_ask(&self) -> usize {
        self.link.kept.idle.len()
    }

    /// Notes in the timeline what the unit does now, and with which line: a mark on the unit's own track. Without `--timeline` it does
    /// nothing.
    pub fn note(&self, what: &str, line: u64) {
        if let Some(Notes { log, track }) = &self.link.notes {
            let label = log.label(Category::Unit, what, &[("line", ValueKind::Address)]);
            log.instant(self.link.clock.time_of(self.cycle), *track, label, &[line]);
        }
    }

    /// Sends what waits for an idle cycle, as far as this cycle is one.
    fn ask_idle(&mut self) {
        while self.can_ask_now()
            && let Some((request, own)) = self.link.kept.idle.pop_front()
        {
            self.ask(request, own);
        }
    }

    /// Could a request leave as soon as the unit's latency allows, or are others before it?
    pub fn can_ask_now(&self) -> bool {
        let earliest = self.cycle + self.link.latency;
        self.link.kept.requests.free_at(earliest) == earliest
    }

    /// Answers a request of the client after the unit's latency.
    pub fn answer(&mut self, request: &MemoryRequest, served_by: ServedBy) {
        self.answer_after(self.link.latency, request, served_by);
    }

    /// Answers a request of the client after `cycles`.
    pub fn answer_after(&mut self, cycles: u64, request: &MemoryRequest, served_by: ServedBy) {
        self.send_answer(cycles, request.response(0, served_by));
    }

    /// Answers a request of the client after the unit's latency as the server has answered one of the unit's own: with the same server, and
    /// the same sectors that hit.
    pub fn answer_like(&mut self, response: &MemoryResponse, request: &MemoryRequest) {
        let hit_sectors = response.hit_sectors & request.sectors;
        self.send_answer(self.link.latency, request.response(hit_sectors, response.served_by));
    }

    fn send_answer(&mut self, cycles: u64, response: MemoryResponse) {
        // The request took no entry of the server's queue: the client may send another one.
        self.link.kept.credits += 1;
        self.send_response(response, cycles);
        if self.link.kept.counts_credits {
            self.send_credits();
        }
    }

    fn send_request(&mut self, request: MemoryRequest, under_way: UnderWay<T::Own>) {
        let link = &mut *self.link;
        let request = MemoryRequest { id: link.kept.under_way.give(under_way), ..request };
        let cycle = link.kept.requests.departure(self.cycle + link.latency);
        self.out.send(link.downstream, link.clock.time_of(cycle), Payload::Memory(MemoryMessage::Request(request)));
    }

    fn send_response(&mut self, response: MemoryResponse, cycles: u64) {
        let link = &mut *self.link;
        link.kept.held = link.kept.held.saturating_sub(1);
        let cycle = link.kept.responses.departure(self.cycle + cycles);
        self.out.send(link.upstream, link.clock.time_of(cycle), Payload::Memory(MemoryMessage::Response(response)));
    }

    /// Gives the client the credits that are due to it.
    fn send_credits(&mut self) {
        let link = &mut *self.link;
        for _ in 0..link.kept.credits {
            let at = link.clock.time_of(self.cycle + link.latency);
            self.out.send(link.upstream, at, Payload::Memory(MemoryMessage::Credit(Credits::ONE)));
        }
        link.kept.credits = link.kept.credits.min(0);
    }

    /// Lets a message pass that is neither request nor response.
    fn pass(&mut self, payload: Payload, from_client: bool) {
        let link = &mut *self.link;
        let earliest = self.cycle + link.latency;
        let (port, cycle) = if from_client {
            (link.downstream, link.kept.requests.departure(earliest))
        } else {
            (link.upstream, link.kept.responses.departure(earliest))
        };
        self.out.send(port, link.clock.time_of(cycle), payload);
    }
}

/// An [`Interposer`] as a unit of the node.
#[derive(Debug)]
pub struct Interposed<T: Interposer> {
    state: T,
    parameters: T::Parameters,
    counters: T::Counters,
    link: Link<T::Own>,
}

/// The ports of every interposer.
const PORTS: &[PortDefinition] = &[
    PortDefinition::server("upstream", Protocol::Memory, "an SM, or another client"),
    PortDefinition::client("downstream", Protocol::Memory, "the crossbar, or another server"),
];

/// The kind of unit that `T` is: a program registers it.
pub const fn definition<T: Interposer>() -> UnitDefinition {
    UnitDefinition {
        name: T::NAME,
        summary: T::SUMMARY,
        parameters: <T::Parameters as ParameterSet>::DEFINITIONS,
        check: <T::Parameters as ParameterSet>::check,
        ports: PORTS,
        counters: <T::Counters as CounterSet>::DEFINITIONS,
        provides: provides::<T>,
        weight: 2,
        build: |text, context| Ok(Box::new(Interposed::<T>::new(ron::from_str(text)?, context)?)),
    }
}

fn provides<T: Interposer>(_: &str) -> Vec<Capability> {
    let mut provides = vec![Capability::PassesDrains];
    if T::HOLDS_STORES {
        provides.push(Capability::HoldsStores);
    }
    if T::UPDATES_COPIES {
        provides.push(Capability::UpdatesCopies);
    }
    provides
}

impl<T: Interposer> Interposed<T> {
    /// A unit with the wired ports of `context`.
    ///
    /// # Errors
    ///
    /// Parameters that the unit refuses.
    pub fn new(parameters: T::Parameters, context: &BuildContext) -> Result<Interposed<T>, BuildError> {
        let mut problems = parameters.range_problems();
        T::check(&parameters, &mut problems);
        problems.into_result()?;
        let pace = T::pace(&parameters);
        Ok(Interposed {
            state: T::new(&parameters),
            counters: T::Counters::default(),
            link: Link {
                upstream: context.required_port("upstream")?,
                downstream: context.required_port("downstream")?,
                clock: pace.clock,
                latency: u64::from(pace.latency),
                kept: Kept {
                    requests: OutputPort::new(pace.requests),
                    responses: OutputPort::new(pace.responses),
                    under_way: Numbers::default(),
                    idle: VecDeque::new(),
                    held: 0,
                    credits: 0,
                    counts_credits: false,
                    coming_credits: VecDeque::new(),
                    cycle: 0,
                    woken: None,
                },
                notes: Notes::of(context),
            },
            parameters,
        })
    }

    /// When it next wakes.
    fn next_wake(&self) -> Option<SimTime> {
        let wanted = self.state.next_wake(&self.parameters)?;
        let Kept { cycle, woken, .. } = self.link.kept;
        let earliest = woken.map_or(cycle, |woken| cycle.max(woken + 1));
        Some(self.link.clock.time_of(wanted.max(earliest)))
    }

    /// The first cycle, of those that are not over, in which the requests leave that wait for an idle one.
    fn idle_wake(&self) -> Option<SimTime> {
        let Link { clock, latency, kept, .. } = &self.link;
        let free = kept.requests.free_at(kept.cycle + latency) - latency;
        (!kept.idle.is_empty()).then(|| clock.time_of(free))
    }

    fn act(&mut self, time: SimTime, out: &mut Outbox, action: impl FnOnce(&mut T, &mut Io<T>)) {
        let cycle = self.link.clock.cycle_at_or_after(time);
        self.link.kept.cycle = cycle;
        let (parameters, counters) = (&self.parameters, &mut self.counters);
        let mut io = Io { parameters, counters, link: &mut self.link, cycle, out };
        action(&mut self.state, &mut io);
    }

    fn message(&mut self, message: Message, out: &mut Outbox) {
        let from_client = message.port == self.link.upstream;
        self.act(message.time, out, |state, io| match message.payload {
            Payload::Memory(MemoryMessage::Request(request)) if from_client => {
                io.link.kept.held += 1;
                state.on_request(request, io);
            }
            Payload::Memory(MemoryMessage::Response(response)) if !from_client => {
                match io.link.kept.under_way.take(response.id) {
                    Some(UnderWay::Passed { id, return_port }) => {
                        io.send_response(MemoryResponse { id, return_port, ..response }, io.link.latency);
                    }
                    Some(UnderWay::Own(own)) => state.on_response(response, own, io),
                    // An answer without a request: nothing waits for it.
                    None => {}
                }
            }
            Payload::Memory(MemoryMessage::Credit(credits)) if !from_client => {
                io.link.kept.counts_credits = true;
                io.link.kept.coming_credits.extend(credits.times(message.time));
            }
            Payload::Memory(other) => {
                state.on_passing(&other, io);
                io.pass(Payload::Memory(other), from_client);
            }
            other => io.pass(other, from_client),
        });
    }
}

impl<T: Interposer> Unit for Interposed<T> {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        loop {
            let arrival = inbox.next_time().unwrap_or(SimTime::MAX);
            let credit = self.link.kept.coming_credits.front().copied().unwrap_or(SimTime::MAX);
            let wake = self.next_wake().unwrap_or(SimTime::MAX);
            let idle = self.idle_wake().unwrap_or(SimTime::MAX);
            // What happens next. Of what happens at the same time, messages go first, wakes after them, and what waits for an idle cycle last.
            let next = arrival.min(credit).min(wake).min(idle);
            if next >= window.until {
                return if next == SimTime::MAX { NextWake::OnMessage } else { NextWake::At(next) };
            }
            if next == arrival {
                if let Some(message) = inbox.take() {
                    self.message(message, out);
                }
            } else if next == credit {
                self.link.kept.coming_credits.pop_front();
                self.link.kept.credits += 1;
                self.act(next, out, |_, io| io.send_credits());
            } else if next == wake {
                self.act(next, out, |state, io| state.on_wake(io));
                self.link.kept.woken = Some(self.link.kept.cycle);
            } else {
                self.act(next, out, |_, io| io.ask_idle());
            }
        }
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        self.counters.write(sink);
    }

    fn records(&self, sink: &mut StatisticSink) {
        self.state.records(sink);
    }

    fn outstanding(&self) -> Option<String> {
        let (under_way, held) = (self.link.kept.under_way.len(), self.link.kept.held);
        let answers = (under_way > 0).then(|| format!("waits for answers to {under_way} requests at downstream"));
        let held = (held > 0).then(|| format!("has {held} requests from upstream without an answer"));
        let parts: Vec<String> = [answers, held, self.state.outstanding()].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    fn save(&self) -> Result<Vec<u8>, StateError> {
        save_state(&(&self.state, &self.counters, &self.link.kept))
    }

    fn restore(&mut self, state: &[u8], _: &dyn CodeSource) -> Result<(), StateError> {
        (self.state, self.counters, self.link.kept) = restore_state(state)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
