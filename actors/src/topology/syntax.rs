//! RON with the place of every value: what the topology loader needs to point at a mistake.
//!
//! The values of parameters are kept as text and read by the `ron` crate later; this parser finds the structure around them.

use std::ops::Range;

/// Byte range in a file.
pub type Span = Range<usize>;

/// Values nest at most this deep.
const MAXIMUM_DEPTH: u32 = 64;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Value {
    /// What it is.
    pub kind: ValueKind,
    /// Its text.
    pub span: Span,
}

/// What a value is.
#[derive(Clone, Debug)]
pub enum ValueKind {
    /// `Name` or `Name(...)`.
    Call(Name, Vec<Item>),
    /// `(...)`.
    Tuple(Vec<Item>),
    /// `{key: value, ...}`.
    Map(Vec<(Value, Value)>),
    /// `[...]`.
    List(Vec<Value>),
    /// A string, its escapes resolved.
    String(String),
    /// A number, kept as text.
    Number,
    /// `true` or `false`.
    Bool,
    /// A character.
    Char,
}

impl Value {
    /// What it is, in words.
    pub fn describe(&self) -> &'static str {
        match &self.kind {
            ValueKind::Call(..) => "an identifier",
            ValueKind::Tuple(_) => "a tuple",
            ValueKind::Map(_) => "a map",
            ValueKind::List(_) => "a list",
            ValueKind::String(_) => "a string",
            ValueKind::Number => "a number",
            ValueKind::Bool => "a boolean",
            ValueKind::Char => "a character",
        }
    }

    /// The string it holds.
    pub fn string(&self) -> Option<&str> {
        match &self.kind {
            ValueKind::String(text) => Some(text),
            _ => None,
        }
    }
}

/// An identifier and where it stands.
#[derive(Clone, Debug)]
pub struct Name {
    /// The identifier.
    pub text: String,
    /// Its place.
    pub span: Span,
}

/// One entry of `Name(...)` or `(...)`: `key: value` or `value`.
#[derive(Clone, Debug)]
pub struct Item {
    /// The key, where there is one.
    pub key: Option<Name>,
    /// The value.
    pub value: Value,
}

impl Item {
    /// Key and value together.
    pub fn span(&self) -> Span {
        self.key.as_ref().map_or(self.value.span.start, |key| key.span.start)..self.value.span.end
    }
}

/// Why a text is not RON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// What was expected and what was found.
    pub message: String,
    /// Where.
    pub span: Span,
    /// The bracket that is still open.
    pub opened: Option<Span>,
}

/// Reads one value that fills `text`.
pub fn parse(text: &str) -> Result<Value, SyntaxError> {
    let mut parser = Parser { text, position: 0, depth: 0 };
    let value = parser.value()?;
    parser.skip_blank()?;
    if parser.position < text.len() {
        return Err(parser.unexpected("the end of the file"));
    }
    Ok(value)
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
    depth: u32,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.position..].chars().next()
    }

    fn at(&self, prefix: &str) -> bool {
        self.text[self.position..].starts_with(prefix)
    }

    fn advance_while(&mut self, accepts: impl Fn(char) -> bool) {
        let rest = &self.text[self.position..];
        self.position += rest.find(|c| !accepts(c)).unwrap_or(rest.len());
    }

    fn error(&self, message: impl Into<String>, span: Span) -> SyntaxError {
        SyntaxError { message: message.into(), span, opened: None }
    }

    fn unexpected(&self, expected: &str) -> SyntaxError {
        match self.peek() {
            Some(found) => {
                let span = self.position..self.position + found.len_utf8();
                self.error(format!("expected {expected}, found `{found}`"), span)
            }
            None => self.error(
                format!("expected {expected}, found the end of the file"),
                self.text.trim_end().len()..self.text.trim_end().len(),
            ),
        }
    }

    fn skip_blank(&mut self) -> Result<(), SyntaxError> {
        loop {
            self.advance_while(char::is_whitespace);
            if self.at("//") {
                self.advance_while(|c| c != '\n');
            } else if self.at("/*") {
                let start = self.position;
                let mut open = 0u32;
                loop {
                    if self.at("/*") {
                        open += 1;
                        self.position += 2;
                    } else if self.at("*/") {
                        open -= 1;
                        self.position += 2;
                        if open == 0 {
                            break;
                        }
                    } else if let Some(c) = self.peek() {
                        self.position += c.len_utf8();
                    } else {
                        return Err(self.error("a comment is not closed: expected `*/`", start..start + 2));
                    }
                }
            } else {
                return Ok(());
            }
        }
    }

    fn identifier(&mut self) -> Option<Name> {
        let start = self.position;
        if self.peek().is_some_and(|c| c.is_alphabetic() || c == '_') {
            self.advance_while(|c| c.is_alphanumeric() || c == '_');
            return Some(Name { text: self.text[start..self.position].to_owned(), span: start..self.position });
        }
        None
    }

    fn value(&mut self) -> Result<Value, SyntaxError> {
        self.skip_blank()?;
        let start = self.position;
        if self.depth == MAXIMUM_DEPTH {
            return Err(self.error(format!("values nest deeper than {MAXIMUM_DEPTH} levels"), start..start + 1));
        }
        self.depth += 1;
        let kind = match self.peek() {
            Some('(') => ValueKind::Tuple(self.items()?),
            Some('{') => ValueKind::Map(self.bracketed('}', Self::entry)?),
            Some('[') => ValueKind::List(self.bracketed(']', Self::value)?),
            Some('"') => ValueKind::String(self.quoted()?),
            Some('\'') => self.character()?,
            Some('r') if self.at("r\"") || self.at("r#") => ValueKind::String(self.raw_string()?),
            Some(c) if c.is_ascii_digit() || matches!(c, '+' | '-' | '.') => self.number(),
            _ => {
                let name = self.identifier().ok_or_else(|| self.unexpected("a value"))?;
                if name.text == "true" || name.text == "false" {
                    ValueKind::Bool
                } else {
                    let after = self.position;
                    self.skip_blank()?;
                    if self.peek() == Some('(') {
                        ValueKind::Call(name, self.items()?)
                    } else {
                        self.position = after;
                        ValueKind::Call(name, Vec::new())
                    }
                }
            }
        };
        self.depth -= 1;
        Ok(Value { kind, span: start..self.position })
    }

    fn number(&mut self) -> ValueKind {
        let mut previous = ' ';
        while let Some(c) = self.peek() {
            let sign = matches!(c, '+' | '-') && matches!(previous, ' ' | 'e' | 'E');
            if !(sign || c.is_ascii_alphanumeric() || matches!(c, '_' | '.')) {
                break;
            }
            previous = c;
            self.position += 1;
        }
        ValueKind::Number
    }

    fn items(&mut self) -> Result<Vec<Item>, SyntaxError> {
        self.bracketed(')', |parser| {
            let start = parser.position;
            if let Some(key) = parser.identifier() {
                parser.skip_blank()?;
                if parser.peek() == Some(':') {
                    parser.position += 1;
                    return Ok(Item { key: Some(key), value: parser.value()? });
                }
                parser.position = start;
            }
            Ok(Item { key: None, value: parser.value()? })
        })
    }

    fn entry(&mut self) -> Result<(Value, Value), SyntaxError> {
        let key = self.value()?;
        self.skip_blank()?;
        if self.peek() != Some(':') {
            return Err(self.unexpected("`:` after the key"));
        }
        self.position += 1;
        Ok((key, self.value()?))
    }

    /// Entries between brackets, separated by commas, the last comma optional.
    fn bracketed<T>(
        &mut self,
        close: char,
        mut entry: impl FnMut(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<Vec<T>, SyntaxError> {
        let opened = self.position..self.position + 1;
        let opening = &self.text[opened.clone()];
        self.position += 1;
        let mut entries = Vec::new();
        loop {
            self.skip_blank()?;
            let unclosed = |parser: &Self| SyntaxError {
                opened: Some(opened.clone()),
                ..parser.error(
                    format!("`{opening}` is not closed: expected `{close}`, found the end of the file"),
                    parser.text.trim_end().len()..parser.text.trim_end().len(),
                )
            };
            match self.peek() {
                None => return Err(unclosed(self)),
                Some(c) if c == close => {
                    self.position += 1;
                    return Ok(entries);
                }
                Some(_) => entries.push(entry(self)?),
            }
            let end = self.position;
            self.skip_blank()?;
            match self.peek() {
                None => return Err(unclosed(self)),
                Some(',') => self.position += 1,
                Some(c) if c == close => {}
                Some(c) => {
                    return Err(SyntaxError {
                        opened: Some(opened),
                        ..self.error(format!("expected `,` or `{close}`, found `{c}`"), end..end)
                    });
                }
            }
        }
    }

    fn quoted(&mut self) -> Result<String, SyntaxError> {
        let start = self.position;
        self.position += 1;
        let mut text = String::new();
        loop {
            let unclosed = self.error("a string is not closed: expected `\"`", start..start + 1);
            let c = self.peek().ok_or(unclosed)?;
            self.position += c.len_utf8();
            match c {
                '"' => return Ok(text),
                '\\' => text.push(self.escape()?),
                c => text.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char, SyntaxError> {
        let start = self.position - 1;
        let c = self.peek().unwrap_or(' ');
        self.position += c.len_utf8().min(self.text.len() - self.position);
        Ok(match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            '0' => '\0',
            '\\' | '"' | '\'' => c,
            _ => return Err(self.error(format!("unknown escape `\\{c}`"), start..self.position)),
        })
    }

    fn character(&mut self) -> Result<ValueKind, SyntaxError> {
        let start = self.position;
        self.position += 1;
        if let Some(c) = self.peek() {
            self.position += c.len_utf8();
            if c == '\\' {
                self.escape()?;
            }
        }
        if self.peek() != Some('\'') {
            return Err(self.error("a character is not closed: expected `'`", start..start + 1));
        }
        self.position += 1;
        Ok(ValueKind::Char)
    }

    fn raw_string(&mut self) -> Result<String, SyntaxError> {
        let start = self.position;
        self.position += 1;
        let hashes = self.position;
        self.advance_while(|c| c == '#');
        let closing = format!("\"{}", &self.text[hashes..self.position]);
        let unclosed = self.error(format!("a raw string is not closed: expected `{closing}`"), start..start + 1);
        if self.peek() != Some('"') {
            return Err(unclosed);
        }
        self.position += 1;
        let length = self.text[self.position..].find(&closing).ok_or(unclosed)?;
        let text = self.text[self.position..self.position + length].to_owned();
        self.position += length + closing.len();
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structure_and_spans() {
        let text = "A(x: 1, /* two */ \"b\", c: [B(y: -2.5e-3), r#\"q\"#], // end\n d: {\"k\": ('c', true)},)";
        let value = parse(text).expect("well-formed");
        let ValueKind::Call(name, items) = &value.kind else { panic!("{value:?}") };
        assert_eq!((name.text.as_str(), items.len(), value.span.clone()), ("A", 4, 0..text.len()));
        assert_eq!(&text[items[2].span()], "c: [B(y: -2.5e-3), r#\"q\"#]");
        assert_eq!(items[1].value.string(), Some("b"));
    }

    #[test]
    fn mistakes_are_located() {
        for (text, message, at) in [
            ("A(x: 1 y: 2)", "expected `,` or `)`, found `y`", 6),
            ("A(x: [1, 2)", "expected `,` or `]`, found `)`", 10),
            ("A(x: {\"k\" 1})", "expected `:` after the key, found `1`", 10),
            ("A(x: \"k)", "a string is not closed: expected `\"`", 5),
            ("A(x: 1", "`(` is not closed: expected `)`, found the end of the file", 6),
            ("A(x: 1) b", "expected the end of the file, found `b`", 8),
            ("A(/* x", "a comment is not closed: expected `*/`", 2),
            ("", "expected a value, found the end of the file", 0),
            ("A(\"\\q\")", "unknown escape `\\q`", 3),
            ("A('x)", "a character is not closed: expected `'`", 2),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!((error.message.as_str(), error.span.start), (message, at), "{text}");
        }
        assert!(parse(&"(".repeat(10_000)).expect_err("too deep").message.contains("nest deeper"));
    }
}
