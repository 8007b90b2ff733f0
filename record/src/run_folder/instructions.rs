//! The counts of each instruction in a run, read back from the folder of the run.

use crate::run_folder::instruction_table::{CALL_SEPARATOR, FILE, PLACE, code};
use crate::system::failure::Failure;
use crate::system::files;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The counter of warp instructions.
pub const EXECUTED: &str = "inst_executed";
/// The beginning of the names of reasons that cycles are charged to.
pub const STALL: &str = "stall_";
/// The reason of cycles in which the warp issues: no stall.
pub const ISSUE: &str = "stall_none_selected";
/// Columns that files of earlier versions lack.
const OPTIONAL: [&str; 4] = ["source_file", "source_line", "source_function", "inlined_at"];

/// The instructions.csv of a run.
#[derive(Debug)]
pub struct InstructionProfile {
    /// The file.
    pub path: PathBuf,
    /// Names of the counters.
    pub columns: Vec<String>,
    /// Its lines.
    pub rows: Vec<ProfileRow>,
}

/// An instruction of a kernel.
#[derive(Clone, Debug)]
pub struct ProfileRow {
    /// Its line in the file.
    pub at: u64,
    /// Path of the GPU.
    pub gpu: String,
    /// The kernel.
    pub kernel: String,
    /// "sass" or "ptx".
    pub isa: String,
    /// The function that it is in.
    pub function: String,
    /// Tells the function's code from other code.
    pub code: String,
    /// Its address in the function; for PTX its number in the program.
    pub address: u64,
    /// For PTX, its place: the file and the line.
    pub ptx: Option<SourceLine>,
    /// The line of a source file that it was compiled from, where the code says so.
    pub source: Option<SourceLine>,
    /// The function whose source that line is of: one that was inlined, or that the instruction is in.
    pub source_function: String,
    /// Where that function was called, where it was inlined: the callers, innermost first.
    pub inlined_at: Vec<CallSite>,
    /// Its text.
    pub text: String,
    /// The counts, in the order of the columns.
    pub counts: Vec<u64>,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLine {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
}

/// Where a function was called that was inlined.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallSite {
    /// The caller.
    pub function: String,
    /// The line of the call.
    pub line: SourceLine,
}

/// The instructions of a function of a cubin that ran.
#[derive(Debug)]
pub struct FunctionProfile<'a> {
    columns: &'a [String],
    /// Sums over kernels and GPUs, by address.
    counts: BTreeMap<u64, Vec<u64>>,
    /// Cycles of the warps of all kernels that ran it.
    kernel_cycles: u64,
}

/// The counts of an instruction that ran.
#[derive(Debug)]
pub struct InstructionCounts<'a> {
    columns: &'a [String],
    counts: &'a [u64],
    kernel_cycles: u64,
}

/// The function of a cubin in a run.
#[derive(Debug)]
pub enum Found<'a> {
    /// It ran.
    Ran(FunctionProfile<'a>),
    /// Other code of the same name ran: a message.
    OtherCode(String),
    /// It did not run.
    Nothing,
}

impl InstructionProfile {
    /// Reads that of the run whose folder this is.
    ///
    /// # Errors
    ///
    /// Where the file is missing, or a line is not as it should be.
    pub fn read(folder: &Path) -> Result<InstructionProfile, Failure> {
        let path = folder.join(FILE);
        let text = files::read(&path).map_err(|error| {
            let help = "a run with --profile-instructions --output DIR writes it";
            Failure::mistake(format_args!("cannot read {}: {error}", path.display()), help)
        })?;
        parse(&text, &path)
            .map_err(|(line, problem)| Failure::input(format_args!("{}, line {line}: {problem}", path.display())))
    }

    /// The counts of the function of a cubin, by its name and the digest of its code.
    pub fn function(&self, name: &str, digest: u64) -> Found<'_> {
        let wanted = code(digest);
        let is_named = |row: &&ProfileRow| row.isa == "sass" && row.function == name;
        let mut counts: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut kernels: BTreeSet<(&str, &str)> = BTreeSet::new();
        for row in self.rows.iter().filter(is_named).filter(|row| row.code == wanted) {
            let sums = counts.entry(row.address).or_insert_with(|| vec![0; self.columns.len()]);
            sums.iter_mut().zip(&row.counts).for_each(|(sum, count)| *sum += count);
            kernels.insert((&row.gpu, &row.kernel));
        }
        if counts.is_empty() {
            return self.rows.iter().find(is_named).map_or(Found::Nothing, |row| {
                let ProfileRow { at, code, .. } = row;
                Found::OtherCode(format!(
                    "{}, line {at}: {name} ran from other code (digest {code}, expected {wanted})",
                    self.path.display()
                ))
            });
        }
        let of_kernels = self.rows.iter().filter(|row| row.isa == "sass");
        let of_kernels = of_kernels.filter(|row| kernels.contains(&(&*row.gpu, &*row.kernel)));
        let kernel_cycles = of_kernels.map(|row| cycles(&self.columns, &row.counts)).sum();
        Found::Ran(FunctionProfile { columns: &self.columns, counts, kernel_cycles })
    }

    /// Did machine code run?
    pub fn has_machine_code(&self) -> bool {
        self.rows.iter().any(|row| row.isa == "sass")
    }

    /// The kernels that ran, each with the kind of its code: `gemm (sass)`.
    pub fn kernels(&self) -> Vec<String> {
        let kernels: BTreeSet<(&str, &str)> = self.rows.iter().map(|row| (&*row.kernel, &*row.isa)).collect();
        kernels.into_iter().map(|(kernel, isa)| format!("{kernel} ({isa})")).collect()
    }
}

impl FunctionProfile<'_> {
    /// The counts of the instruction at an address.
    pub fn instruction(&self, address: u64) -> Option<InstructionCounts<'_>> {
        let counts = self.counts.get(&address)?;
        Some(InstructionCounts { columns: self.columns, counts, kernel_cycles: self.kernel_cycles })
    }

    /// Warp instructions, and cycles of warps, of the whole profile.
    pub fn sums(&self) -> (u64, u64) {
        let executed = self.counts.values().map(|counts| value(self.columns, counts, EXECUTED)).sum();
        (executed, self.counts.values().map(|counts| cycles(self.columns, counts)).sum())
    }
}

impl InstructionCounts<'_> {
    /// How often warps executed it.
    pub fn executed(&self) -> u64 {
        value(self.columns, self.counts, EXECUTED)
    }

    /// Cycles in which warps issued it, or waited to.
    pub fn cycles(&self) -> u64 {
        cycles(self.columns, self.counts)
    }

    /// The same as a share of the cycles of all warps of the kernels that ran it.
    pub fn share(&self) -> f64 {
        if self.kernel_cycles == 0 { 0.0 } else { self.cycles() as f64 / self.kernel_cycles as f64 }
    }

    /// Why warps waited longest, and for how many cycles; `None` where they did not wait.
    pub fn hottest_stall(&self) -> Option<(&str, u64)> {
        let stalls = self.counters().filter(|(name, count)| name.starts_with(STALL) && *name != ISSUE && *count > 0);
        // The first of equal ones.
        let (name, count) = stalls.reduce(|hottest, stall| if stall.1 > hottest.1 { stall } else { hottest })?;
        Some((&name[STALL.len()..], count))
    }

    /// All counters by name.
    pub fn counters(&self) -> impl Iterator<Item = (&str, u64)> {
        self.columns.iter().map(String::as_str).zip(self.counts.iter().copied())
    }
}

fn value(columns: &[String], counts: &[u64], name: &str) -> u64 {
    columns.iter().zip(counts).find(|(column, _)| *column == name).map_or(0, |(_, &count)| count)
}

fn cycles(columns: &[String], counts: &[u64]) -> u64 {
    columns.iter().zip(counts).filter(|(column, _)| column.starts_with(STALL)).map(|(_, count)| count).sum()
}

/// The places of fields in a line of the file.
struct Layout {
    /// The places of the columns of [`PLACE`] that are there.
    places: [Option<usize>; PLACE.len()],
    /// The first counter.
    counters: usize,
}

impl Layout {
    fn of(header: &csv::StringRecord) -> Result<Layout, String> {
        let find = |name: &str| header.iter().position(|column| column == name);
        let places = PLACE.map(find);
        for (name, place) in PLACE.iter().zip(places) {
            if place.is_none() && !OPTIONAL.contains(name) {
                return Err(format!("there is no column `{name}`"));
            }
        }
        let counters = places.iter().flatten().max().map_or(0, |last| last + 1);
        Ok(Layout { places, counters })
    }

    fn field<'a>(&self, record: &'a csv::StringRecord, name: &str) -> &'a str {
        let place = PLACE.iter().position(|column| *column == name).and_then(|column| self.places[column]);
        place.and_then(|place| record.get(place)).unwrap_or_default()
    }

    /// The line of a file that two columns name; `None` where they are empty.
    fn line(&self, record: &csv::StringRecord, names: [&str; 2]) -> Result<Option<SourceLine>, String> {
        let [file, line] = names.map(|name| self.field(record, name));
        if file.is_empty() && line.is_empty() {
            return Ok(None);
        }
        Ok(Some(SourceLine { file: file.to_owned(), line: number(names[1], line)? }))
    }
}

fn number<T: std::str::FromStr>(name: &str, field: &str) -> Result<T, String> {
    field.parse().map_err(|_| format!("{name} is `{field}`, expected a number"))
}

/// The callers of a chain: `caller@file:line`, innermost first.
fn call_sites(text: &str) -> Result<Vec<CallSite>, String> {
    let site = |site: &str| {
        let (function, place) = site.split_once('@')?;
        let (file, line) = place.rsplit_once(':')?;
        let line = SourceLine { file: file.to_owned(), line: line.parse().ok()? };
        Some(CallSite { function: function.to_owned(), line })
    };
    let sites = text.split(CALL_SEPARATOR).filter(|site| !site.is_empty());
    sites
        .map(|text| site(text).ok_or_else(|| format!("inlined_at has `{text}`, expected FUNCTION@FILE:LINE")))
        .collect()
}

/// The instruction of a line of the file.
fn row(layout: &Layout, header: &csv::StringRecord, record: &csv::StringRecord, at: u64) -> Result<ProfileRow, String> {
    let field = |name: &str| layout.field(record, name).to_owned();
    let counts = header.iter().zip(record).skip(layout.counters);
    Ok(ProfileRow {
        at,
        gpu: field("gpu"),
        kernel: field("kernel"),
        isa: field("isa"),
        function: field("function"),
        code: field("code"),
        address: number("address", layout.field(record, "address"))?,
        ptx: layout.line(record, ["file", "line"])?,
        source: layout.line(record, ["source_file", "source_line"])?,
        source_function: Some(field("source_function"))
            .filter(|it| !it.is_empty())
            .unwrap_or_else(|| field("function")),
        inlined_at: call_sites(layout.field(record, "inlined_at"))?,
        text: field("text"),
        counts: counts.map(|(name, count)| number(name, count)).collect::<Result<_, _>>()?,
    })
}

/// Reads the text of a file, or says which mistake is in which line.
pub fn parse(text: &str, path: &Path) -> Result<InstructionProfile, (u64, String)> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| (1, error.to_string()))?.clone();
    let layout = Layout::of(&header).map_err(|problem| (1, problem))?;
    let columns: Vec<String> = header.iter().skip(layout.counters).map(str::to_owned).collect();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| {
            let line = error.position().map_or(0, csv::Position::line);
            let problem = match error.kind() {
                csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                    format!("{len} fields, expected {expected_len}")
                }
                _ => error.to_string(),
            };
            (line, problem)
        })?;
        let at = record.position().map_or(0, csv::Position::line);
        rows.push(row(&layout, &header, &record, at).map_err(|problem| (at, problem))?);
    }
    Ok(InstructionProfile { path: path.to_owned(), columns, rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
gpu,kernel,isa,function,code,address,file,line,text,inst_executed,stall_none_selected,stall_wait,stall_long_scoreboard
gpu,k,sass,k,00000000000000ab,0,,,MOV,4,4,2,0
gpu,k,sass,k,00000000000000ab,16,,,EXIT,4,4,6,16
gpu,k,sass,helper,00000000000000cd,0,,,RET,2,2,1,1
gpu[1],k,sass,k,00000000000000ab,16,,,EXIT,1,1,0,0
gpu,p,ptx,p,00000000000000ef,0,k.ptx,7,exit;,1,1,0,0
";

    fn read(text: &str) -> Result<InstructionProfile, (u64, String)> {
        parse(text, Path::new("out/instructions.csv"))
    }

    #[test]
    fn instructions_are_sums_over_gpus() {
        let profile = read(TEXT).expect("a file");
        let Found::Ran(function) = profile.function("k", 0xab) else { panic!("it ran") };
        let exit = function.instruction(16).expect("it ran");
        assert_eq!((exit.executed(), exit.cycles(), exit.hottest_stall()), (5, 27, Some(("long_scoreboard", 16))));
        // Of 37 cycles of both kernels.
        assert_eq!((function.sums(), exit.share()), ((9, 33), 27.0 / 37.0));
        assert!(function.instruction(32).is_none());
        assert_eq!(profile.kernels(), ["k (sass)", "p (ptx)"]);
    }

    #[test]
    fn lines_and_calls_are_read() {
        let text = "gpu,kernel,isa,function,code,address,file,line,source_file,source_line,source_function,inlined_at,text,\
                    inst_executed\ngpu,k,sass,k,ab,0,,,a b.h,7,f,g@c:d.cu:9;k@k.cu:3,FADD,4\n";
        let profile = read(text).expect("a file");
        let [row] = &profile.rows[..] else { panic!("one instruction") };
        let line = |file: &str, line| SourceLine { file: file.to_owned(), line };
        assert_eq!((&row.source, &row.ptx, &*row.source_function), (&Some(line("a b.h", 7)), &None, "f"));
        let site = |function: &str, line| CallSite { function: function.to_owned(), line };
        assert_eq!(row.inlined_at, [site("g", line("c:d.cu", 9)), site("k", line("k.cu", 3))]);
        assert_eq!((&profile.columns[..], &row.counts[..]), (&["inst_executed".to_owned()][..], &[4][..]));
        let problem = "inlined_at has `9`, expected FUNCTION@FILE:LINE".to_owned();
        assert_eq!(read(&text.replace("g@c:d.cu:9", "9")).expect_err("no site"), (2, problem));
        // A file of an earlier version has no such columns.
        let rows = read(TEXT).expect("a file").rows;
        assert_eq!(
            (&*rows[2].source_function, &rows[2].source, &rows[4].ptx),
            ("helper", &None, &Some(line("k.ptx", 7)))
        );
    }

    #[test]
    fn other_code_is_told() {
        let profile = read(TEXT).expect("a file");
        let Found::OtherCode(message) = profile.function("helper", 0xce) else { panic!("it is other code") };
        let expected = "out/instructions.csv, line 4: helper ran from other code (digest 00000000000000cd, \
                        expected 00000000000000ce)";
        assert_eq!(message, expected);
        assert!(matches!(profile.function("p", 0xef), Found::Nothing), "PTX is no function of a cubin");
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, line, problem) in [
            ("", 1, "there is no column `gpu`"),
            (&TEXT.replace("isa,", "ISA,"), 1, "there is no column `isa`"),
            (&TEXT.replace("k.ptx,7", "k.ptx,x"), 6, "line is `x`, expected a number"),
            (&TEXT.replace("MOV,4,", "MOV,four,"), 2, "inst_executed is `four`, expected a number"),
            (&TEXT.replace("16,,,EXIT,4,4,6,16", "0x10,,,EXIT,4,4,6,16"), 3, "address is `0x10`, expected a number"),
            (&TEXT.replace("RET,2,2,1,1", "RET,2,2"), 4, "11 fields, expected 13"),
        ] {
            assert_eq!(read(text).expect_err(text), (line, problem.to_owned()));
        }
    }
}
