//! The activity of units over time: it is the same however a run is carried out, and recording it changes nothing.

use balar_actors::catalogue::timeline::{Category, Event, EventKind};
use balar_actors::engine::{RunOptions, TimelineDetail, WindowCut};
use balar_actors::simulation::RunResult;
use balar_protocol::SimTime;
use balar_tests::{described, run, small, workloads_on};
use std::fmt::Write;
use std::sync::Arc;

fn telling() -> RunOptions {
    RunOptions { timeline: Some(TimelineDetail::Ctas), ..RunOptions::default() }
}

/// All that the units of a run have told.
fn text(result: &RunResult) -> String {
    let mut text = String::new();
    for unit in result.timeline.as_ref().expect("it was asked for") {
        unit.in_order(|Event { time, track, kind, values, flows }: Event| {
            let label = match kind {
                EventKind::Begin(label) | EventKind::Instant(label) | EventKind::End(Some(label)) => {
                    format!("{:?}", unit.label(label))
                }
                EventKind::End(None) | EventKind::Count(_) => format!("{kind:?}"),
            };
            let flows: Vec<u64> = flows.iter().map(|(_, flow)| *flow).collect();
            writeln!(text, "{} {:?} {label} {values:?} {flows:?}", time.0, unit.tracks()[track.0 as usize])
        })
        .expect("a text takes everything");
    }
    text
}

/// How many slices of a category have begun.
fn begun(result: &RunResult, category: Category) -> u64 {
    let mut count = 0;
    for unit in result.timeline.as_ref().expect("it was asked for") {
        let each = |event: Event| -> Result<(), ()> {
            let is_it = matches!(event.kind, EventKind::Begin(label) if unit.label(label).0 == category);
            count += u64::from(is_it);
            Ok(())
        };
        unit.in_order(each).expect("nothing fails");
    }
    count
}

#[test]
fn every_workload_tells_its_kernels_and_ctas_and_nothing_else_moves() {
    for topology in ["v100_node", "t4_node"] {
        for workload in workloads_on(topology) {
            let name = format!("{} on {topology}", workload.name);
            let result = run(topology, workload.name, small(workload.name), telling());
            let kernels = result.statistics.kernels.len() as u64;
            let ctas: u64 = result.statistics.kernels.iter().map(|kernel| kernel.counters.ctas.ctas_launched).sum();
            let told = [Category::Kernel, Category::Cta].map(|category| begun(&result, category));
            assert_eq!(told, [kernels, ctas], "{name}");
            let plain = run(topology, workload.name, small(workload.name), RunOptions::default());
            assert!(plain.timeline.is_none());
            assert_eq!(described(&result), described(&plain), "{name}");
        }
    }
}

/// Threads, windows that end earlier, and units that take over from others change nothing.
#[test]
fn what_is_told_does_not_depend_on_how_a_run_is_carried_out() {
    for (topology, workload, parameters) in [
        ("v100_node", "lud", small("lud")),
        ("v100_node", "concurrent", small("concurrent")),
        ("gtx1080ti_node", "nw", vec![("length".into(), "64".into()), ("memory".into(), "managed".into())]),
    ] {
        let at = |options| run(topology, workload, parameters.clone(), options);
        let plain = at(telling());
        let moments: Arc<[SimTime]> = (1..20).map(|part| SimTime(plain.sim_time.0 * part / 20)).collect();
        let expected = text(&plain);
        assert!(expected.len() > 1000);
        for options in [
            RunOptions { threads: 4, ..telling() },
            RunOptions { cut: WindowCut { divisor: 3, at: Arc::clone(&moments) }, ..telling() },
            RunOptions { hand_over_at: Arc::clone(&moments), ..telling() },
        ] {
            let what = format!("{workload} with {options:?}");
            assert!(text(&at(options)) == expected, "{what}");
        }
    }
}
