//! Cubins as modules: the places of their variables, their initial values, the linking of their kernels.

use super::{DEVICE_PRINT_SM_75, VECTORADD_SM_70, VECTORADD_SM_75};
use balar_isa::execution::SystemCall;
use balar_isa::machine::{CODE_WINDOW, MachineCode, MachineError, MachineModule, system_call_address};
use balar_isa::module::VariableKind;
use balar_isa::program::ParameterSlot;

const VARIABLES: &[u8] = include_bytes!("variables.sm_70.cubin");
const LINKED: &[u8] = include_bytes!("linked.sm_75.cubin");
const PIECES: [&[u8]; 2] = [
    include_bytes!("../machine/pieces_kernels.sm_75.cubin"),
    include_bytes!("../machine/pieces_functions.sm_75.cubin"),
];
const CLUSTERS: &[u8] = include_bytes!("clusters.sm_90.cubin");
const REFERENCES: &[u8] = include_bytes!("references.sm_70.cubin");
const REFERENCES_PIECE: &[u8] = include_bytes!("references_piece.sm_70.cubin");

fn module(images: &[&[u8]]) -> Result<MachineModule, MachineError> {
    MachineModule::read(images.iter().map(|image| (*image).into()))
}

/// The module of one file, with addresses for its placements from 0x7f00_0000_0000 on, and numbers for its references.
fn placed(image: &[u8]) -> (MachineModule, Vec<u64>) {
    let module = module(&[image]).expect("a linked cubin");
    let place = |(index, kind)| match kind {
        VariableKind::Texture | VariableKind::Sampler | VariableKind::Surface => 0x8000_0000 + index,
        _ => 0x7f00_0000_0000 + 0x1_0000 * index,
    };
    let addresses = (0u64..).zip(module.placements().iter().map(|placement| placement.kind)).map(place).collect();
    (module, addresses)
}

fn code(image: &[u8], kernel: &str) -> MachineCode {
    let (module, addresses) = placed(image);
    module.code(kernel, &addresses).expect("the kernel can be linked")
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
}

/// Bits 32 to 63 of an instruction.
fn immediate(code: &MachineCode, function: &str, offset: usize) -> u64 {
    let first = code.functions.iter().find(|(_, name)| **name == *function).expect("the function").0 as usize;
    (code.words[first + offset / 16] >> 32) as u64 & 0xffff_ffff
}

/// The 64-bit value that two instructions have, the low word and the high one.
fn pair(code: &MachineCode, function: &str, low: usize, high: usize) -> u64 {
    immediate(code, function, low) | immediate(code, function, high) << 32
}

/// Where the call at an offset goes.
fn target(code: &MachineCode, function: &str, offset: usize) -> u64 {
    let first = code.functions.iter().find(|(_, name)| **name == *function).expect("the function").0 as usize;
    ((code.words[first + offset / 16] >> 34) as u64 & ((1 << 47) - 1)) << 2
}

#[test]
fn sections_are_placed_and_managed_variables_beside_them() {
    let (module, addresses) = placed(VARIABLES);
    assert_eq!(module.architecture(), 70);
    assert_eq!(module.architectures_of("compute"), (70, 70));
    let placements: Vec<_> = module.placements().iter().map(|it| (&*it.name, it.kind, it.bytes)).collect();
    use VariableKind::{Constant, Global, Managed};
    let expected = [
        (".nv.global.init", Global, 0x20),
        (".nv.global", Global, 0x348),
        (".nv.constant3", Constant, 0x18),
        ("counter", Managed, 4),
        ("scratch", Managed, 800),
    ];
    assert_eq!(placements, expected);
    let variable = |name: &str| {
        let it = module.variables().iter().find(|variable| *variable.name == *name).expect("the variable");
        (it.kind, it.placement, it.offset, it.bytes)
    };
    assert_eq!(variable("values"), (Global, 1, 0x320, 40));
    assert_eq!(variable("third"), (Global, 0, 0, 8));
    assert_eq!(variable("table"), (Constant, 2, 0, 16));
    assert_eq!(variable("counter"), (Managed, 3, 0, 4));
    assert_eq!(variable("scratch"), (Managed, 4, 0, 800));
    assert_eq!(module.variables().len(), 8);

    // third = &values[3], first = &values[1].
    let initial = module.initial_value(0, &addresses).expect("initial values");
    assert_eq!(numbers(&initial)[0], addresses[1] + 0x320 + 12);
    assert_eq!(initial[0x1c..], *b"%d\n\0");
    assert_eq!(module.initial_value(1, &addresses), None);
    let constants = module.initial_value(2, &addresses).expect("constants");
    assert_eq!(numbers(&constants), [0x2_0000_0001, 0x4_0000_0003, addresses[1] + 0x320 + 4]);
    assert_eq!(module.initial_value(3, &addresses).as_deref(), Some(&[5, 0, 0, 0][..]));
    assert_eq!(module.initial_value(4, &addresses), None);
    assert_eq!(module.initial_value(5, &addresses), None);
}

#[test]
fn a_kernel_is_its_section_with_its_banks() {
    let (module, addresses) = placed(VARIABLES);
    assert!(module.allocates());
    assert_eq!(module.kernels().collect::<Vec<_>>(), ["compute", "allocate", "divide", "recurse"]);
    let slots = [ParameterSlot { offset: 0, bytes: 8 }, ParameterSlot { offset: 8, bytes: 4 }];
    assert_eq!(module.kernel_parameters().next().as_deref(), Some(&slots[..]));
    let code = module.code("compute", &addresses).expect("the kernel");
    assert_eq!((&*code.name, code.architecture, code.words.len()), ("compute", 70, 0x500 / 16));
    let functions: Vec<_> = code.functions.iter().map(|(word, name)| (*word, &**name)).collect();
    assert_eq!(functions, [(0, "compute"), (0x40, "$compute$_Z3mixi"), (0x46, "$compute$_Z5scalei")]);
    assert_eq!((code.parameters, code.parameter_bytes), (slots.to_vec(), 12));
    assert_eq!(numbers(&code.bank_2), [1, 0x460, 0x400], "offsets in the kernel's own code");
    assert_eq!(code.bank_3, Some((addresses[2], 0x18)));
    let text = addresses[0] + 0x1c;
    let known = [
        system_call_address(SystemCall::Print),
        addresses[3],
        addresses[4],
        addresses[1] + 0x320,
        addresses[0],
        addresses[0] + 8,
        text,
        system_call_address(SystemCall::Allocate),
        system_call_address(SystemCall::Free),
    ];
    assert_eq!(numbers(&code.bank_4), known);
    let resources = &code.resources;
    assert_eq!((resources.registers_per_thread, resources.shared_bytes), (24, 256));
    assert_eq!((resources.maximum_threads, resources.required_block), (Some(96), None));
    assert_eq!(code.fixed_slots, []);
}

#[test]
fn local_memory_is_what_frames_need_together() {
    let local = |image, kernel| {
        let code = code(image, kernel);
        (code.resources.local_bytes, code.open_stack_bytes)
    };
    assert_eq!(local(VECTORADD_SM_70, "vectorAdd"), (0, 0));
    // A frame of 0x28 bytes.
    assert_eq!(local(DEVICE_PRINT_SM_75, "greet"), (0x30, 0));
    assert_eq!(local(VARIABLES, "divide"), (0, 0));
    // The depth of recursion is not known, nor are the functions that are called through pointers: frames of 0x18, and of 16 and 8 bytes.
    assert_eq!(local(VARIABLES, "recurse"), (0x20 + 1024, 1024));
    assert_eq!(local(VARIABLES, "compute"), (0x20 + 1024, 1024));
    assert_eq!(local(LINKED, "call"), (1024, 1024));
    assert_eq!(local(LINKED, "call_by_name"), (0, 0));
}

#[test]
fn functions_have_the_same_addresses_for_all_kernels() {
    let (module, addresses) = placed(LINKED);
    assert_eq!(module.kernels().collect::<Vec<_>>(), ["larger", "call_by_name", "call"]);
    let kernels = ["larger", "call_by_name", "call"].map(|kernel| module.code(kernel, &addresses).expect("linked"));
    // The largest kernels have 0x180 bytes. Nobody calls `alone` in the last.
    let at = |bytes: u64| CODE_WINDOW + 0x180 + bytes;
    let (alone, scale, negate) = (at(0), at(0x80), at(0x200));
    let names = |code: &MachineCode| code.functions.iter().map(|(word, name)| (*word, name.to_string())).collect();
    let expected = |kernel: &str, has_alone: bool| -> Vec<(u32, String)> {
        let all = [(0, kernel), (24, "alone"), (32, "scale"), (56, "negate")];
        let there = all.into_iter().filter(|(word, _)| has_alone || *word != 24);
        there.map(|(word, name)| (word, name.to_owned())).collect()
    };
    let names: [Vec<(u32, String)>; 3] = [0, 1, 2].map(|number| names(&kernels[number]));
    assert_eq!(names, [expected("larger", true), expected("call_by_name", true), expected("call", false)]);
    let [larger, call_by_name, call] = &kernels;
    assert!(kernels.iter().all(|code| code.words.len() == 64));
    // Where another kernel has code, or a function that is not reached, there are instructions that do nothing.
    let nop = 0x000f_c000_0000_0000_0000_0000_0000_7918;
    assert!(call_by_name.words[16..24].iter().chain(&call.words[24..32]).all(|word| *word == nop));

    assert_eq!(numbers(&module.initial_value(0, &addresses).expect("functions")), [scale, negate]);
    assert_eq!((target(larger, "larger", 0x40), target(larger, "larger", 0xf0)), (scale, alone));
    assert_eq!(target(call_by_name, "call_by_name", 0x40), alone);
    assert_eq!(pair(larger, "larger", 0x20, 0x30), CODE_WINDOW + 0x50, "a return address");
    let [functions, values] = [addresses[0], addresses[1]];
    assert_eq!(pair(call, "call", 0x20, 0x30), functions);
    assert_eq!(pair(call, "call", 0xb0, 0xc0), values);
    assert_eq!(pair(call, "scale", 0x30, 0x20), values);
    assert_eq!([larger, call].map(|code| code.resources.shared_bytes), [0x180, 0x80]);
}

#[test]
fn references_are_numbers_in_slots_behind_the_parameters() {
    let (module, addresses) = placed(REFERENCES);
    let placements: Vec<_> = module.placements().iter().map(|it| (&*it.name, it.kind)).collect();
    use VariableKind::{Global, Surface, Texture};
    let expected =
        [(".nv.global.init", Global), ("picture", Texture), ("other_picture", Texture), ("drawing", Surface)];
    assert_eq!(placements, expected);
    let names: Vec<_> = module.variables().iter().map(|it| (&*it.name, it.kind, it.placement)).collect();
    let variables =
        [("picture", Texture, 1), ("other_picture", Texture, 2), ("drawing", Surface, 3), ("pointer", Global, 0)];
    assert_eq!(names, variables);
    let code = module.code("look", &addresses).expect("the kernel");
    assert_eq!(code.fixed_slots, [(0x16c, 0x8000_0001), (0x170, 0x8000_0002), (0x174, 0x8000_0003)]);
    assert_eq!((code.resources.maximum_threads, code.resources.required_block), (None, Some([32, 2, 1])));
    assert_eq!(numbers(&module.initial_value(0, &addresses).expect("a pointer")), [0x8000_0002]);
    let error = module.code("look", &[0, 1 << 32, 2, 3]).expect_err("a number of 33 bits");
    assert_eq!(
        error.to_string(),
        "section .nv.constant0.look, offset 0x16c: a relocation TextureHeaderIndex, which cannot be done there"
    );
}

#[test]
fn the_linker_makes_slots_for_references() {
    let linked = code(REFERENCES, "look");
    let (module, addresses) = placed(REFERENCES_PIECE);
    let piece = module.code("look", &addresses).expect("the kernel");
    assert_eq!(piece.fixed_slots, linked.fixed_slots);
    assert_eq!(piece.words, linked.words);
}

#[test]
fn files_are_loaded_together() {
    let module = module(&[VECTORADD_SM_75, DEVICE_PRINT_SM_75]).expect("different kernels");
    assert_eq!(module.kernels().collect::<Vec<_>>(), ["vectorAdd", "finish", "greet"]);
    let addresses = vec![0x7f00_0000_0000; module.placements().len()];
    assert_eq!(
        module.initial_value(0, &addresses).map(|bytes| bytes.len()),
        Some(module.placements()[0].bytes as usize)
    );
    let code = module.code("greet", &addresses).expect("the kernel");
    assert_eq!(numbers(&code.bank_4)[0], system_call_address(SystemCall::Print));
    assert_eq!(module.code("vectorAdd", &addresses).expect("the kernel").bank_4, []);
}

/// A file with some bytes replaced.
fn changed(image: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut image = image.to_vec();
    let at = image.windows(from.len()).position(|window| window == from).expect("the bytes");
    image[at..at + to.len()].copy_from_slice(to);
    image
}

#[test]
fn kernels_say_their_clusters() {
    let clusters = module(&[CLUSTERS]).expect("a linked cubin");
    let needs = |kernel| clusters.code(kernel, &[]).expect("the kernel is there").resources.clusters;
    assert_eq!((needs("of_two").required, needs("of_two").is_explicit), (Some([2, 1, 1]), true));
    assert_eq!(needs("of_one").required, Some([1; 3]));
    assert_eq!(needs("of_one").maximum_size, None);
    assert_eq!(clusters.code("of_one", &[]).map(|code| code.resources.reserved_shared_bytes), Ok(1024));
}

#[test]
fn what_cannot_be_loaded_is_refused() {
    let check = |images: &[&[u8]], expected: &str| {
        assert_eq!(module(images).expect_err("refused").to_string(), expected);
    };
    let mut relocatable = VECTORADD_SM_75.to_vec();
    relocatable[16] = 1;
    check(&[&relocatable, &relocatable], "two of the cubins that are linked define vectorAdd, expected one");
    check(&[&relocatable, VECTORADD_SM_75], "two cubins of the module have a kernel vectorAdd, expected one");
    let mut later = VECTORADD_SM_75.to_vec();
    later[49] = 100;
    check(&[&later], "machine code for sm_100, expected sm_70, sm_72, sm_75, sm_80, sm_86, sm_87, sm_89, sm_90");
    check(&[VECTORADD_SM_75, VECTORADD_SM_70], "two cubins of the module have a kernel vectorAdd, expected one");
    assert!(module(&[b"\x7fELF"]).expect_err("no file").to_string().starts_with("cubin, offset 0x0: "));
    // The size of the section without an image, in its header: 840 bytes.
    let size = [&0x348u64.to_le_bytes()[..], &0u32.to_le_bytes(), &0u32.to_le_bytes(), &8u64.to_le_bytes()].concat();
    let huge = changed(VARIABLES, &size, &(1u64 << 40).to_le_bytes());
    check(&[&huge], "section .nv.global of 1099511627776 bytes, expected at most 17179869184");
    // A relocation of a type that is not known, in bank 4: of byte 8, symbol 5.
    let relocation = [&8u64.to_le_bytes()[..], &(2u64 | 5 << 32).to_le_bytes()].concat();
    let unknown = changed(VARIABLES, &relocation, &[8u64.to_le_bytes(), (99u64 | 5 << 32).to_le_bytes()].concat());
    check(&[&unknown], "section .nv.constant4, offset 0x8: a relocation of type 99, which cannot be done there");
}

#[test]
fn what_nobody_defines_is_an_error_of_the_kernels_that_name_it() {
    let image = changed(VARIABLES, b"\0vprintf\0", b"\0vprintg\0");
    let (module, addresses) = placed(&image);
    let error = module.code("compute", &addresses).expect_err("an unknown function");
    assert_eq!(error.to_string(), "compute refers to vprintg, which neither its module nor the device runtime defines");
    let code = module.code("allocate", &addresses).expect("another kernel");
    assert_eq!(numbers(&code.bank_4)[0], 0);
    assert_eq!(module.code("nothing", &addresses).expect_err("no kernel").to_string(), "there is no kernel nothing");
}

/// A relocation of an instruction, as `.rel` sections have it: offset, type, symbol.
fn relocation(offset: u64, kind: u64, symbol: u64) -> Vec<u8> {
    [offset, kind | symbol << 32].iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[test]
fn what_code_cannot_refer_to_is_an_error_of_the_kernels_with_that_code() {
    // The call of `scale` in `larger`.
    let (scale, larger) = (&relocation(0x40, 58, 21), "larger");
    let unknown = "section .text.larger, offset 0x40: a relocation of type 99, which cannot be done there";
    let misplaced = "section .text.larger, offset 0x48: a relocation Instruction47, which cannot be done there";
    for (from, to, kernel, expected) in
        [(scale, relocation(0x40, 99, 21), larger, unknown), (scale, relocation(0x48, 58, 21), larger, misplaced)]
    {
        let (module, addresses) = placed(&changed(LINKED, from, &to));
        assert_eq!(module.code(kernel, &addresses).expect_err(expected).to_string(), expected);
        module.code("call", &addresses).expect("another kernel");
    }
}

#[test]
fn constants_and_shared_variables_are_offsets_in_instructions() {
    // In place of a return address: the byte 0x104 of constant bank 0 of `larger`, and of its shared memory.
    let entry = |kind, symbol, addend: u64| [relocation(0xd0, kind, symbol), addend.to_le_bytes().to_vec()].concat();
    let from = entry(56, 23, 0x100);
    let word = |code: &MachineCode| code.words[0xd];
    let nothing = word(&code(LINKED, "larger")) & !(0xffff_ffff << 32);
    for (kind, symbol, field) in [(64, 11, 0x104 >> 2 << 40), (74, 7, 0x104 << 40), (55, 7, 0x104 << 32)] {
        let (module, addresses) = placed(&changed(LINKED, &from, &entry(kind, symbol, 0x104)));
        let code = module.code("larger", &addresses).expect("an offset");
        assert_eq!(word(&code), nothing | field, "type {kind}");
    }
    // A variable of global memory has none, a field has but so many bits, and constants are words.
    for (kind, symbol, addend) in [(74, 26, 0), (74, 7, 1 << 24), (64, 11, 0x102), (64, 11, 1 << 16)] {
        let (module, addresses) = placed(&changed(LINKED, &from, &entry(kind, symbol, addend)));
        let error = module.code("larger", &addresses).expect_err("no offset");
        assert!(matches!(error, MachineError::Relocation { offset: 0xd0, .. }), "{error}");
    }
}

/// Links all kernels of a module, if it can be read.
fn link_all(images: &[&[u8]]) {
    let Ok(module) = module(images) else { return };
    let addresses: Vec<u64> = (1..).map(|index| index << 32).take(module.placements().len()).collect();
    for placement in 0..addresses.len() {
        let _bytes = module.initial_value(placement, &addresses);
    }
    for kernel in module.kernels() {
        let _code = module.code(kernel, &addresses);
    }
}

#[test]
fn cubins_may_be_changed() {
    for image in [VARIABLES, LINKED, REFERENCES] {
        // One bit in seven: each module is linked several times.
        for bit in (0..image.len() * 8).step_by(7) {
            let mut image = image.to_vec();
            image[bit / 8] ^= 1 << (bit % 8);
            link_all(&[&image]);
        }
    }
}

#[test]
fn cubins_that_are_linked_may_be_changed() {
    let [kernels, functions] = PIECES;
    for (changed, other) in [(kernels, functions), (functions, kernels)] {
        // One bit in 61: all kernels are linked each time.
        for bit in (0..changed.len() * 8).step_by(61) {
            let mut changed = changed.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            link_all(&[&changed, other]);
        }
    }
}
