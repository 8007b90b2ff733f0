//! The parameters of a run's topology, for comparing them.

use crate::metrics::rollup::pattern;
use balar_actors::catalogue::UnitDefinition;
use balar_actors::topology::{LoadOptions, PartLibrary, Topology, TopologySource};
use std::collections::BTreeMap;

/// The settings of a topology, by their subjects: a unit and its parameter, or the ends of a wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopologyParameters(BTreeMap<(String, String), String>);

/// Something that two topologies say differently of a row of units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterDifference {
    /// The units, with "\[*\]" for each index where there are several.
    pub location: String,
    /// The parameter.
    pub what: String,
    /// Units of the row that differ in this way.
    pub units: usize,
    /// The value in the first topology; `None` where it has no such unit or parameter.
    pub before: Option<String>,
    /// The value in the second topology.
    pub after: Option<String>,
}

/// Reads the text of a topology of units of `kinds`.
///
/// # Errors
///
/// Why it cannot be read, in words: it may be of another version of the program.
pub fn read(name: &str, text: &str, kinds: &[&'static UnitDefinition]) -> Result<Topology, String> {
    let library = PartLibrary::built_in();
    let options = LoadOptions { kinds, library: &library, workloads: None, overrides: &[] };
    let source = TopologySource::Text { name: name.to_owned(), text: text.to_owned() };
    balar_actors::topology::load(&source, &options).map_err(|error| error.to_string())
}

/// The parameters of such a topology.
///
/// # Errors
///
/// As [`read()`].
pub fn parameters(name: &str, text: &str, kinds: &[&'static UnitDefinition]) -> Result<TopologyParameters, String> {
    read(name, text, kinds).map(|topology| TopologyParameters::of(&topology))
}

impl TopologyParameters {
    fn of(topology: &Topology) -> TopologyParameters {
        let mut all = BTreeMap::new();
        let mut say = |location: &str, what: &str, value: String| {
            all.insert((location.to_owned(), what.to_owned()), value);
        };
        say("topology", "value_epoch", topology.value_epoch.to_string());
        for unit in &topology.units {
            say(&unit.path, "kind", unit.kind.name.to_owned());
            for parameter in unit.parameters.iter() {
                flatten(parameter.definition.name, &parameter.text, &mut |name, value| say(&unit.path, name, value));
            }
        }
        for wire in &topology.wires {
            let ends = format!("{} - {}", topology.end_name(wire.a), topology.end_name(wire.b));
            say(&ends, "latency", wire.latency.to_string());
        }
        TopologyParameters(all)
    }

    /// The settings that differ in `after`, by row of units.
    pub fn differences(&self, after: &TopologyParameters) -> Vec<ParameterDifference> {
        let keys: std::collections::BTreeSet<_> = self.0.keys().chain(after.0.keys()).collect();
        let mut differences: Vec<ParameterDifference> = Vec::new();
        // By row of units, parameter, and its two values.
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        for key in keys {
            let (old, new) = (self.0.get(key), after.0.get(key));
            if old == new {
                continue;
            }
            let (location, what) = key;
            let row = pattern(location);
            let next = differences.len();
            let index = *known.entry(format!("{row} {what} {old:?} {new:?}")).or_insert(next);
            if index < next {
                differences[index].units += 1;
                differences[index].location = row;
                continue;
            }
            let (location, what) = (location.clone(), what.clone());
            differences.push(ParameterDifference {
                location,
                what,
                units: 1,
                before: old.cloned(),
                after: new.cloned(),
            });
        }
        // Of a unit that only one has, that it is there says it all.
        let gone = |it: &ParameterDifference| it.before.is_none() || it.after.is_none();
        let whole: Vec<String> =
            differences.iter().filter(|it| it.what == "kind" && gone(it)).map(|it| it.location.clone()).collect();
        differences.retain(|it| it.what == "kind" || !gone(it) || !whole.contains(&it.location));
        differences
    }
}

/// Says each field of a value by itself: `latencies.integer` of `(integer: 4, single: 4)`.
fn flatten(name: &str, text: &str, say: &mut impl FnMut(&str, String)) {
    let text = &without_comments(text);
    let Some((kind, fields)) = fields(text) else { return say(name, text.to_owned()) };
    if !kind.is_empty() {
        say(name, kind.to_owned());
    }
    fields.into_iter().for_each(|(field, value)| flatten(&format!("{name}.{field}"), value, say));
}

/// The text without comments, and with one space between words.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_string = false;
    while let Some(letter) = rest.chars().next() {
        if in_string {
            in_string = letter != '"' || plain.ends_with('\\');
        } else if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.find('\n').map_or("", |end| &comment[end..]);
            continue;
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.find("*/").map_or("", |end| &comment[end + 2..]);
            continue;
        } else if letter.is_whitespace() {
            rest = rest.trim_start();
            if !plain.ends_with(' ') {
                plain.push(' ');
            }
            continue;
        } else {
            in_string = letter == '"';
        }
        plain.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    plain.trim().to_owned()
}

/// The kind and the fields of `Kind(field: value, ...)`; `None` of other values.
fn fields(text: &str) -> Option<(&str, Vec<(&str, &str)>)> {
    let (kind, rest) = text.trim().split_once('(')?;
    let inside = rest.strip_suffix(')')?;
    let is_name = |text: &str| text.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    if !is_name(kind.trim()) {
        return None;
    }
    let mut parts = Vec::new();
    let (mut depth, mut in_string, mut first) = (0_i32, false, 0);
    let mut previous = ' ';
    for (at, letter) in inside.char_indices() {
        match letter {
            '"' if previous != '\\' => in_string = !in_string,
            _ if in_string => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inside[first..at]);
                first = at + 1;
            }
            _ => {}
        }
        previous = letter;
    }
    parts.push(&inside[first..]);
    let parts = parts.into_iter().map(str::trim).filter(|part| !part.is_empty());
    let fields: Option<Vec<_>> = parts
        .map(|part| {
            let (name, value) = part.split_once(':')?;
            is_name(name.trim()).then_some((name.trim(), value.trim()))
        })
        .collect();
    fields.filter(|fields| !fields.is_empty()).map(|fields| (kind.trim(), fields))
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_actors::kinds::UNITS;
    use balar_actors::topology::show;

    fn of(overrides: &[&str]) -> TopologyParameters {
        let overrides: Vec<_> =
            overrides.iter().map(|text| balar_actors::topology::Override((*text).to_owned())).collect();
        let library = PartLibrary::built_in();
        let options = LoadOptions { kinds: UNITS, library: &library, workloads: None, overrides: &overrides };
        let topology =
            balar_actors::topology::load(&TopologySource::from("v100_node"), &options).expect("it is built in");
        parameters("topology.ron", &show(&topology, None), UNITS).expect("what is written is read")
    }

    #[test]
    fn differences_are_told_by_row() {
        let plain = of(&[]);
        assert_eq!(plain.differences(&of(&[])), []);
        let other = of(&["gpu.sm[*].latencies.integer=7", "gpu.l2[3].ways=8", "cpu.queue_depth=7"]);
        let differences = plain.differences(&other);
        let told: Vec<_> = differences.iter().map(|it| (&*it.location, &*it.what, it.units)).collect();
        assert_eq!(told, [("cpu", "queue_depth", 1), ("gpu.l2[3]", "ways", 1), ("gpu.sm[*]", "latencies.integer", 84)]);
        assert_eq!((differences[0].before.as_deref(), differences[0].after.as_deref()), (Some("1024"), Some("7")));
    }

    #[test]
    fn values_are_told_by_field() {
        let told = |text: &str| {
            let mut all = Vec::new();
            flatten("p", text, &mut |name, value| all.push(format!("{name}={value}")));
            all
        };
        assert_eq!(told("\"4 ns\""), ["p=\"4 ns\""]);
        assert_eq!(told("None"), ["p=None"]);
        assert_eq!(told("(1, 2)"), ["p=(1, 2)"]);
        let nested = "Timed(a: (x: 1, y: \"b, (c\"), list: [1, 2], z: Some(3))";
        assert_eq!(told(nested), ["p=Timed", "p.a.x=1", "p.a.y=\"b, (c\"", "p.list=[1, 2]", "p.z=Some(3)"]);
        assert_eq!(told("Pages"), ["p=Pages"]);
        let commented = "(\n  x: 9 /* in place of 4 */,  // a, b\n  y: \"/* 1  2 */\", // (c\n)";
        assert_eq!(told(commented), ["p.x=9", "p.y=\"/* 1  2 */\""]);
    }

    #[test]
    fn what_is_no_topology_is_told() {
        let error = parameters("topology.ron", "Topology(", UNITS).expect_err("it is cut off");
        assert!(error.contains("topology.ron"), "{error}");
    }
}
