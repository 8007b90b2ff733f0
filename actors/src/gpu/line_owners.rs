//! Which slice of the L2 owns a line, told by a crossbar to the slices: so a slice knows when it is asked for a line of another one.
//!
//! The crossbar itself cannot be wrong. A unit between it and a slice can: a prefetcher there that asks for the next line asks the wrong
//! slice, which would fill its sets with lines that no SM ever finds.

use crate::catalogue::BuildContext;
use crate::interleave::SliceMap;
use balar_protocol::PortId;
use std::sync::{Arc, Mutex, PoisonError};

/// The crossbars of a node, as they are built. Whoever needs it takes it from the surroundings.
#[derive(Debug, Default)]
pub struct LineOwners(Mutex<Vec<Arc<Spread>>>);

/// How one crossbar spreads lines.
#[derive(Debug)]
struct Spread {
    /// Its path.
    crossbar: String,
    map: SliceMap,
    /// Slices of a partition of the L2: those of the same place in their partitions have the same lines, as their own or as copies.
    slices_of_partition: u32,
    /// By slice: the path of the unit at the crossbar's port.
    ends: Vec<String>,
}

impl LineOwners {
    /// A crossbar is built that spreads lines by `map` over what is at `slice_ports`, with so many of them in a partition.
    pub fn add(context: &BuildContext, map: &SliceMap, slice_ports: &[PortId], slices_of_partition: u32) {
        let end = |port: &PortId| context.ports.peer(*port).map_or_else(String::new, |peer| peer.path.clone());
        let (crossbar, ends) = (context.path.to_owned(), slice_ports.iter().map(end).collect());
        let owners: Arc<LineOwners> = context.surroundings.shared();
        let mut spreads = owners.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A run that changes its detail builds the units a second time.
        spreads.retain(|spread| spread.crossbar != crossbar);
        spreads.push(Arc::new(Spread { crossbar, map: map.clone(), slices_of_partition, ends }));
    }

    /// The crossbar that has `unit` at one of its ports and at no other, with the number of the port.
    fn in_front_of(&self, unit: &str) -> Option<(Arc<Spread>, u32)> {
        let spreads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        spreads.iter().find_map(|spread| {
            let mut slices = spread.ends.iter().enumerate().filter(|(_, end)| *end == unit);
            match (slices.next(), slices.next()) {
                (Some((slice, _)), None) => Some((Arc::clone(spread), slice as u32)),
                _ => None,
            }
        })
    }
}

/// What a slice knows of the lines that it may be asked for.
#[derive(Debug)]
pub enum OwnLines {
    /// Whoever asks is right: the crossbar itself asks, or nobody knows better.
    Any,
    /// Some unit stands in between, and is looked up with the first request: by then all units are built.
    Unknown {
        /// All crossbars.
        owners: Arc<LineOwners>,
        /// The unit.
        peer: String,
    },
    /// Those of one slice of a crossbar.
    Of(SliceOfCrossbar),
}

/// A slice as its crossbar has it.
#[derive(Debug)]
pub struct SliceOfCrossbar {
    spread: Arc<Spread>,
    slice: u32,
}

impl OwnLines {
    /// Of a slice with this port for requests.
    pub fn of(context: &BuildContext, port: PortId) -> OwnLines {
        match context.ports.peer(port) {
            Some(peer) => OwnLines::Unknown { owners: context.surroundings.shared(), peer: peer.path.clone() },
            None => OwnLines::Any,
        }
    }

    /// May anybody ask for any line?
    #[inline]
    pub fn is_any(&self) -> bool {
        matches!(self, OwnLines::Any)
    }

    /// What is wrong with a request for `line`, in words that follow the path of the unit that has sent it; `None` where nothing is.
    pub fn mistake(&mut self, line: u64, path: &str) -> Option<String> {
        if let OwnLines::Unknown { owners, peer } = self {
            *self = owners
                .in_front_of(peer)
                .map_or(OwnLines::Any, |(spread, slice)| OwnLines::Of(SliceOfCrossbar { spread, slice }));
        }
        let OwnLines::Of(SliceOfCrossbar { spread, slice }) = self else { return None };
        let owner = spread.map.slice_of(line);
        (owner % spread.slices_of_partition != *slice % spread.slices_of_partition).then(|| {
            let crossbar = &spread.crossbar;
            format!(
                "it asked {path} for the line {line:#x}, which slice[{owner}] of {crossbar} owns, and it stands at slice[{slice}]; rule: \
                 the crossbar brings each line to one slice, and a unit in front of a slice asks for lines of that slice alone"
            )
        })
    }
}
