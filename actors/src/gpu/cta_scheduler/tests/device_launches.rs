//! Kernels that kernels launch: the test plays the SM whose threads launch them.

use super::*;
use balar_protocol::device_launch::{DeviceOperation, DeviceStream, DeviceWork, LaunchOrigin};

const LATENCY: &str = ", device_launch_latency: 10";

/// An operation that a thread of `parent` puts into a stream.
fn work(parent: LaunchId, stream: DeviceStream, operation: DeviceOperation) -> Payload {
    Payload::Cta(CtaMessage::DeviceWork(Box::new(DeviceWork { parent, stream, operation })))
}

/// A launch of one CTA by a kernel.
fn child(name: &str, parent: LaunchId) -> DeviceOperation {
    let origin = LaunchOrigin { parent, kernel: "parent".into(), depth: 1, buffer: 0 };
    DeviceOperation::Launch(Box::new(KernelLaunch {
        name: name.into(),
        origin: Some(Arc::new(origin)),
        ..(*launch(0, 0, 1, 32)).clone()
    }))
}

fn made(number: u32) -> LaunchId {
    LaunchId::of_device(0, number)
}

/// The CTAs that were placed, and the kernels whose ends the host was told.
fn texts(sent: &[(SimTime, PortId, Payload)]) -> Vec<(u64, String)> {
    summary(sent).into_iter().map(|(time, _, text)| (time / 1000, text)).collect()
}

fn ended(launch: LaunchId, slot: u16) -> Payload {
    completion(launch.0, slot, None)
}

/// A scheduler with a kernel that runs on an SM, in slot 0.
fn with_a_parent() -> (CtaScheduler, Bench) {
    let (mut unit, mut bench) = scheduler(1, LATENCY);
    bench.deliver(SimTime(0), COMMAND, command(&launch(1, 0, 1, 32)));
    assert_eq!(texts(&bench.run(&mut unit, WINDOW, SimTime(300_000))), [(120, "kernel1 cta 0 slot 0".to_owned())]);
    (unit, bench)
}

#[test]
fn launches_of_one_stream_follow_and_the_grid_ends_after_them() {
    let (mut unit, mut bench) = with_a_parent();
    let stream = DeviceStream::Block(0);
    for (time, name) in [(400_000, "first"), (401_000, "second")] {
        bench.deliver(SimTime(time), PortId(1), work(LaunchId(1), stream, child(name, LaunchId(1))));
    }
    bench.deliver(SimTime(402_000), PortId(1), ended(LaunchId(1), 0));
    // 10 cycles until it is in its stream, 100 until its CTA is placed, and the wire.
    let sent = bench.run(&mut unit, WINDOW, SimTime(900_000));
    assert_eq!(texts(&sent), [(530, "first cta 0 slot 0".to_owned())], "the grid is not done before its launches");
    assert!(unit.outstanding().is_some());
    bench.deliver(SimTime(1_000_000), PortId(1), ended(made(0), 0));
    let sent = bench.run(&mut unit, WINDOW, SimTime(1_500_000));
    assert_eq!(texts(&sent), [(1170, "second cta 0 slot 0".to_owned())]);
    bench.deliver(SimTime(2_000_000), PortId(1), ended(made(1), 0));
    let sent = bench.run(&mut unit, WINDOW, SimTime(2_500_000));
    assert_eq!(texts(&sent), [(2070, "done 1".to_owned())], "the host is told of its own launch alone");
    assert_eq!(unit.outstanding(), None);
    let mut sink = StatisticSink::default();
    unit.records(&mut sink);
    let records: Vec<_> = sink.kernels.iter().map(|kernel| (kernel.launch, kernel.parent, kernel.end_ps)).collect();
    let parent = Some(LaunchId(1));
    assert_eq!(records.len(), 3);
    assert!(records.contains(&(made(0), parent, 1_050_000)) && records.contains(&(made(1), parent, 2_050_000)));
    assert!(records.contains(&(LaunchId(1), None, 2_050_000)), "{records:?}");
}

#[test]
fn streams_are_independent_but_for_events_and_the_tail_comes_last() {
    let (mut unit, mut bench) = with_a_parent();
    let parent = LaunchId(1);
    let [first, second] = [DeviceStream::Named(1), DeviceStream::Named(2)];
    for (stream, operation) in [
        (DeviceStream::Tail, child("tail", parent)),
        (DeviceStream::Tail, child("last", parent)),
        (first, child("first", parent)),
        (first, DeviceOperation::Record(7)),
        (second, DeviceOperation::Wait(7)),
        (second, child("second", parent)),
        (DeviceStream::Alone, child("alone", parent)),
        (DeviceStream::Alone, child("alone too", parent)),
    ] {
        bench.deliver(SimTime(400_000), PortId(1), work(parent, stream, operation));
    }
    bench.deliver(SimTime(410_000), PortId(1), ended(parent, 0));
    let begun = |sent: &[(SimTime, PortId, Payload)]| texts(sent).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    let sent = bench.run(&mut unit, WINDOW, SimTime(900_000));
    assert_eq!(begun(&sent), ["first cta 0 slot 0", "alone cta 0 slot 1", "alone too cta 0 slot 2"]);
    // Launches have numbers in the order in which threads have made them.
    for (time, number, slot, next) in [
        (1_000_000, 2, 0, &["second cta 0 slot 0"][..]),
        (2_000_000, 4, 1, &[]),
        (3_000_000, 3, 0, &[]),
        (4_000_000, 5, 2, &["tail cta 0 slot 0"]),
        (5_000_000, 0, 0, &["last cta 0 slot 0"]),
        (6_000_000, 1, 0, &["done 1"]),
    ] {
        bench.deliver(SimTime(time), PortId(1), ended(made(number), slot));
        let sent = bench.run(&mut unit, WINDOW, SimTime(time + 900_000));
        assert_eq!(begun(&sent), next, "after launch {number}");
    }
    assert_eq!(unit.outstanding(), None);
}

#[test]
fn a_fault_of_a_launched_kernel_ends_those_that_wait_for_it() {
    let (mut unit, mut bench) = with_a_parent();
    let parent = LaunchId(1);
    bench.deliver(SimTime(400_000), PortId(1), work(parent, DeviceStream::Alone, child("child", parent)));
    bench.deliver(SimTime(400_000), PortId(1), work(parent, DeviceStream::Tail, child("tail", parent)));
    bench.deliver(SimTime(410_000), PortId(1), ended(parent, 0));
    bench.run(&mut unit, WINDOW, SimTime(900_000));
    let broken = KernelFault { launch: made(0), ..fault(0) };
    bench.deliver(SimTime(1_000_000), PortId(1), completion(made(0).0, 0, Some(broken)));
    let sent = bench.run(&mut unit, WINDOW, SimTime(2_000_000));
    let failed = format!("failed 1: launch {}", made(0).0);
    assert!(texts(&sent).iter().any(|(_, text)| *text == failed), "{:?}", texts(&sent));
    assert_eq!(unit.outstanding(), None);
}

#[test]
fn a_state_with_launches_of_kernels_goes_on() {
    let script = vec![(SimTime(0), COMMAND, command(&launch(1, 0, 2, 32)))];
    let mut numbers = Numbers::new(5);
    let sms = |(time, port, payload): &Arrival| match payload {
        Payload::Cta(CtaMessage::Launch(cta)) => {
            let id = cta.launch.id;
            let end = *time + SimTime(200_000 + numbers.below(300_000));
            let mut answers = Vec::new();
            if !id.is_of_device() {
                let stream = [DeviceStream::Block(0), DeviceStream::Alone, DeviceStream::Tail];
                for stream in stream.into_iter().cycle().take(7) {
                    answers.push((*time + SimTime(50_000), *port, work(id, stream, child("child", id))));
                }
            }
            answers.push((end, *port, ended(id, cta.slot)));
            answers
        }
        _ => Vec::new(),
    };
    check_cuts_and_states(|| Box::new(scheduler(2, LATENCY).0), 3, SimTime(20_000), script, sms, SimTime(9_000_000));
}
