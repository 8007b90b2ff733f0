//! Recording, replaying, and messages about damaged traces: with a node that only keeps bytes.

use super::*;
use crate::call::{AdviceChange, CallResult, CopyEnd, Function, Launch};
use crate::memory::{BASE, END, HOST_BASE, MANAGED_BASE};
use crate::{Bytes, Call, CudaError, Host, Measurement, Next, Request, ThreadId, Verification};
use balar_protocol::ProcessId;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The process of most of these programs.
const P: ProcessId = ProcessId::FIRST;

/// An act of a program.
#[derive(Clone)]
enum Step {
    Call(u32, Call),
    /// Writes to shared memory, without a call.
    Write(u64, Vec<u8>),
}

/// A program of several threads, each of which makes its calls one after another.
struct Program {
    steps: VecDeque<Step>,
    in_call: BTreeMap<u32, bool>,
    called_back: Vec<u64>,
    window: HostWindow,
}

impl Host for Program {
    fn next(&mut self) -> Next {
        loop {
            match self.steps.front() {
                None => return Next::End { error: None },
                Some(Step::Write(address, bytes)) => {
                    let written = rustix::io::pwrite(&self.window, bytes, address - BASE);
                    assert_eq!(written, Ok(bytes.len()));
                    self.steps.pop_front();
                }
                Some(Step::Call(thread, _)) if self.in_call.get(thread) == Some(&true) => return Next::Waiting,
                Some(Step::Call(_, Call::CallbackDone { function })) if !self.called_back.contains(function) => {
                    return Next::Waiting;
                }
                Some(Step::Call(thread, call)) => {
                    let (thread, call) = (*thread, call.clone());
                    self.steps.pop_front();
                    self.in_call.insert(thread, true);
                    let host_picoseconds = 10 * u64::from(thread);
                    let (thread, process) = (ThreadId(thread), P);
                    return Next::Call(Request { thread, process, device: 0, host_picoseconds, call });
                }
            }
        }
    }

    fn complete(&mut self, thread: ThreadId, _: CallResult) {
        self.in_call.insert(thread.0, false);
    }

    fn call_back(&mut self, _: ProcessId, function: u64) {
        self.called_back.push(function);
    }

    fn receive(&mut self, _: ProcessId, _: u32, _: Arc<[u8]>) {}

    fn printed(&mut self, _: ProcessId, _: &[u8], _: &[u8]) {}

    fn verification(&self) -> Verification {
        Verification::NotChecked
    }

    fn measurements(&self) -> Vec<Measurement> {
        Vec::new()
    }
}

/// A deviation from the recorded run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    Layout,
    Data,
    Transfer,
    Text,
    Shared,
    Error,
}

/// A device that does its work in the order of asking. Gives the requests that were made, in words.
fn simulate(host: &mut dyn Host, window: &HostWindow, fault: Fault) -> Vec<String> {
    let mut memory = vec![0u8; 1 << 16];
    let mut allocated = if fault == Fault::Layout { 512 } else { 256 };
    let mut pending: VecDeque<(ThreadId, Call)> = VecDeque::new();
    let mut log = Vec::new();
    let at = |address: u64| (address - BASE) as usize;
    for _ in 0..10_000 {
        match host.next() {
            Next::End { error } => {
                log.push(format!("end {error:?}"));
                return log;
            }
            Next::ProcessEnds { process, was_killed } => {
                log.push(format!("process {process} ends, killed: {was_killed}"))
            }
            Next::Call(request) => {
                log.push(format!("{request:?}"));
                if !matches!(request.call, Call::Exit { .. }) {
                    pending.push_back((request.thread, request.call));
                }
            }
            Next::Waiting => {
                let Some((thread, call)) = pending.pop_front() else {
                    log.push("deadlock".to_owned());
                    return log;
                };
                let result = match call {
                    Call::Malloc { bytes } => {
                        allocated += bytes;
                        CallResult::Pointer(BASE + allocated - bytes)
                    }
                    Call::MallocHost { .. } => CallResult::Pointer(HOST_BASE),
                    Call::MallocManaged { .. } => CallResult::Pointer(MANAGED_BASE),
                    Call::WriteManaged { pointer, data } => {
                        rustix::io::pwrite(window, &data.to_vec(), pointer - BASE).expect("written");
                        CallResult::None
                    }
                    Call::ReadManaged { pointer, bytes } => {
                        let mut data = vec![0; bytes as usize];
                        rustix::io::pread(window, &mut data, pointer - BASE).expect("read");
                        data[0] ^= u8::from(fault == Fault::Data);
                        CallResult::Data(Bytes::from(data))
                    }
                    Call::Copy {
                        destination: CopyEnd::Memory { address: destination, .. },
                        source: CopyEnd::Bytes(data),
                        ..
                    } => {
                        let data = data.to_vec();
                        memory[at(destination)..][..data.len()].copy_from_slice(&data);
                        CallResult::None
                    }
                    Call::Copy {
                        destination: CopyEnd::Bytes(absent),
                        source: CopyEnd::Memory { address: source, .. },
                        transfer,
                        asynchronous,
                        ..
                    } => {
                        let mut data = memory[at(source)..][..absent.len() as usize].to_vec();
                        if asynchronous {
                            data[1] ^= u8::from(fault == Fault::Transfer);
                            host.receive(P, transfer, data.into());
                            CallResult::None
                        } else {
                            data[6] ^= u8::from(fault == Fault::Data);
                            CallResult::Data(Bytes::from(data))
                        }
                    }
                    Call::Launch(launch) => {
                        let address = u64::from_le_bytes(launch.parameters.try_into().expect("a pointer"));
                        memory[at(address)..][..16].iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
                        host.printed(P, if fault == Fault::Text { b"haLlo" } else { b"hallo" }, b"");
                        CallResult::None
                    }
                    Call::DeviceSynchronize => {
                        // The device reads and writes shared memory.
                        let mut byte = [0];
                        rustix::io::pread(window, &mut byte, HOST_BASE - BASE).expect("read");
                        byte[0] = byte[0].wrapping_mul(3).wrapping_add(u8::from(fault == Fault::Shared));
                        rustix::io::pwrite(window, &byte, HOST_BASE - BASE).expect("written");
                        CallResult::None
                    }
                    Call::HostFunction { function, .. } => {
                        host.call_back(P, function);
                        CallResult::None
                    }
                    Call::EventCreate { .. } => CallResult::Error(CudaError::NotPermitted),
                    Call::Free { .. } if fault == Fault::Error => CallResult::Error(CudaError::IllegalAddress),
                    Call::ReadClock => CallResult::Time { picoseconds: log.len() as u64 },
                    _ => CallResult::None,
                };
                host.complete(thread, result);
            }
        }
    }
    log.push("endless".to_owned());
    log
}

fn window() -> HostWindow {
    let file = memfd_create("window", MemfdFlags::CLOEXEC).expect("a file in memory");
    ftruncate(&file, END - BASE).expect("a sparse file");
    Arc::new(file)
}

fn program(window: &HostWindow) -> Program {
    let memory = BASE + 256;
    let launch = Launch {
        function: Function { module: 0, name: "increment".into() },
        grid: [1; 3],
        block: [16, 1, 1],
        shared_memory_bytes: 0,
        stream: 0,
        parameters: memory.to_le_bytes().to_vec(),
        cooperative: false,
        cluster: None,
        non_portable_cluster: false,
        access_policy: None,
    };
    let download = |asynchronous| Call::copy_from_device(memory, 16, 7, 0, asynchronous);
    let bytes: Arc<[u8]> = (0..16).collect();
    let upload = |bytes: Arc<[u8]>| Call::copy_to_device(memory, Bytes::from(bytes), 0, false);
    let steps = [
        Step::Call(0, Call::Malloc { bytes: 16 }),
        Step::Call(0, Call::MallocHost { bytes: 8192 }),
        Step::Call(0, upload(Arc::clone(&bytes))),
        Step::Call(1, Call::EventCreate { timed: true }),
        Step::Call(0, Call::Launch(launch)),
        Step::Call(0, download(false)),
        Step::Write(HOST_BASE, vec![5, 6, 7]),
        Step::Write(HOST_BASE + 5000, vec![1; 100]),
        Step::Call(0, Call::DeviceSynchronize),
        Step::Call(1, Call::HostFunction { stream: 0, function: 3 }),
        Step::Call(2, Call::CallbackDone { function: 3 }),
        Step::Write(HOST_BASE, vec![9]),
        Step::Call(0, Call::DeviceSynchronize),
        Step::Call(0, download(true)),
        Step::Call(1, Call::ReadClock),
        Step::Call(1, upload(bytes)),
        Step::Call(0, Call::Free { pointer: memory }),
        Step::Call(1, Call::Exit { error: None }),
        Step::Call(0, Call::Exit { error: None }),
    ];
    program_of(&steps, window)
}

fn program_of(steps: &[Step], window: &HostWindow) -> Program {
    let (in_call, called_back) = (BTreeMap::new(), Vec::new());
    Program { steps: steps.iter().cloned().collect(), in_call, called_back, window: Arc::clone(window) }
}

/// Records the program in `folder`; gives its acts.
fn record(folder: &Path) -> Vec<String> {
    let window = window();
    record_program(folder, program(&window), &window)
}

fn record_program(folder: &Path, program: Program, window: &HostWindow) -> Vec<String> {
    let header = Header { program: "test".to_owned(), topology: "none".to_owned(), ..Header::default() };
    let writer = TraceWriter::create(folder, header).expect("a trace");
    let file = |name: &str, bytes: &[u8]| -> CodeFile { (name.to_owned(), bytes.into()) };
    let code = vec![vec![file("k.ptx", b".version 7.0"), file("k.cubin", b"\x7fELF of a kernel")]];
    let (mut recorder, state) = Recorder::new(Box::new(program), writer, &code, Some(Arc::clone(window)));
    let log = simulate(&mut recorder, window, Fault::None);
    assert!(state.take_error().is_none());
    log
}

fn replay(folder: &Path, fault: Fault, compares_data: bool) -> (Vec<String>, Verification, Vec<u8>) {
    let trace = Trace::open(folder, false).unwrap_or_else(|error| panic!("{error}"));
    let window = window();
    let mut replay = Replay::new(trace, Some(Arc::clone(&window)), compares_data).expect("a trace");
    let log = simulate(&mut replay, &window, fault);
    let mut shared = vec![0; 8192];
    rustix::io::pread(&window, &mut shared, HOST_BASE - BASE).expect("read");
    (log, replay.verification(), shared)
}

#[test]
fn a_replay_makes_the_calls_that_were_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let recorded = record(folder.path());
    assert_eq!(recorded.len(), 17, "{recorded:#?}");
    let (replayed, verification, shared) = replay(folder.path(), Fault::None, true);
    assert_eq!(replayed, recorded);
    assert_eq!(verification, Verification::Passed);
    // The second write of the program, tripled by the device; and its writes elsewhere.
    assert_eq!((shared[..4].to_vec(), &shared[5000..5002]), (vec![27, 6, 7, 0], &[1, 1][..]));
    let trace = Trace::open(folder.path(), false).expect("a trace");
    let code = trace.code().expect("payloads");
    let code = code[0].iter().map(|(name, bytes)| (name.as_str(), &bytes[..]));
    assert!(code.eq([("k.ptx", &b".version 7.0"[..]), ("k.cubin", b"\x7fELF of a kernel")]));
    // The same bytes twice are stored once.
    let uploads = trace.events.iter().filter_map(|event| match event {
        Event::Request { payloads, .. } if !payloads.is_empty() => Some(payloads.clone()),
        _ => None,
    });
    let uploads: Vec<_> = uploads.collect();
    assert_eq!((uploads.len(), &uploads[0]), (2, &uploads[1]));
}

#[test]
fn accesses_to_managed_memory_are_calls_and_no_writes_beside_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let advice = AdviceChange::AccessedBy(Some(3), true);
    let steps = [
        Call::MallocManaged { bytes: 4096 },
        Call::Advise { pointer: MANAGED_BASE, bytes: 4096, advice },
        Call::WriteManaged { pointer: MANAGED_BASE + 4, data: vec![5, 6, 7].into() },
        Call::TouchManaged { pointer: MANAGED_BASE, bytes: 8, write: true },
        Call::ReadManaged { pointer: MANAGED_BASE + 5, bytes: 3 },
        Call::Exit { error: None },
    ];
    let recording = window();
    let program = program_of(&steps.map(|call| Step::Call(0, call)), &recording);
    let recorded = record_program(folder.path(), program, &recording);
    let trace = Trace::open(folder.path(), false).expect("a trace");
    assert!(!trace.events.iter().any(|event| matches!(event, Event::HostWrite { .. })), "{:?}", trace.events);
    let (replayed, verification, _) = replay(folder.path(), Fault::None, true);
    assert_eq!((replayed, verification), (recorded, Verification::Passed));
    let (_, verification, _) = replay(folder.path(), Fault::Data, true);
    let Verification::Failed(message) = verification else { panic!("{verification:?}") };
    assert!(message.contains("read of managed memory, 3 bytes at 0x"), "{message}");
}

#[test]
fn what_a_program_writes_between_touches_is_recorded_before_its_next_other_call() {
    let folder = tempfile::tempdir().expect("a folder");
    let touch = |write| Step::Call(0, Call::TouchManaged { pointer: MANAGED_BASE, bytes: 1, write });
    let steps = [
        Step::Call(0, Call::MallocManaged { bytes: 8192 }),
        touch(true),
        Step::Write(MANAGED_BASE, vec![1, 2]),
        touch(true),
        Step::Write(MANAGED_BASE + 4096, vec![3]),
        touch(false),
        Step::Call(0, Call::ReadManaged { pointer: MANAGED_BASE, bytes: 4097 }),
        Step::Write(MANAGED_BASE, vec![4]),
        Step::Call(0, Call::Exit { error: None }),
    ];
    let recording = window();
    let program = program_of(&steps, &recording);
    let recorded = record_program(folder.path(), program, &recording);
    let trace = Trace::open(folder.path(), false).expect("a trace");
    let written: Vec<(usize, Vec<(u64, u64)>)> = (trace.events.iter().enumerate())
        .filter_map(|(place, event)| match event {
            Event::HostWrite { ranges, .. } => Some((place, ranges.clone())),
            _ => None,
        })
        .collect();
    let places: Vec<usize> = written.iter().map(|(place, _)| *place).collect();
    let is_read = |event: &Event| matches!(event, Event::Request { request, .. } if matches!(request.call, Call::ReadManaged { .. }));
    let read = trace.events.iter().position(is_read).expect("a read");
    assert_eq!((written.len(), places[0]), (2, read - 1), "{:?}", trace.events);
    assert_eq!(written[0].1, [(MANAGED_BASE, 2), (MANAGED_BASE + 4096, 1)]);
    assert_eq!(written[1].1, [(MANAGED_BASE, 1)]);
    let (replayed, verification, _) = replay(folder.path(), Fault::None, true);
    assert_eq!((replayed, verification), (recorded, Verification::Passed));
}

#[test]
fn a_replay_of_a_replay_is_the_same() {
    let (first, second) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    record(first.path());
    let trace = Trace::open(first.path(), false).expect("a trace");
    let (code, header, window) = (trace.code().expect("text"), trace.header.clone(), window());
    let inner = Replay::new(trace, Some(Arc::clone(&window)), true).expect("a trace");
    let writer = TraceWriter::create(second.path(), header).expect("a trace");
    let (mut recorder, _) = Recorder::new(Box::new(inner), writer, &code, Some(Arc::clone(&window)));
    simulate(&mut recorder, &window, Fault::None);
    drop(recorder);
    let events = |folder: &Path| Trace::open(folder, false).expect("a trace").events;
    assert_eq!(events(first.path()), events(second.path()));
}

#[test]
fn differences_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    record(folder.path());
    for (fault, said) in [
        (
            Fault::Layout,
            "call 0 (cudaMalloc of 16 bytes, thread 0): expected the address 0x700000000100, found 0x700000000200",
        ),
        (Fault::Data, "after the kernel increment): offset 6: expected 0x07, found 0x06 (bytes 4 to 7"),
        (Fault::Transfer, "asynchronous copy 7 from the device, after the kernel increment: offset 1: expected"),
        (Fault::Text, "kernels print other text than they did, from byte 2 on"),
        (Fault::Shared, "pinned or managed memory holds other bytes"),
        (Fault::Error, "expected success, found cudaErrorIllegalAddress (700); the replay ends here"),
    ] {
        let (log, verification, _) = replay(folder.path(), fault, true);
        let Verification::Failed(message) = verification else { panic!("{fault:?}: {verification:?}") };
        assert!(message.contains(said), "{fault:?}: {message}");
        assert_eq!(log.last().map(String::as_str), Some("end None"), "{fault:?}");
        let (_, unchecked, _) = replay(folder.path(), fault, false);
        let breaks = matches!(fault, Fault::Layout | Fault::Error);
        assert_eq!(matches!(unchecked, Verification::Failed(_)), breaks, "{fault:?}: {unchecked:?}");
    }
}

/// On another node what later calls depend on may differ, and so may results; neither is a wrong result. The order of texts is that node's own.
#[test]
fn differences_on_another_node_are_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    record(folder.path());
    let on = |node: &str, fault| {
        let trace = Trace::open(folder.path(), false).expect("a trace");
        let window = window();
        let mut replay = Replay::new(trace, Some(Arc::clone(&window)), true).expect("a trace").on(node);
        let first = replay.first_difference();
        let log = simulate(&mut replay, &window, fault);
        let differ: Vec<f64> = replay.measurements().iter().map(|measured| measured.value).collect();
        let end = log.last().cloned().unwrap_or_default();
        (end, replay.verification(), first.get().cloned(), differ)
    };
    assert!(matches!(on("none", Fault::Layout).1, Verification::Failed(_)), "the node of the recording");
    for (fault, said) in [
        (Fault::Layout, "expected the address 0x700000000100, found 0x700000000200"),
        (Fault::Error, "expected success, found cudaErrorIllegalAddress (700)"),
    ] {
        let (end, verification, ..) = on("t4_node", fault);
        assert_eq!(verification, Verification::NotChecked, "{fault:?}");
        assert!(end.contains("was recorded on none, and its replay on t4_node cannot go on: call "), "{end}");
        assert!(end.contains(said), "{end}");
    }
    for fault in [Fault::None, Fault::Text] {
        assert_eq!(on("t4_node", fault), ("end None".to_owned(), Verification::Passed, None, vec![0.0]), "{fault:?}");
    }
    let (end, verification, first, differ) = on("t4_node", Fault::Data);
    assert_eq!((end.as_str(), verification, differ), ("end None", Verification::NotChecked, vec![1.0]));
    assert!(first.is_some_and(|text| text.contains("offset 6: expected 0x07, found 0x06")));
}

/// The files of a trace.
fn files(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let names = ["trace.txt", "events.bin", "payloads.bin"];
    names.iter().map(|name| folder.join(name)).map(|path| (path.clone(), fs::read(&path).expect("a file"))).collect()
}

/// Opens a trace that may be damaged; where it opens, replays it.
fn try_it(folder: &Path, partial: bool) -> Result<(), String> {
    let trace = Trace::open(folder, partial).map_err(|error| error.to_string())?;
    trace.code().map_err(|error| error.to_string())?;
    let window = window();
    let mut replay = Replay::new(trace, Some(Arc::clone(&window)), true).map_err(|error| error.to_string())?;
    simulate(&mut replay, &window, Fault::None);
    Ok(())
}

#[test]
fn a_changed_byte_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    record(folder.path());
    for (path, bytes) in files(folder.path()) {
        let text = path.ends_with("trace.txt");
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            // A single bit of a frame's description may say nothing about its content.
            changed[at] = !changed[at];
            fs::write(&path, &changed).expect("written");
            let outcome = try_it(folder.path(), false);
            // The header's words about the program are free.
            assert!(text || outcome.is_err(), "{}, byte {at}", path.display());
            if let Err(error) = outcome.as_ref().map_err(|error| error.clone()).map(|()| String::new()) {
                assert!(
                    error.contains("trace.txt") || error.contains(".bin") || error.contains("unfinished"),
                    "{error}"
                );
            }
            // Never more than an error, whatever is read.
            let _ = try_it(folder.path(), true);
        }
        fs::write(&path, &bytes).expect("written");
    }
    assert_eq!(try_it(folder.path(), false), Ok(()));
}

#[test]
fn a_file_that_is_cut_off_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    record(folder.path());
    for (path, bytes) in files(folder.path()) {
        for length in 0..bytes.len() {
            fs::write(&path, &bytes[..length]).expect("written");
            // The last line of the header may miss its end.
            let complete = path.ends_with("trace.txt") && length + 1 == bytes.len();
            assert!(complete || try_it(folder.path(), false).is_err(), "{}, {length} bytes", path.display());
        }
        fs::remove_file(&path).expect("removed");
        let error = try_it(folder.path(), false).expect_err("no file");
        assert!(error.contains("cannot read"), "{error}");
        fs::write(&path, &bytes).expect("written");
    }
}

#[test]
fn the_prefix_of_a_killed_run_can_be_replayed() {
    let folder = tempfile::tempdir().expect("a folder");
    let recorded = record(folder.path());
    let events = fs::read(folder.path().join("events.bin")).expect("a file");
    let header = Header { program: "test".to_owned(), topology: "none".to_owned(), ..Header::default() };
    header.write(folder.path()).expect("written");
    let refused = try_it(folder.path(), false).expect_err("it is not finished");
    assert!(refused.contains("is unfinished"), "{refused}");
    let mut longest = 0;
    for length in 16..events.len() {
        fs::write(folder.path().join("events.bin"), &events[..length]).expect("written");
        let trace = Trace::open(folder.path(), true).unwrap_or_else(|error| panic!("{length}: {error}"));
        let window = window();
        let mut replay = Replay::new(trace, Some(Arc::clone(&window)), true).expect("a trace");
        let mut log = simulate(&mut replay, &window, Fault::None);
        assert!(!matches!(replay.verification(), Verification::Failed(_)), "{length}: {:?}", replay.verification());
        log.pop();
        assert_eq!(log[..], recorded[..log.len()], "{length}");
        assert!(log.len() >= longest);
        longest = log.len();
    }
    assert_eq!(longest, recorded.len() - 1);
}

#[test]
fn events_that_make_no_sense_are_refused() {
    let request = |thread: u32, call: Call| Event::Request {
        request: Request { thread: ThreadId(thread), process: P, device: 0, host_picoseconds: 0, call },
        payloads: Vec::new(),
    };
    let returned = |thread: u32| Event::Result {
        thread: ThreadId(thread),
        result: CallResult::None,
        data: None,
        shared_memory: None,
    };
    let nowhere = PayloadId { hash: 1, length: 4 };
    let upload = Call::copy_to_device(BASE, Bytes::absent(4), 0, false);
    for (events, said) in [
        (
            vec![request(0, Call::DeviceSynchronize), request(0, Call::DeviceSynchronize)],
            "before its last one has returned",
        ),
        (vec![returned(3)], "a call of thread 3 returns, which is in none"),
        (vec![request(0, Call::DeviceSynchronize), returned(0), returned(0)], "which is in none"),
        (vec![request(0, upload)], "announces payloads of [4] bytes, and has []"),
        (
            vec![Event::Receive { process: P, transfer: 0, data: nowhere }],
            "payload 00000000000000000000000000000001 of 4 bytes is missing",
        ),
        (
            vec![
                Event::CallBack { process: P, function: 1 },
                Event::Code { device: 0, name: String::new(), text: nowhere },
            ],
            "missing",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = TraceWriter::create(folder.path(), Header::default()).expect("a trace");
        for event in &events {
            writer.event(event).expect("written");
        }
        writer.finish().expect("written");
        let error = Trace::open(folder.path(), false).expect_err(said).to_string();
        assert!(error.contains(said) && error.contains("events.bin, byte "), "{error}");
    }
}

#[test]
fn unknown_events_and_deep_graphs_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    record(folder.path());
    let path = folder.path().join("events.bin");
    let good = fs::read(&path).expect("a file");
    let put = |event: &[u8]| {
        let mut bytes = good[..16].to_vec();
        bytes.extend((event.len() as u32).to_le_bytes());
        bytes.extend(super::writer::checksum(event).to_le_bytes());
        bytes.extend(event);
        fs::write(&path, &bytes).expect("written");
        let header = Header { finished: Some((1, bytes.len() as u64)), ..Header::default() };
        header.write(folder.path()).expect("written");
        Trace::open(folder.path(), false).expect_err("no event").to_string()
    };
    assert!(put(&[77]).contains("byte 16: unknown kind of event 77, expected 0 to 9"));
    assert!(put(&[]).contains("an empty event"));
    // A graph in a graph in a graph, and so on: no program makes one, and to read it would take all of the stack.
    let graph = |inner: Call| Call::GraphLaunch {
        nodes: vec![crate::call::GraphNode::of(Some(inner), Vec::new())],
        conditions: Vec::new(),
        stream: 0,
    };
    let encoded = |depth: usize| {
        let call = (0..depth).fold(Call::DeviceSynchronize, |call, _| graph(call));
        let request = Request { thread: ThreadId(0), process: P, device: 0, host_picoseconds: 0, call };
        postcard::to_stdvec(&Event::Request { request, payloads: Vec::new() }).expect("encoded")
    };
    assert!(put(&encoded(100)).contains("cannot be decoded"));
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("thesis.tex"), "text").expect("written");
    let refused = TraceWriter::create(folder.path(), Header::default()).err().expect("other files").to_string();
    assert!(refused.contains("it holds other files"), "{refused}");
    assert!(!Trace::is_at(folder.path()));
    let own = tempfile::tempdir().expect("a folder");
    record(own.path());
    // A trace that is there is replaced.
    record(own.path());
    assert_eq!(try_it(own.path(), false), Ok(()));
}

#[test]
fn a_trace_that_cannot_be_written_is_given_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let window = window();
    let writer = TraceWriter::create(&folder.path().join("trace"), Header::default()).expect("a trace");
    let (mut recorder, state) = Recorder::new(Box::new(program(&window)), writer, &[], Some(Arc::clone(&window)));
    // The header cannot be finished where there is no folder any longer.
    fs::remove_dir_all(folder.path().join("trace")).expect("removed");
    let log = simulate(&mut recorder, &window, Fault::None);
    assert_eq!(log.len(), 17);
    assert!(state.take_error().is_some_and(|error| error.to_string().contains("cannot write")));
}
