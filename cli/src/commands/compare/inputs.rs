//! What went into two runs that differs: topology, workload, code, version.

use super::pair::Pair;
use balar_actors::catalogue::UnitDefinition;
use balar_record::run_folder::RunFolder;
use serde::Serialize;
use std::collections::BTreeSet;

/// Something that went into the runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InputDifference {
    /// "topology", "workload", "isa" or "version"; of a parameter of a unit, the unit.
    pub location: String,
    /// The parameter; empty of the whole.
    pub what: String,
    /// Units that differ in this way; 0 of what is no unit's.
    pub units: usize,
    /// What the first run had; `None` where it had nothing of the kind.
    pub before: Option<String>,
    /// What the second run had.
    pub after: Option<String>,
}

/// All that differs. What cannot be compared goes to `notes`.
pub fn differences(
    runs: &Pair<&RunFolder>,
    kinds: &[&'static UnitDefinition],
    notes: &mut Vec<String>,
) -> Vec<InputDifference> {
    let (before, after) = (&runs.before.document, &runs.after.document);
    let mut differences = Vec::new();
    let mut say = |location: &str, what: &str, before: Option<String>, after: Option<String>| {
        if before != after {
            let (location, what) = (location.to_owned(), what.to_owned());
            differences.push(InputDifference { location, what, units: 0, before, after });
        }
    };
    let both = |text: &String| Some(text.clone());
    say("version", "", both(&before.version), both(&after.version));
    say("topology", "", both(&before.topology), both(&after.topology));
    say("workload", "", both(&before.workload.name), both(&after.workload.name));
    let keys: BTreeSet<&String> = before.workload.parameters.keys().chain(after.workload.parameters.keys()).collect();
    for key in keys {
        let value = |run: &RunFolder| run.document.workload.parameters.get(key).map(worded);
        say("workload", key, value(runs.before), value(runs.after));
    }
    say("isa", "", both(&before.isa), both(&after.isa));
    match (runs.before.topology(kinds), runs.after.topology(kinds)) {
        (Ok(Some(before)), Ok(Some(after))) => {
            differences.extend(before.differences(&after).into_iter().map(|it| InputDifference {
                location: it.location,
                what: it.what,
                units: it.units,
                before: it.before,
                after: it.after,
            }));
        }
        (Err(why), _) | (_, Err(why)) => notes.push(format!("parameters of the topologies are not compared: {why}")),
        _ => notes.push("parameters of the topologies are not compared: folders of --output have them".to_owned()),
    }
    differences
}

fn worded(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
