//! The groups in which `--help` lists options.

/// That of arguments without an option's name, which have a group of their own. Where nothing is said, an argument is in the group of the one
/// before it.
pub const ARGUMENTS: Option<&str> = None;
/// What is simulated, and which code of it.
pub const WHAT_RUNS: &str = "What runs";
/// Parameters of the node.
pub const NODE: &str = "Change the node";
/// What of it is timed, and when it ends.
pub const LIMITS: &str = "Detail and limits";
/// What stdout gets.
pub const PRINTED: &str = "What is printed";
/// What is written.
pub const FILES: &str = "Files";
/// How a run is looked at while it goes on.
pub const LOOKING_ON: &str = "Looking on";
