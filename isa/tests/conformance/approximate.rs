//! Approximate functions against double precision, within the errors that the PTX ISA states; its tables of special values exactly.

use crate::cases::{check, check_by};
use crate::reference::{
    Bf16, F16, F32, F64, Format, Random, edges, flush, infinity, is_nan, magnitude, of_parts, packed,
};

const NAN: u64 = 0x7fff_ffff;
const INFINITY: u64 = 0x7f80_0000;
const NEGATIVE_INFINITY: u64 = 0xff80_0000;
const ONE: u64 = 0x3f80_0000;
const NEGATIVE_ZERO: u64 = 0x8000_0000;

/// How far a result may be from the exact value.
enum Bound {
    /// Units in the last place of the result.
    Units(f64),
    /// Relative, as a power of two; half a unit of the smallest subnormal besides.
    Relative(f64),
    /// Absolute, as a power of two.
    Absolute(f64),
}

fn single(bits: u64) -> f64 {
    f64::from(f32::from_bits(bits as u32))
}

/// A unit in the last place of a single of that size.
fn unit(value: f64) -> f64 {
    let exponent = value.abs().max(f64::from(f32::MIN_POSITIVE)).log2().floor();
    (exponent - 23.0).exp2()
}

/// Whether a single is within a bound of an exact value, rounded to a single; `flushes` where subnormal results are zeros.
fn within(result: u64, exact: f64, bound: &Bound, flushes: bool) -> Result<(), String> {
    if exact.is_nan() {
        return if result == NAN { Ok(()) } else { Err("not-a-number expected".to_string()) };
    }
    let value = single(result);
    let nearest = f64::from(exact as f32);
    if nearest.is_infinite() || value.is_infinite() || value.is_nan() {
        return if value == nearest { Ok(()) } else { Err(format!("{nearest:e} expected")) };
    }
    if flushes
        && exact.abs() < f64::from(f32::MIN_POSITIVE)
        && value == 0.0
        && value.is_sign_negative() == exact.is_sign_negative()
    {
        return Ok(());
    }
    let allowed = match bound {
        Bound::Units(units) => units * unit(nearest),
        Bound::Relative(power) => exact.abs() * power.exp2() + 0.5 * unit(0.0),
        Bound::Absolute(power) => power.exp2(),
    };
    if (value - exact).abs() <= allowed {
        Ok(())
    } else {
        Err(format!("{exact:e} expected, {value:e} is too far from it"))
    }
}

/// Operands of one source: edges, and a few thousand between two magnitudes (powers of two), of both signs.
fn operands(low: f64, high: f64) -> Vec<Vec<u64>> {
    let mut random = Random(23);
    let mut rows: Vec<Vec<u64>> = edges::<F32>().into_iter().map(|value| vec![value]).collect();
    for _ in 0..3000 {
        let place = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
        let value = (low + (high - low) * place).exp2() as f32;
        rows.push(vec![u64::from(value.to_bits()) | random.next() & NEGATIVE_ZERO]);
    }
    rows
}

/// Checks a function of one single, and its flushing form.
fn check_function(name: &str, rows: &[Vec<u64>], function: impl Fn(f64) -> f64, bound: impl Fn(f64) -> Option<Bound>) {
    for flushes in [false, true] {
        let word = if flushes { ".ftz" } else { "" };
        check_by(&format!("{name}{word}.f32 $d, $a"), &[32], 32, rows, |row, result| {
            let operand = single(if flushes { flush::<F32>(row[0]) } else { row[0] });
            match bound(operand) {
                Some(bound) => within(result, function(operand), &bound, flushes),
                None => Ok(()),
            }
        });
    }
}

/// Checks special values: pairs of operand and result.
fn check_table(instruction: &str, width: u32, table: &[(u64, u64)]) {
    let rows: Vec<Vec<u64>> = table.iter().map(|(operand, _)| vec![*operand]).collect();
    check(&format!("{instruction} $d, $a"), &[width], width, &rows, |row| {
        table.iter().find(|(operand, _)| *operand == row[0]).map_or(0, |(_, result)| *result)
    });
}

#[test]
fn reciprocals() {
    // The maximum error is 1 unit over all operands.
    check_function("rcp.approx", &operands(-126.0, 127.9), |x| 1.0 / x, |_| Some(Bound::Units(1.0)));
    let table = [
        (NEGATIVE_INFINITY, NEGATIVE_ZERO),
        (NEGATIVE_ZERO, NEGATIVE_INFINITY),
        (0, INFINITY),
        (INFINITY, 0),
        (0x7f80_0001, NAN),
    ];
    check_table("rcp.approx.f32", 32, &table);
    check_table("rcp.approx.ftz.f32", 32, &table);
}

#[test]
fn roots() {
    // The maximum relative error is 2^-23 for roots, 2^-22.9 for their reciprocals, over the positive finite operands.
    check_function("sqrt.approx", &operands(-126.0, 127.9), f64::sqrt, |_| Some(Bound::Relative(-23.0)));
    check_function("rsqrt.approx", &operands(-126.0, 127.9), |x| 1.0 / x.sqrt(), |_| Some(Bound::Relative(-22.9)));
    let negative = 0xbf80_0000;
    let table = [
        (NEGATIVE_INFINITY, NAN),
        (negative, NAN),
        (NEGATIVE_ZERO, NEGATIVE_ZERO),
        (0, 0),
        (INFINITY, INFINITY),
        (0xffc0_0001, NAN),
    ];
    check_table("sqrt.approx.f32", 32, &table);
    let table = [
        (NEGATIVE_INFINITY, NAN),
        (negative, NAN),
        (NEGATIVE_ZERO, NEGATIVE_INFINITY),
        (0, INFINITY),
        (INFINITY, 0),
        (0xffc0_0001, NAN),
    ];
    check_table("rsqrt.approx.f32", 32, &table);
    check_table("rsqrt.approx.ftz.f32", 32, &[(0x8000_0001, NEGATIVE_INFINITY), (0x007f_ffff, INFINITY)]);
}

#[test]
fn sines_and_cosines() {
    // The maximum absolute error is 2^-20.5 from -2 pi to 2 pi, 2^-14.7 from -100 pi to 100 pi, not stated beyond.
    let turns = std::f64::consts::PI;
    let bound = move |x: f64| match x.abs() {
        size if size.is_nan() || size.is_infinite() => Some(Bound::Absolute(0.0)),
        size if size <= 2.0 * turns => Some(Bound::Absolute(-20.5)),
        size if size <= 100.0 * turns => Some(Bound::Absolute(-14.7)),
        _ => None,
    };
    check_function("sin.approx", &operands(-20.0, 8.5), f64::sin, bound);
    check_function("cos.approx", &operands(-20.0, 8.5), f64::cos, bound);
    let table = [(NEGATIVE_INFINITY, NAN), (NEGATIVE_ZERO, NEGATIVE_ZERO), (0, 0), (INFINITY, NAN), (0x7fc0_0000, NAN)];
    check_table("sin.approx.f32", 32, &table);
    check_table("sin.approx.ftz.f32", 32, &[(0x8000_0001, NEGATIVE_ZERO), (1, 0)]);
    let table = [(NEGATIVE_INFINITY, NAN), (NEGATIVE_ZERO, ONE), (0, ONE), (INFINITY, NAN), (0x7fc0_0000, NAN)];
    check_table("cos.approx.f32", 32, &table);
}

#[test]
fn logarithms() {
    // The maximum absolute error is 2^-22 between 1/2 and 2, elsewhere the maximum relative error.
    let bound = |x: f64| Some(if x > 0.5 && x < 2.0 { Bound::Absolute(-22.0) } else { Bound::Relative(-22.0) });
    check_function("lg2.approx", &operands(-126.0, 127.9), f64::log2, bound);
    check_function("lg2.approx", &operands(-1.0, 1.0), f64::log2, bound);
    let table = [
        (NEGATIVE_INFINITY, NAN),
        (0xbf80_0000, NAN),
        (NEGATIVE_ZERO, NEGATIVE_INFINITY),
        (0, NEGATIVE_INFINITY),
        (INFINITY, INFINITY),
        (0x7fff_ffff, NAN),
    ];
    check_table("lg2.approx.f32", 32, &table);
    check_table("lg2.approx.ftz.f32", 32, &[(0x8000_0001, NEGATIVE_INFINITY), (1, NEGATIVE_INFINITY)]);
}

#[test]
fn powers_of_two() {
    // The maximum error is 2 units over all operands.
    check_function("ex2.approx", &operands(-24.0, 7.3), f64::exp2, |_| Some(Bound::Units(2.0)));
    let table = [
        (NEGATIVE_INFINITY, 0),
        (NEGATIVE_ZERO, ONE),
        (0, ONE),
        (INFINITY, INFINITY),
        (0x7f80_0001, NAN),
        (0x4040_0000, 0x4100_0000),
    ];
    check_table("ex2.approx.f32", 32, &table);
    check_table("ex2.approx.ftz.f32", 32, &table);
}

#[test]
fn hyperbolic_tangents() {
    // The maximum relative error is 2^-11; subnormal operands are passed through.
    let rows = operands(-126.0, 6.0);
    check_by("tanh.approx.f32 $d, $a", &[32], 32, &rows, |row, result| {
        within(result, single(row[0]).tanh(), &Bound::Relative(-11.0), false)
    });
    let table = [
        (NEGATIVE_INFINITY, ONE | NEGATIVE_ZERO),
        (NEGATIVE_ZERO, NEGATIVE_ZERO),
        (0, 0),
        (INFINITY, ONE),
        (0x7f80_0001, NAN),
        (1, 1),
        (0x807f_ffff, 0x807f_ffff),
    ];
    check_table("tanh.approx.f32", 32, &table);
}

#[test]
fn quotients() {
    let mut rows = crate::reference::rows::<F32>(2, 31);
    rows.extend(Random(37).rows::<F32>(3000, 2));
    for (word, flushes) in [("", false), (".ftz", true)] {
        let operand = |bits: u64| single(if flushes { flush::<F32>(bits) } else { bits });
        // The maximum error is 2 units over all operands.
        check_by(&format!("div.full{word}.f32 $d, $a, $b"), &[32, 32], 32, &rows, |row, result| {
            within(result, operand(row[0]) / operand(row[1]), &Bound::Units(2.0), flushes)
        });
        check_by(&format!("div.approx{word}.f32 $d, $a, $b"), &[32, 32], 32, &rows, |row, result| {
            let (a, b) = (operand(row[0]), operand(row[1]));
            let size = b.abs();
            if size > 126f64.exp2() && size.is_finite() {
                // Above 2^126: not-a-number for infinite dividends, otherwise a zero of the quotient's sign.
                let zero = (row[0] ^ row[1]) & NEGATIVE_ZERO;
                let right = if a.is_nan() || a.is_infinite() { NAN } else { zero };
                return if result == right { Ok(()) } else { Err(format!("{right:#x} expected")) };
            }
            if size < (-126f64).exp2() && size != 0.0 {
                // Nothing is stated.
                return Ok(());
            }
            // The maximum error is 2 units for divisors from 2^-126 to 2^126.
            within(result, a / b, &Bound::Units(2.0), flushes)
        });
    }
}

#[test]
fn starting_values_of_doubles() {
    let nan = 0x7fff_ffff_0000_0000;
    let (infinity, negative) = (infinity::<F64>(), 1 << 63);
    let table = [
        (infinity | negative, negative),
        (negative | 1 << 40, infinity | negative),
        (negative, infinity | negative),
        (0, infinity),
        (1 << 51, infinity),
        (infinity, 0),
        (infinity + (5 << 32), nan),
        (0x4000_0000_1234_5678, 0x3fe0_0000_0000_0000),
        // The results of the largest operands are subnormal.
        (0x7fe0_0000_0000_0000, 0),
        (0xffe0_0000_0000_0000, negative),
    ];
    check_table("rcp.approx.ftz.f64", 64, &table);
    let table = [
        (infinity | negative, nan),
        (negative | 1 << 40, infinity | negative),
        (negative, infinity | negative),
        (0, infinity),
        (1 << 51, infinity),
        (infinity, 0),
        (infinity + (5 << 32), nan),
        (0x4010_0000_1234_5678, 0x3fe0_0000_0000_0000),
        (0xbff0_0000_0000_0000, nan),
    ];
    check_table("rsqrt.approx.ftz.f64", 64, &table);
    // No error is stated: the fraction has 20 bits, and one unit of them is asked for.
    let rows: Vec<Vec<u64>> = (0..2000)
        .scan(Random(41), |random, _| Some(vec![(0x3c00 + random.next() % 0x7ff) << 48 | random.next() >> 16]))
        .collect();
    for (name, function) in [("rcp", (|x| 1.0 / x) as fn(f64) -> f64), ("rsqrt", |x| 1.0 / x.sqrt())] {
        check_by(&format!("{name}.approx.ftz.f64 $d, $a"), &[64], 64, &rows, |row, result| {
            let exact = function(f64::from_bits(row[0] & !0xffff_ffff));
            let value = f64::from_bits(result);
            if result & 0xffff_ffff == 0 && (value - exact).abs() <= exact.abs() * (-20f64).exp2() {
                Ok(())
            } else {
                Err(format!("{exact:e} expected, not {value:e}"))
            }
        });
    }
    // Neither is one of this: within 2 units, as the math library's reciprocal root is.
    check_by("rsqrt.approx.f64 $d, $a", &[64], 64, &rows, |row, result| {
        let (value, exact) = (f64::from_bits(result), 1.0 / f64::from_bits(row[0]).sqrt());
        if (value - exact).abs() <= exact * (-51f64).exp2() { Ok(()) } else { Err(format!("{exact:e} expected")) }
    });
}

/// The value of a half or a bfloat16.
fn small<T: Format>(bits: u64) -> f64 {
    let negative = if bits & 0x8000 != 0 { -1.0 } else { 1.0 };
    let size = magnitude::<T>(bits);
    let (exponent, fraction) = ((size >> T::FRACTION) as i32, (size & ((1 << T::FRACTION) - 1)) as f64);
    let bias = (1 << (14 - T::FRACTION)) - 1;
    let scale = f64::from(1u32 << T::FRACTION);
    if is_nan::<T>(bits) {
        f64::NAN
    } else if size == infinity::<T>() {
        negative * f64::INFINITY
    } else if exponent == 0 {
        negative * fraction / scale * f64::from(1 - bias).exp2()
    } else {
        negative * (1.0 + fraction / scale) * f64::from(exponent - bias).exp2()
    }
}

/// Checks all 65536 operands of a function, alone and in pairs.
fn check_small<T: Format>(name: &str, flushes: bool, function: impl Fn(f64) -> f64, allowed: impl Fn(f64) -> f64) {
    let verdict = |operand: u64, result: u64| {
        let exact = function(small::<T>(if flushes { flush::<T>(operand) } else { operand }));
        let value = small::<T>(result);
        let largest = small::<T>(infinity::<T>() - 1);
        let unit = small::<T>(1);
        let ok = if exact.is_nan() {
            result == 0x7fff
        } else if exact.abs() > largest {
            value == exact.signum() * f64::INFINITY || value == largest
        } else if flushes && exact.abs() < small::<T>(1 << T::FRACTION) {
            value == 0.0
        } else {
            (value - exact).abs() <= allowed(exact) + 0.5 * unit
        };
        if ok { Ok(()) } else { Err(format!("{exact:e} expected, not {value:e}")) }
    };
    let rows: Vec<Vec<u64>> = (0..1 << 16).map(|value| vec![value]).collect();
    check_by(&format!("{name}.{} $d, $a", T::NAME), &[16], 16, &rows, |row, result| verdict(row[0], result));
    let rows: Vec<Vec<u64>> = rows.into_iter().step_by(7).collect();
    check_by(&format!("{name}.{}x2 $d, $a", T::NAME), &[32], 32, &packed::<T>(&rows), |row, result| {
        verdict(row[0] & 0xffff, result & 0xffff)?;
        verdict(row[0] >> 16, result >> 16)
    });
}

#[test]
fn functions_of_halves() {
    // Maximum relative errors of 2^ a: 2^-9.9 (.f16) and 2^-7 (.bf16); maximum absolute errors of tanh: 2^-10.987 and 2^-8.
    check_small::<F16>("ex2.approx", false, f64::exp2, |exact| exact * (-9.9f64).exp2());
    check_small::<Bf16>("ex2.approx.ftz", true, f64::exp2, |exact| exact * (-7f64).exp2());
    check_small::<F16>("tanh.approx", false, f64::tanh, |_| (-10.987f64).exp2());
    check_small::<Bf16>("tanh.approx", false, f64::tanh, |_| (-8f64).exp2());
    check_table(
        "tanh.approx.f16",
        16,
        &[(0x8000, 0x8000), (0, 0), (0x7c00, 0x3c00), (0xfc00, 0xbc00), (0x7c01, 0x7fff)],
    );
    check_table(
        "tanh.approx.bf16",
        16,
        &[(0x8000, 0x8000), (0, 0), (0x7f80, 0x3f80), (0xff80, 0xbf80), (0x7f81, 0x7fff)],
    );
    check_table(
        "ex2.approx.f16",
        16,
        &[(0x8000, 0x3c00), (0, 0x3c00), (0x7c00, 0x7c00), (0xfc00, 0), (0x7c01, 0x7fff)],
    );
    let table = [(0x8000, 0x3f80), (0x8001, 0x3f80), (1, 0x3f80), (0x7f80, 0x7f80), (0xff80, 0), (0x7f81, 0x7fff)];
    check_table("ex2.approx.ftz.bf16", 16, &table);
    check("tanh.approx.f16x2 $d, $a", &[32], 32, &[vec![0xfc00_7c00], vec![0x8000_0000]], |row| {
        of_parts::<F16>(row, |part| match part[0] {
            0x7c00 => 0x3c00,
            0xfc00 => 0xbc00,
            zero => zero,
        })
    });
}
