//! Products of matrices by groups of warps (`wgmma`) on a whole GPU: vectoradd, which checks its sums, with kernels whose operands pass
//! through accumulators.

use crate::call::{Called, call_in};
use std::fs;
use tempfile::TempDir;

/// Kernel `vectorAdd` with this body, in CTAs of 128 threads: %f1 and %f2 are this thread's operands, of which the kernel writes the sum at
/// the end. %d1 is the descriptor of a matrix of zeros in shared memory; %f3 and %f4 are further accumulators.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.8
.target sm_90a
.address_size 64
.visible .entry vectorAdd(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 pn)
{{
	.reg .f32 %f<8>; .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .b64 %d<3>; .reg .b32 %h<64>;
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

fn run_kernel(body: &str, threads: &str, detail: &str) -> Called {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("kernel.ptx"), kernel(body)).expect("written");
    let arguments = [
        "--topology",
        "h100_node",
        "--ptx",
        "kernel.ptx",
        "--format",
        "json",
        "--workload",
        "vectoradd:elements=5120,block=128",
        "--threads",
        threads,
        "--detail",
        detail,
    ];
    call_in(folder.path(), &arguments)
}

/// The sums are right, each cycle of each warp has one reason, and the result is the same on two threads. Gives the cycles in which warps
/// waited for a result, and in which they waited for tensor cores.
fn verified(name: &str, body: &str) -> [u64; 2] {
    let called = run_kernel(body, "1", "all");
    assert_eq!(called.code, 0, "{name}: {}", called.stderr);
    let json: serde_json::Value = serde_json::from_str(&called.stdout).expect("JSON");
    assert_eq!((&json["completed"], &json["verified"]), (&true.into(), &true.into()), "{name}: {}", called.stderr);
    let rows = json["statistics"].as_array().expect("a list");
    let sum = |chosen: &dyn Fn(&str) -> bool| -> u64 {
        let rows = rows.iter().filter(|row| {
            row["what"].as_str().is_some_and(chosen)
                && row["location"].as_str().is_some_and(|place| place.contains("sm"))
        });
        rows.filter_map(|row| row["value"].as_u64()).sum()
    };
    assert_eq!(sum(&|what| what.starts_with("stall_")), sum(&|what| what == "warp_cycles_active"), "{name}");
    let other: serde_json::Value = serde_json::from_str(&run_kernel(body, "2", "all").stdout).expect("JSON");
    assert!(json["statistics"] == other["statistics"], "{name}: two threads give other statistics");
    let functional = run_kernel(body, "1", "none");
    let functional: serde_json::Value = serde_json::from_str(&functional.stdout).expect("JSON");
    assert_eq!(functional["verified"], true, "{name}: without timing");
    ["stall_short_scoreboard", "stall_math_pipe_throttle"].map(|stall| sum(&|what| what == stall))
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
    // What no commit has made part of a group is not waited for.
    let [waited_for_open, _] = verified("no group", &format!("{FENCE} {PRODUCT} {}", wait(0)));
    assert_eq!(waited_for_open, waited_for_none);
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

#[test]
fn a_matrix_outside_of_shared_memory_faults() {
    let body = format!("mov.b64 %d2, 0x8000000000083fff; {}", PRODUCT.replace("%d1, %d1", "%d1, %d2"));
    let called = run_kernel(&body, "1", "all");
    assert_ne!(called.code, 0);
    assert!(called.stderr.contains("16-byte shared load"), "{}", called.stderr);
}
