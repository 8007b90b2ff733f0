//! From tokens to the tree: one pass, names resolved as they are met, every mistake of a text collected.
//!
//! **Invariant:** every loop takes a token per round or ends, and nesting is limited: any input ends in bounded time and stack.

mod body;
mod constant;
mod declaration;
mod instruction;
mod module;
mod names;
mod operand;
mod pending;

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::ast::{Alias, DebugStrings, Function, Module, SymbolReference, Variable};
use super::error::{MAXIMUM_ERRORS, PtxErrorKind, PtxErrors, RawError};
use super::lexer::{Lexer, Token, TokenKind};
use super::source::{SourceText, Span};

/// A mistake was found and recorded; the caller gives up its construct.
struct Failed;

type Parsed<T> = Result<T, Failed>;

/// How deep expressions, operands and initialisers may nest.
const MAXIMUM_DEPTH: u32 = 64;

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The token under consideration.
    current: Token<'a>,
    /// Where the last taken token ended.
    previous_end: u32,
    depth: u32,
    errors: Vec<RawError>,
    version: (u16, u16),
    targets: Vec<Box<str>>,
    target_span: Span,
    address_size: u32,
    globals: Vec<Variable>,
    functions: Vec<Function>,
    aliases: Vec<Alias>,
    files: Vec<(u32, Box<str>)>,
    debug_strings: DebugStrings,
    pragmas: Vec<Box<str>>,
    module_names: BTreeMap<Cow<'a, str>, SymbolReference>,
    /// `.reg` of module scope.
    module_registers: Vec<pending::ModuleRegisters<'a>>,
    /// Symbols of initial values, which may be declared later.
    pending_initial_symbols: Vec<pending::PendingInitialSymbol<'a>>,
}

/// Parses one PTX text.
///
/// # Errors
///
/// All mistakes of the text, at most [`MAXIMUM_ERRORS`] of them.
pub fn parse(file_name: &str, text: &str) -> Result<Module, PtxErrors> {
    // Shorter than 4 GiB, so that positions fit.
    if u32::try_from(text.len()).is_err() {
        let source = SourceText::new(file_name, "");
        let error = RawError::new(PtxErrorKind::Limit, Span::default(), "text of 4 GiB or more");
        return Err(PtxErrors::new(&source, vec![error], false));
    }
    let source = SourceText::new(file_name, text);
    let mut parser = Parser::new(text);
    parser.module();
    let lexer_errors = std::mem::take(&mut parser.lexer.errors);
    parser.errors.extend(lexer_errors);
    if parser.errors.is_empty() {
        return Ok(Module {
            source,
            version: parser.version,
            targets: parser.targets,
            target_span: parser.target_span,
            address_size: parser.address_size,
            globals: parser.globals,
            functions: parser.functions,
            aliases: parser.aliases,
            files: parser.files,
            debug_strings: parser.debug_strings,
            pragmas: parser.pragmas,
        });
    }
    parser.errors.sort_by_key(|error| error.span);
    let truncated = parser.errors.len() > MAXIMUM_ERRORS;
    parser.errors.truncate(MAXIMUM_ERRORS);
    Err(PtxErrors::new(&source, parser.errors, truncated))
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        let mut lexer = Lexer::new(text);
        let current = lexer.next_token();
        Self {
            lexer,
            current,
            previous_end: 0,
            depth: 0,
            errors: Vec::new(),
            version: (0, 0),
            targets: Vec::new(),
            target_span: Span::default(),
            address_size: 32,
            globals: Vec::new(),
            functions: Vec::new(),
            aliases: Vec::new(),
            files: Vec::new(),
            debug_strings: DebugStrings::default(),
            pragmas: Vec::new(),
            module_names: BTreeMap::new(),
            module_registers: Vec::new(),
            pending_initial_symbols: Vec::new(),
        }
    }

    /// Takes the current token.
    fn take(&mut self) -> Token<'a> {
        let token = self.current;
        self.previous_end = token.span.end;
        self.current = self.lexer.next_token();
        token
    }

    fn at(&self, punctuation: u8) -> bool {
        self.current.kind == TokenKind::Punctuation(punctuation)
    }

    fn at_dotted(&self, word: &str) -> bool {
        self.current.kind == TokenKind::Dotted && self.current.text == word
    }

    fn at_end(&self) -> bool {
        self.current.kind == TokenKind::End
    }

    /// Takes a punctuation mark if it is next.
    fn accept(&mut self, punctuation: u8) -> bool {
        let found = self.at(punctuation);
        if found {
            self.take();
        }
        found
    }

    fn accept_dotted(&mut self, word: &str) -> bool {
        let found = self.at_dotted(word);
        if found {
            self.take();
        }
        found
    }

    fn expect(&mut self, punctuation: u8, context: &str) -> Parsed<Span> {
        if self.at(punctuation) {
            return Ok(self.take().span);
        }
        Err(self.unexpected(&format!("expected `{}` {context}", char::from(punctuation))))
    }

    fn expect_identifier(&mut self, what: &str) -> Parsed<Token<'a>> {
        if self.current.kind == TokenKind::Identifier {
            return Ok(self.take());
        }
        Err(self.unexpected(&format!("expected {what}")))
    }

    /// Records that the current token does not fit.
    fn unexpected(&mut self, expected: &str) -> Failed {
        let message = format!("unexpected {}", self.current.describe());
        self.error_at(PtxErrorKind::Syntax, self.current.span, message, Some(expected.to_owned()))
    }

    /// Records a mistake.
    fn error_at(
        &mut self,
        kind: PtxErrorKind,
        span: Span,
        message: impl Into<String>,
        expected: Option<String>,
    ) -> Failed {
        // One past the limit tells that there were more.
        if self.errors.len() <= MAXIMUM_ERRORS {
            let mut error = RawError::new(kind, span, message);
            error.expected = expected;
            self.errors.push(error);
        }
        Failed
    }

    /// Whether so many mistakes were found that reading on is of no use.
    fn is_hopeless(&self) -> bool {
        self.errors.len() + self.lexer.errors.len() > MAXIMUM_ERRORS
    }

    /// The span from a start to the last taken token.
    fn span_from(&self, start: u32) -> Span {
        Span::new(start, self.previous_end.max(start))
    }

    /// Runs a construct that may contain itself.
    fn nested<T>(&mut self, construct: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAXIMUM_DEPTH {
            let span = self.current.span;
            return Err(self.error_at(
                PtxErrorKind::Limit,
                span,
                format!("nested more than {MAXIMUM_DEPTH} deep"),
                None,
            ));
        }
        self.depth += 1;
        let result = construct(self);
        self.depth -= 1;
        result
    }

    /// After a mistake inside a statement: passes its `;`, stops before a brace.
    fn recover_statement(&mut self) {
        while !self.at_end() && !self.at(b'{') && !self.at(b'}') {
            if self.take().kind == TokenKind::Punctuation(b';') {
                return;
            }
        }
    }

    /// Passes a balanced `{ ... }`, whose `{` is next.
    fn skip_braces(&mut self) {
        let open = self.current.span;
        let mut depth = 0u32;
        while !self.at_end() {
            match self.take().kind {
                TokenKind::Punctuation(b'{') => depth += 1,
                TokenKind::Punctuation(b'}') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return;
                    }
                }
                _ => {}
            }
        }
        let expected = Some("expected `}` before the end of the file".to_owned());
        self.error_at(PtxErrorKind::Syntax, open, "`{` without its `}`", expected);
    }
}

#[cfg(test)]
mod tests;
