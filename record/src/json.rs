//! The result document as JSON: an entry of a list is a line, so that files compare line by line.

use crate::result::RunRecord;
use serde::Serialize;
use serde_json::ser::Formatter;
use std::io::{self, Write};

/// Containers deeper than this stay on one line.
const LINES_TO_DEPTH: usize = 2;

/// Writes the document of a run, ended by a newline.
///
/// # Errors
///
/// If `writer` fails.
pub fn write(record: &RunRecord, writer: &mut dyn Write) -> io::Result<()> {
    write_value(&record.document(), writer)
}

/// Any value in the same layout, ended by a newline.
pub fn to_text(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    write_value(value, &mut bytes).expect("a document of text keys and numbers always serialises into memory");
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

fn write_value(value: &impl Serialize, mut writer: &mut dyn Write) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut writer, LineFormatter::default());
    value.serialize(&mut serializer)?;
    writer.write_all(b"\n")
}

/// Breaks lines in the two outermost levels, and keeps inner levels on one line.
#[derive(Default)]
struct LineFormatter {
    depth: usize,
    has_value: bool,
}

impl LineFormatter {
    fn open(&mut self, writer: &mut (impl ?Sized + Write), bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        writer.write_all(bracket)
    }

    fn close(&mut self, writer: &mut (impl ?Sized + Write), bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.has_value && self.depth < LINES_TO_DEPTH {
            self.indent(writer)?;
        }
        self.has_value = true;
        writer.write_all(bracket)
    }

    fn entry(&mut self, writer: &mut (impl ?Sized + Write), first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(if self.depth <= LINES_TO_DEPTH { b"," } else { b", " })?;
        }
        if self.depth <= LINES_TO_DEPTH { self.indent(writer) } else { Ok(()) }
    }

    fn indent(&self, writer: &mut (impl ?Sized + Write)) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(b"  "))
    }
}

impl Formatter for LineFormatter {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.entry(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.entry(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_line() {
        let value = serde_json::json!({"a": [{"b": [1, 2], "c": {}}, {"b": []}], "d": [], "e": null});
        let text = to_text(&value);
        assert_eq!(
            text,
            "{\n  \"a\": [\n    {\"b\": [1, 2], \"c\": {}},\n    {\"b\": []}\n  ],\n  \"d\": [],\n  \"e\": null\n}\n"
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), value);
    }
}
