//! Topology files: where they come from and how they are named in messages.

use super::syntax::Span;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A topology or part file is at most this long: /dev/zero has no end.
const MAXIMUM_BYTES: u64 = 64 << 20;
/// What some editors begin a file of UTF-8 with.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Which topology to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopologySource {
    /// A path, or else the name of a built-in topology: "v100_node".
    Named(String),
    /// A text with the name that messages give it. Its parts are looked up from the working directory, then among the built-in ones.
    Text {
        /// Its name in messages.
        name: String,
        /// The topology.
        text: String,
    },
}

impl From<&str> for TopologySource {
    fn from(name: &str) -> TopologySource {
        TopologySource::Named(name.to_owned())
    }
}

/// A text that was read, and the name it has in messages.
#[derive(Debug)]
pub struct SourceFile {
    /// Its path, or its name among the built-in files.
    pub name: String,
    /// What it says.
    pub text: Arc<String>,
    /// What tells whether two includes mean the same file.
    pub(crate) identity: String,
    origin: Origin,
}

#[derive(Clone, Debug)]
enum Origin {
    Path(PathBuf),
    Library(String),
    Text,
}

impl SourceFile {
    /// A text without a place in the file system.
    pub fn text(name: &str, text: &str) -> SourceFile {
        let identity = format!("text {name}");
        SourceFile { name: name.to_owned(), text: Arc::new(text.to_owned()), identity, origin: Origin::Text }
    }

    /// Line and column of a byte, both from 1.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let before = &self.text[..offset.min(self.text.len())];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

/// A place in a file.
#[derive(Clone, Debug)]
pub struct Location {
    /// The file.
    pub file: Arc<SourceFile>,
    /// The text meant.
    pub span: Span,
}

impl Location {
    /// Line and column of its start, both from 1.
    pub fn line_column(&self) -> (usize, usize) {
        self.file.line_column(self.span.start)
    }

    /// The text meant.
    pub fn text(&self) -> &str {
        &self.file.text[self.span.clone()]
    }
}

/// "parts/v100.ron:12".
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.name, self.line_column().0)
    }
}

/// The topologies and parts that are built into a program.
#[derive(Clone, Debug)]
pub struct PartLibrary {
    /// (name, text); a part's name begins with "parts/".
    pub files: Vec<(&'static str, &'static str)>,
}

impl PartLibrary {
    /// Nothing built in.
    pub const fn empty() -> PartLibrary {
        PartLibrary { files: Vec::new() }
    }

    /// The files under `topologies/`.
    pub fn built_in() -> PartLibrary {
        PartLibrary { files: super::library::FILES.to_vec() }
    }

    /// Names of whole topologies, without `.ron`.
    pub fn topologies(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.files
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| !name.contains('/'))
            .map(|name| name.trim_end_matches(".ron"))
    }

    fn get(&self, name: &str) -> Option<(&'static str, &'static str)> {
        let name = name.strip_prefix("./").unwrap_or(name);
        let name = name.strip_prefix("topologies/").unwrap_or(name);
        let stem = name.strip_suffix(".ron").unwrap_or(name);
        self.files.iter().find(|(key, _)| key.strip_suffix(".ron").unwrap_or(key) == stem).copied()
    }
}

/// Why a file could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LookupError {
    NotFound,
    Unreadable(String),
}

/// Finds `name` as a path, relative to the including file first, then among the built-in files.
pub(crate) fn find(
    name: &str,
    includer: Option<&SourceFile>,
    library: &PartLibrary,
) -> Result<Arc<SourceFile>, LookupError> {
    let mut candidates = Vec::new();
    match includer.map(|file| &file.origin) {
        Some(Origin::Library(key)) => {
            // A built-in topology means the built-in parts, whatever the working directory holds.
            let folder = key.rsplit_once('/').map_or("", |(folder, _)| folder);
            let found = library.get(&format!("{folder}/{name}")).or_else(|| library.get(name));
            if let Some((key, text)) = found {
                return Ok(Arc::new(built_in(key, text)));
            }
        }
        Some(Origin::Path(path)) => candidates.extend(path.parent().map(|folder| folder.join(name))),
        Some(Origin::Text) | None => {}
    }
    candidates.push(PathBuf::from(name));
    for path in candidates {
        // Pipes are read too: /dev/stdin, or what a shell makes of <(command).
        if path.exists() && !path.is_dir() {
            return read(&path);
        }
    }
    library.get(name).map(|(key, text)| Arc::new(built_in(key, text))).ok_or(LookupError::NotFound)
}

fn built_in(key: &'static str, text: &'static str) -> SourceFile {
    SourceFile {
        name: key.to_owned(),
        text: Arc::new(text.to_owned()),
        identity: format!("built-in {key}"),
        origin: Origin::Library(key.to_owned()),
    }
}

fn read(path: &Path) -> Result<Arc<SourceFile>, LookupError> {
    let unreadable = |problem: String| LookupError::Unreadable(problem);
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(MAXIMUM_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > MAXIMUM_BYTES {
        return Err(unreadable(format!("it is longer than {} MiB", MAXIMUM_BYTES >> 20)));
    }
    let mut text = String::from_utf8(bytes).map_err(|error| unreadable(error.utf8_error().to_string()))?;
    if text.starts_with(BYTE_ORDER_MARK) {
        text.remove(0);
    }
    let identity = path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string();
    let (name, text) = (path.display().to_string(), Arc::new(text));
    Ok(Arc::new(SourceFile { name, text, identity, origin: Origin::Path(path.to_owned()) }))
}
