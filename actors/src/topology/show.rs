//! Prints a topology fully expanded, as text that loads again and gives the same units and wires.

use super::comments::{self, Comments};
use super::parameter::Origin;
use super::{ExpandedUnit, SourceFile, Topology};
use crate::catalogue::Capability;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

/// The topology as RON: parts in place, every parameter, every wire by itself, and `workload` (name, parameters) as what it runs.
/// The comments of its files stand beside what they belong to, so that each number still names its source.
pub fn show(topology: &Topology, workload: Option<(&str, &[(String, String)])>) -> String {
    let mut text = heads(topology);
    let _ = write!(text, "Topology(\n    name: {:?},\n", topology.name);
    if let Some((name, parameters)) = workload {
        let value = |value: &str| match value.parse::<u64>() {
            Ok(_) => value.to_owned(),
            Err(_) => format!("{value:?}"),
        };
        let parameters = parameters.iter().map(|(key, given)| format!("{key}: {}", value(given)));
        let parameters = parameters.collect::<Vec<_>>().join(", ");
        let location = topology.workload.as_ref().map(|workload| &workload.location);
        let comment = location.and_then(|location| comments::behind_call(location, &parameters));
        let comment = comment.map(|comment| format!("  // {comment}")).unwrap_or_default();
        text.push_str(&format!("    workload: {name}({parameters}),{comment}\n"));
    }
    text.push_str(&format!("    value_epoch: \"{}\",\n    units: {{\n", topology.value_epoch));
    show_units(&topology.units, "", 2, &mut text);
    text.push_str("    },\n    links: [\n");
    // A link that was expanded has its comments at the first of its wires.
    let mut seen = BTreeSet::new();
    for wire in &topology.wires {
        let place = (wire.location.file.identity.as_str(), wire.location.span.start);
        let notes = if seen.insert(place) { comments::beside(&wire.location) } else { Comments::default() };
        let (a, b) = (topology.end_name(wire.a), topology.end_name(wire.b));
        let of_link = [wire.a, wire.b].iter().any(|end| {
            let provides = &topology.units[end.unit.0 as usize].provides;
            provides.iter().any(|capability| matches!(capability, Capability::Forwards { latency: Some(_), .. }))
        });
        let latency = if of_link { String::new() } else { format!(", latency: \"{}\"", wire.latency) };
        entry(&format!("(\"{a}\", \"{b}\"{latency}),"), &notes, "        ", &mut text);
    }
    text.push_str("    ],\n)\n");
    text
}

/// What stands at the head of each file: the legend of the sources that its comments name.
fn heads(topology: &Topology) -> String {
    let mut files: Vec<&Arc<SourceFile>> = Vec::new();
    let of_node = topology.units.iter().filter(|unit| unit.part.is_empty()).map(|unit| &unit.location.file);
    let of_parts = topology.units.iter().map(|unit| &unit.location.file);
    for file in of_node.chain(of_parts) {
        if !files.iter().any(|other| other.identity == file.identity) {
            files.push(file);
        }
    }
    let mut text = String::new();
    for (index, file) in files.iter().enumerate() {
        let lines = comments::head(&file.text);
        // The first is the topology itself, whose name follows.
        if index > 0 && !lines.is_empty() {
            let _ = writeln!(text, "//\n// {}:", file.name);
        }
        for line in lines {
            let _ = writeln!(text, "{}", format!("// {line}").trim_end());
        }
    }
    text
}

/// One entry with its comments.
fn entry(line: &str, notes: &Comments, indent: &str, text: &mut String) {
    for above in &notes.above {
        let _ = writeln!(text, "{}", format!("{indent}// {above}").trim_end());
    }
    let behind = notes.behind.as_ref().map(|note| format!("  // {note}")).unwrap_or_default();
    let _ = writeln!(text, "{indent}{line}{}", behind.trim_end());
}

/// The path below `prefix`: "sm[3]" of "gpu.sm[3]" below "gpu".
fn below<'a>(path: &'a str, prefix: &str) -> &'a str {
    let rest = path.strip_prefix(prefix).unwrap_or(path);
    rest.strip_prefix('.').unwrap_or(rest)
}

/// Units of one prefix; they follow each other in the topology.
fn show_units(units: &[ExpandedUnit], prefix: &str, depth: usize, text: &mut String) {
    let indent = "    ".repeat(depth);
    let mut start = 0;
    while start < units.len() {
        let unit = &units[start];
        if unit.part == prefix {
            let run =
                units[start..].iter().enumerate().take_while(|(i, other)| same_but_index(unit, other, *i)).count();
            show_unit(unit, run as u32, depth, text);
            start += run;
        } else {
            // The part that holds the unit, one step below the prefix.
            let step = below(&unit.part, prefix).split('.').next().unwrap_or_default();
            let part = if prefix.is_empty() { step.to_owned() } else { format!("{prefix}.{step}") };
            let inside = |other: &&ExpandedUnit| {
                other.part.strip_prefix(part.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            let count = units[start..].iter().take_while(inside).count();
            text.push_str(&format!("{indent}\"{step}\": Part(units: {{\n"));
            show_units(&units[start..start + count], &part, depth + 1, text);
            text.push_str(&format!("{indent}}}),\n"));
            start += count;
        }
    }
}

/// May `other` stand in the same range of a row as `unit`, `offset` places behind it?
fn same_but_index(unit: &ExpandedUnit, other: &ExpandedUnit, offset: usize) -> bool {
    let base = |unit: &ExpandedUnit| unit.path.rsplit_once('[').map(|(base, _)| base.to_owned());
    offset == 0
        || (unit.row.is_some()
            && other.row.is_some()
            && base(unit) == base(other)
            && other.index == unit.index + offset as u32
            && unit.kind.name == other.kind.name
            && (Arc::ptr_eq(&unit.parameters, &other.parameters) || unit.ron() == other.ron()))
}

fn show_unit(unit: &ExpandedUnit, run: u32, depth: usize, text: &mut String) {
    let indent = "    ".repeat(depth);
    let name = match unit.row {
        Some(_) => {
            let base = unit.local_name().rsplit_once('[').map_or(unit.local_name(), |(base, _)| base);
            if run == 1 {
                format!("{base}[{}]", unit.index)
            } else {
                format!("{base}[{}..{}]", unit.index, unit.index + run)
            }
        }
        None => unit.local_name().to_owned(),
    };
    let notes = comments::beside(&unit.location);
    let mut above = notes.above;
    above.extend(notes.behind);
    if let Some(place) = unit.counted_at.clone().filter(|_| unit.index == 0) {
        let of_count = comments::of_parameter(&Origin::Given(place));
        above.extend(of_count.above.into_iter().chain(of_count.behind));
    }
    let head = format!("\"{name}\": {}(", unit.kind.name);
    entry(&head, &Comments { above, behind: None }, &indent, text);
    let inner = "    ".repeat(depth + 1);
    for parameter in unit.parameters.iter() {
        let value =
            if has_comment(&parameter.text) { indented(&parameter.text, &inner) } else { one_line(&parameter.text) };
        let line = format!("{}: {value},", parameter.definition.name);
        entry(&line, &comments::of_parameter(&parameter.origin), &inner, text);
    }
    text.push_str(&format!("{indent}),\n"));
}

/// Does a comment stand in this RON text?
fn has_comment(text: &str) -> bool {
    let (mut quoted, mut escaped, mut previous) = (false, false, ' ');
    for c in text.chars() {
        if !quoted && previous == '/' && (c == '/' || c == '*') {
            return true;
        }
        quoted ^= c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
        previous = c;
    }
    false
}

/// RON text with its lines and comments, its closing bracket below `indent`.
fn indented(text: &str, indent: &str) -> String {
    let spaces = |line: &str| line.len() - line.trim_start().len();
    let base = text.lines().skip(1).last().map_or(0, spaces);
    let mut lines = text.lines();
    let mut whole = lines.next().unwrap_or_default().trim_end().to_owned();
    for line in lines {
        let deeper = " ".repeat(spaces(line).saturating_sub(base));
        let _ = write!(whole, "\n{}", format!("{indent}{deeper}{}", line.trim()).trim_end());
    }
    whole
}

/// RON text without comments and line breaks.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    let mut rest = text;
    let mut quoted = false;
    while let Some(c) = rest.chars().next() {
        if !quoted && rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
            continue;
        }
        if quoted && c == '\\' {
            line.extend(rest.chars().take(2));
            rest = rest.get(2..).unwrap_or("");
            continue;
        }
        quoted ^= c == '"';
        if quoted || !c.is_whitespace() {
            line.push(c);
        } else if !line.ends_with([' ', '(', '[']) {
            line.push(' ');
        }
        rest = &rest[c.len_utf8()..];
    }
    line.trim().replace(", )", ")").replace(", ]", "]")
}
