//! Policies by name: how RON text chooses one.

/// Declares the built-in policies of one trait as an enum that RON can name, and builds them.
///
/// A line `/// meaning` `Name => Type,` is a policy without parameters, built by `Type::default()` and written `Name`. A line
/// `Name(..) => Type,` is one that is its own parameters: `Type` can be deserialised and cloned, and is written `Name(key: value)`, with
/// `Name()` for the defaults.
macro_rules! choices {
    (
        $(#[doc = $about:expr])*
        $visibility:vis enum $name:ident builds $policy:ident {
            $( $(#[doc = $meaning:expr])+ $choice:ident $(($dots:tt))? => $type:ty ),* $(,)?
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq)]
        $visibility enum $name {
            $( $(#[doc = $meaning])+ $choice $(($crate::unified_memory::choices::choices!(@payload $dots $type)))?, )*
        }

        impl $name {
            /// The names as RON writes them.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($choice)),*];

            /// The policy of this name, in its first state.
            pub fn build(&self) -> Box<dyn $policy> {
                match self {
                    $( $crate::unified_memory::choices::choices!(@pattern $choice policy $($dots)?)
                        => $crate::unified_memory::choices::choices!(@build policy $type, $($dots)?), )*
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Choice;

                impl<'de> serde::de::Visitor<'de> for Choice {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(f, "one of {}", $name::NAMES.join(", "))
                    }

                    fn visit_enum<A: serde::de::EnumAccess<'de>>(self, access: A) -> Result<$name, A::Error> {
                        use serde::de::VariantAccess;
                        let ($crate::unified_memory::choices::Name(name), variant) = access.variant()?;
                        match name.as_str() {
                            $( stringify!($choice) =>
                                $crate::unified_memory::choices::choices!(@read $name $choice variant $($dots)?), )*
                            other => Err(serde::de::Error::unknown_variant(other, $name::NAMES)),
                        }
                    }
                }

                deserializer.deserialize_enum(stringify!($name), $name::NAMES, Choice)
            }
        }
    };
    (@payload $dots:tt $type:ty) => { $type };
    (@pattern $choice:ident $policy:ident) => { Self::$choice };
    (@pattern $choice:ident $policy:ident $dots:tt) => { Self::$choice($policy) };
    (@build $policy:ident $type:ty,) => { Box::new(<$type>::default()) };
    (@build $policy:ident $type:ty, $dots:tt) => { Box::new($policy.clone()) };
    (@read $name:ident $choice:ident $variant:ident) => { $variant.unit_variant().map(|()| $name::$choice) };
    (@read $name:ident $choice:ident $variant:ident $dots:tt) => {
        $variant.struct_variant(&[], $crate::unified_memory::choices::Fields::default()).map($name::$choice)
    };
}
pub(crate) use choices;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// The name of a policy: an identifier, not a string in quotes.
pub(crate) struct Name(pub String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Identifier;

        impl Visitor<'_> for Identifier {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a policy")
            }

            fn visit_str<E>(self, name: &str) -> Result<Name, E> {
                Ok(Name(name.to_owned()))
            }
        }

        deserializer.deserialize_identifier(Identifier)
    }
}

/// Reads a struct from the fields that follow the name of a policy.
pub(crate) struct Fields<T>(PhantomData<T>);

impl<T> Default for Fields<T> {
    fn default() -> Self {
        Fields(PhantomData)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the parameters of a policy")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields))
    }
}
