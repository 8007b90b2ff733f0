//! The points of a sweep: every combination of the values, in a fixed order.

use crate::values::{split, unquoted};
use ron::value::RawValue;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use std::fmt;
use std::str::FromStr;

/// More points than these are a mistake.
const MOST_POINTS: usize = 1_000_000;

/// A key with the values that it takes: `gpu.clock=500 MHz,1312 MHz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The key that is set.
    pub key: String,
    /// Its values, each once.
    pub values: Vec<String>,
}

impl FromStr for Axis {
    type Err = String;

    fn from_str(text: &str) -> Result<Axis, String> {
        const EXPECTED: &str = "expected KEY=VALUE,VALUE,..., such as 'gpu.clock=500 MHz,1312 MHz'";
        let (key, values) = text.split_once('=').ok_or(EXPECTED)?;
        if key.trim().is_empty() || values.trim().is_empty() {
            return Err(EXPECTED.to_owned());
        }
        Ok(Axis { key: key.trim().to_owned(), values: split(values)? })
    }
}

/// The keys that all points set, and the values of each point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Points {
    /// Everything that is set by any point, in the order of first mention.
    pub keys: Vec<String>,
    /// For each point and key the value; `None` where the point does not set it.
    pub values: Vec<Vec<Option<String>>>,
}

impl Points {
    /// The points of a file, each with every combination of the axes. The last axis changes fastest.
    ///
    /// # Errors
    ///
    /// In words: a key is given twice, two points are the same, or there are more than a million.
    pub fn of(file: &[Setting], axes: &[Axis]) -> Result<Points, String> {
        let mut keys: Vec<String> = Vec::new();
        for (key, _) in file.iter().flat_map(|point| &point.0) {
            if !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        for axis in axes {
            if keys.contains(&axis.key) {
                return Err(format!("`{}` is given values twice", axis.key));
            }
            keys.push(axis.key.clone());
        }
        let combinations = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.values.len()));
        let count = combinations.and_then(|count| count.checked_mul(file.len().max(1)));
        if count.is_none_or(|count| count > MOST_POINTS) {
            return Err(format!("the sweep has more than {MOST_POINTS} points"));
        }
        let value = |point: &Setting, key: &String| {
            point.0.iter().find(|(given, _)| given == key).map(|(_, value)| value.clone())
        };
        let mut values: Vec<Vec<Option<String>>> = match file {
            [] => vec![Vec::new()],
            points => {
                let own = &keys[..keys.len() - axes.len()];
                points.iter().map(|point| own.iter().map(|key| value(point, key)).collect()).collect()
            }
        };
        for axis in axes {
            values = values.iter().flat_map(|point| axis.values.iter().map(move |value| with(point, value))).collect();
        }
        let mut sorted: Vec<&Vec<Option<String>>> = values.iter().collect();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("the point `{}` is given twice", in_words(&keys, twice[0])));
        }
        Ok(Points { keys, values })
    }
}

fn with(point: &[Option<String>], value: &str) -> Vec<Option<String>> {
    point.iter().cloned().chain([Some(value.to_owned())]).collect()
}

/// The settings of a point in a line: "gpu.clock=500 MHz, workload.edge=8".
pub fn in_words(keys: &[String], values: &[Option<String>]) -> String {
    let set = keys.iter().zip(values).filter_map(|(key, value)| Some(format!("{key}={}", value.as_ref()?)));
    set.collect::<Vec<_>>().join(", ")
}

/// A point of a file: keys and values, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting(pub Vec<(String, String)>);

/// Reads a list of points: `[{"gpu.clock": "500 MHz", "workload.edge": 8}, ...]`. Values are RON; they are passed on as they are written.
///
/// # Errors
///
/// In words, with line and column: it is no such list, it has no point, or a point sets something twice.
pub fn read_file(text: &str) -> Result<Vec<Setting>, String> {
    let points: Vec<Setting> = ron::from_str(text).map_err(|error| {
        let place = error.span.start;
        format!("{}:{}: {}", place.line, place.col, error.code)
    })?;
    if points.is_empty() {
        return Err("1:1: it has no point".to_owned());
    }
    Ok(points)
}

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Setting, D::Error> {
        struct Settings;
        impl<'de> Visitor<'de> for Settings {
            type Value = Setting;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a point: {\"gpu.clock\": \"500 MHz\"}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Setting, A::Error> {
                let mut point: Vec<(String, String)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    if point.iter().any(|(given, _)| *given == key) {
                        return Err(serde::de::Error::custom(format!("the point sets `{key}` twice")));
                    }
                    point.push((key, unquoted(value.trim().get_ron())));
                }
                Ok(Setting(point))
            }
        }
        deserializer.deserialize_map(Settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(text: &str) -> Axis {
        text.parse().expect(text)
    }

    fn texts(points: &Points) -> Vec<String> {
        points.values.iter().map(|point| in_words(&points.keys, point)).collect()
    }

    #[test]
    fn the_last_axis_changes_fastest() {
        let points = Points::of(&[], &[axis("a=1,2"), axis("b.c[*].d = x, y")]).expect("points");
        assert_eq!(texts(&points), ["a=1, b.c[*].d=x", "a=1, b.c[*].d=y", "a=2, b.c[*].d=x", "a=2, b.c[*].d=y"]);
        assert_eq!(Points::of(&[], &[]).expect("one").values, [Vec::new()]);
    }

    #[test]
    fn points_of_a_file_are_combined_with_axes() {
        let text =
            "// Two points.\n[{\"gpu.clock\": \"500 MHz\", \"edge\": 8}, {\"edge\": 9, \"list\": [1, \"a, b\"],}]";
        let file = read_file(text).expect("a file");
        let points = Points::of(&file, &[axis("n=1,2")]).expect("points");
        assert_eq!(points.keys, ["gpu.clock", "edge", "list", "n"]);
        assert_eq!(
            texts(&points),
            [
                "gpu.clock=500 MHz, edge=8, n=1",
                "gpu.clock=500 MHz, edge=8, n=2",
                "edge=9, list=[1, \"a, b\"], n=1",
                "edge=9, list=[1, \"a, b\"], n=2",
            ]
        );
    }

    #[test]
    fn mistakes_are_told() {
        for (text, said) in [
            ("[]", "no point"),
            ("[{\"a\": 1, \"a\": 2}]", "sets `a` twice"),
            ("[\n{\"a\" 1}]", "2:5"),
            ("{\"a\": 1}", "1:1"),
        ] {
            let error = read_file(text).expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
        let twice = Points::of(&[], &[axis("a=1,2"), axis("a=3")]).expect_err("twice");
        assert_eq!(twice, "`a` is given values twice");
        let same = read_file("[{\"a\": 1}, {\"a\": \"1\"}]").expect("a file");
        assert_eq!(Points::of(&same, &[]).expect_err("twice"), "the point `a=1` is given twice");
        let long = format!("a={}", (0..1001).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
        let long = [axis(&long), Axis { key: "b".to_owned(), ..axis(&long) }];
        assert_eq!(Points::of(&[], &long).expect_err("too many"), "the sweep has more than 1000000 points");
        for text in ["a", "=1", "a=", "a=1,,2"] {
            assert!(text.parse::<Axis>().is_err(), "{text}");
        }
    }
}
