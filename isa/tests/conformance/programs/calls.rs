//! Functions: every value is compared with the same function computed here, lane by lane.

use crate::machine::run;
use balar_isa::module::PtxModule;
use balar_isa::program::Program;

/// First address of the module's variables; results lie before.
const VARIABLES: u64 = 1024;

/// A module: declarations and functions, then a kernel `k` around a body. `%r0` is the lane, `%rd0` the address of the lane's
/// result word, `%rd1` address 0.
fn module(functions: &str, body: &str) -> String {
    format!(
        ".version 8.8\n.target sm_70\n.address_size 64\n{functions}\n.visible .entry k(.param .u64 p) {{\n\
         .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<9>;\n\
         mov.u32 %r0, %tid.x; ld.param.u64 %rd1, [p]; mul.wide.u32 %rd2, %r0, 4; add.s64 %rd0, %rd1, %rd2;\n{body}\n}}\n"
    )
}

/// Loads modules, places their variables, and gives the kernel `k` with the initial memory.
pub fn load(texts: &[&str]) -> (Program, Vec<u8>) {
    let trees = texts.iter().enumerate().map(|(index, text)| {
        let name = format!("module{index}.ptx");
        balar_isa::ptx::parse(&name, text).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
    });
    let module = PtxModule::link(trees.collect()).unwrap_or_else(|errors| panic!("{errors}"));
    let mut end = VARIABLES;
    let mut addresses = Vec::new();
    for variable in module.variables() {
        end = end.next_multiple_of(variable.alignment);
        addresses.push(end);
        end += variable.bytes;
    }
    let mut global = vec![0; end as usize + 64];
    for (index, &address) in addresses.iter().enumerate() {
        if let Some(bytes) = module.initial_value(index, &addresses) {
            global[address as usize..][..bytes.len()].copy_from_slice(&bytes);
        }
    }
    (module.program("k", &addresses).unwrap_or_else(|errors| panic!("{errors}")), global)
}

pub fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

/// The 32 lanes' result words, and those after.
fn results(functions: &str, body: &str) -> Vec<u32> {
    let (program, global) = load(&[&module(functions, body)]);
    words(&run(&program, &[0; 8], 32, &global))
}

/// Each lane's result is that of `expected`.
fn check(functions: &str, body: &str, expected: impl Fn(u32) -> u32) {
    let found = results(functions, body);
    for lane in 0..32 {
        let expected = expected(lane);
        assert_eq!(found[lane as usize], expected, "lane {lane} of\n{functions}\n{body}");
    }
}

/// `(.param .b32 result) name(.param .b32 n)` around a body with registers `%r`, `%p`, `%rd`; `%r1` is n, `%r2` the result.
fn function(name: &str, body: &str) -> String {
    format!(
        ".func (.param .b32 result) {name}(.param .b32 n) {{\n\
         .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<9>;\n\
         ld.param.b32 %r1, [n];\n{body}\nst.param.b32 [result], %r2; ret;\n}}\n"
    )
}

/// Calls `target` with register `argument`; the result goes to register `to`.
fn call(target: &str, argument: &str, to: &str) -> String {
    guarded_call("", target, argument, to)
}

fn guarded_call(guard: &str, target: &str, argument: &str, to: &str) -> String {
    format!(
        "{{ .param .b32 a; .param .b32 b; st.param.b32 [a], {argument};\n\
         {guard} call.uni (b), {target}, (a);\nld.param.b32 {to}, [b]; }}\n"
    )
}

const STORE: &str = "st.global.u32 [%rd0], %r9; ret;";

fn declare(names: &[&str]) -> String {
    names.iter().map(|name| format!(".func (.param .b32 result) {name}(.param .b32 n);\n")).collect()
}

fn fibonacci(n: u32) -> u32 {
    if n < 2 { n } else { fibonacci(n - 1).wrapping_add(fibonacci(n - 2)) }
}

fn fibonacci_text() -> String {
    let body = format!(
        "setp.lt.u32 %p1, %r1, 2; mov.u32 %r2, %r1; @%p1 bra DONE;\n\
         sub.u32 %r3, %r1, 1; {} sub.u32 %r5, %r1, 2; {} add.u32 %r2, %r4, %r6; DONE:",
        call("fib", "%r3", "%r4"),
        call("fib", "%r5", "%r6")
    );
    declare(&["fib"]) + &function("fib", &body)
}

#[test]
fn direct_and_nested() {
    let square = function("square", "mul.lo.u32 %r2, %r1, %r1;");
    let twice = function(
        "twice",
        &format!("{}{} add.u32 %r2, %r3, %r4;", call("square", "%r1", "%r3"), call("square", "%r3", "%r4")),
    );
    check(&square, &(call("square", "%r0", "%r9") + STORE), |lane| lane * lane);
    let both = square + &twice;
    check(&both, &(call("twice", "%r0", "%r9") + STORE), |lane| lane * lane + lane.pow(4));
    // The caller's values in registers outlive calls.
    let body = format!(
        "add.u32 %r5, %r0, 7; mul.wide.u32 %rd5, %r5, 65536; {}{} cvt.u32.u64 %r6, %rd5;\n\
         add.u32 %r9, %r9, %r5; add.u32 %r9, %r9, %r6; add.u32 %r9, %r9, %r7;{STORE}",
        call("twice", "%r0", "%r9"),
        call("square", "%r5", "%r7")
    );
    check(&both, &body, |lane| lane * lane + lane.pow(4) + (lane + 7) + (lane + 7) * 65536 + (lane + 7) * (lane + 7));
}

#[test]
fn recursion_of_another_depth_in_each_lane() {
    check(&fibonacci_text(), &format!("and.b32 %r3, %r0, 11; {}{STORE}", call("fib", "%r3", "%r9")), |lane| {
        fibonacci(lane & 11)
    });
    let factorial = declare(&["fact"])
        + &function(
            "fact",
            &format!(
                "setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, 1; @%p1 bra DONE; sub.u32 %r3, %r1, 1; {} mul.lo.u32 %r2, %r4, %r1; DONE:",
                call("fact", "%r3", "%r4")
            ),
        );
    let expected = |lane: u32| (1..=lane).fold(1u32, u32::wrapping_mul);
    check(&factorial, &(call("fact", "%r0", "%r9") + STORE), expected);
}

#[test]
fn ackermann() {
    let text = ".func (.param .b32 result) ack(.param .b32 m, .param .b32 n);\n\
        .func (.param .b32 result) ack(.param .b32 m, .param .b32 n) {\n\
        .reg .pred %p<3>; .reg .b32 %r<9>;\n\
        ld.param.b32 %r1, [m]; ld.param.b32 %r2, [n]; setp.ne.u32 %p1, %r1, 0; @%p1 bra MORE;\n\
        add.u32 %r3, %r2, 1; st.param.b32 [result], %r3; ret;\n\
        MORE: setp.ne.u32 %p2, %r2, 0; mov.u32 %r4, 1; @!%p2 bra OUTER;\n\
        { .param .b32 a; .param .b32 b; .param .b32 c; sub.u32 %r5, %r2, 1; st.param.b32 [a], %r1; st.param.b32 [b], %r5;\n\
        call (c), ack, (a, b); ld.param.b32 %r4, [c]; }\n\
        OUTER: { .param .b32 a; .param .b32 b; .param .b32 c; sub.u32 %r6, %r1, 1; st.param.b32 [a], %r6; st.param.b32 [b], %r4;\n\
        call (c), ack, (a, b); ld.param.b32 %r7, [c]; }\n\
        st.param.b32 [result], %r7; ret; }\n";
    let body = format!(
        "and.b32 %r1, %r0, 1; add.u32 %r1, %r1, 1; shr.u32 %r2, %r0, 3;\n\
         {{ .param .b32 a; .param .b32 b; .param .b32 c; st.param.b32 [a], %r1; st.param.b32 [b], %r2;\n\
         call (c), ack, (a, b); ld.param.b32 %r9, [c]; }} {STORE}"
    );
    fn ack(m: u32, n: u32) -> u32 {
        match (m, n) {
            (0, n) => n + 1,
            (m, 0) => ack(m - 1, 1),
            (m, n) => ack(m - 1, ack(m, n - 1)),
        }
    }
    check(text, &body, |lane| ack((lane & 1) + 1, lane >> 3));
}

#[test]
fn functions_that_call_each_other() {
    let step = |name: &str, other: &str, base: u32| {
        let body = format!(
            "setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, {base}; @%p1 bra DONE; setp.gt.u32 %p2, %r1, 5; sub.u32 %r3, %r1, 1;\n\
             {} selp.u32 %r5, 2, 1, %p2; add.u32 %r2, %r4, %r5; DONE:",
            call(other, "%r3", "%r4")
        );
        function(name, &body)
    };
    let text = declare(&["even", "odd"]) + &step("even", "odd", 100) + &step("odd", "even", 200);
    let expected = |lane: u32| {
        let steps: u32 = (1..=lane).map(|n| if n > 5 { 2 } else { 1 }).sum();
        steps + [100, 200][lane as usize % 2]
    };
    check(&text, &(call("even", "%r0", "%r9") + STORE), expected);
}

#[test]
fn function_pointers_differ_between_lanes() {
    let functions = function("plus", "add.u32 %r2, %r1, 1000;")
        + &function("times", "mul.lo.u32 %r2, %r1, 3;")
        + &function("nothing", "mov.u32 %r2, %r1;")
        + ".global .u64 table[3] = { plus, times, nothing };\n";
    let indirect = |load: &str, tail: &str| {
        format!(
            "rem.u32 %r3, %r0, 3; {load}\n\
             {{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r0;\n\
             proto: {tail}\n\
             call (b), %rd5, (a), proto; ld.param.b32 %r9, [b]; }}\n\
             activemask.b32 %r8; setp.ne.u32 %p3, %r8, -1; @%p3 mov.u32 %r9, 0; {STORE}"
        )
    };
    let expected = |lane: u32| match lane % 3 {
        0 => lane + 1000,
        1 => lane * 3,
        _ => lane,
    };
    let from_table =
        "mul.wide.u32 %rd5, %r3, 8; mov.u64 %rd6, table; add.u64 %rd5, %rd5, %rd6; ld.global.u64 %rd5, [%rd5];";
    let from_code = "setp.eq.u32 %p1, %r3, 0; setp.eq.u32 %p2, %r3, 1; mov.u64 %rd5, nothing; mov.u64 %rd6, plus;\n\
        mov.u64 %rd7, times; @%p1 mov.u64 %rd5, %rd6; @%p2 mov.u64 %rd5, %rd7;";
    for load in [from_table, from_code] {
        for tail in [".callprototype (.param .b32 _) _ (.param .b32 _);", ".calltargets plus, times, nothing;"] {
            check(&functions, &indirect(load, tail), expected);
        }
    }
}

#[test]
fn calls_under_divergent_branches_and_guards() {
    let function = function("add5", "add.u32 %r2, %r1, 5;");
    let body = format!(
        "mov.u32 %r9, 1; setp.lt.u32 %p1, %r0, 9; @%p1 bra SKIP; {} SKIP: activemask.b32 %r8; setp.ne.u32 %p2, %r8, -1;\n\
         @%p2 mov.u32 %r9, 7777; {STORE}",
        call("add5", "%r0", "%r9")
    );
    check(&function, &body, |lane| if lane < 9 { 1 } else { lane + 5 });
    let body = format!(
        "mov.u32 %r9, 1; mov.u32 %r5, 0; setp.ge.u32 %p1, %r0, 9; {}\n\
         activemask.b32 %r8; setp.ne.u32 %p2, %r8, -1; @%p1 mov.u32 %r9, %r5; @%p2 mov.u32 %r9, 7777; {STORE}",
        guarded_call("@%p1", "add5", "%r0", "%r5")
    );
    check(&function, &body, |lane| if lane < 9 { 1 } else { lane + 5 });
}

#[test]
fn calls_in_a_loop_with_several_exits() {
    // Collatz steps, at most 20.
    let step = function(
        "step",
        "and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 0; shr.u32 %r2, %r1, 1; @%p1 bra DONE; mad.lo.u32 %r2, %r1, 3, 1; DONE:",
    );
    let body = format!(
        "add.u32 %r1, %r0, 1; mov.u32 %r9, 0;\n\
         LOOP: setp.eq.u32 %p1, %r1, 1; @%p1 bra OUT; setp.eq.u32 %p2, %r9, 20; @%p2 bra LATE; {} add.u32 %r9, %r9, 1; bra LOOP;\n\
         LATE: mov.u32 %r9, 999; OUT: {STORE}",
        call("step", "%r1", "%r1")
    );
    check(&step, &body, |lane| {
        let (mut n, mut steps) = (lane + 1, 0);
        while n != 1 {
            if steps == 20 {
                return 999;
            }
            n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
            steps += 1;
        }
        steps
    });
}

#[test]
fn threads_end_inside_functions() {
    let function = function(
        "leaves",
        "setp.lt.u32 %p1, %r1, 4; @%p1 exit; setp.gt.u32 %p2, %r1, 20; mov.u32 %r2, 3; @%p2 bra END; add.u32 %r2, %r1, 1; END:",
    );
    let body = format!("st.global.u32 [%rd0], 50; {} {STORE}", call("leaves", "%r0", "%r9"));
    check(&function, &body, |lane| match lane {
        0..4 => 50,
        4..=20 => lane + 1,
        _ => 3,
    });
    // All of a call's lanes end: the others go on.
    let body = format!(
        "st.global.u32 [%rd0], 50; setp.lt.u32 %p1, %r0, 4; mov.u32 %r9, 8; {} {STORE}",
        guarded_call("@%p1", "leaves", "%r0", "%r5")
    );
    check(&function, &body, |lane| if lane < 4 { 50 } else { 8 });
}

#[test]
fn several_returns_and_the_end_of_the_text() {
    let text = ".func (.param .b32 result) f(.param .b32 n) { .reg .pred %p<3>; .reg .b32 %r<4>;\n\
        ld.param.b32 %r1, [n]; setp.lt.u32 %p1, %r1, 5; st.param.b32 [result], %r1; @%p1 ret;\n\
        add.u32 %r2, %r1, 10; st.param.b32 [result], %r2; setp.lt.u32 %p1, %r1, 15; @%p1 ret.uni;\n\
        add.u32 %r2, %r1, 20; st.param.b32 [result], %r2; }\n";
    check(text, &(call("f", "%r0", "%r9") + STORE), |lane| {
        lane + [0, 10, 20][(lane >= 5) as usize + (lane >= 15) as usize]
    });
}

#[test]
fn spin_locks_inside_functions() {
    let lock = ".func lock(.param .b64 at) { .reg .pred %p<2>; .reg .b32 %r<2>; .reg .b64 %rd<2>; ld.param.b64 %rd1, [at];\n\
        AGAIN: atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra AGAIN; ret; }\n\
        .func unlock(.param .b64 at) { .reg .b32 %r<2>; .reg .b64 %rd<2>; ld.param.b64 %rd1, [at];\n\
        atom.global.exch.b32 %r1, [%rd1], 0; ret; }\n";
    let with = |name: &str| format!("{{ .param .b64 a; st.param.b64 [a], %rd3; call {name}, (a); }}");
    let body = format!(
        "add.u64 %rd3, %rd1, 128; {} ld.volatile.global.u32 %r2, [%rd1+132]; add.u32 %r2, %r2, 1;\n\
         st.volatile.global.u32 [%rd1+132], %r2; membar.gl; {} ret;",
        with("lock"),
        with("unlock")
    );
    let found = results(lock, &body);
    assert_eq!((found[32], found[33]), (0, 32));
    // Only one attempt a call.
    let attempt = ".func (.param .b32 got) attempt(.param .b64 at) { .reg .pred %p<2>; .reg .b32 %r<3>; .reg .b64 %rd<2>;\n\
        ld.param.b64 %rd1, [at]; atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.eq.u32 %p1, %r1, 0; selp.u32 %r2, 1, 0, %p1;\n\
        st.param.b32 [got], %r2; ret; }\n";
    let body = "add.u64 %rd3, %rd1, 128; LOOP: { .param .b64 a; .param .b32 b; st.param.b64 [a], %rd3; call (b), attempt, (a);\n\
        ld.param.b32 %r5, [b]; } setp.eq.u32 %p1, %r5, 0; @%p1 bra LOOP;\n\
        ld.volatile.global.u32 %r2, [%rd1+132]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%rd1+132], %r2; membar.gl;\n\
        atom.global.exch.b32 %r1, [%rd1+128], 0; ret;";
    assert_eq!(results(attempt, body)[33], 32);
}

#[test]
fn struct_parameters_byte_by_byte() {
    let text = ".func (.param .align 8 .b8 out[16]) swap(.param .align 4 .b8 in[12], .param .b16 h) {\n\
        .reg .b32 %r<9>; .reg .b16 %h<5>; .reg .b64 %rd<4>;\n\
        ld.param.b8 %h1, [in+1]; ld.param.u8 %r1, [in+3]; ld.param.b32 %r2, [in+4]; ld.param.b16 %h2, [in+8]; ld.param.b16 %h3, [h];\n\
        cvt.u32.u16 %r3, %h1; cvt.u32.u16 %r4, %h2; cvt.u32.u16 %r5, %h3;\n\
        add.u32 %r6, %r3, %r4; add.u32 %r6, %r6, %r5;\n\
        st.param.b32 [out+0], %r6; st.param.v2.b32 [out+8], {%r2, %r1}; st.param.b8 [out+7], %r1; ret; }\n";
    let body = format!(
        "shl.b32 %r1, %r0, 8; or.b32 %r1, %r1, 0x5a000000; add.u32 %r2, %r0, 100; cvt.u16.u32 %h1, %r0;\n\
         {{ .param .align 4 .b8 a[12]; .param .b16 h; .param .align 8 .b8 b[16];\n\
         st.param.b32 [a], %r1; st.param.b32 [a+4], %r2; st.param.b16 [a+8], %h1; st.param.b16 [h], 7;\n\
         call (b), swap, (a, h); ld.param.b32 %r3, [b]; ld.param.v2.b32 {{%r4, %r5}}, [b+8]; ld.param.b8 %r6, [b+7]; }}\n\
         add.u32 %r9, %r3, %r4; add.u32 %r9, %r9, %r5; mad.lo.u32 %r9, %r6, 1000, %r9; {STORE}"
    );
    check(text, &body, |lane| (lane + lane + 7) + (100 + lane) + 0x5a + 0x5a * 1000);
}

#[test]
fn arguments_kept_beyond_other_calls() {
    // The variables are written before another call and read after one: they cannot lie where the callee looks.
    let function = function("inc", "add.u32 %r2, %r1, 1;");
    let body = format!(
        "{{ .param .b32 a; .param .b32 b; .param .b32 c; .param .b32 d; st.param.b32 [a], %r0; st.param.b32 [c], 500;\n\
         call (b), inc, (a); call (d), inc, (c); ld.param.b32 %r1, [b]; ld.param.b32 %r2, [d]; call (d), inc, (b);\n\
         ld.param.b32 %r3, [d]; }} add.u32 %r9, %r1, %r2; mad.lo.u32 %r9, %r3, 1000, %r9; {STORE}"
    );
    check(&function, &body, |lane| lane + 1 + 501 + (lane + 2) * 1000);
}

#[test]
fn parameters_in_registers() {
    let text = ".func (.reg .b32 out, .reg .b64 wide) both(.reg .b32 a, .reg .b32 b, .reg .b64 c) { .reg .b64 %rd<3>;\n\
        add.u32 out, a, b; cvt.u64.u32 %rd1, b; add.u64 wide, c, %rd1; ret; }\n";
    let body = format!(
        "mov.u64 %rd5, 0x100000000; call (%r1, %rd6), both, (%r0, 11, %rd5); shr.u64 %rd7, %rd6, 30; cvt.u32.u64 %r2, %rd7;\n\
         cvt.u32.u64 %r3, %rd6; add.u32 %r9, %r1, %r2; add.u32 %r9, %r9, %r3; {STORE}"
    );
    check(text, &body, |lane| lane + 11 + 4 + 11);
}

#[test]
fn addresses_of_locals_and_parameters_are_the_lanes_own() {
    // A function writes through a generic pointer into its caller's array, and through one into its own.
    let text = ".func fill(.param .b64 at, .param .b32 n) { .local .align 4 .b32 own[4]; .reg .b32 %r<5>; .reg .b64 %rd<9>;\n\
        ld.param.b64 %rd1, [at]; ld.param.b32 %r1, [n]; mov.u64 %rd2, own; cvta.local.u64 %rd3, %rd2;\n\
        mul.lo.u32 %r2, %r1, 3; st.u32 [%rd3+4], %r2; ld.local.u32 %r3, [own+4]; st.u32 [%rd1], %r3; add.u32 %r3, %r3, 1;\n\
        st.u32 [%rd1+4], %r3; ret; }\n\
        .func (.param .b32 result) middle(.param .b32 n) { .local .align 8 .b32 array[2]; .reg .b32 %r<5>; .reg .b64 %rd<9>;\n\
        ld.param.b32 %r1, [n]; mov.u64 %rd1, array; cvta.local.u64 %rd2, %rd1;\n\
        { .param .b64 a; .param .b32 b; st.param.b64 [a], %rd2; st.param.b32 [b], %r1; call fill, (a, b); }\n\
        ld.local.u32 %r2, [array]; ld.local.u32 %r3, [%rd1+4]; mad.lo.u32 %r4, %r2, 1000, %r3; st.param.b32 [result], %r4; ret; }\n";
    check(text, &(call("middle", "%r0", "%r9") + STORE), |lane| lane * 3000 + lane * 3 + 1);
    // The address of a parameter.
    let text = ".func (.param .b32 result) indexed(.param .align 4 .b8 in[16], .param .b32 n) { .reg .b32 %r<5>; .reg .b64 %rd<9>;\n\
        mov.b64 %rd1, in; cvta.local.u64 %rd2, %rd1; ld.param.b32 %r1, [n]; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd2, %rd2, %rd3;\n\
        add.u64 %rd4, %rd1, %rd3; ld.u32 %r2, [%rd2]; ld.param.b32 %r3, [%rd4]; add.u32 %r4, %r2, %r3; st.param.b32 [result], %r4; ret; }\n";
    let body = format!(
        "and.b32 %r1, %r0, 3; add.u32 %r2, %r0, 10; add.u32 %r3, %r0, 20; add.u32 %r4, %r0, 30;\n\
         {{ .param .align 4 .b8 a[16]; .param .b32 n; .param .b32 b; st.param.v4.b32 [a], {{%r0, %r2, %r3, %r4}};\n\
         st.param.b32 [n], %r1; call (b), indexed, (a, n); ld.param.b32 %r9, [b]; }} {STORE}"
    );
    check(text, &body, |lane| 2 * (lane + 10 * (lane & 3)));
}

#[test]
fn memory_from_the_stack_at_run_time() {
    // Fills an array of its argument's length in each lane, and sums it up; the caller's array stays whole.
    let sum = function(
        "sum",
        "shl.b32 %r3, %r1, 2; add.u32 %r3, %r3, 4; cvt.u64.u32 %rd1, %r3; stacksave.u64 %rd5; alloca.u64 %rd2, %rd1, 64;\n\
         and.b64 %rd6, %rd2, 63; cvt.u32.u64 %r2, %rd6; cvta.local.u64 %rd3, %rd2; mov.u32 %r4, 0;\n\
         FILL: mad.wide.u32 %rd4, %r4, 4, %rd3; st.u32 [%rd4], %r4; add.u32 %r4, %r4, 1; setp.le.u32 %p1, %r4, %r1; @%p1 bra FILL;\n\
         mov.u32 %r4, 0; SUM: mad.wide.u32 %rd4, %r4, 4, %rd2; ld.local.u32 %r5, [%rd4]; add.u32 %r2, %r2, %r5;\n\
         add.u32 %r4, %r4, 1; setp.le.u32 %p1, %r4, %r1; @%p1 bra SUM; stackrestore.u64 %rd5;",
    );
    let body = format!(
        "mov.u64 %rd5, 24; alloca.u64 %rd6, %rd5; st.local.u32 [%rd6+20], %r0; mov.u32 %r9, 0; mov.u32 %r8, 0;\n\
         AGAIN: {} add.u32 %r9, %r9, %r7; add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 200; @%p1 bra AGAIN;\n\
         ld.local.u32 %r6, [%rd6+20]; mad.lo.u32 %r9, %r6, 100000, %r9; {STORE}",
        call("sum", "%r0", "%r7")
    );
    check(&sum, &body, |lane| lane * 100_000 + 200 * (lane * (lane + 1) / 2));
}

#[test]
#[should_panic(expected = "stack overflow: calls nested deeper than the 16384 bytes")]
fn recursion_without_end() {
    results(
        ".func forever();\n.func forever() { call forever; ret; }\n",
        "setp.eq.u32 %p1, %r0, 5; @%p1 call forever; ret;",
    );
}

#[test]
#[should_panic(expected = "invalid program counter: no function that this call may reach is at address 0x40")]
fn a_pointer_to_no_function() {
    let functions = function("add5", "add.u32 %r2, %r1, 5;") + ".global .u64 taken = add5;\n";
    let body = "mov.u64 %rd5, 0x40; { .param .b32 a; .param .b32 b; st.param.b32 [a], %r0;\n\
        proto: .callprototype (.param .b32 _) _ (.param .b32 _);\ncall (b), %rd5, (a), proto; } ret;";
    results(&functions, body);
}

#[test]
fn other_names_and_functions_that_never_return() {
    let functions = function("add5", "add.u32 %r2, %r1, 5;")
        + ".func (.param .b32 result) other(.param .b32 n);\n.alias other, add5;\n.func quit(.param .b32 n) .noreturn;\n"
        + ".func quit(.param .b32 n) .noreturn { .reg .b32 %r<3>; .reg .b64 %rd<3>; ld.param.b32 %r1, [n];\n\
           mul.wide.u32 %rd1, %r1, 4; st.global.u32 [%rd1], 1000; exit; }\n";
    let body = format!(
        "setp.gt.u32 %p1, %r0, 12; @!%p1 bra GO; {{ .param .b32 a; st.param.b32 [a], %r0; call.uni quit, (a); }}\n\
         GO: {}{STORE}",
        call("other", "%r0", "%r9")
    );
    check(&functions, &body, |lane| if lane > 12 { 1000 } else { lane + 5 });
}

#[test]
fn arguments_of_unknown_number() {
    let text = ".func (.param .b32 result) sum(.param .b32 n, .param .align 4 .b8 rest[]) {\n\
        .local .align 4 .b32 own[2]; .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<5>;\n\
        st.local.u32 [own+4], 100; ld.param.b32 %r1, [n]; mov.b64 %rd1, rest; mov.u32 %r2, 0;\n\
        LOOP: setp.eq.u32 %p1, %r1, 0; @%p1 bra DONE; ld.local.u32 %r3, [%rd1]; add.u32 %r2, %r2, %r3; add.u64 %rd1, %rd1, 4;\n\
        sub.u32 %r1, %r1, 1; bra LOOP;\n\
        DONE: ld.local.u32 %r4, [own+4]; add.u32 %r2, %r2, %r4; st.param.b32 [result], %r2; ret; }\n";
    let body = format!(
        "{{ .param .b32 n; .param .align 4 .b8 v[12]; .param .b32 b; st.param.b32 [n], 3; st.param.b32 [v], %r0;\n\
         st.param.b32 [v+4], 20; st.param.b32 [v+8], %r0; call (b), sum, (n, v); ld.param.b32 %r1, [b]; }}\n\
         {{ .param .b32 n; .param .align 4 .b8 v[4]; .param .b32 b; st.param.b32 [n], 1; st.param.b32 [v], 7;\n\
         call (b), sum, (n, v); ld.param.b32 %r2, [b]; }} mad.lo.u32 %r9, %r2, 1000, %r1; {STORE}"
    );
    check(text, &body, |lane| (2 * lane + 20 + 100) + 107_000);
}

#[test]
fn branches_by_table() {
    let body = format!(
        "rem.u32 %r1, %r0, 5; mov.u32 %r9, 7; setp.gt.u32 %p1, %r0, 3;\n\
         targets: .branchtargets A, B, C, A, END;\n\
         @%p1 brx.idx %r1, targets; mov.u32 %r9, 90; bra END;\n\
         A: add.u32 %r9, %r9, 100; bra END; B: add.u32 %r9, %r9, 200; C: add.u32 %r9, %r9, 300;\n\
         END: activemask.b32 %r8; setp.ne.u32 %p2, %r8, -1; @%p2 mov.u32 %r9, 7777; {STORE}"
    );
    check("", &body, |lane| match (lane, lane % 5) {
        (0..=3, _) => 90,
        (_, 0 | 3) => 107,
        (_, 1) => 507,
        (_, 2) => 307,
        _ => 7,
    });
}

#[test]
fn irreducible_loops_inside_functions() {
    // Two entries into the loop.
    let body = "mov.u32 %r2, 0; and.b32 %r3, %r1, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra SECOND;\n\
        FIRST: add.u32 %r2, %r2, 1; SECOND: add.u32 %r2, %r2, 10; setp.lt.u32 %p2, %r2, %r1; @%p2 bra FIRST;";
    check(&function("f", body), &(call("f", "%r0", "%r9") + STORE), |lane| {
        let mut sum = if lane % 2 == 0 { 11 } else { 10 };
        while sum < lane {
            sum += 11;
        }
        sum
    });
}

#[test]
fn modules_call_each_other() {
    let first = module(
        ".extern .func (.param .b32 result) other(.param .b32 n);\n.extern .global .u32 shift;\n.weak .func (.param .b32 result) both(.param .b32 n) {\n\
         st.param.b32 [result], 5; ret; }\n",
        &format!(
            "{} ld.global.u32 %r1, [shift]; shl.b32 %r9, %r9, %r1; {} add.u32 %r9, %r9, %r5; {STORE}",
            call("other", "%r0", "%r9"),
            call("both", "%r0", "%r5")
        ),
    );
    let second = ".version 8.8\n.target sm_70\n.address_size 64\n.visible .global .u32 shift = 4;\n\
        .visible .func (.param .b32 result) other(.param .b32 n) { .reg .b32 %r<3>; ld.param.b32 %r1, [n]; add.u32 %r1, %r1, 3;\n\
        st.param.b32 [result], %r1; ret; }\n\
        .visible .func (.param .b32 result) both(.param .b32 n) { st.param.b32 [result], 6; ret; }\n";
    for texts in [[first.as_str(), second], [second, first.as_str()]] {
        let (program, global) = load(&texts);
        let found = words(&run(&program, &[0; 8], 32, &global));
        for lane in 0..32u32 {
            assert_eq!(found[lane as usize], ((lane + 3) << 4) + 6, "lane {lane}");
        }
    }
    let trees = |texts: [&str; 2]| {
        texts
            .iter()
            .enumerate()
            .map(|(index, text)| balar_isa::ptx::parse(&format!("m{index}.ptx"), text).expect("a module"))
            .collect()
    };
    let message = PtxModule::link(trees([second, second])).map(drop).expect_err("both define it").to_string();
    assert!(message.contains("m1.ptx:5:1: `other` is defined here and at m0.ptx:5:1"), "{message}");
}

#[test]
fn a_kernel_is_for_the_architecture_of_its_own_text() {
    let text =
        |target, kernel| format!(".version 8.8\n.target {target}\n.address_size 64\n.entry {kernel}() {{ ret; }}\n");
    let parse = |name, text: String| balar_isa::ptx::parse(name, &text).expect("a module");
    let trees = vec![parse("a.ptx", text("sm_75", "old")), parse("b.ptx", text("sm_90a", "new"))];
    let module = PtxModule::link(trees).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(["old", "new", "none"].map(|kernel| module.architecture_of(kernel)), [75, 90, 0]);
    assert_eq!(module.architecture(), 90);
}

#[test]
fn what_no_module_defines_refuses_the_kernels_that_reach_it() {
    let text = ".version 8.8\n.target sm_70\n.address_size 64\n.extern .func absent(.param .b32 n);\n\
        .func middle() {\n{ .param .b32 a; st.param.b32 [a], 1;\ncall absent, (a); }\nret; }\n\
        .entry bad() {\ncall middle;\nret; }\n.entry good() { ret; }\n";
    let module = PtxModule::parse("m.ptx", text).unwrap_or_else(|errors| panic!("{errors}"));
    let outcomes: Vec<_> = module.kernels().map(|name| (name, module.program(name, &[]).is_ok())).collect();
    assert_eq!(outcomes, [("bad", false), ("good", true)]);
    let message = module.program("bad", &[]).map(drop).expect_err("absent").to_string();
    assert!(message.contains("m.ptx:7:6: no module defines the function `absent`"), "{message}");
}
