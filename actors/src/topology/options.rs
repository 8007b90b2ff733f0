//! What a topology is read with.

use super::source::PartLibrary;
use super::workload::WorkloadCatalogue;
use crate::catalogue::UnitDefinition;

/// The name of the text that an override on the command line stands in.
pub(super) const COMMAND_LINE: &str = "--set";

/// One override from the command line: `gpu.sm[*].clock=1800MHz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override(pub String);

/// What a topology is read with.
#[derive(Clone, Copy)]
pub struct LoadOptions<'a> {
    /// The kinds of units that exist.
    pub kinds: &'a [&'static UnitDefinition],
    /// The built-in topologies and parts.
    pub library: &'a PartLibrary,
    /// The workloads that exist; `None` leaves the key `workload` unchecked.
    pub workloads: Option<&'a dyn WorkloadCatalogue>,
    /// Overrides, applied in order.
    pub overrides: &'a [Override],
}
