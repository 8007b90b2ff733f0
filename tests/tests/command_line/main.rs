//! What the command line does and prints.

mod asynchronous_copies;
mod bad_input;
mod call;
mod detail;
mod functions;
mod instruction_profiles;
mod main_job;
mod printed;
mod replay;
mod replay_balar;
mod validate;
