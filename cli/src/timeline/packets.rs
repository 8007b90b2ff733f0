//! The packets of a trace: descriptors of tracks, and sequences of events with the names that they share.

use super::protobuf::Message;
use std::io;
pub use std::io::Write;

/// Fields of `Trace` and `TracePacket`.
mod field {
    pub const TRACE_PACKET: u32 = 1;
    pub const TIMESTAMP: u32 = 8;
    pub const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TRACK_DESCRIPTOR: u32 = 60;
}

/// `TracePacket.SequenceFlags`: the names that the sequence has used so far mean nothing any more.
const INCREMENTAL_STATE_CLEARED: u64 = 1;
/// `TracePacket.SequenceFlags`: the packet uses names of earlier ones.
const NEEDS_INCREMENTAL_STATE: u64 = 2;

/// Writes packets.
#[derive(Debug)]
pub struct Packets<W> {
    file: W,
    packet: Message,
    framed: Message,
    sequence: u64,
    /// The next packet is the first of its sequence.
    begins: bool,
}

impl<W: Write> Packets<W> {
    /// Into a file.
    pub fn new(file: W) -> Packets<W> {
        Packets { file, packet: Message::default(), framed: Message::default(), sequence: 1, begins: true }
    }

    /// What follows belongs to a new sequence, which shares no names with those before.
    pub fn begin_sequence(&mut self) {
        self.sequence += 1;
        self.begins = true;
    }

    /// A packet that describes a track.
    ///
    /// # Errors
    ///
    /// Where the file takes no more.
    pub fn track_descriptor(&mut self, fill: impl FnOnce(&mut Message)) -> io::Result<()> {
        self.packet.clear();
        self.packet.message(field::TRACK_DESCRIPTOR, fill);
        self.packet.number(field::TRUSTED_PACKET_SEQUENCE_ID, self.sequence);
        self.write()
    }

    /// A packet with an event at a time, which is in nanoseconds, and the names that are new in it.
    ///
    /// # Errors
    ///
    /// Where the file takes no more.
    pub fn event(&mut self, nanoseconds: u64, names: &Message, fill: impl FnOnce(&mut Message)) -> io::Result<()> {
        self.packet.clear();
        self.packet.number(field::TIMESTAMP, nanoseconds);
        self.packet.message(field::TRACK_EVENT, fill);
        if !names.bytes().is_empty() {
            self.packet.embed(field::INTERNED_DATA, names);
        }
        let cleared = if std::mem::take(&mut self.begins) { INCREMENTAL_STATE_CLEARED } else { 0 };
        self.packet.number(field::SEQUENCE_FLAGS, NEEDS_INCREMENTAL_STATE | cleared);
        self.packet.number(field::TRUSTED_PACKET_SEQUENCE_ID, self.sequence);
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        self.framed.clear();
        self.framed.embed(field::TRACE_PACKET, &self.packet);
        self.file.write_all(self.framed.bytes())
    }
}
