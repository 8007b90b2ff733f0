//! Counters as units declare them: a table of names, units of measure and meanings, from which every output is made.

use std::fmt;

/// One counter as a unit declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatisticDefinition {
    /// Its name, the same everywhere.
    pub name: &'static str,
    /// Its unit of measure: "instruction", "cycle", "byte", "sector", "message".
    pub unit: &'static str,
    /// One line of meaning.
    pub meaning: &'static str,
    /// Is it the greatest value of something? Then several are not added up: their greatest is taken.
    pub maximum: bool,
}

/// What takes the values of whole sets of counters, in the order of their declaration.
pub trait CounterSink {
    /// Those of a unit.
    fn take_counters(&mut self, definitions: &'static [StatisticDefinition], values: &[u64]);

    /// Those of a part of it: "channel\[2\]".
    fn take_counters_of(
        &mut self,
        part: impl fmt::Display,
        definitions: &'static [StatisticDefinition],
        values: &[u64],
    );
}

/// A struct of counters that [`counters!`](crate::counters) declares, for code that does not know which.
pub trait CounterSet: Default {
    /// The counters in the order of declaration.
    const DEFINITIONS: &'static [StatisticDefinition];

    /// Writes every counter, zeros included, for the unit itself.
    fn write(&self, sink: &mut impl CounterSink);
}

/// Declares a struct of `u64` counters with their units and meanings. A counter that is the greatest value of something says
/// `maximum` after its unit: it is not added to others, but the greatest of them is taken.
///
/// ```
/// balar_protocol::counters! {
///     /// What a queue counts.
///     pub struct QueueCounters {
///         /// entries taken in
///         entries: "entry",
///         /// most entries at once
///         length_maximum: "entry" maximum,
///     }
/// }
/// let mut counters = QueueCounters::default();
/// counters.entries += 1;
/// assert_eq!(QueueCounters::DEFINITIONS[0].meaning, "entries taken in");
/// counters.length_maximum = 3;
/// counters.add(&QueueCounters { entries: 4, length_maximum: 2 });
/// assert_eq!((counters.entries, counters.length_maximum), (5, 3));
/// ```
#[macro_export]
macro_rules! counters {
    (@is_maximum) => { false };
    (@is_maximum maximum) => { true };
    (@add $to:expr, $from:expr) => { $to += $from };
    (@add $to:expr, $from:expr, maximum) => { $to = $to.max($from) };
    (
        $(#[doc = $about:expr])*
        $visibility:vis struct $name:ident {
            $( #[doc = $meaning:expr] $counter:ident : $unit:literal $($maximum:ident)? ),* $(,)?
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, $crate::serde::Serialize, $crate::serde::Deserialize)]
        #[serde(crate = "balar_protocol::serde")]
        $visibility struct $name {
            $( #[doc = $meaning] pub $counter: u64, )*
        }

        impl $name {
            /// The counters in the order of declaration.
            pub const DEFINITIONS: &'static [$crate::statistics::StatisticDefinition] = &[
                $( $crate::statistics::StatisticDefinition {
                    name: stringify!($counter),
                    unit: $unit,
                    meaning: $meaning.trim_ascii(),
                    maximum: $crate::counters!(@is_maximum $($maximum)?),
                }, )*
            ];

            /// The values in the order of declaration.
            pub fn values(&self) -> impl Iterator<Item = u64> {
                self.to_array().into_iter()
            }

            /// The counters with these values, in the order of declaration.
            pub fn of_values(values: impl IntoIterator<Item = u64>) -> Self {
                let mut values = values.into_iter();
                Self { $( $counter: values.next().unwrap_or_default(), )* }
            }

            /// All values, in the order of declaration.
            #[inline]
            pub fn to_array(&self) -> [u64; Self::DEFINITIONS.len()] {
                [$( self.$counter ),*]
            }

            /// The counters with these values, in the order of declaration.
            #[inline]
            pub fn of_array(values: [u64; Self::DEFINITIONS.len()]) -> Self {
                let [$( $counter ),*] = values;
                Self { $( $counter ),* }
            }

            /// Writes every counter, zeros included, for the unit itself.
            pub fn write(&self, sink: &mut impl $crate::statistics::CounterSink) {
                $crate::statistics::CounterSink::take_counters(sink, Self::DEFINITIONS, &self.to_array());
            }

            /// Writes every counter, zeros included, for a part of the unit.
            pub fn write_of(&self, part: impl std::fmt::Display, sink: &mut impl $crate::statistics::CounterSink) {
                $crate::statistics::CounterSink::take_counters_of(sink, part, Self::DEFINITIONS, &self.to_array());
            }

            /// Adds the other's counts to this one's; of maxima, the greater is kept.
            pub fn add(&mut self, other: &Self) {
                $( $crate::counters!(@add self.$counter, other.$counter $(, $maximum)?); )*
            }
        }

        impl $crate::statistics::CounterSet for $name {
            const DEFINITIONS: &'static [$crate::statistics::StatisticDefinition] = $name::DEFINITIONS;

            fn write(&self, sink: &mut impl $crate::statistics::CounterSink) {
                $name::write(self, sink);
            }
        }
    };
}
