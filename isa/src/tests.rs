//! Kernels run step by step on a small memory, under both step functions.

#[path = "../tests/conformance/machine.rs"]
mod machine;

use crate::machine::{MachineCode, lower};
use crate::module::PtxModule;
use crate::program::Program;
use machine::{load, run};

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

/// A kernel around a body; `%r0` is the lane, `%rd0` the address of the lane's result word.
fn kernel(body: &str) -> Program {
    load(&format!(
        ".version 8.8\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n\
         .reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<20>; .reg .f64 %d<20>;\n\
         .shared .align 8 .b8 s[1024];\n\
         mov.u32 %r0, %tid.x; ld.param.u64 %rd1, [p]; mul.wide.u32 %rd2, %r0, 4; add.s64 %rd0, %rd1, %rd2;\n{body}\n}}\n"
    ))
}

fn results(body: &str, threads: u32) -> Vec<u32> {
    words(&run(&kernel(body), &[0; 8], threads, &[0; 256]))
}

#[test]
fn vectoradd_adds() {
    let text = include_str!("../../workloads/vectoradd/vectoradd.sm_70.ptx");
    let program = load(text);
    let mut global = vec![0; 1024];
    for index in 0..32u32 {
        global[index as usize * 4..][..4].copy_from_slice(&(index as f32).to_le_bytes());
        global[256 + index as usize * 4..][..4].copy_from_slice(&(0.5f32).to_le_bytes());
    }
    let mut parameters = Vec::new();
    for address in [0u64, 256, 512] {
        parameters.extend(address.to_le_bytes());
    }
    parameters.extend(20u32.to_le_bytes());
    parameters.resize(program.parameter_bytes() as usize, 0);
    let sums = words(&run(&program, &parameters, 32, &global));
    for index in 0..32usize {
        let expected = if index < 20 { index as f32 + 0.5 } else { 0.0 };
        assert_eq!(f32::from_bits(sums[128 + index]), expected, "element {index}");
    }
}

#[test]
fn ptx_and_machine_code_cost_votes_and_fences_alike() {
    let ptx = load(
        ".version 8.8\n.target sm_70\n.address_size 64\n.visible .entry k() { .reg .b32 r; .reg .pred p;\n\
         vote.sync.ballot.b32 r, p, -1; membar.cta; fence.acq_rel.cta; membar.gl; exit; }",
    );
    // VOTE.ANY R3, PT, PT; MEMBAR.SC.CTA twice; MEMBAR.SC.GPU; EXIT.
    let words = vec![
        0x000fe200038e0100_0000000000037806,
        0x000fec0000000000_0000000000007992,
        0x000fec0000000000_0000000000007992,
        0x000fec0000002000_0000000000007992,
        0x000fea0003800000_000000000000794d,
    ];
    let code = MachineCode { name: "k".to_owned(), architecture: 70, words, ..MachineCode::default() };
    let machine = lower(&code).expect("the words are instructions");
    let costs = |program: &Program, pc: u32| {
        let timing = program.timing(pc);
        (timing.pipe, timing.latency, timing.count, timing.is_plain)
    };
    // PTX ends with an `exit` of its own.
    let last = ptx.len() as u32 - 2;
    for back in 0..5 {
        let (of_ptx, of_machine) = (costs(&ptx, last - back), costs(&machine, 4 - back));
        // Lanes that vote may have to be gathered first in PTX.
        assert_eq!((of_ptx.0, of_ptx.1, of_ptx.2), (of_machine.0, of_machine.1, of_machine.2), "{back} before the end");
        assert!(back == 4 || of_ptx.3 == of_machine.3, "{back} before the end");
    }
}

#[test]
fn values_of_single_operations() {
    let cases: [(&str, u32); 34] = [
        ("mov.u32 %r1, 5; shl.b32 %r2, %r1, 32;", 0),
        ("mov.u32 %r1, 0x80000000; shr.s32 %r2, %r1, 99;", 0xffff_ffff),
        ("mov.u32 %r1, 0x80000000; shr.u32 %r2, %r1, 99;", 0),
        ("mov.u32 %r1, 7; div.u32 %r2, %r1, 0;", 0xffff_ffff),
        ("mov.u32 %r1, 0x80000000; div.s32 %r2, %r1, -1;", 0x8000_0000),
        ("mov.u32 %r1, 0x80000000; rem.s32 %r2, %r1, -1;", 0),
        ("mov.u32 %r1, -5; mul.hi.s32 %r2, %r1, 7;", 0xffff_ffff),
        ("mov.u32 %r1, -5; mul.hi.u32 %r2, %r1, 7;", 6),
        ("mov.u32 %r1, 3; mad.lo.s32 %r2, %r1, 4, -13;", 0xffff_ffff),
        ("mov.f32 %f1, 0f7fc00001; cvt.rzi.s32.f32 %r2, %f1;", 0),
        ("mov.f32 %f1, 0f4f800000; cvt.rzi.s32.f32 %r2, %f1;", 0x7fff_ffff),
        ("mov.f32 %f1, 0fbf800000; cvt.rzi.u32.f32 %r2, %f1;", 0),
        ("mov.f32 %f1, 0f40200000; cvt.rni.s32.f32 %r2, %f1;", 2),
        ("mov.f32 %f1, 0fc0200000; cvt.rmi.s32.f32 %r2, %f1;", 0xffff_fffd),
        ("mov.u32 %r1, 16777217; cvt.rn.f32.u32 %f1, %r1; mov.b32 %r2, %f1;", 0x4b80_0000),
        ("mov.u32 %r1, 16777217; cvt.rp.f32.u32 %f1, %r1; mov.b32 %r2, %f1;", 0x4b80_0001),
        ("mov.f32 %f1, 0f7f800000; sub.f32 %f2, %f1, %f1; mov.b32 %r2, %f2;", 0x7fff_ffff),
        ("mov.f32 %f1, 0f00000001; mul.ftz.f32 %f2, %f1, 0f3f800000; mov.b32 %r2, %f2;", 0),
        ("mov.f32 %f1, 0f40000000; add.sat.f32 %f2, %f1, %f1; mov.b32 %r2, %f2;", 0x3f80_0000),
        ("mov.f32 %f1, 0f3f800000; add.rz.f32 %f2, %f1, 0fa0000000; mov.b32 %r2, %f2;", 0x3f7f_ffff),
        ("mov.f32 %f1, 0f3f800000; add.rp.f32 %f2, %f1, 0f20000000; mov.b32 %r2, %f2;", 0x3f80_0001),
        ("mov.f32 %f1, 0f3f800000; div.rm.f32 %f2, %f1, 0f40400000; mov.b32 %r2, %f2;", 0x3eaa_aaaa),
        ("mov.f32 %f1, 0f3f800000; div.rn.f32 %f2, %f1, 0f40400000; mov.b32 %r2, %f2;", 0x3eaa_aaab),
        ("mov.f32 %f1, 0f7fc00000; min.f32 %f2, %f1, 0f3f800000; mov.b32 %r2, %f2;", 0x3f80_0000),
        ("mov.f32 %f1, 0f80000000; max.f32 %f2, %f1, 0f00000000; mov.b32 %r2, %f2;", 0),
        ("mov.f32 %f1, 0f3f800000; cvt.rn.f16.f32 %h1, %f1; cvt.u32.u16 %r2, %h1;", 0x3c00),
        ("mov.b16 %h1, 0xfc00; cvt.f32.f16 %f1, %h1; mov.b32 %r2, %f1;", 0xff80_0000),
        ("mov.u32 %r1, 0x12345678; prmt.b32 %r2, %r1, 0, 0x0123;", 0x7856_3412),
        ("mov.u32 %r1, 0xf0; lop3.b32 %r2, %r1, 0xcc, 0xaa, 0x80;", 0x80),
        ("mov.u32 %r1, 0xff00; bfe.s32 %r2, %r1, 8, 8;", 0xffff_ffff),
        ("mov.u32 %r1, 0xab; bfi.b32 %r2, %r1, 0xffffffff, 4, 8;", 0xffff_fabf),
        ("mov.u32 %r1, 0; clz.b32 %r2, %r1;", 32),
        ("mov.u32 %r1, 0xffffffff; add.cc.u32 %r3, %r1, 1; addc.u32 %r2, 0, 0;", 1),
        ("mov.b64 %rd5, 0x1122334455667788; mov.b64 {%r3, %r2}, %rd5;", 0x1122_3344),
    ];
    for (body, expected) in cases {
        let found = results(&format!("{body} st.global.u32 [%rd0], %r2; ret;"), 32);
        assert_eq!(found[0], expected, "{body}: {:#x}", found[0]);
        assert_eq!(found[31], expected, "{body}: last lane");
    }
}

#[test]
fn lanes_part_and_meet() {
    let found = results(
        "mov.u32 %r2, 0; mov.u32 %r3, 0;\n\
         LOOP: add.u32 %r2, %r2, %r3; add.u32 %r3, %r3, 1;\n\
         and.b32 %r4, %r3, 1; setp.eq.u32 %p2, %r4, 1; @%p2 bra ODD; add.u32 %r2, %r2, 100; bra.uni NEXT;\n\
         ODD: add.u32 %r2, %r2, 1;\n\
         NEXT: setp.le.u32 %p1, %r3, %r0; @%p1 bra LOOP;\n\
         activemask.b32 %r5; setp.ne.u32 %p3, %r5, -1; @%p3 mov.u32 %r2, 0;\n\
         st.global.u32 [%rd0], %r2; ret;",
        32,
    );
    for lane in 0..32u32 {
        let trips = lane + 1;
        let expected = (0..trips).sum::<u32>() + trips.div_ceil(2) + 100 * (trips / 2);
        assert_eq!(found[lane as usize], expected, "lane {lane}");
    }
}

#[test]
fn early_exit_leaves_the_others() {
    let found = results(
        "setp.lt.u32 %p1, %r0, 10; @%p1 ret; st.global.u32 [%rd0], 9; setp.lt.u32 %p1, %r0, 20; @%p1 exit;\n\
         st.global.u32 [%rd0], 8; ret;",
        32,
    );
    for (lane, &value) in found.iter().enumerate().take(32) {
        assert_eq!(value, [0, 9, 8, 8][lane / 10], "lane {lane}");
    }
}

#[test]
fn a_spin_lock_between_lanes_ends() {
    let found = results(
        "LOOP: atom.global.cas.b32 %r1, [%rd1+128], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra LOOP;\n\
         ld.volatile.global.u32 %r2, [%rd1+132]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%rd1+132], %r2; membar.gl;\n\
         atom.global.exch.b32 %r1, [%rd1+128], 0; ret;",
        32,
    );
    assert_eq!(found[33], 32);
}

#[test]
fn barriers_in_diverged_code() {
    let found = results(
        "setp.lt.u32 %p1, %r0, 16; mov.u32 %r3, s; shl.b32 %r4, %r0, 2; add.u32 %r3, %r3, %r4; @%p1 bra LOW;\n\
         st.shared.u32 [%r3], %r0; bar.sync 0; bra END;\n\
         LOW: bar.sync 0; ld.shared.u32 %r2, [%r3+64];\n\
         END: st.global.u32 [%rd0], %r2; ret;",
        32,
    );
    assert!(found.iter().take(16).copied().eq(16..32), "{found:?}");
}

#[test]
fn lanes_exchange_values() {
    let found = results("shfl.sync.down.b32 %r2|%p1, %r0, 4, 0x1f, 0xffffffff; st.global.u32 [%rd0], %r2; ret;", 32);
    assert_eq!((found[0], found[27], found[28], found[31]), (4, 31, 28, 31));
    let found = results("shfl.sync.bfly.b32 %r2, %r0, 1, 0x1f, -1; st.global.u32 [%rd0], %r2; ret;", 32);
    assert_eq!((found[0], found[1], found[30]), (1, 0, 31));
    let found = results("shfl.sync.up.b32 %r2, %r0, 3, 0, -1; st.global.u32 [%rd0], %r2; ret;", 32);
    assert_eq!((found[0], found[2], found[3], found[31]), (0, 2, 0, 28));
    let found =
        results("setp.gt.u32 %p1, %r0, 29; vote.sync.ballot.b32 %r2, %p1, -1; st.global.u32 [%rd0], %r2; ret;", 32);
    assert_eq!(found[7], 0xc000_0000);
}

#[test]
fn generic_addresses_reach_both_memories() {
    let found = results(
        "mov.u64 %rd3, s; cvta.shared.u64 %rd4, %rd3; add.s64 %rd4, %rd4, %rd2; setp.lt.u32 %p1, %r0, 8;\n\
         selp.b64 %rd5, %rd4, %rd0, %p1; add.u32 %r1, %r0, 100; st.u32 [%rd5], %r1; ld.shared.u32 %r2, [s+4];\n\
         setp.eq.u32 %p2, %r0, 0; @%p2 st.global.u32 [%rd0], %r2; ret;",
        32,
    );
    assert_eq!((found[0], found[1], found[8], found[31]), (101, 0, 108, 131));
}

#[test]
fn unsupported_instructions_are_named() {
    let text = ".version 8.8\n.target sm_70\n.address_size 64\n.entry k() {\n.reg .f64 %d<3>;\nadd.ftz.f64 %d1, %d2, %d2;\nret;\n}\n";
    let module = PtxModule::parse("bad.ptx", text).unwrap_or_else(|errors| panic!("{errors}"));
    let message = module.program("k", &[]).map(|_| ()).expect_err("doubles are not flushed").to_string();
    assert!(message.contains("bad.ptx:6:1") && message.contains("`add.f64` does not take `.ftz`"), "{message}");
}

#[test]
fn the_workloads_decode() {
    for text in [
        include_str!("../../workloads/lud/lud.sm_60.ptx"),
        include_str!("../../workloads/lud/lud.sm_70.ptx"),
        include_str!("../../workloads/gemm/gemm.sm_60.ptx"),
        include_str!("../../workloads/gemm/gemm.sm_70.ptx"),
        include_str!("../../workloads/vectoradd/vectoradd.sm_60.ptx"),
    ] {
        let module = PtxModule::parse("workload.ptx", text).unwrap_or_else(|errors| panic!("{errors}"));
        assert!(module.kernels().count() > 0);
        for kernel in module.kernels() {
            let program = module.program(kernel, &[]).unwrap_or_else(|errors| panic!("{errors}"));
            assert!(program.resources().registers_per_thread >= 8 && program.len() > 10);
        }
    }
}

/// A straight-line program of the generator's choice: loads, stores, atomics, volatile accesses, guards, carry chains, barriers
/// between lanes. It ends with a store of every register.
fn random_program(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut pick = |count: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) % count
    };
    let mut body = String::new();
    for register in 1..8 {
        body += &format!("mad.lo.u32 %r{register}, %r0, {}, {};\n", pick(1000), pick(1 << 20));
    }
    body +=
        "mov.u32 %r20, s; shl.b32 %r21, %r0, 3; and.b32 %r21, %r21, 63; add.u32 %r20, %r20, %r21; mov.u64 %rd3, 0;\n";
    body += "cvta.shared.u64 %rd4, %rd3; setp.lt.u32 %p1, %r1, %r2; setp.lt.u32 %p2, %r3, %r4;\n";
    for _ in 0..60 {
        let guard = ["", "", "", "@%p1 ", "@!%p2 "][pick(5) as usize];
        let [a, b, c] = [0; 3].map(|_| 1 + pick(7));
        let place = 4 * pick(3);
        let global = 128 * pick(2);
        let text = match pick(18) {
            0..=2 => format!("{guard}ld.shared.u32 %r{a}, [%r20+{place}];"),
            3..=4 => format!("{guard}ld.global.u32 %r{a}, [%rd0+{global}];"),
            5 => format!("{guard}st.shared.u32 [%r20+{place}], %r{b};"),
            6 => format!("{guard}st.global.u32 [%rd0+{global}], %r{b};"),
            7 => format!("{guard}ld.volatile.shared.u32 %r{a}, [%r20+{place}];"),
            8 => format!("{guard}st.volatile.global.u32 [%rd0+{global}], %r{b};"),
            9 => format!("{guard}atom.global.add.u32 %r{a}, [%rd0+{global}], %r{b};"),
            10 => format!("{guard}st.u32 [%rd4+{place}], %r{b};"),
            11 => format!("{guard}add.cc.u32 %r{a}, %r{b}, %r{c}; addc.u32 %r{b}, %r{a}, %r{c};"),
            12 => format!("{guard}subc.cc.u32 %r{a}, %r{b}, %r{c};"),
            13 => format!("setp.lt.u32 %p{}, %r{b}, %r{c};", 1 + pick(2)),
            14 => format!("shfl.sync.bfly.b32 %r{a}, %r{b}, 1, 0x1f, -1;"),
            15 => format!("{guard}mad.lo.u32 %r{a}, %r{b}, %r{c}, %r{a};"),
            16 => format!("{guard}sub.u32 %r{a}, %r{b}, %r{c};"),
            _ => format!("{guard}xor.b32 %r{a}, %r{b}, %r{c};"),
        };
        body += &text;
        body += "\n";
    }
    body += "selp.u32 %r8, 1, 0, %p1; selp.u32 %r9, 1, 0, %p2; addc.u32 %r10, 0, 0;\n";
    for register in 1..11 {
        body += &format!("st.global.u32 [%rd0+{}], %r{register};\n", 128 * (register + 1));
    }
    for place in 0..3 {
        body +=
            &format!("ld.shared.u32 %r1, [%r20+{}]; st.global.u32 [%rd0+{}], %r1;\n", 4 * place, 128 * (12 + place));
    }
    body + "ret;"
}

#[test]
fn scheduled_programs_compute_the_same() {
    let mut moved = 0;
    for seed in 1..=200 {
        let text = format!(
            ".version 8.8\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n\
             .reg .pred %p<20>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .shared .align 8 .b8 s[1024];\n\
             mov.u32 %r0, %tid.x; ld.param.u64 %rd1, [p]; mul.wide.u32 %rd2, %r0, 4; add.s64 %rd0, %rd1, %rd2;\n{}\n}}\n",
            random_program(seed)
        );
        let module = PtxModule::parse("random.ptx", &text).unwrap_or_else(|errors| panic!("{errors}"));
        let [unscheduled, scheduled] = [false, true].map(|schedules| {
            Program::decode(&module.linkage, 0, &[], schedules).unwrap_or_else(|errors| panic!("seed {seed}: {errors}"))
        });
        let global: Vec<u8> = (0..4096u32).map(|place| (place * 37 % 251) as u8).collect();
        let expected = run(&unscheduled, &[0; 8], 32, &global);
        assert!(run(&scheduled, &[0; 8], 32, &global) == expected, "seed {seed}:\n{text}");
        let lines =
            |program: &Program| -> Vec<u32> { (0..program.len() as u32).map(|pc| program.position(pc).line).collect() };
        let (before, mut after) = (lines(&unscheduled), lines(&scheduled));
        moved += u32::from(before != after);
        after.sort_unstable();
        assert_eq!(before, after, "each instruction keeps its line");
    }
    assert!(moved > 150, "{moved} of 200 programs were reordered");
}

/// Instructions that compute on registers alone run in one go, and are counted as they are one by one.
#[test]
fn a_run_stops_at_what_is_more_than_arithmetic() {
    use crate::interpreter::{Tally, run_function};
    use crate::program::timing::CountClass;
    use crate::warp::{WarpShape, WarpState};
    // Behind the four instructions of `kernel`: three, one of them in half of 20 lanes, and a store.
    let body =
        "add.u32 %r1, %r0, 5; setp.lt.u32 %p1, %r0, 10; @%p1 add.u32 %r1, %r1, 100; st.global.u32 [%rd0], %r1; exit;";
    let program = kernel(body);
    let shape = WarpShape {
        block: [20, 1, 1],
        grid: [1; 3],
        cta: [0; 3],
        cluster: Default::default(),
        warp_in_cta: 0,
        sm: 0,
        sm_count: 1,
        warp_slot: 0,
        warp_slots: 1,
        grid_id: 1,
        dynamic_shared_bytes: 0,
        shared_bytes: 0,
        grid_workspace: 0,
        parameters: [0; 8].into(),
        constants: Default::default(),
    };
    let mut whole = Tally::default();
    let mut warp = WarpState::new(&program, shape.clone());
    let done = run_function()(&program, &mut warp, 100, &mut whole);
    assert_eq!((done, warp.pc()), (7, 7));
    assert_eq!((whole.instructions, whole.active, whole.executed), (7, 140, 130));
    // The product, two sums of 32 bits, one of 64 and a comparison; half of the lanes skip one.
    assert_eq!(whole.by_class[CountClass::Integer as usize], 4 * 20 + 10);
    // The same in steps of two.
    let (mut steps, mut again) = (Tally::default(), WarpState::new(&program, shape));
    let counts: Vec<u32> = (0..5).map(|_| run_function()(&program, &mut again, 2, &mut steps)).collect();
    assert_eq!((counts, again.pc(), steps), (vec![2, 2, 2, 1, 0], 7, whole));
    assert_eq!(format!("{again:?}"), format!("{warp:?}"));
}

/// ptxas makes a reduction of an atomic on global memory whose result nothing reads; exchanges, and what is in shared memory, have no such form.
#[test]
fn atomics_whose_results_nothing_reads_are_reductions() {
    use crate::operation::Kind;
    let are_reductions = |body: &str| -> Vec<bool> {
        let program = kernel(body);
        let atomics = program.instructions.iter().filter(|instruction| instruction.kind == Kind::Atomic);
        atomics.map(|instruction| instruction.memory.is_reduction).collect()
    };
    let unread = "atom.global.add.u32 %r1, [%rd1], 1; atom.max.s32 %r2, [%rd1], %r0; red.global.add.u32 [%rd1], 1;";
    assert_eq!(are_reductions(unread), [true; 3]);
    let read = "atom.global.add.u32 %r1, [%rd1], 1; st.global.u32 [%rd0], %r1;\n\
                mov.u32 %r2, 0; loop: setp.gt.u32 %p1, %r2, 9; @%p1 bra end; atom.global.add.u32 %r2, [%rd1], 1; bra loop; end:";
    assert_eq!(are_reductions(read), [false; 2]);
    let exchanges =
        "atom.global.exch.b32 %r1, [%rd1], 1; atom.global.cas.b32 %r2, [%rd1], 1, 2; atom.shared.add.u32 %r3, [s], 1;";
    assert_eq!(are_reductions(exchanges), [false; 3]);
    // What memory holds is the same: 32 lanes add one each.
    let sum = results("atom.global.add.u32 %r1, [%rd1], 1; bar.warp.sync 0xffffffff;", 32)[0];
    assert_eq!(sum, 32);
}
