//! From decoded words to a [`Program`]: operands become rows, opcodes become lane functions of the interpreter, each with its pipe and
//! latency class.
//!
//! | room | what it holds |
//! |---|---|
//! | this file | the whole of a program |
//! | `operands` | the places of operands: registers, constants, predicates |
//! | `cost` | pipes and latency classes |
//! | `register_banks` | operands that are read from one bank |
//! | the others | the opcodes, by their work |

mod asynchronous;
mod bulk;
mod control;
mod conversion;
mod cost;
mod exchange;
mod float;
mod half;
mod integer;
mod matrix_group;
mod memory;
#[cfg(test)]
mod modifiers;
pub(super) mod operands;
mod register_banks;
mod tensor;
mod texture;

use super::code::{CODE_WINDOW, MachineCode, system_call_address};
use super::program::MachineProgram;
use super::shared::{LoweredFunctions, SharedFunctions};
use super::system_calls::SYSTEM_CALLS;
use crate::execution::{Passed, SystemCall};
use crate::operation::*;
use crate::program::parts::SharedCode;
use crate::program::timing::{ConstantLine, CountedWait, Dependencies, IssueControl, LatencyClass, Timing};
use crate::program::{Calls, Program};
use crate::sass::{self, ControlWord, Opcode, SourceOperand, Word};
use operands::{Operands, predicate_destination, predicate_source, sign_of};
use std::sync::Arc;

/// Why machine code cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{function}, address {address:#x}: {what}")]
pub struct LoweringError {
    /// The function.
    pub function: String,
    /// The address in it.
    pub address: u64,
    /// The mistake.
    pub what: String,
}

/// The lowered opcode, or why it cannot run.
type Lowered<T> = Result<T, String>;

/// Why an instruction cannot be lowered that does not have what its opcode needs.
const NO_SUCH_OPERAND: &str = "a form without this operand";

/// An instruction while it is put together.
struct Pending {
    instruction: Instruction,
    cost: cost::Cost,
    /// Of a product of matrices, see [`IssueControl::products`].
    products: u8,
}

/// Lowers a kernel.
///
/// # Errors
///
/// Words that are no instruction, or that the simulator does not execute.
pub fn lower(code: &MachineCode) -> Result<Program, LoweringError> {
    lower_decoded(code, decode(code)?, None)
}

/// A word of a program that cannot run.
#[derive(Clone, Debug)]
pub struct RefusedWord {
    /// The function.
    pub function: String,
    /// The address in it.
    pub address: u64,
    /// The word.
    pub word: Word,
    /// The instruction; `None` where the word is no known one.
    pub instruction: Option<sass::Instruction>,
    /// Why it cannot run.
    pub why: String,
}

/// All words of a program that cannot run; [`lower`] tells the first alone.
pub fn refused_words(code: &MachineCode) -> Vec<RefusedWord> {
    let mut refused = Vec::new();
    let mut refuse = |index: usize, instruction: Option<sass::Instruction>, why: String| {
        let LoweringError { function, address, what } = failure(code, index, why);
        refused.push(RefusedWord { function, address, word: Word(code.words[index]), instruction, why: what });
    };
    let mut known = Vec::with_capacity(code.words.len());
    for (index, &word) in code.words.iter().enumerate() {
        match sass::decode(Word(word), (index * sass::INSTRUCTION_BYTES) as u64, code.architecture) {
            Ok(instruction) => known.push((index, instruction)),
            Err(_) => refuse(index, None, "no instruction".to_owned()),
        }
    }
    let instructions: Vec<sass::Instruction> = known.iter().map(|(_, instruction)| *instruction).collect();
    let mut operands = Operands::new(code, &instructions);
    for (index, instruction) in known {
        if let Err(why) = Pending::new(&instruction).lower(&instruction, &mut operands, code.words.len() as u32) {
            refuse(index, Some(instruction), why);
        }
    }
    refused
}

/// Words of a program, decoded.
pub(super) struct Decoded(Vec<sass::Instruction>);

impl Decoded {
    /// Code for debuggers has no stall cycles and no scoreboards. Elsewhere instructions that are never executed, or that issue by
    /// themselves, have no stall cycles.
    pub fn is_scheduled(&self) -> bool {
        self.0.iter().all(is_scheduled)
    }
}

/// Decodes the words of a program, or of a part of one.
pub(super) fn decode(code: &MachineCode) -> Result<Decoded, LoweringError> {
    let mut decoded = Vec::with_capacity(code.words.len());
    for (index, &word) in code.words.iter().enumerate() {
        let address = ((code.first_word as usize + index) * sass::INSTRUCTION_BYTES) as u64;
        let instruction = sass::decode(Word(word), address, code.architecture);
        decoded.push(instruction.map_err(|error| failure(code, index, format!("{} is no instruction", error.word)))?);
    }
    Ok(Decoded(decoded))
}

/// The error of a word.
fn failure(code: &MachineCode, index: usize, what: String) -> LoweringError {
    let index = code.first_word as usize + index;
    let after = code.functions.partition_point(|(first, _)| *first as usize <= index);
    let (first, name) = code.functions.get(after.saturating_sub(1)).map_or((0, &*code.name), |(f, n)| (*f, n));
    let address = (index - first as usize) as u64 * sass::INSTRUCTION_BYTES as u64;
    LoweringError { function: name.to_owned(), address, what }
}

/// Lowers a kernel whose words were decoded. Behind them may be functions that other kernels have, too.
pub(super) fn lower_decoded(
    code: &MachineCode,
    decoded: Decoded,
    shared: Option<&Arc<SharedFunctions>>,
) -> Result<Program, LoweringError> {
    let mut operands = match shared {
        Some(shared) => shared.lowered.operands.of_kernel(code),
        None => Operands::new(code, &decoded.0),
    };
    let Decoded(decoded) = decoded;
    let is_serial = shared.map_or_else(|| !decoded.iter().all(is_scheduled), |shared| shared.lowered.is_serial);
    let mut own = instructions(code, &decoded, &mut operands, is_serial)?;
    let system_entries = match shared {
        Some(shared) => shared.lowered.system_entries.clone(),
        None => add_system_calls(&mut own, 0, &mut operands, &code.system_calls),
    };
    let functions =
        if code.functions.is_empty() { vec![(0, code.name.as_str().into())] } else { code.functions.clone() };
    let behind = shared.map_or(&[][..], |shared| &shared.lowered.code.decoded);
    let zeroed_rows = operands.zeroed_rows(&decoded, behind);
    let launch_rows = operands.launch_words().collect();
    let (rows, predicates) = (operands.rows(), operands.predicates());
    check_constants(code, &operands)?;
    Ok(Program {
        name: code.name.as_str().into(),
        sources: Vec::new(),
        resources: code.resources.clone(),
        parameters: code.parameters.clone(),
        parameter_bytes: code.parameter_bytes,
        timings: own.timings,
        spans: Vec::new(),
        functions: Vec::new(),
        source_lines: None,
        instructions: own.instructions,
        shared: shared.map(|shared| Arc::clone(&shared.lowered.code)).unwrap_or_default(),
        calls: Calls { stack_bytes: u32::MAX, most_taken: code.open_stack_bytes, ..Calls::default() },
        constants: operands.constants.into(),
        shared_addresses: Vec::new(),
        machine: Some(Box::new(MachineProgram {
            instructions: decoded,
            shared: shared.cloned(),
            functions,
            sections: code.sections.clone(),
            launch_rows,
            architecture: code.architecture,
            parameter_base: code.parameter_base,
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

/// Lowers functions that several kernels have. `code` has the registers of the largest function and kernel of all; `is_serial` says
/// whether kernels are that have them are not scheduled.
pub(super) fn lower_functions(code: &MachineCode, is_serial: bool) -> Result<LoweredFunctions, LoweringError> {
    let decoded = decode(code)?;
    let is_serial = is_serial || !decoded.is_scheduled();
    let Decoded(decoded) = decoded;
    let mut operands = Operands::of_functions(code);
    let mut lowered = instructions(code, &decoded, &mut operands, is_serial)?;
    let system_entries = add_system_calls(&mut lowered, code.first_word, &mut operands, &code.system_calls);
    check_constants(code, &operands)?;
    let Lowering { instructions, timings } = lowered;
    Ok(LoweredFunctions {
        code: Arc::new(SharedCode { timings, instructions, decoded }),
        is_serial,
        indexed_bank_2: operands.has_rows_of_bank_2().then(|| code.bank_2.clone()),
        system_entries,
        operands,
    })
}

/// Checks that the constants can be named.
fn check_constants(code: &MachineCode, operands: &Operands) -> Result<(), LoweringError> {
    match operands.constants.len() {
        count if count < usize::from(Source::CONSTANT) => Ok(()),
        count => Err(failure(code, 0, format!("{count} constants, more than can be held"))),
    }
}

/// Instructions, with the timing that the SM needs.
struct Lowering {
    instructions: Vec<Instruction>,
    timings: Vec<Timing>,
}

/// Lowers decoded words.
fn instructions(
    code: &MachineCode,
    decoded: &[sass::Instruction],
    operands: &mut Operands,
    is_serial: bool,
) -> Result<Lowering, LoweringError> {
    let mut instructions = Vec::with_capacity(decoded.len() + 2 * SYSTEM_CALLS.len());
    let mut timings = Vec::with_capacity(instructions.capacity());
    let length = code.first_word + code.words.len() as u32 + code.words_behind;
    for (index, sass) in decoded.iter().enumerate() {
        let mut pending = Pending::new(sass);
        operands.constant_line = ConstantLine::default();
        let lowered = pending.lower(sass, operands, length);
        lowered.map_err(|what| failure(code, index, format!("{what}, in `{sass}`")))?;
        let mut timing = pending.timing(sass);
        timing.control.constant = operands.constant_line;
        let uses = sass.uses();
        if uses.predicate_writes != 0 && timing.latency == LatencyClass::Integer {
            // Predicates are late for guards and branches.
            timing.latency = LatencyClass::Predicate;
        }
        timing.dependencies = operands.dependencies(&uses);
        if let Some(range) = uses.uniform_writes.first() {
            (pending.instruction.uniform.row, pending.instruction.uniform.rows) =
                (operands.uniform_row(range.first), range.count);
        }
        pending.instruction.uniform.predicates = uses.uniform_predicate_writes;
        timings.push(timing);
        instructions.push(pending.instruction);
    }
    if is_serial {
        serialise(decoded, &mut timings);
    }
    register_banks::count_reads(decoded, &mut timings);
    Ok(Lowering { instructions, timings })
}

/// Adds the functions of the device runtime, where the program may call them; gives their addresses and first instructions. `first` is
/// the number of the first instruction that is there, `further` are functions that not every program has.
fn add_system_calls(
    code: &mut Lowering,
    first: u32,
    operands: &mut Operands,
    further: &[SystemCall],
) -> Vec<(u64, u32)> {
    let mut system_entries = Vec::new();
    if operands.registers < STACK_REGISTERS {
        return system_entries;
    }
    for call in SYSTEM_CALLS.into_iter().chain(further.iter().copied()) {
        system_entries.push((system_call_address(call), first + code.instructions.len() as u32));
        // The return waits for the call's result, which may come late.
        let call_control = IssueControl { stall: 1, write_barrier: SYSTEM_SCOREBOARD, ..IssueControl::default() };
        let return_control = IssueControl { stall: 1, wait_mask: SYSTEM_SCOREBOARD, ..IssueControl::default() };
        for (pending, control) in system_call(call, operands).into_iter().zip([call_control, return_control]) {
            code.timings.push(pending.timing_of(control));
            code.instructions.push(pending.instruction);
        }
    }
    system_entries
}

/// Whether an instruction says when the next one issues.
fn is_scheduled(instruction: &sass::Instruction) -> bool {
    instruction.control().stall != 0
        || matches!(instruction.opcode(), Opcode::Nop | Opcode::Errbar)
        || (instruction.opcode() == Opcode::Bra && instruction.target() == Some(instruction.address()))
}

/// Timing of code that is not scheduled: the next instruction issues when one has ended.
fn serialise(decoded: &[sass::Instruction], timings: &mut [Timing]) {
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
        Pending { instruction, cost, products: 0 }
    }

    /// A pending instruction of this opcode, with its guard.
    fn new(sass: &sass::Instruction) -> Pending {
        let mut pending = Pending::plain(cost::of(sass));
        let (guard, is_inverted) = sass.guard();
        let slot = if sass.encoding().has_uniform_guard() {
            operand::uniform_predicate(guard)
        } else {
            operands::predicate(guard)
        };
        pending.instruction.guard = slot;
        pending.instruction.guard_flip = if is_inverted { u32::MAX } else { 0 };
        pending
    }

    /// A lane function and its immediate.
    fn run(&mut self, functions: [LaneFunction; 2], immediate: u32) -> Lowered<()> {
        self.instruction.functions = functions;
        self.instruction.immediate = immediate;
        Ok(())
    }

    /// Takes the first sources of an instruction, with their signs.
    fn take(&mut self, sass: &sass::Instruction, operands: &mut Operands, count: usize) -> Lowered<()> {
        self.take_by(Operands::read, sass, operands, count)
    }

    /// The same, each read in this way.
    fn take_by(
        &mut self,
        read: fn(&mut Operands, SourceOperand) -> Lowered<Source>,
        sass: &sass::Instruction,
        operands: &mut Operands,
        count: usize,
    ) -> Lowered<()> {
        for number in 0..count {
            let source = sass.source(number).ok_or(NO_SUCH_OPERAND)?;
            self.instruction.sources[number] = read(operands, source)?;
            self.instruction.signs |= sign_of(source, number);
        }
        Ok(())
    }

    /// The first predicate that an instruction reads.
    fn condition(&mut self, sass: &sass::Instruction) {
        let (slot, flip) = predicate_source(sass.predicate_source(0));
        (self.instruction.predicate_sources[0], self.instruction.predicate_flips[0]) = (slot, flip);
    }

    /// The two predicates that an instruction writes.
    fn results(&mut self, sass: &sass::Instruction) {
        self.instruction.predicate_destinations = [0, 1].map(|number| predicate_destination(sass.predicate(number)));
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
            O::Hadd2 | O::Hfma2 | O::Hfma2Mma | O::Hmul2 | O::Hsetp2 | O::Hset2 | O::Hmnmx2 => {
                self.half(sass, operands)
            }
            O::F2fp => self.pack(sass, operands),
            O::F2ip => self.pack_integers(sass, operands),
            O::I2f | O::I2fp | O::F2i | O::F2f | O::Frnd | O::I2i => self.conversion(sass, operands),
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
            | O::Redux
            | O::Elect
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
            | O::Cctll
            | O::Ldsm
            | O::Stsm
            | O::Redg
            | O::Qspc => self.memory(sass, operands),
            O::Ldgsts | O::Ldgdepbar | O::Arrives | O::Syncs | O::Stas | O::Redas => self.asynchronous(sass, operands),
            O::Ublkcp
            | O::Ublkred
            | O::Ublkpf
            | O::Utmaldg
            | O::Utmastg
            | O::Utmaredg
            | O::Utmapf
            | O::Utmacctl
            | O::Utmacmdflush => self.bulk(sass, operands),
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
            | O::Ulepc
            | O::Rpcmov
            | O::Bpt
            | O::Depbar
            | O::Bar
            | O::Pmtrig
            | O::Preexit
            | O::Acqbulk
            | O::Cgaerrbar
            | O::UcgabarArv
            | O::UcgabarWait
            | O::Fence
            | O::Usetmaxreg
            | O::Usetshmsz
            | O::Endcollective => self.control(sass, operands, length),
            O::Tex | O::Tld | O::Tld4 | O::Txd | O::Txq | O::Suld | O::Sust | O::Sured => self.texture(sass, operands),
            O::HmmaStep | O::Hmma | O::Imma | O::Bmma | O::Dmma | O::Qmma | O::Movm => self.tensor(sass, operands),
            O::Hgmma | O::Igmma | O::Bgmma | O::Qgmma => self.matrix_group(sass, operands),
            O::Warpgroup => self.group_of_warps(sass),
            _ => self.integer(sass, operands),
        }
    }

    /// The timing that the SM needs.
    fn timing(&self, sass: &sass::Instruction) -> Timing {
        let control = sass.control();
        // A group of copies out of shared memory holds its scoreboard until they are done.
        let ends_group = sass.opcode() == Opcode::Utmacmdflush;
        let bit = |barrier: Option<u8>| barrier.map_or(0, |number| 1 << number);
        let mut wait_mask = control.wait_mask;
        let mut counted_wait = CountedWait::default();
        if sass.opcode() == Opcode::Depbar {
            match sass.counted_wait() {
                Some((scoreboard, most)) if most > 0 && scoreboard < ControlWord::SCOREBOARDS => {
                    counted_wait = CountedWait::until(scoreboard, most);
                }
                Some((scoreboard, _)) => wait_mask |= 1 << scoreboard,
                None => {}
            }
            wait_mask |= sass.further_waits();
        }
        // The code behind it counts on more than the zero that it has for a stall.
        let stall =
            if sass.opcode() == Opcode::Errbar { control.stall.max(ERROR_BARRIER_STALL) } else { control.stall };
        // Where the scheduler is told to switch, the warp does not issue in the next cycle, even if no other one does.
        let stall = if stall == 1 && !control.stays { 2 } else { stall };
        self.timing_of(IssueControl {
            stall,
            wait_mask: wait_mask & 0x3f,
            counted_wait,
            write_barrier: bit(control.write_barrier) | if ends_group { bit(control.read_barrier) } else { 0 },
            read_barrier: if ends_group { 0 } else { bit(control.read_barrier) },
            products: self.products,
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
