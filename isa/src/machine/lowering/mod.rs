//! From decoded words to a [`Program`]: operands to rows, opcodes to what the interpreter does, each with its pipe and latency class.
//!
//! | room | what it holds |
//! |---|---|
//! | this file | the whole of a program |
//! | `operands` | where operands are: registers, constants, predicates |
//! | `cost` | pipes and latency classes |
//! | `register_banks` | operands that are read from one bank |
//! | the others | the opcodes, by what they do |

mod control;
mod conversion;
mod cost;
mod exchange;
mod float;
mod half;
mod integer;
mod memory;
mod operands;
mod register_banks;
mod tensor;
mod texture;

use super::program::{LaunchWord, MachineProgram};
use super::{CODE_WINDOW, MachineCode, system_call_address};
use crate::execution::{Passed, SystemCall};
use crate::operation::*;
use crate::program::{Calls, ConstantLine, Dependencies, IssueControl, LatencyClass, Program, Timing};
use crate::sass::{self, Opcode, Word};
use operands::Operands;
use std::sync::Arc;

/// Why machine code cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{function}, address {address:#x}: {what}")]
pub struct LoweringError {
    /// The function.
    pub function: String,
    /// The address in it.
    pub address: u64,
    /// What is wrong.
    pub what: String,
}

/// What an opcode becomes, or why it cannot run.
type Lowered<T> = Result<T, String>;

/// An instruction while it is put together.
struct Pending {
    instruction: Instruction,
    cost: cost::Cost,
}

/// Lowers a kernel.
///
/// # Errors
///
/// Words that are no instruction, or that the simulator does not execute.
pub fn lower(code: &MachineCode) -> Result<Program, LoweringError> {
    let failure = |index: usize, what: String| {
        let after = code.functions.partition_point(|(first, _)| *first as usize <= index);
        let (first, name) = code.functions.get(after.saturating_sub(1)).map_or((0, &*code.name), |(f, n)| (*f, n));
        let address = (index - first as usize) as u64 * sass::INSTRUCTION_BYTES as u64;
        LoweringError { function: name.to_owned(), address, what }
    };
    let mut decoded = Vec::with_capacity(code.words.len());
    for (index, &word) in code.words.iter().enumerate() {
        let address = (index * sass::INSTRUCTION_BYTES) as u64;
        let instruction = sass::decode(Word(word), address, code.architecture);
        decoded.push(instruction.map_err(|error| failure(index, format!("{} is no instruction", error.word)))?);
    }
    let mut operands = Operands::new(code, &decoded);
    let mut instructions = Vec::with_capacity(decoded.len() + 2 * SYSTEM_CALLS.len());
    let mut timings = Vec::with_capacity(instructions.capacity());
    for (index, sass) in decoded.iter().enumerate() {
        let mut pending = Pending::new(sass);
        operands.constant_line = ConstantLine::default();
        let lowered = pending.lower(sass, &mut operands, code.words.len() as u32);
        lowered.map_err(|what| failure(index, format!("{what}, in `{sass}`")))?;
        let mut timing = pending.timing(sass);
        timing.control.constant = operands.constant_line;
        let uses = sass.uses();
        if uses.predicate_writes != 0 && timing.latency == LatencyClass::Integer {
            // Predicates are late for guards and branches.
            timing.latency = LatencyClass::Predicate;
        }
        timing.dependencies = operands.dependencies(&uses);
        timings.push(timing);
        instructions.push(pending.instruction);
    }
    serialise(&decoded, &mut timings);
    register_banks::count_conflicts(&decoded, &mut timings);
    let mut system_entries = Vec::new();
    if operands.registers >= STACK_REGISTERS {
        for call in SYSTEM_CALLS.into_iter().chain(code.system_calls.iter().copied()) {
            system_entries.push((system_call_address(call), instructions.len() as u32));
            // The return waits for the call's result, which may come late.
            let call_control = IssueControl { stall: 1, write_barrier: SYSTEM_SCOREBOARD, ..IssueControl::default() };
            let return_control = IssueControl { stall: 1, wait_mask: SYSTEM_SCOREBOARD, ..IssueControl::default() };
            for (pending, control) in system_call(call, &mut operands).into_iter().zip([call_control, return_control]) {
                timings.push(pending.timing_of(control));
                instructions.push(pending.instruction);
            }
        }
    }
    let functions =
        if code.functions.is_empty() { vec![(0, code.name.as_str().into())] } else { code.functions.clone() };
    let zeroed_rows = operands.zeroed_rows(&decoded);
    let launch_rows = operands.launch_words().collect();
    let (rows, predicates) = (operands.rows(), operands.predicates());
    if operands.constants.len() >= usize::from(Source::CONSTANT) {
        return Err(failure(0, format!("{} constants, more than can be held", operands.constants.len())));
    }
    Ok(Program {
        name: code.name.as_str().into(),
        sources: Vec::new(),
        resources: code.resources.clone(),
        parameters: code.parameters.clone(),
        parameter_bytes: code.parameter_bytes,
        timings,
        spans: Vec::new(),
        functions: Vec::new(),
        source_lines: None,
        instructions,
        calls: Calls { stack_bytes: u32::MAX, most_taken: code.open_stack_bytes, ..Calls::default() },
        constants: operands.constants.into(),
        machine: Some(Box::new(MachineProgram {
            instructions: decoded,
            functions,
            sections: code.sections.clone(),
            launch_rows,
            bank_3: code.bank_3,
            fixed_slots: code.fixed_slots.clone(),
            system_entries,
            images: code.images.clone(),
            source_lines: Arc::default(),
        })),
        further_dependencies: Vec::new(),
        register_rows: rows,
        zeroed_rows,
        predicate_slots: predicates,
    })
}

/// Code for debuggers has no stall cycles and no scoreboards: the next instruction issues when one has ended. Elsewhere instructions
/// that are never executed, or that issue by themselves, have no stall cycles.
fn serialise(decoded: &[sass::Instruction], timings: &mut [Timing]) {
    let is_scheduled = |instruction: &sass::Instruction| {
        instruction.control().stall != 0
            || matches!(instruction.opcode(), Opcode::Nop | Opcode::Errbar)
            || (instruction.opcode() == Opcode::Bra && instruction.target() == Some(instruction.address()))
    };
    if decoded.iter().all(is_scheduled) {
        return;
    }
    for (instruction, timing) in decoded.iter().zip(timings) {
        timing.control.wait_mask |= SERIAL_SCOREBOARD;
        if !is_scheduled(instruction) {
            timing.control.write_barrier |= SERIAL_SCOREBOARD;
            timing.control.read_barrier |= SERIAL_SCOREBOARD;
        }
    }
}

/// The scoreboard that instructions hold which are not scheduled.
const SERIAL_SCOREBOARD: u8 = 1 << 6;
/// The functions of the device runtime that any program with a stack has; others are in those that name them.
pub(super) const SYSTEM_CALLS: [SystemCall; 4] =
    [SystemCall::Print, SystemCall::Allocate, SystemCall::Free, SystemCall::Assert];
/// Registers that a program which calls functions has: arguments from R4 on, the return address in R20 and R21.
const STACK_REGISTERS: u16 = 22;

/// Cycles that `ERRBAR` takes before the warp goes on: an estimate. Code is seen to use a result of 4 cycles that was 2 cycles before it.
const ERROR_BARRIER_STALL: u8 = 5;
/// The scoreboard that calls of the device runtime take.
const SYSTEM_SCOREBOARD: u8 = 1 << 5;

/// A function of the device runtime: the call, and the return to the caller.
fn system_call(call: SystemCall, operands: &mut Operands) -> [Pending; 2] {
    let mut run = Pending::plain(cost::CALL);
    run.instruction.kind = Kind::System(call);
    run.instruction.memory.pairs = true;
    let mut register = 4;
    let mut sources = Vec::new();
    for parameter in call.parameters() {
        match parameter {
            Passed::Word => sources.push(register),
            // A parameter of 64 bits begins at an even register.
            Passed::Wide => {
                register += register % 2;
                sources.push(register);
            }
            Passed::Extent => sources.extend([register, register + 1, register + 2]),
        }
        register += match parameter {
            Passed::Word => 1,
            Passed::Wide => 2,
            Passed::Extent => 3,
        };
    }
    let sources: Vec<Source> = sources.into_iter().map(|register| operands.register(register)).collect();
    let first = sources.len().min(run.instruction.sources.len());
    run.instruction.sources[..first].copy_from_slice(&sources[..first]);
    if sources.len() > first {
        run.instruction.operand_list = operands.list(sources[first..].iter().map(|source| source.0).collect());
    }
    run.instruction.memory.wide[0] = true;
    match call.result() {
        Some(_) => run.instruction.destinations[0] = operands.row(4),
        None => run.instruction.memory.is_reduction = true,
    }
    let mut back = Pending::plain(cost::BRANCH);
    back.instruction.kind = Kind::Convergence(ConvergenceKind::Jump);
    back.instruction.sources[0] = operands.register(20);
    [run, back]
}

impl Pending {
    /// One that does nothing.
    fn plain(cost: cost::Cost) -> Pending {
        let instruction = Instruction::nothing();
        Pending { instruction, cost }
    }

    /// Of this opcode, with its guard.
    fn new(sass: &sass::Instruction) -> Pending {
        let mut pending = Pending::plain(cost::of(sass));
        let (guard, is_inverted) = sass.guard();
        let slot = if sass.encoding().has_uniform_guard() {
            operands::uniform_predicate(guard)
        } else {
            operands::predicate(guard)
        };
        pending.instruction.guard = slot;
        pending.instruction.guard_flip = if is_inverted { u32::MAX } else { 0 };
        pending
    }

    fn lower(&mut self, sass: &sass::Instruction, operands: &mut Operands, length: u32) -> Lowered<()> {
        use Opcode as O;
        match sass.opcode() {
            O::Ffma
            | O::Fadd
            | O::Fmul
            | O::Fsetp
            | O::Fsel
            | O::Fmnmx
            | O::Fchk
            | O::Fset
            | O::Mufu
            | O::Dfma
            | O::Dadd
            | O::Dmul
            | O::Dsetp => self.float(sass, operands),
            O::Hadd2 | O::Hfma2 | O::Hmul2 | O::Hsetp2 | O::Hset2 => self.half(sass, operands),
            O::I2f | O::F2i | O::F2f | O::Frnd | O::I2i => self.conversion(sass, operands),
            O::Shfl
            | O::Vote
            | O::Voteu
            | O::Match
            | O::Plop3
            | O::Uplop3
            | O::P2r
            | O::R2p
            | O::Up2ur
            | O::Ur2up
            | O::S2r
            | O::S2ur
            | O::Cs2r
            | O::R2ur
            | O::B2r => self.exchange(sass, operands),
            O::Ldg
            | O::Stg
            | O::Ld
            | O::St
            | O::Lds
            | O::Sts
            | O::Ldl
            | O::Stl
            | O::Ldc
            | O::Uldc
            | O::Atomg
            | O::Atom
            | O::Red
            | O::Atoms
            | O::Membar
            | O::Errbar
            | O::Cctl
            | O::Ldsm
            | O::Qspc => self.memory(sass, operands),
            O::Bra
            | O::Brx
            | O::Brxu
            | O::Jmxu
            | O::Jmx
            | O::Call
            | O::Ret
            | O::Exit
            | O::Bssy
            | O::Bsync
            | O::Break
            | O::Bmov
            | O::Warpsync
            | O::Yield
            | O::Nanosleep
            | O::Nop
            | O::Lepc
            | O::Bpt
            | O::Depbar
            | O::Bar
            | O::Pmtrig => self.control(sass, operands, length),
            O::Tex | O::Tld | O::Tld4 | O::Txd | O::Txq | O::Suld | O::Sust | O::Sured => self.texture(sass, operands),
            O::Hmma | O::Imma | O::Bmma | O::Movm => self.tensor(sass, operands),
            _ => self.integer(sass, operands),
        }
    }

    /// What the SM needs to time it.
    fn timing(&self, sass: &sass::Instruction) -> Timing {
        let control = sass.control();
        let bit = |barrier: Option<u8>| barrier.map_or(0, |number| 1 << number);
        let mut wait_mask = control.wait_mask;
        if sass.opcode() == Opcode::Depbar {
            wait_mask |= 1 << sass.word().bits(44, 3) | sass.word().bits(32, 6) as u8;
        }
        // The code behind it counts on more than the zero that it has for a stall.
        let stall =
            if sass.opcode() == Opcode::Errbar { control.stall.max(ERROR_BARRIER_STALL) } else { control.stall };
        // Where the scheduler is told to switch, the warp does not issue in the next cycle, even if no other one does.
        let stall = if stall == 1 && !control.stays { 2 } else { stall };
        self.timing_of(IssueControl {
            stall,
            wait_mask: wait_mask & 0x3f,
            write_barrier: bit(control.write_barrier),
            read_barrier: bit(control.read_barrier),
            ..IssueControl::default()
        })
    }

    fn timing_of(&self, control: IssueControl) -> Timing {
        let cost::Cost { pipe, latency, count } = self.cost;
        let is_plain = self.instruction.kind == Kind::Lanes && latency != LatencyClass::Exchange;
        Timing { pipe, latency, count, passes: 1, is_plain, control, dependencies: Dependencies::default() }
    }
}

/// The address of an instruction of a program.
fn code_address(index: u64) -> u64 {
    CODE_WINDOW + index * sass::INSTRUCTION_BYTES as u64
}
