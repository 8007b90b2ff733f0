//! The subcommands of `new`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What `new unit` adds to its help.
pub const NEW_UNIT_HELP: &str = "\
The project has the unit, which passes everything on, tests of it alone and in a node, the topology of that node, and a README with the
commands. It builds and its tests pass as they are. docs/prototyping.md leads on from there.";

/// Subcommands that make something to begin with.
#[derive(Debug, Subcommand)]
pub enum NewCommand {
    /// Make a project with a hardware unit of your own
    #[command(after_help = NEW_UNIT_HELP)]
    Unit(NewUnitOptions),
}

/// A project with a unit.
#[derive(Args, Debug)]
pub struct NewUnitOptions {
    /// Name of the unit: WriteFilter, write_filter or write-filter
    pub name: String,
    /// Folder of the project, which is made; the default is the name of the unit, as write_filter
    #[arg(long, value_name = "DIR")]
    pub path: Option<PathBuf>,
    /// Folder of a clone of balar-actors, which the project is compiled with; the default is the one that this program was built in
    #[arg(long, value_name = "DIR")]
    pub simulator: Option<PathBuf>,
}
