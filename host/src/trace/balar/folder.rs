//! A folder of a Balar trace, read and checked before anything runs.

use super::executable::{ELF_MAGIC, containers};
use super::line::{Argument, Line, Place, Problem, parse};
use crate::trace::error::TraceError;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the file of calls.
const CALLS: &str = "cuda_calls.trace";

/// The character that some editors begin a text with.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Code, with the name that messages give it.
type Image = (String, Arc<[u8]>);

/// A Balar trace.
#[derive(Debug)]
pub struct BalarTrace {
    pub(super) folder: PathBuf,
    /// Its lines that say something, with their numbers.
    pub(super) lines: Vec<(usize, Line)>,
    /// Its code.
    pub(super) images: Vec<Image>,
}

/// An error of a line, with the part of the line that a message shows.
#[derive(Debug)]
pub struct LineError {
    /// The file.
    pub path: PathBuf,
    /// All its text.
    pub text: String,
    /// The bytes of it that the error is about.
    pub at: Range<usize>,
    /// The mistake, and the expected text.
    pub problem: String,
    /// The line, counted from 1.
    pub line: usize,
}

/// Why a Balar trace cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum BalarError {
    /// The folder or its files.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A line of the file of calls.
    #[error("{}:{}: {}", .0.path.display(), .0.line, .0.problem)]
    Line(Box<LineError>),
    /// The code.
    #[error("{0}")]
    Code(String),
}

impl BalarTrace {
    /// Is `folder` the folder of a Balar trace?
    pub fn is_at(folder: &Path) -> bool {
        folder.join(CALLS).exists()
    }

    /// Reads a trace. `code` are files of PTX, or CUDA executables; where there are none, that in the folder is taken.
    ///
    /// # Errors
    ///
    /// The first line that cannot be understood or cannot be followed, files that are missing, and a folder without code.
    pub fn open(folder: &Path, code: &[PathBuf]) -> Result<BalarTrace, BalarError> {
        let path = folder.join(CALLS);
        let mut text = fs::read_to_string(&path).map_err(TraceError::system("read", &path))?;
        if text.starts_with(BYTE_ORDER_MARK) {
            text.remove(0);
        }
        let mut lines = Vec::new();
        let mut names = Names { folder, allocations: BTreeMap::new() };
        let mut start = 0;
        for (index, line) in text.split('\n').enumerate() {
            let checked = parse(line).and_then(|parsed| match parsed {
                Some(parsed) => names.check(line, &parsed).map(|()| Some(parsed)),
                None => Ok(None),
            });
            match checked {
                Ok(parsed) => lines.extend(parsed.map(|parsed| (index + 1, parsed))),
                Err(Problem { at, text: problem }) => {
                    let at = start + at.start..start + at.end;
                    let error = LineError { path: path.clone(), text: text.clone(), at, problem, line: index + 1 };
                    return Err(BalarError::Line(Box::new(error)));
                }
            }
            start += line.len() + 1;
        }
        let images = if code.is_empty() { code_in(folder)? } else { images(code)? };
        Ok(BalarTrace { folder: folder.to_owned(), lines, images })
    }

    /// The name of the program: that of the folder.
    pub fn program(&self) -> String {
        let name =
            self.folder.canonicalize().ok().and_then(|folder| Some(folder.file_name()?.to_string_lossy().into_owned()));
        name.unwrap_or_else(|| "trace".to_owned())
    }

    /// Where a line is, for messages.
    pub(super) fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.folder.join(CALLS).display())
    }
}

/// The allocations at a line: bytes of each by its name.
struct Names<'a> {
    folder: &'a Path,
    allocations: BTreeMap<String, u64>,
}

impl Names<'_> {
    fn check(&mut self, text: &str, line: &Line) -> Result<(), Problem> {
        match line {
            Line::Allocate { pointer, bytes } => {
                if self.allocations.insert(pointer.clone(), *bytes).is_some() {
                    let problem = format!("`{pointer}` is allocated already, and not freed");
                    return Err(Problem { at: 0..text.len(), text: problem });
                }
                Ok(())
            }
            Line::Free { pointer, at } => match self.allocations.remove(pointer) {
                Some(_) => Ok(()),
                None => Err(self.unknown(pointer, at.clone())),
            },
            Line::Copy { pointer, bytes, file, .. } => {
                self.inside(pointer, *bytes)?;
                self.data_file(text, file, *bytes)
            }
            Line::Launch(launch) => launch.arguments.iter().try_for_each(|argument| self.argument(argument)),
        }
    }

    fn inside(&self, place: &Place, bytes: u64) -> Result<(), Problem> {
        let Some(&allocated) = self.allocations.get(&place.name) else {
            return Err(self.unknown(&place.name, place.at.clone()));
        };
        if place.offset.checked_add(bytes).is_some_and(|end| end <= allocated) {
            return Ok(());
        }
        let Place { name, offset, at } = place;
        let text =
            format!("{bytes} bytes from offset {offset} on are not inside `{name}`, which has {allocated} bytes");
        Err(Problem { at: at.clone(), text })
    }

    fn argument(&self, argument: &Argument) -> Result<(), Problem> {
        let Some(place) = argument.place()? else { return Ok(()) };
        if self.allocations.contains_key(&place.name) && argument.bytes == 8 {
            return self.inside(&place, 0);
        }
        let Argument { text, bytes, at } = argument;
        let expected = match bytes {
            1 | 2 => "an integer that fits",
            4 => "an integer that fits, or a number with a point",
            8 => "the name of an allocation, an integer, or a number with a point",
            _ => "0x and two hexadecimal digits for each byte",
        };
        Err(Problem {
            at: at.clone(),
            text: format!("expected {expected} as an argument of {bytes} bytes, found `{text}`"),
        })
    }

    fn unknown(&self, name: &str, at: Range<usize>) -> Problem {
        Problem { at, text: format!("expected the name of an allocation, found `{name}`") }
    }

    fn data_file(&self, text: &str, file: &str, bytes: u64) -> Result<(), Problem> {
        let start = text.rfind(file).unwrap_or(0);
        let wrong = |text: String| Err(Problem { at: start..start + file.len(), text });
        match self.folder.join(file).metadata() {
            Ok(metadata) if metadata.len() == bytes => Ok(()),
            Ok(metadata) => wrong(format!("the file has {} bytes, the copy {bytes}", metadata.len())),
            Err(error) => wrong(format!("cannot read {}: {error}", self.folder.join(file).display())),
        }
    }
}

/// The code in the folder of a trace: its files of PTX, or its one CUDA executable.
fn code_in(folder: &Path) -> Result<Vec<Image>, BalarError> {
    let entries = fs::read_dir(folder).map_err(TraceError::system("read", folder))?;
    let mut files: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_file()).collect();
    files.sort();
    let (mut texts, mut executables) = (Vec::new(), Vec::new());
    for path in files {
        if path.extension().is_some_and(|extension| extension == "ptx") {
            texts.push(path);
            continue;
        }
        let mut magic = [0; 4];
        let read = File::open(&path).and_then(|mut file| file.read_exact(&mut magic));
        if read.is_ok() && magic == ELF_MAGIC {
            executables.push(path);
        }
    }
    match (&texts[..], &executables[..]) {
        ([_, ..], _) => images(&texts),
        ([], [_]) => images(&executables),
        ([], []) => Err(BalarError::Code(format!(
            "{} has no code: expected the CUDA executable or its PTX beside {CALLS}; `--ptx FILE` names one elsewhere",
            folder.display()
        ))),
        ([], several) => {
            let names: Vec<String> = several.iter().map(|path| path.display().to_string()).collect();
            let names = names.join(", ");
            Err(BalarError::Code(format!("several executables: {names}; `--ptx FILE` names the one that was traced")))
        }
    }
}

/// The code in files.
fn images(paths: &[PathBuf]) -> Result<Vec<Image>, BalarError> {
    let mut images: Vec<Image> = Vec::new();
    for path in paths {
        let file = fs::read(path).map_err(TraceError::system("read", path))?;
        let name = path.display().to_string();
        if !file.starts_with(ELF_MAGIC) {
            images.push((name, file.into()));
            continue;
        }
        let found = containers(&file).map_err(|problem| BalarError::Code(format!("{name}: {problem}")))?;
        images.extend(found.into_iter().map(|container| (name.clone(), container.into())));
    }
    Ok(images)
}
