//! Functions on a whole node: kernels and functions in several files, linked by the command line; recursion in every thread.

use crate::call::{call, call_in};
use std::fs;
use tempfile::TempDir;

const HEADER: &str = ".version 7.0\n.target sm_70\n.address_size 64\n";

/// vectoradd whose sum goes through a function: `c = f(a, b, depth)`.
fn kernel(depth: &str) -> String {
    format!(
        "{HEADER}.extern .func (.param .b32 result) f(.param .b32 a, .param .b32 b, .param .b32 depth);
.visible .entry vectorAdd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{{
	.reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<4>;
	mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1;
	ld.param.u32 %r5, [n]; setp.ge.u32 %p1, %r4, %r5; @%p1 ret;
	ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; mul.wide.u32 %rd4, %r4, 4;
	add.u64 %rd1, %rd1, %rd4; add.u64 %rd2, %rd2, %rd4; add.u64 %rd3, %rd3, %rd4;
	ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd2];
	{depth}
	{{ .param .b32 x; .param .b32 y; .param .b32 d; .param .b32 r;
	st.param.f32 [x], %f1; st.param.f32 [y], %f2; st.param.b32 [d], %r6;
	call (r), f, (x, y, d); ld.param.f32 %f3, [r]; }}
	st.global.f32 [%rd3], %f3; ret;
}}
"
    )
}

/// Adds at the deepest level; every level keeps its argument until the deeper ones return, and checks it.
const FUNCTION: &str = "
.visible .func (.param .b32 result) f(.param .b32 a, .param .b32 b, .param .b32 depth)
{
	.reg .pred %p<3>; .reg .b32 %r<6>; .reg .f32 %f<4>;
	ld.param.f32 %f1, [a]; ld.param.f32 %f2, [b]; ld.param.b32 %r1, [depth];
	setp.ne.u32 %p1, %r1, 0; @%p1 bra DEEPER;
	add.f32 %f3, %f1, %f2; st.param.f32 [result], %f3; ret;
DEEPER:
	sub.u32 %r2, %r1, 1; mov.u32 %r3, %clock; xor.b32 %r4, %r3, %r1;
	{ .param .b32 x; .param .b32 y; .param .b32 d; .param .b32 r;
	st.param.f32 [x], %f1; st.param.f32 [y], %f2; st.param.b32 [d], %r2;
	call (r), f, (x, y, d); ld.param.f32 %f3, [r]; }
	xor.b32 %r5, %r4, %r1; setp.ne.u32 %p2, %r5, %r3; @%p2 trap;
	st.param.f32 [result], %f3; ret;
}
";

/// Runs with these files; the result of the program is checked by the host.
fn run(files: &[&str], options: &[&str]) -> serde_json::Value {
    let folder = TempDir::new().expect("a folder");
    let mut arguments =
        vec!["--topology", "v100_node", "--workload", "vectoradd:elements=512,block=64", "--format", "json"];
    let names = ["kernel.ptx", "function.ptx"];
    for (text, name) in files.iter().zip(names) {
        fs::write(folder.path().join(name), text).expect("written");
        arguments.extend(["--ptx", name]);
    }
    arguments.extend(options);
    let called = call_in(folder.path(), &arguments);
    assert_eq!(called.code, 0, "{}", called.stderr);
    serde_json::from_str(&called.stdout).expect("JSON")
}

fn sum(json: &serde_json::Value, what: &str) -> u64 {
    let rows = json["statistics"].as_array().expect("a list");
    rows.iter().filter(|row| row["what"] == what).filter_map(|row| row["value"].as_u64()).sum()
}

#[test]
fn recursion_of_another_depth_in_each_lane_of_a_node() {
    let function = format!("{HEADER}{FUNCTION}");
    // Some lanes go deep enough for their stacks to grow.
    let kernel = kernel("and.b32 %r6, %r1, 7; mul.lo.u32 %r6, %r6, 20;");
    let first = run(&[&kernel, &function], &["--threads", "1"]);
    let again = run(&[&kernel, &function], &["--threads", "2"]);
    assert_eq!(first["statistics"], again["statistics"], "results do not depend on threads");
    assert_eq!(first["verified"], true);
    assert!(sum(&first, "inst_local_stores") > 0, "registers are saved to the stack");
}

#[test]
fn a_call_without_recursion_leaves_local_memory_alone() {
    let add = ".visible .func (.param .b32 result) f(.param .b32 a, .param .b32 b, .param .b32 depth)
{ .reg .f32 %f<4>; ld.param.f32 %f1, [a]; ld.param.f32 %f2, [b]; add.f32 %f3, %f1, %f2; st.param.f32 [result], %f3; ret; }
";
    let json = run(&[&kernel("mov.u32 %r6, 0;"), &format!("{HEADER}{add}")], &[]);
    assert_eq!(json["verified"], true);
    assert_eq!((sum(&json, "inst_local_loads"), sum(&json, "inst_local_stores")), (0, 0));
}

#[test]
fn symbols_of_two_files_and_a_compiler_that_excludes_both() {
    let folder = TempDir::new().expect("a folder");
    let function = format!("{HEADER}{FUNCTION}");
    for name in ["one.ptx", "two.ptx"] {
        fs::write(folder.path().join(name), &function).expect("written");
    }
    let called = call_in(folder.path(), &["--topology", "v100_node", "--ptx", "one.ptx", "--ptx", "two.ptx"]);
    assert_eq!(called.code, 2, "{}", called.stderr);
    assert!(called.stderr.contains("two.ptx"), "{}", called.stderr);
    assert!(called.stderr.contains("`f` is defined here and at one.ptx:5:1"), "{}", called.stderr);
    let called = call(&["--topology", "v100_node", "--ptx", "one.ptx", "--compiler", "nvcc"]);
    assert_eq!(called.code, 2, "{}", called.stderr);
}
