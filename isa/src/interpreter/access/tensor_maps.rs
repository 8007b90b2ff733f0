//! Tensor maps in memory: reading them, and the instructions that change and copy them.

use super::memory::{finish, problem, read_addresses};
use crate::execution::{
    AccessKind, Effect, LaneMemory, LaneValues, MemoryAccess, MemoryProblem, PARAMETER_WINDOW, SHARED_WINDOW, Space,
    StepContext, WINDOW_BYTES, value_of_bytes,
};
use crate::interpreter::registers::{Lane, Registers};
use crate::lanes::{LANES, lanes};
use crate::operation::Instruction;
use crate::warp::WarpState;
use balar_protocol::cuda::{FaultAccess, FaultCause, FaultSpace};
use balar_protocol::tensor_map::{Field, TENSOR_MAP_READ, replace};

/// Bytes of a map that a lane of an access has.
const PART: usize = 16;

/// The access to all of a map that hardware reads.
fn whole(kind: AccessKind, address: u64) -> MemoryAccess {
    let within = address.wrapping_sub(SHARED_WINDOW);
    let (space, address) = if within < WINDOW_BYTES { (Space::Shared, within) } else { (Space::Global, address) };
    let mut access = MemoryAccess { kind, space, bytes: PART as u8, mask: 0xf, ..MemoryAccess::default() };
    for (lane, to) in access.addresses.iter_mut().enumerate() {
        *to = address.wrapping_add((PART * lane) as u64);
    }
    access
}

/// The bytes of a tensor map at a generic address: in memory, or among the kernel's parameters.
pub(super) fn read(
    memory: &mut dyn LaneMemory,
    registers: &Registers,
    address: u64,
) -> Result<[u8; TENSOR_MAP_READ], MemoryProblem> {
    let parameter = address.wrapping_sub(PARAMETER_WINDOW);
    if parameter < WINDOW_BYTES {
        let found = registers.parameters.get(parameter as usize..).and_then(|rest| rest.first_chunk());
        return found.copied().ok_or_else(|| {
            let (access, space) = (FaultAccess::Load, FaultSpace::Parameter);
            let cause = FaultCause::IllegalAddress { address, bytes: TENSOR_MAP_READ as u32, access, space };
            MemoryProblem::Fault { lane: 0, cause }
        });
    }
    let (mut bytes, mut values) = ([0; TENSOR_MAP_READ], LaneValues::default());
    memory.load(&whole(AccessKind::Load, address), &mut values)?;
    for (lane, to) in bytes.chunks_mut(PART).enumerate() {
        to.copy_from_slice(&values.get(lane).to_le_bytes());
    }
    Ok(bytes)
}

/// `tensormap.replace`, for one lane: the rest repeat it. The first source is the map's address, the second one the new value.
pub(in crate::interpreter) fn replace_field(
    instruction: &Instruction,
    field: Field,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    mask: u32,
) -> Effect {
    access.mask = 0;
    if mask == 0 {
        warp.control.advance();
        return Effect::Plain;
    }
    let lane = mask.trailing_zeros() as usize;
    let constants = &warp.constants.0;
    read_addresses(instruction, &warp.registers, constants, &mut access.addresses);
    let base = if instruction.memory.space == Some(Space::Shared) { SHARED_WINDOW } else { 0 };
    let address = access.addresses[lane].wrapping_add(base);
    let value = match instruction.memory.wide[1] {
        true => u64::read(&warp.registers, constants, instruction.sources[1])[lane],
        false => u64::from(u32::read(&warp.registers, constants, instruction.sources[1])[lane]),
    };
    let changed = read(context.memory, &warp.registers, address).and_then(|mut map| {
        replace(&mut map, field, value);
        let mut values = LaneValues::default();
        for (lane, from) in map.chunks(PART).enumerate() {
            values.set(lane, value_of_bytes(from));
        }
        access.clone_from(&whole(AccessKind::Store, address));
        context.memory.store(access, &values)
    });
    if let Err(error) = changed {
        return problem(error.of_lane(lane));
    }
    finish(warp, mask, 1 << lane);
    Effect::Memory { deferred: false }
}

/// `tensormap.cp_fenceproxy`: the lanes copy a word each, from the place in shared memory that the second source tells to the address in device
/// memory that the first one does.
pub(in crate::interpreter) fn copy(
    instruction: &Instruction,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    mask: u32,
) -> Effect {
    (access.kind, access.space, access.bytes, access.mask) = (AccessKind::Store, Space::Global, 4, mask);
    if mask == 0 {
        warp.control.advance();
        return Effect::Memory { deferred: false };
    }
    let constants = &warp.constants.0;
    read_addresses(instruction, &warp.registers, constants, &mut access.addresses);
    let mut from = MemoryAccess { kind: AccessKind::Load, space: Space::Shared, ..access.clone() };
    from.addresses = if instruction.memory.wide[1] {
        u64::read(&warp.registers, constants, instruction.sources[1]).map(|address| {
            let within = address.wrapping_sub(SHARED_WINDOW);
            if within < WINDOW_BYTES { within } else { address }
        })
    } else {
        u32::read(&warp.registers, constants, instruction.sources[1]).map(u64::from)
    };
    for lane in 0..LANES {
        let word = 4 * lane as u64;
        access.addresses[lane] = access.addresses[lane].wrapping_add(word);
        from.addresses[lane] = from.addresses[lane].wrapping_add(word.wrapping_add(u64::from(instruction.immediate)));
    }
    let values = &mut context.values.accessed;
    let copied = context.memory.load(&from, values).and_then(|()| context.memory.store(access, values));
    if let Err(error) = copied {
        let lane = lanes(mask).next().unwrap_or(0);
        return problem(error.of_lane(lane));
    }
    finish(warp, mask, mask);
    Effect::Memory { deferred: false }
}
