//! The debts of a unit at its server ports: requests that came in and are not answered yet.

use balar_protocol::memory::{MemoryBurst, MemoryKind, MemoryMessage, MemoryRequest, MemoryResponse};
use balar_protocol::translation::{FaultKind, TranslationMessage};
use balar_protocol::{Message, Payload, PortId, SimTime};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// Answers that are remembered, to tell a second answer from one that nobody asked for.
const REMEMBERED: usize = 64;
/// Requests that a text about debts names.
const NAMED: usize = 3;

/// Follows the requests and responses at the server ports of one unit: memory and translation requests. Each wants one answer. It finds
/// answers without a request, second answers, and requests without an answer.
///
/// Requesters may use a number several times at once: an SM gives all lines of a store the same one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Conversation {
    /// Names of the server ports.
    ports: BTreeMap<PortId, String>,
    /// Requests without an answer, oldest first, by port and number.
    open: BTreeMap<(PortId, u32), VecDeque<Open>>,
    answered: VecDeque<(PortId, u32, Question)>,
    /// Requests of the unit itself, through its client ports, that have no answer.
    waits_for: u64,
}

/// A request without an answer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Open {
    arrived: SimTime,
    question: Question,
}

/// The request, as far as the answer repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Question {
    Memory { kind: MemoryKind, line: u64, return_port: u16 },
    Burst(MemoryBurst),
    Translation,
}

impl From<&MemoryRequest> for Question {
    fn from(request: &MemoryRequest) -> Question {
        Question::Memory { kind: request.kind, line: request.line, return_port: request.return_port }
    }
}

impl From<&MemoryResponse> for Question {
    fn from(response: &MemoryResponse) -> Question {
        Question::Memory { kind: response.kind, line: response.line, return_port: response.return_port }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Question::Memory { kind, line, return_port } => {
                let kind = match kind {
                    MemoryKind::Load => "load",
                    MemoryKind::Store => "store",
                    MemoryKind::Atomic => "atomic",
                    MemoryKind::Reduction => "reduction",
                };
                write!(f, "{kind} of line {line:#x}")?;
                // Only behind a crossbar do requests of several requesters meet.
                if *return_port != 0 { write!(f, " for return port {return_port}") } else { Ok(()) }
            }
            Question::Burst(burst) => write!(f, "burst of {} bytes from {:#x}", burst.bytes, burst.address),
            Question::Translation => f.write_str("translation"),
        }
    }
}

impl Conversation {
    /// The conversation of a unit with these server ports, for any protocol, with their names in the topology: "upstream", "sm\[3\]".
    pub fn new(server_ports: impl IntoIterator<Item = (PortId, String)>) -> Conversation {
        Conversation { ports: server_ports.into_iter().collect(), ..Conversation::default() }
    }

    /// A message has been delivered to the unit.
    pub fn delivered(&mut self, message: &Message) {
        let (id, question) = match &message.payload {
            Payload::Memory(MemoryMessage::Request(request)) => (request.id, Question::from(request)),
            Payload::Memory(MemoryMessage::Burst(burst)) => (burst.id, Question::Burst(*burst)),
            Payload::Translation(TranslationMessage::Request { id, .. }) => (*id, Question::Translation),
            payload => {
                if !self.ports.contains_key(&message.port) && answer_of(payload).is_some() {
                    self.waits_for = self.waits_for.saturating_sub(1);
                }
                return;
            }
        };
        self.asked(message.port, id, Open { arrived: message.time, question });
    }

    /// As [`Conversation::delivered`], for a memory request.
    pub(crate) fn request(&mut self, port: PortId, arrived: SimTime, request: &MemoryRequest) {
        self.asked(port, request.id, Open { arrived, question: Question::from(request) });
    }

    fn asked(&mut self, port: PortId, id: u32, open: Open) {
        if self.ports.contains_key(&port) {
            self.open.entry((port, id)).or_default().push_back(open);
        }
    }

    /// The unit sends a message through `port`.
    ///
    /// # Errors
    ///
    /// An answer to no request that is under way, in words that follow the unit's name.
    pub fn sent(&mut self, port: PortId, payload: &Payload) -> Result<(), String> {
        let Some(name) = self.ports.get(&port) else {
            self.waits_for += u64::from(is_request(payload));
            return Ok(());
        };
        let Some((id, question)) = answer_of(payload) else { return Ok(()) };
        let key = (port, id);
        let open = self.open.get(&key);
        let Some(at) = open.and_then(|open| open.iter().position(|open| open.question == question)) else {
            let asked = open.and_then(|open| open.front()).map(|open| open.question);
            return Err(match asked {
                _ if self.answered.contains(&(port, id, question)) => {
                    format!("answered request {id} ({question}) at its port {name} twice")
                }
                Some(asked) => {
                    format!("answered request {id} at its port {name} as a {question}, and it is a {asked}")
                }
                None => {
                    format!("answered request {id} ({question}) at its port {name}, which is not under way")
                }
            });
        };
        if let Some(open) = self.open.get_mut(&key) {
            open.remove(at);
            if open.is_empty() {
                self.open.remove(&key);
            }
        }
        if self.answered.len() == REMEMBERED {
            self.answered.pop_front();
        }
        self.answered.push_back((port, id, question));
        Ok(())
    }

    /// Is there a request that the unit has not answered?
    pub fn owes(&self) -> bool {
        !self.open.is_empty()
    }

    /// Does the unit itself wait for an answer, at one of its client ports?
    pub fn waits_below(&self) -> bool {
        self.waits_for > 0
    }

    /// Requests without an answer, in words that follow the unit's name; `None` where there are none.
    pub fn owed(&self) -> Option<String> {
        let mut open: Vec<(&Open, PortId, u32)> = Vec::new();
        for (&(port, id), requests) in &self.open {
            open.extend(requests.iter().map(|request| (request, port, id)));
        }
        open.sort_by_key(|&(request, port, id)| (request.arrived, port, id));
        let named: Vec<String> = open
            .iter()
            .take(NAMED)
            .map(|(request, port, id)| {
                let port = &self.ports[port];
                format!("request {id} ({}) at its port {port} since {}", request.question, request.arrived)
            })
            .collect();
        let more = open.len().saturating_sub(NAMED);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        (!open.is_empty()).then(|| format!("has not answered {}{more}", named.join(", ")))
    }
}

/// Does it want an answer?
fn is_request(payload: &Payload) -> bool {
    matches!(
        payload,
        Payload::Memory(MemoryMessage::Request(_) | MemoryMessage::Burst(_))
            | Payload::Translation(TranslationMessage::Request { .. })
    )
}

/// The number of the request that a message answers, and what was asked; `None` of what is no answer.
fn answer_of(payload: &Payload) -> Option<(u32, Question)> {
    match payload {
        Payload::Memory(MemoryMessage::Response(response)) => Some((response.id, Question::from(response))),
        Payload::Memory(MemoryMessage::BurstDone(burst)) => Some((burst.id, Question::Burst(*burst))),
        Payload::Translation(TranslationMessage::Response { id, .. }) => Some((*id, Question::Translation)),
        // A page that is being moved is answered for once it has come; the other faults are the answer.
        Payload::Translation(TranslationMessage::Fault { id, kind, .. }) if *kind != FaultKind::NotResident => {
            Some((*id, Question::Translation))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_protocol::UnitId;
    use balar_protocol::memory::ServedBy;
    use balar_protocol::translation::PageAccess;

    const UPSTREAM: PortId = PortId(0);
    const DOWNSTREAM: PortId = PortId(1);

    fn request(id: u32, line: u64) -> MemoryRequest {
        MemoryRequest {
            line,
            id,
            launch: 1,
            data_bytes: 4,
            sectors: 1,
            kind: MemoryKind::Store,
            ..MemoryRequest::default()
        }
    }

    fn asked(time: u64, port: PortId, payload: Payload) -> Message {
        Message { time: SimTime(time), source: UnitId(7), port, payload }
    }

    fn asks(time: u64, request: MemoryRequest) -> Message {
        asked(time, UPSTREAM, Payload::Memory(MemoryMessage::Request(request)))
    }

    fn answer(request: MemoryRequest) -> Payload {
        Payload::Memory(MemoryMessage::Response(request.response(0, ServedBy::L2)))
    }

    fn conversation() -> Conversation {
        Conversation::new([(UPSTREAM, "upstream".to_owned())])
    }

    #[test]
    fn each_request_is_answered_once() {
        let mut conversation = conversation();
        conversation.delivered(&asks(10, request(17, 0x80)));
        assert_eq!(conversation.sent(UPSTREAM, &answer(request(17, 0x80))), Ok(()));
        assert_eq!(conversation.owed(), None);
        assert_eq!(
            conversation.sent(UPSTREAM, &answer(request(17, 0x80))),
            Err("answered request 17 (store of line 0x80) at its port upstream twice".to_owned())
        );
        assert_eq!(
            conversation.sent(UPSTREAM, &answer(request(18, 0x80))),
            Err("answered request 18 (store of line 0x80) at its port upstream, which is not under way".to_owned())
        );
    }

    #[test]
    fn a_number_may_be_under_way_several_times() {
        let mut conversation = conversation();
        for (time, line) in [(30, 0x80), (20, 0x100), (40, 0x80)] {
            conversation.delivered(&asks(time, request(5, line)));
        }
        for line in [0x80, 0x100, 0x80] {
            assert_eq!(conversation.sent(UPSTREAM, &answer(request(5, line))), Ok(()));
        }
        assert!(conversation.sent(UPSTREAM, &answer(request(5, 0x80))).is_err());
    }

    #[test]
    fn an_answer_that_is_not_to_the_question_is_found() {
        let mut conversation = conversation();
        conversation.delivered(&asks(10, request(5, 0x80)));
        assert_eq!(
            conversation.sent(UPSTREAM, &answer(request(5, 0x100))),
            Err("answered request 5 at its port upstream as a store of line 0x100, and it is a store of line 0x80"
                .to_owned())
        );
        let elsewhere = MemoryRequest { return_port: 3, ..request(5, 0x80) };
        assert!(conversation.sent(UPSTREAM, &answer(elsewhere)).is_err());
    }

    #[test]
    fn the_oldest_requests_are_named_first() {
        let mut conversation = conversation();
        for (time, id) in [(50, 1), (20, 9), (30, 9), (40, 2), (60, 3)] {
            conversation.delivered(&asks(time, request(id, 0x80)));
        }
        assert_eq!(
            conversation.owed().as_deref(),
            Some(
                "has not answered request 9 (store of line 0x80) at its port upstream since 20 ps, \
                 request 9 (store of line 0x80) at its port upstream since 30 ps, \
                 request 2 (store of line 0x80) at its port upstream since 40 ps and 2 more"
            )
        );
    }

    #[test]
    fn client_ports_and_other_messages_are_not_its_business() {
        let mut conversation = conversation();
        conversation.delivered(&asked(10, DOWNSTREAM, Payload::Memory(MemoryMessage::Request(request(1, 0)))));
        conversation.delivered(&asked(10, UPSTREAM, Payload::Memory(MemoryMessage::Drain)));
        assert_eq!(conversation.owed(), None);
        assert_eq!(conversation.sent(DOWNSTREAM, &answer(request(1, 0))), Ok(()));
        assert_eq!(conversation.sent(UPSTREAM, &Payload::Custom([1, 2, 3])), Ok(()));
    }

    #[test]
    fn a_unit_that_waits_below_is_told_from_one_that_owes_alone() {
        let mut conversation = conversation();
        conversation.delivered(&asks(10, request(17, 0x80)));
        assert!(conversation.owes() && !conversation.waits_below());
        let own = request(0, 0x80);
        let question = Payload::Memory(MemoryMessage::Request(own));
        assert_eq!(conversation.sent(DOWNSTREAM, &question), Ok(()));
        assert!(conversation.waits_below());
        conversation.delivered(&asked(20, DOWNSTREAM, answer(own)));
        assert!(conversation.owes() && !conversation.waits_below());
        assert_eq!(conversation.sent(UPSTREAM, &answer(request(17, 0x80))), Ok(()));
        assert!(!conversation.owes());
    }

    #[test]
    fn a_burst_is_answered_once() {
        let mut conversation = conversation();
        let burst = MemoryBurst { address: 0x140, bytes: 4096, id: 3, kind: MemoryKind::Load };
        conversation.delivered(&asked(10, UPSTREAM, Payload::Memory(MemoryMessage::Burst(burst))));
        assert!(conversation.owed().is_some_and(|owed| owed.contains("request 3 (burst of 4096 bytes from 0x140)")));
        let done = Payload::Memory(MemoryMessage::BurstDone(burst));
        assert_eq!(conversation.sent(UPSTREAM, &done), Ok(()));
        assert!(conversation.sent(UPSTREAM, &done).is_err());
    }

    #[test]
    fn a_page_that_is_being_moved_is_still_owed() {
        let mut conversation = conversation();
        let ask = TranslationMessage::Request { address: 0x1000, id: 4, access: PageAccess::Read };
        conversation.delivered(&asked(10, UPSTREAM, Payload::Translation(ask)));
        let fault =
            |kind| Payload::Translation(TranslationMessage::Fault { id: 4, address: 0x1000, page_bits: 12, kind });
        assert_eq!(conversation.sent(UPSTREAM, &fault(FaultKind::NotResident)), Ok(()));
        assert!(conversation.owed().is_some());
        assert_eq!(conversation.sent(UPSTREAM, &fault(FaultKind::Unmapped)), Ok(()));
        assert_eq!(conversation.owed(), None);
        assert!(conversation.sent(UPSTREAM, &fault(FaultKind::Unmapped)).is_err());
    }
}
