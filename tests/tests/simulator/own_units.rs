//! Kinds of units of a user's own that provide the parts of a GPU: nothing knows units by the names of their kinds.

use balar_actors::catalogue::{
    BuildContext, BuildError, Capability, CarveOuts, ParameterSet, PortDefinition, Role, SmCapability, SmResources,
    Surroundings, UnitDefinition, nothing,
};
use balar_actors::engine::{Inbox, NextWake, Outbox, RunOptions, Unit, Window};
use balar_actors::gpu::cta_scheduler;
use balar_actors::kinds::UNITS;
use balar_actors::node::link;
use balar_actors::simulation::{CodeChoice, check_units, describe};
use balar_actors::topology::{self, LoadOptions, PartLibrary, Topology, TopologyErrors, TopologySource};
use balar_experiments::{BuiltInWorkloads, SimulationRequest, simulate};
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Bytes, Frequency, Protocol};
use std::sync::atomic::{AtomicUsize, Ordering};

balar_actors::parameters! {
    /// A vector core: a user's own SM.
    pub struct VectorCoreParameters {
        /// clock of the core
        clock: Frequency = r#""2 GHz""#,
        /// threads
        threads: u32 = "96",
        /// CTAs at once
        contexts: u32 = "5",
    }
}

balar_actors::parameters! {
    /// A memory cube: a user's own device memory, and a cache in front of it.
    pub struct CubeParameters {
        /// data capacity
        capacity: Bytes = r#""3 GiB""#,
        /// of that, what is cached
        cached: Bytes = r#""2 MiB""#,
    }
}

balar_actors::parameters! {
    /// No parameters.
    pub struct NoParameters {}
}

/// Does nothing.
struct Idle;

impl Unit for Idle {
    fn advance(&mut self, _: Window, _: &mut Inbox, _: &mut Outbox) -> NextWake {
        NextWake::OnMessage
    }

    fn statistics(&self, _: &mut StatisticSink) {}

    fn outstanding(&self) -> Option<String> {
        None
    }
}

const fn port(name: &'static str, protocol: Protocol, role: Role, indexed: bool) -> PortDefinition {
    PortDefinition { name, protocol, role, indexed, required: false, meaning: "of a test" }
}

fn build_idle(_: &str, _: &BuildContext) -> Result<Box<dyn Unit>, BuildError> {
    Ok(Box::new(Idle))
}

fn provides_core(text: &str) -> Vec<Capability> {
    let Ok(VectorCoreParameters { clock, threads, contexts }) = ron::from_str(text) else { return Vec::new() };
    // Half a warp of lanes is not used: the threads are fewer than 32 a warp.
    let resources = SmResources { threads, warps: 6, registers: 9000, shared_bytes: 1 << 10, ..SmResources::default() };
    vec![Capability::Sm(SmCapability { resources, cta_slots: contexts, carve_outs: CarveOuts::NONE, clock })]
}

fn provides_cube(text: &str) -> Vec<Capability> {
    let Ok(CubeParameters { capacity, cached }) = ron::from_str(text) else { return Vec::new() };
    let clock = "500 MHz".parse().expect("a frequency");
    vec![Capability::DeviceMemory { capacity, clock, bus_bits: 96 }, Capability::L2Cache { capacity: cached }]
}

const VECTOR_CORE: UnitDefinition = UnitDefinition {
    name: "VectorCore",
    summary: "a user's own SM",
    parameters: VectorCoreParameters::DEFINITIONS,
    check: VectorCoreParameters::check,
    ports: &[port("cta", Protocol::Cta, Role::Server, false)],
    counters: &[],
    provides: provides_core,
    weight: 2,
    build: build_idle,
};

const CUBE: UnitDefinition = UnitDefinition {
    name: "Cube",
    summary: "a user's own memory",
    parameters: CubeParameters::DEFINITIONS,
    check: CubeParameters::check,
    ports: &[],
    counters: &[],
    provides: provides_cube,
    weight: 2,
    build: build_idle,
};

/// Takes CTAs and is no SM.
const SINK: UnitDefinition = UnitDefinition {
    name: "Sink",
    summary: "takes CTAs, and says nothing of what it has room for",
    parameters: NoParameters::DEFINITIONS,
    check: NoParameters::check,
    ports: &[port("cta", Protocol::Cta, Role::Server, false), port("launches", Protocol::Cuda, Role::Client, false)],
    counters: &[],
    provides: nothing,
    weight: 2,
    build: build_idle,
};

fn build_in_vain(_: &str, context: &BuildContext) -> Result<Box<dyn Unit>, BuildError> {
    panic!("{} has no table", context.path)
}

/// Has a mistake of its author's.
const BROKEN: UnitDefinition = UnitDefinition { name: "Broken", build: build_in_vain, ..VECTOR_CORE };

/// Units of the kind `Large` that are there, and the most that there were.
static LARGE: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

/// A unit of which a machine has no room for many.
struct Large;

impl Unit for Large {
    fn advance(&mut self, _: Window, _: &mut Inbox, _: &mut Outbox) -> NextWake {
        NextWake::OnMessage
    }

    fn statistics(&self, _: &mut StatisticSink) {}

    fn outstanding(&self) -> Option<String> {
        None
    }
}

impl Drop for Large {
    fn drop(&mut self) {
        LARGE[0].fetch_sub(1, Ordering::Relaxed);
    }
}

fn build_large(_: &str, _: &BuildContext) -> Result<Box<dyn Unit>, BuildError> {
    let [now, most] = &LARGE;
    most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
    Ok(Box::new(Large))
}

const LARGE_UNIT: UnitDefinition = UnitDefinition { name: "Large", ports: &[], build: build_large, ..SINK };

const KINDS: &[&UnitDefinition] =
    &[&cta_scheduler::DEFINITION, &VECTOR_CORE, &CUBE, &SINK, &BROKEN, &LARGE_UNIT, &link::DEFINITION];

fn load(kinds: &[&'static UnitDefinition], text: &str) -> Topology {
    let library = PartLibrary::built_in();
    let options = LoadOptions { kinds, library: &library, workloads: Some(&BuiltInWorkloads), overrides: &[] };
    let source = TopologySource::Text { name: "own.ron".to_owned(), text: text.to_owned() };
    topology::load(&source, &options).unwrap_or_else(|errors| panic!("{}", errors.render()))
}

/// A GPU of three vector cores, the last of which is a `kind`; the second one is behind a link.
fn own_gpu(kind: &str) -> Topology {
    let text = r#"Topology(
        name: "own",
        units: {
            "host": Sink(),
            "chip": Part(units: {
                "front": CtaScheduler(clock: "1 GHz", compute_capability: (8, 6)),
                "core[0]": VectorCore(),
                "core[1]": VectorCore(clock: "1 GHz", contexts: 4),
                "core[2]": KIND(),
                "wire": Link(latency: "40 ns", bandwidth: "10 GB/s"),
                "cube[0..2]": Cube(),
            }, links: [
                ("front.sm[0]", "core[0].cta", latency: "10 ns"),
                ("front.sm[1]", "wire.up"), ("wire.down", "core[1].cta"),
                ("front.sm[2]", "core[2].cta", latency: "10 ns"),
            ]),
        },
        links: [("host.launches", "chip.front.command", latency: "10 ns")],
    )"#;
    load(KINDS, &text.replace("KIND", kind))
}

fn build(topology: &Topology) -> Result<(), TopologyErrors> {
    topology::build(topology, &Surroundings::default()).map(drop)
}

#[test]
fn a_check_keeps_no_unit_that_it_has_built() {
    let topology = load(KINDS, r#"Topology(name: "wide", units: { "large[0..100]": Large() }, links: [])"#);
    check_units(&topology).expect("nothing is wrong with it");
    let [now, most] = LARGE.each_ref().map(|count| count.load(Ordering::Relaxed));
    assert_eq!((now, most), (0, 1));
}

#[test]
fn a_users_own_units_make_a_gpu() {
    let topology = own_gpu("VectorCore");
    let gpus = topology.gpus();
    assert_eq!(gpus.len(), 1);
    let gpu = &gpus[0];
    assert_eq!((gpu.part.as_str(), gpu.compute_capability, gpu.sm_count()), ("chip", (8, 6), 3));
    assert_eq!((gpu.memory_bytes, gpu.memory_bus_bits, gpu.l2_bytes), (6 << 30, 192, 4 << 20));
    let device = describe(&topology).devices.remove(0);
    assert_eq!((device.compute_capability, device.sm_count, device.clock_khz), ((8, 6), 3, 1_000_000));
    assert_eq!((device.sm_threads, device.sm_warps, device.sm_ctas, device.sm_registers), (96, 6, 4, 9000));
    assert_eq!((device.memory_bytes, device.l2_bytes), (6 << 30, 4 << 20));
    assert_eq!((device.memory_clock_khz, device.memory_bus_bits), (500_000, 192));
    build(&topology).expect("the scheduler sees each core, one of them through a link");
}

#[test]
fn a_port_that_leads_to_no_sm_is_named() {
    let errors = build(&own_gpu("Sink")).expect_err("a sink has room for nothing");
    let text = errors.render();
    assert!(text.contains("its port sm[2] leads to chip.core[2] (Sink), which declares no SM resources"), "{text}");
}

#[test]
fn a_unit_that_panics_while_it_is_built_is_named() {
    let errors = build(&own_gpu("Broken")).expect_err("it panics");
    let text = errors.render();
    assert!(
        text.contains("Broken chip.core[2]: it panicked while it was built: chip.core[2] has no table ("),
        "{text}"
    );
    assert!(text.contains("own.ron starting at line"), "{text}");
}

#[test]
fn ctas_reach_their_sms_through_links() {
    let text = r#"Topology(
        name: "linked",
        workload: VectorAdd(elements: 20000),
        units: {
            "cpu": HostCpu(clock: "2660 MHz"),
            "host_memory": HostMemory(clock: "1333 MHz", capacity: "1 GiB", model: Simple(latency: "90 ns", bandwidth: "85.3 GB/s")),
            "command_link": Link(latency: "100 ns", bandwidth: "15.75 GB/s"),
            "data_link": Link(latency: "100 ns", bandwidth: "15.75 GB/s"),
            "gpu": Part("parts/v100.ron",
                without: [("scheduler.sm[*]", "sm[*].cta")],
                units: {"cta_link[0..84]": Link(latency: "60 ns", bandwidth: "100 GB/s")},
                links: [("scheduler.sm[*]", "cta_link[*].up"), ("cta_link[*].down", "sm[*].cta")],
                set: {"sm[*].ctas": 3},
            ),
        },
        links: [
            ("cpu.command", "command_link.up"), ("command_link.down", "gpu.scheduler.command"),
            ("cpu.data", "data_link.up"), ("data_link.down", "gpu.copy_engine.data"),
            ("cpu.memory", "host_memory.client[0]", latency: "20 ns"),
        ],
    )"#;
    let (topology, options) = (load(UNITS, text), RunOptions::default());
    let request = SimulationRequest { topology, workload: None, ptx: Vec::new(), code: CodeChoice::default(), options };
    let result = simulate(request).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((result.completed(), result.verified()), (true, Some(true)), "{:?}", result.outcome);
}
