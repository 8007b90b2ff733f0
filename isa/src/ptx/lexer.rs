//! Cuts a PTX text into tokens. Tokens are slices of the text: nothing is copied.

use super::error::{PtxErrorKind, RawError};
use super::source::Span;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A name, with `%`, `$` and `_`; the text is all of it.
    Identifier,
    /// A dotted word: `.global`, `.shared::cta`, `.2d`; the text is without the dot.
    Dotted,
    /// A decimal, hexadecimal, octal or binary integer, `U` suffix included.
    Integer,
    /// A decimal float.
    DecimalFloat,
    /// `0f` and 8 hexadecimal digits.
    HexFloat32,
    /// `0d` and 16 hexadecimal digits.
    HexFloat64,
    /// A string; the text is without its quotes.
    String,
    /// One byte of punctuation.
    Punctuation(u8),
    /// The end of the text.
    End,
}

/// A token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub kind: TokenKind,
    pub text: &'a str,
    pub span: Span,
}

impl Token<'_> {
    /// How a message names it.
    pub fn describe(&self) -> String {
        let shorten = |text: &str| -> String {
            if text.chars().count() > 40 {
                text.chars().take(37).chain("...".chars()).collect()
            } else {
                text.to_owned()
            }
        };
        match self.kind {
            TokenKind::End => "the end of the file".to_owned(),
            TokenKind::Dotted => format!("`.{}`", shorten(self.text)),
            TokenKind::String => format!("the string \"{}\"", shorten(self.text)),
            _ => format!("`{}`", shorten(self.text)),
        }
    }
}

/// Produces tokens one by one; mistakes go to `errors`, and the next good token is produced.
pub(crate) struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    position: usize,
    /// Mistakes so far.
    pub errors: Vec<RawError>,
}

/// Mistakes that the lexer keeps: enough to fill a report.
const KEPT_ERRORS: usize = super::error::MAXIMUM_ERRORS + 1;

/// The kinds of tokens, and of text between tokens, by their first byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteClass {
    /// Begins a name and goes on in it.
    Letter,
    /// Begins a number and goes on in a name.
    Digit,
    /// `%`, before the names of registers.
    Percent,
    /// `.`, before words such as `.global`.
    Dot,
    /// A token of its own.
    Mark,
    /// `"`
    Quote,
    /// White space.
    Blank,
    /// May begin a comment or other text that is passed over.
    Comment,
    /// Belongs to nothing.
    Strange,
}

const CLASSES: [ByteClass; 256] = {
    let mut classes = [ByteClass::Strange; 256];
    let mut byte = 0;
    while byte < classes.len() {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => ByteClass::Letter,
            b'0'..=b'9' => ByteClass::Digit,
            b'%' => ByteClass::Percent,
            b'.' => ByteClass::Dot,
            b',' | b';' | b':' | b'[' | b']' | b'{' | b'}' | b'(' | b')' | b'<' | b'>' | b'!' | b'+' | b'-' | b'*'
            | b'&' | b'|' | b'^' | b'~' | b'?' | b'=' => ByteClass::Mark,
            b'"' => ByteClass::Quote,
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | 0 => ByteClass::Blank,
            b'/' | b'@' | b'#' | b'\\' => ByteClass::Comment,
            _ => ByteClass::Strange,
        };
        byte += 1;
    }
    classes
};

const fn class_of(byte: u8) -> ByteClass {
    CLASSES[byte as usize]
}

const fn is_word(byte: u8) -> bool {
    matches!(class_of(byte), ByteClass::Letter | ByteClass::Digit)
}

impl<'a> Lexer<'a> {
    /// Starts at the beginning of a text, which must be shorter than 4 GiB.
    pub fn new(text: &'a str) -> Self {
        Self { text, bytes: text.as_bytes(), position: 0, errors: Vec::new() }
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or(&[])
    }

    fn byte(&self, offset: usize) -> u8 {
        self.bytes.get(self.position + offset).copied().unwrap_or(0)
    }

    /// The text at a span.
    pub fn slice(&self, span: Span) -> &'a str {
        span.text(self.text)
    }

    /// The byte at an offset; 0 past the end.
    pub fn peek_byte(&self, offset: u32) -> u8 {
        self.bytes.get(offset as usize).copied().unwrap_or(0)
    }

    #[inline]
    fn token(&self, kind: TokenKind, start: usize) -> Token<'a> {
        self.sliced(kind, start, start, self.position)
    }

    /// A token from `start` to here whose text is `from..to`.
    #[inline]
    fn sliced(&self, kind: TokenKind, start: usize, from: usize, to: usize) -> Token<'a> {
        let text = self.text.get(from..to).unwrap_or("");
        Token { kind, text, span: Span::new(start as u32, self.position as u32) }
    }

    fn error(&mut self, kind: PtxErrorKind, start: usize, message: String, expected: &str) {
        if self.errors.len() < KEPT_ERRORS {
            let span = Span::new(start as u32, self.position as u32);
            self.errors.push(RawError::new(kind, span, message).expected(expected));
        }
    }

    #[inline]
    fn skip_words(&mut self) {
        let rest = self.rest();
        self.position += rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len());
    }

    #[inline]
    fn skip_blank(&mut self) {
        let rest = self.rest();
        self.position += rest.iter().position(|byte| class_of(*byte) != ByteClass::Blank).unwrap_or(rest.len());
    }

    /// Skips a comment or other text without a meaning; false where there is none.
    fn skip_comment(&mut self, first: u8) -> bool {
        match first {
            b'/' if self.byte(1) == b'/' => self.skip_line(),
            b'/' if self.byte(1) == b'*' => self.skip_block_comment(),
            b'#' => self.skip_line(),
            // A continued line, as a preprocessor leaves it.
            b'\\' if self.byte(1) == b'\n' => self.position += 2,
            b'\\' if self.byte(1) == b'\r' && self.byte(2) == b'\n' => self.position += 3,
            // Debugging data of PTX before 2.0: `@@DWARF .byte 1, 2`.
            b'@' if self.rest().starts_with(b"@@DWARF") => self.skip_line(),
            _ => return false,
        }
        true
    }

    fn skip_line(&mut self) {
        let rest = &self.bytes[self.position..];
        self.position += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }

    fn skip_block_comment(&mut self) {
        let start = self.position;
        self.position += 2;
        while self.position < self.bytes.len() {
            if self.byte(0) == b'*' && self.byte(1) == b'/' {
                self.position += 2;
                return;
            }
            self.position += 1;
        }
        let end = self.position;
        self.position = start + 2;
        self.error(PtxErrorKind::Unterminated, start, "comment without an end".to_owned(), "expected `*/`");
        self.position = end;
    }

    /// The next token; `End` for ever after the last.
    pub fn next_token(&mut self) -> Token<'a> {
        loop {
            self.skip_blank();
            let start = self.position;
            let Some(&first) = self.bytes.get(start) else { return self.token(TokenKind::End, start) };
            match class_of(first) {
                ByteClass::Letter => {
                    self.skip_words();
                    return self.token(TokenKind::Identifier, start);
                }
                ByteClass::Mark => {
                    self.position += 1;
                    return self.token(TokenKind::Punctuation(first), start);
                }
                ByteClass::Percent => {
                    self.position += 1;
                    self.skip_words();
                    let kind =
                        if self.position == start + 1 { TokenKind::Punctuation(b'%') } else { TokenKind::Identifier };
                    return self.token(kind, start);
                }
                ByteClass::Dot if is_word(self.byte(1)) => {
                    self.position += 1;
                    self.skip_words();
                    while self.byte(0) == b':' && self.byte(1) == b':' && is_word(self.byte(2)) {
                        self.position += 2;
                        self.skip_words();
                    }
                    return self.sliced(TokenKind::Dotted, start, start + 1, self.position);
                }
                ByteClass::Digit => {
                    if let Some(token) = self.number(start) {
                        return token;
                    }
                }
                ByteClass::Quote => {
                    if let Some(token) = self.string(start) {
                        return token;
                    }
                }
                ByteClass::Comment if self.skip_comment(first) => {}
                ByteClass::Comment if matches!(first, b'/' | b'@') => {
                    self.position += 1;
                    return self.token(TokenKind::Punctuation(first), start);
                }
                ByteClass::Comment | ByteClass::Dot | ByteClass::Blank | ByteClass::Strange => {
                    self.bad_character(start);
                }
            }
        }
    }

    fn bad_character(&mut self, start: usize) {
        // A run of strange characters is one mistake.
        let strange = |byte: u8| !byte.is_ascii() || byte == b'\\' || byte == b'`' || byte.is_ascii_control();
        self.position += 1;
        if strange(self.bytes[start]) {
            while self.position < self.bytes.len() && strange(self.bytes[self.position]) && self.byte(0) != b'\n' {
                self.position += 1;
            }
        }
        while !self.text.is_char_boundary(self.position) {
            self.position += 1;
        }
        let shown: String = self.text.get(start..self.position).unwrap_or("").chars().take(20).collect();
        self.error(
            PtxErrorKind::BadLiteral,
            start,
            format!("`{}` is no PTX", shown.escape_debug()),
            "expected a name, a literal or punctuation",
        );
    }

    fn string(&mut self, start: usize) -> Option<Token<'a>> {
        let rest = &self.bytes[start + 1..];
        let length = rest.iter().position(|byte| *byte == b'"' || *byte == b'\n').unwrap_or(rest.len());
        let closed = rest.get(length) == Some(&b'"');
        self.position = start + 1 + length + usize::from(closed);
        if closed {
            return Some(self.sliced(TokenKind::String, start, start + 1, start + 1 + length));
        }
        self.error(PtxErrorKind::Unterminated, start, "string without an end".to_owned(), "expected `\"` on this line");
        None
    }

    fn number(&mut self, start: usize) -> Option<Token<'a>> {
        self.skip_words();
        let word = &self.bytes[start..self.position];
        let all_decimal = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_digit);
        // `12.5`, `12.`, but not `12.x`.
        if all_decimal(word) && self.byte(0) == b'.' && (self.byte(1).is_ascii_digit() || !is_word(self.byte(1))) {
            self.position += 1;
            self.skip_words();
            self.exponent_sign();
            return self.checked_number(start, TokenKind::DecimalFloat);
        }
        let digits = word.get(2..).unwrap_or(&[]);
        let hexadecimal = |length: usize| digits.len() == length && digits.iter().all(u8::is_ascii_hexdigit);
        match (word[0], word.get(1).copied().unwrap_or(0)) {
            (b'0', b'f' | b'F') if hexadecimal(8) => Some(self.token(TokenKind::HexFloat32, start)),
            (b'0', b'd' | b'D') if hexadecimal(16) => Some(self.token(TokenKind::HexFloat64, start)),
            (b'0', b'f' | b'F') => self.bad_number(start, "expected 8 hexadecimal digits after `0f`"),
            (b'0', b'd' | b'D') => self.bad_number(start, "expected 16 hexadecimal digits after `0d`"),
            (b'0', b'x' | b'X' | b'b' | b'B') => self.checked_number(start, TokenKind::Integer),
            _ if word.iter().any(|byte| matches!(byte, b'e' | b'E')) => {
                self.exponent_sign();
                self.checked_number(start, TokenKind::DecimalFloat)
            }
            _ => self.checked_number(start, TokenKind::Integer),
        }
    }

    /// Takes the sign and digits of `1.5e-3`, where the word so far ends in `e`.
    fn exponent_sign(&mut self) {
        let after_e = matches!(self.bytes[self.position - 1], b'e' | b'E');
        if after_e && matches!(self.byte(0), b'+' | b'-') && self.byte(1).is_ascii_digit() {
            self.position += 1;
            self.skip_words();
        }
    }

    fn checked_number(&mut self, start: usize, kind: TokenKind) -> Option<Token<'a>> {
        let token = self.token(kind, start);
        let good = match kind {
            TokenKind::Integer => integer_value(token.text).is_some(),
            _ => token.text.parse::<f64>().is_ok(),
        };
        if good { Some(token) } else { self.bad_number(start, "expected an integer of at most 64 bits, or a float") }
    }

    /// Reports the number and gives a zero in its place, so that the rest of the text still makes sense.
    fn bad_number(&mut self, start: usize, expected: &str) -> Option<Token<'a>> {
        let shown: String = self.text.get(start..self.position).unwrap_or("").chars().take(40).collect();
        self.error(PtxErrorKind::BadLiteral, start, format!("`{shown}` is no number"), expected);
        let span = Span::new(start as u32, self.position as u32);
        Some(Token { kind: TokenKind::Integer, text: "0", span })
    }
}

/// The value of an integer literal and whether it is unsigned (`U` suffix, or beyond 63 bits).
pub(crate) fn integer_value(text: &str) -> Option<(u64, bool)> {
    let (digits, suffixed) = match text.strip_suffix('U') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (digits.get(2..)?, 16),
        [b'0', b'b' | b'B', ..] => (digits.get(2..)?, 2),
        [b'0', _, ..] => (digits.get(1..)?, 8),
        _ => (digits, 10),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let value = u64::from_str_radix(digits, radix).ok()?;
    Some((value, suffixed || value > i64::MAX as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> (Vec<(TokenKind, &str)>, Vec<RawError>) {
        let mut lexer = Lexer::new(text);
        let mut found = Vec::new();
        loop {
            let token = lexer.next_token();
            if token.kind == TokenKind::End {
                return (found, lexer.errors);
            }
            found.push((token.kind, token.text));
        }
    }

    #[test]
    fn each_sort_of_token() {
        use TokenKind as K;
        let cases: &[(&str, &[(TokenKind, &str)])] = &[
            (
                "ld.global.v4.f32",
                &[(K::Identifier, "ld"), (K::Dotted, "global"), (K::Dotted, "v4"), (K::Dotted, "f32")],
            ),
            ("$L__BB0_1:", &[(K::Identifier, "$L__BB0_1"), (K::Punctuation(b':'), ":")]),
            (
                "%rd<10>",
                &[(K::Identifier, "%rd"), (K::Punctuation(b'<'), "<"), (K::Integer, "10"), (K::Punctuation(b'>'), ">")],
            ),
            (".shared::cta .2d", &[(K::Dotted, "shared::cta"), (K::Dotted, "2d")]),
            ("0f3F800000 0dBFF0000000000000", &[(K::HexFloat32, "0f3F800000"), (K::HexFloat64, "0dBFF0000000000000")]),
            (
                "0x1F 017 0b101 42U 1.5 1e3 2.5E-3",
                &[
                    (K::Integer, "0x1F"),
                    (K::Integer, "017"),
                    (K::Integer, "0b101"),
                    (K::Integer, "42U"),
                    (K::DecimalFloat, "1.5"),
                    (K::DecimalFloat, "1e3"),
                    (K::DecimalFloat, "2.5E-3"),
                ],
            ),
            ("a // b\n/* c\n */ \"d e\" # f\n_", &[(K::Identifier, "a"), (K::String, "d e"), (K::Identifier, "_")]),
            (
                "[%r1+-4]",
                &[
                    (K::Punctuation(b'['), "["),
                    (K::Identifier, "%r1"),
                    (K::Punctuation(b'+'), "+"),
                    (K::Punctuation(b'-'), "-"),
                    (K::Integer, "4"),
                    (K::Punctuation(b']'), "]"),
                ],
            ),
        ];
        for (text, expected) in cases {
            let (found, errors) = tokens(text);
            assert_eq!(&found, expected, "{text}");
            assert!(errors.is_empty(), "{text}: {errors:?}");
        }
    }

    #[test]
    fn integers() {
        for (text, expected) in [
            ("0", Some((0, false))),
            ("0U", Some((0, true))),
            ("0x7fffffffffffffff", Some((i64::MAX as u64, false))),
            ("18446744073709551615", Some((u64::MAX, true))),
            ("18446744073709551616", None),
            ("0777", Some((511, false))),
            ("08", None),
            ("0b", None),
            ("0b12", None),
            ("12ab", None),
        ] {
            assert_eq!(integer_value(text), expected, "{text}");
        }
    }

    #[test]
    fn mistakes_are_reported_and_passed() {
        for (text, kind, message) in [
            ("a /* b", PtxErrorKind::Unterminated, "comment without an end"),
            ("a \"b\n", PtxErrorKind::Unterminated, "string without an end"),
            ("a 0f12", PtxErrorKind::BadLiteral, "`0f12` is no number"),
            ("a 12q", PtxErrorKind::BadLiteral, "`12q` is no number"),
            ("a \u{e9}\u{e8}", PtxErrorKind::BadLiteral, "`\u{e9}\u{e8}` is no PTX"),
            ("a .", PtxErrorKind::BadLiteral, "`.` is no PTX"),
        ] {
            let (found, errors) = tokens(text);
            assert_eq!(found[0], (TokenKind::Identifier, "a"), "{text}");
            assert_eq!(errors.len(), 1, "{text}: {errors:?}");
            assert_eq!((errors[0].kind, errors[0].message.as_str()), (kind, message), "{text}");
        }
    }
}
