//! The folder of a run, as `--output` wrote it, read back.
//!
//! | room | what it reads |
//! |---|---|
//! | `document` | stats.json |
//! | `instructions` | instructions.csv |
//! | `topology` | topology.ron |
//!
//! Fields that documents of other versions lack are absent, not errors; a document of another schema is refused.

pub mod document;
pub mod instruction_table;
pub mod instructions;
pub mod topology;

use crate::system::failure::Failure;
use crate::system::files;
use balar_actors::catalogue::UnitDefinition;
use document::RunDocument;
use instructions::InstructionProfile;
use std::path::{Path, PathBuf};
use topology::TopologyParameters;

/// The document of a run in its folder.
pub const DOCUMENT: &str = "stats.json";
/// The topology of a run in its folder.
pub const TOPOLOGY: &str = "topology.ron";

/// A run that was written into a folder, or its document alone.
#[derive(Debug)]
pub struct RunFolder {
    /// The path that the user named.
    pub path: PathBuf,
    /// The document.
    pub document: RunDocument,
}

impl RunFolder {
    /// Reads a folder of `--output`, or a document that `--format json` printed.
    ///
    /// # Errors
    ///
    /// There is nothing of that name, it is no run, or its document is cut off, of another schema, or otherwise not as it should be.
    pub fn read(path: &Path) -> Result<RunFolder, Failure> {
        let file = if path.is_dir() { path.join(DOCUMENT) } else { path.to_owned() };
        let text = files::read_long(&file).map_err(|error| match (path.is_dir(), error.kind()) {
            (true, std::io::ErrorKind::NotFound) => Failure::mistake(
                format_args!("{} is no folder of a run: it has no {DOCUMENT}", path.display()),
                "a run with --output DIR writes one",
            ),
            _ => Failure::mistake(
                format_args!("cannot read {}: {error}", file.display()),
                "expected a folder that a run with --output DIR has written, or a document of --format json",
            ),
        })?;
        let document = RunDocument::parse(&text).map_err(|error| {
            let message = format_args!("{}: {}", file.display(), error.problem);
            Failure::mistake(message, error.help)
        })?;
        Ok(RunFolder { path: path.to_owned(), document })
    }

    /// The parameters of the topology's units, which are of `kinds`; `None` where the run is a document alone.
    ///
    /// # Errors
    ///
    /// Why the file cannot be read, in words: it may be of another version of the program.
    pub fn topology(&self, kinds: &[&'static UnitDefinition]) -> Result<Option<TopologyParameters>, String> {
        let path = self.path.join(TOPOLOGY);
        if !path.is_file() {
            return Ok(None);
        }
        let text = files::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        topology::parameters(&path.display().to_string(), &text, kinds).map(Some)
    }

    /// The counts by instruction; `None` where the run did not count them.
    ///
    /// # Errors
    ///
    /// The file is there and is not as it should be.
    pub fn instructions(&self) -> Result<Option<InstructionProfile>, Failure> {
        let is_there = self.path.join(crate::run_folder::instruction_table::FILE).is_file();
        is_there.then(|| InstructionProfile::read(&self.path)).transpose()
    }
}
