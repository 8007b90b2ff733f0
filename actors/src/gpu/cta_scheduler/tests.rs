//! Drives a scheduler with two SMs whose ends the test plays.

use super::*;
use crate::catalogue::{CarveOuts, SmResources};
use crate::engine::Bench;
use crate::test_support::{Arrival, Numbers, check_cuts_and_states};
use balar_protocol::cta::FunctionalEnd;
use balar_protocol::cuda::LaunchId;
use balar_protocol::{Detail, ProcessId};

mod carve_outs;
mod clusters;
mod device_launches;

const COMMAND: PortId = PortId(0);
const WINDOW: SimTime = SimTime(15_000);

/// An SM of a V100.
fn sm() -> SmCapability {
    let clock = "1 GHz".parse().expect("a frequency");
    SmCapability { resources: SmResources::VOLTA, cta_slots: 32, carve_outs: CarveOuts::NONE, clock }
}

/// A scheduler at 1 GHz with `sms` SMs of a V100 at ports 1.., wires of 20 ns.
fn scheduler(sms: u16, extra: &str) -> (CtaScheduler, Bench) {
    scheduler_of(&vec![sm(); usize::from(sms)], extra)
}

/// The same with these SMs.
fn scheduler_of(sms: &[SmCapability], extra: &str) -> (CtaScheduler, Bench) {
    let text = format!(r#"(clock: "1 GHz", launch_latency: 100, completion_latency: 50{extra})"#);
    let parameters = CtaSchedulerParameters::from_ron(&text).expect("parameters are complete");
    let bench = Bench::new(&vec![SimTime(20_000); sms.len() + 1]);
    let sms = (1..).map(PortId).zip(sms.iter().copied());
    (CtaScheduler::new(&parameters, "gpu", COMMAND, sms), bench)
}

fn launch(id: u32, stream: u32, ctas: u32, threads: u32) -> Arc<KernelLaunch> {
    Arc::new(KernelLaunch {
        context: ContextId::first(0),
        id: LaunchId(id),
        code: Default::default(),
        name: format!("kernel{id}").into(),
        grid: [ctas, 1, 1],
        cluster: None,
        block: [threads, 1, 1],
        dynamic_shared_bytes: 0,
        shared_bytes: 0,
        preferred_carve_out: None,
        registers_per_thread: 16,
        local_bytes: 0,
        parameters: Arc::new([]),
        stream,
        queue: stream,
        priority: 0,
        grid_workspace: 0,
        l2_policy: None,
        detail: Default::default(),
        is_profiled: false,
        range: None,
        origin: None,
        device_kernels: Arc::new([]),
    })
}

fn command(launch: &Arc<KernelLaunch>) -> Payload {
    Payload::Cuda(CudaMessage::Launch(launch.clone()))
}

fn completion(launch: u32, slot: u16, fault: Option<KernelFault>) -> Payload {
    let counters = CtaCounters { warps_launched: 2, ..CtaCounters::default() };
    Payload::Cta(CtaMessage::Completed(Box::new(CtaCompletion {
        launch: LaunchId(launch),
        slot,
        counters,
        fault,
        stores_under_way: false,
    })))
}

/// The end of a CTA whose stores are under way.
fn completion_before_stores(launch: u32, slot: u16) -> Payload {
    let Payload::Cta(CtaMessage::Completed(mut end)) = completion(launch, slot, None) else { unreachable!() };
    end.stores_under_way = true;
    Payload::Cta(CtaMessage::Completed(end))
}

fn fault(launch: u32) -> KernelFault {
    KernelFault {
        cause: FaultCause::Trap,
        kernel: "kernel".into(),
        launch: LaunchId(launch),
        cta: [3, 0, 0],
        thread: [0; 3],
        instruction: "line 7".to_owned(),
        origin: None,
    }
}

/// The messages that were sent, in short: (arrival in ps, port, text).
fn summary(sent: &[(SimTime, PortId, Payload)]) -> Vec<(u64, u16, String)> {
    let text = |payload: &Payload| match payload {
        Payload::Cta(CtaMessage::Launch(cta)) => format!("{} cta {} slot {}", cta.launch.name, cta.cta[0], cta.slot),
        Payload::Cta(CtaMessage::Abort(launch)) => format!("abort {}", launch.0),
        Payload::Cuda(CudaMessage::LaunchCompleted { launch, fault: None, .. }) => format!("done {}", launch.0),
        Payload::Cuda(CudaMessage::LaunchCompleted { launch, fault: Some(fault), .. }) => {
            format!("failed {}: launch {}", launch.0, fault.launch.0)
        }
        other => format!("{other:?}"),
    };
    sent.iter().map(|(time, port, payload)| (time.0, port.0, text(payload))).collect()
}

#[test]
fn a_grid_spreads_over_the_sms_one_cta_a_cycle() {
    let (mut unit, mut bench) = scheduler(2, "");
    bench.deliver(SimTime(500), COMMAND, command(&launch(1, 0, 3, 64)));
    let sent = bench.run(&mut unit, WINDOW, SimTime(300_000));
    // Taken at 0.5 ns, that is in cycle 1; 100 cycles later the first CTA; the wire takes 20 ns.
    let expected = [
        (121_000, 1, "kernel1 cta 0 slot 0".to_owned()),
        (122_000, 2, "kernel1 cta 1 slot 0".to_owned()),
        (123_000, 1, "kernel1 cta 2 slot 1".to_owned()),
    ];
    assert_eq!(summary(&sent), expected);
    for (time, port, slot) in [(400_000, 1, 0), (410_000, 2, 0), (420_000, 1, 1)] {
        bench.deliver(SimTime(time), PortId(port), completion(1, slot, None));
    }
    let sent = bench.run(&mut unit, WINDOW, SimTime(600_000));
    assert_eq!(summary(&sent), [(490_000, 0, "done 1".to_owned())]);
    let mut sink = StatisticSink::default();
    unit.statistics(&mut sink);
    unit.records(&mut sink);
    let record = sink.kernels.first().expect("a kernel has run");
    assert_eq!((record.start_ps, record.end_ps, record.cycles, record.completed), (500, 470_000, 469, true));
    assert_eq!((&*record.gpu, record.counters.ctas.warps_launched), ("gpu", 6));
    assert_eq!(unit.state.counters.cycles_active, 469);
    assert_eq!(unit.outstanding(), None);
}

/// A kernel of two CTAs, each on its SM. The store of a CTA can be reported before the end of the CTA: an SM knows the end before the
/// cycle in which it sends it.
#[test]
fn a_kernel_ends_with_its_last_store_in_whatever_order_the_messages_come() {
    let stored = || Payload::Cta(CtaMessage::Stored(LaunchId(1)));
    let ends = |slot| completion_before_stores(1, slot);
    let orders: [[(u16, Payload); 4]; 4] = [
        [(1, ends(0)), (1, stored()), (2, ends(0)), (2, stored())],
        [(1, ends(0)), (2, ends(0)), (1, stored()), (2, stored())],
        [(1, stored()), (1, ends(0)), (2, stored()), (2, ends(0))],
        [(1, stored()), (2, stored()), (1, ends(0)), (2, ends(0))],
    ];
    for order in orders {
        let (mut unit, mut bench) = scheduler(2, "");
        bench.deliver(SimTime(500), COMMAND, command(&launch(1, 0, 2, 64)));
        assert_eq!(bench.run(&mut unit, WINDOW, SimTime(300_000)).len(), 2);
        for (at, (port, message)) in order.into_iter().enumerate() {
            bench.deliver(SimTime(400_000 + 10_000 * at as u64), PortId(port), message);
        }
        let sent = bench.run(&mut unit, WINDOW, SimTime(600_000));
        // The last comes at 430 ns; 50 cycles for the completion, 20 ns for the wire.
        assert_eq!(summary(&sent), [(500_000, 0, "done 1".to_owned())]);
        assert_eq!(unit.outstanding(), None);
    }
}

/// CTAs of launch 2, which is not timed: how many go to which port from which one on.
fn functional(sent: &[(SimTime, PortId, Payload)]) -> Vec<(u64, u16, u64, u32)> {
    let ctas = |(time, port, payload): &(SimTime, PortId, Payload)| match payload {
        Payload::Cta(CtaMessage::Functional(ctas)) => Some((time.0, port.0, ctas.first, ctas.count)),
        _ => None,
    };
    sent.iter().filter_map(ctas).collect()
}

fn functional_end(count: u32, until: u64) -> Payload {
    let counters = CtaCounters { warps_launched: count.into(), ..CtaCounters::default() };
    let end = FunctionalEnd { launch: LaunchId(2), count, counters, fault: None, until: SimTime(until) };
    Payload::Cta(CtaMessage::FunctionalEnd(Box::new(end)))
}

#[test]
fn kernels_without_timing_take_no_room_and_end_by_their_own_clock() {
    let (mut unit, mut bench) = scheduler(2, "");
    // Four CTAs of 1024 threads fill both SMs.
    bench.deliver(SimTime(0), COMMAND, command(&launch(1, 0, 4, 1024)));
    let untimed = KernelLaunch { detail: Detail::Functional, ..(*launch(2, 1, 70, 1024)).clone() };
    bench.deliver(SimTime(0), COMMAND, command(&Arc::new(untimed)));
    let sent = bench.run(&mut unit, WINDOW, SimTime(300_000));
    // As many for each SM as it has slots, at once; the wire takes 20 ns.
    assert_eq!(functional(&sent), [(20_000, 1, 0, 32), (20_000, 2, 32, 32)]);
    assert_eq!(summary(&sent).iter().filter(|(_, _, text)| text.starts_with("kernel1 cta")).count(), 4);
    // Half of an SM's have ended: it gets the six that are left.
    bench.deliver(SimTime(310_000), PortId(1), functional_end(10, 320_000));
    assert_eq!(functional(&bench.run(&mut unit, WINDOW, SimTime(400_000))), []);
    bench.deliver(SimTime(400_000), PortId(1), functional_end(6, 410_000));
    let sent = bench.run(&mut unit, WINDOW, SimTime(500_000));
    assert_eq!(functional(&sent), [(420_000, 1, 64, 3), (420_000, 1, 67, 3)]);
    bench.deliver(SimTime(500_000), PortId(2), functional_end(32, 900_000));
    bench.deliver(SimTime(510_000), PortId(1), functional_end(22, 600_000));
    let sent = bench.run(&mut unit, WINDOW, SimTime(1_000_000));
    // All have ended at 510 ns, and by the clock of the slowest SM at 900.
    assert_eq!(summary(&sent), [(920_000, 0, "done 2".to_owned())]);
    let mut sink = StatisticSink::default();
    unit.statistics(&mut sink);
    unit.records(&mut sink);
    let record = sink.kernels.first().expect("a kernel has run");
    assert_eq!((record.launch, record.detail, record.cycles), (LaunchId(2), Detail::Functional, 0));
    assert_eq!((record.counters.ctas.warps_launched, record.completed), (70, true));
    assert_eq!(unit.state.counters.cycles_active, 0, "that of the kernel that is timed goes on");
}

#[test]
fn a_full_sm_gets_its_next_cta_when_a_slot_is_free() {
    // 1024 threads a CTA: two fit on an SM of 2048.
    let (mut unit, mut bench) = scheduler(1, "");
    bench.deliver(SimTime(0), COMMAND, command(&launch(1, 0, 3, 1024)));
    let sent = bench.run(&mut unit, WINDOW, SimTime(300_000));
    assert_eq!(sent.len(), 2);
    assert!(unit.outstanding().is_some_and(|text| text.contains("2 CTAs running, 1 not placed")));
    bench.deliver(SimTime(400_300), PortId(1), completion(1, 0, None));
    let sent = bench.run(&mut unit, WINDOW, SimTime(600_000));
    assert_eq!(summary(&sent), [(421_000, 1, "kernel1 cta 2 slot 0".to_owned())]);
}

#[test]
fn registers_and_shared_memory_are_allocated_in_units() {
    let mut wanted = (*launch(1, 0, 1, 33)).clone();
    wanted.registers_per_thread = 33;
    wanted.shared_bytes = 1;
    // Two warps of 33 x 32 = 1056 registers, each rounded up to 1280.
    let expected = CtaNeeds { threads: 33, warps: 2, registers_of_warp: 1280, shared_bytes: 1 };
    assert_eq!(CtaNeeds::of_cta(&wanted), expected);
    assert_eq!(sm().resources.allocated_shared(&expected), 256);
}

#[test]
fn kernels_of_one_stream_follow_and_those_of_two_streams_overlap() {
    let (mut unit, mut bench) = scheduler(1, "");
    for (id, stream) in [(1, 1), (2, 1), (3, 2)] {
        bench.deliver(SimTime(0), COMMAND, command(&launch(id, stream, 1, 32)));
    }
    let sent = bench.run(&mut unit, WINDOW, SimTime(300_000));
    let started: Vec<_> = summary(&sent).into_iter().map(|(_, _, text)| text).collect();
    assert_eq!(started, ["kernel1 cta 0 slot 0", "kernel3 cta 0 slot 1"]);
    bench.deliver(SimTime(400_000), PortId(1), completion(1, 0, None));
    let sent = bench.run(&mut unit, WINDOW, SimTime(700_000));
    // The first kernel ends 50 cycles after its CTA; the second one's CTA is placed 100 cycles later.
    assert_eq!(summary(&sent), [(470_000, 0, "done 1".to_owned()), (570_000, 1, "kernel2 cta 0 slot 0".to_owned())]);
    assert_eq!(unit.state.counters.resident_kernels_maximum, 2);
}

#[test]
fn ctas_of_a_younger_kernel_fill_what_the_older_one_leaves() {
    // The older kernel's CTAs have 1024 threads: one is running and none fits beside 1056 other threads.
    let (mut unit, mut bench) = scheduler(1, ", maximum_resident_kernels: 2");
    bench.deliver(SimTime(0), COMMAND, command(&launch(1, 1, 1, 1024)));
    bench.deliver(SimTime(1), COMMAND, command(&launch(2, 2, 1, 992)));
    bench.deliver(SimTime(2), COMMAND, command(&launch(3, 3, 1, 32)));
    let sent = bench.run(&mut unit, WINDOW, SimTime(300_000));
    assert_eq!(sent.len(), 2, "the third kernel waits for residency");
    bench.deliver(SimTime(310_000), PortId(1), completion(2, 1, None));
    let sent = bench.run(&mut unit, WINDOW, SimTime(700_000));
    assert_eq!(summary(&sent)[1].2, "kernel3 cta 0 slot 1");
}

#[test]
fn a_fault_ends_the_context() {
    let (mut unit, mut bench) = scheduler(2, "");
    bench.deliver(SimTime(0), COMMAND, command(&launch(1, 1, 2, 32)));
    bench.deliver(SimTime(0), COMMAND, command(&launch(2, 1, 2, 32)));
    assert_eq!(bench.run(&mut unit, WINDOW, SimTime(300_000)).len(), 2);
    bench.deliver(SimTime(400_000), PortId(2), completion(1, 0, Some(fault(1))));
    bench.deliver(SimTime(410_000), PortId(1), completion(1, 0, None));
    bench.deliver(SimTime(420_000), COMMAND, command(&launch(3, 2, 1, 32)));
    let sent = bench.run(&mut unit, WINDOW, SimTime(600_000));
    let expected = [
        (420_000, 1, "abort 1".to_owned()),
        (420_000, 2, "abort 1".to_owned()),
        (420_000, 0, "failed 1: launch 1".to_owned()),
        (420_000, 0, "failed 2: launch 1".to_owned()),
        (440_000, 0, "failed 3: launch 1".to_owned()),
    ];
    assert_eq!(summary(&sent), expected);
    let mut sink = StatisticSink::default();
    unit.statistics(&mut sink);
    unit.records(&mut sink);
    assert_eq!(sink.kernels.len(), 1);
    assert!(sink.kernels.iter().all(|kernel| !kernel.completed));
    assert_eq!((unit.state.counters.kernels_failed, unit.state.counters.kernels_completed), (3, 0));
    assert_eq!(unit.outstanding(), None);
}

#[test]
fn a_cta_that_no_sm_can_hold_fails_at_once() {
    let mut small = sm();
    small.resources.shared_bytes = 64 << 10;
    let (mut unit, mut bench) = scheduler_of(&[small], "");
    let mut wanted = (*launch(1, 0, 1, 32)).clone();
    wanted.shared_bytes = 80 << 10;
    bench.deliver(SimTime(0), COMMAND, command(&Arc::new(wanted)));
    let sent = bench.run(&mut unit, WINDOW, SimTime(300_000));
    assert_eq!(summary(&sent), [(20_000, 0, "failed 1: launch 1".to_owned())]);
}

#[test]
fn a_grid_of_two_billion_ctas_is_not_materialised() {
    let (mut unit, mut bench) = scheduler(1, "");
    let mut wanted = (*launch(1, 0, 1, 32)).clone();
    wanted.grid = [65_536, 32_768, 1];
    bench.deliver(SimTime(0), COMMAND, command(&Arc::new(wanted)));
    assert_eq!(bench.run(&mut unit, WINDOW, SimTime(300_000)).len(), 32, "the SM's slots are full");
    assert!(unit.outstanding().is_some_and(|text| text.contains("2147483616 not placed")));
}

#[test]
fn each_sm_gets_what_it_has_room_for() {
    // Ports 1 to 3: 64 warps, 8 warps, and 2 CTA slots. Eight CTAs of 8 warps fill the first, one the second and two the third.
    let (mut narrow, mut few) = (sm(), sm());
    (narrow.resources.warps, narrow.resources.threads) = (8, 256);
    few.cta_slots = 2;
    let (mut unit, mut bench) = scheduler_of(&[sm(), narrow, few], "");
    bench.deliver(SimTime(0), COMMAND, command(&launch(1, 0, 20, 256)));
    let sent = bench.run(&mut unit, WINDOW, SimTime(300_000));
    let placed = |port| sent.iter().filter(|(_, at, _)| *at == PortId(port)).count();
    assert_eq!([placed(1), placed(2), placed(3)], [8, 1, 2]);
    assert!(unit.outstanding().is_some_and(|text| text.contains("11 CTAs running, 9 not placed")));
}

#[test]
fn a_cta_that_only_some_sms_can_hold_runs_on_those() {
    let mut narrow = sm();
    (narrow.resources.warps, narrow.resources.threads) = (8, 256);
    let (mut unit, mut bench) = scheduler_of(&[narrow, sm()], "");
    bench.deliver(SimTime(0), COMMAND, command(&launch(1, 0, 2, 512)));
    let sent = bench.run(&mut unit, WINDOW, SimTime(300_000));
    assert_eq!(sent.iter().map(|(_, port, _)| port.0).collect::<Vec<_>>(), [2, 2]);
}

/// Builds a scheduler of two ports, where the second leads to `second`; gives its error.
fn refusal(second: Option<Peer>, given: &[(&str, &str)]) -> Option<String> {
    use crate::catalogue::PortMap;
    let of_sm = |path: &str, capability| Peer {
        path: path.to_owned(),
        kind: "StreamingMultiprocessor",
        provides: vec![Capability::Sm(capability)],
    };
    let ports = PortMap::new([("command".to_owned(), 0), ("sm".to_owned(), 0), ("sm".to_owned(), 1)]);
    let peers = [Some(Peer::default()), Some(of_sm("gpu.sm[0]", sm())), second];
    let ports = ports.with_peers(peers.into_iter().flatten().collect());
    let surroundings = &crate::catalogue::Surroundings::default();
    let (path, part, index, row_length, unit) = ("gpu.scheduler", "gpu", 0, 1, 0);
    let context = BuildContext { path, part, index, row_length, ports: &ports, unit, surroundings };
    let value = |name: &str, default: Option<&'static str>| {
        let given = given.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        given.or(default).unwrap_or(r#""1 GHz""#).to_owned()
    };
    let fields =
        CtaSchedulerParameters::DEFINITIONS.iter().map(|key| format!("{}: {}", key.name, value(key.name, key.default)));
    let text = format!("({})", fields.collect::<Vec<_>>().join(", "));
    (DEFINITION.build)(&text, &context).err().map(|error| error.to_string())
}

#[test]
fn parameters_and_sms_are_checked() {
    let with_slots = |cta_slots| Peer {
        path: "gpu.sm[1]".to_owned(),
        kind: "MySm",
        provides: vec![Capability::Sm(SmCapability { cta_slots, ..sm() })],
    };
    assert_eq!(refusal(Some(with_slots(64)), &[]), None);
    let slots =
        |count| format!("sm: its port sm[1] leads to gpu.sm[1] (MySm), which has {count} CTA slots, expected 1 to 64");
    assert_eq!(refusal(Some(with_slots(65)), &[]), Some(slots(65)));
    assert_eq!(refusal(Some(with_slots(0)), &[]), Some(slots(0)));
    for register_files in [0, 9] {
        let resources = SmResources { register_files, ..SmResources::VOLTA };
        let provides = vec![Capability::Sm(SmCapability { resources, ..sm() })];
        let text = format!("has {register_files} register files, expected 1 to 8");
        let refused = refusal(Some(Peer { provides, ..with_slots(32) }), &[]);
        assert!(refused.as_ref().is_some_and(|refused| refused.ends_with(&text)), "{refused:?}");
    }
    let hub = Peer { path: "gpu.hub".to_owned(), kind: "Hub", provides: Vec::new() };
    let text = "sm: its port sm[1] leads to gpu.hub (Hub), which declares no SM resources";
    assert_eq!(refusal(Some(hub), &[]).as_deref(), Some(text));
    let text = "ctas_per_cycle: expected 1 to 1024, found 0";
    assert_eq!(refusal(Some(with_slots(32)), &[("ctas_per_cycle", "0")]).as_deref(), Some(text));
}

fn cooperative(id: u32, stream: u32, ctas: u32, threads: u32) -> Arc<KernelLaunch> {
    Arc::new(KernelLaunch { grid_workspace: 0x7000_0000_0000, ..(*launch(id, stream, ctas, threads)).clone() })
}

#[test]
fn the_blocks_of_a_cooperative_kernel_wait_until_all_older_ones_are_placed() {
    // Each SM holds two CTAs of 1024 threads. The first cooperative kernel fills one SM and a half; the second must not take the half
    // that is left while a CTA of the kernel between them waits, or it would hold that CTA's room and wait for room itself.
    let (mut unit, mut bench) = scheduler(2, "");
    bench.deliver(SimTime(0), COMMAND, command(&cooperative(1, 1, 3, 1024)));
    bench.deliver(SimTime(1), COMMAND, command(&launch(2, 2, 2, 1024)));
    bench.deliver(SimTime(2), COMMAND, command(&cooperative(3, 3, 4, 512)));
    let names = |sent: &[(SimTime, PortId, Payload)]| -> Vec<String> {
        let words = summary(sent).into_iter().map(|(_, _, text)| text.split(" slot").next().unwrap_or("").to_owned());
        words.filter(|text| text.contains(" cta ")).collect()
    };
    let sent = bench.run(&mut unit, WINDOW, SimTime(300_000));
    assert_eq!(names(&sent), ["kernel1 cta 0", "kernel1 cta 1", "kernel1 cta 2", "kernel2 cta 0"]);
    // One CTA of the ordinary kernel ends: its other one comes, and the cooperative kernel still waits.
    bench.deliver(SimTime(400_000), PortId(2), completion(2, 1, None));
    let sent = bench.run(&mut unit, WINDOW, SimTime(500_000));
    assert_eq!(names(&sent), ["kernel2 cta 1"]);
    bench.deliver(SimTime(600_000), PortId(2), completion(2, 1, None));
    for (port, slot) in [(1, 0), (2, 0), (1, 1)] {
        bench.deliver(SimTime(700_000), PortId(port), completion(1, slot, None));
    }
    let sent = bench.run(&mut unit, WINDOW, SimTime(1_000_000));
    assert_eq!(names(&sent), ["kernel3 cta 0", "kernel3 cta 1", "kernel3 cta 2", "kernel3 cta 3"]);
}

#[test]
fn kernels_of_higher_priority_start_first_and_are_placed_first() {
    let with_priority = |id, priority| Arc::new(KernelLaunch { priority, ..(*launch(id, id, 2, 1024)).clone() });
    for (extra, expected) in [
        // One kernel at a time: the third one goes before the second.
        (", maximum_resident_kernels: 1", ["kernel1", "kernel3", "kernel2"]),
        // Together: all are resident before the first CTA is placed.
        ("", ["kernel3", "kernel1", "kernel2"]),
    ] {
        let (mut unit, mut bench) = scheduler(1, extra);
        for (id, priority) in [(1, 0), (2, 0), (3, -1)] {
            bench.deliver(SimTime(0), COMMAND, command(&with_priority(id, priority)));
        }
        let mut started: Vec<String> = Vec::new();
        let mut end = SimTime(0);
        while end < SimTime(4_000_000) {
            end += WINDOW;
            for (time, port, payload) in bench.run(&mut unit, WINDOW, end) {
                let Payload::Cta(CtaMessage::Launch(cta)) = payload else { continue };
                if !started.contains(&cta.launch.name.to_string()) {
                    started.push(cta.launch.name.to_string());
                }
                let ended = completion(cta.launch.id.0, cta.slot, None);
                bench.deliver(time + SimTime(100_000), port, ended);
            }
        }
        assert_eq!(started, expected);
        assert_eq!(unit.state.counters.kernels_completed, 3);
    }
}

#[test]
fn a_reset_forgets_the_failure() {
    let (mut unit, mut bench) = scheduler(1, "");
    bench.deliver(SimTime(0), COMMAND, command(&launch(1, 1, 1, 32)));
    bench.run(&mut unit, WINDOW, SimTime(300_000));
    bench.deliver(SimTime(310_000), PortId(1), completion(1, 0, Some(fault(1))));
    bench.deliver(SimTime(400_000), COMMAND, command(&launch(2, 1, 1, 32)));
    bench.run(&mut unit, WINDOW, SimTime(500_000));
    assert_eq!(unit.state.counters.kernels_failed, 2, "the second is refused");
    bench.deliver(SimTime(600_000), COMMAND, Payload::Cuda(CudaMessage::Reset(ContextId::first(0))));
    bench.deliver(SimTime(700_000), COMMAND, command(&launch(3, 1, 1, 32)));
    let sent = bench.run(&mut unit, WINDOW, SimTime(1_000_000));
    assert_eq!(summary(&sent).last().map(|(_, _, text)| text.as_str()), Some("kernel3 cta 0 slot 0"));
}

/// A launch of another process.
fn of_process(process: u32, launch: Arc<KernelLaunch>) -> Arc<KernelLaunch> {
    Arc::new(KernelLaunch { context: ContextId::new(ProcessId(process), 0), ..(*launch).clone() })
}

/// Two processes on an SM that holds two CTAs of 1024 threads: four CTAs of the first, one of the second, which comes 0.1 us later. Gives
/// the messages that were sent, and how often the processes have changed.
fn two_processes(extra: &str) -> (Vec<(u64, String)>, u64) {
    let (mut unit, mut bench) = scheduler(1, extra);
    bench.deliver(SimTime(0), COMMAND, command(&launch(1, 1, 4, 1024)));
    bench.deliver(SimTime(100_000), COMMAND, command(&of_process(1, launch(2, 1, 1, 1024))));
    let mut seen = Vec::new();
    let mut end = SimTime(0);
    // When the CTAs end, in the order in which they were placed.
    let mut ends = [900, 1_100, 1_500, 2_300, 3_100].map(|at| SimTime(at * 1000)).into_iter();
    while end < SimTime(4_000_000) {
        end += WINDOW;
        let sent = bench.run(&mut unit, WINDOW, end);
        for (_, port, payload) in &sent {
            if let Payload::Cta(CtaMessage::Launch(cta)) = payload {
                let time = ends.next().expect("five CTAs");
                bench.deliver(time, *port, completion(cta.launch.id.0, cta.slot, None));
            }
        }
        seen.extend(summary(&sent).into_iter().map(|(time, _, text)| (time, text)));
    }
    assert_eq!(unit.state.counters.kernels_completed, 2);
    (seen, unit.state.counters.context_switches)
}

#[test]
fn processes_take_turns() {
    let (seen, switches) = two_processes(r#", time_slice: "1 us", context_switch: "500 ns""#);
    let expected = [
        (120_000, "kernel1 cta 0 slot 0"),
        (121_000, "kernel1 cta 1 slot 1"),
        // In the slice of the first, which is over at 1 us: what runs then, runs to its end at 1.5 us.
        (920_000, "kernel1 cta 2 slot 0"),
        (2_020_000, "kernel2 cta 0 slot 0"),
        (2_370_000, "done 2"),
        // The second has nothing left at 2.35 us.
        (2_870_000, "kernel1 cta 3 slot 0"),
        (3_170_000, "done 1"),
    ];
    assert_eq!(seen, expected.map(|(time, text)| (time, text.to_owned())));
    assert_eq!(switches, 2, "to the second and back");
}

#[test]
fn processes_share_the_gpu_where_they_may() {
    let (seen, switches) = two_processes(", mps: true");
    assert_eq!(switches, 0);
    let placed: Vec<_> = seen.iter().filter(|(_, text)| text.contains("slot")).collect();
    let expected = [
        (120_000, "kernel1 cta 0 slot 0"),
        (121_000, "kernel1 cta 1 slot 1"),
        (920_000, "kernel1 cta 2 slot 0"),
        (1_120_000, "kernel1 cta 3 slot 1"),
        (1_520_000, "kernel2 cta 0 slot 0"),
    ];
    let expected = expected.map(|(time, text)| (time, text.to_owned()));
    assert_eq!(placed, expected.iter().collect::<Vec<_>>());
}

#[test]
fn a_fault_ends_the_kernels_of_its_process_alone_unless_they_share_the_gpu() {
    for (extra, failed) in [("", 2), (", mps: true", 3)] {
        let (mut unit, mut bench) = scheduler(1, extra);
        for kernel in [launch(1, 1, 1, 1024), launch(2, 2, 1, 1024), of_process(1, launch(3, 1, 1, 1024))] {
            bench.deliver(SimTime(0), COMMAND, command(&kernel));
        }
        bench.run(&mut unit, WINDOW, SimTime(300_000));
        bench.deliver(SimTime(310_000), PortId(1), completion(1, 0, Some(fault(1))));
        bench.run(&mut unit, WINDOW, SimTime(400_000));
        assert_eq!(unit.state.counters.kernels_failed, failed, "{extra}");
    }
}

#[test]
fn a_killed_process_leaves_the_gpu_to_others() {
    let (mut unit, mut bench) = scheduler(1, "");
    bench.deliver(SimTime(0), COMMAND, command(&launch(1, 1, 9, 1024)));
    bench.deliver(SimTime(0), COMMAND, command(&launch(2, 1, 1, 1024)));
    bench.deliver(SimTime(0), COMMAND, command(&of_process(1, launch(3, 1, 1, 32))));
    bench.run(&mut unit, WINDOW, SimTime(300_000));
    bench.deliver(SimTime(310_000), COMMAND, Payload::Cuda(CudaMessage::Abort(ContextId::first(0))));
    let sent = bench.run(&mut unit, WINDOW, SimTime(100_000_000));
    let texts: Vec<_> = summary(&sent).into_iter().map(|(_, _, text)| text).collect();
    assert_eq!(texts, ["abort 1", "done 1", "done 2", "kernel3 cta 0 slot 0"]);
    assert_eq!(unit.state.counters.kernels_failed, 2);
    // The end of a CTA that was on its way changes nothing.
    bench.deliver(SimTime(100_010_000), PortId(1), completion(1, 0, None));
    bench.deliver(SimTime(100_020_000), PortId(1), completion(3, 0, None));
    let sent = bench.run(&mut unit, WINDOW, SimTime(101_000_000));
    assert_eq!(summary(&sent).last().map(|(_, _, text)| text.as_str()), Some("done 3"));
}

/// Kernels of several queues and priorities, from three processes. One process fails; its context is reset, and others follow.
#[test]
fn nothing_depends_on_windows_and_a_state_goes_on() {
    let mut script = Vec::new();
    for id in 1..=12 {
        let kernel =
            KernelLaunch { priority: id as i32 % 3, ..(*launch(id, id % 5, 1 + id * 3, 256 * (1 + id % 4))).clone() };
        let kernel = if id % 4 == 0 { of_process(id / 4 % 2 + 1, Arc::new(kernel)) } else { Arc::new(kernel) };
        script.push((SimTime(u64::from(id) * 300_000), COMMAND, command(&kernel)));
    }
    script.push((SimTime(3_000_000), COMMAND, Payload::Cuda(CudaMessage::Reset(ContextId::first(0)))));
    let mut numbers = Numbers::new(9);
    let sms = |(time, port, payload): &Arrival| match payload {
        Payload::Cta(CtaMessage::Launch(cta)) => {
            let fails = (cta.launch.id == LaunchId(6)).then(|| fault(6));
            let ended = completion(cta.launch.id.0, cta.slot, fails);
            vec![(*time + SimTime(200_000 + numbers.below(300_000)), *port, ended)]
        }
        _ => Vec::new(),
    };
    let extra = r#", time_slice: "700 ns", context_switch: "90 ns""#;
    check_cuts_and_states(|| Box::new(scheduler(3, extra).0), 4, SimTime(20_000), script, sms, SimTime(12_000_000));
}
