//! `compare`: what differs between two runs: kernels, in time and in cause; counters, by row of units; and what went in.
//!
//! | room | what it has |
//! |---|---|
//! | `comparison` | two runs side by side: all that follows |
//! | `pair` | two values of one thing |
//! | `inputs` | topology, workload, code, version |
//! | `kernels` | kernels side by side: times, figures, stalls |
//! | `counters` | counters of the whole run, the most significant changes first |
//! | `table`, `machine_readable` | how it is printed |

mod comparison;
pub mod counters;
pub mod inputs;
pub mod kernels;
mod machine_readable;
pub mod pair;
mod table;
#[cfg(test)]
mod tests;

use crate::options::compare::CompareOptions;
use crate::options::format::TableFormat;
use balar_actors::catalogue::UnitDefinition;
use balar_record::run_folder::RunFolder;
use balar_record::system::failure::Failure;
use comparison::Comparison;
use pair::Pair;

/// What is printed of two runs.
///
/// # Errors
///
/// One of them cannot be read, or no kernel has the name that is asked for.
pub fn run(options: &CompareOptions, kinds: &[&'static UnitDefinition], width: Option<u16>) -> Result<String, Failure> {
    let runs = Pair { before: RunFolder::read(&options.before)?, after: RunFolder::read(&options.after)? };
    let comparison = Comparison::of(runs, options, kinds)?;
    Ok(match options.format {
        TableFormat::Table => table::text(&comparison, options, width),
        TableFormat::Csv => machine_readable::csv(&comparison),
        TableFormat::Json => machine_readable::json(&comparison),
    })
}
