//! The PTX front end: from text to a tree with names resolved and forms checked.

pub mod ast;
pub mod error;
pub mod instruction_table;
pub mod instruction_types;
mod lexer;
pub mod modifier;
pub mod opcode;
mod parser;
pub mod source;
pub mod special_register;
pub mod types;
mod words;

pub use error::{PtxError, PtxErrorKind, PtxErrors};
pub use parser::parse;
