//! Clusters: placed as a whole, within a group of SMs, when there is room.

use super::*;

/// A scheduler with groups of so many SMs that a network joins.
fn with_groups(groups: &[u32]) -> (CtaScheduler, Bench) {
    let count: u32 = groups.iter().sum();
    let (mut unit, bench) = scheduler(count as u16, "");
    unit.sms = std::mem::replace(&mut unit.sms, SmMap::new([])).with_network((0..count as u16).collect(), groups);
    (unit, bench)
}

fn in_clusters(launch: &Arc<KernelLaunch>, cluster: [u32; 3]) -> Arc<KernelLaunch> {
    Arc::new(KernelLaunch { cluster: Some(cluster), ..(**launch).clone() })
}

/// The CTAs that were sent: when (ns), the port, the CTA's place in x, its cluster and rank.
fn placed(sent: &[(SimTime, PortId, Payload)]) -> Vec<(u64, u16, u32, u64, u8)> {
    let launch = |(time, port, payload): &(SimTime, PortId, Payload)| match payload {
        Payload::Cta(CtaMessage::Launch(cta)) => {
            let cluster = cta.cluster.as_ref().expect("it is in a cluster");
            let own = cluster.members[usize::from(cluster.rank)];
            assert_eq!((own.sm, own.slot), (port.0 - 1, cta.slot), "its own place is among the members");
            Some((time.0 / 1000, port.0, cta.cta[0], cluster.number, cluster.rank))
        }
        _ => None,
    };
    sent.iter().filter_map(launch).collect()
}

#[test]
fn a_cluster_is_placed_at_one_time_on_sms_of_one_group() {
    let (mut unit, mut bench) = with_groups(&[2, 3]);
    bench.deliver(SimTime(0), COMMAND, command(&in_clusters(&launch(1, 0, 6, 64), [3, 1, 1])));
    let sent = placed(&bench.run(&mut unit, WINDOW, SimTime(300_000)));
    // The larger group has more room; there each CTA has an SM of its own. The next cluster comes as many cycles later.
    let (first, second) = sent.split_at(3);
    assert_eq!(
        first.iter().map(|cta| (cta.0, cta.2, cta.3, cta.4)).collect::<Vec<_>>(),
        [(120, 0, 0, 0), (120, 1, 0, 1), (120, 2, 0, 2)]
    );
    let mut ports: Vec<u16> = first.iter().map(|cta| cta.1).collect();
    ports.sort_unstable();
    assert_eq!(ports, [3, 4, 5]);
    assert!(second.iter().all(|cta| cta.0 == 123 && cta.3 == 1), "{second:?}");
    assert_eq!(second.iter().map(|cta| cta.2).collect::<Vec<_>>(), [3, 4, 5]);
}

#[test]
fn the_ranks_of_a_plane_go_along_x_first() {
    let (mut unit, mut bench) = with_groups(&[4]);
    let grid = Arc::new(KernelLaunch { grid: [4, 2, 1], ..(*launch(1, 0, 1, 32)).clone() });
    bench.deliver(SimTime(0), COMMAND, command(&in_clusters(&grid, [2, 2, 1])));
    let sent = bench.run(&mut unit, WINDOW, SimTime(300_000));
    let ctas: Vec<[u32; 3]> = sent
        .iter()
        .map(|(_, _, payload)| match payload {
            Payload::Cta(CtaMessage::Launch(cta)) => cta.cta,
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [2, 0, 0], [3, 0, 0], [2, 1, 0], [3, 1, 0]];
    assert_eq!(ctas, expected);
}

#[test]
fn a_cluster_waits_for_room_for_all_of_it() {
    let (mut unit, mut bench) = with_groups(&[2]);
    // Each SM has room for two CTAs of 1024 threads.
    bench.deliver(SimTime(0), COMMAND, command(&launch(1, 0, 3, 1024)));
    bench.deliver(SimTime(1000), COMMAND, command(&in_clusters(&launch(2, 1, 2, 1024), [2, 1, 1])));
    // A younger kernel does not take the room that it waits for.
    bench.deliver(SimTime(2000), COMMAND, command(&launch(3, 2, 1, 32)));
    let sent = bench.run(&mut unit, WINDOW, SimTime(500_000));
    assert_eq!(summary(&sent).len(), 3, "{:?}", summary(&sent));
    bench.deliver(SimTime(600_000), PortId(1), completion(1, 0, None));
    let sent = bench.run(&mut unit, WINDOW, SimTime(900_000));
    let ctas: Vec<String> = summary(&sent).into_iter().map(|(_, _, text)| text).collect();
    assert_eq!(ctas[..2], ["kernel2 cta 0 slot 1", "kernel2 cta 1 slot 0"].map(str::to_owned), "{ctas:?}");
    // The cluster fills the room.
    assert_eq!(unit.state.counters.ctas_launched, 5);
}

#[test]
fn a_cluster_that_never_fits_is_refused() {
    for (groups, ctas, cluster) in [(&[2, 2][..], 8, 5), (&[], 2, 2), (&[4], 3, 2)] {
        let (mut unit, mut bench) = with_groups(groups);
        bench.deliver(SimTime(0), COMMAND, command(&in_clusters(&launch(1, 0, ctas, 1024), [cluster, 1, 1])));
        let sent = bench.run(&mut unit, WINDOW, SimTime(300_000));
        assert_eq!(summary(&sent), [(20_000, 0, "failed 1: launch 1".to_owned())], "{groups:?}");
    }
}
