//! Allocations, pointers, copies and fills.

use super::play::*;
use balar_host::call::{AllocationKind, CopyEnd, CopyShape, PointerDescription};
use balar_host::memory::{HOST_BASE, MANAGED_BASE, gpu_base};
use balar_host::{ArrayDescription, Bytes, Call, CallResult, ChannelFormat, ChannelKind, CudaError};
use balar_protocol::ProcessId;
use balar_protocol::copy::{CopyOperation, Rows};

fn malloc(bytes: u64) -> Step {
    call(Call::Malloc { bytes })
}

fn errors(play: &Play) -> Vec<CudaError> {
    let error = |result: &CallResult| match result {
        CallResult::Error(error) => Some(*error),
        _ => None,
    };
    play.results(0).iter().filter_map(error).collect()
}

#[test]
fn every_kind_of_memory_is_freed_once_by_its_own_call() {
    let free = |index: usize| -> Step { Box::new(move |results| Call::Free { pointer: pointer(results, index) }) };
    let free_host =
        |index: usize| -> Step { Box::new(move |results| Call::FreeHost { pointer: pointer(results, index) }) };
    let play = run(vec![
        malloc(100),
        call(Call::MallocHost { bytes: 5000 }),
        call(Call::MallocManaged { bytes: 100 }),
        free_host(0),
        free(1),
        free_host(2),
        free(0),
        free(0),
        free_host(1),
        free_host(1),
        free(2),
        free(2),
        call(Call::Free { pointer: 0 }),
        call(Call::FreeHost { pointer: 0 }),
        call(Call::Free { pointer: 17 }),
    ]);
    let results = play.results(0);
    assert_eq!([0, 1, 2].map(|index| pointer(&results, index)), [first(), HOST_BASE, MANAGED_BASE]);
    let invalid = CallResult::Error(CudaError::InvalidValue);
    let none = CallResult::None;
    let wrong = [&invalid, &invalid, &invalid];
    assert_eq!(results[3..6].iter().collect::<Vec<_>>(), wrong, "the wrong kind");
    let twice = [&none, &invalid, &none, &invalid, &none, &invalid, &none, &none, &invalid];
    assert_eq!(results[6..].iter().collect::<Vec<_>>(), twice);
    assert!(![first(), HOST_BASE, MANAGED_BASE].iter().any(|&address| play.is_mapped(address)));
}

#[test]
fn pinned_and_managed_allocations_have_pages_of_their_own() {
    let play = run(vec![
        call(Call::MallocHost { bytes: 1 }),
        call(Call::MallocHost { bytes: 5000 }),
        call(Call::MallocHost { bytes: 1 }),
        call(Call::MallocManaged { bytes: 1 }),
        call(Call::MallocManaged { bytes: 1 }),
        call(Call::MallocHost { bytes: 0 }),
        call(Call::MallocManaged { bytes: 0 }),
        call(Call::PointerInfo { pointer: HOST_BASE + 4096 + 4999 }),
        call(Call::PointerInfo { pointer: HOST_BASE + 4096 + 5000 }),
        call(Call::PointerInfo { pointer: MANAGED_BASE + 4096 }),
        call(Call::PointerInfo { pointer: 0x1234 }),
    ]);
    let results = play.results(0);
    let pointers: Vec<u64> = (0..6).map(|index| pointer(&results, index)).collect();
    let expected = [HOST_BASE, HOST_BASE + 4096, HOST_BASE + 3 * 4096, MANAGED_BASE, MANAGED_BASE + 4096, 0];
    assert_eq!(pointers, expected);
    let info = |kind, base, bytes| CallResult::PointerInfo(Some(PointerDescription { kind, device: 0, base, bytes }));
    assert_eq!(
        results[6..],
        [
            CallResult::Error(CudaError::InvalidValue),
            info(AllocationKind::Host, HOST_BASE + 4096, 5000),
            CallResult::PointerInfo(None),
            info(AllocationKind::Managed, MANAGED_BASE + 4096, 1),
            CallResult::PointerInfo(None),
        ]
    );
}

#[test]
fn memory_that_a_stream_frees_ends_when_the_stream_gets_there() {
    let free_async =
        |stream| -> Step { Box::new(move |results| Call::FreeAsync { pointer: pointer(results, 1), stream }) };
    let steps = vec![
        new_stream(),
        call(Call::MallocAsync { bytes: 40 << 20, stream: 1 }),
        call(launch(1)),
        free_async(1),
        free_async(1),
        Box::new(|results: &[CallResult]| Call::Free { pointer: pointer(results, 1) }),
        // 64 MiB have no room for it before the first is freed: it waits.
        call(Call::MallocAsync { bytes: 40 << 20, stream: 1 }),
        call(Call::ReadClock),
        call(Call::MallocAsync { bytes: 40 << 20, stream: 1 }),
        call(Call::FreeAsync { pointer: 0, stream: 1 }),
        call(Call::FreeAsync { pointer: HOST_BASE, stream: 1 }),
        call(Call::MallocAsync { bytes: 1, stream: 5 }),
        call(Call::MallocAsync { bytes: 0, stream: 1 }),
    ];
    let mut play = Play::new(Program::of(steps), 1);
    play.until(4);
    assert!(play.is_mapped(first()), "the kernel uses it");
    play.finish();
    let results = play.results(0);
    let error = CallResult::Error;
    assert_eq!(
        results[4..9],
        [
            error(CudaError::InvalidValue),
            error(CudaError::InvalidValue),
            CallResult::Pointer(first()),
            CallResult::Time { picoseconds: (play.trace[0].0 + KERNEL) * US },
            error(CudaError::MemoryAllocation),
        ]
    );
    assert_eq!(
        results[9..],
        [
            CallResult::None,
            error(CudaError::InvalidValue),
            error(CudaError::InvalidResourceHandle),
            CallResult::Pointer(0),
        ]
    );
}

#[test]
fn memory_is_counted_for_each_gpu() {
    let steps =
        vec![malloc(3 << 20), call(Call::MemoryInfo), malloc(62 << 20), malloc(60 << 20), call(Call::MemoryInfo)];
    let mut play = Play::new(Program::default().thread(0, steps).thread(1, vec![call(Call::MemoryInfo)]), 2);
    play.finish();
    let info = |free: u64| CallResult::MemoryInfo { free: free << 20, total: 64 << 20 };
    assert_eq!(
        play.results(0)[1..],
        [info(60), CallResult::Error(CudaError::MemoryAllocation), CallResult::Pointer(first() + (4 << 20)), info(0)]
    );
    assert_eq!(play.results(1), [info(64)]);
}

#[test]
fn copies_go_to_the_engine_of_the_memory_they_write() {
    let copy = |destination, source, bytes| call(Call::copy_within(destination, source, bytes, 0, false));
    let (one, two) = (gpu_base(0), gpu_base(1));
    let program = Program::default().thread(1, vec![malloc(4096)]).thread(
        0,
        vec![
            malloc(4096),
            call(Call::MallocHost { bytes: 4096 }),
            call(Call::MallocManaged { bytes: 4096 }),
            copy(two, one, 4096),
            copy(one, two, 4096),
            copy(one, HOST_BASE, 100),
            copy(HOST_BASE, two, 100),
            copy(HOST_BASE, MANAGED_BASE, 7),
            copy(one + 1, HOST_BASE, 4096),
            copy(one, HOST_BASE + 4000, 97),
            copy(one, 0x1000, 8),
            call(Call::copy_to_device(HOST_BASE, vec![1; 9].into(), 0, false)),
        ],
    );
    let mut play = Play::new(program, 2);
    play.finish();
    let engines: Vec<_> = play.operations.iter().map(|(gpu, operation)| (*gpu, operation.bytes())).collect();
    assert_eq!(engines, [(1, 4096), (0, 4096), (0, 100), (1, 100), (0, 7), (0, 9)]);
    let results = play.results(1);
    assert_eq!(results[8..11], [const { CallResult::Error(CudaError::InvalidValue) }; 3]);
    let totals = play.driver.totals();
    assert_eq!((totals.bytes_peer, totals.bytes_host_to_device), (8192, 109));
}

#[test]
fn copies_and_fills_have_shapes() {
    let shape = CopyShape { width: 10, height: 3, depth: 2 };
    let memory = |address, row_pitch, slice_pitch| CopyEnd::Memory { address, row_pitch, slice_pitch };
    let copy = |destination, source| {
        let asynchronous = !matches!(destination, CopyEnd::Bytes(_));
        call(Call::Copy { destination, source, shape, transfer: 0, stream: 0, asynchronous })
    };
    let fill = |pointer, value, element_bytes| {
        let pitch = [16, 64];
        call(Call::Memset { pointer, shape, pitch, value, element_bytes, stream: 0, asynchronous: true })
    };
    let base = first();
    let play = run(vec![
        malloc(1000),
        copy(memory(base, 16, 64), CopyEnd::Bytes(vec![1; 60].into())),
        copy(CopyEnd::Bytes(Bytes::absent(60)), memory(base, 16, 64)),
        fill(base, 0x1234, 2),
        copy(memory(base, 9, 64), CopyEnd::Bytes(vec![1; 60].into())),
        copy(memory(base, 16, 64), CopyEnd::Bytes(vec![1; 59].into())),
        copy(memory(base + 950, 16, 64), CopyEnd::Bytes(vec![1; 60].into())),
        copy(CopyEnd::Bytes(Bytes::absent(60)), CopyEnd::Bytes(vec![1; 60].into())),
        fill(base + 1, 1, 2),
        fill(base, 1, 4),
        fill(base, 1, 3),
    ]);
    let rows = Rows { address: base, width: 10, height: 3, depth: 2, row_pitch: 16, slice_pitch: 64 };
    assert_eq!(play.operations.len(), 3);
    assert!(play.operations.iter().all(|(_, operation)| operation.destination().or(operation.source()) == Some(&rows)));
    assert!(matches!(play.operations[2].1, CopyOperation::Fill { value: 0x1234, element_bytes: 2, .. }));
    assert_eq!(play.results(0)[2], CallResult::Data(vec![7; 60].into()), "bytes for pageable memory are waited for");
    use CudaError::{InvalidMemcpyDirection, InvalidPitchValue, InvalidValue};
    assert_eq!(
        errors(&play),
        [
            InvalidPitchValue,
            InvalidValue,
            InvalidValue,
            InvalidMemcpyDirection,
            InvalidValue,
            InvalidValue,
            InvalidValue
        ]
    );
}

#[test]
fn parts_of_arrays_are_copied() {
    let format = ChannelFormat { channels: 1, bits: 32, kind: ChannelKind::Float };
    let description = ArrayDescription { format, extent: [8, 4, 0], layers: 2 };
    let part = |offset: [u64; 3], width: u64| -> Step {
        Box::new(move |results| {
            let CallResult::Object(array) = results[0] else { panic!("an array") };
            let shape = CopyShape { width, height: 2, depth: 1 };
            let source = CopyEnd::Bytes(vec![3; 2 * width as usize].into());
            Call::Copy {
                destination: CopyEnd::Array { array, offset },
                source,
                shape,
                transfer: 0,
                stream: 0,
                asynchronous: true,
            }
        })
    };
    let play = run(vec![
        call(Call::ArrayCreate { description }),
        part([8, 1, 1], 12),
        part([8, 3, 1], 12),
        part([24, 1, 1], 12),
        part([0, 0, 2], 12),
        Box::new(|results: &[CallResult]| {
            let CallResult::Object(array) = results[0] else { panic!("an array") };
            Call::ArrayDestroy { array }
        }),
        part([8, 1, 1], 12),
    ]);
    // A row has 32 bytes, a layer 128.
    let rows =
        Rows { address: first() + 128 + 32 + 8, width: 12, height: 2, depth: 1, row_pitch: 32, slice_pitch: 128 };
    assert_eq!(play.operations.iter().map(|(_, operation)| operation.destination()).collect::<Vec<_>>(), [Some(&rows)]);
    use CudaError::{InvalidResourceHandle, InvalidValue};
    assert_eq!(errors(&play), [InvalidValue, InvalidValue, InvalidValue, InvalidResourceHandle]);
    assert!(!play.is_mapped(first()));
}

#[test]
fn only_managed_memory_is_prefetched() {
    let prefetch = |pointer, bytes, device| call(Call::Prefetch { pointer, bytes, device, stream: 0 });
    let play = run(vec![
        malloc(100),
        call(Call::MallocManaged { bytes: 100 }),
        prefetch(MANAGED_BASE, 100, Some(0)),
        prefetch(MANAGED_BASE, 100, None),
        prefetch(MANAGED_BASE, 101, None),
        prefetch(first(), 100, None),
        prefetch(MANAGED_BASE, 100, Some(1)),
    ]);
    let error = CallResult::Error;
    assert_eq!(
        play.results(0)[2..],
        [
            CallResult::None,
            CallResult::None,
            error(CudaError::InvalidValue),
            error(CudaError::InvalidValue),
            error(CudaError::InvalidDevice)
        ]
    );
}

#[test]
fn kernels_launched_before_keep_a_destroyed_object() {
    let format = ChannelFormat { channels: 1, bits: 32, kind: ChannelKind::Float };
    let object = |results: &[CallResult], index: usize| match results[index] {
        CallResult::Object(object) => object,
        ref other => panic!("no object: {other:?}"),
    };
    let steps: Vec<Step> = vec![
        call(Call::ArrayCreate { description: ArrayDescription { format, extent: [8, 8, 0], layers: 0 } }),
        Box::new(move |results| Call::SurfaceCreate { array: object(results, 0) }),
        call(launch(0)),
        Box::new(move |results| Call::ImageDestroy { object: object(results, 1) }),
        Box::new(move |results| Call::ImageDestroy { object: object(results, 1) }),
        call(Call::DeviceSynchronize),
    ];
    let mut play = Play::new(Program::of(steps), 1);
    play.until(4);
    // Destroyed, and refused a second time, while the kernel runs.
    let handle = object(&play.results(0), 1);
    assert_eq!((play.launches.len(), play.results(0).len()), (1, 5));
    assert!(play.has_image(ProcessId::FIRST, handle));
    play.finish();
    let results = play.results(0);
    assert_eq!(results[3..], [CallResult::None, CallResult::Error(CudaError::InvalidValue), CallResult::None]);
    assert!(!play.has_image(ProcessId::FIRST, handle));
}
