//! `topology show`: each number still names its source.

use balar_actors::kinds::UNITS;
use balar_actors::topology::{self, LoadOptions, Override, PartLibrary, TopologySource};
use balar_experiments::BuiltInWorkloads;

fn shown(source: &TopologySource, overrides: &[&str]) -> String {
    let overrides: Vec<Override> = overrides.iter().map(|text| Override((*text).to_owned())).collect();
    let library = PartLibrary::built_in();
    let workloads = Some(&BuiltInWorkloads as _);
    let options = LoadOptions { kinds: UNITS, library: &library, workloads, overrides: &overrides };
    match topology::load(source, &options) {
        Ok(topology) => {
            let workload = topology.workload.as_ref();
            let workload = workload.map(|workload| (workload.name.as_str(), &workload.parameters[..]));
            topology::show(&topology, workload)
        }
        Err(errors) => panic!("{}", errors.render()),
    }
}

fn again(text: &str) -> String {
    shown(&TopologySource::Text { name: "again.ron".to_owned(), text: text.to_owned() }, &[])
}

/// The text of every comment of a file; no string of the shipped files holds `//`.
fn comments(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.split_once("//")).map(|(_, comment)| comment.trim())
}

#[test]
fn no_comment_of_a_shipped_topology_is_lost() {
    let library = PartLibrary::built_in();
    for name in library.topologies() {
        let shown = shown(&TopologySource::from(name), &[]);
        let file = |wanted: &str| {
            let found = library.files.iter().find(|(file, _)| *file == wanted);
            found.map(|(_, text)| *text).unwrap_or_else(|| panic!("{wanted} is built in"))
        };
        let node = file(&format!("{name}.ron"));
        let part = node.split("Part(\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a part");
        // A value that the node sets has its comments there, if any: those before it and beside it are gone.
        let is_set = |line: &str| {
            let key = line.split_once(':').map_or("", |(key, _)| key.trim());
            !key.is_empty() && node.contains(&format!(".{key}\": "))
        };
        let lines: Vec<&str> = file(part).lines().collect();
        // A value may have several lines.
        let mut replaced = vec![false; lines.len()];
        for at in (0..lines.len()).filter(|&at| is_set(lines[at])) {
            let mut depth = 0;
            for (line, replaced) in lines[at..].iter().zip(&mut replaced[at..]) {
                let value = line.split("//").next().unwrap_or_default();
                depth += value.matches(['(', '[']).count();
                depth -= value.matches([')', ']']).count();
                *replaced = true;
                if depth == 0 {
                    break;
                }
            }
        }
        let is_kept = |&at: &usize| {
            let value = (at..lines.len()).find(|&at| !lines[at].trim_start().starts_with("//"));
            value.is_none_or(|value| !replaced[value])
        };
        let kept: Vec<&str> = (0..lines.len()).filter(is_kept).map(|at| lines[at]).collect();
        for comment in comments(node).chain(comments(&kept.join("\n"))) {
            assert!(shown.contains(&format!("// {comment}")) || shown.contains(comment), "{name}: {comment}\n{shown}");
        }
        assert_eq!(again(&shown), shown, "{name}: what is shown loads as itself");
    }
}

#[test]
fn a_comment_stays_beside_its_field() {
    let shown = shown(&TopologySource::from("v100_node"), &[]);
    for line in [
        "    workload: vectoradd(elements: 163840),  // SAND2019-10389, table 3-5\n",
        "            clock: \"2660 MHz\",  // SAND2019-10389, table 3-4\n",
        "                latency: \"90 ns\",         // estimate: load latency of a server processor\n",
        "//   [guide]    CUDA C++ Programming Guide, compute capability 7.0\n",
        "                compute_capability: (7, 0),  // [guide]\n",
        "                    integer: 4,              // [HPEC19]; [tuner] 4.3\n",
        "                sub_cores: 4,  // [volta]\n",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    // The file does not give it: what it says is the default of the kind of unit.
    let shown = self::shown(&TopologySource::from("p100_node"), &[]);
    assert!(shown.contains("address_hash: Xor,  // default\n"), "{shown}");
}

#[test]
fn an_override_shows_where_its_value_came_from() {
    let overrides = ["gpu.sm[*].sub_cores=2", "gpu.sm[*].latencies.integer=7", "gpu.sm[3].ctas=16"];
    let shown = shown(&TopologySource::from("v100_node"), &overrides);
    assert!(shown.contains("                sub_cores: 2,  // --set gpu.sm[*].sub_cores=2\n"), "{shown}");
    assert!(!shown.contains("sub_cores: 2,  // [volta]"), "the source of the file is not that of the new value");
    // The comment behind it is of the value that the file has, which is named.
    assert!(shown.contains("integer: 7 /* --set, in place of 4 */,"), "{shown}");
    assert!(shown.contains("                    single: 4,               // [HPEC19]; [tuner] 4.1\n"), "{shown}");
    // One SM differs; the others keep their number and its source.
    assert_eq!(shown.matches("ctas: 16,  // --set gpu.sm[3].ctas=16\n").count(), 1);
    assert_eq!(shown.matches("ctas: 32,  // [guide]\n").count(), 2, "rows 0..3 and 4..84");
    assert_eq!(again(&shown), shown);
}

#[test]
fn what_a_part_sets_names_the_comment_beside_it() {
    let node = include_str!("../../../topologies/v100_node.ron");
    let part = "Part(\"parts/v100.ron\", set: {\n            \"sm[*].warps\": 32,  // half of [guide]\n        })";
    let text = node.replace("Part(\"parts/v100.ron\")", part);
    assert_ne!(text, node);
    let shown = shown(&TopologySource::Text { name: "half.ron".to_owned(), text }, &[]);
    assert!(shown.contains("                warps: 32,  // half of [guide]\n"), "{shown}");
}

#[test]
fn a_row_names_the_place_where_its_number_of_units_is_set() {
    let shown = shown(&TopologySource::from("v100_node"), &["gpu.l2.count=64"]);
    assert!(shown.contains("// --set gpu.l2.count=64\n            \"l2[0..64]\": L2Slice(\n"), "{shown}");
}
