//! Exchanges between lanes and predicates, and special registers.

use super::operands::{Operands, predicate_destination, predicate_source};
use super::{Lowered, NO_SUCH_OPERAND, Pending};
use crate::interpreter::bodies::*;
use crate::interpreter::collective::{Match, Reduce, Shuffle, Vote, reduction, shuffle, vote};
use crate::interpreter::integer::{LaneMask, Move};
use crate::interpreter::machine::logic::*;
use crate::interpreter::registers::{cluster, special};
use crate::operation::operand::{FIRST_PREDICATE, SINK_ROW, Source, TRUE_PREDICATE, uniform_predicate};
use crate::operation::{Kind, counter};
use crate::program::timing::{CountClass, LatencyClass, Pipe};
use crate::sass::{self, Aspect, Opcode};

impl Pending {
    pub(super) fn exchange(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        use Opcode as O;
        self.instruction.destinations[0] = operands.written(sass.destination(0));
        match sass.opcode() {
            O::Shfl => self.shuffle(sass, operands),
            O::Vote | O::Voteu => {
                self.condition(sass);
                self.instruction.predicate_destinations[0] = predicate_destination(sass.predicate(0));
                let what = match sass.text(Aspect::Mode) {
                    ".ALL" => vote::ALL,
                    ".ANY" => vote::ANY,
                    _ => vote::UNIFORM,
                };
                match self.instruction.destinations[0] {
                    SINK_ROW => self.run(functions::<Vote>(), what),
                    _ => self.run(functions::<VoteWithBallot>(), what),
                }
            }
            O::Match => {
                self.take(sass, operands, 1)?;
                let is_all = sass.text(Aspect::Mode) == ".ALL";
                if is_all {
                    self.instruction.predicate_destinations[0] = predicate_destination(sass.predicate(0));
                }
                let is_wide = sass.has(Aspect::Wide);
                let functions = if is_wide { functions::<MatchPairs>() } else { functions::<Match<false>>() };
                self.run(functions, u32::from(is_all))
            }
            O::Plop3 | O::Uplop3 => self.predicate_logic(sass, operands),
            O::P2r | O::R2p | O::Up2ur | O::Ur2up => self.all_predicates(sass, operands),
            O::B2r => {
                self.instruction.sources[0] = Source(operands.barrier_row);
                self.instruction.predicate_destinations[0] = predicate_destination(sass.predicate(0));
                self.run(functions::<BarrierResult>(), 0)
            }
            O::Elect => {
                self.condition(sass);
                self.instruction.predicate_destinations[0] = predicate_destination(sass.predicate(0));
                self.instruction.sources[0] = self.asked_lanes(sass, operands)?;
                self.run(functions::<ElectAmong>(), 0)
            }
            O::Redux => {
                self.take(sass, operands, 1)?;
                let is_signed = sass.has(Aspect::Type);
                let operation = match sass.text(Aspect::Operation) {
                    "" => reduction::AND,
                    ".OR" => reduction::OR,
                    ".XOR" => reduction::XOR,
                    ".SUM" => reduction::ADD,
                    ".MIN" if is_signed => reduction::MINIMUM_SIGNED,
                    ".MIN" => reduction::MINIMUM_UNSIGNED,
                    _ if is_signed => reduction::MAXIMUM_SIGNED,
                    _ => reduction::MAXIMUM_UNSIGNED,
                };
                self.run(functions::<Reduce>(), operation)
            }
            O::R2ur => {
                self.take(sass, operands, 1)?;
                let written = sass.predicate(0);
                self.instruction.predicate_destinations[0] = predicate_destination(written);
                // The lanes that differ are added to those of before, or to none.
                let before =
                    if sass.has(Aspect::Mode) { predicate_source(written) } else { (TRUE_PREDICATE, u32::MAX) };
                (self.instruction.predicate_sources[0], self.instruction.predicate_flips[0]) = before;
                self.run(functions::<FirstLane>(), 0)
            }
            _ => self.special_register(sass, operands),
        }
    }

    /// Predicates to a byte of a register, or from there.
    fn all_predicates(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        const FIRST: u8 = uniform_predicate(0);
        self.take(sass, operands, 2)?;
        // The byte is a part of the register that is read, or a modifier of the move that writes it.
        let byte = sass.source(0).map_or(0, |source| source.part).max(sass.value(Aspect::Byte));
        self.instruction.offset = 8 * byte as i64;
        let function = match sass.opcode() {
            Opcode::P2r => functions::<PredicatesToRegister<FIRST_PREDICATE>>(),
            Opcode::R2p => functions::<RegisterToPredicates<FIRST_PREDICATE>>(),
            Opcode::Up2ur => functions::<PredicatesToRegister<FIRST>>(),
            _ => functions::<RegisterToPredicates<FIRST>>(),
        };
        self.run(function, 0)
    }

    /// `SHFL`: the value, the lane or the distance, the segment.
    fn shuffle(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        self.take(sass, operands, 3)?;
        self.instruction.predicate_destinations[0] = predicate_destination(sass.predicate(0));
        let mode = match sass.text(Aspect::Mode) {
            ".IDX" => shuffle::INDEX,
            ".UP" => shuffle::UP,
            ".DOWN" => shuffle::DOWN,
            _ => shuffle::BUTTERFLY,
        };
        self.run(functions::<Shuffle>(), mode)
    }

    /// `PLOP3`: two functions of three predicates, or of the signs of three registers, or of some of both.
    fn predicate_logic(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        // The tables are the last of the sources.
        let signs = sass.sources().count().checked_sub(2).ok_or(NO_SUCH_OPERAND)?;
        let table =
            |number: usize| sass.source(signs + number).and_then(|table| table.immediate()).ok_or(NO_SUCH_OPERAND);
        let tables = table(0)? | table(1)? << 8;
        self.results(sass);
        self.take(sass, operands, signs)?;
        if signs == 3 {
            return self.run(functions::<SignLogic>(), tables);
        }
        for place in 0..2 {
            let (slot, flip) = predicate_source(sass.predicate_source(place));
            (self.instruction.predicate_sources[place], self.instruction.predicate_flips[place]) = (slot, flip);
        }
        if signs > 0 {
            let form = if signs == 2 { MixedLogic::TWO_SIGNS } else { 0 };
            return self.run(functions::<MixedLogic>(), tables | form);
        }
        let (slot, flip) = predicate_source(sass.predicate_source(2));
        self.instruction.sources[0] = Source(u16::from(slot));
        self.instruction.sources[1] = Source(u16::from(flip != 0));
        self.run(functions::<PredicateLogic3>(), tables)
    }

    fn special_register(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        let number = sass.special_register().ok_or(NO_SUCH_OPERAND)?;
        let is_wide = sass.opcode() == Opcode::Cs2r && sass.text(Aspect::Size) != ".32";
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
            // The rank of the CTA in its cluster.
            136 => self.run(functions::<ClusterSpecial>(), cluster::RANK as u32),
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
            // And the lower ones.
            48 => constant(self, operands.number(crate::execution::SHARED_WINDOW as u32)),
            52 => constant(self, operands.number(crate::execution::LOCAL_WINDOW as u32)),
            _ => Err("a special register that is not known".to_owned()),
        }
    }
}
