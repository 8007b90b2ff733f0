//! The catalogue of units: the name of each kind in a topology, its parameters, ports and counters, and how it is built.

pub mod bounds;
mod capability;
mod instruction_profile;
mod struct_keys;
mod surroundings;
pub mod timeline;

pub use balar_protocol::{CarveOuts, CtaNeeds, GpuDescription, SmCapability, SmResources};
pub use capability::{Capability, PeakRate, Peer, ProvidesFunction, nothing};
pub use instruction_profile::{InstructionProfiles, KernelProfile};
pub use surroundings::Surroundings;

use crate::engine::Unit;
use crate::memory::{DeviceMemory, Writer};
use balar_protocol::statistics::StatisticDefinition;
use balar_protocol::{PortId, Protocol};
use std::borrow::Cow;
use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use struct_keys::StructKeys;
use timeline::{TimelineLog, TrackGroup};

/// One parameter of a unit.
#[derive(Clone, Copy, Debug)]
pub struct ParameterDefinition {
    /// Its key in the topology.
    pub name: &'static str,
    /// Its Rust type, which names the expected value: "Frequency", "Bytes", "u32".
    pub kind: &'static str,
    /// The value it has where the topology does not give one, as RON text; `None` = required.
    pub default: Option<&'static str>,
    /// One line of meaning.
    pub meaning: &'static str,
    /// What is wrong with a value (RON text): it is outside the range of the declaration. `None` where nothing is, where the declaration
    /// gives no range, and of a value of another type.
    pub range_problem: fn(&str) -> Option<ParameterProblem>,
}

impl ParameterDefinition {
    /// Of a parameter without a range.
    pub fn any_value(_: &str) -> Option<ParameterProblem> {
        None
    }
}

/// A set of parameters that a unit declares with [`parameters!`](crate::parameters).
pub trait ParameterSet: Sized + serde::de::DeserializeOwned {
    /// The parameters in the order of declaration.
    const DEFINITIONS: &'static [ParameterDefinition];

    /// Does `text` (RON) have the type of parameter `name`? Unknown names are accepted here.
    fn check(name: &str, text: &str) -> Result<(), ron::error::SpannedError>;

    /// Each parameter whose value is outside the range that its declaration gives.
    fn range_problems(&self) -> Problems;

    /// Reads a RON struct body such as `(clock: "877 MHz")`; keys that are absent take their defaults.
    /// The topology loader does the same with better errors; this is for tests.
    fn from_ron(text: &str) -> Result<Self, ron::error::SpannedError> {
        ron::from_str(&complete_ron(Self::DEFINITIONS, text))
    }
}

/// A RON struct body such as `(clock: "877 MHz")`, with or without its parentheses, as a struct in which the defaults of absent keys are
/// filled in. Text that is not RON comes back without them, and its reader refuses it.
pub(crate) fn complete_ron(definitions: &[ParameterDefinition], text: &str) -> String {
    let text = text.trim();
    let body = text.strip_prefix('(').map_or_else(|| format!("{text})"), str::to_owned);
    let Ok(StructKeys(given)) = ron::from_str(&format!("({body}")) else { return format!("({body}") };
    let absent = definitions.iter().filter(|definition| !given.iter().any(|key| key == definition.name));
    let defaults = absent.filter_map(|definition| Some(format!("{}: {}, ", definition.name, definition.default?)));
    // Before the given keys. The last of them may have a comma behind it, or a comment.
    format!("({}{body}", defaults.collect::<String>())
}

/// Declares a unit's parameters: a struct, its keys, types, defaults (RON text) and meanings, and the ranges of values that the unit can
/// honour, which [`ParameterSet::range_problems`] holds them to.
///
/// ```
/// use balar_protocol::{Bytes, Frequency};
/// balar_actors::parameters! {
///     /// A cache.
///     pub struct CacheParameters {
///         /// clock of the cache
///         clock: Frequency,
///         /// data capacity
///         capacity: Bytes = r#""192 KiB""#,
///         /// lines of a set
///         #[range(1..=64)]
///         ways: u32 = "24",
///     }
/// }
/// use balar_actors::catalogue::ParameterSet;
/// let cache = CacheParameters::from_ron(r#"(clock: "1312 MHz")"#).expect("clock is all that is required");
/// assert_eq!((cache.capacity, cache.ways), (Bytes(192 << 10), 24));
/// assert!(CacheParameters::from_ron("()").is_err());
/// let wide = CacheParameters { ways: 65, ..cache };
/// let error = wide.range_problems().into_result().expect_err("there are at most 64 ways");
/// assert_eq!(error.to_string(), "ways: expected 1 to 64, found 65");
/// ```
#[macro_export]
macro_rules! parameters {
    (
        $(#[doc = $about:expr])*
        $visibility:vis struct $name:ident {
            $( $(#[doc = $meaning:expr])+ $(#[range($range:expr)])? $key:ident : $type:ty $(= $default:expr)? ),* $(,)?
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        $visibility struct $name {
            $( $(#[doc = $meaning])+ pub $key: $type, )*
        }

        impl $crate::catalogue::ParameterSet for $name {
            const DEFINITIONS: &'static [$crate::catalogue::ParameterDefinition] = &[
                $( $crate::catalogue::ParameterDefinition {
                    name: stringify!($key),
                    kind: stringify!($type),
                    default: $crate::parameters!(@default $($default)?),
                    meaning: concat!($($meaning),+).trim_ascii(),
                    range_problem: $crate::parameters!(@range $key: $type $(, $range)?),
                }, )*
            ];

            fn check(name: &str, text: &str) -> Result<(), ron::error::SpannedError> {
                match name {
                    $( stringify!($key) => ron::from_str::<$type>(text).map(drop), )*
                    _ => Ok(()),
                }
            }

            fn range_problems(&self) -> $crate::catalogue::Problems {
                let found: Vec<Option<$crate::catalogue::ParameterProblem>> = vec![
                    $( $( $crate::catalogue::ParameterProblem::of_range(stringify!($key), self.$key, $range), )? )*
                ];
                found.into_iter().flatten().collect()
            }
        }
    };
    (@default) => { None };
    (@default $default:expr) => { Some($default) };
    (@range $key:ident : $type:ty) => { $crate::catalogue::ParameterDefinition::any_value };
    (@range $key:ident : $type:ty, $range:expr) => {
        |text| {
            let value = ron::from_str::<$type>(text).ok()?;
            $crate::catalogue::ParameterProblem::of_range(stringify!($key), value, $range)
        }
    };
}

/// Which side of a protocol a port speaks. A wire joins a client to a server of the same protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends requests, receives responses.
    Client,
    /// Receives requests, sends responses.
    Server,
}

/// One port, or a row of ports, of a unit.
#[derive(Clone, Copy, Debug)]
pub struct PortDefinition {
    /// Its name in the topology.
    pub name: &'static str,
    /// Its protocol.
    pub protocol: Protocol,
    /// Which side.
    pub role: Role,
    /// A row of ports `name[i]`, as many as are wired, instead of a single `name`.
    pub indexed: bool,
    /// At least one wire must be attached.
    pub required: bool,
    /// One line of meaning.
    pub meaning: &'static str,
}

impl PortDefinition {
    /// A single port that must be wired, and that sends requests and receives responses.
    pub const fn client(name: &'static str, protocol: Protocol, meaning: &'static str) -> PortDefinition {
        PortDefinition { name, protocol, role: Role::Client, indexed: false, required: true, meaning }
    }

    /// A single port that must be wired, and that receives requests and sends responses.
    pub const fn server(name: &'static str, protocol: Protocol, meaning: &'static str) -> PortDefinition {
        PortDefinition { name, protocol, role: Role::Server, indexed: false, required: true, meaning }
    }

    /// Does it speak this side of this protocol?
    pub fn is(&self, protocol: Protocol, role: Role) -> bool {
        self.protocol == protocol && self.role == role
    }

    /// The same port, which need not be wired.
    #[must_use]
    pub const fn optional(self) -> PortDefinition {
        PortDefinition { required: false, ..self }
    }

    /// A row of such ports, as many as are wired.
    #[must_use]
    pub const fn row(self) -> PortDefinition {
        PortDefinition { indexed: true, ..self }
    }
}

/// The wired ports of a unit under construction, by name.
#[derive(Clone, Debug, Default)]
pub struct PortMap {
    /// (name, index, port), sorted by name and index; the index of a single port is 0.
    entries: Vec<(String, u32, PortId)>,
    /// The units at the other ends, by `PortId`. Empty where they are not known.
    peers: Vec<Peer>,
}

impl PortMap {
    /// A map from (name, index) pairs; `PortId`s are given in order of the pairs.
    pub fn new(ports: impl IntoIterator<Item = (String, u32)>) -> PortMap {
        let ports = ports.into_iter().enumerate();
        let mut entries: Vec<_> = ports.map(|(i, (name, index))| (name, index, PortId(i as u16))).collect();
        entries.sort();
        PortMap { entries, peers: Vec::new() }
    }

    /// The same ports with the units at their other ends, in order of their `PortId`s.
    pub fn with_peers(self, peers: Vec<Peer>) -> PortMap {
        PortMap { peers, ..self }
    }

    /// The unit at the other end of `port`, behind units that only forward.
    pub fn peer(&self, port: PortId) -> Option<&Peer> {
        self.peers.get(usize::from(port.0))
    }

    /// The single port `name`, where it is wired.
    pub fn get(&self, name: &str) -> Option<PortId> {
        self.at(name, 0)
    }

    /// Port `name[index]`, where it is wired.
    pub fn at(&self, name: &str, index: u32) -> Option<PortId> {
        self.entries.iter().find(|(n, i, _)| n == name && *i == index).map(|(_, _, port)| *port)
    }

    /// All wired ports of a row, by index.
    pub fn row<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (u32, PortId)> + 'a {
        self.entries.iter().filter(move |(n, _, _)| n == name).map(|(_, index, port)| (*index, *port))
    }

    /// Wired ports of a row.
    pub fn count(&self, name: &str) -> usize {
        self.row(name).count()
    }
}

/// A mistake in a unit's parameters beyond their types.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}{}{problem}", if key.is_empty() { "" } else { ": " })]
pub struct ParameterProblem {
    /// The key at fault, or the part of its value at fault: "thrashing.lapse"; empty where no key is at fault.
    pub key: Cow<'static, str>,
    /// The mistake and the expected value.
    pub problem: String,
}

impl ParameterProblem {
    /// A problem with `key`.
    pub fn new(key: impl Into<Cow<'static, str>>, problem: impl Into<String>) -> ParameterProblem {
        ParameterProblem { key: key.into(), problem: problem.into() }
    }

    /// A problem with `key` where `value` is outside a range, which it names: "expected 1 to 100, found 120".
    pub fn of_range<T: PartialOrd + fmt::Display>(
        key: impl Into<Cow<'static, str>>,
        value: T,
        range: impl RangeBounds<T>,
    ) -> Option<ParameterProblem> {
        use Bound::{Excluded, Included, Unbounded};
        if range.contains(&value) {
            return None;
        }
        let expected = match (range.start_bound(), range.end_bound()) {
            (Included(least), Included(most)) => format!("{least:#} to {most:#}"),
            (least, most) => {
                let least = match least {
                    Included(least) => Some(format!("at least {least:#}")),
                    Excluded(least) => Some(format!("more than {least:#}")),
                    Unbounded => None,
                };
                let most = match most {
                    Included(most) => Some(format!("at most {most:#}")),
                    Excluded(most) => Some(format!("less than {most:#}")),
                    Unbounded => None,
                };
                least.into_iter().chain(most).collect::<Vec<_>>().join(" and ")
            }
        };
        Some(ParameterProblem::new(key, format!("expected {expected}, found {value:#}")))
    }
}

/// The mistakes in the parameters of one unit: every one is reported, not the first alone.
///
/// ```
/// use balar_actors::catalogue::Problems;
/// let mut problems = Problems::default();
/// problems.check_range("entries", 8, 1..);
/// problems.check_range("tlb.entries", 0, 1..=65);
/// problems.check(3_u32.is_power_of_two(), "ways", "expected a power of two");
/// let error = problems.into_result().expect_err("3 is no power of two");
/// assert_eq!(error.to_string(), "tlb.entries: expected 1 to 65, found 0; ways: expected a power of two");
/// ```
#[derive(Debug, Default)]
pub struct Problems(Vec<ParameterProblem>);

impl Problems {
    /// Notes a problem.
    pub fn push(&mut self, problem: ParameterProblem) {
        self.0.push(problem);
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes a problem with `key` unless `holds`.
    pub fn check(&mut self, holds: bool, key: impl Into<Cow<'static, str>>, problem: &str) {
        if !holds {
            self.0.push(ParameterProblem::new(key, problem));
        }
    }

    /// Notes a problem with `key` unless `value` is in a range, which it names: "expected at most 100, found 120".
    pub fn check_range<T: PartialOrd + fmt::Display>(
        &mut self,
        key: impl Into<Cow<'static, str>>,
        value: T,
        range: impl RangeBounds<T>,
    ) {
        self.0.extend(ParameterProblem::of_range(key, value, range));
    }

    /// Goes on where no problem was noted.
    ///
    /// # Errors
    ///
    /// All problems noted.
    pub fn into_result(self) -> Result<(), BuildError> {
        if self.is_empty() { Ok(()) } else { Err(self.into()) }
    }
}

impl Extend<ParameterProblem> for Problems {
    fn extend<T: IntoIterator<Item = ParameterProblem>>(&mut self, problems: T) {
        self.0.extend(problems);
    }
}

impl FromIterator<ParameterProblem> for Problems {
    fn from_iter<T: IntoIterator<Item = ParameterProblem>>(problems: T) -> Problems {
        Problems(problems.into_iter().collect())
    }
}

impl From<Problems> for BuildError {
    fn from(problems: Problems) -> BuildError {
        BuildError::Parameters(problems.0)
    }
}

/// The surroundings that a unit may know while it is built.
pub struct BuildContext<'a> {
    /// The unit's full path: "gpu.sm\[3\]".
    pub path: &'a str,
    /// Path of the part it was included with: "gpu"; empty at top level.
    pub part: &'a str,
    /// Its index in its row, 0 for a single unit.
    pub index: u32,
    /// Units in its row.
    pub row_length: u32,
    /// Its wired ports.
    pub ports: &'a PortMap,
    /// Its number among the units of the node.
    pub unit: u32,
    /// The parts of the node beside its units.
    pub surroundings: &'a Surroundings,
}

impl BuildContext<'_> {
    /// The single port `name`.
    ///
    /// # Errors
    ///
    /// Where it is not wired; the loader has refused that already for ports declared as required.
    pub fn required_port(&self, name: &'static str) -> Result<PortId, BuildError> {
        let problem = || BuildError::Parameters(vec![ParameterProblem::new(name, "port is not wired")]);
        self.ports.get(name).ok_or_else(problem)
    }

    /// The memories of the node.
    ///
    /// # Errors
    ///
    /// Where it has none.
    pub fn memory(&self) -> Result<Arc<DeviceMemory>, BuildError> {
        let missing = || BuildError::Parameters(vec![ParameterProblem::new("place", "the node has no memory")]);
        self.surroundings.memory.clone().ok_or_else(missing)
    }

    /// A way to write to the memories of the node.
    ///
    /// # Errors
    ///
    /// Where it has none.
    pub fn writer(&self) -> Result<Writer, BuildError> {
        Ok(self.memory()?.writer(self.unit))
    }

    /// The log in which the unit records its activity over time; `None` in a run that does not ask for it.
    pub fn timeline(&self) -> Option<TimelineLog> {
        self.surroundings.timeline.as_ref().map(|timeline| timeline.log(self.unit))
    }

    /// The tracks of the GPU whose part this unit belongs to.
    pub fn gpu_tracks(&self) -> TrackGroup {
        TrackGroup::Gpu(self.gpu_index().unwrap_or(usize::MAX), self.part.to_owned())
    }

    /// Number of the GPU whose part this unit belongs to.
    ///
    /// # Errors
    ///
    /// Where the unit is outside every GPU.
    pub fn gpu_index(&self) -> Result<usize, BuildError> {
        let problem = || {
            let problem = format!("{} must be inside the part of a GPU", self.path);
            BuildError::Parameters(vec![ParameterProblem::new("place", problem)])
        };
        self.surroundings.gpu(self.part).map(|(index, _)| index).ok_or_else(problem)
    }
}

/// A kind of unit.
#[derive(Debug)]
pub struct UnitDefinition {
    /// Its name in the topology: "L2Slice".
    pub name: &'static str,
    /// One line: the hardware that it models.
    pub summary: &'static str,
    /// Its parameters.
    pub parameters: &'static [ParameterDefinition],
    /// Type check of one parameter's RON text; see [`ParameterSet::check`].
    pub check: fn(&str, &str) -> Result<(), ron::error::SpannedError>,
    /// Its ports.
    pub ports: &'static [PortDefinition],
    /// Its counters.
    pub counters: &'static [StatisticDefinition],
    /// The capabilities that a unit of this kind provides to its surroundings; [`nothing`] for most.
    pub provides: ProvidesFunction,
    /// How much work it is to simulate, relative to other units: 2 of most, 16 of an SM. It decides where a unit runs, and changes no
    /// result.
    pub weight: u32,
    /// Builds it from a complete RON struct of its parameters, defaults filled in.
    pub build: BuildFunction,
}

/// A default that a unit's own declaration refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{unit}: the default of the parameter `{parameter}` is {default}: {problem}")]
pub struct BadDefault {
    /// The kind of unit.
    pub unit: &'static str,
    /// The parameter.
    pub parameter: &'static str,
    /// Its default, as RON text.
    pub default: &'static str,
    /// What is wrong with it, and what was expected.
    pub problem: String,
}

impl UnitDefinition {
    /// The first default that does not have its parameter's type, or that is outside the range that the unit itself declares. A topology
    /// would find it only where it leaves the parameter out.
    pub fn bad_default(&self) -> Option<BadDefault> {
        self.parameters.iter().find_map(|parameter| {
            let default = parameter.default?;
            let problem = match (self.check)(parameter.name, default) {
                Err(error) => format!("expected {}: {}", parameter.kind, error.code),
                Ok(()) => (parameter.range_problem)(default)?.problem,
            };
            Some(BadDefault { unit: self.name, parameter: parameter.name, default, problem })
        })
    }
}

/// Builds a unit from a complete RON struct of its parameters.
pub type BuildFunction = fn(&str, &BuildContext) -> Result<Box<dyn Unit>, BuildError>;

/// Why a unit could not be built.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BuildError {
    /// The parameters do not have their types (the loader has checked each before).
    #[error(transparent)]
    Ron(#[from] ron::error::SpannedError),
    /// Parameters that contradict each other or the topology.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Parameters(Vec<ParameterProblem>),
}
