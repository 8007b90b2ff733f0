//! A file that has everything, as ptxas 12.9 would write it for sm_70 and ptxas 13.5 for sm_75.

use super::writer::{TestFile, TestSection, TestSymbol, record, small_record, words};

const LOCAL_FUNCTION: u8 = 0x02;
const GLOBAL_FUNCTION: u8 = 0x12;
const WEAK_FUNCTION: u8 = 0x22;
const LOCAL_OBJECT: u8 = 0x01;
const GLOBAL_OBJECT: u8 = 0x11;
const ENTRY: u8 = 0x10;

/// The file of a generation of the format: before its eighth version or not.
pub fn sample(shifted: bool) -> TestFile {
    let barriers = if shifted { 0 } else { 3 << 20 };
    let section = |name, kind, flags, info, alignment, data: Vec<u8>| TestSection {
        name,
        kind,
        flags,
        info,
        alignment,
        data,
        bytes: None,
    };
    let empty = |name, flags, info, alignment, bytes| TestSection {
        name,
        kind: 8,
        flags,
        info,
        alignment,
        bytes: Some(bytes),
        ..TestSection::default()
    };
    let pointers: Vec<u8> =
        [0x18u64, 2].iter().chain(&[0x20, 4 | 7 << 32, 8]).flat_map(|it| it.to_le_bytes()).collect();
    let rel = |offset: u64, kind: u64, symbol: u64| [offset, kind | symbol << 32].map(u64::to_le_bytes).concat();
    let note: Vec<u8> = [words(&[12, 8, 1000]), b"NVIDIA Corp\0".to_vec(), words(&[2 | 72 << 16, 135])].concat();
    let symbol = |name, info, other, section, value, bytes| TestSymbol { name, info, other, section, value, bytes };
    TestFile {
        os_abi: if shifted { 0x41 } else { 0x33 },
        abi_version: if shifted { 8 } else { 7 },
        kind: 2,
        version: if shifted { 1 } else { 129 },
        flags: if shifted { 0x0600_4b04 } else { 0x0046_0546 },
        sections: vec![
            section(".text.first", 1, 6 | barriers, 24 << 24 | 1, 128, (0..=255).cycle().take(0x180).collect()),
            section(".text.second", 1, 6, 8 << 24 | 2, 128, vec![0; 0x80]),
            section(".nv.info", 0x7000_0000, 0, 0, 4, module_attributes()),
            section(".nv.info.first", 0x7000_0000, 0x40, 1, 4, attributes(shifted)),
            section(".nv.info.second", 0x7000_0000, 0x40, 2, 4, record(0x10, &[32, 4, 1])),
            section(".nv.constant0.first", 1, 0x42, 1, 4, vec![0; 0x178]),
            section(".nv.constant2.first", 1, 0x42, 1, 4, words(&[0x40, 0, 0x60, 0])),
            section(".nv.constant3", 1, 2, 0, 8, words(&[5, 6, 7, 0])),
            section(".nv.constant4", 1, 2, 0, 8, vec![0; 16]),
            section(".nv.global.init", 1, 3, 0, 8, (1..=40).collect()),
            empty(".nv.global", 3, 0, 16, 32),
            empty(".nv.shared.first", 0x43, 1, 16, 48),
            section(".rel.nv.constant4", 9, 0x40, 9, 8, [rel(8, 2, 10), rel(0, 2, 6)].concat()),
            section(".rela.nv.global.init", 4, 0x40, 10, 8, pointers[16..].to_vec()),
            section(".nv.callgraph", 0x7000_0001, 0, 0, 4, call_graph()),
            section(".debug_frame", 1, 0, 0, 1, vec![0; 16]),
            section(".rel.debug_frame", 9, 0x40, 16, 8, rel(0, 2, 1)),
            section(if shifted { ".note.nv.cuinfo" } else { ".note.nv.other" }, 7, 0x100_0000, 0, 4, note),
        ],
        symbols: vec![
            symbol("first", GLOBAL_FUNCTION, ENTRY, 1, 0, 0x180),
            symbol("second", LOCAL_FUNCTION, ENTRY, 2, 0, 0x80),
            symbol("$first$late", LOCAL_FUNCTION, 0, 1, 0x140, 0x40),
            symbol("$first$early", WEAK_FUNCTION, 0, 1, 0x100, 0x40),
            symbol("", 0x03, 0, 1, 0, 0),
            symbol("vprintf", GLOBAL_FUNCTION, 0, 0, 0, 0),
            symbol("initialised", GLOBAL_OBJECT, 0, 10, 8, 32),
            symbol("managed", GLOBAL_OBJECT, 4, 11, 16, 4),
            symbol("constant", LOCAL_OBJECT, 0, 8, 4, 12),
            symbol("$str", LOCAL_OBJECT, 0, 10, 0, 8),
            symbol("texture", 0x1a, 0, 0, 0, 0),
        ],
    }
}

/// `.nv.info`.
fn module_attributes() -> Vec<u8> {
    [
        record(0x2f, &[1, 24]),
        record(0x11, &[1, 40]),
        record(0x11, &[4, 8]),
        record(0x12, &[1, 48]),
        record(0x23, &[1, 64]),
        record(0x2f, &[2, 8]),
        record(0x12, &[2, 0xffff_ffff]),
    ]
    .concat()
}

/// `.nv.info.first`.
fn attributes(shifted: bool) -> Vec<u8> {
    [
        record(0x36, &[1]),
        record(0x37, &[129]),
        record(0x0a, &[6, 0x160 | 0x18 << 16]),
        small_record(3, 0x19, 0x18),
        // Numbered from the last to the first, as ptxas does.
        record(0x17, &[0, 2 | 0x10 << 16, 0x1f000 | 8 << 18]),
        record(0x17, &[0, 1 | 8 << 16, 0x1f000 | 4 << 18]),
        record(0x17, &[0, 0, 0x1f000 | 8 << 18]),
        small_record(3, 0x1b, 0xff),
        record(0x0f, &[6, 11]),
        record(0x31, &[0x10, 0x100]),
        record(0x28, &[0x20, 0x30]),
        record(0x29, &[0xffff_ffff, 0x0500_0007]),
        record(0x46, &[0x70]),
        record(0x1c, &[0x80, 0xf0]),
        record(0x34, &[0x50, 0, 2, 0x60, 0x80, 0x90, 0, 1, 0xa0]),
        record(0x1e, &[0]),
        small_record(1, 0x04, 0),
        small_record(1, 0x2b, 0),
        record(0x05, &[128, 2, 1]),
        if shifted { small_record(2, 0x4c, 3) } else { Vec::new() },
    ]
    .concat()
}

/// Calls of `vprintf` and of a function through a pointer.
fn call_graph() -> Vec<u8> {
    let separator = |number: i32| [0, number.cast_unsigned()];
    let lists = [separator(-1), [1, 6], separator(-2), [4, 549], separator(-3), [1, 549], separator(-4), [1, 4]];
    words(&lists.concat())
}
