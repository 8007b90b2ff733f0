//! Drives the copy engine; the test plays the host and the L2.

use super::*;
use crate::catalogue::ParameterSet;
use crate::engine::Bench;
use crate::engine::EpochHook;
use crate::lines::LineRange;
use crate::memory::{Bounds, WriteLog};
use balar_host::memory::MANAGED_BASE;
use balar_protocol::SimTime;
use balar_protocol::copy::{CopyId, CopyOperation, Rows};
use balar_protocol::memory::{MemoryKind, ServedBy};

/// When, which transfer, its bytes, its error.
type Completion = (u64, u32, Option<Vec<u8>>, Option<String>);

const DATA: PortId = PortId(0);
const MEMORY: PortId = PortId(1);
const WINDOW: SimTime = SimTime(15_000);
const A: u64 = DeviceMemory::BASE;
const B: u64 = DeviceMemory::BASE + (1 << 21);

/// Allocations A of 1 MiB and B of 1 MiB.
fn memory() -> Arc<DeviceMemory> {
    let memory = DeviceMemory::new(1 << 24).expect("address space for 16 MiB");
    let mut log = WriteLog::default();
    log.map(SimTime(0), A, 1 << 20, Bounds::Allocations);
    log.map(SimTime(0), B, 1 << 20, Bounds::Allocations);
    memory.apply(&mut log);
    Arc::new(memory)
}

fn engine(memory: &Arc<DeviceMemory>, extra: &str) -> (CopyEngine, Bench) {
    let text = format!(
        r#"(clock: "1 GHz", setup_time: "1 us", device_setup_time: "500 ns", host_bandwidth: "16 GB/s"{extra})"#
    );
    let parameters = CopyEngineParameters::from_ron(&text).expect("parameters are complete");
    let ports = Ports { data: DATA, memory: Some(MEMORY), device: None };
    (CopyEngine::new(parameters, ports, 0, (memory.clone(), memory.writer(0))), Bench::new(&[SimTime(20_000); 2]))
}

fn to_device(destination: u64, data: &Arc<[u8]>) -> CopyOperation {
    CopyOperation::HostToDevice { destination: Rows::linear(destination, data.len() as u64), data: data.clone() }
}

fn within(destination: u64, source: u64, bytes: u64) -> CopyOperation {
    let [destination, source] = [destination, source].map(|address| Rows::linear(address, bytes));
    CopyOperation::DeviceToDevice { destination, source }
}

fn fill(destination: u64, value: u32, bytes: u64) -> CopyOperation {
    CopyOperation::Fill { destination: Rows::linear(destination, bytes), value, element_bytes: 1 }
}

fn command(id: u32, operation: CopyOperation) -> Payload {
    Payload::Copy(CopyMessage::Command(Box::new((CopyId(id), operation))))
}

/// The results of an exchange.
#[derive(Default)]
struct Exchange {
    completed: Vec<Completion>,
    pages: Vec<(u64, u32, bool)>,
    requested_pages: usize,
    loads: usize,
    stores: usize,
}

/// Runs until nothing is sent any more: page requests are answered after 300 ns, line requests after 200 ns.
fn exchange(unit: &mut CopyEngine, bench: &mut Bench, memory: &DeviceMemory) -> Exchange {
    let mut result = Exchange::default();
    let mut end = SimTime(0);
    for _ in 0..20_000 {
        end += WINDOW;
        let sent = bench.run(unit, WINDOW, end);
        memory.epoch_ends();
        for (time, _, payload) in sent {
            let time = time.max(end);
            match payload {
                Payload::Memory(MemoryMessage::Request(request)) => {
                    match request.kind {
                        MemoryKind::Load => result.loads += 1,
                        _ => result.stores += 1,
                    }
                    let response = MemoryMessage::Response(request.response(0, ServedBy::L2));
                    bench.deliver(time + SimTime(200_000), MEMORY, Payload::Memory(response));
                }
                Payload::Copy(CopyMessage::PageRequest { copy, offset, bytes }) => {
                    result.requested_pages += 1;
                    let page = CopyMessage::Page { copy, offset, bytes, last: false };
                    bench.deliver(time + SimTime(300_000), DATA, Payload::Copy(page));
                }
                Payload::Copy(CopyMessage::Page { offset, bytes, last, .. }) => {
                    result.pages.push((offset, bytes, last))
                }
                Payload::Copy(CopyMessage::Completed { copy, data, error }) => {
                    let error = error.map(String::from);
                    result.completed.push((time.0, copy.0, data.map(|data| data.to_vec()), error));
                }
                other => panic!("unexpected {other:?}"),
            }
        }
    }
    assert_eq!(unit.outstanding(), None);
    result
}

fn pattern(bytes: usize) -> Arc<[u8]> {
    (0..bytes).map(|i| (i * 7 + i / 256) as u8).collect()
}

fn read(memory: &DeviceMemory, address: u64, bytes: usize) -> Vec<u8> {
    let mut data = vec![0; bytes];
    assert!(memory.read(address, &mut data));
    data
}

#[test]
fn host_data_reaches_device_memory_and_the_l2() {
    let memory = memory();
    let (mut unit, mut bench) = engine(&memory, "");
    let data = pattern(640 << 10);
    let operation = to_device(A, &data);
    bench.deliver(SimTime(0), DATA, command(4, operation));
    let result = exchange(&mut unit, &mut bench, &memory);
    assert_eq!((result.requested_pages, result.stores, result.loads), (160, 5120, 0));
    assert_eq!(read(&memory, A, data.len()), *data);
    // 640 KiB at 16 GB/s are 40.96 us, after 1 us of setup; a page's own latency comes on top.
    let (time, id, ref bytes, ref error) = result.completed[0];
    assert_eq!((id, bytes, error), (4, &None, &None));
    assert!((41_960_000..43_500_000).contains(&time), "{time}");
    assert_eq!(unit.state.engines[TO_DEVICE].counters.bytes_host_to_device, 640 << 10);
}

#[test]
fn device_data_comes_back_in_pages() {
    let memory = memory();
    let data = pattern(10_000);
    let mut log = WriteLog::default();
    log.write(SimTime(0), A + 100, &data, 0..10_000);
    memory.apply(&mut log);
    let (mut unit, mut bench) = engine(&memory, "");
    bench.deliver(SimTime(0), DATA, command(9, CopyOperation::DeviceToHost { source: Rows::linear(A + 100, 10_000) }));
    let result = exchange(&mut unit, &mut bench, &memory);
    assert_eq!(result.pages, [(0, 4096, false), (4096, 4096, false), (8192, 1808, true)]);
    assert_eq!(result.completed[0].2.as_deref(), Some(&*data));
    assert_eq!(result.loads, 33 + 33 + 15, "unaligned pages touch one line more");
}

#[test]
fn copies_and_fills_within_the_device() {
    let memory = memory();
    let (mut unit, mut bench) = engine(&memory, "");
    bench.deliver(SimTime(0), DATA, command(1, fill(A, 0x5a, 8192)));
    let copy = within(B + 32, A, 8192);
    bench.deliver(SimTime(1), DATA, command(2, copy));
    let result = exchange(&mut unit, &mut bench, &memory);
    assert_eq!(result.completed.iter().map(|(_, id, ..)| *id).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(read(&memory, B, 8192 + 64), [vec![0; 32], vec![0x5a; 8192], vec![0; 32]].concat());
    assert_eq!((result.loads, result.stores), (64, 64 + 66));
}

#[test]
fn the_two_directions_run_at_once() {
    let memory = memory();
    let (mut unit, mut bench) = engine(&memory, "");
    let data = pattern(1 << 18);
    bench.deliver(SimTime(0), DATA, command(1, to_device(A, &data)));
    bench.deliver(SimTime(1), DATA, command(2, CopyOperation::DeviceToHost { source: Rows::linear(B, 1 << 18) }));
    let result = exchange(&mut unit, &mut bench, &memory);
    let times: Vec<_> = result.completed.iter().map(|(time, ..)| *time).collect();
    assert!(times.iter().all(|time| *time < 19_500_000), "one after the other they take 34 us: {times:?}");
}

#[test]
fn without_the_l2_only_values_move() {
    let memory = memory();
    let (mut unit, mut bench) = engine(&memory, ", through_l2: false");
    let data = pattern(5000);
    bench.deliver(SimTime(0), DATA, command(1, to_device(A, &data)));
    let copy = within(B, A, 5000);
    bench.deliver(SimTime(20_000_000), DATA, command(2, copy));
    bench.deliver(SimTime(40_000_000), DATA, command(3, CopyOperation::DeviceToHost { source: Rows::linear(B, 5000) }));
    let result = exchange(&mut unit, &mut bench, &memory);
    assert_eq!((result.loads, result.stores), (0, 0));
    assert_eq!(result.completed[2].2.as_deref(), Some(&*data));
}

#[test]
fn a_range_outside_allocations_is_refused_and_the_next_transfer_goes_on() {
    let memory = memory();
    let (mut unit, mut bench) = engine(&memory, "");
    bench.deliver(SimTime(0), DATA, command(1, fill(A + 8, 1, 1 << 20)));
    bench.deliver(SimTime(0), DATA, command(2, fill(A, 1, 0)));
    let result = exchange(&mut unit, &mut bench, &memory);
    let (_, id, _, error) = &result.completed[0];
    assert_eq!(*id, 1);
    assert_eq!(error.as_deref(), Some("1048576 bytes at 0x700000000008 are not inside one allocation"));
    assert_eq!((result.completed[1].1, result.completed[1].0, &result.completed[1].3), (2, 520_000, &None));
}

/// What crosses the link begins later than what stays within the device.
#[test]
fn transfers_begin_after_their_setup() {
    let memory = memory();
    for (operation, setup) in [(fill(A, 1, 4096), 500_000), (to_device(A, &pattern(4096)), 1_000_000)] {
        let (mut unit, mut bench) = engine(&memory, ", through_l2: false");
        bench.deliver(SimTime(0), DATA, command(1, operation));
        let result = exchange(&mut unit, &mut bench, &memory);
        let done = result.completed[0].0;
        assert!((setup..setup + 400_000).contains(&done), "{done} ps, {setup} ps of setup");
    }
}

#[test]
fn unanswered_lines_are_bounded() {
    let memory = memory();
    let (mut unit, mut bench) = engine(&memory, ", outstanding_lines: 40");
    bench.deliver(SimTime(0), DATA, command(1, fill(A, 1, 1 << 16)));
    let result = exchange(&mut unit, &mut bench, &memory);
    assert_eq!(result.stores, 512);
    assert_eq!(unit.state.engines[TO_DEVICE].counters.outstanding_lines_maximum, 40);
}

/// Rows of 100 bytes, 3 a slice, 2 slices, with gaps.
fn rows(address: u64) -> Rows {
    Rows { address, width: 100, height: 3, depth: 2, row_pitch: 256, slice_pitch: 4096 }
}

/// The bytes of rows, packed.
fn packed(memory: &DeviceMemory, rows: &Rows) -> Vec<u8> {
    rows.runs(0, rows.bytes()).flat_map(|(address, bytes)| read(memory, address, bytes as usize)).collect()
}

#[test]
fn rows_go_to_the_device_within_it_and_back() {
    let memory = memory();
    let (mut unit, mut bench) = engine(&memory, "");
    let data = pattern(600);
    let write = CopyOperation::HostToDevice { destination: rows(A), data: data.clone() };
    bench.deliver(SimTime(0), DATA, command(1, write));
    let elsewhere = Rows { address: B + 64, width: 150, height: 4, depth: 1, row_pitch: 1000, slice_pitch: 0 };
    bench.deliver(
        SimTime(1),
        DATA,
        command(2, CopyOperation::DeviceToDevice { destination: elsewhere, source: rows(A) }),
    );
    bench.deliver(SimTime(10_000_000), DATA, command(3, CopyOperation::DeviceToHost { source: elsewhere }));
    let result = exchange(&mut unit, &mut bench, &memory);
    assert_eq!(packed(&memory, &rows(A)), *data);
    assert_eq!(read(&memory, A + 100, 156), [0; 156], "what lies between rows stays");
    assert_eq!(packed(&memory, &elsewhere), *data);
    assert_eq!(result.completed[2].2.as_deref(), Some(&*data));
    // Six rows of one line each; the four of 150 bytes lie on two lines (B + 64, 1064, 2064) or on three (B + 3064).
    assert_eq!((result.requested_pages, result.stores, result.loads), (1, 6 + 9, 6 + 9));
}

#[test]
fn rows_are_filled_element_by_element() {
    let memory = memory();
    let (mut unit, mut bench) = engine(&memory, "");
    let operation = CopyOperation::Fill { destination: rows(A), value: 0x0102_0304, element_bytes: 4 };
    bench.deliver(SimTime(0), DATA, command(1, operation));
    let result = exchange(&mut unit, &mut bench, &memory);
    assert_eq!(packed(&memory, &rows(A)), [4, 3, 2, 1].repeat(150));
    assert_eq!(read(&memory, A + 100, 156), [0; 156]);
    assert_eq!((result.stores, result.completed.len()), (6, 1));
    let outside = Rows { slice_pitch: 1 << 20, ..rows(A) };
    let operation = CopyOperation::Fill { destination: outside, value: 0, element_bytes: 1 };
    let (mut unit, mut bench) = engine(&memory, "");
    bench.deliver(SimTime(0), DATA, command(2, operation));
    let result = exchange(&mut unit, &mut bench, &memory);
    assert_eq!(result.completed[0].3.as_deref(), Some("1049188 bytes at 0x700000000000 are not inside one allocation"));
}

#[test]
fn pinned_managed_and_peer_memory() {
    use balar_host::memory::{HOST_BASE, gpu_base};
    let memory = Arc::new(DeviceMemory::of_node(&[1 << 24, 1 << 24]).expect("the system maps without reserving"));
    let [pinned, managed, peer] = [HOST_BASE, MANAGED_BASE, gpu_base(1)];
    let mut log = WriteLog::default();
    for address in [A, pinned, managed, peer] {
        log.map(SimTime(0), address, 1 << 16, Bounds::Allocations);
    }
    let data = pattern(8192);
    for address in [pinned, peer] {
        log.write(SimTime(0), address, &data, 0..8192);
    }
    memory.apply(&mut log);
    // (destination, source): pages asked for, pages sent, loads and stores.
    let cases = [
        (A, pinned, (2, 0, 0, 64)),
        (pinned + 8192, A, (0, 2, 64, 0)),
        (managed, A, (0, 0, 64, 64)),
        (A + 8192, peer, (2, 0, 0, 64)),
        (peer + 8192, managed, (0, 2, 64, 0)),
        (pinned + 16384, pinned, (2, 0, 0, 0)),
    ];
    for (number, (destination, source, expected)) in cases.into_iter().enumerate() {
        let (mut unit, mut bench) = engine(&memory, "");
        bench.deliver(SimTime(0), DATA, command(1, within(destination, source, 8192)));
        let result = exchange(&mut unit, &mut bench, &memory);
        let seen = (result.requested_pages, result.pages.len(), result.loads, result.stores);
        assert_eq!((seen, &result.completed[0].3), (expected, &None), "case {number}");
        assert_eq!(read(&memory, destination, 8192), *data, "case {number}");
    }
    let (mut unit, mut bench) = engine(&memory, "");
    bench.deliver(SimTime(0), DATA, command(1, fill(pinned, 9, 5000)));
    let result = exchange(&mut unit, &mut bench, &memory);
    assert_eq!((result.pages, result.stores), (vec![(0, 4096, false), (4096, 904, true)], 0));
    assert_eq!(read(&memory, pinned, 5001), [vec![9; 5000], vec![data[5000]]].concat());
    assert_eq!(unit.state.engines[TO_HOST].counters.bytes_filled, 5000);
}

#[test]
fn kernels_accesses_to_host_memory_pass_by_the_transfers() {
    let memory = memory();
    let (mut unit, mut bench) = engine(&memory, "");
    let request = LineRange::new(balar_host::memory::HOST_BASE, 64).next_request(MemoryKind::Load, 5).expect("a line");
    bench.deliver(SimTime(1000), MEMORY, Payload::Memory(MemoryMessage::Request(request)));
    let accessed = CopyMessage::Accessed(request.response(0, ServedBy::HostMemory));
    assert_eq!((accessed.data_bytes(), CopyMessage::Access(request).data_bytes()), (64, 0));
    bench.deliver(SimTime(500_000), DATA, Payload::Copy(accessed));
    let sent = bench.run(&mut unit, WINDOW, SimTime(1_000_000));
    let [(first, DATA, Payload::Copy(CopyMessage::Access(asked))), (second, MEMORY, answer)] = &sent[..] else {
        panic!("{sent:?}")
    };
    assert_eq!((first.0, second.0, asked), (21_000, 520_000, &request));
    assert!(matches!(answer, Payload::Memory(MemoryMessage::Response(response)) if response.id == 5));
    assert_eq!(unit.outstanding(), None);
}

#[test]
fn a_saved_engine_goes_on_where_another_stopped() {
    let end = SimTime(200_000_000);
    let run = |stop: Option<SimTime>| {
        let memory = memory();
        let (mut unit, mut bench) = engine(&memory, "");
        bench.deliver(SimTime(0), DATA, command(1, to_device(A, &pattern(40_000))));
        bench.deliver(SimTime(1), DATA, command(2, CopyOperation::DeviceToHost { source: rows(A) }));
        bench.deliver(SimTime(2), DATA, command(3, within(B, A, 10_000)));
        let mut seen = Vec::new();
        let mut now = SimTime(0);
        while now < end {
            now += WINDOW;
            for (time, port, payload) in bench.run(&mut unit, WINDOW, now) {
                seen.push(format!("{time} {payload:?}"));
                let answer = match payload {
                    Payload::Memory(MemoryMessage::Request(request)) => {
                        Payload::Memory(MemoryMessage::Response(request.response(0, ServedBy::L2)))
                    }
                    Payload::Copy(CopyMessage::PageRequest { copy, offset, bytes }) => {
                        Payload::Copy(CopyMessage::Page { copy, offset, bytes, last: false })
                    }
                    _ => continue,
                };
                bench.deliver(time.max(now) + SimTime(200_000), port, answer);
            }
            memory.epoch_ends();
            if stop.is_some_and(|stop| now >= stop && now < stop + WINDOW) {
                let saved = unit.save().expect("plain values");
                let (mut fresh, _) = engine(&memory, "");
                fresh.restore(&saved, &()).expect("just saved");
                unit = fresh;
            }
        }
        assert_eq!(unit.outstanding(), None);
        seen
    };
    let whole = run(None);
    assert_eq!(whole.iter().filter(|line| line.contains("Completed")).count(), 3);
    for stop in [0, 900_000, 1_400_000, 3_000_000] {
        assert_eq!(run(Some(SimTime(stop))), whole, "saved at {stop} ps");
    }
}

#[test]
fn a_saved_engine_has_what_it_wrote_since_the_epoch_began() {
    let (first, second) = (memory(), memory());
    let (mut unit, mut bench) = engine(&first, "");
    bench.deliver(SimTime(0), DATA, command(1, fill(A, 7, 4096)));
    bench.run(&mut unit, WINDOW, WINDOW);
    let saved = unit.save().expect("plain values");
    let (mut fresh, _) = engine(&second, "");
    fresh.restore(&saved, &()).expect("just saved");
    assert_eq!(read(&second, A, 4096), [0; 4096]);
    second.epoch_ends();
    assert_eq!(read(&second, A, 4096), [7; 4096]);
}
