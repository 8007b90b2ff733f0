//! Branches and barriers.

use super::timing::{cost, is_of_cta};
use super::{Decoded, Decoder, Slot};
use crate::control_flow::Flow;
use crate::execution::BarrierKind;
use crate::interpreter::bodies::{ActiveMask, functions};
use crate::lanes::LANES;
use crate::operation::Kind;
use crate::program::timing::FENCE;
use crate::ptx::ast::{Instruction, OperandKind, Statement};
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::types::{ScalarType as T, StateSpace};

/// Barriers of a CTA (PTX ISA, `barrier`: "sixteen barriers numbered 0..15").
const BARRIERS: u64 = 16;

impl Decoder<'_> {
    /// Control and exchange; false where the form is not supported.
    pub(super) fn control(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let kind = match instruction.opcode {
            O::Bra => {
                let OperandKind::Label(label) = self.operand(instruction, 0)?.kind else { return Ok(false) };
                self.start(instruction.span, cost(instruction));
                let last = self.last();
                last.label = Some(label.0);
                last.flow = Flow::Branch { target: 0, conditional: false };
                last.instruction.kind = Kind::Branch;
                return Ok(true);
            }
            O::Brx => return self.branch_by_table(instruction),
            O::Ret => {
                self.leave(instruction.span, cost(instruction));
                return Ok(true);
            }
            O::Exit => {
                self.start(instruction.span, cost(instruction));
                self.last().flow = Flow::Exit { conditional: false };
                Kind::Exit
            }
            O::Trap | O::Brkpt => {
                self.start(instruction.span, cost(instruction));
                Kind::Trap
            }
            O::Membar | O::Fence => {
                self.start(instruction.span, cost(instruction));
                if is_of_cta(instruction) { Kind::Lanes } else { Kind::Fence }
            }
            O::Pmevent => {
                self.start(instruction.span, cost(instruction));
                Kind::Lanes
            }
            O::Nanosleep => {
                let time = self.source(self.operand(instruction, 0)?, T::U32)?;
                self.start(instruction.span, cost(instruction));
                self.last().sources[0] = time;
                Kind::Sleep
            }
            O::Activemask => {
                self.emit(instruction, functions::<ActiveMask>(), 0, T::B32, &[])?;
                return Ok(true);
            }
            O::Bar | O::Barrier => return self.barrier(instruction),
            _ => return self.collective(instruction),
        };
        self.last().instruction.kind = kind;
        Ok(true)
    }

    /// `brx.idx`: the table may stand anywhere in the function.
    fn branch_by_table(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let OperandKind::Label(label) = self.operand(instruction, 1)?.kind else { return Ok(false) };
        let Some(Statement::BranchTargets { targets, .. }) = self.label_tables.get(&label) else {
            return Err(self.bad(self.operand(instruction, 1)?, "this label names no `.branchtargets`"));
        };
        let index = self.source(self.operand(instruction, 0)?, T::U32)?;
        self.start(instruction.span, cost(instruction));
        let table = self.tables.len() as u32;
        self.tables.push(targets.iter().map(|label| label.0).collect());
        let last = self.last();
        last.sources[0] = index;
        last.flow = Flow::Table { table, conditional: false };
        last.instruction.kind = Kind::BranchTable;
        Ok(true)
    }

    /// `barrier.cluster`: an arrival that releases waits for what the thread has written before.
    fn cluster_barrier(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let arrives = instruction.has(M::Arrive);
        if arrives == instruction.has(M::Wait) || !instruction.operands.is_empty() {
            return Ok(false);
        }
        if arrives && !instruction.has(M::Relaxed) {
            self.release(instruction);
        }
        self.start(instruction.span, cost(instruction));
        self.last().instruction.kind = if arrives { Kind::ClusterArrive } else { Kind::ClusterWait };
        Ok(true)
    }

    /// Whatever the thread has written is acknowledged before the instruction that follows.
    pub(super) fn release(&mut self, instruction: &Instruction) {
        let (pipe, latency, count) = FENCE;
        self.start(instruction.span, (pipe, latency, count, 1));
        let last = self.last();
        last.instruction.kind = Kind::Fence;
        last.pinned = true;
    }

    /// As [`Self::release`], before an access that releases what was written to all of a cluster, and may be one to the shared memory of
    /// another CTA.
    pub(super) fn release_to_cluster(&mut self, instruction: &Instruction) {
        let releases = [M::Release, M::AcquireRelease, M::SequentiallyConsistent];
        let is_remote = instruction.has(M::SharedCluster)
            || instruction.has(M::Cluster) && instruction.state_space().is_none_or(|space| space != StateSpace::Global);
        if is_remote && releases.into_iter().any(|release| instruction.has(release)) {
            self.release(instruction);
        }
    }

    fn barrier(&mut self, instruction: &Instruction) -> Decoded<bool> {
        if instruction.has(M::Cluster) {
            return self.cluster_barrier(instruction);
        }
        if instruction.has(M::Warp) {
            let members = self.source(self.operand(instruction, 0)?, T::B32)?;
            self.start(instruction.span, cost(instruction));
            self.last().sources[3] = members;
            self.last().instruction.kind = Kind::WarpBarrier;
            return Ok(true);
        }
        let reduces = instruction.has(M::Red);
        self.check_barrier(instruction, usize::from(reduces))?;
        let kind = match () {
            () if !reduces && instruction.has(M::Arrive) => BarrierKind::Arrive,
            () if !reduces => BarrierKind::Sync,
            () if instruction.has(M::Popc) => BarrierKind::ReducePopulation,
            () if instruction.has(M::And) => BarrierKind::ReduceAnd,
            () => BarrierKind::ReduceOr,
        };
        let first = usize::from(reduces);
        let barrier = self.source(self.operand(instruction, first)?, T::U32)?;
        let operands = instruction.operands.len() - first - usize::from(reduces);
        let threads = if operands > 1 {
            self.source(self.operand(instruction, first + 1)?, T::U32)?
        } else {
            self.constant(0, false)
        };
        let predicate = if reduces {
            self.predicate(self.operand(instruction, instruction.operands.len() - 1)?)?
        } else {
            (Slot::None, 0)
        };
        let destination = if reduces { self.destination(self.operand(instruction, 0)?)? } else { Slot::None };
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        last.sources[0] = barrier;
        last.sources[1] = threads;
        last.predicate_sources[0] = predicate.0;
        last.instruction.predicate_flips[0] = predicate.1;
        if kind == BarrierKind::ReducePopulation {
            last.destinations[0] = destination;
        } else {
            last.predicate_destinations[0] = destination;
        }
        last.instruction.kind = Kind::Barrier(kind);
        Ok(true)
    }

    /// Refuses the literals that no barrier has: numbers above 15, and threads that are no whole warps.
    fn check_barrier(&self, instruction: &Instruction, first: usize) -> Decoded<()> {
        let literal = |index: usize| match instruction.operands.get(index) {
            Some(operand) => match operand.kind {
                OperandKind::Integer(value) => Some((operand, value)),
                _ => None,
            },
            None => None,
        };
        match (literal(first), literal(first + 1)) {
            (Some((operand, number)), _) if number >= BARRIERS => {
                Err(self.bad(operand, &format!("there is no barrier {number}, they are 0 to {}", BARRIERS - 1)))
            }
            (_, Some((operand, threads))) if threads % LANES as u64 != 0 => {
                let message = format!(
                    "{threads} threads take part in the barrier, expected a multiple of the warp size, {LANES}"
                );
                Err(self.bad(operand, &message))
            }
            _ => Ok(()),
        }
    }
}
