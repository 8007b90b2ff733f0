//! The hardware units, one file or folder each.
