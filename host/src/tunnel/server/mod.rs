//! The simulator's end of the tunnel: the program, as the HostCpu unit sees it.

#![expect(
    clippy::disallowed_types,
    reason = "the tunnel runs in real time: it waits for programs, and does not simulate"
)]

mod connection;
mod control;
mod folder;
mod process;

pub use control::{Control, ProgramEnd, StopReason};
pub use folder::{SocketFolder, remove_folder};
pub(super) use folder::{is_socket_folder, remove_abandoned};

use super::shared::PAGE_BYTES;
use super::socket::{GiveUp, LOOK_PERIOD};
use super::wire::Role;
use crate::Verification;
use crate::call::{Call, CallResult};
use crate::description::NodeDescription;
use crate::program::{Host, Measurement, Next, Request, ThreadId};
use connection::{Arrival, Connection, Greeting, ReplyData, State};
use process::{Process, Sleep};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a thread may run without a call while others wait in theirs, before simulated time goes on without it.
const PATIENCE: Duration = Duration::from_millis(100);
/// Between two looks at threads that do not call.
const THREAD_PERIOD: Duration = Duration::from_micros(200);
/// Connections that have not said what they are, at most.
const MAXIMUM_NEW: usize = 64;

/// What a server is made of.
pub struct ServerOptions {
    /// The devices, as programs see them.
    pub node: NodeDescription,
    /// Bytes of a shared page.
    pub page_bytes: u64,
    /// The node's memory, which programs map their pinned and managed allocations from.
    pub arena: Option<Arc<OwnedFd>>,
    /// The other side of the run.
    pub control: Control,
    /// Takes what the user should know, a line at a time.
    pub report: Box<dyn Fn(&str) + Send>,
}

impl std::fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerOptions").field("page_bytes", &self.page_bytes).finish_non_exhaustive()
    }
}

/// The program that uses the node.
#[derive(Debug)]
struct Program {
    process: Process,
    number: u64,
    /// The devices that it has made calls to.
    devices: BTreeSet<u32>,
}

/// The end of a program: its devices are reset one after another.
#[derive(Debug)]
struct Cleaning {
    thread: ThreadId,
    devices: BTreeSet<u32>,
    is_waiting: bool,
}

/// Programs that come through a socket, one at a time.
#[derive(Debug)]
pub struct Server {
    listener: OwnedFd,
    options: ServerOptions,
    connections: Vec<Connection>,
    program: Option<Program>,
    cleaning: Option<Cleaning>,
    threads: u32,
    /// Host functions to run; the first one is under way where `called_back` says so.
    callbacks: VecDeque<u64>,
    called_back: bool,
    /// Whether streams will come to host functions.
    expects_call_back: bool,
    data: ReplyData,
    /// Since when simulated time waits for threads that run.
    waiting_since: Option<Instant>,
    ended: bool,
}

impl Server {
    /// Listens at `path`, in a folder that nobody else can enter.
    ///
    /// # Errors
    ///
    /// Where there can be no socket, or the size of a page is none.
    pub fn listen(path: &Path, options: ServerOptions) -> io::Result<Server> {
        let page_bytes = options.page_bytes;
        if !page_bytes.is_power_of_two() || !PAGE_BYTES.contains(&page_bytes) {
            let text = format!(
                "a page of the tunnel of {page_bytes} bytes: expected a power of two from {} to {}",
                PAGE_BYTES.start(),
                PAGE_BYTES.end()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::bind(&listener, &SocketAddrUnix::new(path)?)?;
        rustix::net::listen(&listener, 1024)?;
        Ok(Server {
            listener,
            options,
            connections: Vec::new(),
            program: None,
            cleaning: None,
            threads: 0,
            callbacks: VecDeque::new(),
            called_back: false,
            expects_call_back: false,
            data: ReplyData::default(),
            waiting_since: None,
            ended: false,
        })
    }

    fn new_thread(&mut self) -> ThreadId {
        let thread = ThreadId(self.threads);
        self.threads += 1;
        thread
    }

    /// Takes new connections.
    fn accept(&mut self) {
        while let Ok(descriptor) = rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC) {
            let Ok(peer) = rustix::net::sockopt::socket_peercred(&descriptor) else { continue };
            let news = self.connections.iter().filter(|connection| connection.thread.is_none()).count();
            // Nobody else can enter the folder; and whoever opens connections without end gets none.
            if peer.uid != rustix::process::geteuid() || news >= MAXIMUM_NEW {
                continue;
            }
            let control = self.options.control.clone();
            let give_up: GiveUp = Arc::new(move || control.is_stopping());
            self.connections.push(Connection::new(descriptor, peer.pid, give_up));
        }
    }

    /// Lets a connection begin, refuses it, or leaves it waiting.
    fn greet(&mut self, index: usize, greeting: Greeting) -> Result<(), String> {
        if self.program.as_ref().is_some_and(|program| program.process.has_ended()) {
            self.end_program();
        }
        let process = self.connections[index].process;
        if let Some(program) = &self.program {
            if program.process.number != process {
                let owner = self.connections.iter().find(|other| other.thread.is_some()).map(Connection::name);
                let owner = owner.unwrap_or_else(|| format!("process {}", program.process.number.as_raw_nonzero()));
                return Err(format!("the simulated node is in use by {owner}: one process at a time can use it"));
            }
            if program.number != greeting.program_number {
                // The process runs another program now, by `exec`.
                self.end_program();
            }
        }
        if self.cleaning.is_some() {
            self.connections[index].state = State::Waiting(greeting);
            return Ok(());
        }
        if self.program.is_none() {
            let (process, number) = (Process::new(process), greeting.program_number);
            self.program = Some(Program { process, number, devices: BTreeSet::new() });
        }
        let thread = self.new_thread();
        let ServerOptions { node, page_bytes, arena, .. } = &self.options;
        let connection = &mut self.connections[index];
        connection.welcome(greeting, thread, node, *page_bytes, arena.as_deref()).map_err(|error| error.to_string())
    }

    /// The program is gone: what it has left behind goes too.
    fn end_program(&mut self) {
        let Some(program) = self.program.take() else { return };
        self.connections.retain(|connection| {
            connection.greeting.as_ref().is_none_or(|greeting| greeting.program_number != program.number)
        });
        self.callbacks.clear();
        self.called_back = false;
        self.data = ReplyData::default();
        // Where it was the last one, the run ends, and everything with it.
        let is_last = self.options.control.is_program(program.process.number) && self.connections.is_empty();
        if !program.devices.is_empty() && !is_last {
            let thread = self.new_thread();
            self.cleaning = Some(Cleaning { thread, devices: program.devices, is_waiting: false });
        }
    }

    /// Looks at a connection that something has come from. Returns a call, if that is what it was.
    fn look_at(&mut self, index: usize) -> Result<Option<Arrival>, String> {
        let connection = &mut self.connections[index];
        let open = connection.take_arrived().map_err(|error| error.to_string())?;
        let arrived = match connection.state {
            State::New => match connection.greeting().map_err(|error| error.to_string())? {
                Some(greeting) => self.greet(index, greeting).map(|()| None)?,
                None => None,
            },
            State::Waiting(_) => None,
            State::Running => connection.request().map_err(|error| error.to_string())?,
            State::Calling if open => return Err("malformed frame: a call within a call".to_owned()),
            State::Calling => None,
        };
        // A thread that ends has nothing more to say: no error.
        if !open && arrived.is_none() { Err(String::new()) } else { Ok(arrived) }
    }

    /// Ends a connection. No text: the other end has gone by itself.
    fn close(&mut self, index: usize, text: &str) {
        let mut connection = self.connections.swap_remove(index);
        if !text.is_empty() {
            (self.options.report)(&format!("the connection of {} ends: {text}", connection.name()));
            connection.say_end(text);
        }
        let runs_callbacks = |greeting: &Greeting| greeting.role == Role::Callbacks;
        if connection.greeting.as_ref().is_some_and(runs_callbacks) {
            self.called_back = false;
        }
    }

    /// Sends the next host function to the thread that runs them, one at a time.
    fn dispatch_callbacks(&mut self) {
        if self.called_back {
            return;
        }
        let Some(&function) = self.callbacks.front() else { return };
        let runs_callbacks = |connection: &Connection| {
            connection.greeting.as_ref().is_some_and(|greeting| greeting.role == Role::Callbacks)
        };
        let Some(index) = self.connections.iter().position(runs_callbacks) else { return };
        match self.connections[index].call_back(function) {
            Ok(()) => self.called_back = true,
            Err(_) => self.close(index, ""),
        }
    }

    /// Waits until something comes, at most for `timeout`; takes it.
    fn poll(&mut self, timeout: Duration) -> Option<Request> {
        let have: Vec<bool> = self.connections.iter_mut().map(Connection::has_request).collect();
        let timeout = if have.contains(&true) { Duration::ZERO } else { timeout };
        let timeout = Timespec { tv_sec: 0, tv_nsec: timeout.as_nanos() as i64 };
        let process = self.program.as_ref().and_then(|program| program.process.descriptor());
        // Once the program has ended that is known, and wakes nobody.
        let wake = if self.options.control.program().is_none() { PollFlags::IN } else { PollFlags::empty() };
        let mut sources = vec![
            PollFd::new(&self.listener, PollFlags::IN),
            PollFd::from_borrowed_fd(self.options.control.wake(), wake),
        ];
        sources.extend(self.connections.iter().map(|c| PollFd::from_borrowed_fd(c.descriptor(), PollFlags::IN)));
        let process_at = sources.len();
        sources.extend(process.map(|process| PollFd::from_borrowed_fd(process, PollFlags::IN)));
        if poll(&mut sources, Some(&timeout)).unwrap_or(0) == 0 && !have.contains(&true) {
            return None;
        }
        let ready: Vec<bool> = sources.iter().map(|source| !source.revents().is_empty()).collect();
        drop(sources);
        let mut requests = Vec::new();
        // From the end, since a connection that ends takes the last one to its place; the lowest number goes first.
        for index in (0..self.connections.len()).rev() {
            if (ready[2 + index] || have[index]) && !matches!(self.connections[index].state, State::Waiting(_)) {
                requests.push(index);
            }
        }
        let mut found = None;
        let lowest = |index: &usize| self.connections[*index].thread.map_or(u32::MAX, |thread| thread.0);
        requests.sort_by_key(|index| lowest(index));
        let mut ended = Vec::new();
        for index in requests {
            match self.look_at(index) {
                Ok(None) => {}
                Ok(Some(arrival)) => {
                    found = self.requested(index, arrival);
                    break;
                }
                Err(text) => ended.push((self.connections[index].thread, text, index)),
            }
        }
        // `greet` may have removed others.
        ended.sort_by_key(|(_, _, index)| std::cmp::Reverse(*index));
        for (thread, text, index) in ended {
            if self.connections.get(index).is_some_and(|connection| connection.thread == thread) {
                self.close(index, &text);
            }
        }
        if ready[0] {
            self.accept();
        }
        if ready.get(process_at).copied().unwrap_or(false) && found.is_none() {
            self.end_program();
        }
        found
    }

    fn requested(&mut self, index: usize, arrival: Arrival) -> Option<Request> {
        let thread = self.connections[index].thread?;
        let Arrival { device, host_picoseconds, call } = arrival;
        if let Call::CallbackDone { function } = &call
            && self.called_back
            && self.callbacks.front() == Some(function)
        {
            self.callbacks.pop_front();
            self.called_back = false;
        }
        if let Some(program) = &mut self.program {
            program.devices.insert(device);
        }
        Some(Request { thread, device, host_picoseconds, call })
    }

    /// The next step of the end of a program.
    fn clean(&mut self) -> Option<Next> {
        let cleaning = self.cleaning.as_mut()?;
        if cleaning.is_waiting {
            return Some(Next::Waiting);
        }
        if let Some(device) = cleaning.devices.pop_first() {
            cleaning.is_waiting = true;
            let call = Call::DeviceReset;
            return Some(Next::Call(Request { thread: cleaning.thread, device, host_picoseconds: 0, call }));
        }
        self.cleaning = None;
        // Those that came meanwhile.
        for index in (0..self.connections.len()).rev() {
            if let State::Waiting(greeting) = &self.connections[index].state {
                let greeting = greeting.clone();
                if let Err(text) = self.greet(index, greeting) {
                    self.close(index, &text);
                }
            }
        }
        None
    }

    /// Do calls under way have to wait for threads that run?
    fn awaits_threads(&mut self) -> bool {
        let Some(program) = &self.program else { return false };
        let busy: Vec<usize> = (0..self.connections.len())
            .filter(|&index| {
                let connection = &self.connections[index];
                let is_running = matches!(connection.state, State::Running) && !self.waits_for_reply(connection);
                is_running && !connection.is_slow
            })
            .collect();
        if busy.is_empty() {
            self.waiting_since = None;
            return false;
        }
        let sleep = |index: &usize| -> Option<Sleep> {
            let greeting = self.connections[*index].greeting.as_ref()?;
            program.process.sleep_of(greeting.thread)
        };
        let before: Vec<Option<Sleep>> = busy.iter().map(sleep).collect();
        let asleep = before.iter().all(|sleep| sleep.is_none_or(|sleep| sleep.asleep));
        if asleep {
            std::thread::sleep(Duration::from_micros(30));
            if busy.iter().map(sleep).collect::<Vec<_>>() == before {
                self.waiting_since = None;
                return false;
            }
        }
        let since = *self.waiting_since.get_or_insert_with(Instant::now);
        if since.elapsed() < PATIENCE {
            return true;
        }
        for index in busy {
            self.connections[index].is_slow = true;
        }
        self.waiting_since = None;
        false
    }

    /// Are all threads asleep until a host function runs that a stream has yet to come to?
    fn sleeps_until_call_back(&self) -> bool {
        let Some(program) = &self.program else { return false };
        self.expects_call_back && self.callbacks.is_empty() && program.process.sleeps()
    }

    /// The end, where there is nothing more to wait for.
    fn end(&mut self) -> Option<Next> {
        let error = match self.options.control.program() {
            _ if self.options.control.is_stopping() => None,
            Some(end) if self.connections.is_empty() => match end {
                ProgramEnd::Exited(_) => None,
                ProgramEnd::Killed(signal) => Some(format!("the program was killed by {}", signal_name(signal))),
            },
            _ => return None,
        };
        self.ended = true;
        Some(Next::End { error })
    }
}

impl Host for Server {
    fn next(&mut self) -> Next {
        let mut checked = false;
        loop {
            if self.ended {
                return Next::End { error: None };
            }
            if let Some(end) = self.end() {
                return end;
            }
            if let Some(next) = self.clean() {
                // Nothing of another program is taken before this one has been cleared away.
                return next;
            }
            self.dispatch_callbacks();
            let calling = self.connections.iter().any(|connection| matches!(connection.state, State::Calling));
            let timeout = match (calling || self.expects_call_back, checked) {
                (true, false) => Duration::ZERO,
                (true, true) => THREAD_PERIOD,
                (false, _) => LOOK_PERIOD,
            };
            if let Some(request) = self.poll(timeout) {
                self.waiting_since = None;
                return Next::Call(request);
            }
            checked = calling || self.expects_call_back;
            let calling = self.connections.iter().any(|connection| matches!(connection.state, State::Calling));
            let goes_on = if calling { !self.awaits_threads() } else { self.sleeps_until_call_back() };
            if goes_on && self.cleaning.is_none() {
                return Next::Waiting;
            }
            if self.options.control.program().is_some() && self.program_has_ended() {
                self.end_program();
            }
        }
    }

    fn expect_call_back(&mut self, expected: bool) {
        self.expects_call_back = expected;
    }

    fn has_threads_outside(&self) -> bool {
        let connected = self.connections.len();
        let in_call = self.connections.iter().filter(|connection| self.waits_for_reply(connection)).count();
        // One that has made no call yet may make its first.
        in_call < connected || self.program.as_ref().is_some_and(|program| program.process.has_more_threads(connected))
    }

    fn complete(&mut self, thread: ThreadId, result: CallResult) {
        if let Some(cleaning) = self.cleaning.as_mut().filter(|cleaning| cleaning.thread == thread) {
            cleaning.is_waiting = false;
            return;
        }
        let Some(index) = self.connections.iter().position(|connection| connection.thread == Some(thread)) else {
            return;
        };
        let data = std::mem::take(&mut self.data);
        if let Err(error) = self.connections[index].reply(result, &data) {
            let gone = matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof);
            let stopping = self.options.control.is_stopping();
            self.close(index, &if gone || stopping { String::new() } else { error.to_string() });
        }
    }

    fn call_back(&mut self, function: u64) {
        self.callbacks.push_back(function);
        self.dispatch_callbacks();
    }

    fn receive(&mut self, transfer: u32, data: Arc<[u8]>) {
        self.data.received.push((transfer, data));
    }

    fn printed(&mut self, text: &[u8], error: &[u8]) {
        self.data.printed.extend_from_slice(text);
        self.data.printed_error.extend_from_slice(error);
    }

    fn verification(&self) -> Verification {
        Verification::NotChecked
    }

    fn measurements(&self) -> Vec<Measurement> {
        Vec::new()
    }
}

impl Server {
    /// Does the simulator have the word?
    fn waits_for_reply(&self, connection: &Connection) -> bool {
        match (&connection.state, &connection.greeting) {
            (State::Calling, _) => true,
            (State::Running, Some(greeting)) => greeting.role == Role::Callbacks && !self.called_back,
            _ => false,
        }
    }

    fn program_has_ended(&self) -> bool {
        self.program.as_ref().is_some_and(|program| program.process.has_ended())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let reason = match self.options.control.stopped() {
            Some(StopReason::Interrupted) => "the run was interrupted",
            Some(StopReason::WallLimit) => "the run has reached its limit of real time",
            None => "the simulation is over",
        };
        for connection in &mut self.connections {
            connection.say_end(reason);
        }
    }
}

/// A signal's name and number.
pub fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return format!("signal {signal}"),
    };
    format!("{name} (signal {signal})")
}
