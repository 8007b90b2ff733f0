//! The record of a run: what is known of it when it has ended, its metrics, and how all that lies in a folder.
//!
//! | room | what it has |
//! |---|---|
//! | `result`, `ending`, `timing`, `sampled` | the record: why the run ended, what of it was timed, what was sampled |
//! | `json` | its document |
//! | `kernel_name`, `unfinished`, `ranges` | kernels by their names, those that were still running, and what belongs to NVTX ranges |
//! | `metrics` | what units count, under the names that users of profilers know |
//! | `series` | the same over time: tables of what samples have |
//! | `run_folder` | the folder of a run, as it is read |
//! | `system` | what is told of failures, and how files are read and written |
//! | `sample` | a record to test with |
//!
//! **Invariant:** nothing here knows of options and commands, and nothing changes what is simulated.

pub mod ending;
pub mod json;
pub mod kernel_name;
pub mod metrics;
pub mod ranges;
pub mod result;
pub mod run_folder;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod sampled;
pub mod series;
pub mod system;
pub mod timing;
pub mod unfinished;
