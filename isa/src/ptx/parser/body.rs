//! The statements of a function's body.

use super::super::ast::{Inlining, LabelId, Prototype, SourceLocation, Statement, SymbolReference};
use super::super::error::PtxErrorKind;
use super::super::lexer::{Token, TokenKind};
use super::declaration::variable_space;
use super::names::{FunctionScope, LabelSlot};
use super::{Parsed, Parser};

/// Scopes that may nest in one body.
const MAXIMUM_SCOPES: usize = 1024;

impl<'a> Parser<'a> {
    /// All statements up to the body's `}`, which is taken. Mistakes end their statement alone.
    pub(super) fn body(&mut self, scope: &mut FunctionScope<'a>) {
        while !self.at_end() && !self.is_hopeless() {
            if self.at(b'{') {
                let span = self.take().span;
                if scope.scope_depth() >= MAXIMUM_SCOPES {
                    let message = format!("scopes nested more than {MAXIMUM_SCOPES} deep");
                    self.error_at(PtxErrorKind::Limit, span, message, None);
                }
                scope.begin_scope();
                scope.statements.push(Statement::ScopeBegin);
            } else if self.at(b'}') {
                self.take();
                self.end_scope(scope);
                if scope.scope_depth() == 0 {
                    return;
                }
                scope.statements.push(Statement::ScopeEnd);
            } else if self.statement(scope).is_err() {
                self.recover_statement();
            }
        }
        if !self.is_hopeless() {
            let message = format!("function `{}` has no end", scope.function.name);
            let expected = Some("expected `}`".to_owned());
            self.error_at(PtxErrorKind::Syntax, self.current.span, message, expected);
        }
        while scope.scope_depth() > 0 {
            self.end_scope(scope);
        }
    }

    fn statement(&mut self, scope: &mut FunctionScope<'a>) -> Parsed<()> {
        match self.current.kind {
            TokenKind::Identifier => {
                let word = self.take();
                if self.accept(b':') { self.label(word, scope) } else { self.instruction(word, None, scope) }
            }
            TokenKind::Punctuation(b'@') => {
                let start = self.take().span.start;
                let guard = self.guard(scope)?;
                let word = self.expect_identifier("an instruction after its guard")?;
                self.instruction(word, Some((guard, start)), scope)
            }
            TokenKind::Punctuation(b';') => {
                self.take();
                Ok(())
            }
            TokenKind::Dotted => self.body_directive(scope),
            _ => Err(self.unexpected("expected an instruction, a label or a directive")),
        }
    }

    fn body_directive(&mut self, scope: &mut FunctionScope<'a>) -> Parsed<()> {
        let start = self.current.span.start;
        match self.current.text {
            "reg" => {
                self.take();
                self.registers(start, scope)
            }
            "loc" => self.loc(Some(scope)),
            "pragma" => {
                for text in self.pragma()? {
                    scope.statements.push(Statement::Pragma(text));
                }
                Ok(())
            }
            "file" | "section" | "version" | "target" | "entry" | "func" => {
                Err(self.unexpected("expected `}`: this directive belongs outside a function"))
            }
            _ => {
                let linkage = self.linkage();
                let space =
                    if self.current.kind == TokenKind::Dotted { variable_space(self.current.text) } else { None };
                let Some(space) = space else {
                    return Err(self.unknown_directive("expected `.reg`, `.shared`, `.local`, `.param` or `.loc`"));
                };
                self.take();
                self.local_variables(start, space, linkage, scope)
            }
        }
    }

    /// `.loc 1 10 3` and, at will, `, function_name $L__info_string0, inlined_at 1 44 1`
    pub(super) fn loc(&mut self, scope: Option<&mut FunctionScope<'a>>) -> Parsed<()> {
        self.take();
        let (file, line, column) = self.place()?;
        let mut name = None;
        let mut call = None;
        while self.accept(b',') {
            let word = self.expect_identifier("`function_name` or `inlined_at`")?;
            if word.text == "function_name" {
                if !matches!(self.current.kind, TokenKind::Identifier | TokenKind::Dotted) {
                    return Err(self.unexpected("expected a label of a debug section"));
                }
                let label = self.take().text;
                let offset =
                    if self.accept(b'+') { self.bounded_integer(u64::from(u32::MAX), "an offset")? } else { 0 };
                name = Some((label.into(), offset as u32));
            } else if word.text == "inlined_at" {
                call = Some(self.place()?);
            } else {
                let message = format!("unexpected {}", word.describe());
                let expected = Some("expected `function_name` or `inlined_at`".to_owned());
                return Err(self.error_at(PtxErrorKind::Syntax, word.span, message, expected));
            }
        }
        if let Some(scope) = scope {
            let inlined = name.zip(call).map(|(name, call)| Inlining { name, call: scope.call_at(call) });
            scope.location = Some(scope.locate(SourceLocation { file, line, column, inlined }));
        }
        Ok(())
    }

    /// The number of a file, a line and a column.
    fn place(&mut self) -> Parsed<(u32, u32, u32)> {
        let file = self.bounded_integer(u64::from(u32::MAX), "a file number")? as u32;
        let line = self.bounded_integer(u64::from(u32::MAX), "a line")? as u32;
        Ok((file, line, self.bounded_integer(u64::from(u32::MAX), "a column")? as u32))
    }

    /// The meaning of a label: a place, or a table.
    fn label(&mut self, name: Token<'a>, scope: &mut FunctionScope<'a>) -> Parsed<()> {
        let Some(label) = scope.define_label(name.text, name.span) else {
            let message = format!("label `{}` is defined twice in one scope", name.text);
            self.error_at(PtxErrorKind::Duplicate, name.span, message, None);
            return Ok(());
        };
        let start = name.span.start;
        if self.accept_dotted("branchtargets") {
            self.branch_targets(label, start, scope)
        } else if self.accept_dotted("calltargets") {
            let mut targets = Vec::new();
            loop {
                targets.push(self.function_named()?);
                if !self.accept(b',') {
                    break;
                }
            }
            self.expect(b';', "after `.calltargets`")?;
            scope.statements.push(Statement::CallTargets { table: label, targets, span: self.span_from(start) });
            Ok(())
        } else if self.accept_dotted("callprototype") {
            self.call_prototype(label, start, scope)
        } else {
            scope.statements.push(Statement::Label(label));
            Ok(())
        }
    }

    fn branch_targets(&mut self, table: LabelId, start: u32, scope: &mut FunctionScope<'a>) -> Parsed<()> {
        let statement = scope.statements.len();
        let mut names = Vec::new();
        loop {
            names.push(self.expect_identifier("a label")?);
            if !self.accept(b',') {
                break;
            }
        }
        self.expect(b';', "after `.branchtargets`")?;
        for (entry, name) in names.iter().enumerate() {
            scope.refer_to_label(name.text, name.span, LabelSlot::BranchTarget(statement, entry));
        }
        let targets = vec![LabelId(u32::MAX); names.len()];
        scope.statements.push(Statement::BranchTargets { table, targets, span: self.span_from(start) });
        Ok(())
    }

    /// `(.param .b32 _) _ (.param .b64 _) .noreturn;`
    fn call_prototype(&mut self, label: LabelId, start: u32, scope: &mut FunctionScope<'a>) -> Parsed<()> {
        let returns = if self.at(b'(') { self.parameters(None, SymbolReference::Return)? } else { Vec::new() };
        self.expect_identifier("`_`")?;
        let parameters = if self.at(b'(') { self.parameters(None, SymbolReference::Parameter)? } else { Vec::new() };
        let mut is_noreturn = false;
        while self.current.kind == TokenKind::Dotted {
            match self.current.text {
                "noreturn" => {
                    self.take();
                    is_noreturn = true;
                }
                "abi_preserve" | "abi_preserve_control" => {
                    self.take();
                    self.bounded_integer(u64::from(u32::MAX), "a number")?;
                }
                _ => return Err(self.unknown_directive("expected `.noreturn` or `;`")),
            }
        }
        self.expect(b';', "after `.callprototype`")?;
        let span = self.span_from(start);
        let prototype = Box::new(Prototype { returns, parameters, is_noreturn, span });
        scope.statements.push(Statement::CallPrototype { label, prototype });
        Ok(())
    }
}
