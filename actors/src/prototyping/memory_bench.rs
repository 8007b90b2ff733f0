//! A bench for a unit between a memory client and a memory server: it plays both, and holds the unit to the rules.

use crate::catalogue::{BuildContext, Capability, PortMap, Role, Surroundings, UnitDefinition, complete_ron};
use crate::engine::bench::window_lengths;
use crate::engine::conduct::memory_order::MemoryOrder;
use crate::engine::conduct::rules::well_formed;
use crate::engine::{Bench, BrokenRule, Conversation, StateError, Unit, Window};
use crate::interleave::SliceMap;
use balar_protocol::memory::{
    LINE_BYTES, MemoryKind, MemoryMessage, MemoryRequest, MemoryResponse, ServedBy, sector_count, sectors_of,
    words_within,
};
use balar_protocol::statistics::{StatisticRow, StatisticSink};
use balar_protocol::{Message, Payload, PortId, Protocol, SimTime};
use std::collections::BTreeMap;

/// Latency of both wires: the longest window.
const WIRE: SimTime = SimTime::from_nanoseconds(10);
/// The server's answer arrives so long after the request has left, where nothing else is said.
const ANSWER_AFTER: SimTime = SimTime::from_nanoseconds(100);
/// A unit that still works at this time never comes to rest.
const LATEST: SimTime = SimTime::from_nanoseconds(1_000_000_000);
/// How long a sleeping unit is watched for work that it has forgotten to wake for.
const PROBE: SimTime = SimTime::from_nanoseconds(1_000_000);

/// A rule that a unit broke on a [`MemoryBench`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokenProtocol {
    /// It could not be built.
    #[error("the unit cannot be built: {0}")]
    NotBuilt(String),
    /// It broke a rule of time, answered a request that does not exist, or sent a message that makes no sense.
    #[error(transparent)]
    Engine(#[from] BrokenRule),
    /// It has not answered everything.
    #[error("the unit {owed}, and sleeps; rule: each request is answered once\n{why}")]
    NeverAnswered {
        /// The answers that it owes.
        owed: String,
        /// The known facts about the reason.
        why: String,
    },
    /// It was to get a message that no client sends it.
    #[error(
        "a client sends the unit no `Drain`, for it does not declare that it holds stores back: \
         `const HOLDS_STORES: bool = true`"
    )]
    NoDrain,
    /// It keeps the rules as long as its state is not saved and restored.
    #[error("{0}")]
    State(StateMistake),
    /// It is wired to a slice of the L2, and asked it for a line of another.
    #[error(
        "at {at} the unit asked slice {asked} for the line {line:#x}, which slice {owner} owns; rule: the crossbar brings each line to \
         one slice, and a unit in front of a slice asks for lines of that slice alone"
    )]
    WrongSlice {
        /// When the request left.
        at: SimTime,
        /// The line.
        line: u64,
        /// The slice that it asked.
        asked: u32,
        /// The slice that has the line.
        owner: u32,
    },
    /// The script has a request that the crossbar would bring to another slice.
    #[error(
        "the test sends the slice {asked} a request for the line {line:#x}, which the crossbar brings to slice {owner}"
    )]
    ScriptForAnotherSlice {
        /// The line.
        line: u64,
        /// The slice of the bench.
        asked: u32,
        /// The slice that has the line.
        owner: u32,
    },
    /// Its behaviour depends on where windows end.
    #[error(
        "in windows of {length} the unit does something else than in windows of {}; rule: where windows end changes nothing \
         (is the window's start or end taken for the time of a message or of a wake?)\n{difference}",
        WIRE
    )]
    Windows {
        /// The other windows.
        length: SimTime,
        /// The first difference.
        difference: String,
    },
}

/// At which step a unit fails whose state is saved and restored after each window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateMistake {
    /// Saving failed.
    #[error("the unit's state cannot be saved at {at}: {error}")]
    NotSaved {
        /// The end of the window.
        at: SimTime,
        /// Why.
        error: StateError,
    },
    /// What was saved cannot be restored.
    #[error(
        "the unit's state was saved at {at}, and cannot be restored: {error}; rule: what is written is read back as it was"
    )]
    NotRestored {
        /// The end of the window.
        at: SimTime,
        /// Why.
        error: StateError,
    },
    /// It was saved and restored, and the unit broke a rule that it keeps otherwise.
    #[error(
        "the unit's state was saved and restored after each window, and then the unit broke a rule that it keeps otherwise; rule: \
         serde writes all of the state\n{0}"
    )]
    ThenBroke(Box<BrokenProtocol>),
    /// It was saved and restored, and the unit went on differently.
    #[error(
        "the unit does something else once its state is saved and restored; rule: serde writes all of the state\n{0}"
    )]
    ThenDiffered(String),
}

/// Plays the client and the server of a unit that has one memory port for each, in the unit's own tests. Times are in nanoseconds; the
/// wires take 10 ns.
///
/// ```
/// use balar_actors::prototyping::{MemoryBench, PASS_THROUGH, load};
/// let mut bench = MemoryBench::new(&PASS_THROUGH, r#"clock: "1 GHz", latency: 3"#);
/// bench.request(100, load(7, 0x4000, 4)).server_answers_after(50);
/// let played = bench.run();
/// assert_eq!(played.requests()[0].0, 103);
/// assert_eq!(played.responses().iter().map(|(at, answer)| (*at, answer.id)).collect::<Vec<_>>(), [(156, 7)]);
/// assert_eq!(played.counter("loads"), 1);
/// ```
#[derive(Debug)]
pub struct MemoryBench {
    definition: &'static UnitDefinition,
    parameters: String,
    /// Messages for the unit: (arrival, from the client, message).
    script: Vec<(SimTime, bool, MemoryMessage)>,
    answer_after: SimTime,
    answer_at: BTreeMap<usize, SimTime>,
    /// The server is this slice of the L2.
    slice: Option<(u32, SliceMap)>,
}

/// The work of a unit on a [`MemoryBench`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// (departure, through the upstream port, message).
    sent: Vec<(SimTime, bool, String)>,
    requests: Vec<(SimTime, MemoryRequest)>,
    responses: Vec<(SimTime, MemoryResponse)>,
    rows: Vec<StatisticRow>,
}

impl Played {
    /// The requests that went to the server, each with the nanosecond in which it left.
    pub fn requests(&self) -> Vec<(u64, MemoryRequest)> {
        self.requests.iter().map(|(at, request)| (at.0 / 1000, *request)).collect()
    }

    /// The responses that went to the client, each with the nanosecond in which it left.
    pub fn responses(&self) -> Vec<(u64, MemoryResponse)> {
        self.responses.iter().map(|(at, response)| (at.0 / 1000, *response)).collect()
    }

    /// Everything that was sent, in the order of time: "112000 ps to the server: Memory(Drain)".
    pub fn everything(&self) -> Vec<String> {
        let whom = |upstream| if upstream { "client" } else { "server" };
        self.sent.iter().map(|(at, upstream, what)| format!("{at} to the {}: {what}", whom(*upstream))).collect()
    }

    /// A counter of the unit.
    ///
    /// # Panics
    ///
    /// Where it has no such counter.
    pub fn counter(&self, name: &str) -> u64 {
        let row = self.rows.iter().find(|row| row.what == name);
        row.unwrap_or_else(|| panic!("the unit has no counter `{name}`")).value
    }
}

impl MemoryBench {
    /// A unit of this kind with these parameters, as in a topology: `clock: "1 GHz", entries: 4`.
    pub fn new(definition: &'static UnitDefinition, parameters: &str) -> MemoryBench {
        let parameters = complete_ron(definition.parameters, parameters);
        MemoryBench {
            definition,
            parameters,
            script: Vec::new(),
            answer_after: ANSWER_AFTER,
            answer_at: BTreeMap::new(),
            slice: None,
        }
    }

    /// The unit stands between the crossbar and the slice of the L2 with this number, among slices over which `map` spreads the lines
    /// (`SliceMap::xor(32)` for a crossbar with the default `address_hash`): it may ask for the lines of this slice alone.
    ///
    /// ```
    /// use balar_actors::interleave::SliceMap;
    /// use balar_actors::prototyping::{MemoryBench, PASS_THROUGH, load};
    /// let mut bench = MemoryBench::new(&PASS_THROUGH, r#"clock: "1 GHz""#);
    /// // Line 3 of the memory is the first line of slice 3.
    /// bench.server_is_slice(3, SliceMap::xor(32)).request(100, load(7, 3 * 128, 4));
    /// assert_eq!(bench.run().counter("loads"), 1);
    /// ```
    pub fn server_is_slice(&mut self, slice: u32, map: SliceMap) -> &mut MemoryBench {
        self.slice = Some((slice, map));
        self
    }

    /// A request of the client arrives after `ns`.
    pub fn request(&mut self, ns: u64, request: MemoryRequest) -> &mut MemoryBench {
        self.from_client(ns, MemoryMessage::Request(request))
    }

    /// A message of the client arrives after `ns`: a `Drain`, say, which only a unit gets that declares to hold stores back.
    pub fn from_client(&mut self, ns: u64, message: MemoryMessage) -> &mut MemoryBench {
        self.script.push((SimTime::from_nanoseconds(ns), true, message));
        self
    }

    /// A message of the server arrives after `ns`: a credit, say. Answers come by themselves.
    pub fn from_server(&mut self, ns: u64, message: MemoryMessage) -> &mut MemoryBench {
        self.script.push((SimTime::from_nanoseconds(ns), false, message));
        self
    }

    /// The server's answers arrive `ns` after the request has left the unit; 100 where nothing else is said, and no less than the 20
    /// that both wires take.
    pub fn server_answers_after(&mut self, ns: u64) -> &mut MemoryBench {
        self.answer_after = SimTime::from_nanoseconds(ns);
        self
    }

    /// The server's answer to the request that left as number `index`, counted from 0, arrives at `ns`.
    pub fn server_answers_at(&mut self, index: usize, ns: u64) -> &mut MemoryBench {
        self.answer_at.insert(index, SimTime::from_nanoseconds(ns));
        self
    }

    /// Runs the unit until it rests, in windows of several lengths.
    ///
    /// # Panics
    ///
    /// Where the unit breaks a rule, with the rule's text.
    #[track_caller]
    pub fn run(&self) -> Played {
        match self.try_run() {
            Ok(played) => played,
            Err(broken) => panic!("{broken}"),
        }
    }

    /// As [`MemoryBench::run`].
    ///
    /// # Errors
    ///
    /// The first rule that the unit broke.
    pub fn try_run(&self) -> Result<Played, BrokenProtocol> {
        let gets_drains = (self.definition.provides)(&self.parameters).contains(&Capability::HoldsStores);
        if !gets_drains && self.script.iter().any(|(.., message)| *message == MemoryMessage::Drain) {
            return Err(BrokenProtocol::NoDrain);
        }
        if let Some(default) = self.definition.bad_default() {
            return Err(BrokenProtocol::NotBuilt(default.to_string()));
        }
        self.check_script()?;
        let whole = self.play(WIRE, false)?;
        for length in window_lengths(WIRE).into_iter().skip(1) {
            let other = self.play(length, false)?;
            if let Some(difference) = difference(&whole, &other) {
                return Err(BrokenProtocol::Windows { length, difference });
            }
        }
        let restored = self.play(WIRE, true).map_err(|broken| match broken {
            BrokenProtocol::State(mistake) => mistake,
            // Without saving and restoring, the unit has come to its end.
            broken => StateMistake::ThenBroke(Box::new(broken)),
        });
        match restored.map(|restored| difference(&whole, &restored)) {
            Ok(None) => Ok(whole),
            Ok(Some(difference)) => Err(BrokenProtocol::State(StateMistake::ThenDiffered(difference))),
            Err(mistake) => Err(BrokenProtocol::State(mistake)),
        }
    }

    /// Does the script ask the slice for its own lines alone, where the server is a slice?
    fn check_script(&self) -> Result<(), BrokenProtocol> {
        let Some((asked, map)) = &self.slice else { return Ok(()) };
        for (_, from_client, message) in &self.script {
            if let (true, MemoryMessage::Request(MemoryRequest { line, .. })) = (from_client, message)
                && map.slice_of(*line) != *asked
            {
                let (asked, owner) = (*asked, map.slice_of(*line));
                return Err(BrokenProtocol::ScriptForAnotherSlice { line: *line, asked, owner });
            }
        }
        Ok(())
    }

    /// Does the unit ask its slice for a line of that slice?
    fn check_slice(&self, request: &MemoryRequest, at: SimTime) -> Result<(), BrokenProtocol> {
        match &self.slice {
            Some((asked, map)) if map.slice_of(request.line) != *asked => {
                let (asked, owner) = (*asked, map.slice_of(request.line));
                Err(BrokenProtocol::WrongSlice { at, line: request.line, asked, owner })
            }
            _ => Ok(()),
        }
    }

    /// The unit with its upstream and downstream port.
    fn build(&self) -> Result<(Box<dyn Unit>, PortId, PortId), BrokenProtocol> {
        let refused = |what: String| BrokenProtocol::NotBuilt(what);
        let ports = self.definition.ports;
        let find = |role| ports.iter().position(|port| port.is(Protocol::Memory, role));
        let (Some(upstream), Some(downstream)) = (find(Role::Server), find(Role::Client)) else {
            return Err(refused(format!("{} has no memory port on both sides", self.definition.name)));
        };
        let map = PortMap::new(ports.iter().map(|port| (port.name.to_owned(), 0)));
        let surroundings = Surroundings::default();
        let context = BuildContext {
            path: "unit",
            part: "",
            index: 0,
            row_length: 1,
            ports: &map,
            unit: 0,
            surroundings: &surroundings,
        };
        let unit = (self.definition.build)(&self.parameters, &context).map_err(|error| refused(error.to_string()))?;
        Ok((unit, PortId(upstream as u16), PortId(downstream as u16)))
    }

    /// Another unit with the state of `unit`, which has run until `at`; the same one where units of its kind have no state to save.
    fn save_and_restore(&self, unit: Box<dyn Unit>, at: SimTime) -> Result<Box<dyn Unit>, BrokenProtocol> {
        let state = match unit.save() {
            Ok(state) => state,
            Err(StateError::Unsupported) => return Ok(unit),
            Err(error) => return Err(BrokenProtocol::State(StateMistake::NotSaved { at, error })),
        };
        let (mut other, ..) = self.build()?;
        match other.restore(&state, &()) {
            Ok(()) => Ok(other),
            Err(error) => Err(BrokenProtocol::State(StateMistake::NotRestored { at, error })),
        }
    }

    /// Plays the script in windows of `length`; with `saved`, each window by another unit that gets the state of the one before.
    fn play(&self, length: SimTime, saved: bool) -> Result<Played, BrokenProtocol> {
        let (mut unit, upstream, downstream) = self.build()?;
        let mut bench = Bench::new(&vec![WIRE; self.definition.ports.len()]);
        for &(time, from_client, message) in &self.script {
            bench.deliver(time, if from_client { upstream } else { downstream }, Payload::Memory(message));
        }
        let mut log = Log::default();
        let mut requests = 0;
        loop {
            let start = bench.next_event();
            if start >= LATEST {
                break;
            }
            let window = Window { start, until: start + length };
            for message in bench.inbox.iter().filter(|message| message.time < window.until) {
                log.arrived(message);
            }
            bench.call(&mut *unit, window)?;
            for (arrival, port, payload) in bench.take_sent() {
                let left = arrival - WIRE;
                well_formed(&payload, left)?;
                if let Payload::Memory(MemoryMessage::Request(request)) = &payload
                    && port == downstream
                {
                    self.check_slice(request, left)?;
                    let after = left + self.answer_after.max(SimTime(2 * WIRE.0));
                    let at = self.answer_at.get(&requests).copied().unwrap_or(after);
                    let answer = MemoryMessage::Response(request.response(0, ServedBy::DeviceMemory));
                    bench.deliver(at.max(left + SimTime(2 * WIRE.0)), downstream, Payload::Memory(answer));
                    requests += 1;
                }
                log.sent(left, port, payload);
            }
            if saved {
                unit = self.save_and_restore(unit, window.until)?;
            }
        }
        let updates_copies = (self.definition.provides)(&self.parameters).contains(&Capability::UpdatesCopies);
        log.check((upstream, downstream), self.definition, updates_copies)?.map_or(Ok(()), |owed| {
            let why = forgotten(&mut *unit, &mut bench);
            Err(BrokenProtocol::NeverAnswered { owed, why })
        })?;
        let mut sink = StatisticSink::default();
        unit.statistics(&mut sink);
        unit.records(&mut sink);
        Ok(log.played(upstream, sink.rows))
    }
}

/// Watches a unit that sleeps and owes answers, and gives the known facts about the reason.
fn forgotten(unit: &mut dyn Unit, bench: &mut Bench) -> String {
    let said = unit.outstanding().map_or("the unit says that it waits for nothing".to_owned(), |text| {
        format!("the unit says of itself: {text}")
    });
    let start = bench.asleep_since();
    let called = bench.call(unit, Window { start, until: start + PROBE });
    match (called, bench.take_sent().first()) {
        (Ok(()), Some((arrival, ..))) => format!(
            "{said}\nit would have sent something at {}, but it has not asked to be woken: `NextWake::At` is missing",
            *arrival - WIRE
        ),
        _ => format!("{said}\nno message is on its way to it, and it has not asked to be woken"),
    }
}

/// The events at the ports of a unit.
#[derive(Debug, Default)]
struct Log {
    /// (time, is it a departure, place, port, message).
    events: Vec<(SimTime, bool, usize, PortId, Payload)>,
}

impl Log {
    fn arrived(&mut self, message: &Message) {
        if let Payload::Memory(what) = message.payload {
            self.events.push((message.time, false, self.events.len(), message.port, Payload::Memory(what)));
        }
    }

    fn sent(&mut self, at: SimTime, port: PortId, payload: Payload) {
        self.events.push((at, true, self.events.len(), port, payload));
    }

    /// Checks the protocol; returns the answers that are owed in the end.
    fn check(
        &mut self,
        (upstream, downstream): (PortId, PortId),
        definition: &UnitDefinition,
        updates_copies: bool,
    ) -> Result<Option<String>, BrokenProtocol> {
        // An arrival at a time comes before a departure then.
        self.events.sort_by_key(|(time, departure, place, ..)| (*time, *departure, *place));
        let name = definition.ports[usize::from(upstream.0)].name;
        let mut conversation = Conversation::new([(upstream, name.to_owned())]);
        let mut order = MemoryOrder::new(updates_copies);
        for (at, departure, _, port, payload) in &self.events {
            let Payload::Memory(message) = payload else { continue };
            match (message, departure) {
                (MemoryMessage::Request(request), false) if *port == upstream => {
                    conversation.request(*port, *at, request);
                    order.arrived(*port, *request, *at);
                }
                (MemoryMessage::Request(request), true) if *port == downstream => {
                    order.sent(request, *at).map_err(BrokenRule::Order)?;
                }
                (MemoryMessage::Response(response), false) if *port == downstream => order.answered_below(response),
                (MemoryMessage::Response(response), true) if *port == upstream => {
                    let answered = conversation.sent(*port, payload);
                    answered.map_err(|what| BrokenRule::Answer { at: *at, what })?;
                    order.answered(*port, response, *at).map_err(BrokenRule::Order)?;
                }
                _ => {}
            }
        }
        Ok(conversation.owed())
    }

    fn played(self, upstream: PortId, rows: Vec<StatisticRow>) -> Played {
        let (mut sent, mut requests, mut responses) = (Vec::new(), Vec::new(), Vec::new());
        for (at, _, _, port, payload) in self.events.into_iter().filter(|(_, departure, ..)| *departure) {
            sent.push((at, port == upstream, format!("{payload:?}")));
            match payload {
                Payload::Memory(MemoryMessage::Request(request)) if port != upstream => requests.push((at, request)),
                Payload::Memory(MemoryMessage::Response(response)) if port == upstream => {
                    responses.push((at, response));
                }
                _ => {}
            }
        }
        Played { sent, requests, responses, rows }
    }
}

/// The first difference between a unit's work in windows of two lengths.
fn difference(whole: &Played, other: &Played) -> Option<String> {
    let (ours, theirs) = (whole.everything(), other.everything());
    let count = ours.len().max(theirs.len());
    if let Some(at) = (0..count).find(|&at| ours.get(at) != theirs.get(at)) {
        let shown = |list: &[String]| list.get(at).map_or("nothing more is sent".to_owned(), Clone::clone);
        return Some(format!("it was to send: {}\nit sends:       {}", shown(&ours), shown(&theirs)));
    }
    let row = whole.rows.iter().zip(&other.rows).find(|(ours, theirs)| ours != theirs)?;
    Some(format!("the counter {} is {} and not {}", row.0.what, row.1.value, row.0.value))
}

/// A load of `bytes` from `address` on, all in one line.
pub fn load(id: u32, address: u64, bytes: u16) -> MemoryRequest {
    request(MemoryKind::Load, id, address, bytes)
}

/// A store of `bytes` from `address` on, all in one line.
pub fn store(id: u32, address: u64, bytes: u16) -> MemoryRequest {
    request(MemoryKind::Store, id, address, bytes)
}

/// A reduction of the four-byte words of `bytes` from `address` on, all in one line.
pub fn reduction(id: u32, address: u64, bytes: u16) -> MemoryRequest {
    request(MemoryKind::Reduction, id, address, bytes)
}

fn request(kind: MemoryKind, id: u32, address: u64, bytes: u16) -> MemoryRequest {
    let line = address / LINE_BYTES * LINE_BYTES;
    let (first, end) = (address - line, address - line + u64::from(bytes));
    assert!(bytes > 0 && end <= LINE_BYTES, "{bytes} bytes from {address:#x} on are not in one line");
    let (store, load) = (kind == MemoryKind::Store, kind == MemoryKind::Load);
    MemoryRequest {
        line,
        id,
        launch: 1,
        data_bytes: if load { 0 } else { bytes },
        sectors: sectors_of(first, end),
        written_words: if store { words_within(first, end) } else { 0 },
        operations: if store || load { 0 } else { (bytes / 4).min(32) as u8 },
        update_sectors: if store || load { 0 } else { sector_count(sectors_of(first, end)) as u8 },
        kind,
        ..MemoryRequest::default()
    }
}

#[cfg(test)]
mod tests;
