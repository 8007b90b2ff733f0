//! What the addresses of a program are to devices: whose memory, and how copies between them are made.

pub mod copy;
pub mod pointer;
pub mod ranges;
