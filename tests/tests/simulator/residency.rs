//! What programs say about the residency of their data in the L2: windows, the part set aside, the reset.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::simulate_program;
use balar_host::call::Limit;
use balar_host::{AccessPolicyWindow, AccessProperty, Call, CallResult, CudaError};
use balar_tests::steps::{Argument, Seen, Step, Steps, call, launch, run_on_devices, value};
use balar_tests::{built_in, built_in_with};

/// `touch(base, out)`: each thread reads a word of its own line.
const TOUCH: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry touch(.param .u64 base, .param .u64 out) {
    .reg .pred %p1;
    .reg .b32 %r<5>;
    .reg .b64 %d<5>;
    ld.param.u64 %d1, [base];
    ld.param.u64 %d2, [out];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r1, %r1, %r2, %r3;
    mul.wide.u32 %d3, %r1, 128;
    add.s64 %d4, %d1, %d3;
    ld.global.u32 %r4, [%d4];
    setp.eq.u32 %p1, %r4, 1;
    @%p1 st.global.u32 [%d2], %r4;
    ret;
}
";

/// Nodes with an L2 of 4 MiB, and of two partitions with 5 MiB.
const NODES: [(&str, &[&str]); 2] = [("rtx3070_node", &[]), ("a100_sxm_40gb_node", &["gpu.l2[*].capacity=64 KiB"])];

/// Data that the program wants to keep, and data that it uses once.
const KEPT: u64 = 1 << 20;
const ONCE: u64 = 12 << 20;

const PERSISTING: AccessPolicyWindow = AccessPolicyWindow {
    base: 0,
    bytes: KEPT,
    hits: AccessPolicyWindow::ALL,
    hit: AccessProperty::Persisting,
    miss: AccessProperty::Normal,
};

/// Makes both kinds of data, sets a limit, and does the steps. Gives the share of each launch's lines that came from memory, percent.
fn run((node, overrides): (&str, &[&str]), limit: u64, steps: Vec<Step>, threads: usize) -> (Vec<u64>, Seen) {
    let before: [Step; 3] = [
        call(Call::Malloc { bytes: KEPT }),
        call(Call::Malloc { bytes: ONCE }),
        call(Call::SetLimit { limit: Limit::PersistingL2, bytes: limit }),
    ];
    let steps = before.into_iter().chain(steps).map(|step| (0, step)).collect();
    let options = RunOptions { threads, ..RunOptions::default() };
    let (result, seen) = run_on_devices(&built_in_with(node, overrides), TOUCH, steps, options);
    let fetched = result.statistics.kernels.iter().map(|kernel| {
        // A lane reads one sector of a line, and memory gives two.
        let lines = kernel.counters.ctas.l2_sectors_load;
        100 * kernel.counters.units.dram_sectors_read / 2 / lines
    });
    (fetched.collect(), seen)
}

/// A launch that reads the data to keep.
fn kept(window: Option<AccessPolicyWindow>) -> Step {
    reads(0, KEPT, window)
}

/// A launch that reads the data used once.
fn once(window: Option<AccessPolicyWindow>) -> Step {
    reads(1, ONCE, window)
}

fn reads(buffer: usize, bytes: u64, window: Option<AccessPolicyWindow>) -> Step {
    let step =
        launch("touch", [(bytes / 128 / 256) as u32, 1], [256, 1], &[Argument::Value(buffer), Argument::Value(buffer)]);
    Box::new(move |results: &[CallResult]| match step(results) {
        Call::Launch(mut launch) => {
            launch.access_policy = window.map(|window| AccessPolicyWindow { base: value(results, buffer), ..window });
            Call::Launch(launch)
        }
        other => other,
    })
}

/// What persists is still there after much other data, where a part is set aside for it, and only there.
#[test]
fn persisting_lines_stay() {
    for node in NODES {
        let steps = |window| vec![kept(window), once(None), kept(window)];
        let (fetched, _) = run(node, 3 << 20, steps(Some(PERSISTING)), 1);
        assert!(fetched[0] >= 100 && fetched[1] >= 100 && fetched[2] <= 5, "{node:?}: {fetched:?}");
        assert_eq!(run(node, 3 << 20, steps(Some(PERSISTING)), 2).0, fetched, "{node:?}: any number of threads");
        for (limit, window) in [(3 << 20, None), (0, Some(PERSISTING))] {
            let (fetched, _) = run(node, limit, steps(window), 1);
            assert!(fetched[2] >= 95, "{node:?}, {limit} set aside, {window:?}: {fetched:?}");
        }
    }
}

/// Of data twice as large as the part set aside, a ratio of one half keeps half.
#[test]
fn a_ratio_keeps_its_share() {
    let half = AccessPolicyWindow { hits: AccessPolicyWindow::ALL / 2, miss: AccessProperty::Streaming, ..PERSISTING };
    for node in NODES {
        let (fetched, _) = run(node, 3 << 20, vec![kept(Some(half)), once(None), kept(Some(half))], 1);
        assert!((45..=60).contains(&fetched[2]), "{node:?}: {fetched:?}");
    }
}

/// Streaming data does not displace what other launches left, where it does not come faster than memory gives it: the SMs of the other node
/// ask for more lines at once than its small L2 has.
#[test]
fn streaming_lines_go_first() {
    let streaming = AccessPolicyWindow { bytes: ONCE, hit: AccessProperty::Streaming, ..PERSISTING };
    let (fetched, _) = run(NODES[0], 0, vec![kept(None), once(Some(streaming)), kept(None)], 1);
    assert!(fetched[2] <= 30, "{fetched:?}");
}

/// After the reset lines persist no more.
#[test]
fn the_reset_makes_lines_normal() {
    for node in NODES {
        let reset = call(Call::ResetPersistingL2);
        let steps = vec![kept(Some(PERSISTING)), reset, once(None), kept(None), once(None), kept(None)];
        assert!(run(node, 3 << 20, steps, 1).0[2] >= 95, "{node:?}");
    }
}

/// After accesses with the property of any other line, they persist no more: where one slice serves them all, not a copy of it.
#[test]
fn normal_accesses_make_lines_normal() {
    let normal = AccessPolicyWindow { hit: AccessProperty::Normal, ..PERSISTING };
    let steps = vec![kept(Some(PERSISTING)), kept(Some(normal)), once(None), kept(None)];
    let (fetched, _) = run(NODES[0], 3 << 20, steps, 1);
    assert!(fetched[1] <= 5 && fetched[3] >= 95, "{fetched:?}");
}

/// Limits are rounded up to sixteenths of the L2, up to twelve of them; GPUs without persisting lines refuse them.
#[test]
fn limits_are_those_of_the_l2() {
    let set = |bytes| call(Call::SetLimit { limit: Limit::PersistingL2, bytes });
    let get = || call(Call::GetLimit { limit: Limit::PersistingL2 });
    let (_, seen) = run(NODES[0], 100_000, vec![get(), set(1 << 30), get(), set(0), get()], 1);
    let sizes = [3, 5, 7].map(|step| seen.results[step].clone());
    assert_eq!(sizes, [256 << 10, 3 << 20, 0].map(CallResult::Size));
    let (program, seen) = Steps::new(vec![set(1 << 20)]);
    let result =
        simulate_program(&built_in("v100_node"), "limit", ("touch.ptx", TOUCH), program, RunOptions::default());
    assert!(result.is_ok(), "{:?}", result.err());
    assert_eq!(seen.lock().expect("the run is over").error(), Some(CudaError::UnsupportedLimit));
}
