//! What is told of a sweep that cannot go on.

use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::Failure;
use balar_sweeps::SweepError;

/// A mistake in a sweep or its folder, with its remedy.
pub fn sweep_failure(error: SweepError) -> Failure {
    Failure::sentence(ExitStatus::BadInput, &error, error.remedy().map(str::to_owned))
}
