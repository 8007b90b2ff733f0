//! `disassemble`: the machine code of cubins, of fatbins and of programs that hold some, as text.

use crate::arguments::ListingFormat;
use crate::exit::ExitStatus;
use crate::failure::{Failure, say};
use crate::files;
use crate::output::json::to_text;
use balar_isa::cubin::{Cubin, Function, IndirectBranch};
use balar_isa::fatbin::{self, EntryKind};
use balar_isa::sass::{self, Instruction, Live, Undecodable};
use object::{Object as _, ObjectSection as _};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::path::Path;

/// The section of a program that holds its fatbins.
const FATBIN_SECTION: &str = ".nv_fatbin";

/// A cubin, as JSON has it.
#[derive(Serialize)]
struct CubinEntry {
    file: String,
    architecture: u32,
    functions: Vec<FunctionEntry>,
}

/// A function, as JSON has it.
#[derive(Serialize)]
struct FunctionEntry {
    name: String,
    is_kernel: bool,
    registers: u32,
    barriers: u32,
    shared_bytes: u64,
    parameter_bytes: u32,
    instructions: Vec<InstructionEntry>,
}

/// An instruction, as JSON has it.
#[derive(Serialize)]
struct InstructionEntry {
    address: u64,
    /// Its 128 bits, the upper half first.
    word: String,
    /// When it issues.
    control: String,
    /// `None` where no encoding is known.
    text: Option<String>,
    /// What is in use at it. `None` where this is not asked for, or where the function has a word that is no known instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<LiveEntry>,
}

/// How much is in use at an instruction, as JSON has it.
#[derive(Clone, Copy, Serialize)]
struct LiveEntry {
    registers: u32,
    predicates: u32,
    uniform_registers: u32,
    uniform_predicates: u32,
}

/// `12R 1P`: general registers, predicates.
impl fmt::Display for LiveEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>3}R {}P", self.registers, self.predicates)
    }
}

/// What is asked of a listing.
#[derive(Clone, Copy, Debug)]
pub struct Listing<'a> {
    /// Kernels and functions of this name alone.
    pub function: Option<&'a str>,
    /// Text or JSON.
    pub format: ListingFormat,
    /// With the bits of each instruction.
    pub with_words: bool,
    /// With how many registers are in use at each instruction.
    pub with_live: bool,
}

/// Disassembles `file`; gives what goes to stdout. Words that are no known instruction are in the listing as such, are counted on
/// stderr, and end with [`ExitStatus::BadInput`].
pub fn disassemble(file: &Path, listing: Listing<'_>) -> Result<(String, ExitStatus), Failure> {
    let name = file.display().to_string();
    let bytes = files::read_bytes(file).map_err(|error| Failure::input(format_args!("cannot read {name}: {error}")))?;
    let entries = entries(&name, &bytes, listing.function, listing.with_live);
    let entries = entries.map_err(|error| Failure::input(format_args!("{name}: {error}")))?;
    let all = entries.iter().flat_map(|entry| &entry.functions).flat_map(|function| &function.instructions);
    let unknown = all.filter(|instruction| instruction.text.is_none()).count();
    if unknown > 0 {
        say(format_args!("error: {name}: {unknown} words that are no known instruction"));
    }
    let text = match listing.format {
        ListingFormat::Json => to_text(&entries),
        ListingFormat::Text => entries.iter().map(|entry| text(entry, listing.with_words)).collect(),
    };
    Ok((text, if unknown > 0 { ExitStatus::BadInput } else { ExitStatus::Done }))
}

/// The functions of a file, or those of a name; or why there is nothing to show.
fn entries(file: &str, bytes: &[u8], name: Option<&str>, with_live: bool) -> Result<Vec<CubinEntry>, String> {
    let mut entries = Vec::new();
    let mut others = BTreeSet::new();
    for image in images(bytes)? {
        let cubin = Cubin::read(&image).map_err(|error| error.to_string())?;
        let architecture = cubin.architecture;
        if !sass::ARCHITECTURES.contains(&architecture) {
            others.insert(architecture);
            continue;
        }
        let wanted = cubin.functions.iter().filter(|function| name.is_none_or(|name| function.name == name));
        let functions: Vec<FunctionEntry> = wanted.map(|function| entry(function, architecture, with_live)).collect();
        if !functions.is_empty() {
            entries.push(CubinEntry { file: file.to_owned(), architecture, functions });
        }
    }
    let words = |architectures: &mut dyn Iterator<Item = u32>| {
        architectures.map(|architecture| format!("sm_{architecture}")).collect::<Vec<_>>().join(", ")
    };
    if entries.is_empty() {
        return Err(match name {
            _ if !others.is_empty() => {
                let (found, known) = (words(&mut others.into_iter()), words(&mut sass::ARCHITECTURES.into_iter()));
                format!("machine code for {found}, expected one of {known}")
            }
            Some(name) => format!("no kernel or function {name}"),
            None => "no machine code".to_owned(),
        });
    }
    if !others.is_empty() {
        say(format_args!("note: {file}: machine code for {} is left out", words(&mut others.into_iter())));
    }
    Ok(entries)
}

/// The cubins that a file holds.
fn images(bytes: &[u8]) -> Result<Vec<Cow<'_, [u8]>>, String> {
    if fatbin::cubin(bytes).is_some() {
        return Ok(vec![Cow::Borrowed(bytes)]);
    }
    let fatbins = if bytes.starts_with(&fatbin::MAGIC.to_le_bytes()) {
        bytes
    } else {
        let expected = "expected a cubin, a fatbin, or a program or library with device code";
        let program = object::File::parse(bytes).map_err(|_| expected.to_owned())?;
        let section = program.section_by_name(FATBIN_SECTION);
        let data = section.and_then(|section| section.data().ok());
        data.ok_or_else(|| format!("no section {FATBIN_SECTION}: {expected}"))?
    };
    let containers = fatbin::containers(fatbins).map_err(|error| error.to_string())?;
    let entries = containers.iter().flat_map(|container| &container.entries);
    let cubins = entries.filter(|entry| matches!(entry.kind, EntryKind::Elf));
    cubins.map(|entry| entry.data().map(Cow::Owned).map_err(|error| error.to_string())).collect()
}

fn entry(function: &Function<'_>, architecture: u32, with_live: bool) -> FunctionEntry {
    let mut instructions: Vec<InstructionEntry> =
        sass::decode_all(function.code, architecture).map(instruction).collect();
    if with_live {
        let live = live(function, architecture).into_iter().flatten();
        instructions.iter_mut().zip(live).for_each(|(instruction, live)| instruction.live = Some(live));
    }
    FunctionEntry {
        name: function.name.to_owned(),
        is_kernel: function.is_entry,
        registers: function.registers,
        barriers: function.barriers,
        shared_bytes: function.shared_memory.bytes,
        parameter_bytes: function.parameters.bytes,
        instructions,
    }
}

/// What is in use at each instruction of a function; `None` where a word of it is no known instruction.
fn live(function: &Function<'_>, architecture: u32) -> Option<Vec<LiveEntry>> {
    let code: Vec<Instruction> = sass::decode_all(function.code, architecture).collect::<Result<_, _>>().ok()?;
    let targets = |branch: &IndirectBranch| branch.targets.iter().map(|&target| u64::from(target)).collect();
    let indirect = function.indirect_branches.iter().map(|branch| (u64::from(branch.offset), targets(branch)));
    let live = sass::live(&code, &indirect.collect());
    let entries = live.iter().map(|Live { during, .. }| LiveEntry {
        registers: during.general_count(),
        predicates: during.predicates.count_ones(),
        uniform_registers: during.uniform.count_ones(),
        uniform_predicates: during.uniform_predicates.count_ones(),
    });
    Some(entries.collect())
}

fn instruction(decoded: Result<Instruction, Undecodable>) -> InstructionEntry {
    let (address, word) = match &decoded {
        Ok(instruction) => (instruction.address(), instruction.word()),
        Err(unknown) => (unknown.address, unknown.word),
    };
    InstructionEntry {
        address,
        word: word.to_string(),
        control: word.control().to_string(),
        text: decoded.ok().map(|instruction| instruction.to_string()),
        live: None,
    }
}

/// A listing: address, what is in use, control word, instruction.
fn text(cubin: &CubinEntry, with_words: bool) -> String {
    let mut text = format!("// {}, sm_{}\n", cubin.file, cubin.architecture);
    for function in &cubin.functions {
        let FunctionEntry { name, registers, barriers, shared_bytes, parameter_bytes, .. } = function;
        let kind = if function.is_kernel { "kernel" } else { "function" };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "\n{kind} {name}: {registers} registers, {barriers} barriers, {shared_bytes} bytes of shared memory, \
             {parameter_bytes} bytes of parameters"
        );
        for InstructionEntry { address, word, control, text: instruction, live } in &function.instructions {
            let instruction = instruction.as_deref().unwrap_or("(no known instruction)");
            let shows_word = with_words || instruction.starts_with('(');
            let word = if shows_word { format!("  {word}") } else { String::new() };
            let live = live.map_or_else(String::new, |live| format!("  {live}"));
            let _ = writeln!(text, "  {address:05x}{word}{live}  {control}  {instruction}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text of a file of tests.
    fn listing(path: &str, with_words: bool, with_live: bool) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../isa/tests/cubins").join(path);
        let listing = Listing { function: None, format: ListingFormat::Text, with_words, with_live };
        let (text, status) = disassemble(&path, listing).expect("a cubin");
        assert_eq!(status, ExitStatus::Done);
        text
    }

    #[test]
    fn a_cubin_is_text() {
        let text = listing("vectoradd.sm_70.cubin", false, false);
        assert!(text.contains("\nkernel vectorAdd: 12 registers, 0 barriers, "), "{text}");
        assert!(text.contains("\n  00040  B0-----:R-:W-:Y:S05  IMAD R6, R6, c[0x0][0x0], R3\n"), "{text}");
        let text = listing("vectoradd.sm_70.cubin", true, false);
        let first = "\n  00000  000fe40000000f00 00000a0000017a02  B------:R-:W-:-:S02  MOV R1, c[0x0][0x28]\n";
        assert!(text.contains(first), "{text}");
    }

    /// The counts are those that NVIDIA's disassembler prints with `--print-life-ranges`.
    #[test]
    fn what_is_in_use_stands_beside_an_instruction() {
        let text = listing("vectoradd.sm_70.cubin", false, true);
        assert!(text.contains("\n  00050    2R 1P  B------:R-:W-:Y:S12  ISETP.GE.AND P0, "), "{text}");
        assert!(text.contains("\n  000a0    7R 0P  B------:R-:W2:-:S04  LDG.E.SYS R4, [R4]\n"), "{text}");
    }

    #[test]
    fn a_name_chooses_a_function() {
        let bytes = include_bytes!("../../isa/tests/cubins/vectoradd.sm_75.cubin");
        let found = entries("v", bytes, Some("vectorAdd"), false).expect("the kernel");
        assert_eq!((found.len(), found[0].functions.len(), found[0].architecture), (1, 1, 75));
        assert_eq!(
            entries("v", bytes, Some("vectorSub"), false).err().as_deref(),
            Some("no kernel or function vectorSub")
        );
    }

    #[test]
    fn what_holds_no_machine_code_is_refused() {
        let error = entries("v", b"a text", None, false).err().unwrap_or_default();
        assert!(error.contains("expected a cubin, a fatbin, or a program"), "{error}");
        let program = std::fs::read(std::env::current_exe().expect("the test")).expect("a file");
        let error = entries("v", &program, None, false).err().unwrap_or_default();
        assert!(error.contains("no section .nv_fatbin"), "{error}");
        let mut other = include_bytes!("../../isa/tests/cubins/vectoradd.sm_70.cubin").to_vec();
        other[48] = 80;
        let error = entries("v", &other, None, false).err().unwrap_or_default();
        assert_eq!(error, "machine code for sm_80, expected one of sm_70, sm_72, sm_75");
    }
}
