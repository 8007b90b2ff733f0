//! Floating-point immediates as disassemblers print them: C's `%.20g`, and `%.20e` from 10^9 on, but for the negative zero.

/// The value that 32 bits stand for.
pub fn single(bits: u32) -> String {
    let (fraction, is_special) = (bits & 0x7f_ffff, bits & 0x7f80_0000 == 0x7f80_0000);
    let special = is_special.then(|| special(bits >> 31 != 0, fraction == 0, fraction >> 22 != 0));
    special.unwrap_or_else(|| finite(f64::from(f32::from_bits(bits))))
}

/// The value of 64 bits whose upper half these are.
pub fn double(high: u32) -> String {
    let (fraction, is_special) = (high & 0xf_ffff, high & 0x7ff0_0000 == 0x7ff0_0000);
    let special = is_special.then(|| special(high >> 31 != 0, fraction == 0, fraction >> 19 != 0));
    special.unwrap_or_else(|| finite(f64::from_bits(u64::from(high) << 32)))
}

/// The value of 16 bits.
pub fn half(bits: u16) -> String {
    let (fraction, is_special) = (bits & 0x3ff, bits & 0x7c00 == 0x7c00);
    let special = is_special.then(|| special(bits >> 15 != 0, fraction == 0, fraction >> 9 != 0));
    special.unwrap_or_else(|| finite(f64::from(half::f16::from_bits(bits))))
}

fn special(is_negative: bool, is_infinite: bool, is_quiet: bool) -> String {
    let name = match (is_infinite, is_quiet) {
        (true, _) => "INF ",
        (false, true) => "QNAN ",
        (false, false) => "SNAN ",
    };
    format!("{}{name}", if is_negative { '-' } else { '+' })
}

fn finite(value: f64) -> String {
    /// Significant digits.
    const DIGITS: i32 = 20;
    if value == 0.0 {
        return if value.is_sign_negative() { "-0.0 " } else { "0" }.to_owned();
    }
    if value.abs() >= 1e9 {
        return with_exponent(&format!("{value:.20e}"));
    }
    let scientific = format!("{value:.19e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let text = if (-4..DIGITS).contains(&exponent) {
        format!("{value:.*}", (DIGITS - 1 - exponent) as usize)
    } else {
        digits.to_owned()
    };
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if (-4..DIGITS).contains(&exponent) { text.to_owned() } else { with_exponent(&format!("{text}e{exponent}")) }
}

/// Writes the exponent as C does: with its sign, and two digits at least.
fn with_exponent(text: &str) -> String {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts of `printf("%.20g")` and `printf("%.20e")` of the GNU C library.
    #[test]
    fn numbers_are_printed_as_c_does() {
        assert_eq!(single(0x3f80_0000), "1");
        assert_eq!(single(0xbf00_0000), "-0.5");
        assert_eq!(single(0x8000_0000), "-0.0 ");
        assert_eq!(single(0x3dcc_cccd), "0.10000000149011611938");
        assert_eq!(single(0x0010_0000), "1.469367938527859385e-39");
        assert_eq!(single(0x4e6e_6b28), "1.00000000000000000000e+09");
        assert_eq!(single(0x4e6e_6b20), "999999488");
        assert_eq!(single(0x7f80_0000), "+INF ");
        assert_eq!(single(0xffc0_0000), "-QNAN ");
        assert_eq!(double(0x3ff0_0000), "1");
        assert_eq!(double(0x3fb9_9999), "0.099999964237213134766");
        assert_eq!(double(0x7ff0_0001), "+SNAN ");
        assert_eq!(half(0x3c00), "1");
        assert_eq!(half(0x2e66), "0.0999755859375");
    }
}
