//! Exchanges between lanes and predicates, and special registers.

use super::operands::{Operands, predicate_destination, predicate_source, uniform_predicate};
use super::{Lowered, Pending};
use crate::interpreter::bodies::*;
use crate::interpreter::collective::{Match, Shuffle, Vote, shuffle, vote};
use crate::interpreter::integer::{LaneMask, Move};
use crate::interpreter::machine::logic::*;
use crate::interpreter::registers::special;
use crate::operation::operand::{FIRST_PREDICATE, SINK_PREDICATE, SINK_ROW, Source};
use crate::operation::{Kind, counter};
use crate::program::timing::{CountClass, LatencyClass, Pipe};
use crate::sass::{self, Opcode, Place, Word};

impl Pending {
    pub(super) fn exchange(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        use Opcode as O;
        let word = sass.word();
        let is_uniform = matches!(sass.opcode(), O::S2ur | O::R2ur | O::Voteu | O::Up2ur);
        self.instruction.destinations[0] = if is_uniform {
            operands.uniform_row(word.bits(16, 6) as u8)
        } else {
            operands.row(word.bits(16, 8) as u8)
        };
        match sass.opcode() {
            O::Shfl => self.shuffle(word, operands),
            O::Vote | O::Voteu => {
                let (slot, flip) = predicate_source(word, 87, false);
                (self.instruction.predicate_sources[0], self.instruction.predicate_flips[0]) = (slot, flip);
                self.instruction.predicate_destinations[0] = predicate_destination(word, 81, is_uniform);
                let what = [vote::ALL, vote::ANY, vote::UNIFORM][word.bits(72, 2) as usize % 3];
                match self.instruction.destinations[0] {
                    SINK_ROW => self.run(functions::<Vote>(), what),
                    _ => self.run(functions::<VoteWithBallot>(), what),
                }
            }
            O::Match => {
                self.instruction.sources[0] = operands.register(word.bits(24, 8) as u8);
                let is_all = !word.bit(79);
                if is_all {
                    self.instruction.predicate_destinations[0] = predicate_destination(word, 81, false);
                }
                let functions = if word.bit(73) { functions::<MatchPairs>() } else { functions::<Match<false>>() };
                self.run(functions, u32::from(is_all))
            }
            O::Plop3 if matches!(word.code(), 0x21f | 0xa1f | 0xc1f) => {
                self.instruction.destinations[0] = SINK_ROW;
                let second = Place::exchanged(word).ok_or("a form without this operand")?;
                let [first, third] = [24, 64].map(|low| operands.register(word.bits(low, 8) as u8));
                self.instruction.sources[..3].copy_from_slice(&[first, operands.at(word, second)?, third]);
                self.sign_logic(word, false)
            }
            O::Uplop3 if word.code() == 0x29f => {
                self.instruction.destinations[0] = SINK_ROW;
                let sources = [24, 32, 64].map(|low| operands.uniform(word.bits(low, 6) as u8));
                self.instruction.sources[..3].copy_from_slice(&sources);
                self.sign_logic(word, true)
            }
            O::Plop3 | O::Uplop3 => self.predicate_logic(word, sass.opcode() == O::Uplop3),
            O::P2r | O::R2p | O::Up2ur | O::Ur2up => self.all_predicates(sass.opcode(), word, operands),
            O::B2r => {
                self.instruction.sources[0] = Source(operands.barrier_row);
                self.instruction.predicate_destinations[0] = predicate_destination(word, 81, false);
                self.run(functions::<BarrierResult>(), 0)
            }
            O::R2ur => {
                if predicate_destination(word, 81, false) != SINK_PREDICATE {
                    return Err("a predicate that says whether lanes differ".to_owned());
                }
                self.instruction.sources[0] = operands.register(word.bits(24, 8) as u8);
                self.run(functions::<FirstLane>(), 0)
            }
            _ => self.special_register(sass, word, operands),
        }
    }

    /// Predicates to a byte of a register, or from there.
    fn all_predicates(&mut self, opcode: Opcode, word: Word, operands: &Operands) -> Lowered<()> {
        const FIRST: u8 = uniform_predicate(0);
        self.instruction.sources[0] = match opcode {
            Opcode::P2r | Opcode::R2p => operands.register(word.bits(24, 8) as u8),
            _ => operands.uniform(word.bits(24, 6) as u8),
        };
        self.instruction.offset = 8 * word.bits(76, 2) as i64;
        let function = match opcode {
            Opcode::P2r => functions::<PredicatesToRegister<FIRST_PREDICATE>>(),
            Opcode::R2p => functions::<RegisterToPredicates<FIRST_PREDICATE>>(),
            Opcode::Up2ur => functions::<PredicatesToRegister<FIRST>>(),
            _ => functions::<RegisterToPredicates<FIRST>>(),
        };
        if matches!(opcode, Opcode::R2p | Opcode::Ur2up) {
            self.instruction.destinations[0] = SINK_ROW;
        }
        self.run(function, word.bits(32, 32) as u32)
    }

    fn shuffle(&mut self, word: Word, operands: &mut Operands) -> Lowered<()> {
        let form = word.code() >> 9;
        let lane = match form {
            1 | 2 => operands.register(word.bits(32, 8) as u8),
            _ => operands.number(word.bits(53, 5) as u32),
        };
        let segment = match form {
            1 | 4 => operands.register(word.bits(64, 8) as u8),
            _ => operands.number(word.bits(40, 13) as u32),
        };
        self.instruction.sources[..3].copy_from_slice(&[operands.register(word.bits(24, 8) as u8), lane, segment]);
        self.instruction.predicate_destinations[0] = predicate_destination(word, 81, false);
        let mode = [shuffle::INDEX, shuffle::UP, shuffle::DOWN, shuffle::BUTTERFLY][word.bits(58, 2) as usize];
        self.run(functions::<Shuffle>(), mode)
    }

    /// Both functions of the signs of three registers.
    fn sign_logic(&mut self, word: Word, is_uniform: bool) -> Lowered<()> {
        self.instruction.predicate_destinations = [81, 84].map(|low| predicate_destination(word, low, is_uniform));
        self.run(functions::<SignLogic>(), word.bits(72, 8) as u32 | (word.bits(16, 8) as u32) << 8)
    }

    fn predicate_logic(&mut self, word: Word, is_uniform: bool) -> Lowered<()> {
        self.instruction.destinations[0] = SINK_ROW;
        for (place, low) in [87, 77].into_iter().enumerate() {
            let (slot, flip) = predicate_source(word, low, is_uniform);
            (self.instruction.predicate_sources[place], self.instruction.predicate_flips[place]) = (slot, flip);
        }
        let (slot, flip) = predicate_source(word, 68, is_uniform);
        let slot = if word.bit(67) { uniform_predicate(word.bits(68, 3) as u8) } else { slot };
        self.instruction.sources[0] = Source(u16::from(slot));
        self.instruction.sources[1] = Source(u16::from(flip != 0));
        self.instruction.predicate_destinations = [81, 84].map(|low| predicate_destination(word, low, is_uniform));
        let table = word.bits(64, 3) | word.bits(72, 5) << 3;
        self.run(functions::<PredicateLogic3>(), table as u32 | (word.bits(16, 8) as u32) << 8)
    }

    fn special_register(&mut self, sass: &sass::Instruction, word: Word, operands: &mut Operands) -> Lowered<()> {
        let number = word.bits(72, 8) as u8;
        let is_wide = sass.opcode() == Opcode::Cs2r && word.bit(80);
        let read = |pending: &mut Pending, which: u32| {
            pending.instruction.kind = Kind::Counter;
            pending.instruction.immediate = which;
            pending.instruction.memory.pairs = is_wide;
            Ok(())
        };
        // Some are read quickly.
        if sass.opcode() == Opcode::Cs2r {
            (self.cost.pipe, self.cost.latency, self.cost.count) =
                (Pipe::Int, LatencyClass::Integer, CountClass::Other);
        }
        let zero = operands.number(0);
        let constant = |pending: &mut Pending, source: Source| {
            pending.instruction.sources[0] = source;
            pending.run(functions::<Map<Move<u32>>>(), 0)
        };
        match number {
            255 if is_wide => {
                self.instruction.sources[0] = zero;
                self.run(functions::<crate::interpreter::machine::arithmetic::MapPairs<Move<u64>>>(), 0)
            }
            255 => constant(self, zero),
            0 => {
                self.instruction.sources[0] = operands.lane_numbers();
                self.run(functions::<Map<Move<u32>>>(), 0)
            }
            33..=35 => self.run(functions::<ThreadIndex>(), u32::from(number) - 33),
            37..=39 => self.run(functions::<UniformSpecial>(), u32::from(number) - 37 + special::CTA as u32),
            56..=60 => {
                self.instruction.sources[0] = operands.lane_numbers();
                // Equal, less, less or equal, greater, greater or equal; the operation has the last two the other way around.
                self.run(functions::<Map<LaneMask>>(), [0, 1, 2, 4, 3][usize::from(number) - 56])
            }
            // The virtual identity has the slot of the warp in bits 8 to 14, and the SM above.
            3 => self.run(functions::<VirtualIdentity>(), 0),
            67 => self.run(functions::<UniformSpecial>(), special::SM as u32),
            80 if is_wide => read(self, counter::CYCLE),
            80 => read(self, counter::CYCLE_LOW),
            81 => read(self, counter::CYCLE_HIGH),
            82 if is_wide => read(self, counter::TIMER),
            82 => read(self, counter::TIMER_LOW),
            83 => read(self, counter::TIMER_HIGH),
            // The lowest place of a stack that code for debuggers checks for: there is no limit before the end of local memory.
            55 => constant(self, zero),
            50 => self.run(functions::<UniformSpecial>(), special::TOTAL_SHARED as u32),
            // Windows of generic addresses: their upper words.
            46 => constant(self, operands.number((crate::execution::LOCAL_WINDOW >> 32) as u32)),
            47 => constant(self, operands.number((crate::execution::SHARED_WINDOW >> 32) as u32)),
            _ => Err("a special register that is not known".to_owned()),
        }
    }
}
