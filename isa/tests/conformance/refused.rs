//! Operands that do not fit are errors that say so; operands that fit are not refused.

use balar_isa::module::PtxModule;

/// What is wrong with an instruction; `None` where nothing is.
fn problem(instruction: &str) -> Option<String> {
    let text = format!(
        ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k() {{\n\
         .reg .pred %p<4>; .reg .b16 %h<4>; .reg .u16 %uh<4>; .reg .f16 %fh<4>; .reg .b32 %r<4>; .reg .u32 %u<4>;\n\
         .reg .s32 %s<4>; .reg .f32 %f<4>; .reg .f16x2 %hh<4>; .reg .b64 %rd<4>; .reg .s64 %sd<4>; .reg .f64 %fd<4>;\n\
         .reg .b128 %q<4>;\n{instruction};\nret;\n}}\n"
    );
    let module = match PtxModule::parse("test.ptx", &text) {
        Ok(module) => module,
        Err(errors) => return Some(errors.to_string()),
    };
    module.program("k", &[]).err().map(|errors| errors.to_string())
}

#[test]
fn operands_of_the_wrong_type() {
    for (instruction, expected) in [
        ("add.u32 %r0, %rd0, 1", "`add` takes a value of type .u32 here, the register is .b64"),
        ("add.u32 %rd0, %r0, 1", "`add` takes a value of type .u32 here, the register is .b64"),
        ("add.u64 %rd0, %rd1, %r0", "`add` takes a value of type .u64 here, the register is .b32"),
        ("add.u16 %h0, %h1, %r0", "`add` takes a value of type .u16 here, the register is .b32"),
        ("add.s32 %s0, %f0, 1", "`add` takes a value of type .s32 here, the register is .f32"),
        ("mul.wide.u32 %r0, %r1, %r2", "`mul` takes a value of type .u64 here, the register is .b32"),
        ("mad.wide.s16 %r0, %h1, %h2, %h3", "`mad` takes a value of type .s32 here, the register is .b16"),
        ("shl.b64 %rd0, %rd1, %rd2", "`shl` takes a value of type .u32 here, the register is .b64"),
        ("popc.b64 %rd0, %rd1", "`popc` takes a value of type .u32 here, the register is .b64"),
        ("setp.lt.u32 %p0, %rd0, 1", "`setp` takes a value of type .u32 here, the register is .b64"),
        ("setp.lt.u32 %r0, %r1, 1", "a predicate register is expected here"),
        ("setp.lt.f32 %p0, %s0, %f0", "`setp` takes a value of type .f32 here, the register is .s32"),
        ("selp.u32 %r0, %rd0, 1, %p0", "`selp` takes a value of type .u32 here, the register is .b64"),
        ("selp.f64 %fd0, %r0, %fd1, %p0", "`selp` takes a value of type .f64 here, the register is .b32"),
        ("mov.u32 %r0, %rd0", "`mov` takes a value of type .u32 here, the register is .b64"),
        ("mov.u32 %u0, %f0", "`mov` takes a value of type .u32 here, the register is .f32"),
        ("mov.b64 %rd0, {%rd1, %r0}", "`mov` takes a value of type .b32 here, the register is .b64"),
        ("mov.b64 %rd0, {%r0, %r1, %r2}", "3 parts do not make a value of type .b64"),
        ("mov.b32 {%h0}, %r0", "a value of type .b32 does not have 1 parts"),
        ("mov.b128 %q0, %rd0", "a register of type .b128 is expected here"),
        ("and.pred %r0, %p0, %p1", "a predicate"),
        ("add.u32 %r0, %p0, 1", "`add` takes a value of type .u32 here, the register is .pred"),
        ("add.u32 %r0, %r1, 0f3F800000", "not a floating-point literal"),
        ("lop3.b32 %r0, %r1, %r2, %r3, 256", "from 0 to 255"),
        ("lop3.b32 %r0|%p0, %r1, %r2, %r3, 1", "`lop3` has a pair here with `.and` or `.or` alone"),
        ("lop3.and.b32 %r0, %r1, %r2, %r3, 1, %p1", "`lop3` with `.and` or `.or` has a pair `d|p` here"),
        ("setp.lt.u32 %p0, %r0, %r1, %p1", "needs `.and`, `.or` or `.xor`"),
        ("shfl.sync.idx.b32 %r0|%r1, %r2, 1, 2, -1", "is to be a predicate register"),
        ("vadd.u32.u32.u32 %r0.h2, %r1, %r2, %r3", "one of the parts `.b0` to `.b3`, `.h0` and `.h1`"),
        ("vadd.u32.u32.u32 %r0.h1, %r1, %r2", "a third source goes with"),
        ("vadd.u32.u32.u32 %r0, %rd1, %r2", "`vadd` takes a value of type .b32 here"),
        ("vadd2.u32.u32.u32 %r0, %r1.b10, %r2, %r3", "parts `.h0` to `.h3` are expected here"),
        ("vadd4.u32.u32.u32 %r0, %r1.b10, %r2, %r3", "a part for each of the operation's"),
        ("bar.sync 0, 33", "33 threads take part in the barrier, expected a multiple of the warp size, 32"),
        ("bar.arrive 1, 16", "16 threads take part in the barrier"),
        ("bar.red.popc.u32 %r0, 0, 33, %p0", "33 threads take part in the barrier"),
        ("bar.sync 16", "there is no barrier 16, they are 0 to 15"),
        (
            "mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r0, %r1}, {%r0, %r1}, {%r2, %r3}, {%r0, %r1}, %r3, 4",
            "the lanes that have the metadata of this shape are given by a number below 4",
        ),
        (
            "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r2, %r3}, \
             {%r0, %r1, %r2, %r3}, %r3, 2",
            "the lanes that have the metadata of this shape are given by a number below 2",
        ),
        (
            "mma.sp.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r0, %r1}, {%r0, %r1}, {%r2, %r3}, {%r0, %r1}, %r3, 0",
            "mma",
        ),
        ("setmaxnreg.inc.sync.aligned.u32 25", "a literal multiple of 8 from 24 to 256"),
    ] {
        let found = problem(instruction).unwrap_or_default();
        assert!(found.contains(expected), "{instruction}: {found:?}, {expected:?} expected");
        assert!(found.contains("test.ptx:"), "{instruction}: {found:?} names file and line");
    }
}

#[test]
fn forms_that_do_not_exist_or_need_more_than_one_cta() {
    for instruction in [
        "add.sat.u64 %rd0, %rd1, %rd2",
        "add.b32 %r0, %r1, %r2",
        "neg.u32 %r0, %r1",
        "mul.wide.u64 %rd0, %rd1, %rd2",
        "mul24.lo.u64 %rd0, %rd1, %rd2",
        "min.b32 %r0, %r1, %r2",
        "setp.lt.b32 %p0, %r0, %r1",
        "setp.lo.s32 %p0, %r0, %r1",
        "setp.ltu.u32 %p0, %r0, %r1",
        "set.lt.f64.u32 %fd0, %r0, %r1",
        "slct.ftz.u32.s32 %r0, %r1, %r2, %r3",
        "bfi.b16 %h0, %h1, %h2, 1, 2",
        "popc.b16 %r0, %h0",
        "prmt.b64 %rd0, %rd1, %rd2, %r0",
        "redux.sync.add.b32 %r0, %r1, -1",
        "redux.sync.and.u32 %r0, %r1, -1",
        "barrier.cluster.arrive.wait",
        "barrier.cluster.aligned",
    ] {
        let found = problem(instruction).unwrap_or_default();
        // The parser refuses types, the decoder combinations of words; both say where.
        assert!(found.contains("test.ptx:8:"), "{instruction}: {found:?}");
    }
}

#[test]
fn types_of_the_same_width_agree() {
    for instruction in [
        "add.u32 %s0, %r0, %u0",
        "add.s64 %rd0, %sd0, %rd1",
        "and.b32 %f0, %f1, %u0",
        "mov.b32 %r0, %f0",
        "mov.b32 %f0, %r0",
        "mov.b64 %rd0, %fd0",
        "mov.b16 %h0, %fh0",
        "mov.b32 %hh0, {%fh0, %h1}",
        "mov.f32 %f0, %r0",
        "mov.u16 %uh0, %h0",
        "selp.f32 %f0, %r0, %f1, %p0",
        "selp.b32 %f0, %f1, %f2, %p0",
        "set.lt.u32.f32 %r0, %f0, 0f00000000",
        "setp.ne.b32 %p0, %f0, 0",
        "shl.b32 %r0, %u0, %s0",
        "setp.lt.f16x2 %p0|%p1, %hh0, %r0",
        "slct.f32.s32 %f0, %f1, %f2, %s0",
        "mov.b64 {%r0, %f0}, %fd0",
        "mov.b64 {%r0, _}, %rd0",
        "add.u32 %r0, %r1, 0x1ffffffff",
        "shfl.sync.bfly.b32 %f0|%p0, %f1, 1, 31, -1",
        "mov.v2.u32 {%r0, %r1}, {%r1, %r0}",
        "vset.s32.u32.lt %r0, %r1.b1, 5",
        "elect.sync _|%p0, -1",
    ] {
        assert_eq!(problem(instruction), None, "{instruction}");
    }
}

/// What is wrong with a kernel of the parameters `a`, 4 bytes, and `b`, 8 bytes at offset 8, whose body is on line 5.
fn problem_of_kernel(body: &str) -> Option<String> {
    let text = format!(
        ".version 8.3\n.target sm_70\n.address_size 64\n.entry k(.param .u32 a, .param .u64 b) {{ .reg .b32 %r<3>; .reg .b64 %rd<3>;\n\
         {body} }}\n"
    );
    let module = PtxModule::parse("test.ptx", &text).expect("PTX that reads");
    module.program("k", &[]).err().map(|errors| errors.to_string())
}

#[test]
fn parameters_are_read_inside_their_block() {
    for body in
        ["ld.param.u32 %r1, [a];", "ld.param.u64 %rd1, [b];", "ld.param.u32 %r1, [a+12];", "ld.param.u64 %rd1, [b+-8];"]
    {
        assert_eq!(problem_of_kernel(body), None, "{body}");
    }
    for (body, expected) in [
        ("ld.param.u64 %rd1, [b+8];", "bytes 16 to 23 of a parameter block of 16 bytes"),
        ("ld.param.u32 %r1, [a+14];", "bytes 14 to 17 of a parameter block of 16 bytes"),
        ("ld.param.u32 %r1, [a+-4];", "bytes -4 to -1 of a parameter block of 16 bytes"),
        ("ld.param.v2.u64 {%rd1, %rd2}, [b];", "bytes 8 to 23 of a parameter block of 16 bytes"),
    ] {
        let found = problem_of_kernel(body).unwrap_or_default();
        assert!(found.contains(expected) && found.contains("test.ptx:5:"), "{body}: {found:?}");
    }
}

#[test]
fn static_shared_memory_is_48_kib_at_most() {
    // 48 KiB are 49152 bytes; dynamic memory has no size here.
    assert_eq!(problem_of_kernel(".shared .b8 x[49152]; mov.u32 %r1, x;"), None);
    for body in [".shared .b8 x[49153];", ".shared .b8 w[1]; .shared .align 8 .b8 x[49152];"] {
        let found = problem_of_kernel(body).unwrap_or_default();
        let (file, limit) = ("test.ptx:5:", "the limit is 49152");
        assert!(found.contains(file) && found.contains(limit) && found.contains(" with x,"), "{body}: {found:?}");
    }
}

/// Fences of every kind, and what else values do not depend on.
#[test]
fn fences_are_not_refused() {
    for instruction in [
        "fence.sc.cta",
        "fence.acq_rel.gpu",
        "fence.acquire.cluster",
        "fence.release.sys",
        "fence.mbarrier_init.release.cluster",
        "fence.acquire.sync_restrict::shared::cluster.cluster",
        "fence.release.sync_restrict::shared::cta.cluster",
        "fence.proxy.alias",
        "fence.proxy.async",
        "fence.proxy.async.global",
        "fence.proxy.async.shared::cta",
        "fence.proxy.async.shared::cluster",
        "fence.proxy.tensormap::generic.release.cta",
        "fence.proxy.tensormap::generic.acquire.gpu [%rd0], 128",
        "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster",
        "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster",
        "membar.cta",
        "membar.gl",
        "membar.sys",
        "membar.proxy.alias",
        "griddepcontrol.launch_dependents",
        "griddepcontrol.wait",
        "elect.sync %r0|%p0, 0xffffffff",
        "nanosleep.u32 10",
    ] {
        assert_eq!(problem(instruction), None, "{instruction}");
    }
}
