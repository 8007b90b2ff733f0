//! A unit that does not come with the simulator, held to the rules where its wires begin.
//!
//! A mistake of the unit ends the run with the unit's own name. Without this, the receiver of its messages would fail in its place.

use super::conversation::Conversation;
use super::memory_order::MemoryOrder;
use super::rules::{BrokenRule, advance_alone, outbox_alone, well_formed};
use crate::engine::state::{CodeSource, StateError, restore_state, save_state};
use crate::engine::unit::{NextWake, Unit, Window};
use crate::engine::{Inbox, Outbox};
use balar_protocol::by_launch::LaunchTotals;
use balar_protocol::launches::LaunchSink;
use balar_protocol::memory::MemoryMessage;
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Message, Payload, PortId, Protocol, Side, SimTime};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A wired port of a guest.
#[derive(Clone, Debug)]
pub struct GuestPort {
    /// Its name in the topology: "upstream", "sm\[3\]".
    pub name: String,
    /// Its protocol.
    pub protocol: Protocol,
    /// Which side of it.
    pub side: Side,
    /// The time that a message takes from it.
    pub latency: SimTime,
}

/// The traffic through a unit between memory clients and the L2, in the order of time.
#[derive(Debug, Serialize, Deserialize)]
struct Followed {
    order: MemoryOrder,
    /// Messages that the unit has sent and that have not left it yet, by the time of leaving.
    leaving: VecDeque<(SimTime, PortId, MemoryMessage)>,
}

impl Followed {
    /// A message arrives at a port of this side.
    fn arrives(&mut self, message: &Message, side: Side) {
        match (&message.payload, side) {
            (Payload::Memory(MemoryMessage::Request(request)), Side::Server) => {
                self.order.arrived(message.port, *request, message.time);
            }
            (Payload::Memory(MemoryMessage::Response(response)), Side::Client) => self.order.answered_below(response),
            _ => {}
        }
    }

    /// The unit sends a message that leaves at `at`.
    fn leaves(&mut self, at: SimTime, port: PortId, message: MemoryMessage) {
        let place = self.leaving.partition_point(|(other, ..)| *other <= at);
        self.leaving.insert(place, (at, port, message));
    }

    /// The unit is called at `now`, `has_slept` where it had not asked for that: messages that it sent before have left.
    fn called(&mut self, now: SimTime, has_slept: bool) -> Result<(), String> {
        while self.leaving.front().is_some_and(|(at, ..)| *at < now)
            && let Some((at, port, message)) = self.leaving.pop_front()
        {
            match message {
                MemoryMessage::Request(request) => self.order.sent(&request, at)?,
                MemoryMessage::Response(response) => self.order.answered(port, &response, at)?,
                _ => {}
            }
        }
        let held = if has_slept && self.leaving.is_empty() { self.order.held() } else { None };
        held.map_or(Ok(()), Err)
    }
}

/// A unit of the user's own in a run. It is called at one moment after the other, in windows of a picosecond, so that a message into the
/// past is found wherever the engine's windows end. Its messages are checked before any other unit gets them.
pub struct Guest {
    unit: Box<dyn Unit>,
    ports: Vec<GuestPort>,
    conversation: Conversation,
    /// The traffic through it, where it stands between clients and the L2.
    followed: Option<Followed>,
    /// When the unit wants to wake: at the start, as every unit does.
    wake: SimTime,
    inbox: Inbox,
    out: Outbox,
}

impl Guest {
    /// A unit with these ports, by [`PortId`].
    pub fn new(unit: Box<dyn Unit>, ports: Vec<GuestPort>) -> Guest {
        let servers = ports.iter().enumerate().filter(|(_, port)| port.side == Side::Server);
        let conversation = Conversation::new(servers.map(|(i, port)| (PortId(i as u16), port.name.clone())));
        let out = outbox_alone(ports.iter().map(|port| port.latency));
        Guest { unit, ports, conversation, followed: None, wake: SimTime::ZERO, inbox: Inbox::default(), out }
    }

    /// The same unit, between memory clients and the L2: it is held to the order of their accesses. `updates_copies` where its copies have
    /// its clients' stores.
    #[must_use]
    pub fn between_clients_and_l2(self, updates_copies: bool) -> Guest {
        let order = MemoryOrder::new(updates_copies);
        Guest { followed: Some(Followed { order, leaving: VecDeque::new() }), ..self }
    }

    /// Runs the unit at `now`, when it is due.
    fn advance_at(&mut self, now: SimTime, inbox: &mut Inbox) -> Result<(), BrokenRule> {
        self.inbox.clear();
        if let Some(followed) = &mut self.followed {
            followed.called(now, self.wake == SimTime::MAX).map_err(BrokenRule::Order)?;
        }
        while let Some(message) = inbox.take_until(now) {
            self.conversation.delivered(&message);
            if let Some(followed) = &mut self.followed {
                followed.arrives(&message, self.ports[usize::from(message.port.0)].side);
            }
            self.inbox.extend(std::iter::once(Some(message)));
        }
        self.inbox.sort();
        let window = Window { start: now, until: SimTime(now.0 + 1) };
        self.wake = match advance_alone(&mut *self.unit, window, &mut self.inbox, &mut self.out)? {
            NextWake::At(at) => at,
            NextWake::OnMessage => SimTime::MAX,
        };
        Ok(())
    }

    /// Sends on the unit's messages, up to the first one that breaks a rule.
    fn send_on(&mut self, out: &mut Outbox) -> Result<(), BrokenRule> {
        for (port, arrival, payload) in self.out.drain_sent() {
            let sender = &self.ports[usize::from(port.0)];
            let at = arrival - sender.latency;
            sender.allows(&payload, at)?;
            well_formed(&payload, at)?;
            self.conversation.sent(port, &payload).map_err(|what| BrokenRule::Answer { at, what })?;
            if let (Some(followed), Payload::Memory(message)) = (&mut self.followed, &payload) {
                followed.leaves(at, port, *message);
            }
            out.send(port, at, payload);
        }
        Ok(())
    }
}

impl GuestPort {
    fn allows(&self, payload: &Payload, at: SimTime) -> Result<(), BrokenRule> {
        let right = payload.protocol() == self.protocol && payload.sender().is_none_or(|sender| sender == self.side);
        if right || self.protocol == Protocol::Any {
            return Ok(());
        }
        let side = match self.side {
            Side::Client => "client",
            Side::Server => "server",
        };
        let role = format!("{side} of the protocol {}", self.protocol);
        Err(BrokenRule::WrongRole { at, port: self.name.clone(), role, message: format!("{payload:?}") })
    }
}

impl Unit for Guest {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        loop {
            let now = inbox.next_time().unwrap_or(SimTime::MAX).min(self.wake);
            if now >= window.until {
                return if now == SimTime::MAX { NextWake::OnMessage } else { NextWake::At(now) };
            }
            let advanced = self.advance_at(now, inbox);
            // Messages before the broken rule count: the first mistake is reported.
            if let Err(broken) = self.send_on(out).and(advanced) {
                out.break_rule_as_guest(now, broken.to_string());
                inbox.clear();
                return NextWake::OnMessage;
            }
        }
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        self.unit.statistics(sink);
    }

    fn records(&self, sink: &mut StatisticSink) {
        self.unit.records(sink);
    }

    fn counts_by_time(&self) -> bool {
        self.unit.counts_by_time()
    }

    fn launches(&mut self, sink: &mut LaunchSink) {
        self.unit.launches(sink);
    }

    fn shares(&mut self, totals: &mut LaunchTotals) {
        self.unit.shares(totals);
    }

    fn outstanding(&self) -> Option<String> {
        let parts: Vec<String> = [self.conversation.owed(), self.unit.outstanding()].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; it says of itself: "))
    }

    fn holds_others_up(&self) -> bool {
        self.conversation.owes() && !self.conversation.waits_below()
    }

    fn save(&self) -> Result<Vec<u8>, StateError> {
        save_state(&(self.unit.save()?, &self.conversation, &self.followed, self.wake))
    }

    fn restore(&mut self, state: &[u8], codes: &dyn CodeSource) -> Result<(), StateError> {
        let (state, conversation, followed, wake): (Vec<u8>, Conversation, Option<Followed>, SimTime) =
            restore_state(state)?;
        self.unit.restore(&state, codes)?;
        (self.conversation, self.followed, self.wake) = (conversation, followed, wake);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
