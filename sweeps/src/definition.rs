//! The definition of a sweep.

use crate::SweepError;
use crate::files;
use crate::points::{Points, in_words};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128;

/// The file in the folder of a sweep.
pub const FILE: &str = "sweep.json";
/// The shape of that file, and of the folder.
const SCHEMA: u32 = 1;
const PROGRAM: &str = "balar-actors";

/// A file or text that goes into every point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Its kind and name: "topology v100_node", "program ./app".
    pub what: String,
    /// The hash of its contents.
    pub hash: String,
}

impl Input {
    /// An input with these contents.
    pub fn of(what: impl Into<String>, contents: &[u8]) -> Input {
        Input { what: what.into(), hash: hash(contents) }
    }
}

/// A hash of bytes as 32 hexadecimal digits (XXH3, 128 bits).
pub fn hash(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}

/// The definition of a sweep: two sweeps with the same definition are the same sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The shape of the folder.
    pub schema: u32,
    /// Who wrote it.
    pub program: String,
    /// The version of the simulator.
    pub version: String,
    /// Options of the run of every point.
    pub options: Vec<String>,
    /// The program and its arguments, with placeholders; empty where a workload runs.
    pub command: Vec<String>,
    /// The inputs of every point.
    pub inputs: Vec<Input>,
    /// The keys that points set.
    pub keys: Vec<String>,
    /// The values of these keys for each point.
    pub points: Vec<Vec<Option<String>>>,
}

impl Definition {
    /// A definition of this version.
    pub fn new(
        version: &str,
        options: Vec<String>,
        command: Vec<String>,
        inputs: Vec<Input>,
        points: Points,
    ) -> Definition {
        Definition {
            schema: SCHEMA,
            program: PROGRAM.to_owned(),
            version: version.to_owned(),
            options,
            command,
            inputs,
            keys: points.keys,
            points: points.values,
        }
    }

    /// The settings of a point in a line.
    pub fn point_in_words(&self, index: usize) -> String {
        in_words(&self.keys, &self.points[index])
    }

    /// The hash of a point's settings, inputs left aside.
    pub fn configuration_hash(&self, index: usize) -> String {
        let parts = (&self.options, &self.command, &self.keys, &self.points[index]);
        hash(files::json(&parts).as_bytes())
    }

    /// The first thing in which this definition, which a folder has, differs from the one that is asked for.
    pub fn difference(&self, asked: &Definition) -> Option<String> {
        let list =
            |texts: &[String]| if texts.is_empty() { "none".to_owned() } else { format!("`{}`", texts.join(" ")) };
        let differ = |what: &str, own: &[String], asked: &[String]| {
            (own != asked).then(|| format!("its {what} are {}, those of this command {}", list(own), list(asked)))
        };
        let inputs = || {
            let changed = self.inputs.iter().find_map(|input| {
                let other = asked.inputs.iter().find(|other| other.what == input.what)?;
                (other.hash != input.hash).then(|| format!("the {} has changed since", input.what))
            });
            let names = |inputs: &[Input]| inputs.iter().map(|input| input.what.clone()).collect::<Vec<_>>();
            changed.or_else(|| differ("inputs", &names(&self.inputs), &names(&asked.inputs)))
        };
        let points = || {
            if self.points == asked.points {
                return None;
            }
            let (own, other) = (self.points.len(), asked.points.len());
            let first = self.points.iter().zip(&asked.points).position(|(own, asked)| own != asked);
            Some(match first {
                Some(at) => format!(
                    "its point {at} is `{}`, that of this command `{}`",
                    self.point_in_words(at),
                    asked.point_in_words(at)
                ),
                None => format!("it has {own} points, and this command {other}"),
            })
        };
        differ("options", &self.options, &asked.options)
            .or_else(|| differ("program and arguments", &self.command, &asked.command))
            .or_else(|| differ("keys", &self.keys, &asked.keys))
            .or_else(points)
            .or_else(inputs)
    }

    /// Reads the definition in a folder.
    ///
    /// # Errors
    ///
    /// There is none, it cannot be read, or it is of another version.
    pub fn read(folder: &Path, version: &str) -> Result<Definition, SweepError> {
        let file = folder.join(FILE);
        let text = files::read_text(&file).map_err(|cause| match cause.kind() {
            io::ErrorKind::NotFound => SweepError::NoSweep(folder.to_owned()),
            _ => files::failed("read", &file)(cause),
        })?;
        /// The fields that tell which program wrote it.
        #[derive(Deserialize)]
        struct Kind {
            schema: u32,
            program: String,
            version: String,
        }
        let damaged = |problem: String| SweepError::Damaged { file: file.clone(), problem };
        let kind: Kind = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if kind.program != PROGRAM {
            return Err(damaged(format!("it is of {}", kind.program)));
        }
        if kind.version != version || kind.schema != SCHEMA {
            return Err(SweepError::OtherVersion { file, found: kind.version, own: version.to_owned() });
        }
        let definition: Definition = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if definition.points.iter().any(|point| point.len() != definition.keys.len()) {
            return Err(damaged("a point has not as many values as there are keys".to_owned()));
        }
        Ok(definition)
    }

    /// The text of the file: a point is a line.
    pub(crate) fn text(&self) -> String {
        let lines = |items: &[String]| match items {
            [] => "[]".to_owned(),
            items => format!("[\n    {}\n  ]", items.join(",\n    ")),
        };
        let points: Vec<String> = self.points.iter().map(files::json).collect();
        let inputs: Vec<String> = self.inputs.iter().map(files::json).collect();
        format!(
            "{{\n  \"schema\": {},\n  \"program\": {},\n  \"version\": {},\n  \"options\": {},\n  \"command\": {},\n  \"inputs\": {},\n  \
             \"keys\": {},\n  \"points\": {}\n}}\n",
            self.schema,
            files::json(&self.program),
            files::json(&self.version),
            files::json(&self.options),
            files::json(&self.command),
            lines(&inputs),
            files::json(&self.keys),
            lines(&points),
        )
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs;

    /// A sweep of `a` over some values.
    pub(crate) fn definition(values: &[&str]) -> Definition {
        let axis = crate::points::Axis {
            key: "a".to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let points = Points::of(&[], &[axis]).expect("points");
        let inputs = vec![Input::of("topology t", b"Topology()")];
        Definition::new("1.0", vec!["--topology".to_owned(), "t".to_owned()], Vec::new(), inputs, points)
    }

    #[test]
    fn a_definition_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let written = definition(&["1", "\"two\""]);
        fs::write(folder.path().join(FILE), written.text()).expect("written");
        assert_eq!(Definition::read(folder.path(), "1.0").expect("read"), written);
        assert_eq!(written.difference(&written), None);
        let error = Definition::read(folder.path(), "1.1").expect_err("another version").to_string();
        assert!(
            error.contains("sweep.json was written by version 1.0 of balar-actors, and this is version 1.1"),
            "{error}"
        );
    }

    #[test]
    fn what_differs_is_named() {
        let own = definition(&["1", "2"]);
        for (asked, said) in [
            (definition(&["1", "3"]), "its point 1 is `a=2`, that of this command `a=3`"),
            (definition(&["1"]), "it has 2 points, and this command 1"),
            (
                Definition { options: Vec::new(), ..own.clone() },
                "its options are `--topology t`, those of this command none",
            ),
            (Definition { keys: vec!["b".to_owned()], ..own.clone() }, "its keys are `a`, those of this command `b`"),
            (
                Definition { inputs: vec![Input::of("topology t", b"Topology(x)")], ..own.clone() },
                "the topology t has changed since",
            ),
        ] {
            assert_eq!(own.difference(&asked).as_deref(), Some(said));
        }
    }

    #[test]
    fn configurations_of_points_have_hashes_of_their_own() {
        let own = definition(&["1", "2"]);
        assert_ne!(own.configuration_hash(0), own.configuration_hash(1));
        assert_eq!(own.configuration_hash(0), definition(&["1"]).configuration_hash(0));
        assert_eq!(own.configuration_hash(0).len(), 32);
    }
}
