//! The effects of a warp's instructions on memory: loads, stores, atomics and calls of the device runtime.

use super::lane_memory::{OwnWrites, SmMemory};
use super::warps::cluster::{Elsewhere, Sent};
use crate::memory::{AccessPattern, read_lanes, read_slice};
use balar_isa::cluster::shared_base;
use balar_isa::execution::{
    AtomicCompletion, AtomicFunction, LaneMemory, LaneValues, MemoryAccess, MemoryProblem, Space, SystemArguments,
    SystemCall,
};
use balar_isa::program::{LANES, lanes};
use balar_isa::texture::Image;
use balar_protocol::cuda::FaultCause;

impl<L: OwnWrites> LaneMemory for SmMemory<'_, L> {
    fn load(&mut self, access: &MemoryAccess, values: &mut LaneValues) -> Result<(), MemoryProblem> {
        let pattern = AccessPattern::of(access);
        self.check(access, pattern)?;
        if matches!(access.space, Space::Global | Space::Constant) {
            read_lanes(self.view, self.recent.latest(), access, pattern, values);
            return self.log.lay_over(access, pattern, values).map_err(|token| self.wait_for(token));
        }
        if access.space == Space::Shared {
            read_slice(self.shared, self.shared_base, access, pattern, values, |address, _| {
                unreachable!("{address:#x} was found to be in shared memory");
            });
            return Ok(());
        }
        for lane in lanes(access.mask) {
            let source = self.private(access, lane);
            let mut bytes = [0; 16];
            bytes[..source.len()].copy_from_slice(source);
            values.set(lane, u128::from_le_bytes(bytes));
        }
        Ok(())
    }

    fn store(&mut self, access: &MemoryAccess, values: &LaneValues) -> Result<(), MemoryProblem> {
        self.check(access, AccessPattern::of(access))?;
        if access.space == Space::Global {
            return self.log.store(self.time, access, values).map_err(|token| self.wait_for(token));
        }
        for lane in lanes(access.mask) {
            let value = values.get(lane);
            let destination = self.private(access, lane);
            let length = destination.len();
            destination.copy_from_slice(&value.to_le_bytes()[..length]);
        }
        Ok(())
    }

    fn atomic(
        &mut self,
        access: &MemoryAccess,
        function: AtomicFunction,
        operands: &LaneValues,
        replacements: &LaneValues,
        old: &mut LaneValues,
    ) -> Result<AtomicCompletion, MemoryProblem> {
        self.check(access, AccessPattern::of(access))?;
        if access.space == Space::Global {
            self.log.atomic(self.time, access, function, [operands, replacements], self.token);
            return Ok(AtomicCompletion::Deferred);
        }
        for lane in lanes(access.mask) {
            let memory = self.private(access, lane);
            old.set(lane, function.update(memory, operands.get(lane), replacements.get(lane)));
        }
        Ok(AtomicCompletion::Now)
    }

    fn remote(
        &mut self,
        access: &MemoryAccess,
        pc: u32,
        _: (&LaneValues, &LaneValues),
        barriers: Option<&[u32; LANES]>,
    ) -> Result<(), MemoryProblem> {
        self.check_remote(access)?;
        // The values stay where they are until the step has ended.
        *self.remote = Some(Elsewhere { pc, barriers: barriers.copied().map(Box::new) });
        Ok(())
    }

    fn send(&mut self, ranks: u16, offset: u32, barrier: u32, bytes: &[u8]) -> Result<(), MemoryProblem> {
        let size = self.cluster.size();
        let address = |rank: u32| shared_base(rank) + u64::from(offset);
        if let Some(rank) = lanes(ranks.into()).map(|rank: usize| rank as u32).find(|rank| *rank >= size) {
            let cause = FaultCause::AbsentCta { rank, address: address(rank) };
            return Err(MemoryProblem::Fault { lane: 0, cause });
        }
        *self.sent = Some(Sent { ranks, offset, barrier, data: bytes.into() });
        Ok(())
    }

    fn waits_for_cluster(&mut self, mask: u32) -> u32 {
        self.cluster.waiting(self.caller.first_thread / LANES as u32, mask)
    }

    fn image(&mut self, handle: u64) -> Option<Image> {
        self.view.image(self.context.process(), handle)
    }

    fn touch(&mut self, access: &MemoryAccess) {
        self.further.push(access.clone());
    }

    fn shared(&mut self) -> &mut [u8] {
        self.shared
    }

    fn system_call(
        &mut self,
        call: SystemCall,
        mask: u32,
        arguments: &SystemArguments,
        results: &mut LaneValues,
    ) -> Result<AtomicCompletion, MemoryProblem> {
        super::runtime::system_call(self, call, mask, arguments, results)
    }
}

impl<L: OwnWrites> SmMemory<'_, L> {
    /// An access has to wait for an own atomic.
    #[cold]
    fn wait_for(&mut self, token: u32) -> MemoryProblem {
        self.blocked_by = Some(token);
        MemoryProblem::Later
    }
}
