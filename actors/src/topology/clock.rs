//! The clock of a whole GPU: `gpu.clock=1500MHz`.
//!
//! The parts state a clock for each unit. Those that share a clock on the chip state the same one: a GPU's clock is that of its front
//! end (the CTA scheduler), and every unit of the part that states the same frequency belongs to it. A crossbar or a memory that
//! states another one keeps it.
//!
//! Wires on a chip are registers in a row, which take cycles: 212 cycles for a hit in the L2, on a V100 at 1380 MHz as on a TITAN V at another
//! clock. So wires at units whose clock is set so keep their cycles, not their nanoseconds.

use super::pattern::{Index, Segment};
use super::scope::{Member, Scope};
use super::{ExpandedUnit, WireEnd};
use crate::catalogue::Capability;
use balar_protocol::{Frequency, SimTime, UnitId};

/// The parameter that a clock is.
pub(crate) const KEY: &str = "clock";

/// The parts that `path` means; `None` where it means anything else.
pub(crate) fn parts<'a>(scope: &'a Scope, path: &[Segment]) -> Option<Vec<&'a Scope>> {
    let mut scopes = vec![scope];
    for segment in path {
        let mut inner = Vec::new();
        for scope in scopes {
            let row = scope.rows.get(&segment.name)?;
            let range = match (&segment.index, row.single) {
                (Index::None, true) => 0..1,
                (Index::One(index), false) => *index as usize..*index as usize + 1,
                (Index::Range(start, end), false) => *start as usize..*end as usize,
                (Index::All, false) => 0..row.members.len(),
                (Index::None, false) | (_, true) => return None,
            };
            for member in row.members.get(range)? {
                let Member::Part(part) = member else { return None };
                inner.push(part);
            }
        }
        scopes = inner;
    }
    (!path.is_empty()).then_some(scopes)
}

/// The units of a GPU that have its clock; `None` where the part is none.
pub(crate) fn domain(part: &Scope, units: &[ExpandedUnit]) -> Option<Vec<UnitId>> {
    let mut members = Vec::new();
    collect(part, &mut members);
    let unit = |id: &UnitId| &units[id.0 as usize];
    let clock = |id: &UnitId| of(unit(id));
    let is_front_end = |id: &&UnitId| {
        let provides = (unit(id).kind.provides)(&unit(id).ron());
        provides.iter().any(|capability| matches!(capability, Capability::GpuFrontEnd { .. }))
    };
    let own = clock(members.iter().find(is_front_end)?)?;
    members.retain(|id| clock(id) == Some(own));
    Some(members)
}

/// The clock that a unit states.
pub(crate) fn of(unit: &ExpandedUnit) -> Option<Frequency> {
    ron::from_str(unit.parameter(KEY)?).ok()
}

/// The latency of a wire on which `given` is stated at the clock of the topology: as many cycles where the clock of its GPU was set.
pub(crate) fn wire_latency(units: &[ExpandedUnit], (a, b): (WireEnd, WireEnd), given: SimTime) -> SimTime {
    let [a, b] = [a, b].map(|end| &units[end.unit.0 as usize]);
    let set = [a, b].into_iter().find_map(|unit| Some((unit.own_clock?, of(unit)?)));
    match set {
        // What leaves the GPU is not of its chip.
        Some((own, now)) if a.part == b.part => {
            let scaled = u128::from(given.0) * u128::from(own.hertz()) / u128::from(now.hertz().max(1));
            SimTime(u64::try_from(scaled).unwrap_or(u64::MAX).max(u64::from(given.0 > 0)))
        }
        _ => given,
    }
}

fn collect(scope: &Scope, members: &mut Vec<UnitId>) {
    for member in scope.rows.values().flat_map(|row| &row.members) {
        match member {
            Member::Unit(unit) => members.push(*unit),
            Member::Part(part) => collect(part, members),
            Member::Broken => {}
        }
    }
}
