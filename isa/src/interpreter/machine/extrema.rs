//! Sums and extrema of integers of Hopper, which may be pairs of halves: `VIADD`, `VIMNMX`, `VIADDMNMX`, `VIMNMX3`.

use crate::interpreter::bodies::Body;
use crate::interpreter::registers::{Lane, Registers};
use crate::lanes::LANES;
use crate::operation::Instruction;
use crate::operation::operand::{Row, SINK_PREDICATE};

/// The form of an instruction: bits of the immediate.
pub(crate) mod extremum_form {
    /// Integers are signed.
    pub const SIGNED: u32 = 1;
    /// Pairs of halves.
    pub const HALVES: u32 = 2;
    /// Negative results become zero.
    pub const RELU: u32 = 4;
    /// The first two sources are added, and the sum compared with the third.
    pub const SUM: u32 = 8;
    /// The third source is compared, too.
    pub const THREE: u32 = 16;
    /// The second source is negated.
    pub const NEGATED: u32 = 32;
}

/// The lesser of values where the predicate is true, elsewhere the greater one. Of pairs of halves, the two predicates that are written say
/// whether the lower and the upper half of the result is that of the first source.
pub(crate) struct IntegerExtremum;

impl Body for IntegerExtremum {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let form = instruction.immediate;
        let rows = [0, 1, 2].map(|source| u32::read(registers, constants, instruction.sources[source]));
        let lesser = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        if are_plain_words(form) {
            let results = extrema_of_words(&rows, lesser, form);
            return u32::write(registers, instruction.destinations[0], &results, mask);
        }
        let mut first_taken = [0; 2];
        let results = std::array::from_fn(|lane| {
            let is_least = lesser >> lane & 1 != 0;
            let values = rows.each_ref().map(|row| row[lane]);
            if form & extremum_form::HALVES != 0 {
                let [low, high] = [0, 1].map(|place| {
                    let values = values.map(|value| half(value >> (16 * place), form));
                    let (result, is_first) = extremum(values, is_least, form);
                    first_taken[place] |= u32::from(is_first) << lane;
                    result as u32 & 0xffff
                });
                return low | high << 16;
            }
            let is_signed = form & extremum_form::SIGNED != 0;
            let values = values.map(|value| if is_signed { i64::from(value as i32) } else { i64::from(value) });
            extremum(values, is_least, form).0 as u32
        });
        u32::write(registers, instruction.destinations[0], &results, mask);
        if instruction.predicate_destinations != [SINK_PREDICATE; 2] {
            for (destination, lanes) in instruction.predicate_destinations.into_iter().zip(first_taken) {
                registers.set_predicate(destination, lanes, mask);
            }
        }
    }
}

/// Words, none of which is negated but to be added: nothing has more bits than they have, and no predicate is asked for.
fn are_plain_words(form: u32) -> bool {
    form & extremum_form::HALVES == 0 && form & (extremum_form::NEGATED | extremum_form::SUM) != extremum_form::NEGATED
}

/// The same for all lanes at once.
#[inline(always)]
fn extrema_of_words([a, b, c]: &[[u32; LANES]; 3], lesser: u32, form: u32) -> [u32; LANES] {
    // Unsigned numbers have the order of signed ones whose topmost bit is changed.
    let flip = if form & extremum_form::SIGNED != 0 { 0 } else { 1 << 31 };
    let choose = |x: &[u32; LANES], y: &[u32; LANES]| {
        let mut chosen = [0; LANES];
        for lane in 0..LANES {
            let (x, y) = ((x[lane] ^ flip) as i32, (y[lane] ^ flip) as i32);
            let (least, most) = (x.min(y), x.max(y));
            chosen[lane] = (if lesser >> lane & 1 != 0 { least } else { most }) as u32 ^ flip;
        }
        chosen
    };
    let mut results = if form & extremum_form::SUM != 0 {
        let mut sums = [0; LANES];
        for lane in 0..LANES {
            let b = if form & extremum_form::NEGATED != 0 { b[lane].wrapping_neg() } else { b[lane] };
            sums[lane] = a[lane].wrapping_add(b);
        }
        choose(&sums, c)
    } else {
        choose(a, b)
    };
    if form & extremum_form::THREE != 0 {
        results = choose(&results, c);
    }
    if form & (extremum_form::RELU | extremum_form::SIGNED) == extremum_form::RELU | extremum_form::SIGNED {
        results = results.map(|result| (result as i32).max(0) as u32);
    }
    results
}

/// The value of the lower half of a word.
#[inline(always)]
fn half(word: u32, form: u32) -> i64 {
    if form & extremum_form::SIGNED != 0 { i64::from(word as i16) } else { i64::from(word as u16) }
}

/// The extremum, and whether it is the first value.
#[inline(always)]
fn extremum([a, b, c]: [i64; 3], is_least: bool, form: u32) -> (i64, bool) {
    let choose = |a: i64, b: i64| if is_least { a.min(b) } else { a.max(b) };
    let b = if form & extremum_form::NEGATED != 0 { -b } else { b };
    let result = match () {
        () if form & extremum_form::SUM != 0 => choose(wrapped(a + b, form), c),
        () if form & extremum_form::THREE != 0 => choose(choose(a, b), c),
        () => choose(a, b),
    };
    let limited = if form & extremum_form::RELU != 0 { result.max(0) } else { result };
    (limited, choose(a, b) == a)
}

/// A sum in the width of the values.
#[inline(always)]
fn wrapped(sum: i64, form: u32) -> i64 {
    match (form & extremum_form::HALVES != 0, form & extremum_form::SIGNED != 0) {
        (true, true) => i64::from(sum as i16),
        (true, false) => i64::from(sum as u16),
        (false, true) => i64::from(sum as i32),
        (false, false) => i64::from(sum as u32),
    }
}

/// `VIADD.16x2`: the immediate negates the second pair.
pub(crate) struct AddHalves;

impl Body for AddHalves {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let [a, b] = [0, 1].map(|source| u32::read(registers, constants, instruction.sources[source]));
        let is_negated = instruction.immediate != 0;
        let results = std::array::from_fn(|lane: usize| {
            let sum = |shift: u32| {
                let (a, b) = ((a[lane] >> shift) as u16, (b[lane] >> shift) as u16);
                u32::from(if is_negated { a.wrapping_sub(b) } else { a.wrapping_add(b) })
            };
            sum(0) | sum(16) << 16
        });
        u32::write(registers, instruction.destinations[0], &results, mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_at_once_are_those_one_by_one() {
        let notable = [0, 1, 5, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_fffe, u32::MAX];
        let row = |step: usize| std::array::from_fn(|lane| notable[(lane * step + lane / 8 * 3) % notable.len()]);
        let rows = [row(1), row(3), row(5)];
        for form in (0..64).filter(|form| are_plain_words(*form)) {
            for lesser in [0, u32::MAX, 0x5a5a_3c3c] {
                let found = extrema_of_words(&rows, lesser, form);
                for lane in 0..LANES {
                    let is_signed = form & extremum_form::SIGNED != 0;
                    let values = rows.each_ref().map(|row| row[lane]);
                    let values = values.map(|value| if is_signed { i64::from(value as i32) } else { i64::from(value) });
                    let (expected, _) = extremum(values, lesser >> lane & 1 != 0, form);
                    assert_eq!(found[lane], expected as u32, "form {form:#x}, {values:?}");
                }
            }
        }
    }
}
