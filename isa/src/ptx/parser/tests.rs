//! The parser on code as compilers write it, and on mistakes.

use super::super::ast::*;
use super::super::error::{MAXIMUM_ERRORS, PtxErrorKind as Kind};
use super::super::modifier::Modifier;
use super::super::opcode::Opcode;
use super::super::special_register::{Component, SpecialRegisterName};
use super::super::types::{ScalarType, StateSpace};
use super::parse;

const HEADER: &str = ".version 7.8\n.target sm_70\n.address_size 64\n";

/// Parses a kernel's body, where `%r<9>`, `%rd<9>`, `%f<9>`, `%fd<9>`, `%rs<9>` and `%p<9>` are declared.
fn kernel_text(body: &str) -> String {
    format!(
        "{HEADER}.global .align 4 .u32 counter;\n.func (.param .b32 out) callee(.param .b32 in);\n\
         .visible .entry k(.param .u64 a, .param .u32 n)\n{{\n.reg .pred %p<9>;\n.reg .b16 %rs<9>;\n.reg .b32 %r<9>;\n\
         .reg .b64 %rd<9>;\n.reg .f32 %f<9>;\n.reg .f64 %fd<9>;\n{body}\n}}\n"
    )
}

fn module(text: &str) -> Module {
    parse("test.ptx", text).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

fn kernel(body: &str) -> Function {
    let module = module(&kernel_text(body));
    module.function("k").expect("the kernel").clone()
}

fn instructions(function: &Function) -> Vec<&Instruction> {
    let mut found = Vec::new();
    for statement in &function.body.as_ref().expect("a body").statements {
        if let Statement::Instruction(instruction) = statement {
            found.push(instruction);
        }
    }
    found
}

/// The operands of a single instruction, with registers by name.
fn operands(body: &str) -> Vec<String> {
    let function = kernel(body);
    let found = instructions(&function);
    assert_eq!(found.len(), 1, "{body}");
    found[0].operands.iter().map(|operand| show(&function, operand)).collect()
}

fn show(function: &Function, operand: &Operand) -> String {
    use OperandKind as K;
    let list = |operands: &[Operand]| operands.iter().map(|part| show(function, part)).collect::<Vec<_>>().join(" ");
    let pair = |register: &Option<RegisterId>| register.map_or("_".to_owned(), |id| function.register_name(id));
    match &operand.kind {
        K::Register(id) => function.register_name(*id),
        K::Pair(first, second) => format!("{}|{}", pair(first), pair(second)),
        K::NegatedPredicate(id) => format!("!{}", function.register_name(*id)),
        K::NegatedRegister(id) => format!("-{}", function.register_name(*id)),
        K::Part { register, selector, negated } => {
            let sign = if *negated { "-" } else { "" };
            let letter = if selector.half_words { 'h' } else { 'b' };
            let parts: String = selector.parts[..selector.count.into()].iter().map(u8::to_string).collect();
            format!("{sign}{}.{letter}{parts}", function.register_name(*register))
        }
        K::Vector(elements) => format!("{{{}}}", list(elements)),
        K::ResidentVector(elements, register) => format!("{{{}}}|{}", list(elements), pair(register)),
        K::Integer(bits) => format!("{}", *bits as i64),
        K::Float32(bits) => format!("{}f", f32::from_bits(*bits)),
        K::Float64(bits) => format!("{}d", f64::from_bits(*bits)),
        K::Special(special) => format!("{}.{:?}", special.name, special.component),
        K::Address(Address { base, offset }) => match base {
            AddressBase::Absolute => format!("[{offset}]"),
            AddressBase::Register(id) => format!("[{}+{offset}]", function.register_name(*id)),
            AddressBase::Symbol(symbol) => format!("[{symbol:?}+{offset}]"),
        },
        K::AddressList(parts) => format!("[{}]", list(parts)),
        K::Symbol { symbol, offset } => format!("{symbol:?}+{offset}"),
        K::Label(label) => format!("->{}", function.labels[label.index()].name),
        K::Sink => "_".to_owned(),
    }
}

#[test]
fn operands_of_each_sort() {
    for (body, expected) in [
        ("add.s32 %r1, %r2, -5;", &["%r1", "%r2", "-5"][..]),
        ("setp.eq.and.s32 %p1|%p2, %r1, %r2, !%p3;", &["%p1|%p2", "%r1", "%r2", "!%p3"]),
        ("setp.ne.s32 _|%p2, %r1, 0x10;", &["_|%p2", "%r1", "16"]),
        ("ld.global.nc.v4.f32 {%f1, %f2, _, %f4}, [%rd1+16];", &["{%f1 %f2 _ %f4}", "[%rd1+16]"]),
        ("st.global.v2.u32 [%rd1+-8], {%r1, %r2};", &["[%rd1+-8]", "{%r1 %r2}"]),
        ("mov.b64 %rd1, {%r1, %r2};", &["%rd1", "{%r1 %r2}"]),
        ("mov.b64 {%r1, _}, %rd1;", &["{%r1 _}", "%rd1"]),
        ("mov.u32 %r1, %ctaid.y;", &["%r1", "%ctaid.Y"]),
        ("mov.u32 %r1, %laneid;", &["%r1", "%laneid.X"]),
        ("mov.u32 %r1, WARP_SZ;", &["%r1", "WARP_SZ.X"]),
        ("mov.f32 %f1, 0f3F800000;", &["%f1", "1f"]),
        ("mov.f64 %fd1, 0dBFE0000000000000;", &["%fd1", "-0.5d"]),
        ("fma.rn.f64 %fd1, %fd2, .5, -1.5e1;", &["%fd1", "%fd2", "0.5d", "-15d"]),
        ("mov.u64 %rd1, counter;", &["%rd1", "Global(GlobalId(0))+0"]),
        ("mov.u64 %rd1, counter+4;", &["%rd1", "Global(GlobalId(0))+4"]),
        ("mov.u64 %rd1, callee;", &["%rd1", "Function(FunctionId(0))+0"]),
        ("ld.param.u64 %rd1, [a];", &["%rd1", "[Parameter(0)+0]"]),
        ("ld.param.u32 %r1, [n+0];", &["%r1", "[Parameter(1)+0]"]),
        ("ld.global.u32 %r1, [4096];", &["%r1", "[4096]"]),
        ("ld.global.u32 %r1, [counter-4];", &["%r1", "[Global(GlobalId(0))+-4]"]),
        ("shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1;", &["%r1|%p1", "%r2", "1", "31", "-1"]),
        ("atom.global.cas.b32 %r1, [%rd1], %r2, %r3;", &["%r1", "[%rd1+0]", "%r2", "%r3"]),
        ("red.shared.add.f32 [%r1], %f1;", &["[%r1+0]", "%f1"]),
        ("vote.sync.ballot.b32 %r1, !%p1, 0xffffffff;", &["%r1", "!%p1", "4294967295"]),
        ("bar.red.popc.u32 %r1, 0, !%p1;", &["%r1", "0", "!%p1"]),
        ("bar.sync 0;", &["0"]),
        ("lop3.b32 %r1, %r2, %r3, %r4, 0x96;", &["%r1", "%r2", "%r3", "%r4", "150"]),
        ("vadd.s32.s32.s32.sat %r1, %r2.b0, -%r3.h1, %r4;", &["%r1", "%r2.b0", "-%r3.h1", "%r4"]),
        ("vadd4.u32.u32.u32.add %r1.b3210, %r2.b7654, -%r3, %r4;", &["%r1.b3210", "%r2.b7654", "-%r3", "%r4"]),
        ("tex.2d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%rd1, {%r1,%r2}];", &["{%f1 %f2 %f3 %f4}", "[%rd1 {%r1 %r2}]"]),
        ("sust.b.2d.b32.trap [%rd1, {%r1,%r2}], {%r3};", &["[%rd1 {%r1 %r2}]", "{%r3}"]),
        ("cp.async.ca.shared.global [%r1], [%rd1], 16, %r2;", &["[%r1+0]", "[%rd1+0]", "16", "%r2"]),
        ("mbarrier.arrive.shared.b64 _, [%r1];", &["_", "[%r1+0]"]),
        ("mov.u32 %r1, (1 << 4) + 2 * 3;", &["%r1", "22"]),
        (
            "{ .reg .v4 .f32 %v<2>; mov.v4.f32 %v1, {%f1,%f2,%f3,%f4}; }",
            &["{%v1.x %v1.y %v1.z %v1.w}", "{%f1 %f2 %f3 %f4}"],
        ),
        ("{ .reg .v2 .u32 w; mov.u32 %r1, w.y; }", &["%r1", "w.y"]),
        ("x: bra.uni x;", &["->x"]),
        ("@%p1 bra later; later:", &["->later"]),
    ] {
        assert_eq!(operands(body), expected, "{body}");
    }
}

#[test]
fn words_are_types_and_modifiers_in_order() {
    let function = kernel(
        "cvt.rni.ftz.sat.s32.f32 %r1, %f1;\n@!%p2 atom.acq_rel.gpu.global.add.u32 %r1, [%rd1], 1;\n\
         mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3}, {%f1,%f2,%f3,%f4};",
    );
    let found = instructions(&function);
    assert_eq!(found[0].opcode, Opcode::Cvt);
    assert_eq!(found[0].modifiers[..], [Modifier::Rni, Modifier::Ftz, Modifier::Sat]);
    assert_eq!(found[0].types[..], [ScalarType::S32, ScalarType::F32]);
    assert_eq!(found[0].guard, None);
    let guard = found[1].guard.expect("a guard");
    assert!(guard.negated);
    assert_eq!(function.register_name(guard.register), "%p2");
    assert_eq!(found[1].state_space(), Some(StateSpace::Global));
    assert!(found[1].has(Modifier::AcquireRelease) && found[1].has(Modifier::Add));
    assert_eq!(found[2].types.len(), 4);
}

#[test]
fn scopes_shadow_registers_and_labels() {
    let function = kernel(
        "mov.u32 %r1, 1;\n{\n.reg .b32 %r1;\n.reg .pred P;\nmov.u32 %r1, 2;\nL: @P bra DONE;\nbra L;\nDONE:\n}\n\
         {\n.reg .pred P;\nL: @P bra DONE;\nbra L;\nDONE:\n}\nmov.u32 %r1, 3;",
    );
    let found = instructions(&function);
    let register = |index: usize| match found[index].operands[0].kind {
        OperandKind::Register(id) => id,
        _ => panic!("a register"),
    };
    assert_eq!(register(0), register(6));
    assert_ne!(register(0), register(1));
    let label = |index: usize| match found[index].operands[0].kind {
        OperandKind::Label(id) => id,
        _ => panic!("a label"),
    };
    // Each scope has its own `L` and `DONE`.
    assert_eq!(function.labels.len(), 4);
    assert_eq!([label(2), label(3), label(4), label(5)], [LabelId(1), LabelId(0), LabelId(3), LabelId(2)]);
    assert_ne!(found[2].guard.map(|guard| guard.register), found[4].guard.map(|guard| guard.register));
}

#[test]
fn a_label_of_an_outer_scope_is_found() {
    let function = kernel("{\n{\nbra OUT;\n}\n}\nOUT: ret;");
    assert_eq!(show(&function, &instructions(&function)[0].operands[0]), "->OUT");
}

#[test]
fn calls() {
    let function = kernel(
        "{ // callseq 0\n.param .b32 param0;\nst.param.b32 [param0+0], %r1;\n.param .b32 retval0;\n\
         call.uni (retval0),\ncallee,\n(\nparam0\n);\nld.param.b32 %r2, [retval0+0];\n}\n\
         { prototype_1 : .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[16]) .noreturn;\n\
         call (_), %rd1, (%rd2, 5), prototype_1;\n}\n",
    );
    let found = instructions(&function);
    let calls: Vec<&CallOperands> = found.iter().filter_map(|instruction| instruction.call.as_deref()).collect();
    let list = |operands: &[Operand]| operands.iter().map(|part| show(&function, part)).collect::<Vec<_>>().join(" ");
    assert_eq!(list(&calls[0].returns), "Local(LocalVariableId(1))+0");
    assert_eq!(show(&function, &calls[0].target), "Function(FunctionId(0))+0");
    assert_eq!(list(&calls[0].arguments), "Local(LocalVariableId(0))+0");
    assert_eq!(calls[0].prototype, None);
    assert_eq!(show(&function, &calls[1].target), "%rd1");
    assert_eq!((list(&calls[1].returns), list(&calls[1].arguments)), ("_".to_owned(), "%rd2 5".to_owned()));
    let prototype = calls[1].prototype.expect("a prototype");
    assert_eq!(&*function.labels[prototype.index()].name, "prototype_1");
    let body = function.body.as_ref().expect("a body");
    let is_it =
        |statement: &&Statement| matches!(statement, Statement::CallPrototype { label, .. } if *label == prototype);
    let Some(Statement::CallPrototype { prototype, .. }) = body.statements.iter().find(is_it) else {
        panic!("the prototype's statement")
    };
    assert!(prototype.is_noreturn);
    assert_eq!(prototype.parameters[1].bytes(), Some(16));
}

#[test]
fn a_call_that_names_nothing_is_an_error() {
    let errors = parse("test.ptx", &kernel_text("call calee;")).expect_err("an error");
    assert_eq!(errors.errors.len(), 1);
    assert_eq!(errors.errors[0].expected.as_deref(), Some("the nearest name is `callee`"));
}

#[test]
fn branch_tables() {
    let function = kernel("TABLE: .branchtargets A, B, A;\nbrx.idx %r1, TABLE;\nA: ret;\nB: exit;");
    let body = function.body.as_ref().expect("a body");
    let Some(Statement::BranchTargets { table, targets, .. }) = body.statements.first() else { panic!("the table") };
    let names: Vec<&str> = targets.iter().map(|label| &*function.labels[label.index()].name).collect();
    assert_eq!(names, ["A", "B", "A"]);
    assert_eq!(instructions(&function)[0].operands[1].kind, OperandKind::Label(*table));
}

#[test]
fn module_scope() {
    let module = module(
        ".version 8.4\n.target sm_80, debug\n.address_size 64\n.file 1 \"a.cu\", 12, 34\n\
         .extern .shared .align 16 .b8 pool[];\n.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n\
         .visible .global .align 4 .b8 text[5] = {72, 105, 0x21};\n\
         .const .align 8 .f64 table[2][3] = {{1.0, 0d4000000000000000}, {3}};\n\
         .global .align 16 .v4 .f32 quad[] = {{0f3F800000, 1, 2.0, 3}, {4}};\n\
         .global .attribute(.managed) .u32 shared_count = 7;\n\
         .global .u64 addresses[4] = {generic(text)+2, f, text, 0};\n\
         .global .u8 bytes[2] = {0xff(text), 0xff00(text)};\n\
         .global .texref picture;\n.global .samplerref how = { addr_mode_0 = clamp_to_edge, filter_mode = linear };\n\
         .weak .func (.param .align 4 .b8 r[8]) f(.param .u64 .ptr .global .align 16 p, .reg .u32 q) .noreturn;\n\
         .weak .func (.param .align 4 .b8 r[8]) f(.param .u64 .ptr .global .align 16 p, .reg .u32 q) .noreturn\n\
         { .loc 1 10 3\n add.u32 q, q, 1;\n .loc 1 11 5, function_name $L__info, inlined_at 1 2 3\n ret; }\n\
         .entry k() .maxntid 256, 2 .minnctapersm 4 .pragma \"nounroll\"; { .pragma \"x\"; .shared .align 4 .b8 tile[1024]; exit; }\n\
         .alias g, f;\n.section .debug_str { info: .b8 95, 0\n .b32 .debug_loc+4 { } }\n"
            .replace(".alias", ".func g(.param .u64 p);\n.alias")
            .as_str(),
    );
    assert_eq!((module.version, module.address_size), ((8, 4), 64));
    assert_eq!(module.targets[..], ["sm_80".into(), "debug".into()]);
    assert_eq!(module.files, [(1, "a.cu".into())]);
    let pool = module.global("pool").expect("pool");
    assert_eq!(
        (pool.linkage, pool.space, pool.alignment, pool.bytes()),
        (Linkage::External, StateSpace::Shared, 16, None)
    );
    let values = |name: &str| module.global(name).and_then(|global| global.initializer.clone()).expect(name).values;
    use InitialValue as V;
    assert_eq!(values("text"), [(0, V::Integer(72)), (1, V::Integer(105)), (2, V::Integer(33))]);
    let double = |value: f64| V::Float64(value.to_bits());
    assert_eq!(values("table"), [(0, double(1.0)), (1, double(2.0)), (3, double(3.0))]);
    assert_eq!(module.global("table").expect("table").bytes(), Some(48));
    let single = |value: f32| V::Float32(value.to_bits());
    let expected = [(0, single(1.0)), (1, single(1.0)), (2, single(2.0)), (3, single(3.0)), (4, single(4.0))];
    assert_eq!(values("quad"), expected);
    assert_eq!(module.global("quad").expect("quad").bytes(), Some(32));
    assert!(module.global("shared_count").expect("managed").is_managed);
    let text = SymbolReference::Global(GlobalId(1));
    let function = module.functions.iter().position(|function| &*function.name == "f").expect("f");
    let address = |symbol, offset, generic, byte| V::Address { symbol, offset, generic, byte };
    let f = SymbolReference::Function(FunctionId(function as u32));
    let expected = [
        (0, address(text, 2, true, None)),
        (1, address(f, 0, false, None)),
        (2, address(text, 0, false, None)),
        (3, V::Integer(0)),
    ];
    assert_eq!(values("addresses"), expected);
    assert_eq!(values("bytes"), [(0, address(text, 0, false, Some(0))), (1, address(text, 0, false, Some(1)))]);
    let f = &module.functions[function];
    assert!(f.is_noreturn && !f.is_entry && f.body.is_some());
    assert_eq!(f.returns[0].bytes(), Some(8));
    let pointer = PointerAttributes { space: Some(StateSpace::Global), alignment: 16 };
    assert_eq!(f.parameters[0].pointer, Some(pointer));
    assert_eq!(f.parameters[1].register, Some(RegisterId(0)));
    let lines: Vec<_> =
        instructions(f).iter().map(|it| it.location.map(|location| f.locations[location.index()].line)).collect();
    assert_eq!(lines, [Some(10), Some(11)]);
    let k = module.function("k").expect("k");
    assert_eq!(k.performance.maximum_threads, Some([256, 2, 1]));
    assert_eq!(k.performance.minimum_ctas_per_sm, Some(4));
    assert_eq!(k.performance.pragmas[..], ["nounroll".into()]);
    assert_eq!((k.variables[0].space, k.variables[0].bytes()), (StateSpace::Shared, Some(1024)));
    assert_eq!(module.aliases.len(), 1);
}

#[test]
fn forms_that_are_rarely_written() {
    let text = format!(
        "{HEADER}#line 1\n@@DWARF .byte 1\n.reg .pred %q;\n.reg .b32 %r<4>, %common;\n.const[2] .align 4 .b32 table[4];\n\
         .global .align 4 .b8 cells<2>[8];\n.entry k(.param .b32 n) \\\n .reqntid WARP_SZ * 2\n{{\n.reg .b64 %rd<3>;\n.reg .f32 %f<4>;\n\
         .reg .b32 %r<2>;\n.param .b32 values<2>;\nst.param.b32 [values1], %common;\nld.const[2].b32 %r1, [table];\n\
         ld.const.b32 %r1, table[3];\nmov.u32 %r1, table[1]+2;\nmov.u64 %rd1, cells1;\nadd.s32 %r1, %r1, WARP_SZ-1;\n\
         tex.2d.v4.f32.s32 {{%f0,%f1,%f2,%f3}}|%q, [%rd1, {{%r1,%r1}}];\n\
         tld4.r.2d.v4.f32.f32 {{%f0,%f1,%f2,%f3}}|_, [%rd1, {{%f1,%f2}}];\n}}\n"
    );
    let module = module(&text);
    let names: Vec<&str> = module.globals.iter().map(|global| &*global.name).collect();
    assert_eq!(names, ["table", "cells0", "cells1"]);
    assert_eq!(module.globals[2].bytes(), Some(8));
    let k = module.function("k").expect("k");
    assert_eq!(k.performance.required_threads, Some([64, 1, 1]));
    let shown: Vec<String> = instructions(k)
        .iter()
        .map(|instruction| {
            let operands = instruction.operands.iter().map(|operand| show(k, operand));
            format!("{} {}", instruction.opcode, operands.collect::<Vec<_>>().join(" "))
        })
        .collect();
    assert_eq!(
        shown,
        [
            "st [Local(LocalVariableId(1))+0] %common",
            "ld %r1 [Global(GlobalId(0))+0]",
            "ld %r1 [Global(GlobalId(0))+12]",
            "mov %r1 Global(GlobalId(0))+6",
            "mov %rd1 Global(GlobalId(2))+0",
            "add %r1 %r1 31",
            "tex {%f0 %f1 %f2 %f3}|%q [%rd1 {%r1 %r1}]",
            "tld4 {%f0 %f1 %f2 %f3}|_ [%rd1 {%f1 %f2}]",
        ]
    );
    // The kernel's own `%r<2>` hides that of the module.
    let OperandKind::Register(own) = instructions(k)[1].operands[0].kind else { panic!("a register") };
    assert_eq!(own, RegisterId(14));
}

#[test]
fn special_registers_and_spans() {
    let text = kernel_text("  mov.u32   %r1, %ntid.z;");
    let module = module(&text);
    let k = module.function("k").expect("k");
    let found = instructions(k);
    assert_eq!(found[0].span.text(&text), "mov.u32   %r1, %ntid.z;");
    assert_eq!(found[0].operands[1].span.text(&text), "%ntid.z");
    let OperandKind::Special(special) = found[0].operands[1].kind else { panic!("a special register") };
    assert_eq!((special.name, special.component), (SpecialRegisterName::ThreadCount, Component::Z));
}

/// (statement, kind, message, help)
#[rustfmt::skip]
const MISTAKES: &[(&str, Kind, &str, &str)] = &[
    ("fmaa.rn.f32 %f1, %f2, %f3, %f4;", Kind::UnknownInstruction, "unknown instruction `fmaa`", "the nearest instruction is `fma`"),
    ("frobnicate %r1;", Kind::UnknownInstruction, "unknown instruction `frobnicate`", "expected an instruction of PTX"),
    ("add.rnn.f32 %f1, %f2, %f3;", Kind::UnknownModifier, "`add` has no modifier `.rnn`", "the nearest is `.rn`"),
    ("and.wide.b32 %r1, %r2, %r3;", Kind::UnknownModifier, "`and` has no modifier `.wide`", "expected its type alone"),
    ("add %r1, %r2, %r3;", Kind::TypeCount, "`add` without its type", "expected 1 to 2 types"),
    ("cvt.rn.f32 %f1, %r1;", Kind::TypeCount, "`cvt` with 1 type", "expected 2 to 3 types"),
    ("popc.f32 %r1, %r2;", Kind::BadType, "`popc` of type `.f32`", "expected `.b32`, `.b64`"),
    ("slct.b32.u32 %r1, %r2, %r3, %r4;", Kind::BadType, "`slct` of type `.u32`", "expected `.s32`, `.f32`"),
    ("add.f99 %f1, %f2, %f3;", Kind::UnknownModifier, "`add` has no modifier `.f99`", "the nearest is `.f16`"),
    ("add.s32 %r1, %r2;", Kind::OperandCount, "`add` with 2 operands", "expected 3 operands"),
    ("add.s32 %r1, %r2, %r3, {%r4, %r5}, 6;", Kind::OperandCount, "`add` with 5 operands", "expected 3 operands"),
    ("bar.sync;", Kind::OperandCount, "`bar` with no operand", "expected 1 to 2 operands"),
    ("add.s32 5, %r2, %r3;", Kind::BadOperand, "operand `5` does not belong here", "expected a destination register, a vector of them, or `_`"),
    ("add.s32 %r1, [%rd1], %r3;", Kind::BadOperand, "operand `[%rd1]` does not belong here", "expected a register, a literal or a symbol"),
    ("ld.global.u32 %r1, %rd1;", Kind::BadOperand, "operand `%rd1` does not belong here", "expected an address in brackets"),
    ("selp.b32 %r1, %r2, %r3, %r4;", Kind::BadOperand, "operand `%r4` does not belong here", "expected a predicate register, `!` before it allowed"),
    ("@%r1 ret;", Kind::BadOperand, "`%r1` is no predicate", "expected a register of type `.pred`"),
    ("mov.u32 %r1, %tid;", Kind::BadOperand, "`%tid` without its component", "expected `.x`, `.y`, `.z` or `.w` after it"),
    ("bra nowhere;", Kind::MissingLabel, "no label `nowhere`", "expected a label of this function in scope"),
    ("here: bra her;", Kind::MissingLabel, "no label `her`", "the nearest label is `here`"),
    ("add.s32 %r1, %r2, %r9;", Kind::UndeclaredRegister, "register `%r9` is not declared", "`%r0` to `%r8` are declared"),
    ("add.s32 %r1, %r2, %x;", Kind::UndeclaredRegister, "register `%x` is not declared", "expected a register that a `.reg` in scope declares"),
    ("mov.u64 %rd1, conter;", Kind::UnknownSymbol, "`conter` is not declared", "the nearest name is `counter`"),
    ("mov.u32 %r1, 0f12;", Kind::BadLiteral, "`0f12` is no number", "expected 8 hexadecimal digits after `0f`"),
    ("mov.u32 %r1, 99999999999999999999;", Kind::BadLiteral, "`99999999999999999999` is no number", "expected an integer of at most 64 bits, or a float"),
    ("mov.u32 %r1, 1/0;", Kind::BadLiteral, "division by zero in a constant", ""),
    ("mov.u32 %r1 %r2;", Kind::Syntax, "unexpected `%r2`", "expected `,` or `;` after an operand"),
    ("mov.u32 %r1, ;", Kind::Syntax, "unexpected `;`", "expected an operand"),
    ("ld.global.u32 %r1, [%rd1;", Kind::Syntax, "unexpected `;`", "expected `]` after an address"),
    (".regg .b32 %x;", Kind::UnknownDirective, "directive `.regg` is not known here", "the nearest directive is `.reg`"),
    (".reg %x;", Kind::TypeCount, "declaration without a type", "expected a type such as `.b32` before the name"),
    (".reg .b32 %r<9>;", Kind::Duplicate, "`%r` is declared twice in one scope", ""),
    (".reg .b32 %z<4000000000>;", Kind::Limit, "more than 4194304 registers in a function", ""),
    (".shared .align 3 .b8 t[4];", Kind::BadLiteral, "alignment of 3 bytes", "expected a power of two"),
    ("twice: twice: ret;", Kind::Duplicate, "label `twice` is defined twice in one scope", ""),
    ("call %r1.x;", Kind::BadOperand, "`%r1` has no part `.x`", ""),
    ("call [%rd1];", Kind::BadOperand, "`[%rd1]` cannot be called", "expected a function, or a register with its address"),
    ("cp.ca.shared.global [%r1], [%rd1], 4;", Kind::UnknownModifier, "`cp` without the word that says what it does", "expected one of `.async.mbarrier`, `.bulk`, `.reduce`, `.async.commit_group`, `.async.wait_all`, `.async.wait_group`, `.async`"),
];

#[test]
fn each_mistake_is_told_with_its_place() {
    for (body, kind, message, help) in MISTAKES {
        // The mistake stands on line 14, and the text behind it is read again.
        let text = kernel_text(&format!("  {body}\n  ret;"));
        let errors = parse("bad.ptx", &text).expect_err(body);
        assert_eq!(errors.errors.len(), 1, "{body}: {errors}");
        let error = &errors.errors[0];
        assert_eq!((error.kind, error.message.as_str()), (*kind, *message), "{body}");
        assert_eq!(error.expected.as_deref().unwrap_or(""), *help, "{body}");
        assert_eq!(error.position.line, 14, "{body}");
        assert_eq!(error.line_text, format!("  {body}"));
        assert!(error.to_string().starts_with("bad.ptx:14:"), "{error}");
    }
}

#[test]
fn all_mistakes_of_a_text_in_order() {
    let body = "fooo.s32 %r1;\nbra missing;\nadd.s32 %r1, %q, %r2;\nld.global.u32 %r1;\n";
    let errors = parse("bad.ptx", &kernel_text(body)).expect_err("errors");
    let lines: Vec<u32> = errors.errors.iter().map(|error| error.position.line).collect();
    assert_eq!(lines, [14, 15, 16, 17]);
    assert!(!errors.truncated);
    let many = "fooo.s32 %r1;\n".repeat(1000);
    let errors = parse("bad.ptx", &kernel_text(&many)).expect_err("errors");
    assert_eq!((errors.errors.len(), errors.truncated), (MAXIMUM_ERRORS, true));
}

#[test]
fn mistakes_outside_functions() {
    for (text, kind, message) in [
        (".version x\n", Kind::Syntax, "unexpected `x`"),
        (".vershun 1.0\n", Kind::UnknownDirective, "directive `.vershun` is not known here"),
        ("hello", Kind::Syntax, "unexpected `hello`"),
        (".global .u32 a; .global .u32 a;", Kind::Duplicate, "`a` is declared twice"),
        (".global .u32 a[2] = {1, 2, 3};", Kind::BadLiteral, "too many initial values"),
        (".target sm70", Kind::BadLiteral, "`sm70` is no target"),
        (".target sm_90ab", Kind::BadLiteral, "`sm_90ab` is no target"),
        (".version 8.3\n.target sm_999", Kind::BadLiteral, "`sm_999` is no target"),
        (".version 99.9\n.target sm_70", Kind::BadLiteral, "there is no PTX version 99.9"),
        (".version 7.9\n.target sm_70", Kind::BadLiteral, "there is no PTX version 7.9"),
        ("", Kind::Syntax, "the directive `.version` is missing at the start of the text"),
        (".func f() { ret; }", Kind::Syntax, "the directive `.version` is missing at the start of the text"),
        (
            ".version 8.3\n.func f() { ret; }",
            Kind::Syntax,
            "the directive `.target` is missing at the start of the text",
        ),
        (".target sm_70\n.version 8.3", Kind::Syntax, "the directive `.version` is missing at the start of the text"),
        (
            ".global .u32 a;\n.version 8.3\n.target sm_70",
            Kind::Syntax,
            "the directive `.version` is missing at the start of the text",
        ),
        (".global .u32 a<2> = 1;", Kind::Syntax, "an initial value of a range of variables"),
        (".global .u32 a<9999>;", Kind::Limit, "more than 4096 variables in a range"),
        (".reg .b32 %g;\n.func f() { add.s32 %g, %g, 1; }", Kind::UndeclaredRegister, "register `%g` is not declared"),
        (".global .u64 a = b;", Kind::UnknownSymbol, "`b` is not declared"),
        (".func f() { ret; } .func f() { ret; }", Kind::Duplicate, "`f` is defined twice"),
        (".entry k() { ret;", Kind::Syntax, "function `k` has no end"),
        (".entry k( { ret; }\n", Kind::Syntax, "unexpected `{`"),
        ("/* no end", Kind::Unterminated, "comment without an end"),
        (".file 1 \"no end\n", Kind::Unterminated, "string without an end"),
        (".section .debug_str { .b8 1", Kind::Syntax, "`{` without its `}`"),
    ] {
        let errors = parse("bad.ptx", text).expect_err(text);
        assert_eq!((errors.errors[0].kind, errors.errors[0].message.as_str()), (kind, message), "{text}: {errors}");
    }
    let errors = parse("bad.ptx", ".version x\n.target sm_70\n").expect_err("an error");
    assert_eq!(errors.errors.len(), 1, "{errors}");
}

#[test]
fn miette_sees_source_and_labels() {
    use miette::Diagnostic;
    let text = kernel_text("fmaa.f32 %f1, %f2, %f3, %f4;");
    let errors = parse("bad.ptx", &text).expect_err("an error");
    let related: Vec<&dyn Diagnostic> = errors.related().expect("errors").collect();
    let label = related[0].labels().and_then(|mut labels| labels.next()).expect("a label");
    assert_eq!(&text[label.offset()..label.offset() + label.len()], "fmaa");
    let contents = related[0].source_code().expect("source").read_span(label.inner(), 0, 0).expect("the span");
    assert_eq!((contents.name(), contents.line()), (Some("bad.ptx"), 13));
}

#[test]
fn the_workloads_parse() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../workloads");
    let mut seen = 0;
    for folder in std::fs::read_dir(root).expect("workloads").flatten() {
        let Ok(files) = std::fs::read_dir(folder.path()) else { continue };
        for file in files.flatten().filter(|file| file.path().extension().is_some_and(|extension| extension == "ptx")) {
            let text = std::fs::read_to_string(file.path()).expect("text");
            let module = module(&text);
            assert!(module.functions.iter().any(|function| function.is_entry && function.body.is_some()));
            seen += 1;
        }
    }
    assert!(seen >= 3, "found {seen} files");
}
