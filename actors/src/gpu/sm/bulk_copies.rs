//! The SM's unit for copies of many bytes (Hopper's tensor memory accelerator): it makes the accesses of one copy after the other, past the
//! L1, and tells their barrier or their warp when a copy is done.
//!
//! The values have been copied when the instruction issued (`isa`); the unit has the time alone. It needs `bulk_copy_latency` for each copy,
//! and a cycle for each line. It does not begin an access that the memory pipe has no room for.

use super::bulk_queue::UnderWay;
use super::memory_pipe::{Owner, Purpose};
use super::profile::Profile;
use super::progress::{Sm, State, Step};
use super::warps::copies::{CopyKind, complete};
use balar_isa::execution::{AccessKind, BulkCopy, BulkEnd};
use balar_protocol::Payload;
use balar_protocol::cluster::{ClusterMessage, ClusterPlace};

impl<P: Profile> Sm<P> {
    /// The warp has asked for the copy that its last step describes.
    pub(super) fn begin_bulk_copy(&mut self, warp: usize, pc: u32, copy: BulkCopy, step: &mut Step) {
        let cycle = step.now.cycle;
        let known = self.values_known(self.execution.access.kind, step);
        let State { warps, pipe, bulk, .. } = &mut self.state;
        let (slot, context, cta) = warps.all_of(warp);
        let number = bulk.copies.next_key();
        let owner = Owner { warp: warp as u16, generation: slot.generation, purpose: Purpose::Bulk { number } };
        let first = Some(&self.execution.access).filter(|access| access.mask != 0);
        let accesses = first.into_iter().chain(&self.execution.further).cloned().collect();
        bulk.copies.insert(UnderWay {
            warp: owner.warp,
            generation: owner.generation,
            copy,
            group: context.bulk.begin(copy.end == BulkEnd::Group),
            key: pipe.open_bulk(owner, known),
            launch: cta.launch.as_ref().map_or(0, |launch| launch.id.0),
            start: cycle + self.specification.bulk_copy_latency,
            accesses,
            sent: self.execution.sent.take(),
        });
        bulk.queue.push_back(number);
        bulk.under_way.push(number);
        self.no_results(warp, pc, cycle);
    }

    /// The unit makes the accesses that it can make in this cycle: one, and the end of copies without any.
    #[cold]
    pub(super) fn continue_bulk_copies(&mut self, step: &mut Step) {
        let cycle = step.now.cycle;
        let mut events = std::mem::take(&mut self.scratch.events);
        let State { warps, pipe, bulk, .. } = &mut self.state;
        if let Some(&number) = bulk.queue.front() {
            let copy = &mut bulk.copies[number];
            let warp = usize::from(copy.warp);
            // The kernel may have been ended meanwhile.
            if !warps.is_current(warp, copy.generation) {
                copy.accesses.clear();
            }
            if let Some(access) = copy.accesses.front() {
                let has_room = match access.kind {
                    AccessKind::Load => pipe.has_room_for_loads(&self.specification.pipe),
                    _ => pipe.has_room_for_stores(&self.specification.pipe),
                };
                if !has_room {
                    bulk.waits_for_room = true;
                } else {
                    bulk.lines.gather(access);
                    let lines = bulk.lines.as_slice();
                    let (_, _, cta) = warps.all_of(warp);
                    let way_out = (&self.wiring.ports, &mut *step.out);
                    let of = (copy.key, copy.launch, &mut cta.counters);
                    pipe.bulk_access(&self.specification.pipe, access, lines, of, cycle, way_out);
                    bulk.free = cycle + lines.len() as u64;
                    if access.kind != AccessKind::Load {
                        warps.warp_mut(warp).outstanding += lines.len() as u32;
                    }
                    copy.accesses.pop_front();
                }
            }
            if copy.accesses.is_empty() {
                bulk.queue.pop_front();
                pipe.close_bulk(copy.key, &mut events);
                self.bulk_copy_read(number, step);
            }
        }
        self.carry(events, step);
    }

    /// The unit has read all that a copy is of. Copies out of shared memory are done for the warp that waits for their group: machine code
    /// waits in one way for their reads and for their writes, and two copies of 4 KiB that overlap take an H100 320 cycles (Accel-Sim's
    /// tma_bulk), which is no time for answers from the other partition of the L2. The kernel does not end before the answers.
    fn bulk_copy_read(&mut self, number: u32, step: &mut Step) {
        let State { warps, bulk, .. } = &mut self.state;
        let UnderWay { warp, generation, copy, group, .. } = &bulk.copies[number];
        let (warp, group) = (usize::from(*warp), *group);
        if copy.end != BulkEnd::Group || !warps.is_current(warp, *generation) {
            return;
        }
        let read = bulk.free + self.specification.bulk_read_latency;
        bulk.under_way.retain(|other| *other != number);
        warps.bulk_copy_arrived(warp, Some(group), read);
        self.after_copy(warp, CopyKind::Bulk, step);
    }

    /// A copy is done.
    pub(super) fn bulk_copy_done(&mut self, number: u32, step: &mut Step) {
        let cycle = step.now.cycle;
        let UnderWay { warp, generation, copy, sent, .. } = self.state.bulk.copies.remove(number);
        self.state.bulk.under_way.retain(|other| *other != number);
        let warp = usize::from(warp);
        let warps = &mut self.state.warps;
        if !warps.is_current(warp, generation) {
            return;
        }
        let ready = cycle + self.specification.pipe.fill_latency();
        let (slot, _, cta) = warps.all_of(warp);
        if let BulkEnd::Barrier { address } = copy.end {
            complete(&mut cta.shared, address, copy.bytes);
        }
        if let (Some(sent), Some(port), Some(launch)) = (sent, self.wiring.cluster, &cta.launch) {
            let from = ClusterPlace { sm: self.wiring.index as u16, slot: slot.cta };
            let at = self.wiring.ports.clock.time_of(cycle);
            for message in sent.messages(&cta.cluster, launch.id, from) {
                step.out.send(port, at, Payload::Cluster(ClusterMessage::Bulk(message)));
            }
        }
        // The warp knows those of a group to be read by now.
        if copy.end != BulkEnd::Group {
            warps.bulk_copy_arrived(warp, None, ready);
            self.after_copy(warp, CopyKind::Bulk, step);
        }
    }
}
