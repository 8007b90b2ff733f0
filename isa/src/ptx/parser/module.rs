//! Module scope: directives, variables, headers of functions.

use std::borrow::Cow;

use super::super::ast::{
    Alias, Body, Function, FunctionId, GlobalId, InitialValue, Linkage, LocalVariableId, PerformanceDirectives,
    SymbolReference, Variable,
};
use super::super::error::PtxErrorKind;
use super::super::lexer::{Token, TokenKind, integer_value};
use super::super::source::Span;
use super::super::types::StateSpace;
use super::super::words;
use super::declaration::variable_space;
use super::names::{FunctionScope, Name};
use super::pending::PendingInitialSymbol;
use super::{Failed, Parsed, Parser};

/// Every directive of PTX, for the nearest right name.
#[rustfmt::skip]
const DIRECTIVES: &[&str] = &[
    "address_size", "alias", "align", "attribute", "branchtargets", "callprototype", "calltargets", "common", "const",
    "entry", "explicitcluster", "extern", "file", "func", "global", "loc", "local", "maxclusterrank", "maxnctapersm",
    "maxnreg", "maxntid", "minnctapersm", "noreturn", "param", "pragma", "reg", "reqnctapercluster", "reqntid", "section",
    "shared", "target", "tex", "version", "visible", "weak", "abi_preserve", "abi_preserve_control", "blocksareclusters",
];

/// The versions of PTX by major number, with the latest minor one of each (PTX ISA, "Release Notes").
const VERSIONS: [(u16, u16); 9] = [(1, 5), (2, 3), (3, 2), (4, 3), (5, 0), (6, 5), (7, 8), (8, 8), (9, 5)];

/// The architectures that `.target` knows (PTX ISA, ".target", and its release notes).
#[rustfmt::skip]
const ARCHITECTURES: [u32; 31] = [
    10, 11, 12, 13, 20, 21, 30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120,
    121,
];

/// Whether `.target` takes the word: a GPU, and the options of a module.
fn is_target(word: &str) -> bool {
    let architecture = word.strip_prefix("sm_").or_else(|| word.strip_prefix("compute_"));
    match architecture {
        Some(number) => {
            let digits = number.trim_end_matches(['a', 'f']);
            let is_known = digits.parse().is_ok_and(|number: u32| ARCHITECTURES.contains(&number));
            digits.len() + 1 >= number.len() && digits.bytes().all(|byte| byte.is_ascii_digit()) && is_known
        }
        None => matches!(word, "texmode_unified" | "texmode_independent" | "map_f64_to_f32" | "debug"),
    }
}

impl<'a> Parser<'a> {
    /// The whole text.
    pub(super) fn module(&mut self) {
        let first = self.current.span;
        let mut has_header = self.at_dotted("version");
        if has_header {
            match self.module_item() {
                Ok(()) => has_header = self.at_dotted("target"),
                Err(_) => self.recover_module_item(first),
            }
        }
        let after = self.current.span;
        while !self.at_end() && !self.is_hopeless() {
            let before = self.current.span;
            if self.module_item().is_err() {
                self.recover_module_item(before);
            }
        }
        self.find_initial_symbols();
        // A text with other mistakes is told those: without a header it may be no PTX at all.
        if !has_header && self.errors.is_empty() && self.lexer.errors.is_empty() {
            let (span, missing) =
                if self.version == (0, 0) || first == after { (first, "version") } else { (after, "target") };
            let message = format!("the directive `.{missing}` is missing at the start of the text");
            let expected = "expected `.version` and `.target`, such as `.version 7.8` and `.target sm_70`".to_owned();
            self.error_at(PtxErrorKind::Syntax, span, message, Some(expected));
        }
    }

    /// Passes the rest of a broken item: to its `;`, over its braces, or to a word that surely begins another item.
    fn recover_module_item(&mut self, item: Span) {
        while !self.at_end() {
            if self.at(b'{') {
                return self.skip_braces();
            }
            let begins_item =
                matches!(self.current.text, "entry" | "func" | "visible" | "extern" | "weak" | "version" | "target");
            if self.current.kind == TokenKind::Dotted && begins_item && self.current.span != item {
                return;
            }
            if matches!(self.take().kind, TokenKind::Punctuation(b';' | b'}')) {
                return;
            }
        }
    }

    /// Records a directive that is not known here.
    pub(super) fn unknown_directive(&mut self, expected: &str) -> Failed {
        let word = self.current;
        let expected = match words::nearest(word.text, DIRECTIVES.iter().copied()) {
            Some(near) => format!("the nearest directive is `.{near}`"),
            None => expected.to_owned(),
        };
        let message = format!("directive {} is not known here", word.describe());
        self.error_at(PtxErrorKind::UnknownDirective, word.span, message, Some(expected))
    }

    fn module_item(&mut self) -> Parsed<()> {
        let start = self.current.span.start;
        if self.accept(b';') {
            return Ok(());
        }
        if self.current.kind != TokenKind::Dotted {
            return Err(self.unexpected("expected a directive such as `.visible`, `.entry` or `.global`"));
        }
        match self.current.text {
            "version" => self.version(),
            "target" => self.target(),
            "address_size" => {
                self.take();
                let span = self.current.span;
                self.address_size = self.bounded_integer(64, "32 or 64")? as u32;
                if !matches!(self.address_size, 32 | 64) {
                    let expected = Some("expected 32 or 64".to_owned());
                    self.error_at(PtxErrorKind::BadLiteral, span, "address size is out of range", expected);
                }
                Ok(())
            }
            "file" => self.file(),
            "section" => self.section(),
            "reg" => self.module_registers(),
            "loc" => self.loc(None),
            "pragma" => {
                let mut pragmas = self.pragma()?;
                self.pragmas.append(&mut pragmas);
                Ok(())
            }
            "alias" => self.alias(start),
            _ => self.linked_item(start),
        }
    }

    fn version(&mut self) -> Parsed<()> {
        self.take();
        let token = self.current;
        let (major, minor) = token.text.split_once('.').unwrap_or((token.text, "0"));
        match (major.parse(), minor.parse()) {
            (Ok(major), Ok(minor)) if matches!(token.kind, TokenKind::DecimalFloat | TokenKind::Integer) => {
                self.take();
                self.version = (major, minor);
                if !VERSIONS.iter().any(|(known, last)| *known == major && minor <= *last) {
                    let (major, minor) = VERSIONS[VERSIONS.len() - 1];
                    let message = format!("there is no PTX version {}", token.text);
                    let expected = format!("the latest version that is known is {major}.{minor}");
                    self.error_at(PtxErrorKind::BadLiteral, token.span, message, Some(expected));
                }
                Ok(())
            }
            _ => Err(self.unexpected("expected a version such as 7.8")),
        }
    }

    fn target(&mut self) -> Parsed<()> {
        let start = self.take().span.start;
        loop {
            let name = self.expect_identifier("a target such as sm_70")?;
            if !is_target(name.text) {
                let known = ["sm_70", "texmode_unified", "texmode_independent", "map_f64_to_f32", "debug"];
                let expected = match words::nearest(name.text, known) {
                    Some(near) => format!("the nearest target is `{near}`"),
                    None => "expected a target such as sm_70, sm_90a or texmode_independent".to_owned(),
                };
                let message = format!("`{}` is no target", name.text);
                self.error_at(PtxErrorKind::BadLiteral, name.span, message, Some(expected));
            }
            self.targets.push(name.text.into());
            if !self.accept(b',') {
                self.target_span = self.span_from(start);
                return Ok(());
            }
        }
    }

    /// `.file 1 "name", time, size`
    fn file(&mut self) -> Parsed<()> {
        self.take();
        let number = self.bounded_integer(u64::from(u32::MAX), "a file number")? as u32;
        if self.current.kind != TokenKind::String {
            return Err(self.unexpected("expected a file name in quotes"));
        }
        let name = self.take().text;
        self.files.push((number, name.into()));
        while self.accept(b',') {
            self.integer_constant()?;
        }
        Ok(())
    }

    /// `.section .debug_str { label: .b8 1, 2, 0 }`, and other sections, which are passed over.
    fn section(&mut self) -> Parsed<()> {
        self.take();
        let has_strings = self.at_dotted("debug_str");
        while !self.at(b'{') {
            if self.at_end() {
                return Err(self.unexpected("expected `{` after the section's name"));
            }
            self.take();
        }
        if has_strings {
            self.debug_strings();
        } else {
            self.skip_braces();
        }
        Ok(())
    }

    /// Takes in the labels and bytes of a section, up to its `}`, and passes over other text.
    fn debug_strings(&mut self) {
        let open = self.take().span;
        let mut depth = 1u32;
        while !self.at_end() {
            let token = self.take();
            match token.kind {
                TokenKind::Punctuation(b'{') => depth += 1,
                TokenKind::Punctuation(b'}') => {
                    depth -= 1;
                    if depth == 0 {
                        return;
                    }
                }
                TokenKind::Identifier if self.at(b':') => {
                    let strings = &mut self.debug_strings;
                    strings.labels.insert(token.text.into(), strings.bytes.len() as u32);
                }
                TokenKind::Integer => {
                    let value = integer_value(token.text).map_or(0, |(value, _)| value as u8);
                    self.debug_strings.bytes.push(value);
                }
                _ => {}
            }
        }
        let expected = Some("expected `}` before the end of the file".to_owned());
        self.error_at(PtxErrorKind::Syntax, open, "`{` without its `}`", expected);
    }

    /// `.pragma "a", "b";`
    pub(super) fn pragma(&mut self) -> Parsed<Vec<Box<str>>> {
        self.take();
        let mut strings = Vec::new();
        loop {
            if self.current.kind != TokenKind::String {
                return Err(self.unexpected("expected a string"));
            }
            strings.push(self.take().text.into());
            if !self.accept(b',') {
                break;
            }
        }
        self.expect(b';', "after `.pragma`")?;
        Ok(strings)
    }

    fn alias(&mut self, start: u32) -> Parsed<()> {
        self.take();
        let name = self.function_named()?;
        self.expect(b',', "between the names of an alias")?;
        let target = self.function_named()?;
        self.expect(b';', "after an alias")?;
        self.aliases.push(Alias { name, target, span: self.span_from(start) });
        Ok(())
    }

    /// The name of a function that is declared.
    pub(super) fn function_named(&mut self) -> Parsed<FunctionId> {
        let token = self.expect_identifier("a function's name")?;
        if let Some(SymbolReference::Function(id)) = self.module_names.get(token.text) {
            return Ok(*id);
        }
        let functions = self.functions.iter().map(|function| &*function.name);
        let expected = match words::nearest(token.text, functions) {
            Some(near) => format!("the nearest function is `{near}`"),
            None => "expected a function that is declared before".to_owned(),
        };
        let message = format!("no function `{}`", token.text);
        Err(self.error_at(PtxErrorKind::UnknownSymbol, token.span, message, Some(expected)))
    }

    /// `.visible`, `.extern`, `.weak` or `.common`, if any.
    pub(super) fn linkage(&mut self) -> Linkage {
        let linkage = match self.current.text {
            "visible" => Linkage::Visible,
            "extern" => Linkage::External,
            "weak" => Linkage::Weak,
            "common" => Linkage::Common,
            _ => return Linkage::Internal,
        };
        if self.current.kind != TokenKind::Dotted {
            return Linkage::Internal;
        }
        self.take();
        linkage
    }

    fn linked_item(&mut self, start: u32) -> Parsed<()> {
        let linkage = self.linkage();
        if self.current.kind != TokenKind::Dotted {
            return Err(self.unexpected("expected `.entry`, `.func` or a variable's state space"));
        }
        match self.current.text {
            "entry" | "func" => self.function(start, linkage),
            word => match variable_space(word) {
                Some(space) => {
                    self.take();
                    if space == StateSpace::Constant && self.at(b'[') {
                        self.bank()?;
                    }
                    self.global_variables(start, space, linkage)
                }
                None => Err(self.unknown_directive("expected a module-scope directive")),
            },
        }
    }

    /// Adds a module-scope variable, or completes the declaration of one.
    pub(super) fn add_global(
        &mut self,
        name: Cow<'a, str>,
        span: Span,
        variable: Variable,
        symbols: Vec<PendingInitialSymbol<'a>>,
    ) {
        let index = match self.module_names.get(&*name).copied() {
            None => {
                let id = GlobalId(self.globals.len() as u32);
                self.module_names.insert(name.clone(), SymbolReference::Global(id));
                self.globals.push(variable);
                id.index()
            }
            Some(SymbolReference::Global(id)) if variable.linkage == Linkage::External => id.index(),
            Some(SymbolReference::Global(id))
                if self.globals[id.index()].linkage != Linkage::Internal
                    && self.globals[id.index()].initializer.is_none() =>
            {
                self.globals[id.index()] = variable;
                id.index()
            }
            Some(_) => {
                let message = format!("`{name}` is declared twice");
                self.error_at(PtxErrorKind::Duplicate, span, message, None);
                return;
            }
        };
        let pending = symbols.into_iter().map(|symbol| PendingInitialSymbol { global: index, ..symbol });
        self.pending_initial_symbols.extend(pending);
    }

    /// Adds a variable of a function's body.
    pub(super) fn add_local(
        &mut self,
        name: Cow<'a, str>,
        span: Span,
        variable: Variable,
        scope: &mut FunctionScope<'a>,
    ) {
        let id = LocalVariableId(scope.function.variables.len() as u32);
        if !scope.declare(name.clone(), Name::Symbol(SymbolReference::Local(id))) {
            let message = format!("`{name}` is declared twice in one scope");
            self.error_at(PtxErrorKind::Duplicate, span, message, None);
        }
        scope.function.variables.push(variable);
        scope.statements.push(super::super::ast::Statement::Variable(id));
    }

    /// Ties the symbols of initial values to the variables and functions that they name.
    fn find_initial_symbols(&mut self) {
        for pending in std::mem::take(&mut self.pending_initial_symbols) {
            let Some(found) = self.module_names.get(pending.name).copied() else {
                let near = words::nearest(pending.name, self.module_names.keys().map(|name| &**name));
                let expected = match near {
                    Some(near) => format!("the nearest name is `{near}`"),
                    None => "expected a variable or function of this module".to_owned(),
                };
                let message = format!("`{}` is not declared", pending.name);
                self.error_at(PtxErrorKind::UnknownSymbol, pending.span, message, Some(expected));
                continue;
            };
            let initializer = self.globals.get_mut(pending.global).and_then(|global| global.initializer.as_mut());
            if let Some((_, InitialValue::Address { symbol, .. })) =
                initializer.and_then(|initializer| initializer.values.get_mut(pending.value))
            {
                *symbol = found;
            }
        }
    }

    /// `.func (returns) name (parameters) directives { body }` or `;`
    fn function(&mut self, start: u32, linkage: Linkage) -> Parsed<()> {
        let is_entry = self.take().text == "entry";
        let mut scope = FunctionScope::new(Function {
            name: "".into(),
            is_entry,
            linkage,
            returns: Vec::new(),
            parameters: Vec::new(),
            is_noreturn: false,
            performance: PerformanceDirectives::default(),
            body: None,
            register_types: Vec::new(),
            register_declarations: Vec::new(),
            labels: Vec::new(),
            locations: Vec::new(),
            variables: Vec::new(),
            span: Span::default(),
        });
        if is_entry {
            self.declare_module_registers(&mut scope);
        }
        self.function_attributes()?;
        if self.at(b'(') {
            scope.function.returns = self.parameters(Some(&mut scope), SymbolReference::Return)?;
        }
        let name = self.expect_identifier("the function's name")?;
        scope.function.name = name.text.into();
        if self.at(b'(') {
            scope.function.parameters = self.parameters(Some(&mut scope), SymbolReference::Parameter)?;
        }
        self.function_directives(&mut scope.function)?;
        scope.function.span = self.span_from(start);
        let Some(id) = self.add_function(name, &scope.function) else {
            if self.at(b'{') {
                self.skip_braces();
            } else {
                self.accept(b';');
            }
            return Ok(());
        };
        if self.accept(b';') {
            return Ok(());
        }
        let body_start = self.current.span.start;
        self.expect(b'{', "or `;` after a function's header")?;
        self.body(&mut scope);
        let mut function = scope.function;
        function.body = Some(Body { statements: scope.statements, span: self.span_from(body_start) });
        self.functions[id.index()] = function;
        Ok(())
    }

    /// Makes a function's name known; `None` (and an error) where it is something else or defined already.
    fn add_function(&mut self, name: Token<'a>, header: &Function) -> Option<FunctionId> {
        let is_definition = self.at(b'{');
        match self.module_names.get(name.text).copied() {
            None => {
                let id = FunctionId(self.functions.len() as u32);
                self.module_names.insert(name.text.into(), SymbolReference::Function(id));
                self.functions.push(header.clone());
                Some(id)
            }
            Some(SymbolReference::Function(id)) if self.functions[id.index()].body.is_none() => {
                if is_definition {
                    self.functions[id.index()] = header.clone();
                }
                Some(id)
            }
            Some(SymbolReference::Function(id)) if !is_definition => Some(id),
            Some(_) => {
                let message = format!("`{}` is defined twice", name.text);
                self.error_at(PtxErrorKind::Duplicate, name.span, message, None);
                None
            }
        }
    }

    fn function_directives(&mut self, function: &mut Function) -> Parsed<()> {
        while self.current.kind == TokenKind::Dotted {
            let performance = &mut function.performance;
            match self.current.text {
                "maxntid" => performance.maximum_threads = Some(self.extents()?),
                "reqntid" => performance.required_threads = Some(self.extents()?),
                "reqnctapercluster" => performance.required_cluster = Some(self.extents()?),
                "minnctapersm" => performance.minimum_ctas_per_sm = Some(self.directive_number()?),
                "maxnctapersm" => performance.maximum_ctas_per_sm = Some(self.directive_number()?),
                "maxnreg" => performance.maximum_registers = Some(self.directive_number()?),
                "maxclusterrank" => performance.maximum_cluster_rank = Some(self.directive_number()?),
                "abi_preserve" | "abi_preserve_control" => {
                    self.directive_number()?;
                }
                "explicitcluster" => {
                    self.take();
                    performance.explicit_cluster = true;
                }
                "blocksareclusters" => {
                    self.take();
                }
                "noreturn" => {
                    self.take();
                    function.is_noreturn = true;
                }
                "pragma" => {
                    let mut pragmas = self.pragma()?;
                    function.performance.pragmas.append(&mut pragmas);
                }
                _ => return Err(self.unknown_directive("expected `.maxntid` or the like, `{` or `;`")),
            }
        }
        Ok(())
    }

    fn directive_number(&mut self) -> Parsed<u32> {
        self.take();
        Ok(self.bounded_integer(u64::from(u32::MAX), "a number")? as u32)
    }

    /// `x`, `x, y` or `x, y, z`; the others are 1.
    fn extents(&mut self) -> Parsed<[u32; 3]> {
        let mut extents = [self.directive_number()?, 1, 1];
        for extent in &mut extents[1..] {
            if !self.accept(b',') {
                break;
            }
            *extent = self.bounded_integer(u64::from(u32::MAX), "a number")? as u32;
        }
        Ok(extents)
    }
}
