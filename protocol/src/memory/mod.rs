//! The memory protocol: loads, stores and atomics in 128-byte lines of four 32-byte sectors.
//!
//! A request names one line and the sectors it touches. It carries no data: values live in the device memory, timing travels here.
//! Every [`MemoryMessage::Request`] is answered by one [`MemoryResponse`] with the same `id`, stores included (their acknowledgement
//! is what a memory fence waits for).
//!
//! The client (an SM, a copy engine, the L2 slice before its memory) sends requests and [`MemoryMessage::Drain`]; the server sends
//! responses and [`MemoryMessage::Credit`]. Where a server's input queue has an end, its client starts with a credit for each entry
//! (the crossbar towards slices: `slice_queue`; an SM towards a crossbar with a `request_queue`). Where a client's queue of responses has
//! an end (a crossbar with a `response_queue`), its server starts with a credit for each entry, and [`MemoryMessage::ResponseCredit`]
//! gives credits back. All other clients take however many responses come in a cycle: a memory may count on it, so that requests that
//! wait for memory never wait for each other.
//!
//! A unit between SM and crossbar (a prefetcher, a write-combining buffer) is the server of the SM and a client of the crossbar. It
//! answers from its own copies only accesses of [`Scope::Weak`], and holds back only stores of that scope, until a `Drain` comes.
//!
//! Where the L2 has partitions, a line belongs to a slice of one of them, and a slice of each other partition keeps copies of it for the
//! SMs of its own. Such a slice is the client of the one that the line belongs to, which tells it by [`MemoryMessage::Forget`] when a copy
//! is out of date.

pub mod residency;

use crate::ports::Side;
use crate::time::SimTime;
use crate::translation::Aperture;
use residency::Residency;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes of a cache line.
pub const LINE_BYTES: u64 = 128;
/// Bytes of a sector, the unit of every transfer below L1.
pub const SECTOR_BYTES: u64 = 32;
/// Sectors of a line.
pub const SECTORS_PER_LINE: u32 = 4;

/// Bytes of a word, the unit in which the L2 keeps what stores have written of a sector.
pub const WORD_BYTES: u64 = 4;

/// The words of the sectors of a mask.
#[inline]
pub const fn words_of(sectors: u8) -> u32 {
    let sectors = sectors as u32;
    (sectors & 1 | (sectors & 2) << 7 | (sectors & 4) << 14 | (sectors & 8) << 21) * 0xff
}

/// The sectors of which a mask has all words.
#[inline]
pub const fn full_sectors(words: u32) -> u8 {
    let pairs = words & words >> 1;
    let fours = pairs & pairs >> 2;
    let eights = fours & fours >> 4 & 0x0101_0101;
    (eights | eights >> 7 | eights >> 14 | eights >> 21) as u8 & 0b1111
}

/// How many sectors a mask of one line's sectors has. Not every processor counts bits by itself.
#[inline]
pub const fn sector_count(sectors: u8) -> u32 {
    const ONES: [u8; 16] = [0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4];
    ONES[(sectors % 16) as usize] as u32
}

/// The sectors of a line that its bytes from `first` to `end` touch.
#[inline]
pub const fn sectors_of(first: u64, end: u64) -> u8 {
    mask_of(first / SECTOR_BYTES, end.div_ceil(SECTOR_BYTES)) as u8
}

/// The words of a line that lie within its bytes from `first` to `end`.
#[inline]
pub const fn words_within(first: u64, end: u64) -> u32 {
    mask_of(first.div_ceil(WORD_BYTES), end / WORD_BYTES)
}

/// Bits from `from` to `to`, at most 32.
#[inline]
const fn mask_of(from: u64, to: u64) -> u32 {
    if to > from { (((1u64 << (to - from)) - 1) << from) as u32 } else { 0 }
}

/// What a request does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryKind {
    /// Reads whole sectors.
    #[default]
    Load,
    /// Writes bytes; answered by an acknowledgement without data.
    Store,
    /// Reads, modifies and writes at the L2 slice, and returns the old values.
    Atomic,
    /// Like an atomic, but nothing is returned: answered by an acknowledgement without data.
    Reduction,
}

impl MemoryKind {
    /// Does the request carry data towards memory?
    #[inline]
    pub const fn carries_data(self) -> bool {
        !matches!(self, MemoryKind::Load)
    }

    /// Does it make a new value of an old one, in the unit that it goes to?
    #[inline]
    pub const fn updates(self) -> bool {
        matches!(self, MemoryKind::Atomic | MemoryKind::Reduction)
    }

    /// Does the response carry data back?
    #[inline]
    pub const fn returns_data(self) -> bool {
        matches!(self, MemoryKind::Load | MemoryKind::Atomic)
    }
}

/// Who must see an access, or be seen by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scope {
    /// Nobody in particular: an ordinary access, which any unit on the way may serve from its copy, combine or hold back.
    #[default]
    Weak,
    /// All threads of the GPU: a volatile or relaxed access, which the L2 serves.
    Device,
    /// The host and other GPUs, too.
    System,
}

/// A request for one line.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRequest {
    /// Address of the line in device memory, a multiple of [`LINE_BYTES`].
    pub line: u64,
    /// The requester's own number, echoed in the response.
    pub id: u32,
    /// The kernel launch it belongs to (0: none).
    pub launch: u32,
    /// Where the response goes back to: set by each unit that forwards (the crossbar: its input port).
    pub return_port: u16,
    /// Bytes that a store, atomic or reduction carries.
    pub data_bytes: u16,
    /// Of a store: words of the line that it writes whole, bit i = word i. What has been written of a sector need not be fetched.
    pub written_words: u32,
    /// Which of the four sectors it touches, bit i = sector i.
    pub sectors: u8,
    /// Of an atomic or reduction: lanes that take part, the number of operations to do.
    pub operations: u8,
    /// Of an atomic or reduction: sectors that each group of 16 lanes touches, added up, as profilers count them.
    pub update_sectors: u8,
    /// What it does.
    pub kind: MemoryKind,
    /// Who must see it.
    pub scope: Scope,
    /// Whose memory its page lies in, as the translation says.
    pub aperture: Aperture,
    /// The line belongs to a slice of another partition of the L2 than the slice that the request goes to.
    pub is_far: bool,
    /// How long the line is to stay in the L2.
    pub residency: Residency,
}

/// Who supplied the sectors of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServedBy {
    /// All sectors were in the L2 slice.
    L2,
    /// At least one sector came from device memory, on behalf of this request or of another.
    DeviceMemory,
    /// Host memory, over the link.
    HostMemory,
    /// A unit between the SM and the L2, a prefetcher's buffer say.
    Intermediate,
}

/// The answer to a [`MemoryRequest`].
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryResponse {
    /// The request's line.
    pub line: u64,
    /// The request's number.
    pub id: u32,
    /// The request's launch.
    pub launch: u32,
    /// The request's return port, as the responder received it.
    pub return_port: u16,
    /// The request's sectors.
    pub sectors: u8,
    /// Of these, the sectors that were in the L2 or on their way there.
    pub hit_sectors: u8,
    /// The sectors of the line that the L2 fetched from memory because of this request, neighbours that it did not ask for included.
    pub fetched_sectors: u8,
    /// The request's kind.
    pub kind: MemoryKind,
    /// Who supplied it.
    pub served_by: ServedBy,
}

impl MemoryRequest {
    /// Of a store: the sectors that it writes in full.
    #[inline]
    pub const fn full_sectors(&self) -> u8 {
        full_sectors(self.written_words)
    }

    /// Of a store: the sectors of which it writes a part.
    #[inline]
    pub const fn partial_sectors(&self) -> u8 {
        self.sectors & !self.full_sectors()
    }

    /// The store that stands for this one and `other`: the sectors and words of both, and the bytes of both up to those of the sectors,
    /// for no mask says which bytes they share. It keeps the number and the return port of this one.
    ///
    /// ```
    /// use balar_protocol::memory::{MemoryKind, MemoryRequest};
    /// let store = MemoryRequest { kind: MemoryKind::Store, launch: 1, ..MemoryRequest::default() };
    /// // Sector 0 in full, and the first eight bytes of sector 1.
    /// let first = MemoryRequest { sectors: 0b01, written_words: 0x00ff, data_bytes: 32, ..store };
    /// let second = MemoryRequest { sectors: 0b10, written_words: 0x0300, data_bytes: 8, ..store };
    /// assert_eq!((first.partial_sectors(), second.partial_sectors()), (0b00, 0b10));
    /// let both = first.combine(&second).expect("they are of one line and one launch");
    /// assert_eq!((both.sectors, both.written_words, both.data_bytes, both.full_sectors()), (0b11, 0x03ff, 40, 0b01));
    /// // What is written twice is sent once.
    /// assert_eq!(both.combine(&first).map(|all| all.data_bytes), Some(64));
    /// assert_eq!(first.combine(&MemoryRequest { launch: 2, ..second }), None);
    /// ```
    ///
    /// `None` where the two may not be combined: one of them is no store or not of [`Scope::Weak`], or they differ in line, launch or
    /// aperture.
    #[must_use]
    pub fn combine(&self, other: &MemoryRequest) -> Option<MemoryRequest> {
        let is_weak_store = |request: &MemoryRequest| request.kind == MemoryKind::Store && request.scope == Scope::Weak;
        let place = |request: &MemoryRequest| (request.line, request.launch, request.aperture);
        if !is_weak_store(self) || !is_weak_store(other) || place(self) != place(other) {
            return None;
        }
        let sectors = self.sectors | other.sectors;
        let room = sector_count(sectors) as u16 * SECTOR_BYTES as u16;
        Some(MemoryRequest {
            sectors,
            written_words: self.written_words | other.written_words,
            data_bytes: self.data_bytes.saturating_add(other.data_bytes).min(room),
            ..*self
        })
    }

    /// The response to this request, of a unit that fetched nothing for it.
    pub const fn response(&self, hit_sectors: u8, served_by: ServedBy) -> MemoryResponse {
        MemoryResponse {
            line: self.line,
            id: self.id,
            launch: self.launch,
            return_port: self.return_port,
            sectors: self.sectors,
            hit_sectors,
            fetched_sectors: 0,
            kind: self.kind,
            served_by,
        }
    }
}

/// An address as people read it.
struct Hexadecimal(u64);

impl fmt::Debug for Hexadecimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for MemoryRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryRequest")
            .field("line", &Hexadecimal(self.line))
            .field("id", &self.id)
            .field("launch", &self.launch)
            .field("return_port", &self.return_port)
            .field("data_bytes", &self.data_bytes)
            .field("written_words", &Hexadecimal(u64::from(self.written_words)))
            .field("sectors", &self.sectors)
            .field("operations", &self.operations)
            .field("kind", &self.kind)
            .field("scope", &self.scope)
            .field("aperture", &self.aperture)
            .finish()
    }
}

impl fmt::Debug for MemoryResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryResponse")
            .field("line", &Hexadecimal(self.line))
            .field("id", &self.id)
            .field("launch", &self.launch)
            .field("return_port", &self.return_port)
            .field("sectors", &self.sectors)
            .field("hit_sectors", &self.hit_sectors)
            .field("fetched_sectors", &self.fetched_sectors)
            .field("kind", &self.kind)
            .field("served_by", &self.served_by)
            .finish()
    }
}

impl fmt::Debug for MemoryBurst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBurst")
            .field("address", &Hexadecimal(self.address))
            .field("bytes", &self.bytes)
            .field("id", &self.id)
            .field("kind", &self.kind)
            .finish()
    }
}

impl MemoryResponse {
    /// Bytes of data that it carries.
    pub const fn data_bytes(&self) -> u64 {
        if self.kind.returns_data() { sector_count(self.sectors) as u64 * SECTOR_BYTES } else { 0 }
    }
}

/// Loads or stores of consecutive bytes, which arrive together: what a bulk transfer asks of a memory of many lines.
///
/// It stands for one [`MemoryRequest`] a line, in ascending order, with the sectors that its bytes touch: it takes as long, and counts
/// as many. Memories answer it once; caches and crossbars do not take it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryBurst {
    /// Address of the first byte.
    pub address: u64,
    /// How many bytes.
    pub bytes: u32,
    /// The requester's own number, echoed in the answer.
    pub id: u32,
    /// What it does: [`MemoryKind::Load`] or [`MemoryKind::Store`].
    pub kind: MemoryKind,
}

/// Messages of the memory protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryMessage {
    /// Towards memory.
    Request(MemoryRequest),
    /// Back to the requester.
    Response(MemoryResponse),
    /// Towards memory.
    Burst(MemoryBurst),
    /// Back to the requester: every line of its burst is done.
    BurstDone(MemoryBurst),
    /// Towards memory: a warp waits for its stores (at a fence, at the end of its kernel). Whoever holds stores of this client back
    /// sends them on; their acknowledgements are the answer. A unit that holds nothing back ignores it and need not pass it on.
    /// An SM sends it, once for each warp that begins to wait, where the unit at its memory port declares that it holds stores back.
    Drain,
    /// Back to the requester: requests have been taken out of the input queue, and as many more may be sent.
    Credit(Credits),
    /// Towards memory: responses have been taken out of the queue of a client that has an end, and as many more may be sent.
    ResponseCredit(Credits),
    /// Back to the requester: its copies of these sectors of a line, which it got by loads, are out of date.
    Forget {
        /// The line.
        line: u64,
        /// Its sectors, bit i = sector i.
        sectors: u8,
    },
}

impl MemoryMessage {
    /// Which side sends it.
    pub const fn sender(&self) -> Side {
        match self {
            MemoryMessage::Request(_)
            | MemoryMessage::Burst(_)
            | MemoryMessage::Drain
            | MemoryMessage::ResponseCredit(_) => Side::Client,
            MemoryMessage::Response(_)
            | MemoryMessage::BurstDone(_)
            | MemoryMessage::Credit(_)
            | MemoryMessage::Forget { .. } => Side::Server,
        }
    }
}

/// Further credits of a message after its first.
const FURTHER_CREDITS: usize = 11;

/// Credits, each with its own time: the first counts from the message's arrival, the others from as much later as they were given.
///
/// So a message may carry credits of its sender's near future, and how many it carries changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credits {
    /// Picoseconds from the first to each of the others.
    after: [u16; FURTHER_CREDITS],
    further: u8,
}

impl Credits {
    /// One credit, of the message's own time.
    pub const ONE: Credits = Credits { after: [0; FURTHER_CREDITS], further: 0 };

    /// As many as fit into a message.
    pub const MOST: usize = FURTHER_CREDITS + 1;

    /// `count` credits of the message's own time; at most [`Self::MOST`] fit.
    pub const fn at_once(count: usize) -> Credits {
        assert!(count > 0 && count <= Self::MOST);
        Credits { after: [0; FURTHER_CREDITS], further: (count - 1) as u8 }
    }

    /// Adds a credit that is given `after` the first, no earlier than those before it. False where it does not fit: it needs a
    /// message of its own.
    #[inline]
    pub fn push(&mut self, after: SimTime) -> bool {
        match (u16::try_from(after.0), self.after.get_mut(usize::from(self.further))) {
            (Ok(after), Some(place)) => {
                *place = after;
                self.further += 1;
                true
            }
            _ => false,
        }
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.further as usize + 1
    }

    /// The time of each, in order, of a message that arrives at `first`.
    #[inline]
    pub fn times(&self, first: SimTime) -> impl Iterator<Item = SimTime> {
        let further = self.after[..usize::from(self.further)].iter();
        std::iter::once(first).chain(further.map(move |&after| first + SimTime(u64::from(after))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_full_of_their_words() {
        for mask in 0..16 {
            assert_eq!(full_sectors(words_of(mask)), mask);
            assert_eq!(words_of(mask).count_ones(), 8 * mask.count_ones());
            let without = |word: u32| full_sectors(words_of(mask) & !(1 << word));
            assert!((0..32).all(|word| without(word) == mask & !(1 << (word / 8))));
        }
    }

    #[test]
    fn addresses_are_shown_in_hexadecimal() {
        let request = MemoryRequest { line: 123_145_302_704_384, id: 7, ..MemoryRequest::default() };
        let text = format!("{request:?} {:?}", request.response(0, ServedBy::L2));
        assert_eq!(text.matches("line: 0x700000060100, id: 7").count(), 2, "{text}");
        let burst = MemoryBurst { address: 0x140, bytes: 4096, id: 3, kind: MemoryKind::Load };
        assert_eq!(format!("{burst:?}"), "MemoryBurst { address: 0x140, bytes: 4096, id: 3, kind: Load }");
    }

    #[test]
    fn only_ordinary_stores_of_one_line_and_launch_are_combined() {
        let store = MemoryRequest {
            line: 0x80,
            launch: 1,
            sectors: 0b1,
            data_bytes: 4,
            kind: MemoryKind::Store,
            ..MemoryRequest::default()
        };
        // Two stores of four bytes to one sector, which may be the same bytes or not.
        assert_eq!(store.combine(&store).map(|both| (both.sectors, both.data_bytes)), Some((0b1, 8)));
        for other in [
            MemoryRequest { line: 0x100, ..store },
            MemoryRequest { launch: 2, ..store },
            MemoryRequest { kind: MemoryKind::Load, ..store },
            MemoryRequest { kind: MemoryKind::Reduction, ..store },
            MemoryRequest { scope: Scope::Device, ..store },
            MemoryRequest { aperture: Aperture::Host, ..store },
        ] {
            assert_eq!((store.combine(&other), other.combine(&store)), (None, None), "{other:?}");
        }
    }

    #[test]
    fn sectors_are_counted() {
        assert!((0..16).all(|mask: u8| sector_count(mask) == mask.count_ones()));
    }

    /// A credit that lies too far from the first, or finds no room, is refused and leaves the others as they are.
    #[test]
    fn credits_keep_their_times() {
        let mut credits = Credits::ONE;
        assert!(credits.push(SimTime(762)) && credits.push(SimTime(65_535)));
        assert!(!credits.push(SimTime(65_536)), "the span has 16 bits");
        let times: Vec<_> = credits.times(SimTime(100)).collect();
        assert_eq!(times, [SimTime(100), SimTime(862), SimTime(65_635)]);
        let mut many = Credits::ONE;
        let taken = (0..100).filter(|&after| many.push(SimTime(after))).count();
        assert_eq!((taken, many.count()), (11, 12));
        assert_eq!(Credits::at_once(12).times(SimTime(7)).filter(|time| *time == SimTime(7)).count(), 12);
    }
}
