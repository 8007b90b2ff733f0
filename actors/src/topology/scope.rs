//! The names of a node and its parts, and what a path selects among them.

use super::ExpandedUnit;
use super::counts::counted::Counted;
use super::error::{ErrorKind, TopologyError};
use super::nearest::suggestion;
use super::pattern::{Index, Segment};
use super::source::{Location, SourceFile};
use super::syntax::{Span, Value};
use balar_protocol::UnitId;
use indexmap::IndexMap;
use std::sync::Arc;

/// The names of one prefix: the whole node, or one part.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// Names in the order of the file.
    pub(crate) rows: IndexMap<String, Row>,
    /// The links as written.
    pub(crate) links: Vec<(Arc<SourceFile>, Value)>,
    /// A later member of a row of parts: its mistakes are those of the first.
    pub(crate) repeated: bool,
}

/// One name: a single unit or part, or a row.
#[derive(Debug)]
pub(crate) struct Row {
    /// Is it `name` and not `name[...]`?
    pub(crate) single: bool,
    /// Its members by index.
    pub(crate) members: Vec<Member>,
    /// Members that the files write; another number may have been set.
    pub(crate) written: u32,
    /// The number of members, where one was set.
    pub(crate) counted: Option<Counted>,
    /// Where it is named first.
    pub(crate) location: Location,
}

/// One member of a row.
#[derive(Debug)]
pub(crate) enum Member {
    /// A unit.
    Unit(UnitId),
    /// A part.
    Part(Scope),
    /// Something with a mistake, reported already.
    Broken,
}

/// Beside the place that sets the number of units of a row.
pub(crate) const SET_HERE: &str = "the number of units is set here";

/// Units that a path selects, in the order of its indices, the last fastest.
#[derive(Debug)]
pub(crate) struct Selected {
    /// The units; `None` where the unit itself has a mistake.
    pub(crate) units: Vec<Option<UnitId>>,
    /// Lengths of the ranges in the path.
    pub(crate) dimensions: Vec<u32>,
    /// Of the rows in the path, those whose number of units differs from what the files write.
    pub(crate) counted: Vec<Counted>,
}

/// The units that `path` selects in `scope`.
pub(crate) fn select(
    scope: &Scope,
    path: &[Segment],
    units: &[ExpandedUnit],
    place: &dyn Fn(Span) -> Location,
) -> Result<Selected, Box<TopologyError>> {
    let mut scopes = vec![scope];
    let mut dimensions = Vec::new();
    let mut selected = Vec::new();
    let mut counted: Vec<Counted> = Vec::new();
    for (step, segment) in path.iter().enumerate() {
        let last = step + 1 == path.len();
        let error = |kind, message: String, label: &str| {
            Box::new(TopologyError::new(kind, place(segment.span.clone()), message, label))
        };
        let mut inner = Vec::new();
        for (position, scope) in scopes.iter().enumerate() {
            let name = &segment.name;
            let Some(row) = scope.rows.get(name) else {
                let names = scope.rows.keys().map(String::as_str);
                let unknown = error(ErrorKind::UnknownUnit, format!("there is no unit `{name}`"), "not a unit");
                return Err(Box::new(unknown.help(suggestion(name, names))));
            };
            let length = row.members.len() as u32;
            let range = match (&segment.index, row.single) {
                (Index::None, true) => 0..1,
                (Index::None, false) => {
                    let message = format!("`{name}` is a row of {length}");
                    let missing = error(ErrorKind::BadIndex, message, "an index is missing");
                    return Err(Box::new(missing.help(format!("write `{name}[*]` or `{name}[0]`"))));
                }
                (_, true) => {
                    let message = format!("`{name}` is a single unit, not a row");
                    let label = "an index where there is no row";
                    return Err(Box::new(error(ErrorKind::BadIndex, message, label).help(format!("write `{name}`"))));
                }
                (Index::One(index), false) => *index..index.saturating_add(1),
                (Index::Range(start, end), false) => *start..*end,
                (Index::All, false) => 0..length,
            };
            if range.end > length {
                let message =
                    format!("`{name}` has {length} members, its last is {name}[{}]", length.saturating_sub(1));
                let beyond = error(ErrorKind::BadIndex, message, "beyond the row");
                return Err(match row.counted.as_ref().filter(|counted| range.end <= counted.written) {
                    Some(counted) => {
                        let help = format!(
                            "the file writes {} members of `{name}`: what names those that are left out by number must change as well",
                            counted.written
                        );
                        Box::new(beyond.other(counted.place.clone(), SET_HERE).help(help))
                    }
                    None => beyond,
                });
            }
            counted.extend(row.counted.iter().filter(|counted| counted.is_changed()).cloned());
            if position == 0 && matches!(segment.index, Index::All | Index::Range(..)) {
                dimensions.push(range.end - range.start);
            }
            for member in &row.members[range.start as usize..range.end as usize] {
                match member {
                    Member::Unit(unit) if last => selected.push(Some(*unit)),
                    Member::Part(part) if !last => inner.push(part),
                    Member::Broken => selected.push(None),
                    Member::Unit(unit) => {
                        let kind = units[unit.0 as usize].kind.name;
                        let message = format!("`{name}` is a {kind}, it holds no units");
                        return Err(error(ErrorKind::UnknownUnit, message, "not a part"));
                    }
                    Member::Part(part) => {
                        let names: Vec<&str> = part.rows.keys().map(String::as_str).collect();
                        let message = format!("`{name}` is a part, not a unit");
                        let help = format!("name one of its units: {}", names.join(", "));
                        return Err(Box::new(error(ErrorKind::UnknownUnit, message, "not a unit").help(help)));
                    }
                }
            }
        }
        scopes = inner;
    }
    Ok(Selected { units: selected, dimensions, counted })
}

/// A place inside a string value.
pub(crate) fn inside(file: &Arc<SourceFile>, value: &Value, span: &Span) -> Location {
    let start = value.span.start + 1;
    let whole = start..value.span.end.saturating_sub(1).max(start);
    let exact = start + span.start..start + span.end;
    // Escapes shift the text: then the whole string is meant.
    if exact.end <= whole.end && file.text.is_char_boundary(exact.start) && file.text.is_char_boundary(exact.end) {
        Location { file: file.clone(), span: exact }
    } else {
        Location { file: file.clone(), span: whole }
    }
}
