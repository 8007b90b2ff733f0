//! NVIDIA's assembler, ptxas, where the user has one: it makes machine code of PTX for the simulated GPU.
//!
//! **Invariant:** the cubin depends on the text, the architecture and the version of ptxas alone, and no file but those of the cache
//! stays, whoever is killed: ptxas reads and writes files that have no name.

mod cache;
mod child;
mod text;

use crate::options::simulation::{Isa, SimulationOptions};
use balar_actors::simulation::{Assembled, Assembler, AssemblyError, CodeChoice, CubinForm, IsaChoice, NamedText};
use balar_record::system::failure::{Failure, say};
use cache::CubinCache;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use text::Rewritten;

/// The environment variable that names a ptxas; none is looked for where it is empty.
const VARIABLE: &str = "BALAR_PTXAS";
/// Where CUDA is installed unless the user chooses another place.
const INSTALLED: &str = "/usr/local/cuda/bin/ptxas";
/// How long one text may take to assemble.
const TIME_LIMIT: Duration = Duration::from_secs(300);
/// How long ptxas may take to tell its version.
const VERSION_TIME_LIMIT: Duration = Duration::from_secs(20);
/// The first version of ptxas that knows no GPU before [`FIRST_OF_CUDA_13`].
const WITHOUT_VOLTA: u32 = 13;
/// The first architecture that CUDA 13 compiles for.
const FIRST_OF_CUDA_13: u32 = 75;
/// Texts whose machine code is kept in memory.
const KEPT_TEXTS: usize = 64;

/// Which code runs, by the options, and the assembler that the options, the environment or the system name.
///
/// # Errors
///
/// A ptxas is named, and it does not run or is not needed.
pub fn code_choice(options: &SimulationOptions) -> Result<CodeChoice, Failure> {
    code_choice_of(options.code.isa, options.code.ptxas.as_deref())
}

/// As [`code_choice`], of these options.
///
/// # Errors
///
/// As [`code_choice`].
pub fn code_choice_of(isa: Isa, named: Option<&Path>) -> Result<CodeChoice, Failure> {
    if isa == Isa::Ptx {
        return match named {
            None => Ok(CodeChoice::from(IsaChoice::from(isa))),
            Some(_) => Err(Failure::mistake(
                "--ptxas: nothing is assembled where PTX is asked for",
                "--isa auto, or sass, runs machine code",
            )),
        };
    }
    let assembler = Ptxas::find(named)?.map(|ptxas| Arc::new(ptxas) as Arc<dyn Assembler>);
    Ok(CodeChoice { assembler, ..CodeChoice::from(IsaChoice::from(isa)) })
}

/// A version of ptxas, which is that of its CUDA.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    major: u32,
    minor: u32,
    /// With the number of the build: "12.9.86".
    full: String,
}

impl Version {
    /// From what `ptxas --version` prints: `Cuda compilation tools, release 12.9, V12.9.86`.
    fn read(text: &str) -> Option<Version> {
        let full = text.split_whitespace().rev().find_map(|word| {
            word.strip_prefix('V').filter(|version| version.starts_with(|first: char| first.is_ascii_digit()))
        })?;
        let mut numbers = full.split('.').map(str::parse);
        let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(Version { major, minor, full: full.to_owned() })
    }

    /// The latest version of PTX that it reads, as the release notes of the PTX manual list them.
    fn latest_ptx(&self) -> (u32, u32) {
        match (self.major, self.minor) {
            (0..=10, minor) => (6, (3 + minor).min(5)),
            (11, minor) => (7, minor),
            (12, minor @ 0..=5) => (8, minor),
            (12, minor) => (8, minor - 1),
            (major, minor) => (major - 4, minor),
        }
    }
}

type Outcome = Result<Assembled, AssemblyError>;

/// A ptxas.
#[derive(Debug)]
pub struct Ptxas {
    path: PathBuf,
    /// Asked for once.
    version: OnceLock<Result<Version, Arc<str>>>,
    cache: Option<CubinCache>,
    /// What came of the latest texts, by key.
    known: Mutex<BTreeMap<u128, Outcome>>,
    /// What the user has been told.
    told: Mutex<BTreeSet<String>>,
}

impl Ptxas {
    /// The one that the option names, or the environment variable, or the first that is found on the system.
    ///
    /// # Errors
    ///
    /// One is named, and does not run.
    fn find(named: Option<&Path>) -> Result<Option<Ptxas>, Failure> {
        let variable = std::env::var_os(VARIABLE);
        let (path, by) = match (named, &variable) {
            (Some(path), _) => (path.to_owned(), "--ptxas"),
            (None, Some(path)) if path.is_empty() => return Ok(None),
            (None, Some(path)) => (PathBuf::from(path), VARIABLE),
            (None, None) => {
                return Ok(installed(std::env::var_os("PATH")).map(|path| Ptxas::new(path, CubinCache::of_user())));
            }
        };
        let ptxas = Ptxas::new(path, CubinCache::of_user());
        match ptxas.version() {
            Ok(_) => Ok(Some(ptxas)),
            Err(error) => Err(Failure::input(format_args!("{by}: {error}"))),
        }
    }

    fn new(path: PathBuf, cache: Option<CubinCache>) -> Ptxas {
        Ptxas { path, version: OnceLock::new(), cache, known: Mutex::default(), told: Mutex::default() }
    }

    /// Its version, or why it has none, in words.
    fn version(&self) -> Result<&Version, Arc<str>> {
        let ask = || {
            let failed = |why: String| format!("{} is no ptxas that runs: {why}", self.path.display());
            let mut command = Command::new(&self.path);
            let said = child::run(command.arg("--version"), &[], VERSION_TIME_LIMIT);
            let said = said.map_err(|error| failed(error.to_string()))?;
            let version = Version::read(&String::from_utf8_lossy(&said.output)).filter(|_| said.succeeded);
            version.ok_or_else(|| failed("--version tells no version".to_owned()).into())
        };
        self.version.get_or_init(ask).as_ref().map_err(Arc::clone)
    }

    /// Assembles a text that has been rewritten for the architecture.
    fn run(
        &self,
        text: &NamedText,
        rewritten: &Rewritten,
        (architecture, form): (u32, CubinForm),
        name: &str,
    ) -> Result<Vec<u8>, AssemblyError> {
        let words = |why: String| -> Arc<str> { format!("{name} for sm_{architecture}: {why}").into() };
        let mut command = Command::new(&self.path);
        command.arg(format!("-arch=sm_{architecture}{}", rewritten.letter));
        if form == CubinForm::Relocatable {
            command.arg("--compile-only");
        }
        command.args(["/dev/stdin", "-o", "/dev/stdout"]);
        tracing::debug!(text = text.0, architecture, ptxas = %self.path.display(), "PTX is assembled");
        let end = child::run(&mut command, rewritten.text.as_bytes(), TIME_LIMIT)
            .map_err(|error| AssemblyError::Unavailable(words(error.to_string())))?;
        if !end.succeeded {
            return Err(AssemblyError::Refused(words(messages(&end.messages))));
        }
        if !cache::is_for(&end.output, architecture, form) {
            return Err(AssemblyError::Unavailable(words("what it wrote is no cubin".to_owned())));
        }
        Ok(end.output)
    }
}

impl Assembler for Ptxas {
    fn assemble(&self, text: &NamedText, architecture: u32, form: CubinForm) -> Outcome {
        let version = self.version().map_err(AssemblyError::Unavailable)?;
        let name = format!("ptxas {}.{}", version.major, version.minor);
        if version.major >= WITHOUT_VOLTA && architecture < FIRST_OF_CUDA_13 {
            let why = format!("{name} knows no sm_{architecture}; ptxas 12.9 is the last that does");
            return Err(AssemblyError::Unavailable(why.into()));
        }
        let rewritten = text::for_architecture(&text.1, architecture, version.latest_ptx())?;
        let target = rewritten.target;
        let key = cache::key(&rewritten.text, architecture, form, &version.full);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = known.get(&key) {
            return outcome.clone();
        }
        let kept = self.cache.as_ref().and_then(|cache| cache.read(key, architecture, form));
        let outcome = match kept {
            Some(cubin) => Ok(cubin),
            None => self.run(text, &rewritten, (architecture, form), &name).inspect(|cubin| {
                if let Some(cache) = &self.cache {
                    cache.write(key, architecture, cubin);
                }
            }),
        };
        let outcome = outcome.map(|cubin| Assembled { cubin: cubin.into(), by: name.into(), target });
        if known.len() >= KEPT_TEXTS {
            known.clear();
        }
        known.insert(key, outcome.clone());
        outcome
    }

    fn warn(&self, words: &str) {
        let is_new = self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(words.to_owned());
        if is_new {
            say(format_args!("balar-actors: {words}"));
        }
    }
}

/// The first ptxas in the folders of `PATH`, or that of the usual place.
fn installed(folders: Option<OsString>) -> Option<PathBuf> {
    let folders = folders.unwrap_or_default();
    let found =
        std::env::split_paths(&folders).filter(|folder| folder.is_absolute()).map(|folder| folder.join("ptxas"));
    found.chain([PathBuf::from(INSTALLED)]).find(|path| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    })
}

/// Messages of ptxas that are told, the first of them.
const TOLD_MESSAGES: usize = 4;

/// What ptxas complains of, on one line.
fn messages(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let words = said.lines().filter(|line| !line.contains("Ptx assembly aborted")).map(|line| {
        let line = line.strip_prefix("ptxas ").unwrap_or(line);
        let line = line.strip_prefix("/dev/stdin, ").unwrap_or(line);
        line.split_whitespace().collect::<Vec<_>>().join(" ").replace(" : ", ": ")
    });
    let mut words: Vec<String> = words.filter(|line| !line.is_empty()).collect();
    let left_out = words.len().saturating_sub(TOLD_MESSAGES);
    words.truncate(TOLD_MESSAGES);
    if left_out > 0 {
        words.push(format!("{left_out} more"));
    }
    if words.is_empty() { "it failed without a word".to_owned() } else { words.join("; ") }
}

#[cfg(test)]
mod tests;
