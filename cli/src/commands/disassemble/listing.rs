//! Machine code as text: functions with their instructions, and what ran of them.

use super::images::Images;
use super::source::{CodeSource, is_wanted};
use crate::options::disassemble::{Architecture, ListingFormat, names};
use balar_isa::cubin::{self, Function, IndirectBranch};
use balar_isa::sass::{self, Instruction, Live, Undecodable};
use balar_record::json::to_text;
use balar_record::run_folder::instructions::{Found, FunctionProfile, InstructionCounts, InstructionProfile};
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::{Failure, say};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

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
    /// What ran of it; `None` where it did not run, or where that is not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<FunctionRun>,
    instructions: Vec<InstructionEntry>,
}

/// What ran of a function, as JSON has it.
#[derive(Clone, Copy, Serialize)]
struct FunctionRun {
    inst_executed: u64,
    /// Cycles in which warps issued instructions of it, or waited to.
    warp_cycles: u64,
}

/// What ran of an instruction, as JSON has it.
#[derive(Serialize)]
struct InstructionRun {
    warp_cycles: u64,
    /// The same as a share of the cycles of the warps of the kernels that ran it.
    share: f64,
    hottest_stall: Option<HottestStall>,
    /// Every counter of the run's instructions.
    counters: BTreeMap<String, u64>,
}

/// Why the warps waited longest, as JSON has it.
#[derive(Serialize)]
struct HottestStall {
    reason: String,
    warp_cycles: u64,
}

impl From<InstructionCounts<'_>> for InstructionRun {
    fn from(counts: InstructionCounts<'_>) -> InstructionRun {
        let hottest = counts.hottest_stall();
        InstructionRun {
            warp_cycles: counts.cycles(),
            share: counts.share(),
            hottest_stall: hottest.map(|(reason, warp_cycles)| HottestStall { reason: reason.to_owned(), warp_cycles }),
            counters: counts.counters().map(|(name, count)| (name.to_owned(), count)).collect(),
        }
    }
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
    /// What ran of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<InstructionRun>,
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
    /// Code for this architecture alone.
    pub architecture: Option<Architecture>,
    /// Text or JSON.
    pub format: ListingFormat,
    /// With the bits of each instruction.
    pub with_words: bool,
    /// With how many registers are in use at each instruction.
    pub with_live: bool,
    /// With what instructions did in a run.
    pub run: Option<&'a InstructionProfile>,
}

/// Disassembles files; gives `print` what goes to stdout, piece by piece: of a library, cubin by cubin. Words that are no known
/// instruction are in the listing as such, are counted on stderr, and end with [`ExitStatus::BadInput`], as cubins that are damaged do.
///
/// # Errors
///
/// Where a file holds no machine code of a known architecture, nothing of it ran in the run that is asked for, or `print` fails.
pub fn disassemble(
    sources: &[CodeSource],
    listing: Listing<'_>,
    mut print: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<ExitStatus, Failure> {
    // What is printed only once all is known.
    let mut held = Vec::new();
    let holds = listing.format == ListingFormat::Json || listing.run.is_some();
    let mut is_good = true;
    for CodeSource { name, bytes } in sources {
        let mut others = Vec::new();
        let mut entries = Vec::new();
        let mut unknown = 0;
        let mut printed = Ok(());
        let damaged = each_entry(name, bytes, listing, &mut others, &mut |entry: CubinEntry| {
            let instructions = entry.functions.iter().flat_map(|function| &function.instructions);
            unknown += instructions.filter(|instruction| instruction.text.is_none()).count();
            if holds {
                entries.push(entry);
            } else if printed.is_ok() {
                printed = print(&text(&entry, listing));
            }
        });
        let damaged = damaged.map_err(|error| Failure::input(format_args!("{name}: {error}")))?;
        printed?;
        if let Some(run) = listing.run {
            check_run(name, entries.iter().flat_map(|entry| &entry.functions), others, run)?;
        }
        if unknown > 0 {
            say(format_args!("error: {name}: {unknown} words that are no known instruction"));
        }
        is_good &= unknown == 0 && damaged == 0;
        held.extend(entries);
    }
    match listing.format {
        ListingFormat::Json => print(&to_text(&held))?,
        ListingFormat::Text => held.iter().try_for_each(|entry| print(&text(entry, listing)))?,
    }
    Ok(if is_good { ExitStatus::Done } else { ExitStatus::BadInput })
}

/// Checks that functions of a file ran in a run. `others` says of which of them the run has other code: the name, and a message.
fn check_run<'a>(
    file: &str,
    functions: impl Iterator<Item = &'a FunctionEntry>,
    mut others: Vec<(String, String)>,
    run: &InstructionProfile,
) -> Result<(), Failure> {
    let ran: BTreeSet<&str> = functions.filter(|it| it.run.is_some()).map(|it| it.name.as_str()).collect();
    others.retain(|(name, _)| !ran.contains(name.as_str()));
    if let Some((_, message)) = others.into_iter().next() {
        let help = format!("the run was of another build of {file}, or of other code for it");
        return Err(Failure::mistake(message, help));
    }
    if !ran.is_empty() {
        return Ok(());
    }
    let kernels = run.kernels();
    let what = if kernels.is_empty() { "no kernel".to_owned() } else { kernels.join(", ") };
    let message = format!("{}: nothing that is shown of {file} ran; what ran: {what}", run.path.display());
    Err(match run.has_machine_code() {
        true => Failure::input(message),
        false => Failure::mistake(message, "with --isa sass, kernels run from machine code"),
    })
}

/// Takes the functions of a file, or those of a name, cubin by cubin; or says why there is nothing to show. `other_code` gets those that
/// ran from other code. Gives how many cubins are damaged, which it tells.
fn each_entry(
    file: &str,
    bytes: &[u8],
    listing: Listing<'_>,
    other_code: &mut Vec<(String, String)>,
    take: &mut dyn FnMut(CubinEntry),
) -> Result<usize, String> {
    let name = listing.function;
    let wanted = |architecture| is_wanted(architecture, listing.architecture);
    let images = Images::of(bytes, &wanted)?;
    let (mut read, mut damaged, mut shown) = (0, 0, 0);
    for image in images.iter() {
        let bytes = image.bytes();
        let cubin = bytes.as_deref().map_err(Clone::clone);
        let cubin = cubin.and_then(|bytes| cubin::Cubin::read(bytes).map_err(|error| error.to_string()));
        let cubin = match cubin {
            Ok(cubin) => cubin,
            Err(error) if images.is_one() => return Err(error),
            Err(error) => {
                say(format_args!("error: {file}, {}: {error}", image.name()));
                damaged += 1;
                continue;
            }
        };
        read += 1;
        let architecture = cubin.architecture;
        let wanted = cubin.functions.iter().filter(|function| name.is_none_or(|name| function.name == name));
        let functions: Vec<FunctionEntry> =
            wanted.map(|function| entry(function, architecture, listing, other_code)).collect();
        if !functions.is_empty() {
            shown += 1;
            take(CubinEntry { file: file.to_owned(), architecture, functions });
        }
    }
    let others = images.others();
    let known = || match listing.architecture {
        Some(architecture) => architecture.to_string(),
        None => format!("one of {}", names(sass::ARCHITECTURES)),
    };
    match name {
        _ if read + damaged == 0 && !others.is_empty() => {
            return Err(format!("machine code for {}, expected {}", names(others), known()));
        }
        Some(name) if shown == 0 && damaged == 0 => return Err(format!("no kernel or function {name}")),
        None if read + damaged == 0 => return Err("no machine code".to_owned()),
        None if shown == 0 && damaged == 0 => say(format_args!("note: {file}: its machine code has no functions")),
        _ => {}
    }
    if !others.is_empty() {
        say(format_args!("note: {file}: machine code for {} is left out", names(others)));
    }
    Ok(damaged)
}

fn entry(
    function: &Function<'_>,
    architecture: u32,
    listing: Listing<'_>,
    other_code: &mut Vec<(String, String)>,
) -> FunctionEntry {
    let mut instructions: Vec<InstructionEntry> =
        sass::decode_all(function.code, architecture).map(instruction).collect();
    let found = listing.run.map_or(Found::Nothing, |run| run.function(function.name, function.digest()));
    let profile = match found {
        Found::Ran(profile) => Some(profile),
        Found::OtherCode(message) => {
            other_code.push((function.name.to_owned(), message));
            None
        }
        Found::Nothing => None,
    };
    if let Some(profile) = &profile {
        let of = |address| profile.instruction(address).map(InstructionRun::from);
        instructions.iter_mut().for_each(|instruction| instruction.run = of(instruction.address));
    }
    if listing.with_live {
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
        run: profile
            .as_ref()
            .map(FunctionProfile::sums)
            .map(|(inst_executed, warp_cycles)| FunctionRun { inst_executed, warp_cycles }),
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
        run: None,
    }
}

/// A listing: address, what is in use, what ran, control word, instruction.
fn text(cubin: &CubinEntry, listing: Listing<'_>) -> String {
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
        let columns = function.run.map(|run| RunColumns::of(function, run, listing));
        match (&columns, listing.run) {
            (Some(columns), _) => text.push_str(&columns.header),
            (None, Some(_)) => text.push_str("  // did not run\n"),
            (None, None) => {}
        }
        for (index, instruction) in function.instructions.iter().enumerate() {
            let InstructionEntry { address, word, control, text: instruction, live, .. } = instruction;
            let instruction = instruction.as_deref().unwrap_or("(no known instruction)");
            let shows_word = listing.with_words || instruction.starts_with('(');
            let word = if shows_word { format!("  {word}") } else { String::new() };
            let live = live.map_or_else(String::new, |live| format!("  {live}"));
            let run = columns.as_ref().and_then(|columns| columns.cells.get(index)).map_or("", String::as_str);
            let _ = writeln!(text, "  {address:05x}{word}{live}{run}  {control}  {instruction}");
        }
    }
    text
}

/// What ran, beside the instructions of a function.
struct RunColumns {
    /// Lines before the instructions.
    header: String,
    /// By instruction: executions, share of the cycles, hottest stall and its cycles.
    cells: Vec<String>,
}

impl RunColumns {
    fn of(function: &FunctionEntry, run: FunctionRun, listing: Listing<'_>) -> RunColumns {
        let rows: Vec<[String; 4]> = function.instructions.iter().map(|it| run_cells(it.run.as_ref())).collect();
        let titles = ["executed", "cycles", "hottest stall", "its cycles"];
        let width = |column: usize| {
            let widths = rows.iter().map(|row| row[column].len());
            widths.chain([titles[column].len()]).max().unwrap_or(0)
        };
        let [executed, cycles, stall, stalled] = [0, 1, 2, 3].map(width);
        let line = |row: [&str; 4]| {
            let [a, b, c, d] = row;
            format!("  {a:>executed$}  {b:>cycles$}  {c:<stall$}  {d:>stalled$}")
        };
        let FunctionRun { inst_executed, warp_cycles } = run;
        // As wide as what stands before the cells.
        let word = if listing.with_words { "  ".len() + 33 } else { 0 };
        let live = if function.instructions.iter().any(|it| it.live.is_some()) { "  ".len() + 7 } else { 0 };
        let titles = line(titles);
        let (before, titles) = (" ".repeat("  00000".len() + word + live - "  //".len()), titles.trim_end());
        let header =
            format!("  // {inst_executed} warp instructions in {warp_cycles} warp cycles\n  //{before}{titles}\n");
        RunColumns { header, cells: rows.iter().map(|row| line([&row[0], &row[1], &row[2], &row[3]])).collect() }
    }
}

/// Cells of an instruction.
fn run_cells(run: Option<&InstructionRun>) -> [String; 4] {
    let Some(run) = run else { return Default::default() };
    let executed = run.counters.get("inst_executed").copied().unwrap_or(0);
    let (reason, cycles) = match &run.hottest_stall {
        Some(stall) => (stall.reason.clone(), stall.warp_cycles.to_string()),
        None => ("-".to_owned(), "-".to_owned()),
    };
    let share = if run.warp_cycles == 0 { "-".to_owned() } else { format!("{:.1} %", 100.0 * run.share) };
    [executed.to_string(), share, reason, cycles]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const PLAIN: Listing<'static> = Listing {
        function: None,
        architecture: None,
        format: ListingFormat::Text,
        with_words: false,
        with_live: false,
        run: None,
    };

    /// The functions of a file.
    fn entries(bytes: &[u8], listing: Listing<'_>) -> Result<Vec<CubinEntry>, String> {
        let mut entries = Vec::new();
        each_entry("v", bytes, listing, &mut Vec::new(), &mut |entry| entries.push(entry)).map(|_| entries)
    }

    /// A fatbin with these entries: what each is for, and its bytes.
    fn fatbin(entries: &[(u32, &[u8])]) -> Vec<u8> {
        let mut body = Vec::new();
        for (architecture, data) in entries {
            let padded = data.len().next_multiple_of(8);
            body.extend([2u16, 0x101].iter().flat_map(|number| number.to_le_bytes()));
            body.extend(64u32.to_le_bytes());
            body.extend((padded as u64).to_le_bytes());
            body.extend([0; 12]);
            body.extend(architecture.to_le_bytes());
            body.extend([0; 32]);
            body.extend(*data);
            body.resize(body.len() + padded - data.len(), 0);
        }
        let mut container = balar_isa::fatbin::MAGIC.to_le_bytes().to_vec();
        container.extend([1u16, 16].iter().flat_map(|number| number.to_le_bytes()));
        container.extend((body.len() as u64).to_le_bytes());
        container.extend(body);
        container
    }

    const SM_70: &[u8] = include_bytes!("../../../../isa/tests/cubins/vectoradd.sm_70.cubin");
    const SM_75: &[u8] = include_bytes!("../../../../isa/tests/cubins/vectoradd.sm_75.cubin");

    /// Text of a file of tests.
    fn listing(path: &str, with_words: bool, with_live: bool) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../isa/tests/cubins").join(path);
        let listing = Listing { with_words, with_live, ..PLAIN };
        let mut text = String::new();
        let status = disassemble(&[CodeSource::read(&path).expect("there")], listing, |piece| {
            text.push_str(piece);
            Ok(())
        });
        let status = status.unwrap_or_else(|_| panic!("no cubin"));
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
        let found = entries(SM_75, Listing { function: Some("vectorAdd"), ..PLAIN }).expect("the kernel");
        assert_eq!((found.len(), found[0].functions.len(), found[0].architecture), (1, 1, 75));
        assert_eq!(
            entries(SM_75, Listing { function: Some("vectorSub"), ..PLAIN }).err().as_deref(),
            Some("no kernel or function vectorSub")
        );
    }

    #[test]
    fn what_holds_no_machine_code_is_refused() {
        let error = entries(b"a text", PLAIN).err().unwrap_or_default();
        assert!(error.contains("expected a cubin, a fatbin, or a program"), "{error}");
        let program = std::fs::read(std::env::current_exe().expect("the test")).expect("a file");
        let error = entries(&program, PLAIN).err().unwrap_or_default();
        assert!(error.contains("no section .nv_fatbin"), "{error}");
        let mut other = SM_70.to_vec();
        other[48] = 100;
        let error = entries(&other, PLAIN).err().unwrap_or_default();
        assert_eq!(
            error,
            "machine code for sm_100, expected one of sm_70, sm_72, sm_75, sm_80, sm_86, sm_87, sm_89, sm_90"
        );
    }

    /// Of a library, what is for other GPUs is not read, whatever it is; what is damaged stops nothing.
    #[test]
    fn the_cubins_of_a_library_are_read_one_by_one() {
        let file = fatbin(&[(50, b"no cubin"), (75, SM_75), (70, SM_70), (75, &SM_75[..SM_75.len() / 2])]);
        let architectures = |asked: Option<u32>| {
            let listing = Listing { architecture: asked.map(Architecture), ..PLAIN };
            let mut found = Vec::new();
            let damaged = each_entry("v", &file, listing, &mut Vec::new(), &mut |entry| found.push(entry.architecture));
            (found, damaged)
        };
        assert_eq!(architectures(None), (vec![75, 70], Ok(1)));
        assert_eq!(architectures(Some(70)), (vec![70], Ok(0)));
        let none = "machine code for sm_50, sm_70, sm_75, expected sm_72".to_owned();
        assert_eq!(architectures(Some(72)), (vec![], Err(none)));
    }
}
