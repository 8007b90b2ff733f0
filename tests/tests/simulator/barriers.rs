//! Barriers of a CTA in divergent code.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::simulate_program;
use balar_host::Call;
use balar_tests::built_in;
use balar_tests::steps::{Argument, Steps, call, download, launch, word_of};

#[test]
fn threads_may_leave_a_loop_of_barriers_early() {
    // for (i = tid; i < 95; i += 64) { turns += 1; __syncthreads(); } to[tid] = turns: lane 31 of the first warp and the
    // whole second warp have one turn, the others two.
    let ptx = "\
.version 6.0
.target sm_60
.address_size 64
.visible .entry turns(.param .u64 to)
{
    .reg .b32 %r<4>; .reg .b64 %d<3>; .reg .pred %p;
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %r0;
    mov.u32 %r2, 0;
again:
    add.u32 %r2, %r2, 1;
    bar.sync 0;
    add.u32 %r1, %r1, 64;
    setp.lt.u32 %p, %r1, 95;
    @%p bra again;
    ld.param.u64 %d0, [to];
    mul.wide.u32 %d1, %r0, 4;
    add.u64 %d2, %d0, %d1;
    st.global.u32 [%d2], %r2;
    ret;
}
";
    const BYTES: u64 = 64 * 4;
    let (program, seen) = Steps::new(vec![
        call(Call::Malloc { bytes: BYTES }),
        launch("turns", [1, 1], [64, 1], &[Argument::Value(0)]),
        download(0, BYTES),
    ]);
    let ptx = ("turns.ptx", ptx);
    let result = simulate_program(&built_in("v100_node"), "barriers", ptx, program, RunOptions::default());
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    assert!(result.completed(), "{:?}", result.program);
    let expected: Vec<u32> = (0..64).map(|thread| if thread < 31 { 2 } else { 1 }).collect();
    assert_eq!(seen.lock().expect("the run is over").words(0), expected);
}

/// Cycles of a barrier in a row of 64, by the clock of the first warp of a CTA of so many threads.
fn cycles_of_a_barrier(threads: u32) -> f64 {
    let barriers = "bar.sync 0; ".repeat(64);
    let ptx = format!(
        "\
.version 6.0
.target sm_60
.address_size 64
.visible .entry barriers(.param .u64 to)
{{
    .reg .b32 %r<4>; .reg .b64 %d<2>; .reg .pred %p;
    ld.param.u64 %d0, [to];
    mov.u32 %r0, %tid.x;
    bar.sync 0;
    mov.u32 %r1, %clock;
    {barriers}
    mov.u32 %r2, %clock;
    sub.u32 %r3, %r2, %r1;
    setp.eq.u32 %p, %r0, 0;
    @%p st.global.u32 [%d0], %r3;
    ret;
}}
"
    );
    f64::from(word_of("barriers", &ptx, threads)) / 64.0
}

/// Zhang et al., IPDPS 2020: a V100 takes 22 cycles for a barrier of one warp. Of many warps, an SM counts one in two cycles, and the last
/// one waits as long as the others.
#[test]
fn a_barrier_takes_its_latency_and_two_cycles_for_each_further_warp() {
    for (threads, least, most) in [(32, 22.0, 22.5), (16, 22.0, 22.5), (256, 36.0, 40.0), (1024, 84.0, 88.0)] {
        let cycles = cycles_of_a_barrier(threads);
        assert!((least..=most).contains(&cycles), "{threads} threads: {cycles}");
    }
}
