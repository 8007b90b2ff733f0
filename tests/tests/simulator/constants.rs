//! Reads of constants at several addresses.

use balar_tests::steps::word_of;

/// Cycles of a read of constants in a row of 32, each of which waits for the one before, by the clock of the last of so many warps. The lanes
/// of a warp have so many addresses.
fn cycles_of_a_read(warps: u32, addresses: u32) -> f64 {
    let reads = "ld.const.u32 %r4, [%d2]; cvt.u64.u32 %d3, %r4; add.u64 %d2, %d2, %d3; ".repeat(32);
    let ptx = format!(
        "\
.version 6.0
.target sm_60
.address_size 64
.const .align 4 .b32 zeros[32];
.visible .entry reads(.param .u64 to)
{{
    .reg .b32 %r<5>; .reg .b64 %d<4>; .reg .pred %p;
    ld.param.u64 %d0, [to];
    mov.u32 %r0, %tid.x;
    rem.u32 %r1, %r0, {addresses};
    mul.wide.u32 %d1, %r1, 4;
    mov.u64 %d2, zeros;
    add.u64 %d2, %d2, %d1;
    bar.sync 0;
    mov.u32 %r1, %clock;
    {reads}
    mov.u32 %r2, %clock;
    sub.u32 %r3, %r2, %r1;
    add.u32 %r3, %r3, %r4;
    setp.eq.u32 %p, %r0, {last};
    @%p st.global.u32 [%d0], %r3;
    ret;
}}
",
        last = 32 * (warps - 1)
    );
    f64::from(word_of("reads", &ptx, 32 * warps)) / 32.0
}

/// AccelWattch's hw_perf.csv: a Quadro GV100 takes two cycles for each address of the constants of CUDAkernel1DCT, for all sub-cores of an SM.
#[test]
fn the_constant_cache_takes_an_address_in_two_cycles() {
    for (warps, addresses) in [(8, 4), (8, 32), (2, 32), (16, 8)] {
        let (found, port) = (cycles_of_a_read(warps, addresses), f64::from(2 * warps * addresses));
        assert!((0.95 * port..1.1 * port + 2.0).contains(&found), "{warps} warps, {addresses} addresses: {found}");
    }
    // One address is an operand, of which each sub-core has as many as it likes.
    let one = cycles_of_a_read(8, 1);
    assert!(one < 24.0, "{one}");
}
