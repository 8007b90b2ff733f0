//! How a lane function runs: the loops over lanes that every operation shares.
//!
//! Each body is compiled twice, portably and with vector features; see [`functions`].

use super::registers::{Lane, Registers, each_lane};
use crate::operation::{Instruction, LaneFunction, Row};
use crate::program::LANES;
use std::marker::PhantomData;

/// A computation on registers in the lanes of a mask.
pub(crate) trait Body {
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32);
}

fn portable<B: Body>(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
    B::run(instruction, registers, constants, mask);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
fn vectorised<B: Body>(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
    B::run(instruction, registers, constants, mask);
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
}

/// A truth from two values of the same lane.
pub(crate) trait Comparison {
    type T: Lane;
    fn test(a: Self::T, b: Self::T) -> bool;
}

/// How `setp` and `set` combine a comparison with a predicate: `Instruction::immediate`.
pub(crate) mod combine {
    pub const NONE: u32 = 0;
    pub const AND: u32 = 1;
    pub const OR: u32 = 2;
    pub const XOR: u32 = 3;
}

#[inline(always)]
fn combined(how: u32, truth: u32, predicate: u32) -> u32 {
    match how {
        combine::AND => truth & predicate,
        combine::OR => truth | predicate,
        combine::XOR => truth ^ predicate,
        _ => truth,
    }
}

#[inline(always)]
fn compare<O: Comparison>(instruction: &Instruction, registers: &Registers, constants: &[Row]) -> u32 {
    let a = O::T::read(registers, constants, instruction.sources[0]);
    let b = O::T::read(registers, constants, instruction.sources[1]);
    let mut truth = 0;
    for lane in 0..LANES {
        truth |= u32::from(O::test(a[lane], b[lane])) << lane;
    }
    truth
}

/// `setp`: two predicates from a comparison.
pub(crate) struct SetPredicate<O>(PhantomData<O>);

impl<O: Comparison> Body for SetPredicate<O> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let truth = compare::<O>(instruction, registers, constants);
        let other = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        let how = instruction.immediate;
        registers.set_predicate(instruction.predicate_destinations[0], combined(how, truth, other), mask);
        registers.set_predicate(instruction.predicate_destinations[1], combined(how, !truth, other), mask);
    }
}

/// `set`: a comparison's result as a 32-bit value, all ones (or 1.0, the second source's value) where true.
pub(crate) struct SetValue<O>(PhantomData<O>);

impl<O: Comparison> Body for SetValue<O> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let truth = compare::<O>(instruction, registers, constants);
        let other = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        let truth = combined(instruction.immediate, truth, other);
        let ones = u32::read(registers, constants, instruction.sources[2]);
        let values = std::array::from_fn(|lane| if (truth >> lane) & 1 != 0 { ones[lane] } else { 0 });
        u32::write(registers, instruction.destinations[0], &values, mask);
    }
}

/// `selp`: one of two values, by a predicate.
pub(crate) struct Select<T>(PhantomData<T>);

impl<T: Lane> Body for Select<T> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let a = T::read(registers, constants, instruction.sources[0]);
        let b = T::read(registers, constants, instruction.sources[1]);
        let truth = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        let mut values = b;
        for lane in 0..LANES {
            values[lane] = if (truth >> lane) & 1 != 0 { a[lane] } else { b[lane] };
        }
        T::write(registers, instruction.destinations[0], &values, mask);
    }
}

/// Logic on predicates: `Instruction::immediate` says which, as in [`combine`]; `NONE` moves the first.
pub(crate) struct PredicateLogic;

impl Body for PredicateLogic {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, _: &[Row], mask: u32) {
        let [a, b] =
            [0, 1].map(|n| registers.predicate(instruction.predicate_sources[n], instruction.predicate_flips[n]));
        let value = combined(instruction.immediate, a, b);
        registers.set_predicate(instruction.predicate_destinations[0], value, mask);
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
        let row = registers.thread[instruction.immediate as usize];
        u32::write(registers, instruction.destinations[0], &row.0, mask);
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

/// `add` and the like with carry: reads the flag where `IN`, writes it where `OUT`. `SUBTRACT` computes a - b - borrow.
pub(crate) struct Carry<const IN: bool, const OUT: bool, const SUBTRACT: bool, const WIDE: bool>;

impl<const IN: bool, const OUT: bool, const SUBTRACT: bool, const WIDE: bool> Body for Carry<IN, OUT, SUBTRACT, WIDE> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let widen = |source| {
            if WIDE {
                u64::read(registers, constants, source)
            } else {
                u32::read(registers, constants, source).map(u64::from)
            }
        };
        let (a, b) = (widen(instruction.sources[0]), widen(instruction.sources[1]));
        add_with_carry::<IN, OUT, SUBTRACT, WIDE>(instruction, registers, &a, &b, mask);
    }
}

#[inline(always)]
fn add_with_carry<const IN: bool, const OUT: bool, const SUBTRACT: bool, const WIDE: bool>(
    instruction: &Instruction,
    registers: &mut Registers,
    a: &[u64; LANES],
    b: &[u64; LANES],
    mask: u32,
) {
    let bits = if WIDE { 64 } else { 32 };
    let mut values = [0; LANES];
    let mut carry = 0;
    for lane in 0..LANES {
        let flag = if IN { u128::from((registers.carry >> lane) & 1) } else { 0 };
        // The flag of a subtraction is its borrow.
        let sum = if SUBTRACT {
            u128::from(a[lane]).wrapping_sub(u128::from(b[lane])).wrapping_sub(flag)
        } else {
            u128::from(a[lane]) + u128::from(b[lane]) + flag
        };
        values[lane] = sum as u64;
        carry |= ((sum >> bits) as u32 & 1) << lane;
    }
    write_element(registers, instruction.destinations[0], WIDE, &values, mask);
    if OUT {
        registers.carry = (registers.carry & !mask) | (carry & mask);
    }
}

/// `mad` and `madc` of 32 bits with carry: the low or, where `HIGH`, the high half of the product, plus the third source.
pub(crate) struct MultiplyCarry<const IN: bool, const OUT: bool, const HIGH: bool, const SIGNED: bool>;

impl<const IN: bool, const OUT: bool, const HIGH: bool, const SIGNED: bool> Body
    for MultiplyCarry<IN, OUT, HIGH, SIGNED>
{
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let a = u32::read(registers, constants, instruction.sources[0]);
        let b = u32::read(registers, constants, instruction.sources[1]);
        let c = u32::read(registers, constants, instruction.sources[2]).map(u64::from);
        let product: [u64; LANES] = std::array::from_fn(|lane| {
            let product = if SIGNED {
                (i64::from(a[lane] as i32) * i64::from(b[lane] as i32)) as u64
            } else {
                u64::from(a[lane]) * u64::from(b[lane])
            };
            if HIGH { product >> 32 } else { product & 0xffff_ffff }
        });
        add_with_carry::<IN, OUT, false, false>(instruction, registers, &product, &c, mask);
    }
}

/// Nothing.
pub(crate) struct Nothing;

impl Body for Nothing {
    #[inline(always)]
    fn run(_: &Instruction, _: &mut Registers, _: &[Row], _: u32) {}
}

/// `mov d, {a, b, ...}`: `immediate` is the bits of a part.
pub(crate) struct Pack;

impl Body for Pack {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let bits = instruction.immediate;
        let keep = (1u64 << bits) - 1;
        let mut values = [0; LANES];
        for part in 0..usize::from(instruction.memory.elements) {
            let row = u32::read(registers, constants, instruction.sources[part]);
            for lane in 0..LANES {
                values[lane] |= (u64::from(row[lane]) & keep) << (bits * part as u32);
            }
        }
        write_element(registers, instruction.destinations[0], instruction.memory.wide[0], &values, mask);
    }
}

/// `mov {a, b, ...}, d`
pub(crate) struct Unpack;

impl Body for Unpack {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let bits = instruction.immediate;
        let keep = (1u64 << bits) - 1;
        let values: [u64; LANES] = if instruction.memory.wide[0] {
            u64::read(registers, constants, instruction.sources[0])
        } else {
            u32::read(registers, constants, instruction.sources[0]).map(u64::from)
        };
        for part in 0..usize::from(instruction.memory.elements) {
            let shift = bits * part as u32;
            let row = values.map(|value| ((value >> shift) & keep) as u32);
            u32::write(registers, instruction.destinations[part], &row, mask);
        }
    }
}

/// `bfi`: the first source's low bits into the second, at the third's position, as many as the fourth says.
pub(crate) struct Insert<const WIDE: bool>;

impl<const WIDE: bool> Body for Insert<WIDE> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let [a, b]: [[u64; LANES]; 2] = [0, 1].map(|index| {
            let source = instruction.sources[index];
            if WIDE {
                u64::read(registers, constants, source)
            } else {
                u32::read(registers, constants, source).map(u64::from)
            }
        });
        let positions = u32::read(registers, constants, instruction.sources[2]);
        let lengths = u32::read(registers, constants, instruction.sources[3]);
        let width = if WIDE { 64 } else { 32 };
        let values =
            std::array::from_fn(|lane| super::integer::insert(a[lane], b[lane], positions[lane], lengths[lane], width));
        write_element(registers, instruction.destinations[0], WIDE, &values, mask);
    }
}
