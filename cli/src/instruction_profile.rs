//! What a run counted of each instruction, read back from the folder of the run.

use crate::failure::Failure;
use crate::files;
use crate::output::instructions::{FILE, PLACE, code};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The counter of warp instructions.
const EXECUTED: &str = "inst_executed";
/// What the names of reasons that cycles are charged to begin with.
const STALL: &str = "stall_";
/// The reason of cycles in which the warp issues: no stall.
const ISSUE: &str = "stall_none_selected";

/// The instructions.csv of a run.
#[derive(Debug)]
pub struct InstructionProfile {
    /// The file.
    pub path: PathBuf,
    /// Names of the counters.
    columns: Vec<String>,
    rows: Vec<Row>,
}

/// An instruction of a kernel.
#[derive(Debug)]
struct Row {
    /// Its line in the file.
    at: u64,
    gpu: String,
    kernel: String,
    isa: String,
    function: String,
    code: String,
    address: u64,
    counts: Vec<u64>,
}

/// What ran of a function of a cubin.
#[derive(Debug)]
pub struct FunctionProfile<'a> {
    columns: &'a [String],
    /// Sums over kernels and GPUs, by address.
    counts: BTreeMap<u64, Vec<u64>>,
    /// Cycles of the warps of all kernels that ran it.
    kernel_cycles: u64,
}

/// What ran of an instruction.
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

    /// What ran of the function of a cubin: its name, and the digest of its code.
    pub fn function(&self, name: &str, digest: u64) -> Found<'_> {
        let wanted = code(digest);
        let is_named = |row: &&Row| row.isa == "sass" && row.function == name;
        let mut counts: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut kernels: BTreeSet<(&str, &str)> = BTreeSet::new();
        for row in self.rows.iter().filter(is_named).filter(|row| row.code == wanted) {
            let sums = counts.entry(row.address).or_insert_with(|| vec![0; self.columns.len()]);
            sums.iter_mut().zip(&row.counts).for_each(|(sum, count)| *sum += count);
            kernels.insert((&row.gpu, &row.kernel));
        }
        if counts.is_empty() {
            return self.rows.iter().find(is_named).map_or(Found::Nothing, |row| {
                let Row { at, code, .. } = row;
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
    /// What ran of the instruction at an address.
    pub fn instruction(&self, address: u64) -> Option<InstructionCounts<'_>> {
        let counts = self.counts.get(&address)?;
        Some(InstructionCounts { columns: self.columns, counts, kernel_cycles: self.kernel_cycles })
    }

    /// Warp instructions, and cycles of warps, of all of it.
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

/// Reads the text of a file, or says in which line what is wrong.
fn parse(text: &str, path: &Path) -> Result<InstructionProfile, (u64, String)> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| (1, error.to_string()))?.clone();
    for (place, expected) in PLACE.into_iter().enumerate() {
        let found = header.get(place).unwrap_or_default();
        if found != expected {
            return Err((1, format!("column {} is `{found}`, expected `{expected}`", place + 1)));
        }
    }
    let columns: Vec<String> = header.iter().skip(PLACE.len()).map(str::to_owned).collect();
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
        let number = |place: usize| -> Result<u64, (u64, String)> {
            let (name, field) = (header.get(place).unwrap_or_default(), record.get(place).unwrap_or_default());
            field.parse().map_err(|_| (at, format!("{name} is `{field}`, expected a number")))
        };
        let field = |place: usize| record.get(place).unwrap_or_default().to_owned();
        rows.push(Row {
            at,
            gpu: field(0),
            kernel: field(1),
            isa: field(2),
            function: field(3),
            code: field(4),
            address: number(5)?,
            counts: (PLACE.len()..header.len()).map(number).collect::<Result<_, _>>()?,
        });
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
            ("", 1, "column 1 is ``, expected `gpu`"),
            (&TEXT.replace("isa,", "ISA,"), 1, "column 3 is `ISA`, expected `isa`"),
            (&TEXT.replace("MOV,4,", "MOV,four,"), 2, "inst_executed is `four`, expected a number"),
            (&TEXT.replace("16,,,EXIT,4,4,6,16", "0x10,,,EXIT,4,4,6,16"), 3, "address is `0x10`, expected a number"),
            (&TEXT.replace("RET,2,2,1,1", "RET,2,2"), 4, "11 fields, expected 13"),
        ] {
            assert_eq!(read(text).expect_err(text), (line, problem.to_owned()));
        }
    }
}
