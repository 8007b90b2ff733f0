//! Kernels that run for their values alone: they wait for each other, fail, and never end, as timed ones do.

use balar_actors::engine::{Outcome, RunOptions};
use balar_actors::simulation::{RunResult, simulate_program};
use balar_host::Call;
use balar_host::call::ProfilerCall;
use balar_protocol::DetailChoice;
use balar_protocol::detail::TimedPart;
use balar_tests::built_in;
use balar_tests::steps::{Argument, DOUBLE, Seen, Step, Steps, call, download, launch};
use std::time::Duration;

const HEAD: &str = ".version 6.0\n.target sm_60\n.address_size 64\n";

fn run(ptx: &str, steps: Vec<Step>, options: RunOptions) -> (RunResult, Seen) {
    let (program, seen) = Steps::new(steps);
    let text = format!("{HEAD}{ptx}");
    let result = simulate_program(&built_in("v100_node"), "detail", ("k.ptx", &text), program, options);
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    let seen = seen.lock().expect("the run is over").clone();
    (result, seen)
}

fn functional(threads: usize) -> RunOptions {
    RunOptions { threads, detail: DetailChoice::none(), ..RunOptions::default() }
}

/// Runs a kernel on zeroed memory of so many words, without timing, and gives these for any number of threads.
fn words(ptx: &str, (grid, block): (u32, u32), count: u64) -> Vec<u32> {
    let of = |threads| {
        let steps = vec![
            call(Call::Malloc { bytes: 4 * count }),
            launch("k", [grid, 1], [block, 1], &[Argument::Value(0)]),
            download(0, 4 * count),
        ];
        let (result, seen) = run(ptx, steps, functional(threads));
        assert!(result.completed(), "{:?} {:?}", result.outcome, result.program);
        seen.words(0)
    };
    let expected = of(1);
    assert_eq!(of(2), expected);
    assert_eq!(of(4), expected);
    expected
}

#[test]
fn ctas_take_a_spin_lock_one_after_the_other() {
    let ptx = "
.visible .entry k(.param .u64 to) {
    .reg .b32 %r<4>; .reg .b64 %d<2>; .reg .pred %p<2>;
    ld.param.u64 %d0, [to];
    mov.u32 %r0, %tid.x;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra done;
again:
    atom.global.cas.b32 %r1, [%d0], 0, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
    ld.volatile.global.u32 %r2, [%d0+4];
    add.u32 %r2, %r2, 1;
    st.volatile.global.u32 [%d0+4], %r2;
    membar.gl;
    st.volatile.global.u32 [%d0], 0;
done:
    ret;
}";
    assert_eq!(words(ptx, (400, 64), 2), [0, 400]);
}

/// CTA i waits until CTA i - 1 has written its word.
#[test]
fn ctas_wait_for_those_before_them() {
    let ptx = "
.visible .entry k(.param .u64 to) {
    .reg .b32 %r<4>; .reg .b64 %d<3>; .reg .pred %p<2>;
    ld.param.u64 %d0, [to];
    mov.u32 %r0, %ctaid.x;
    mul.wide.u32 %d1, %r0, 4;
    add.u64 %d0, %d0, %d1;
    mov.u32 %r1, 0;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 bra go;
again:
    ld.volatile.global.u32 %r1, [%d0+-4];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra again;
go:
    add.u32 %r1, %r1, 3;
    st.volatile.global.u32 [%d0], %r1;
    ret;
}";
    let expected: Vec<u32> = (1..=3000).map(|cta| 3 * cta).collect();
    assert_eq!(words(ptx, (3000, 32), 3000), expected);
}

/// Warp 0 of a CTA spins on shared memory until warp 1 has written it.
#[test]
fn warps_of_a_cta_wait_for_each_other() {
    let ptx = "
.visible .entry k(.param .u64 to) {
    .reg .b32 %r<4>; .reg .b64 %d<3>; .reg .pred %p<2>;
    .shared .u32 flag;
    ld.param.u64 %d0, [to];
    mov.u32 %r0, %tid.x;
    mov.u32 %r2, %ctaid.x;
    setp.ge.u32 %p0, %r0, 32;
    @%p0 bra write;
again:
    ld.volatile.shared.u32 %r1, [flag];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra again;
    mul.wide.u32 %d1, %r2, 4;
    add.u64 %d0, %d0, %d1;
    st.global.u32 [%d0], %r1;
    ret;
write:
    add.u32 %r1, %r2, 7;
    st.volatile.shared.u32 [flag], %r1;
    ret;
}";
    assert_eq!(words(ptx, (100, 64), 100), (7..107).collect::<Vec<u32>>());
}

#[test]
fn a_thread_sees_its_own_writes_in_order() {
    let ptx = "
.visible .entry k(.param .u64 to) {
    .reg .b32 %r<4>; .reg .b64 %d<3>; .reg .pred %p<2>;
    ld.param.u64 %d0, [to];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %d1, %r0, 16;
    add.u64 %d0, %d0, %d1;
    st.global.u32 [%d0], 5;
    red.global.add.u32 [%d0], 1;
    ld.global.u32 %r1, [%d0];
    st.global.u32 [%d0+4], %r1;
    st.global.u32 [%d0], 9;
    atom.global.add.u32 %r2, [%d0], 1;
    st.global.u32 [%d0+8], %r2;
    ld.global.u32 %r3, [%d0];
    st.global.u32 [%d0+12], %r3;
    ret;
}";
    let expected: Vec<u32> = (0..64).flat_map(|_| [10, 6, 9, 10]).collect();
    assert_eq!(words(ptx, (1, 64), 256), expected);
}

/// Clocks go on, so that a kernel that waits for so many cycles ends.
#[test]
fn a_kernel_waits_by_the_clock() {
    let ptx = "
.visible .entry k(.param .u64 to) {
    .reg .b32 %r<2>; .reg .b64 %d<6>; .reg .pred %p<3>;
    ld.param.u64 %d0, [to];
    mov.u64 %d1, %clock64;
    mov.u64 %d4, %globaltimer;
again:
    mov.u64 %d2, %clock64;
    sub.u64 %d2, %d2, %d1;
    setp.lt.u64 %p0, %d2, 100000;
    @%p0 bra again;
more:
    mov.u64 %d3, %globaltimer;
    sub.u64 %d3, %d3, %d4;
    setp.lt.u64 %p1, %d3, 200000;
    @%p1 bra more;
    nanosleep.u32 1000;
    mov.u32 %r0, 1;
    st.global.u32 [%d0], %r0;
    ret;
}"
    .replace("nanosleep.u32 1000;", "");
    assert_eq!(words(&ptx, (3, 32), 1), [1]);
}

#[test]
fn a_fault_has_the_words_of_a_timed_one() {
    let ptx = "
.visible .entry k(.param .u64 to) {
    .reg .b32 %r<4>; .reg .b64 %d<3>; .reg .pred %p<2>;
    ld.param.u64 %d0, [to];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    setp.ne.u32 %p0, %r0, 37;
    setp.ne.or.u32 %p0, %r1, 5, %p0;
    @%p0 bra done;
    mov.u64 %d0, 4096;
done:
    st.global.u32 [%d0], %r0;
    ret;
}";
    let error = |options| {
        let steps = vec![
            call(Call::Malloc { bytes: 4 }),
            launch("k", [200, 1], [64, 1], &[Argument::Value(0)]),
            call(Call::DeviceSynchronize),
        ];
        let (result, _) = run(ptx, steps, options);
        result.program.and_then(|program| program.error).expect("the kernel fails")
    };
    let timed = error(RunOptions::default());
    assert!(timed.contains("illegal address 0x1000 in a 4-byte global store"), "{timed}");
    assert!(timed.contains("block (5, 0, 0), thread (37, 0, 0), at k.ptx:"), "{timed}");
    for threads in [1, 2, 4] {
        assert_eq!(error(functional(threads)), timed);
    }
}

#[test]
fn a_kernel_that_never_ends_is_ended_by_the_limit() {
    let ptx = ".visible .entry k(.param .u64 to) { again: bra again; }";
    let steps = || {
        vec![
            call(Call::Malloc { bytes: 4 }),
            launch("k", [500, 1], [64, 1], &[Argument::Value(0)]),
            call(Call::DeviceSynchronize),
        ]
    };
    for threads in [1, 2] {
        let options = RunOptions { max_wall: Some(Duration::from_millis(100)), ..functional(threads) };
        let (result, _) = run(ptx, steps(), options);
        assert_eq!(result.outcome, Outcome::WallLimit);
        let launch = result.statistics.kernels.first().expect("it runs");
        assert!(!launch.completed && launch.timed_cycles().is_none());
    }
}

#[test]
fn warps_that_wait_at_a_barrier_for_ever_are_a_deadlock() {
    // Each warp waits for all threads at a barrier of its own.
    let ptx = "
.visible .entry k(.param .u64 to) {
    .reg .b32 %r0; .reg .pred %p0;
    mov.u32 %r0, %tid.x;
    setp.lt.u32 %p0, %r0, 32;
    @%p0 bra first;
    bar.sync 2;
    ret;
first:
    bar.sync 1;
    ret;
}";
    let steps = vec![
        call(Call::Malloc { bytes: 4 }),
        launch("k", [2, 1], [64, 1], &[Argument::Value(0)]),
        call(Call::DeviceSynchronize),
    ];
    let (result, _) = run(ptx, steps, functional(2));
    let Outcome::Deadlock(report) = &result.outcome else { panic!("{:?}", result.outcome) };
    let report = report.to_string();
    assert!(
        report.contains("1 CTAs run for their values alone, 0 wait for that; 2 of their warps are at barriers"),
        "{report}"
    );
}

/// What a program does between `cudaProfilerStart` and `cudaProfilerStop` is timed, and recorded as such.
#[test]
fn ranges_of_profilers_choose_what_is_timed() {
    let profiler = |to: ProfilerCall| call(Call::Profiler(to));
    let range = |name: &str| name.to_owned();
    let double = || launch("double", [4, 1], [64, 1], &[Argument::Value(0), Argument::Value(0)]);
    let steps = || {
        vec![
            call(Call::Malloc { bytes: 1024 }),
            double(),
            profiler(ProfilerCall::Start),
            double(),
            profiler(ProfilerCall::Stop),
            profiler(ProfilerCall::Begin(range("solve"))),
            double(),
            double(),
            profiler(ProfilerCall::End(range("solve"))),
            double(),
            call(Call::DeviceSynchronize),
        ]
    };
    let timed = |parts: Vec<TimedPart>| -> (Vec<bool>, Vec<bool>) {
        let (program, _) = Steps::new(steps());
        let options = RunOptions { detail: DetailChoice::of(parts), ..RunOptions::default() };
        let result = simulate_program(&built_in("v100_node"), "detail", ("double.ptx", DOUBLE), program, options);
        let result = result.unwrap_or_else(|error| panic!("{error}"));
        assert!(result.completed(), "{:?}", result.program);
        let launches = || result.statistics.kernels.iter();
        (
            launches().map(|launch| launch.detail.is_timed()).collect(),
            launches().map(|launch| launch.is_profiled).collect(),
        )
    };
    let profiled = vec![false, true, false, false, false];
    assert_eq!(timed(vec![TimedPart::Profiler]), (profiled.clone(), profiled.clone()));
    let solve = TimedPart::Range(range("solve"));
    assert_eq!(timed(vec![solve]), (vec![false, false, true, true, false], profiled));
}
