//! The rules of time and of protocols, for units that are held to them one call at a time: on a bench, and as guests of a run.

use crate::engine::containment::contain;
use crate::engine::unit::{NextWake, Unit, Window, Wire};
use crate::engine::{Inbox, Outbox};
use balar_protocol::memory::{LINE_BYTES, MemoryKind, MemoryMessage, MemoryRequest, SECTOR_BYTES, words_of};
use balar_protocol::{Payload, PortId, SimTime, UnitId};

/// Calls without an end after which a bench takes a unit for one that never comes to rest.
pub(in crate::engine) const MAXIMUM_CALLS: u64 = 1_000_000;

/// A rule that a unit broke.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokenRule {
    /// It left messages of its window.
    #[error(
        "the unit left {count} messages in its inbox in the window from {} to {}; \
         rule: a unit takes every message of its window", .window.start, .window.until
    )]
    MessagesLeft {
        /// How many.
        count: usize,
        /// The window.
        window: Window,
    },
    /// It asked to be woken in a window that is over.
    #[error(
        "the unit wants to wake at {at}, in the window from {} to {} that it has just run; \
         rule: what happens before the window's end happens in the call, `NextWake::At` is for what happens at its end or later",
        .window.start, .window.until
    )]
    WakeInThePast {
        /// The time it asked for.
        at: SimTime,
        /// The window.
        window: Window,
    },
    /// It panicked; sending into the past is a panic.
    #[error("{text}; the unit panicked so in the window from {} to {}", .window.start, .window.until)]
    Panicked {
        /// Its message, and the place.
        text: String,
        /// The window.
        window: Window,
    },
    /// It does not come to rest.
    #[error(
        "the unit has been called {} times by {at} and still wants to wake; rule: a unit without work sleeps",
        MAXIMUM_CALLS
    )]
    Restless {
        /// How far it has come.
        at: SimTime,
    },
    /// It answered a request that does not exist, or answered one twice.
    #[error("at {at} the unit {what}; rule: each request is answered once, with its own number")]
    Answer {
        /// When the answer left.
        at: SimTime,
        /// Its act, in words that follow "the unit".
        what: String,
    },
    /// It sent a message that its port does not send.
    #[error(
        "at {at} the unit sent {message} through its port {port}, which is a {role}; rule: a port sends the messages of its role"
    )]
    WrongRole {
        /// When the message left.
        at: SimTime,
        /// The port's name.
        port: String,
        /// "server of the protocol memory".
        role: String,
        /// The message.
        message: String,
    },
    /// It broke the order of a client's accesses in a way that would flatter it.
    #[error("{0}")]
    Order(String),
    /// It sent a request that makes no sense.
    #[error("at {at} the unit sent a request that {what}: {request:?}")]
    Malformed {
        /// When the request left.
        at: SimTime,
        /// The mistake.
        what: &'static str,
        /// The request.
        request: MemoryRequest,
    },
}

/// An outbox for one unit alone whose port i has the latency `latencies[i]`. Messages are kept, and their port is the sender's.
pub(in crate::engine) fn outbox_alone(latencies: impl IntoIterator<Item = SimTime>) -> Outbox {
    let wires = latencies.into_iter().enumerate();
    Outbox::alone(wires.map(|(i, latency)| Wire { unit: UnitId(1), port: PortId(i as u16), latency }).collect())
}

/// Lets a unit run through a window in which nobody else does.
///
/// # Errors
///
/// The rule of time that the unit broke.
pub(in crate::engine) fn advance_alone(
    unit: &mut dyn Unit,
    window: Window,
    inbox: &mut Inbox,
    out: &mut Outbox,
) -> Result<NextWake, BrokenRule> {
    out.begin_alone(window.start);
    let next = contain(|| unit.advance(window, inbox, out));
    match next.map_err(|text| BrokenRule::Panicked { text, window })? {
        _ if !inbox.is_empty() => Err(BrokenRule::MessagesLeft { count: inbox.len(), window }),
        NextWake::At(at) if at < window.until => Err(BrokenRule::WakeInThePast { at, window }),
        next => Ok(next),
    }
}

/// Does a unit's message make sense for any receiver?
///
/// # Errors
///
/// A request that no memory could serve.
pub(crate) fn well_formed(payload: &Payload, at: SimTime) -> Result<(), BrokenRule> {
    let Payload::Memory(MemoryMessage::Request(request)) = payload else { return Ok(()) };
    let what = if request.line % LINE_BYTES != 0 {
        "does not begin at a line"
    } else if request.sectors == 0 || request.sectors > 0b1111 {
        "has no sectors, or more than four"
    } else if request.written_words & !words_of(request.sectors) != 0 {
        "writes words of sectors that it does not touch"
    } else if u64::from(request.data_bytes) > u64::from(request.sectors.count_ones()) * SECTOR_BYTES
        && request.kind == MemoryKind::Store
    {
        "carries more bytes than its sectors have"
    } else {
        return Ok(());
    };
    Err(BrokenRule::Malformed { at, what, request: *request })
}
