//! Values as numbers on an axis: "500 MHz", "64 KiB", "7".

use balar_protocol::{Bandwidth, Bytes, Frequency, SimTime};

/// A number with its unit of measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// The number.
    pub number: f64,
    /// Its unit; empty of a plain number.
    pub unit: String,
}

impl Quantity {
    /// Reads a number, alone or with a unit of measure behind it.
    pub fn of(text: &str) -> Option<Quantity> {
        let text = text.trim();
        let is_of_number = |at: usize, letter: char| {
            let is_exponent = matches!(letter, 'e' | 'E')
                && text[at + 1..].starts_with(|next: char| next.is_ascii_digit() || next == '-' || next == '+');
            letter.is_ascii_digit() || matches!(letter, '.' | '-' | '+' | '_') || is_exponent
        };
        let end = text.char_indices().find(|&(at, letter)| !is_of_number(at, letter)).map_or(text.len(), |(at, _)| at);
        let number: f64 = text[..end].replace('_', "").parse().ok()?;
        let unit = text[end..].trim();
        let is_unit = unit.chars().all(|letter| letter.is_alphabetic() || letter == '/' || letter == '%');
        (number.is_finite() && is_unit).then(|| Quantity { number, unit: unit.to_owned() })
    }

    /// The quantity in another unit; `None` where the two measure different things.
    fn in_unit(&self, unit: &str) -> Option<f64> {
        if self.unit == unit {
            return Some(self.number);
        }
        let (own, other) = (size(&self.unit)?, size(unit)?);
        (own.0 == other.0).then(|| self.number * own.1 / other.1)
    }
}

/// The kind of a unit of measure, and its size in the smallest unit of the kind.
fn size(unit: &str) -> Option<(u8, f64)> {
    let one = format!("1 {unit}");
    let frequency = one.parse().ok().map(|value: Frequency| (0, value.hertz() as f64));
    let bytes = || one.parse().ok().map(|value: Bytes| (1, value.0 as f64));
    let time = || one.parse().ok().map(|value: SimTime| (2, value.0 as f64));
    let rate = || one.parse().ok().map(|value: Bandwidth| (3, value.bytes_per_second() as f64));
    frequency.or_else(bytes).or_else(time).or_else(rate)
}

/// The values as numbers in the unit of the first, with that unit; `None` where they are no numbers of one kind.
pub fn common_axis<'a>(values: impl IntoIterator<Item = &'a str>) -> Option<(Vec<f64>, String)> {
    let quantities = values.into_iter().map(Quantity::of).collect::<Option<Vec<_>>>()?;
    let unit = quantities.first()?.unit.clone();
    let numbers = quantities.iter().map(|quantity| quantity.in_unit(&unit)).collect::<Option<Vec<_>>>()?;
    Some((numbers, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_their_units() {
        for (text, number, unit) in [
            ("7", 7.0, ""),
            ("-0.5", -0.5, ""),
            ("1e3", 1000.0, ""),
            ("500 MHz", 500.0, "MHz"),
            ("64KiB", 64.0, "KiB"),
            ("15.75 GB/s", 15.75, "GB/s"),
        ] {
            assert_eq!(Quantity::of(text), Some(Quantity { number, unit: unit.to_owned() }), "{text}");
        }
        for text in ["", "lud", "[1, 2]", "(a: 1)", "inf", "2 of 3", "v100_node", "1.2.3"] {
            assert_eq!(Quantity::of(text), None, "{text}");
        }
    }

    #[test]
    fn an_axis_has_the_unit_of_its_first_value() {
        assert_eq!(common_axis(["500 MHz", "1.3 GHz"]), Some((vec![500.0, 1300.0], "MHz".to_owned())));
        assert_eq!(common_axis(["64 KiB", "1 MiB"]), Some((vec![64.0, 1024.0], "KiB".to_owned())));
        assert_eq!(common_axis(["1", "2"]), Some((vec![1.0, 2.0], String::new())));
        assert_eq!(common_axis(["64 KiB", "1 MHz"]), None);
        assert_eq!(common_axis(["1", "two"]), None);
    }
}
