//! The two sides of a link: the ports that each names, and how a range of ports follows a row whose number of units was set.

use crate::catalogue::PortDefinition;
use crate::topology::ExpandedUnit;
use crate::topology::counts::KEY;
use crate::topology::counts::counted::Counted;
use crate::topology::pattern::{Index, Segment};
use crate::topology::scope::Selected;
use crate::topology::source::Location;
use balar_protocol::UnitId;

/// A unit and a port index, where they are known.
pub(super) type PossibleEnd = (Option<UnitId>, Option<u32>);

/// One side of a link: the ports it names.
pub(super) struct Side {
    pub(super) selected: Selected,
    pub(super) port: Segment,
    pub(super) definition: Option<&'static PortDefinition>,
    pub(super) location: Location,
}

impl Side {
    /// Ports it names, where its own text says so.
    pub(super) fn length(&self) -> Option<u32> {
        let units = self.units();
        match self.port.index {
            Index::None | Index::One(_) => Some(units),
            Index::Range(start, end) => units.checked_mul(end - start),
            Index::All => None,
        }
    }

    /// Its ports in order, and the lengths of its ranges, `length` ports in all.
    pub(super) fn ends(&self, length: u32) -> (Vec<PossibleEnd>, Vec<u32>) {
        let units = &self.selected.units;
        let mut dimensions = self.selected.dimensions.clone();
        let range = match self.port.index {
            Index::None => None,
            Index::One(index) => Some(index..index.saturating_add(1)),
            Index::Range(start, end) => Some(start..end),
            Index::All => Some(0..length / self.units().max(1)),
        };
        if let (Some(range), Index::Range(..) | Index::All) = (&range, &self.port.index) {
            dimensions.push(range.end - range.start);
        }
        let indices: Vec<Option<u32>> = range.map_or(vec![None], |range| range.map(Some).collect());
        let ends = units.iter().flat_map(|unit| indices.iter().map(move |index| (*unit, *index)));
        (ends.collect(), dimensions)
    }

    fn units(&self) -> u32 {
        self.selected.units.len() as u32
    }

    /// Has one of the rows that it names another number of units than the files write?
    fn is_changed(&self) -> bool {
        !self.selected.counted.is_empty()
    }

    /// Can each of its units have another number of ports than is written?
    fn is_elastic(&self) -> bool {
        let indexed = self.definition.is_some_and(|definition| definition.indexed);
        indexed && self.port.index != Index::None && self.units() > 0
    }

    /// Gives each of its units as many ports as make `length` in all, where that comes out even.
    fn stretch(&mut self, length: u32) {
        let each = length / self.units().max(1);
        let start = match self.port.index {
            Index::One(start) | Index::Range(start, _) => start,
            Index::None | Index::All => return,
        };
        if let Some(end) = start.checked_add(each).filter(|_| each > 0 && length.is_multiple_of(self.units())) {
            self.port.index = Index::Range(start, end);
        }
    }

    /// The row of units that it names as a whole: its path and its length.
    fn row(&self, units: &[ExpandedUnit]) -> Option<(String, u32)> {
        let first = &units[self.selected.units.first().copied().flatten()?.0 as usize];
        let (row, rest) = match first.row {
            Some(length) => (first.path.rsplit_once('['), length == self.units()),
            None => (first.part.rsplit_once('['), first.part.ends_with(']')),
        };
        row.filter(|_| rest && !self.selected.dimensions.is_empty()).map(|(path, _)| (path.to_owned(), self.units()))
    }
}

/// Is it the first of two sides whose ports follow the number of the other one? `None` where neither does.
fn is_first_elastic(a: &Side, b: &Side) -> Option<bool> {
    match (a.is_elastic(), b.is_elastic()) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        // Of two, the one whose units are as many as the file writes.
        (true, true) if a.is_changed() != b.is_changed() => Some(b.is_changed()),
        _ => None,
    }
}

/// Lets a range of ports follow the number of units that was set of a row: where 64 slices have taken the place of 32, `hbm[*].slice[0..8]`
/// of four stacks becomes `hbm[*].slice[0..16]`.
pub(super) fn follow_counts(a: &mut Side, b: &mut Side) {
    if !a.is_changed() && !b.is_changed() {
        return;
    }
    let (Some(of_a), Some(of_b)) = (a.length(), b.length()) else { return };
    match is_first_elastic(a, b).filter(|_| of_a != of_b) {
        Some(true) => a.stretch(of_b),
        Some(false) => b.stretch(of_a),
        None => {}
    }
}

/// The way out where a link does not name rows.
const SINGLE_PORTS: &str = "the link names single units or ports: a file must say how another number is wired";

/// What is wrong with two sides that the number of units of a row has made unequal, how to put it right, and the row.
pub(super) struct Unfit {
    /// What is wrong; `None` where the lengths of the two sides say it.
    pub(super) message: Option<String>,
    pub(super) help: String,
    pub(super) counted: Counted,
}

/// Tells why two sides do not have as many ports, where the number of units of a row was set.
pub(super) fn unfit(a: &Side, b: &Side, units: &[ExpandedUnit]) -> Option<Unfit> {
    let counted = a.selected.counted.iter().chain(&b.selected.counted).next()?.clone();
    let sides = is_first_elastic(a, b).map(|is_first| if is_first { (a, b) } else { (b, a) });
    if let Some((elastic, fixed)) = sides
        && let Some(length) = fixed.length()
    {
        let members = elastic.units();
        let message = format!(
            "the {length} ports of {} do not divide evenly among the {members} units of {}",
            fixed.location.text(),
            elastic.location.text()
        );
        let mut ways = Vec::new();
        if let Some((row, count)) = fixed.row(units) {
            // With as many ports of each unit as now, a multiple of this many units comes out even.
            let step = members / common_divisor(members, length / count.max(1)).max(1);
            ways.push(one_of(&row, &multiples_beside(count, step)));
        }
        if let Some((row, count)) = elastic.row(units) {
            ways.push(one_of(&row, &divisors_beside(length, count)));
        }
        let help = if ways.is_empty() { SINGLE_PORTS.to_owned() } else { ways.join(", or ") };
        return Some(Unfit { message: Some(message), help, counted });
    }
    let (of_a, of_b) = (a.length()?, b.length()?);
    let other_row = |changed: &Side, wanted: u32, other: &Side, length: u32| {
        let (row, count) = other.row(units).filter(|_| changed.is_changed())?;
        let each = length / count.max(1);
        let is_right = each > 0 && wanted.is_multiple_of(each);
        is_right.then(|| format!("the rows go together: set `{row}.{KEY}={}` as well", wanted / each))
    };
    let help = other_row(a, of_a, b, of_b).or_else(|| other_row(b, of_b, a, of_a));
    let help = help.unwrap_or_else(|| SINGLE_PORTS.to_owned());
    Some(Unfit { message: None, help, counted })
}

fn one_of(row: &str, counts: &[u32]) -> String {
    let counts: Vec<String> = counts.iter().map(u32::to_string).collect();
    format!("`{row}.{KEY}` can be {}", counts.join(" or "))
}

/// The multiples of `step` nearest to `count` on both sides.
fn multiples_beside(count: u32, step: u32) -> Vec<u32> {
    let below = count / step * step;
    [Some(below).filter(|&below| below > 0), below.checked_add(step)].into_iter().flatten().collect()
}

/// The divisors of `length` nearest to `count` on both sides.
fn divisors_beside(length: u32, count: u32) -> Vec<u32> {
    let divides = |divisor: &u32| length.is_multiple_of(*divisor);
    let below = (1..count.min(length + 1)).rev().find(divides);
    let above = (count.saturating_add(1)..=length).find(divides);
    below.into_iter().chain(above).collect()
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_numbers_are_on_both_sides() {
        assert_eq!((multiples_beside(33, 4), multiples_beside(3, 4)), (vec![32, 36], vec![4]));
        assert_eq!(divisors_beside(33, 4), [3, 11]);
        assert_eq!(divisors_beside(32, 64), [32]);
        assert_eq!(divisors_beside(32, 3), [2, 4]);
        assert_eq!((common_divisor(4, 6), common_divisor(4, 1), common_divisor(8, 0)), (2, 1, 8));
    }
}
