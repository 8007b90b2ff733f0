//! Mistakes in arguments, PTX and the simulated program: the exit code, the text, and the statistics that are kept.
//!
//! Every text is a snapshot under `snapshots/errors`; what the text must name is asserted besides.

use crate::call::{Called, call, call_in};
use balar_tests::assert_snapshot;
use std::fs;
use tempfile::TempDir;

/// Kernel `vectorAdd` with this body: %rd1 to %rd3 hold the addresses of a, b and c, %r1 the thread's number in its
/// block, %r2 that of its block. The body begins in line 23.
fn kernel(declarations: &str, body: &str) -> String {
    format!(
        ".version 7.0
.target sm_70
.address_size 64

.visible .entry vectorAdd(
	.param .u64 vectorAdd_param_0,
	.param .u64 vectorAdd_param_1,
	.param .u64 vectorAdd_param_2,
	.param .u32 vectorAdd_param_3
)
{{
	.reg .pred 	%p<4>;
	.reg .f32 	%f<4>;
	.reg .b32 	%r<8>;
	.reg .b64 	%rd<8>;
	{declarations}

	ld.param.u64 	%rd1, [vectorAdd_param_0];
	ld.param.u64 	%rd2, [vectorAdd_param_1];
	ld.param.u64 	%rd3, [vectorAdd_param_2];
	mov.u32 	%r1, %tid.x;
	mov.u32 	%r2, %ctaid.x;
{body}
	ret;
}}
"
    )
}

/// Runs vectoradd with this PTX as `kernel.ptx`.
fn run_kernel(text: &str, options: &[&str]) -> Called {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("kernel.ptx"), text).expect("written");
    let fixed = ["--topology", "v100_node", "--ptx", "kernel.ptx", "--format", "json"];
    let workload: &[&str] =
        if options.contains(&"--workload") { &[] } else { &["--workload", "vectoradd:elements=512,block=128"] };
    call_in(folder.path(), &[&fixed, workload, options].concat())
}

/// The text without simulated times, which move with every calibration.
fn without_times(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once("deadlock at ") {
        Some((before, _)) => format!("{before}deadlock at [time]:"),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The exit code is `code`, and the text is pinned and names what it must.
fn says(name: &str, called: &Called, code: i32, named: &[&str]) {
    for word in named {
        assert!(called.stderr.contains(word), "{name} does not name {word}:\n{}", called.stderr);
    }
    assert_eq!(called.code, code, "{name}: {}", called.stderr);
    assert!(!called.stderr.contains("panicked"), "{name}: {}", called.stderr);
    assert_snapshot("errors", name, &format!("exit code {code}\n{}", without_times(&called.stderr)));
}

/// Nothing was simulated: stdout is empty.
fn refused(name: &str, called: &Called, named: &[&str]) {
    assert_eq!(called.stdout, "", "{name}");
    says(name, called, 2, named);
}

/// The run ended early with `code`; the statistics up to there are in the result, with the problem.
fn statistics_are_kept(name: &str, called: &Called, code: i32) {
    assert_eq!(called.code, code, "{name}: {}", called.stderr);
    let json: serde_json::Value = serde_json::from_str(&called.stdout).expect("JSON");
    assert_eq!((&json["completed"], &json["verified"]), (&false.into(), &serde_json::Value::Null), "{name}");
    let problem = json["problem"].as_str().unwrap_or_else(|| panic!("{name}: {}", json["problem"]));
    assert!(called.stderr.contains(problem), "{name}: {problem}");
    let rows = json["statistics"].as_array().expect("a list");
    let sum =
        |what: &str| -> u64 { rows.iter().filter(|r| r["what"] == what).filter_map(|r| r["value"].as_u64()).sum() };
    assert!(rows.len() > 1000 && sum("calls") > 0, "{name}: {} rows", rows.len());
}

#[test]
fn arguments() {
    for (name, arguments, named) in [
        ("arguments_threads_0", &["--topology", "v100_node", "--threads", "0"][..], &["--threads", "1..=1024"][..]),
        ("arguments_unknown_option", &["--topology", "v100_node", "--frobnicate"], &["--frobnicate"]),
        ("arguments_no_topology", &[], &["--topology"]),
        ("arguments_unknown_topology", &["--topology", "v100_nod"], &["v100_nod", "v100_node"]),
        ("arguments_unknown_workload", &["--topology", "v100_node", "--workload", "vectorad"], &["vectoradd"]),
        ("arguments_unknown_key", &["--topology", "v100_node", "--workload", "lud:sise=64"], &["sise", "size"]),
        ("arguments_bad_value", &["--topology", "v100_node", "--workload", "lud:size=65"], &["65", "16"]),
        ("arguments_value_out_of_range", &["--topology", "v100_node", "--workload", "lud:size=1e9"], &["1e9", "16384"]),
        (
            "arguments_block_of_2048",
            &["--topology", "v100_node", "--workload", "vectoradd:block=2048"],
            &["block", "2048", "1024"],
        ),
        (
            "arguments_unknown_parameter",
            &["--topology", "v100_node", "--set", "gpu.sm[*].clok=1 GHz"],
            &["clok", "clock"],
        ),
        ("arguments_unknown_unit", &["--topology", "v100_node", "--set", "gpu.sn[*].clock=1 GHz"], &["`sn`", "`sm`"]),
        ("arguments_bad_clock", &["--topology", "v100_node", "--set", "gpu.sm[*].clock=fast"], &["clock", "fast"]),
        ("arguments_bad_time", &["--topology", "v100_node", "--stop-at", "soon"], &["--stop-at", "soon"]),
        ("arguments_missing_ptx", &["--topology", "v100_node", "--ptx", "missing.ptx"], &["missing.ptx"]),
    ] {
        refused(name, &call(arguments), named);
    }
}

/// The file, the line, and the text that is wrong.
#[test]
fn ptx_text() {
    for (name, text, named) in [
        ("ptx_unknown_instruction", kernel("", "\tfrobnicate.u32 \t%r3, %r1;"), &["kernel.ptx:23:", "frobnicate"][..]),
        ("ptx_unknown_modifier", kernel("", "\tadd.u33 \t%r3, %r1, %r2;"), &["kernel.ptx:23:", "u33"]),
        ("ptx_undeclared_register", kernel("", "\tadd.u32 \t%r3, %r1, %r99;"), &["kernel.ptx:23:", "%r99"]),
        ("ptx_missing_operand", kernel("", "\tadd.u32 \t%r3, %r1;"), &["kernel.ptx:23:", "add"]),
        ("ptx_constant_as_destination", kernel("", "\tadd.u32 \t7, %r1, %r2;"), &["kernel.ptx:23:"]),
        ("ptx_missing_label", kernel("", "\tbra \t$nowhere;"), &["kernel.ptx:23:", "$nowhere"]),
        ("ptx_label_twice", kernel("", "$here:\n\tadd.u32 \t%r3, %r1, %r2;\n$here:"), &["kernel.ptx", "$here"]),
        ("ptx_missing_semicolon", kernel("", "\tadd.u32 \t%r3, %r1, %r2"), &["kernel.ptx"]),
        (
            "ptx_two_mistakes",
            kernel("", "\tfrobnicate.u32 \t%r3, %r1;\n\tbra \t$nowhere;"),
            &["kernel.ptx", "frobnicate", "$nowhere"],
        ),
        ("ptx_cut_short", kernel("", "").lines().take(12).collect::<Vec<_>>().join("\n"), &["kernel.ptx"]),
        ("ptx_is_something_else", "\u{7f}ELF\u{2}\u{1}\u{1}".to_owned(), &["kernel.ptx:1:"]),
    ] {
        refused(name, &run_kernel(&text, &[]), named);
    }
}

/// The kernel, the launch, the thread, and the address, each as the test made it.
#[test]
fn addresses() {
    // Thread 37 of block 2 alone does it.
    let of_one_thread = |access: &str| {
        kernel(
            "",
            &format!(
                "	setp.eq.u32 	%p1, %r1, 37;
	setp.eq.u32 	%p2, %r2, 2;
	and.pred 	%p3, %p1, %p2;
	cvta.to.global.u64 	%rd4, %rd1;
{access}"
            ),
        )
    };
    for (name, access, named) in [
        ("program_reads_null", "	mov.u64 	%rd5, 16;\n	@%p3 ld.global.f32 	%f1, [%rd5];", &["0x10"][..]),
        ("program_reads_beyond", "	@%p3 ld.global.f32 	%f1, [%rd4+1073741824];", &[]),
        ("program_writes_beyond", "	@%p3 st.global.f32 	[%rd4+1073741824], 0f00000000;", &[]),
        ("program_atomic_beyond", "	@%p3 atom.global.add.u32 	%r3, [%rd4+1073741824], 1;", &[]),
        ("program_reads_misaligned", "	@%p3 ld.global.f32 	%f1, [%rd4+2];", &["align"]),
        ("program_writes_misaligned", "	@%p3 st.global.v2.f32 	[%rd4+4], {%f1, %f2};", &["align"]),
        ("program_reads_shared_beyond", "	mov.u32 	%r3, 65536;\n	@%p3 ld.shared.u32 	%r4, [%r3];", &["0x10000"]),
    ] {
        let called = run_kernel(&of_one_thread(access), &[]);
        statistics_are_kept(name, &called, 3);
        says(
            name,
            &called,
            3,
            &[named, &["vectorAdd", "launch 0", "0x", "block (2, 0, 0)", "thread (37, 0, 0)"]].concat(),
        );
    }
}

#[test]
fn programs_that_fail() {
    let called = run_kernel(&kernel("", "	setp.eq.u32 	%p1, %r1, 37;\n	@%p1 trap;"), &[]);
    statistics_are_kept("program_traps", &called, 3);
    says("program_traps", &called, 3, &["vectorAdd", "trap"]);

    for text in [kernel("", "").replace("vectorAdd", "vectorSub"), ".version 7.8\n.target sm_70\n".to_owned()] {
        let called = run_kernel(&text, &[]);
        statistics_are_kept("program_without_its_kernel", &called, 3);
        says("program_without_its_kernel", &called, 3, &["cudaLaunchKernel", "vectorAdd"]);
    }

    // Code that a kernel cannot reach does not matter to it; other mistakes are errors where the kernel is launched.
    let refused = "\tcall absent;";
    let declared = kernel("", "").replace("\n.visible", "\n.func absent();\n.visible");
    let other = kernel("", refused).split_once(".visible").map(|(_, rest)| rest.replace("vectorAdd", "other"));
    let called = run_kernel(&format!("{declared}\n.visible{}", other.expect("a kernel")), &["--max-wall", "60"]);
    assert!(!called.stderr.contains("absent"), "{}", called.stderr);
    let called = run_kernel(&kernel("", refused).replace("\n.visible", "\n.func absent();\n.visible"), &[]);
    statistics_are_kept("program_calls_what_is_absent", &called, 3);
    says(
        "program_calls_what_is_absent",
        &called,
        3,
        &["cudaErrorNotSupported", "no module defines the function `absent`", "kernel.ptx:24:7"],
    );

    // Kernels that wait for kernels that they have launched: said in words, and once.
    let launches = "cudaDeviceSynchronize";
    let twice = format!("\tcall {launches};\n\tcall {launches};");
    let declared = format!("\n.func {launches}();\n.visible");
    let called = run_kernel(&kernel("", &twice).replace("\n.visible", &declared), &[]);
    statistics_are_kept("program_waits_for_what_it_has_launched", &called, 3);
    let reason = "a kernel that waits for those it has launched (dynamic parallelism before CUDA 12: cudaDeviceSynchronize) is not simulated";
    says(
        "program_waits_for_what_it_has_launched",
        &called,
        3,
        &["cudaErrorNotSupported", "vectorAdd", reason, "kernel.ptx:24:7"],
    );
    assert_eq!(called.stderr.matches(reason).count(), 1, "{}", called.stderr);

    // A function without an end, in one thread.
    let forever = kernel("", "\tsetp.eq.u32 \t%p1, %r1, 37;\n\t@%p1 call forever;");
    let forever = forever.replace("\n.visible", "\n.func forever()\n{\n\tcall forever;\n}\n.visible");
    let called = run_kernel(&forever, &["--max-wall", "60"]);
    statistics_are_kept("program_overflows_its_stack", &called, 3);
    says("program_overflows_its_stack", &called, 3, &["stack overflow", "kernel.ptx:7", "thread (37, 0, 0)"]);

    // Three addresses instead of three and a number.
    let parameters = kernel("", "").replace(",\n\t.param .u32 vectorAdd_param_3", "");
    let called = run_kernel(&parameters, &[]);
    statistics_are_kept("program_with_other_parameters", &called, 3);
    says("program_with_other_parameters", &called, 3, &["cudaLaunchKernel", "vectorAdd", "24"]);

    let called = call(&["--topology", "v100_node", "--set", "gpu.hbm[*].capacity=256 KiB", "--format", "json"]);
    statistics_are_kept("program_exhausts_device_memory", &called, 3);
    says("program_exhausts_device_memory", &called, 3, &["cudaMalloc"]);
}

/// What a launch asks for does not fit on an SM.
#[test]
fn launches_too_large() {
    let called = run_kernel(&kernel(".shared .align 4 .b8 tile[131072];", ""), &[]);
    says("launch_of_too_much_shared_memory", &called, 3, &["vectorAdd", "shared"]);

    // 100 values live at once in each of 1024 threads: 100 x 1024 > 65536.
    let loads: String = (0..100).map(|index| format!("	ld.volatile.global.u32 	%w{index}, [%rd1];\n")).collect();
    let sums: String = (0..100).map(|index| format!("	add.u32 	%r3, %r3, %w{index};\n")).collect();
    let body = format!("	mov.u32 	%r3, 0;\n{loads}{sums}	st.global.u32 	[%rd3], %r3;");
    let block = ["--workload", "vectoradd:elements=1024,block=1024"];
    let called = run_kernel(&kernel(".reg .b32 	%w<100>;", &body), &block);
    statistics_are_kept("launch_of_too_many_registers", &called, 3);
    says("launch_of_too_many_registers", &called, 3, &["vectorAdd", "register"]);

    let called = call(&[
        "--topology",
        "p100_node",
        "--workload",
        "stream:elements=1000,shared_memory=98304",
        "--format",
        "json",
    ]);
    statistics_are_kept("launch_of_too_much_dynamic_shared_memory", &called, 3);
    says("launch_of_too_much_dynamic_shared_memory", &called, 3, &["shared", "98304"]);
}

#[test]
fn programs_that_never_end() {
    let called = run_kernel(&kernel("", "$again:\n	add.u32 	%r3, %r3, 1;\n	bra 	$again;"), &["--max-wall", "1"]);
    statistics_are_kept("program_never_ends", &called, 4);
    assert!(called.stderr.contains("--max-wall"), "{}", called.stderr);

    // The first warp waits at one barrier, the others at another.
    let body = "	setp.lt.u32 	%p1, %r1, 32;
	@%p1 bra 	$first;
	bar.sync 	2;
	bra 	$done;
$first:
	bar.sync 	1;
$done:";
    let called = run_kernel(&kernel("", body), &["--max-wall", "60"]);
    statistics_are_kept("program_deadlocks_at_barriers", &called, 4);
    says("program_deadlocks_at_barriers", &called, 4, &["deadlock", "gpu.sm[0]", "barrier"]);
}
