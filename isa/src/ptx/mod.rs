//! The PTX front end: from text to a tree with names resolved and forms checked.

pub mod ast;
pub mod error;
pub mod modifier;
pub mod opcode;
pub mod source;
pub mod special_register;
pub mod types;

pub use error::{PtxError, PtxErrorKind, PtxErrors};
