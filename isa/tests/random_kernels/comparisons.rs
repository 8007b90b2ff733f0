//! `setp`, `set`, `selp`, `slct`, `testp`.

use crate::operation::{FloatFormat, Literal, Operation, Source, float, integer, register};
use crate::random::Random;
use crate::values::{meaning, name};
use FloatFormat::{Brain, Double, Half, Single};
use std::cmp::Ordering;

/// The name of a comparison, what it is of numbers, and what it is where one is none.
type Comparison = (&'static str, fn(Ordering) -> bool, bool);

const ORDERS: [Comparison; 6] = [
    ("eq", Ordering::is_eq, false),
    ("ne", Ordering::is_ne, false),
    ("lt", Ordering::is_lt, false),
    ("le", Ordering::is_le, false),
    ("gt", Ordering::is_gt, false),
    ("ge", Ordering::is_ge, false),
];
/// Those that are true where one of both is no number.
const UNORDERED: [Comparison; 8] = [
    ("equ", Ordering::is_eq, true),
    ("neu", Ordering::is_ne, true),
    ("ltu", Ordering::is_lt, true),
    ("leu", Ordering::is_le, true),
    ("gtu", Ordering::is_gt, true),
    ("geu", Ordering::is_ge, true),
    ("num", |_| true, false),
    ("nan", |_| false, true),
];

/// A type that is compared.
struct Compared {
    /// With the comparison's name and `.ftz`.
    words: String,
    source: Source,
    compare: Box<dyn Fn(u64, u64) -> bool>,
    kind: String,
}

/// The order of two values of a format, by the host's own comparison.
fn order(format: FloatFormat, a: u64, b: u64, flush: bool) -> Option<Ordering> {
    let value = |bits: u64| match format {
        Double => f64::from_bits(bits),
        Single if flush && bits & 0x7f80_0000 == 0 => 0.0,
        Single => f64::from(f32::from_bits(bits as u32)),
        Brain => f64::from(f32::from_bits((bits as u32) << 16)),
        Half => {
            let (fraction, exponent) = (bits & 0x3ff, bits >> 10 & 31);
            let size = match exponent {
                _ if flush && exponent == 0 => 0.0,
                0 => fraction as f64 * 2f64.powi(-24),
                31 if fraction == 0 => f64::INFINITY,
                31 => f64::NAN,
                _ => (fraction + 1024) as f64 * 2f64.powi(exponent as i32 - 25),
            };
            if bits & 0x8000 != 0 { -size } else { size }
        }
    };
    value(a).partial_cmp(&value(b))
}

fn any_compared(random: &mut Random) -> Compared {
    if random.one_in(2) {
        let (bits, signed) = (random.pick(&[16, 32, 32, 64]), random.one_in(2));
        let (word, holds, _) = random.pick(&ORDERS);
        let compare = move |a, b| holds(meaning(a, bits, signed).cmp(&meaning(b, bits, signed)));
        let source = integer(bits);
        return Compared { words: format!(".{word}"), source, compare: Box::new(compare), kind: name(bits, signed) };
    }
    let format = random.pick(&[Half, Single, Single, Double]);
    let (word, holds, otherwise) = if random.one_in(2) { random.pick(&ORDERS) } else { random.pick(&UNORDERED) };
    let flush = format != Double && random.one_in(3);
    let compare = move |a, b| order(format, a, b, flush).map_or(otherwise, holds);
    let words = format!(".{word}{}", if flush { ".ftz" } else { "" });
    Compared { words, source: float(format), compare: Box::new(compare), kind: format.name().to_owned() }
}

/// `and`, `or`, `xor` of the comparison and a predicate.
fn any_combination(random: &mut Random) -> (&'static str, fn(bool, bool) -> bool) {
    random.pick(&[(".and", (|a, b| a & b) as fn(bool, bool) -> bool), (".or", |a, b| a | b), (".xor", |a, b| a ^ b)])
}

/// The words with the combination before the flushing.
fn combined_words(words: &str, combination: &str) -> String {
    match words.split_once(".ftz") {
        Some((comparison, _)) => format!("{comparison}{combination}.ftz"),
        None => format!("{words}{combination}"),
    }
}

/// `setp` with one and two destinations, alone and combined with a predicate.
pub fn to_predicates(random: &mut Random) -> Operation {
    let Compared { words, source, compare, kind } = any_compared(random);
    if random.one_in(2) {
        return Operation::new(format!("setp{words}.{kind} $d, $a, $b"), &[source; 2], 1, move |values| {
            u64::from(compare(values[0], values[1]))
        });
    }
    let (combination, combine) = any_combination(random);
    let words = combined_words(&words, combination);
    let negated = random.one_in(2);
    let sign = if negated { "!" } else { "" };
    let sources = [source, source, register(1)];
    // Of halves there is one destination.
    match kind == "f16" || random.one_in(2) {
        true => Operation::new(format!("setp{words}.{kind} $d, $a, $b, {sign}$c"), &sources, 1, move |values| {
            u64::from(combine(compare(values[0], values[1]), (values[2] != 0) != negated))
        }),
        false => {
            let text = format!("setp{words}.{kind} $d|$f, $a, $b, {sign}$c");
            Operation::of_several(text, &sources, &[1, 1], move |values| {
                let truth = compare(values[0], values[1]);
                let other = (values[2] != 0) != negated;
                vec![u64::from(combine(truth, other)), u64::from(combine(!truth, other))]
            })
        }
    }
}

/// `set`: all ones, or 1.0.
pub fn to_values(random: &mut Random) -> Operation {
    any_set(random).unguarded()
}

fn any_set(random: &mut Random) -> Operation {
    let mut compared = any_compared(random);
    while compared.kind == "f16" {
        compared = any_compared(random);
    }
    let Compared { words, source, compare, kind } = compared;
    let result = random.pick(&["u32", "s32", "f32"]);
    // ptxas 12.9 may confuse a float's truth with an integer's, where one follows from constants: one has a bit more.
    let (after, flip) = if result == "f32" { ("; xor.b32 $d, $d, 1", 1) } else { ("", 0) };
    let truth_value = if result == "f32" { 0x3f80_0000 } else { 0xffff_ffff };
    let value = move |truth: bool| if truth { truth_value ^ flip } else { flip };
    if random.one_in(2) {
        return Operation::new(
            format!("set{words}.{result}.{kind} $d, $a, $b{after}"),
            &[source; 2],
            32,
            move |values| value(compare(values[0], values[1])),
        );
    }
    let (combination, combine) = any_combination(random);
    let words = combined_words(&words, combination);
    let sources = [source, source, register(1)];
    Operation::new(format!("set{words}.{result}.{kind} $d, $a, $b, $c{after}"), &sources, 32, move |values| {
        value(combine(compare(values[0], values[1]), values[2] != 0))
    })
}

/// `selp` and `slct`.
pub fn selections(random: &mut Random) -> Operation {
    let bits = random.pick(&[16, 32, 64]);
    let source = integer(bits);
    match random.below(3) {
        0 => Operation::new(format!("selp.b{bits} $d, $a, $b, $c"), &[source, source, register(1)], bits, |values| {
            if values[2] != 0 { values[0] } else { values[1] }
        }),
        1 => {
            Operation::new(format!("slct.b{bits}.s32 $d, $a, $b, $c"), &[source, source, integer(32)], bits, |values| {
                if values[2] as i32 >= 0 { values[0] } else { values[1] }
            })
        }
        _ => {
            let flush = random.one_in(2);
            let word = if flush { ".ftz" } else { "" };
            let sources = [source, source, Source { width: 32, literal: Literal::Float }];
            Operation::new(format!("slct{word}.b{bits}.f32 $d, $a, $b, $c"), &sources, bits, move |values| {
                let is_chosen = order(Single, values[2], 0, flush).is_some_and(Ordering::is_ge);
                if is_chosen { values[0] } else { values[1] }
            })
        }
    }
}

/// `testp`.
pub fn classes(random: &mut Random) -> Operation {
    let format = random.pick(&[Single, Double]);
    let class = random.pick(&["finite", "infinite", "number", "notanumber", "normal", "subnormal"]);
    // Where the destination had another use before, ptxas 12.9 takes the new value for it.
    let text = format!("testp.{class}.{} %q2, $a; selp.u32 %t0, 1, 0, %q2; setp.ne.u32 $d, %t0, 0", format.name());
    let test = move |value: f64, is_subnormal: bool| match class {
        "finite" => value.is_finite(),
        "infinite" => value.is_infinite(),
        "number" => !value.is_nan(),
        "notanumber" => value.is_nan(),
        // Zeros count as normal.
        "normal" => value.is_finite() && !is_subnormal,
        _ => is_subnormal,
    };
    Operation::new(text, &[register(format.width())], 1, move |values| {
        let truth = match format {
            Double => {
                let value = f64::from_bits(values[0]);
                test(value, value.is_subnormal())
            }
            _ => {
                let value = f32::from_bits(values[0] as u32);
                test(f64::from(value), value.is_subnormal())
            }
        };
        u64::from(truth)
    })
    .unguarded()
}
