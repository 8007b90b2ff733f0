//! `new`: something to begin with.
//!
//! | room | what it has |
//! |---|---|
//! | `name` | the forms of a unit's name, and which names there are |
//! | `project` | the files of a project, made of templates |
//!
//! The templates are files that are compiled and tested themselves: the unit `FirstUnit` of the examples.

mod name;
mod project;

use crate::commands::printing::print;
use crate::options::new::{NewCommand, NewUnitOptions};
use balar_actors::catalogue::UnitDefinition;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::Failure;
use name::UnitName;
use std::path::{Path, PathBuf};

/// Makes what is asked for.
///
/// # Errors
///
/// A name that no unit can have, a folder that is there already, sources that are not found, files that cannot be written.
pub fn run(command: &NewCommand, kinds: &[&'static UnitDefinition]) -> Result<ExitStatus, Failure> {
    match command {
        NewCommand::Unit(options) => print(&unit(options, kinds)?),
    }
}

/// `new unit`: writes the project, and says what to do with it.
fn unit(options: &NewUnitOptions, kinds: &[&'static UnitDefinition]) -> Result<String, Failure> {
    let name = UnitName::of(&options.name, kinds.iter().map(|kind| kind.name)).map_err(Failure::input)?;
    let simulator = simulator(options.simulator.as_deref())?;
    let folder = options.path.clone().unwrap_or_else(|| PathBuf::from(&name.snake));
    if folder.symlink_metadata().is_ok() {
        let help = "`--path DIR` names another folder";
        return Err(Failure::mistake(format_args!("{} is there already", folder.display()), help));
    }
    project::write(&folder, &name, &simulator)?;
    let UnitName { snake, camel } = &name;
    Ok(format!(
        "{}: a project with the unit {camel}, which passes everything on\n\n    \
         cd {}\n    \
         cargo test --release\n    \
         cargo run --release -- --topology topologies/{snake}.ron --show 'gpu.{snake}[*]'\n\n\
         README.md has more commands. The first build compiles the simulator and takes minutes; after a change of the unit, seconds.\n",
        folder.display(),
        folder.display(),
    ))
}

/// The folder of the sources of the simulator, in full.
fn simulator(given: Option<&Path>) -> Result<String, Failure> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = given.unwrap_or(&own);
    let is_clone = |folder: &Path| {
        let manifest = std::fs::read_to_string(folder.join("actors/Cargo.toml"));
        manifest.is_ok_and(|text| text.lines().any(|line| line == "name = \"balar-actors\""))
    };
    let found = folder.canonicalize().ok().filter(|folder| is_clone(folder));
    let help = "`--simulator DIR` names a folder into which balar-actors was cloned; a project is compiled with it";
    match (found, given) {
        (Some(folder), _) => folder
            .into_os_string()
            .into_string()
            .map_err(|folder| Failure::input(format_args!("{} cannot be written into a Cargo.toml", folder.display()))),
        (None, Some(given)) => {
            let given = given.display();
            let problem = format!("{given} is no clone of balar-actors: its actors/Cargo.toml is missing");
            Err(Failure::mistake(problem, help))
        }
        (None, None) => {
            Err(Failure::mistake("the sources that this program was built of are not there any more", help))
        }
    }
}
