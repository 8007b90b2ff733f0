//! How often the kernels of a run were launched.

use crate::options::hotspots::HotspotOptions;
use balar_record::run_folder::{DOCUMENT, RunFolder};
use balar_record::system::failure::Failure;

/// How often kernels were launched, where the folder says so.
#[derive(Debug, Default)]
pub struct Launches(Option<RunFolder>);

impl Launches {
    /// Of the run; a folder may have instructions alone.
    pub fn of(options: &HotspotOptions) -> Result<Launches, Failure> {
        let is_there = options.run.join(DOCUMENT).is_file();
        is_there.then(|| RunFolder::read(&options.run)).transpose().map(Launches)
    }

    /// In words: `3 launches`, or nothing.
    pub fn words(&self, kernel: &str) -> String {
        let Some(run) = &self.0 else { return String::new() };
        let launches = || run.document.kernels.iter().filter(|launch| launch.name == kernel);
        let (all, untimed) = (launches().count(), launches().filter(|launch| !launch.is_timed()).count());
        let launches = if all == 1 { "launch" } else { "launches" };
        match (all, untimed) {
            (0, _) => String::new(),
            (_, 0) => format!(", {all} {launches}"),
            _ => format!(", {all} {launches}, of which {untimed} were not simulated in time"),
        }
    }
}
