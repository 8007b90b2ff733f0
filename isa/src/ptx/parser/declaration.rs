//! Variables, parameters and registers.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::super::ast::{
    FunctionId, InitialValue, Initializer, Linkage, Parameter, PointerAttributes, SymbolReference, Variable,
};
use super::super::error::PtxErrorKind;
use super::super::lexer::{Token, TokenKind};
use super::super::source::Span;
use super::super::types::{ScalarType, StateSpace};
use super::super::words::{self, DottedWord};
use super::constant::{Constant, as_f64};
use super::names::FunctionScope;
use super::pending::{ModuleRegisters, PendingInitialSymbol};
use super::{Parsed, Parser};

/// The words before the names of a declaration.
#[derive(Clone, Copy)]
struct Qualifiers {
    alignment: Option<u32>,
    scalar_type: ScalarType,
    vector_length: u32,
    is_managed: bool,
    pointer: Option<PointerAttributes>,
}

impl Qualifiers {
    fn alignment(&self) -> u32 {
        self.alignment.unwrap_or(self.scalar_type.bytes() * self.vector_length)
    }
}

/// Variables that one `name<n>` may declare.
const MAXIMUM_RANGE: u32 = 1 << 12;

type Dimensions = SmallVec<[Option<u64>; 2]>;

/// The space of a declaring directive.
pub(super) fn variable_space(word: &str) -> Option<StateSpace> {
    Some(match word {
        "global" => StateSpace::Global,
        "const" => StateSpace::Constant,
        "shared" => StateSpace::Shared,
        "local" => StateSpace::Local,
        "param" => StateSpace::Parameter,
        "tex" => StateSpace::Texture,
        _ => return None,
    })
}

impl<'a> Parser<'a> {
    /// `.align 8 .attribute(.managed) .v4 .f32`, in any order, up to the name.
    fn qualifiers(&mut self, is_parameter: bool) -> Parsed<Qualifiers> {
        let start = self.current.span;
        let mut alignment = None;
        let mut scalar_type = None;
        let mut vector_length = 1;
        let mut is_managed = false;
        let mut pointer: Option<PointerAttributes> = None;
        while self.current.kind == TokenKind::Dotted {
            let word = self.current;
            match word.text {
                "align" => {
                    self.take();
                    let bytes = self.alignment()?;
                    match &mut pointer {
                        Some(pointer) => pointer.alignment = bytes,
                        None => alignment = Some(bytes),
                    }
                }
                "attribute" => {
                    self.take();
                    is_managed |= self.attribute()?;
                }
                "v2" | "v4" | "v8" => {
                    self.take();
                    vector_length = u32::from(word.text.as_bytes()[1] - b'0');
                }
                "ptr" if is_parameter => {
                    self.take();
                    pointer = Some(PointerAttributes { space: None, alignment: 4 });
                }
                _ if pointer.is_some() && variable_space(word.text).is_some() => {
                    self.take();
                    if let Some(pointer) = &mut pointer {
                        pointer.space = variable_space(word.text);
                    }
                }
                _ => match words::dotted(word.text) {
                    Some(DottedWord::Type(found)) if scalar_type.is_none() => {
                        self.take();
                        scalar_type = Some(found);
                    }
                    Some(DottedWord::Type(_)) => {
                        return Err(self.unexpected("expected one type"));
                    }
                    _ => return Err(self.unknown_directive("expected a type, `.align`, `.v2`, `.v4` or a name")),
                },
            }
        }
        let Some(scalar_type) = scalar_type else {
            let span = start.to(self.current.span);
            let expected = Some("expected a type such as `.b32` before the name".to_owned());
            return Err(self.error_at(PtxErrorKind::TypeCount, span, "declaration without a type", expected));
        };
        Ok(Qualifiers { alignment, scalar_type, vector_length, is_managed, pointer })
    }

    fn alignment(&mut self) -> Parsed<u32> {
        let span = self.current.span;
        let bytes = self.bounded_integer(1 << 20, "an alignment in bytes")? as u32;
        if bytes.is_power_of_two() {
            return Ok(bytes);
        }
        let expected = Some("expected a power of two".to_owned());
        Err(self.error_at(PtxErrorKind::BadLiteral, span, format!("alignment of {bytes} bytes"), expected))
    }

    /// `(.managed)` or `(.unified(1, 2))`; whether managed.
    fn attribute(&mut self) -> Parsed<bool> {
        self.expect(b'(', "after `.attribute`")?;
        let mut is_managed = false;
        loop {
            match self.current.text {
                "managed" if self.at_dotted("managed") => {
                    self.take();
                    is_managed = true;
                }
                "unified" if self.at_dotted("unified") => {
                    self.take();
                    self.expect(b'(', "after `.unified`")?;
                    self.integer_constant()?;
                    self.expect(b',', "between the halves of a unified identifier")?;
                    self.integer_constant()?;
                    self.expect(b')', "after a unified identifier")?;
                }
                _ => return Err(self.unexpected("expected `.managed` or `.unified`")),
            }
            if !self.accept(b',') {
                self.expect(b')', "after an attribute")?;
                return Ok(is_managed);
            }
        }
    }

    /// An `.attribute(...)` before a function's name.
    pub(super) fn function_attributes(&mut self) -> Parsed<()> {
        while self.accept_dotted("attribute") {
            self.attribute()?;
        }
        Ok(())
    }

    fn dimensions(&mut self) -> Parsed<Dimensions> {
        let mut dimensions = Dimensions::new();
        while self.accept(b'[') {
            if self.accept(b']') {
                dimensions.push(None);
                continue;
            }
            dimensions.push(Some(self.bounded_integer(u64::MAX, "an array size")?));
            self.expect(b']', "after an array size")?;
        }
        Ok(dimensions)
    }

    /// `[n]` after `.const`, with the `[` next: the bank.
    pub(super) fn bank(&mut self) -> Parsed<()> {
        self.expect(b'[', "before a bank of constant memory")?;
        self.bounded_integer(10, "a bank of constant memory")?;
        self.expect(b']', "after a bank of constant memory")?;
        Ok(())
    }

    /// A name followed by nothing, `<n>`, `[..]`, `,` and so on.
    fn declared_name(&mut self) -> Parsed<Token<'a>> {
        self.expect_identifier("a name to declare")
    }

    /// `.space qualifiers name[dims] = value, ...;` — the space has been taken. Calls back for each variable.
    fn variables(
        &mut self,
        start: u32,
        space: StateSpace,
        linkage: Linkage,
        mut declared: impl FnMut(&mut Self, Cow<'a, str>, Span, Variable, Vec<PendingInitialSymbol<'a>>),
    ) -> Parsed<()> {
        let qualifiers = self.qualifiers(false)?;
        loop {
            let name = self.declared_name()?;
            // `.param .b32 p<3>;` declares p0, p1 and p2.
            let count = self.range_count()?;
            let mut dimensions = self.dimensions()?;
            let mut symbols = Vec::new();
            let initializer = if self.accept(b'=') {
                let value = self.initializer(&qualifiers, &mut dimensions, &mut symbols)?;
                Some(value)
            } else {
                None
            };
            if count.is_some() && initializer.is_some() {
                let expected = Some("expected a plain name".to_owned());
                self.error_at(PtxErrorKind::Syntax, name.span, "an initial value of a range of variables", expected);
            }
            let variable = Variable {
                name: name.text.into(),
                linkage,
                space,
                alignment: qualifiers.alignment(),
                scalar_type: qualifiers.scalar_type,
                vector_length: qualifiers.vector_length,
                dimensions,
                initializer,
                is_managed: qualifiers.is_managed,
                span: self.span_from(start),
            };
            match count {
                None => declared(self, name.text.into(), name.span, variable, symbols),
                Some(count) if count > MAXIMUM_RANGE => {
                    let message = format!("more than {MAXIMUM_RANGE} variables in a range");
                    self.error_at(PtxErrorKind::Limit, name.span, message, None);
                }
                Some(count) => {
                    for number in 0..count {
                        let text = format!("{}{number}", name.text);
                        let variable = Variable { name: text.as_str().into(), ..variable.clone() };
                        declared(self, text.into(), name.span, variable, Vec::new());
                    }
                }
            }
            if !self.accept(b',') {
                break;
            }
        }
        self.expect(b';', "after a declaration")?;
        Ok(())
    }

    /// A module-scope declaration.
    pub(super) fn global_variables(&mut self, start: u32, space: StateSpace, linkage: Linkage) -> Parsed<()> {
        self.variables(start, space, linkage, |parser, name, span, variable, symbols| {
            parser.add_global(name, span, variable, symbols);
        })
    }

    /// A declaration in a function's body.
    pub(super) fn local_variables(
        &mut self,
        start: u32,
        space: StateSpace,
        linkage: Linkage,
        scope: &mut FunctionScope<'a>,
    ) -> Parsed<()> {
        self.variables(start, space, linkage, |parser, name, span, variable, symbols| {
            if let Some(symbol) = symbols.first() {
                let expected = Some("expected numbers: addresses are for module-scope variables".to_owned());
                parser.error_at(PtxErrorKind::BadOperand, symbol.span, "address in a local initial value", expected);
            }
            parser.add_local(name, span, variable, scope);
        })
    }

    fn range_count(&mut self) -> Parsed<Option<u32>> {
        if !self.accept(b'<') {
            return Ok(None);
        }
        // Not an expression: `>` ends it.
        let token = self.current;
        let value = super::super::lexer::integer_value(token.text).filter(|_| token.kind == TokenKind::Integer);
        let Some(count) = value.and_then(|(value, _)| u32::try_from(value).ok()) else {
            return Err(self.unexpected("expected the number of registers"));
        };
        self.take();
        self.expect(b'>', "after the number of registers")?;
        Ok(Some(count))
    }

    /// `.reg .b32 %r<10>, %x;` — `.reg` has been taken.
    pub(super) fn registers(&mut self, start: u32, scope: &mut FunctionScope<'a>) -> Parsed<()> {
        let qualifiers = self.qualifiers(false)?;
        loop {
            let name = self.declared_name()?;
            let count = self.range_count()?;
            let shape = (qualifiers.scalar_type, qualifiers.vector_length);
            let span = self.span_from(start);
            self.declare_registers(scope, name.text, count, shape, Span::new(name.span.start, span.end));
            if !self.accept(b',') {
                break;
            }
        }
        self.expect(b';', "after a register declaration")?;
        Ok(())
    }

    /// `.reg .b32 %r<10>;` at module scope, with `.reg` next.
    pub(super) fn module_registers(&mut self) -> Parsed<()> {
        let start = self.take().span.start;
        let qualifiers = self.qualifiers(false)?;
        loop {
            let name = self.declared_name()?;
            let count = self.range_count()?;
            let shape = (qualifiers.scalar_type, qualifiers.vector_length);
            let span = Span::new(name.span.start, self.span_from(start).end);
            self.module_registers.push(ModuleRegisters { name: name.text, count, shape, span });
            if !self.accept(b',') {
                break;
            }
        }
        self.expect(b';', "after a register declaration")?;
        Ok(())
    }

    /// Gives a kernel the registers of module scope. Each kernel has its own: nothing is in them when it starts.
    pub(super) fn declare_module_registers(&mut self, scope: &mut FunctionScope<'a>) {
        for index in 0..self.module_registers.len() {
            let ModuleRegisters { name, count, shape, span } = self.module_registers[index];
            self.declare_registers(scope, name, count, shape, span);
        }
        scope.begin_function();
    }

    /// `( .param .u64 a, .reg .b32 b, ... )`, with the `(` next. Registers and names go to `scope`, where there is one.
    pub(super) fn parameters(
        &mut self,
        mut scope: Option<&mut FunctionScope<'a>>,
        reference: fn(u32) -> SymbolReference,
    ) -> Parsed<Vec<Parameter>> {
        self.expect(b'(', "before parameters")?;
        let mut parameters = Vec::new();
        if self.accept(b')') {
            return Ok(parameters);
        }
        loop {
            let start = self.current.span.start;
            let space = match self.current.text {
                "param" if self.at_dotted("param") => StateSpace::Parameter,
                "reg" if self.at_dotted("reg") => StateSpace::Register,
                _ => return Err(self.unexpected("expected `.param` or `.reg`")),
            };
            self.take();
            let qualifiers = self.qualifiers(true)?;
            let name = self.declared_name()?;
            let dimensions = self.dimensions()?;
            let span = self.span_from(start);
            let mut register = None;
            if let Some(scope) = scope.as_deref_mut() {
                if space == StateSpace::Register {
                    let shape = (qualifiers.scalar_type, qualifiers.vector_length);
                    register = Some(self.declare_registers(scope, name.text, None, shape, name.span));
                } else {
                    let symbol = super::names::Name::Symbol(reference(parameters.len() as u32));
                    if !scope.declare(name.text.into(), symbol) && name.text != "_" {
                        let message = format!("parameter `{}` is declared twice", name.text);
                        self.error_at(PtxErrorKind::Duplicate, name.span, message, None);
                    }
                }
            }
            parameters.push(Parameter {
                name: name.text.into(),
                space,
                scalar_type: qualifiers.scalar_type,
                vector_length: qualifiers.vector_length,
                alignment: qualifiers.alignment(),
                dimensions,
                register,
                pointer: qualifiers.pointer,
                span,
            });
            if !self.accept(b',') {
                break;
            }
        }
        self.expect(b')', "after parameters")?;
        Ok(parameters)
    }

    /// The value behind `=`. Gives an open first dimension its size.
    fn initializer(
        &mut self,
        qualifiers: &Qualifiers,
        dimensions: &mut Dimensions,
        symbols: &mut Vec<PendingInitialSymbol<'a>>,
    ) -> Parsed<Initializer> {
        let start = self.current.span.start;
        if qualifiers.scalar_type.is_opaque() {
            // Settings of a sampler or a texture: the host's binding says the same.
            if self.at(b'{') {
                self.skip_braces();
            } else {
                self.expect_identifier("an initial value")?;
            }
            return Ok(Initializer { values: Vec::new(), span: self.span_from(start) });
        }
        // Elements that one step at each level of braces covers, outermost first; the vector is a level of its own.
        let mut strides: SmallVec<[u64; 4]> = SmallVec::new();
        let mut stride = u64::from(qualifiers.vector_length);
        if qualifiers.vector_length > 1 {
            strides.push(1);
        }
        for dimension in dimensions.iter().rev() {
            strides.push(stride);
            stride = stride.saturating_mul(dimension.unwrap_or(1));
        }
        strides.reverse();
        let open_size = dimensions.first().is_some_and(Option::is_none);
        let limit = if open_size { u64::MAX } else { stride };
        let mut values = Vec::new();
        let end = if self.at(b'{') {
            self.braces(qualifiers.scalar_type, &strides, (0, limit), &mut values, symbols)?
        } else {
            let value = self.initial_value(qualifiers.scalar_type, 0, symbols)?;
            values.push((0, value));
            1
        };
        if open_size && let Some(first) = dimensions.first_mut() {
            *first = Some(end.div_ceil(strides.first().copied().unwrap_or(1).max(1)));
        }
        Ok(Initializer { values, span: self.span_from(start) })
    }

    /// `{ ... }` that fills elements from `base` on, below `limit`; gives one past the last that it filled.
    fn braces(
        &mut self,
        scalar_type: ScalarType,
        strides: &[u64],
        (base, limit): (u64, u64),
        values: &mut Vec<(u64, InitialValue)>,
        symbols: &mut Vec<PendingInitialSymbol<'a>>,
    ) -> Parsed<u64> {
        self.nested(|parser| {
            parser.expect(b'{', "before initial values")?;
            let stride = strides.first().copied().unwrap_or(1).max(1);
            let mut position = base;
            while !parser.accept(b'}') {
                if position >= limit {
                    let expected = Some(format!("expected at most {} elements here", limit - base));
                    let span = parser.current.span;
                    return Err(parser.error_at(PtxErrorKind::BadLiteral, span, "too many initial values", expected));
                }
                if parser.at(b'{') {
                    let inner = strides.get(1..).unwrap_or(&[]);
                    let inner_limit = position.saturating_add(stride).min(limit);
                    parser.braces(scalar_type, inner, (position, inner_limit), values, symbols)?;
                    position = inner_limit;
                } else {
                    let value = parser.initial_value(scalar_type, values.len(), symbols)?;
                    values.push((position, value));
                    position += 1;
                }
                if !parser.accept(b',') {
                    parser.expect(b'}', "or `,` after an initial value")?;
                    break;
                }
            }
            Ok(position)
        })
    }

    /// One element: a number, `symbol + n`, `generic(symbol) + n` or `0xff00(symbol)`.
    fn initial_value(
        &mut self,
        scalar_type: ScalarType,
        index: usize,
        symbols: &mut Vec<PendingInitialSymbol<'a>>,
    ) -> Parsed<InitialValue> {
        if self.current.kind == TokenKind::Identifier {
            return self.initial_address(None, index, symbols);
        }
        if self.current.kind == TokenKind::Integer && self.lexer.peek_byte(self.current.span.end) == b'(' {
            let token = self.take();
            let mask = super::super::lexer::integer_value(token.text).map_or(0, |(value, _)| value);
            let byte = mask.trailing_zeros() / 8;
            if byte > 7 || mask != 0xff << (byte * 8) {
                let expected = Some("expected `0xff`, `0xff00` and so on".to_owned());
                return Err(self.error_at(
                    PtxErrorKind::BadLiteral,
                    token.span,
                    "mask of more than one byte",
                    expected,
                ));
            }
            self.expect(b'(', "after a mask")?;
            let value = self.initial_address(Some(byte as u8), index, symbols)?;
            self.expect(b')', "after a masked address")?;
            return Ok(value);
        }
        if !self.at_constant() {
            return Err(self.unexpected("expected an initial value"));
        }
        let constant = self.constant()?;
        Ok(match (scalar_type, constant) {
            (ScalarType::F32, Constant::Float32(bits)) => InitialValue::Float32(bits),
            (ScalarType::F32, other) => InitialValue::Float32((as_f64(other) as f32).to_bits()),
            (ScalarType::F64, other) => InitialValue::Float64(as_f64(other).to_bits()),
            (_, Constant::Integer { bits, .. }) => InitialValue::Integer(bits),
            (_, Constant::Float32(bits)) => InitialValue::Float32(bits),
            (_, Constant::Float64(value)) => InitialValue::Float64(value.to_bits()),
        })
    }

    fn initial_address(
        &mut self,
        byte: Option<u8>,
        index: usize,
        symbols: &mut Vec<PendingInitialSymbol<'a>>,
    ) -> Parsed<InitialValue> {
        let mut name = self.expect_identifier("a variable or function")?;
        let generic = name.text == "generic" && self.accept(b'(');
        if generic {
            name = self.expect_identifier("a variable or function")?;
            self.expect(b')', "after `generic(name`")?;
        }
        let offset = if self.at(b'+') || self.at(b'-') { self.integer_constant()? as i64 } else { 0 };
        symbols.push(PendingInitialSymbol { name: name.text, span: name.span, global: 0, value: index });
        // The symbol is found at the end of the module.
        let symbol = SymbolReference::Function(FunctionId(u32::MAX));
        Ok(InitialValue::Address { symbol, offset, generic, byte })
    }
}
