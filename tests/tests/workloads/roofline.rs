//! The measurements behind rooflines: bandwidth and throughput of simulated GPUs by the kernels of the Roofline Toolkit.

use balar_experiments::roofline::{Precision, levels, textbook};
use balar_experiments::run;

/// A value that a workload measures on a node.
fn measured(topology: &str, workload: &str, settings: &str, name: &str) -> f64 {
    let parameters: Vec<(&str, &str)> = settings.split(',').filter_map(|setting| setting.split_once('=')).collect();
    let result = run(topology, workload, &parameters, &[]).expect("it runs");
    let program = result.program.expect("it has ended");
    let found = program.results.iter().find(|(known, _, _)| known == name);
    found.unwrap_or_else(|| panic!("{workload}:{settings} has no {name}")).1
}

/// GB/s of a kernel of the toolkit with a working set, on the node of its study.
fn k20x(kernel: &str, working_set: &str, trials: u32, name: &str) -> f64 {
    let settings = format!("kernel={kernel},working_set={working_set},trials={trials}");
    measured("k20x_node", "bandwidth", &settings, name)
}

/// GB/s that the host and the GPU reach together.
fn in_turn(mechanism: &str, elements: u32, reuse: u32) -> f64 {
    let settings = format!("{mechanism},elements={elements},reuse={reuse},trials=1");
    measured("k20x_node", "reuse", &settings, "effective_bandwidth")
}

/// Two transfers a cycle of 2600 MHz on 384 pins.
const PINS: f64 = 249.6;

/// Bandwidth of kernels: what the study's figures show of a K20X.
#[test]
fn bandwidths_of_a_k20x_have_the_shapes_of_the_study() {
    // Small working sets are bound by launches: they take as long, whatever their size.
    let times = ["128", "4KiB"].map(|set| k20x("outside", set, 4, "host_time"));
    assert!(times[1] < 1.1 * times[0], "{times:?}");

    // Trials inside: plateaus of the L1 and of the L2, before device memory.
    let read = |set: &str, trials: u32| {
        let settings = format!("kernel=read,working_set={set},trials={trials},blocks=14,threads=1024");
        measured("k20x_node", "bandwidth", &settings, "sustained_bandwidth")
    };
    let (l1, l2, dram) = (
        ["4KiB", "16KiB", "32KiB"].map(|set| read(set, 40)),
        ["448KiB", "896KiB", "1344KiB"].map(|set| read(set, 10)),
        // Like those of the L2, whole multiples of what all SMs read side by side.
        ["7MiB", "14MiB"].map(|set| read(set, 1)),
    );
    let spread = |values: &[f64]| {
        let (least, most) =
            values.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), one| (low.min(*one), high.max(*one)));
        most / least
    };
    assert!(spread(&l1) < 1.1 && spread(&l2) < 1.1 && spread(&dram) < 1.15, "{l1:?} {l2:?} {dram:?}");
    assert!(l1[2] > 2.0 * l2[0] && l2[2] > 1.25 * dram[1], "{l1:?} {l2:?} {dram:?}");
    let inside = ["512KiB", "6MiB"].map(|set| k20x("inside", set, 4, "sustained_bandwidth"));
    assert!(inside[0] > 1.5 * inside[1], "{inside:?}");

    // Trials outside: device memory, below the bandwidth of its pins.
    let outside = ["4MiB", "8MiB"].map(|set| k20x("outside", set, 2, "host_bandwidth"));
    assert!(spread(&outside) < 1.1, "{outside:?}");
    assert!(outside[1] > 0.75 * PINS && outside[1] < PINS, "{outside:?}");

    // Shared memory: three quarters of what its banks can do, and more than the L2.
    let shared = k20x("shared", "1MiB", 100, "sustained_bandwidth");
    let banks = 14.0 * 128.0 * 0.732;
    assert!(shared > 0.7 * banks && shared <= banks && shared > 2.0 * l2[0], "{shared} of {banks}");
}

/// Data that the host and the GPU use in turn: what the study's figure 7 shows.
#[test]
fn reuse_on_a_k20x_has_the_shapes_of_the_study() {
    const SMALL: u32 = 2048;
    const LARGE: u32 = 1 << 18;
    let device = k20x("outside", "8MiB", 2, "host_bandwidth");
    // Explicit copies come near the device's bandwidth with large sets and much reuse alone.
    let [once, often] = [1, 50].map(|reuse| in_turn("mechanism=pinned", LARGE, reuse));
    assert!(once < 0.1 * device && often > 0.4 * device, "{once} {often} of {device}");
    let small = in_turn("mechanism=pinned", SMALL, 50);
    assert!(small < 0.1 * device, "{small} of {device}");

    // Page-locked copies are faster where there is little reuse.
    let pageable = in_turn("mechanism=pageable", LARGE, 1);
    assert!(once > 1.2 * pageable, "{once} {pageable}");

    // Zero copy gains nothing from reuse.
    let zero_copy = [1, 20].map(|reuse| in_turn("mechanism=zero_copy", LARGE, reuse));
    assert!(zero_copy[1] < 1.25 * zero_copy[0] && zero_copy[1] < 0.1 * device, "{zero_copy:?}");

    // Managed memory rises as copies do, below them, and needs more reuse to come as near.
    let managed = [1, 50].map(|reuse| in_turn("memory=managed", LARGE, reuse));
    assert!(
        managed[0] < once && managed[1] < 0.8 * often && managed[1] > 10.0 * managed[0],
        "{managed:?} {once} {often}"
    );
    let share = |mechanism: &str, reuse: u32| in_turn(mechanism, LARGE / 8, reuse);
    let (early, late) = (
        share("memory=managed", 50) / share("mechanism=pinned", 50),
        share("memory=managed", 500) / share("mechanism=pinned", 500),
    );
    assert!(early < 0.6 && late > 0.75, "{early} {late}");
}

/// A V100's L1, L2 and DRAM as RRZE's gpu-benches measured them (GB/s), and the throughput that its lanes allow.
#[test]
fn ceilings_of_a_v100_are_those_of_the_hardware() {
    let read = |set: &str, trials: u32| {
        let settings = format!("kernel=read,working_set={set},trials={trials},blocks=80,threads=1024");
        measured("v100_sxm2_node", "bandwidth", &settings, "sustained_bandwidth")
    };
    for (set, trials, hardware) in [("64KiB", 24, 13_870.0), ("1MiB", 8, 2450.0), ("40MiB", 1, 867.0)] {
        let found = read(set, trials);
        assert!((found / hardware - 1.0).abs() < 0.1, "{set}: {found} GB/s, the hardware {hardware}");
    }
    let settings = "precision=fp64,flops=512,chains=2,blocks=160,threads=512";
    let found = measured("v100_sxm2_node", "throughput", settings, "sustained_throughput");
    let lanes = 2.0 * 32.0 * 80.0 * 1.38;
    assert!((found / lanes - 1.0).abs() < 0.05, "{found} GFLOP/s, {lanes} by its lanes");
}

#[test]
fn textbook_ceilings_are_those_of_data_sheets() {
    let of = |name: &str| {
        let topology = balar_tests::built_in(name);
        let gpu = topology.gpus().remove(0);
        textbook(&topology, &gpu)
    };
    // NVIDIA's data sheets: V100 SXM2 at 1530 MHz 7.8, 15.7 and 125 Tflop/s, here at 1380 MHz; P100; T4 8.1 and 65; K20X 1.31 and 3.95.
    let v100 = of("v100_sxm2_node");
    for (precision, expected) in
        [(Precision::Double, 7.8), (Precision::Single, 15.7), (Precision::Half, 31.4), (Precision::Tensor, 125.0)]
    {
        let expected = expected * 1e3 * 1380.0 / 1530.0;
        assert!((v100.of(precision).expect("it has that") / expected - 1.0).abs() < 0.01, "{precision:?}: {v100:?}");
    }
    assert!((v100.level("DRAM").expect("it has memory") - 898.0).abs() < 1.0);
    let k20x = of("k20x_node");
    assert!((k20x.of(Precision::Double).expect("it has that") / 1311.0 - 1.0).abs() < 0.01, "{k20x:?}");
    assert!((k20x.of(Precision::Single).expect("it has that") / 3935.0 - 1.0).abs() < 0.01, "{k20x:?}");
    assert_eq!((k20x.of(Precision::Half), k20x.of(Precision::Tensor)), (None, None));
    assert!((k20x.level("DRAM").expect("it has memory") - PINS).abs() < 0.1, "{k20x:?}");
    let t4 = of("t4_node");
    assert!((t4.of(Precision::Single).expect("it has that") / 8141.0 - 1.0).abs() < 0.01, "{t4:?}");
    assert!((t4.level("DRAM").expect("it has memory") - 320.0).abs() < 0.1, "{t4:?}");
    assert_eq!(of("p100_node").of(Precision::Tensor), None);
    assert!(levels(&[]).is_empty());
}
