//! Topologies: what is read, refused, shown and drawn.

use crate::{RING, call, command, folder, json, small};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn every_error_of_a_topology_is_reported_with_its_line() {
    let folder = folder();
    let path = folder.path().join("broken.ron");
    let text =
        fs::read_to_string(RING).expect("the ring").replacen("latency", "latncy", 1).replace("\"20 ns\"", "\"20 m\"");
    fs::write(&path, text).expect("written");
    let called = call(&["topology", "check", path.to_str().expect("UTF-8")]);
    assert_eq!((called.code, called.stdout.as_str()), (2, ""));
    for said in ["latncy", "latency", "broken.ron:5:", "broken.ron:8:", "20 m", "╰──"] {
        assert!(called.stderr.contains(said), "{said}: {}", called.stderr);
    }
}

#[test]
fn overrides_reach_the_units() {
    let shown = call(&["topology", "show", RING, "--set", "box.b[*].latency=30 ns"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert_eq!(shown.stdout.matches("\"30 ns\"").count(), 1, "three alike are one entry: {}", shown.stdout);
    assert!(shown.stdout.contains("\"b[0..3]\": Link("), "{}", shown.stdout);
}

/// The parameters of units as `topology show` prints them, by unit, each line by itself and without the comment behind it.
fn shown(arguments: &[&str]) -> Vec<(String, String)> {
    let shown = call(&[&["topology", "show"], arguments].concat());
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let mut unit = String::new();
    let mut parameters = Vec::new();
    for line in shown.stdout.lines().map(|line| line.split("// ").next().unwrap_or_default().trim()) {
        match line.strip_prefix('"') {
            Some(named) => unit = named.split('"').next().unwrap_or_default().to_owned(),
            None => parameters.push((unit.clone(), line.trim_end_matches(',').to_owned())),
        }
    }
    parameters
}

#[test]
fn an_override_reaches_inside_of_a_parameter() {
    let set = ["v100_node", "--set", "gpu.sm[*].latencies.integer=7", "--set", "gpu.hbm[0].model.timing.refresh=Off"];
    let parameters = shown(&set);
    let of = |unit: &str, start: &str| -> &str {
        let found = parameters.iter().find(|(at, text)| at == unit && text.starts_with(start));
        found.map_or("", |(_, text)| text)
    };
    assert_eq!(of("sm[0..84]", "integer:"), "integer: 7 /* --set, in place of 4 */");
    assert_eq!(of("sm[0..84]", "integer_multiply:"), "integer_multiply: 4");
    let refresh = of("hbm[0]", "refresh");
    assert!(refresh.starts_with("refresh: Off /* --set, in place of PerBank */, t_refi: "), "{parameters:?}");
    assert!(of("hbm[1..4]", "refresh").starts_with("refresh: PerBank, t_refi: "), "{parameters:?}");
    for (set, said) in [
        ("gpu.sm[*].latencies.intger=7", "intger"),
        ("gpu.sm[*].latencies.intger=7", "the nearest name is `integer`"),
        ("gpu.sm[*].latencies.intger=7", "[--set:1:21]"),
        ("gpu.sm[*].latencies.integer=fast", "latencies"),
        ("gpu.hbm[*].model.timng.cl=3", "the nearest name is `timing`"),
        ("gpu.sm[*].warps.most=3", "which has no `most`"),
    ] {
        let called = call(&["topology", "show", "v100_node", "--set", set]);
        assert_eq!((called.code, called.stdout.as_str()), (2, ""), "{set}");
        assert!(called.stderr.contains(said), "{set}: {}", called.stderr);
    }
}

#[test]
fn one_override_sets_the_clock_of_a_gpu() {
    let clocks = |topology: &str, set: &str| -> Vec<(String, String)> {
        let parameters = shown(&[topology, "--set", set]);
        let clocks =
            parameters.into_iter().filter_map(|(unit, text)| Some((unit, text.strip_prefix("clock: ")?.to_owned())));
        clocks.collect()
    };
    // topologies/parts/v100.ron: the crossbar and the memory state clocks of their own.
    let own = [("cpu", "2660 MHz"), ("host_memory", "1333 MHz"), ("crossbar", "1200 MHz"), ("hbm[0..4]", "877 MHz")];
    let found = clocks("v100_node", "gpu.clock=1500MHz");
    assert!(found.len() > 6, "{found:?}");
    for (unit, clock) in found {
        let expected = own.iter().find(|(name, _)| *name == unit).map_or("1500MHz", |(_, clock)| *clock);
        assert_eq!(clock, format!("{expected:?}"), "{unit}");
    }
    let found = clocks("two_v100_node", "gpu[1].clock=1500 MHz");
    assert_eq!(found.iter().filter(|(_, clock)| clock == "\"1500 MHz\"").count(), 5, "one of two GPUs: {found:?}");
    let called = call(&["topology", "show", RING, "--set", "box.clock=1 GHz"]);
    assert_eq!(called.code, 2);
    assert!(called.stderr.contains("no GPU"), "{}", called.stderr);
}

#[test]
fn a_node_that_is_too_large_is_refused() {
    let folder = folder();
    let path = folder.path().join("large.ron");
    let row = |units: &str| format!("Topology(name: \"large\", units: {{{units}}})");
    let link = "Link(latency: \"1 ns\", bandwidth: \"1 GB/s\")";
    let nested =
        (0..14).fold(format!("\"x[0..10]\": {link}"), |inner, _| format!("\"x[0..10]\": Part(units: {{{inner}}})"));
    let empty = "\"x[0..60000]\": Part(units: {\"y[0..60000]\": Part(units: {})})".to_owned();
    for (text, said) in [
        (row(&nested), "more than 65536 units and parts"),
        (row(&empty), "more than 65536 units and parts"),
        (row(&format!("\"x[0..1000000]\": {link}")), "longer than 65536 units"),
    ] {
        fs::write(&path, text).expect("written");
        let called = call(&["topology", "check", path.to_str().expect("UTF-8")]);
        assert_eq!((called.code, called.stdout.as_str()), (2, ""));
        assert!(called.stderr.contains(said), "{said}: {}", called.stderr);
    }
}

#[test]
fn files_come_from_pipes_and_with_a_byte_order_mark() {
    let ring = fs::read_to_string(RING).expect("the ring");
    let mut child = command(&["topology", "check", "/dev/stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child.stdin.take().expect("piped").write_all(format!("\u{feff}{ring}").as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), call(&["topology", "check", RING]).stdout);
}

#[test]
fn a_file_without_an_end_is_refused() {
    for arguments in [&["ptx", "/dev/zero"][..], &["topology", "check", "/dev/zero"], &small(&["--ptx", "/dev/zero"])] {
        let called = call(arguments);
        assert_eq!((called.code, called.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(called.stderr.contains("longer than"), "{arguments:?}: {}", called.stderr);
    }
}

#[test]
fn a_topology_of_more_memory_than_the_machine_has_is_checked() {
    // Four stacks of 1 TiB, a thousand times what the process may map.
    let arguments = ["topology", "check", "v100_node", "--set", "gpu.hbm[*].capacity=1 TiB"];
    let binary = env!("CARGO_BIN_EXE_balar-actors");
    let limited =
        Command::new("sh").args(["-c", "ulimit -v 4000000; exec \"$@\"", "sh", binary]).args(arguments).output();
    let limited = limited.expect("a shell");
    assert!(limited.status.success(), "{}", String::from_utf8_lossy(&limited.stderr));
}

#[test]
fn what_is_shown_loads_as_the_same_topology() {
    let folder = folder();
    let path = folder.path().join("shown.ron");
    let shown = call(&["topology", "show", RING]);
    fs::write(&path, &shown.stdout).expect("written");
    let again = call(&["topology", "show", path.to_str().expect("UTF-8")]);
    assert_eq!((again.code, again.stdout), (0, shown.stdout));
}

#[test]
fn topologies_are_drawn() {
    let dot = call(&["topology", "graph", RING]).stdout;
    assert!(dot.contains("\"box.b[*]\" [label=\"box.b[*]\\n3 x Link\"];"), "{dot}");
    let svg = call(&["topology", "graph", RING, "--format", "svg"]).stdout;
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    // The name of the file chooses the format.
    let folder = folder();
    for (name, expected) in [("ring.svg", &svg), ("ring", &svg), ("ring.dot", &dot), ("ring.gv", &dot)] {
        let path = folder.path().join(name);
        let path = path.to_str().expect("UTF-8");
        let called = call(&["topology", "graph", RING, "--output", path]);
        assert_eq!((called.code, called.stdout.as_str(), called.stderr.as_str()), (0, "", ""), "{name}");
        assert_eq!(&fs::read_to_string(path).expect("written"), expected, "{name}");
    }
    // A system without fonts draws no PNG, and says so.
    let path = folder.path().join("ring.png");
    let called = call(&["topology", "graph", RING, "--output", path.to_str().expect("UTF-8")]);
    match called.code {
        0 => assert!(fs::read(&path).expect("written").starts_with(b"\x89PNG\r\n\x1a\n")),
        code => assert!(code == 2 && called.stderr.contains("no fonts"), "{}", called.stderr),
    }
    let called =
        call(&["topology", "graph", RING, "--output", folder.path().join("ring.jpg").to_str().expect("UTF-8")]);
    assert_eq!((called.code, folder.path().join("ring.jpg").exists()), (2, false));
    assert!(called.stderr.contains("ring.jpg: no picture has this ending"), "{}", called.stderr);
    let nowhere = call(&["topology", "graph", RING, "--output", "/nonexistent/ring.svg"]);
    assert_eq!((nowhere.code, nowhere.stdout.as_str()), (2, ""));
    assert!(nowhere.stderr.contains("/nonexistent/ring.svg"), "{}", nowhere.stderr);
}

#[test]
fn topologies_are_listed() {
    let listed = call(&["topologies"]).stdout;
    let line = listed.lines().find(|line| line.trim_start().starts_with("v100_node ")).expect("listed");
    assert!(line.ends_with("CPU and V100 node of SAND2019-10389, table 3-4"), "{line}");
    let json = json(&call(&["topologies", "--format", "json"]).stdout);
    for entry in json.as_array().expect("a list") {
        let name = entry["name"].as_str().expect("a name");
        assert_eq!(call(&["topology", "check", name]).code, 0, "{name}");
        assert!(entry["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{name}");
    }
}
