//! The messages that a unit sends, and their way to other units.

use super::agenda::Agenda;
use super::buffers::{Buffers, Messages};
use super::inbox::Inbox;
use super::pending::Pending;
use super::placement::Seat;
use super::unit::{Window, Wire};
use balar_protocol::{Message, Payload, PortId, SimTime, UnitId};
use std::sync::Arc;

/// Messages from one shard to another.
pub(super) type Batch = Vec<(UnitId, Message)>;

/// Where one port leads, and the seat of the unit there.
#[derive(Clone, Copy, Debug)]
struct Route {
    wire: Wire,
    seat: Seat,
}

/// The messages of a shard's units: a message goes straight to where the receiver will find it.
#[derive(Debug)]
pub struct Outbox {
    /// The unit that runs, since when, and when the first message may arrive that it sends.
    source: UnitId,
    start: SimTime,
    arrivals_from: SimTime,
    /// The ways from all units of the shard, and where those of the unit that runs begin and end.
    routes: Vec<Route>,
    ports: Vec<(u32, u32)>,
    own_ports: (u32, u32),
    /// The shard, and where every unit of the simulation lives.
    shard: u32,
    seats: Arc<[Seat]>,
    /// The messages on their way to each slot, and when it next has something to do.
    pub(super) pending: Vec<Pending>,
    pub(super) agenda: Agenda,
    pub(super) buffers: Buffers,
    /// Messages for the units of each shard, and the earliest stamp of all of them.
    pub(super) outbound: Vec<Batch>,
    pub(super) outbound_earliest: SimTime,
    /// The mistake of the unit that runs.
    mistake: Option<Box<Mistake>>,
}

/// A mistake of a unit.
#[derive(Clone, Debug)]
pub(super) struct Mistake {
    /// When it did so, or the start of the window it was in.
    pub time: SimTime,
    /// The mistake in words.
    pub message: String,
    /// The unit does not come with the simulator.
    pub guest: bool,
    /// The unit whose message it was, where that is the one at fault.
    pub sender: Option<UnitId>,
}

/// The place where a message is to lie.
enum Way<'a> {
    /// Among those on their way to a unit of the same shard.
    Here { messages: &'a mut Messages, time: SimTime, port: PortId },
    /// Among those for another shard, or for a time far ahead.
    Apart { unit: UnitId, time: SimTime, port: PortId },
    /// The unit has broken a rule.
    Refused,
}

impl Outbox {
    /// For shard number `shard`, whose slots have these wires and pending messages.
    pub(super) fn new(
        shard: u32,
        seats: Arc<[Seat]>,
        slots: impl Iterator<Item = Vec<Wire>>,
        pending: Vec<Pending>,
        agenda: Agenda,
    ) -> Outbox {
        let (mut routes, mut ports) = (Vec::new(), Vec::new());
        for wires in slots {
            let first = routes.len() as u32;
            routes.extend(wires.into_iter().map(|wire| Route { wire, seat: seats[wire.unit.0 as usize] }));
            ports.push((first, routes.len() as u32));
        }
        Outbox {
            source: UnitId(0),
            start: SimTime::ZERO,
            arrivals_from: SimTime::ZERO,
            routes,
            ports,
            own_ports: (0, 0),
            shard,
            seats,
            pending,
            agenda,
            buffers: Buffers::default(),
            outbound: Vec::new(),
            outbound_earliest: SimTime::MAX,
            mistake: None,
        }
    }

    /// For one unit alone with these wires, whose messages are all kept; see [`Outbox::take_sent`].
    pub(crate) fn alone(wires: Vec<Wire>) -> Outbox {
        let others = wires.iter().map(|wire| wire.unit.0).max().unwrap_or(0);
        let seats: Vec<Seat> = (0..=others).map(|slot| Seat { shard: 1, slot }).collect();
        let mut out = Outbox::new(0, seats.into(), std::iter::once(wires), Vec::new(), Agenda::new(Vec::new()));
        out.outbound.resize_with(2, Vec::new);
        out.begin_alone(SimTime::ZERO);
        out
    }

    /// The messages of a unit alone, as (receiver, message).
    pub(crate) fn take_sent(&mut self) -> Vec<(UnitId, Message)> {
        self.outbound.last_mut().map(std::mem::take).unwrap_or_default()
    }

    /// As [`Outbox::take_sent`], as (sender's port, arrival, payload), for an outbox whose wires lead to the sender's own ports.
    pub(super) fn drain_sent(&mut self) -> impl Iterator<Item = (PortId, SimTime, Payload)> {
        let sent = self.outbound.last_mut().into_iter().flat_map(|batch| batch.drain(..));
        sent.map(|(_, Message { port, time, payload, .. })| (port, time, payload))
    }

    /// Moves the messages that arrive at `slot` before `until` to `inbox`, which is empty, in order.
    #[inline]
    pub(super) fn take_due(&mut self, slot: usize, until: SimTime, inbox: &mut Inbox) {
        self.pending[slot].take_due(until, inbox, &mut self.buffers);
    }

    /// Unit `source` at `slot` runs from now on.
    #[inline]
    pub(super) fn begin(&mut self, slot: usize, source: UnitId, window: Window) {
        self.source = source;
        self.start = window.start;
        self.arrivals_from = window.until;
        self.own_ports = self.ports[slot];
    }

    /// The unit alone runs from `start` on. Nobody else does, so that its messages may arrive at any time.
    pub(crate) fn begin_alone(&mut self, start: SimTime) {
        self.begin(0, UnitId(0), Window { start, until: start });
    }

    /// The mistake of the unit that ran last.
    #[inline]
    pub(super) fn take_mistake(&mut self) -> Option<Box<Mistake>> {
        self.mistake.take()
    }

    /// The unit that runs does not come with the simulator, and has broken a rule.
    #[cold]
    pub(super) fn break_rule_as_guest(&mut self, time: SimTime, message: String) {
        self.mistake.get_or_insert(Box::new(Mistake { time, message, guest: true, sender: None }));
    }

    /// The unit that runs has got a message from `sender`, which does not come with the simulator, that breaks a rule: the run ends, and
    /// says so of the sender. `message` is what the sender has done.
    #[cold]
    pub(crate) fn break_rule_of_sender(&mut self, sender: UnitId, time: SimTime, message: String) {
        self.mistake.get_or_insert(Box::new(Mistake { time, message, guest: true, sender: Some(sender) }));
    }

    #[inline]
    fn route(&self, port: PortId) -> &Route {
        let (first, end) = self.own_ports;
        let route = first + u32::from(port.0);
        assert!(route < end, "the unit has no port number {}: it has {} of them", port.0, end - first);
        &self.routes[route as usize]
    }

    /// Sends `payload` through `port` at time `at`; it arrives after the wire's latency.
    ///
    /// # Panics
    ///
    /// If `at` lies before the window: a unit cannot act in the past.
    #[inline(always)]
    pub fn send(&mut self, port: PortId, at: SimTime, payload: Payload) {
        // The payload is made where it is to lie: handed down as an argument, it would be moved on the way.
        let source = self.source;
        match self.way(port, at) {
            Way::Here { messages, time, port } => messages.push(Some(Message { time, source, port, payload })),
            Way::Apart { unit, time, port } => self.send_apart(unit, Message { time, source, port, payload }),
            Way::Refused => {}
        }
    }

    /// Where a message is to lie that is sent through `port` at time `at`. It counts as sent.
    fn way(&mut self, port: PortId, at: SimTime) -> Way<'_> {
        assert!(at >= self.start, "sent at {at}, before the window's start at {}", self.start);
        let &Route { wire, seat } = self.route(port);
        let (time, port) = (at + wire.latency, wire.port);
        if time < self.arrivals_from {
            self.refuse(time);
            return Way::Refused;
        }
        if seat.shard != self.shard {
            return Way::Apart { unit: wire.unit, time, port };
        }
        let slot = seat.slot as usize;
        let pending = &mut self.pending[slot];
        // The receiver is due when the earliest of its messages arrives, at the latest.
        if time < pending.earliest() {
            self.agenda.bring_forward(slot, time);
        }
        match pending.place(time, &mut self.buffers) {
            Some(messages) => Way::Here { messages, time, port },
            None => Way::Apart { unit: wire.unit, time, port },
        }
    }

    /// Sends a message to another shard, or to a unit of this one for a time far ahead.
    fn send_apart(&mut self, unit: UnitId, message: Message) {
        let Seat { shard, slot } = self.seats[unit.0 as usize];
        if shard == self.shard {
            self.pending[slot as usize].push_far(message, self.arrivals_from, &mut self.buffers);
        } else {
            self.outbound_earliest = self.outbound_earliest.min(message.time);
            self.outbound[shard as usize].push((unit, message));
        }
    }

    #[cold]
    fn refuse(&mut self, time: SimTime) {
        let until = self.arrivals_from;
        let message = format!("it sent a message that arrives at {time}, before the window's end at {until}");
        self.mistake.get_or_insert(Box::new(Mistake { time: self.start, message, guest: false, sender: None }));
    }

    /// A message from another shard, where no further one arrives before `floor`.
    #[inline]
    pub(super) fn deliver(&mut self, unit: UnitId, message: Message, floor: SimTime) {
        let slot = self.seats[unit.0 as usize].slot as usize;
        self.agenda.bring_forward(slot, message.time);
        self.pending[slot].push(message, floor, &mut self.buffers);
    }

    /// Time a message through `port` takes.
    pub fn latency(&self, port: PortId) -> SimTime {
        self.route(port).wire.latency
    }
}
