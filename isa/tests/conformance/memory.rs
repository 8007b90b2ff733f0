//! Loads, stores and addresses: widths, extension, vectors, spaces, and refused forms.

use crate::cases::{check, product, run};
use crate::machine;
use balar_isa::module::PtxModule;

const EDGES: [u64; 8] = [0, 1, 0x7f, 0x80, 0x8000, 0x8000_0000, 0x0123_4567_89ab_cdef, u64::MAX];

/// The value of `bits` bits, extended by its sign or by zeros.
fn extended(value: u64, bits: u32, signed: bool) -> u64 {
    let shift = 64 - bits;
    if signed { ((value << shift) as i64 >> shift) as u64 } else { value << shift >> shift }
}

#[test]
fn every_type_into_every_register() {
    let rows: Vec<Vec<u64>> = EDGES.iter().map(|value| vec![*value]).collect();
    for (name, bits, signed) in [
        ("b8", 8, false),
        ("u8", 8, false),
        ("s8", 8, true),
        ("b16", 16, false),
        ("u16", 16, false),
        ("s16", 16, true),
        ("b32", 32, false),
        ("u32", 32, false),
        ("s32", 32, true),
        ("f32", 32, false),
        ("b64", 64, false),
        ("u64", 64, false),
        ("s64", 64, true),
        ("f64", 64, false),
    ] {
        for register in [16, 32, 64].into_iter().filter(|register| *register >= bits) {
            let expected = |row: &[u64]| extended(row[0], bits, signed) & (u64::MAX >> (64 - register));
            check(&format!("ld.global.{name} $d, [%base]"), &[64], register, &rows, expected);
            // A store takes the low bytes of a wider register, and leaves its neighbours as they are.
            let store = format!("st.global.{name} [%base], $a; ld.global.b64 $d, [%base]");
            let keep = u64::MAX >> (64 - bits);
            let rows: Vec<Vec<u64>> = rows.iter().map(|row| vec![row[0]]).collect();
            let text = format!(
                "ld.global.b{register} %v{register}, [%base]; ld.global.b64 %o, [%base]; not.b64 %o, %o; \
                                st.global.b64 [%base], %o; st.global.{name} [%base], %v{register}; ld.global.b64 $d, [%base]"
            );
            let text = format!(".reg .b16 %v16; .reg .b32 %v32; .reg .b64 %v64; {text}");
            check(&text, &[64], 64, &rows, |row| (row[0] & keep) | (!row[0] & !keep));
            if register == 64 {
                check(&store, &[64], 64, &rows, |row| row[0]);
            }
        }
    }
}

#[test]
fn hints_and_orders_change_no_value() {
    let rows = product(&[&EDGES]);
    for words in [
        "ld.global.ca",
        "ld.global.cg",
        "ld.global.cs",
        "ld.global.lu",
        "ld.global.cv",
        "ld.global.nc",
        "ldu.global",
        "ldu",
        "ld.global.nc.L1::no_allocate.L2::128B",
        "ld.global.L1::evict_last",
        "ld.global.L2::256B",
        "ld.volatile",
        "ld.volatile.global",
        "ld.relaxed.sys.global",
        "ld.acquire.gpu.global",
        "ld.acquire.cta",
        "ld.weak.global",
        "ld.mmio.relaxed.sys.global",
        "ld",
        "ld.relaxed.cluster.global.L1::evict_first",
    ] {
        check(&format!("{words}.b64 $d, [%base]"), &[64], 64, &rows, |row| row[0]);
    }
    for words in [
        "st.global.wb",
        "st.global.cg",
        "st.global.cs",
        "st.global.wt",
        "st.volatile",
        "st.volatile.global",
        "st.relaxed.gpu.global",
        "st.release.sys.global",
        "st.release.cta",
        "st.weak.global",
        "st.mmio.relaxed.sys.global",
        "st",
        "st.global.L1::no_allocate",
    ] {
        check(&format!("{words}.b64 [%base], 7; ld.global.b64 $d, [%base]"), &[64], 64, &rows, |_| 7);
    }
    let policy = "createpolicy.fractional.L2::evict_last.L2::evict_first.b64 %o, 0.5;";
    check(&format!("{policy} ld.global.L2::cache_hint.b64 $d, [%base], %o"), &[64], 64, &rows, |row| row[0]);
    check(
        &format!("{policy} st.global.L2::cache_hint.b64 [%base], $a, %o; ld.b64 $d, [%base]"),
        &[64],
        64,
        &rows,
        |row| row[0],
    );
    let hints = "prefetch.global.L1 [%base]; prefetch.L2 [%base]; prefetchu.L1 [%base]; prefetch.global.L2::evict_last [%base]; \
                 applypriority.global.L2::evict_normal [%base], 128;";
    check(&format!("{hints} ld.global.b64 $d, [%base]"), &[64], 64, &rows, |row| row[0]);
}

#[test]
fn fences_change_no_value() {
    for fence in [
        "membar.cta",
        "membar.gl",
        "membar.sys",
        "fence.sc.cta",
        "fence.sc.cluster",
        "fence.acq_rel.gpu",
        "fence.acq_rel.sys",
        "fence.acquire.gpu",
        "fence.release.cta",
        "fence.proxy.alias",
        "fence.proxy.async",
        "fence.proxy.async.global",
        "fence.proxy.async.shared::cta",
        "fence.mbarrier_init.release.cluster",
    ] {
        let text = format!("st.global.b64 [%base], $a; {fence}; ld.global.b64 $d, [%base]");
        check(&text, &[64], 64, &product(&[&EDGES]), |row| row[0]);
    }
}

#[test]
fn vectors() {
    let rows: Vec<Vec<u64>> = product(&[&EDGES, &EDGES]);
    let at = |row: &[u64], byte: u32, bits: u32| {
        let whole = u128::from(row[0]) | u128::from(row[1]) << 64;
        (whole >> (8 * byte)) as u64 & (u64::MAX >> (64 - bits))
    };
    for (name, bits, count) in [
        ("b8", 8, 2),
        ("b8", 8, 4),
        ("u16", 16, 2),
        ("b16", 16, 4),
        ("f32", 32, 2),
        ("b32", 32, 4),
        ("f64", 64, 2),
        ("s64", 64, 2),
    ] {
        let register = bits.max(16);
        for element in 0..count {
            // The others go to sinks.
            let parts: Vec<&str> = (0..count).map(|index| if index == element { "$d" } else { "_" }).collect();
            let text = format!("ld.global.v{count}.{name} {{{}}}, [%base]", parts.join(", "));
            check(&text, &[64, 64], register, &rows, |row| at(row, element * bits / 8, bits));
        }
        let parts: Vec<String> = (0..count).map(|index| format!("%v{index}")).collect();
        let parts = parts.join(", ");
        // Moved eight bytes on; the bytes that were loaded before are read then.
        let text = format!(
            ".reg .b{register} %v<4>; ld.global.v{count}.{name} {{{parts}}}, [%base]; mov.b64 %o, 0; st.shared.v{count}.{name} \
             [%base+64], {{{parts}}}; ld.shared.b64 $d, [%base+64]"
        );
        let keep = u64::MAX >> (64 - (bits * count).min(64));
        check(&text, &[64, 64], 64, &rows, |row| row[0] & keep);
    }
    check("ld.global.v2.s8 {_, $d}, [%base]", &[64], 64, &product(&[&EDGES]), |row| extended(row[0] >> 8, 8, true));
}

#[test]
fn forms_of_addresses() {
    let rows = product(&[&EDGES, &[5]]);
    check("add.u64 %o, %base, 100; ld.global.u32 $d, [%o+-92]", &[64, 32], 32, &rows, |row| row[1]);
    check("ld.global.u32 $d, [8]", &[64, 32], 32, &rows[..1], |row| row[1]);
    // 32-bit addresses of shared memory, which wrap.
    let text = "mov.u32 %t1, %tid.x; shl.b32 %t1, %t1, 3; st.shared.b64 [%t1], $a; add.u32 %t2, %t1, 16; ld.shared.b64 $d, [%t2+-16]";
    check(text, &[64, 32], 64, &rows, |row| row[0]);
    let text = "mov.u32 %t1, %tid.x; shl.b32 %t1, %t1, 3; st.shared.b64 [%t1], $a; sub.u32 %t2, %t1, 4096; ld.shared.b64 $d, [%t2+4096]";
    check(text, &[64, 32], 64, &rows, |row| row[0]);
    // shared::cta and shared::cluster of a cluster of one.
    let text = "mov.u32 %t1, %tid.x; shl.b32 %t1, %t1, 3; mapa.shared::cluster.u32 %t2, %t1, 0; st.shared::cta.b64 [%t1], $a; \
                ld.shared::cluster.b64 $d, [%t2]";
    check(text, &[64, 32], 64, &rows, |row| row[0]);
    // The rank is the top byte of the lower half.
    check("getctarank.u64 $d, $a", &[64], 32, &product(&[&EDGES]), |row| row[0] >> 24 & 0xff);
    check("getctarank.shared::cluster.u32 $d, $a", &[32], 32, &product(&[&EDGES]), |row| row[0] >> 24 & 0xff);
    check("mapa.u64 $d, $a, 5", &[64], 64, &product(&[&EDGES]), |row| row[0] & !0xff00_0000 | 5 << 24);
    check("mapa.shared::cluster.u32 $d, $a, 5", &[32], 32, &product(&[&EDGES]), |row| row[0] & 0xff_ffff | 5 << 24);
}

const SPACES: [(&str, &str); 8] = [
    ("global", "mov.b64 %o, g;"),
    ("shared", "mov.b64 %o, s; cvta.shared.u64 %o, %o;"),
    ("shared::cta", "cvta.shared.u64 %o, s;"),
    ("shared::cluster", "cvta.shared::cluster.u64 %o, s;"),
    ("local", "cvta.local.u64 %o, l;"),
    ("param", "cvta.param.u64 %o, p;"),
    ("const", "mov.b64 %o, c;"),
    ("const", "cvta.const.u64 %o, d; add.u64 %o, %o, 15;"),
];

#[test]
fn spaces_of_generic_addresses() {
    for (made, address) in SPACES {
        for (asked, _) in SPACES {
            let text = format!(
                ".version 8.8\n.target sm_90\n.address_size 64\n.global .b32 g; .const .b32 c; .const .b64 d[2];\n.visible .entry k(.param .u64 p) {{\n\
                 .reg .pred %q; .reg .b32 %r; .reg .b64 %o; .reg .b64 %base; .shared .b32 s; .local .b32 l;\n\
                 ld.param.u64 %base, [p]; {address} isspacep.{asked} %q, %o; selp.u32 %r, 1, 0, %q; st.global.u32 [%base], %r; ret;\n}}"
            );
            let module = PtxModule::parse("test.ptx", &text).unwrap_or_else(|errors| panic!("{errors}"));
            let program = module.program("k", &[0x1000, 0x2000, 0x3000]).unwrap_or_else(|errors| panic!("{errors}"));
            let memory = machine::run(&program, &[0; 8], 1, &[9; 64]);
            let family = |space: &str| space.split(':').next().map(str::to_owned);
            assert_eq!(memory[0], u8::from(family(made) == family(asked)), "isspacep.{asked} of an address of {made}");
        }
    }
}

/// Runs a kernel with parameters `a` (u32), `b` (eight s16) and the address 0, and gives the word it stores there.
fn with_parameters(body: &str) -> u64 {
    let text = format!(
        ".version 8.8\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u32 a, .param .align 16 .b8 b[16], .param .u64 out) {{\n\
         .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .b64 %base; ld.param.u64 %base, [out];\n{body}\nret;\n}}"
    );
    let mut parameters = [0; 40];
    parameters[..4].copy_from_slice(&0x1234_5678_u32.to_le_bytes());
    for (index, place) in (16..32).step_by(2).enumerate() {
        parameters[place..place + 2].copy_from_slice(&(-(index as i16) - 1).to_le_bytes());
    }
    let memory = machine::run(&machine::load(&text), &parameters, 1, &[0; 64]);
    u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|byte| memory[byte]))
}

#[test]
fn parameters() {
    for (body, expected) in [
        ("ld.param.u32 %r1, [a]; st.global.u32 [%base], %r1;", 0x1234_5678),
        ("ld.param::entry.u32 %r1, [a]; st.global.u32 [%base], %r1;", 0x1234_5678),
        ("ld.param.s16 %r1, [b+2]; st.global.u32 [%base], %r1;", 0xffff_fffe),
        (
            "ld.param.v4.u16 {%h0, %h1, _, %h3}, [b+8]; mov.b32 %r1, {%h1, %h3}; st.global.u32 [%base], %r1;",
            0xfff8_fffa,
        ),
        // By an address in a register, and by a generic one.
        ("mov.b64 %rd1, b; add.u64 %rd1, %rd1, 4; ld.param.s16 %rd2, [%rd1]; st.global.u64 [%base], %rd2;", !2),
        ("mov.u32 %r1, b; ld.param.u16 %r2, [%r1+14]; st.global.u32 [%base], %r2;", 0xfff8),
        ("cvta.param.u64 %rd1, b; ld.s16 %rd2, [%rd1+6]; st.global.u64 [%base], %rd2;", !3),
        (
            "cvta.param.u64 %rd1, b; cvta.to.param.u64 %rd1, %rd1; ld.param.s16 %rd2, [%rd1]; st.global.u64 [%base], %rd2;",
            !0,
        ),
        ("cvta.param.u64 %rd1, b; ld.v2.u64 {%rd2, %rd3}, [%rd1]; st.global.u64 [%base], %rd3;", 0xfff8_fff9_fffa_fffb),
    ] {
        assert_eq!(with_parameters(body), expected, "{body}");
    }
}

#[test]
fn lanes_of_one_load_in_several_spaces() {
    // Every third lane loads from device memory, shared memory, and its parameters.
    let text = ".reg .pred %q<3>; .reg .b32 %m; .reg .b64 %x; mov.u32 %t1, %tid.x; rem.u32 %m, %t1, 3; \
                setp.eq.u32 %q0, %m, 1; setp.eq.u32 %q1, %m, 2; st.shared.u32 [1024], 77; mov.b64 %x, 1024; \
                cvta.shared.u64 %x, %x; selp.b64 %o, %x, %base, %q0; cvta.param.u64 %x, p; selp.b64 %o, %x, %o, %q1; ld.u32 $d, [%o]";
    let rows: Vec<Vec<u64>> = (0..32).map(|lane| vec![lane]).collect();
    check(text, &[32], 32, &rows, |row| [row[0], 77, 0][row[0] as usize % 3]);
}

#[test]
fn cache_policies_are_what_was_asked_for() {
    let first = run("createpolicy.fractional.L2::evict_first.b64 $d", &[], 64, &[vec![]]);
    let last = run("createpolicy.fractional.L2::evict_last.b64 $d, 1.0", &[], 64, &[vec![]]);
    assert_ne!(first, last);
    check("createpolicy.cvt.L2.b64 $d, $a", &[64], 64, &[vec![5]], |row| row[0]);
}

/// The message with which a kernel of this instruction is refused.
fn refusal(instruction: &str) -> String {
    let text = format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n\
         .reg .pred %p<4>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .u32 %u<4>; .reg .f32 %f<9>; .reg .b64 %rd<8>; .reg .f64 %fd<4>;\n\
         .shared .b64 s;\n{instruction};\nret;\n}}"
    );
    let module = match PtxModule::parse("test.ptx", &text) {
        Ok(module) => module,
        Err(errors) => return errors.to_string(),
    };
    match module.program("k", &[]) {
        Ok(_) => String::new(),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn what_the_isa_does_not_have_is_refused() {
    for instruction in [
        "ld.global.u64 %rd1, [%p1]",
        "ld.global.u64 %r1, [%rd1]",
        "ld.global.u32 %h1, [%rd1]",
        "ld.global.f32 %u1, [%rd1]",
        "ld.global.u32 %f1, [%rd1]",
        "ld.global.pred %p1, [%rd1]",
        "ld.global.u32 %p1, [%rd1]",
        "ld.global.v2.u32 {%r1, %r2, %r3}, [%rd1]",
        "st.global.u64 [%rd1], %r1",
        "st.const.u32 [%rd1], %r1",
        "st.param::entry.u32 [p], %r1",
        "atom.local.add.u32 %r1, [%rd1], 1",
        "atom.global.add.b32 %r1, [%rd1], 1",
        "atom.global.and.u32 %r1, [%rd1], 1",
        "atom.global.inc.u64 %rd2, [%rd1], 1",
        "atom.global.min.f32 %f1, [%rd1], %f2",
        "atom.global.cas.u32 %r1, [%rd1], 1, 2",
        "red.global.exch.b32 [%rd1], 1",
        "atom.shared.v2.f32.add {%f1, %f2}, [%rd1], {%f3, %f4}",
        "atom.global.v2.f64.add {%fd1, %fd2}, [%rd1], {%fd1, %fd2}",
        "atom.global.v4.f32.add {%f1, %f2}, [%rd1], {%f3, %f4}",
        "cp.async.ca.shared.global [s], [%rd1], 3",
        "cp.async.cg.shared.global [s], [%rd1], 8",
        "mbarrier.init.global.b64 [%rd1], 1",
        "mbarrier.init.shared.b64 [%rd1], 0",
        "mbarrier.init.shared.b64 [%rd1], 1048576",
    ] {
        assert_ne!(refusal(instruction), "", "{instruction} is accepted");
    }
}

#[test]
fn what_the_simulator_does_not_do_is_refused_by_name() {
    for instruction in [
        "ld.global.v8.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%rd1]",
        "red.async.relaxed.cluster.global.mbarrier::complete_tx::bytes.add.u32 [%rd1], %r1, [%rd2]",
        "st.async.mmio.release.sys.global.u32 [%rd1], %r1",
        "multimem.ld_reduce.global.add.u32 %r1, [%rd1]",
        "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd1], [%r1], 16, %h1",
        "tcgen05.alloc.cta_group::1.sync.aligned.b32 [%rd1], 32",
    ] {
        let message = refusal(instruction);
        let name = instruction.split(['.', ' ']).next().unwrap_or(instruction);
        assert!(
            message.contains("not supported by the simulator") && message.contains(name),
            "{instruction}: {message}"
        );
    }
}

#[test]
#[should_panic(expected = "local atomic")]
fn an_atomic_on_local_memory_faults() {
    run(".local .b32 l; cvta.local.u64 %o, l; atom.add.u32 $d, [%o], 1", &[], 32, &[vec![]]);
}

#[test]
#[should_panic(expected = "param store")]
fn a_store_to_parameters_faults() {
    run("cvta.param.u64 %o, p; st.u32 [%o], 1; mov.u32 $d, 0", &[], 32, &[vec![]]);
}

#[test]
#[should_panic(expected = "param load")]
fn a_load_past_the_parameters_faults() {
    run("cvta.param.u64 %o, p; ld.u32 $d, [%o+8]", &[], 32, &[vec![]]);
}
