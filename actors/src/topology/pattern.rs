//! Paths of the topology language: "gpu.sm[*].memory", "l2[0..8].memory", "workload.elements".

use super::error::ErrorKind;
use super::syntax::Span;
use std::fmt;
use std::str::FromStr;

/// Which members of a row are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Index {
    /// `name`.
    None,
    /// `name[3]`.
    One(u32),
    /// `name[0..8]`, the end not included.
    Range(u32, u32),
    /// `name[*]`.
    All,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The name.
    pub name: String,
    /// The members.
    pub index: Index,
    /// Its place in the path, bytes.
    pub span: Span,
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match self.index {
            Index::None => Ok(()),
            Index::One(index) => write!(f, "[{index}]"),
            Index::Range(start, end) => write!(f, "[{start}..{end}]"),
            Index::All => f.write_str("[*]"),
        }
    }
}

/// A mistake in a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// [`ErrorKind::BadPath`] or [`ErrorKind::BadRange`].
    pub kind: ErrorKind,
    /// What is wrong.
    pub message: String,
    /// Its place in the path, bytes.
    pub span: Span,
}

/// Reads a path.
pub fn parse(text: &str) -> Result<Vec<Segment>, PatternError> {
    let mut segments = Vec::new();
    let mut start = 0;
    // A dot inside brackets belongs to a range.
    let mut open = false;
    for (i, c) in text.char_indices().chain(std::iter::once((text.len(), '.'))) {
        match c {
            '[' => open = true,
            ']' => open = false,
            '.' if !open || i == text.len() => {
                segments.push(segment(&text[start..i], start)?);
                start = i + 1;
            }
            _ => {}
        }
    }
    Ok(segments)
}

fn segment(text: &str, offset: usize) -> Result<Segment, PatternError> {
    let span = offset..offset + text.len();
    let bad = |message: String| PatternError { kind: ErrorKind::BadPath, message, span: span.clone() };
    let (name, index) = match text.split_once('[') {
        None => (text, None),
        Some((name, rest)) => {
            let index = rest.strip_suffix(']').ok_or_else(|| bad(format!("`{text}` lacks its closing `]`")))?;
            (name, Some(index))
        }
    };
    let mut characters = name.chars();
    let starts = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !starts || !characters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        if name.is_empty() {
            return Err(bad("a name is missing".to_owned()));
        }
        return Err(bad(format!("`{name}` is not a name: letters, digits and `_`, no digit first")));
    }
    let number = |text: &str| text.trim().parse::<u32>().map_err(|_| bad(format!("`{}` is not an index", text.trim())));
    let index = match index.map(str::trim) {
        None => Index::None,
        Some("*") => Index::All,
        Some(index) => match index.split_once("..") {
            None => Index::One(number(index)?),
            Some((start, end)) => {
                let (start, end) = (number(start)?, number(end)?);
                if start >= end {
                    let what = if start == end { "holds nothing" } else { "runs backwards" };
                    let message = format!("the range `{start}..{end}` {what}");
                    return Err(PatternError { kind: ErrorKind::BadRange, message, span: span.clone() });
                }
                Index::Range(start, end)
            }
        },
    };
    Ok(Segment { name: name.to_owned(), index, span })
}

/// Units that are looked for among results, by their path: "gpu.l2\[*\]", "gpu.sm\[0..4\]", or "gpu" for all that is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    segments: Vec<Segment>,
}

impl FromStr for PathPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<PathPattern, PatternError> {
        parse(text).map(|segments| PathPattern { segments })
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (step, segment) in self.segments.iter().enumerate() {
            let dot = if step == 0 { "" } else { "." };
            write!(f, "{dot}{segment}")?;
        }
        Ok(())
    }
}

impl PathPattern {
    /// Does it mean what is at `location`: a unit, or something inside of one that it means? A name without an index means the
    /// whole row.
    pub fn covers(&self, location: &str) -> bool {
        self.meets(location) && location.split('.').count() >= self.segments.len()
    }

    /// May something inside of the unit at `location` be meant, or the unit itself? Parts of units ("channel\[2\]") are known
    /// only when they have run.
    pub fn leads_to(&self, location: &str) -> bool {
        self.meets(location)
    }

    /// The two agree as far as both go.
    fn meets(&self, location: &str) -> bool {
        self.segments.iter().zip(location.split('.')).all(|(segment, step)| {
            let (name, index) = match step.split_once('[') {
                Some((name, index)) => (name, index.trim_end_matches(']').parse::<u32>().ok()),
                None => (step, None),
            };
            name == segment.name
                && match (&segment.index, index) {
                    (Index::None, _) | (Index::All, Some(_)) => true,
                    (Index::One(one), Some(index)) => *one == index,
                    (Index::Range(start, end), Some(index)) => (*start..*end).contains(&index),
                    (_, None) => false,
                }
        })
    }

    /// How a location that it covers is named together with the others that it covers: with its own indices and ranges, and
    /// "\[*\]" for all other indices.
    pub fn label(&self, location: &str) -> String {
        let steps = location.split('.').enumerate().map(|(step, text)| {
            let Some((name, _)) = text.split_once('[') else { return text.to_owned() };
            match self.segments.get(step).map(|segment| &segment.index) {
                Some(Index::One(index)) => format!("{name}[{index}]"),
                Some(Index::Range(start, end)) => format!("{name}[{start}..{end}]"),
                Some(Index::None | Index::All) | None => format!("{name}[*]"),
            }
        });
        steps.collect::<Vec<_>>().join(".")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_cover_units_and_what_is_inside() {
        let covers = |pattern: &str, location: &str| pattern.parse::<PathPattern>().expect("a path").covers(location);
        for (pattern, location) in [
            ("gpu", "gpu.hbm[3].channel[1]"),
            ("gpu.hbm", "gpu.hbm[3]"),
            ("gpu.hbm[*]", "gpu.hbm[3].channel[1]"),
            ("gpu.hbm[2..4].channel[1]", "gpu.hbm[3].channel[1]"),
            ("gpu[*].l2[5]", "gpu[2].l2[5]"),
        ] {
            assert!(covers(pattern, location), "{pattern} {location}");
        }
        for (pattern, location) in [
            ("gpu.l", "gpu.l2[0]"),
            ("gpu.l2[1]", "gpu.l2[11]"),
            ("gpu.l2[0..4]", "gpu.l2[4]"),
            ("gpu[*].l2", "gpu.l2[0]"),
            ("gpu.hbm[0].channel[*]", "gpu.hbm[0]"),
        ] {
            assert!(!covers(pattern, location), "{pattern} {location}");
        }
        let pattern: PathPattern = "gpu[*].hbm[0..2]".parse().expect("a path");
        assert_eq!(pattern.label("gpu[1].hbm[0].channel[3]"), "gpu[*].hbm[0..2].channel[*]");
        assert!("gpu.hbm[0].channel[*]".parse::<PathPattern>().expect("a path").leads_to("gpu.hbm[0]"));
    }

    #[test]
    fn paths() {
        let path = parse("gpu[*].l2[0..8].memory[3].x").expect("a path");
        let read: Vec<_> = path.iter().map(|segment| (segment.name.as_str(), segment.index.clone())).collect();
        let expected = [("gpu", Index::All), ("l2", Index::Range(0, 8)), ("memory", Index::One(3)), ("x", Index::None)];
        assert_eq!(read, expected);
        assert_eq!(path[1].span, 7..15);
        for (text, message) in [
            ("", "a name is missing"),
            ("a..b", "a name is missing"),
            ("a[3", "`a[3` lacks its closing `]`"),
            ("a[x]", "`x` is not an index"),
            ("a[5..5]", "the range `5..5` holds nothing"),
            ("a[5..2]", "the range `5..2` runs backwards"),
            ("3a", "`3a` is not a name: letters, digits and `_`, no digit first"),
        ] {
            assert_eq!(parse(text).expect_err(text).message, message);
        }
    }
}
