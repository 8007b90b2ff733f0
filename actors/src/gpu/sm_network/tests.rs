//! Drives a network whose SMs the test plays.

use super::*;
use crate::engine::Bench;
use crate::test_support::{Numbers, check_cuts_and_states};
use balar_protocol::SimTime;
use balar_protocol::cluster::{ClusterId, ClusterPlace, RemoteAccess, RemoteBulk, RemoteKind};
use balar_protocol::cuda::LaunchId;

const WIRE: SimTime = SimTime(20_000);
const CLUSTER: ClusterId = ClusterId { launch: LaunchId(1), number: 7 };

/// A network of four SMs at 1 GHz, of 5 cycles and 16 bytes a cycle.
fn network() -> SmNetwork {
    let parameters = SmNetworkParameters::from_ron(r#"(clock: "1 GHz")"#).expect("a clock is all it needs");
    SmNetwork::new(&parameters, (0..4).map(PortId).collect())
}

fn access(from: u16, to: u16, id: u32, kind: RemoteKind) -> Payload {
    let place = |sm| ClusterPlace { sm, slot: 0 };
    let access = RemoteAccess {
        from: place(from),
        to: place(to),
        id,
        kind,
        bytes: 4,
        mask: u32::MAX,
        ..RemoteAccess::default()
    };
    Payload::Cluster(ClusterMessage::Access(Box::new(access)))
}

fn arrival(slot: u16, size: u8) -> ClusterArrival {
    ClusterArrival { cluster: CLUSTER, slot, size }
}

/// What was sent: arrival in nanoseconds, port, text.
fn summary(sent: &[(SimTime, PortId, Payload)]) -> Vec<(u64, u16, String)> {
    let text = |payload: &Payload| match payload {
        Payload::Cluster(ClusterMessage::Access(access)) => format!("access {}", access.id),
        Payload::Cluster(ClusterMessage::Answer(answer)) => format!("answer {}", answer.id),
        Payload::Cluster(ClusterMessage::Bulk(bulk)) => format!("bulk {}", bulk.id),
        Payload::Cluster(ClusterMessage::Release(release)) => format!("release {}", release.slot),
        other => format!("{other:?}"),
    };
    sent.iter().map(|(time, port, payload)| (time.0 / 1000, port.0, text(payload))).collect()
}

fn run(messages: Vec<(u64, u16, Payload)>) -> (Vec<(u64, u16, String)>, SmNetwork) {
    let mut unit = network();
    let mut bench = Bench::new(&[WIRE; 4]);
    for (nanoseconds, port, payload) in messages {
        bench.deliver(SimTime(nanoseconds * 1000), PortId(port), payload);
    }
    let sent = bench.run(&mut unit, WIRE, SimTime(10_000_000));
    (summary(&sent), unit)
}

#[test]
fn messages_take_the_ports_of_both_sms() {
    // 128 bytes of a store take 8 cycles of a port, a load takes one; and each has 5 cycles of latency and 20 ns of wire.
    let (sent, unit) = run(vec![
        (100, 0, access(0, 1, 1, RemoteKind::Store)),
        (100, 0, access(0, 2, 2, RemoteKind::Load)),
        (100, 3, access(3, 1, 3, RemoteKind::Load)),
        (300, 2, access(2, 3, 4, RemoteKind::Load)),
    ]);
    let expected = [
        (132, 1, "access 1".to_owned()),
        // Behind the store at the port of its own SM, and at that of the SM it goes to.
        (133, 2, "access 2".to_owned()),
        (133, 1, "access 3".to_owned()),
        (325, 3, "access 4".to_owned()),
    ];
    let mut sent = sent;
    sent.sort();
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(sent, expected);
    let counters = unit.state.counters;
    assert_eq!((counters.messages, counters.bytes, counters.wait_cycles), (4, 128, 16));
}

#[test]
fn bytes_go_to_the_cta_that_they_are_for() {
    let place = |sm| ClusterPlace { sm, slot: 3 };
    let (cluster, from, to) = (CLUSTER, place(1), place(2));
    let data = vec![0; 64].into();
    let bulk = RemoteBulk { cluster, from, to, rank: 1, id: 9, offset: 0, data, barrier: None, fault: None };
    let (sent, _) = run(vec![(0, 1, Payload::Cluster(ClusterMessage::Bulk(Box::new(bulk))))]);
    assert_eq!(sent, [(28, 2, "bulk 9".to_owned())]);
}

#[test]
fn the_last_arrival_releases_a_cluster() {
    let arrive = |slot| Payload::Cluster(ClusterMessage::Arrive(arrival(slot, 3)));
    let leave = |slot| Payload::Cluster(ClusterMessage::Leave(arrival(slot, 3)));
    // Two CTAs on one SM, and one on another.
    let (sent, unit) = run(vec![
        (0, 0, arrive(4)),
        (10, 0, arrive(5)),
        (50, 2, arrive(4)),
        (200, 2, arrive(4)),
        (210, 0, leave(5)),
        (220, 0, arrive(4)),
    ]);
    let expected = [
        (75, 0, "release 4".to_owned()),
        (76, 0, "release 5".to_owned()),
        (75, 2, "release 4".to_owned()),
        (245, 2, "release 4".to_owned()),
        (245, 0, "release 4".to_owned()),
    ];
    let sorted = |mut messages: Vec<(u64, u16, String)>| {
        messages.sort();
        messages
    };
    assert_eq!(sorted(sent), sorted(expected.to_vec()));
    assert_eq!((unit.state.counters.cluster_barriers, unit.outstanding()), (2, None));
    let (_, waiting) = run(vec![(0, 0, arrive(4))]);
    assert!(waiting.outstanding().is_some_and(|text| text.starts_with("1 CTAs of 1 clusters wait")));
}

#[test]
fn nothing_depends_on_windows_and_a_state_goes_on() {
    let mut numbers = Numbers::new(5);
    let script = (0..300).map(|id| {
        let [from, to] = [0, 1].map(|_| numbers.below(4) as u16);
        let kind = if numbers.below(2) == 0 { RemoteKind::Load } else { RemoteKind::Store };
        let message = match numbers.below(4) {
            0 => Payload::Cluster(ClusterMessage::Arrive(arrival(from, 3))),
            _ => access(from, to, id, kind),
        };
        (SimTime(numbers.below(5_000_000)), PortId(from), message)
    });
    let script = script.collect();
    check_cuts_and_states(|| Box::new(network()), 4, WIRE, script, |_| Vec::new(), SimTime(20_000_000));
}
