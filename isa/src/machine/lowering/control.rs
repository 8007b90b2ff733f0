//! Branches, calls, convergence, barriers, and instructions that only take time.

use super::operands::{Operands, predicate_destination, predicate_source, sign_of};
use super::{Lowered, NO_SUCH_OPERAND, Pending, code_address};
use crate::execution::BarrierKind;
use crate::interpreter::bodies::{ActiveMask, Map, functions};
use crate::interpreter::integer::Move;
use crate::interpreter::machine::arithmetic::MapPairs;
use crate::interpreter::machine::logic::PredicateLogic3;
use crate::machine::code::CODE_WINDOW;
use crate::operation::operand::{Source, TRUE_PREDICATE};
use crate::operation::{ConvergenceKind, Kind};
use crate::sass::{self, Aspect, INSTRUCTION_BYTES, Jump, Opcode};

/// The number of the warp's active lanes among the words that `BMOV` moves.
const ACTIVE: u8 = 26;

/// The table of a function of predicates that is true whatever they are.
const ALWAYS: u32 = 0xff;

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
                self.condition_of(sass);
                // The lanes of a mask, or all. Those that a collective operation brings together run on together, too.
                self.instruction.sources[3] = self.asked_lanes(sass, operands)?;
                self.instruction.kind = match sass.text(Aspect::Mode) {
                    ".EXCLUSIVE" | ".COLLECTIVE" => Kind::WarpBarrierApart,
                    _ => Kind::WarpBarrier,
                };
                Ok(())
            }
            O::Yield => {
                self.condition_of(sass);
                self.instruction.kind = kind(ConvergenceKind::Yield);
                Ok(())
            }
            // It asks for no further sleep.
            O::Nanosleep if sass.source(0).is_none() => Ok(()),
            // Until the barrier changes at which a wait has failed, so long at most: that wait has suspended the warp, and is repeated.
            O::Nanosleep if sass.text(Aspect::Mode) == ".SYNCS" => Ok(()),
            O::Nanosleep => {
                self.condition_of(sass);
                self.take(sass, operands, 1)?;
                self.instruction.kind = Kind::Sleep;
                Ok(())
            }
            O::Rpcmov => self.place_move(sass, operands),
            O::Lepc | O::Ulepc => {
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
            O::Usetmaxreg => {
                // A warp has all its registers for good: it always gets those that it asks for.
                self.instruction.predicate_destinations[0] = predicate_destination(sass.predicate(0));
                self.run(functions::<PredicateLogic3>(), ALWAYS)
            }
            // Nothing but time: NOP, DEPBAR, PMTRIG, the ends of collective operations; without an effect where nothing runs ahead of its
            // order: PREEXIT, ACQBULK, CGAERRBAR, FENCE; and USETSHMSZ, as a CTA keeps the shared memory that it began with.
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

    /// `RPCMOV`: half of the place of code that a thread keeps, or all of it. Own finding: ptxas keeps other words there where it has a use for
    /// two more. Nothing else is known to read or write it.
    fn place_move(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        let row = operands.place_row() + sass.value(Aspect::Half) as u16;
        self.instruction.destinations[0] = row;
        if let Some(destination) = sass.destination(0) {
            self.instruction.sources[0] = Source(row);
            self.instruction.destinations[0] = operands.written(Some(destination));
            return self.run(functions::<Map<Move<u32>>>(), 0);
        }
        let source = sass.source(0).ok_or(NO_SUCH_OPERAND)?;
        if sass.text(Aspect::Half) != "Rpc" {
            self.instruction.sources[0] = operands.read(source)?;
            return self.run(functions::<Map<Move<u32>>>(), 0);
        }
        if source.immediate().is_some() {
            return Err("a place of code that is a number".to_owned());
        }
        self.instruction.sources[0] = operands.read_wide(source)?;
        self.run(functions::<MapPairs<Move<u64>>>(), 0)
    }

    /// The lanes that an instruction asks about: those of its first source, or all. They may be those that it does not have.
    pub(super) fn asked_lanes(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<Source> {
        let Some(mask) = sass.source(0) else { return Ok(operands.number(u32::MAX)) };
        self.instruction.signs |= sign_of(mask, 0);
        operands.read(mask)
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
            // One of the uniform datapath, beside those of the lanes.
            let (slot, flip) = predicate_source(sass.predicate_source(1));
            if (self.instruction.guard, self.instruction.guard_flip) == (TRUE_PREDICATE, 0) {
                (self.instruction.guard, self.instruction.guard_flip) = (slot, flip);
            } else if self.instruction.predicate_sources[0] == TRUE_PREDICATE {
                (self.instruction.predicate_sources[0], self.instruction.predicate_flips[0]) = (slot, flip);
            } else {
                return Err("a uniform predicate beside two other conditions".to_owned());
            }
        } else if sass.opcode() == Opcode::Bra {
            self.instruction.sources[0] = self.asked_lanes(sass, operands)?;
        }
        self.instruction.kind = match (sass.opcode(), sass.text(Aspect::Mode)) {
            (Opcode::Bra, ".U") => Kind::Convergence(ConvergenceKind::BranchIfUnanimous),
            (Opcode::Bra, ".U.ANY") => Kind::Convergence(ConvergenceKind::BranchIfAny),
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
