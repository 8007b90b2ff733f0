//! Copies of many bytes (`cp.async.bulk`) on a whole GPU: vectoradd, which checks its sums, with kernels whose operands such copies bring, in
//! clusters of two CTAs.

use super::vector_kernel::{self, run_kernel};

/// Kernel `vectorAdd` with this body, in clusters of two CTAs of 128 threads: %rd1 and %rd2 are the addresses of the CTA's operands, %rd3 that
/// of this thread's sum, %r1 its number. %r4 and %r5 are the places in shared memory for its operands, which are `a` and `b`; `bar` is an
/// `mbarrier` object for one arrival. %p1 is the first thread. The body leaves the operands in %f1 and %f2.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.8
.target sm_90
.address_size 64
.visible .entry vectorAdd(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 pn) .explicitcluster .reqnctapercluster 2, 1, 1
{{
	.reg .pred %p<8>; .reg .f32 %f<4>; .reg .b32 %r<12>; .reg .b64 %rd<12>;
	.shared .align 16 .b8 a[512]; .shared .align 16 .b8 b[512]; .shared .align 8 .b64 bar;
	ld.param.u64 %rd1, [pa]; ld.param.u64 %rd2, [pb]; ld.param.u64 %rd3, [pc];
	mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
	mul.wide.u32 %rd4, %r2, 512; add.u64 %rd1, %rd1, %rd4; add.u64 %rd2, %rd2, %rd4; add.u64 %rd3, %rd3, %rd4;
	mul.wide.u32 %rd4, %r1, 4; add.u64 %rd3, %rd3, %rd4;
	mov.u32 %r4, a; mov.u32 %r5, b; shl.b32 %r7, %r1, 2; add.u32 %r4, %r4, %r7; add.u32 %r5, %r5, %r7;
	setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [bar], 1; fence.proxy.async; bar.sync 0;
{body}
	add.rn.f32 %f3, %f1, %f2;
	st.global.f32 [%rd3], %f3;
	ret;
}}
"
    )
}

const NODE: [&str; 5] = ["--topology", "h100_sxm_node", "--detail", "all", "--check-hazards"];

const COPIES: &str = "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;
    @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [a], [%rd1], 512, [bar];
    @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [b], [%rd2], 512, [bar];";
const WAIT: &str = "W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;";
const LOAD: &str = "ld.shared.f32 %f1, [%r4]; ld.shared.f32 %f2, [%r5];";

/// What a kernel with this body, which fails, says.
fn failure(body: &str) -> String {
    let called = run_kernel(&kernel(body), "1", &NODE);
    assert_ne!(called.code, 0, "{body}");
    called.stderr
}

#[test]
fn operands_come_by_copies() {
    let [slept] =
        vector_kernel::verified("copies", &kernel(&format!("{COPIES} {WAIT} {LOAD}")), &NODE, ["stall_sleeping"]);
    assert!(slept > 0, "threads sleep while data come");
}

/// In the second CTA of a cluster as in the first.
#[test]
fn reading_before_the_barrier_is_a_hazard() {
    for rank in 0..2 {
        let early = format!(
            "{COPIES} mov.u32 %r8, %cluster_ctarank; setp.ne.u32 %p3, %r8, {rank}; @%p3 bra W; {LOAD} {WAIT} {LOAD}"
        );
        let stderr = failure(&early);
        assert!(stderr.contains("reads what a bulk copy still writes"), "rank {rank}: {stderr}");
    }
}

/// A second copy to a place that another one has not filled.
#[test]
fn a_copy_over_a_copy_is_a_hazard() {
    let over = COPIES.replacen("[b], [%rd2]", "[a], [%rd2]", 1);
    let stderr = failure(&format!("{over} {WAIT} {LOAD}"));
    assert!(stderr.contains("a bulk copy writes to what a bulk copy still writes"), "{stderr}");
}

#[test]
fn writing_to_what_is_sent_is_a_hazard() {
    let sent = |wait: &str| {
        format!(
            "ld.shared.f32 %f1, [%r4]; {COPIES} {WAIT} {LOAD} add.rn.f32 %f3, %f1, %f2; st.shared.f32 [%r4], %f3;
            fence.proxy.async; bar.sync 0;
            sub.u64 %rd5, %rd3, %rd4; @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd5], [a], 512;
            @%p1 cp.async.bulk.commit_group; {wait} bar.sync 0; st.shared.f32 [%r4], %f1;"
        )
    };
    vector_kernel::verified("sums by a copy", &kernel(&sent("@%p1 cp.async.bulk.wait_group.read 0;")), &NODE, []);
    let stderr = failure(&sent(""));
    assert!(stderr.contains("writes to what a bulk copy still reads"), "{stderr}");
}

#[test]
fn faults_name_their_cause() {
    for (barrier, named) in [("bar+4", "misaligned address"), ("%r9", "8-byte shared atomic")] {
        let body = format!(
            "mov.u32 %r9, 262144; {} mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1;",
            COPIES.replace("512, [bar]", &format!("512, [{barrier}]"))
        );
        let stderr = failure(&body);
        assert!(stderr.contains(named), "{barrier}: {stderr}");
    }
}
