//! What every option is and means, command by command. `crate::arguments` has the tree of commands that they belong to.
//!
//! | room | what it has |
//! |---|---|
//! | `simulation` | options of every run; `detail`, `selection`, `series` and `topology` are parts of them |
//! | `workload`, `program`, `replay` | what is run: a workload, a CUDA program, a recorded one |
//! | `headings` | the groups of `--help` |
//! | `format` | in which form commands print |
//! | the others | options of the command of that name |
//!
//! **Invariant:** options know of no command: nothing is run, read or printed here, except the files of names that --metrics takes.

pub mod compare;
pub mod detail;
pub mod disassemble;
pub mod format;
pub mod headings;
pub mod hotspots;
pub mod new;
pub mod program;
pub mod replay;
pub mod report;
pub mod roofline;
pub mod selection;
pub mod series;
pub mod simulation;
pub mod snapshot;
pub mod sweep;
pub mod topology;
pub mod validate;
pub mod workload;
