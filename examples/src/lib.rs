//! XX
