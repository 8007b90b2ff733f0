//! The number of units of a row: `gpu.l2.count=64`, `gpu[*].sm.count=40` on the command line, `set: {"l2.count": 64}` of a part.
//!
//! Counts are looked at before any unit is made, so that a row of another length is the same as in a file that writes that length. Of a
//! row in pieces the last piece grows; where there are fewer units, the last ones are left out.
//!
//! | room | what it has |
//! |---|---|
//! | `counted` | a row whose number of units was set |
//! | `address_map` | how addresses spread over a row of caches whose number was set |

pub(super) mod address_map;
pub(super) mod counted;

use super::ExpandedUnit;
use super::error::{ErrorKind, Errors, TopologyError};
use super::nearest::nearest;
use super::options::{COMMAND_LINE, Override};
use super::pattern::{self, Index, Segment};
use super::scope::{Member, Row, Scope};
use super::source::{Location, SourceFile};
use super::syntax::{Span, Value, ValueKind};
use counted::Counted;
use std::ops::Range;
use std::sync::Arc;

/// The last step of paths that mean the number of units of a row.
pub(crate) const KEY: &str = "count";

/// One setting whose path may mean the number of units of a row.
struct Asked {
    /// The part that the path begins in; empty at top level.
    below: String,
    /// The row.
    segments: Vec<Segment>,
    value: String,
    place: Location,
    /// Which `set` it is of: 0 on the command line, more the further inside.
    level: usize,
    /// A row is meant by it.
    taken: bool,
    reported: bool,
}

impl Asked {
    /// Does it mean the row `name` of the part `prefix`?
    fn means(&self, prefix: &str, name: &str) -> bool {
        let Some(rest) = prefix.strip_prefix(&self.below) else { return false };
        let rest = if self.below.is_empty() || rest.is_empty() { Some(rest) } else { rest.strip_prefix('.') };
        let (Some(rest), Some((row, parts))) = (rest, self.segments.split_last()) else { return false };
        let steps = rest.split('.').filter(|step| !step.is_empty());
        row.name == name
            && row.index == Index::None
            && steps.clone().count() == parts.len()
            && parts.iter().zip(steps).all(|(segment, step)| is_step(segment, step))
    }
}

/// Does a step of a path mean this part, "gpu" or "gpu\[1\]"?
fn is_step(segment: &Segment, step: &str) -> bool {
    let (name, index) = match step.split_once('[') {
        Some((name, index)) => (name, index.trim_end_matches(']').parse::<u32>().ok()),
        None => (step, None),
    };
    name == segment.name
        && match (&segment.index, index) {
            (Index::None, None) | (Index::All, Some(_)) => true,
            (Index::One(one), Some(index)) => *one == index,
            (Index::Range(start, end), Some(index)) => (*start..*end).contains(&index),
            _ => false,
        }
}

/// The settings that are in force where a part is expanded.
#[derive(Default)]
pub(crate) struct Counts {
    /// Those of the command line, in their order, then those of each `set` around; `None` where a path means anything else.
    asked: Vec<Option<Asked>>,
    level: usize,
}

impl Counts {
    /// Those of the command line.
    pub(crate) fn of_arguments(arguments: &[Override]) -> Counts {
        let asked = |Override(argument): &Override| {
            let file = Arc::new(SourceFile::text(COMMAND_LINE, argument));
            let (path, value) = argument.split_once('=')?;
            let place = Location { file, span: path.len() + 1..argument.len() };
            Counts::asked("", path.trim(), value.trim(), place, 0)
        };
        Counts { asked: arguments.iter().map(asked).collect(), level: 0 }
    }

    fn asked(below: &str, path: &str, value: &str, place: Location, level: usize) -> Option<Asked> {
        let mut segments = pattern::parse(path).ok()?;
        let is_count = segments.pop().is_some_and(|key| key.name == KEY && key.index == Index::None);
        (is_count && !segments.is_empty()).then(|| Asked {
            below: below.to_owned(),
            segments,
            value: value.to_owned(),
            place,
            level,
            taken: false,
            reported: false,
        })
    }

    /// Goes into a part whose path is `below` with its `set`; gives the number of the first entry.
    pub(crate) fn enter(&mut self, below: &str, set: Option<&Value>, file: &Arc<SourceFile>) -> usize {
        let first = self.asked.len();
        self.level += 1;
        if let Some(ValueKind::Map(entries)) = set.map(|set| &set.kind) {
            for (key, value) in entries {
                let place = Location { file: file.clone(), span: value.span.clone() };
                let text = &file.text[value.span.clone()];
                let asked = key.string().and_then(|path| Counts::asked(below, path, text, place, self.level));
                self.asked.push(asked);
            }
        }
        first
    }

    /// Leaves the part again.
    pub(crate) fn leave(&mut self, first: usize) {
        self.level -= 1;
        self.asked.truncate(first);
    }

    /// Has this setting been found to mean the number of units of a row?
    pub(crate) fn is_taken(&self, number: usize) -> bool {
        self.asked.get(number).is_some_and(|asked| asked.as_ref().is_some_and(|asked| asked.taken))
    }

    /// The number of units of the row `name` of the part `prefix`, where one was asked for, and where. What is outside has its way
    /// before what is inside, and of two in one place the last.
    pub(crate) fn of(&mut self, prefix: &str, name: &str, most: usize, errors: &mut Errors) -> Option<(u32, Location)> {
        let mut found: Option<&mut Asked> = None;
        for asked in self.asked.iter_mut().flatten().filter(|asked| asked.means(prefix, name)) {
            asked.taken = true;
            if found.as_ref().is_none_or(|before| before.level == asked.level) {
                found = Some(asked);
            }
        }
        let asked = found?;
        let count = ron::from_str::<i64>(&asked.value).ok().and_then(|count| u32::try_from(count).ok());
        if let Some(count) = count.filter(|&count| count > 0 && count as usize <= most) {
            return Some((count, asked.place.clone()));
        }
        if !std::mem::replace(&mut asked.reported, true) {
            let message = format!("{name}: {KEY}: expected a whole number from 1 to {most}, found {}", asked.value);
            let error = TopologyError::new(ErrorKind::BadCount, asked.place.clone(), message, "not a number of units");
            errors.push(error);
        }
        None
    }
}

/// What there is of a piece of a row that has `count` units in all.
pub(crate) fn piece(written: &Range<u32>, count: u32, is_last: bool) -> Range<u32> {
    let start = written.start.min(count);
    start..if is_last { count } else { written.end.min(count) }
}

/// The rows below `scope` whose number of units differs from what the files write.
pub(crate) fn changed_rows(scope: &Scope) -> Vec<Counted> {
    let mut changed = Vec::new();
    for row in scope.rows.values() {
        changed.extend(row.counted.iter().filter(|counted| counted.is_changed()).cloned());
        for member in &row.members {
            if let Member::Part(part) = member {
                changed.extend(changed_rows(part));
            }
        }
    }
    changed
}

/// The mistake of a path that was to be the number of units of a row, and is not; `None` where it may be anything else.
pub(crate) fn mistake(
    scope: &Scope,
    path: &[Segment],
    units: &[ExpandedUnit],
    place: &dyn Fn(Span) -> Location,
) -> Option<Box<TopologyError>> {
    let [parts @ .., last, key] = path else { return None };
    let mut scope = scope;
    for segment in parts {
        let row = scope.rows.get(&segment.name).filter(|row| row.single == (segment.index == Index::None))?;
        scope = row.members.iter().find_map(|member| match member {
            Member::Part(part) => Some(part),
            _ => None,
        })?;
    }
    let row = scope.rows.get(&last.name)?;
    let keys = keys_of(row, units);
    let parts: String = parts.iter().map(|segment| format!("{segment}.")).collect();
    let right = format!("{parts}{}.{KEY}", last.name);
    let error = |message: String, label: &str, help: String| {
        let error = TopologyError::new(ErrorKind::UnknownParameter, place(key.span.clone()), message, label);
        Some(Box::new(error.help(help)))
    };
    let name = &last.name;
    let is_bare_row = !row.single && last.index == Index::None;
    if is_bare_row && nearest(&key.name, keys.iter().copied().chain([KEY])) == Some(KEY) {
        let help = format!("the nearest name is `{KEY}`, the number of its units: `{right}`");
        return error(format!("the row `{name}` has no `{}`", key.name), "not a parameter", help);
    }
    if key.name != KEY || keys.contains(&KEY) || is_bare_row {
        return None;
    }
    if row.single {
        let what = if matches!(row.members.first(), Some(Member::Part(_))) { "part" } else { "unit" };
        let help = format!("only a row has a {KEY}, which a file writes as \"{name}[0..2]\"");
        return error(format!("`{name}` is a single {what}, not a row"), "not a parameter", help);
    }
    let message = format!("`{KEY}` is of the whole row `{name}`, not of single units");
    error(message, "not a parameter", format!("write `{right}` without an index"))
}

/// The names that may follow the name of a row: parameters of its units, or units of its parts.
fn keys_of<'a>(row: &'a Row, units: &'a [ExpandedUnit]) -> Vec<&'a str> {
    match row.members.first() {
        Some(Member::Unit(unit)) => {
            units[unit.0 as usize].kind.parameters.iter().map(|parameter| parameter.name).collect()
        }
        Some(Member::Part(part)) => part.rows.keys().map(String::as_str).collect(),
        Some(Member::Broken) | None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(texts: &[&str]) -> Counts {
        Counts::of_arguments(&texts.iter().map(|text| Override((*text).to_owned())).collect::<Vec<_>>())
    }

    fn count(counts: &mut Counts, prefix: &str, name: &str) -> Result<Option<u32>, String> {
        let mut errors = Errors::default();
        let count = counts.of(prefix, name, 1000, &mut errors).map(|(count, _)| count);
        errors.list.first().map_or(Ok(count), |error| Err(error.message.clone()))
    }

    #[test]
    fn a_path_means_the_rows_that_it_names() {
        let mut counts = arguments(&["gpu[1].l2.count=3", "gpu[*].sm.count = 5", "link.count=7", "gpu.sm.count=9"]);
        for (prefix, name, expected) in [
            ("gpu[1]", "l2", Some(3)),
            ("gpu[10]", "l2", None),
            ("gpu[2]", "sm", Some(5)),
            ("gpu", "sm", Some(9)),
            ("", "link", Some(7)),
            ("gpu[1]", "link", None),
            ("", "l2", None),
            ("gpu[1].cluster", "l2", None),
        ] {
            assert_eq!(count(&mut counts, prefix, name), Ok(expected), "{prefix} {name}");
        }
        let mut counts = arguments(&["gpu.l2[*].count=3", "l2.ways=3", "count=4", "gpu.l2.count"]);
        assert_eq!(
            [("gpu", "l2"), ("", "l2")].map(|(prefix, name)| count(&mut counts, prefix, name)),
            [Ok(None), Ok(None)]
        );
        assert!((0..4).all(|number| !counts.is_taken(number)));
    }

    #[test]
    fn the_outermost_and_the_last_have_their_way() {
        let set = |text: &str| {
            let file = Arc::new(SourceFile::text("set", text));
            (super::super::syntax::parse(text).expect("a map"), file)
        };
        let mut counts = arguments(&["gpu.sm.count=1", "gpu.sm.count=2"]);
        let (value, file) = set("{\"sm.count\": 3, \"l2.count\": 4, \"l2.count\": 5, \"l2.ways\": 8}");
        let first = counts.enter("gpu", Some(&value), &file);
        assert_eq!(
            (first, count(&mut counts, "gpu", "sm"), count(&mut counts, "gpu", "l2")),
            (2, Ok(Some(2)), Ok(Some(5)))
        );
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 6].map(|number| counts.is_taken(number)),
            [true, true, true, true, true, false, false]
        );
        counts.leave(first);
        assert_eq!(count(&mut counts, "gpu", "l2"), Ok(None));
    }

    #[test]
    fn what_is_no_number_of_units_is_reported_once() {
        for value in ["0", "-1", "4294967295", "99999999999999999999", "1001", "1.5", "many", "\"3\"", ""] {
            let mut counts = arguments(&[&format!("l2.count={value}")]);
            let message = format!("l2: count: expected a whole number from 1 to 1000, found {value}");
            assert_eq!(count(&mut counts, "", "l2"), Err(message));
            assert_eq!((count(&mut counts, "", "l2"), counts.is_taken(0)), (Ok(None), true), "{value}");
        }
        assert_eq!(count(&mut arguments(&["l2.count=1_000"]), "", "l2"), Ok(Some(1000)));
    }

    #[test]
    fn the_last_piece_of_a_row_grows_and_the_others_are_cut() {
        for (written, count, is_last, expected) in [
            (0..32, 64, true, 0..64),
            (0..32, 16, true, 0..16),
            (0..80, 100, false, 0..80),
            (80..84, 100, true, 80..100),
            (0..80, 40, false, 0..40),
            (80..84, 40, true, 40..40),
            (80..84, 82, true, 80..82),
        ] {
            assert_eq!(piece(&written, count, is_last), expected, "{written:?} {count}");
        }
    }
}
