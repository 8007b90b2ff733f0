//! Formatting as the device's `printf` does it: the conversions of C, with the arguments in the buffer that `vprintf` gets.
//!
//! Text that is no conversion known here is printed as it stands (CUDA C++ Programming Guide, "Formatted Output").

/// Where a conversion's values come from.
pub(super) trait Arguments {
    /// Why a value cannot be read.
    type Error;

    /// The next argument, of 4 or 8 bytes; `None` where there are no more.
    fn next(&mut self, bytes: u64) -> Result<Option<u64>, Self::Error>;

    /// Appends the string at a generic address, at most `limit` bytes of it.
    fn string(&mut self, address: u64, limit: usize, to: &mut Vec<u8>) -> Result<(), Self::Error>;
}

/// The arguments that one `printf` takes; conversions beyond them are printed as they stand (CUDA C++ Programming Guide).
pub(super) const MAXIMUM_ARGUMENTS: u32 = 32;
/// Widths and precisions beyond this are cut: nothing of that size fits the buffer that the text goes to.
const MAXIMUM_WIDTH: usize = 1 << 16;
/// More digits than any double has behind the point: the rest of a precision is zeros.
const FRACTION_DIGITS: usize = 1100;

/// How wide an integer argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Byte,
    Short,
    Word,
    Long,
}

/// One conversion, such as `%-8.3f`.
#[derive(Clone, Copy, Debug)]
struct Conversion {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: Extent,
    precision: Extent,
    length: Length,
    kind: u8,
}

/// A width or precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Absent,
    Given(usize),
    /// `*`: an argument of its own.
    Argument,
}

/// Appends the text of `format` to `out`; returns how many arguments it took.
pub(super) fn print<A: Arguments>(format: &[u8], arguments: &mut A, out: &mut Vec<u8>) -> Result<u32, A::Error> {
    let mut taken = 0;
    let mut at = 0;
    while at < format.len() {
        if format[at] != b'%' {
            out.push(format[at]);
            at += 1;
            continue;
        }
        let (conversion, end) = parse(format, at + 1);
        let text = &format[at..end];
        at = end;
        match conversion {
            Some(Conversion { kind: b'%', .. }) => out.push(b'%'),
            Some(conversion) => {
                if !convert(conversion, arguments, &mut taken, out)? {
                    out.extend_from_slice(text);
                }
            }
            None => out.extend_from_slice(text),
        }
    }
    Ok(taken)
}

/// Reads a conversion behind its `%`; also where it ends. `None` where it is none.
fn parse(format: &[u8], mut at: usize) -> (Option<Conversion>, usize) {
    let peek = |at: usize| format.get(at).copied();
    let mut conversion = Conversion {
        left: false,
        plus: false,
        space: false,
        alternate: false,
        zero: false,
        width: Extent::Absent,
        precision: Extent::Absent,
        length: Length::Word,
        kind: 0,
    };
    loop {
        match peek(at) {
            Some(b'-') => conversion.left = true,
            Some(b'+') => conversion.plus = true,
            Some(b' ') => conversion.space = true,
            Some(b'#') => conversion.alternate = true,
            Some(b'0') => conversion.zero = true,
            _ => break,
        }
        at += 1;
    }
    let extent = |at: &mut usize| {
        if peek(*at) == Some(b'*') {
            *at += 1;
            return Extent::Argument;
        }
        let mut value = None;
        while let Some(digit @ b'0'..=b'9') = peek(*at) {
            value = Some((value.unwrap_or(0) * 10 + usize::from(digit - b'0')).min(MAXIMUM_WIDTH));
            *at += 1;
        }
        value.map_or(Extent::Absent, Extent::Given)
    };
    conversion.width = extent(&mut at);
    if peek(at) == Some(b'.') {
        at += 1;
        conversion.precision = match extent(&mut at) {
            Extent::Absent => Extent::Given(0),
            other => other,
        };
    }
    match (peek(at), peek(at + 1)) {
        (Some(b'h'), Some(b'h')) => (conversion.length, at) = (Length::Byte, at + 2),
        (Some(b'h'), _) => (conversion.length, at) = (Length::Short, at + 1),
        (Some(b'l'), Some(b'l')) => (conversion.length, at) = (Length::Long, at + 2),
        (Some(b'l' | b'j' | b'z' | b't'), _) => (conversion.length, at) = (Length::Long, at + 1),
        _ => {}
    }
    match peek(at) {
        Some(kind) if b"diouxXcspeEfFgGaA%".contains(&kind) => {
            conversion.kind = kind;
            (Some(conversion), at + 1)
        }
        Some(_) => (None, at + 1),
        None => (None, at),
    }
}

/// Prints one conversion. False where its arguments are missing: nothing is printed then.
fn convert<A: Arguments>(
    mut conversion: Conversion,
    arguments: &mut A,
    taken: &mut u32,
    out: &mut Vec<u8>,
) -> Result<bool, A::Error> {
    let mut next = |bytes| {
        if *taken == MAXIMUM_ARGUMENTS {
            return Ok(None);
        }
        let value = arguments.next(bytes)?;
        *taken += u32::from(value.is_some());
        Ok(value)
    };
    let mut width = 0;
    match conversion.width {
        Extent::Absent => {}
        Extent::Given(given) => width = given,
        Extent::Argument => {
            let Some(value) = next(4)? else { return Ok(false) };
            let value = value as u32 as i32;
            conversion.left |= value < 0;
            width = (value.unsigned_abs() as usize).min(MAXIMUM_WIDTH);
        }
    }
    let precision = match conversion.precision {
        Extent::Absent => None,
        Extent::Given(given) => Some(given),
        Extent::Argument => {
            let Some(value) = next(4)? else { return Ok(false) };
            usize::try_from(value as u32 as i32).ok().map(|value| value.min(MAXIMUM_WIDTH))
        }
    };
    let bytes = match conversion.kind {
        b'c' => 4,
        b'd' | b'i' | b'o' | b'u' | b'x' | b'X' if conversion.length != Length::Long => 4,
        _ => 8,
    };
    let Some(value) = next(bytes)? else { return Ok(false) };
    match conversion.kind {
        b'c' => pad(b"", &[value as u8], width, conversion.left, false, out),
        b's' if value == 0 => {
            // As the host's C library prints it: whole or not at all.
            let text: &[u8] = if precision.is_none_or(|precision| precision >= 6) { b"(null)" } else { b"" };
            pad(b"", text, width, conversion.left, false, out);
        }
        b's' => {
            let mut text = Vec::new();
            arguments.string(value, precision.unwrap_or(usize::MAX), &mut text)?;
            pad(b"", &text, width, conversion.left, false, out);
        }
        b'p' if value == 0 => pad(b"", b"(nil)", width, conversion.left, false, out),
        b'p' => {
            let conversion = Conversion { kind: b'x', alternate: true, length: Length::Long, ..conversion };
            integer(conversion, value, width, precision, out);
        }
        b'd' | b'i' | b'o' | b'u' | b'x' | b'X' => integer(conversion, value, width, precision, out),
        _ => float(conversion, f64::from_bits(value), width, precision, out),
    }
    Ok(true)
}

/// Appends sign or prefix and digits, filled up to `width`.
fn pad(prefix: &[u8], digits: &[u8], width: usize, left: bool, zero: bool, out: &mut Vec<u8>) {
    let fill = width.saturating_sub(prefix.len() + digits.len());
    let fill_with = |out: &mut Vec<u8>, byte| out.extend(std::iter::repeat_n(byte, fill));
    if !left && !zero {
        fill_with(out, b' ');
    }
    out.extend_from_slice(prefix);
    if !left && zero {
        fill_with(out, b'0');
    }
    out.extend_from_slice(digits);
    if left {
        fill_with(out, b' ');
    }
}

fn sign_of(conversion: Conversion, negative: bool) -> &'static str {
    match conversion {
        _ if negative => "-",
        Conversion { plus: true, .. } => "+",
        Conversion { space: true, .. } => " ",
        _ => "",
    }
}

fn integer(conversion: Conversion, value: u64, width: usize, precision: Option<usize>, out: &mut Vec<u8>) {
    let signed = matches!(conversion.kind, b'd' | b'i');
    let value = match (conversion.length, signed) {
        (Length::Byte, true) => value as i8 as i64 as u64,
        (Length::Short, true) => value as i16 as i64 as u64,
        (Length::Word, true) => value as i32 as i64 as u64,
        (Length::Byte, false) => value & 0xff,
        (Length::Short, false) => value & 0xffff,
        (Length::Word, false) => value & 0xffff_ffff,
        (Length::Long, _) => value,
    };
    let negative = signed && (value as i64) < 0;
    let magnitude = if negative { value.wrapping_neg() } else { value };
    let mut digits = match conversion.kind {
        b'o' => format!("{magnitude:o}"),
        b'x' => format!("{magnitude:x}"),
        b'X' => format!("{magnitude:X}"),
        _ => magnitude.to_string(),
    };
    if magnitude == 0 && precision == Some(0) {
        digits.clear();
    }
    if let Some(missing) = precision.and_then(|precision| precision.checked_sub(digits.len())) {
        digits.insert_str(0, &"0".repeat(missing));
    }
    let mut prefix = if signed { sign_of(conversion, negative) } else { "" };
    if conversion.alternate && magnitude != 0 {
        match conversion.kind {
            b'x' => prefix = "0x",
            b'X' => prefix = "0X",
            _ => {}
        }
    }
    if conversion.alternate && conversion.kind == b'o' && !digits.starts_with('0') {
        digits.insert(0, '0');
    }
    let zero = conversion.zero && precision.is_none();
    pad(prefix.as_bytes(), digits.as_bytes(), width, conversion.left, zero, out);
}

fn float(conversion: Conversion, value: f64, width: usize, precision: Option<usize>, out: &mut Vec<u8>) {
    let upper = conversion.kind.is_ascii_uppercase();
    let sign = sign_of(conversion, value.is_sign_negative());
    if !value.is_finite() {
        let text = match (value.is_nan(), upper) {
            (true, false) => "nan",
            (true, true) => "NAN",
            (false, false) => "inf",
            (false, true) => "INF",
        };
        pad(sign.as_bytes(), text.as_bytes(), width, conversion.left, false, out);
        return;
    }
    let magnitude = value.abs();
    let alternate = conversion.alternate;
    let mut prefix = sign.to_owned();
    let mut digits = match conversion.kind.to_ascii_lowercase() {
        b'f' => fixed(magnitude, precision.unwrap_or(6), alternate),
        b'e' => scientific(magnitude, precision.unwrap_or(6), alternate),
        b'g' => general(magnitude, precision.unwrap_or(6).max(1), alternate),
        _ => {
            prefix.push_str("0x");
            hexadecimal(magnitude, precision, alternate)
        }
    };
    if upper {
        digits.make_ascii_uppercase();
        prefix.make_ascii_uppercase();
    }
    pad(prefix.as_bytes(), digits.as_bytes(), width, conversion.left, conversion.zero, out);
}

fn fixed(magnitude: f64, precision: usize, alternate: bool) -> String {
    let mut text = format!("{magnitude:.*}", precision.min(FRACTION_DIGITS));
    text.push_str(&"0".repeat(precision.saturating_sub(FRACTION_DIGITS)));
    if alternate && precision == 0 {
        text.push('.');
    }
    text
}

/// Digits in front of the exponent, and the exponent.
fn scientific_parts(magnitude: f64, precision: usize) -> (String, i32) {
    let text = format!("{magnitude:.*e}", precision.min(FRACTION_DIGITS));
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut digits = digits.to_owned();
    digits.push_str(&"0".repeat(precision.saturating_sub(FRACTION_DIGITS)));
    (digits, exponent.parse().unwrap_or(0))
}

fn scientific(magnitude: f64, precision: usize, alternate: bool) -> String {
    let (mut digits, exponent) = scientific_parts(magnitude, precision);
    if alternate && precision == 0 {
        digits.push('.');
    }
    with_exponent(digits, exponent)
}

fn with_exponent(mut digits: String, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    digits.push_str(&format!("e{sign}{:02}", exponent.abs()));
    digits
}

/// `precision` significant digits, in whichever form is shorter.
fn general(magnitude: f64, precision: usize, alternate: bool) -> String {
    let (digits, exponent) = scientific_parts(magnitude, precision - 1);
    let trim = |text: String| {
        if alternate || !text.contains('.') {
            return text;
        }
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if exponent >= -4 && exponent < precision.min(i32::MAX as usize) as i32 {
        return trim(fixed(magnitude, (precision as i32 - 1 - exponent) as usize, alternate));
    }
    let digits = if alternate && precision == 1 { format!("{digits}.") } else { digits };
    with_exponent(trim(digits), exponent)
}

/// `1.8p+3`; subnormal numbers have a leading 0.
fn hexadecimal(magnitude: f64, precision: Option<usize>, alternate: bool) -> String {
    const FRACTION_BITS: u32 = 52;
    let bits = magnitude.to_bits();
    let biased = (bits >> FRACTION_BITS) as i32;
    let fraction = bits & ((1 << FRACTION_BITS) - 1);
    let exponent = match (biased, fraction) {
        (0, 0) => 0,
        (0, _) => -1022,
        _ => biased - 1023,
    };
    let mut significand = fraction | u64::from(biased != 0) << FRACTION_BITS;
    let mut places = 13;
    if let Some(wanted) = precision.filter(|&wanted| wanted < 13) {
        // To the nearest, ties to even.
        let dropped = FRACTION_BITS - 4 * wanted as u32;
        let half = 1u64 << (dropped - 1);
        let rest = significand & ((1 << dropped) - 1);
        significand >>= dropped;
        significand += u64::from(rest > half || (rest == half && significand & 1 == 1));
        places = wanted;
    }
    let lead = significand >> (4 * places);
    let below = significand & ((1u64 << (4 * places)) - 1);
    let mut fraction = if places == 0 { String::new() } else { format!("{below:0places$x}") };
    match precision {
        None => fraction.truncate(fraction.trim_end_matches('0').len()),
        Some(wanted) => fraction.push_str(&"0".repeat(wanted.saturating_sub(places))),
    }
    let point = if alternate || !fraction.is_empty() { "." } else { "" };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{lead:x}{point}{fraction}p{sign}{}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arguments from a list; strings are named by their index from 1.
    struct Listed<'a> {
        values: std::slice::Iter<'a, u64>,
        strings: &'a [&'a str],
    }

    impl Arguments for Listed<'_> {
        type Error = ();

        fn next(&mut self, bytes: u64) -> Result<Option<u64>, ()> {
            let mask = if bytes == 4 { 0xffff_ffff } else { u64::MAX };
            Ok(self.values.next().map(|value| value & mask))
        }

        fn string(&mut self, address: u64, limit: usize, to: &mut Vec<u8>) -> Result<(), ()> {
            let text = self.strings.get(address as usize - 1).ok_or(())?;
            to.extend(text.bytes().take(limit));
            Ok(())
        }
    }

    fn printed(format: &str, values: &[u64]) -> (String, u32) {
        let mut out = Vec::new();
        let mut arguments = Listed { values: values.iter(), strings: &["hello", ""] };
        let taken = print(format.as_bytes(), &mut arguments, &mut out).expect("the strings exist");
        (String::from_utf8(out).expect("text"), taken)
    }

    fn check(cases: &[(&str, &[u64], &str)]) {
        for (format, values, expected) in cases {
            let (text, taken) = printed(format, values);
            assert_eq!((text.as_str(), taken as usize), (*expected, values.len()), "{format} of {values:x?}");
        }
    }

    // The expected texts are the output of a C library.
    #[test]
    fn integers() {
        let minus = |value: i64| value as u64;
        check(&[
            ("%d|%i", &[minus(-5), 7], "-5|7"),
            ("%5d|%-5d|%05d|%+d|% d", &[42, 42, 42, 42, 42], "   42|42   |00042|+42| 42"),
            ("%.3d|%5.3d|%-6.3d|%05.3d", &[7, 7, 7, 7], "007|  007|007   |  007"),
            ("%.0d|%.d", &[0, 0], "|"),
            ("%u|%u", &[minus(-1), 0xffff_ffff_0000_0001], "4294967295|1"),
            ("%lld|%ld|%llu", &[minus(-1), minus(i64::MIN), u64::MAX], "-1|-9223372036854775808|18446744073709551615"),
            ("%hd|%hhd|%hu|%hhu", &[0x1_8000, 0x180, 0x1_ffff, 0x1ff], "-32768|-128|65535|255"),
            ("%x|%X|%#x|%#X|%#x", &[0xbeef, 0xbeef, 0xbeef, 0xbeef, 0], "beef|BEEF|0xbeef|0XBEEF|0"),
            ("%o|%#o|%#o", &[8, 8, 0], "10|010|0"),
            ("%#010x|%#10x|%-#10x|", &[255, 255, 255], "0x000000ff|      0xff|0xff      |"),
            ("%*d|%-*d|%*d", &[4, 1, 4, 1, minus(-4), 1], "   1|1   |1   "),
            ("%.*d|%.*d", &[3, 1, minus(-3), 1], "001|1"),
        ]);
    }

    #[test]
    fn characters_strings_pointers() {
        check(&[
            ("%c%c%3c|%-3c|", &[65, 0x142, 67, 68], "AB  C|D  |"),
            ("%s|%8s|%-8s|%.2s|%s", &[1, 1, 1, 1, 2], "hello|   hello|hello   |he|"),
            ("%s", &[0], "(null)"),
            ("%p|%p|%14p", &[0x7000_0000_1000, 0, 0x10], "0x700000001000|(nil)|          0x10"),
            ("100%%", &[], "100%"),
        ]);
    }

    #[test]
    fn floats() {
        let bits = f64::to_bits;
        check(&[
            ("%f|%f|%F", &[bits(1.5), bits(-0.0), bits(1e15)], "1.500000|-0.000000|1000000000000000.000000"),
            ("%.0f|%.0f|%.0f|%.0f", &[bits(0.5), bits(1.5), bits(2.5), bits(3.5)], "0|2|2|4"),
            ("%.2f|%.2f|%#.0f", &[bits(0.125), bits(0.375), bits(3.0)], "0.12|0.38|3."),
            (
                "%8.3f|%-8.2f|%08.2f|%+.1f",
                &[bits(3.2468), bits(2.5), bits(-2.5), bits(1.0)],
                "   3.247|2.50    |-0002.50|+1.0",
            ),
            (
                "%e|%E|%.0e|%#.0e",
                &[bits(12345.678), bits(1e-10), bits(5.0), bits(5.0)],
                "1.234568e+04|1.000000E-10|5e+00|5.e+00",
            ),
            ("%e|%e", &[bits(0.0), bits(1e300)], "0.000000e+00|1.000000e+300"),
            (
                "%g|%g|%g|%g|%g",
                &[bits(100000.0), bits(1e6), bits(1e-4), bits(1e-5), bits(0.5)],
                "100000|1e+06|0.0001|1e-05|0.5",
            ),
            (
                "%.3g|%#g|%G|%g|%.0g",
                &[bits(1234.5), bits(1.0), bits(1e-7), bits(0.0), bits(25.0)],
                "1.23e+03|1.00000|1E-07|0|2e+01",
            ),
            (
                "%f|%F|%5.1f|%f|%05f",
                &[bits(f64::INFINITY), bits(f64::NAN), bits(f64::NEG_INFINITY), bits(-f64::NAN), bits(f64::INFINITY)],
                "inf|NAN| -inf|-nan|  inf",
            ),
            (
                "%a|%A|%a|%a",
                &[bits(1.0), bits(10.5), bits(0.0), bits(f64::from_bits(1))],
                "0x1p+0|0X1.5P+3|0x0p+0|0x0.0000000000001p-1022",
            ),
            (
                "%.1a|%.0a|%.15a|%.0a",
                &[bits(1.96875), bits(1.5), bits(1.5), bits(2.5)],
                "0x2.0p+0|0x2p+0|0x1.800000000000000p+0|0x1p+1",
            ),
            ("%.20f", &[bits(0.1)], "0.10000000000000000555"),
        ]);
        let (text, _) = printed("%.1500f", &[bits(f64::from_bits(1))]);
        assert_eq!(text.len(), 1502);
        assert!(text[1077..].bytes().all(|digit| digit == b'0') && text.contains("4940656458412465"));
    }

    #[test]
    fn what_is_no_conversion_is_printed_as_it_stands() {
        check(&[("%k %5y %", &[], "%k %5y %"), ("%-0", &[], "%-0"), ("%lld %n", &[3], "3 %n")]);
        // More conversions than arguments.
        assert_eq!(printed("%d %d", &[1]), ("1 %d".to_owned(), 1));
        let many = "%d".repeat(33);
        assert_eq!(printed(&many, &[0; 40]), (format!("{}%d", "0".repeat(32)), 32));
    }
}
