//! The arena and its logs.

use super::*;
use balar_isa::execution::{AtomicFunction, AtomicOperation, AtomicType, LaneValues, MemoryAccess};
use balar_protocol::SimTime;

const A: u64 = DeviceMemory::BASE;

fn memory() -> Arc<DeviceMemory> {
    let memory = DeviceMemory::new(1 << 20).expect("1 MiB can be mapped");
    let mut log = WriteLog::default();
    log.map(SimTime(0), A, 4096, Bounds::Allocations);
    memory.apply(&mut log);
    Arc::new(memory)
}

fn word(memory: &DeviceMemory, address: u64) -> u32 {
    let mut bytes = [0; 4];
    assert!(memory.read(address, &mut bytes));
    u32::from_le_bytes(bytes)
}

fn access(mask: u32, address: impl Fn(usize) -> u64) -> MemoryAccess {
    MemoryAccess { mask, addresses: std::array::from_fn(address), ..MemoryAccess::default() }
}

fn values(value: impl Fn(usize) -> u64) -> LaneValues {
    LaneValues { low: std::array::from_fn(value), ..LaneValues::default() }
}

#[test]
fn stores_become_visible_at_the_end_of_the_epoch_in_order_of_time() {
    let memory = Arc::new(memory());
    let (mut late, mut early) = (memory.writer(1), memory.writer(2));
    early.store(SimTime(10), &access(1, |_| A), &values(|_| 1));
    late.store(SimTime(11), &access(1, |_| A), &values(|_| 2));
    early.close();
    late.close();
    assert_eq!(word(&memory, A), 0);
    // The unit with the later store has the lower number: time decides.
    memory.epoch_ends();
    assert_eq!(word(&memory, A), 2);
}

#[test]
fn equal_times_are_ordered_by_unit() {
    for swap in [false, true] {
        let memory = Arc::new(memory());
        let mut writers = [memory.writer(1), memory.writer(2)];
        for (writer, value) in writers.iter_mut().zip([1, 2]) {
            writer.store(SimTime(10), &access(1, |_| A), &values(|_| value));
        }
        if swap {
            writers.reverse();
        }
        writers.iter_mut().for_each(Writer::close);
        memory.epoch_ends();
        assert_eq!(word(&memory, A), 2);
    }
}

#[test]
fn own_stores_are_seen_before_the_epoch_ends() {
    let memory = memory();
    let mut log = WriteLog::default();
    log.store(SimTime(1), &access(u32::MAX, |lane| A + 4 * lane as u64), &values(|lane| lane as u64 + 100));
    let load = MemoryAccess { bytes: 8, ..access(0b11, |lane| A + 4 + 8 * lane as u64) };
    assert!(log.may_touch(&load));
    let mut loaded = LaneValues::default();
    read_lanes(&memory.view(), (A, A + 4096), &load, AccessPattern::of(&load), &mut loaded);
    assert_eq!(log.overlay(&load, &mut loaded), Ok(()));
    assert_eq!(loaded.low[0], 101 | 102 << 32);
    assert_eq!(loaded.low[1], 103 | 104 << 32);
    assert!(!log.may_touch(&access(1, |_| A + 2048)));
}

#[test]
fn atomics_return_old_values_and_block_own_loads() {
    let memory = memory();
    let mut log = WriteLog::default();
    let all = access(u32::MAX, |_| A);
    let add = AtomicFunction { operation: AtomicOperation::Add, data_type: AtomicType::U32 };
    log.atomic(SimTime(1), &all, add, &values(|_| 1), &LaneValues::default(), 7);
    assert_eq!(log.overlay(&access(1, |_| A), &mut LaneValues::default()), Err(7));
    assert_eq!(log.overlay(&access(1, |_| A + 4), &mut LaneValues::default()), Ok(()));
    memory.apply(&mut log);
    let result = log.atomic_results().next().expect("one atomic was logged");
    assert_eq!((result.token, result.mask), (7, u32::MAX));
    assert_eq!(result.values().low, std::array::from_fn(|lane| lane as u64));
    assert_eq!(word(&memory, A), 32);
}

#[test]
fn atomics_of_sixteen_bytes() {
    let memory = memory();
    let mut log = WriteLog::default();
    let wide = MemoryAccess { bytes: 16, ..access(0b11, |_| A) };
    let swap = AtomicFunction { operation: AtomicOperation::CompareAndSwap, data_type: AtomicType::B128 };
    let mut replacements = LaneValues::default();
    replacements.set(0, 7 << 64 | 5);
    replacements.set(1, 9);
    // The second lane compares with the value that the first has stored.
    let mut comparands = LaneValues::default();
    comparands.set(1, 7 << 64 | 5);
    log.atomic(SimTime(1), &wide, swap, &comparands, &replacements, 0);
    assert_eq!(log.overlay(&access(1, |_| A + 12), &mut LaneValues::default()), Err(0));
    memory.apply(&mut log);
    let result = log.atomic_results().next().expect("one atomic was logged");
    assert_eq!([result.values().get(0), result.values().get(1)], [0, 7 << 64 | 5]);
    assert_eq!([word(&memory, A), word(&memory, A + 8)], [9, 0]);
}

#[test]
fn allocations_bound_what_is_legal() {
    let memory = memory();
    let view = memory.view();
    assert_eq!(view.allocation_of(A + 4095), Some((A, A + 4096)));
    assert_eq!(view.allocation_of(A + 4096), None);
    assert_eq!(view.allocation_of(A - 1), None);
    drop(view);
    assert!(!memory.read(A + 4090, &mut [0; 8]));
    let mut log = WriteLog::default();
    log.unmap(SimTime(0), A);
    memory.apply(&mut log);
    assert!(!memory.read(A, &mut [0; 1]));
}

#[test]
fn bulk_writes_fills_and_copies() {
    let memory = memory();
    let mut log = WriteLog::default();
    let data: Arc<[u8]> = (0..64u8).collect();
    log.write(SimTime(1), A, &data, 4..8);
    log.fill(SimTime(2), A + 4, 4, 0x0807_0609, 1);
    log.copy(SimTime(3), A + 8, A, 8);
    memory.apply(&mut log);
    assert_eq!(word(&memory, A), u32::from_le_bytes([4, 5, 6, 7]));
    assert_eq!(word(&memory, A + 8), word(&memory, A));
    assert_eq!(word(&memory, A + 12), 0x0909_0909);
}

#[test]
fn units_print_and_allocate_in_the_order_of_time_and_unit() {
    let memory = memory();
    let mut log = WriteLog::default();
    log.set_heap(SimTime(0), ContextId::first(0), A + 8192, 256);
    memory.apply(&mut log);
    let memory = Arc::new(memory);
    let (mut first, mut second) = (memory.writer(1), memory.writer(2));
    let sizes = [16; 32];
    second.print(SimTime(5), ContextId::first(0), b"early\n");
    second.allocate(SimTime(10), ContextId::first(0), 0b11, &sizes, 0);
    second.print(SimTime(10), ContextId::first(0), b"second\n");
    first.print(SimTime(10), ContextId::first(0), b"first\n");
    first.allocate(SimTime(10), ContextId::first(0), 0b100, &sizes, 4);
    second.close();
    first.close();
    memory.epoch_ends();
    let addresses = |writer: &mut Writer| {
        let mut allocated = None;
        writer.open(|log| {
            let result = log.atomic_results().next().expect("one allocation was logged");
            let values = result.values();
            allocated = Some((result.kind, [0, 1, 2].map(|lane| values.low[lane])));
        });
        allocated
    };
    // Unit 1 comes first among equal times.
    assert_eq!(addresses(&mut first), Some((LoggedKind::Allocation, [0, 0, A + 8192])));
    assert_eq!(addresses(&mut second), Some((LoggedKind::Allocation, [A + 8208, A + 8224, 0])));
    assert_eq!(memory.take_printed(ContextId::first(0)).text, b"early\nfirst\nsecond\n");
    assert_eq!(memory.take_printed(ContextId::first(0)).text, b"");
    assert_eq!(memory.view().allocation_of(A + 8192), Some((A + 8192, A + 8448)));

    let mut log = WriteLog::default();
    let mut frees = [0; 32];
    (frees[4], frees[9]) = (A + 8192, A + 8200);
    log.release(SimTime(20), ContextId::first(0), 1 << 4 | 1 << 9, &frees, 1);
    memory.apply(&mut log);
    let result = log.atomic_results().next().expect("the frees were logged");
    assert_eq!((result.kind, result.first_zero()), (LoggedKind::Release, Some((9, A + 8200))));
}

#[test]
fn elements_of_several_bytes_are_filled() {
    let memory = memory();
    let mut log = WriteLog::default();
    log.fill(SimTime(1), A, 8, 0xaaaa_1234, 2);
    log.fill(SimTime(2), A + 8, 8, 0xdead_beef, 4);
    memory.apply(&mut log);
    assert_eq!(
        [0, 4, 8, 12, 16].map(|at| word(&memory, A + at)),
        [0x1234_1234, 0x1234_1234, 0xdead_beef, 0xdead_beef, 0]
    );
}

#[test]
fn each_gpu_has_a_heap_and_prints_of_its_own() {
    let memory = DeviceMemory::of_node(&[1 << 20, 1 << 20]).expect("the system maps without reserving");
    let second = balar_host::memory::gpu_base(1);
    let mut log = WriteLog::default();
    log.set_heap(SimTime(0), ContextId::first(1), second, 256);
    log.allocate(SimTime(1), ContextId::first(0), 1, &[16; 32], 0);
    log.allocate(SimTime(1), ContextId::first(1), 1, &[16; 32], 1);
    log.print(SimTime(2), ContextId::first(0), b"zero");
    log.set_print_capacity(SimTime(2), ContextId::first(1), 4);
    log.print(SimTime(2), ContextId::first(1), b"more than four");
    log.print(SimTime(2), ContextId::first(1), b"one");
    memory.apply(&mut log);
    let addresses: Vec<u64> = log.atomic_results().map(|result| result.values().low[0]).collect();
    assert_eq!(addresses, [0, second]);
    let printed = |gpu| memory.take_printed(ContextId::first(gpu));
    let capacity = DeviceMemory::DEFAULT_PRINT_BYTES;
    assert_eq!(printed(0), Printed { text: b"zero".to_vec(), lost: 0, capacity });
    assert_eq!(printed(1), Printed { text: b"one".to_vec(), lost: 1, capacity: 4 });
}

#[test]
fn gpus_and_host_window_are_one_memory() {
    let memory = DeviceMemory::of_node(&[1 << 20, 1 << 20]).expect("the system maps without reserving");
    let [second, window] = [balar_host::memory::gpu_base(1), balar_host::memory::HOST_BASE];
    let mut log = WriteLog::default();
    for start in [A, second, window] {
        log.map(SimTime(0), start, 64, Bounds::Allocations);
    }
    log.fill(SimTime(1), window, 8, 7, 4);
    log.copy(SimTime(2), second + 16, window, 8);
    log.copy(SimTime(3), A, second + 12, 8);
    memory.apply(&mut log);
    assert_eq!([A, A + 4, second + 16].map(|address| word(&memory, address)), [0, 7, 7]);
    assert_eq!(
        [A, second, window].map(|at| memory.view().legal_range(ContextId::first(0), at, 4).is_some()),
        [true, false, true]
    );
    log = WriteLog::default();
    log.set_peer(SimTime(4), ContextId::first(0), 1, true);
    log.open_to(SimTime(4), A, 0b10);
    memory.apply(&mut log);
    assert!(
        memory.view().legal_range(ContextId::first(0), second, 4).is_some()
            && memory.view().legal_range(ContextId::first(1), A, 4).is_some()
    );
}

#[test]
fn lanes_read_every_width_from_several_allocations() {
    let memory = memory();
    let mut log = WriteLog::default();
    log.map(SimTime(0), A + 8192, 32, Bounds::Allocations);
    let data: Arc<[u8]> = (0..48u8).collect();
    log.write(SimTime(0), A + 4080, &data, 0..16);
    log.write(SimTime(0), A + 8192, &data, 16..48);
    memory.apply(&mut log);
    for bytes in [1, 2, 4, 8, 16u8] {
        // Lane 0 reads the end of the first allocation, lanes 1 and 2 the second one.
        let wide = u64::from(bytes);
        let load =
            MemoryAccess { bytes, ..access(0b111, |lane| [A + 4096 - wide, A + 8192, A + 8192 + wide][lane.min(2)]) };
        let mut loaded = LaneValues::default();
        read_lanes(&memory.view(), (A, A + 4096), &load, AccessPattern::of(&load), &mut loaded);
        for (lane, first) in [16 - bytes, 16, 16 + bytes].into_iter().enumerate() {
            let expected = (0..bytes).rev().fold(0u128, |value, byte| value << 8 | u128::from(first + byte));
            assert_eq!(loaded.get(lane), expected, "lane {lane}, {bytes} bytes");
        }
    }
    let none = access(0, |_| 0);
    read_lanes(&memory.view(), (0, 0), &none, AccessPattern::of(&none), &mut LaneValues::default());
}

#[test]
fn a_warp_reads_the_host_window_as_device_memory() {
    let memory = DeviceMemory::of_node(&[1 << 20]).expect("the system maps without reserving");
    let window = balar_host::memory::HOST_BASE;
    let mut log = WriteLog::default();
    let data: Arc<[u8]> = (0..=255u8).chain(0..=255).collect();
    for start in [A, window] {
        log.map(SimTime(0), start, 512, Bounds::Allocations);
        log.write(SimTime(1), start, &data, 0..512);
    }
    memory.apply(&mut log);
    let view = memory.view();
    for bytes in [1, 2, 4, 8, 16u8] {
        for (mask, stride) in [(u32::MAX, 1), (u32::MAX, 0), (0x8421_0f0f, 1)] {
            let loaded = [A, window].map(|start| {
                let address = |lane: usize| start + u64::from(bytes) * lane as u64 * stride;
                let load = MemoryAccess { bytes, ..access(mask, address) };
                let mut loaded = LaneValues::default();
                read_lanes(&view, (start, start + 512), &load, AccessPattern::of(&load), &mut loaded);
                (loaded.low, loaded.high)
            });
            assert_eq!(loaded[0], loaded[1], "{bytes} bytes, lanes {mask:#x}");
            assert_eq!(loaded[0].0[1] & 0xff, if mask & 2 == 0 { 0 } else { u64::from(bytes) * stride });
        }
    }
    drop(view);
    let mut log = WriteLog::default();
    let add = AtomicFunction { operation: AtomicOperation::Add, data_type: AtomicType::U32 };
    log.atomic(SimTime(2), &access(0b11, |_| window), add, &values(|_| 1), &LaneValues::default(), 0);
    memory.apply(&mut log);
    let before = u32::from_le_bytes([0, 1, 2, 3]);
    let result = log.atomic_results().next().expect("one atomic was logged");
    assert_eq!(result.values().low[..2], [u64::from(before), u64::from(before) + 1]);
    assert_eq!(word(&memory, window), before + 2);
}
