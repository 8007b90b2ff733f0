//! The addresses of a program as devices see them: whose memory they are, and how copies between them are made.

pub mod copy;
pub mod pointer;
pub mod ranges;
