//! Branches, calls, convergence, barriers, and instructions that only take time.

use super::operands::{Operands, predicate_source};
use super::{Lowered, NO_SUCH_OPERAND, Pending, code_address};
use crate::execution::BarrierKind;
use crate::interpreter::bodies::{ActiveMask, functions};
use crate::interpreter::integer::Move;
use crate::interpreter::machine::arithmetic::MapPairs;
use crate::machine::code::CODE_WINDOW;
use crate::operation::operand::{Source, TRUE_PREDICATE};
use crate::operation::{ConvergenceKind, Kind};
use crate::sass::{self, Aspect, INSTRUCTION_BYTES, Jump, Location, Opcode, RegisterOperand};

/// The number of the warp's active lanes among the words that `BMOV` moves.
const ACTIVE: u8 = 26;

impl Pending {
    pub(super) fn control(&mut self, sass: &sass::Instruction, operands: &mut Operands, length: u32) -> Lowered<()> {
        use Opcode as O;
        let kind = |kind: ConvergenceKind| Kind::Convergence(kind);
        match sass.opcode() {
            O::Bra | O::Brx | O::Jmx | O::Brxu | O::Jmxu | O::Call | O::Ret => {
                self.condition_of(sass);
                self.jump(sass, operands, length)
            }
            O::Exit => {
                self.condition_of(sass);
                self.instruction.kind = Kind::Exit;
                Ok(())
            }
            O::Bssy | O::Bsync | O::Break => {
                self.condition_of(sass);
                self.instruction.immediate = u32::from(sass.convergence_barrier().ok_or(NO_SUCH_OPERAND)?);
                self.instruction.kind = kind(match sass.opcode() {
                    O::Bssy => ConvergenceKind::Begin,
                    O::Bsync => ConvergenceKind::Meet,
                    _ => ConvergenceKind::Leave,
                });
                Ok(())
            }
            O::Bmov => self.move_barrier(sass, operands),
            O::Warpsync => {
                self.only_condition_of(sass)?;
                // The lanes of a mask, or all. Those that a collective operation brings together run on together, too.
                self.instruction.sources[3] = asked_lanes(sass, operands)?;
                self.instruction.kind = Kind::WarpBarrier;
                Ok(())
            }
            O::Yield => {
                self.condition_of(sass);
                self.instruction.kind = kind(ConvergenceKind::Yield);
                Ok(())
            }
            O::Nanosleep => {
                self.only_condition_of(sass)?;
                self.take(sass, operands, 1)?;
                self.instruction.kind = Kind::Sleep;
                Ok(())
            }
            O::Lepc => {
                // Its own place, or the one that it names.
                let place = sass.target().unwrap_or(sass.address());
                self.instruction.sources[0] = operands.wide_number(code_address(place / INSTRUCTION_BYTES as u64));
                self.instruction.destinations[0] = operands.written(sass.destination(0));
                self.run(functions::<MapPairs<Move<u64>>>(), 0)
            }
            O::Bpt => {
                // Traps and breakpoints without a debugger end the kernel.
                if matches!(sass.text(Aspect::Mode), ".TRAP" | ".INT") {
                    self.instruction.kind = Kind::Trap;
                }
                Ok(())
            }
            O::Bar => self.barrier(sass, operands),
            O::UcgabarArv => {
                self.instruction.kind = Kind::ClusterArrive;
                Ok(())
            }
            O::UcgabarWait => {
                self.instruction.kind = Kind::ClusterWait;
                Ok(())
            }
            // Nothing but time: NOP, DEPBAR, PMTRIG, the ends of collective operations; and without an effect where nothing runs ahead of
            // its order: PREEXIT, ACQBULK, CGAERRBAR, FENCE.
            _ => Ok(()),
        }
    }

    /// Control flow may have a condition beside its guard.
    fn condition_of(&mut self, sass: &sass::Instruction) {
        let (slot, flip) = predicate_source(sass.predicate_source(0));
        if (slot, flip) == (TRUE_PREDICATE, 0) {
            return;
        }
        if (self.instruction.guard, self.instruction.guard_flip) == (TRUE_PREDICATE, 0) {
            (self.instruction.guard, self.instruction.guard_flip) = (slot, flip);
        } else {
            (self.instruction.predicate_sources[0], self.instruction.predicate_flips[0]) = (slot, flip);
        }
    }

    /// The same of instructions that look at their guard alone.
    fn only_condition_of(&mut self, sass: &sass::Instruction) -> Lowered<()> {
        self.condition_of(sass);
        match self.instruction.predicate_sources[0] {
            TRUE_PREDICATE => Ok(()),
            _ => Err("a condition beside a guard".to_owned()),
        }
    }

    fn jump(&mut self, sass: &sass::Instruction, operands: &mut Operands, length: u32) -> Lowered<()> {
        let Jump { base, added, is_absolute } = sass.jump().ok_or(NO_SUCH_OPERAND)?;
        // Addresses in a section are counted from its beginning, addresses of code from the beginning of its window.
        let added = if is_absolute { added } else { added.wrapping_add(CODE_WINDOW) };
        if let Some(base) = base {
            self.instruction.sources[0] = operands.read_register(base);
            self.instruction.offset = added as i64;
            self.instruction.kind = Kind::Convergence(ConvergenceKind::Jump);
            return Ok(());
        }
        let place = added.wrapping_sub(CODE_WINDOW);
        let index = place / INSTRUCTION_BYTES as u64;
        if place % INSTRUCTION_BYTES as u64 != 0 || index >= u64::from(length) {
            if is_absolute {
                // A function of the device runtime, or one that is not there, which is a fault when it is called.
                self.instruction.sources[0] = operands.wide_number(added);
                self.instruction.kind = Kind::Convergence(ConvergenceKind::Jump);
                return Ok(());
            }
            return Err("a branch out of the code".to_owned());
        }
        self.instruction.target = index as u32;
        if sass.opcode() == Opcode::Bra && sass.predicate_source(1).is_some() {
            // One of the uniform datapath, in place of one of the lanes.
            let further = self.instruction.predicate_sources[0] != TRUE_PREDICATE
                || (self.instruction.guard, self.instruction.guard_flip) != (TRUE_PREDICATE, 0);
            if further {
                return Err("a uniform predicate beside another condition".to_owned());
            }
            (self.instruction.guard, self.instruction.guard_flip) = predicate_source(sass.predicate_source(1));
            self.instruction.kind = Kind::Branch;
            return Ok(());
        }
        if sass.opcode() == Opcode::Bra {
            self.instruction.sources[0] = asked_lanes(sass, operands)?;
        }
        self.instruction.kind = match (sass.opcode(), sass.text(Aspect::Mode)) {
            (Opcode::Bra, ".U") => Kind::Convergence(ConvergenceKind::BranchIfUnanimous),
            (Opcode::Bra, ".DIV") => Kind::Convergence(ConvergenceKind::BranchIfDiverged),
            (Opcode::Bra, ".CONV") => Kind::Convergence(ConvergenceKind::BranchIfConverged),
            _ => Kind::Branch,
        };
        Ok(())
    }

    /// `BMOV`
    fn move_barrier(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        const UNKNOWN: &str = "a part of a warp's state that is not known";
        let number = sass.warp_state().ok_or(NO_SUCH_OPERAND)?;
        self.instruction.immediate = u32::from(number);
        if sass.convergence_barrier().is_some() {
            return Err(UNKNOWN.to_owned());
        }
        match sass.destination(0) {
            None => {
                self.take(sass, operands, 1)?;
                self.instruction.kind = Kind::Convergence(ConvergenceKind::Write);
            }
            destination => {
                self.instruction.destinations[0] = operands.written(destination);
                if number == ACTIVE {
                    return self.run(functions::<ActiveMask>(), 0);
                }
                self.instruction.kind = Kind::Convergence(match sass.has(Aspect::Clear) {
                    true => ConvergenceKind::ReadAndClear,
                    false => ConvergenceKind::Read,
                });
            }
        }
        let is_barrier = number < 16;
        if is_barrier { Ok(()) } else { Err(UNKNOWN.to_owned()) }
    }

    /// `BAR`: the barrier and its threads.
    fn barrier(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        self.take(sass, operands, 2)?;
        let registers = [0, 1].map(|number| sass.source(number).and_then(|source| source.register()));
        if registers[0].is_some() && registers[0] == registers[1] {
            // Both are in one register, which is taken apart at run time.
            self.instruction.memory.pairs = true;
            self.instruction.sources[1] = Source(Source::CONSTANT);
        }
        self.instruction.kind = Kind::Barrier(match sass.text(Aspect::Mode) {
            ".SYNC" => BarrierKind::Sync,
            ".ARV" => BarrierKind::Arrive,
            ".RED.POPC" => BarrierKind::ReducePopulation,
            ".RED.AND" => BarrierKind::ReduceAnd,
            _ => BarrierKind::ReduceOr,
        });
        if sass.predicate_source(0).is_some() {
            self.instruction.destinations[0] = operands.barrier_row;
            self.condition(sass);
        }
        Ok(())
    }
}

/// The lanes that an instruction asks about: those of its first source, or all.
pub(super) fn asked_lanes(sass: &sass::Instruction, operands: &mut Operands) -> Lowered<Source> {
    match sass.source(0) {
        None => Ok(operands.number(u32::MAX)),
        Some(mask) if !mask.is_negated => operands.read(mask),
        Some(mask) if mask.location == Location::Register(RegisterOperand::Uniform(sass::ZERO_UNIFORM_REGISTER)) => {
            Ok(operands.number(u32::MAX))
        }
        Some(_) => Err("the lanes that a uniform register does not have".to_owned()),
    }
}
