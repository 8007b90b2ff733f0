//! Names in scope: registers, variables, parameters, labels.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::super::ast::{
    Function, Label, LabelId, LocationId, RegisterDeclaration, RegisterId, SourceLocation, Statement, SymbolReference,
};
use super::super::error::PtxErrorKind;
use super::super::source::Span;
use super::super::types::ScalarType;
use super::super::words;
use super::Parser;

/// The meaning of a name in an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// One register, or `vector_length` consecutive ones.
    Register { first: RegisterId, vector_length: u32 },
    /// Something with an address.
    Symbol(SymbolReference),
}

/// `name<count>`.
#[derive(Clone, Copy)]
struct Range {
    first: RegisterId,
    count: u32,
    vector_length: u32,
}

/// Where the number of a label goes once it is known.
#[derive(Clone, Copy)]
pub(super) enum LabelSlot {
    /// An operand of an instruction: statement, operand.
    Operand(usize, usize),
    /// An entry of a `.branchtargets`: statement, entry.
    BranchTarget(usize, usize),
    /// The prototype of a `call`: statement.
    CallPrototype(usize),
}

struct PendingLabel<'a> {
    name: &'a str,
    span: Span,
    slot: LabelSlot,
}

/// The names that one `{ ... }` declares.
#[derive(Default)]
struct Scope<'a> {
    names: BTreeMap<Cow<'a, str>, Name>,
    /// Ranges by their stems. A function has a handful of them, and nearly every operand names one: they are looked through from first to
    /// last.
    ranges: Vec<(&'a str, Range)>,
    labels: BTreeMap<&'a str, LabelId>,
    pending: Vec<PendingLabel<'a>>,
}

impl<'a> Scope<'a> {
    fn find(&self, name: &str) -> Option<Name> {
        self.names.get(name).copied().or_else(|| self.find_in_ranges(name))
    }

    /// The register that `name` is in one of the ranges: a stem and a decimal number without leading zeros.
    fn find_in_ranges(&self, name: &str) -> Option<Name> {
        if self.ranges.is_empty() {
            return None;
        }
        let name = name.as_bytes();
        let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        // A stem may itself end in digits, so every cut is tried. Ten digits are the most that a range's numbers have.
        for length in (1..=digits.min(10)).rev() {
            let (stem, number) = name.split_at(name.len() - length);
            if length > 1 && number[0] == b'0' {
                continue;
            }
            let number = number.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
            if let Some(range) = self.range(stem)
                && number < u64::from(range.count)
            {
                let first = RegisterId(range.first.0 + number as u32 * range.vector_length);
                return Some(Name::Register { first, vector_length: range.vector_length });
            }
        }
        None
    }

    fn range(&self, stem: &[u8]) -> Option<&Range> {
        self.ranges.iter().find(|(other, _)| other.as_bytes() == stem).map(|(_, range)| range)
    }
}

/// A function under construction.
pub(super) struct FunctionScope<'a> {
    pub function: Function,
    pub statements: Vec<Statement>,
    /// The last `.loc`.
    pub location: Option<LocationId>,
    /// The latest place of each file, line and column.
    pub latest_locations: BTreeMap<(u32, u32, u32), LocationId>,
    /// The places of the function.
    pub known_locations: BTreeMap<SourceLocation, LocationId>,
    /// Innermost last; the first is the function's own.
    scopes: Vec<Scope<'a>>,
    /// The names that module scope gives the function.
    around: Scope<'a>,
}

/// Registers that one function may declare; real code stays below a tenth.
const MAXIMUM_REGISTERS: u64 = 1 << 22;

impl<'a> FunctionScope<'a> {
    pub fn new(function: Function) -> Self {
        Self {
            function,
            statements: Vec::new(),
            location: None,
            latest_locations: BTreeMap::new(),
            known_locations: BTreeMap::new(),
            scopes: vec![Scope::default()],
            around: Scope::default(),
        }
    }

    /// Moves the declarations so far behind the function's own names.
    pub fn begin_function(&mut self) {
        self.around = self.scopes.first_mut().map(std::mem::take).unwrap_or_default();
    }

    pub fn begin_scope(&mut self) {
        self.scopes.push(Scope::default());
    }

    pub fn scope_depth(&self) -> usize {
        self.scopes.len()
    }

    /// The number of a place of the source.
    pub fn locate(&mut self, location: SourceLocation) -> LocationId {
        let locations = &mut self.function.locations;
        let next = LocationId(locations.len() as u32);
        let id = *self.known_locations.entry(location.clone()).or_insert(next);
        self.latest_locations.insert((location.file, location.line, location.column), id);
        if id == next {
            locations.push(location);
        }
        id
    }

    /// The latest place of a file, line and column: where a function was called that was inlined.
    pub fn call_at(&mut self, (file, line, column): (u32, u32, u32)) -> LocationId {
        match self.latest_locations.get(&(file, line, column)) {
            Some(&known) => known,
            None => self.locate(SourceLocation { file, line, column, inlined: None }),
        }
    }

    /// Makes a name known in the innermost scope; false where it is known there already.
    pub fn declare(&mut self, name: Cow<'a, str>, meaning: Name) -> bool {
        let Some(scope) = self.scopes.last_mut() else { return false };
        scope.names.insert(name, meaning).is_none()
    }

    /// The meaning of a name in the function, innermost scope first.
    pub fn find(&self, name: &str) -> Option<Name> {
        let found = self.scopes.iter().rev().find_map(|scope| scope.find(name));
        found.or_else(|| self.around.find(name))
    }

    /// Records a reference to a label, which may be defined later in any enclosing scope.
    pub fn refer_to_label(&mut self, name: &'a str, span: Span, slot: LabelSlot) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.pending.push(PendingLabel { name, span, slot });
        }
    }

    /// A new label of the innermost scope; `None` where the scope has one of that name.
    pub fn define_label(&mut self, name: &'a str, span: Span) -> Option<LabelId> {
        let id = LabelId(self.function.labels.len() as u32);
        let scope = self.scopes.last_mut()?;
        if scope.labels.contains_key(name) {
            return None;
        }
        scope.labels.insert(name, id);
        self.function.labels.push(Label { name: name.into(), span });
        Some(id)
    }

    fn fill(statements: &mut [Statement], slot: LabelSlot, label: LabelId) {
        use super::super::ast::OperandKind;
        match slot {
            LabelSlot::Operand(statement, operand) => {
                if let Some(Statement::Instruction(instruction)) = statements.get_mut(statement)
                    && let Some(operand) = instruction.operands.get_mut(operand)
                {
                    operand.kind = OperandKind::Label(label);
                }
            }
            LabelSlot::BranchTarget(statement, entry) => {
                if let Some(Statement::BranchTargets { targets, .. }) = statements.get_mut(statement)
                    && let Some(target) = targets.get_mut(entry)
                {
                    *target = label;
                }
            }
            LabelSlot::CallPrototype(statement) => {
                if let Some(Statement::Instruction(instruction)) = statements.get_mut(statement)
                    && let Some(call) = &mut instruction.call
                {
                    call.prototype = Some(label);
                }
            }
        }
    }
}

impl<'a> Parser<'a> {
    /// Makes registers: one, or `count` of them as a range.
    pub(super) fn declare_registers(
        &mut self,
        scope: &mut FunctionScope<'a>,
        name: &'a str,
        count: Option<u32>,
        (scalar_type, vector_length): (ScalarType, u32),
        span: Span,
    ) -> RegisterId {
        let first = RegisterId(scope.function.register_types.len() as u32);
        let added = u64::from(count.unwrap_or(1)) * u64::from(vector_length);
        if u64::from(first.0) + added > MAXIMUM_REGISTERS {
            let message = format!("more than {MAXIMUM_REGISTERS} registers in a function");
            self.error_at(PtxErrorKind::Limit, span, message, None);
            return first;
        }
        let fresh = match (count, scope.scopes.last_mut()) {
            (Some(count), Some(innermost)) => {
                let is_new = innermost.range(name.as_bytes()).is_none();
                innermost.ranges.push((name, Range { first, count, vector_length }));
                is_new
            }
            _ => scope.declare(name.into(), Name::Register { first, vector_length }),
        };
        if !fresh {
            self.error_at(PtxErrorKind::Duplicate, span, format!("`{name}` is declared twice in one scope"), None);
        }
        let new_length = scope.function.register_types.len() + added as usize;
        scope.function.register_types.resize(new_length, scalar_type);
        let declaration = RegisterDeclaration { name: name.into(), count, first, scalar_type, vector_length, span };
        scope.function.register_declarations.push(declaration);
        first
    }

    /// Ends the innermost scope: labels that were referred to are found here, or left to the scope around.
    pub(super) fn end_scope(&mut self, scope: &mut FunctionScope<'a>) {
        let Some(ended) = scope.scopes.pop() else { return };
        for pending in ended.pending {
            if let Some(label) = ended.labels.get(pending.name) {
                FunctionScope::fill(&mut scope.statements, pending.slot, *label);
            } else if let Some(around) = scope.scopes.last_mut() {
                around.pending.push(pending);
            } else {
                let near = words::nearest(pending.name, ended.labels.keys().copied());
                let expected = match near {
                    Some(near) => format!("the nearest label is `{near}`"),
                    None => "expected a label of this function in scope".to_owned(),
                };
                let message = format!("no label `{}`", pending.name);
                self.error_at(PtxErrorKind::MissingLabel, pending.span, message, Some(expected));
            }
        }
    }

    /// The meaning of a name, module scope included.
    pub(super) fn resolve(&self, scope: &FunctionScope<'a>, name: &str) -> Option<Name> {
        scope.find(name).or_else(|| self.module_names.get(name).map(|symbol| Name::Symbol(*symbol)))
    }

    /// Records that a name is not declared, with the nearest one that is.
    pub(super) fn unknown_name(&mut self, scope: &FunctionScope<'a>, name: &str, span: Span) -> super::Failed {
        let is_register = name.starts_with('%');
        let declared = scope.scopes.iter().rev().flat_map(|scope| scope.names.keys().map(|name| &**name));
        let near = words::nearest(name, declared.chain(self.module_names.keys().map(|name| &**name)));
        let expected = match near {
            Some(near) => format!("the nearest name is `{near}`"),
            None if self.is_module_register(name) => {
                "registers of module scope belong to kernels: a function cannot share them".to_owned()
            }
            None if is_register => self.register_hint(scope, name),
            None => "expected a variable, parameter or function that is declared before".to_owned(),
        };
        let (kind, message) = if is_register {
            (PtxErrorKind::UndeclaredRegister, format!("register `{name}` is not declared"))
        } else {
            (PtxErrorKind::UnknownSymbol, format!("`{name}` is not declared"))
        };
        self.error_at(kind, span, message, Some(expected))
    }

    fn is_module_register(&self, name: &str) -> bool {
        let stem = name.trim_end_matches(|character: char| character.is_ascii_digit());
        self.module_registers.iter().any(|registers| registers.name == name || registers.name == stem)
    }

    /// The declared registers with the stem of a register's name.
    fn register_hint(&self, scope: &FunctionScope<'a>, name: &str) -> String {
        let stem = name.trim_end_matches(|character: char| character.is_ascii_digit());
        let range = scope.scopes.iter().rev().find_map(|scope| scope.range(stem.as_bytes()));
        match range {
            Some(range) if range.count > 0 => {
                format!("`{stem}0` to `{stem}{}` are declared", range.count - 1)
            }
            _ => "expected a register that a `.reg` in scope declares".to_owned(),
        }
    }
}
