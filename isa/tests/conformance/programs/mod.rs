//! Whole programs: functions and their calls, machine code, states written down and read back.

mod bulk;
mod call_graphs;
mod calls;
mod library_code;
pub mod machine_code;
mod machine_words;
mod pieces;
mod serialization;
