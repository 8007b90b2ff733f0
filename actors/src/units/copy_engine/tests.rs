//! Drives the copy engine; the test plays the host and the L2.

use super::*;
use crate::device_memory::WriteLog;
use crate::engine::unit::Bench;
use balar_protocol::memory::ServedBy;

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
    log.map(SimTime(0), A, 1 << 20);
    log.map(SimTime(0), B, 1 << 20);
    memory.apply(&mut log);
    Arc::new(memory)
}

fn engine(memory: &Arc<DeviceMemory>, extra: &str) -> (CopyEngine, Bench) {
    let text = format!(r#"(clock: "1 GHz", setup_time: "1 us", host_bandwidth: "16 GB/s"{extra})"#);
    let parameters = CopyEngineParameters::from_ron(&text).expect("parameters are complete");
    let ports = Ports { data: DATA, memory: Some(MEMORY) };
    (CopyEngine::new(&parameters, ports, memory.clone()), Bench::new(&[SimTime(20_000); 2]))
}

fn command(id: u32, operation: CopyOperation) -> Payload {
    Payload::Copy(CopyMessage::Command(Box::new((CopyId(id), operation))))
}

/// What an exchange came to.
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
        memory.apply(&mut bench.out.log);
        bench.out.log.clear();
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
                    result.completed.push((time.0, copy.0, data.map(|data| *data), error));
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
    let operation = CopyOperation::HostToDevice { destination: A, data: data.clone() };
    bench.deliver(SimTime(0), DATA, command(4, operation));
    let result = exchange(&mut unit, &mut bench, &memory);
    assert_eq!((result.requested_pages, result.stores, result.loads), (160, 5120, 0));
    assert_eq!(read(&memory, A, data.len()), *data);
    // 640 KiB at 16 GB/s are 40.96 us, after 1 us of setup; a page's own latency comes on top.
    let (time, id, ref bytes, ref error) = result.completed[0];
    assert_eq!((id, bytes, error), (4, &None, &None));
    assert!((41_960_000..43_500_000).contains(&time), "{time}");
    assert_eq!(unit.engines[TO_DEVICE].counters.bytes_host_to_device, 640 << 10);
}

#[test]
fn device_data_comes_back_in_pages() {
    let memory = memory();
    let data = pattern(10_000);
    let mut log = WriteLog::default();
    log.write(SimTime(0), A + 100, &data, 0..10_000);
    memory.apply(&mut log);
    let (mut unit, mut bench) = engine(&memory, "");
    bench.deliver(SimTime(0), DATA, command(9, CopyOperation::DeviceToHost { source: A + 100, bytes: 10_000 }));
    let result = exchange(&mut unit, &mut bench, &memory);
    assert_eq!(result.pages, [(0, 4096, false), (4096, 4096, false), (8192, 1808, true)]);
    assert_eq!(result.completed[0].2.as_deref(), Some(&*data));
    assert_eq!(result.loads, 33 + 33 + 15, "unaligned pages touch one line more");
}

#[test]
fn copies_and_fills_within_the_device() {
    let memory = memory();
    let (mut unit, mut bench) = engine(&memory, "");
    bench.deliver(SimTime(0), DATA, command(1, CopyOperation::Fill { destination: A, value: 0x5a, bytes: 8192 }));
    let copy = CopyOperation::DeviceToDevice { destination: B + 32, source: A, bytes: 8192 };
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
    bench.deliver(SimTime(0), DATA, command(1, CopyOperation::HostToDevice { destination: A, data }));
    bench.deliver(SimTime(1), DATA, command(2, CopyOperation::DeviceToHost { source: B, bytes: 1 << 18 }));
    let result = exchange(&mut unit, &mut bench, &memory);
    let times: Vec<_> = result.completed.iter().map(|(time, ..)| *time).collect();
    assert!(times.iter().all(|time| *time < 19_500_000), "one after the other they take 34 us: {times:?}");
}

#[test]
fn without_the_l2_only_values_move() {
    let memory = memory();
    let (mut unit, mut bench) = engine(&memory, ", through_l2: false");
    let data = pattern(5000);
    bench.deliver(SimTime(0), DATA, command(1, CopyOperation::HostToDevice { destination: A, data: data.clone() }));
    let copy = CopyOperation::DeviceToDevice { destination: B, source: A, bytes: 5000 };
    bench.deliver(SimTime(20_000_000), DATA, command(2, copy));
    bench.deliver(SimTime(40_000_000), DATA, command(3, CopyOperation::DeviceToHost { source: B, bytes: 5000 }));
    let result = exchange(&mut unit, &mut bench, &memory);
    assert_eq!((result.loads, result.stores), (0, 0));
    assert_eq!(result.completed[2].2.as_deref(), Some(&*data));
}

#[test]
fn a_range_outside_allocations_is_refused_and_the_next_transfer_goes_on() {
    let memory = memory();
    let (mut unit, mut bench) = engine(&memory, "");
    bench.deliver(SimTime(0), DATA, command(1, CopyOperation::Fill { destination: A + 8, value: 1, bytes: 1 << 20 }));
    bench.deliver(SimTime(0), DATA, command(2, CopyOperation::Fill { destination: A, value: 1, bytes: 0 }));
    let result = exchange(&mut unit, &mut bench, &memory);
    let (_, id, _, error) = &result.completed[0];
    assert_eq!(*id, 1);
    assert_eq!(error.as_deref(), Some("1048576 bytes at 0x700000000008 are not inside one allocation"));
    assert_eq!((result.completed[1].1, result.completed[1].0, &result.completed[1].3), (2, 1_020_000, &None));
}

#[test]
fn unanswered_lines_are_bounded() {
    let memory = memory();
    let (mut unit, mut bench) = engine(&memory, ", outstanding_lines: 40");
    bench.deliver(SimTime(0), DATA, command(1, CopyOperation::Fill { destination: A, value: 1, bytes: 1 << 16 }));
    let result = exchange(&mut unit, &mut bench, &memory);
    assert_eq!(result.stores, 512);
    assert_eq!(unit.engines[TO_DEVICE].counters.outstanding_lines_maximum, 40);
}
