//! Files made here, whole and broken.

mod linked;
mod sample;
mod writer;

use super::*;
use proptest::prelude::*;
use sample::sample;
use writer::{TestFile, TestSection, record, small_record, words};

/// A file that can be read.
fn with(bytes: &[u8], check: impl Fn(&Cubin<'_>)) {
    check(&Cubin::read(bytes).expect("a whole cubin"));
}

#[test]
fn both_generations_of_the_header_are_read() {
    with(&sample(false).bytes(), |cubin| {
        assert_eq!((cubin.architecture, cubin.virtual_architecture, cubin.toolkit), (70, Some(70), Some(129)));
        assert_eq!((cubin.abi_version, cubin.os_abi, cubin.is_relocatable), (7, 0x33, false));
    });
    with(&sample(true).bytes(), |cubin| {
        assert_eq!((cubin.architecture, cubin.virtual_architecture, cubin.toolkit), (75, Some(72), Some(135)));
        assert_eq!((cubin.abi_version, cubin.os_abi, cubin.is_relocatable), (8, 0x41, false));
    });
    let mut short = sample(true);
    let note = &mut short.section(".note.nv.cuinfo").data;
    // The size of what the note has; it is filled up to a multiple of four.
    note[4] = 6;
    with(&short.bytes(), |cubin| assert_eq!((cubin.virtual_architecture, cubin.toolkit), (Some(72), Some(135))));
    let mut other = sample(true);
    other.flags = 0x0600_5a04;
    other.section(".note.nv.cuinfo").name = ".note.nv.other";
    with(&other.bytes(), |cubin| assert_eq!((cubin.architecture, cubin.virtual_architecture), (90, None)));
}

#[test]
fn a_kernel_has_its_attributes() {
    for shifted in [false, true] {
        with(&sample(shifted).bytes(), |cubin| {
            assert_eq!(cubin.kernels().map(|kernel| kernel.name).collect::<Vec<_>>(), ["first", "second"]);
            let kernel = cubin.function("first").expect("the kernel");
            assert_eq!((kernel.section, kernel.symbol), (1, 1));
            assert_eq!((kernel.is_entry, kernel.binding), (true, Binding::Global));
            assert_eq!((kernel.code.len(), kernel.code[0x101]), (0x180, 1));
            assert_eq!((kernel.registers, kernel.section_registers, kernel.register_limit), (24, 24, Some(255)));
            assert_eq!(kernel.barriers, 3);
            assert_eq!(kernel.shared_memory, SharedMemory { bytes: 48, alignment: 16 });
            assert_eq!(kernel.stack, StackSizes { frame: Some(40), minimum: Some(48), maximum: Some(64) });
            assert_eq!(kernel.call_return_stack, Some(0));
            let parameters = [(0, 8), (8, 4), (16, 8)].map(|(offset, bytes)| Parameter { offset, bytes });
            let area = ParameterArea { offset: 0x160, bytes: 0x18, parameters: parameters.to_vec() };
            assert_eq!(kernel.parameters, area);
            assert_eq!(kernel.block_limit, Some(BlockLimit::Maximum([128, 2, 1])));
            assert_eq!((&kernel.exits[..], &kernel.system_calls[..]), (&[0x80, 0xf0][..], &[0x70][..]));
            let branches = [(0x50, vec![0x60, 0x80]), (0x90, vec![0xa0])]
                .map(|(offset, targets)| IndirectBranch { offset, targets });
            assert_eq!(kernel.indirect_branches, branches);
            assert_eq!(kernel.externs, [6, 11]);
            assert_eq!(kernel.cooperative_group_instructions, [0x20, 0x30]);
            assert_eq!(kernel.cooperative_group_mask_registers, [0xffff_ffff, 0x0500_0007]);
            assert_eq!(kernel.warp_wide_instructions, [0x10, 0x100]);
            assert!(kernel.uses_block_index_z && kernel.uses_matrix_instructions);
            assert_eq!(kernel.api_version, Some(129));
            let other = Attribute { number: 0x36, value: AttributeValue::Payload(&[1, 0, 0, 0]) };
            assert_eq!(kernel.other_attributes, [other]);
            assert_eq!(kernel.constant_bank(0).map(|bank| bank.image.len()), Some(0x178));
            assert_eq!(kernel.constant_bank(2).map(|bank| &*bank.image), Some(&words(&[0x40, 0, 0x60, 0])[..]));
            assert_eq!(kernel.constant_bank(3), None);
        });
    }
}

/// A file as nvcc 13.5 writes it: the parameters are behind the other contents of bank 0, and their sizes need more bits.
#[test]
fn a_kernel_can_have_more_than_4_kib_of_parameters() {
    let mut large = sample(false);
    large.section(".nv.info.first").data = [
        record(0x0a, &[6, 0x1a80 | 6012 << 16]),
        small_record(3, 0x19, 6012),
        record(0x45, &[0, 2 | 6008 << 16, 4]),
        record(0x45, &[0, 1 | 6000 << 16, 8]),
        record(0x45, &[0, 0, 6000]),
    ]
    .concat();
    large.section(".nv.constant0.first").data.resize(0x1a80 + 6012, 0);
    with(&large.bytes(), |cubin| {
        let parameters = [(0, 6000), (6000, 8), (6008, 4)].map(|(offset, bytes)| Parameter { offset, bytes });
        let area = ParameterArea { offset: 0x1a80, bytes: 6012, parameters: parameters.to_vec() };
        assert_eq!(cubin.function("first").expect("the kernel").parameters, area);
    });
}

#[test]
fn what_a_kernel_does_not_have_is_absent() {
    with(&sample(false).bytes(), |cubin| {
        let kernel = cubin.function("second").expect("the kernel");
        assert_eq!((kernel.is_entry, kernel.binding), (true, Binding::Local));
        assert_eq!((kernel.registers, kernel.barriers, kernel.register_limit), (8, 0, None));
        assert_eq!(kernel.block_limit, Some(BlockLimit::Required([32, 4, 1])));
        // A minimum of all ones is not known.
        assert_eq!(kernel.stack, StackSizes::default());
        assert_eq!(kernel.shared_memory, SharedMemory { bytes: 0, alignment: 1 });
        assert_eq!(kernel.parameters, ParameterArea::default());
        assert!(!kernel.uses_block_index_z && !kernel.uses_matrix_instructions && kernel.inner.is_empty());
        assert!(cubin.function("third").is_none());
    });
    // Without the attribute the section's information has the registers; without the flag it is no kernel.
    let mut file = sample(false);
    file.section(".nv.info").data.clear();
    file.symbol("second").other = 0;
    with(&file.bytes(), |cubin| {
        assert_eq!(cubin.functions[0].registers, 24);
        assert_eq!(cubin.kernels().count(), 1);
    });
    // The attribute has precedence.
    file.section(".nv.info").data = record(0x2f, &[1, 25]);
    with(&file.bytes(), |cubin| {
        assert_eq!((cubin.functions[0].registers, cubin.functions[0].section_registers), (25, 24));
    });
}

/// As in the files that cuBLASLt writes.
#[test]
fn a_section_may_leave_the_number_of_its_symbol_out() {
    let mut file = sample(false);
    file.section(".text.first").info = 24 << 24;
    with(&file.bytes(), |cubin| {
        let kernel = cubin.function("first").expect("the kernel");
        assert_eq!((kernel.symbol, kernel.section_registers, kernel.inner.len()), (1, 24, 2));
    });
    file.symbol("first").value = 0x10;
    let error = Cubin::read(&file.bytes()).expect_err("nothing begins the section").to_string();
    assert!(error.contains("the symbol \"\", Unspecified, expected a function that begins this section"), "{error}");
}

#[test]
fn functions_inside_others_are_in_order() {
    with(&sample(false).bytes(), |cubin| {
        let [early, late] = &cubin.functions[0].inner[..] else { panic!("two functions") };
        assert_eq!((early.name, early.symbol, early.binding), ("$first$early", 4, Binding::Weak));
        assert_eq!((early.offset, early.bytes, early.stack.frame), (0x100, 0x40, Some(8)));
        assert_eq!((late.name, late.symbol, late.binding), ("$first$late", 3, Binding::Local));
        assert_eq!((late.offset, late.bytes, late.stack.frame), (0x140, 0x40, None));
    });
}

#[test]
fn a_module_has_its_memory() {
    with(&sample(true).bytes(), |cubin| {
        let banks: Vec<_> = cubin.constant_banks.iter().map(|bank| (bank.bank, bank.section, bank.alignment)).collect();
        assert_eq!(banks, [(3, 8, 8), (4, 9, 8)]);
        assert_eq!(cubin.constant_bank(3).map(|bank| &*bank.image), Some(&words(&[5, 6, 7, 0])[..]));
        let initialised: Vec<u8> = (1..=40).collect();
        let sections = [
            GlobalSection { section: 10, bytes: 40, alignment: 8, image: Some(&initialised) },
            GlobalSection { section: 11, bytes: 32, alignment: 16, image: None },
        ];
        assert_eq!(cubin.global_sections, sections);
        assert_eq!([cubin.sections[10], cubin.sections[11]], [".nv.global.init", ".nv.global"]);
        let (global, constant) = (VariableMemory::Global, VariableMemory::Constant(3));
        let variables = [
            ("initialised", 7, global, 10, 8, 32, false),
            ("managed", 8, global, 11, 16, 4, true),
            ("constant", 9, constant, 8, 4, 12, false),
            ("$str", 10, global, 10, 0, 8, false),
        ];
        let variables = variables.map(|(name, symbol, memory, section, offset, bytes, is_managed)| Variable {
            name,
            symbol,
            memory,
            section,
            offset,
            bytes,
            is_managed,
        });
        assert_eq!(cubin.variables, variables);
    });
}

#[test]
fn symbols_relocations_and_calls_are_listed() {
    with(&sample(true).bytes(), |cubin| {
        let relocations = [
            (9, 8, RelocationKind::Address64, 10, None),
            (9, 0, RelocationKind::Address64, 6, None),
            (10, 0x20, RelocationKind::Generic64, 7, Some(8)),
        ];
        let relocations = relocations.map(|(section, offset, kind, symbol, addend)| Relocation {
            section,
            offset,
            kind,
            symbol,
            addend,
        });
        assert_eq!(cubin.relocations, relocations);
        let undefined: Vec<_> = cubin.undefined_symbols().map(|symbol| (symbol.name, symbol.kind)).collect();
        assert_eq!(undefined, [("vprintf", SymbolKind::Function), ("texture", SymbolKind::Texture)]);
        assert_eq!((cubin.symbols.len(), cubin.symbols[5].name), (12, ".text.first"));
        let calls = [(1, 6, false), (1, 4, true)];
        assert_eq!(cubin.calls, calls.map(|(caller, callee, is_indirect)| Call { caller, callee, is_indirect }));
    });
}

#[test]
fn relocations_have_kinds() {
    let kinds = [
        (0, RelocationKind::None),
        (6, RelocationKind::TextureHeaderIndex),
        (57, RelocationKind::InstructionHigh32),
        (64, RelocationKind::InstructionConstant19),
        (74, RelocationKind::Instruction24),
        (115, RelocationKind::Other(115)),
    ];
    for (number, kind) in kinds {
        let mut file = sample(false);
        file.section(".rel.nv.constant4").data[8] = number;
        with(&file.bytes(), |cubin| assert_eq!(cubin.relocations[0].kind, kind));
    }
}

#[test]
fn relocatable_files_have_section_types_of_their_own() {
    let mut file = sample(true);
    file.kind = 1;
    file.section(".nv.constant0.first").kind = 0x7000_0064;
    file.section(".nv.constant3").kind = 0x7000_0067;
    file.section(".nv.global.init").kind = 0x7000_0008;
    file.section(".nv.global").kind = 0x7000_0007;
    file.section(".nv.shared.first").kind = 0x7000_000a;
    file.symbol("initialised").info = 0x1d;
    with(&file.bytes(), |cubin| {
        assert!(cubin.is_relocatable);
        assert_eq!(cubin.variables[0].name, "initialised");
        assert_eq!(cubin.global_sections.iter().filter(|section| section.image.is_none()).count(), 1);
        assert_eq!(cubin.functions[0].shared_memory.bytes, 48);
        assert_eq!(cubin.functions[0].constant_bank(0).map(|bank| bank.image.len()), Some(0x178));
    });
}

#[test]
fn sizes_without_bytes_cost_nothing() {
    let mut file = sample(false);
    file.section(".nv.global").bytes = Some(u64::MAX);
    file.section(".nv.shared.first").bytes = Some(u64::MAX);
    with(&file.bytes(), |cubin| {
        assert_eq!(cubin.global_sections[1].bytes, u64::MAX);
        assert_eq!(cubin.functions[0].shared_memory.bytes, u64::MAX);
    });
}

#[test]
fn a_file_may_lie_anywhere() {
    let bytes = sample(false).bytes();
    let shifted = [&[0][..], &bytes].concat();
    assert_eq!(Cubin::read(&shifted[1..]), Cubin::read(&bytes));
}

/// Records that break `.nv.info.second`, and the messages about them.
#[test]
fn what_breaks_the_attributes_is_named() {
    let parameter = |ordinal: u32, offset: u32| record(0x17, &[0, ordinal | offset << 16, 4 << 18]);
    let cases = [
        (vec![4, 0x1c], "section .nv.info.second: 2 bytes, expected a record of at least four"),
        (vec![5, 0x1c, 0, 0], "section .nv.info.second: attribute 0x1c in form 5, expected a form from 1 to 4"),
        (vec![4, 0x1c, 4, 0, 0], "attribute 0x1c of 4 bytes, expected no more than the 1 that are there"),
        (vec![4, 0x1c, 3, 0, 0, 0, 0], "attribute 0x1c of 3 bytes, expected words of four"),
        (record(0x1c, &[0x80]), "attribute 0x1c with the instruction 0x80, expected one of the code's 0x80 bytes"),
        (record(0x10, &[1, 2]), "attribute 0x10 of 2 words, expected 3"),
        (small_record(3, 0x10, 1), "attribute 0x10 with the two bytes 0x1, expected a payload"),
        (record(0x1b, &[1]), "attribute 0x1b with a payload of 4 bytes, expected one or two bytes"),
        (record(0x34, &[0, 0, 2, 0]), "attribute 0x34 that ends with 4 words, expected a branch and all its targets"),
        (record(0x0f, &[12]), "section .nv.info.second: the symbol 12, expected one of the 12 that there are"),
        (small_record(3, 0x19, 4), "attribute 0x19 of 4 bytes, expected 0 as attribute 0x0a has"),
        ([parameter(0, 0), parameter(0, 4)].concat(), "a parameter of number 0, expected one of number 1"),
        (parameter(0, 4), "section .text.second: parameter 0 up to byte 8, expected it in the 0 of all"),
    ];
    for (attributes, expected) in cases {
        let mut file = sample(false);
        file.section(".nv.info.second").data = attributes;
        let error = Cubin::read(&file.bytes()).expect_err(expected).to_string();
        assert!(error.starts_with("cubin, section .") && error.contains(expected), "{error}");
    }
}

#[test]
fn what_breaks_a_file_is_named() {
    type Change = fn(&mut TestFile);
    let second = |name| TestSection { name, kind: 1, alignment: 1, ..TestSection::default() };
    let cases: [(Change, &str); 20] = [
        (
            |it| it.section(".text.first").alignment = 3,
            "section .text.first: an alignment of 3 bytes, expected a power",
        ),
        (
            |it| it.section(".text.first").data.truncate(8),
            "section .text.first: 8 bytes in a section of type 0x1, expected",
        ),
        (|it| it.section(".text.first").info = 200, "section .text.first: the symbol 200, expected one of the 12"),
        (
            |it| it.section(".text.first").info = 2,
            "the symbol \"second\", Function, expected a function that begins this",
        ),
        (|it| it.section(".text.first").bytes = Some(1 << 40), "section 1: 1099511627776 bytes from 0x40 on, expected"),
        (|it| it.section(".text.second").bytes = Some(0xb00), "bytes together, expected no more than the file's"),
        (|it| it.section(".text.second").name = ".text.first", "section .text.first: a second function of this name"),
        (|it| it.section(".nv.info.second").name = ".nv.info.third", "no section .text.third, expected the function's"),
        (
            |it| it.section(".nv.info").kind = 1,
            "section .nv.info: a section of type 0x1, expected attributes, 0x70000000",
        ),
        (
            |it| it.section(".nv.constant3").name = ".nv.constant32",
            "the constant bank \"32\", expected a number below 32",
        ),
        (
            |it| it.section(".nv.constant3").name = ".nv.constant4",
            "section .nv.constant4: a second image of this constant",
        ),
        (
            |it| it.section(".nv.constant0.first").data.truncate(0x170),
            "24 bytes of parameters from 0x160 on, expected them",
        ),
        (
            |it| it.section(".rel.nv.constant4").info = 99,
            "section .rel.nv.constant4: relocations of section 99, expected",
        ),
        (
            |it| it.section(".rel.nv.constant4").data[0] = 16,
            "section .nv.constant4: a relocation of byte 0x10, expected one",
        ),
        (
            |it| it.section(".rel.nv.constant4").data[12] = 12,
            "section .rel.nv.constant4: the symbol 12, expected one of",
        ),
        (|it| it.section(".nv.callgraph").data.truncate(12), "section .nv.callgraph: 12 bytes, expected records of 8"),
        (|it| it.section(".nv.callgraph").data[8] = 12, "section .nv.callgraph, offset 0x8: the symbol 12, expected"),
        (|it| it.symbol("vprintf").section = 99, "section .symtab (symbol 6): the section 99, expected one of the 22"),
        (
            |it| it.symbol("managed").value = 30,
            "section .nv.global, offset 0x1e: the variable managed of 4 bytes, expected",
        ),
        (
            |it| it.symbol("$first$late").bytes = 0x41,
            "section .text.first, offset 0x140: the function $first$late of 65",
        ),
    ];
    for (change, expected) in cases {
        let mut file = sample(false);
        change(&mut file);
        let error = Cubin::read(&file.bytes()).expect_err(expected).to_string();
        assert!(error.starts_with("cubin, ") && error.contains(expected), "{error}");
    }
    let mut file = sample(false);
    file.sections.push(TestSection { kind: 2, ..second(".second") });
    let error = Cubin::read(&file.bytes()).expect_err("two tables").to_string();
    assert_eq!(error, "cubin, section .second: one of several tables of symbols, expected one table");
    file.sections.pop();
    file.sections.push(second(".nv.shared.reserved.0"));
    with(&file.bytes(), |cubin| assert_eq!(cubin.functions.len(), 2));
}

#[test]
fn what_is_no_cubin_is_refused() {
    let whole = sample(false).bytes();
    let error = |change: fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        Cubin::read(&bytes).expect_err("a broken file").to_string()
    };
    let unknown = "cubin, offset 0x0: 4 bytes that begin with [7f, 45, 4c, 46], expected an ELF file of CUDA code";
    assert_eq!(error(|bytes| bytes.truncate(4)), unknown);
    assert!(error(|bytes| bytes[18] = 62).ends_with("expected an ELF file of CUDA code"));
    assert!(error(|bytes| bytes[4] = 1).ends_with("expected a 64-bit ELF file"));
    assert!(error(|bytes| bytes[5] = 2).contains("expected"));
    assert!(error(|bytes| bytes[47] = 1).ends_with("expected a 64-bit ELF file"));
    assert!(error(|bytes| bytes.truncate(bytes.len() - 1)).ends_with("expected a 64-bit ELF file"));
}

#[test]
fn no_truncation_and_no_flipped_bit_is_more_than_an_error() {
    for shifted in [false, true] {
        let whole = sample(shifted).bytes();
        for length in 0..whole.len() {
            assert!(Cubin::read(&whole[..length]).is_err(), "{length} of {} bytes", whole.len());
        }
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            // Some are other cubins, most are errors; all end.
            if let Err(error) = Cubin::read(&bytes) {
                assert!(error.to_string().contains("expected"), "{error}");
            }
        }
    }
}

proptest! {
    #[test]
    fn bytes_after_a_header_never_panic(shifted: bool, rest in proptest::collection::vec(any::<u8>(), 0..2048)) {
        let mut bytes = sample(shifted).bytes()[..64].to_vec();
        bytes[40..48].copy_from_slice(&64u64.to_le_bytes());
        bytes.extend(rest);
        let _ = Cubin::read(&bytes);
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        prop_assert!(Cubin::read(&bytes).is_err());
    }

    /// Numbers of the size of the file, and the ends of the range, in place of others.
    #[test]
    fn changed_numbers_never_panic(
        shifted: bool,
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), prop_oneof![
            0..8192u64, Just(u64::MAX), Just(u64::MAX / 2), any::<u64>()
        ], 1..=8usize), 1..6),
    ) {
        let mut bytes = sample(shifted).bytes();
        for (at, value, width) in changes {
            let at = at.index(bytes.len() - 8);
            bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        }
        let _ = Cubin::read(&bytes);
    }
}
