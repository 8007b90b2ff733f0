//! Mistakes in a PTX text.

use std::fmt;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

use super::source::{LineColumn, SourceText, Span};

/// The class of a [`PtxError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PtxErrorKind {
    /// The text does not follow the grammar: something else was expected.
    Syntax,
    /// A `/*` or a `"` that never ends.
    Unterminated,
    /// A character or a literal that PTX does not have, or a number out of range.
    BadLiteral,
    /// A directive that is not known or not allowed here.
    UnknownDirective,
    /// An instruction name that PTX does not have.
    UnknownInstruction,
    /// A dotted word that the instruction does not take.
    UnknownModifier,
    /// An instruction that lacks its type or has too many.
    TypeCount,
    /// A type that the instruction does not take.
    BadType,
    /// Too few or too many operands.
    OperandCount,
    /// An operand of the wrong sort.
    BadOperand,
    /// A register that is not declared in scope.
    UndeclaredRegister,
    /// A variable, parameter or function that is not declared in scope.
    UnknownSymbol,
    /// A branch to a label that is not there.
    MissingLabel,
    /// A name declared twice in one scope.
    Duplicate,
    /// A limit of this program, such as registers in one function.
    Limit,
}

/// One mistake in a PTX text.
#[derive(Clone, Debug)]
pub struct PtxError {
    /// Its class.
    pub kind: PtxErrorKind,
    /// Where.
    pub span: Span,
    /// The mistake: a lowercase fragment.
    pub message: String,
    /// The expected text, or the nearest right name.
    pub expected: Option<String>,
    /// The file's name.
    pub file_name: Arc<str>,
    /// Line and column of `span.start`.
    pub position: LineColumn,
    /// The text of that line.
    pub line_text: String,
    source: Arc<NamedSource<Arc<str>>>,
}

impl fmt::Display for PtxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LineColumn { line, column } = self.position;
        write!(formatter, "{}:{line}:{column}: {}", self.file_name, self.message)?;
        if let Some(expected) = &self.expected {
            write!(formatter, " ({expected})")?;
        }
        Ok(())
    }
}

impl std::error::Error for PtxError {}

impl Diagnostic for PtxError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.expected.as_ref()?))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&*self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let length = self.span.len() as usize;
        let label = LabeledSpan::new(Some(self.message.clone()), self.span.start as usize, length);
        Some(Box::new(std::iter::once(label)))
    }
}

/// Every mistake found in one PTX text, in the order of the text.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", summary(.errors, *.truncated))]
pub struct PtxErrors {
    /// The mistakes: at least one, at most [`MAXIMUM_ERRORS`].
    pub errors: Vec<PtxError>,
    /// Whether there were more.
    pub truncated: bool,
}

/// How many mistakes of one text are kept.
pub const MAXIMUM_ERRORS: usize = 50;

impl Diagnostic for PtxErrors {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.errors.iter().map(|error| error as &dyn Diagnostic)))
    }
}

fn summary(errors: &[PtxError], truncated: bool) -> String {
    let mut text = errors.iter().map(PtxError::to_string).collect::<Vec<_>>().join("\n");
    if truncated {
        text.push_str(&format!("\nand more than {MAXIMUM_ERRORS} errors in all"));
    }
    text
}

/// A mistake before it is tied to its text.
#[derive(Clone, Debug)]
pub(crate) struct RawError {
    pub kind: PtxErrorKind,
    pub span: Span,
    pub message: String,
    pub expected: Option<String>,
}

impl RawError {
    pub fn new(kind: PtxErrorKind, span: Span, message: impl Into<String>) -> Self {
        Self { kind, span, message: message.into(), expected: None }
    }

    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }
}

impl PtxErrors {
    /// Ties mistakes to their text, in the order of the text.
    pub(crate) fn new(source: &SourceText, mut raw: Vec<RawError>, truncated: bool) -> Self {
        raw.sort_by_key(|error| error.span);
        let file_name: Arc<str> = source.name().into();
        let named = Arc::new(NamedSource::new(source.name(), source.shared_text()));
        let errors = raw
            .into_iter()
            .map(|error| {
                let position = source.line_column(error.span.start);
                PtxError {
                    kind: error.kind,
                    span: error.span,
                    message: error.message,
                    expected: error.expected,
                    file_name: Arc::clone(&file_name),
                    position,
                    line_text: source.line(position.line).to_owned(),
                    source: Arc::clone(&named),
                }
            })
            .collect();
        Self { errors, truncated }
    }
}
