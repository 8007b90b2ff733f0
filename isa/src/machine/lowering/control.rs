//! Branches, calls, convergence, barriers, and instructions that only take time.

use super::operands::{Operands, predicate_source};
use super::{Lowered, Pending, code_address};
use crate::execution::BarrierKind;
use crate::interpreter::bodies::{ActiveMask, functions};
use crate::interpreter::integer::Move;
use crate::interpreter::machine::arithmetic::MapPairs;
use crate::machine::code::CODE_WINDOW;
use crate::operation::operand::{Source, TRUE_PREDICATE};
use crate::operation::{ConvergenceKind, Kind};
use crate::sass::{self, INSTRUCTION_BYTES, Opcode, Word};

/// The number of the warp's active lanes among the words that `BMOV` moves.
const ACTIVE: u64 = 26;

impl Pending {
    pub(super) fn control(&mut self, sass: &sass::Instruction, operands: &mut Operands, length: u32) -> Lowered<()> {
        use Opcode as O;
        let word = sass.word();
        let kind = |kind: ConvergenceKind| Kind::Convergence(kind);
        match sass.opcode() {
            O::Bra | O::Brx | O::Jmx | O::Brxu | O::Jmxu | O::Call | O::Ret => {
                self.condition_of(word)?;
                self.jump(sass, word, operands, length)
            }
            O::Exit => {
                self.condition_of(word)?;
                self.instruction.kind = Kind::Exit;
                Ok(())
            }
            O::Bssy | O::Bsync | O::Break => {
                self.condition_of(word)?;
                self.instruction.immediate = word.bits(16, 4) as u32;
                self.instruction.kind = kind(match sass.opcode() {
                    O::Bssy => ConvergenceKind::Begin,
                    O::Bsync => ConvergenceKind::Meet,
                    _ => ConvergenceKind::Leave,
                });
                Ok(())
            }
            O::Bmov => self.move_barrier(word, operands),
            O::Warpsync => {
                self.only_condition_of(word)?;
                self.instruction.sources[3] = match word.code() {
                    0x948 => operands.number(word.bits(32, 32) as u32),
                    _ => operands.register(word.bits(32, 8) as u8),
                };
                self.instruction.kind = Kind::WarpBarrier;
                Ok(())
            }
            O::Yield => {
                self.condition_of(word)?;
                self.instruction.kind = kind(ConvergenceKind::Yield);
                Ok(())
            }
            O::Nanosleep => {
                self.only_condition_of(word)?;
                self.instruction.sources[0] = match word.code() {
                    0x95d => operands.number(word.bits(32, 32) as u32),
                    _ => operands.register(word.bits(32, 8) as u8),
                };
                self.instruction.kind = Kind::Sleep;
                Ok(())
            }
            O::Lepc => {
                let index = sass.address() / INSTRUCTION_BYTES as u64;
                self.instruction.sources[0] = operands.wide_number(code_address(index));
                self.instruction.destinations[0] = operands.row(word.bits(16, 8) as u8);
                self.run(functions::<MapPairs<Move<u64>>>(), 0)
            }
            O::Bpt => {
                // Traps and breakpoints without a debugger end the kernel.
                if matches!(word.bits(84, 3), 3 | 4) {
                    self.instruction.kind = Kind::Trap;
                }
                Ok(())
            }
            O::Bar => self.barrier(word, operands),
            // Nothing but time: NOP, DEPBAR, PMTRIG.
            _ => Ok(()),
        }
    }

    /// Control flow may have a condition beside its guard.
    fn condition_of(&mut self, word: Word) -> Lowered<()> {
        let (slot, flip) = predicate_source(word, 87, false);
        if (slot, flip) == (TRUE_PREDICATE, 0) {
            return Ok(());
        }
        if (self.instruction.guard, self.instruction.guard_flip) == (TRUE_PREDICATE, 0) {
            (self.instruction.guard, self.instruction.guard_flip) = (slot, flip);
        } else {
            (self.instruction.predicate_sources[0], self.instruction.predicate_flips[0]) = (slot, flip);
        }
        Ok(())
    }

    /// The same of instructions that look at their guard alone.
    fn only_condition_of(&mut self, word: Word) -> Lowered<()> {
        self.condition_of(word)?;
        match self.instruction.predicate_sources[0] {
            TRUE_PREDICATE => Ok(()),
            _ => Err("a condition beside a guard".to_owned()),
        }
    }

    fn jump(&mut self, sass: &sass::Instruction, word: Word, operands: &mut Operands, length: u32) -> Lowered<()> {
        use Opcode as O;
        let next = sass.address() / INSTRUCTION_BYTES as u64 + 1;
        let relative = code_address(next).wrapping_add((word.signed(34, 48) << 2) as u64);
        let absolute = (word.signed(34, 48) << 2) as u64;
        let register = || operands.register(word.bits(24, 8) as u8);
        let (base, added) = match (sass.opcode(), word.code()) {
            (O::Bra, _) | (O::Call, 0x944) => (None, relative),
            (O::Call, 0x943) => (None, word.bits(34, 48) << 2),
            (O::Brx, _) | (O::Call, 0x344) => (Some(register()), relative),
            (O::Brxu, _) => (Some(operands.uniform(word.bits(24, 6) as u8)), relative),
            (O::Jmxu, _) => (Some(operands.uniform(word.bits(24, 6) as u8)), absolute),
            (O::Jmx, _) | (O::Call, _) => (Some(register()), absolute),
            _ if word.bit(85) => (Some(register()), absolute),
            _ => (Some(register()), relative),
        };
        if let Some(base) = base {
            self.instruction.sources[0] = base;
            self.instruction.offset = added as i64;
            self.instruction.kind = Kind::Convergence(ConvergenceKind::Jump);
            return Ok(());
        }
        let place = added.wrapping_sub(CODE_WINDOW);
        let index = place / INSTRUCTION_BYTES as u64;
        if place % INSTRUCTION_BYTES as u64 != 0 || index >= u64::from(length) {
            if word.code() == 0x943 {
                // A function of the device runtime, or one that is not there, which is a fault when it is called.
                self.instruction.sources[0] = operands.wide_number(added);
                self.instruction.kind = Kind::Convergence(ConvergenceKind::Jump);
                return Ok(());
            }
            return Err("a branch out of the code".to_owned());
        }
        self.instruction.target = index as u32;
        self.instruction.kind = match (sass.opcode(), word.bits(32, 2)) {
            (O::Bra, 1) => Kind::Convergence(ConvergenceKind::BranchIfUnanimous),
            (O::Bra, 2) => Kind::Convergence(ConvergenceKind::BranchIfDiverged),
            (O::Bra, 3) => Kind::Convergence(ConvergenceKind::BranchIfConverged),
            _ => Kind::Branch,
        };
        Ok(())
    }

    /// `BMOV`
    fn move_barrier(&mut self, word: Word, operands: &mut Operands) -> Lowered<()> {
        let number = word.bits(24, 5);
        self.instruction.immediate = number as u32;
        let is_barrier = number < 16;
        match word.code() {
            0x355 => {
                self.instruction.destinations[0] = operands.row(word.bits(16, 8) as u8);
                if number == ACTIVE {
                    return self.run(functions::<ActiveMask>(), 0);
                }
                self.instruction.kind = Kind::Convergence(match word.bit(84) {
                    true => ConvergenceKind::ReadAndClear,
                    false => ConvergenceKind::Read,
                });
            }
            0x356 => {
                self.instruction.sources[0] = operands.register(word.bits(32, 8) as u8);
                self.instruction.kind = Kind::Convergence(ConvergenceKind::Write);
            }
            _ => return Err("a part of a warp's state that is not known".to_owned()),
        }
        if is_barrier { Ok(()) } else { Err("a part of a warp's state that is not known".to_owned()) }
    }

    /// `BAR`
    fn barrier(&mut self, word: Word, operands: &mut Operands) -> Lowered<()> {
        let register = operands.register(word.bits(32, 8) as u8);
        let number = operands.number(word.bits(54, 4) as u32);
        let threads = operands.number(word.bits(42, 12) as u32);
        let (barrier, threads) = match word.code() {
            0xb1d => (number, threads),
            0x51d => (register, threads),
            0x91d => (number, register),
            // Both in one register, which are taken apart at run time.
            _ => {
                self.instruction.memory.pairs = true;
                (register, Source(Source::CONSTANT))
            }
        };
        self.instruction.sources[0] = barrier;
        self.instruction.sources[1] = threads;
        self.instruction.kind = Kind::Barrier(match (word.bits(77, 3), word.bits(74, 2)) {
            (0, _) => BarrierKind::Sync,
            (1, _) => BarrierKind::Arrive,
            (_, 0) => BarrierKind::ReducePopulation,
            (_, 1) => BarrierKind::ReduceAnd,
            _ => BarrierKind::ReduceOr,
        });
        if word.bits(77, 3) == 2 {
            self.instruction.destinations[0] = operands.barrier_row;
            let (slot, flip) = predicate_source(word, 87, false);
            (self.instruction.predicate_sources[0], self.instruction.predicate_flips[0]) = (slot, flip);
        }
        Ok(())
    }
}
