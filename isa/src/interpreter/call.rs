//! Calls, returns, branches by table, and calls of the device runtime.

use super::access::memory::problem;
use super::bodies::{Body, write_element};
use super::registers::{Lane, Registers};
use crate::execution::{AtomicCompletion, Effect, MOST_ARGUMENTS, StepContext, SystemCall};
use crate::lanes::{LANES, lanes};
use crate::operation::Instruction;
use crate::operation::operand::{Row, Source};
use crate::program::Program;
use crate::warp::WarpState;
use balar_protocol::cuda::FaultCause;

/// An address in a frame: the first source is the stack pointer, `offset` the bytes from there.
pub(crate) struct FrameAddress;

impl Body for FrameAddress {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let mut values = [0; LANES];
        let base = u32::read(registers, constants, instruction.sources[0]);
        for lane in 0..LANES {
            values[lane] = u64::from(base[lane].wrapping_add(instruction.offset as u32));
        }
        write_element(registers, instruction.destinations[0], instruction.memory.wide[0], &values, mask);
    }
}

/// A predicate as 0 or 1.
pub(crate) struct PredicateToValue;

impl Body for PredicateToValue {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, _: &[Row], mask: u32) {
        let truth = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        let mut values = [0; LANES];
        for (lane, value) in values.iter_mut().enumerate() {
            *value = (truth >> lane) & 1;
        }
        u32::write(registers, instruction.destinations[0], &values, mask);
    }
}

/// `brx.idx`
pub(super) fn branch_table(program: &Program, instruction: &Instruction, warp: &mut WarpState, mask: u32) -> Effect {
    let indices = u32::read(&warp.registers, &warp.constants.0, instruction.sources[0]);
    let first = instruction.immediate as usize;
    let table = &program.calls.tables[first..first + instruction.offset as usize];
    let mut targets = [0; LANES];
    for lane in lanes(mask) {
        let Some(&target) = table.get(indices[lane] as usize) else {
            let cause = format!("entry {} of {} branch targets", indices[lane], table.len());
            return Effect::Fault { lane: lane as u8, cause: FaultCause::InvalidTarget(cause) };
        };
        targets[lane] = target;
    }
    Effect::Branch { divergent: warp.control.branch_many(&targets, instruction.reconvergence, mask) }
}

/// A call of the function at the instruction's target.
pub(super) fn call(program: &Program, instruction: &Instruction, warp: &mut WarpState, mask: u32) -> Effect {
    enter(program, instruction, warp, &[instruction.target; LANES], mask)
}

/// A call of the functions at the addresses that a register holds.
pub(super) fn call_through(program: &Program, instruction: &Instruction, warp: &mut WarpState, mask: u32) -> Effect {
    let short = instruction.memory.short_address;
    let addresses = if short {
        u32::read(&warp.registers, &warp.constants.0, instruction.sources[0]).map(u64::from)
    } else {
        u64::read(&warp.registers, &warp.constants.0, instruction.sources[0])
    };
    let mut targets = [0; LANES];
    let mut rest = mask;
    while rest != 0 {
        let lane = rest.trailing_zeros() as usize;
        let address = addresses[lane];
        let is_it = |entry: &&(u64, u32)| entry.0 == address || (short && entry.0 as u32 == address as u32);
        let Some(&(_, entry)) = program.calls.entries.iter().find(is_it) else {
            let cause = format!("no function that this call may reach is at address {address:#x}");
            return Effect::Fault { lane: lane as u8, cause: FaultCause::InvalidTarget(cause) };
        };
        for other in lane..LANES {
            if (rest >> other) & 1 != 0 && addresses[other] == address {
                targets[other] = entry;
                rest &= !(1 << other);
            }
        }
    }
    enter(program, instruction, warp, &targets, mask)
}

fn enter(
    program: &Program,
    instruction: &Instruction,
    warp: &mut WarpState,
    targets: &[u32; LANES],
    mask: u32,
) -> Effect {
    let row = program.calls.stack_pointer;
    let mut pointers = u32::read(&warp.registers, &[], Source(row));
    for (lane, pointer) in pointers.iter_mut().enumerate() {
        *pointer = pointer.wrapping_add(instruction.immediate);
        if (mask >> lane) & 1 != 0 && *pointer > program.calls.stack_bytes {
            let cause = FaultCause::StackOverflow { bytes: program.calls.stack_bytes };
            return Effect::Fault { lane: lane as u8, cause };
        }
    }
    u32::write(&mut warp.registers, row, &pointers, mask);
    Effect::Branch { divergent: warp.control.call(targets, mask) }
}

/// `ret` of a function.
pub(super) fn leave(program: &Program, warp: &mut WarpState, mask: u32) -> Effect {
    if let Some(pc) = warp.control.return_address() {
        let call = program.instruction(pc - 1);
        let row = program.calls.stack_pointer;
        let mut pointers = u32::read(&warp.registers, &[], Source(row));
        for pointer in &mut pointers {
            *pointer = pointer.wrapping_sub(call.immediate);
        }
        u32::write(&mut warp.registers, row, &pointers, mask);
    }
    Effect::Branch { divergent: warp.control.leave_function(mask) }
}

/// A call of the device runtime.
pub(super) fn system(
    instruction: &Instruction,
    warp: &mut WarpState,
    context: &mut StepContext,
    call: SystemCall,
    mask: u32,
) -> Effect {
    if mask == 0 {
        warp.control.advance();
        return Effect::Plain;
    }
    let mut arguments = [[0; LANES]; MOST_ARGUMENTS];
    let form = &instruction.memory;
    for (place, (argument, is_wide)) in arguments.iter_mut().zip(call.arguments()).enumerate() {
        let (registers, constants) = (&warp.registers, &warp.constants.0);
        let source = match instruction.sources.get(place) {
            Some(source) => *source,
            None => {
                let list = &constants[usize::from(instruction.operand_list)].0;
                Source(list[place - instruction.sources.len()] as u16)
            }
        };
        *argument = match (form.pairs, is_wide) {
            (false, _) => u64::read(registers, constants, source),
            (true, true) => u64::read_pair(registers, constants, source),
            (true, false) => u32::read(registers, constants, source).map(u64::from),
        };
    }
    let deferred = match context.memory.system_call(call, mask, &arguments, &mut context.values.accessed) {
        Ok(completion) => completion == AtomicCompletion::Deferred,
        Err(error) => return problem(error),
    };
    if !deferred && !form.is_reduction && form.pairs {
        u64::write_pair(&mut warp.registers, instruction.destinations[0], &context.values.accessed.low, mask);
    } else if !deferred && !form.is_reduction {
        write_element(
            &mut warp.registers,
            instruction.destinations[0],
            form.wide[0],
            &context.values.accessed.low,
            mask,
        );
    }
    warp.control.synchronising_step();
    warp.control.advance();
    Effect::System { call, mask, deferred }
}

/// `alloca`: memory beyond the frames, so that the addresses of these stay fixed.
pub(super) fn stack_allocate(program: &Program, instruction: &Instruction, warp: &mut WarpState, mask: u32) -> Effect {
    let calls = &program.calls;
    let sizes = read_word(instruction, warp);
    let mut taken = u32::read(&warp.registers, &[], Source(calls.taken));
    let mut addresses = [0; LANES];
    for lane in lanes(mask) {
        let start = taken[lane].next_multiple_of(instruction.immediate.max(1));
        let end = u64::from(start) + sizes[lane];
        if end > u64::from(calls.most_taken) {
            return Effect::Fault { lane: lane as u8, cause: FaultCause::StackOverflow { bytes: calls.most_taken } };
        }
        addresses[lane] = u64::from(calls.first_taken + start);
        taken[lane] = end as u32;
    }
    u32::write(&mut warp.registers, calls.taken, &taken, mask);
    write_element(&mut warp.registers, instruction.destinations[0], instruction.memory.wide[0], &addresses, mask);
    warp.control.advance();
    Effect::Plain
}

/// `stacksave`
pub(super) fn stack_save(program: &Program, instruction: &Instruction, warp: &mut WarpState, mask: u32) -> Effect {
    let calls = &program.calls;
    let taken = u32::read(&warp.registers, &[], Source(calls.taken));
    let mut ends = [0; LANES];
    for lane in 0..LANES {
        ends[lane] = u64::from(calls.first_taken) + u64::from(taken[lane]);
    }
    write_element(&mut warp.registers, instruction.destinations[0], instruction.memory.wide[0], &ends, mask);
    warp.control.advance();
    Effect::Plain
}

/// `stackrestore`
pub(super) fn stack_restore(program: &Program, instruction: &Instruction, warp: &mut WarpState, mask: u32) -> Effect {
    let calls = &program.calls;
    let ends = read_word(instruction, warp);
    let taken = ends.map(|end| (end as u32).wrapping_sub(calls.first_taken).min(calls.most_taken));
    u32::write(&mut warp.registers, calls.taken, &taken, mask);
    warp.control.advance();
    Effect::Plain
}

/// The first source, in the width of the instruction's form.
fn read_word(instruction: &Instruction, warp: &WarpState) -> [u64; LANES] {
    if instruction.memory.wide[0] {
        u64::read(&warp.registers, &warp.constants.0, instruction.sources[0])
    } else {
        u32::read(&warp.registers, &warp.constants.0, instruction.sources[0]).map(u64::from)
    }
}
