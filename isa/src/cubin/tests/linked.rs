//! Relocatable files made here, linked.

use super::*;
use crate::cubin::LinkError;
use writer::TestSymbol;

const WEAK_FUNCTION: u8 = 0x22;
const GLOBAL_VARIABLE: u8 = 0x1d;
const WEAK_VARIABLE: u8 = 0x2d;
const LOCAL_SECTION: u8 = 0x03;

fn symbol(name: &'static str, info: u8, section: u16, value: u64, bytes: u64) -> TestSymbol {
    TestSymbol { name, info, other: 0, section, value, bytes }
}

/// A file with a function of its own, a function that other files may have as well, three constants behind a byte, and undefined names.
fn piece(function: &'static str, constant: &'static str, undefined: &'static str) -> TestFile {
    let section =
        |name, kind, info, alignment, data| TestSection { name, kind, flags: 2, info, alignment, data, bytes: None };
    let rel = |offset: u64, kind: u64, symbol: u64| [offset, kind | symbol << 32].map(u64::to_le_bytes).concat();
    TestFile {
        kind: 1,
        sections: vec![
            section(".text.own", 1, 24 << 24 | 1, 128, vec![1; 0x80]),
            section(".text.common", 1, 16 << 24 | 2, 128, vec![function.len() as u8; 0x80]),
            section(".nv.constant3", 0x7000_0067, 0, 4, words(&[7, 8, 9])),
            section(".rel.text.own", 9, 1, 8, [rel(0x10, 58, 2), rel(0x20, 59, 3), rel(0x30, 58, 4)].concat()),
            section(".rel.text.common", 9, 2, 8, rel(0x40, 58, 4)),
            section(".rel.nv.constant3", 9, 3, 8, rel(4, 1, 3)),
            section(".nv.callgraph", 0x7000_0001, 0, 4, words(&[0, u32::MAX, 1, 2, 1, 4, 2, 4])),
        ],
        symbols: vec![
            symbol(function, 0x12, 1, 0, 0x80),
            symbol("common", WEAK_FUNCTION, 2, 0, 0x80),
            symbol(constant, GLOBAL_VARIABLE, 3, 4, 4),
            symbol(undefined, 0x12, 0, 0, 0),
            symbol("", LOCAL_SECTION, 3, 0, 0),
        ],
        ..sample(false)
    }
}

/// The name of the code is that of the function.
fn named(mut file: TestFile, function: &'static str) -> Vec<u8> {
    let text = match function {
        "one" => ".text.one",
        _ => ".text.two",
    };
    file.section(".text.own").name = text;
    file.bytes()
}

fn linked<'a>(files: &[&'a [u8]]) -> Result<Cubin<'a>, LinkError> {
    Cubin::linked(files.iter().map(|file| Cubin::read(file).expect("a whole cubin")).collect())
}

#[test]
fn names_stand_for_the_definitions_of_other_files() {
    let one = named(piece("one", "a", "two"), "one");
    let two = named(piece("two", "b", "vprintf"), "two");
    let cubin = linked(&[&one, &two]).expect("two files that fit");
    // Ten sections and the first one of each file that has no name; five symbols and the first.
    assert!(cubin.is_relocatable);
    assert_eq!((cubin.sections.len(), cubin.symbols.len()), (22, 12));
    let functions: Vec<_> = cubin.functions.iter().map(|it| (it.name, it.section, it.symbol, it.code[0])).collect();
    assert_eq!(functions, [("one", 1, 1, 1), ("common", 2, 2, 3), ("two", 12, 7, 1)], "the first of weak ones");
    let undefined: Vec<_> = cubin.undefined_symbols().map(|symbol| symbol.name).collect();
    assert_eq!(undefined, ["vprintf"]);

    let bank = cubin.constant_bank(3).expect("a bank");
    assert_eq!((bank.section, &*bank.image), (3, &words(&[7, 8, 9, 7, 8, 9])[..]));
    assert_eq!(cubin.constant_banks.len(), 1);
    let variables: Vec<_> = cubin.variables.iter().map(|it| (it.name, it.symbol, it.section, it.offset)).collect();
    assert_eq!(variables, [("a", 3, 3, 4), ("b", 9, 3, 16)]);
    assert_eq!((cubin.symbols[11].section, cubin.symbols[11].value), (Some(3), 12), "the section of the second file");

    let of = |section: usize| -> Vec<(u64, usize)> {
        let own = cubin.relocations.iter().filter(|relocation| relocation.section == section);
        own.map(|relocation| (relocation.offset, relocation.symbol)).collect()
    };
    assert_eq!(of(1), [(0x10, 2), (0x20, 3), (0x30, 7)]);
    assert_eq!(of(12), [(0x10, 2), (0x20, 9), (0x30, 10)]);
    assert_eq!((of(2), of(13)), (vec![(0x40, 7)], vec![]), "the code of the second is left out");
    assert_eq!(of(3), [(4, 3), (16, 9)]);
    let calls: Vec<_> = cubin.calls.iter().map(|call| (call.caller, call.callee)).collect();
    assert_eq!(calls, [(1, 2), (1, 7), (2, 7), (7, 2), (7, 10)]);
}

#[test]
fn a_strong_definition_is_preferred_to_a_weak_one() {
    let mut weak = piece("one", "a", "two");
    weak.symbol("a").info = WEAK_VARIABLE;
    let weak = named(weak, "one");
    let strong = named(piece("two", "a", "vprintf"), "two");
    for files in [[&weak, &strong], [&strong, &weak]] {
        let cubin = linked(&files.map(|file| &file[..])).expect("one strong definition");
        let [variable] = &cubin.variables[..] else { panic!("one variable") };
        let offset = if files[0] == &strong { 4 } else { 16 };
        assert_eq!((variable.name, variable.offset), ("a", offset));
        assert_eq!(cubin.symbols[variable.symbol].binding, Binding::Global);
    }
    let first = named(piece("one", "a", "two"), "one");
    assert_eq!(linked(&[&first, &strong]), Err(LinkError::TwoDefinitions("a".to_owned())));
}

#[test]
fn alignment_stays_between_the_images_of_a_bank() {
    let first = named(piece("one", "a", "two"), "one");
    let mut second = piece("two", "b", "vprintf");
    second.section(".nv.constant3").alignment = 64;
    let second = named(second, "two");
    let cubin = linked(&[&first, &second]).expect("two files that fit");
    let bank = cubin.constant_bank(3).expect("a bank");
    assert_eq!((bank.alignment, bank.image.len()), (64, 76));
    assert_eq!(cubin.variables[1].offset, 68);
    // Nothing is as large as the alignment that a broken file has.
    let mut broken = piece("two", "b", "vprintf");
    broken.section(".nv.constant3").alignment = 1 << 63;
    let broken = named(broken, "two");
    let cubin = linked(&[&first, &broken]).expect("two files that fit");
    assert_eq!(cubin.constant_bank(3).map(|bank| bank.image.len()), Some((1 << 16) + 12));
}

#[test]
fn files_for_other_gpus_do_not_fit() {
    let volta = named(piece("one", "a", "two"), "one");
    let turing = TestFile { kind: 1, ..sample(true) }.bytes();
    assert_eq!(linked(&[&volta, &turing]), Err(LinkError::Architectures(70, 75)));
    assert_eq!(linked(&[]), Err(LinkError::Nothing));
}

proptest! {
    /// Numbers of the size of the file, and the ends of the range, in place of others.
    #[test]
    fn files_with_changed_numbers_never_panic(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), prop_oneof![
            0..4096u64, Just(u64::MAX), Just(u64::MAX / 2), any::<u64>()
        ], 1..=8usize), 1..6),
    ) {
        let first = named(piece("one", "a", "two"), "one");
        let mut second = named(piece("two", "b", "vprintf"), "two");
        for (at, value, width) in changes {
            let at = at.index(second.len() - 8);
            second[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        }
        if let Ok(second) = Cubin::read(&second) {
            let _linked = Cubin::linked(vec![Cubin::read(&first).expect("a whole cubin"), second]);
        }
    }
}
