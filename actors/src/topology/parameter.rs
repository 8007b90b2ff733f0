//! Parameters of a unit as a topology gives them: names, types, defaults, and where each value came from.

use super::error::{ErrorKind, TopologyError};
use super::nearest::{nearest, suggestion};
use super::source::Location;
use crate::catalogue::{ParameterDefinition, UnitDefinition};
use balar_protocol::{Bandwidth, Bytes, Frequency, QuantityError, SimTime};

/// Where a value came from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// A topology or part file, or an override.
    Given(Location),
    /// The unit's definition.
    Default,
    /// It follows from a number of units.
    Derived {
        /// Where that number is given.
        place: Location,
        /// How it follows, in words.
        why: String,
    },
}

/// One parameter of an expanded unit.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its definition.
    pub definition: &'static ParameterDefinition,
    /// Its value as RON text.
    pub text: String,
    /// Where the value came from.
    pub origin: Origin,
}

/// A mistake in a value: its kind, what is wrong, how to put it right.
pub(crate) type ValueError = (ErrorKind, String, Option<String>);

/// Sorts out what a quantity's parser found wrong.
pub(crate) fn quantity_error(error: &QuantityError) -> ValueError {
    match error {
        QuantityError::Malformed { .. } => (ErrorKind::WrongType, error.to_string(), None),
        QuantityError::UnknownUnit { unit, units, .. } => {
            let help = nearest(unit, units.split(", ")).map(|near| format!("the nearest unit of measure is `{near}`"));
            (ErrorKind::BadUnitOfMeasure, error.to_string(), help)
        }
        QuantityError::OutOfRange { .. } => (ErrorKind::QuantityOutOfRange, error.to_string(), None),
    }
}

/// Has `text` the type of the parameter?
pub(crate) fn check_value(
    kind: &UnitDefinition,
    definition: &ParameterDefinition,
    text: &str,
) -> Result<(), ValueError> {
    if let Ok(string) = ron::from_str::<String>(text) {
        let quantity = match definition.kind {
            "Frequency" => string.parse::<Frequency>().err(),
            "Bytes" => string.parse::<Bytes>().err(),
            "Bandwidth" => string.parse::<Bandwidth>().err(),
            "SimTime" => string.parse::<SimTime>().err(),
            _ => None,
        };
        if let Some(error) = quantity {
            return Err(quantity_error(&error));
        }
    }
    (kind.check)(definition.name, text).map_err(|error| {
        let message = error.code.to_string();
        let message = message.strip_prefix("Error: ").unwrap_or(&message).to_owned();
        (ErrorKind::WrongType, message, None)
    })
}

/// The error of a parameter name that `kind` does not have.
pub(crate) fn unknown_parameter(kind: &UnitDefinition, key: &str, location: Location) -> TopologyError {
    let names = kind.parameters.iter().map(|definition| definition.name);
    let message = format!("{} has no parameter `{key}`", kind.name);
    TopologyError::new(ErrorKind::UnknownParameter, location, message, "not a parameter").help(suggestion(key, names))
}

/// The error of a value that is not of the parameter's type.
pub(crate) fn bad_value(
    subject: &str,
    definition: &ParameterDefinition,
    (kind, problem, help): ValueError,
    location: Location,
) -> TopologyError {
    let message = format!("{subject}: {}: {problem}", definition.name);
    let label = format!("expected {} ({})", definition.kind, definition.meaning);
    let error = TopologyError::new(kind, location, message, label);
    match help {
        Some(help) => error.help(help),
        None => error,
    }
}
