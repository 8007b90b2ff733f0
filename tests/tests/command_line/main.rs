//! The effects and the output of the command line.

mod asynchronous;
mod bad_input;
mod call;
mod compare;
mod detail;
mod functions;
mod hot_spots;
mod instruction_profiles;
mod launches;
mod live;
mod log;
mod main_job;
mod new_unit;
mod perfetto;
mod printed;
mod red_team;
mod replay;
mod replay_balar;
mod report;
mod roofline;
mod series;
mod sweep;
mod timeline;
mod validate;
