//! Products of matrices by groups of warps (`wgmma`) on a whole GPU: vectoradd, which checks its sums, with kernels whose operands pass
//! through accumulators.

use super::vector_kernel::{self, run_kernel};

/// Kernel `vectorAdd` with this body, in CTAs of 128 threads: %f1 and %f2 are this thread's operands, of which the kernel writes the sum at
/// the end. %d1 is the descriptor of a matrix of zeros in shared memory; %f3 and %f4 are further accumulators.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.8
.target sm_90a
.address_size 64
.visible .entry vectorAdd(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 pn)
{{
	.reg .pred %p<4>; .reg .f32 %f<8>; .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .b64 %d<3>; .reg .b32 %h<64>;
	.shared .align 128 .b8 zeros[512];
	ld.param.u64 %rd1, [pa]; ld.param.u64 %rd2, [pb]; ld.param.u64 %rd3, [pc];
	mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
	mad.lo.u32 %r6, %r2, %r3, %r1;
	mul.wide.u32 %rd4, %r6, 4; add.u64 %rd1, %rd1, %rd4; add.u64 %rd2, %rd2, %rd4; add.u64 %rd3, %rd3, %rd4;
	mov.u32 %r4, zeros; shl.b32 %r7, %r1, 2; add.u32 %r5, %r4, %r7; st.shared.u32 [%r5], 0;
	shr.u32 %r4, %r4, 4; cvt.u64.u32 %d1, %r4; add.u64 %d1, %d1, 0x80000;
	ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd2]; mov.f32 %f3, 0f00000000; mov.f32 %f4, %f3;
	bar.sync 0;
{body}
	add.rn.f32 %f5, %f1, %f2;
	st.global.f32 [%rd3], %f5;
	ret;
}}
"
    )
}

const NODE: [&str; 4] = ["--topology", "h100_sxm_node", "--detail", "all"];
const FUNCTIONAL: [&str; 4] = ["--topology", "h100_sxm_node", "--detail", "none"];

/// Checks that the sums are right without timing, too. Gives the cycles in which warps waited for a result, and in which they waited for tensor
/// cores.
fn verified(name: &str, body: &str) -> [u64; 2] {
    let ptx = kernel(body);
    let functional = run_kernel(&ptx, "1", &FUNCTIONAL);
    let functional: serde_json::Value = serde_json::from_str(&functional.stdout).expect("JSON");
    assert_eq!(functional["verified"], true, "{name}: without timing");
    vector_kernel::verified(name, &ptx, &NODE, ["stall_short_scoreboard", "stall_math_pipe_throttle"])
}

const PRODUCT: &str =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d1, 1, 1, 1, 0, 0;";
const FENCE: &str = "wgmma.fence.sync.aligned;";
const COMMIT: &str = "wgmma.commit_group.sync.aligned;";

/// Waits until so many groups are under way.
fn wait(groups: u32) -> String {
    format!("wgmma.wait_group.sync.aligned {groups};")
}

#[test]
fn groups_of_products_are_waited_for() {
    let [waited, _] = verified("one group", &format!("{FENCE} {PRODUCT} {COMMIT} {}", wait(0)));
    let [waited_for_none, _] = verified("no wait", &format!("{FENCE} {PRODUCT} {COMMIT}"));
    assert!(waited > waited_for_none, "a product takes time: {waited}, {waited_for_none}");
    let two = format!("{FENCE} {PRODUCT} {COMMIT} {PRODUCT} {COMMIT}");
    let [waited_for_first, _] = verified("the first group", &format!("{two} {}", wait(1)));
    let [waited_for_both, _] = verified("both groups", &format!("{two} {}", wait(0)));
    assert!(waited_for_first < waited_for_both, "{waited_for_first} of {waited_for_both}");
    // What no commit has made part of a group is not waited for, but for the other warps.
    let [waited_for_open, _] = verified("no group", &format!("{FENCE} {PRODUCT} {}", wait(0)));
    assert!(waited_for_open < waited_for_first, "{waited_for_open} of {waited_for_first}");
}

/// A product is one of four warps: what it multiplies may change when the wait of one of them is over.
#[test]
fn no_warp_goes_on_before_its_group_has_multiplied() {
    let early = format!(
        "setp.lt.u32 %p1, %r1, 32; @!%p1 nanosleep.u32 2000; {FENCE} {PRODUCT} {COMMIT} {}
        @%p1 st.shared.u32 [%r5], 0x3c003c00; @%p1 st.shared.u32 [%r5+128], 0x3c003c00;
        @%p1 st.shared.u32 [%r5+256], 0x3c003c00; @%p1 st.shared.u32 [%r5+384], 0x3c003c00;",
        wait(0)
    );
    verified("operands that change after the wait", &early);
}

/// Each warp of a group may write a part of what is multiplied, without a barrier before the product.
#[test]
fn no_warp_multiplies_before_its_group_has_come() {
    let late = format!(
        "st.shared.u32 [%r5], 0x3c003c00; bar.sync 0; setp.lt.u32 %p1, %r1, 32; @!%p1 nanosleep.u32 2000;
        st.shared.u32 [%r5], 0; fence.proxy.async; {FENCE} {PRODUCT} {COMMIT} {}",
        wait(0)
    );
    verified("operands that come late", &late);
}

/// A product of 256 columns takes the tensor cores much longer than one of 8, and its warp goes on.
#[test]
fn tensor_cores_are_taken_for_as_long_as_a_product_has_columns() {
    let names: Vec<String> = (0..64).map(|number| format!("%h{number}")).collect();
    let zeros: String = names.iter().map(|name| format!("mov.b32 {name}, 0; ")).collect();
    let wide = format!(
        "wgmma.mma_async.sync.aligned.m64n256k16.f16.f16.f16 {{{}}}, %d1, %d1, 1, 1, 1, 0, 0;",
        names.join(", ")
    );
    let after = |first: &str| verified(first, &format!("{zeros} {FENCE} {first} {PRODUCT} {COMMIT} {}", wait(0)));
    let (narrow, wide) = (after(PRODUCT), after(&wide));
    assert!(narrow[1] < wide[1], "cycles that the second product waits for the first: {narrow:?}, {wide:?}");
}

/// What `--check-hazards` says about a kernel with this body; nothing where it is right.
fn hazard(body: &str) -> String {
    let called = run_kernel(&kernel(body), "1", &[&NODE[..], &["--check-hazards"]].concat());
    if called.code == 0 { String::new() } else { called.stderr }
}

#[test]
fn writing_to_what_a_product_reads_is_a_hazard() {
    // Warp 1 has its rows of A from byte 512 on, where nothing lies; B is in the first 256 bytes.
    let store = "st.shared.u32 [%r5], 0;";
    let (done, first) = (wait(0), format!("{FENCE} {PRODUCT} {COMMIT}"));
    assert_eq!(hazard(&format!("{first} {done} {store}")), "");
    for early in [format!("{first} {store} {done}"), format!("{first} {} {store} {done}", wait(1))] {
        let said = hazard(&early);
        assert!(
            said.contains("an instruction writes to what is still to be read, at 0x0 of shared memory, by"),
            "{said}"
        );
        assert!(said.contains("wgmma.mma_async"), "{said}");
    }
    // The first of two groups is waited for, the second one not.
    let two = format!("{first} {PRODUCT} {COMMIT} {} {store} {done}", wait(1));
    assert!(hazard(&two).contains("is still to be read"));
    let copy = format!("{first} cp.async.ca.shared.global [%r5], [%rd1], 4; cp.async.wait_all; {done}");
    assert!(hazard(&copy).contains("a copy writes to what is still to be read"));
    assert_eq!(hazard(&format!("{first} add.u32 %r5, %r5, 512; ld.shared.u32 %r8, [%r4]; {done}")), "", "a read");
}

#[test]
fn multiplying_what_a_copy_writes_is_a_hazard() {
    let copy = |wait: &str| {
        format!(
            "sub.u64 %rd5, %rd1, %rd4; mov.u32 %r8, 0; cp.async.ca.shared.global [%r5], [%rd5], 4, %r8;
            cp.async.ca.shared.global [%r5], [%rd5], 4, %r8; {wait} bar.sync 0; fence.proxy.async;
            {FENCE} {PRODUCT} {COMMIT} {}",
            super::matrix_groups::wait(0)
        )
    };
    assert_eq!(hazard(&copy("cp.async.wait_all;")), "");
    let part = copy("").replacen("4, %r8", "4", 1).replacen("[%rd5], 4, %r8", "[%rd5], 4, 0", 1);
    let said = hazard(&part);
    assert!(said.contains("a product of matrices reads what is still to be written"), "{said}");
}

#[test]
fn a_matrix_outside_of_shared_memory_faults() {
    let body = format!("mov.b64 %d2, 0x8000000000083fff; {}", PRODUCT.replace("%d1, %d1", "%d1, %d2"));
    let called = run_kernel(&kernel(&body), "1", &NODE);
    assert_ne!(called.code, 0);
    assert!(called.stderr.contains("16-byte shared load"), "{}", called.stderr);
}
