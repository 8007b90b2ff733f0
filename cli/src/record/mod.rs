//! The record of a run: what is known of it when it has ended, and how that lies in a folder.
//!
//! | room | what it has |
//! |---|---|
//! | `result`, `ending`, `timing`, `sampled` | the record: why the run ended, what of it was timed, what was sampled |
//! | `json` | its document |
//! | `kernel_name`, `unfinished`, `ranges` | kernels by their names, those that were still running, and what belongs to NVTX ranges |
//! | `run_folder` | the folder of a run, as it is read |
//!
//! **Invariant:** nothing here knows of options and commands.

pub mod ending;
pub mod json;
pub mod kernel_name;
pub mod ranges;
pub mod result;
pub mod run_folder;
pub mod sampled;
pub mod timing;
pub mod unfinished;
