//! The tunnel between programs and the simulator: both ends in one process, with a host that answers by itself.

#![expect(clippy::disallowed_types, reason = "the test waits for processes in real time")]

use balar_host::call::CopyEnd;
use balar_host::tunnel::{Client, Control, ProgramEnd, Role, Server, ServerOptions, SocketFolder, VERSION};
use balar_host::{Bytes, Call, CallResult, CudaError, Host, Next, NodeDescription, Request};
use balar_protocol::ProcessId;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What answers the calls of a test: itself a function from a request to what the call returns; `None` leaves it waiting.
type Answer = Box<dyn FnMut(&Request) -> Option<CallResult> + Send>;

/// A server with a thread that answers.
struct Node {
    folder: SocketFolder,
    control: Control,
    interrupt: Arc<AtomicBool>,
    reports: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<Counts>>,
}

/// Operations that a thread of a test may add to streams.
const QUEUE_ROOM: usize = 10;

/// What the answering thread has seen.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    calls: u64,
    waiting: u64,
}

impl Node {
    fn start(page_bytes: u64, mut answer: Answer) -> Node {
        let folder = SocketFolder::create(SocketFolder::choose()).expect("a folder");
        let interrupt = Arc::new(AtomicBool::new(false));
        let control = Control::new(interrupt.clone(), None).expect("descriptors");
        let reports = Arc::new(Mutex::new(Vec::new()));
        let said = reports.clone();
        let options = ServerOptions {
            node: NodeDescription {
                topology: "test".to_owned(),
                devices: vec![Default::default(); 2],
                ..Default::default()
            },
            page_bytes,
            arena: None,
            control: control.clone(),
            report: Arc::new(move |text| said.lock().expect("no panic").push(text.to_owned())),
        };
        let mut server = Server::listen(&folder.socket(), options).expect("listens");
        let thread = std::thread::spawn(move || {
            let mut counts = Counts::default();
            let mut under_way = Vec::new();
            loop {
                match server.next() {
                    Next::Call(request) => {
                        counts.calls += 1;
                        match answer(&request) {
                            Some(result) => {
                                server.queue_room(request.thread, QUEUE_ROOM);
                                server.complete(request.thread, result);
                            }
                            None => under_way.push(request.thread),
                        }
                    }
                    // Simulated time goes on: waiting calls return.
                    Next::Waiting => {
                        counts.waiting += 1;
                        for thread in under_way.drain(..) {
                            server.complete(thread, CallResult::None);
                        }
                    }
                    Next::ProcessEnds { .. } => {}
                    Next::End { .. } => return counts,
                }
            }
        });
        Node { folder, control, interrupt, reports, thread: Some(thread) }
    }

    fn socket(&self) -> PathBuf {
        self.folder.socket()
    }

    /// The program has ended: what has been seen of it.
    fn end(mut self) -> Counts {
        self.control.program_ended(ProgramEnd::Exited(0));
        self.thread.take().expect("once").join().expect("no panic")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.interrupt.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A server for a test that answers by itself.
fn server() -> (SocketFolder, Control, Server) {
    let folder = SocketFolder::create(SocketFolder::choose()).expect("a folder");
    let control = Control::new(Arc::default(), None).expect("descriptors");
    let options = ServerOptions {
        node: NodeDescription::default(),
        page_bytes: 4096,
        arena: None,
        control: control.clone(),
        report: Arc::new(|text| panic!("{text}")),
    };
    let server = Server::listen(&folder.socket(), options).expect("listens");
    (folder, control, server)
}

fn connect(socket: &Path) -> Client {
    Client::connect(socket, Role::Thread).expect("connects").0
}

/// Makes a call without payloads.
fn call(client: &mut Client, call: Call) -> CallResult {
    client.call(0, 0, &call, &[], &mut |_, _| {}).expect("answered").result
}

/// Bytes that repeat at no power of two.
fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|index| ((index + seed) % 251) as u8).collect()
}

/// A device of one memory: copies to it are kept, copies from it give them back.
fn memory() -> Answer {
    let mut kept: Arc<[u8]> = Arc::from([]);
    Box::new(move |request| {
        Some(match &request.call {
            Call::Copy { source: CopyEnd::Bytes(data), .. } => {
                kept = data.data().expect("filled in").clone();
                CallResult::None
            }
            Call::Copy { destination: CopyEnd::Bytes(absent), .. } => {
                CallResult::Data(Bytes::from(kept[..usize::try_from(absent.len()).expect("short")].to_vec()))
            }
            Call::DeviceReset => CallResult::None,
            _ => CallResult::Error(CudaError::NotSupported),
        })
    })
}

fn upload(client: &mut Client, parts: &[u8]) -> CallResult {
    let data = Bytes::absent(parts.len() as u64);
    let call = Call::copy_to_device(1, data, 0, false);
    client.call(0, 0, &call, &[parts], &mut |_, _| {}).expect("answered").result
}

fn download(client: &mut Client, bytes: usize) -> Vec<u8> {
    let mut out = vec![0; bytes];
    let call = Call::copy_from_device(1, bytes as u64, 0, 0, false);
    let mut came = 0;
    let mut sink = |offset: u64, part: &[u8]| {
        let start = usize::try_from(offset).expect("short");
        out[start..start + part.len()].copy_from_slice(part);
        came += part.len();
    };
    let reply = client.call(0, 0, &call, &[], &mut sink).expect("answered");
    assert_eq!(reply.result, CallResult::Data(Bytes::absent(bytes as u64)));
    assert_eq!(came, bytes);
    out
}

#[test]
fn data_of_every_size_comes_back_as_it_went() {
    let ring = 1024 * 4096;
    for page_bytes in [4096, 65536] {
        let node = Node::start(page_bytes, memory());
        let mut client = connect(&node.socket());
        for length in [0, 1, 4095, 4096, 4097, ring - 1, ring, ring + 1, 2 * ring, 5 * ring + 12_345, 64 << 20] {
            let sent = pattern(length, length);
            assert_eq!(upload(&mut client, &sent), CallResult::None, "{length}");
            assert!(download(&mut client, length) == sent, "{length} bytes in pages of {page_bytes}");
        }
        drop(client);
        assert!(node.reports.lock().expect("no panic").is_empty());
        node.end();
    }
}

#[test]
fn several_payloads_keep_their_borders() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    let node = Node::start(
        4096,
        Box::new(move |request| {
            let payloads = request.call.payloads();
            kept.lock().expect("no panic").extend(payloads.iter().map(|payload| payload.to_vec()));
            Some(CallResult::None)
        }),
    );
    let mut client = connect(&node.socket());
    let parts = [pattern(3, 1), pattern(0, 2), pattern(3 << 20, 3), pattern(1, 4), pattern(4096, 5)];
    let images = parts.iter().map(|part| Bytes::absent(part.len() as u64)).collect();
    let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    let load = Call::ModuleLoad { images, name: "test".to_owned() };
    client.call(1, 0, &load, &slices, &mut |_, _| {}).expect("answered");
    assert!(*seen.lock().expect("no panic") == parts);
    let short: Vec<&[u8]> = slices[..4].to_vec();
    let error = client.call(1, 0, &load, &short, &mut |_, _| {}).expect_err("one payload is missing");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn threads_have_numbers_of_their_own_and_do_not_disturb_each_other() {
    let threads = Arc::new(Mutex::new(std::collections::BTreeSet::new()));
    let seen = threads.clone();
    let node = Node::start(
        4096,
        Box::new(move |request| {
            seen.lock().expect("no panic").insert(request.thread);
            match &request.call {
                Call::Copy { source: CopyEnd::Bytes(data), .. } => Some(CallResult::Data(data.clone())),
                // Returns when simulated time goes on.
                Call::DeviceSynchronize => None,
                _ => Some(CallResult::None),
            }
        }),
    );
    std::thread::scope(|scope| {
        for number in 0..8_usize {
            let socket = node.socket();
            scope.spawn(move || {
                let mut client = connect(&socket);
                for round in 0..100 {
                    let sent = pattern(1 + round * 7000, number * 1000 + round);
                    let data = Bytes::absent(sent.len() as u64);
                    let call = Call::copy_to_device(0, data, 0, false);
                    let mut back = vec![0; sent.len()];
                    let mut sink = |offset: u64, part: &[u8]| {
                        let start = usize::try_from(offset).expect("short");
                        back[start..start + part.len()].copy_from_slice(part);
                    };
                    client.call(0, 0, &call, &[&sent], &mut sink).expect("answered");
                    assert!(back == sent, "thread {number}, round {round}");
                    if round % 10 == number {
                        assert_eq!(self::call(&mut client, Call::DeviceSynchronize), CallResult::None);
                    }
                }
            });
        }
    });
    assert_eq!(threads.lock().expect("no panic").len(), 8);
    let counts = node.end();
    assert!(counts.waiting > 0, "{counts:?}");
}

/// Calls are told apart by the bytes that they ask for.
#[test]
fn posted_calls_are_taken_in_their_order_and_before_what_the_process_does_next() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = order.clone();
    let node = Node::start(
        4096,
        Box::new(move |request| {
            let Call::Malloc { bytes } = request.call else { return Some(CallResult::None) };
            seen.lock().expect("no panic").push(bytes);
            match bytes {
                3 | 4 => Some(CallResult::Error(CudaError::IllegalAddress)),
                // Returns when simulated time goes on.
                0..50 => None,
                _ => Some(CallResult::None),
            }
        }),
    );
    let wanted = |bytes: u64| Call::Malloc { bytes };
    let wait = |client: &mut Client, bytes| client.call(0, 0, &wanted(bytes), &[], &mut |_, _| {}).expect("answered");
    let post = |client: &mut Client, calls: std::ops::Range<u64>| {
        calls.for_each(|bytes| client.post(0, 0, wanted(bytes)).expect("sent"));
    };
    let mut first = connect(&node.socket());
    post(&mut first, 1..6);
    let reply = wait(&mut first, 100);
    assert_eq!((reply.result, reply.missed, reply.may_post), (CallResult::None, Some(CudaError::IllegalAddress), 10));
    let reply = wait(&mut first, 101);
    assert_eq!((reply.missed, reply.may_post), (None, 10), "an error is said once");
    // Another thread hears of the posted calls, and connects: they come before its own.
    post(&mut first, 6..16);
    let mut second = connect(&node.socket());
    assert_eq!(wait(&mut second, 102).may_post, 0, "it is not alone");
    // The same while it is connected.
    post(&mut first, 16..40);
    wait(&mut second, 103);
    drop(second);
    // A thread ends, and another one begins.
    post(&mut first, 40..50);
    drop(first);
    let mut third = connect(&node.socket());
    assert_eq!(wait(&mut third, 104).missed, None);
    let parts = [1..6, 100..102, 6..16, 102..103, 16..40, 103..104, 40..50, 104..105];
    let expected: Vec<u64> = parts.into_iter().flatten().collect();
    assert_eq!(*order.lock().expect("no panic"), expected);
    let error = third.post(0, 0, Call::copy_to_device(0, Bytes::absent(5), 0, true)).expect_err("it has a payload");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert_eq!(wait(&mut third, 105).result, CallResult::None);
}

#[test]
fn a_thread_that_sleeps_is_not_waited_for_and_one_that_computes_is_for_a_while() {
    let node = Node::start(
        4096,
        Box::new(|request| match request.call {
            Call::DeviceSynchronize => None,
            _ => Some(CallResult::None),
        }),
    );
    let socket = node.socket();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let sleeper = std::thread::spawn({
        let socket = socket.clone();
        move || {
            let _client = connect(&socket);
            ready.send(()).expect("waited for");
            let _ = ended.recv();
        }
    });
    is_ready.recv().expect("connected");
    let mut client = connect(&socket);
    let start = Instant::now();
    for _ in 0..20 {
        call(&mut client, Call::DeviceSynchronize);
    }
    assert!(start.elapsed() < Duration::from_millis(500), "asleep: {:?}", start.elapsed());
    drop(end);
    sleeper.join().expect("no panic");

    // One that spins is waited for once, not at every call.
    let stop = Arc::new(AtomicBool::new(false));
    let spins = stop.clone();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let spinner = std::thread::spawn(move || {
        let _client = connect(&socket);
        ready.send(()).expect("waited for");
        while !spins.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    });
    is_ready.recv().expect("connected");
    let start = Instant::now();
    for _ in 0..100 {
        call(&mut client, Call::DeviceSynchronize);
    }
    assert!(start.elapsed() < Duration::from_secs(5), "spinning: {:?}", start.elapsed());
    stop.store(true, Ordering::Relaxed);
    spinner.join().expect("no panic");
}

#[test]
fn host_functions_are_asked_for_one_at_a_time_and_in_order() {
    // The server has no `call_back` from outside: a host of our own between them asks for one at each launch.
    let (folder, control, mut server) = server();
    let answering = std::thread::spawn(move || {
        let mut done = Vec::new();
        let mut waits = None;
        loop {
            match server.next() {
                Next::Call(request) => match request.call {
                    Call::HostFunction { function, .. } => {
                        server.call_back(request.process, function);
                        server.complete(request.thread, CallResult::None);
                    }
                    Call::CallbackDone { function } => {
                        done.push(function);
                        server.complete(request.thread, CallResult::None);
                    }
                    Call::StreamSynchronize { .. } => waits = Some(request.thread),
                    _ => server.complete(request.thread, CallResult::None),
                },
                Next::Waiting => assert!(waits.is_some() && done.len() < 50),
                Next::ProcessEnds { .. } => {}
                Next::End { .. } => return done,
            }
            if done.len() == 50
                && let Some(thread) = waits.take()
            {
                server.printed(ProcessId::FIRST, b"all done\n", b"");
                server.complete(thread, CallResult::None);
            }
        }
    });
    let socket = folder.socket();
    let callbacks = std::thread::spawn({
        let socket = socket.clone();
        move || {
            let mut client = Client::connect(&socket, Role::Callbacks).expect("connects").0;
            let mut ran = Vec::new();
            while ran.len() < 50 {
                let function = client.next_callback().expect("alive").expect("more to come");
                ran.push(function);
                call(&mut client, Call::CallbackDone { function });
            }
            (ran, client)
        }
    });
    let mut client = connect(&socket);
    for function in 0..50 {
        call(&mut client, Call::HostFunction { stream: 0, function: function * 3 });
    }
    let reply = client.call(0, 0, &Call::StreamSynchronize { stream: 0 }, &[], &mut |_, _| {}).expect("answered");
    assert_eq!(reply.printed, b"all done\n");
    let (ran, callback_client) = callbacks.join().expect("no panic");
    let expected: Vec<u64> = (0..50).map(|function| function * 3).collect();
    assert_eq!(ran, expected);
    drop((client, callback_client));
    control.program_ended(ProgramEnd::Exited(0));
    assert_eq!(answering.join().expect("no panic"), expected);
}

/// Where [`a_process_that_is_killed`] finds the socket.
const SOCKET_OF_KILLED: &str = "BALAR_TEST_SOCKET";

#[test]
#[ignore = "a process of the next test"]
fn a_process_that_is_killed() {
    let Some(socket) = std::env::var_os(SOCKET_OF_KILLED) else { return };
    call(&mut connect(Path::new(&socket)), Call::DeviceSynchronize);
    std::process::abort();
}

#[test]
fn a_process_that_was_killed_is_reported_before_the_end_of_the_program() {
    let (folder, control, mut server) = server();
    let program = std::env::current_exe().expect("this test");
    let mut process = std::process::Command::new(program);
    process.args(["a_process_that_is_killed", "--ignored"]).env(SOCKET_OF_KILLED, folder.socket());
    let mut process = process.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    let Next::Call(request) = server.next() else { panic!("the process makes a call first") };
    server.complete(request.thread, CallResult::None);
    assert!(!process.wait().expect("a process").success());
    // The program that had started it hears of its end earlier than the simulator, and ends, too.
    control.program_ended(ProgramEnd::Exited(1));
    let Next::ProcessEnds { process, was_killed } = server.next() else { panic!("the end of the process comes first") };
    assert_eq!((process, was_killed), (request.process, true));
    assert!(matches!(server.next(), Next::End { error: None }));
}

#[test]
fn what_is_no_frame_ends_its_connection_alone() {
    let node = Node::start(4096, memory());
    let mut healthy = connect(&node.socket());
    let preamble = |version: u32| [b"balartun".as_slice(), &version.to_le_bytes()].concat();
    let mut cases: Vec<(Vec<u8>, &str)> = vec![
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "no balar-actors program"),
        (preamble(77), "another version"),
        ([preamble(VERSION), u32::MAX.to_le_bytes().to_vec()].concat(), "4294967295 bytes announced"),
        ([preamble(VERSION), vec![1, 0, 0, 0, 200]].concat(), "malformed frame"),
        ([preamble(VERSION), vec![2, 0, 0, 0, 2, 1]].concat(), "expected a greeting"),
    ];
    // Random frames after a good beginning, and good beginnings cut short.
    let mut seed = 12_345_u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u8
    };
    for _ in 0..200 {
        let body: Vec<u8> = (0..usize::from(random()) + 1).map(|_| random()).collect();
        cases.push(([preamble(VERSION), (body.len() as u32).to_le_bytes().to_vec(), body].concat(), ""));
    }
    for (bytes, expected) in cases {
        let mut raw = UnixStream::connect(node.socket()).expect("connects");
        raw.write_all(&bytes).expect("sent");
        raw.shutdown(std::net::Shutdown::Write).expect("open");
        let mut answer = Vec::new();
        raw.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
        let _ = raw.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        assert!(text.contains(expected), "{bytes:?}: {text:?}, expected {expected}");
        // The others do not notice.
        assert_eq!(upload(&mut healthy, b"still here"), CallResult::None);
    }
    assert_eq!(download(&mut healthy, 10), b"still here");
    drop(healthy);
    node.end();
}

#[test]
fn connections_that_say_nothing_keep_nobody_out() {
    let node = Node::start(4096, memory());
    // As many as may be new, twice.
    let silent: Vec<UnixStream> = (0..128).map(|_| UnixStream::connect(node.socket()).expect("connects")).collect();
    let mut client = connect(&node.socket());
    assert_eq!(upload(&mut client, b"x"), CallResult::None);
    drop((silent, client));
    node.end();
}

#[test]
fn more_threads_than_may_be_new_connect_at_once() {
    let node = Node::start(4096, Box::new(|_| Some(CallResult::None)));
    let barrier = std::sync::Barrier::new(200);
    std::thread::scope(|scope| {
        for _ in 0..200 {
            let (socket, barrier) = (node.socket(), &barrier);
            scope.spawn(move || {
                barrier.wait();
                let mut client = connect(&socket);
                assert_eq!(call(&mut client, Call::DeviceSynchronize), CallResult::None);
                // Nobody ends before all have begun.
                barrier.wait();
            });
        }
    });
    assert_eq!(node.end().calls, 200);
}

#[test]
fn the_end_of_the_simulator_is_an_error_of_every_later_call() {
    let node = Node::start(4096, memory());
    let mut client = connect(&node.socket());
    assert_eq!(upload(&mut client, b"x"), CallResult::None);
    let socket = node.socket();
    drop(node);
    for _ in 0..3 {
        assert!(client.call(0, 0, &Call::DeviceSynchronize, &[], &mut |_, _| {}).is_err());
    }
    assert!(Client::connect(&socket, Role::Thread).is_err());
    assert!(!socket.parent().expect("a folder").exists());
}
