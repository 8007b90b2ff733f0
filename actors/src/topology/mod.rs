//! The topology language: a node's units, their parameters and the wires between them, read from RON.
//!
//! A topology file holds `Topology(name, workload, value_epoch, units, links)`, a part file `Part(name, units, links)` whose names are
//! relative to the prefix it is included with. [`load`] reads both, expands rows (`"sm[0..84]"`) and wires (`"sm[*].memory"`),
//! and reports every mistake it finds with its place ([`TopologyErrors`]). A part can be changed where it is included:
//! `Part("parts/v100.ron", set: {...}, without: [links], units: {...}, links: [...])`.
//!
//! **Invariant:** a [`Topology`] that [`load`] returned holds: every parameter has its type, every required port is wired, every
//! wire joins a client to a server of one protocol and takes longer than zero.
//!
//! | file | what it holds |
//! |---|---|
//! | `syntax` | RON with the place of every value |
//! | `source`, `library`, `load` | files, those that are built in, and the way from a file to a topology |
//! | `fields`, `expand`, `scope`, `pattern` | keys; rows and parts; names and paths |
//! | `overrides`, `nested`, `clock` | `--set` and `set`, values inside of parameters, the clock of a whole GPU |
//! | `counts` | the number of units of a row, and the address maps that follow it |
//! | `wiring`, `error` | wires, the ports at their ends, and what is wrong with them; mistakes with their places |
//! | `show`, `comments` | the expanded text with the comments of its files |
//! | `graph`, `picture` | a graph for Graphviz, and the drawing of a node: `model` rows and what connects them, `facts` the numbers, `die` one GPU, `node` what is around it, `scene` shapes and SVG |
//! | `gpus`, `build` | what the units of a GPU provide together, and the units themselves |

mod build;
mod clock;
mod comments;
mod counts;
mod error;
mod expand;
mod fields;
mod gpus;
mod graph;
mod library;
mod load;
mod nearest;
mod nested;
mod options;
mod overrides;
mod parameter;
mod pattern;
mod picture;
mod scope;
mod show;
mod source;
mod syntax;
mod value_epoch;
mod wiring;
mod workload;

pub use build::{BuiltUnit, build, build_each};
pub use error::{ErrorKind, TopologyError, TopologyErrors};
pub use graph::dot;
pub use library::BUILT_IN_NODES;
pub use load::load;
pub use nearest::{nearest, suggestion};
pub use options::{LoadOptions, Override};
pub use parameter::{Origin, Parameter};
pub use pattern::{PathPattern, PatternError};
pub use picture::{live_svg, svg};
pub use show::show;
pub use source::{Location, PartLibrary, SourceFile, TopologySource};
pub use workload::{WorkloadCatalogue, WorkloadSpec};

use crate::catalogue::{Capability, UnitDefinition};
use balar_protocol::{Frequency, SimTime, UnitId};
use std::sync::Arc;

/// A node, expanded: every unit and every wire by itself.
#[derive(Clone, Debug)]
pub struct Topology {
    /// Its name.
    pub name: String,
    /// The workload it runs unless another is asked for.
    pub workload: Option<WorkloadSpec>,
    /// How long a value epoch is: at its end, the writes of all units become visible to the others.
    pub value_epoch: SimTime,
    /// The units; a unit's place here is its [`UnitId`].
    pub units: Vec<ExpandedUnit>,
    /// The wires.
    pub wires: Vec<ExpandedWire>,
    /// What a user is to know of it: what followed from numbers of units that were set.
    pub notes: Vec<String>,
}

/// One unit.
#[derive(Clone)]
pub struct ExpandedUnit {
    /// Its full path: "gpu.sm\[3\]".
    pub path: String,
    /// Path of its part: "gpu"; empty at top level.
    pub part: String,
    /// Its index in its row, 0 for a single unit.
    pub index: u32,
    /// Units of its row; `None` for a single unit.
    pub row: Option<u32>,
    /// Its kind.
    pub kind: &'static UnitDefinition,
    /// Its parameters in the order of the kind's definition, defaults filled in.
    pub parameters: Arc<Vec<Parameter>>,
    /// What it provides to the node, by its kind and its parameters.
    pub provides: Arc<Vec<Capability>>,
    /// Of a unit whose clock was set with that of its whole GPU: the clock of the topology.
    pub own_clock: Option<Frequency>,
    /// Where its kind is named.
    pub location: Location,
    /// Where the number of units of its row is set, if it is.
    pub(crate) counted_at: Option<Location>,
}

impl std::fmt::Debug for ExpandedUnit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}{}", self.path, self.kind.name, self.ron())
    }
}

impl ExpandedUnit {
    /// Its parameters as a complete RON struct.
    pub fn ron(&self) -> String {
        let mut text = "(".to_owned();
        for (at, parameter) in self.parameters.iter().enumerate() {
            let between = if at == 0 { "" } else { ", " };
            [between, parameter.definition.name, ": ", &parameter.text]
                .into_iter()
                .for_each(|part| text.push_str(part));
        }
        text.push(')');
        text
    }

    /// The value of a parameter as RON text.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|parameter| parameter.definition.name == name)
            .map(|parameter| parameter.text.as_str())
    }

    /// Its name without its part: "sm\[3\]".
    pub fn local_name(&self) -> &str {
        if self.part.is_empty() { &self.path } else { &self.path[self.part.len() + 1..] }
    }
}

/// One end of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WireEnd {
    /// The unit.
    pub unit: UnitId,
    /// The port's name.
    pub port: &'static str,
    /// The port's index in its row; `None` for a single port.
    pub index: Option<u32>,
}

/// One wire.
#[derive(Clone, Debug)]
pub struct ExpandedWire {
    /// The end named first.
    pub a: WireEnd,
    /// The end named second.
    pub b: WireEnd,
    /// Time a message takes, in each direction.
    pub latency: SimTime,
    /// Where it is written.
    pub location: Location,
}

impl Topology {
    /// An end as it is written: "gpu.crossbar.sm\[3\]".
    pub fn end_name(&self, end: WireEnd) -> String {
        let path = &self.units[end.unit.0 as usize].path;
        match end.index {
            Some(index) => format!("{path}.{}[{index}]", end.port),
            None => format!("{path}.{}", end.port),
        }
    }

    /// Gives a parameter a value, as RON text, in all units that have it, as an override would. The value must be one that the parameter
    /// can have.
    pub fn set_everywhere(&mut self, name: &str, text: &str) {
        for unit in &mut self.units {
            let has = |parameter: &Parameter| parameter.definition.name == name;
            if !unit.parameters.iter().any(has) {
                continue;
            }
            for parameter in Arc::make_mut(&mut unit.parameters).iter_mut().filter(|parameter| has(parameter)) {
                parameter.text = text.to_owned();
            }
        }
    }

    /// The smallest latency of any wire: the length of the engine's windows. `None` without wires.
    pub fn minimum_latency(&self) -> Option<SimTime> {
        self.wires.iter().map(|wire| wire.latency).min()
    }
}
