mod managed;
mod shootdowns;

use super::*;
use crate::engine::Bench;
use crate::gpu::tlb::IDENTITY_BITS;
use crate::test_support::{Numbers, check_cuts_and_states, counter, with_context};
use balar_protocol::translation::PageAccess;
use balar_protocol::{PortId, SimTime};

const MIB: u64 = 1 << 20;

fn gmmu(parameters: &str) -> (Gmmu, Bench) {
    let parameters = GmmuParameters::from_ron(&format!(r#"(clock: "1 GHz", {parameters})"#)).expect("parameters");
    let unit = with_context(&[("sm", 0), ("sm", 1)], 1, |context| Gmmu::new(parameters, context)).expect("gmmu");
    (unit, Bench::new(&[SimTime(1000); 2]))
}

fn ask(bench: &mut Bench, ns: u64, port: u16, address: u64, id: u32) {
    let request = TranslationMessage::Request { address, id, access: PageAccess::Read };
    bench.deliver(SimTime(ns * 1000), PortId(port), Payload::Translation(request));
}

fn answers(unit: &mut Gmmu, bench: &mut Bench) -> Vec<(u64, u16, u32, u64)> {
    let sent = bench.run(unit, SimTime(10_000), SimTime(2_000_000));
    let answer = |(time, port, payload): (SimTime, PortId, Payload)| match payload {
        Payload::Translation(TranslationMessage::Response { id, translation }) => {
            assert_eq!(translation.valid_bits, IDENTITY_BITS);
            (time.0 / 1000, port.0, id, translation.page)
        }
        other => panic!("unexpected {other:?}"),
    };
    sent.into_iter().map(answer).collect()
}

#[test]
fn a_miss_walks_and_later_requests_hit() {
    let (mut unit, mut bench) = gmmu("hit_latency: 5, walk_latency: 100");
    ask(&mut bench, 10, 0, 64 * MIB + 5, 1);
    ask(&mut bench, 20, 1, 67 * MIB, 2);
    ask(&mut bench, 300, 1, 95 * MIB, 3);
    let answers = answers(&mut unit, &mut bench);
    assert_eq!(
        answers,
        [(116, 0, 1, 64 * MIB), (116, 1, 2, 66 * MIB), (306, 1, 3, 94 * MIB)],
        "the second waits for the walk of the first"
    );
    assert_eq!(counter(&unit, "walks"), 1);
    assert_eq!((counter(&unit, "tlb_hits"), counter(&unit, "tlb_misses")), (1, 2));
}

#[test]
fn the_least_recently_used_entry_goes_and_walkers_are_few() {
    let (mut unit, mut bench) = gmmu("entries: 2, walkers: 1, hit_latency: 5, walk_latency: 100");
    for (i, page) in [0u64, 1, 0, 2, 0, 1].into_iter().enumerate() {
        ask(&mut bench, 10 + 300 * i as u64, 0, page * 32 * MIB, i as u32);
    }
    answers(&mut unit, &mut bench);
    assert_eq!(counter(&unit, "walks"), 4, "0, 1, 2 and 1 again");

    let (mut unit, mut bench) = gmmu("walkers: 1, hit_latency: 5, walk_latency: 100");
    ask(&mut bench, 10, 0, 0, 0);
    ask(&mut bench, 10, 0, 32 * MIB, 1);
    let times: Vec<u64> = answers(&mut unit, &mut bench).iter().map(|answer| answer.0).collect();
    assert_eq!(times, [116, 216]);
}

#[test]
fn nothing_depends_on_windows_and_a_state_goes_on() {
    let mut numbers = Numbers::new(8);
    let arrival = |id| {
        let request =
            TranslationMessage::Request { address: numbers.below(40) * 32 * MIB, id, access: PageAccess::Read };
        let (time, port) = (SimTime(numbers.below(8_000_000)), PortId(numbers.below(2) as u16));
        (time, port, Payload::Translation(request))
    };
    let script = (0..400).map(arrival).collect();
    let build = || -> Box<dyn Unit> { Box::new(gmmu("entries: 16, walkers: 2").0) };
    check_cuts_and_states(build, 2, SimTime(1000), script, |_| Vec::new(), SimTime(20_000_000));
}
