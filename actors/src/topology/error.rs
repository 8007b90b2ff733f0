//! What can be wrong with a topology, said so that the user can put it right: file, line, key, expectation, nearest name.

use super::source::Location;
use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use std::fmt;
use std::sync::Arc;

/// Which rule of the topology language was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// The text is not RON.
    Syntax,
    /// The file holds something other than `Topology(...)` or `Part(...)`.
    WrongFileKind,
    /// No such topology, neither as a path nor built in.
    TopologyNotFound,
    /// No such part, neither as a path nor built in.
    PartNotFound,
    /// A file that exists cannot be read.
    Unreadable,
    /// A part that includes itself, directly or through others.
    IncludeCycle,
    /// A key that `Topology`, `Part` or a link does not have.
    UnknownKey,
    /// A key that must be there.
    MissingKey,
    /// The same key twice.
    KeyGivenTwice,
    /// A value of another shape than the key asks for.
    WrongShape,
    /// A topology or part without units.
    Empty,
    /// A unit's name that is not a name, or not a row of names.
    BadUnitName,
    /// A range that holds nothing, or runs backwards.
    BadRange,
    /// A node of more units than can be simulated.
    TooLarge,
    /// A name given to two units.
    NameGivenTwice,
    /// A row with a gap.
    RowGap,
    /// No such kind of unit.
    UnknownUnitKind,
    /// No such parameter of this kind of unit.
    UnknownParameter,
    /// A parameter without a default that was not given.
    MissingParameter,
    /// A value that has not the parameter's type.
    WrongType,
    /// A unit of measure that the quantity does not have.
    BadUnitOfMeasure,
    /// A quantity outside its bounds.
    QuantityOutOfRange,
    /// A value that the unit itself refuses.
    ParameterOutOfBounds,
    /// An endpoint or path that is not written `unit.port`.
    BadPath,
    /// No such unit.
    UnknownUnit,
    /// An index beyond the row, or on a single unit, or none where there is a row.
    BadIndex,
    /// No such port.
    UnknownPort,
    /// An index on a single port, or none on a port of a row.
    BadPortIndex,
    /// The two ends speak different protocols.
    ProtocolMismatch,
    /// Two clients or two servers.
    RoleMismatch,
    /// A port wired twice.
    PortWiredTwice,
    /// A required port that is not wired.
    UnconnectedPort,
    /// Rows of different lengths wired to each other.
    RowLengths,
    /// A wire without latency.
    MissingLatency,
    /// A wire of zero latency.
    ZeroLatency,
    /// A latency on a wire whose Link unit has it.
    LatencyOnLinkWire,
    /// No such workload.
    UnknownWorkload,
    /// No such parameter of the workload.
    UnknownWorkloadParameter,
    /// A workload parameter's value that the workload refuses.
    BadWorkloadParameter,
    /// A number of units that a row cannot have.
    BadCount,
    /// A `--set` without a path or a value.
    BadOverride,
}

/// One mistake in a topology.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct TopologyError {
    /// The rule broken.
    pub kind: ErrorKind,
    /// What is wrong.
    pub message: String,
    /// What was expected at the place, shown beside it.
    pub label: String,
    /// How to put it right.
    pub help: Option<String>,
    /// Where it is.
    pub location: Location,
    /// Another place that matters, and why.
    pub other: Option<(Location, String)>,
    source_code: NamedSource<Arc<String>>,
}

impl TopologyError {
    /// A mistake at `location`.
    pub fn new(
        kind: ErrorKind,
        location: Location,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> TopologyError {
        let source_code = NamedSource::new(&location.file.name, location.file.text.clone());
        TopologyError {
            kind,
            message: message.into(),
            label: label.into(),
            help: None,
            location,
            other: None,
            source_code,
        }
    }

    /// Adds how to put it right.
    pub fn help(mut self, help: impl Into<String>) -> TopologyError {
        self.help = Some(help.into());
        self
    }

    /// Adds another place that matters.
    pub fn other(mut self, location: Location, label: impl Into<String>) -> TopologyError {
        self.other = Some((location, label.into()));
        self
    }
}

impl Diagnostic for TopologyError {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(format!("topology::{:?}", self.kind)))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let elsewhere = self.other.as_ref().filter(|(other, _)| !Arc::ptr_eq(&other.file, &self.location.file));
        let elsewhere = elsewhere.map(|(other, label)| format!("{label}: {other}"));
        let parts: Vec<String> = self.help.iter().cloned().chain(elsewhere).collect();
        if parts.is_empty() { None } else { Some(Box::new(parts.join("; "))) }
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source_code)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let main = LabeledSpan::new_primary_with_span(Some(self.label.clone()), self.location.span.clone());
        let other = self.other.as_ref().filter(|(other, _)| Arc::ptr_eq(&other.file, &self.location.file));
        let other = other.map(|(other, label)| LabeledSpan::new_with_span(Some(label.clone()), other.span.clone()));
        Some(Box::new(std::iter::once(main).chain(other)))
    }
}

/// Every mistake found in a topology, in the order of finding.
#[derive(Debug, thiserror::Error)]
#[error("{} in topology {topology}", count(.errors.len()))]
pub struct TopologyErrors {
    /// The topology as it was asked for.
    pub topology: String,
    /// The mistakes; at least one.
    pub errors: Vec<TopologyError>,
}

fn count(errors: usize) -> String {
    if errors == 1 { "1 error".to_owned() } else { format!("{errors} errors") }
}

impl Diagnostic for TopologyErrors {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.errors.iter().map(|error| error as &dyn Diagnostic)))
    }
}

impl TopologyErrors {
    /// The report as plain text, without colours.
    pub fn render(&self) -> String {
        let mut text = String::new();
        match miette::NarratableReportHandler::new().with_context_lines(1).render_report(&mut text, self) {
            Ok(()) => text,
            Err(fmt::Error) => self.to_string(),
        }
    }
}

/// Collects mistakes while a topology is read.
#[derive(Default)]
pub(crate) struct Errors {
    /// Those found so far.
    pub(crate) list: Vec<TopologyError>,
    /// While above zero, mistakes are not kept: a later member of a row repeats those of the first.
    pub(crate) muted: u32,
}

impl Errors {
    pub(crate) fn push(&mut self, error: TopologyError) {
        if self.muted == 0 {
            self.list.push(error);
        }
    }
}
