//! `disassemble`: the machine code of cubins, of fatbins and of programs that hold some, as text.

use crate::arguments::ListingFormat;
use crate::exit::ExitStatus;
use crate::failure::{Failure, say};
use crate::files;
use crate::output::json::to_text;
use crate::run_folder::instructions::{Found, FunctionProfile, InstructionCounts, InstructionProfile};
use balar_actors::topology::Topology;
use balar_experiments::RequestError;
use balar_isa::cubin::{self, Function, IndirectBranch};
use balar_isa::fatbin::{self, EntryKind};
use balar_isa::sass::{self, Instruction, Live, Undecodable};
use balar_workloads::Cubin;
use object::{Object as _, ObjectSection as _};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
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
    /// Text or JSON.
    pub format: ListingFormat,
    /// With the bits of each instruction.
    pub with_words: bool,
    /// With how many registers are in use at each instruction.
    pub with_live: bool,
    /// With what instructions did in a run.
    pub run: Option<&'a InstructionProfile>,
}

/// What is disassembled.
#[derive(Debug)]
pub struct Source {
    /// The name of the file.
    pub name: String,
    /// A cubin, a fatbin, or a program that holds some.
    pub bytes: Cow<'static, [u8]>,
}

impl Source {
    /// A file of the user.
    ///
    /// # Errors
    ///
    /// Where it cannot be read.
    pub fn read(file: &Path) -> Result<Source, Failure> {
        let name = file.display().to_string();
        let bytes = files::read_bytes(file);
        let bytes = bytes.map_err(|error| Failure::input(format_args!("cannot read {name}: {error}")))?;
        Ok(Source { name, bytes: Cow::Owned(bytes) })
    }

    /// The machine code of a built-in workload: what the GPUs of a topology run, or all of it.
    ///
    /// # Errors
    ///
    /// Where there is no such workload, or it has no machine code for a GPU.
    pub fn of_workload(name: &str, topology: Option<&Topology>) -> Result<Vec<Source>, Failure> {
        let workload = balar_workloads::find(name).map_err(Failure::input)?;
        let mut cubins: Vec<&Cubin> = Vec::new();
        let Some(topology) = topology else {
            return Ok(workload.cubins.iter().map(Source::from).collect());
        };
        for gpu in topology.gpus() {
            let (major, minor) = gpu.compute_capability;
            let cubin = workload.cubin_for(major * 10 + minor).ok_or_else(|| {
                let (workload, gpu) = (workload.name, gpu.part.clone());
                Failure::from(RequestError::NoMachineCode { workload, gpu, major, minor })
            })?;
            if !cubins.iter().any(|known| known.file == cubin.file) {
                cubins.push(cubin);
            }
        }
        Ok(cubins.into_iter().map(Source::from).collect())
    }
}

impl From<&Cubin> for Source {
    fn from(cubin: &Cubin) -> Source {
        Source { name: cubin.file.to_owned(), bytes: Cow::Borrowed(cubin.bytes) }
    }
}

/// Disassembles files; gives what goes to stdout. Words that are no known instruction are in the listing as such, are counted on
/// stderr, and end with [`ExitStatus::BadInput`].
///
/// # Errors
///
/// Where a file holds no machine code of a known architecture, or nothing of it ran in the run that is asked for.
pub fn disassemble(sources: &[Source], listing: Listing<'_>) -> Result<(String, ExitStatus), Failure> {
    let mut all = Vec::new();
    for Source { name, bytes } in sources {
        let mut others = Vec::new();
        let entries = entries(name, bytes, listing, &mut others);
        let entries = entries.map_err(|error| Failure::input(format_args!("{name}: {error}")))?;
        let functions = || entries.iter().flat_map(|entry| &entry.functions);
        if let Some(run) = listing.run {
            check_run(name, functions(), others, run)?;
        }
        let instructions = functions().flat_map(|function| &function.instructions);
        let unknown = instructions.filter(|instruction| instruction.text.is_none()).count();
        if unknown > 0 {
            say(format_args!("error: {name}: {unknown} words that are no known instruction"));
        }
        all.push((entries, unknown));
    }
    let is_known = all.iter().all(|(_, unknown)| *unknown == 0);
    let entries: Vec<CubinEntry> = all.into_iter().flat_map(|(entries, _)| entries).collect();
    let text = match listing.format {
        ListingFormat::Json => to_text(&entries),
        ListingFormat::Text => entries.iter().map(|entry| text(entry, listing)).collect(),
    };
    Ok((text, if is_known { ExitStatus::Done } else { ExitStatus::BadInput }))
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

/// The functions of a file, or those of a name; or why there is nothing to show. `other_code` gets those that ran from other code.
fn entries(
    file: &str,
    bytes: &[u8],
    listing: Listing<'_>,
    other_code: &mut Vec<(String, String)>,
) -> Result<Vec<CubinEntry>, String> {
    let name = listing.function;
    let mut entries = Vec::new();
    let mut others = BTreeSet::new();
    for image in images(bytes)? {
        let cubin = cubin::Cubin::read(&image).map_err(|error| error.to_string())?;
        let architecture = cubin.architecture;
        if !sass::ARCHITECTURES.contains(&architecture) {
            others.insert(architecture);
            continue;
        }
        let wanted = cubin.functions.iter().filter(|function| name.is_none_or(|name| function.name == name));
        let functions: Vec<FunctionEntry> =
            wanted.map(|function| entry(function, architecture, listing, other_code)).collect();
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

    const PLAIN: Listing<'static> =
        Listing { function: None, format: ListingFormat::Text, with_words: false, with_live: false, run: None };

    /// Text of a file of tests.
    fn listing(path: &str, with_words: bool, with_live: bool) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../isa/tests/cubins").join(path);
        let listing = Listing { with_words, with_live, ..PLAIN };
        let (text, status) = disassemble(&[Source::read(&path).expect("there")], listing).expect("a cubin");
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
        let found =
            entries("v", bytes, Listing { function: Some("vectorAdd"), ..PLAIN }, &mut Vec::new()).expect("the kernel");
        assert_eq!((found.len(), found[0].functions.len(), found[0].architecture), (1, 1, 75));
        assert_eq!(
            entries("v", bytes, Listing { function: Some("vectorSub"), ..PLAIN }, &mut Vec::new()).err().as_deref(),
            Some("no kernel or function vectorSub")
        );
    }

    #[test]
    fn what_holds_no_machine_code_is_refused() {
        let error = entries("v", b"a text", PLAIN, &mut Vec::new()).err().unwrap_or_default();
        assert!(error.contains("expected a cubin, a fatbin, or a program"), "{error}");
        let program = std::fs::read(std::env::current_exe().expect("the test")).expect("a file");
        let error = entries("v", &program, PLAIN, &mut Vec::new()).err().unwrap_or_default();
        assert!(error.contains("no section .nv_fatbin"), "{error}");
        let mut other = include_bytes!("../../isa/tests/cubins/vectoradd.sm_70.cubin").to_vec();
        other[48] = 80;
        let error = entries("v", &other, PLAIN, &mut Vec::new()).err().unwrap_or_default();
        assert_eq!(error, "machine code for sm_80, expected one of sm_70, sm_72, sm_75");
    }
}
