//! The keys of a RON struct, whatever their values are.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// The keys of a RON struct, in their order; those of structs inside of it are not among them.
#[derive(Debug, PartialEq)]
pub(super) struct StructKeys(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for StructKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;

        impl<'de> Visitor<'de> for Keys {
            type Value = StructKeys;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a struct")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StructKeys, A::Error> {
                let mut keys = Vec::new();
                while let Some((Key(key), IgnoredAny)) = map.next_entry()? {
                    keys.push(key);
                }
                Ok(StructKeys(keys))
            }
        }

        deserializer.deserialize_struct("", &[], Keys)
    }
}

/// A key: an identifier, not a string in quotes.
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Identifier;

        impl Visitor<'_> for Identifier {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_str<E>(self, key: &str) -> Result<Key, E> {
                Ok(Key(key.to_owned()))
            }
        }

        deserializer.deserialize_identifier(Identifier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{ParameterDefinition, complete_ron};

    #[test]
    fn keys_of_the_struct_alone() {
        let text = "(clock: \"1, ways: 2\", tlb: (page: [1, 2], entries: 3), model: Timed(banks: 4), /* ways: 5, */)";
        let keys: StructKeys = ron::from_str(text).expect("a struct");
        assert_eq!(keys.0, ["clock", "tlb", "model"]);
    }

    #[test]
    fn a_key_of_a_nested_struct_does_not_hide_an_absent_one() {
        let definition = |name, default| ParameterDefinition {
            name,
            kind: "u32",
            default: Some(default),
            meaning: "",
            range_problem: ParameterDefinition::any_value,
        };
        let definitions = [definition("entries", "7"), definition("tlb", "()"), definition("ways", "2")];
        let complete = |text| complete_ron(&definitions, text);
        assert_eq!(complete("(tlb: (page: 1, entries: 3))"), "(entries: 7, ways: 2, tlb: (page: 1, entries: 3))");
        assert_eq!(complete("ways: 4,"), "(entries: 7, tlb: (), ways: 4,)");
        assert_eq!(complete(""), "(entries: 7, tlb: (), ways: 2, )");
        assert_eq!(complete("(tlb: (1"), "(tlb: (1", "what is not RON stays as it is");
    }
}
