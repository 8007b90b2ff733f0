//! Copies from device to shared memory (`cp.async`), and waiting at `mbarrier` objects.

use super::elements::gather;
use super::memory::{describe, finish, of_other_ctas, problem, read_addresses};
use crate::cluster::{OFFSET_BITS, rank_of};
use crate::execution::{
    AccessKind, AtomicFunction, AtomicOperation, AtomicType, BarrierOperation, Effect, LaneValues, MemoryAccess,
    MemoryProblem, SHARED_WINDOW, Space, StepContext, WINDOW_BYTES,
};
use crate::interpreter::registers::Lane;
use crate::lanes::{LANES, lanes};
use crate::mbarrier;
use crate::operation::{Instruction, Kind, MemoryForm, barrier_test};
use crate::warp::WarpState;
use balar_protocol::cuda::{FaultAccess, FaultCause, FaultSpace};

/// About how long a thread that waits at an `mbarrier` object sleeps before it looks again. PTX leaves the time to the
/// implementation; short, so that little time is lost, and long enough for other warps to issue.
const SUSPENSION_NANOSECONDS: u32 = 40;
/// Bytes of an `mbarrier` object.
pub(super) const BARRIER_BYTES: u8 = 8;

/// `cp.async`: the first source is the address in device memory, the second the address in shared memory (32 bits, or 64 where `wide[1]`),
/// the third the number of bytes to read; the rest of the copy is zero. Lanes of the first predicate read nothing. Machine code adds the
/// fourth source to the address in shared memory.
pub(in crate::interpreter) fn copy(
    instruction: &Instruction,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    mask: u32,
) -> Effect {
    access.kind = AccessKind::Load;
    access.cache = instruction.memory.cache;
    access.space = Space::Global;
    access.bytes = instruction.memory.element_bytes;
    access.mask = 0;
    let is_machine = instruction.memory.pairs;
    if mask == 0 {
        warp.control.advance();
        return Effect::Copy;
    }
    let constants = &warp.constants.0;
    read_addresses(instruction, &warp.registers, constants, &mut access.addresses);
    let size = access.bytes;
    let mut bytes = u32::read(&warp.registers, constants, instruction.sources[2]);
    if instruction.kind == Kind::CopyPart {
        for (address, bytes) in access.addresses.iter_mut().zip(&mut bytes) {
            let left_out = *address & u64::from(size - 1);
            *address -= left_out;
            *bytes -= left_out as u32;
        }
    }
    let ignored = warp.registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
    let wanted = |lane: usize| if (ignored >> lane) & 1 != 0 { 0 } else { bytes[lane].min(u32::from(size)) };
    context.values.accessed.low = [0; LANES];
    context.values.accessed.high = [0; LANES];
    let mut part = MemoryAccess { mask: 0, ..access.clone() };
    let mut loaded = LaneValues::default();
    // A number of bytes is read as the powers of two that it is the sum of, largest first, so that each is aligned.
    for power in (0..5u32).rev().filter(|power| size >> power != 0) {
        part.bytes = 1 << power;
        part.mask = 0;
        for lane in lanes(mask).filter(|lane| (wanted(*lane) >> power) & 1 != 0) {
            part.mask |= 1 << lane;
            part.addresses[lane] =
                access.addresses[lane].wrapping_add(u64::from(wanted(lane) >> power >> 1 << power << 1));
        }
        if part.mask == 0 {
            continue;
        }
        if let Some(fault) = misaligned(access, part.mask, size) {
            return problem(fault);
        }
        if let Err(error) = context.memory.load(&part, &mut loaded) {
            return problem(error);
        }
        for lane in lanes(part.mask) {
            let place = wanted(lane) >> power >> 1 << power << 1;
            let value = context.values.accessed.get(lane) | loaded.get(lane) << (8 * place);
            context.values.accessed.set(lane, value);
        }
        access.mask |= part.mask;
    }
    part.kind = AccessKind::Store;
    part.space = Space::Shared;
    part.bytes = size;
    part.mask = mask;
    let to = instruction.sources[1];
    let offset = instruction.immediate as i32;
    part.addresses = if instruction.memory.wide[1] {
        u64::read(&warp.registers, constants, to).map(|address| address.wrapping_add(offset as u64))
    } else {
        u32::read(&warp.registers, constants, to).map(|address| u64::from(address.wrapping_add(offset as u32)))
    };
    if is_machine {
        let further = u32::read(&warp.registers, constants, instruction.sources[3]);
        for (address, further) in part.addresses.iter_mut().zip(further) {
            *address = u64::from((*address as u32).wrapping_add(further));
        }
    }
    if let Err(error) = context.memory.store(&part, &context.values.accessed) {
        return problem(error);
    }
    context.values.operands.low = part.addresses;
    warp.control.advance();
    Effect::Copy
}

/// `st.async` and `red.async`, `STAS` and `REDAS`: the values are written, and their bytes told to the barrier, when the instruction issues in
/// the CTA's own memory, and in another CTA's when they come there: a program that waits as it must sees no difference.
pub(in crate::interpreter) fn access_and_tell(
    instruction: &Instruction,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    mask: u32,
) -> Effect {
    let form = &instruction.memory;
    access.kind = if form.is_reduction { AccessKind::Reduction } else { AccessKind::Store };
    (access.space, access.cache, access.mask) = (Space::Shared, form.cache, mask);
    access.bytes = form.element_bytes * form.elements;
    if mask == 0 {
        warp.control.advance();
        return Effect::Memory { deferred: false };
    }
    let constants = &warp.constants.0;
    let both = if form.pairs {
        u64::read_pair(&warp.registers, constants, instruction.sources[0])
    } else {
        u64::read(&warp.registers, constants, instruction.sources[0])
    };
    access.addresses = both.map(|both| u64::from((both as u32).wrapping_add(instruction.offset as u32)));
    let barriers = both.map(|both| ((both >> 32) as u32).wrapping_add(instruction.immediate));
    if let Some(lane) = lanes(mask).find(|&lane| rank_of(barriers[lane].into()) != rank_of(access.addresses[lane])) {
        let cause =
            FaultCause::Unsupported("an access that tells a barrier of another CTA than its place's".to_owned());
        return Effect::Fault { lane: lane as u8, cause };
    }
    let own = mask & !of_other_ctas(&warp.registers, access);
    let values = &mut context.values;
    let operands = if form.is_reduction { &mut values.operands } else { &mut values.accessed };
    gather(instruction, &warp.registers, constants, 1, operands);
    // The lanes of the CTA's own memory come first; the rest repeat the instruction.
    access.mask = if own == 0 { mask } else { own };
    let done = if own == 0 {
        let values = (if form.is_reduction { &values.operands } else { &values.accessed }, &values.replacements);
        let offsets = barriers.map(|barrier| barrier & OFFSET_BITS as u32);
        context.memory.remote(access, warp.control.pc, values, Some(&offsets))
    } else {
        access_own_and_tell(form, context, access, &barriers)
    };
    if let Err(error) = done {
        return problem(error);
    }
    warp.control.synchronising_step();
    finish(warp, mask, access.mask);
    Effect::Memory { deferred: false }
}

/// Makes an access to the CTA's own shared memory, and tells barriers of it.
fn access_own_and_tell(
    form: &MemoryForm,
    context: &mut StepContext,
    access: &MemoryAccess,
    barriers: &[u32; LANES],
) -> Result<(), MemoryProblem> {
    let values = &mut *context.values;
    if form.is_reduction {
        let function = AtomicFunction { operation: form.operation, data_type: form.data_type };
        context.memory.atomic(access, function, &values.operands, &values.replacements, &mut values.accessed)?;
    } else {
        context.memory.store(access, &values.accessed)?;
    }
    let told = MemoryAccess {
        kind: AccessKind::Reduction,
        space: Space::Shared,
        bytes: BARRIER_BYTES,
        mask: access.mask,
        addresses: barriers.map(u64::from),
        ..MemoryAccess::default()
    };
    let function =
        AtomicFunction { operation: AtomicOperation::Barrier(BarrierOperation::Complete), data_type: AtomicType::U64 };
    values.operands.low = [access.bytes.into(); LANES];
    context.memory.atomic(&told, function, &values.operands, &values.replacements, &mut values.accessed)?;
    Ok(())
}

/// The device address of a copy is a multiple of the whole size, even where only part is read.
fn misaligned(access: &MemoryAccess, mask: u32, bytes: u8) -> Option<MemoryProblem> {
    let lane = lanes(mask).find(|&lane| !access.addresses[lane].is_multiple_of(u64::from(bytes)))?;
    let address = access.addresses[lane];
    let cause = FaultCause::MisalignedAddress {
        address,
        bytes: u32::from(bytes),
        access: FaultAccess::Load,
        space: FaultSpace::Global,
    };
    Some(MemoryProblem::Fault { lane: lane as u8, cause })
}

/// The addresses of `mbarrier` objects: those of generic addresses must be in shared memory.
pub(in crate::interpreter) fn describe_barrier(
    instruction: &Instruction,
    warp: &WarpState,
    access: &mut MemoryAccess,
    mask: u32,
) -> Result<(), MemoryProblem> {
    access.kind = AccessKind::Load;
    access.cache = instruction.memory.cache;
    access.space = Space::Shared;
    access.bytes = BARRIER_BYTES;
    access.mask = mask;
    read_addresses(instruction, &warp.registers, &warp.constants.0, &mut access.addresses);
    if instruction.memory.space.is_some() {
        return Ok(());
    }
    for lane in lanes(mask) {
        let address = access.addresses[lane];
        access.addresses[lane] = address.wrapping_sub(SHARED_WINDOW);
        if access.addresses[lane] >= WINDOW_BYTES {
            let cause = FaultCause::IllegalAddress {
                address,
                bytes: 8,
                access: FaultAccess::Barrier,
                space: FaultSpace::Shared,
            };
            return Err(MemoryProblem::Fault { lane: lane as u8, cause });
        }
    }
    Ok(())
}

/// `mbarrier.test_wait` and `try_wait`.
pub(in crate::interpreter) fn test(
    instruction: &Instruction,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    mask: u32,
) -> Effect {
    if mask == 0 {
        describe(instruction, warp, access, 0);
        access.kind = AccessKind::Load;
        warp.control.advance();
        return Effect::Memory { deferred: false };
    }
    let described = describe_barrier(instruction, warp, access, mask);
    if let Err(error) = described.and_then(|()| context.memory.load(access, &mut context.values.accessed)) {
        return problem(error);
    }
    let source = instruction.sources[1];
    let states: [u64; LANES] = if instruction.immediate & barrier_test::PARITY != 0 {
        u32::read(&warp.registers, &warp.constants.0, source).map(mbarrier::state_of_parity)
    } else if instruction.immediate & barrier_test::UPPER_HALF != 0 {
        u32::read(&warp.registers, &warp.constants.0, source).map(|half| u64::from(half) << 32)
    } else {
        u64::read(&warp.registers, &warp.constants.0, source)
    };
    let mut complete = 0;
    for (lane, state) in states.iter().enumerate() {
        complete |= u32::from(mbarrier::is_complete(context.values.accessed.low[lane], *state)) << lane;
    }
    warp.registers.set_predicate(instruction.predicate_destinations[0], complete, mask);
    warp.control.synchronising_step();
    finish(warp, mask, mask);
    if instruction.immediate & barrier_test::SUSPENDS != 0 && mask & !complete != 0 {
        return Effect::Suspended(SUSPENSION_NANOSECONDS);
    }
    Effect::Memory { deferred: false }
}

/// `cp.async.mbarrier.arrive`: where `immediate` is 1, the phase waits for one arrival more from now on.
pub(in crate::interpreter) fn arrive_after_copies(
    instruction: &Instruction,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    mask: u32,
) -> Effect {
    let arrival = match instruction.memory.operation {
        AtomicOperation::Barrier(arrival) => arrival,
        _ => BarrierOperation::Arrive,
    };
    if mask == 0 {
        access.mask = 0;
        warp.control.advance();
        return Effect::CopyArrive(arrival);
    }
    if let Err(error) = describe_barrier(instruction, warp, access, mask) {
        return problem(error);
    }
    access.kind = AccessKind::Reduction;
    // The arrival itself is the SM's to make; that the address is that of an object is found out now.
    let checked = if instruction.immediate == 1 {
        let function =
            AtomicFunction { operation: AtomicOperation::Barrier(BarrierOperation::Pend), data_type: AtomicType::U64 };
        let (operands, replacements) = (&context.values.operands, &context.values.replacements);
        context.memory.atomic(access, function, operands, replacements, &mut context.values.accessed).map(|_| ())
    } else {
        context.memory.load(access, &mut context.values.accessed)
    };
    if let Err(error) = checked {
        return problem(error);
    }
    warp.control.synchronising_step();
    finish(warp, mask, mask);
    Effect::CopyArrive(arrival)
}

/// `mbarrier.pending_count`.
pub(crate) struct PendingCount;

impl crate::interpreter::bodies::LaneOperation for PendingCount {
    type A = u64;
    type B = ();
    type C = ();
    type D = u32;
    #[inline(always)]
    fn apply(state: u64, _: (), _: (), _: u32) -> u32 {
        mbarrier::pending_count(state)
    }
}
