//! What is checked where hazards are (`--check-hazards`): registers of machine code, member masks, barriers that wait for warps which have
//! ended, and accesses to shared memory that copies and products beside the cores are still at work on.
//!
//! Each check tells whether all is well; where it is not, the kernel of the warp has failed.

use super::bulk_queue::UnderWay;
use super::profile::Profile;
use super::progress::{Sm, State, Step};
use super::warps::cta::Completion;
use super::warps::hazards::Times;
use super::warps::unwaited::TooEarly;
use crate::engine::Outbox;
use balar_isa::cluster::{OFFSET_BITS, rank_of};
use balar_isa::execution::{AccessKind, BulkCopy, BulkEnd, ProductReads, Space};
use balar_isa::interpreter::member_mask_hazard;
use balar_isa::program::{LatencyClass, lanes};
use balar_isa::sass::Opcode;
use balar_protocol::cluster::RemoteBulk;
use balar_protocol::cuda::FaultCause;

/// The class of a result that another instruction reads as an operand: predicates are late for guards and branches alone.
fn operand_class(class: LatencyClass) -> LatencyClass {
    if class == LatencyClass::Predicate { LatencyClass::Integer } else { class }
}

/// What is done to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Read,
    Write,
}

/// Somebody who is still at work on a place in shared memory.
#[derive(Clone, Debug)]
struct Busy {
    offset: u32,
    /// What the other one still does.
    does: Does,
    /// The instruction that began it; a bulk copy is named as such.
    pc: Option<u32>,
}

impl Busy {
    fn with(does: Does, TooEarly { place, pc }: TooEarly) -> Busy {
        Busy { offset: place, does, pc: Some(pc) }
    }
}

impl<P: Profile> Sm<P> {
    /// An instruction of machine code has run in a cycle. False where it came too early, and its kernel has
    /// failed.
    #[cold]
    pub(super) fn has_no_hazard(&mut self, warp: usize, pc: u32, cycle: u64, out: &mut Outbox) -> bool {
        let operands = self.operands_read(warp, cycle);
        let front_end = &self.specification.front_end;
        let context = self.state.warps.context(warp);
        let lanes = context.state().executed_mask();
        let program = context.program.clone();
        let Some((program, instruction)) =
            program.as_ref().and_then(|program| Some((program, program.machine_instruction(pc)?)))
        else {
            return true;
        };
        let timing = program.timing(pc);
        let is_known = program.has_known_latencies();
        let after = |latency| if is_known { cycle + front_end.latency(latency) } else { cycle };
        // That an atomic's place is in device memory is known when its operands have been read; where that is all it tells, it holds no
        // scoreboard for results.
        let claims = instruction.opcode() == Opcode::Atom && timing.control.write_barrier == 0;
        let times = Times {
            issue: cycle,
            result: match timing.is_plain {
                true => Some(after(operand_class(timing.latency))),
                false => claims.then_some(operands),
            },
            // Who waits for a scoreboard waits for the result.
            guard: if timing.control.write_barrier == 0 { after(LatencyClass::Predicate) } else { cycle },
            operands: timing.pipe.is_memory().then_some(operands),
        };
        let of_product = context.unwaited.register_of_product(instruction);
        let what = match (context.hazards.issue(instruction, pc, lanes, &times), of_product) {
            (Err(hazard), _) => format!("{} {}", hazard.what, program.describe(hazard.pc)),
            (Ok(()), Some(([does, other], early))) => {
                let whose = program.describe(early.pc);
                format!(
                    "it {does} R{} before a wait for the product by which it is still to be {other}, {whose}",
                    early.place
                )
            }
            (Ok(()), None) => return true,
        };
        let cause = FaultCause::Hazard(what);
        self.fail(warp, (pc, lanes.trailing_zeros().min(31) as u8), cause, cycle, out);
        false
    }

    /// The warp's next instruction is about to run. False where its lanes name member masks that contradict each
    /// other, and its kernel has failed.
    #[cold]
    pub(super) fn has_no_mask_hazard(&mut self, warp: usize, cycle: u64, out: &mut Outbox) -> bool {
        let (program, state, _) = self.state.warps.context(warp).parts();
        let Some((lane, what)) = member_mask_hazard(program, state) else { return true };
        let pc = state.pc();
        self.fail(warp, (pc, lane), FaultCause::Hazard(what), cycle, out);
        false
    }

    /// An instruction of the warp has completed a barrier. False where warps that the barrier's count asks for
    /// have ended before they arrived, so that hardware would wait for ever; its kernel has failed.
    #[cold]
    pub(super) fn has_all_warps(&mut self, warp: usize, pc: u32, completion: Completion, step: &mut Step) -> bool {
        let Completion { barrier, missing_warps, .. } = completion;
        if missing_warps == 0 {
            return true;
        }
        let what =
            format!("barrier {barrier} waits for {missing_warps} more warps by its count, and no such warp is left");
        let lanes = self.state.warps.context(warp).state().executed_mask();
        let lane = lanes.trailing_zeros().min(31) as u8;
        self.fail(warp, (pc, lane), FaultCause::Hazard(what), step.now.cycle, step.out);
        false
    }

    /// The warp's last step has accessed memory: a copy that is under way may not write what it accessed in shared memory, and neither a copy
    /// nor a product read what it wrote there.
    #[cold]
    pub(super) fn has_no_copy_hazard(&mut self, warp: usize, pc: u32, step: &mut Step) -> bool {
        let (_, _, cta) = self.state.warps.all_of(warp);
        let rank = cta.cluster.rank();
        let access = &self.execution.access;
        if access.space != Space::Shared {
            return true;
        }
        let does = if access.kind == AccessKind::Load { Does::Read } else { Does::Write };
        let number = self.state.warps.cta_of(warp);
        // What a lane accesses in another CTA's memory, nobody of this CTA is at work on.
        let own = lanes(access.mask).filter(|&lane| rank_of(access.addresses[lane]) == rank);
        let busy = own
            .map(|lane| (lane as u8, (access.addresses[lane] & OFFSET_BITS) as u32))
            .find_map(|(lane, offset)| Some((lane, self.busy(number, (offset, access.bytes.into()), does)?)));
        self.fails_if_busy(warp, pc, ("an instruction", does), busy, step)
    }

    /// The warp's last step has begun copies of words, which write shared memory.
    #[cold]
    pub(super) fn has_no_hazard_of_copies(&mut self, warp: usize, pc: u32, step: &mut Step) -> bool {
        let (access, places) = (&self.execution.access, &self.execution.values.operands.low);
        let number = self.state.warps.cta_of(warp);
        let range = |lane: usize| ((places[lane] & OFFSET_BITS) as u32, u32::from(access.bytes));
        let busy = lanes(access.mask).find_map(|lane| Some((lane as u8, self.busy(number, range(lane), Does::Write)?)));
        let context = self.state.warps.context(warp);
        let words = context.unwaited.begin_copy(pc, &context.copies);
        for (offset, bytes) in lanes(access.mask).map(range) {
            words.insert(offset, bytes);
        }
        self.fails_if_busy(warp, pc, ("a copy", Does::Write), busy, step)
    }

    /// The warp's last step begins a bulk copy.
    #[cold]
    pub(super) fn has_no_hazard_of_bulk_copy(
        &mut self,
        warp: usize,
        pc: u32,
        copy: &BulkCopy,
        step: &mut Step,
    ) -> bool {
        let does = match copy.end {
            BulkEnd::Barrier { .. } => Does::Write,
            BulkEnd::Group => Does::Read,
            BulkEnd::Nothing => return true,
        };
        let number = self.state.warps.cta_of(warp);
        let busy = self.busy(number, (copy.shared, copy.bytes), does).map(|busy| (0, busy));
        self.fails_if_busy(warp, pc, ("a bulk copy", does), busy, step)
    }

    /// The warp's last step begins a product of matrices that reads shared memory.
    #[cold]
    pub(super) fn has_no_hazard_of_product(
        &mut self,
        warp: usize,
        pc: u32,
        reads: &ProductReads,
        step: &mut Step,
    ) -> bool {
        let number = self.state.warps.cta_of(warp);
        let mut busy = None;
        reads.for_each_chunk(|offset| {
            if busy.is_none() {
                busy = self.busy(number, (offset, ProductReads::CHUNK), Does::Read).map(|busy| (0, busy));
            }
        });
        let context = self.state.warps.context(warp);
        let instruction = context.program.as_ref().and_then(|program| program.machine_instruction(pc));
        context.unwaited.begin_product(pc, reads, instruction);
        self.fails_if_busy(warp, pc, ("a product of matrices", Does::Read), busy, step)
    }

    /// A bulk copy of another CTA of the cluster has come: what it wrote too early, if it did.
    #[cold]
    pub(super) fn hazard_of_remote_copy(&self, copy: &RemoteBulk) -> Option<FaultCause> {
        let range = (copy.offset, copy.data.len() as u32);
        let busy = self.busy(usize::from(copy.to.slot), range, Does::Write).filter(|busy| busy.does == Does::Read)?;
        Some(FaultCause::Hazard(format!(
            "a bulk copy of another CTA writes what is still read, at {:#x} of shared memory, by a product or a copy",
            busy.offset
        )))
    }

    /// Who is at work on these bytes of a CTA's shared memory so that they may not be read, or written, yet.
    fn busy(&self, cta: usize, (offset, bytes): (u32, u32), does: Does) -> Option<Busy> {
        let State { warps, bulk, .. } = &self.state;
        let copies = bulk.under_way.iter().filter_map(|number| bulk.copies.get(*number));
        let own = copies.filter(|copy| {
            let owner = usize::from(copy.warp);
            warps.is_current(owner, copy.generation) && warps.cta_of(owner) == cta
        });
        let mut overlapping = own.filter(|UnderWay { copy, .. }| {
            let (start, end) = (copy.shared, u64::from(copy.shared) + u64::from(copy.bytes));
            u64::from(offset) < end && u64::from(start) < u64::from(offset) + u64::from(bytes)
        });
        let of_bulk = |UnderWay { copy, .. }: &UnderWay| match copy.end {
            BulkEnd::Barrier { .. } => Some(Busy { offset, does: Does::Write, pc: None }),
            BulkEnd::Group if does == Does::Write => Some(Busy { offset, does: Does::Read, pc: None }),
            _ => None,
        };
        overlapping.find_map(of_bulk).or_else(|| {
            warps.contexts_of(cta).find_map(|context| {
                let of_copy = context.unwaited.copy_to(&context.copies, offset, bytes);
                let of_product = || (does == Does::Write).then(|| context.unwaited.product_of(offset, bytes)).flatten();
                let written = of_copy.map(|early| Busy::with(Does::Write, early));
                written.or_else(|| of_product().map(|early| Busy::with(Does::Read, early)))
            })
        })
    }

    fn fails_if_busy(
        &mut self,
        warp: usize,
        pc: u32,
        (who, does): (&str, Does),
        busy: Option<(u8, Busy)>,
        step: &mut Step,
    ) -> bool {
        let Some((lane, busy)) = busy else { return true };
        let does = if does == Does::Read { "reads" } else { "writes to" };
        let (other, done) = if busy.does == Does::Read { ("reads", "read") } else { ("writes", "written") };
        let whose = match busy.pc {
            None => format!("a bulk copy still {other}, at {:#x} of shared memory", busy.offset),
            Some(pc) => {
                let program = self.state.warps.context(warp).program();
                format!("is still to be {done}, at {:#x} of shared memory, by {}", busy.offset, program.describe(pc))
            }
        };
        let cause = FaultCause::Hazard(format!("{who} {does} what {whose}"));
        self.fail(warp, (pc, lane), cause, step.now.cycle, step.out);
        false
    }
}
