//! Functions put together from their sections, symbols and attributes.

use super::elf::{File, SECTION_INFO, Section};
use super::error::CubinError;
use super::function::{
    BlockLimit, Function, IndirectBranch, InnerFunction, Parameter, ParameterArea, SharedMemory, StackSizes,
};
use super::header::SHIFTED_ARCHITECTURE_ABI;
use super::info::{self, Record, records};
use super::memory::{ConstantBank, constant_bank};
use super::symbol::{Binding, Symbol, SymbolKind};
use object::elf;
use std::collections::BTreeMap;

/// Code is whole instructions of so many bytes.
const INSTRUCTION_BYTES: usize = 16;
/// The bits of `sh_info` of code that have its symbol; registers are above them.
const SYMBOL_BITS: u32 = 24;
/// Where `sh_flags` of code has the number of barriers, in seven bits.
const BARRIER_SHIFT: u32 = 20;
const BARRIER_MASK: u64 = 0x7f;
/// The value that tools write for an unknown size of the stack.
const UNKNOWN_STACK: u32 = u32::MAX;

/// Attributes of the section `.nv.info`, which are about symbols, by the symbol's number.
struct ModuleAttributes {
    stacks: Vec<StackSizes>,
    registers: Vec<Option<u32>>,
}

/// The functions of the file, in the order of their code, and the module's constant banks.
pub(super) fn functions<'data>(
    file: &File<'data>,
    abi_version: u8,
) -> Result<(Vec<Function<'data>>, Vec<ConstantBank<'data>>), CubinError> {
    let module = module_attributes(file)?;
    let mut functions = Vec::new();
    let mut by_name = BTreeMap::new();
    let mut by_section = vec![None; file.sections.len()];
    for (index, section, name) in file.named(".text.") {
        by_section[index] = Some(functions.len());
        let function = function(file, index, section, name, abi_version, &module)?;
        // Functions that only their callers see may share a name in files that were linked.
        let may_repeat = function.binding == Binding::Local && !function.is_entry;
        if by_name.insert(name, functions.len()).is_some() && !may_repeat {
            return Err(CubinError::section(section.name, 0, "a second function of this name, expected one"));
        }
        functions.push(function);
    }
    let find = |section: &Section<'_>, name: &str| {
        // The section says whose it is; the name alone is enough where it does not.
        let own = file.sections.get(section.info as usize).filter(|own| own.name.strip_prefix(".text.") == Some(name));
        let own = own.and_then(|_| by_section[section.info as usize]);
        own.or_else(|| by_name.get(name).copied()).ok_or_else(|| {
            CubinError::section(section.name, 0, format!("no section .text.{name}, expected the function's code"))
        })
    };
    for (_, section, name) in file.named(".nv.info.") {
        let function = &mut functions[find(section, name)?];
        for record in function_records(section)? {
            attribute(file, function, &record)?;
        }
        parameters(function, section)?;
    }
    // Later architectures have shared memory of the system's in a section of this name.
    for (_, section, name) in file.named(".nv.shared.").filter(|(_, _, name)| !name.starts_with("reserved.")) {
        let SharedMemory { bytes, alignment } = &mut functions[find(section, name)?].shared_memory;
        (*bytes, *alignment) = (section.bytes, section.alignment);
    }
    let mut module_banks: Vec<ConstantBank<'data>> = Vec::new();
    for (index, section, rest) in file.named(".nv.constant") {
        let (bank, name) = constant_bank(index, section, rest)?;
        let banks = match name {
            Some(name) => &mut functions[find(section, name)?].constant_banks,
            None => &mut module_banks,
        };
        if banks.iter().any(|other| other.bank == bank.bank) {
            return Err(CubinError::section(section.name, 0, "a second image of this constant bank, expected one"));
        }
        banks.push(bank);
    }
    inner_functions(file, &by_section, &module, &mut functions)?;
    functions.iter().try_for_each(|function| check_parameters(file, function))?;
    Ok((functions, module_banks))
}

/// The records of a section of attributes.
fn function_records<'data>(section: &Section<'data>) -> Result<Vec<Record<'data>>, CubinError> {
    if section.kind != SECTION_INFO {
        let kind = section.kind;
        let what = format!("a section of type {kind:#x}, expected attributes, {SECTION_INFO:#x}");
        return Err(CubinError::section(section.name, 0, what));
    }
    records(section.name, section.data)
}

/// The attributes of symbols.
fn module_attributes(file: &File<'_>) -> Result<ModuleAttributes, CubinError> {
    let count = file.symbols.len();
    let mut module = ModuleAttributes { stacks: vec![StackSizes::default(); count], registers: vec![None; count] };
    for (_, section, _) in file.named(".nv.info").filter(|(_, _, rest)| rest.is_empty()) {
        for record in function_records(section)? {
            let number = record.attribute.number;
            if ![info::REGCOUNT, info::FRAME_SIZE, info::MIN_STACK_SIZE, info::MAX_STACK_SIZE].contains(&number) {
                continue;
            }
            let [symbol, value] = record.array()?;
            let symbol = file.symbol(symbol, section.name, record.offset)?;
            let stack = &mut module.stacks[symbol];
            let known = (value != UNKNOWN_STACK).then_some(value);
            match number {
                info::REGCOUNT => module.registers[symbol] = Some(value),
                info::FRAME_SIZE => stack.frame = known,
                info::MIN_STACK_SIZE => stack.minimum = known,
                _ => stack.maximum = known,
            }
        }
    }
    Ok(module)
}

/// Is this the symbol of the function whose code is the section with this number?
fn begins(symbol: &Symbol<'_>, section: usize) -> bool {
    symbol.section == Some(section) && symbol.kind == SymbolKind::Function && symbol.value == 0
}

/// A function, as the section of its code and its symbol have it.
fn function<'data>(
    file: &File<'data>,
    index: usize,
    section: &Section<'data>,
    name: &'data str,
    abi_version: u8,
    module: &ModuleAttributes,
) -> Result<Function<'data>, CubinError> {
    let error = |what: String| CubinError::section(section.name, 0, what);
    let code = section.data;
    if section.kind != elf::SHT_PROGBITS || !code.len().is_multiple_of(INSTRUCTION_BYTES) {
        let (bytes, kind) = (code.len(), section.kind);
        let what = format!("{bytes} bytes in a section of type {kind:#x}, expected whole instructions of 16 in type 1");
        return Err(error(what));
    }
    let named = section.info & ((1 << SYMBOL_BITS) - 1);
    let symbol = match named {
        // cuBLASLt's generator of code for Hopper (`nvjet`) leaves the number out.
        0 => file.symbols.iter().position(|symbol| begins(symbol, index)),
        number => Some(file.symbol(number, section.name, 0)?).filter(|&symbol| begins(&file.symbols[symbol], index)),
    };
    let Some(symbol) = symbol else {
        let symbol = file.symbols.get(named as usize);
        let (symbol, kind) = symbol.map_or(("", SymbolKind::Unspecified), |symbol| (symbol.name, symbol.kind));
        return Err(error(format!("the symbol {symbol:?}, {kind:?}, expected a function that begins this section")));
    };
    let it = file.symbols[symbol];
    let section_registers = section.info >> SYMBOL_BITS;
    let barriers = match abi_version {
        SHIFTED_ARCHITECTURE_ABI.. => 0,
        _ => (section.flags >> BARRIER_SHIFT & BARRIER_MASK) as u32,
    };
    Ok(Function {
        name,
        section: index,
        symbol,
        is_entry: it.is_entry(),
        binding: it.binding,
        code,
        registers: module.registers[symbol].unwrap_or(section_registers),
        section_registers,
        barriers,
        register_limit: None,
        shared_memory: SharedMemory::default(),
        stack: module.stacks[symbol],
        call_return_stack: None,
        parameters: ParameterArea::default(),
        block_limit: None,
        cluster: None,
        needs_cluster: false,
        maximum_cluster: None,
        exits: Vec::new(),
        indirect_branches: Vec::new(),
        externs: Vec::new(),
        system_calls: Vec::new(),
        cooperative_group_instructions: Vec::new(),
        cooperative_group_mask_registers: Vec::new(),
        warp_wide_instructions: Vec::new(),
        uses_block_index_z: false,
        uses_matrix_instructions: false,
        api_version: None,
        other_attributes: Vec::new(),
        inner: Vec::new(),
        constant_banks: Vec::new(),
    })
}

/// Takes in an attribute of a function.
fn attribute<'data>(
    file: &File<'data>,
    function: &mut Function<'data>,
    record: &Record<'data>,
) -> Result<(), CubinError> {
    let code = function.code;
    let instructions = || instructions(record, code);
    match record.attribute.number {
        info::CTAID_Z_USED => function.uses_block_index_z = true,
        info::WMMA_USED => function.uses_matrix_instructions = true,
        info::MAX_THREADS => function.block_limit = Some(BlockLimit::Maximum(record.array()?)),
        info::REQNTID => function.block_limit = Some(BlockLimit::Required(record.array()?)),
        info::CTA_PER_CLUSTER => function.cluster = Some(record.array()?),
        info::EXPLICIT_CLUSTER => function.needs_cluster = true,
        info::MAX_CLUSTER_RANK => function.maximum_cluster = Some(record.array::<1>()?[0]),
        info::MAXREG_COUNT => function.register_limit = Some(record.small()?),
        info::NUM_BARRIERS => function.barriers = record.small()?,
        info::CRS_STACK_SIZE => function.call_return_stack = Some(record.array::<1>()?[0]),
        info::CUDA_API_VERSION => function.api_version = Some(record.array::<1>()?[0]),
        info::EXIT_INSTR_OFFSETS => function.exits.extend(instructions()?),
        info::SYSCALL_OFFSETS => function.system_calls.extend(instructions()?),
        info::INT_WARP_WIDE_INSTR_OFFSETS => function.warp_wide_instructions.extend(instructions()?),
        info::COOP_GROUP_INSTR_OFFSETS => function.cooperative_group_instructions.extend(instructions()?),
        info::COOP_GROUP_MASK_REGIDS => function.cooperative_group_mask_registers.extend(record.words()?),
        info::INDIRECT_BRANCH_TARGETS => function.indirect_branches.extend(indirect_branches(record, code)?),
        info::EXTERNS => {
            for symbol in record.words()? {
                function.externs.push(file.symbol(symbol, record.section, record.offset)?);
            }
        }
        // These are put together by `parameters`.
        info::PARAM_CBANK | info::CBANK_PARAM_SIZE | info::KPARAM_INFO | info::LARGE_KPARAM_INFO => {}
        _ => function.other_attributes.push(record.attribute),
    }
    Ok(())
}

/// An instruction's offset, which must be in the code.
fn instruction(record: &Record<'_>, code: &[u8], offset: u32) -> Result<u32, CubinError> {
    if (offset as usize) < code.len() {
        return Ok(offset);
    }
    let bytes = code.len();
    Err(record.error(&format!("with the instruction {offset:#x}, expected one of the code's {bytes:#x} bytes")))
}

/// The offsets of instructions that a record has.
fn instructions(record: &Record<'_>, code: &[u8]) -> Result<Vec<u32>, CubinError> {
    record.words()?.into_iter().map(|offset| instruction(record, code, offset)).collect()
}

/// The indirect branches of a record: for each its offset, a word of zeros, the number of its targets, and the targets.
fn indirect_branches(record: &Record<'_>, code: &[u8]) -> Result<Vec<IndirectBranch>, CubinError> {
    let words = record.words()?;
    let mut rest = &words[..];
    let mut branches = Vec::new();
    while !rest.is_empty() {
        let taken = rest.split_first_chunk::<3>().and_then(|(&[offset, _, count], after)| {
            let (targets, after) = after.split_at_checked(count.try_into().ok()?)?;
            Some((offset, targets, after))
        });
        let Some((offset, targets, after)) = taken else {
            let words = rest.len();
            return Err(record.error(&format!("that ends with {words} words, expected a branch and all its targets")));
        };
        let targets: Result<_, _> = targets.iter().map(|&target| instruction(record, code, target)).collect();
        branches.push(IndirectBranch { offset: instruction(record, code, offset)?, targets: targets? });
        rest = after;
    }
    Ok(branches)
}

/// Takes in where a function's parameters are.
fn parameters(function: &mut Function<'_>, section: &Section<'_>) -> Result<(), CubinError> {
    let area = &mut function.parameters;
    let mut numbered = Vec::new();
    let mut size = None;
    for record in function_records(section)? {
        match record.attribute.number {
            info::PARAM_CBANK => {
                let [_, place] = record.array()?;
                (area.offset, area.bytes) = (place & 0xffff, place >> 16);
            }
            info::CBANK_PARAM_SIZE => size = Some((record, record.small()?)),
            info::KPARAM_INFO => {
                // The first word is zero; the last has besides the size what a pointer points to, which nothing needs.
                let [_, place, size] = record.array()?;
                let parameter = Parameter { offset: place >> 16, bytes: size >> 18 };
                numbered.push((place & 0xffff, parameter));
            }
            info::LARGE_KPARAM_INFO => {
                // The same, but the last word has the size alone.
                let [_, place, bytes] = record.array()?;
                numbered.push((place & 0xffff, Parameter { offset: place >> 16, bytes }));
            }
            _ => {}
        }
    }
    if let Some((record, bytes)) = size
        && bytes != area.bytes
    {
        return Err(record.error(&format!("of {bytes} bytes, expected {} as attribute 0x0a has", area.bytes)));
    }
    numbered.sort_by_key(|&(ordinal, _)| ordinal);
    if let Some((expected, (ordinal, _))) = (0..).zip(&numbered).find(|(expected, (ordinal, _))| expected != ordinal) {
        let what = format!("a parameter of number {ordinal}, expected one of number {expected}");
        return Err(CubinError::section(section.name, 0, what));
    }
    area.parameters = numbered.into_iter().map(|(_, parameter)| parameter).collect();
    Ok(())
}

/// Checks that the parameters are in their area, and the area in constant bank 0.
fn check_parameters(file: &File<'_>, function: &Function<'_>) -> Result<(), CubinError> {
    let ParameterArea { offset, bytes, ref parameters } = function.parameters;
    let error = |what: String| Err(CubinError::section(file.sections[function.section].name, 0, what));
    for (number, parameter) in parameters.iter().enumerate() {
        let end = u64::from(parameter.offset) + u64::from(parameter.bytes);
        if end > bytes.into() {
            return error(format!("parameter {number} up to byte {end}, expected it in the {bytes} of all"));
        }
    }
    if let Some(bank) = function.constant_bank(0)
        && bank.image.len() < (offset + bytes) as usize
    {
        let length = bank.image.len();
        return error(format!("{bytes} bytes of parameters from {offset:#x} on, expected them in bank 0, {length:#x}"));
    }
    Ok(())
}

/// Takes in the functions inside the code of others.
fn inner_functions<'data>(
    file: &File<'data>,
    by_section: &[Option<usize>],
    module: &ModuleAttributes,
    functions: &mut [Function<'data>],
) -> Result<(), CubinError> {
    for (index, symbol) in file.symbols.iter().enumerate().filter(|(_, it)| it.kind == SymbolKind::Function) {
        let Some(outer) = symbol.section.and_then(|section| by_section[section]) else { continue };
        let outer = &mut functions[outer];
        if outer.symbol == index {
            continue;
        }
        let (name, offset, bytes) = (symbol.name, symbol.value, symbol.bytes);
        if offset.checked_add(bytes).is_none_or(|end| end > outer.code.len() as u64) {
            let (section, there) = (file.sections[outer.section].name, outer.code.len());
            let what = format!("the function {name} of {bytes} bytes, expected it inside the code's {there:#x} bytes");
            return Err(CubinError::section(section, offset, what));
        }
        let (binding, stack) = (symbol.binding, module.stacks[index]);
        outer.inner.push(InnerFunction { name, symbol: index, binding, offset, bytes, stack });
    }
    functions.iter_mut().for_each(|function| function.inner.sort_by_key(|inner| inner.offset));
    Ok(())
}
