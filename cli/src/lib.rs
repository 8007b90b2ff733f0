//! The balar-actors command line.
