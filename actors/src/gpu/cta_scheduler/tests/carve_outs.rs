//! SMs whose shared memory can have 8, 16, 32, 64 or 96 KiB, as on a V100 (CUDA C++ Programming Guide, compute capability 7.x).

use super::*;

fn volta() -> SmCapability {
    SmCapability { carve_outs: CarveOuts::new([8, 16, 32, 64, 96].map(|kib| kib << 10)), ..sm() }
}

/// CTAs of 64 threads with so much shared memory each, in a stream of their own.
fn with_shared(id: u32, ctas: u32, shared_kib: u32, preferred_carve_out: Option<u8>) -> Arc<KernelLaunch> {
    let launch = launch(id, id, ctas, 64);
    Arc::new(KernelLaunch { shared_bytes: shared_kib << 10, preferred_carve_out, ..(*launch).clone() })
}

/// What has been placed: the launch, the port of its SM, and the carve-out in KiB.
fn placed(sent: &[(SimTime, PortId, Payload)]) -> Vec<(u32, u16, u32)> {
    let placed = sent.iter().filter_map(|(_, port, payload)| match payload {
        Payload::Cta(CtaMessage::Launch(cta)) => Some((cta.launch.id.0, port.0, cta.carve_out >> 10)),
        _ => None,
    });
    placed.collect()
}

/// A scheduler with so many SMs to which these launches have come, and what it has placed by 300 ns.
fn after(sms: usize, launches: &[Arc<KernelLaunch>]) -> (CtaScheduler, Bench, Vec<(u32, u16, u32)>) {
    let (mut unit, mut bench) = scheduler_of(&vec![volta(); sms], "");
    for launch in launches {
        bench.deliver(SimTime(0), COMMAND, command(launch));
    }
    let sent = bench.run(&mut unit, WINDOW, SimTime(300_000));
    (unit, bench, placed(&sent))
}

/// 32 CTAs of 64 threads and 4 KiB do not fit, so that the second kernel would have 96 KiB. The third would have 8 KiB, as the first, but
/// comes after the second.
#[test]
fn a_larger_carve_out_waits_for_an_empty_sm_and_younger_launches_with_it() {
    let kernels = [with_shared(1, 2, 0, None), with_shared(2, 1, 4, None), with_shared(3, 1, 0, None)];
    let (mut unit, mut bench, first) = after(1, &kernels);
    assert_eq!(first, [(1, 1, 8), (1, 1, 8)]);
    bench.deliver(SimTime(310_000), PortId(1), completion(1, 0, None));
    assert!(placed(&bench.run(&mut unit, WINDOW, SimTime(400_000))).is_empty());
    bench.deliver(SimTime(410_000), PortId(1), completion(1, 1, None));
    let sent = bench.run(&mut unit, WINDOW, SimTime(500_000));
    assert_eq!(placed(&sent), [(2, 1, 96), (3, 1, 96)], "the third joins, for 96 KiB are enough for it");
    // As long as one of them is there, the SM keeps what it has.
    bench.deliver(SimTime(510_000), PortId(1), completion(2, 0, None));
    bench.deliver(SimTime(520_000), COMMAND, command(&with_shared(4, 1, 0, None)));
    assert_eq!(placed(&bench.run(&mut unit, WINDOW, SimTime(800_000))), [(4, 1, 96)]);
}

#[test]
fn a_larger_carve_out_goes_to_an_empty_sm() {
    let kernels = [with_shared(1, 1, 0, None), with_shared(2, 2, 4, None), with_shared(3, 1, 0, None)];
    let (_, _, first) = after(2, &kernels);
    // Both CTAs of the second kernel go to the SM that was empty; the third kernel comes where more warps are free.
    assert_eq!(first, [(1, 1, 8), (2, 2, 96), (2, 2, 96), (3, 1, 8)]);
}

/// One CTA of 12 KiB fits in 16 KiB, and two in 32 KiB, which is a third of 96 KiB.
#[test]
fn a_preferred_carve_out_says_how_many_ctas_run() {
    for (preferred, expected) in [(Some(0), vec![16]), (Some(33), vec![32, 32]), (None, vec![96; 3])] {
        let (_, _, first) = after(1, &[with_shared(1, 3, 12, preferred)]);
        assert_eq!(first, expected.into_iter().map(|kib| (1, 1, kib)).collect::<Vec<_>>(), "{preferred:?}");
    }
}

/// All CTAs of a cooperative kernel are placed, whatever carve-out it prefers.
#[test]
fn a_cooperative_kernel_has_room_for_all_its_ctas() {
    let launch = KernelLaunch { grid_workspace: 0x7000_0000_0000, ..(*with_shared(1, 8, 12, Some(0))).clone() };
    let (_, _, first) = after(1, &[Arc::new(launch)]);
    assert_eq!(first, [(1, 1, 96); 8]);
}

#[test]
fn carve_outs_depend_on_no_windows() {
    let script = (1..=12).map(|id| {
        let preferred = (id % 3 == 0).then_some(id as u8 * 8);
        let kernel =
            KernelLaunch { priority: id as i32 % 2, ..(*with_shared(id, 1 + id * 2, id % 5 * 3, preferred)).clone() };
        (SimTime(u64::from(id) * 200_000), COMMAND, command(&Arc::new(kernel)))
    });
    let mut numbers = Numbers::new(11);
    let sms = |(time, port, payload): &Arrival| match payload {
        Payload::Cta(CtaMessage::Launch(cta)) => {
            let ended = completion(cta.launch.id.0, cta.slot, None);
            vec![(*time + SimTime(200_000 + numbers.below(300_000)), *port, ended)]
        }
        _ => Vec::new(),
    };
    let build = || Box::new(scheduler_of(&[volta(), volta()], "").0) as Box<dyn Unit>;
    check_cuts_and_states(build, 3, SimTime(20_000), script.collect(), sms, SimTime(12_000_000));
}
