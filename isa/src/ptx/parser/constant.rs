//! Constant expressions: 64-bit integers with C's operators, and float literals.

use super::super::error::PtxErrorKind;
use super::super::lexer::{TokenKind, integer_value};
use super::super::source::Span;
use super::{Parsed, Parser};

/// The value of a constant expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Constant {
    /// 64 bits, and whether the arithmetic on them is unsigned.
    Integer { bits: u64, unsigned: bool },
    /// Bits of an f32 literal.
    Float32(u32),
    /// An f64.
    Float64(f64),
}

/// Operators by how tightly they bind, loosest first.
const PRECEDENCE: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// The one constant that has a name.
const WARP_SIZE: &str = "WARP_SZ";

impl Parser<'_> {
    /// Whether the current token can begin a constant.
    pub(super) fn at_constant(&self) -> bool {
        match self.current.kind {
            TokenKind::Integer | TokenKind::DecimalFloat | TokenKind::HexFloat32 | TokenKind::HexFloat64 => true,
            TokenKind::Punctuation(mark) => matches!(mark, b'-' | b'+' | b'~' | b'!' | b'('),
            TokenKind::Dotted => self.current.text.bytes().all(|byte| byte.is_ascii_digit()),
            TokenKind::Identifier => self.current.text == WARP_SIZE,
            _ => false,
        }
    }

    /// A constant expression, `?:` included.
    pub(super) fn constant(&mut self) -> Parsed<Constant> {
        // Nearly always a lone literal: no need to walk the levels.
        if matches!(self.lexer.peek_byte(self.current.span.end), b',' | b';' | b']' | b'}')
            && matches!(self.current.kind, TokenKind::Integer | TokenKind::HexFloat32 | TokenKind::HexFloat64)
        {
            return self.literal();
        }
        self.nested(|parser| {
            let condition = parser.binary(0)?;
            if !parser.accept(b'?') {
                return Ok(condition);
            }
            let chosen = parser.constant()?;
            parser.expect(b':', "between the values of `?:`")?;
            let other = parser.constant()?;
            Ok(if is_true(condition) { chosen } else { other })
        })
    }

    /// A constant expression that must be an integer: its 64 bits.
    pub(super) fn integer_constant(&mut self) -> Parsed<u64> {
        let start = self.current.span;
        match self.constant()? {
            Constant::Integer { bits, .. } => Ok(bits),
            _ => {
                let span = self.span_from(start.start);
                Err(self.error_at(PtxErrorKind::BadLiteral, span, "a float where an integer belongs", None))
            }
        }
    }

    /// An integer that must not be below zero nor above a limit.
    pub(super) fn bounded_integer(&mut self, limit: u64, what: &str) -> Parsed<u64> {
        let start = self.current.span;
        if !self.at_constant() {
            return Err(self.unexpected(&format!("expected {what}")));
        }
        let constant = self.constant()?;
        let span = self.span_from(start.start);
        match constant {
            Constant::Integer { bits, unsigned } if bits <= limit && (unsigned || bits <= i64::MAX as u64) => Ok(bits),
            _ => {
                let expected = Some(format!("expected {what}, an integer from 0 to {limit}"));
                Err(self.error_at(PtxErrorKind::BadLiteral, span, "number out of range", expected))
            }
        }
    }

    /// The operator of a level that is next, if any. Operators of two marks are two tokens that touch.
    fn operator(&mut self, level: usize) -> Option<&'static str> {
        let TokenKind::Punctuation(first) = self.current.kind else { return None };
        let rest = self.lexer.peek_byte(self.current.span.end);
        let is_double = |second: u8| {
            matches!(
                (first, second),
                (b'|', b'|') | (b'&', b'&') | (b'=', b'=') | (b'!' | b'<' | b'>', b'=') | (b'<', b'<') | (b'>', b'>')
            )
        };
        let length = if is_double(rest) { 2 } else { 1 };
        let found = PRECEDENCE[level].iter().find(|operator| {
            let bytes = operator.as_bytes();
            bytes.len() == length && bytes[0] == first && (length == 1 || bytes[1] == rest)
        })?;
        for _ in 0..length {
            self.take();
        }
        Some(found)
    }

    fn binary(&mut self, level: usize) -> Parsed<Constant> {
        if level == PRECEDENCE.len() {
            return self.unary();
        }
        let start = self.current.span.start;
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.operator(level) {
            let right = self.binary(level + 1)?;
            let span = self.span_from(start);
            left = self.apply(operator, left, right, span)?;
        }
        Ok(left)
    }

    fn apply(&mut self, operator: &str, left: Constant, right: Constant, span: Span) -> Parsed<Constant> {
        if let (Constant::Integer { bits: a, unsigned: au }, Constant::Integer { bits: b, unsigned: bu }) =
            (left, right)
        {
            return match integer_operation(operator, a, b, au || bu) {
                Some((bits, unsigned)) => Ok(Constant::Integer { bits, unsigned }),
                None => Err(self.error_at(PtxErrorKind::BadLiteral, span, "division by zero in a constant", None)),
            };
        }
        let (a, b) = (as_f64(left), as_f64(right));
        let value = match operator {
            "+" => a + b,
            "-" => a - b,
            "*" => a * b,
            "/" => a / b,
            _ => {
                let message = format!("`{operator}` is no operation on floats");
                return Err(self.error_at(PtxErrorKind::BadLiteral, span, message, None));
            }
        };
        Ok(Constant::Float64(value))
    }

    fn unary(&mut self) -> Parsed<Constant> {
        self.nested(|parser| match parser.current.kind {
            TokenKind::Punctuation(b'-') => {
                parser.take();
                Ok(match parser.unary()? {
                    Constant::Integer { bits, unsigned } => Constant::Integer { bits: bits.wrapping_neg(), unsigned },
                    Constant::Float32(bits) => Constant::Float32(bits ^ 0x8000_0000),
                    Constant::Float64(value) => Constant::Float64(-value),
                })
            }
            TokenKind::Punctuation(b'+') => {
                parser.take();
                parser.unary()
            }
            TokenKind::Punctuation(b'!') => {
                parser.take();
                let value = parser.unary()?;
                Ok(Constant::Integer { bits: u64::from(!is_true(value)), unsigned: false })
            }
            TokenKind::Punctuation(b'~') => {
                parser.take();
                let start = parser.current.span;
                match parser.unary()? {
                    Constant::Integer { bits, unsigned } => Ok(Constant::Integer { bits: !bits, unsigned }),
                    _ => Err(parser.error_at(PtxErrorKind::BadLiteral, start, "`~` is no operation on floats", None)),
                }
            }
            TokenKind::Punctuation(b'(') => parser.parenthesised(),
            _ => parser.literal(),
        })
    }

    fn parenthesised(&mut self) -> Parsed<Constant> {
        self.expect(b'(', "before a constant")?;
        let cast = match self.current.text {
            "s64" if self.at_dotted("s64") => Some(false),
            "u64" if self.at_dotted("u64") => Some(true),
            _ => None,
        };
        if let Some(unsigned) = cast {
            self.take();
            self.expect(b')', "after the type of a cast")?;
            return Ok(match self.unary()? {
                Constant::Integer { bits, .. } => Constant::Integer { bits, unsigned },
                float if unsigned => Constant::Integer { bits: as_f64(float) as u64, unsigned },
                float => Constant::Integer { bits: as_f64(float) as i64 as u64, unsigned },
            });
        }
        let value = self.constant()?;
        self.expect(b')', "after a constant in parentheses")?;
        Ok(value)
    }

    fn literal(&mut self) -> Parsed<Constant> {
        let token = self.current;
        let hexadecimal = |length: usize| {
            let digits = token.text.get(2..)?;
            (digits.len() == length).then(|| u64::from_str_radix(digits, 16).ok())?
        };
        let value = match token.kind {
            TokenKind::Integer => {
                integer_value(token.text).map(|(bits, unsigned)| Constant::Integer { bits, unsigned })
            }
            TokenKind::HexFloat32 => hexadecimal(8).map(|bits| Constant::Float32(bits as u32)),
            TokenKind::HexFloat64 => hexadecimal(16).map(|bits| Constant::Float64(f64::from_bits(bits))),
            TokenKind::DecimalFloat => token.text.parse().ok().map(Constant::Float64),
            TokenKind::Identifier if token.text == WARP_SIZE => Some(Constant::Integer { bits: 32, unsigned: false }),
            // `.5`
            TokenKind::Dotted if self.at_constant() => format!("0.{}", token.text).parse().ok().map(Constant::Float64),
            _ => None,
        };
        let Some(value) = value else { return Err(self.unexpected("expected a literal")) };
        self.take();
        Ok(value)
    }
}

fn is_true(constant: Constant) -> bool {
    match constant {
        Constant::Integer { bits, .. } => bits != 0,
        float => as_f64(float) != 0.0,
    }
}

/// The value of a constant as an f64.
pub(super) fn as_f64(constant: Constant) -> f64 {
    match constant {
        Constant::Integer { bits, unsigned: true } => bits as f64,
        Constant::Integer { bits, unsigned: false } => bits as i64 as f64,
        Constant::Float32(bits) => f64::from(f32::from_bits(bits)),
        Constant::Float64(value) => value,
    }
}

/// One operation in 64 bits, wrapping; `None` = division by zero. Comparisons give signed 0 or 1.
fn integer_operation(operator: &str, a: u64, b: u64, unsigned: bool) -> Option<(u64, bool)> {
    let (sa, sb) = (a as i64, b as i64);
    let truth = |value: bool| Some((u64::from(value), false));
    let less = if unsigned { a < b } else { sa < sb };
    let value = match operator {
        "||" => return truth(a != 0 || b != 0),
        "&&" => return truth(a != 0 && b != 0),
        "==" => return truth(a == b),
        "!=" => return truth(a != b),
        "<" => return truth(less),
        ">=" => return truth(!less),
        "<=" => return truth(less || a == b),
        ">" => return truth(!less && a != b),
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "<<" => a.checked_shl(u32::try_from(b).unwrap_or(64)).unwrap_or(0),
        ">>" if unsigned => a.checked_shr(u32::try_from(b).unwrap_or(64)).unwrap_or(0),
        ">>" => (sa >> b.min(63)) as u64,
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" if unsigned => a.checked_div(b)?,
        "/" => (b != 0).then(|| sa.wrapping_div(sb) as u64)?,
        _ if unsigned => a.checked_rem(b)?,
        _ => (b != 0).then(|| sa.wrapping_rem(sb) as u64)?,
    };
    Some((value, unsigned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        for (text, expected) in [
            ("1+2*3", 7),
            ("(1+2)*3", 9),
            ("-4", -4),
            ("0x10 | 1 << 2", 20),
            ("7 / 2 - 7 % 2", 2),
            ("-1 < 0 ? 10 : 20", 10),
            ("-1 < 0U", 0),
            ("~0 == -1 && 3 != 4", 1),
            ("(.s64) 2.9", 2),
            ("!0 + !5", 1),
            ("1 >= 2 || 2 <= 2", 1),
            ("0x8000000000000000 >> 63", 1),
            ("(.s64)0x8000000000000000 >> 63", -1),
            ("WARP_SZ * 4 - 1", 127),
            ("0b1010 ^ 012", 0),
            ("0xFFU + 1U", 256),
            ("4 / 3 * 3 == 4 ? 1 : 2 < 3 ? 5 : 6", 5),
        ] {
            let mut parser = Parser::new(text);
            let Ok(value) = parser.integer_constant() else { panic!("{text}: {:?}", parser.errors) };
            assert_eq!(value as i64, expected, "{text}");
            assert!(parser.at_end(), "{text}");
        }
    }

    #[test]
    fn bad_constants() {
        for text in ["1/0", "1 % 0U", "~1.5", "", "1+", "(1", "1.5 & 2", &"(".repeat(5000), &"-".repeat(5000)] {
            let mut parser = Parser::new(text);
            assert!(parser.constant().is_err(), "{text}");
            assert_eq!(parser.errors.len(), 1, "{text}");
        }
    }
}
