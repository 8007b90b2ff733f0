//! Reserved addresses, memory without an address, mappings.

use super::play::*;
use balar_host::call::{AllocationKind, GRANULARITY, MemoryAccess, PointerDescription, VirtualMemoryCall};
use balar_host::memory::gpu_base;
use balar_host::{Call, CallResult, CudaError};
use balar_protocol::copy::CopyOperation;

/// The GPUs have 64 MiB: addresses behind them are reserved.
const FIRST: u64 = 64 << 20;
const INVALID: CallResult = CallResult::Error(CudaError::InvalidValue);
const NO_MEMORY: CallResult = CallResult::Error(CudaError::MemoryAllocation);

fn virtual_call(of: VirtualMemoryCall) -> Step {
    call(Call::VirtualMemory(of))
}

fn reserve(segments: u64) -> Step {
    virtual_call(VirtualMemoryCall::Reserve { bytes: segments * GRANULARITY, alignment: 0 })
}

fn create(segments: u64) -> Step {
    virtual_call(VirtualMemoryCall::Create { bytes: segments * GRANULARITY })
}

/// Segments of the first reserved range of GPU 0.
fn at(segment: u64) -> u64 {
    gpu_base(0) + FIRST + segment * GRANULARITY
}

fn map(segment: u64, segments: u64, handle: u64) -> Step {
    virtual_call(VirtualMemoryCall::Map { pointer: at(segment), bytes: segments * GRANULARITY, handle })
}

fn unmap(segment: u64, segments: u64) -> Step {
    virtual_call(VirtualMemoryCall::Unmap { pointer: at(segment), bytes: segments * GRANULARITY })
}

fn open(segment: u64, segments: u64, device: u32, access: MemoryAccess) -> Step {
    let devices = vec![(device, access)];
    virtual_call(VirtualMemoryCall::SetAccess { pointer: at(segment), bytes: segments * GRANULARITY, devices })
}

fn release(handle: u64) -> Step {
    virtual_call(VirtualMemoryCall::Release { handle })
}

fn fill(segment: u64, segments: u64) -> Step {
    call(Call::memset(at(segment), 1, segments * GRANULARITY, 0, false))
}

/// What the calls from number `first` on gave.
fn given(play: &Play, first: usize) -> Vec<CallResult> {
    play.results(0)[first..].to_vec()
}

#[test]
fn addresses_are_reserved_and_freed_as_whole_ranges() {
    let free =
        |pointer, segments| virtual_call(VirtualMemoryCall::Unreserve { pointer, bytes: segments * GRANULARITY });
    let aligned = |bytes, alignment| virtual_call(VirtualMemoryCall::Reserve { bytes, alignment });
    let play = run(vec![
        reserve(3),
        aligned(GRANULARITY, 16 << 20),
        reserve(0),
        aligned(GRANULARITY + 1, 0),
        aligned(GRANULARITY, 3),
        // More than the memory has are there, and not as many as anyone wants.
        reserve(100),
        reserve(1 << 30),
        free(at(0), 2),
        free(at(1), 2),
        free(at(0), 3),
        free(at(0), 3),
        reserve(3),
    ]);
    let results = play.results(0);
    assert_eq!(pointer(&results, 0), at(0));
    let second = pointer(&results, 1);
    assert!(second >= at(3) && second.is_multiple_of(16 << 20), "{second:#x}");
    assert_eq!(results[2..5], [INVALID, INVALID, INVALID]);
    assert!(pointer(&results, 5) > second);
    assert_eq!(results[6..11], [NO_MEMORY, INVALID, INVALID, CallResult::None, INVALID]);
    assert_eq!(pointer(&results, 11), at(0));
    assert!(!play.is_mapped(at(0)), "addresses alone are no memory");
}

#[test]
fn memory_takes_room_until_nothing_refers_to_it() {
    let retain = |pointer| virtual_call(VirtualMemoryCall::Retain { pointer });
    let play = run(vec![
        reserve(8),
        create(2),
        call(Call::MemoryInfo),
        // All 32 segments but 2.
        create(31),
        map(0, 2, 1),
        release(1),
        release(1),
        virtual_call(VirtualMemoryCall::Owner { handle: 1 }),
        call(Call::MemoryInfo),
        retain(at(1) + 5),
        retain(at(2)),
        unmap(0, 2),
        call(Call::MemoryInfo),
        release(1),
        call(Call::MemoryInfo),
        virtual_call(VirtualMemoryCall::Create { bytes: 4096 }),
        virtual_call(VirtualMemoryCall::Create { bytes: 0 }),
    ]);
    let total = 64 << 20;
    let info = |segments: u64| CallResult::MemoryInfo { free: total - segments * GRANULARITY, total };
    assert_eq!(given(&play, 1)[..3], [CallResult::Object(1), info(2), NO_MEMORY]);
    let expected = [CallResult::None, CallResult::None, INVALID, INVALID, info(2)];
    assert_eq!(given(&play, 4)[..5], expected, "mapped, it lives without a handle");
    let expected = [CallResult::Object(1), INVALID, CallResult::None, info(2), CallResult::None, info(0)];
    assert_eq!(given(&play, 9)[..6], expected, "with a handle, it lives without a mapping");
    assert_eq!(given(&play, 15), [INVALID, INVALID]);
}

#[test]
fn mappings_are_made_and_ended_whole() {
    let play = run(vec![
        reserve(4),
        create(2),
        create(1),
        map(0, 3, 1),
        map(3, 2, 1),
        virtual_call(VirtualMemoryCall::Map { pointer: at(0) + 4096, bytes: GRANULARITY, handle: 1 }),
        map(0, 2, 9),
        map(0, 2, 1),
        map(1, 1, 2),
        map(2, 1, 2),
        unmap(0, 1),
        unmap(0, 4),
        unmap(1, 2),
        virtual_call(VirtualMemoryCall::Unreserve { pointer: at(0), bytes: 4 * GRANULARITY }),
        open(0, 1, 0, MemoryAccess::ReadWrite),
        open(0, 3, 0, MemoryAccess::ReadWrite),
        unmap(0, 3),
        unmap(0, 3),
        virtual_call(VirtualMemoryCall::Unreserve { pointer: at(0), bytes: 4 * GRANULARITY }),
    ]);
    let invalid = |count| vec![INVALID; count];
    assert_eq!(
        given(&play, 3)[..4],
        invalid(4),
        "longer than the memory, than the addresses; between pages; no memory"
    );
    assert_eq!(given(&play, 7)[..3], [CallResult::None, INVALID, CallResult::None]);
    assert_eq!(given(&play, 10)[..5], invalid(5));
    assert_eq!(given(&play, 15), [CallResult::None, CallResult::None, INVALID, CallResult::None]);
}

#[test]
fn mapped_memory_is_legal_once_and_while_a_device_may_access_it() {
    let info = || call(Call::PointerInfo { pointer: at(1) + 17 });
    let access = |device| virtual_call(VirtualMemoryCall::GetAccess { pointer: at(0) + 5, device });
    let steps = vec![
        reserve(4),
        create(1),
        create(1),
        map(0, 1, 1),
        map(1, 1, 2),
        fill(0, 2),
        info(),
        access(0),
        open(0, 2, 0, MemoryAccess::ReadWrite),
        open(0, 1, 1, MemoryAccess::Read),
        // From one mapping into the next.
        fill(0, 2),
        fill(1, 2),
        access(0),
        access(1),
        access(2),
        open(0, 1, 7, MemoryAccess::ReadWrite),
        call(Call::Free { pointer: at(0) }),
        open(1, 1, 0, MemoryAccess::None),
        fill(1, 1),
    ];
    let mut play = Play::new(Program::of(steps), 2);
    play.finish();
    let (base, bytes) = (at(1), GRANULARITY);
    let described = PointerDescription { kind: AllocationKind::Device, device: 0, base, bytes };
    let gives = |access| CallResult::Access(access);
    let expected = [INVALID, CallResult::PointerInfo(Some(described)), gives(MemoryAccess::None)];
    assert_eq!(given(&play, 5)[..3], expected);
    assert_eq!(given(&play, 8)[..4], [CallResult::None, CallResult::None, CallResult::None, INVALID]);
    let no_device = CallResult::Error(CudaError::InvalidDevice);
    let expected = [gives(MemoryAccess::ReadWrite), gives(MemoryAccess::Read), no_device.clone(), no_device];
    assert_eq!(given(&play, 12)[..4], expected);
    assert_eq!(given(&play, 16), [INVALID, CallResult::None, INVALID]);
    assert!(play.is_mapped(at(0)) && !play.is_mapped(at(1)));
    assert_eq!(play.gpus_of(at(0)), 0b11);
}

#[test]
fn memory_is_mapped_at_one_address_at_a_time() {
    let play = run(vec![
        reserve(4),
        create(1),
        map(0, 1, 1),
        map(2, 1, 1),
        open(0, 1, 0, MemoryAccess::ReadWrite),
        call(Call::DeviceSynchronize),
        unmap(0, 1),
        create(1),
        map(0, 1, 2),
        map(3, 1, 1),
    ]);
    assert_eq!(given(&play, 3)[0], CallResult::Error(CudaError::NotSupported), "two addresses at once");
    let errors = play.errors.clone();
    assert!(errors.contains("cuMemMap: the memory is mapped at 0x700004000000: memory at two addresses"), "{errors}");
}

#[test]
fn copies_are_done_by_the_gpu_whose_memory_is_mapped() {
    let steps = vec![
        reserve(4),
        call(Call::Compute { nanoseconds: 10_000 }),
        map(0, 1, 1),
        open(0, 1, 0, MemoryAccess::ReadWrite),
        fill(0, 1),
        call(Call::PointerInfo { pointer: at(0) }),
        call(Call::DeviceReset),
        virtual_call(VirtualMemoryCall::Owner { handle: 1 }),
        map(0, 1, 1),
    ];
    let mut play = Play::new(Program::of(steps).thread(1, vec![create(1)]), 2);
    play.finish();
    assert!(matches!(play.operations[..], [(1, CopyOperation::Fill { .. })]), "{:?}", play.operations);
    let bytes = GRANULARITY;
    let described = PointerDescription { kind: AllocationKind::Device, device: 1, base: at(0), bytes };
    let expected = [CallResult::PointerInfo(Some(described)), CallResult::None, CallResult::Owner(1), INVALID];
    assert_eq!(given(&play, 5), expected, "the addresses end with their device, the memory with its own");
    assert!(!play.is_mapped(at(0)));
}
