//! A unit to copy.
