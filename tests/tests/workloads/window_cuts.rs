//! How far the engine runs ahead changes no result: windows that are cut anywhere give the same values and statistics.

use balar_actors::engine::{RunOptions, WindowCut};
use balar_actors::simulation::{RunResult, simulate_program};
use balar_host::Call;
use balar_protocol::SimTime;
use balar_tests::steps::{Argument, Step, Steps, call, download, launch, upload};
use balar_tests::{built_in, described, parameters, run};
use std::sync::Arc;

/// Every thread adds to one of eight words with an atomic and to another with a reduction, reads both at once, and meets the others of
/// its CTA at barriers in between. What it reads depends on when it reads: it is written down.
const UPDATES: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry updates(.param .u64 words, .param .u64 to) {
    .reg .b32 %r<12>; .reg .b64 %d<10>; .reg .pred %p;
    ld.param.u64 %d1, [words];
    ld.param.u64 %d2, [to];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r1, %r1, %r2, %r3;
    and.b32 %r4, %r1, 7;
    mul.wide.u32 %d3, %r4, 4;
    add.s64 %d4, %d1, %d3;
    mov.u32 %r9, 0;
    mov.u32 %r10, 0;
again:
    atom.global.add.u32 %r5, [%d4], 1;
    red.global.add.u32 [%d4+32], %r3;
    ld.volatile.global.u32 %r6, [%d4+32];
    ld.volatile.global.u32 %r7, [%d4];
    add.u32 %r9, %r9, %r5;
    add.u32 %r9, %r9, %r6;
    xor.b32 %r9, %r9, %r7;
    bar.sync 0;
    red.global.max.u32 [%d4+64], %r1;
    membar.gl;
    ld.volatile.global.u32 %r8, [%d4+64];
    add.u32 %r9, %r9, %r8;
    bar.sync 0;
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p, %r10, 3;
    @%p bra again;
    mov.u32 %r11, %clock;
    mul.wide.u32 %d5, %r1, 8;
    add.s64 %d6, %d2, %d5;
    st.global.v2.u32 [%d6], {%r9, %r11};
    ret;
}
";

/// What a run gave: the words it read back, and all that it says.
fn outcome(ptx: (&str, &str), steps: impl Fn() -> Vec<Step>, cut: WindowCut) -> (Vec<u32>, RunResult) {
    let (program, seen) = Steps::new(steps());
    let options = RunOptions { cut, ..RunOptions::default() };
    let result = simulate_program(&built_in("v100_node"), "window_cuts", ptx, program, options);
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    assert!(result.completed(), "{:?} {:?}", result.outcome, result.program);
    let seen = seen.lock().expect("the run is over");
    (seen.words(0), result)
}

/// Parts of windows; and while the first kernel runs, ends at odd times: every 313 ps, which is less than a cycle, and every 1999 ps.
fn cuts(whole: &RunResult) -> [WindowCut; 4] {
    let kernel = whole.statistics.kernels.first().expect("a kernel has run");
    let every = |picoseconds: u64| -> Arc<[SimTime]> {
        (kernel.start_ps..kernel.end_ps).step_by(picoseconds as usize).map(SimTime).collect()
    };
    [
        WindowCut { divisor: 2, ..WindowCut::default() },
        WindowCut { divisor: 7, ..WindowCut::default() },
        WindowCut { at: every(313), ..WindowCut::default() },
        WindowCut { at: every(1999), divisor: 3 },
    ]
}

/// The first lines in which two texts differ.
fn difference(text: &str, other: &str) -> Option<String> {
    let lines = text.lines().zip(other.lines()).filter(|(line, other)| line != other);
    let differing: Vec<String> = lines.map(|(line, other)| format!("{line}\n    but {other}")).take(40).collect();
    (text != other).then(|| differing.join("\n"))
}

fn same_however_windows_are_cut(ptx: (&str, &str), steps: impl Fn() -> Vec<Step>) {
    let (words, whole) = outcome(ptx, &steps, WindowCut::default());
    assert!(words.iter().any(|&word| word != 0), "the kernel has written");
    for cut in cuts(&whole) {
        let name = format!("{} parts, {} ends", cut.divisor, cut.at.len());
        let (cut_words, result) = outcome(ptx, &steps, cut);
        assert!(result.windows > whole.windows, "{name}: {} windows", result.windows);
        assert_eq!(difference(&described(&result), &described(&whole)), None, "{name}");
        assert_eq!(cut_words, words, "{name}");
    }
}

#[test]
fn atomics_reductions_and_loads_of_the_same_words() {
    const CTAS: u32 = 24;
    const THREADS: u32 = 96;
    let bytes = u64::from(CTAS * THREADS * 8);
    same_however_windows_are_cut(("updates.ptx", UPDATES), || {
        vec![
            call(Call::Malloc { bytes: 128 }),
            call(Call::Malloc { bytes }),
            upload(0, vec![0; 128]),
            launch("updates", [CTAS, 1], [THREADS, 1], &[Argument::Value(0), Argument::Value(1)]),
            download(1, bytes),
        ]
    });
}

#[test]
fn memory_of_the_device_heap() {
    let ptx = ("device_runtime.ptx", include_str!("../../device_code/device_runtime.ptx"));
    same_however_windows_are_cut(ptx, || {
        let arguments = [Argument::Value(0), Argument::Value(1), Argument::Word(3), Argument::Word(64)];
        vec![
            call(Call::Malloc { bytes: 6 * 40 * 8 }),
            call(Call::Malloc { bytes: 6 * 40 * 4 }),
            launch("allocate", [6, 1], [40, 1], &arguments),
            download(1, 6 * 40 * 4),
        ]
    });
}

/// A block that is freed twice is a fault of the same thread at the same time.
#[test]
fn a_wrong_free() {
    let ptx = ("device_runtime.ptx", include_str!("../../device_code/device_runtime.ptx"));
    let fault = |cut: WindowCut| {
        let (program, _) = Steps::new(vec![
            launch("free_twice", [3, 1], [40, 1], &[Argument::Word(1)]),
            call(Call::DeviceSynchronize),
        ]);
        let options = RunOptions { cut, ..RunOptions::default() };
        let result = simulate_program(&built_in("v100_node"), "window_cuts", ptx, program, options);
        result.unwrap_or_else(|error| panic!("{error}"))
    };
    let whole = fault(WindowCut::default());
    let text = described(&whole);
    assert!(text.contains("where no block of the device heap begins"), "{text}");
    for cut in cuts(&whole) {
        assert_eq!(difference(&described(&fault(cut)), &text), None);
    }
}

#[test]
fn workloads_with_atomics_barriers_and_many_kernels() {
    for (workload, text) in [
        ("histogram", "words=2048,blocks=8"),
        ("lud", "size=64"),
        ("grid_sync", "cells=2000,iterations=2,blocks=16"),
        ("bfs", "nodes=512"),
    ] {
        let outcome = |cut| {
            let options = RunOptions { cut, ..RunOptions::default() };
            let result = run("v100_node", workload, parameters(text), options);
            assert_eq!(result.verified(), Some(true), "{workload}");
            described(&result)
        };
        let whole = outcome(WindowCut::default());
        for divisor in [2, 7] {
            let cut = outcome(WindowCut { divisor, ..WindowCut::default() });
            assert_eq!(difference(&cut, &whole), None, "{workload} in {divisor} parts");
        }
    }
}
