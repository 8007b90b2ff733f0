//! `disassemble`: the machine code of cubins, of fatbins and of programs that hold some, as text.
//!
//! | room | what it has |
//! |---|---|
//! | `source` | what is disassembled |
//! | `images` | the cubins in it |
//! | `listing` | their functions as text, with what ran of them |
//! | `check` | what of them is not known or cannot be executed |

mod check;
mod images;
mod listing;
mod source;

use crate::commands::printing::print;
use crate::options::disassemble::DisassembleOptions;
use crate::simulation::node;
use balar_actors::catalogue::UnitDefinition;
use balar_record::run_folder::instructions::InstructionProfile;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::Failure;
use check::check;
use listing::{Listing, disassemble};
use source::CodeSource;

/// Prints machine code, or says which of it cannot be executed.
///
/// # Errors
///
/// Where it cannot be read, or nothing of it is what is asked for.
pub fn run(options: &DisassembleOptions, kinds: &[&'static UnitDefinition]) -> Result<ExitStatus, Failure> {
    let sources = match (&options.file, &options.workload) {
        (Some(file), _) => vec![CodeSource::read(file)?],
        (None, Some(workload)) => {
            let topology = options.topology.as_deref().map(|name| node::load(name, &[], kinds)).transpose()?;
            CodeSource::of_workload(&workload.name, topology.as_ref())?
        }
        (None, None) => Vec::new(),
    };
    if options.check {
        let (text, status) = check(&sources, options.arch, options.format)?;
        print(&text)?;
        return Ok(status);
    }
    let run = options.run.as_deref().map(InstructionProfile::read).transpose()?;
    let listing = Listing {
        function: options.function.as_deref(),
        architecture: options.arch,
        format: options.format,
        with_words: options.words,
        with_live: options.live,
        run: run.as_ref(),
    };
    disassemble(&sources, listing, |text| print(text).map(|_| ()))
}
