//! `min`, `max`, `abs`, `neg`, `copysign`, `testp`: instructions that only pick and move bits, and the forms that PTX does not have.

use crate::cases::{check, product};
use crate::reference::{
    Bf16, F16, F32, F64, Format, edges, few_edges, flush, infinity, is_nan, magnitude, of_parts, packed, sign,
};

/// The words of a `min` or `max`.
#[derive(Clone, Copy, Default)]
struct Words {
    maximum: bool,
    flush: bool,
    nan: bool,
    absolute: bool,
    xor_sign: bool,
}

/// Follows the ISA's description; -0 is less than +0. Of two doubles that are no numbers it is the second, as in the code that ptxas
/// makes.
fn choose<T: Format>(a: u64, b: u64, words: Words) -> u64 {
    let nan = T::nan(&[b, a]);
    match (is_nan::<T>(a), is_nan::<T>(b)) {
        (true, true) => nan,
        (true, _) | (_, true) if words.nan => nan,
        (true, false) => b,
        (false, true) => a,
        _ => {
            // As integers of the same order.
            let order = |bits: u64| {
                let size = i128::from(magnitude::<T>(bits));
                if bits & sign::<T>() != 0 { -size - 1 } else { size }
            };
            if (order(a) < order(b)) != words.maximum { a } else { b }
        }
    }
}

fn extremum<T: Format>(operands: &[u64], words: Words) -> u64 {
    let treat = |bits: u64| {
        let bits = if words.flush { flush::<T>(bits) } else { bits };
        if words.absolute { magnitude::<T>(bits) } else { bits }
    };
    let sign_bit = (operands[0] ^ operands[1]) & sign::<T>();
    let mut result = choose::<T>(treat(operands[0]), treat(operands[1]), words);
    if let Some(third) = operands.get(2) {
        result = choose::<T>(result, treat(*third), words);
    }
    if words.xor_sign && !is_nan::<T>(result) { result & !sign::<T>() | sign_bit } else { result }
}

fn check_extrema<T: Format>(words: Words) {
    for maximum in [false, true] {
        let words = Words { maximum, ..words };
        let text = format!(
            "{}{}{}{}.{}",
            if maximum { "max" } else { "min" },
            if words.flush { ".ftz" } else { "" },
            if words.nan { ".NaN" } else { "" },
            if words.xor_sign { ".xorsign.abs" } else { "" },
            T::NAME
        );
        let rows = product(&[&edges::<T>(), &edges::<T>()]);
        let width = T::WIDTH;
        check(&format!("{text} $d, $a, $b"), &[width; 2], width, &rows, |row| extremum::<T>(row, words));
        if width == 16 {
            check(&format!("{text}x2 $d, $a, $b"), &[32; 2], 32, &packed::<T>(&rows), |row| {
                of_parts::<T>(row, |part| extremum::<T>(part, words))
            });
        }
    }
}

#[test]
fn minima_and_maxima() {
    for choice in 0..8 {
        let words = Words {
            nan: choice & 1 != 0,
            absolute: choice & 2 != 0,
            xor_sign: choice & 2 != 0,
            flush: choice & 4 != 0,
            ..Words::default()
        };
        check_extrema::<F32>(words);
        check_extrema::<F16>(words);
        if !words.flush {
            check_extrema::<Bf16>(words);
        }
    }
    check_extrema::<F64>(Words::default());
}

#[test]
fn minima_and_maxima_of_three() {
    let values = few_edges::<F32>();
    let rows = product(&[&values, &values, &values]);
    for choice in 0..16 {
        let words = Words {
            maximum: choice & 1 != 0,
            nan: choice & 2 != 0,
            absolute: choice & 4 != 0,
            flush: choice & 8 != 0,
            ..Words::default()
        };
        let text = format!(
            "{}{}{}{}.f32 $d, $a, $b, $c",
            if words.maximum { "max" } else { "min" },
            if words.flush { ".ftz" } else { "" },
            if words.nan { ".NaN" } else { "" },
            if words.absolute { ".abs" } else { "" },
        );
        check(&text, &[32; 3], 32, &rows, |row| extremum::<F32>(row, words));
    }
}

fn check_signs<T: Format>(flushes: bool) {
    let word = if flushes { ".ftz" } else { "" };
    let treat = |bits: u64| if flushes { flush::<T>(bits) } else { bits };
    let canonical = |bits: u64| if T::WIDTH == 32 && is_nan::<T>(bits) { T::nan(&[bits]) } else { bits };
    type Function = fn(u64, u64) -> u64;
    let functions: [(&str, Function); 2] = [("neg", |bits, sign| bits ^ sign), ("abs", |bits, sign| bits & !sign)];
    let rows: Vec<Vec<u64>> = edges::<T>().into_iter().map(|value| vec![value]).collect();
    for (name, function) in functions {
        let one = |part: &[u64]| canonical(function(treat(part[0]), sign::<T>()));
        check(&format!("{name}{word}.{} $d, $a", T::NAME), &[T::WIDTH], T::WIDTH, &rows, one);
        if T::WIDTH == 16 {
            check(&format!("{name}{word}.{}x2 $d, $a", T::NAME), &[32], 32, &packed::<T>(&rows), |row| {
                of_parts::<T>(row, one)
            });
        }
    }
}

#[test]
fn signs() {
    for flushes in [false, true] {
        check_signs::<F32>(flushes);
        check_signs::<F16>(flushes);
    }
    check_signs::<F64>(false);
    check_signs::<Bf16>(false);
    let rows = product(&[&few_edges::<F32>(), &few_edges::<F32>()]);
    check("copysign.f32 $d, $a, $b", &[32, 32], 32, &rows, |row| row[0] & 0x8000_0000 | row[1] & 0x7fff_ffff);
    let rows = product(&[&few_edges::<F64>(), &few_edges::<F64>()]);
    check("copysign.f64 $d, $a, $b", &[64, 64], 64, &rows, |row| row[0] & (1 << 63) | row[1] & !(1 << 63));
}

fn check_classes<T: Format>() {
    let rows: Vec<Vec<u64>> = edges::<T>().into_iter().map(|value| vec![value]).collect();
    let subnormal = |bits: u64| (1..1 << T::FRACTION).contains(&magnitude::<T>(bits));
    let infinite = |bits: u64| magnitude::<T>(bits) == infinity::<T>();
    let classes: [(&str, &dyn Fn(u64) -> bool); 6] = [
        ("finite", &|bits| magnitude::<T>(bits) < infinity::<T>()),
        ("infinite", &infinite),
        ("number", &|bits| !is_nan::<T>(bits)),
        ("notanumber", &|bits| is_nan::<T>(bits)),
        // Zeros count as normal.
        ("normal", &|bits| magnitude::<T>(bits) < infinity::<T>() && !subnormal(bits)),
        ("subnormal", &subnormal),
    ];
    for (name, class) in classes {
        let instruction = format!("testp.{name}.{} $d, $a", T::NAME);
        check(&instruction, &[T::WIDTH], 1, &rows, |row| u64::from(class(row[0])));
    }
}

#[test]
fn classes() {
    check_classes::<F32>();
    check_classes::<F64>();
}

/// What is wrong with an instruction.
fn refusal(instruction: &str) -> String {
    let text = format!(
        ".version 8.8\n.target sm_100\n.address_size 64\n.visible .entry k() {{\n\
         .reg .pred %p<2>; .reg .b16 %h<4>; .reg .f32 %f<4>; .reg .f64 %d<4>; .reg .b32 %r<4>;\n{instruction};\nret;\n}}\n"
    );
    let module = match balar_isa::module::PtxModule::parse("test.ptx", &text) {
        Ok(module) => module,
        Err(errors) => return errors.to_string(),
    };
    match module.program("k", &[]) {
        Ok(_) => "accepted".to_string(),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn what_ptx_does_not_have_is_refused_by_name() {
    for (instruction, expected) in [
        ("add.sat.f64 %d0, %d1, %d2", "`add.f64` does not take `.sat`"),
        ("add.ftz.f64 %d0, %d1, %d2", "`add.f64` does not take `.ftz`"),
        ("add.ftz.bf16 %h0, %h1, %h2", "`add.bf16` does not take `.ftz`"),
        ("add.rz.f16 %h0, %h1, %h2", "`add.f16` does not take `.rz`"),
        ("add.rn.rz.f32 %f0, %f1, %f2", "`add.f32` needs one of .rn, .rz, .rm, .rp"),
        ("fma.f32 %f0, %f1, %f2, %f3", "`fma.f32` needs one of .rn, .rz, .rm, .rp"),
        ("fma.rn.relu.f32 %f0, %f1, %f2, %f3", "`fma.f32` does not take `.relu`"),
        ("fma.rn.sat.relu.f16 %h0, %h1, %h2, %h3", "`fma.f16` takes one of `.sat` and `.relu`"),
        ("div.f32 %f0, %f1, %f2", "`div.f32` needs one of .approx, .full, .rn, .rz, .rm, .rp"),
        ("div.approx.f64 %d0, %d1, %d2", "`div.f64` does not take `.approx`"),
        ("rcp.approx.f64 %d0, %d1", "`rcp.f64` takes `.approx` and `.ftz` together"),
        ("sqrt.approx.f64 %d0, %d1", "`sqrt.f64` does not take `.approx`"),
        ("sin.f32 %f0, %f1", "`sin.f32` needs one of .approx"),
        ("ex2.approx.bf16 %h0, %h1", "`ex2.bf16` needs `.ftz`"),
        ("ex2.approx.ftz.f16 %h0, %h1", "`ex2.f16` does not take `.ftz`"),
        ("min.xorsign.f32 %f0, %f1, %f2", "`min.f32` takes `.xorsign` and `.abs` together"),
        ("min.xorsign.abs.f32 %f0, %f1, %f2, %f3", "`min.f32` of three sources does not take `.xorsign`"),
        ("max.f64 %d0, %d1, %d2, %d3", "`max.f64` takes two sources"),
        ("max.NaN.f64 %d0, %d1, %d2", "`max.f64` does not take `.NaN`"),
        ("max.ftz.bf16 %h0, %h1, %h2", "`max.bf16` does not take `.ftz`"),
        ("sin.approx.f64 %d0, %d1", "`sin` of type `.f64`"),
        ("div.rn.f16 %h0, %h1, %h2", "`div` of type `.f16`"),
        ("testp.normal.f16 %p0, %h1", "`testp` of type `.f16`"),
        // Only tensor copies make the value that .oob looks for.
        ("fma.rn.oob.f16 %h0, %h1, %h2, %h3", "oob"),
        ("testp.normal.f32 %r0, %f1", "a predicate is expected here"),
    ] {
        let message = refusal(instruction);
        assert!(message.contains(expected), "{instruction}: {message}");
    }
}

#[test]
fn early_ptx_leaves_words_out() {
    // Before PTX 1.4, division and the functions are approximate; GPUs of that time flush subnormal singles.
    let text = "\
        .version 1.3\n.target sm_13\n.entry k(.param .u64 p) {\n.reg .u64 %rd<2>; .reg .f32 %f<6>;\n\
        ld.param.u64 %rd0, [p]; ld.global.f32 %f0, [%rd0]; ld.global.f32 %f1, [%rd0+4];\n\
        div.f32 %f2, %f0, %f1; mad.f32 %f3, %f0, %f1, %f0; sin.f32 %f4, %f0; add.f32 %f5, %f0, %f0;\n\
        st.global.f32 [%rd0+8], %f2; st.global.f32 [%rd0+12], %f3; st.global.f32 [%rd0+16], %f4;\n\
        st.global.f32 [%rd0+20], %f5;\nexit;\n}\n";
    let program = crate::machine::load(text);
    for (operand, expected) in [(6f32, [2.0, 24.0, f32::sin(6.0), 12.0]), (f32::from_bits(0x0040_0000), [0.0; 4])] {
        let mut memory = vec![0; 24];
        memory[..4].copy_from_slice(&operand.to_le_bytes());
        memory[4..8].copy_from_slice(&3f32.to_le_bytes());
        let memory = crate::machine::run(&program, &[0; 8], 1, &memory);
        for (index, expected) in expected.into_iter().enumerate() {
            let first = 8 + 4 * index;
            let value = f32::from_le_bytes([memory[first], memory[first + 1], memory[first + 2], memory[first + 3]]);
            assert!((value - expected).abs() < 1e-6, "result {index} of {operand:e}: {value:e}, not {expected:e}");
        }
    }
}
