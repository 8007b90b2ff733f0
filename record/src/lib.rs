//! The record of a run: the facts that are known when it has ended, its metrics, and the folder that holds all of them.
//!
//! | room | what it has |
//! |---|---|
//! | `result`, `ending`, `timing`, `sampled` | the record: why the run ended, which launches of it were timed, its samples |
//! | `json` | its document |
//! | `kernel_name`, `unfinished`, `ranges` | kernels by their names, kernels that were still running, and the sums of NVTX ranges |
//! | `metrics` | the counters of units, under the names that users of profilers know |
//! | `series` | the same over time: tables of the values of samples |
//! | `run_folder` | reading the folder of a run |
//! | `system` | reports of failures, and reading and writing of files |
//! | `sample` | a record to test with |
//!
//! **Invariant:** nothing here knows of options and commands, and nothing changes the simulation.

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
