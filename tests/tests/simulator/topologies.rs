//! Good topologies: rows, parts, overrides, links, the round trip through `topology show`.

use crate::toy_units::TOYS;
use balar_actors::catalogue::SmResources;
use balar_actors::kinds::UNITS;
use balar_actors::simulation::check_units;
use balar_actors::topology::{self, LoadOptions, Override, PartLibrary, Topology, TopologySource, WireEnd};
use balar_experiments::BuiltInWorkloads;
use balar_protocol::{PortId, SimTime, UnitId};
use std::collections::BTreeSet;

/// Two clusters of toy units with a memory behind them, and a workload.
pub const CLUSTERS: &str = r#"
// Two clusters with a memory behind them.
Topology(
    name: "clusters",
    workload: VectorAdd(elements: 1_000),
    units: {
        "cluster[0..2]": Part(
            units: {
                "cpu[0..3]": Processor(clock: "1 GHz"),
                "cpu[3]": Processor(clock: "2 GHz"),
                "hub": Hub(),
            },
            links: [("cpu[*].memory", "hub.up[*]", latency: "10 ns")],
            set: {"cpu[1].width": 3},
        ),
        "link[0..2]": Link(latency: "23841 ps"),
        "bank[0..2]": Hub(),
        "ram[0..4]": Memory(),
    },
    links: [
        ("cluster[*].hub.down", "link[*].up"),
        ("link[*].down", "bank[*].up"),
        ("bank[*].down[0..2]", "ram[*].client", latency: "20 ns"),
    ],
)
"#;

fn load(text: &str, overrides: &[&str]) -> Topology {
    let overrides: Vec<Override> = overrides.iter().map(|text| Override((*text).to_owned())).collect();
    let library = PartLibrary::empty();
    let options = LoadOptions { kinds: TOYS, library: &library, workloads: None, overrides: &overrides };
    let source = TopologySource::Text { name: "text.ron".to_owned(), text: text.to_owned() };
    match topology::load(&source, &options) {
        Ok(topology) => topology,
        Err(errors) => panic!("{}", errors.render()),
    }
}

/// Everything but the places.
fn essence(topology: &Topology) -> Vec<String> {
    let units =
        topology.units.iter().map(|unit| format!("{unit:?} in {:?} {} of {:?}", unit.part, unit.index, unit.row));
    let wires = topology
        .wires
        .iter()
        .map(|wire| format!("{} {} {}", topology.end_name(wire.a), topology.end_name(wire.b), wire.latency));
    let workload = topology.workload.iter().map(|workload| format!("{} {:?}", workload.name, workload.parameters));
    let head = [topology.name.clone(), topology.value_epoch.to_string()].into_iter();
    head.chain(units).chain(wires).chain(workload).collect()
}

#[test]
fn rows_parts_and_links_expand() {
    let topology = load(CLUSTERS, &[]);
    let paths: Vec<&str> = topology.units.iter().map(|unit| unit.path.as_str()).collect();
    assert_eq!(
        paths[..6],
        [
            "cluster[0].cpu[0]",
            "cluster[0].cpu[1]",
            "cluster[0].cpu[2]",
            "cluster[0].cpu[3]",
            "cluster[0].hub",
            "cluster[1].cpu[0]"
        ]
    );
    assert_eq!((topology.units.len(), topology.wires.len()), (18, 16));
    assert_eq!(topology.units[1].ron(), "(clock: \"1 GHz\", width: 3)");
    assert_eq!(topology.units[3].ron(), "(clock: \"2 GHz\", width: 2)");
    assert_eq!(topology.units[3].row, Some(4));
    let is_wire = |line: &String| line.ends_with(" ps") && line.contains('.');
    let wires: Vec<String> = essence(&topology).into_iter().filter(is_wire).collect();
    assert_eq!(wires[7], "cluster[1].cpu[3].memory cluster[1].hub.up[3] 10000 ps");
    // An eighth of a Link's latency, rounded up, is the upper wire's; the lower one has the rest.
    assert_eq!(wires[9], "cluster[1].hub.down[0] link[1].up 2981 ps");
    assert_eq!(wires[10], "link[0].down bank[0].up[0] 20860 ps");
    assert_eq!(wires[14], "bank[1].down[0] ram[2].client 20000 ps");
    assert_eq!(topology.minimum_latency(), Some(SimTime(2_981)));
    assert_eq!(topology.workload.as_ref().map(|workload| workload.parameters[0].1.as_str()), Some("1000"));
}

#[test]
fn ports_and_wires_agree() {
    let topology = load(CLUSTERS, &[]);
    let (maps, wires) = (topology.port_maps(), topology.unit_wires());
    // Following a wire there and back leads to the port it began at, in the same time.
    for (unit, ports) in wires.iter().enumerate() {
        for (port, wire) in ports.iter().enumerate() {
            let back = wires[wire.unit.0 as usize][usize::from(wire.port.0)];
            assert_eq!((back.unit, back.port, back.latency), (UnitId(unit as u32), PortId(port as u16), wire.latency));
        }
    }
    let hub = topology.units.iter().position(|unit| unit.path == "cluster[1].hub").expect("a hub");
    let port = maps[hub].at("up", 2).expect("wired");
    let other = wires[hub][usize::from(port.0)].unit;
    assert_eq!(topology.units[other.0 as usize].path, "cluster[1].cpu[2]");
    assert_eq!((maps[hub].count("up"), maps[hub].count("down")), (4, 1));
}

#[test]
fn overrides_reach_what_they_name() {
    let topology = load(
        CLUSTERS,
        &[
            "cluster[*].cpu[0..2].clock=1800MHz",
            "cluster[1].cpu[3].width=7",
            "ram[2].technology=SRAM",
            "workload.elements=5",
        ],
    );
    let ron = |path: &str| topology.units.iter().find(|unit| unit.path == path).map(|unit| unit.ron()).expect(path);
    assert_eq!(ron("cluster[1].cpu[1]"), "(clock: \"1800MHz\", width: 3)");
    assert_eq!(ron("cluster[0].cpu[2]"), "(clock: \"1 GHz\", width: 2)");
    assert_eq!(ron("cluster[1].cpu[3]"), "(clock: \"2 GHz\", width: 7)");
    assert_eq!(ron("ram[2]"), "(capacity: \"1 MiB\", ways: 4, technology: \"SRAM\")");
    assert_eq!(topology.workload.as_ref().map(|workload| workload.parameters[0].1.as_str()), Some("5"));
}

/// Wires on the chip are so many cycles long; what leaves it, and wires of units that were given a clock one by one, keep their time.
#[test]
fn the_clock_of_a_gpu_sets_the_time_of_its_wires() {
    let latencies = |overrides: &[&str]| {
        let overrides: Vec<_> = overrides.iter().map(|text| Override((*text).to_owned())).collect();
        let library = PartLibrary::built_in();
        let options =
            LoadOptions { kinds: UNITS, library: &library, workloads: Some(&BuiltInWorkloads), overrides: &overrides };
        let topology = topology::load(&TopologySource::from("v100_node"), &options).expect("it loads");
        let of = |a: &str, b: &str| {
            let joins = |wire: &&topology::ExpandedWire| {
                topology.end_name(wire.a).starts_with(a) && topology.end_name(wire.b).starts_with(b)
            };
            topology.wires.iter().find(joins).expect("they are joined").latency.0
        };
        [
            of("gpu.scheduler", "gpu.sm[3]"),
            of("gpu.sm[0].memory", "gpu.crossbar"),
            of("gpu.l2[0].memory", "gpu.hbm"),
            of("unified_memory.gmmu", "gpu.gmmu"),
            of("cpu.memory", "host_memory"),
        ]
    };
    let own = [20_000, 20_000, 20_000, 500_000, 20_000];
    let half = [40_000, 40_000, 40_000, 500_000, 20_000];
    for (overrides, expected) in [
        (&[][..], own),
        (&["gpu.clock=1312 MHz"], own),
        (&["gpu.clock=656 MHz"], half),
        (&["gpu.clock=1 GHz", "gpu.clock=656 MHz"], half),
        (&["gpu.sm[*].clock=656 MHz", "gpu.scheduler.clock=656 MHz"], own),
    ] {
        assert_eq!(latencies(overrides), expected, "{overrides:?}");
    }
}

#[test]
fn the_value_epoch_is_a_key_of_the_topology_and_can_be_overridden() {
    let named = CLUSTERS.replace("workload:", "value_epoch: \"12 ns\",\n    workload:");
    for (text, overrides, picoseconds) in [
        (CLUSTERS, &[][..], 20_000),
        (&named, &[], 12_000),
        (&named, &["value_epoch=10ns"], 10_000),
        (CLUSTERS, &["value_epoch=\"100 ns\""], 100_000),
        (CLUSTERS, &["value_epoch = 1 ps", "value_epoch=2ps"], 2),
    ] {
        assert_eq!(load(text, overrides).value_epoch, SimTime(picoseconds), "{overrides:?}");
    }
    assert!(topology::show(&load(&named, &[]), None).contains("\n    value_epoch: \"12000 ps\",\n"));
}

#[test]
fn what_is_shown_loads_again_as_the_same() {
    for overrides in [&[][..], &["cluster[1].cpu[2].width=9"][..], &["value_epoch=7ns"][..]] {
        let topology = load(CLUSTERS, overrides);
        let workload = topology.workload.as_ref().map(|workload| (workload.name.as_str(), &workload.parameters[..]));
        let shown = topology::show(&topology, workload);
        assert_eq!(essence(&load(&shown, &[])), essence(&topology), "{shown}");
    }
}

#[test]
fn pictures_collapse_rows() {
    let topology = load(CLUSTERS, &[]);
    let dot = topology::dot(&topology);
    assert!(
        dot.contains("\"cluster[*].cpu[*]\" [label=\"cluster[*].cpu[*]\\n8 x Processor\"];")
            && dot.contains("8 x 10 ns"),
        "{dot}"
    );
    let svg = topology::svg(&topology);
    // A link is drawn as one connector, as long as its two wires together.
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>") && svg.contains("23.841 ns"), "{svg}");
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
}

fn load_built_in(name: &str) -> Topology {
    let library = PartLibrary::built_in();
    let options = LoadOptions { kinds: UNITS, library: &library, workloads: Some(&BuiltInWorkloads), overrides: &[] };
    match topology::load(&TopologySource::from(name), &options) {
        Ok(topology) => topology,
        Err(errors) => panic!("{}", errors.render()),
    }
}

/// (name, SMs, SM clock, L2 slices, capacity of a slice, crossbar clock): SAND2019-10389, tables 3-4 and 3-2, and the card as sold.
const NODES: [(&str, usize, &str, usize, &str, &str); 3] = [
    ("v100_node", 84, "1312 MHz", 32, "192 KiB", "1200 MHz"),
    ("p100_node", 56, "1328 MHz", 8, "512 KiB", "1000 MHz"),
    ("v100_sxm2_node", 80, "1380 MHz", 32, "192 KiB", "1380 MHz"),
];

#[test]
fn the_built_in_nodes_are_those_of_the_study() {
    for (name, sms, sm_clock, slices, capacity, crossbar_clock) in NODES {
        let topology = load_built_in(name);
        assert_eq!(topology.name, name);
        let all = |kind: &str, key: &str, value: &str| {
            let units = topology.units.iter().filter(|unit| unit.kind.name == kind);
            let quoted = format!("{value:?}");
            units.inspect(|unit| assert_eq!(unit.parameter(key), Some(quoted.as_str()), "{}", unit.path)).count()
        };
        assert_eq!(all("StreamingMultiprocessor", "clock", sm_clock), sms);
        assert_eq!(all("L2Slice", "capacity", capacity), slices);
        assert_eq!(all("Crossbar", "clock", crossbar_clock), 1);
        assert_eq!(all("Link", "latency", "23840 ps"), 2);
        let gpus = topology.gpus();
        assert_eq!((gpus[0].sm_count() as usize, gpus[0].memory_bytes), (sms, 16384 << 20));
        // CUDA C++ Programming Guide, compute capability 6.0 and 7.0.
        let sm = gpus[0].smallest_sm().expect("a GPU has SMs");
        let SmResources { threads, warps, registers, register_files, shared_bytes, .. } = sm.resources;
        let shared = if gpus[0].compute_capability == (6, 0) { 64 << 10 } else { 96 << 10 };
        assert_eq!((threads, warps, registers, shared_bytes, sm.cta_slots), (2048, 64, 65536, shared, 32));
        // CUDA occupancy calculator: the granularity of the allocation of warps.
        assert_eq!(register_files, balar_protocol::limits::register_files(gpus[0].compute_capability));
        // Wires of units that are busy while kernels run are no shorter than a value epoch; only those towards the host are.
        assert_eq!(topology.minimum_latency(), Some(SimTime(2_980)));
        let host = |end: &WireEnd| topology.units[end.unit.0 as usize].part.is_empty();
        let busy = topology.wires.iter().filter(|wire| !(host(&wire.a) && host(&wire.b)));
        assert!(busy.map(|wire| wire.latency).min() >= Some(topology.value_epoch));
        // Slice i belongs to stack i / (slices / 4).
        let slices_of = topology.wires.iter().filter(|wire| wire.b.port == "slice" && wire.a.port == "memory");
        for (slice, wire) in slices_of.enumerate() {
            let stack = &topology.units[wire.b.unit.0 as usize];
            assert_eq!(
                (stack.index as usize, wire.b.index),
                (slice / (slices / 4), Some((slice % (slices / 4)) as u32))
            );
        }
        check_units(&topology).expect("every unit accepts its parameters");
    }
}

/// NVIDIA's data sheet of the TITAN V. Each stack of memory has eight slices, as on the V100.
#[test]
fn the_titan_v_is_that_of_its_data_sheet() {
    let topology = load_built_in("titanv_node");
    let gpus = topology.gpus();
    let gpu = &gpus[0];
    assert_eq!((gpu.sm_count(), gpu.memory_bytes, gpu.compute_capability), (80, 12 << 30, (7, 0)));
    assert_eq!((gpu.l2_bytes, gpu.memory_bus_bits), (4608 << 10, 3072));
    let clocks: BTreeSet<Option<&str>> = topology
        .units
        .iter()
        .filter(|unit| unit.path.starts_with("gpu.") && unit.kind.name != "HbmStack")
        .map(|unit| unit.parameter("clock"))
        .collect();
    assert_eq!(clocks, BTreeSet::from([Some("\"1455 MHz\"")]));
    check_units(&topology).expect("every unit accepts its parameters");
}

/// NVIDIA's data sheet of the T4; CUDA C++ Programming Guide, compute capability 7.5.
#[test]
fn the_t4_is_that_of_its_data_sheet() {
    let topology = load_built_in("t4_node");
    let gpus = topology.gpus();
    let gpu = &gpus[0];
    assert_eq!((gpu.sm_count(), gpu.memory_bytes, gpu.compute_capability), (40, 16 << 30, (7, 5)));
    let sm = gpu.smallest_sm().expect("a GPU has SMs");
    let SmResources { threads, warps, registers, register_files, shared_bytes, .. } = sm.resources;
    assert_eq!((threads, warps, registers, register_files), (1024, 32, 65536, 4));
    assert_eq!((shared_bytes, sm.cta_slots), (64 << 10, 16));
    let slices = topology.units.iter().filter(|unit| unit.kind.name == "L2Slice");
    assert_eq!(slices.inspect(|slice| assert_eq!(slice.parameter("capacity"), Some("\"128 KiB\""))).count(), 32);
    check_units(&topology).expect("every unit accepts its parameters");
}

#[test]
fn nodes_of_several_gpus_have_links_for_each() {
    for (name, count) in [("two_v100_node", 2), ("four_v100_node", 4)] {
        let topology = load_built_in(name);
        let gpus = topology.gpus();
        assert_eq!(gpus.len(), count);
        assert!(gpus.iter().all(|gpu| (gpu.sm_count(), gpu.memory_bytes) == (84, 16384 << 20)));
        // Port i of the CPU leads through link i to GPU i.
        let end = |from: &str| {
            let wire = topology.wires.iter().find(|wire| topology.end_name(wire.a) == from);
            wire.map(|wire| topology.end_name(wire.b))
        };
        for (gpu, description) in gpus.iter().enumerate() {
            assert_eq!(description.part, format!("gpu[{gpu}]"));
            for (port, link, unit) in
                [("command", "command_link", "scheduler.command"), ("data", "data_link", "copy_engine.data")]
            {
                assert_eq!(end(&format!("cpu.{port}[{gpu}]")), Some(format!("{link}[{gpu}].up")));
                assert_eq!(end(&format!("{link}[{gpu}].down")), Some(format!("gpu[{gpu}].{unit}")));
            }
            // So do those of the driver of unified memory.
            let driver = ["gmmu", "link"].map(|port| end(&format!("unified_memory.{port}[{gpu}]")));
            assert_eq!(driver, [format!("gpu[{gpu}].gmmu.driver"), format!("migration_link[{gpu}].driver")].map(Some));
        }
        check_units(&topology).expect("every unit accepts its parameters");
    }
}

#[test]
fn built_in_nodes_are_found_by_any_of_their_names() {
    for name in ["v100_node", "v100_node.ron", "topologies/v100_node.ron", "./topologies/v100_node.ron"] {
        assert_eq!(load_built_in(name).units.len(), 84 + 32 + 4 + 4 + 4 + 2, "{name}");
    }
}
