//! Sizes, rates and times with their units, parsed strictly: a number, one space, a unit that exists.

use crate::time::{PICOSECONDS_PER_SECOND, SimTime};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Why a quantity was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not `NUMBER UNIT` at all.
    #[error("expected {expected}, such as \"{example}\", found \"{found}\"")]
    Malformed {
        /// What is parsed: "a frequency", say.
        expected: &'static str,
        /// A value that would be accepted.
        example: &'static str,
        /// The text as given.
        found: String,
    },
    /// The unit is not one of this quantity's.
    #[error("unknown unit \"{unit}\" for {expected}; its units are {units}")]
    UnknownUnit {
        /// What is parsed.
        expected: &'static str,
        /// The unit as given.
        unit: String,
        /// The units that exist, joined by commas.
        units: String,
    },
    /// Not a whole number of base units, zero where zero has no meaning, or too large.
    #[error("{expected} of \"{found}\" {reason}")]
    OutOfRange {
        /// What is parsed.
        expected: &'static str,
        /// The text as given.
        found: String,
        /// Which bound was broken.
        reason: &'static str,
    },
}

struct Grammar {
    expected: &'static str,
    example: &'static str,
    /// Unit names with their factor to the base unit.
    units: &'static [(&'static str, u64)],
    minimum: u64,
    maximum: u64,
}

const TIME: Grammar = Grammar {
    expected: "a time",
    example: "23840 ps",
    units: &[("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000)],
    minimum: 0,
    maximum: u64::MAX / 4,
};
const FREQUENCY: Grammar = Grammar {
    expected: "a frequency",
    example: "1312 MHz",
    units: &[("Hz", 1), ("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)],
    minimum: 1,
    maximum: 1_000_000_000_000,
};
const BYTES: Grammar = Grammar {
    expected: "a size",
    example: "192 KiB",
    units: &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)],
    minimum: 0,
    maximum: 1 << 50,
};
const BANDWIDTH: Grammar = Grammar {
    expected: "a bandwidth",
    example: "16 GB/s",
    units: &[
        ("B/s", 1),
        ("kB/s", 1_000),
        ("MB/s", 1_000_000),
        ("GB/s", 1_000_000_000),
        ("TB/s", 1_000_000_000_000),
        ("KiB/s", 1 << 10),
        ("MiB/s", 1 << 20),
        ("GiB/s", 1 << 30),
    ],
    minimum: 1,
    maximum: 1_000_000_000_000_000,
};

impl Grammar {
    fn parse(&self, text: &str) -> Result<u64, QuantityError> {
        let malformed =
            || QuantityError::Malformed { expected: self.expected, example: self.example, found: text.to_owned() };
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).ok_or_else(malformed)?;
        let (number, rest) = trimmed.split_at(split);
        let unit = rest.trim_start();
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || unit.is_empty() || (number.contains('.') && fraction.is_empty()) {
            return Err(malformed());
        }
        if fraction.contains('.') {
            return Err(malformed());
        }
        let Some((_, factor)) = self.units.iter().find(|(name, _)| *name == unit) else {
            let units = self.units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            return Err(QuantityError::UnknownUnit { expected: self.expected, unit: unit.to_owned(), units });
        };
        let out_of_range =
            |reason| QuantityError::OutOfRange { expected: self.expected, found: text.to_owned(), reason };
        if fraction.len() > 15 || whole.len() > 20 {
            return Err(out_of_range("has too many digits"));
        }
        let scale = 10u128.pow(fraction.len() as u32);
        let digits: u128 = format!("{whole}{fraction}").parse().map_err(|_| malformed())?;
        let scaled = digits * u128::from(*factor);
        if !scaled.is_multiple_of(scale) {
            return Err(out_of_range("is not a whole number of the smallest unit"));
        }
        let value = scaled / scale;
        if value < u128::from(self.minimum) {
            return Err(out_of_range("must not be zero"));
        }
        if value > u128::from(self.maximum) {
            return Err(out_of_range("is too large"));
        }
        Ok(value as u64)
    }

    /// The largest unit that divides `value`, so that what is printed parses back to the same value.
    fn write(&self, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |&&(_, factor): &&(&str, u64)| value >= factor && value.is_multiple_of(factor);
        let (name, factor) = self.units.iter().filter(fits).max_by_key(|(_, factor)| *factor).unwrap_or(&self.units[0]);
        write!(f, "{} {}", value / factor, name)
    }
}

struct QuantityVisitor<T>(&'static Grammar, std::marker::PhantomData<T>);

impl<T: FromStr<Err = QuantityError>> Visitor<'_> for QuantityVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}, such as \"{}\"", self.0.expected, self.0.example)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

macro_rules! quantity {
    ($name:ident, $grammar:ident) => {
        impl FromStr for $name {
            type Err = QuantityError;
            fn from_str(text: &str) -> Result<Self, QuantityError> {
                $grammar.parse(text).map($name)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    deserializer.deserialize_str(QuantityVisitor(&$grammar, std::marker::PhantomData))
                } else {
                    u64::deserialize(deserializer).map($name)
                }
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                struct Text<'a>(&'a $name);
                impl fmt::Display for Text<'_> {
                    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        $grammar.write(self.0.0, f)
                    }
                }
                if serializer.is_human_readable() {
                    serializer.collect_str(&Text(self))
                } else {
                    self.0.serialize(serializer)
                }
            }
        }
    };
}

/// A frequency in hertz, from 1 Hz to 1 THz. Written "1312 MHz".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frequency(u64);

impl Frequency {
    /// From whole hertz; values outside 1 Hz to 1 THz are brought to the nearest bound.
    pub const fn from_hertz(hertz: u64) -> Frequency {
        match hertz {
            0 => Frequency(1),
            h if h > FREQUENCY.maximum => Frequency(FREQUENCY.maximum),
            h => Frequency(h),
        }
    }

    /// Whole hertz.
    pub const fn hertz(self) -> u64 {
        self.0
    }
}

/// A size in bytes. Written "192 KiB"; decimal units (kB, MB) are refused, for memories are made in powers of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A rate in bytes a second. Written "16 GB/s" (decimal) or "16 GiB/s" (binary).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bandwidth(u64);

impl Bandwidth {
    /// From bytes a second; zero becomes one.
    pub const fn from_bytes_per_second(rate: u64) -> Bandwidth {
        Bandwidth(if rate == 0 { 1 } else { rate })
    }

    /// Bytes a second.
    pub const fn bytes_per_second(self) -> u64 {
        self.0
    }

    /// How long `bytes` occupy a channel of this rate, rounded up to a picosecond.
    #[inline]
    pub fn time_for(self, bytes: u64) -> SimTime {
        match bytes.checked_mul(PICOSECONDS_PER_SECOND) {
            Some(product) => SimTime(product.div_ceil(self.0)),
            None => {
                SimTime((u128::from(bytes) * u128::from(PICOSECONDS_PER_SECOND)).div_ceil(u128::from(self.0)) as u64)
            }
        }
    }
}

quantity!(SimTime, TIME);
quantity!(Frequency, FREQUENCY);
quantity!(Bytes, BYTES);
quantity!(Bandwidth, BANDWIDTH);

macro_rules! display {
    ($name:ident, $grammar:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $grammar.write(self.0, f)
            }
        }
    };
}
display!(Frequency, FREQUENCY);
display!(Bytes, BYTES);
display!(Bandwidth, BANDWIDTH);

/// "500000000 ps"; with `{:#}` in the largest unit that divides it: "500 us".
impl fmt::Display for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() { TIME.write(self.0, f) } else { write!(f, "{} ps", self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_topologies_write() {
        assert_eq!("1312 MHz".parse(), Ok(Frequency(1_312_000_000)));
        assert_eq!("1800MHz".parse(), Ok(Frequency(1_800_000_000)));
        assert_eq!("1.5 GHz".parse(), Ok(Frequency(1_500_000_000)));
        assert_eq!("192 KiB".parse(), Ok(Bytes(192 << 10)));
        assert_eq!("16GiB".parse(), Ok(Bytes(16 << 30)));
        assert_eq!("16 GB/s".parse(), Ok(Bandwidth(16_000_000_000)));
        assert_eq!("23840 ps".parse(), Ok(SimTime(23840)));
        assert_eq!("0.5 ns".parse(), Ok(SimTime(500)));
    }

    #[test]
    fn refuses_the_rest() {
        for (text, reason) in [
            ("1312", "expected a frequency"),
            ("MHz", "expected a frequency"),
            ("", "expected a frequency"),
            ("1312 mhz", "unknown unit \"mhz\""),
            ("-5 MHz", "expected a frequency"),
            ("1..5 MHz", "expected a frequency"),
            ("1. MHz", "expected a frequency"),
            ("0 MHz", "must not be zero"),
            ("2 THz", "unknown unit \"THz\""),
            ("2000 GHz", "is too large"),
            ("0.5 Hz", "not a whole number"),
            ("99999999999999999999999 Hz", "too many digits"),
            ("12 MHz 3", "unknown unit \"MHz 3\""),
        ] {
            let error = text.parse::<Frequency>().expect_err(text).to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert!("192 kB".parse::<Bytes>().is_err());
        assert!("16 Gb/s".parse::<Bandwidth>().is_err());
    }

    #[test]
    fn prints_what_it_parses() {
        for text in ["1312 MHz", "877500 kHz", "1 Hz"] {
            assert_eq!(text.parse::<Frequency>().expect(text).to_string(), text);
        }
        assert_eq!(Bytes(16384 << 20).to_string(), "16 GiB");
        assert_eq!(Bytes(0).to_string(), "0 B");
        assert_eq!(Bandwidth(16_000_000_000).to_string(), "16 GB/s");
        let texts = [0, 1, 23_840, 500_000_000, 2_000_000_000_000].map(|time| format!("{:#}", SimTime(time)));
        assert_eq!(texts, ["0 ps", "1 ps", "23840 ps", "500 us", "2 s"]);
    }

    #[test]
    fn occupancy_rounds_up() {
        assert_eq!(Bandwidth(16_000_000_000).time_for(4096), SimTime(256_000));
        assert_eq!(Bandwidth(3).time_for(1), SimTime(333_333_333_334));
    }
}
