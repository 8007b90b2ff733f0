//! Operands.

use super::super::ast::{Address, AddressBase, Operand, OperandKind, PartSelector, RegisterId, SymbolReference};
use super::super::error::PtxErrorKind;
use super::super::lexer::{Token, TokenKind};
use super::super::source::Span;
use super::super::special_register::{Component, SpecialRegister};
use super::constant::Constant;
use super::names::{FunctionScope, Name};
use super::{Parsed, Parser};

impl<'a> Parser<'a> {
    /// The text at a span, as it was written.
    pub(super) fn text_of(&self, span: Span) -> String {
        let text = self.lexer.slice(span);
        if text.chars().count() > 60 { text.chars().take(57).chain("...".chars()).collect() } else { text.to_owned() }
    }

    /// Any operand but a label.
    pub(super) fn operand(&mut self, scope: &FunctionScope<'a>) -> Parsed<Operand> {
        let start = self.current.span.start;
        let kind = match self.current.kind {
            TokenKind::Identifier if !self.at_constant() || self.is_alone() => {
                let token = self.take();
                self.named_operand(token, scope)?
            }
            TokenKind::Punctuation(b'[') => self.address(scope)?,
            TokenKind::Punctuation(b'{') => {
                let elements = self.vector(scope)?;
                if self.accept(b'|') {
                    OperandKind::ResidentVector(elements, self.second_destination(scope)?)
                } else {
                    OperandKind::Vector(elements)
                }
            }
            TokenKind::Punctuation(b'!') if !self.next_is_constant() => {
                self.take();
                let token = self.expect_identifier("a predicate register after `!`")?;
                OperandKind::NegatedPredicate(self.predicate_register(scope, token)?)
            }
            TokenKind::Punctuation(b'-') if !self.next_is_constant() => {
                self.take();
                let token = self.expect_identifier("a register or a literal after `-`")?;
                match self.named_operand(token, scope)? {
                    OperandKind::Register(register) => OperandKind::NegatedRegister(register),
                    OperandKind::Part { register, selector, .. } => {
                        OperandKind::Part { register, selector, negated: true }
                    }
                    _ => {
                        let span = self.span_from(start);
                        let message = format!("`{}` cannot be negated", self.text_of(span));
                        return Err(self.error_at(PtxErrorKind::BadOperand, span, message, None));
                    }
                }
            }
            _ if self.at_constant() => match self.constant()? {
                Constant::Integer { bits, .. } => OperandKind::Integer(bits),
                Constant::Float32(bits) => OperandKind::Float32(bits),
                Constant::Float64(value) => OperandKind::Float64(value.to_bits()),
            },
            _ => return Err(self.unexpected("expected an operand")),
        };
        Ok(Operand { kind, span: self.span_from(start) })
    }

    /// Whether the current token is an operand of its own rather than part of an expression.
    fn is_alone(&self) -> bool {
        let mut offset = self.current.span.end;
        while matches!(self.lexer.peek_byte(offset), b' ' | b'\t') {
            offset += 1;
        }
        matches!(self.lexer.peek_byte(offset), b',' | b';' | b'}' | b']' | b')' | b'\n' | b'\r')
    }

    /// Whether a sign or `!` is followed by a number or another operator rather than by a name.
    fn next_is_constant(&self) -> bool {
        let mut offset = self.current.span.end;
        while matches!(self.lexer.peek_byte(offset), b' ' | b'\t') {
            offset += 1;
        }
        matches!(self.lexer.peek_byte(offset), b'0'..=b'9' | b'.' | b'(' | b'-' | b'+' | b'~' | b'!')
    }

    /// The meaning of a name, with its component, its partner in a pair, or its offset.
    fn named_operand(&mut self, token: Token<'a>, scope: &FunctionScope<'a>) -> Parsed<OperandKind> {
        if token.text == "_" {
            return if self.at(b'|') { self.pair(None, scope) } else { Ok(OperandKind::Sink) };
        }
        match self.resolve(scope, token.text) {
            Some(Name::Register { first, vector_length }) => self.register_operand(token, first, vector_length, scope),
            Some(Name::Symbol(symbol)) => {
                let mut offset = 0i64;
                // `a[2]` is the address of an element.
                while self.accept(b'[') {
                    let index = self.integer_constant()? as i64;
                    self.expect(b']', "after the index of an element")?;
                    offset = offset.wrapping_add(index.wrapping_mul(self.element_bytes(symbol, scope)));
                }
                if self.at(b'+') || self.at(b'-') {
                    offset = offset.wrapping_add(self.integer_constant()? as i64);
                }
                Ok(OperandKind::Symbol { symbol, offset })
            }
            None => match SpecialRegister::from_name(token.text) {
                Some(special) => self.special_register(token, special),
                None => Err(self.unknown_name(scope, token.text, token.span)),
            },
        }
    }

    /// Bytes of one element of a variable; 0 for a symbol that has none.
    fn element_bytes(&self, symbol: SymbolReference, scope: &FunctionScope<'a>) -> i64 {
        let shape = match symbol {
            SymbolReference::Global(id) => {
                self.globals.get(id.index()).map(|variable| (variable.scalar_type, variable.vector_length))
            }
            SymbolReference::Local(id) => {
                let variable = scope.function.variables.get(id.index());
                variable.map(|variable| (variable.scalar_type, variable.vector_length))
            }
            SymbolReference::Parameter(index) => {
                let parameter = scope.function.parameters.get(index as usize);
                parameter.map(|parameter| (parameter.scalar_type, parameter.vector_length))
            }
            SymbolReference::Return(index) => {
                let parameter = scope.function.returns.get(index as usize);
                parameter.map(|parameter| (parameter.scalar_type, parameter.vector_length))
            }
            SymbolReference::Function(_) => None,
        };
        shape.map_or(0, |(scalar_type, length)| i64::from(scalar_type.bytes() * length))
    }

    fn special_register(&mut self, token: Token<'a>, mut special: SpecialRegister) -> Parsed<OperandKind> {
        if !special.name.is_vector() {
            return Ok(OperandKind::Special(special));
        }
        let component =
            if self.current.kind == TokenKind::Dotted { Component::from_name(self.current.text) } else { None };
        let Some(component) = component else {
            let expected = Some("expected `.x`, `.y`, `.z` or `.w` after it".to_owned());
            let message = format!("`{}` without its component", token.text);
            return Err(self.error_at(PtxErrorKind::BadOperand, token.span, message, expected));
        };
        self.take();
        special.component = component;
        Ok(OperandKind::Special(special))
    }

    fn register_operand(
        &mut self,
        token: Token<'a>,
        first: RegisterId,
        vector_length: u32,
        scope: &FunctionScope<'a>,
    ) -> Parsed<OperandKind> {
        if self.current.kind == TokenKind::Dotted {
            let word = self.take();
            if vector_length > 1
                && let Some(component) = Component::from_name(word.text)
                && component.index() < vector_length
            {
                return Ok(OperandKind::Register(RegisterId(first.0 + component.index())));
            }
            if let Some(selector) = part_selector(word.text)
                && vector_length == 1
            {
                return Ok(OperandKind::Part { register: first, selector, negated: false });
            }
            let message = format!("`{}` has no part `.{}`", token.text, word.text);
            return Err(self.error_at(PtxErrorKind::BadOperand, word.span, message, None));
        }
        if vector_length > 1 {
            let element =
                |index| Operand { kind: OperandKind::Register(RegisterId(first.0 + index)), span: token.span };
            return Ok(OperandKind::Vector((0..vector_length).map(element).collect()));
        }
        if self.at(b'|') { self.pair(Some(first), scope) } else { Ok(OperandKind::Register(first)) }
    }

    /// `|q` or `|_` after the first of a pair.
    fn pair(&mut self, first: Option<RegisterId>, scope: &FunctionScope<'a>) -> Parsed<OperandKind> {
        self.expect(b'|', "in a pair of destinations")?;
        Ok(OperandKind::Pair(first, self.second_destination(scope)?))
    }

    /// A register, or `None` for `_`.
    fn second_destination(&mut self, scope: &FunctionScope<'a>) -> Parsed<Option<RegisterId>> {
        let token = self.expect_identifier("the second destination")?;
        if token.text == "_" {
            return Ok(None);
        }
        match self.resolve(scope, token.text) {
            Some(Name::Register { first, vector_length: 1 }) => Ok(Some(first)),
            Some(_) => {
                let message = format!("`{}` is no single register", token.text);
                Err(self.error_at(PtxErrorKind::BadOperand, token.span, message, None))
            }
            None => Err(self.unknown_name(scope, token.text, token.span)),
        }
    }

    /// `{a, b, ...}`
    fn vector(&mut self, scope: &FunctionScope<'a>) -> Parsed<Box<[Operand]>> {
        self.nested(|parser| {
            parser.expect(b'{', "before a vector")?;
            let mut elements = Vec::with_capacity(4);
            loop {
                elements.push(parser.operand(scope)?);
                if !parser.accept(b',') {
                    break;
                }
            }
            parser.expect(b'}', "after a vector")?;
            Ok(elements.into_boxed_slice())
        })
    }

    /// `[...]`
    fn address(&mut self, scope: &FunctionScope<'a>) -> Parsed<OperandKind> {
        self.expect(b'[', "before an address")?;
        let start = self.current.span.start;
        let (base, mut offset) = if self.current.kind == TokenKind::Identifier {
            let token = self.take();
            match self.named_operand(token, scope)? {
                OperandKind::Register(register) => (AddressBase::Register(register), 0),
                OperandKind::Symbol { symbol, offset } => (AddressBase::Symbol(symbol), offset),
                _ => {
                    let message = format!("`{}` is no address", token.text);
                    let expected = Some("expected a register, a variable or a number".to_owned());
                    return Err(self.error_at(PtxErrorKind::BadOperand, token.span, message, expected));
                }
            }
        } else {
            (AddressBase::Absolute, self.integer_constant()? as i64)
        };
        if self.at(b'+') || self.at(b'-') {
            offset = offset.wrapping_add(self.integer_constant()? as i64);
        }
        if self.at(b',') {
            let kind = match base {
                AddressBase::Register(register) if offset == 0 => OperandKind::Register(register),
                AddressBase::Symbol(symbol) => OperandKind::Symbol { symbol, offset },
                _ => OperandKind::Address(Address { base, offset }),
            };
            return self.address_list(Operand { kind, span: self.span_from(start) }, scope);
        }
        self.expect(b']', "after an address")?;
        if let AddressBase::Symbol(SymbolReference::Function(_)) = base {
            let span = self.span_from(start);
            let message = format!("`{}` is code", self.text_of(Span::new(start, span.end.saturating_sub(1))));
            let expected = Some("expected a variable or a register".to_owned());
            return Err(self.error_at(PtxErrorKind::BadOperand, span, message, expected));
        }
        Ok(OperandKind::Address(Address { base, offset }))
    }

    fn address_list(&mut self, first: Operand, scope: &FunctionScope<'a>) -> Parsed<OperandKind> {
        self.nested(|parser| {
            let mut parts = vec![first];
            while parser.accept(b',') {
                parts.push(parser.operand(scope)?);
            }
            parser.expect(b']', "after an address")?;
            Ok(OperandKind::AddressList(parts.into_boxed_slice()))
        })
    }
}

/// `b0`, `b3210`, `h1`, `h10`
fn part_selector(text: &str) -> Option<PartSelector> {
    let (letter, digits) = (text.bytes().next()?, text.get(1..)?.as_bytes());
    let half_words = match letter {
        b'b' => false,
        b'h' => true,
        _ => return None,
    };
    let most = if half_words { 2 } else { 4 };
    if digits.is_empty() || digits.len() > most {
        return None;
    }
    let mut parts = [0; 4];
    for (part, digit) in parts.iter_mut().zip(digits) {
        *part = match digit {
            b'0'..=b'7' => digit - b'0',
            _ => return None,
        };
    }
    Some(PartSelector { half_words, parts, count: digits.len() as u8 })
}
