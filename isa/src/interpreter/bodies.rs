//! How a lane function runs: the loops over lanes that every operation shares.
//!
//! Each body is compiled twice, portably and with vector features; see [`functions`].

use super::registers::{Lane, Registers, each_lane};
use crate::lanes::LANES;
use crate::operation::operand::{Row, SINK_PREDICATE, SINK_ROW, Source, TRUE_PREDICATE};
use crate::operation::{Instruction, Kind, LaneFunction, MemoryForm, NEVER, UniformResult};
use std::marker::PhantomData;

/// A computation on registers in the lanes of a mask.
pub(crate) trait Body {
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32);

    /// The same in little code that is soon compiled, for processors that are no longer made. Lanes are computed one by one.
    #[inline(always)]
    fn run_compact(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        Self::run(instruction, registers, constants, mask);
    }

    /// The same by instructions that not all processors have.
    ///
    /// # Safety
    ///
    /// The processor [`has_vector_features`].
    #[inline(always)]
    unsafe fn run_vectorised(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        Self::run(instruction, registers, constants, mask);
    }
}

/// For x86 processors from before 2013.
#[cfg(target_arch = "x86_64")]
fn portable<B: Body>(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
    B::run_compact(instruction, registers, constants, mask);
}

#[cfg(not(target_arch = "x86_64"))]
fn portable<B: Body>(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
    B::run(instruction, registers, constants, mask);
}

/// [`Lane::read`], compiled once for each type.
#[inline(never)]
pub(crate) fn read_lanes<L: Lane>(registers: &Registers, constants: &[Row], source: Source) -> [L; LANES] {
    L::read(registers, constants, source)
}

/// [`Lane::write`], compiled once for each type.
#[inline(never)]
pub(crate) fn write_lanes<L: Lane>(registers: &mut Registers, destination: u16, values: &[L; LANES], mask: u32) {
    L::write(registers, destination, values, mask);
}

/// The lanes in a loop that the compiler leaves as it is: neither unrolled nor made of vector instructions.
#[inline(always)]
pub(crate) fn lanes_one_by_one() -> impl Iterator<Item = usize> {
    (0..LANES).map(|lane| std::hint::black_box(lane) % LANES)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
fn vectorised<B: Body>(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
    // SAFETY: this function asks for the same features.
    unsafe { B::run_vectorised(instruction, registers, constants, mask) };
}

/// The two compilations of a body: portable, and for processors that [`has_vector_features`].
#[cfg(target_arch = "x86_64")]
pub(crate) fn functions<B: Body>() -> [LaneFunction; 2] {
    [portable::<B>, vectorised::<B>]
}

/// The two compilations of a body, the same on processors without a vector version.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn functions<B: Body>() -> [LaneFunction; 2] {
    [portable::<B>, portable::<B>]
}

/// Whether the second of [`functions`] may run.
pub(crate) fn has_vector_features() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("f16c")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// A value from up to three values of the same lane.
pub(crate) trait LaneOperation {
    type A: Lane;
    type B: Lane;
    type C: Lane;
    type D: Lane;
    fn apply(a: Self::A, b: Self::B, c: Self::C, immediate: u32) -> Self::D;
}

/// Runs a [`LaneOperation`].
pub(crate) struct Map<O>(PhantomData<O>);

impl<O: LaneOperation> Body for Map<O> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let a = O::A::read(registers, constants, instruction.sources[0]);
        let b = O::B::read(registers, constants, instruction.sources[1]);
        let c = O::C::read(registers, constants, instruction.sources[2]);
        let immediate = instruction.immediate;
        let mut result = [O::apply(a[0], b[0], c[0], immediate); LANES];
        for lane in 1..LANES {
            result[lane] = O::apply(a[lane], b[lane], c[lane], immediate);
        }
        O::D::write(registers, instruction.destinations[0], &result, mask);
    }

    #[inline(always)]
    fn run_compact(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let a = read_lanes::<O::A>(registers, constants, instruction.sources[0]);
        let b = read_lanes::<O::B>(registers, constants, instruction.sources[1]);
        let c = read_lanes::<O::C>(registers, constants, instruction.sources[2]);
        let mut result = [O::D::ZERO; LANES];
        for lane in lanes_one_by_one() {
            result[lane] = O::apply(a[lane], b[lane], c[lane], instruction.immediate);
        }
        write_lanes(registers, instruction.destinations[0], &result, mask);
    }
}

/// A special register that is the same in all lanes: `immediate` is its place.
pub(crate) struct UniformSpecial;

impl Body for UniformSpecial {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, _: &[Row], mask: u32) {
        let value = registers.special[instruction.immediate as usize];
        u32::write(registers, instruction.destinations[0], &[value; LANES], mask);
    }
}

/// A special register about the CTA's cluster: `immediate` is its place.
pub(crate) struct ClusterSpecial;

impl Body for ClusterSpecial {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, _: &[Row], mask: u32) {
        let value = registers.cluster[instruction.immediate as usize];
        u32::write(registers, instruction.destinations[0], &[value; LANES], mask);
    }
}

/// The 64-bit special register at `immediate` and the place after it.
pub(crate) struct UniformSpecialWide;

impl Body for UniformSpecialWide {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, _: &[Row], mask: u32) {
        let place = instruction.immediate as usize;
        let value = u64::from(registers.special[place]) | u64::from(registers.special[place + 1]) << 32;
        u64::write(registers, instruction.destinations[0], &[value; LANES], mask);
    }
}

/// `%tid`: `immediate` is the component.
pub(crate) struct ThreadIndex;

impl Body for ThreadIndex {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, _: &[Row], mask: u32) {
        let indices = registers.thread_index(instruction.immediate as usize);
        u32::write(registers, instruction.destinations[0], &indices, mask);
    }
}

/// `activemask`.
pub(crate) struct ActiveMask;

impl Body for ActiveMask {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, _: &[Row], mask: u32) {
        u32::write(registers, instruction.destinations[0], &[mask; LANES], mask);
    }
}

/// `ld.param` of a kernel: `offset` counts from the start of the parameter block, or from the first source where
/// `immediate` is 1.
pub(crate) struct LoadParameter;

impl Body for LoadParameter {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let form = &instruction.memory;
        for element in 0..usize::from(form.elements) {
            let shift = element as u64 * u64::from(form.element_bytes);
            let base = (instruction.offset as u64).wrapping_add(shift);
            let values: [u64; LANES] = if instruction.immediate == 0 {
                [parameter(registers, form.element_bytes, form.signed, base); LANES]
            } else {
                let addresses = u64::read(registers, constants, instruction.sources[0]);
                addresses
                    .map(|address| parameter(registers, form.element_bytes, form.signed, base.wrapping_add(address)))
            };
            write_element(registers, instruction.destinations[element], form.wide[element], &values, mask);
        }
    }
}

/// Writes loaded values to a 32-bit or a 64-bit register.
#[inline(always)]
pub(crate) fn write_element(registers: &mut Registers, destination: u16, wide: bool, values: &[u64; LANES], mask: u32) {
    if wide {
        u64::write(registers, destination, values, mask);
    } else {
        u32::write(registers, destination, &each_lane!(values, |value| value as u32), mask);
    }
}

/// A value of the parameter block; zero past its end.
fn parameter(registers: &Registers, bytes: u8, signed: bool, offset: u64) -> u64 {
    let mut value = 0;
    for byte in 0..u64::from(bytes) {
        let place = usize::try_from(offset.wrapping_add(byte)).unwrap_or(usize::MAX);
        value |= u64::from(registers.parameters.get(place).copied().unwrap_or(0)) << (8 * byte);
    }
    extend(value, bytes, signed)
}

/// Sign-extends the low `bytes` of a value if asked to.
#[inline(always)]
pub(crate) fn extend(value: u64, bytes: u8, signed: bool) -> u64 {
    if signed && bytes < 8 {
        let shift = 64 - 8 * u32::from(bytes);
        (((value << shift) as i64) >> shift) as u64
    } else {
        value
    }
}

/// Nothing.
pub(crate) struct Nothing;

impl Body for Nothing {
    #[inline(always)]
    fn run(_: &Instruction, _: &mut Registers, _: &[Row], _: u32) {}
}

impl Instruction {
    /// One that does nothing, in all lanes.
    pub fn nothing() -> Instruction {
        Instruction {
            functions: functions::<Nothing>(),
            kind: Kind::Lanes,
            guard: TRUE_PREDICATE,
            predicate_destinations: [SINK_PREDICATE; 2],
            predicate_sources: [TRUE_PREDICATE; 2],
            guard_flip: 0,
            predicate_flips: [0; 2],
            destinations: [SINK_ROW; 4],
            sources: [Source(SINK_ROW); 5],
            operand_list: 0,
            signs: 0,
            uniform: UniformResult::default(),
            immediate: 0,
            target: 0,
            reconvergence: NEVER,
            offset: 0,
            memory: MemoryForm::NONE,
        }
    }
}
