//! `disassemble --check`: what of the machine code of files is not known or cannot be executed.

use super::images::Images;
use super::source::{CodeSource, is_wanted};
use crate::options::disassemble::{Architecture, ListingFormat, names};
use balar_isa::cubin::Cubin;
use balar_isa::machine::{MachineError, MachineModule, Placement, RefusedWord, refused_words};
use balar_isa::module::VariableKind;
use balar_isa::sass;
use balar_record::json::to_text;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::Failure;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

/// What was found in the machine code of a file for an architecture.
#[derive(Debug, Default, Serialize)]
struct Findings {
    file: String,
    architecture: u32,
    cubins: u64,
    kernels: u64,
    /// Functions that are no kernels.
    functions: u64,
    words: u64,
    /// Cubins that cannot be read.
    damaged: Vec<String>,
    /// Words that are no known instruction, by their code.
    unknown: Groups,
    /// Instructions that are known and cannot be executed.
    not_executed: Groups,
    /// Kernels that cannot run, by why.
    refused_kernels: Groups,
}

/// What was found several times: what it is and why, how often, and where first.
#[derive(Debug, Default)]
struct Groups(BTreeMap<(String, String), (u64, String)>);

/// A line of [`Groups`], as JSON has it.
#[derive(Serialize)]
struct Group<'a> {
    what: &'a str,
    why: &'a str,
    count: u64,
    first: &'a str,
}

impl Groups {
    fn add(&mut self, what: String, why: String, place: impl FnOnce() -> String) {
        self.0.entry((what, why)).or_insert_with(|| (0, place())).0 += 1;
    }

    fn count(&self) -> u64 {
        self.0.values().map(|(count, _)| count).sum()
    }

    fn lines(&self) -> Vec<Group<'_>> {
        let lines = self.0.iter().map(|((what, why), (count, first))| Group { what, why, count: *count, first });
        lines.collect()
    }
}

impl Serialize for Groups {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.lines().serialize(serializer)
    }
}

/// Decodes and lowers all machine code of files, cubin by cubin; gives what goes to stdout. What is missing ends with
/// [`ExitStatus::BadInput`].
///
/// # Errors
///
/// Where a file holds no machine code of a known architecture.
pub fn check(
    sources: &[CodeSource],
    architecture: Option<Architecture>,
    format: ListingFormat,
) -> Result<(String, ExitStatus), Failure> {
    let wanted = |it| is_wanted(it, architecture);
    let mut all = Vec::new();
    for CodeSource { name, bytes } in sources {
        let failure = |error: String| Failure::input(format_args!("{name}: {error}"));
        let images = Images::of(bytes, &wanted).map_err(failure)?;
        let mut findings: BTreeMap<u32, Findings> = BTreeMap::new();
        for image in images.iter() {
            let found = findings.entry(image.architecture).or_insert_with(|| Findings {
                file: name.clone(),
                architecture: image.architecture,
                ..Findings::default()
            });
            found.cubins += 1;
            if let Err(error) = image.bytes().and_then(|bytes| found.add(&image.name(), Arc::from(&*bytes))) {
                found.damaged.push(format!("{}: {error}", image.name()));
            }
        }
        if findings.is_empty() {
            let others = images.others();
            return Err(failure(match others.is_empty() {
                true => "no machine code".to_owned(),
                false => format!("machine code for {} alone", names(others)),
            }));
        }
        all.extend(findings.into_values());
    }
    let is_good = all.iter().all(Findings::is_good);
    let text = match format {
        ListingFormat::Json => to_text(&all),
        ListingFormat::Text => all.iter().map(Findings::text).collect(),
    };
    Ok((text, if is_good { ExitStatus::Done } else { ExitStatus::BadInput }))
}

impl Findings {
    /// Adds what is found in a cubin.
    fn add(&mut self, image: &str, bytes: Arc<[u8]>) -> Result<(), String> {
        let cubin = Cubin::read(&bytes).map_err(|error| error.to_string())?;
        for function in &cubin.functions {
            *(if function.is_entry { &mut self.kernels } else { &mut self.functions }) += 1;
            for decoded in sass::decode_all(function.code, cubin.architecture) {
                self.words += 1;
                if let Err(unknown) = decoded {
                    let (word, address) = (unknown.word, unknown.address);
                    let place = || format!("{image}, {}+{address:#x}: {word}", function.name);
                    self.unknown.add(format!("{:03x}", word.code()), "no known instruction".to_owned(), place);
                }
            }
        }
        let module = MachineModule::read([Arc::clone(&bytes)]).map_err(|error| error.to_string())?;
        let addresses: Vec<u64> = (0..).zip(module.placements()).map(address).collect();
        let mut told = BTreeSet::new();
        // The functions of a program are those of the next one as long as it is there.
        let mut _program = None;
        for kernel in module.kernels() {
            match module.program(kernel, &addresses) {
                Ok(program) => _program = Some(program),
                Err(error) => {
                    let why = match &error {
                        MachineError::Lowering(_) => "instructions that are not known or not executed".to_owned(),
                        other => other.to_string(),
                    };
                    self.refused_kernels.add("kernel".to_owned(), why, || format!("{image}, {kernel}: {error}"));
                    if matches!(error, MachineError::Lowering(_)) {
                        let code = module.code(kernel, &addresses).map_err(|error| error.to_string())?;
                        refused_words(&code).into_iter().for_each(|word| self.add_word(image, word, &mut told));
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds a word that is not executed, once for all kernels that have it.
    fn add_word(&mut self, image: &str, refused: RefusedWord, told: &mut BTreeSet<(String, u64)>) {
        let RefusedWord { function, address, word, instruction: Some(instruction), why } = refused else { return };
        if told.insert((function.clone(), address)) {
            let place = || format!("{image}, {function}+{address:#x}: {word} {instruction}");
            self.not_executed.add(instruction.name(), why, place);
        }
    }

    fn is_good(&self) -> bool {
        let missing = self.unknown.count() + self.not_executed.count() + self.refused_kernels.count();
        missing == 0 && self.damaged.is_empty()
    }

    fn text(&self) -> String {
        let Findings { file, architecture, cubins, kernels, functions, words, .. } = self;
        let mut text = format!(
            "{file}, sm_{architecture}: {cubins} cubins, {kernels} kernels, {functions} other functions, {words} words\n"
        );
        let counts = [
            (self.unknown.count(), "words that are no known instruction"),
            (self.not_executed.count(), "instructions that are not executed"),
            (self.refused_kernels.count(), "kernels that cannot run"),
            (self.damaged.len() as u64, "cubins that cannot be read"),
        ];
        // Writing to a string does not fail.
        for (count, what) in counts {
            let _ = writeln!(text, "{count:>8}  {what}");
        }
        for groups in [&self.unknown, &self.not_executed, &self.refused_kernels] {
            for Group { what, why, count, first } in groups.lines() {
                let _ = writeln!(text, "{count:>8}  {what}: {why}; first: {first}");
            }
        }
        for line in &self.damaged {
            let _ = writeln!(text, "          {line}");
        }
        text
    }
}

/// An address for a section, or a number for a reference: any will do.
fn address((index, placement): (u64, &Placement)) -> u64 {
    match placement.kind {
        VariableKind::Texture | VariableKind::Sampler | VariableKind::Surface => (1 << 31) + index,
        _ => (0x7f00 << 32) + (index << 32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    const SM_75: &[u8] = include_bytes!("../../../../isa/tests/cubins/vectoradd.sm_75.cubin");

    /// What is said of a cubin, and whether nothing is missing.
    fn checked(bytes: &[u8]) -> (String, ExitStatus) {
        let source = CodeSource { name: "v".to_owned(), bytes: Cow::Owned(bytes.to_vec()) };
        check(&[source], None, ListingFormat::Text).unwrap_or_else(|_| panic!("no cubin"))
    }

    /// The cubin with another word in place of `FADD R9, R4, R3`.
    fn with_word(word: u128) -> Vec<u8> {
        let fadd = 0x004f_d000_0000_0000_0000_0003_0409_7221_u128.to_le_bytes();
        let at = SM_75.windows(16).position(|bytes| bytes == fadd).expect("the addition");
        let mut bytes = SM_75.to_vec();
        bytes[at..at + 16].copy_from_slice(&word.to_le_bytes());
        bytes
    }

    #[test]
    fn what_runs_has_nothing_missing() {
        let (text, status) = checked(SM_75);
        assert!(text.starts_with("v, sm_75: 1 cubins, 1 kernels, 0 other functions, 16 words\n"), "{text}");
        assert_eq!((text.lines().count(), status), (5, ExitStatus::Done), "{text}");
    }

    #[test]
    fn words_that_are_not_known_or_not_executed_are_told_with_their_places() {
        let (text, status) = checked(&with_word(0x004f_d000_0000_0000_0000_0003_0409_7fff));
        assert_eq!(status, ExitStatus::BadInput);
        assert!(
            text.contains("1  fff: no known instruction; first: cubin 1 (sm_75), vectorAdd+0xc0: 004fd0"),
            "{text}"
        );
        assert!(text.contains("1  kernel: instructions that are not known or not executed; first: "), "{text}");
        // FFMA.FMZ R9, R4, R3, R5
        let (text, _) = checked(&with_word(0x004f_d000_0000_1005_0000_0003_0409_7223));
        assert!(text.contains("1  FFMA.FMZ: a product that is zero where a factor is (.FMZ); first: "), "{text}");
    }
}
