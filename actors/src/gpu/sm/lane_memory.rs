//! Values: the reads and writes of an SM's warps.

use super::warps::cluster::{ClusterSlot, Elsewhere, Sent};
use super::warps::device_runtime::DeviceRuntime;
use crate::memory::{AccessPattern, DeviceMemoryView, WriteLog};
use balar_isa::cluster::{OFFSET_BITS, rank_of};
use balar_isa::execution::{AccessKind, AtomicFunction, LaneValues, MemoryAccess, MemoryProblem, Space};
use balar_isa::program::{LANES, lanes};
use balar_protocol::cuda::{FaultAccess, FaultCause, FaultSpace, KernelLaunch};
use balar_protocol::{ContextId, SimTime};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The token that is given where nobody asks for one.
const NO_TOKEN: u32 = u32::MAX;

/// The writes of an SM to device memory, and its own view of them within the epoch.
pub trait OwnWrites {
    /// Lays own writes over the `values` from memory.
    ///
    /// # Errors
    ///
    /// The token of an own atomic that touches the access: the value is not known yet.
    fn lay_over(&self, access: &MemoryAccess, pattern: AccessPattern, values: &mut LaneValues) -> Result<(), u32>;

    /// A warp's store, which is aligned.
    ///
    /// # Errors
    ///
    /// The token of an own atomic that it has to wait for; nothing is stored.
    fn store(&mut self, time: SimTime, access: &MemoryAccess, values: &LaneValues) -> Result<(), u32>;

    /// A warp's atomic: its operands and replacements, and the token that it is recognised by.
    fn atomic(
        &mut self,
        time: SimTime,
        access: &MemoryAccess,
        function: AtomicFunction,
        values: [&LaneValues; 2],
        token: u32,
    );

    /// The log, for all else.
    fn log(&mut self) -> &mut WriteLog;
}

/// One entry after the other.
impl OwnWrites for WriteLog {
    #[inline]
    fn lay_over(&self, access: &MemoryAccess, pattern: AccessPattern, values: &mut LaneValues) -> Result<(), u32> {
        if self.may_touch_pattern(access, pattern) { self.overlay(access, values) } else { Ok(()) }
    }

    #[inline]
    fn store(&mut self, time: SimTime, access: &MemoryAccess, values: &LaneValues) -> Result<(), u32> {
        WriteLog::store(self, time, access, values);
        Ok(())
    }

    #[inline]
    fn atomic(
        &mut self,
        time: SimTime,
        access: &MemoryAccess,
        function: AtomicFunction,
        [operands, replacements]: [&LaneValues; 2],
        token: u32,
    ) {
        WriteLog::atomic(self, time, access, function, operands, replacements, token);
    }

    #[inline]
    fn log(&mut self) -> &mut WriteLog {
        self
    }
}

/// Line by line: for warps that run for their values alone.
#[derive(Debug)]
pub struct ByLines<'a>(pub &'a mut WriteLog);

impl OwnWrites for ByLines<'_> {
    #[inline]
    fn lay_over(&self, access: &MemoryAccess, pattern: AccessPattern, values: &mut LaneValues) -> Result<(), u32> {
        self.0.lay_lines_over(access, pattern, values).map_err(|_| NO_TOKEN)
    }

    #[inline]
    fn store(&mut self, time: SimTime, access: &MemoryAccess, values: &LaneValues) -> Result<(), u32> {
        self.0.store_in_lines(time, access, values).map_err(|_| NO_TOKEN)
    }

    fn atomic(
        &mut self,
        time: SimTime,
        access: &MemoryAccess,
        function: AtomicFunction,
        values: [&LaneValues; 2],
        token: u32,
    ) {
        self.0.atomic_beside_lines(time, access, function, values, token);
    }

    fn log(&mut self) -> &mut WriteLog {
        self.0
    }
}

/// The memory of one warp for one step.
pub struct SmMemory<'a, L: OwnWrites = WriteLog> {
    /// Device memory at the start of the window.
    pub view: &'a DeviceMemoryView<'a>,
    /// The context of the warp's kernel.
    pub context: ContextId,
    /// The SM's writes of this epoch.
    pub log: &'a mut L,
    /// When the step happens.
    pub time: SimTime,
    /// The CTA's shared memory.
    pub shared: &'a mut [u8],
    /// The address of its first byte: the CTA's rank in its cluster says it.
    pub shared_base: u64,
    /// The CTA in its cluster.
    pub cluster: &'a ClusterSlot,
    /// Where the step begins an access to the shared memory of other CTAs: the place of its instruction.
    pub remote: &'a mut Option<Elsewhere>,
    /// What the step's copy sends to other CTAs.
    pub sent: &'a mut Option<Sent>,
    /// The warp's local memory as far as it has been used; see [`local_place`].
    pub local: &'a mut Vec<u8>,
    /// Bytes of local memory of a lane.
    pub local_bytes: usize,
    /// The ranges of legal addresses that the SM used last.
    pub recent: &'a mut RecentRanges,
    /// Accesses of the instruction beyond the one that its step describes.
    pub further: &'a mut Vec<MemoryAccess>,
    /// Names a deferred atomic.
    pub token: u32,
    /// Where a load gave [`MemoryProblem::Later`]: the token of the atomic whose result it waits for.
    pub blocked_by: Option<u32>,
    /// Who calls the device runtime.
    pub caller: Caller<'a>,
}

/// The caller of the device runtime, and the runtime's knowledge of it.
pub struct Caller<'a> {
    /// The launch.
    pub launch: Option<&'a Arc<KernelLaunch>>,
    /// The CTA in the grid.
    pub cta: [u32; 3],
    /// The warp's first thread in the CTA.
    pub first_thread: u32,
    /// The runtime's knowledge of the CTA.
    pub runtime: &'a mut DeviceRuntime,
}

/// Ranges of legal addresses that were used last, the latest first: each an allocation, or a page that holds one. The loads and
/// stores of a kernel's loop go to a few of them in turn.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct RecentRanges([(u64, u64); 4], ContextId);

impl RecentRanges {
    /// From now on they are ranges of this context: the ranges of another one are forgotten.
    #[inline]
    pub fn of(&mut self, context: ContextId) {
        if self.1 != context {
            *self = RecentRanges(Default::default(), context);
        }
    }

    /// The latest.
    #[inline]
    pub fn latest(&self) -> (u64, u64) {
        self.0[0]
    }

    /// The range at `place` becomes the latest.
    fn bring_up(&mut self, place: usize) {
        self.0[..=place].rotate_right(1);
    }

    fn add(&mut self, range: (u64, u64)) {
        self.bring_up(self.0.len() - 1);
        self.0[0] = range;
    }
}

/// The common part of all addresses of an access.
#[derive(Clone, Copy)]
struct Extent {
    /// All bits that are set in any address.
    bits: u64,
    /// The most that an address lies behind the start that was asked for; addresses before it wrap around.
    furthest: u64,
}

impl Extent {
    #[inline]
    fn of(access: &MemoryAccess, pattern: AccessPattern, start: u64) -> Extent {
        let first = access.addresses[0];
        match pattern {
            AccessPattern::Uniform => Extent { bits: first, furthest: first.wrapping_sub(start) },
            AccessPattern::Consecutive => {
                let bytes = u64::from(access.bytes);
                let last = first + (LANES as u64 - 1) * bytes;
                let furthest = first.wrapping_sub(start).max(last.wrapping_sub(start));
                // The lanes differ by multiples of the width alone, which is a power of two.
                Extent { bits: first, furthest }
            }
            AccessPattern::Scattered if access.mask == u32::MAX => {
                let (mut bits, mut furthest) = (0, 0);
                for &address in &access.addresses {
                    bits |= address;
                    furthest = furthest.max(address.wrapping_sub(start));
                }
                Extent { bits, furthest }
            }
            AccessPattern::Scattered => {
                let (mut bits, mut furthest) = (0, 0);
                let mut lanes = access.mask;
                while lanes != 0 {
                    let address = access.addresses[lanes.trailing_zeros() as usize];
                    lanes &= lanes - 1;
                    bits |= address;
                    furthest = furthest.max(address.wrapping_sub(start));
                }
                Extent { bits, furthest }
            }
        }
    }
}

/// Where an access is aligned and all its lanes lie in a range of bytes: how far behind its start the furthest begins.
#[inline]
fn inside(access: &MemoryAccess, pattern: AccessPattern, (start, end): (u64, u64)) -> Option<u64> {
    let bytes = u64::from(access.bytes);
    let Extent { bits, furthest } = Extent::of(access, pattern, start);
    let fits = furthest < end - start && end - start - furthest >= bytes;
    (fits && bits & (bytes - 1) == 0).then_some(furthest)
}

fn name(kind: AccessKind) -> FaultAccess {
    match kind {
        AccessKind::Load => FaultAccess::Load,
        AccessKind::Store => FaultAccess::Store,
        AccessKind::Atomic | AccessKind::Reduction => FaultAccess::Atomic,
    }
}

fn space_name(space: Space) -> FaultSpace {
    match space {
        Space::Global => FaultSpace::Global,
        Space::Shared => FaultSpace::Shared,
        Space::Local => FaultSpace::Local,
        Space::Constant => FaultSpace::Constant,
        Space::Parameter => FaultSpace::Parameter,
    }
}

/// Bytes of a lane's local memory that lie together: the largest access, which is aligned.
const LOCAL_CHUNK: usize = 16;

/// Where a lane's local address is in the local memory of its warp: chunks of all lanes side by side, so that a stack that grows
/// only adds to the end.
fn local_place(lane: usize, address: usize) -> usize {
    (address / LOCAL_CHUNK * 32 + lane) * LOCAL_CHUNK + address % LOCAL_CHUNK
}

/// Bytes of a thread's local memory that it has from its start; further bytes come when they are used.
const LOCAL_AT_ONCE: usize = 4096;

/// Gives the lanes of a warp that begins the local memory of its program. A stack for recursion is large, and rarely used in full: it
/// grows.
pub(super) fn begin_local(local: &mut Vec<u8>, bytes: usize) {
    local.clear();
    reserve_local(local, bytes.min(LOCAL_AT_ONCE));
}

/// Gives every lane at least so many bytes of local memory.
pub(super) fn reserve_local(local: &mut Vec<u8>, bytes: usize) {
    let needed = bytes.next_multiple_of(LOCAL_CHUNK) * 32;
    if local.len() < needed {
        local.resize(needed, 0);
    }
}

impl<L: OwnWrites> SmMemory<'_, L> {
    /// Is the access aligned, and inside its memory?
    #[inline]
    pub(super) fn check(&mut self, access: &MemoryAccess, pattern: AccessPattern) -> Result<(), MemoryProblem> {
        // A range of bytes where every aligned access is legal.
        let (start, end) = match access.space {
            // Constant banks lie in device memory, too: the front end gives their device addresses.
            Space::Global | Space::Constant => self.recent.latest(),
            Space::Shared => (self.shared_base, self.shared_base + self.shared.len() as u64),
            Space::Local => (0, self.local_bytes as u64),
            // The front end reads parameters itself.
            Space::Parameter => (0, 0),
        };
        let Some(furthest) = inside(access, pattern, (start, end)) else {
            return self.check_further(access, pattern, (start, end));
        };
        if access.space == Space::Local {
            reserve_local(self.local, furthest as usize + 1);
        }
        Ok(())
    }

    /// As [`Self::check`], where not all lanes are in this range of bytes, or not all are aligned.
    #[cold]
    fn check_further(
        &mut self,
        access: &MemoryAccess,
        pattern: AccessPattern,
        range: (u64, u64),
    ) -> Result<(), MemoryProblem> {
        if matches!(access.space, Space::Global | Space::Constant) {
            let place = self.recent.0.iter().position(|&range| inside(access, pattern, range).is_some());
            if let Some(place) = place {
                self.recent.bring_up(place);
                return Ok(());
            }
        }
        if access.space == Space::Shared && self.cluster.size() > 1 {
            let own = self.cluster.rank();
            let other = |lane: &usize| rank_of(access.addresses[*lane]) != own;
            let remote = lanes(access.mask).filter(other).fold(0, |remote, lane| remote | 1 << lane);
            if remote != 0 {
                return Err(MemoryProblem::Elsewhere { lanes: remote });
            }
        }
        self.check_lanes(access, range)
    }

    /// Is an access to the shared memory of other CTAs of the cluster aligned, and inside?
    pub(super) fn check_remote(&self, access: &MemoryAccess) -> Result<(), MemoryProblem> {
        let bytes = u64::from(access.bytes);
        for lane in lanes(access.mask) {
            let address = access.addresses[lane];
            let (name, space) = (name(access.kind), FaultSpace::Shared);
            let offset = address & OFFSET_BITS;
            let cause = if address & (bytes - 1) != 0 {
                FaultCause::MisalignedAddress { address, bytes: bytes as u32, access: name, space }
            } else if rank_of(address) >= self.cluster.size() {
                FaultCause::AbsentCta { rank: rank_of(address), address }
            } else if offset + bytes > self.shared.len() as u64 {
                FaultCause::IllegalAddress { address, bytes: bytes as u32, access: name, space }
            } else {
                continue;
            };
            return Err(MemoryProblem::Fault { lane: lane as u8, cause });
        }
        Ok(())
    }

    /// As [`Self::check`], lane by lane, where not all lanes are in this range of bytes, or not all are aligned.
    fn check_lanes(&mut self, access: &MemoryAccess, (start, end): (u64, u64)) -> Result<(), MemoryProblem> {
        let bytes = u64::from(access.bytes);
        let misaligned = |address| address & (bytes - 1) != 0;
        if lanes(access.mask).any(|lane| misaligned(access.addresses[lane])) {
            return Err(self.fault(access, misaligned, |address| {
                let (access, space) = (name(access.kind), space_name(access.space));
                FaultCause::MisalignedAddress { address, bytes: bytes as u32, access, space }
            }));
        }
        let illegal = |address| FaultCause::IllegalAddress {
            address,
            bytes: bytes as u32,
            access: name(access.kind),
            space: space_name(access.space),
        };
        if !matches!(access.space, Space::Global | Space::Constant) {
            if access.mask == 0 {
                return Ok(());
            }
            return Err(self.fault(
                access,
                |address| address < start || address >= end || end - address < bytes,
                illegal,
            ));
        }
        for lane in lanes(access.mask) {
            let address = access.addresses[lane];
            let (start, end) = self.recent.latest();
            if address >= start && address < end && end - address >= bytes {
                continue;
            }
            match self.view.legal_range(self.context, address, bytes) {
                Some(range) => self.recent.add(range),
                None => return Err(MemoryProblem::Fault { lane: lane as u8, cause: illegal(address) }),
            }
        }
        Ok(())
    }

    fn fault(
        &self,
        access: &MemoryAccess,
        offends: impl Fn(u64) -> bool,
        cause: impl Fn(u64) -> FaultCause,
    ) -> MemoryProblem {
        let lane = lanes(access.mask).find(|&lane| offends(access.addresses[lane])).unwrap_or(0);
        MemoryProblem::Fault { lane: lane as u8, cause: cause(access.addresses[lane]) }
    }

    pub(super) fn private(&mut self, access: &MemoryAccess, lane: usize) -> &mut [u8] {
        let address = access.addresses[lane] as usize;
        let memory = match access.space {
            Space::Local => {
                let place = local_place(lane, address);
                return &mut self.local[place..place + usize::from(access.bytes)];
            }
            _ => &mut *self.shared,
        };
        let address = address - self.shared_base as usize;
        &mut memory[address..address + usize::from(access.bytes)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Bounds, DeviceMemory};
    use rand_core::{Rng, SeedableRng};
    use rand_pcg::Pcg32;

    const GLOBAL: u64 = DeviceMemory::BASE;
    const SHARED_BYTES: u64 = 512;

    /// The plain meaning: the first lane that is not aligned, or else the first that is outside its memory.
    fn problem(access: &MemoryAccess) -> Option<(u8, bool)> {
        let bytes = u64::from(access.bytes);
        let inside = |address: u64| match access.space {
            Space::Global => {
                [GLOBAL, GLOBAL + 8192].iter().any(|&start| address >= start && address + bytes <= start + 1024)
            }
            _ => address.checked_add(bytes).is_some_and(|end| end <= SHARED_BYTES),
        };
        let first = |offends: &dyn Fn(u64) -> bool| lanes(access.mask).find(|&lane| offends(access.addresses[lane]));
        let misaligned = first(&|address| address % bytes != 0);
        let outside = first(&|address| !inside(address));
        misaligned.map(|lane| (lane as u8, true)).or(outside.map(|lane| (lane as u8, false)))
    }

    #[test]
    fn random_accesses_are_checked_as_lane_by_lane() {
        let device = DeviceMemory::new(1 << 20).expect("1 MiB can be mapped");
        let mut log = WriteLog::default();
        log.map(SimTime(0), GLOBAL, 1024, Bounds::Allocations);
        log.map(SimTime(0), GLOBAL + 8192, 1024, Bounds::Allocations);
        device.apply(&mut log);
        log.clear();
        let view = device.view();
        let (mut recent, mut further, mut local, mut shared) =
            (RecentRanges::default(), Vec::new(), Vec::new(), vec![0; 512]);
        let (cluster, mut remote, mut sent) = (ClusterSlot::default(), None, None);
        let mut runtime = DeviceRuntime::default();
        let mut memory = SmMemory {
            view: &view,
            context: ContextId::first(0),
            log: &mut log,
            time: SimTime(0),
            shared: &mut shared,
            shared_base: 0,
            cluster: &cluster,
            remote: &mut remote,
            sent: &mut sent,
            local: &mut local,
            local_bytes: SHARED_BYTES as usize,
            recent: &mut recent,
            further: &mut further,
            token: 0,
            blocked_by: None,
            caller: Caller { launch: None, cta: [0; 3], first_thread: 0, runtime: &mut runtime },
        };
        let mut random = Pcg32::seed_from_u64(9);
        let mut found = [0; 3];
        for _ in 0..if cfg!(miri) { 100 } else { 20_000 } {
            let space = [Space::Global, Space::Shared, Space::Local][random.next_u32() as usize % 3];
            let bytes = 1u8 << (random.next_u32() % 5);
            let stride = u64::from(bytes) * [0, 1, 1, 2][random.next_u32() as usize % 4];
            let base = if space == Space::Global { GLOBAL + 8192 * u64::from(random.next_u32() % 2) } else { 0 };
            let odd = u64::from(random.next_u32() % 16 == 0);
            let below = if random.next_u32() % 8 == 0 { u64::from(bytes) } else { 0 };
            let first =
                base.wrapping_sub(below).wrapping_add(u64::from(random.next_u32() % 32) * u64::from(bytes) + odd);
            let mut addresses: [u64; LANES] = std::array::from_fn(|lane| first.wrapping_add(stride * lane as u64));
            if random.next_u32() % 8 == 0 {
                addresses[random.next_u32() as usize % LANES] = base + 256;
            }
            let mask = if random.next_u32() % 3 == 0 { random.next_u32() } else { u32::MAX };
            let access = MemoryAccess { space, bytes, mask, addresses, ..MemoryAccess::default() };
            let checked = match memory.check(&access, AccessPattern::of(&access)) {
                Ok(()) => None,
                Err(MemoryProblem::Fault { lane, cause }) => {
                    Some((lane, matches!(cause, FaultCause::MisalignedAddress { .. })))
                }
                Err(other) => panic!("{other:?}"),
            };
            assert_eq!(checked, problem(&access), "{access:?}");
            found[checked.map_or(0, |(_, misaligned)| 1 + usize::from(misaligned))] += 1;
        }
        assert!(found.iter().all(|&count| count > if cfg!(miri) { 0 } else { 500 }), "{found:?}");
    }
}
