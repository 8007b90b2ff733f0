//! Logs against the plain meaning of their entries, and logs that are saved.

use super::*;
use crate::memory::{AccessPattern, Bounds, DeviceMemory, read_lanes};
use balar_isa::execution::{AtomicFunction, AtomicOperation, AtomicType, LaneValues, MemoryAccess};
use balar_isa::program::lanes;
use balar_protocol::{ContextId, ProcessId};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

const BYTES: u64 = 4096;
const ADD: AtomicFunction = AtomicFunction { operation: AtomicOperation::Add, data_type: AtomicType::U32 };

fn memory() -> DeviceMemory {
    let memory = DeviceMemory::new(1 << 16).expect("64 KiB can be mapped");
    let mut log = WriteLog::default();
    log.map(SimTime(0), DeviceMemory::BASE, BYTES, Bounds::Allocations);
    memory.apply(&mut log);
    memory
}

/// An access as kernels make them: consecutive, uniform, strided or scattered, by all lanes or some.
fn random_access(random: &mut Pcg32) -> MemoryAccess {
    let bytes = 1 << (random.next_u32() % 5);
    let places = BYTES / u64::from(bytes);
    let first = u64::from(random.next_u32()) % places;
    let stride = [0, 1, 1, 2, 3, places - 1][random.next_u32() as usize % 6];
    let scattered = random.next_u32().is_multiple_of(4);
    let mask = match random.next_u32() % 3 {
        0 => random.next_u32(),
        _ => u32::MAX,
    };
    let addresses = std::array::from_fn(|lane| {
        let place = if scattered { u64::from(random.next_u32()) } else { first + stride * lane as u64 };
        DeviceMemory::BASE + place % places * u64::from(bytes)
    });
    MemoryAccess { bytes, mask, addresses, ..MemoryAccess::default() }
}

fn random_values(random: &mut Pcg32) -> LaneValues {
    let mut values = LaneValues::default();
    for half in [&mut values.low, &mut values.high] {
        half.iter_mut().for_each(|value| *value = random.next_u64());
    }
    values
}

/// The plain meaning of a store: byte by byte, lane by lane.
fn store_plainly(memory: &mut [u8], access: &MemoryAccess, values: &LaneValues) {
    for lane in lanes(access.mask) {
        for (byte, value) in values.get(lane).to_le_bytes()[..usize::from(access.bytes)].iter().enumerate() {
            memory[(access.addresses[lane] - DeviceMemory::BASE) as usize + byte] = *value;
        }
    }
}

#[test]
fn loads_see_own_stores_and_memory_gets_them_as_lane_by_lane() {
    let mut random = Pcg32::seed_from_u64(7);
    let rounds = if cfg!(miri) { 3 } else { 300 };
    for _ in 0..rounds {
        let memory = memory();
        let mut plain = vec![0; BYTES as usize];
        let mut log = WriteLog::default();
        for time in 0..u64::from(random.next_u32() % 6) {
            let (access, values) = (random_access(&mut random), random_values(&mut random));
            log.store(SimTime(time), &access, &values);
            store_plainly(&mut plain, &access, &values);
        }
        for _ in 0..8 {
            let load = random_access(&mut random);
            let mut values = LaneValues::default();
            let around = (DeviceMemory::BASE, DeviceMemory::BASE + BYTES);
            read_lanes(&memory.view(), around, &load, AccessPattern::of(&load), &mut values);
            let before = values.clone();
            assert_eq!(log.overlay(&load, &mut values), Ok(()));
            if !log.may_touch(&load) {
                assert_eq!((values.low, values.high), (before.low, before.high));
            }
            for lane in lanes(load.mask) {
                let at = (load.addresses[lane] - DeviceMemory::BASE) as usize;
                let expected = &plain[at..at + usize::from(load.bytes)];
                assert_eq!(&values.get(lane).to_le_bytes()[..expected.len()], expected, "{load:?}");
            }
        }
        memory.apply(&mut log);
        let mut bytes = vec![0; BYTES as usize];
        assert!(memory.read(DeviceMemory::BASE, &mut bytes));
        assert!(bytes == plain);
    }
}

#[test]
fn the_latest_atomic_that_a_load_waits_for_is_named() {
    let mut log = WriteLog::default();
    let access = |mask: u32, offset: u64| MemoryAccess {
        mask,
        addresses: std::array::from_fn(|lane| DeviceMemory::BASE + offset + 4 * lane as u64),
        ..MemoryAccess::default()
    };
    let (ones, none) = (LaneValues { low: [1; 32], high: [0; 32] }, LaneValues::default());
    for (token, offset) in [(3, 0), (5, 4), (7, 512)] {
        log.atomic(SimTime(u64::from(token)), &access(u32::MAX, offset), ADD, &ones, &none, token);
    }
    log.allocate(SimTime(9), ContextId::first(0), u32::MAX, &[16; 32], 9);
    log.store(SimTime(10), &access(u32::MAX, 0), &ones);
    let waits_for = |mask, offset| log.overlay(&access(mask, offset), &mut LaneValues::default());
    // A later store does not make the value known: the SM has to take the old one first.
    assert_eq!(waits_for(1, 0), Err(3));
    assert_eq!(waits_for(0b11, 0), Err(5));
    assert_eq!(waits_for(u32::MAX, 512), Err(7));
    assert_eq!(waits_for(u32::MAX, 256), Ok(()));
    assert_eq!(waits_for(0, 0), Ok(()));
}

#[test]
fn a_saved_log_has_the_same_effect() {
    let mut log = WriteLog::default();
    let mut random = Pcg32::seed_from_u64(11);
    let (start, none) = (DeviceMemory::BASE, LaneValues::default());
    log.set_heap(SimTime(0), ContextId::first(0), start + 8192, 256);
    log.set_print_capacity(SimTime(0), ContextId::first(0), 100);
    log.set_image(SimTime(0), ProcessId::FIRST, 5, None);
    log.set_peer(SimTime(0), ContextId::first(0), 1, true);
    log.open_to(SimTime(0), start, 2);
    log.map_reserved(SimTime(0), start + 16384, 16, ContextId::first(0), 1);
    log.unmap(SimTime(0), start + 16384);
    log.write(SimTime(1), start, &(0..100).collect(), 10..90);
    log.fill(SimTime(2), start + 200, 32, 0x0102, 2);
    log.copy(SimTime(3), start + 300, start, 80);
    for time in 4..9 {
        log.store(SimTime(time), &random_access(&mut random), &random_values(&mut random));
    }
    let access = MemoryAccess { mask: 0xf0, addresses: [start + 40; 32], ..MemoryAccess::default() };
    log.atomic(SimTime(9), &access, ADD, &random_values(&mut random), &none, 1);
    log.allocate(SimTime(10), ContextId::first(0), 3, &[32; 32], 2);
    log.release(SimTime(11), ContextId::first(0), 1, &[start + 8192; 32], 3);
    log.print(SimTime(12), ContextId::first(0), b"text");

    let saved = postcard::to_stdvec(&log).expect("a log can be written");
    let mut restored: WriteLog = postcard::from_bytes(&saved).expect("what was written can be read");
    assert_eq!(postcard::to_stdvec(&restored).expect("a log can be written"), saved);
    let effect = |log: &mut WriteLog| {
        let memory = memory();
        memory.apply(log);
        let mut bytes = vec![0; BYTES as usize];
        assert!(memory.read(start, &mut bytes));
        let results: Vec<_> =
            log.atomic_results().map(|result| (result.token, result.mask, result.values().low)).collect();
        assert_eq!(results.len(), 3);
        (
            bytes,
            results,
            memory.take_printed(ContextId::first(0)),
            memory.view().legal_range(ContextId::first(1), start, 4),
        )
    };
    let (expected, found) = (effect(&mut log), effect(&mut restored));
    assert!(expected.0[..10] != [0; 10] && expected.2.text == b"text" && expected.3.is_some());
    assert!(expected == found);
}

#[test]
fn entries_take_effect_in_the_order_of_their_times() {
    let memory = memory();
    let mut log = WriteLog::default();
    log.fill(SimTime(5), DeviceMemory::BASE, 1, 5, 1);
    log.fill(SimTime(3), DeviceMemory::BASE, 2, 3, 1);
    memory.apply(&mut log);
    let mut bytes = [0; 2];
    assert!(memory.read(DeviceMemory::BASE, &mut bytes));
    assert_eq!(bytes, [5, 3]);
}
