//! The program's end of the tunnel.

#![expect(
    clippy::disallowed_types,
    reason = "the tunnel runs in real time: it waits for programs, and does not simulate"
)]

use super::address::with_address;
use super::bulk;
use super::shared::SharedPages;
use super::socket::Socket;
use super::wire::{ClientFrame, MAGIC, Role, ServerFrame, VERSION, encode, malformed};
use crate::call::{Call, CallResult};
use crate::description::NodeDescription;
use crate::error::CudaError;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::Pid;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Reported to the program's stderr, once, when the simulator has ended.
pub const SIMULATOR_ENDED: &str =
    "balar-actors: the simulator has ended: every CUDA call of this program fails from now on";

/// Has the program been told why it has no connection, although there is a simulator?
static TOLD_UNCONNECTED: AtomicBool = AtomicBool::new(false);
/// Has the program been told that the simulator has ended?
static TOLD_ENDED: AtomicBool = AtomicBool::new(false);

/// Does an error of a connection say that there is no simulator any longer? Otherwise the connection alone has failed, and the
/// thread may make another.
pub fn is_simulator_gone(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::UnexpectedEof
            | Kind::BrokenPipe
            | Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::ConnectionRefused
            | Kind::NotFound
    )
}

/// The simulator's answer to a new connection.
#[derive(Debug)]
pub struct Welcome {
    /// The devices.
    pub node: NodeDescription,
    /// Bytes of a shared page.
    pub page_bytes: u64,
    /// The node's memory: a file whose offset 0 is the address [`memory::BASE`](crate::memory::BASE). A program maps its pinned
    /// and managed allocations from it.
    pub arena: Option<OwnedFd>,
    /// The number of the connection's thread.
    pub thread: u32,
}

/// A call has returned.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// Its result. The bytes of [`CallResult::Data`] are absent: they went to the sink.
    pub result: CallResult,
    /// The error of a [posted](Client::post) call before it: the first since the last reply.
    pub missed: Option<CudaError>,
    /// How many calls the thread may post before the next reply, on the same device.
    pub may_post: u32,
    /// Text that kernels have printed since the last reply to any thread.
    pub printed: Vec<u8>,
    /// As `printed`, for the standard error stream.
    pub printed_error: Vec<u8>,
    /// Transfers of asynchronous copies to pageable memory (in graphs) that have come: the program's number for each, and the
    /// bytes.
    pub received: Vec<(u32, Vec<u8>)>,
}

/// The connection of one thread. It makes one call at a time.
#[derive(Debug)]
pub struct Client {
    socket: Socket<ClientFrame, ServerFrame>,
    pages: SharedPages,
    process: Pid,
    /// The folder of the socket, which is removed here if the simulator has ended without removing it.
    folder: Option<PathBuf>,
    ended: bool,
}

impl Client {
    /// Connects to the simulator whose socket is at `path` ([`SOCKET_VARIABLE`](super::SOCKET_VARIABLE)). Waits until it answers.
    ///
    /// # Errors
    ///
    /// Where there is no simulator, or it refuses this process, since another one uses the node; the first time, the reason has
    /// been said on stderr. CUDA's word for it is `cudaErrorDevicesUnavailable`.
    pub fn connect(path: &Path, role: Role) -> io::Result<(Client, Welcome)> {
        let connected = Client::try_connect(path, role).map_err(|error| other_user(path).unwrap_or(error));
        if let Err(error) = &connected
            && !if is_simulator_gone(error) { &TOLD_ENDED } else { &TOLD_UNCONNECTED }.swap(true, Ordering::Relaxed)
        {
            say(&format!("balar-actors: no connection to the simulator: {error}"));
        }
        connected
    }

    fn try_connect(path: &Path, role: Role) -> io::Result<(Client, Welcome)> {
        let mut socket = Client::greet(path, role)?;
        let welcome = socket.receive()?;
        let ended = || io::Error::new(io::ErrorKind::UnexpectedEof, "the simulator has ended");
        let welcome = welcome.ok_or_else(ended)?;
        let ServerFrame::Welcome { node, page_bytes, pages, thread } = welcome else {
            return Err(malformed("expected a welcome"));
        };
        let mut descriptors = std::mem::take(&mut socket.descriptors).into_iter();
        let ring = descriptors.next().ok_or_else(|| malformed("a welcome without shared pages"))?;
        let pages = SharedPages::map(ring.as_fd(), page_bytes, pages)?;
        let folder = path.parent().filter(|folder| super::server::is_socket_folder(folder)).map(Path::to_owned);
        let client = Client { socket, pages, process: rustix::process::getpid(), folder, ended: false };
        Ok((client, Welcome { node, page_bytes, arena: descriptors.next(), thread }))
    }

    /// Connects and introduces this process.
    fn greet(path: &Path, role: Role) -> io::Result<Socket<ClientFrame, ServerFrame>> {
        let descriptor = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        with_address(path, |address| {
            loop {
                match rustix::net::connect(&descriptor, address) {
                    Err(rustix::io::Errno::INTR) => {}
                    connected => return Ok(connected?),
                }
            }
        })?;
        let mut socket = Socket::new(descriptor, None);
        let hello = ClientFrame::Hello {
            role,
            program_number: program_number(),
            thread: rustix::thread::gettid().as_raw_nonzero().get() as u32,
            program: program_name(),
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&encode(&hello)?);
        socket.send_bytes(&bytes, &[])?;
        Ok(socket)
    }

    /// Announces that this process ends by itself: its outstanding work on devices is completed before its resources are released. If a
    /// process ends without this, its work ends at once.
    pub fn say_goodbye(path: &Path) {
        // If the simulator has ended, there is nothing to announce it to.
        let _ = Client::greet(path, Role::Goodbye);
    }

    /// Makes a call and waits until it returns. `call`'s payloads are absent, their bytes are `payloads`, in the order of
    /// [`Call::payloads`]. The bytes of [`CallResult::Data`] go to `sink`, piece by piece, each with its offset.
    ///
    /// # Errors
    ///
    /// Where the connection has failed, because the simulator is gone or by itself ([`is_simulator_gone`]); the first time, that
    /// has been said on stderr. Every later call on this connection fails too.
    pub fn call(
        &mut self,
        device: u32,
        host_picoseconds: u64,
        call: &Call,
        payloads: &[&[u8]],
        sink: &mut dyn FnMut(u64, &[u8]),
    ) -> io::Result<Reply> {
        let announced = call.payloads().iter().map(|payload| payload.len()).eq(payloads.iter().map(|p| p.len() as u64));
        if !announced {
            let text = format!("the payloads of {} are not as long as it says", call.name());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        self.alive()?;
        let reply = self.exchange(device, host_picoseconds, call, payloads, sink);
        reply.map_err(|error| self.end(error))
    }

    /// Makes a call without payloads that adds one operation to a stream, and does not wait until it returns. The simulator takes a
    /// thread's calls in their order, posted or not, and no other call of the process before posted ones. The result of a posted call is
    /// lost; an error comes with the next reply. That reply also says how many calls may be posted: none while other threads use the node,
    /// for they would be held up.
    ///
    /// # Errors
    ///
    /// As [`Client::call`].
    pub fn post(&mut self, device: u32, host_picoseconds: u64, call: Call) -> io::Result<()> {
        if !call.payloads().is_empty() {
            let text = format!("{} has payloads, and cannot be posted", call.name());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        self.alive()?;
        let request = ClientFrame::Request { device, host_picoseconds, call, posted: true, filled: 0 };
        let sent = self.socket.send(&request).map_err(|error| self.reason_of_end(error));
        sent.map_err(|error| self.end(error))
    }

    /// Waits for a host function that a stream has come to, on a connection of [`Role::Callbacks`]; `None` when the simulator
    /// has ended. The answer is [`Call::CallbackDone`], on the same connection.
    ///
    /// # Errors
    ///
    /// Where the connection fails otherwise than by its end.
    pub fn next_callback(&mut self) -> io::Result<Option<u64>> {
        self.alive()?;
        loop {
            if let Some(ServerFrame::Callback(function)) = self.socket.aside.pop_front() {
                return Ok(Some(function));
            }
            // `receive` sets frames aside only while it looks for others: bytes come first.
            match self.socket.buffer().frame::<ServerFrame>() {
                Ok(Some(frame)) => match frame {
                    ServerFrame::Callback(function) => return Ok(Some(function)),
                    ServerFrame::Ended(_) => return Ok(None),
                    ServerFrame::Failed(text) => return Err(self.end(io::Error::other(text))),
                    _ => return Err(self.end(malformed("expected a host function"))),
                },
                Ok(None) => match self.socket.fill() {
                    Ok(true) => {}
                    Ok(false) => return Ok(None),
                    Err(error) => return Err(self.end(error)),
                },
                Err(error) => return Err(self.end(error)),
            }
        }
    }

    fn exchange(
        &mut self,
        device: u32,
        host_picoseconds: u64,
        call: &Call,
        payloads: &[&[u8]],
        sink: &mut dyn FnMut(u64, &[u8]),
    ) -> io::Result<Reply> {
        // The call is small without its payloads.
        let call = call.clone();
        bulk::send(&mut self.socket, &self.pages, payloads, |filled| ClientFrame::Request {
            device,
            host_picoseconds,
            call,
            posted: false,
            filled,
        })
        .map_err(|error| self.reason_of_end(error))?;
        let ServerFrame::Reply { result, missed, may_post, printed, printed_error, received, filled } =
            self.socket.expect()?
        else {
            return Err(malformed("expected a reply"));
        };
        let mut sections = Sections::new(printed, printed_error, &received)?;
        let data = if let CallResult::Data(bytes) = &result { bytes.len() } else { 0 };
        let total = sections.bytes.checked_add(data).ok_or_else(|| malformed("too much data"))?;
        let pages = &self.pages;
        bulk::receive(&mut self.socket, pages, total, filled, |position, bytes| {
            sections.take(pages, position, bytes, sink);
        })?;
        let mut parts = sections.parts.into_iter();
        let printed = parts.next().unwrap_or_default();
        let printed_error = parts.next().unwrap_or_default();
        let received = received.iter().map(|(transfer, _)| *transfer).zip(parts).collect();
        Ok(Reply { result, missed, may_post, printed, printed_error, received })
    }

    /// The simulator's message before it closed the connection, if that is why nothing can be sent.
    fn reason_of_end(&mut self, error: io::Error) -> io::Error {
        // A reset where posted calls were not read.
        if !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
            return error;
        }
        // What was said before is still there to be read; no more comes.
        self.socket.expect().err().filter(|said| said.kind() == io::ErrorKind::ConnectionAborted).unwrap_or(error)
    }

    /// Has the connection failed?
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Is this connection of any use?
    fn alive(&self) -> io::Result<()> {
        if self.ended {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the connection has ended"));
        }
        // A forked child has its parent's connection, and must not speak on it.
        if rustix::process::getpid() != self.process {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the connection belongs to the parent process"));
        }
        Ok(())
    }

    /// The connection is over.
    fn end(&mut self, error: io::Error) -> io::Error {
        self.ended = true;
        if !is_simulator_gone(&error) {
            // Of what ends with a frame that says why, the simulator has told the user.
            if error.kind() != io::ErrorKind::Other {
                say(&format!("balar-actors: the connection of a thread to the simulator has failed: {error}"));
            }
            return error;
        }
        if !TOLD_ENDED.swap(true, Ordering::Relaxed) {
            match error.kind() {
                io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                    say(SIMULATOR_ENDED);
                }
                _ => say(&format!("{SIMULATOR_ENDED} ({error})")),
            }
        }
        if let Some(folder) = &self.folder {
            super::server::remove_abandoned(folder);
        }
        error
    }
}

/// Where the bulk data of a reply goes: first to parts of known length, then to the sink.
struct Sections {
    parts: Vec<Vec<u8>>,
    /// The lengths that the parts will have.
    lengths: Vec<u64>,
    /// The part that is being filled.
    current: usize,
    /// Their bytes together.
    bytes: u64,
    /// Bytes that the sink has had.
    sunk: u64,
}

impl Sections {
    fn new(printed: u64, printed_error: u64, received: &[(u32, u64)]) -> io::Result<Sections> {
        let lengths: Vec<u64> =
            [printed, printed_error].into_iter().chain(received.iter().map(|(_, bytes)| *bytes)).collect();
        let bytes = lengths.iter().try_fold(0_u64, |sum, bytes| sum.checked_add(*bytes));
        let bytes = bytes.ok_or_else(|| malformed("too much text"))?;
        Ok(Sections { parts: vec![Vec::new(); lengths.len()], lengths, current: 0, bytes, sunk: 0 })
    }

    fn take(&mut self, pages: &SharedPages, mut position: u64, mut bytes: usize, sink: &mut dyn FnMut(u64, &[u8])) {
        while bytes > 0 {
            let Some(part) = self.parts.get_mut(self.current) else {
                sink(self.sunk, pages.slice(position, bytes));
                self.sunk += bytes as u64;
                return;
            };
            let missing = self.lengths[self.current] - part.len() as u64;
            if missing == 0 {
                self.current += 1;
                continue;
            }
            let now = bytes.min(usize::try_from(missing).unwrap_or(usize::MAX));
            part.extend_from_slice(pages.slice(position, now));
            position += now as u64;
            bytes -= now;
        }
    }
}

/// A number that other programs do not have, be it that this process ran them before.
fn program_number() -> u64 {
    static NUMBER: OnceLock<u64> = OnceLock::new();
    *NUMBER.get_or_init(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_right(20)
    })
}

/// Says that the simulator is another user's than this process is now, if it is: its folder and its socket are closed to others.
fn other_user(path: &Path) -> Option<io::Error> {
    let owner = std::fs::metadata(path.parent()?).ok()?.uid();
    let own = rustix::process::geteuid().as_raw();
    let text = format!(
        "it belongs to user {owner}, and this process is user {own} now: a program that changes its user makes the first CUDA call of \
         each thread before that"
    );
    (owner != own).then(|| io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// The program's file name.
fn program_name() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Says a line on stderr.
fn say(text: &str) {
    // If stderr is closed, nobody can be told.
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}
