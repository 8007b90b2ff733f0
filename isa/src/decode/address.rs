//! Addresses and cache policies: which space a generic address is in, places in a cluster, and hints that change no result.

use super::{Decoded, Decoder, Slot};
use crate::execution::{LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW};
use crate::interpreter::access::address::{AddressRank, InRange, InWindow, IsGlobal, IsOwnShared, MapAddress};
use crate::interpreter::bodies::{Map, functions};
use crate::interpreter::compare::{SetPredicate, combine};
use crate::interpreter::integer::{Move, Resize};
use crate::liveness::Width;
use crate::program::timing::{CountClass, LatencyClass, Pipe};
use crate::ptx::ast::Instruction;
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::types::{ScalarType as T, StateSpace};

/// Cache policies as the hardware writes them: all accesses, of one priority (constants of NVIDIA's CUTLASS library).
mod policy {
    pub const EVICT_NORMAL: u64 = 0x1000_0000_0000_0000;
    pub const EVICT_FIRST: u64 = 0x12f0_0000_0000_0000;
    pub const EVICT_LAST: u64 = 0x14f0_0000_0000_0000;
    pub const EVICT_UNCHANGED: u64 = 0x16f0_0000_0000_0000;
}

impl Decoder<'_> {
    /// `isspacep`, `mapa`, `getctarank`, `prefetch`, `prefetchu`, `applypriority`, `discard`, `createpolicy`; false where the form
    /// is not supported.
    pub(super) fn addresses(&mut self, instruction: &Instruction) -> Decoded<bool> {
        match instruction.opcode {
            O::Isspacep => self.space_test(instruction),
            O::Mapa | O::Getctarank => self.cluster_address(instruction),
            O::Createpolicy => self.policy(instruction),
            _ => {
                // The address is checked; nothing is fetched.
                self.address(self.operand(instruction, 0)?)?;
                self.start(instruction.span, (Pipe::Free, LatencyClass::Zero, CountClass::Memory, 1));
                Ok(true)
            }
        }
    }

    fn space_test(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let destination = self.destination(self.operand(instruction, 0)?)?;
        let address = self.source(self.operand(instruction, 1)?, T::U64)?;
        let constant = match instruction.state_space() {
            Some(StateSpace::Constant) => {
                self.constant_test(instruction, address, destination);
                return Ok(true);
            }
            Some(StateSpace::Global) if !self.layout.constants().is_empty() => {
                let constant = Slot::Register(self.new_register(Width::Predicate));
                self.constant_test(instruction, address, constant);
                constant
            }
            _ => Slot::None,
        };
        let (lanes, window) = match instruction.state_space() {
            Some(StateSpace::Global) => (functions::<SetPredicate<IsGlobal>>(), 0),
            Some(StateSpace::Shared | StateSpace::SharedCta) => (functions::<IsOwnShared>(), 0),
            Some(StateSpace::SharedCluster) => (functions::<SetPredicate<InWindow>>(), SHARED_WINDOW),
            Some(StateSpace::Local) => (functions::<SetPredicate<InWindow>>(), LOCAL_WINDOW),
            Some(StateSpace::Parameter | StateSpace::KernelParameter) => {
                (functions::<SetPredicate<InWindow>>(), PARAMETER_WINDOW)
            }
            _ => return Ok(false),
        };
        let window = self.constant(window, true);
        self.start(instruction.span, (Pipe::Int, LatencyClass::Predicate, CountClass::Integer, 1));
        let last = self.last();
        last.instruction.functions = lanes;
        last.sources[0] = address;
        last.sources[1] = window;
        last.predicate_destinations[0] = destination;
        if constant != Slot::None {
            last.predicate_sources[0] = constant;
            last.instruction.predicate_flips[0] = u32::MAX;
            last.instruction.immediate = combine::AND;
        }
        Ok(true)
    }

    /// Whether an address is one of the modules' constants: a range after the other.
    fn constant_test(&mut self, instruction: &Instruction, address: Slot, destination: Slot) {
        let mut ranges = self.layout.constants();
        if ranges.is_empty() {
            ranges.push((0, 0));
        }
        let count = ranges.len();
        let mut before = Slot::None;
        for (index, (first, bytes)) in ranges.into_iter().enumerate() {
            let [first, bytes] = [first, bytes].map(|value| self.constant(value, true));
            let found =
                if index + 1 == count { destination } else { Slot::Register(self.new_register(Width::Predicate)) };
            self.start(instruction.span, (Pipe::Int, LatencyClass::Predicate, CountClass::Integer, 1));
            let last = self.last();
            last.instruction.functions = functions::<InRange>();
            (last.sources[0], last.sources[1], last.sources[2]) = (address, first, bytes);
            last.predicate_sources[0] = before;
            last.instruction.predicate_flips[0] = if index == 0 { u32::MAX } else { 0 };
            last.predicate_destinations[0] = found;
            before = found;
        }
    }

    /// Addresses in the shared memory of a cluster have the rank of a CTA in them.
    fn cluster_address(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let Some(&data_type) = instruction.types.last() else { return Ok(false) };
        let operand = self.operand(instruction, 1)?;
        let wide = data_type.bits() == 64;
        let (lanes, source, rank) = match instruction.opcode {
            O::Mapa => {
                let source = self.source(operand, data_type)?;
                let rank = self.source(self.operand(instruction, 2)?, T::U32)?;
                let lanes =
                    if wide { functions::<Map<MapAddress<u64>>>() } else { functions::<Map<MapAddress<u32>>>() };
                (lanes, source, rank)
            }
            // The rank is in the lower half of a generic address.
            _ => {
                let source = self.source(operand, data_type)?;
                let low = match (wide, source) {
                    (true, Slot::Register(register)) => {
                        let low = self.new_register(Width::One);
                        self.helper(instruction.span, functions::<Map<Resize<u64, u32>>>(), register, low);
                        Slot::Register(low)
                    }
                    (true, _) => return Ok(false),
                    (false, source) => source,
                };
                (functions::<Map<AddressRank>>(), low, Slot::None)
            }
        };
        self.start(instruction.span, (Pipe::Int, LatencyClass::Integer, CountClass::Integer, 1));
        let last = self.last();
        last.instruction.functions = lanes;
        (last.sources[0], last.sources[1]) = (source, rank);
        let to = self.operand(instruction, 0)?;
        self.set_destination(to, if instruction.opcode == O::Mapa { data_type } else { T::U32 })?;
        Ok(true)
    }

    fn policy(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let source = if instruction.has(M::CvtPolicy) {
            self.source(self.operand(instruction, 1)?, T::B64)?
        } else {
            // The first priority is that of the primary accesses; a fraction or range of them changes no result.
            let priority = instruction.modifiers.iter().find_map(|modifier| {
                Some(match modifier {
                    M::L2EvictNormal => policy::EVICT_NORMAL,
                    M::L2EvictFirst => policy::EVICT_FIRST,
                    M::L2EvictLast => policy::EVICT_LAST,
                    M::L2EvictUnchanged => policy::EVICT_UNCHANGED,
                    _ => return None,
                })
            });
            let Some(priority) = priority else { return Ok(false) };
            self.constant(priority, true)
        };
        self.start(instruction.span, (Pipe::Int, LatencyClass::Integer, CountClass::Other, 1));
        let last = self.last();
        last.instruction.functions = functions::<Map<Move<u64>>>();
        last.sources[0] = source;
        let to = self.operand(instruction, 0)?;
        self.set_destination(to, T::B64)?;
        Ok(true)
    }
}
