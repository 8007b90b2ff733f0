//! `hotspots`: where the cycles of kernels went, by instruction, line, function or opcode, from the folder of a run.
//!
//! | room | what it has |
//! |---|---|
//! | `rows` | sums of instructions by what is asked for |
//! | `table` | the tables to read |
//! | `machine_readable` | CSV and JSON |
//! | `folded` | stacks for flame graphs |
//! | `listing` | source text, or code, with what ran beside it |
//! | `launches` | how often kernels were launched |
//!
//! **Invariant:** whatever the instructions are summed by, all rows of a kernel together are its instructions.

mod folded;
mod launches;
mod listing;
mod machine_readable;
mod rows;
mod table;
#[cfg(test)]
mod tests;

use crate::options::format::TableFormat;
use crate::options::hotspots::{By, HotspotOptions};
use balar_record::kernel_name::{is_named, readable_name};
use balar_record::run_folder::DOCUMENT;
use balar_record::run_folder::instructions::InstructionProfile;
use balar_record::system::failure::{Failure, say};
use balar_record::system::files;
use launches::Launches;
use rows::KernelHotspots;

/// What is printed of the folder of a run.
///
/// # Errors
///
/// There is no such run, it has not counted by instruction, no kernel has the name that is asked for, or a file cannot be written.
pub fn run(options: &HotspotOptions, width: Option<u16>) -> Result<String, Failure> {
    let profile = read(options)?;
    let launches = Launches::of(options)?;
    let chosen = |kernel: &str| options.kernel.as_ref().is_none_or(|regex| is_named(regex, kernel));
    let kernels = rows::kernels(&profile, options.by, chosen);
    if kernels.is_empty() {
        return Err(nothing(options, &profile));
    }
    let sort = rows::Sort::find(&options.sort, &profile.columns)
        .map_err(|help| Failure::mistake(format_args!("--sort {}: there is no such column", options.sort), help))?;
    let mut kernels: Vec<KernelHotspots<'_>> = kernels.into_iter().map(|kernel| kernel.sorted(sort)).collect();
    // Those alike stay in the order of the file.
    kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.total.cycles()));
    if options.by == By::Line {
        warn_of_lines(&kernels);
    }
    if let Some(path) = &options.folded {
        let text = folded::text(&profile, chosen);
        files::write(path, &text).map_err(Failure::input)?;
    }
    if options.listing {
        return Ok(listing::text(&profile, &kernels, &options.source));
    }
    Ok(match options.format {
        TableFormat::Table => table::text(&kernels, options, &launches, width),
        TableFormat::Csv => machine_readable::csv(&kernels, options),
        TableFormat::Json => machine_readable::json(&kernels, options),
    })
}

/// The instructions of the run.
fn read(options: &HotspotOptions) -> Result<InstructionProfile, Failure> {
    let folder = &options.run;
    if !folder.is_dir() {
        let what = if folder.exists() { "is no folder" } else { "is not there" };
        let help = "expected a folder that a run with --profile-instructions --output DIR has written";
        return Err(Failure::mistake(format_args!("{} {what}", folder.display()), help));
    }
    let has = |name: &str| folder.join(name).is_file();
    if !has(balar_record::run_folder::instruction_table::FILE) {
        let message = match has(DOCUMENT) {
            true => format!("{} is of a run that has not counted by instruction", folder.display()),
            false => {
                format!("{} is no folder of a run: it has neither stats.json nor instructions.csv", folder.display())
            }
        };
        return Err(Failure::mistake(
            message,
            "run again with --profile-instructions --output DIR, which writes instructions.csv",
        ));
    }
    InstructionProfile::read(folder)
}

/// What is told where no kernel is left.
fn nothing(options: &HotspotOptions, profile: &InstructionProfile) -> Failure {
    let path = profile.path.display();
    let ran = profile.kernels();
    match &options.kernel {
        _ if ran.is_empty() => Failure::input(format_args!("{path}: no kernel ran")),
        Some(regex) => {
            let help = format!("what ran: {}", ran.join(", "));
            Failure::mistake(format_args!("--kernel {regex}: no kernel in {path} has such a name"), help)
        }
        None => Failure::input(format_args!("{path}: no kernel ran")),
    }
}

/// Says of which kernels the lines are not known.
fn warn_of_lines(kernels: &[KernelHotspots<'_>]) {
    for kernel in kernels.iter().filter(|kernel| !kernel.has_source) {
        let name = readable_name(&kernel.name);
        let compile = "compile with line information (nvcc -lineinfo)";
        match kernel.isa.as_str() {
            "ptx" => {
                say(format_args!("note: the PTX of {name} names no source: lines are those of the PTX; {compile}"))
            }
            _ => say(format_args!("note: the machine code of {name} has no line information; {compile}")),
        }
    }
}
