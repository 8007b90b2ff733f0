//! How addresses spread over a row of caches whose number of units was set, where the files say it by bits that were measured of another
//! number: the map is derived from them (`interleave`), written into the parameters, and noted.

use super::counted::Counted;
use crate::catalogue::Capability;
use crate::interleave::{AddressBits, AddressHash, derive};
use crate::topology::options::COMMAND_LINE;
use crate::topology::parameter::Origin;
use crate::topology::scope::Scope;
use crate::topology::{ExpandedUnit, Topology};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A unit that spreads lines by measured bits over another number of units than they are of.
struct Spread {
    /// It.
    unit: usize,
    parameter: &'static str,
    measured: AddressBits,
    /// The units that have the lines, behind those that only forward.
    caches: Vec<usize>,
    counted: Counted,
}

/// Derives the maps of all rows of caches whose number was set. Gives whether there were any.
pub(crate) fn follow_counts(topology: &mut Topology, scope: &Scope) -> bool {
    let changed = super::changed_rows(scope);
    if changed.is_empty() {
        return false;
    }
    let spreads = spreads(topology, &changed);
    for spread in &spreads {
        follow_count(topology, spread);
    }
    !spreads.is_empty()
}

fn spreads(topology: &Topology, changed: &[Counted]) -> Vec<Spread> {
    let ends = topology.ends();
    let mut found = Vec::new();
    for (index, unit) in topology.units.iter().enumerate() {
        for capability in unit.provides.iter() {
            let Capability::SpreadsLines { ports, parameter, hash: AddressHash::Bits(measured), .. } = capability
            else {
                continue;
            };
            let behind = ends[index].iter().filter(|(end, ..)| end.port == *ports);
            let caches: Vec<usize> =
                behind.map(|(_, other, _)| topology.end_behind(&ends, *other).unit.0 as usize).collect();
            let is_theirs = |counted: &&Counted| caches.iter().any(|&cache| counted.has(&topology.units[cache]));
            let fits = 1usize.checked_shl(measured.count()) == Some(caches.len());
            if let Some(counted) = changed.iter().find(is_theirs)
                && !fits
                && !is_of_command_line(unit, parameter)
            {
                let (measured, counted) = (measured.clone(), counted.clone());
                found.push(Spread { unit: index, parameter, measured, caches, counted });
            }
        }
    }
    found
}

/// What a user gives beside the number of units is meant for that number.
fn is_of_command_line(unit: &ExpandedUnit, parameter: &str) -> bool {
    let given = unit.parameters.iter().find(|given| given.definition.name == parameter);
    given.is_some_and(|given| matches!(&given.origin, Origin::Given(place) if place.file.name == COMMAND_LINE))
}

fn follow_count(topology: &mut Topology, spread: &Spread) {
    let Spread { unit, parameter, measured, caches, counted } = spread;
    // All caches of a row mostly have the same sets. Where they do not, bits are taken from none, and given to none.
    let all: BTreeSet<Option<(&str, String, u32)>> =
        caches.iter().map(|&cache| sets_of(&topology.units[cache])).collect();
    let same = if all.len() == 1 { all.into_iter().next().flatten() } else { None };
    let same = same.map(|(parameter, bits, sets)| (parameter.to_owned(), bits, sets));
    let set_bits = same.as_ref().and_then(|(_, bits, _)| ron::from_str(bits).ok()).unwrap_or_default();
    let sets = same.as_ref().map_or(0, |(.., sets)| *sets);
    let map = derive(measured, &set_bits, sets, caches.len() as u32);
    let origin = counted.origin();
    let why = format!("{origin}: {}; not measured", map.how);
    set(topology, &[*unit], parameter, &map.hash.to_string(), counted, &why);
    if let Some((parameter, _, _)) = same
        && map.set_bits != set_bits
    {
        let why = format!("{origin}: follows from {}", topology.units[*unit].path);
        set(topology, caches, &parameter, &map.set_bits.to_string(), counted, &why);
    }
    let path = &topology.units[*unit].path;
    let note = format!("{path}.{parameter} follows {origin}: {}; not measured", map.how);
    topology.notes.push(note);
}

/// Of a cache whose sets are told apart by bits that no user gave: the parameter that says them, the bits, and its sets.
fn sets_of(unit: &ExpandedUnit) -> Option<(&'static str, String, u32)> {
    unit.provides.iter().find_map(|capability| match capability {
        Capability::CacheSets { parameter, bits, sets } if !is_of_command_line(unit, parameter) => {
            Some((*parameter, bits.to_string(), *sets))
        }
        _ => None,
    })
}

/// Gives a parameter a value in some units.
fn set(topology: &mut Topology, units: &[usize], name: &str, text: &str, counted: &Counted, why: &str) {
    // The units of a row mostly share their parameters, and still do then.
    let mut before = None;
    for &unit in units {
        let parameters = &mut topology.units[unit].parameters;
        let old = Arc::clone(parameters);
        if let Some((known, new)) = &before
            && Arc::ptr_eq(known, &old)
        {
            *parameters = Arc::clone(new);
            continue;
        }
        let mut new = (*old).clone();
        for parameter in new.iter_mut().filter(|parameter| parameter.definition.name == name) {
            text.clone_into(&mut parameter.text);
            parameter.origin = Origin::Derived { place: counted.place.clone(), why: why.to_owned() };
        }
        *parameters = Arc::new(new);
        before = Some((old, Arc::clone(parameters)));
    }
}
