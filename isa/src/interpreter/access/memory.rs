//! Loads, stores and atomics: from registers to one access of the warp, and back.

use super::elements::{gather, read_element, scatter, write_extended, write_loaded};
use crate::cluster::rank_of;
use crate::execution::{
    AccessKind, AtomicCompletion, AtomicFunction, AtomicOperation, AtomicType, CacheOperator, Effect, LaneValues,
    MemoryAccess, MemoryProblem, Space, StepContext,
};
use crate::execution::{LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW, WINDOW_BYTES};
use crate::interpreter::bodies::extend;
use crate::interpreter::registers::{Lane, Registers, cluster};
use crate::lanes::{LANES, lanes};
use crate::operation::operand::{Row, SINK_PREDICATE, Source};
use crate::operation::{AtomicResult, Instruction, Kind, UniformAddress};
use crate::warp::WarpState;
use balar_protocol::cuda::{FaultAccess, FaultCause, FaultSpace};

/// The space of a generic address.
fn space_of(address: u64) -> Space {
    if address.wrapping_sub(SHARED_WINDOW) < WINDOW_BYTES {
        Space::Shared
    } else if address.wrapping_sub(LOCAL_WINDOW) < WINDOW_BYTES {
        Space::Local
    } else if address.wrapping_sub(PARAMETER_WINDOW) < WINDOW_BYTES {
        Space::Parameter
    } else {
        Space::Global
    }
}

/// Reads the addresses of an operand; those of 32 bits wrap around in 32 bits.
#[inline(always)]
pub(in crate::interpreter) fn read_addresses(
    instruction: &Instruction,
    registers: &Registers,
    constants: &[Row],
    addresses: &mut [u64; LANES],
) {
    let offset = instruction.offset as u64;
    if instruction.memory.pairs {
        return read_machine_addresses(instruction, registers, constants, addresses);
    }
    if instruction.memory.short_address {
        let bases = u32::read(registers, constants, instruction.sources[0]);
        for (to, from) in addresses.iter_mut().zip(bases) {
            *to = u64::from(from.wrapping_add(offset as u32));
        }
    } else {
        let bases = u64::read(registers, constants, instruction.sources[0]);
        for (to, from) in addresses.iter_mut().zip(bases) {
            *to = from.wrapping_add(offset);
        }
    }
}

/// Reads the addresses of machine code.
#[inline(always)]
fn read_machine_addresses(
    instruction: &Instruction,
    registers: &Registers,
    constants: &[Row],
    addresses: &mut [u64; LANES],
) {
    let form = &instruction.memory;
    let offset = instruction.offset as u64;
    if form.short_address {
        let bases = u32::read(registers, constants, instruction.sources[0]);
        for (to, from) in addresses.iter_mut().zip(bases) {
            *to = u64::from((from << form.scale).wrapping_add(offset as u32));
        }
    } else {
        let bases = u64::read_pair(registers, constants, instruction.sources[0]);
        for (to, from) in addresses.iter_mut().zip(bases) {
            *to = from.wrapping_add(offset);
        }
    }
    let uniform = Source(instruction.operand_list);
    match form.uniform {
        UniformAddress::None => {}
        UniformAddress::Short => {
            for (to, from) in addresses.iter_mut().zip(u32::read(registers, constants, uniform)) {
                *to = u64::from((*to as u32).wrapping_add(from));
            }
        }
        UniformAddress::Pair => {
            // The general register alone has 32 bits: the offset is added to all 64.
            let bases = u32::read(registers, constants, instruction.sources[0]);
            let uniform = u64::read_pair(registers, constants, uniform);
            for lane in 0..LANES {
                let own =
                    if form.short_address { u64::from(bases[lane]).wrapping_add(offset) } else { addresses[lane] };
                addresses[lane] = own.wrapping_add(uniform[lane]);
            }
        }
    }
}

/// Fills in the access. Generic addresses that are not in the first lane's space are left for a step of their own; gives the mask of their
/// lanes.
#[inline(always)]
pub(in crate::interpreter) fn describe(
    instruction: &Instruction,
    warp: &WarpState,
    access: &mut MemoryAccess,
    mask: u32,
) -> u32 {
    let form = &instruction.memory;
    read_addresses(instruction, &warp.registers, &warp.constants.0, &mut access.addresses);
    access.cache = form.cache;
    access.bytes = form.element_bytes * form.elements;
    access.mask = mask;
    access.space = form.space.unwrap_or(Space::Global);
    if form.space.is_some() || mask == 0 {
        return mask;
    }
    describe_generic(access)
}

/// Finds the space of generic addresses; gives the mask of the lanes in it. There is at least one.
fn describe_generic(access: &mut MemoryAccess) -> u32 {
    let mask = access.mask;
    access.space = space_of(access.addresses[mask.trailing_zeros() as usize]);
    let mut same = 0;
    for lane in 0..LANES {
        same |= u32::from(space_of(access.addresses[lane]) == access.space) << lane;
    }
    let base = match access.space {
        Space::Shared => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
        Space::Parameter => PARAMETER_WINDOW,
        _ => 0,
    };
    if base != 0 {
        for address in &mut access.addresses {
            *address = address.wrapping_sub(base);
        }
    }
    access.mask &= same;
    access.mask
}

/// The lanes of an access to shared memory whose places are those of other CTAs of the cluster.
pub(super) fn of_other_ctas(registers: &Registers, access: &MemoryAccess) -> u32 {
    let own = registers.cluster[cluster::RANK];
    lanes(access.mask).filter(|&lane| rank_of(access.addresses[lane]) != own).fold(0, |others, lane| others | 1 << lane)
}

/// Ends a step whose access covers `done` of the lanes in `mask`: the rest repeat the instruction on their own.
pub(in crate::interpreter) fn finish(warp: &mut WarpState, mask: u32, done: u32) {
    if mask != done {
        warp.executed = done;
        warp.control.postpone(mask & !done);
    }
    warp.control.advance();
}

pub(in crate::interpreter) fn problem(problem: MemoryProblem) -> Effect {
    match problem {
        MemoryProblem::Later => Effect::Retry,
        MemoryProblem::Elsewhere { lanes } => {
            let cause = FaultCause::Unsupported(
                "an access to the shared memory of another CTA by such an instruction".to_owned(),
            );
            Effect::Fault { lane: lanes.trailing_zeros() as u8, cause }
        }
        MemoryProblem::Fault { lane, cause } => Effect::Fault { lane, cause },
    }
}

#[inline(always)]
pub(in crate::interpreter) fn load(
    instruction: &Instruction,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    mask: u32,
) -> Effect {
    access.kind = AccessKind::Load;
    let done = describe(instruction, warp, access, mask);
    if mask == 0 {
        warp.control.advance();
        return Effect::Memory { deferred: false };
    }
    let loaded = if access.space == Space::Parameter {
        load_parameters(&warp.registers, access, &mut context.values.accessed)
    } else {
        context.memory.load(access, &mut context.values.accessed)
    };
    if let Err(error) = loaded {
        return match error {
            MemoryProblem::Elsewhere { lanes } => access_elsewhere(instruction, warp, context, access, (mask, lanes)),
            error => problem(error),
        };
    }
    let form = &instruction.memory;
    if form.elements == 1 && form.signed {
        for value in &mut context.values.accessed.low {
            *value = extend(*value, form.element_bytes, true);
        }
    }
    write_extended(instruction, &mut warp.registers, &context.values.accessed, done);
    if form.cache == CacheOperator::Volatile {
        warp.control.synchronising_step();
    }
    finish(warp, mask, done);
    Effect::Memory { deferred: false }
}

/// An access of which some lanes' places, `remote`, are in the shared memory of other CTAs. The access is described, and its operands are
/// gathered. The other lanes make theirs first, on their own; then all that are left do.
#[cold]
fn access_elsewhere(
    instruction: &Instruction,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    (mask, remote): (u32, u32),
) -> Effect {
    let own = access.mask & !remote;
    if own == 0 {
        let done = access.mask;
        let values = match instruction.kind {
            Kind::Atomic => &context.values.operands,
            _ => &context.values.accessed,
        };
        if instruction.memory.result != AtomicResult::Old {
            let cause = FaultCause::Unsupported(
                "an atomic that returns more than the old value, on the shared memory of another CTA".to_owned(),
            );
            return Effect::Fault { lane: done.trailing_zeros() as u8, cause };
        }
        let values = (values, &context.values.replacements);
        if let Err(error) = context.memory.remote(access, warp.control.pc, values, None) {
            return problem(error);
        }
        warp.control.synchronising_step();
        finish(warp, mask, done);
        return Effect::Memory { deferred: matches!(access.kind, AccessKind::Load | AccessKind::Atomic) };
    }
    access.mask = own;
    let values = &mut context.values;
    let result = match access.kind {
        AccessKind::Load => {
            let loaded = context.memory.load(access, &mut values.accessed);
            loaded.map(|()| write_loaded(instruction, &mut warp.registers, &values.accessed, own))
        }
        AccessKind::Store => context.memory.store(access, &values.accessed),
        AccessKind::Atomic | AccessKind::Reduction => {
            let form = &instruction.memory;
            let function = AtomicFunction { operation: form.operation, data_type: form.data_type };
            let done =
                context.memory.atomic(access, function, &values.operands, &values.replacements, &mut values.accessed);
            done.map(|_| {
                if form.result == AtomicResult::Success {
                    write_success(instruction, &mut warp.registers, &warp.constants.0, &values.accessed, own);
                } else if !form.is_reduction {
                    scatter(instruction, &mut warp.registers, &values.accessed, own);
                }
            })
        }
    };
    if let Err(error) = result {
        return problem(error);
    }
    finish(warp, mask, own);
    Effect::Memory { deferred: false }
}

/// An access that its space does not allow, or that is not inside the memory.
fn illegal(access: &MemoryAccess, lane: usize, kind: FaultAccess) -> MemoryProblem {
    let space = match access.space {
        Space::Global => FaultSpace::Global,
        Space::Shared => FaultSpace::Shared,
        Space::Local => FaultSpace::Local,
        Space::Constant => FaultSpace::Constant,
        Space::Parameter => FaultSpace::Parameter,
    };
    let (address, bytes) = (access.addresses[lane], u32::from(access.bytes));
    let cause = if address % u64::from(access.bytes.max(1)) != 0 {
        FaultCause::MisalignedAddress { address, bytes, access: kind, space }
    } else {
        FaultCause::IllegalAddress { address, bytes, access: kind, space }
    };
    MemoryProblem::Fault { lane: lane as u8, cause }
}

/// Loads from the parameter block at addresses known at run time, which most often are the same in all lanes.
fn load_parameters(registers: &Registers, access: &MemoryAccess, values: &mut LaneValues) -> Result<(), MemoryProblem> {
    let length = usize::from(access.bytes);
    let value_of = |lane: usize| {
        let bytes = usize::try_from(access.addresses[lane])
            .ok()
            .filter(|first| first % length.max(1) == 0)
            .and_then(|first| registers.parameters.get(first..)?.get(..length))
            .ok_or_else(|| illegal(access, lane, FaultAccess::Load))?;
        let mut value = [0; 16];
        value[..length].copy_from_slice(bytes);
        Ok(u128::from_le_bytes(value))
    };
    if access.mask == u32::MAX && access.addresses == [access.addresses[0]; LANES] {
        let value = value_of(0)?;
        (values.low, values.high) = ([value as u64; LANES], [(value >> 64) as u64; LANES]);
        return Ok(());
    }
    for lane in lanes(access.mask) {
        values.set(lane, value_of(lane)?);
    }
    Ok(())
}

/// The result of `ATOMS.CAST`: whether it has stored, as it does where it found the expected value.
fn write_success(instruction: &Instruction, registers: &mut Registers, constants: &[Row], old: &LaneValues, mask: u32) {
    let width = (instruction.memory.wide[0], true);
    let expected = read_element(registers, constants, instruction.sources[1], width);
    let mut results = [0; LANES];
    for lane in 0..LANES {
        results[lane] = u64::from(old.low[lane] == expected[lane]);
    }
    if instruction.memory.wide[0] {
        u64::write_pair(registers, instruction.destinations[0], &results, mask);
    } else {
        u32::write(registers, instruction.destinations[0], &results.map(|result| result as u32), mask);
    }
}

/// [`AtomicResult::Lanes`] of the old values.
#[cold]
fn find_lanes(access: &MemoryAccess, values: &mut LaneValues) {
    let mut left = access.mask;
    while left != 0 {
        let first = left.trailing_zeros() as usize;
        let same = lanes(left).filter(|&lane| access.addresses[lane] == access.addresses[first]);
        let same = same.fold(0, |mask, lane: usize| mask | 1 << lane);
        let result = values.low[first] >> 32 << 32 | u64::from(same);
        for lane in lanes(same) {
            values.low[lane] = result;
        }
        left &= !same;
    }
}

#[inline(always)]
pub(in crate::interpreter) fn store(
    instruction: &Instruction,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    mask: u32,
) -> Effect {
    access.kind = AccessKind::Store;
    let done = describe(instruction, warp, access, mask);
    if mask == 0 {
        warp.control.advance();
        return Effect::Memory { deferred: false };
    }
    gather(instruction, &warp.registers, &warp.constants.0, 1, &mut context.values.accessed);
    if access.space == Space::Parameter {
        return problem(illegal(access, done.trailing_zeros() as usize, FaultAccess::Store));
    }
    if let Err(error) = context.memory.store(access, &context.values.accessed) {
        return match error {
            MemoryProblem::Elsewhere { lanes } => access_elsewhere(instruction, warp, context, access, (mask, lanes)),
            error => problem(error),
        };
    }
    finish(warp, mask, done);
    Effect::Memory { deferred: false }
}

#[inline(always)]
pub(in crate::interpreter) fn atomic(
    instruction: &Instruction,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    mask: u32,
) -> Effect {
    let form = &instruction.memory;
    access.kind = if form.is_reduction { AccessKind::Reduction } else { AccessKind::Atomic };
    let done = describe(instruction, warp, access, mask);
    if mask == 0 {
        warp.control.advance();
        return Effect::Memory { deferred: false };
    }
    let claimed = instruction.predicate_destinations[0];
    if claimed != SINK_PREDICATE {
        // Machine code asks whether the place is in device memory, and does the operation itself where it is not.
        // In the shared memory of another CTA it is done there, too.
        let is_there = access.space == Space::Global;
        let elsewhere = if access.space == Space::Shared { of_other_ctas(&warp.registers, access) } else { 0 };
        let own = done & !elsewhere;
        let is_device = is_there || own == 0;
        warp.registers.set_predicate(claimed, if is_device { u32::MAX } else { 0 }, if is_device { done } else { own });
        if !is_device {
            access.mask = 0;
            finish(warp, mask, own);
            return Effect::Memory { deferred: false };
        }
    }
    let is_barrier = matches!(form.operation, AtomicOperation::Barrier(_));
    if !matches!(access.space, Space::Global | Space::Shared) || (is_barrier && access.space == Space::Global) {
        // Threads share no local memory; `mbarrier` objects are in shared memory.
        return problem(illegal(access, done.trailing_zeros() as usize, FaultAccess::Atomic));
    }
    let elements = usize::from(form.elements);
    gather(instruction, &warp.registers, &warp.constants.0, 1, &mut context.values.operands);
    if form.has_replacement {
        gather(instruction, &warp.registers, &warp.constants.0, 1 + elements, &mut context.values.replacements);
    }
    let mut function = AtomicFunction { operation: form.operation, data_type: form.data_type };
    if function.data_type == AtomicType::F32 && access.space == Space::Global {
        function.data_type = AtomicType::F32Flushed;
    }
    let completion = context.memory.atomic(
        access,
        function,
        &context.values.operands,
        &context.values.replacements,
        &mut context.values.accessed,
    );
    let completion = match completion {
        Ok(completion) => completion,
        Err(MemoryProblem::Elsewhere { lanes }) => {
            return access_elsewhere(instruction, warp, context, access, (mask, lanes));
        }
        Err(error) => return problem(error),
    };
    let deferred = completion == AtomicCompletion::Deferred;
    if form.result == AtomicResult::Lanes {
        find_lanes(access, &mut context.values.accessed);
    }
    if form.result == AtomicResult::Success {
        write_success(instruction, &mut warp.registers, &warp.constants.0, &context.values.accessed, done);
    } else if !deferred && !form.is_reduction {
        scatter(instruction, &mut warp.registers, &context.values.accessed, done);
    }
    warp.control.synchronising_step();
    finish(warp, mask, done);
    Effect::Memory { deferred: deferred && !form.is_reduction }
}
