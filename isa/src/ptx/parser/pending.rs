//! What the parser has read and looks at again later.

use super::super::source::Span;
use super::super::types::ScalarType;

/// A `.reg` of module scope, one name of it.
#[derive(Clone, Copy)]
pub(super) struct ModuleRegisters<'a> {
    pub name: &'a str,
    pub count: Option<u32>,
    pub shape: (ScalarType, u32),
    pub span: Span,
}

/// A symbol in an initial value, found once the whole module is read.
pub(super) struct PendingInitialSymbol<'a> {
    pub name: &'a str,
    pub span: Span,
    pub global: usize,
    /// Index into the initialiser's values.
    pub value: usize,
}
