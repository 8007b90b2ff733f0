//! Arrays of any length in a saved state: serde derives for at most 32 elements.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Writes the elements as a list.
pub fn serialize<S: Serializer, T: Serialize, const LENGTH: usize>(
    array: &[T; LENGTH],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    array.as_slice().serialize(serializer)
}

/// Reads a list of as many elements.
pub fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>, const LENGTH: usize>(
    deserializer: D,
) -> Result<[T; LENGTH], D::Error> {
    let elements = Vec::deserialize(deserializer)?;
    let count = elements.len();
    elements.try_into().map_err(|_| D::Error::invalid_length(count, &"another number of elements"))
}
