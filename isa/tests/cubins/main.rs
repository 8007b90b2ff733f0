//! Cubins of the project's own workloads, as compilers wrote them: ptxas 12.9 for sm_70, ptxas 13.5 for sm_75.

mod lines;
mod modules;

use balar_isa::cubin::{
    Binding, Call, Cubin, Parameter, ParameterArea, RelocationKind, SharedMemory, StackSizes, SymbolKind,
};
use balar_isa::fatbin;

const VECTORADD_SM_70: &[u8] = include_bytes!("vectoradd.sm_70.cubin");
const VECTORADD_SM_75: &[u8] = include_bytes!("vectoradd.sm_75.cubin");
const DEVICE_PRINT_SM_75: &[u8] = include_bytes!("device_print.sm_75.cubin");

/// Parameters from the usual place on.
fn area(bytes: u32, parameters: &[(u32, u32)]) -> ParameterArea {
    let parameters = parameters.iter().map(|&(offset, bytes)| Parameter { offset, bytes }).collect();
    ParameterArea { offset: 0x160, bytes, parameters }
}

#[test]
fn cubins_of_vectoradd_have_the_same_kernel_for_both_architectures() {
    for (image, architecture, toolkit, abi_version) in [(VECTORADD_SM_70, 70, 129, 7), (VECTORADD_SM_75, 75, 135, 8)] {
        let cubin = Cubin::read(image).expect("a compiler's cubin");
        assert_eq!((cubin.architecture, cubin.virtual_architecture), (architecture, Some(architecture)));
        assert_eq!(fatbin::cubin(image).map(|cubin| cubin.architecture), Some(architecture));
        assert_eq!((cubin.toolkit, cubin.abi_version, cubin.is_relocatable), (Some(toolkit), abi_version, false));
        let [kernel] = &cubin.functions[..] else { panic!("one kernel") };
        assert_eq!((kernel.name, kernel.is_entry, kernel.binding), ("vectorAdd", true, Binding::Global));
        assert_eq!((kernel.registers, kernel.section_registers, kernel.barriers), (12, 12, 0));
        assert_eq!((kernel.register_limit, kernel.api_version), (Some(255), Some(toolkit)));
        assert_eq!(kernel.parameters, area(28, &[(0, 8), (8, 8), (16, 8), (24, 4)]));
        assert_eq!(kernel.shared_memory, SharedMemory { bytes: 0, alignment: 1 });
        assert_eq!(kernel.stack, StackSizes { frame: Some(0), minimum: Some(0), maximum: None });
        assert_eq!(kernel.constant_bank(0).map(|bank| &*bank.image), Some(&[0; 0x160 + 28][..]));
        // The workaround of Volta, a SHFL, is the second instruction.
        let (exits, warp_wide) = if architecture == 70 { ([0x60, 0xf0], &[0x10][..]) } else { ([0x50, 0xe0], &[][..]) };
        assert_eq!((&kernel.exits[..], &kernel.warp_wide_instructions[..]), (&exits[..], warp_wide));
        // The low twelve bits of an EXIT, below those of its predicate.
        let is_exit = |at: u32| kernel.code[at as usize] == 0x4d && kernel.code[at as usize + 1] & 0xf == 0x9;
        assert!(kernel.exits.iter().all(|&exit| is_exit(exit)));
        assert!(cubin.variables.is_empty() && cubin.relocations.is_empty() && cubin.calls.is_empty());
        assert_eq!(cubin.undefined_symbols().count(), 0);
    }
}

#[test]
fn the_cubin_of_device_print_has_texts_and_calls_the_driver() {
    let cubin = Cubin::read(DEVICE_PRINT_SM_75).expect("a compiler's cubin");
    let [finish, greet] = &cubin.functions[..] else { panic!("two kernels") };
    assert_eq!((finish.name, finish.registers, finish.code.len()), ("finish", 24, 0x180));
    assert_eq!((greet.name, greet.registers, greet.code.len()), ("greet", 24, 0x300));
    assert_eq!((&finish.parameters, &greet.parameters), (&ParameterArea::default(), &area(4, &[(0, 4)])));
    assert_eq!(greet.stack, StackSizes { frame: Some(0x28), minimum: Some(0x28), maximum: None });
    assert_eq!((&greet.system_calls[..], &greet.exits[..]), (&[0x2a0][..], &[0xb0, 0x2b0][..]));

    let undefined: Vec<_> = cubin.undefined_symbols().map(|symbol| (symbol.name, symbol.kind)).collect();
    assert_eq!(undefined, [("vprintf", SymbolKind::Function)]);
    let vprintf = cubin.symbols.iter().position(|symbol| symbol.name == "vprintf").expect("the symbol");
    assert_eq!((&finish.externs, &greet.externs), (&vec![vprintf], &vec![vprintf]));
    let call = |caller| Call { caller, callee: vprintf, is_indirect: false };
    assert_eq!(cubin.calls, [call(finish.symbol), call(greet.symbol)]);

    let [texts] = &cubin.global_sections[..] else { panic!("one section") };
    let image = texts.image.expect("texts");
    let text = |name| {
        let variable = cubin.variables.iter().find(|variable| variable.name == name).expect("the text");
        &image[variable.offset as usize..][..variable.bytes as usize]
    };
    assert_eq!((text("$str"), text("$str$1")), (&b"odd\0"[..], &b"even\0"[..]));
    assert_eq!(text("$str$3"), b"100%% done\n\0");

    let addresses = cubin.constant_bank(4).expect("addresses");
    assert_eq!((&*addresses.image, addresses.alignment), (&[0; 40][..], 8));
    let mut relocations: Vec<_> = cubin.relocations.iter().collect();
    relocations.sort_by_key(|relocation| relocation.offset);
    let names: Vec<_> = relocations.iter().map(|relocation| cubin.symbols[relocation.symbol].name).collect();
    assert_eq!(names, ["vprintf", "$str", "$str$1", "$str$2", "$str$3"]);
    for (relocation, offset) in relocations.iter().zip((0..).step_by(8)) {
        assert_eq!((relocation.section, relocation.offset), (addresses.section, offset));
        assert_eq!((relocation.kind, relocation.addend), (RelocationKind::Address64, None));
    }
}

#[test]
fn cubins_may_be_cut_or_changed() {
    for image in [VECTORADD_SM_70, VECTORADD_SM_75, DEVICE_PRINT_SM_75] {
        for end in 0..image.len() {
            // Program headers, which nobody reads, are at the end.
            let cut = Cubin::read(&image[..end]);
            assert!(cut.is_err() || end > image.len() - 4 * 56 - 8, "{end} of {} bytes", image.len());
        }
        for bit in 0..image.len() * 8 {
            let mut image = image.to_vec();
            image[bit / 8] ^= 1 << (bit % 8);
            if let Err(error) = Cubin::read(&image) {
                assert!(error.to_string().starts_with("cubin, "), "{error}");
            }
        }
    }
}
