//! The filter for text that people see: names of a foreign file may hold characters that a terminal obeys.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Does a terminal obey this character? Line feeds and tabulators are text.
fn is_obeyed(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_escaped(c) {
            // In JSON this is the character itself.
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// A text with its control characters written out: `\u001b`. It may have several lines.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_obeyed)
}

/// A name with all its control characters written out, so that it is part of one line.
pub fn printable_name(name: &str) -> Cow<'_, str> {
    escaped(name, char::is_control)
}

/// Writes text with its control characters written out.
#[derive(Debug)]
pub struct Printable<W> {
    inner: W,
    /// The first byte of two of a control character from U+0080 on has come.
    has_lead: bool,
}

/// The first byte of characters from U+0080 to U+00BF.
const LEAD: u8 = 0xc2;

impl<W: Write> Printable<W> {
    /// A filter in front of a stream.
    pub fn new(inner: W) -> Printable<W> {
        Printable { inner, has_lead: false }
    }
}

impl<W: Write> Write for Printable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Nearly all text is plain, and passes as a whole. (A sum without a way out is looked through 16 bytes at a time.)
        let special = bytes.iter().filter(|&&byte| !matches!(byte, b'\n' | b'\t' | 0x20..=0x7e)).count();
        if special == 0 && !self.has_lead {
            self.inner.write_all(bytes)?;
            return Ok(bytes.len());
        }
        let mut plain = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            let is_second = std::mem::take(&mut self.has_lead);
            let code = match byte {
                0x80..=0x9f if is_second => Some(byte),
                b'\n' | b'\t' => None,
                0..=0x1f | 0x7f => Some(byte),
                _ => None,
            };
            if is_second && code.is_none() {
                self.inner.write_all(&bytes[plain..at])?;
                self.inner.write_all(&[LEAD])?;
                plain = at;
            }
            if let Some(code) = code {
                let end = if is_second { plain.max(at) } else { at };
                self.inner.write_all(&bytes[plain..end])?;
                write!(self.inner, "\\u{code:04x}")?;
                plain = at + 1;
            } else if byte == LEAD {
                self.inner.write_all(&bytes[plain..at])?;
                self.has_lead = true;
                plain = at + 1;
            }
        }
        self.inner.write_all(&bytes[plain..])?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.has_lead) {
            self.inner.write_all(&[LEAD])?;
        }
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{1b}[31mb\u{9b}2J\r\u{7f}\u{e9}\u{b5}\u{20ac}\tc\nd";
    const SHOWN: &str = "a\\u001b[31mb\\u009b2J\\u000d\\u007f\u{e9}\u{b5}\u{20ac}\tc\nd";

    #[test]
    fn control_characters_are_written_out() {
        assert_eq!(printable(HOSTILE), SHOWN);
        assert_eq!(printable_name("a\nb\tc"), "a\\u000ab\\u0009c");
        assert!(matches!(printable("plain text\n"), Cow::Borrowed(_)));
    }

    /// Wherever the text is cut.
    #[test]
    fn a_stream_is_filtered_across_its_pieces() {
        for length in 1..=HOSTILE.len() {
            let mut stream = Printable::new(Vec::new());
            for piece in HOSTILE.as_bytes().chunks(length) {
                stream.write_all(piece).expect("memory");
            }
            stream.flush().expect("memory");
            assert_eq!(String::from_utf8_lossy(&stream.inner), SHOWN, "in pieces of {length}");
        }
        let mut stream = Printable::new(Vec::new());
        stream.write_all("\u{b5}".as_bytes()).and_then(|()| stream.flush()).expect("memory");
        assert_eq!(stream.inner, "\u{b5}".as_bytes());
    }

    #[test]
    fn json_means_the_same_afterwards() {
        let text = serde_json::to_string(HOSTILE).expect("a text");
        let filtered = printable(&text);
        assert!(!filtered.contains(is_obeyed));
        assert_eq!(serde_json::from_str::<String>(&filtered).expect("JSON"), HOSTILE);
    }
}
