//! The commands: each takes its options, and gives an exit code or what is printed.

pub mod catalogue;
pub mod clear_away;
pub mod compare;
pub mod completions;
pub mod disassemble;
pub mod hotspots;
pub mod metric_listing;
pub mod new;
pub mod printing;
pub mod ptx;
pub mod replay;
pub mod report;
pub mod roofline;
pub mod run;
pub mod snapshot;
pub mod sweep;
pub mod topology;
pub mod validate;
pub mod watch;
pub mod workload;
