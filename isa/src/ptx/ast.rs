//! The tree that the parser makes of one PTX text: names resolved, nothing interpreted.
//!
//! Registers, labels, variables and functions are dense numbers. Every item carries the span of its text.

use smallvec::SmallVec;
use std::collections::BTreeMap;

use super::modifier::Modifier;
use super::opcode::Opcode;
use super::source::{SourceText, Span};
use super::special_register::SpecialRegister;
use super::types::{ScalarType, StateSpace};

/// Declares a dense number that indexes one of the tree's tables.
macro_rules! dense_id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The place in its table.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

dense_id!(
    /// A virtual register of a function: an index into [`Function::register_types`].
    RegisterId
);
dense_id!(
    /// A place of a function's source: an index into [`Function::locations`].
    LocationId
);
dense_id!(
    /// A label of a function: an index into [`Function::labels`].
    LabelId
);
dense_id!(
    /// A variable that a function declares in its body: an index into [`Function::variables`].
    LocalVariableId
);
dense_id!(
    /// A module-scope variable: an index into [`Module::globals`].
    GlobalId
);
dense_id!(
    /// A function or kernel: an index into [`Module::functions`].
    FunctionId
);

/// One PTX text.
#[derive(Clone, Debug)]
pub struct Module {
    /// The text and its name.
    pub source: SourceText,
    /// `.version major.minor`.
    pub version: (u16, u16),
    /// `.target`: `sm_75`, `texmode_independent`, `debug` and such, as written.
    pub targets: Vec<Box<str>>,
    /// The text of the `.target` directive.
    pub target_span: Span,
    /// `.address_size`: 32 or 64 (32 where absent, as the ISA says).
    pub address_size: u32,
    /// Variables at module scope, each name once: a definition takes the place of its declaration.
    pub globals: Vec<Variable>,
    /// Functions and kernels, each name once: a definition takes the place of its declaration.
    pub functions: Vec<Function>,
    /// `.alias name, target;`
    pub aliases: Vec<Alias>,
    /// `.file number "name"`, for the source positions of instructions.
    pub files: Vec<(u32, Box<str>)>,
    /// The bytes of `.section .debug_str`, and where its labels are in them.
    pub debug_strings: DebugStrings,
    /// Module-scope `.pragma` strings.
    pub pragmas: Vec<Box<str>>,
}

impl Module {
    /// The function or kernel of that name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| &*function.name == name)
    }

    /// The string that ends with a zero, at so many bytes past a label of `.section .debug_str`; `None` where there is none.
    pub fn debug_string(&self, (label, offset): &(Box<str>, u32)) -> Option<&str> {
        let first = self.debug_strings.labels.get(label)?.checked_add(*offset)?;
        let rest = self.debug_strings.bytes.get(first as usize..)?;
        let end = rest.iter().position(|&byte| byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok()
    }

    /// The module-scope variable of that name.
    pub fn global(&self, name: &str) -> Option<&Variable> {
        self.globals.iter().find(|global| &*global.name == name)
    }
}

/// Strings of debugging information, which `.loc` refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebugStrings {
    /// The strings, a zero behind each.
    pub bytes: Vec<u8>,
    /// Labels, with the byte that they stand before.
    pub labels: BTreeMap<Box<str>, u32>,
}

/// `.alias name, target;`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The new name, declared before as a function.
    pub name: FunctionId,
    /// The function that it stands for.
    pub target: FunctionId,
    /// The directive's text.
    pub span: Span,
}

/// Who sees a symbol of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Linkage {
    /// No directive: this module alone.
    Internal,
    /// `.visible`: other modules too.
    Visible,
    /// `.extern`: another module defines it.
    External,
    /// `.weak`: another module may define it, and its definition wins.
    Weak,
    /// `.common`: one of several equal definitions.
    Common,
}

/// A variable in memory.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name.
    pub name: Box<str>,
    /// Who sees it; `Internal` inside a function.
    pub linkage: Linkage,
    /// Global, constant, shared, local or parameter space.
    pub space: StateSpace,
    /// `.align`, else the natural alignment of the type (of the whole vector): bytes.
    pub alignment: u32,
    /// The type of one element.
    pub scalar_type: ScalarType,
    /// 1, or 2, 4 or 8 for `.v2`, `.v4` or `.v8`.
    pub vector_length: u32,
    /// Array dimensions, outermost first; none for a scalar. `None` = `[]`: an extern's or a parameter's unknown size.
    /// A `[]` with an initialiser has the size that the initialiser gives.
    pub dimensions: SmallVec<[Option<u64>; 2]>,
    /// Initial value; zero where absent.
    pub initializer: Option<Initializer>,
    /// `.attribute(.managed)`.
    pub is_managed: bool,
    /// Its text.
    pub span: Span,
}

impl Variable {
    /// Elements of `scalar_type`, the vector length included; `None` where a dimension is unknown or the product overflows.
    pub fn element_count(&self) -> Option<u64> {
        let mut count = u64::from(self.vector_length);
        for dimension in &self.dimensions {
            count = count.checked_mul((*dimension)?)?;
        }
        Some(count)
    }

    /// Bytes that it takes; `None` where its size is unknown.
    pub fn bytes(&self) -> Option<u64> {
        self.element_count()?.checked_mul(u64::from(self.scalar_type.bytes()))
    }
}

/// The initial value of a variable, flattened: values at element offsets; elements that are not listed are zero.
#[derive(Clone, Debug, Default)]
pub struct Initializer {
    /// (element index, value), ascending. An element is one `scalar_type` of the variable.
    pub values: Vec<(u64, InitialValue)>,
    /// Its text.
    pub span: Span,
}

/// One element of an initial value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialValue {
    /// The low bits of an integer, in two's complement.
    Integer(u64),
    /// Bits of an f32 that was written as such (`0f...`).
    Float32(u32),
    /// Bits of an f64 (`0d...`, or decimal).
    Float64(u64),
    /// An address.
    Address {
        /// The variable or function; never a local or a parameter.
        symbol: SymbolReference,
        /// Bytes past it.
        offset: i64,
        /// `generic(symbol)`: a generic address rather than one of the symbol's space.
        generic: bool,
        /// `mask(...)`: the byte of the address that a `.b8`/`.u8` element takes (0 = lowest).
        byte: Option<u8>,
    },
}

/// A parameter or return value of a function, or a kernel's parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name; `_` in prototypes.
    pub name: Box<str>,
    /// Parameter space, or register space for the older `.func` form.
    pub space: StateSpace,
    /// The type of one element.
    pub scalar_type: ScalarType,
    /// 1, or 2 or 4 for a vector.
    pub vector_length: u32,
    /// Bytes: `.align`, else natural.
    pub alignment: u32,
    /// Array dimensions; `None` = `[]`.
    pub dimensions: SmallVec<[Option<u64>; 2]>,
    /// The register, where the space is register space.
    pub register: Option<RegisterId>,
    /// `.ptr .space .align n`: the memory that a kernel's pointer parameter points to.
    pub pointer: Option<PointerAttributes>,
    /// Its text.
    pub span: Span,
}

impl Parameter {
    /// Bytes that it takes; `None` for an array of unknown size.
    pub fn bytes(&self) -> Option<u64> {
        let mut bytes = u64::from(self.vector_length) * u64::from(self.scalar_type.bytes());
        for dimension in &self.dimensions {
            bytes = bytes.checked_mul((*dimension)?)?;
        }
        Some(bytes)
    }
}

/// `.ptr` of a kernel parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerAttributes {
    /// The space pointed to; generic where absent.
    pub space: Option<StateSpace>,
    /// Alignment of that memory: bytes, 4 where absent.
    pub alignment: u32,
}

/// A kernel (`.entry`) or a function (`.func`).
#[derive(Clone, Debug)]
pub struct Function {
    /// Its (mangled) name.
    pub name: Box<str>,
    /// `.entry`.
    pub is_entry: bool,
    /// Who sees it.
    pub linkage: Linkage,
    /// Its results; empty for kernels.
    pub returns: Vec<Parameter>,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// `.noreturn`.
    pub is_noreturn: bool,
    /// `.maxntid` and the like.
    pub performance: PerformanceDirectives,
    /// The code; `None` for a declaration.
    pub body: Option<Body>,
    /// The type of each register.
    pub register_types: Vec<ScalarType>,
    /// The register declarations, in order: names for messages.
    pub register_declarations: Vec<RegisterDeclaration>,
    /// The labels.
    pub labels: Vec<Label>,
    /// The places of its source that `.loc` names, each once.
    pub locations: Vec<SourceLocation>,
    /// Variables declared in the body, in order; names may repeat in different scopes.
    pub variables: Vec<Variable>,
    /// From the linkage directive to the end of the header.
    pub span: Span,
}

impl Function {
    /// A register's name in the text.
    pub fn register_name(&self, register: RegisterId) -> String {
        let index = self.register_declarations.partition_point(|declaration| declaration.first.0 <= register.0);
        let Some(declaration) = index.checked_sub(1).and_then(|index| self.register_declarations.get(index)) else {
            return format!("register {}", register.0);
        };
        let offset = register.0 - declaration.first.0;
        let name = &declaration.name;
        match (declaration.count, declaration.vector_length) {
            (Some(_), 1) => format!("{name}{offset}"),
            (Some(_), length) => format!("{name}{}.{}", offset / length, component_letter(offset % length)),
            (None, 1) => name.to_string(),
            (None, length) => format!("{name}.{}", component_letter(offset % length)),
        }
    }
}

/// The letter of a vector's component.
fn component_letter(component: u32) -> char {
    ['x', 'y', 'z', 'w'].get(component as usize).copied().unwrap_or('?')
}

/// Limits and requests that a function's header states.
#[derive(Clone, Debug, Default)]
pub struct PerformanceDirectives {
    /// `.maxntid x, y, z` (missing ones are 1).
    pub maximum_threads: Option<[u32; 3]>,
    /// `.reqntid x, y, z`.
    pub required_threads: Option<[u32; 3]>,
    /// `.minnctapersm n`.
    pub minimum_ctas_per_sm: Option<u32>,
    /// `.maxnctapersm n`, an older form.
    pub maximum_ctas_per_sm: Option<u32>,
    /// `.maxnreg n`.
    pub maximum_registers: Option<u32>,
    /// `.explicitcluster`.
    pub explicit_cluster: bool,
    /// `.reqnctapercluster x, y, z`.
    pub required_cluster: Option<[u32; 3]>,
    /// `.maxclusterrank n`.
    pub maximum_cluster_rank: Option<u32>,
    /// `.pragma` strings of the header.
    pub pragmas: Vec<Box<str>>,
}

/// The code of a function.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// In text order; scopes are flattened.
    pub statements: Vec<Statement>,
    /// From `{` to `}`.
    pub span: Span,
}

/// A declaration of one register or a range of them.
#[derive(Clone, Debug)]
pub struct RegisterDeclaration {
    /// The name, or the stem of the names of a range.
    pub name: Box<str>,
    /// `Some(n)` for `name<n>`: the registers `name0` to `name(n-1)`.
    pub count: Option<u32>,
    /// The first register that it made.
    pub first: RegisterId,
    /// The type of each.
    pub scalar_type: ScalarType,
    /// 1, or 2 or 4: each register is that many consecutive ones.
    pub vector_length: u32,
    /// Its text.
    pub span: Span,
}

/// A label's name and where it is.
#[derive(Clone, Debug)]
pub struct Label {
    /// Its name; names may repeat in different scopes.
    pub name: Box<str>,
    /// Its text.
    pub span: Span,
}

/// One line of code.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    clippy::allow_attributes,
    reason = "nearly every statement is an instruction: a box would only add allocations; its size depends on the features \
              that the workspace's other crates choose for their libraries"
)]
pub enum Statement {
    /// `name:`
    Label(LabelId),
    /// An instruction.
    Instruction(Instruction),
    /// `.local`, `.shared` or `.param` variable comes to life here.
    Variable(LocalVariableId),
    /// `{`
    ScopeBegin,
    /// `}`
    ScopeEnd,
    /// `label: .branchtargets a, b;` — the label names the table for `brx.idx`.
    BranchTargets {
        /// The table's name.
        table: LabelId,
        /// Its entries.
        targets: Vec<LabelId>,
        /// Its text.
        span: Span,
    },
    /// `label: .calltargets f, g;`
    CallTargets {
        /// The table's name.
        table: LabelId,
        /// Its entries.
        targets: Vec<FunctionId>,
        /// Its text.
        span: Span,
    },
    /// `label: .callprototype (ret) _ (params);`
    CallPrototype {
        /// The prototype's name.
        label: LabelId,
        /// The prototype.
        prototype: Box<Prototype>,
    },
    /// `.pragma "text";`
    Pragma(Box<str>),
}

/// The signature of an indirect call.
#[derive(Clone, Debug)]
pub struct Prototype {
    /// The results of the callee.
    pub returns: Vec<Parameter>,
    /// The parameters of the callee.
    pub parameters: Vec<Parameter>,
    /// `.noreturn`.
    pub is_noreturn: bool,
    /// Its text.
    pub span: Span,
}

/// A place in the source that was compiled to PTX (`.loc`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLocation {
    /// A number of [`Module::files`].
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 where it is not known.
    pub column: u32,
    /// The function that was inlined here (`inlined_at`).
    pub inlined: Option<Inlining>,
}

/// A function that was inlined.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Inlining {
    /// The label of a string that is its name, and bytes past it; see [`Module::debug_string`].
    pub name: (Box<str>, u32),
    /// The place of the call, which comes before in the list.
    pub call: LocationId,
}

/// `@p` or `@!p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The predicate register.
    pub register: RegisterId,
    /// `!`
    pub negated: bool,
}

/// An instruction as written, checked against the instruction table.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// The first word.
    pub opcode: Opcode,
    /// The dotted words that are not types, in order.
    pub modifiers: SmallVec<[Modifier; 8]>,
    /// The types, in order (`cvt.rn.f32.s32`: f32, s32).
    pub types: SmallVec<[ScalarType; 4]>,
    /// Under which predicate.
    pub guard: Option<Guard>,
    /// The operands, in order. Empty for `call`, which has `call`.
    pub operands: SmallVec<[Operand; 4]>,
    /// The operands of a `call`.
    pub call: Option<Box<CallOperands>>,
    /// The last `.loc` before it.
    pub location: Option<LocationId>,
    /// From the guard or opcode to the `;`.
    pub span: Span,
}

impl Instruction {
    /// Whether a modifier is among its dotted words.
    pub fn has(&self, modifier: Modifier) -> bool {
        self.modifiers.contains(&modifier)
    }

    /// The first state space among its dotted words; `None` = generic.
    pub fn state_space(&self) -> Option<StateSpace> {
        self.modifiers.iter().find_map(|modifier| modifier.state_space())
    }

    /// 1, or the number of elements that `.v2`, `.v4`, `.v8` say.
    pub fn vector_length(&self) -> u32 {
        self.modifiers.iter().find_map(|modifier| modifier.vector_length()).unwrap_or(1)
    }
}

/// `call (returns), target, (arguments), prototype;`
#[derive(Clone, Debug)]
pub struct CallOperands {
    /// Where results go: parameter variables ([`OperandKind::Symbol`]), registers or sinks.
    pub returns: Vec<Operand>,
    /// A function ([`OperandKind::Symbol`]) or a register that holds its address.
    pub target: Operand,
    /// The arguments: parameter variables, registers or immediates.
    pub arguments: Vec<Operand>,
    /// The label of a `.callprototype` or `.calltargets`, in an indirect call.
    pub prototype: Option<LabelId>,
}

/// One operand and its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// Its kind.
    pub kind: OperandKind,
    /// Its text.
    pub span: Span,
}

/// The kind of an operand.
#[derive(Clone, Debug, PartialEq)]
pub enum OperandKind {
    /// `%r1`, or a component `%v1.x` of a vector register.
    Register(RegisterId),
    /// `%p1|%p2`: two destinations; `None` = `_`.
    Pair(Option<RegisterId>, Option<RegisterId>),
    /// `!%p1`
    NegatedPredicate(RegisterId),
    /// `-%r1`, in video instructions.
    NegatedRegister(RegisterId),
    /// `%r1.b0`, `%r1.h10`: parts of a register, in video instructions.
    Part {
        /// The register.
        register: RegisterId,
        /// Which parts.
        selector: PartSelector,
        /// `-`
        negated: bool,
    },
    /// `{a, b, c, d}`, or a vector register as a whole.
    Vector(Box<[Operand]>),
    /// `{a, b, c, d}|%p1`: the results of a texture access, and whether the texels were resident; `None` = `_`.
    ResidentVector(Box<[Operand]>, Option<RegisterId>),
    /// An integer, as 64 bits in two's complement.
    Integer(u64),
    /// `0f3F800000`: bits of an f32.
    Float32(u32),
    /// `0d3FF0000000000000`, or a decimal float: bits of an f64.
    Float64(u64),
    /// `%tid.x` and such.
    Special(SpecialRegister),
    /// `[...]`
    Address(Address),
    /// `[a, b]` or `[a, {x, y}]`, for textures, surfaces and tensors: the parts, each without brackets.
    AddressList(Box<[Operand]>),
    /// A variable's, parameter's or function's name, with an offset in bytes.
    Symbol {
        /// The symbol.
        symbol: SymbolReference,
        /// `+ n`
        offset: i64,
    },
    /// A branch target, or the name of a table of targets.
    Label(LabelId),
    /// `_`
    Sink,
}

/// Bytes or half words of a 32-bit register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartSelector {
    /// `.h`: half words; `.b`: bytes.
    pub half_words: bool,
    /// The digits in the order written: which part each refers to (0 to 3; 4 to 7 = of the second source).
    pub parts: [u8; 4],
    /// How many digits were written.
    pub count: u8,
}

/// `[base + offset]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The base of the offset.
    pub base: AddressBase,
    /// Bytes.
    pub offset: i64,
}

/// The base of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressBase {
    /// Zero: an absolute address.
    Absolute,
    /// A register.
    Register(RegisterId),
    /// A variable, parameter or function.
    Symbol(SymbolReference),
}

/// The meaning of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SymbolReference {
    /// A module-scope variable.
    Global(GlobalId),
    /// A variable of this function.
    Local(LocalVariableId),
    /// A parameter of this function: index into [`Function::parameters`].
    Parameter(u32),
    /// A return value of this function: index into [`Function::returns`].
    Return(u32),
    /// A function or kernel.
    Function(FunctionId),
}
