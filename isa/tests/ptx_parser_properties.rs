//! Whatever the text, the parser ends, does not panic, and gives errors that lie within the text.

use balar_isa::ptx::parse;
use proptest::prelude::*;

const VALID: &str = r#"
.version 8.0
.target sm_70
.address_size 64
.file 1 "a.cu"
.extern .shared .align 16 .b8 pool[];
.const .align 8 .f64 table[2][2] = {{1.0, 0d4000000000000000}, {3}};
.global .u64 addresses[2] = {generic(table)+2, 0xff};
.func (.param .b32 out) callee(.param .b32 in);
.visible .entry kernel(.param .u64 .ptr .global .align 4 a, .param .align 8 .b8 s[16])
.maxntid 256, 1, 1
{
    .reg .pred %p<5>;
    .reg .b32 %r<20>;
    .reg .b64 %rd<9>;
    .reg .f32 %f<9>;
    .shared .align 4 .b8 tile[1024];
    .loc 1 10 3
    ld.param.u64 %rd1, [a];
    mov.u32 %r1, %ctaid.x; // index
    mad.lo.s32 %r2, %r1, -4, 0x10;
    setp.ge.and.s32 %p1|%p2, %r2, (1 << 4) + 2, !%p3;
    @!%p1 bra $L__BB0_2;
    ld.global.nc.v4.f32 {%f1, %f2, _, %f4}, [%rd1+-16];
$L__BB0_1:
    fma.rn.f32 %f1, %f2, 0f3F800000, 1.5e-3;
    {
        .reg .pred P;
        .param .b32 param0;
        st.param.b32 [param0+0], %r1;
        call.uni (param0), callee, (param0);
        @P bra DONE;
        DONE:
    }
    shfl.sync.bfly.b32 %r3|%p1, %r2, 1, 31, -1;
    /* table */ T: .branchtargets $L__BB0_1, $L__BB0_2;
    brx.idx %r3, T;
$L__BB0_2:
    atom.shared.add.u32 %r4, [tile+4], %r3;
    bar.sync 0;
    ret;
}
"#;

/// Pieces that a mutation puts in: what braces, names and numbers are made of.
const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    ":",
    ".",
    "@",
    "!",
    "|",
    "-",
    "+",
    "<",
    ">",
    "=",
    "?",
    "\"",
    "/*",
    "*/",
    "//",
    "_",
    "%",
    "%r1",
    "%tid",
    "%v.x",
    ".b32",
    ".reg",
    ".param",
    ".entry",
    ".func",
    ".global",
    ".branchtargets",
    ".section",
    ".loc",
    "0x",
    "0f",
    "0d3FF0000000000000",
    "99999999999999999999",
    "1/0",
    "-1",
    "add",
    "call",
    "L:",
    "\u{e9}",
    "\0",
    "\n",
    " ",
];

#[derive(Clone, Debug)]
enum Mutation {
    Insert(usize, usize),
    Delete(usize, usize),
    Repeat(usize, usize),
    Truncate(usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let place = 0..VALID.len();
    prop_oneof![
        6 => (place.clone(), 0..PIECES.len()).prop_map(|(at, piece)| Mutation::Insert(at, piece)),
        3 => (place.clone(), 1..40usize).prop_map(|(at, length)| Mutation::Delete(at, length)),
        2 => (place.clone(), 1..300usize).prop_map(|(at, length)| Mutation::Repeat(at, length)),
        1 => place.prop_map(Mutation::Truncate),
    ]
}

fn apply(text: &mut Vec<char>, mutation: &Mutation) {
    let clip = |at: usize| at.min(text.len());
    match *mutation {
        Mutation::Insert(at, piece) => {
            let at = clip(at);
            text.splice(at..at, PIECES[piece].chars());
        }
        Mutation::Delete(at, length) => {
            let range = clip(at)..clip(at + length);
            text.drain(range);
        }
        Mutation::Repeat(at, length) => {
            let copy = text[clip(at)..clip(at + length)].to_vec();
            let at = clip(at);
            text.splice(at..at, copy);
        }
        Mutation::Truncate(at) => text.truncate(at),
    }
}

/// Parses and looks at every error.
fn survives(text: &str) {
    let Err(errors) = parse("mutated.ptx", text) else { return };
    assert!(!errors.errors.is_empty() && errors.errors.len() <= 50);
    assert!(!errors.to_string().is_empty());
    for error in &errors.errors {
        assert!(error.span.start <= error.span.end && error.span.end as usize <= text.len(), "{error:?}");
        assert!(text.is_char_boundary(error.span.start as usize), "{error:?}");
        assert!(error.position.line as usize <= text.matches('\n').count() + 1, "{error:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_ptx_never_panics(mutations in prop::collection::vec(mutation(), 1..8)) {
        let mut text: Vec<char> = VALID.chars().collect();
        for mutation in &mutations {
            apply(&mut text, mutation);
        }
        survives(&text.into_iter().collect::<String>());
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,200}") {
        survives(&text);
    }

    #[test]
    fn arbitrary_pieces_never_panic(pieces in prop::collection::vec(0..PIECES.len(), 0..200)) {
        let text: Vec<&str> = pieces.iter().map(|piece| PIECES[*piece]).collect();
        survives(&text.join(" "));
        survives(&format!(".entry k() {{ {}", text.concat()));
    }
}

#[test]
fn the_text_that_is_mutated_is_valid() {
    if let Err(errors) = parse("valid.ptx", VALID) {
        panic!("{errors}");
    }
}

#[test]
fn deep_nesting_ends() {
    for piece in ["{", "(", "[", "-", "!", "[{", "{ add.s32 ", "mov.u32 {", "/*", "@", "@!"] {
        survives(&format!(".entry k() {{ {}", piece.repeat(20_000)));
        survives(&format!(".global .u32 a[4] = {}", piece.repeat(20_000)));
        survives(&piece.repeat(20_000));
    }
}
