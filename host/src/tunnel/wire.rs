//! The messages on the socket: frames of postcard, each after its length.
//!
//! Bulk data is not in frames but in the shared pages: a frame says how many of its bytes lie there already.

use crate::call::{Call, CallResult};
use crate::description::NodeDescription;
use crate::error::CudaError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;

/// The first bytes of a connection.
pub const MAGIC: [u8; 8] = *b"balartun";
/// Version of the frames. Both ends come from the same build, unless something is mixed up.
pub const VERSION: u32 = 10;
/// Bytes of magic and version.
pub const PREAMBLE_BYTES: usize = MAGIC.len() + 4;
/// Bytes of a frame's length.
pub const LENGTH_BYTES: usize = 4;
/// No frame is longer: bulk data has the shared pages, and no list of parameters, kernels or graph nodes comes near.
pub const MAXIMUM_FRAME_BYTES: usize = 64 << 20;

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// A host thread that makes calls.
    Thread,
    /// The host thread that runs stream callbacks and host functions, and makes calls to say that it has.
    Callbacks,
    /// None: the process says that it comes to its end by itself, and nothing else.
    Goodbye,
    /// The host thread that sees other threads' accesses of managed memory: it makes no call while they make none.
    Accesses,
    /// No host thread: the process asks about the node, without using its devices.
    Management,
}

/// Messages from a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ClientFrame {
    /// The first frame.
    Hello {
        /// The purpose of the connection.
        role: Role,
        /// A number of the program: another one after `exec`, the same for all its threads.
        program_number: u64,
        /// The thread, as the kernel numbers it.
        thread: u32,
        /// The program's file name, for messages.
        program: String,
    },
    /// A call.
    Request {
        /// The thread's current device.
        device: u32,
        /// Host time since its last call returned.
        host_picoseconds: u64,
        /// The call, its payloads absent.
        call: Call,
        /// The thread does not wait for its return: it has no payloads, and no reply.
        posted: bool,
        /// Bytes of the payloads that lie in the shared pages.
        filled: u64,
    },
    /// More bytes lie in the shared pages.
    Filled(u64),
    /// Bytes have been taken from the shared pages.
    Consumed(u64),
}

/// Messages from the simulator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ServerFrame {
    /// The connection is not wanted; the text says why. (The first of all frames: it must stay readable to other versions.)
    Refused(String),
    /// The answer to [`ClientFrame::Hello`]. With it come the descriptor of the connection's shared pages and, where there is
    /// one, that of the node's memory.
    Welcome {
        /// The devices.
        node: NodeDescription,
        /// Bytes of a shared page.
        page_bytes: u64,
        /// Shared pages.
        pages: u64,
        /// The number of the connection's thread, by which [`Activity`](crate::call::Activity) names it.
        thread: u32,
    },
    /// A call returns.
    Reply {
        /// Its result, its payload absent.
        result: CallResult,
        /// The error of a posted call before it: the first since the last reply.
        missed: Option<CudaError>,
        /// How many calls the thread may post before the next reply.
        may_post: u32,
        /// Bytes of text that kernels printed: the first of the bulk data.
        printed: u64,
        /// Bytes of text for the standard error stream: next.
        printed_error: u64,
        /// Transfers of asynchronous copies to pageable memory that have come: number and bytes; next.
        received: Vec<(u32, u64)>,
        /// Bytes of all bulk data, the result's own at its end, that lie in the shared pages.
        filled: u64,
    },
    /// More bytes lie in the shared pages.
    Filled(u64),
    /// Bytes have been taken from the shared pages.
    Consumed(u64),
    /// A stream has come to this host function.
    Callback(u64),
    /// The simulation ends before the program; the text says why.
    Ended(String),
    /// This connection ends, and no other; the text says why.
    Failed(String),
}

/// A frame that breaks the rules.
pub fn malformed(text: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("malformed frame: {text}"))
}

/// A frame with its length before it.
pub fn encode(frame: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = postcard::to_extend(frame, vec![0; LENGTH_BYTES]).map_err(malformed)?;
    let length = bytes.len() - LENGTH_BYTES;
    if length > MAXIMUM_FRAME_BYTES {
        return Err(malformed(format_args!("{length} bytes, expected at most {MAXIMUM_FRAME_BYTES}")));
    }
    bytes[..LENGTH_BYTES].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(bytes)
}

/// Bytes that have come, from which frames are taken as they are complete.
#[derive(Debug, Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    taken: usize,
}

impl FrameBuffer {
    /// More has come.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes that many bytes, once they are there.
    pub fn take(&mut self, bytes: usize) -> Option<&[u8]> {
        let rest = self.bytes.get(self.taken..self.taken + bytes)?;
        self.taken += bytes;
        Some(rest)
    }

    /// Is a frame there, or something that is none?
    pub fn has_frame(&self) -> bool {
        let rest = &self.bytes[self.taken..];
        rest.first_chunk::<LENGTH_BYTES>().is_some_and(|length| {
            let length = u32::from_le_bytes(*length) as usize;
            length > MAXIMUM_FRAME_BYTES || rest.len() - LENGTH_BYTES >= length
        })
    }

    /// Takes the next frame, once it is complete.
    ///
    /// # Errors
    ///
    /// Where it is too long, or no frame of this kind.
    pub fn frame<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let rest = &self.bytes[self.taken..];
        let Some(length) = rest.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAXIMUM_FRAME_BYTES {
            return Err(malformed(format_args!("{length} bytes announced, expected at most {MAXIMUM_FRAME_BYTES}")));
        }
        let Some(body) = rest.get(LENGTH_BYTES..LENGTH_BYTES + length) else { return Ok(None) };
        let (frame, left) = postcard::take_from_bytes(body).map_err(malformed)?;
        if !left.is_empty() {
            return Err(malformed(format_args!("{} bytes left over of {length}", left.len())));
        }
        self.taken += LENGTH_BYTES + length;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frames_come_in_pieces() {
        let sent = [ServerFrame::Filled(5), ServerFrame::Refused("busy".to_owned()), ServerFrame::Callback(u64::MAX)];
        let bytes: Vec<u8> = sent.iter().flat_map(|frame| encode(frame).expect("short")).collect();
        let mut buffer = FrameBuffer::default();
        let mut got = Vec::new();
        for byte in bytes {
            buffer.push(&[byte]);
            while let Some(frame) = buffer.frame::<ServerFrame>().expect("sound") {
                got.push(frame);
            }
        }
        assert_eq!(got, sent);
    }

    #[test]
    fn long_frames_are_refused_before_they_come() {
        let mut buffer = FrameBuffer::default();
        buffer.push(&u32::MAX.to_le_bytes());
        let error = buffer.frame::<ClientFrame>().expect_err("4 GiB").to_string();
        assert!(error.contains("4294967295 bytes announced"), "{error}");
    }

    #[test]
    fn graphs_within_graphs_end_no_stack() {
        let node = |call| crate::call::GraphNode::of(Some(call), vec![]);
        let graph = |nodes| Call::GraphLaunch { nodes, conditions: Vec::new(), stream: 1 };
        let request = |call| ClientFrame::Request { device: 0, host_picoseconds: 0, call, posted: false, filled: 0 };
        let read = |call: &Call| {
            let mut buffer = FrameBuffer::default();
            buffer.push(&encode(&request(call.clone())).expect("short"));
            buffer.frame::<ClientFrame>()
        };
        let two = graph(vec![node(Call::memset(1, 2, 3, 4, true)), node(Call::DeviceSynchronize)]);
        assert_eq!(read(&two).expect("a frame"), Some(request(two.clone())));
        let nested = graph(vec![node(two.clone())]);
        assert!(read(&nested).is_err());
        // The failure before leaves nothing behind.
        assert!(read(&two).is_ok());
        // A malicious message: a million graphs, each the first node of the one before.
        let once = postcard::to_stdvec(&graph(vec![node(Call::DeviceSynchronize)])).expect("short");
        let begins = &once[..3];
        let start = postcard::to_stdvec(&request(Call::DeviceSynchronize)).expect("short");
        let mut bytes = start[..3].to_vec();
        (0..1_000_000).for_each(|_| bytes.extend_from_slice(begins));
        let mut buffer = FrameBuffer::default();
        buffer.push(&(bytes.len() as u32).to_le_bytes());
        buffer.push(&bytes);
        assert!(buffer.frame::<ClientFrame>().is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut buffer = FrameBuffer::default();
            buffer.push(&(bytes.len() as u32).to_le_bytes());
            buffer.push(&bytes);
            // Either is right: some random bytes are frames.
            let _ = buffer.frame::<ClientFrame>();
        }
    }
}
