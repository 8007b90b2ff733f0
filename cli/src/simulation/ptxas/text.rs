//! PTX texts as a ptxas reads them for an architecture.

use balar_actors::simulation::AssemblyError;
use std::borrow::Cow;
use std::ops::Range;

/// A text for an architecture.
#[derive(Debug, PartialEq, Eq)]
pub struct Rewritten<'a> {
    /// What ptxas is to read.
    pub text: Cow<'a, str>,
    /// The architecture that the text was written for.
    pub target: u32,
    /// The letter behind it of a text for one architecture alone: `a`, as in `sm_90a`; nothing for others.
    pub letter: &'static str,
}

/// The text with the version of PTX lowered to the latest that ptxas reads, and the target lowered to the architecture. What the text uses
/// beyond them, ptxas refuses. A text that does not begin with version and target stays as it is, for ptxas to say so.
///
/// # Errors
///
/// The text is for a later generation of GPUs.
pub fn for_architecture(text: &str, architecture: u32, latest: (u32, u32)) -> Result<Rewritten<'_>, AssemblyError> {
    let mut words = Words { text, at: 0 };
    let (Some(version), Some(target)) = (words.value_of(".version"), words.value_of(".target")) else {
        return Ok(Rewritten { text: Cow::Borrowed(text), target: architecture, letter: "" });
    };
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    if read_version(&text[version.clone()]).is_some_and(|version| version > latest) {
        changes.push((version, format!("{}.{}", latest.0, latest.1)));
    }
    let found = read_target(&text[target.clone()]).unwrap_or(architecture);
    let is_for_one = found == architecture && text[target.clone()].ends_with('a');
    let letter = if is_for_one { "a" } else { "" };
    if found > architecture {
        if found / 10 > architecture / 10 {
            return Err(AssemblyError::Generation { target: found, architecture });
        }
        changes.push((target, format!("sm_{architecture}")));
    }
    if changes.is_empty() {
        return Ok(Rewritten { text: Cow::Borrowed(text), target: found, letter });
    }
    let mut rewritten = text.to_owned();
    changes.into_iter().rev().for_each(|(range, words)| rewritten.replace_range(range, &words));
    Ok(Rewritten { text: Cow::Owned(rewritten), target: found, letter })
}

/// `9.5`.
fn read_version(word: &str) -> Option<(u32, u32)> {
    let (major, minor) = word.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// `sm_75`, `sm_90a`.
fn read_target(word: &str) -> Option<u32> {
    word.strip_prefix("sm_")?.trim_end_matches(|last: char| last.is_ascii_lowercase()).parse().ok()
}

/// The words of a text, without comments.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl Words<'_> {
    /// The word behind `directive`, which must be the next word.
    fn value_of(&mut self, directive: &str) -> Option<Range<usize>> {
        let found = self.next()?;
        if &self.text[found] == directive { self.next() } else { None }
    }

    fn next(&mut self) -> Option<Range<usize>> {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start().len();
            self.at += blank;
            let rest = &rest[blank..];
            let end = match rest.get(..2) {
                Some("//") => rest.find('\n')?,
                Some("/*") => rest.find("*/")? + 2,
                _ => break,
            };
            self.at += end;
        }
        let rest = &self.text[self.at..];
        let ends = |letter: char| letter.is_whitespace() || matches!(letter, ',' | '/' | ';' | '{');
        let length = rest.find(ends).unwrap_or(rest.len());
        let word = self.at..self.at + length;
        self.at = word.end;
        Some(word).filter(|word| !word.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_targets_are_lowered_where_they_are_too_high() {
        let rest = "\n.address_size 64\n// .version 9.5\n.visible .entry k() { ret; }";
        for (head, expected, target) in [
            (".version 9.5\n.target sm_75", ".version 8.8\n.target sm_70", 75),
            (".version 8.8\n.target sm_75, debug", ".version 8.8\n.target sm_70, debug", 75),
            (".version 8.7 .target sm_70", ".version 8.7 .target sm_70", 70),
            (".version 4.0\n.target sm_52", ".version 4.0\n.target sm_52", 52),
            (
                "// .version 1.0\n/* a */.version 9.0// b\n\n.target sm_72",
                "// .version 1.0\n/* a */.version 8.8// b\n\n.target sm_70",
                72,
            ),
            ("no PTX", "no PTX", 70),
            ("/* no end", "/* no end", 70),
            (".version", ".version", 70),
            (".version 9.5 {", ".version 9.5 {", 70),
            ("é .version 9.5 .target sm_75", "é .version 9.5 .target sm_75", 70),
            ("", "", 70),
        ] {
            let (text, expected) = (format!("{head}{rest}"), format!("{expected}{rest}"));
            let rewritten = for_architecture(&text, 70, (8, 8)).expect("no later generation");
            assert_eq!((&*rewritten.text, rewritten.target), (&*expected, target));
        }
        // A text for one architecture alone is assembled for that.
        for (target, architecture, letter) in [("sm_90a", 90, "a"), ("sm_90", 90, ""), ("sm_80", 86, "")] {
            let text = format!(".version 8.0\n.target {target}\n");
            let rewritten = for_architecture(&text, architecture, (8, 8)).expect("no later generation");
            assert_eq!((&*rewritten.text, rewritten.letter), (&*text, letter));
        }
        for target in ["sm_80", "sm_90a", "sm_120f"] {
            let text = format!(".version 8.0\n.target {target}\n");
            assert!(for_architecture(&text, 75, (8, 8)).is_err(), "{target}");
        }
    }
}
