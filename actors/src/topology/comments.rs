//! The comments of a topology file beside what they belong to: those that name the source of each number.

use super::Location;
use super::options::COMMAND_LINE;
use super::parameter::Origin;

/// The comments of one entry of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Comments {
    /// Lines of their own directly above it, without `//`.
    pub(super) above: Vec<String>,
    /// Behind it on its last line, without `//`.
    pub(super) behind: Option<String>,
}

/// The comments of the entry at `location`: of a parameter, a link, or a unit whose kind is named there.
pub(super) fn beside(location: &Location) -> Comments {
    let text = location.file.text.as_str();
    let span = &location.span;
    Comments { above: above(text, span.start), behind: behind(text, span.end) }
}

/// The comment behind a call on one line that has exactly these arguments.
pub(super) fn behind_call(location: &Location, arguments: &str) -> Option<String> {
    let line = location.file.text[location.span.start..].lines().next()?;
    let (_, rest) = line.split_once(&format!("({arguments})"))?;
    behind(rest, 0)
}

/// The comments of a parameter's value. What was overridden names the override, and what is nowhere given says so.
pub(super) fn of_parameter(origin: &Origin) -> Comments {
    match origin {
        Origin::Default => Comments { above: Vec::new(), behind: Some("default".to_owned()) },
        Origin::Given(location) if location.file.name == COMMAND_LINE => {
            let argument = location.file.text.split_whitespace().collect::<Vec<_>>().join(" ");
            Comments { above: Vec::new(), behind: Some(format!("{COMMAND_LINE} {argument}")) }
        }
        Origin::Given(location) => beside(location),
        Origin::Derived { why, .. } => Comments { above: Vec::new(), behind: Some(why.clone()) },
    }
}

/// The comments at the head of a file, line by line.
pub(super) fn head(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).take_while(|line| line.is_empty() || line.starts_with("//"));
    lines.filter_map(comment).collect()
}

/// Where the value of `parameter` was replaced inside of a struct: a comment directly behind the new value.
pub(super) fn replaced(place: &Location, before: Option<&str>) -> String {
    let origin = if place.file.name == COMMAND_LINE { COMMAND_LINE.to_owned() } else { format!("set in {place}") };
    match before.filter(|text| !text.contains(['\n', '*'])) {
        Some(before) => format!("/* {origin}, in place of {before} */"),
        None => format!("/* {origin} */"),
    }
}

/// The text of a line that is a comment and nothing else.
fn comment(line: &str) -> Option<String> {
    line.trim().strip_prefix("//").map(|text| text.strip_prefix(' ').unwrap_or(text).trim_end().to_owned())
}

/// The lines above the one of byte `start`. They belong to the first entry of that line: `"key": Kind` counts as its beginning.
fn above(text: &str, start: usize) -> Vec<String> {
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let before = text[line_start..start].trim();
    let is_first = before.is_empty() || (before.starts_with('"') && before.ends_with(':') && !before.contains(','));
    if !is_first || line_start == 0 {
        return Vec::new();
    }
    let mut lines: Vec<String> = text[..line_start - 1].lines().rev().map_while(comment).collect();
    lines.reverse();
    lines
}

/// The comment on the line of byte `end`, where no other entry is in between.
fn behind(text: &str, end: usize) -> Option<String> {
    let rest = text[end..].lines().next().unwrap_or_default();
    let rest = rest.trim_start_matches([' ', '\t', ',', '(']);
    match rest.strip_prefix("/*").and_then(|block| block.split_once("*/")) {
        Some((block, _)) => Some(block.trim().to_owned()),
        None => comment(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::SourceFile;
    use std::sync::Arc;

    const TEXT: &str = "\
// The head.
//   [a]  a source
Topology(
    units: {
        // Above the unit,
        // in two lines.
        \"unit\": Kind( // of the unit
            one: 1, two: 2, // of two
            // Above three.
            three: 3  /* of three */,
            four: \"// no comment\",

            five: 5,
        ),
    },
)
";

    fn of(entry: &str) -> Comments {
        let start = TEXT.find(entry).expect("in the text");
        let file = Arc::new(SourceFile::text("test", TEXT));
        beside(&Location { file, span: start..start + entry.len() })
    }

    fn comments(above: &[&str], behind: Option<&str>) -> Comments {
        Comments { above: above.iter().map(|&line| line.to_owned()).collect(), behind: behind.map(str::to_owned) }
    }

    #[test]
    fn a_comment_belongs_to_the_entry_it_stands_beside() {
        assert_eq!(of("Kind"), comments(&["Above the unit,", "in two lines."], Some("of the unit")));
        assert_eq!(of("one: 1"), comments(&[], None), "the comment is behind another entry");
        assert_eq!(of("two: 2"), comments(&[], Some("of two")));
        assert_eq!(of("three: 3"), comments(&["Above three."], Some("of three")));
        assert_eq!(of("four: \"// no comment\""), comments(&[], None));
        assert_eq!(of("five: 5"), comments(&[], None));
        assert_eq!(head(TEXT), ["The head.", "  [a]  a source"]);
    }

    #[test]
    fn what_was_not_given_or_was_overridden_says_so() {
        let argument = Arc::new(SourceFile::text("--set", "gpu.clock = 1 GHz"));
        let place = Location { file: argument, span: 12..17 };
        assert_eq!(replaced(&place, Some("4")), "/* --set, in place of 4 */");
        assert_eq!(of_parameter(&Origin::Given(place)), comments(&[], Some("--set gpu.clock = 1 GHz")));
        assert_eq!(of_parameter(&Origin::Default), comments(&[], Some("default")));
    }
}
