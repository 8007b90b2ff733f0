//! The work of a stream in its order, at once or as a node of a graph.

use crate::session::addresses::copy::Copy;
use balar_host::Call;

/// The work of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// A copy.
    Copy(Copy),
    /// Any other call that names a stream and has no payload. Its stream is replaced by the one that it is put into.
    Call(Call),
}
