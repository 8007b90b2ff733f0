//! Values: what the warps of an SM read and write.

use crate::memory::{DeviceMemoryView, WriteLog, read_lanes};
use balar_isa::execution::{
    AccessKind, AtomicCompletion, AtomicFunction, LaneMemory, LaneValues, MemoryAccess, MemoryProblem, Space,
    SystemArguments, SystemCall,
};
use balar_isa::program::lanes;
use balar_isa::texture::Image;
use balar_protocol::SimTime;
use balar_protocol::cuda::{FaultAccess, FaultCause, FaultSpace};

/// The memory of one warp for one step.
pub struct SmMemory<'a> {
    /// Device memory at the start of the window.
    pub view: &'a DeviceMemoryView<'a>,
    /// The number of the SM's GPU.
    pub gpu: usize,
    /// The SM's writes of this window.
    pub log: &'a mut WriteLog,
    /// When the step happens.
    pub time: SimTime,
    /// The CTA's shared memory.
    pub shared: &'a mut [u8],
    /// The warp's local memory as far as it has been used; see [`local_place`].
    pub local: &'a mut Vec<u8>,
    /// Bytes of local memory of a lane.
    pub local_bytes: usize,
    /// The range of legal addresses the SM used last: an allocation, or a page that holds one.
    pub recent_range: &'a mut (u64, u64),
    /// Accesses of the instruction beyond the one that its step describes.
    pub further: &'a mut Vec<MemoryAccess>,
    /// Names the warp of a deferred atomic.
    pub token: u32,
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

/// Gives every lane at least so many bytes of local memory.
pub(super) fn reserve_local(local: &mut Vec<u8>, bytes: usize) {
    let needed = bytes.next_multiple_of(LOCAL_CHUNK) * 32;
    if local.len() < needed {
        local.resize(needed, 0);
    }
}

impl SmMemory<'_> {
    /// Is the access aligned, and inside its memory?
    fn check(&mut self, access: &MemoryAccess) -> Result<(), MemoryProblem> {
        let bytes = u64::from(access.bytes);
        let (mut all, mut low, mut high) = (0, u64::MAX, 0);
        let mut mask = access.mask;
        while mask != 0 {
            let address = access.addresses[mask.trailing_zeros() as usize];
            mask &= mask - 1;
            all |= address;
            low = low.min(address);
            high = high.max(address);
        }
        if access.mask == 0 {
            return Ok(());
        }
        if all & (bytes - 1) != 0 {
            return Err(self.fault(
                access,
                |address| address & (bytes - 1) != 0,
                |address| {
                    let (access, space) = (name(access.kind), space_name(access.space));
                    FaultCause::MisalignedAddress { address, bytes: bytes as u32, access, space }
                },
            ));
        }
        let illegal = |address| FaultCause::IllegalAddress {
            address,
            bytes: bytes as u32,
            access: name(access.kind),
            space: space_name(access.space),
        };
        let limit = match access.space {
            // Constant banks lie in device memory, too: the front end gives their device addresses.
            Space::Global | Space::Constant => {
                let (start, end) = *self.recent_range;
                if low >= start && high < end && end - high >= bytes {
                    return Ok(());
                }
                for lane in lanes(access.mask) {
                    let address = access.addresses[lane];
                    match self.view.legal_range(self.gpu, address, bytes) {
                        Some(range) => *self.recent_range = range,
                        None => return Err(MemoryProblem::Fault { lane: lane as u8, cause: illegal(address) }),
                    }
                }
                return Ok(());
            }
            Space::Shared => self.shared.len() as u64,
            Space::Local => self.local_bytes as u64,
            // The front end reads parameters itself.
            Space::Parameter => 0,
        };
        if high < limit && limit - high >= bytes {
            if access.space == Space::Local {
                reserve_local(self.local, high as usize + 1);
            }
            return Ok(());
        }
        Err(self.fault(access, |address| address >= limit || limit - address < bytes, illegal))
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

    fn private(&mut self, access: &MemoryAccess, lane: usize) -> &mut [u8] {
        let address = access.addresses[lane] as usize;
        let memory = match access.space {
            Space::Local => {
                let place = local_place(lane, address);
                return &mut self.local[place..place + usize::from(access.bytes)];
            }
            _ => &mut *self.shared,
        };
        &mut memory[address..address + usize::from(access.bytes)]
    }
}

/// Reads accesses of 4, 8 or 16 bytes, which have been checked.
fn load_words(memory: &[u8], access: &MemoryAccess, values: &mut LaneValues) {
    let word = |address: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&memory[address..address + 8]);
        u64::from_le_bytes(bytes)
    };
    let mut mask = access.mask;
    while mask != 0 {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        let address = access.addresses[lane] as usize;
        match access.bytes {
            4 => {
                let mut bytes = [0; 4];
                bytes.copy_from_slice(&memory[address..address + 4]);
                values.low[lane] = u64::from(u32::from_le_bytes(bytes));
            }
            8 => values.low[lane] = word(address),
            _ => {
                values.low[lane] = word(address);
                values.high[lane] = word(address + 8);
            }
        }
    }
}

impl LaneMemory for SmMemory<'_> {
    fn load(&mut self, access: &MemoryAccess, values: &mut LaneValues) -> Result<(), MemoryProblem> {
        self.check(access)?;
        if matches!(access.space, Space::Global | Space::Constant) {
            read_lanes(self.view, *self.recent_range, access, values);
            if self.log.may_touch(access) && !self.log.overlay(access, values) {
                return Err(MemoryProblem::Later);
            }
            return Ok(());
        }
        if access.space == Space::Shared && access.bytes >= 4 {
            load_words(self.shared, access, values);
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
        self.check(access)?;
        if access.space == Space::Global {
            self.log.store(self.time, access, values);
            return Ok(());
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
        self.check(access)?;
        if access.space == Space::Global {
            self.log.atomic(self.time, access, function, operands, replacements, self.token);
            return Ok(AtomicCompletion::Deferred);
        }
        for lane in lanes(access.mask) {
            let memory = self.private(access, lane);
            old.set(lane, function.update(memory, operands.get(lane), replacements.get(lane)));
        }
        Ok(AtomicCompletion::Now)
    }

    fn image(&mut self, handle: u64) -> Option<Image> {
        self.view.image(handle)
    }

    fn touch(&mut self, access: &MemoryAccess) {
        self.further.push(access.clone());
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
