//! The simulator's end of one thread's connection.

#![expect(clippy::disallowed_types, reason = "connections that say nothing are given up in real time")]

use super::PATIENCE;
use crate::bytes::prefer_huge_pages;
use crate::call::{Call, CallResult};
use crate::description::NodeDescription;
use crate::error::CudaError;
use crate::program::ThreadId;
use crate::tunnel::bulk;
use crate::tunnel::shared::{PAGES, SharedPages};
use crate::tunnel::socket::{GiveUp, Socket};
use crate::tunnel::wire::{
    ClientFrame, LENGTH_BYTES, MAGIC, PREAMBLE_BYTES, Role, ServerFrame, VERSION, encode, malformed,
};
use balar_protocol::ProcessId;
use rustix::process::Pid;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a connection introduces itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    pub role: Role,
    pub program_number: u64,
    /// Its number, by the operating system's kernel.
    pub thread: u32,
    pub program: String,
}

/// The state of a connection.
#[derive(Debug)]
pub enum State {
    /// It has not introduced itself.
    New,
    /// Its thread runs the program's own code.
    Running,
    /// Its thread is in a call.
    Calling,
    /// Its thread has posted a call, which has not returned. The connection is not read meanwhile: arrived frames wait their turn.
    Posted,
}

/// Data that has arrived from a thread.
#[derive(Debug)]
pub struct Arrival {
    pub device: u32,
    pub host_picoseconds: u64,
    pub call: Call,
}

/// Bulk data of a reply.
#[derive(Debug, Default)]
pub struct ReplyData {
    pub printed: Vec<u8>,
    pub printed_error: Vec<u8>,
    pub received: Vec<(u32, Arc<[u8]>)>,
}

#[derive(Debug)]
pub struct Connection {
    /// A unique number: later connections have higher ones.
    pub number: u64,
    /// When it was accepted.
    pub accepted: Instant,
    socket: Socket<ServerFrame, ClientFrame>,
    pages: Option<SharedPages>,
    /// The process at the other end, as the kernel says.
    pub process: Pid,
    pub state: State,
    /// Whose it is, from its welcome on.
    pub program: Option<ProcessId>,
    /// Who it is, from its welcome on.
    pub greeting: Option<Greeting>,
    /// Its number, from its welcome on.
    pub thread: Option<ThreadId>,
    /// Has it run without a call for so long that simulated time does not wait for its next one?
    pub is_slow: bool,
    /// How long is long.
    pub patience: Duration,
    preamble_seen: bool,
    /// Was its last call posted? Then its thread may have made more calls, which come before the current acts of other threads of the
    /// process.
    pub is_ahead: bool,
    /// How many more operations its thread can add to streams without waiting.
    pub queue_room: usize,
    /// The first error of posted calls since the last reply.
    missed: Option<CudaError>,
}

impl Connection {
    pub fn new(number: u64, descriptor: OwnedFd, process: Pid, give_up: GiveUp) -> Connection {
        Connection {
            number,
            accepted: Instant::now(),
            socket: Socket::new(descriptor, Some(give_up)),
            pages: None,
            process,
            state: State::New,
            program: None,
            greeting: None,
            thread: None,
            is_slow: false,
            patience: PATIENCE,
            preamble_seen: false,
            is_ahead: false,
            queue_room: 0,
            missed: None,
        }
    }

    /// For `poll`.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.descriptor()
    }

    /// Is this the connection of the thread that runs host functions?
    pub fn runs_callbacks(&self) -> bool {
        self.greeting.as_ref().is_some_and(|greeting| greeting.role == Role::Callbacks)
    }

    /// Is this the connection of the thread that sees accesses of others to managed memory?
    pub fn sees_accesses(&self) -> bool {
        self.greeting.as_ref().is_some_and(|greeting| greeting.role == Role::Accesses)
    }

    /// Is this a connection by which the process asks about the node, and no connection of a thread?
    pub fn asks_about_node(&self) -> bool {
        self.greeting.as_ref().is_some_and(|greeting| greeting.role == Role::Management)
    }

    /// For messages.
    pub fn name(&self) -> String {
        let program = self.greeting.as_ref().map_or("a program", |greeting| greeting.program.as_str());
        format!("{program} (process {})", self.process.as_raw_nonzero())
    }

    /// Has a call come already, right behind the end of the one before?
    pub fn has_request(&mut self) -> bool {
        matches!(self.state, State::Running) && self.socket.buffer().has_frame()
    }

    /// Reads arrived bytes; returns `false` at the end of the connection.
    ///
    /// # Errors
    ///
    /// Where the connection fails.
    pub fn take_arrived(&mut self) -> io::Result<bool> {
        match self.socket.fill_now() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            other => {
                // Programs have no descriptors to give.
                self.socket.descriptors.clear();
                other
            }
        }
    }

    /// The greeting of a new connection, once it has come.
    ///
    /// # Errors
    ///
    /// Where it is something else.
    pub fn greeting(&mut self) -> io::Result<Option<Greeting>> {
        if !self.preamble_seen {
            let Some(preamble) = self.socket.buffer().take(PREAMBLE_BYTES) else { return Ok(None) };
            let (magic, version) = preamble.split_at(MAGIC.len());
            if magic != MAGIC {
                return Err(malformed("this is no balar-actors program"));
            }
            if version != VERSION.to_le_bytes() {
                return Err(malformed("the library of the program is of another version of balar-actors"));
            }
            self.preamble_seen = true;
        }
        match self.socket.buffer().frame()? {
            Some(ClientFrame::Hello { role, program_number, thread, program }) => {
                Ok(Some(Greeting { role, program_number, thread, program }))
            }
            Some(_) => Err(malformed("expected a greeting")),
            None => Ok(None),
        }
    }

    /// Lets the thread begin.
    ///
    /// # Errors
    ///
    /// Where the system has no memory for its pages, or the connection fails.
    pub fn welcome(
        &mut self,
        greeting: Greeting,
        thread: ThreadId,
        node: &NodeDescription,
        page_bytes: u64,
        arena: Option<&OwnedFd>,
    ) -> io::Result<()> {
        let (pages, file) = SharedPages::create(page_bytes)?;
        let frame = ServerFrame::Welcome { node: node.clone(), page_bytes, pages: PAGES, thread: thread.0 };
        let descriptors: Vec<BorrowedFd<'_>> = [Some(&file), arena].into_iter().flatten().map(AsFd::as_fd).collect();
        self.socket.send_bytes(&encode(&frame)?, &descriptors)?;
        self.pages = Some(pages);
        self.greeting = Some(greeting);
        self.thread = Some(thread);
        self.state = State::Running;
        Ok(())
    }

    /// The thread's next call, once it has come. The rest of its payloads is waited for.
    ///
    /// # Errors
    ///
    /// Where something else has come, or the connection fails.
    pub fn request(&mut self) -> io::Result<Option<Arrival>> {
        let frame: Option<ClientFrame> = self.socket.buffer().frame()?;
        let (device, host_picoseconds, mut call, posted, filled) = match frame {
            Some(ClientFrame::Request { device, host_picoseconds, call, posted, filled }) => {
                (device, host_picoseconds, call, posted, filled)
            }
            Some(_) => return Err(malformed("expected a call")),
            None => return Ok(None),
        };
        let Some(pages) = &self.pages else { return Err(malformed("a call before the greeting")) };
        let lengths: Vec<u64> = call.payloads().iter().map(|payload| payload.len()).collect();
        let total = lengths.iter().try_fold(0_u64, |sum, length| sum.checked_add(*length));
        let total = total.ok_or_else(|| malformed("payloads of more than all memory"))?;
        if posted && !lengths.is_empty() {
            return Err(malformed("a posted call with payloads"));
        }
        let mut payloads = lengths.iter().map(|length| Payload::new(*length)).collect::<io::Result<Vec<_>>>()?;
        let mut current = 0;
        bulk::receive(&mut self.socket, pages, total, filled, |mut position, mut bytes| {
            while bytes > 0 {
                let Some(payload) = payloads.get_mut(current) else { return };
                let taken = payload.take(pages, position, bytes);
                position += taken as u64;
                bytes -= taken;
                current += usize::from(bytes > 0);
            }
        })?;
        for (place, payload) in call.payloads_mut().into_iter().zip(payloads) {
            let data = payload.finish().ok_or_else(|| malformed("a payload that is not complete"))?;
            place.fill(data);
        }
        self.state = if posted { State::Posted } else { State::Calling };
        self.is_ahead = posted;
        if !self.is_slow {
            // It was worth waiting for.
            self.patience = (self.patience * 2).min(PATIENCE);
        }
        self.is_slow = false;
        Ok(Some(Arrival { device, host_picoseconds, call }))
    }

    /// A posted call has returned.
    pub fn end_posted(&mut self, result: &CallResult) {
        if let CallResult::Error(error) = result {
            self.missed.get_or_insert(*error);
        }
        self.state = State::Running;
    }

    /// Sends a call's result, and how many calls the thread may post.
    ///
    /// # Errors
    ///
    /// Where the connection fails.
    pub fn reply(&mut self, result: CallResult, data: &ReplyData, may_post: u32) -> io::Result<()> {
        let Some(pages) = &self.pages else { return Ok(()) };
        let mut sources: Vec<&[u8]> = vec![&data.printed, &data.printed_error];
        sources.extend(data.received.iter().map(|(_, bytes)| &**bytes));
        let own = if let CallResult::Data(bytes) = &result { bytes.data().cloned() } else { None };
        let absent = match (&result, &own) {
            (CallResult::Data(bytes), None) if !bytes.is_empty() => bytes.len(),
            _ => 0,
        };
        if absent > 0 {
            return Err(io::Error::other(format!("{absent} bytes of a result are missing")));
        }
        sources.extend(own.as_deref());
        let (printed, printed_error) = (data.printed.len() as u64, data.printed_error.len() as u64);
        let received = data.received.iter().map(|(transfer, bytes)| (*transfer, bytes.len() as u64)).collect();
        self.state = State::Running;
        let missed = self.missed.take();
        bulk::send(&mut self.socket, pages, &sources, |filled| ServerFrame::Reply {
            result,
            missed,
            may_post,
            printed,
            printed_error,
            received,
            filled,
        })
    }

    /// Asks the thread to run a host function.
    ///
    /// # Errors
    ///
    /// Where the connection fails.
    pub fn call_back(&mut self, function: u64) -> io::Result<()> {
        self.socket.send(&ServerFrame::Callback(function))
    }

    /// Says that the simulation ends, where the other end still listens.
    pub fn say_end(&mut self, text: &str) {
        let text = text.to_owned();
        self.say(&if self.thread.is_some() { ServerFrame::Ended(text) } else { ServerFrame::Refused(text) });
    }

    /// Says why this connection ends; `false` where the other end does not listen.
    pub fn say_failure(&mut self, text: &str) -> bool {
        let text = text.to_owned();
        self.say(&if self.thread.is_some() { ServerFrame::Failed(text) } else { ServerFrame::Refused(text) })
    }

    fn say(&mut self, frame: &ServerFrame) -> bool {
        let Ok(bytes) = encode(frame) else { return false };
        // It is short: it fits, or the other end does not listen.
        debug_assert!(bytes.len() > LENGTH_BYTES);
        let flags = rustix::net::SendFlags::DONTWAIT | rustix::net::SendFlags::NOSIGNAL;
        rustix::net::send(self.socket.descriptor(), &bytes, flags).is_ok_and(|sent| sent == bytes.len())
    }
}

/// Bytes of a payload as they come.
struct Payload {
    bytes: Arc<[MaybeUninit<u8>]>,
    filled: usize,
}

impl Payload {
    fn new(length: u64) -> io::Result<Payload> {
        let length = usize::try_from(length).map_err(|_| malformed("a payload of more than all memory"))?;
        // A length that no memory holds must not end the simulator.
        let mut probe: Vec<u8> = Vec::new();
        probe.try_reserve_exact(length).map_err(|_| malformed(format_args!("no memory for {length} bytes")))?;
        drop(probe);
        let mut bytes = Arc::new_uninit_slice(length);
        if let Some(all) = Arc::get_mut(&mut bytes) {
            prefer_huge_pages(all);
        }
        Ok(Payload { bytes, filled: 0 })
    }

    /// Takes its own part of a piece of the ring; returns how much that is.
    fn take(&mut self, pages: &SharedPages, position: u64, bytes: usize) -> usize {
        let Some(rest) = Arc::get_mut(&mut self.bytes).and_then(|all| all.get_mut(self.filled..)) else { return 0 };
        let now = bytes.min(rest.len());
        // SAFETY: `rest` has room for `now` bytes.
        unsafe { pages.read(position, rest.as_mut_ptr().cast(), now) };
        self.filled += now;
        now
    }

    fn finish(self) -> Option<Arc<[u8]>> {
        // SAFETY: every byte has been written: `take` writes them in order.
        (self.filled == self.bytes.len()).then(|| unsafe { self.bytes.assume_init() })
    }
}
