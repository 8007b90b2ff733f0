//! Runs small host programs; the test plays the GPU.

use super::*;
use crate::catalogue::PortMap;
use crate::catalogue::Surroundings;
use crate::engine::Bench;
use crate::engine::LiveBoard;
use crate::lines::LineRange;
use crate::memory::DeviceMemory;
use balar_driver::code::CodeChoice;
use balar_driver::code::tables::{DriverTables, KernelInfo};
use balar_host::call::{Function, Launch};
use balar_host::{Call, CallFailure, CallResult, CudaError, HostProgram, Measurement, SingleThread, Verification};
use balar_isa::program::Resources;
use balar_protocol::DetailChoice;
use balar_protocol::copy::{CopyId, CopyOperation};
use balar_protocol::cuda::{FaultAccess, FaultCause, FaultSpace, KernelFault};
use balar_protocol::memory::{MemoryKind, ServedBy};
use std::collections::VecDeque;
use std::sync::Mutex;

const COMMAND: PortId = PortId(0);
const DATA: PortId = PortId(1);
const MEMORY: PortId = PortId(2);
const WINDOW: SimTime = SimTime(15_000);
const WIRE: SimTime = SimTime(20_000);
const US: u64 = 1_000_000;

/// A call made of the results of those before.
type Step = Box<dyn Fn(&[CallResult]) -> Call + Send>;

/// The results that a program saw.
#[derive(Default)]
struct Seen {
    results: Vec<CallResult>,
    received: Vec<(u32, Arc<[u8]>)>,
}

struct Script {
    steps: VecDeque<Step>,
    seen: Arc<Mutex<Seen>>,
    verification: Verification,
}

impl HostProgram for Script {
    fn next(&mut self, previous: CallResult) -> Call {
        let mut seen = self.seen.lock().expect("one thread");
        seen.results.push(previous);
        if let Some(CallResult::Error(error)) = seen.results.last() {
            return Call::Exit { error: Some(CallFailure { call: "a call".to_owned(), error: *error }) };
        }
        match self.steps.pop_front() {
            Some(step) => step(&seen.results),
            None => Call::Exit { error: None },
        }
    }

    fn receive(&mut self, transfer: u32, data: Arc<[u8]>) {
        self.seen.lock().expect("one thread").received.push((transfer, data));
    }

    fn verification(&self) -> &Verification {
        &self.verification
    }

    fn measurements(&self) -> Vec<Measurement> {
        vec![Measurement { name: "answer", value: 42.0, unit: "1" }]
    }
}

fn call(call: Call) -> Step {
    Box::new(move |_| call.clone())
}

fn launch(kernel: &str, stream: u32, threads: u32) -> Step {
    call(Call::Launch(Launch {
        function: Function::built_in(kernel),
        grid: [4, 1, 1],
        block: [threads, 1, 1],
        shared_memory_bytes: 0,
        stream,
        parameters: vec![1; 8],
        cooperative: false,
        cluster: None,
        non_portable_cluster: false,
        access_policy: None,
    }))
}

fn malloc(bytes: u64) -> Step {
    call(Call::Malloc { bytes })
}

/// The pointer that call number `index` returned.
fn pointer(results: &[CallResult], index: usize) -> u64 {
    match results[index + 1] {
        CallResult::Pointer(pointer) => pointer,
        ref other => panic!("call {index} gave {other:?}"),
    }
}

fn host(steps: Vec<Step>, extra: &str, memory: bool) -> (HostCpu, Bench, Arc<Mutex<Seen>>) {
    let staging = if extra.contains("pageable_copies") { "" } else { ", pageable_copies: None" };
    let text = format!(
        r#"(clock: "1 GHz", launch_cost: 1000, copy_cost: 2000, malloc_cost: 3000, free_cost: 3000, synchronize_cost: 500, call_cost: 100{staging}{extra})"#
    );
    let parameters = HostCpuParameters::from_ron(&text).expect("parameters are complete");
    let seen = Arc::new(Mutex::new(Seen::default()));
    let verification = Verification::Passed;
    let program = Script { steps: steps.into(), seen: seen.clone(), verification };
    let gpu = test_support::gpu_description("gpu".to_owned());
    let memory_of_node = Arc::new(DeviceMemory::of_node(&[64 << 20]).expect("the system maps without reserving"));
    let ports = OptionalPorts { memory: memory.then_some(MEMORY), managed: None };
    let node = NodeView { gpus: &[gpu], memory: &memory_of_node, unit: 0 };
    let driver = Start {
        host: Some(Box::new(SingleThread::new(Box::new(program)))),
        tables: DriverTables::default(),
        code: CodeChoice::default(),
        detail: DetailChoice::default(),
        other_nodes: &[],
    };
    let resources = Resources { registers_per_thread: 32, ..Resources::default() };
    let kernel = KernelInfo { name: "k".into(), resources, parameter_bytes: 8, ..KernelInfo::default() };
    driver.tables.kernels.insert(balar_protocol::ContextId::first(0), 0, kernel);
    let unit = HostCpu::new(&parameters, &[(COMMAND, DATA)], ports, &node, driver);
    (unit, Bench::new(&[WIRE; 3]), seen)
}

/// Plays a GPU that takes 5 us for a kernel and 10 us for a transfer, until 300 us. Kernels of the launches in `faulty` fail. Returns the
/// messages that arrived with their times, in words.
fn play(unit: &mut HostCpu, bench: &mut Bench, faulty: &[u32]) -> Vec<(u64, String)> {
    let mut trace = Vec::new();
    let mut end = SimTime(0);
    while end < SimTime(300 * US) {
        end += WINDOW;
        for (time, _, payload) in bench.run(unit, WINDOW, end) {
            match payload {
                Payload::Cuda(CudaMessage::Launch(launch)) => {
                    trace.push((time.0, format!("launch {} stream {}", launch.id.0, launch.stream)));
                    let fault = faulty.contains(&launch.id.0).then(|| {
                        let cause = FaultCause::IllegalAddress {
                            address: 16,
                            bytes: 4,
                            access: FaultAccess::Load,
                            space: FaultSpace::Global,
                        };
                        let instruction = "k.ptx:7".to_owned();
                        let (kernel, launch) = (launch.name.clone(), launch.id);
                        Box::new(KernelFault {
                            cause,
                            kernel,
                            launch,
                            cta: [0; 3],
                            thread: [0; 3],
                            instruction,
                            origin: None,
                        })
                    });
                    let completed = CudaMessage::LaunchCompleted { launch: launch.id, fault, ran: None };
                    bench.deliver(time + SimTime(5 * US), COMMAND, Payload::Cuda(completed));
                }
                Payload::Copy(CopyMessage::Command(command)) => {
                    let (copy, operation) = *command;
                    trace.push((time.0, format!("copy {} of {}", copy.0, operation.bytes())));
                    let data = match operation {
                        CopyOperation::DeviceToHost { source } => {
                            Some(Box::new(vec![7; source.bytes() as usize].into()))
                        }
                        _ => None,
                    };
                    let completed = CopyMessage::Completed { copy, data, error: None };
                    bench.deliver(time + SimTime(10 * US), DATA, Payload::Copy(completed));
                }
                other => panic!("unexpected {other:?}"),
            }
        }
    }
    trace
}

fn outcome(unit: &HostCpu) -> ProgramOutcome {
    let mut sink = StatisticSink::default();
    unit.statistics(&mut sink);
    unit.records(&mut sink);
    sink.outcome.expect("the unit has a program")
}

#[test]
fn a_program_runs_to_its_end() {
    let steps = vec![
        malloc(4096),
        Box::new(|results: &[CallResult]| Call::copy_to_device(pointer(results, 0), vec![1; 4096].into(), 0, false)),
        launch("k", 0, 256),
        launch("k", 0, 256),
        Box::new(|results: &[CallResult]| Call::copy_from_device(pointer(results, 0), 16, 0, 0, false)),
        call(Call::ReadClock),
    ];
    let (mut unit, mut bench, seen) = host(steps, "", false);
    let trace = play(&mut unit, &mut bench, &[]);
    // The allocation takes 3 us and the copy's start 2 us. The copy ends 10 us after the engine has it, and the call returns
    // 0.5 us later: at 15.52 us. Launches take 1 us each. The second copy is started at 19.52 us, but waits for the second
    // kernel, which ends at 22.54 us.
    let expected = [
        (5 * US + 20_000, "copy 1 of 4096".to_owned()),
        (16 * US + 540_000, "launch 1 stream 0".to_owned()),
        (17 * US + 540_000, "launch 2 stream 0".to_owned()),
        (22 * US + 560_000, "copy 2 of 16".to_owned()),
    ];
    assert_eq!(trace, expected);
    let results = &seen.lock().expect("one thread").results;
    assert_eq!(results[5], CallResult::Data(vec![7; 16].into()));
    assert_eq!(results[6], CallResult::Time { picoseconds: 33 * US + 60_000 + 53_000 });
    let outcome = outcome(&unit);
    assert!(outcome.finished && outcome.error.is_none());
    assert_eq!(outcome.verification, Verification::Passed);
    assert_eq!(outcome.results, [("answer".to_owned(), 42.0, "1".to_owned())]);
    assert_eq!((unit.counters.calls, unit.counters.calls_launch, unit.counters.calls_copy), (5, 2, 2));
    let totals = unit.driver.totals();
    assert_eq!((totals.bytes_host_to_device, totals.bytes_device_to_host), (4096, 16));
    assert_eq!(unit.outstanding(), None);
}

#[test]
fn pageable_data_are_copied_before_a_transfer_to_a_device_and_after_one_from_it() {
    let steps = vec![
        malloc(8192),
        Box::new(|results: &[CallResult]| Call::copy_to_device(pointer(results, 0), vec![1; 4096].into(), 0, false)),
        launch("k", 0, 256),
        Box::new(|results: &[CallResult]| Call::copy_from_device(pointer(results, 0), 2000, 0, 0, false)),
        call(Call::ReadClock),
        Box::new(|results: &[CallResult]| {
            let buffer = pointer(results, 0);
            Call::copy_within(buffer + 4096, buffer, 4096, 0, false)
        }),
        call(Call::ReadClock),
    ];
    let (mut unit, mut bench, seen) = host(steps, r#", pageable_copies: Copied("1 GB/s")"#, false);
    let trace = play(&mut unit, &mut bench, &[]);
    // The driver copies 4096 bytes in 4.096 us: the engine has the copy at 3 + 2 + 4.096 + 0.02 us, is done 10 us later, and the call
    // returns 0.5 us after that. The launch takes 1 us. The second copy waits for the kernel, which ends at 25.636 us. Memory of the device
    // is copied by the engine alone: 2 us and 0.02 us after the clock was read.
    let expected = [
        (9 * US + 116_000, "copy 1 of 4096".to_owned()),
        (20 * US + 636_000, "launch 1 stream 0".to_owned()),
        (25 * US + 656_000, "copy 2 of 2000".to_owned()),
        (40 * US + 229_000, "copy 3 of 4096".to_owned()),
    ];
    assert_eq!(trace, expected);
    let results = &seen.lock().expect("one thread").results;
    // The engine is done at 35.656 us, the call goes on 0.5 us later, and the driver copies 2000 bytes in 2 us.
    assert_eq!(results[5], CallResult::Time { picoseconds: 38 * US + 156_000 + 53_000 });
    assert_eq!(results[7], CallResult::Time { picoseconds: 50 * US + 729_000 + 53_000 });
}

#[test]
fn a_fault_is_reported_by_the_next_synchronisation_with_its_text() {
    let steps = vec![
        launch("k", 0, 32),
        launch("k", 0, 32),
        call(Call::DeviceSynchronize),
        call(Call::StreamCreate { non_blocking: false, priority: 0 }),
    ];
    let (mut unit, mut bench, seen) = host(steps, "", false);
    play(&mut unit, &mut bench, &[1, 2]);
    let results = &seen.lock().expect("one thread").results;
    assert_eq!(results[1..], [CallResult::None, CallResult::None, CallResult::Error(CudaError::IllegalAddress)]);
    let error = outcome(&unit).error.expect("the program gave up");
    assert_eq!(
        error,
        "a call failed: cudaErrorIllegalAddress (700): illegal address 0x10 in a 4-byte global load by kernel k (launch 0), \
         block (0, 0, 0), thread (0, 0, 0), at k.ptx:7"
    );
}

#[test]
fn a_fault_that_no_call_reports_is_in_the_outcome() {
    let (mut unit, mut bench, _) = host(vec![launch("k", 0, 32)], "", false);
    play(&mut unit, &mut bench, &[1]);
    assert!(outcome(&unit).error.is_some_and(|error| error.starts_with("cudaErrorIllegalAddress (700): illegal")));
}

#[test]
fn functions_that_are_not_implemented_are_counted_by_name() {
    let missing = call(Call::NotImplemented { function: "cudaOne".to_owned() });
    let (mut unit, mut bench, seen) = host(vec![missing], "", false);
    play(&mut unit, &mut bench, &[]);
    assert_eq!(seen.lock().expect("one thread").results[1..], [CallResult::Error(CudaError::NotSupported)]);
    let counted = ("cudaOne, not implemented".to_owned(), 1.0, "call".to_owned());
    assert!(outcome(&unit).results.contains(&counted), "{:?}", outcome(&unit).results);
}

#[test]
fn refused_calls_name_their_error() {
    let cases: Vec<(Vec<Step>, CudaError, &str)> = vec![
        (
            vec![malloc(65 << 20)],
            CudaError::MemoryAllocation,
            "68157440 bytes requested, 67108864 of 67108864 bytes free",
        ),
        (vec![call(Call::Free { pointer: 8 })], CudaError::InvalidValue, "no allocation begins at 0x8"),
        (vec![launch("none", 0, 1)], CudaError::InvalidDeviceFunction, "no kernel named none"),
        (vec![launch("k", 0, 1025)], CudaError::InvalidConfiguration, "block.x is 1025"),
        (vec![launch("k", 3, 32)], CudaError::InvalidResourceHandle, "there is no stream 3"),
        (
            vec![
                malloc(100),
                Box::new(|results: &[CallResult]| Call::memset(pointer(results, 0) + 1, 0, 100, 0, false)),
            ],
            CudaError::InvalidValue,
            "100 bytes at 0x700000000001 are not inside one allocation",
        ),
    ];
    for (steps, expected, text) in cases {
        let (mut unit, mut bench, seen) = host(steps, "", false);
        assert_eq!(play(&mut unit, &mut bench, &[]), []);
        assert_eq!(seen.lock().expect("one thread").results.last(), Some(&CallResult::Error(expected)));
        let ProgramOutcome { error, launches_refused, first_refused, .. } = outcome(&unit);
        let error = error.expect("the program gave up");
        assert!(error.contains(text), "{error}");
        assert_eq!(unit.counters.calls_failed, 1);
        let is_launch = ["no kernel named none", "block.x is 1025", "there is no stream 3"].contains(&text);
        assert_eq!((launches_refused, first_refused.is_some()), (u64::from(is_launch), is_launch), "{text}");
        if text == "block.x is 1025" {
            let first = first_refused.unwrap_or_default();
            let begin = "the launch of kernel k with 4 x 1 x 1 blocks of 1025 x 1 x 1 threads was refused: \
                         cudaErrorInvalidConfiguration (9): ";
            assert!(first.starts_with(begin) && first.contains(text), "{first}");
        }
    }
}

#[test]
fn streams_overlap_and_asynchronous_copies_deliver_their_bytes() {
    let steps = vec![
        malloc(64),
        call(Call::StreamCreate { non_blocking: false, priority: 0 }),
        call(Call::StreamCreate { non_blocking: false, priority: 0 }),
        launch("k", 1, 32),
        launch("k", 2, 32),
        Box::new(|results: &[CallResult]| Call::copy_from_device(pointer(results, 0), 8, 5, 1, true)),
        call(Call::StreamSynchronize { stream: 2 }),
        call(Call::ReadClock),
        call(Call::StreamSynchronize { stream: 1 }),
        call(Call::ReadClock),
    ];
    let (mut unit, mut bench, seen) = host(steps, "", false);
    let trace = play(&mut unit, &mut bench, &[]);
    let words: Vec<_> = trace.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(words, ["launch 1 stream 1", "launch 2 stream 2", "copy 1 of 8"]);
    let seen = seen.lock().expect("one thread");
    let times: Vec<u64> = seen
        .results
        .iter()
        .filter_map(|result| match result {
            CallResult::Time { picoseconds } => Some(*picoseconds),
            _ => None,
        })
        .collect();
    // Kernel 2 is sent at 5.2 us and ends 5.02 us later; the copy waits for kernel 1 (9.22 us) and ends at 19.24 us.
    assert_eq!(times, [10 * US + 220_000 + 500_000 + 53_000, 19 * US + 240_000 + 500_000 + 53_000]);
    assert_eq!(seen.received, [(5, vec![7; 8].into())]);
}

#[test]
fn free_waits_for_the_device() {
    let steps = vec![
        malloc(64),
        launch("k", 0, 32),
        Box::new(|results: &[CallResult]| Call::Free { pointer: pointer(results, 0) }),
        malloc(64),
    ];
    let (mut unit, mut bench, seen) = host(steps, "", false);
    play(&mut unit, &mut bench, &[]);
    let results = &seen.lock().expect("one thread").results;
    assert_eq!(pointer(results, 0), pointer(results, 3), "the range was free again");
    // The kernel was sent at 4 us; free began to wait at 7 us and returned 0.5 us after the end at 9.02 us.
    assert_eq!(unit.counters.cycles_waiting, 2520);
}

#[test]
fn a_full_launch_queue_blocks_the_program() {
    let steps = (0..4).map(|_| launch("k", 0, 32)).collect();
    let (mut unit, mut bench, _) = host(steps, ", queue_depth: 2", false);
    let trace = play(&mut unit, &mut bench, &[]);
    // The second launch, at 2 us, waits for the first one's end, at 6.02 us; the next takes 1 us and waits likewise.
    let times: Vec<u64> = trace.iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [US + 20_000, 2 * US + 20_000, 7 * US + 540_000, 8 * US + 560_000 - 20_000]);
}

/// Has the copy engine ask for the first page of a transfer of 5000 bytes and the last one; returns the unit's answers.
fn page_answers(memory: bool) -> (Vec<(u64, u32, bool)>, HostCpuCounters) {
    let steps: Vec<Step> = vec![
        malloc(5000),
        Box::new(|results: &[CallResult]| Call::copy_to_device(pointer(results, 0), vec![1; 5000].into(), 0, true)),
    ];
    let (mut unit, mut bench, _) = host(steps, "", memory);
    let mut answers = Vec::new();
    let copy = CopyId(1);
    for (offset, bytes) in [(0, 4096), (4096, 904)] {
        bench.deliver(SimTime(6 * US), DATA, Payload::Copy(CopyMessage::PageRequest { copy, offset, bytes }));
    }
    let mut end = SimTime(0);
    while end < SimTime(8 * US) {
        end += WINDOW;
        for (time, _, payload) in bench.run(&mut unit, WINDOW, end) {
            match payload {
                Payload::Copy(CopyMessage::Page { bytes, last, .. }) => answers.push((time.0, bytes, last)),
                Payload::Memory(MemoryMessage::Burst(burst)) => {
                    let done = MemoryMessage::BurstDone(burst);
                    bench.deliver(time + SimTime(60_000), MEMORY, Payload::Memory(done));
                }
                _ => {}
            }
        }
    }
    (answers, unit.counters)
}

#[test]
fn pages_come_from_host_memory() {
    let (answers, counters) = page_answers(false);
    assert_eq!(answers, [(6 * US + 120_000, 4096, false), (6 * US + 120_000, 904, true)]);
    assert_eq!(counters.host_memory_loads, 0);
    let (answers, counters) = page_answers(true);
    assert_eq!(answers, [(6 * US + 100_000, 4096, false), (6 * US + 100_000, 904, true)]);
    assert_eq!(counters.host_memory_loads, 32 + 8);
}

#[test]
fn kernels_accesses_to_host_memory_are_answered() {
    for (memory, answered) in [(false, 120_000), (true, 100_000)] {
        let (mut unit, mut bench, _) = host(Vec::new(), "", memory);
        let mut lines = LineRange::new(balar_host::memory::HOST_BASE, 256);
        for kind in [MemoryKind::Load, MemoryKind::Store] {
            let access = lines.next_request(kind, 77).expect("two lines");
            bench.deliver(SimTime(US), DATA, Payload::Copy(CopyMessage::Access(access)));
        }
        let (mut answers, mut end) = (Vec::new(), SimTime(0));
        while end < SimTime(2 * US) {
            end += WINDOW;
            for (time, _, payload) in bench.run(&mut unit, WINDOW, end) {
                match payload {
                    Payload::Copy(CopyMessage::Accessed(response)) => {
                        answers.push((time.0 - US, response.kind, response.id))
                    }
                    Payload::Memory(MemoryMessage::Request(request)) => {
                        let response = MemoryMessage::Response(request.response(0, ServedBy::DeviceMemory));
                        bench.deliver(time + SimTime(60_000), MEMORY, Payload::Memory(response));
                    }
                    other => panic!("unexpected {other:?}"),
                }
            }
        }
        assert_eq!(answers, [(answered, MemoryKind::Load, 77), (answered, MemoryKind::Store, 77)]);
        let lines = u64::from(memory);
        assert_eq!((unit.counters.host_memory_loads, unit.counters.host_memory_stores), (lines, lines));
    }
}

#[test]
fn a_host_without_a_program_sleeps() {
    let ports = PortMap::new([("command".to_owned(), 0), ("data".to_owned(), 0)]);
    let memory = DeviceMemory::of_node(&[1 << 20]).expect("the system maps without reserving");
    let surroundings = Surroundings::new(Vec::new(), Some(Arc::new(memory)), LiveBoard::default());
    let (path, part, surroundings) = ("cpu", "", &surroundings);
    let context = BuildContext { path, part, index: 0, row_length: 1, ports: &ports, unit: 0, surroundings };
    let mut text = String::from("(");
    for definition in HostCpuParameters::DEFINITIONS {
        let value = definition.default.unwrap_or(r#""2660 MHz""#);
        text.push_str(&format!("{}: {value}, ", definition.name));
    }
    text.push(')');
    let mut unit = (DEFINITION.build)(&text, &context).expect("a host needs no program");
    let mut bench = Bench::new(&[WIRE; 2]);
    assert_eq!(bench.run(unit.as_mut(), WINDOW, SimTime(US)).len(), 0);
    let mut sink = StatisticSink::default();
    unit.statistics(&mut sink);
    unit.records(&mut sink);
    assert!(sink.outcome.is_none() && sink.rows.len() == HostCpuCounters::DEFINITIONS.len());
}

#[test]
fn a_cooperative_launch_has_a_workspace_and_must_fit() {
    let cooperative = |blocks: u32| {
        call(Call::Launch(Launch {
            function: Function::built_in("k"),
            grid: [blocks, 1, 1],
            block: [512, 1, 1],
            shared_memory_bytes: 0,
            stream: 0,
            parameters: vec![1; 8],
            cooperative: true,
            cluster: None,
            non_portable_cluster: false,
            access_policy: None,
        }))
    };
    // 512 threads of 32 registers: four CTAs an SM by threads and by registers, 80 SMs.
    let (mut unit, mut bench, seen) = host(vec![cooperative(320), cooperative(321)], "", false);
    let mut workspaces = Vec::new();
    let mut end = SimTime(0);
    while end < SimTime(20 * US) {
        end += WINDOW;
        for (_, _, payload) in bench.run(&mut unit, WINDOW, end) {
            if let Payload::Cuda(CudaMessage::Launch(launch)) = payload {
                workspaces.push(launch.grid_workspace);
            }
        }
    }
    assert!(matches!(workspaces[..], [workspace] if workspace >= DeviceMemory::BASE), "{workspaces:x?}");
    let seen = seen.lock().expect("one thread");
    assert_eq!(seen.results[1..], [CallResult::None, CallResult::Error(CudaError::CooperativeLaunchTooLarge)]);
    let error = outcome(&unit).error.expect("the program gave up");
    assert!(error.contains("a cooperative launch of 321 blocks, 80 SMs run 4 each at once: 320"), "{error}");
}
