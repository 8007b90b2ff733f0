//! Positions in a PTX text.

use std::sync::{Arc, OnceLock};

/// A half-open range of byte offsets in one source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The range `start..end`.
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// The smallest range that covers both.
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Bytes covered.
    pub const fn len(self) -> u32 {
        self.end.saturating_sub(self.start)
    }

    /// Whether it covers nothing.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// The text it covers; empty where the range does not fit the text.
    pub fn text(self, source: &str) -> &str {
        source.get(self.start as usize..self.end as usize).unwrap_or("")
    }
}

/// Line and column, both counted from 1; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineColumn {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// A PTX text with its name. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SourceText {
    name: Arc<str>,
    text: Arc<str>,
    /// Found when a line is first asked for: most texts have no mistake to tell the line of.
    line_starts: Arc<OnceLock<Vec<u32>>>,
}

impl SourceText {
    /// Takes a text over; positions past 4 GiB are not representable and fall on the last line.
    pub fn new(name: &str, text: &str) -> Self {
        Self { name: name.into(), text: text.into(), line_starts: Arc::default() }
    }

    fn line_starts(&self) -> &[u32] {
        self.line_starts.get_or_init(|| {
            let after = self.text.match_indices('\n').map_while(|(offset, _)| u32::try_from(offset + 1).ok());
            std::iter::once(0).chain(after).collect()
        })
    }

    /// The file's name as the caller gave it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The whole text, shared.
    pub fn shared_text(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// The line of a byte offset, from 1.
    pub fn line_of(&self, offset: u32) -> u32 {
        self.line_starts().partition_point(|start| *start <= offset).max(1) as u32
    }

    /// Line and column of a byte offset.
    pub fn line_column(&self, offset: u32) -> LineColumn {
        let index = self.line_of(offset) as usize - 1;
        let start = self.line_starts()[index];
        let before = Span::new(start, offset).text(&self.text);
        LineColumn { line: index as u32 + 1, column: before.chars().count() as u32 + 1 }
    }

    /// The text of a line (from 1) without its line end; empty where there is no such line.
    pub fn line(&self, line: u32) -> &str {
        let index = line.saturating_sub(1) as usize;
        let Some(start) = self.line_starts().get(index) else { return "" };
        let end = self.line_starts().get(index + 1).copied().unwrap_or(self.text.len() as u32);
        Span::new(*start, end).text(&self.text).trim_end_matches(['\n', '\r'])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns() {
        let source = SourceText::new("a.ptx", "ab\ncdé f\n\nx");
        for (offset, line, column) in [(0, 1, 1), (1, 1, 2), (3, 2, 1), (8, 2, 5), (10, 3, 1), (11, 4, 1)] {
            assert_eq!(source.line_column(offset), LineColumn { line, column }, "offset {offset}");
        }
        assert_eq!(source.line(2), "cdé f");
        assert_eq!(source.line(4), "x");
        assert_eq!(source.line(9), "");
    }
}
