//! Loads, stores and atomics: from registers to one access of the warp, and back.

use super::bodies::{extend, write_element};
use super::registers::{Lane, Registers};
use crate::execution::{
    AccessKind, AtomicCompletion, CacheOperator, Effect, LaneValues, MemoryAccess, MemoryProblem, Space, StepContext,
};
use crate::execution::{LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES};
use crate::operation::{Instruction, Row, Source};
use crate::program::{LANES, Program};
use crate::warp::WarpState;

/// The space of a generic address.
fn space_of(address: u64) -> Space {
    if address.wrapping_sub(SHARED_WINDOW) < WINDOW_BYTES {
        Space::Shared
    } else if address.wrapping_sub(LOCAL_WINDOW) < WINDOW_BYTES {
        Space::Local
    } else {
        Space::Global
    }
}

/// Fills in the access. Of generic addresses, those that are not in the first lane's space are left for a step of their own;
/// gives the mask of the others.
fn describe(
    instruction: &Instruction,
    warp: &mut WarpState,
    constants: &[Row],
    access: &mut MemoryAccess,
    mask: u32,
) -> u32 {
    let form = &instruction.memory;
    let offset = instruction.offset as u64;
    if form.short_address {
        let addresses = u32::read(&warp.registers, constants, instruction.sources[0]);
        for (to, from) in access.addresses.iter_mut().zip(addresses) {
            *to = u64::from(from.wrapping_add(offset as u32));
        }
    } else {
        let addresses = u64::read(&warp.registers, constants, instruction.sources[0]);
        for (to, from) in access.addresses.iter_mut().zip(addresses) {
            *to = from.wrapping_add(offset);
        }
    }
    access.cache = form.cache;
    access.bytes = form.element_bytes * form.elements;
    access.mask = mask;
    access.space = form.space.unwrap_or(Space::Global);
    if form.space.is_some() || mask == 0 {
        return mask;
    }
    access.space = space_of(access.addresses[mask.trailing_zeros() as usize]);
    let mut same = 0;
    for lane in 0..LANES {
        same |= u32::from(space_of(access.addresses[lane]) == access.space) << lane;
    }
    let base = match access.space {
        Space::Shared => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
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

/// Ends a step whose access covers `done` of the lanes in `mask`: the rest repeat the instruction on their own.
fn finish(warp: &mut WarpState, mask: u32, done: u32) {
    if mask != done {
        warp.control.postpone(mask & !done);
    }
    warp.control.advance();
}

fn problem(problem: MemoryProblem) -> Effect {
    match problem {
        MemoryProblem::Later => Effect::Retry,
        MemoryProblem::Fault { lane, cause } => Effect::Fault { lane, cause },
    }
}

#[inline(always)]
pub(super) fn load(
    program: &Program,
    instruction: &Instruction,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    mask: u32,
) -> Effect {
    access.kind = AccessKind::Load;
    let done = describe(instruction, warp, &program.constants, access, mask);
    if mask == 0 {
        warp.control.advance();
        return Effect::Memory { deferred: false };
    }
    if let Err(error) = context.memory.load(access, &mut warp.values) {
        return problem(error);
    }
    let form = &instruction.memory;
    if form.elements == 1 {
        if form.signed {
            for value in &mut warp.values.low {
                *value = extend(*value, form.element_bytes, true);
            }
        }
        write_element(&mut warp.registers, instruction.destinations[0], form.wide[0], &warp.values.low, done);
    } else if form.element_bytes == 4 && !form.wide[0] {
        for element in 0..usize::from(form.elements) {
            let half = if element >= 2 { &warp.values.high } else { &warp.values.low };
            let shift = 32 * (element as u32 % 2);
            let mut values = [0; LANES];
            for lane in 0..LANES {
                values[lane] = (half[lane] >> shift) as u32;
            }
            u32::write(&mut warp.registers, instruction.destinations[element], &values, done);
        }
    } else {
        for element in 0..usize::from(form.elements) {
            let values = element_of(&warp.values, form.element_bytes, element, form.signed);
            write_element(&mut warp.registers, instruction.destinations[element], form.wide[element], &values, done);
        }
    }
    if form.cache == CacheOperator::Volatile {
        warp.control.synchronising_step();
    }
    finish(warp, mask, done);
    Effect::Memory { deferred: false }
}

/// One element of a vector access.
#[inline(always)]
fn element_of(values: &LaneValues, bytes: u8, element: usize, signed: bool) -> [u64; LANES] {
    let first = element * usize::from(bytes);
    let half = if first >= 8 { &values.high } else { &values.low };
    let shift = 8 * (first % 8) as u32;
    let keep = if bytes == 8 { u64::MAX } else { (1 << (8 * u32::from(bytes))) - 1 };
    let mut values = [0; LANES];
    for lane in 0..LANES {
        values[lane] = extend((half[lane] >> shift) & keep, bytes, signed);
    }
    values
}

#[inline(always)]
fn read_element(registers: &Registers, constants: &[Row], source: Source, wide: bool) -> [u64; LANES] {
    if wide { u64::read(registers, constants, source) } else { u32::read(registers, constants, source).map(u64::from) }
}

#[inline(always)]
pub(super) fn store(
    program: &Program,
    instruction: &Instruction,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    mask: u32,
) -> Effect {
    access.kind = AccessKind::Store;
    let done = describe(instruction, warp, &program.constants, access, mask);
    if mask == 0 {
        warp.control.advance();
        return Effect::Memory { deferred: false };
    }
    let form = &instruction.memory;
    let keep = if form.element_bytes == 8 { u64::MAX } else { (1 << (8 * u32::from(form.element_bytes))) - 1 };
    if form.elements == 1 {
        let values = read_element(&warp.registers, &program.constants, instruction.sources[1], form.wide[0]);
        for (to, from) in warp.values.low.iter_mut().zip(values) {
            *to = from & keep;
        }
    } else {
        warp.values.low = [0; LANES];
        warp.values.high = [0; LANES];
        for element in 0..usize::from(form.elements) {
            let source = instruction.sources[1 + element];
            let values = read_element(&warp.registers, &program.constants, source, form.wide[element]);
            let first = element * usize::from(form.element_bytes);
            let half = if first >= 8 { &mut warp.values.high } else { &mut warp.values.low };
            let shift = 8 * (first % 8) as u32;
            for (old, value) in half.iter_mut().zip(values) {
                *old |= (value & keep) << shift;
            }
        }
    }
    if let Err(error) = context.memory.store(access, &warp.values) {
        return problem(error);
    }
    finish(warp, mask, done);
    Effect::Memory { deferred: false }
}

#[inline(always)]
pub(super) fn atomic(
    program: &Program,
    instruction: &Instruction,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    mask: u32,
) -> Effect {
    let form = &instruction.memory;
    access.kind = if form.is_reduction { AccessKind::Reduction } else { AccessKind::Atomic };
    let done = describe(instruction, warp, &program.constants, access, mask);
    if mask == 0 {
        warp.control.advance();
        return Effect::Memory { deferred: false };
    }
    warp.operands.low = read_element(&warp.registers, &program.constants, instruction.sources[1], form.wide[0]);
    warp.operands.high = read_element(&warp.registers, &program.constants, instruction.sources[2], form.wide[0]);
    let completion =
        match context.memory.atomic(access, form.operation, form.data_type, &warp.operands, &mut warp.values) {
            Ok(completion) => completion,
            Err(error) => return problem(error),
        };
    let deferred = completion == AtomicCompletion::Deferred;
    if !deferred && !form.is_reduction {
        write_element(&mut warp.registers, instruction.destinations[0], form.wide[0], &warp.values.low, done);
    }
    warp.control.synchronising_step();
    finish(warp, mask, done);
    Effect::Memory { deferred: deferred && !form.is_reduction }
}
