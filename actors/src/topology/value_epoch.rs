//! The node's value epoch: `value_epoch: "20 ns"` of a topology, `--set value_epoch=10ns`.

use super::error::{ErrorKind, Errors, TopologyError};
use super::fields::Fields;
use super::parameter::quantity_error;
use super::source::Location;
use crate::memory::DeviceMemory;
use balar_protocol::SimTime;

/// The key.
pub(crate) const KEY: &str = "value_epoch";
/// The longest value epoch: what a store has done is then visible before anybody can have learned of its end. The fastest answer
/// that the L2 of a P100 or V100 gives takes more than 150 ns.
const LONGEST: SimTime = SimTime::from_nanoseconds(100);
/// What a right value is.
const EXPECTED: &str = "expected a time from \"1 ps\" to \"100 ns\", such as \"20 ns\"";

/// The epoch that a topology's keys give, or its default.
pub(crate) fn read(fields: &Fields, errors: &mut Errors) -> SimTime {
    let Some(value) = fields.get(KEY) else { return DeviceMemory::DEFAULT_EPOCH };
    let given = match value.string() {
        Some(text) => check(text, fields.at(value), errors),
        None => {
            let message = format!("`{KEY}` of Topology is {}", value.describe());
            errors.push(TopologyError::new(ErrorKind::WrongShape, fields.at(value), message, EXPECTED));
            None
        }
    };
    given.unwrap_or(DeviceMemory::DEFAULT_EPOCH)
}

/// The time that `text` says; `None` where it is none that an epoch can have, which is reported.
pub(crate) fn check(text: &str, location: Location, errors: &mut Errors) -> Option<SimTime> {
    let (kind, problem, help) = match text.parse::<SimTime>() {
        Ok(epoch) if epoch > SimTime::ZERO && epoch <= LONGEST => return Some(epoch),
        Ok(epoch) => (ErrorKind::QuantityOutOfRange, format!("{epoch} is out of range"), None),
        Err(error) => quantity_error(&error),
    };
    let mut error = TopologyError::new(kind, location, format!("{KEY}: {problem}"), EXPECTED);
    error.help = help;
    errors.push(error);
    None
}
