//! Floating-point arithmetic with its rounding given: to nearest by the host's own singles and doubles, else by arbitrary precision.

use crate::operation::{FloatFormat, Operation, Source, float, register};
use crate::random::Random;
use crate::reference::{self, Bf16, F16, F32, F64, Format, ROUNDINGS, Treatment};
use FloatFormat::{Brain, Double, Half, Single};
use reference::Operation as Arithmetic;

const OPERATIONS: [(&str, Arithmetic, usize); 7] = [
    ("add", Arithmetic::Add, 2),
    ("sub", Arithmetic::Sub, 2),
    ("mul", Arithmetic::Mul, 2),
    ("fma", Arithmetic::Fma, 3),
    ("div", Arithmetic::Div, 2),
    ("rcp", Arithmetic::Rcp, 1),
    ("sqrt", Arithmetic::Sqrt, 1),
];
const OPERANDS: [&str; 4] = ["", "$a", "$a, $b", "$a, $b, $c"];

/// What the host's own arithmetic gives, which rounds to nearest.
macro_rules! native {
    ($operation:expr, $values:expr, $type:ty, $bits:ty) => {{
        let value = |index: usize| <$type>::from_bits($values[index] as $bits);
        let result = match $operation {
            Arithmetic::Add => value(0) + value(1),
            Arithmetic::Sub => value(0) - value(1),
            Arithmetic::Mul => value(0) * value(1),
            Arithmetic::Div => value(0) / value(1),
            Arithmetic::Fma => value(0).mul_add(value(1), value(2)),
            Arithmetic::Rcp => 1.0 / value(0),
            Arithmetic::Sqrt => value(0).sqrt(),
        };
        u64::from(result.to_bits())
    }};
}

/// The result of an operation on values of a format.
pub fn computed(
    format: FloatFormat,
    operation: Arithmetic,
    values: &[u64],
    treatment: Treatment,
    rounding: usize,
) -> u64 {
    let is_plain = rounding == 0 && !treatment.flush && !treatment.saturate;
    match format {
        Single if is_plain => native!(operation, values, f32, u32),
        Double if is_plain => native!(operation, values, f64, u64),
        Half => reference::result::<F16>(operation, values, treatment),
        Brain => reference::result::<Bf16>(operation, values, treatment),
        Single => reference::result::<F32>(operation, values, treatment),
        Double => reference::result::<F64>(operation, values, treatment),
    }
}

/// `add` to `sqrt` in every format and rounding.
pub fn arithmetic(random: &mut Random) -> Operation {
    let format = random.pick(&[Half, Single, Single, Double]);
    // Of the others, which are long in machine code, there are fewer; halves have none of them.
    let simple = format == Half || !random.one_in(5);
    let (opcode, operation, count) = OPERATIONS[if simple { random.below(4) } else { 4 + random.below(3) }];
    let rounding = if format == Half { 0 } else { random.below(4) };
    let (word, round) = ROUNDINGS[rounding];
    let flush = format != Double && random.one_in(3);
    let saturate = simple && format != Double && random.one_in(4);
    let treatment = Treatment { round, flush, saturate, relu: false };
    let words = format!("{word}{}{}", if flush { ".ftz" } else { "" }, if saturate { ".sat" } else { "" });
    let operands = OPERANDS[count];
    if format == Half && random.one_in(2) {
        let text = format!("{opcode}{words}.f16x2 $d, {operands}");
        return Operation::new(text, &vec![register(32); count], 32, move |values| {
            reference::of_parts::<F16>(values, |part| computed(Half, operation, part, treatment, rounding))
        })
        .canonical(Half);
    }
    let text = format!("{opcode}{words}.{} $d, {operands}", format.name());
    Operation::new(text, &vec![float(format); count], format.width(), move |values| {
        computed(format, operation, values, treatment, rounding)
    })
    .canonical(format)
}

/// Follows the ISA's description; -0 is less than +0, and a number wins over a not-a-number.
pub fn extremum<T: Format>(values: &[u64], is_maximum: bool, flush: bool) -> u64 {
    let [a, b] = [0, 1].map(|index| if flush { reference::flush::<T>(values[index]) } else { values[index] });
    // As integers of the same order.
    let order = |bits: u64| {
        let size = i128::from(reference::magnitude::<T>(bits));
        if bits & reference::sign::<T>() != 0 { -size - 1 } else { size }
    };
    match (reference::is_nan::<T>(a), reference::is_nan::<T>(b)) {
        (true, _) => b,
        (false, true) => a,
        _ if (order(a) < order(b)) != is_maximum => a,
        _ => b,
    }
}

/// `min`, `max`, `abs`, `neg`, `copysign`.
pub fn selections(random: &mut Random) -> Operation {
    let format = random.pick(&[Single, Double]);
    let flush = format == Single && random.one_in(2);
    let word = if flush { ".ftz" } else { "" };
    let (name, width) = (format.name(), format.width());
    let sign = 1 << (width - 1);
    let flushed = move |bits: u64| if flush { reference::flush::<F32>(bits) } else { bits };
    match random.below(5) {
        0 | 1 => {
            let is_maximum = random.one_in(2);
            let opcode = if is_maximum { "max" } else { "min" };
            Operation::new(format!("{opcode}{word}.{name} $d, $a, $b"), &[float(format); 2], width, move |values| {
                match format {
                    Double => extremum::<F64>(values, is_maximum, false),
                    _ => extremum::<F32>(values, is_maximum, flush),
                }
            })
        }
        2 => Operation::new(format!("abs{word}.{name} $d, $a"), &[float(format)], width, move |values| {
            flushed(values[0]) & !sign
        }),
        3 => Operation::new(format!("neg{word}.{name} $d, $a"), &[float(format)], width, move |values| {
            flushed(values[0]) ^ sign
        }),
        _ => Operation::new(format!("copysign.{name} $d, $a, $b"), &[float(format); 2], width, move |values| {
            values[0] & sign | values[1] & !sign
        }),
    }
    .canonical(format)
}

/// `abs` and `neg` of halves and pairs of them.
pub fn signs_of_halves(random: &mut Random) -> Operation {
    let is_pair = random.one_in(2);
    let (name, width, signs) = if is_pair { ("f16x2", 32, 0x8000_8000) } else { ("f16", 16, 0x8000) };
    let source: [Source; 1] = [register(width)];
    match random.one_in(2) {
        true => Operation::new(format!("abs.{name} $d, $a"), &source, width, move |values| values[0] & !signs),
        false => Operation::new(format!("neg.{name} $d, $a"), &source, width, move |values| values[0] ^ signs),
    }
    .canonical(Half)
}
