//! What the keys of a sweep mean, and whether anything has them: mistakes are told before the first point runs.

use crate::options::sweep::CommonOptions;
use crate::options::topology::Override;
use crate::options::workload::WorkloadChoice;
use crate::simulation::node;
use balar_actors::catalogue::UnitDefinition;
use balar_actors::topology::{Topology, nearest};
use balar_record::system::failure::Failure;
use balar_sweeps::points::Points;
use std::collections::BTreeMap;

/// What a key sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// The topology.
    Topology,
    /// The workload.
    Workload,
    /// A parameter of the workload.
    WorkloadParameter(String),
    /// What stands for this name in the arguments of the program.
    Placeholder(String),
    /// A parameter of units.
    Path(String),
}

impl Key {
    /// What `key` means, where a program has these arguments.
    pub fn of(key: &str, program: &[String]) -> Key {
        if placeholders(program).iter().any(|name| name == key) {
            return Key::Placeholder(key.to_owned());
        }
        match key.split_once('.') {
            None if key == "topology" => Key::Topology,
            None if key == "workload" => Key::Workload,
            Some(("workload", parameter)) => Key::WorkloadParameter(parameter.to_owned()),
            _ => Key::Path(key.to_owned()),
        }
    }
}

/// A piece of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// The pieces of an argument: `{name}` stands for a value, `{{name}}` for itself, and any other brace for itself.
fn pieces(mut argument: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut from = 0;
    while let Some(open) = argument[from..].find('{').map(|at| at + from) {
        let rest = &argument[open + 1..];
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let (escaped, inner) = rest.strip_prefix('{').map_or((false, rest), |inner| (true, inner));
        let end = inner.find(|letter| !is_letter(letter)).unwrap_or(inner.len());
        let name = &inner[..end];
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        let closing = if escaped { "}}" } else { "}" };
        if !is_name || !inner[end..].starts_with(closing) {
            from = open + 1 + usize::from(escaped);
            continue;
        }
        if escaped {
            // One brace of each pair stays.
            pieces.push(Piece::Text(&argument[..=open]));
            pieces.push(Piece::Text(&inner[..=end]));
        } else {
            pieces.push(Piece::Text(&argument[..open]));
            pieces.push(Piece::Name(name));
        }
        argument = &inner[end + closing.len()..];
        from = 0;
    }
    pieces.push(Piece::Text(argument));
    pieces
}

/// The names that stand for values in arguments.
pub fn placeholders(arguments: &[String]) -> Vec<String> {
    let pieces = arguments.iter().flat_map(|argument| pieces(argument));
    pieces.filter_map(|piece| if let Piece::Name(name) = piece { Some(name.to_owned()) } else { None }).collect()
}

/// An argument with values for names.
pub fn filled(argument: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let text = |piece| match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Name(name) => value(name).unwrap_or_else(|| format!("{{{name}}}")),
    };
    pieces(argument).into_iter().map(text).collect()
}

/// What is set at a point.
#[derive(Clone, Debug, Default)]
pub struct PointSettings {
    /// The topology.
    pub topology: String,
    /// Parameters of units.
    pub overrides: Vec<Override>,
    /// The workload with its parameters; `None` where it is the topology's, or a program runs.
    pub workload: Option<WorkloadChoice>,
    /// Parameters of the topology's own workload.
    pub own_parameters: Vec<(String, String)>,
    /// Values for names in arguments.
    pub values: BTreeMap<String, String>,
}

/// What is set at a point with these values of the keys.
pub fn settings(
    common: &CommonOptions,
    program: &[String],
    keys: &[String],
    values: &[Option<String>],
) -> PointSettings {
    let mut point = PointSettings {
        topology: common.topology.clone().unwrap_or_default(),
        workload: common.work.workload.clone(),
        ..PointSettings::default()
    };
    let set = || keys.iter().zip(values).filter_map(|(key, value)| Some((Key::of(key, program), value.clone()?)));
    for (key, value) in set() {
        match key {
            Key::Topology => point.topology = value,
            // The parameters of --workload are those of its own workload.
            Key::Workload => {
                // What is no choice of a workload is no workload's name either, and is refused as such.
                let chosen = value.parse().unwrap_or(WorkloadChoice { name: value, parameters: Vec::new() });
                let mut same = point.workload.take().filter(|common| common.name == chosen.name);
                if let Some(common) = &mut same {
                    for (key, value) in &chosen.parameters {
                        set_parameter(common, key, value.clone());
                    }
                }
                point.workload = same.or(Some(chosen));
            }
            Key::Placeholder(name) => drop(point.values.insert(name, value)),
            Key::Path(path) => point.overrides.push(Override { path, value }),
            Key::WorkloadParameter(_) => {}
        }
    }
    for (key, value) in set() {
        let Key::WorkloadParameter(name) = key else { continue };
        match &mut point.workload {
            None => point.own_parameters.push((name, value)),
            Some(choice) => set_parameter(choice, &name, value),
        }
    }
    point
}

/// Gives a parameter of a workload a value, in place of the one that it may have.
fn set_parameter(choice: &mut WorkloadChoice, name: &str, value: String) {
    match choice.parameters.iter_mut().find(|(own, _)| own == name) {
        Some((_, given)) => *given = value,
        None => choice.parameters.push((name.to_owned(), value)),
    }
}

/// What the points of a sweep have in common, when nothing is wrong with it.
#[derive(Debug, Default)]
pub struct Checked {
    /// The topologies by the names that the user gave.
    pub topologies: BTreeMap<String, Topology>,
    /// The workloads that run.
    pub workloads: Vec<&'static balar_workloads::Descriptor>,
    /// What a user is to know of the topologies of the points.
    pub notes: Vec<String>,
}

/// Finds mistakes that would be those of all points, or of all with a certain key: names that there are not, and keys none of whose
/// values is accepted. Values that are refused where others are not are mistakes of their points.
///
/// # Errors
///
/// The first mistake.
pub fn check(
    common: &CommonOptions,
    program: &[String],
    points: &Points,
    kinds: &[&'static UnitDefinition],
) -> Result<Checked, Failure> {
    check_placeholders(program, points)?;
    let mut checked = Checked::default();
    // By topology and path, whether a value has been accepted, or what the first was refused for.
    let mut paths: BTreeMap<(String, String), Result<(), Failure>> = BTreeMap::new();
    let mut parameters: BTreeMap<(&'static str, String), Result<(), Failure>> = BTreeMap::new();
    let mut tried: std::collections::BTreeSet<(String, String, String)> = std::collections::BTreeSet::new();
    for values in &points.values {
        let point = settings(common, program, &points.keys, values);
        if point.topology.is_empty() {
            let help = "--topology names one for all points, --set topology=a,b one for each";
            return Err(Failure::mistake("no topology is named", help));
        }
        if !checked.topologies.contains_key(&point.topology) {
            let loaded = node::load(&point.topology, &[], kinds)?;
            checked.topologies.insert(point.topology.clone(), loaded);
        }
        let topology = &checked.topologies[&point.topology];
        for set in &point.overrides {
            let place = (point.topology.clone(), set.path.clone());
            let is_new = tried.insert((place.0.clone(), place.1.clone(), set.value.clone()));
            let is_known = matches!(paths.get(&place), Some(Ok(())));
            // Numbers of units have notes by value, and some are accepted only together: those of rows that are wired to each other.
            let is_count = set.path.ends_with(".count");
            if (is_new && !is_known) || (is_count && (is_new || !is_known)) {
                let loaded = node::load(&point.topology, std::slice::from_ref(set), kinds);
                let together = |alone| match is_count {
                    true => node::load(&point.topology, &point.overrides, kinds).map_err(|_| alone),
                    false => Err(alone),
                };
                let loaded = loaded.or_else(together);
                if let Ok(topology) = &loaded {
                    let new = topology.notes.iter().filter(|note| !checked.notes.contains(note));
                    let new: Vec<String> = new.cloned().collect();
                    checked.notes.extend(new);
                }
                if !is_known {
                    note(&mut paths, place, loaded.map(drop));
                }
            }
        }
        let chosen = workload_of(&point, topology, program)?;
        let Some((workload, given)) = chosen else { continue };
        if !checked.workloads.iter().any(|known| known.name == workload.name) {
            checked.workloads.push(workload);
        }
        for (name, value) in given {
            let place = (workload.name, name.clone());
            if !matches!(parameters.get(&place), Some(Ok(()))) {
                let accepted =
                    workload.parameters_from([(name.as_str(), value.as_str())]).map(drop).map_err(Failure::input);
                note(&mut parameters, place, accepted);
            }
        }
    }
    let refused = paths.into_values().chain(parameters.into_values()).find_map(Result::err);
    refused.map_or(Ok(checked), Err)
}

/// Keeps the first refusal, unless a value is accepted.
fn note<K: Ord>(known: &mut BTreeMap<K, Result<(), Failure>>, key: K, accepted: Result<(), Failure>) {
    match (known.get(&key), &accepted) {
        (Some(Err(_)), Err(_)) => {}
        _ => drop(known.insert(key, accepted)),
    }
}

type ChosenWorkload = (&'static balar_workloads::Descriptor, Vec<(String, String)>);

/// The workload of a point and what is given of its parameters; `None` where a program runs.
fn workload_of(
    point: &PointSettings,
    topology: &Topology,
    program: &[String],
) -> Result<Option<ChosenWorkload>, Failure> {
    if !program.is_empty() {
        return match point.workload.is_some() || !point.own_parameters.is_empty() {
            true => {
                Err(Failure::mistake("`workload` is given values, and a program runs", "a sweep runs one or the other"))
            }
            false => Ok(None),
        };
    }
    let own = topology.workload.as_ref().map(|own| (own.name.as_str(), &point.own_parameters));
    let (name, given) = match point.workload.as_ref().map(|choice| (choice.name.as_str(), &choice.parameters)).or(own) {
        Some(chosen) => chosen,
        None => {
            let message = format_args!("topology {} names no workload", topology.name);
            return Err(Failure::mistake(message, "--workload NAME names one, or a program after --"));
        }
    };
    let descriptor = balar_workloads::find(name).map_err(Failure::input)?;
    Ok(Some((descriptor, given.clone())))
}

fn check_placeholders(program: &[String], points: &Points) -> Result<(), Failure> {
    let names = placeholders(program);
    let near = |name: &str, others: &[String]| {
        let near = nearest(name, others.iter().map(String::as_str)).map(|near| format!("the nearest name is `{near}`"));
        near.unwrap_or_else(|| "`{{name}}` stands for the text `{name}`".to_owned())
    };
    for name in &names {
        if !points.keys.contains(name) {
            let message = format_args!("an argument has `{{{name}}}`, and nothing gives `{name}` values");
            return Err(Failure::mistake(message, near(name, &points.keys)));
        }
    }
    for (at, values) in points.values.iter().enumerate() {
        let missing = names.iter().find(|name| {
            let key = points.keys.iter().position(|key| key == *name);
            key.is_none_or(|key| values[key].is_none())
        });
        if let Some(name) = missing {
            let message = format_args!("point {at} gives `{name}` no value, and an argument has `{{{name}}}`");
            return Err(Failure::mistake(message, "each point of the file needs one"));
        }
    }
    for key in &points.keys {
        let is_plain = !program.is_empty() && matches!(Key::of(key, program), Key::Path(_)) && !key.contains('.');
        if let Some(near) = is_plain.then(|| nearest(key, names.iter().map(String::as_str))).flatten() {
            let message = format_args!("no argument has `{{{key}}}`, and `{key}` is no parameter of the node");
            return Err(Failure::mistake(message, format!("the nearest name is `{near}`")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::sweep::SweepOptions;
    use clap::{Args, FromArgMatches};

    fn texts(arguments: &[&str]) -> Vec<String> {
        arguments.iter().map(|argument| (*argument).to_owned()).collect()
    }

    #[test]
    fn names_in_arguments_stand_for_values() {
        let value = |name: &str| (name == "n").then(|| "7".to_owned());
        for (argument, names, text) in [
            ("--size={n}", &["n"][..], "--size=7"),
            ("{n}x{n}", &["n", "n"], "7x7"),
            ("{{n}}", &[], "{n}"),
            ("{\"n\": 1}", &[], "{\"n\": 1}"),
            ("{ n }{n", &[], "{ n }{n"),
            ("{{{n}", &["n"], "{{7"),
            ("{0}", &[], "{0}"),
            ("", &[], ""),
        ] {
            assert_eq!(placeholders(&texts(&[argument])), names, "{argument}");
            assert_eq!(filled(argument, value), text, "{argument}");
        }
    }

    #[test]
    fn a_workload_may_have_parameters() {
        let workload = |common: &str, keys: &[&str], values: &[&str]| {
            let line = format!("sweep -t t -o o{common}");
            let command = SweepOptions::augment_args(clap::Command::new("sweep"));
            let matches = command.try_get_matches_from(line.split_whitespace()).expect("a sweep");
            let options = SweepOptions::from_arg_matches(&matches).expect("a sweep");
            let values: Vec<Option<String>> = values.iter().map(|value| Some((*value).to_owned())).collect();
            settings(&options.common, &[], &texts(keys), &values).workload.expect("one").to_string()
        };
        assert_eq!(workload("", &["workload"], &["gemm:size=256"]), "gemm:size=256");
        assert_eq!(workload(" -w gemm:seed=3,size=64", &["workload"], &["gemm:size=256"]), "gemm:seed=3,size=256");
        assert_eq!(workload(" -w gemm:seed=3", &["workload"], &["lud"]), "lud");
        let keys = ["workload.size", "workload"];
        assert_eq!(workload("", &keys, &["64", "gemm:size=256"]), "gemm:size=64", "the parameter alone has precedence");
    }

    #[test]
    fn keys_mean_what_they_name() {
        let program = texts(&["./app", "--clock={clock}"]);
        for (key, meaning) in [
            ("topology", Key::Topology),
            ("workload", Key::Workload),
            ("workload.elements", Key::WorkloadParameter("elements".to_owned())),
            ("clock", Key::Placeholder("clock".to_owned())),
            ("gpu.sm[*].clock", Key::Path("gpu.sm[*].clock".to_owned())),
            ("value_epoch", Key::Path("value_epoch".to_owned())),
        ] {
            assert_eq!(Key::of(key, &program), meaning, "{key}");
        }
    }
}
