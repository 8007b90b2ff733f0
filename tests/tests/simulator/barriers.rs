//! Barriers of a CTA in divergent code.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::simulate_program;
use balar_host::Call;
use balar_tests::built_in;
use balar_tests::steps::{Argument, Steps, call, download, launch};

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
