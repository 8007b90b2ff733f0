//! The number of units of a row as a knob: `gpu.l2.count=64`. What is wired to the row follows, and so does the map of addresses.

use crate::topologies::CLUSTERS;
use crate::toy_units::TOYS;
use balar_actors::catalogue::UnitDefinition;
use balar_actors::engine::RunOptions;
use balar_actors::kinds::UNITS;
use balar_actors::simulation::{IsaChoice, SimulationError, check_units};
use balar_actors::topology::{
    self, ErrorKind, LoadOptions, Override, PartLibrary, Topology, TopologyErrors, TopologySource,
};
use balar_experiments::{BuiltInWorkloads, SimulationRequest, simulate};
use balar_tests::{built_in_with, try_built_in_with};
use std::collections::{BTreeMap, BTreeSet};

fn load_text(
    text: &str,
    kinds: &[&'static UnitDefinition],
    library: &PartLibrary,
    overrides: &[&str],
) -> Result<Topology, TopologyErrors> {
    let overrides: Vec<Override> = overrides.iter().map(|text| Override((*text).to_owned())).collect();
    let options = LoadOptions { kinds, library, workloads: Some(&BuiltInWorkloads), overrides: &overrides };
    topology::load(&TopologySource::Text { name: "text.ron".to_owned(), text: text.to_owned() }, &options)
}

/// Units of the row `path`.
fn units_of(topology: &Topology, path: &str) -> usize {
    topology.units.iter().filter(|unit| unit.path.rsplit_once('[').is_some_and(|(row, _)| row == path)).count()
}

/// The ports of each unit whose path begins with `row`, of the name `port`.
fn ports_of(topology: &Topology, row: &str, port: &str) -> BTreeSet<usize> {
    let maps = topology.port_maps();
    let members = topology.units.iter().zip(&maps).filter(|(unit, _)| unit.path.starts_with(row));
    members.map(|(_, ports)| ports.count(port)).collect()
}

/// Path, kind and parameters of each unit, without what separates words, and the wires.
fn essence(topology: &Topology) -> (BTreeMap<String, String>, BTreeSet<String>) {
    let plain = |text: String| text.replace(char::is_whitespace, "").replace(",]", "]").replace(",)", ")");
    let without_comments = |ron: String| ron.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
    let unit = |unit: &topology::ExpandedUnit| {
        let row = unit.row.map_or(String::new(), |row| format!(" of {row}"));
        (unit.path.clone(), format!("{}{row} {}", unit.kind.name, plain(without_comments(unit.ron()))))
    };
    let wires = topology
        .wires
        .iter()
        .map(|wire| format!("{} {} {}", topology.end_name(wire.a), topology.end_name(wire.b), wire.latency));
    (topology.units.iter().map(unit).collect(), wires.collect())
}

/// Half and twice the units of each row that has an own number, and how many slices each memory then serves.
#[test]
fn rows_of_every_gpu_can_be_halved_and_doubled() {
    for (node, settings, row, count, memory, slices) in [
        ("v100_node", &["gpu.l2.count=16"][..], "gpu.l2", 16, "gpu.hbm", 4),
        ("v100_node", &["gpu.l2.count=64"], "gpu.l2", 64, "gpu.hbm", 16),
        ("v100_node", &["gpu.sm.count=42"], "gpu.sm", 42, "gpu.hbm", 8),
        ("v100_node", &["gpu.sm.count=168"], "gpu.sm", 168, "gpu.hbm", 8),
        ("v100_node", &["gpu.sm.count=108"], "gpu.sm", 108, "gpu.hbm", 8),
        ("v100_node", &["gpu.hbm.count=2"], "gpu.hbm", 2, "gpu.hbm", 16),
        ("v100_node", &["gpu.hbm.count=8"], "gpu.hbm", 8, "gpu.hbm", 4),
        ("v100_node", &["gpu.hbm.count=8", "gpu.l2.count=64"], "gpu.l2", 64, "gpu.hbm", 8),
        ("t4_node", &["gpu.l2.count=16"], "gpu.l2", 16, "gpu.gddr6", 2),
        ("t4_node", &["gpu.l2.count=64"], "gpu.l2", 64, "gpu.gddr6", 8),
        ("t4_node", &["gpu.sm.count=20"], "gpu.sm", 20, "gpu.gddr6", 4),
        ("t4_node", &["gpu.sm.count=80"], "gpu.sm", 80, "gpu.gddr6", 4),
        ("t4_node", &["gpu.gddr6.count=4"], "gpu.gddr6", 4, "gpu.gddr6", 8),
        ("t4_node", &["gpu.gddr6.count=16"], "gpu.gddr6", 16, "gpu.gddr6", 2),
        ("p100_node", &["gpu.l2.count=4"], "gpu.l2", 4, "gpu.hbm", 1),
        ("p100_node", &["gpu.l2.count=16"], "gpu.l2", 16, "gpu.hbm", 4),
        ("p100_node", &["gpu.sm.count=28"], "gpu.sm", 28, "gpu.hbm", 2),
        ("p100_node", &["gpu.sm.count=112"], "gpu.sm", 112, "gpu.hbm", 2),
        ("p100_node", &["gpu.hbm.count=2"], "gpu.hbm", 2, "gpu.hbm", 4),
        ("p100_node", &["gpu.hbm.count=8"], "gpu.hbm", 8, "gpu.hbm", 1),
        ("k20x_node", &["gpu.l2.count=24"], "gpu.l2", 24, "gpu.gddr5", 2),
        ("k20x_node", &["gpu.l2.count=6", "gpu.gddr5.count=6"], "gpu.gddr5", 6, "gpu.gddr5", 1),
        ("k20x_node", &["gpu.sm.count=7"], "gpu.sm", 7, "gpu.gddr5", 1),
        ("k20x_node", &["gpu.sm.count=28"], "gpu.sm", 28, "gpu.gddr5", 1),
        ("k20x_node", &["gpu.gddr5.count=6"], "gpu.gddr5", 6, "gpu.gddr5", 2),
    ] {
        let topology = built_in_with(node, settings);
        assert_eq!(units_of(&topology, row), count, "{node} {settings:?}");
        assert_eq!(ports_of(&topology, memory, "slice"), BTreeSet::from([slices]), "{node} {settings:?}");
        let (sms, caches) = (units_of(&topology, "gpu.sm"), units_of(&topology, "gpu.l2"));
        let crossbar = [("sm", sms), ("slice", caches)];
        for (port, wired) in crossbar {
            assert_eq!(ports_of(&topology, "gpu.crossbar", port), BTreeSet::from([wired]), "{node} {settings:?}");
        }
        for unit in ["gpu.scheduler", "gpu.gmmu"] {
            assert_eq!(ports_of(&topology, unit, "sm"), BTreeSet::from([sms]), "{node} {settings:?}");
        }
        check_units(&topology).unwrap_or_else(|error| panic!("{node} {settings:?}: {error}"));
    }
}

/// A count gives what a file gives that writes the number, units in the same order.
#[test]
fn a_count_is_what_a_file_would_write() {
    let built_in = PartLibrary::built_in();
    let file = |wanted: &str| {
        let found = built_in.files.iter().find(|(name, _)| *name == wanted);
        found.map_or_else(|| panic!("{wanted} is built in"), |(_, text)| *text)
    };
    let part = file("parts/t4.ron");
    let written =
        part.replace("\"l2[0..32]\"", "\"l2[0..64]\"").replace("gddr6[*].slice[0..4]", "gddr6[*].slice[0..8]");
    let written = written.replace("\"sm[0..40]\"", "\"sm[0..20]\"");
    let library = PartLibrary { files: vec![("parts/t4.ron", &*written.leak())] };
    let expected = load_text(file("t4_node.ron"), UNITS, &library, &[]).expect("the file is right");
    let counted = built_in_with("t4_node", &["gpu.l2.count=64", "gpu.sm.count=20"]);
    assert_eq!(essence(&counted), essence(&expected));
    let paths = |topology: &Topology| topology.units.iter().map(|unit| unit.path.clone()).collect::<Vec<_>>();
    assert_eq!(paths(&counted), paths(&expected));
    assert!(counted.notes.is_empty(), "any number of slices has the map Xor: {:?}", counted.notes);
}

/// The example writes by hand what the count gives.
#[test]
fn the_example_of_64_slices_is_the_count_of_64() {
    let text = include_str!("../../../examples/topologies/v100_64_slices.ron");
    let example = load_text(text, UNITS, &PartLibrary::built_in(), &[]).expect("the example is right");
    assert_eq!(essence(&built_in_with("v100_node", &["gpu.l2.count=64"])), essence(&example));
}

#[test]
fn rows_of_several_gpus_are_set_by_their_paths() {
    let topology = built_in_with("two_v100_node", &["gpu[*].l2.count=64", "gpu[1].sm.count=40"]);
    let counts = |row: &str| [0, 1].map(|gpu| units_of(&topology, &format!("gpu[{gpu}].{row}")));
    assert_eq!((counts("l2"), counts("sm"), counts("hbm")), ([64, 64], [84, 40], [4, 4]));
    check_units(&topology).expect("every unit accepts its parameters");
    let four = ["gpu.count=4", "command_link.count=4", "data_link.count=4", "migration_link.count=4"];
    let (units, wires) = essence(&built_in_with("two_v100_node", &four));
    let (of_file, wires_of_file) = essence(&built_in_with("four_v100_node", &[]));
    assert_eq!((units.len(), wires), (of_file.len(), wires_of_file));
}

fn clusters(text: &str, overrides: &[&str]) -> Result<Topology, TopologyErrors> {
    load_text(text, TOYS, &PartLibrary::empty(), overrides)
}

#[test]
fn the_last_piece_of_a_row_grows() {
    let clocks = |overrides: &[&str]| {
        let topology = clusters(CLUSTERS, overrides).unwrap_or_else(|errors| panic!("{}", errors.render()));
        let members = topology.units.iter().filter(|unit| unit.path.starts_with("cluster[1].cpu["));
        members.map(|unit| unit.parameter("clock").unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(clocks(&["cluster[*].cpu.count=5"]), ["\"1 GHz\"", "\"1 GHz\"", "\"1 GHz\"", "\"2 GHz\"", "\"2 GHz\""]);
    assert_eq!(clocks(&["cluster[*].cpu.count=2"]), ["\"1 GHz\"", "\"1 GHz\""]);
    assert_eq!(clocks(&["cluster[0].cpu.count=2"]).len(), 4);
    // Settings see the row as it is, wherever they stand among the counts.
    let settings = ["cluster[1].cpu[4].clock=3GHz", "cluster[1].cpu.count=7", "cluster[1].cpu.count=5"];
    assert_eq!(clocks(&settings)[3..], ["\"2 GHz\"", "\"3GHz\""]);
}

#[test]
fn a_part_sets_counts_and_what_is_outside_has_its_way() {
    let text = CLUSTERS.replace("set: {", "set: {\"cpu.count\": 6, ");
    for (overrides, expected) in [(&[][..], 6), (&["cluster[*].cpu.count=2"], 2), (&["cluster[*].cpu.count=4"], 4)] {
        let topology = clusters(&text, overrides).unwrap_or_else(|errors| panic!("{}", errors.render()));
        assert_eq!(units_of(&topology, "cluster[1].cpu"), expected, "{overrides:?}");
    }
    // A part that is lengthened where it is included has all its pieces.
    let node = include_str!("../../../examples/topologies/v100_64_slices.ron");
    let longer = load_text(node, UNITS, &PartLibrary::built_in(), &["gpu.l2.count=128"]).expect("it loads");
    assert_eq!((units_of(&longer, "gpu.l2"), ports_of(&longer, "gpu.hbm", "slice")), (128, BTreeSet::from([32])));
}

/// The ports of one row follow the other row, and rows that go together are set together.
#[test]
fn ports_follow_rows() {
    for (overrides, row, port, each) in [
        (&["ram.count=8"][..], "bank", "down", 4),
        (&["ram.count=2"], "bank", "down", 1),
        (&["bank.count=4", "link.count=4", "cluster.count=4"], "bank", "down", 1),
        (&["bank.count=4", "link.count=4", "cluster.count=4", "ram.count=8"], "bank", "down", 2),
    ] {
        let topology = clusters(CLUSTERS, overrides).unwrap_or_else(|errors| panic!("{}", errors.render()));
        assert_eq!(ports_of(&topology, row, port), BTreeSet::from([each]), "{overrides:?}");
    }
}

/// What is shown has the derived map and where it comes from, and loads as itself.
#[test]
fn derived_maps_are_shown_and_noted() {
    let hash_of = |topology: &Topology| {
        let crossbar = topology.units.iter().find(|unit| unit.path == "gpu.crossbar").expect("a crossbar");
        crossbar.parameter("address_hash").unwrap_or_default().to_owned()
    };
    let own = built_in_with("v100_node", &[]);
    // The number that the file has changes nothing.
    let same = built_in_with("v100_node", &["gpu.l2.count=32"]);
    assert_eq!((essence(&same), &same.notes), (essence(&own), &own.notes));
    assert!(own.notes.is_empty());
    for (count, begins, how) in [
        ("64", "Bits([[14, 19, ", "the 5 bits of 32 slices, and below them one of the set number"),
        ("128", "Bits([[16, 19, ", "the 5 bits of 32 slices, and below them 2 of the set number"),
        ("16", "Bits([[11, 13, ", "the highest 4 of the 5 bits of 32 slices"),
        (
            "48",
            "Granules(\"1 KiB\")",
            "the general map Granules(\"1 KiB\"): the bits that are known are those of 32 slices",
        ),
    ] {
        let argument = format!("gpu.l2.count={count}");
        let topology = built_in_with("v100_node", &[&argument]);
        assert!(hash_of(&topology).starts_with(begins), "{count}: {}", hash_of(&topology));
        let note = format!("gpu.crossbar.address_hash follows --set {argument}: {how}; not measured");
        assert_eq!(topology.notes, [note]);
        let shown = topology::show(&topology, None);
        assert!(shown.contains(&format!("  // --set {argument}: {how}; not measured\n")), "{shown}");
        assert!(shown.contains(&format!("  // --set {argument}: follows from gpu.crossbar\n")), "{shown}");
        let again = load_text(&shown, UNITS, &PartLibrary::empty(), &[]).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!((topology::show(&again, None), essence(&again)), (shown, essence(&topology)));
        check_units(&topology).expect("every unit accepts its parameters");
    }
    // What a user gives for the number is left as it is.
    let given = built_in_with("v100_node", &["gpu.l2.count=64", "gpu.crossbar.address_hash=Modulo"]);
    assert_eq!((hash_of(&given).as_str(), given.notes.len()), ("Modulo", 0));
    let wrong = built_in_with("v100_node", &["gpu.l2.count=64", "gpu.crossbar.address_hash=Bits([[10]])"]);
    let Err(SimulationError::Topology(errors)) = check_units(&wrong) else { panic!("one bit numbers two slices") };
    let message = &errors.errors[0].message;
    assert!(message.contains("address_hash: expected 64 = 2^bits"), "{message}");
}

/// Every slice has lines of what small kernels read, and what they compute is right.
#[test]
fn kernels_run_on_another_number_of_slices() {
    for (node, settings, slices) in [
        ("v100_node", &["gpu.l2.count=64"][..], 64),
        ("v100_node", &["gpu.l2.count=16"], 16),
        ("v100_node", &["gpu.l2.count=48", "gpu.sm.count=20"], 48),
        ("v100_node", &["gpu.hbm.count=8"], 32),
        ("t4_node", &["gpu.l2.count=64"], 64),
    ] {
        for (workload, parameters) in [("gemm", ("size", "128")), ("vectoradd", ("elements", "65536"))] {
            let (key, value) = parameters;
            let result = simulate(SimulationRequest {
                topology: built_in_with(node, settings),
                workload: Some((workload.to_owned(), vec![(key.to_owned(), value.to_owned())])),
                ptx: Vec::new(),
                code: IsaChoice::default().into(),
                options: RunOptions::default(),
            });
            let result = result.unwrap_or_else(|error| panic!("{node} {settings:?}: {error}"));
            assert_eq!((result.completed(), result.verified()), (true, Some(true)), "{node} {settings:?} {workload}");
            let rows = result.statistics.rows.iter();
            let reads = rows.filter(|row| row.what == "sectors_read" && row.location.starts_with("gpu.l2["));
            let reads: BTreeMap<&str, u64> = reads.map(|row| (&*row.location, row.value)).collect();
            assert_eq!(reads.len(), slices, "{node} {settings:?} {workload}");
            assert!(reads.values().all(|&sectors| sectors > 0), "{node} {settings:?} {workload}: {reads:?}");
        }
    }
}

/// The only mistake of a built-in topology with these settings: kind, message and way out.
fn mistake(node: &str, settings: &[&str]) -> (ErrorKind, String, String) {
    let errors = try_built_in_with(node, settings).expect_err("a mistake");
    assert_eq!(errors.errors.len(), 1, "{}", errors.render());
    let error = &errors.errors[0];
    (error.kind, error.message.clone(), error.help.clone().unwrap_or_default())
}

#[test]
fn numbers_that_no_row_can_have_are_refused() {
    for value in ["0", "-1", "4294967295", "65537", "1.5", "many"] {
        let (kind, message, _) = mistake("v100_node", &[&format!("gpu.l2.count={value}")]);
        let expected = format!("l2: count: expected a whole number from 1 to 65536, found {value}");
        assert_eq!((kind, message), (ErrorKind::BadCount, expected));
    }
    let (kind, message, _) = mistake("v100_node", &["gpu.sm.count=65536"]);
    let expected = "the node holds more than 65536 units and parts";
    assert_eq!((kind, message.as_str()), (ErrorKind::TooLarge, expected));
}

#[test]
fn what_does_not_come_out_even_names_the_numbers_that_do() {
    for (node, settings, message, help) in [
        (
            "v100_node",
            "gpu.l2.count=33",
            "the 33 ports of \"l2[*].memory\" do not divide evenly among the 4 units of \"hbm[*].slice[0..8]\"",
            "`gpu.l2.count` can be 32 or 36, or `gpu.hbm.count` can be 3 or 11",
        ),
        (
            "v100_node",
            "gpu.hbm.count=3",
            "the 32 ports of \"l2[*].memory\" do not divide evenly among the 3 units of \"hbm[*].slice[0..8]\"",
            "`gpu.l2.count` can be 30 or 33, or `gpu.hbm.count` can be 2 or 4",
        ),
        (
            "v100_node",
            "gpu.hbm.count=64",
            "the 32 ports of \"l2[*].memory\" do not divide evenly among the 64 units of \"hbm[*].slice[0..8]\"",
            "`gpu.l2.count` can be 64, or `gpu.hbm.count` can be 32",
        ),
        (
            "k20x_node",
            "gpu.l2.count=6",
            "the 6 ports of \"l2[*].memory\" do not divide evenly among the 12 units of \"gddr5[*].slice[0]\"",
            "`gpu.l2.count` can be 12, or `gpu.gddr5.count` can be 6",
        ),
    ] {
        let found = mistake(node, &[settings]);
        assert_eq!((found.0, found.1.as_str(), found.2.as_str()), (ErrorKind::RowLengths, message, help), "{settings}");
    }
    let errors = try_built_in_with("two_v100_node", &["gpu.count=3"]).expect_err("links are missing");
    let helps: Vec<&str> = errors.errors.iter().filter_map(|error| error.help.as_deref()).collect();
    let expected =
        ["command_link", "data_link"].map(|row| format!("the rows go together: set `{row}.count=3` as well"));
    for help in expected {
        assert!(helps.contains(&help.as_str()), "{}", errors.render());
    }
}

#[test]
fn paths_that_are_no_number_of_units_name_what_was_meant() {
    for (setting, kind, message, help) in [
        (
            "gpu.l2.cout=64",
            ErrorKind::UnknownParameter,
            "the row `l2` has no `cout`",
            "the nearest name is `count`, the number of its units: `gpu.l2.count`",
        ),
        (
            "gpu.l2[*].count=64",
            ErrorKind::UnknownParameter,
            "`count` is of the whole row `l2`, not of single units",
            "write `gpu.l2.count` without an index",
        ),
        (
            "gpu.crossbar.count=2",
            ErrorKind::UnknownParameter,
            "`crossbar` is a single unit, not a row",
            "only a row has a count, which a file writes as \"crossbar[0..2]\"",
        ),
        (
            "gpu.count=2",
            ErrorKind::UnknownParameter,
            "`gpu` is a single part, not a row",
            "only a row has a count, which a file writes as \"gpu[0..2]\"",
        ),
        ("gpu.l3.count=64", ErrorKind::UnknownUnit, "there is no unit `l3`", "the nearest name is `l2`"),
        // As before: an index is missing.
        ("gpu.l2.ways=8", ErrorKind::BadIndex, "`l2` is a row of 32", "write `l2[*]` or `l2[0]`"),
    ] {
        let found = mistake("v100_node", &[setting]);
        assert_eq!((found.0, found.1.as_str(), found.2.as_str()), (kind, message, help), "{setting}");
    }
}

/// A file that names members by number says itself how another number is wired.
#[test]
fn members_that_are_named_by_number_are_reported() {
    let text =
        CLUSTERS.replace("(\"bank[*].down[0..2]\", \"ram[*].client\"", "(\"bank[*].down[0..2]\", \"ram[0..4].client\"");
    let errors = clusters(&text, &["ram.count=6"]).expect_err("two memories without a wire");
    let error = &errors.errors[0];
    assert_eq!((errors.errors.len(), error.kind), (1, ErrorKind::UnconnectedPort), "{}", errors.render());
    let help = "the file names the 4 members of `ram` by number: it must say how another number is wired";
    assert_eq!(error.help.as_deref(), Some(help));
    let errors = clusters(&text, &["ram.count=2"]).expect_err("two memories are not there");
    let error = &errors.errors[0];
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::BadIndex, "`ram` has 2 members, its last is ram[1]"));
    let help = "the file writes 4 members of `ram`: what names those that are left out by number must change as well";
    assert_eq!(error.help.as_deref(), Some(help));
}
