//! Copies to shared memory that the warp does not wait for, and `mbarrier` objects, on a whole GPU: vectoradd, which checks its
//! sums, with kernels that fetch their operands so.

use super::vector_kernel::{self, run_kernel};

/// Kernel `vectorAdd` with this body, in CTAs of 128 threads: %rd1 and %rd2 are the addresses of this thread's operands, %rd3 that
/// of its sum, %r1 its number. %r4 and %r5 are the places in shared memory for its operands, which are `a` and `b`; `bar` is an
/// `mbarrier` object. The body leaves the operands in %f1 and %f2.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.8
.target sm_90
.address_size 64
.visible .entry vectorAdd(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 pn)
{{
	.reg .pred %p<8>; .reg .f32 %f<4>; .reg .b32 %r<12>; .reg .b64 %rd<12>;
	.shared .align 16 .b8 a[512]; .shared .align 16 .b8 b[512]; .shared .align 8 .b64 bar;
	ld.param.u64 %rd1, [pa]; ld.param.u64 %rd2, [pb]; ld.param.u64 %rd3, [pc];
	mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
	mad.lo.u32 %r6, %r2, %r3, %r1;
	mul.wide.u32 %rd4, %r6, 4; add.u64 %rd1, %rd1, %rd4; add.u64 %rd2, %rd2, %rd4; add.u64 %rd3, %rd3, %rd4;
	mov.u32 %r4, a; mov.u32 %r5, b; shl.b32 %r7, %r1, 2; add.u32 %r4, %r4, %r7; add.u32 %r5, %r5, %r7;
	setp.eq.u32 %p1, %r1, 0;
{body}
	add.rn.f32 %f3, %f1, %f2;
	st.global.f32 [%rd3], %f3;
	ret;
}}
"
    )
}

/// Before Ampere, no GPU copies asynchronously.
const NODE: [&str; 4] = ["--topology", "v100_node", "--set", "gpu.scheduler.compute_capability=(9, 0)"];

/// Gives the cycles in which warps waited for memory and in which they slept.
fn verified(name: &str, body: &str) -> [u64; 2] {
    vector_kernel::verified(name, &kernel(body), &NODE, ["stall_long_scoreboard", "stall_sleeping"])
}

const LOAD: &str = "ld.shared.f32 %f1, [%r4]; ld.shared.f32 %f2, [%r5];";

/// The copies of both operands.
fn copies(between: &str) -> String {
    format!("cp.async.ca.shared.global [%r4], [%rd1], 4; {between} cp.async.ca.shared.global [%r5], [%rd2], 4;")
}

const START: &str = "@%p1 mbarrier.init.shared.b64 [bar], 128; bar.sync 0;";

/// Waits for a phase; the labels have a number.
fn wait(parity: u32) -> String {
    format!("W{parity}: mbarrier.try_wait.parity.shared.b64 %p2, [bar], {parity}; @!%p2 bra W{parity};")
}

#[test]
fn reading_before_the_wait_is_a_hazard() {
    let checked = [&NODE[..], &["--check-hazards"]].concat();
    let run = |body: &str| run_kernel(&kernel(body), "1", &checked);
    let both = copies("cp.async.commit_group;");
    for (waits, is_early) in [
        ("cp.async.commit_group; cp.async.wait_group 0;", false),
        ("cp.async.wait_all;", false),
        ("cp.async.commit_group; cp.async.wait_group 1;", true),
        ("cp.async.commit_group;", true),
        ("", true),
    ] {
        let called = run(&format!("{both} {waits} {LOAD}"));
        assert_eq!(called.code != 0, is_early, "{waits}: {}", called.stderr);
        let said = "an instruction reads what is still to be written";
        assert_eq!(called.stderr.contains(said), is_early, "{waits}: {}", called.stderr);
    }
    let over = run(&format!("{both} st.shared.u32 [%r5], 0; cp.async.wait_all; {LOAD}"));
    assert!(over.stderr.contains("an instruction writes to what is still to be written"), "{}", over.stderr);
    let barrier = format!("{START} {both} cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; {} {LOAD}", wait(0));
    assert_eq!(run(&barrier).code, 0, "an mbarrier object is a wait, too");
}

#[test]
fn groups_of_copies() {
    let both = copies("cp.async.commit_group;");
    let [waited, _] = verified(
        "two groups",
        &format!(
            "{both} cp.async.commit_group; cp.async.wait_group 1; ld.shared.f32 %f1, [%r4]; cp.async.wait_group 0; \
             ld.shared.f32 %f2, [%r5];"
        ),
    );
    let [waited_for_all, _] = verified("all copies", &format!("{} cp.async.wait_all; {LOAD}", copies("")));
    assert!(waited > 0 && waited_for_all > 0, "the data take time: {waited}, {waited_for_all}");
    // Without a wait nobody waits for the data: values are known when the copies are issued.
    let [waited_for_none, _] = verified("no wait", &format!("{} {LOAD}", copies("")));
    assert!(waited_for_none < waited_for_all, "{waited_for_none} of {waited_for_all}");
    // Sixteen bytes by every fourth thread, past the L1.
    verified(
        "sixteen bytes",
        &format!(
            "and.b32 %r8, %r1, 3; setp.eq.u32 %p3, %r8, 0; @%p3 cp.async.cg.shared.global [%r4], [%rd1], 16; \
             @%p3 cp.async.cg.shared.global.L2::128B [%r5], [%rd2], 16, 16; cp.async.commit_group; cp.async.wait_group 0; \
             bar.sync 0; {LOAD}"
        ),
    );
}

#[test]
fn arrivals_after_copies() {
    for (name, arrival) in [
        ("arrivals that count", "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];"),
        ("arrivals that do not", "cp.async.mbarrier.arrive.shared.b64 [bar]; mbarrier.arrive.shared.b64 _, [bar];"),
    ] {
        let [_, slept] = verified(name, &format!("{START} {} {arrival} {} {LOAD}", copies(""), wait(0)));
        assert!(slept > 0, "{name}: threads sleep while data come");
    }
}

/// Threads that copy end before their data come: what they announced still happens.
#[test]
fn copies_outlive_their_threads() {
    let body = format!(
        "@%p1 mbarrier.init.shared.b64 [bar], 64; bar.sync 0; setp.lt.u32 %p3, %r1, 64; @!%p3 bra CONSUME;\n\
         shl.b32 %r8, %r1, 2; add.u32 %r8, %r8, %r4; mul.wide.u32 %rd5, %r1, 4;\n\
         sub.u32 %r8, %r4, %r7; shl.b32 %r9, %r1, 3; add.u32 %r8, %r8, %r9; add.u64 %rd6, %rd1, %rd5;\n\
         cp.async.ca.shared.global [%r8], [%rd6], 8;\n\
         sub.u32 %r8, %r5, %r7; add.u32 %r8, %r8, %r9; add.u64 %rd6, %rd2, %rd5;\n\
         cp.async.ca.shared.global [%r8], [%rd6], 8;\n\
         cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd2];\n\
         add.rn.f32 %f3, %f1, %f2; st.global.f32 [%rd3], %f3; exit;\n\
         CONSUME: {} {LOAD}",
        wait(0)
    );
    verified("copies outlive their threads", &body);
}

#[test]
fn barriers_of_several_phases() {
    // Each thread hands its first operand to the one on the other side, and in the next phase that one hands it back. The first
    // wait is by state, the second by parity.
    let body = format!(
        "{START} ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd2];\n\
         sub.u32 %r8, 127, %r1; shl.b32 %r8, %r8, 2; mov.u32 %r9, a; add.u32 %r9, %r9, %r8; mov.u32 %r10, b; add.u32 %r10, %r10, %r8;\n\
         st.shared.f32 [%r9], %f1; mbarrier.arrive.shared.b64 %rd7, [bar];\n\
         W: mbarrier.try_wait.shared.b64 %p2, [bar], %rd7; @!%p2 bra W;\n\
         ld.shared.f32 %f1, [%r4]; st.shared.f32 [%r10], %f1; mbarrier.arrive.shared.b64 _, [bar]; {} ld.shared.f32 %f1, [%r5];",
        wait(1)
    );
    verified("two phases", &body);
}

#[test]
fn faults_name_their_cause() {
    for (body, named) in [
        ("atom.global.add.u32 %r8, [%rd1+2], 1;", "misaligned address"),
        ("atom.global.cas.b64 %rd8, [%rd1+4], 1, 1;", "8-byte global atomic"),
        ("mov.u64 %rd8, 4096; red.global.add.u32 [%rd8], 1;", "illegal address 0x1000 in a 4-byte global atomic"),
        ("atom.shared.add.u32 %r8, [65536], 1;", "4-byte shared atomic"),
        ("cp.async.ca.shared.global [%r4], [%rd1+2], 4;", "misaligned address"),
        ("cp.async.ca.shared.global [%r4+2], [%rd1], 4;", "4-byte shared store"),
        ("mov.u64 %rd8, 4096; cp.async.ca.shared.global [%r4], [%rd8], 4;", "4-byte global load"),
        ("mbarrier.arrive.shared.b64 _, [bar+4];", "misaligned address"),
        ("cp.async.mbarrier.arrive.shared.b64 [131072];", "8-byte shared atomic"),
        ("ld.global.v4.f32 {%f1, %f2, %f3, _}, [%rd1+8];", "16-byte global load"),
        ("cvta.param.u64 %rd8, pa; st.u64 [%rd8], %rd1;", "8-byte param store"),
    ] {
        let called = run_kernel(&kernel(&format!("mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; {body}")), "1", &NODE);
        assert_ne!(called.code, 0, "{body}");
        assert!(called.stderr.contains(named), "{body}: {}", called.stderr);
    }
}
