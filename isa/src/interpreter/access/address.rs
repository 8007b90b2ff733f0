//! Which space a generic address is in.

use crate::execution::{LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW, WINDOW_BYTES};
use crate::interpreter::bodies::Body;
use crate::interpreter::compare::Comparison;
use crate::interpreter::registers::{Lane, Registers};
use crate::lanes::LANES;
use crate::operation::Instruction;
use crate::operation::operand::Row;

/// Whether the first value is in the window that begins at the second.
pub(crate) struct InWindow;

impl Comparison for InWindow {
    type T = u64;
    #[inline(always)]
    fn test(address: u64, window: u64) -> bool {
        address.wrapping_sub(window) < WINDOW_BYTES
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
