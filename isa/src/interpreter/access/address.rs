//! Which space a generic address is in.

use crate::cluster::{OFFSET_BITS, RANK_SHIFT, rank_of, shared_base};
use crate::execution::{LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW, WINDOW_BYTES};
use crate::interpreter::bodies::{Body, LaneOperation};
use crate::interpreter::compare::Comparison;
use crate::interpreter::registers::{Lane, Registers, cluster};
use crate::lanes::LANES;
use crate::operation::Instruction;
use crate::operation::operand::Row;
use std::marker::PhantomData;

/// Whether the first value is in the window that begins at the second.
pub(crate) struct InWindow;

impl Comparison for InWindow {
    type T = u64;
    #[inline(always)]
    fn test(address: u64, window: u64) -> bool {
        address.wrapping_sub(window) < WINDOW_BYTES
    }
}

/// Whether the generic address is in the shared memory of the CTA itself, of all in its cluster.
pub(crate) struct IsOwnShared;

impl Body for IsOwnShared {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let addresses = u64::read(registers, constants, instruction.sources[0]);
        let own = SHARED_WINDOW + shared_base(registers.cluster[cluster::RANK]);
        let mut inside = 0;
        for (lane, address) in addresses.iter().enumerate() {
            inside |= u32::from(address.wrapping_sub(own) <= OFFSET_BITS) << lane;
        }
        registers.set_predicate(instruction.predicate_destinations[0], inside, mask);
    }
}

/// `mapa`: the address with another rank in it.
pub(crate) struct MapAddress<T>(PhantomData<T>);

impl LaneOperation for MapAddress<u32> {
    type A = u32;
    type B = u32;
    type C = ();
    type D = u32;
    #[inline(always)]
    fn apply(address: u32, rank: u32, (): (), _: u32) -> u32 {
        address & OFFSET_BITS as u32 | rank << RANK_SHIFT
    }
}

impl LaneOperation for MapAddress<u64> {
    type A = u64;
    type B = u32;
    type C = ();
    type D = u64;
    #[inline(always)]
    fn apply(address: u64, rank: u32, (): (), _: u32) -> u64 {
        address & !u64::from(!(OFFSET_BITS as u32)) | u64::from(rank << RANK_SHIFT)
    }
}

/// `getctarank`
pub(crate) struct AddressRank;

impl LaneOperation for AddressRank {
    type A = u32;
    type B = ();
    type C = ();
    type D = u32;
    #[inline(always)]
    fn apply(address: u32, (): (), (): (), _: u32) -> u32 {
        rank_of(u64::from(address))
    }
}

/// `%is_explicit_cluster`
pub(crate) struct IsExplicitCluster;

impl Body for IsExplicitCluster {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, _: &[Row], mask: u32) {
        let value = if registers.cluster[cluster::IS_EXPLICIT] != 0 { u32::MAX } else { 0 };
        registers.set_predicate(instruction.predicate_destinations[0], value, mask);
    }
}

/// `isspacep.global`: whether the address is in none of the windows. Constants, which lie in device memory, are told apart by
/// [`InRange`].
pub(crate) struct IsGlobal;

impl Comparison for IsGlobal {
    type T = u64;
    #[inline(always)]
    fn test(address: u64, _: u64) -> bool {
        ![SHARED_WINDOW, LOCAL_WINDOW, PARAMETER_WINDOW]
            .into_iter()
            .any(|window| address.wrapping_sub(window) < WINDOW_BYTES)
    }
}

/// Whether the first value is in a range, the second and third its beginning and length, or the source predicate is true.
pub(crate) struct InRange;

impl Body for InRange {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let [addresses, firsts, lengths] =
            [0, 1, 2].map(|index| u64::read(registers, constants, instruction.sources[index]));
        let mut inside = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        for lane in 0..LANES {
            inside |= u32::from(addresses[lane].wrapping_sub(firsts[lane]) < lengths[lane]) << lane;
        }
        registers.set_predicate(instruction.predicate_destinations[0], inside, mask);
    }
}
