//! The simulator's end of the tunnel: the processes of the program, as the HostCpu unit sees them.

#![expect(
    clippy::disallowed_types,
    reason = "the tunnel runs in real time: it waits for programs, and does not simulate"
)]

mod connection;
mod control;
mod folder;
mod listener;
mod process;

pub use control::{Control, ProgramEnd, StopReason, signal_name};
pub use folder::{SocketFolder, remove_folder};
pub(super) use folder::{is_socket_folder, remove_abandoned};

use super::shared::PAGE_BYTES;
use super::socket::{GiveUp, LOOK_PERIOD};
use super::wire::{Role, malformed};
use crate::Verification;
use crate::call::{Call, CallResult};
use crate::description::NodeDescription;
use crate::program::{Host, Measurement, Next, Request, ThreadId};
use balar_protocol::ProcessId;
use connection::{Arrival, Connection, Greeting, ReplyData, State};
use listener::{Accepted, Listener};
use process::{Process, Sleep, is_stopped};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a thread may run without a call while others wait in theirs, before simulated time goes on without it.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);
/// The minimum of this time. If several processes use the node, each wait for a thread that makes no call halves the next one: a thread
/// that spins until another process is done, as in MPI, must not cost the full time for every message.
const LEAST_PATIENCE: Duration = Duration::from_millis(2);
/// Between two looks at threads that do not call.
const THREAD_PERIOD: Duration = Duration::from_micros(200);
/// Maximum number of connections that have not introduced themselves: others wait in the system's queue.
const MAXIMUM_NEW: usize = 64;
/// Maximum number of calls that a thread may post one after another: with the next one it hears of errors, and of threads that have
/// come meanwhile.
const MAXIMUM_POSTED: usize = 64;
/// How long such a connection may say nothing while others wait for its place.
const GREETING_PATIENCE: Duration = Duration::from_secs(1);
/// How long the rest of a message may take before the user hears that its process is stopped.
const STOPPED_PATIENCE: Duration = Duration::from_secs(1);

/// The parts of a server.
pub struct ServerOptions {
    /// The devices, as programs see them.
    pub node: NodeDescription,
    /// Bytes of a shared page.
    pub page_bytes: u64,
    /// The node's memory, which programs map their pinned and managed allocations from.
    pub arena: Option<Arc<OwnedFd>>,
    /// The other side of the run.
    pub control: Control,
    /// Receives messages for the user, line by line.
    pub report: Arc<dyn Fn(&str) + Send + Sync>,
}

impl std::fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerOptions").field("page_bytes", &self.page_bytes).finish_non_exhaustive()
    }
}

/// A process that uses the node.
#[derive(Debug)]
struct Program {
    process: Process,
    number: u64,
    /// Host functions to run; the first one is under way where `called_back` says so.
    callbacks: VecDeque<u64>,
    called_back: bool,
    /// The data for the next reply to any thread of it.
    data: ReplyData,
    /// It has said that it comes to its end; one that was killed has not.
    said_goodbye: bool,
}

impl Program {
    fn new(process: Process, number: u64) -> Program {
        let (callbacks, data) = (VecDeque::new(), ReplyData::default());
        Program { process, number, callbacks, called_back: false, data, said_goodbye: false }
    }
}

/// Why a connection ends.
#[derive(Debug)]
enum Parting {
    /// The other end has closed the connection, as at the end of a thread.
    Gone,
    /// It is not wanted: the other end is told why.
    Refused(String),
    /// Something is wrong with it: the user is told, too.
    Failed(String),
}

impl From<io::Error> for Parting {
    fn from(error: io::Error) -> Parting {
        Parting::Failed(error.to_string())
    }
}

/// Processes that come through a socket.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    options: ServerOptions,
    connections: Vec<Connection>,
    programs: BTreeMap<ProcessId, Program>,
    /// The number of the next process.
    next_process: ProcessId,
    /// Processes whose end has not been reported yet, and whether they were killed.
    gone: VecDeque<(ProcessId, bool)>,
    threads: u32,
    /// Connections of no thread, so far.
    questioners: u32,
    accepted: u64,
    /// Whether streams will come to host functions.
    expects_call_back: bool,
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
        Ok(Server {
            listener: Listener::new(path)?,
            options,
            connections: Vec::new(),
            programs: BTreeMap::new(),
            next_process: ProcessId::FIRST,
            gone: VecDeque::new(),
            threads: 0,
            questioners: 0,
            accepted: 0,
            expects_call_back: false,
            waiting_since: None,
            ended: false,
        })
    }

    /// The number of a connection's thread. Those that are of no thread count from the last number down, so that a program's threads
    /// have the same numbers whatever it asks about the node.
    fn new_thread(&mut self, role: Role) -> ThreadId {
        let (counter, last) = match role {
            Role::Management => (&mut self.questioners, Some(u32::MAX)),
            _ => (&mut self.threads, None),
        };
        let number = *counter;
        *counter += 1;
        ThreadId(last.map_or(number, |last| last - number))
    }

    /// Connections that have not introduced themselves.
    fn new_connections(&self) -> usize {
        self.connections.iter().filter(|connection| matches!(connection.state, State::New)).count()
    }

    /// Takes new connections in the order in which they came, as many as there is room for.
    fn accept(&mut self) {
        while !self.listener.is_full() && self.new_connections() < MAXIMUM_NEW {
            let descriptor = match self.listener.accept() {
                Accepted::Connection(descriptor) => descriptor,
                Accepted::Nothing => return,
                Accepted::Full => {
                    let count = self.connections.len();
                    let text = format!("no descriptors are left: further threads than {count} wait until one ends");
                    return (self.options.report)(&text);
                }
            };
            let Ok(peer) = rustix::net::sockopt::socket_peercred(&descriptor) else { continue };
            // No other user can enter the folder.
            if peer.uid != rustix::process::geteuid() {
                continue;
            }
            let give_up = self.give_up(peer.pid);
            self.accepted += 1;
            self.connections.push(Connection::new(self.accepted, descriptor, peer.pid, give_up));
        }
    }

    /// When to stop waiting for bytes of a process, in the middle of a message. The user hears of a process that cannot send them.
    fn give_up(&self, process: Pid) -> GiveUp {
        let (control, report) = (self.options.control.clone(), Arc::clone(&self.options.report));
        let is_told = AtomicBool::new(false);
        Arc::new(move |waited| {
            if waited >= STOPPED_PATIENCE && is_stopped(process) && !is_told.swap(true, Ordering::Relaxed) {
                let number = process.as_raw_nonzero();
                report(&format!(
                    "process {number} is stopped in the middle of a call: the node waits until it goes on (kill -CONT {number})"
                ));
            }
            control.is_stopping()
        })
    }

    /// Ends connections that stay silent while others wait for their place, so that opening connections without end blocks nobody.
    fn give_up_silent(&mut self) {
        if self.new_connections() >= MAXIMUM_NEW {
            let is_silent = |connection: &Connection| {
                matches!(connection.state, State::New) && connection.accepted.elapsed() > GREETING_PATIENCE
            };
            self.connections.retain(|connection| !is_silent(connection));
        }
    }

    fn index_of(&self, number: u64) -> Option<usize> {
        self.connections.iter().position(|connection| connection.number == number)
    }

    fn index_of_thread(&self, thread: ThreadId) -> Option<usize> {
        self.connections.iter().position(|connection| connection.thread == Some(thread))
    }

    /// Is a thread's call under way?
    fn is_any_in_call(&self) -> bool {
        self.connections.iter().any(|connection| matches!(connection.state, State::Calling | State::Posted))
    }

    /// The process that has this number now.
    fn program_of(&self, process: Pid) -> Option<ProcessId> {
        self.programs.iter().find(|(_, program)| program.process.number == process).map(|(id, _)| *id)
    }

    /// Lets a connection begin, or refuses it.
    fn greet(&mut self, number: u64, greeting: Greeting) -> Result<(), Parting> {
        let Some(process) = self.index_of(number).map(|index| self.connections[index].process) else { return Ok(()) };
        let mut known = self.program_of(process);
        if let Some(id) = known
            && let Some(program) = self.programs.get_mut(&id)
        {
            if greeting.role == Role::Goodbye {
                program.said_goodbye |= program.number == greeting.program_number;
                return Err(Parting::Gone);
            }
            // The process runs another program now, by `exec`, or another process has its number.
            if program.number != greeting.program_number || program.process.has_ended() {
                self.end_program(id);
                known = None;
            }
        } else if greeting.role == Role::Goodbye {
            return Err(Parting::Gone);
        }
        if known.is_none() && self.next_process.0 == ProcessId::LIMIT {
            return Err(Parting::Refused(format!(
                "{} processes have used the node, which is all it takes",
                ProcessId::LIMIT
            )));
        }
        let id = known.unwrap_or_else(|| {
            let id = self.next_process;
            self.next_process.0 += 1;
            self.programs.insert(id, Program::new(Process::new(process), greeting.program_number));
            id
        });
        let thread = self.new_thread(greeting.role);
        let ServerOptions { node, page_bytes, arena, .. } = &self.options;
        let Some(index) = self.index_of(number) else { return Ok(()) };
        let connection = &mut self.connections[index];
        connection.program = Some(id);
        Ok(connection.welcome(greeting, thread, node, *page_bytes, arena.as_deref())?)
    }

    /// A process has ended: everything that it has left is released.
    fn end_program(&mut self, id: ProcessId) {
        let Some(program) = self.programs.remove(&id) else { return };
        self.connections.retain(|connection| connection.program != Some(id));
        self.listener.make_room();
        // Where the last one comes to its end by itself, the run ends, and everything with it. Kernels of one that was killed end at once.
        let is_last = self.options.control.is_program(program.process.number) && self.connections.is_empty();
        let was_killed = !program.said_goodbye;
        if was_killed || !is_last {
            self.gone.push_back((id, was_killed));
        }
    }

    /// Ends the processes that are gone, once all that they have said is heard.
    fn end_programs(&mut self) {
        let ended = self.programs.iter().filter(|(_, program)| program.process.has_ended());
        let ended: Vec<(ProcessId, Pid)> = ended.map(|(id, program)| (*id, program.process.number)).collect();
        if ended.is_empty() {
            return;
        }
        // Its last message may not have been accepted.
        self.accept();
        for (id, process) in ended {
            let is_unheard =
                |connection: &Connection| connection.process == process && matches!(connection.state, State::New);
            if !self.connections.iter().any(is_unheard) {
                self.end_program(id);
            }
        }
    }

    /// Handles data that has arrived at a connection. Returns a call, if it was one.
    fn look_at(&mut self, index: usize) -> Result<Option<Arrival>, Parting> {
        let connection = &mut self.connections[index];
        let number = connection.number;
        let open = connection.take_arrived()?;
        let arrived = match connection.state {
            State::New => match connection.greeting()? {
                Some(greeting) => self.greet(number, greeting).map(|()| None)?,
                None => None,
            },
            State::Running => connection.request()?,
            State::Calling if open => return Err(malformed("a call within a call").into()),
            State::Calling | State::Posted => None,
        };
        if !open && arrived.is_none() { Err(Parting::Gone) } else { Ok(arrived) }
    }

    /// Ends a connection.
    fn close(&mut self, number: u64, parting: &Parting) {
        let Some(index) = self.index_of(number) else { return };
        let mut connection = self.connections.swap_remove(index);
        self.listener.make_room();
        let (text, is_reported) = match parting {
            Parting::Gone => ("", false),
            // The program says it on the same stderr.
            Parting::Refused(text) => (text.as_str(), !connection.say_failure(text)),
            Parting::Failed(text) => {
                connection.say_failure(text);
                (text.as_str(), true)
            }
        };
        if is_reported {
            (self.options.report)(&format!("the connection of {} ends: {text}", connection.name()));
        }
        if connection.runs_callbacks()
            && let Some(program) = connection.program.and_then(|id| self.programs.get_mut(&id))
        {
            program.called_back = false;
        }
    }

    /// Sends the next host function of each process to its thread that runs them, one at a time.
    fn dispatch_callbacks(&mut self) {
        let mut failed = Vec::new();
        for (id, program) in &mut self.programs {
            if program.called_back {
                continue;
            }
            let Some(&function) = program.callbacks.front() else { continue };
            let is_it = |connection: &&mut Connection| connection.program == Some(*id) && connection.runs_callbacks();
            let Some(connection) = self.connections.iter_mut().find(is_it) else { continue };
            match connection.call_back(function) {
                Ok(()) => program.called_back = true,
                Err(_) => failed.push(connection.number),
            }
        }
        for number in failed {
            self.close(number, &Parting::Gone);
        }
    }

    /// Takes the next call of a thread that is ahead, if it has come: it was made before all that other threads do now.
    fn next_posted(&mut self) -> Option<Request> {
        let is_next = |connection: &mut Connection| connection.is_ahead && connection.has_request();
        let index = self.connections.iter_mut().position(is_next)?;
        match self.connections[index].request() {
            Ok(arrival) => self.requested(index, arrival?),
            Err(error) => {
                self.close(self.connections[index].number, &error.into());
                None
            }
        }
    }

    /// The connections that are listened to: not those that wait for calls that threads of their process have posted.
    fn heard(&self) -> Vec<usize> {
        let posted = self.connections.iter().filter(|connection| matches!(connection.state, State::Posted));
        let posting: Vec<Pid> = posted.map(|connection| connection.process).collect();
        let is_heard = |connection: &Connection| {
            matches!(connection.state, State::Calling) || !posting.contains(&connection.process)
        };
        (0..self.connections.len()).filter(|&index| is_heard(&self.connections[index])).collect()
    }

    /// Waits until something comes, at most for `timeout`; takes it.
    fn poll(&mut self, timeout: Duration) -> Option<Request> {
        let heard = self.heard();
        let have: Vec<bool> = heard.iter().map(|&index| self.connections[index].has_request()).collect();
        let timeout = if have.contains(&true) { Duration::ZERO } else { timeout };
        let timeout = Timespec { tv_sec: 0, tv_nsec: timeout.as_nanos() as i64 };
        // Once it is known that the program has ended, this event must not wake the server again.
        let wake = if self.options.control.program().is_none() { PollFlags::IN } else { PollFlags::empty() };
        // Connections that there is no room for must not wake the server.
        let has_room = !self.listener.is_full() && self.new_connections() < MAXIMUM_NEW;
        let listens = if has_room { PollFlags::IN } else { PollFlags::empty() };
        let mut sources = vec![
            PollFd::from_borrowed_fd(self.listener.descriptor(), listens),
            PollFd::from_borrowed_fd(self.options.control.wake(), wake),
        ];
        let descriptors = heard.iter().map(|&index| self.connections[index].descriptor());
        sources.extend(descriptors.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)));
        let processes_at = sources.len();
        let processes = self.programs.values().filter_map(|program| program.process.descriptor());
        sources.extend(processes.map(|process| PollFd::from_borrowed_fd(process, PollFlags::IN)));
        let nothing = poll(&mut sources, Some(&timeout)).unwrap_or(0) == 0 && !have.contains(&true);
        let ready: Vec<bool> = sources.iter().map(|source| !source.revents().is_empty()).collect();
        drop(sources);
        if nothing {
            self.give_up_silent();
            return None;
        }
        let mut requests = Vec::new();
        for (place, &index) in heard.iter().enumerate() {
            if ready[2 + place] || have[place] {
                let connection = &self.connections[index];
                // What was posted first. Then new ones, in their order, for threads that call all the time must not keep them out; then
                // the lowest thread.
                let thread = connection.thread.map_or(0, |thread| u64::from(thread.0) + 1);
                requests.push((!connection.is_ahead, thread, connection.number));
            }
        }
        requests.sort_unstable();
        let mut found = None;
        for (_, _, number) in requests {
            // An earlier request may have ended this connection.
            let Some(index) = self.index_of(number) else { continue };
            match self.look_at(index) {
                Ok(None) => {}
                Ok(Some(arrival)) => {
                    found = self.requested(index, arrival);
                    break;
                }
                Err(parting) => self.close(number, &parting),
            }
        }
        if found.is_none() {
            self.give_up_silent();
        }
        if ready[0] {
            self.accept();
        }
        if found.is_none() && ready[processes_at..].contains(&true) {
            self.end_programs();
        }
        found
    }

    fn requested(&mut self, index: usize, arrival: Arrival) -> Option<Request> {
        let connection = &self.connections[index];
        let (thread, process) = (connection.thread?, connection.program?);
        let Arrival { device, host_picoseconds, call } = arrival;
        if let Call::CallbackDone { function } = &call
            && let Some(program) = self.programs.get_mut(&process)
            && program.called_back
            && program.callbacks.front() == Some(function)
        {
            program.callbacks.pop_front();
            program.called_back = false;
        }
        Some(Request { thread, process, device, host_picoseconds, call })
    }

    /// Do calls under way have to wait for threads that run?
    fn awaits_threads(&mut self) -> bool {
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
        // A thread that sleeps may have touched a page: the thread that sees that is about to say so.
        let mut busy = busy;
        busy.extend((0..self.connections.len()).filter(|&index| self.connections[index].sees_accesses()));
        let sleep = |index: &usize| -> Option<Sleep> {
            let connection = &self.connections[*index];
            let program = self.programs.get(&connection.program?)?;
            program.process.sleep_of(connection.greeting.as_ref()?.thread)
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
        let waited = self.waiting_since.get_or_insert_with(Instant::now).elapsed();
        let is_patient = |index: &usize| waited < self.connections[*index].patience;
        if busy.iter().any(is_patient) {
            return true;
        }
        let shares_node = self.programs.len() > 1;
        for index in busy {
            let connection = &mut self.connections[index];
            connection.is_slow = true;
            if shares_node {
                connection.patience = (connection.patience / 2).max(LEAST_PATIENCE);
            }
        }
        self.waiting_since = None;
        false
    }

    /// Are all threads asleep until a host function runs that a stream has yet to come to?
    fn sleeps_until_call_back(&self) -> bool {
        let mut programs = self.programs.values();
        self.expects_call_back
            && !self.programs.is_empty()
            && programs.all(|program| program.callbacks.is_empty() && program.process.sleeps())
    }

    /// The end of a process that has not been reported yet, or of the program, where there is nothing more to wait for.
    fn end(&mut self) -> Option<Next> {
        let error = if self.options.control.is_stopping() {
            None
        } else {
            let over = self.options.control.program().filter(|_| self.connections.is_empty());
            if over.is_some() {
                // The program ends last: nobody would be left to end the kernels of a process that was killed.
                self.end_programs();
            }
            if let Some((process, was_killed)) = self.gone.pop_front() {
                return Some(Next::ProcessEnds { process, was_killed });
            }
            match over? {
                // The last message of a process has come.
                _ if !self.connections.is_empty() => return None,
                ProgramEnd::Exited(_) => None,
                ProgramEnd::Killed(signal) => Some(format!("the program was killed by {}", signal_name(signal))),
            }
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
            self.dispatch_callbacks();
            let calling = self.is_any_in_call();
            let timeout = match (calling || self.expects_call_back, checked) {
                (true, false) => Duration::ZERO,
                (true, true) => THREAD_PERIOD,
                (false, _) => LOOK_PERIOD,
            };
            if let Some(request) = self.next_posted().or_else(|| self.poll(timeout)) {
                self.waiting_since = None;
                return Next::Call(request);
            }
            checked = calling || self.expects_call_back;
            let goes_on = if self.is_any_in_call() { !self.awaits_threads() } else { self.sleeps_until_call_back() };
            if goes_on && self.gone.is_empty() {
                return Next::Waiting;
            }
            if self.options.control.program().is_some() {
                self.end_programs();
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
        let has_more = |(id, program): (&ProcessId, &Program)| {
            let is_own = |connection: &&Connection| connection.program == Some(*id) && !connection.asks_about_node();
            let own = self.connections.iter().filter(is_own).count();
            program.process.has_more_threads(own)
        };
        in_call < connected || self.programs.len() > 1 || self.programs.iter().any(has_more)
    }

    fn queue_room(&mut self, thread: ThreadId, operations: usize) {
        if let Some(index) = self.index_of_thread(thread) {
            self.connections[index].queue_room = operations;
        }
    }

    fn complete(&mut self, thread: ThreadId, result: CallResult) {
        let Some(index) = self.index_of_thread(thread) else { return };
        if matches!(self.connections[index].state, State::Posted) {
            return self.connections[index].end_posted(&result);
        }
        let makes_calls = |connection: &&Connection| !connection.sees_accesses() && !connection.asks_about_node();
        let is_alone = self.connections.iter().filter(makes_calls).count() == 1;
        let may_post = if is_alone { self.connections[index].queue_room.min(MAXIMUM_POSTED) } else { 0 };
        let program = self.connections[index].program.and_then(|id| self.programs.get_mut(&id));
        let data = program.map(|program| std::mem::take(&mut program.data)).unwrap_or_default();
        if let Err(error) = self.connections[index].reply(result, &data, may_post as u32) {
            let gone = matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof);
            let stopping = self.options.control.is_stopping();
            let parting = if gone || stopping { Parting::Gone } else { error.into() };
            self.close(self.connections[index].number, &parting);
        }
    }

    fn call_back(&mut self, process: ProcessId, function: u64) {
        if let Some(program) = self.programs.get_mut(&process) {
            program.callbacks.push_back(function);
        }
        self.dispatch_callbacks();
    }

    fn receive(&mut self, process: ProcessId, transfer: u32, data: Arc<[u8]>) {
        if let Some(program) = self.programs.get_mut(&process) {
            program.data.received.push((transfer, data));
        }
    }

    fn printed(&mut self, process: ProcessId, text: &[u8], error: &[u8]) {
        if let Some(program) = self.programs.get_mut(&process) {
            program.data.printed.extend_from_slice(text);
            program.data.printed_error.extend_from_slice(error);
        }
    }

    fn verification(&self) -> Verification {
        Verification::NotChecked
    }

    fn measurements(&self) -> Vec<Measurement> {
        Vec::new()
    }
}

impl Server {
    /// Is this thread waiting for the simulator?
    fn waits_for_reply(&self, connection: &Connection) -> bool {
        let is_called_back = || {
            let program = connection.program.and_then(|id| self.programs.get(&id));
            program.is_some_and(|program| program.called_back)
        };
        match connection.state {
            State::Calling => true,
            State::Posted => false,
            State::Running => {
                let waits_for_function = connection.runs_callbacks() && !is_called_back();
                waits_for_function || connection.sees_accesses() || connection.asks_about_node()
            }
            State::New => false,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let control = &self.options.control;
        // The simulation may have come to its limit before the tunnel looked.
        let reason = match control.stopped().or_else(|| control.reason_to_stop()) {
            Some(StopReason::Interrupted) => "the run was interrupted",
            Some(StopReason::WallLimit) => "the run has reached its limit of real time",
            None => "the simulation is over",
        };
        for connection in &mut self.connections {
            connection.say_end(reason);
        }
    }
}
