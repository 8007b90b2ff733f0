use super::*;
use crate::module::PtxModule;

/// Registers of the only kernel of a text with this header and body; `%rd1` is a parameter, `%r1` the thread's index.
fn estimate(directives: &str, body: &str) -> u32 {
    let text = format!(
        ".version 8.3\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p)\n{directives}\n{{\n\
         .reg .pred %p<4>; .reg .b32 %r<4>; .reg .b64 %rd<9>; .reg .f32 %f<300>; .reg .f64 %d<4>;\n\
         ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\n{body}\nret;\n}}\n"
    );
    let module = PtxModule::parse("test.ptx", &text).expect("PTX that reads");
    module.program("k", &[]).expect("a kernel that decodes").resources().registers_per_thread
}

/// So many loads that are all needed after a barrier.
fn live(count: usize) -> String {
    let mut text = String::from("mul.wide.s32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n");
    (0..count).for_each(|index| text += &format!("ld.global.f32 %f{index}, [%rd3+{}];\n", 4 * index));
    text += "bar.sync 0;\nadd.f32 %f299, %f0, %f1;\n";
    (2..count).for_each(|index| text += &format!("add.f32 %f299, %f299, %f{index};\n"));
    text + "st.global.f32 [%rd3], %f299;\n"
}

#[test]
fn values_that_are_live_together_need_registers() {
    // What ptxas 12.9 for sm_70 takes: the loaded values, the address, which is a pair, and three. The estimate counts in pairs.
    for (count, assembler) in [(4, 9u32), (8, 13), (16, 21)] {
        assert_eq!(estimate("", &live(count)), assembler.next_multiple_of(2), "{count} values");
    }
}

#[test]
fn what_instructions_hold_needs_no_register() {
    let base = "mul.wide.s32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n";
    let cases = [
        ("nothing is stored", "add.s32 %r2, %r1, 1;", FEWEST_REGISTERS),
        // An address of two words, a value and four.
        ("offsets", "add.s64 %rd4, %rd3, 64;\nld.global.f32 %f1, [%rd4];\nst.global.f32 [%rd3], %f1;", 8),
        ("a literal", "ld.global.f32 %f1, [%rd3];\nmul.f32 %f1, %f1, 0f40000000;\nst.global.f32 [%rd3], %f1;", 8),
        (
            "a negated value",
            "ld.global.f32 %f1, [%rd3];\nneg.f32 %f2, %f1;\nadd.f32 %f3, %f1, %f2;\nst.global.f32 [%rd3], %f3;",
            8,
        ),
    ];
    for (what, body, expected) in cases {
        assert_eq!(estimate("", &format!("{base}{body}")), expected, "{what}");
    }
}

#[test]
fn addresses_of_shared_memory_take_one_word() {
    // Eight addresses that no offset joins, all needed after the loads.
    let body = |space: &str| {
        let mut text = String::new();
        for index in 1..8 {
            text += &format!("cvt.u64.u32 %rd2, %r1;\nshl.b64 %rd{index}, %rd2, {index};\n");
        }
        (1..8).for_each(|index| text += &format!("ld.{space}.f32 %f{index}, [%rd{index}];\n"));
        text += "bar.sync 0;\n";
        (1..8).for_each(|index| text += &format!("st.{space}.f32 [%rd{index}], %f{index};\n"));
        text
    };
    let (shared, global) = (estimate("", &body("shared")), estimate("", &body("global")));
    // Seven values with seven addresses of a word or two, four more, in pairs. ptxas 12.9 for sm_70 takes 18 and 32.
    assert_eq!((shared, global), (18, 26));
}

#[test]
fn directives_bound_the_estimate() {
    // The registers that ptxas 12.9 for sm_70 gives to kernels that want more than 255.
    let cases = [
        ("", 255),
        (".maxntid 384, 1, 1\n.minnctapersm 2", 80),
        (".reqntid 384, 1, 1\n.minnctapersm 2", 80),
        (".maxntid 128, 1, 1\n.minnctapersm 3", 168),
        (".maxntid 128, 1, 1\n.minnctapersm 5", 96),
        (".maxntid 128, 1, 1\n.minnctapersm 7", 72),
        // Warps come in fours.
        (".maxntid 160, 1, 1\n.minnctapersm 3", 128),
        (".maxntid 96, 1, 1\n.minnctapersm 5", 128),
        (".maxntid 416, 1, 1\n.minnctapersm 2", 72),
        (".maxntid 64, 1, 1\n.minnctapersm 32", 32),
        (".maxntid 640, 1, 1", 96),
        (".maxntid 768, 1, 1", 80),
        (".maxntid 1024, 1, 1", 64),
        (".maxntid 1000, 1, 1", 64),
        // Not so many threads fit on an SM, or nothing says how many there are.
        (".maxntid 1024, 1, 1\n.minnctapersm 4", 64),
        (".minnctapersm 4", 255),
        (".maxnreg 8", 24),
        (".maxnreg 47", 47),
        (".maxnreg 300", 255),
        (".maxntid 1024, 1, 1\n.maxnreg 100", 100),
        (".maxntid 384, 1, 1\n.minnctapersm 2\n.maxnreg 100", 80),
        (".maxntid 384, 1, 1\n.minnctapersm 2\n.maxnreg 50", 50),
    ];
    for (directives, expected) in cases {
        assert_eq!(estimate(directives, &live(280)), expected, "{directives}");
    }
}
